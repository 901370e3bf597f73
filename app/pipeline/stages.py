"""suppress: problems of tied measures, those that protect before those that are protected.

Where a taxpayers' cell is hidden, the income of the place goes with it. Bands tie both measures into one
problem, of which a solver that hides either as it likes doesn't know. So the protecting measure's cells are
decided first, as if there were no others, and the whole problem then goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from app.domain.crawled import CubeCells
from app.domain.lattice import Bools, Longs, row_of
from app.pipeline.build import Problem
from solver import Insider, Instance, Solution, Status

#: The pattern of an instance.
Solve = Callable[[Instance], Solution]
#: Cells (bool[n]) that go because of those that are hidden (bool[n]).
Bound = Callable[[Bools], Bools]


def ranks_of(cells: CubeCells, partner: Longs) -> Longs:
    """How many protecting measures stand above each cell's measure (int64[n]).

    ``partner`` (int64[n]) is the row of the cell that protects each, -1 where there is none.
    """
    tied = np.flatnonzero(partner >= 0)
    measure = cells.coords[:, 0]
    above = dict(zip(measure[tied].tolist(), measure[partner[tied]].tolist(), strict=True))
    depth = np.zeros(int(measure.max(initial=0)) + 1, dtype=np.int64)
    for lower in above:
        upper = lower
        while upper in above:
            upper, depth[lower] = above[upper], depth[lower] + 1
    return depth[measure]


def decided_first(
    problem: Problem, ranks: Longs, instance: Instance, hidden: Bools, bound: Bound, solve: Solve
) -> tuple[Instance, list[Solution]]:
    """The instance with the cells hidden that its protecting measures hide by themselves, and what they took.

    Parameters
    ----------
    ranks : int64[k]
        Of the problem's rows, as of `ranks_of`.
    hidden : bool[n]
        The pattern of the table so far.
    """
    solutions: list[Solution] = []
    for rank in np.unique(ranks)[:-1].tolist():
        part, columns = _among(instance, ranks <= rank)
        if not len(part.protected):
            continue
        solution = solve(part)
        solutions.append(solution)
        chosen = columns[solution.hidden]
        instance = _hiding(instance, chosen)
        rows = chosen[chosen < len(problem.rows)]
        marked = hidden.copy()
        marked[problem.rows[rows]] = True
        instance = _hiding(instance, np.flatnonzero(bound(marked)[problem.rows]))
    return instance, solutions


def _hiding(instance: Instance, cells: Longs) -> Instance:
    status = instance.status.copy()
    status[cells[status[cells] == Status.FREE]] = Status.HIDDEN
    return instance.replace(status=status)


def _among(instance: Instance, mine: Bools) -> tuple[Instance, Longs]:
    """The instance of some of its cells and what is virtual, by the relations that name no other; and which
    cells these are."""
    kept = np.ones(instance.n, dtype=np.bool_)
    kept[: len(mine)] = mine
    relation = row_of(instance.indptr)
    wanted = np.ones(instance.m, dtype=np.bool_)
    wanted[relation[~kept[instance.indices]]] = False
    inside = wanted[relation]
    used = np.zeros(instance.n, dtype=np.bool_)
    used[instance.indices[inside]] = True
    columns = np.flatnonzero(kept & used)
    place = np.full(instance.n, -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    sizes = np.diff(instance.indptr)[wanted]
    part = Instance(
        value=instance.value[columns],
        weight=instance.weight[columns],
        lower_bound=instance.lower_bound[columns],
        upper_bound=instance.upper_bound[columns],
        lpl=instance.lpl[columns],
        upl=instance.upl[columns],
        spl=instance.spl[columns],
        status=instance.status[columns],
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        indices=place[instance.indices[inside]],
        coefs=instance.coefs[inside],
        rhs=instance.rhs[wanted],
        names=None if instance.names is None else tuple(instance.names[cell] for cell in columns.tolist()),
        insiders=tuple(_restricted(insider, place) for insider in instance.insiders),
        tolerance=instance.tolerance,
    )
    return part, columns


def _restricted(insider: Insider, place: Longs) -> Insider:
    known, targets = place[insider.known], place[insider.targets]
    met = targets >= 0
    levels = (insider.lpl[met], insider.upl[met], insider.spl[met])
    return Insider(insider.name, known[known >= 0], targets[met], *levels)
