"""A lower bound from single relations, for tables too large for the exact method's root.

Castro 2005 §5 (after Kelly, Golden, Assad 1992), for any linear relations: in every relation of a
target the other hidden cells must carry its level, and none must carry it alone without company.
The first is the single-relation capacity constraint with the coefficients truncated at the level,
which implies (20), (23), (24) and (27) of the paper; the second, (21)-(22) and (25)-(26), is separated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy import sparse

from solver.clock import Clock
from solver.cuts import relation_cuts, row_bridgeless
from solver.entries import ranges
from solver.errors import NumericalError
from solver.heuristics.needs import gather_needs
from solver.instance import FloatArray
from solver.lp import LinearProgram
from solver.presolve import Problem, Targets

_ROUNDS = 20
_VIOLATION = 0.01


def relations_bound(problem: Problem, clock: Clock) -> float:
    """No safe pattern of the component costs less (optimum of a linear relaxation)."""
    bound = 0.0
    if not clock.out:
        with suppress(NumericalError):
            for better in _bounds(problem, clock):
                bound = better
    # The bound of a linear program is only as good as its arithmetic.
    return max(bound * (1 - 1e-7) - 1e-7, 0.0)


def _bounds(problem: Problem, clock: Clock) -> Iterator[float]:
    """Better and better bounds."""
    rows = sparse.csr_array(sparse.vstack([_capacity_rows(problem), _sliding_rows(problem)]))
    free = np.flatnonzero(~problem.forced & (np.diff(rows.tocsc().indptr) > 0))
    if not len(free):
        return
    used = sparse.csr_array(rows[:, free])
    program = LinearProgram(
        problem.weight[free],
        np.zeros(len(free)),
        np.ones(len(free)),
        used.indptr,
        used.indices,
        used.data,
        np.ones(used.shape[0]),
        np.full(used.shape[0], np.inf),
    )
    result = program.solve(seconds=clock.seconds_left)
    if result.status != "optimal":
        return
    yield result.objective
    # Company may lie outside the columns of the program, so only what costs nothing extra is added.
    position = np.full(problem.n, -1, dtype=np.int64)
    position[free] = np.arange(len(free))
    for _ in range(_ROUNDS):
        if clock.out:
            break
        x = problem.forced.astype(np.float64)
        x[free] = result.primal
        cuts = [c for c in row_bridgeless(problem, x, _VIOLATION) if (position[c.columns] >= 0).all()]
        if not cuts:
            break
        program.add_rows(
            np.concatenate([[0], np.cumsum([len(cut.columns) for cut in cuts])]),
            np.concatenate([position[cut.columns] for cut in cuts]),
            np.concatenate([cut.coefs for cut in cuts]),
            np.array([cut.rhs for cut in cuts]),
            np.full(len(cuts), np.inf),
        )
        result = program.solve(seconds=clock.seconds_left)
        clock.charge(program.columns + program.rows)
        if result.status != "optimal":
            break
        yield result.objective


def _sliding_rows(problem: Problem) -> sparse.csr_array:
    """One row per (relation, target with a sliding level): what the others lend both ways together."""
    targets = problem.targets
    wide = np.flatnonzero(targets.sliding > 0)
    none = np.zeros(len(wide))
    sliding = Targets(targets.attacker[wide], targets.cell[wide], none, none, targets.sliding[wide])
    # Cuts are scaled to a right-hand side of one, but for what tiny coefficients have given away.
    cuts = relation_cuts(replace(problem, targets=sliding))
    ends = np.cumsum([0] + [len(cut.columns) for cut in cuts])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *(cut.columns for cut in cuts)])
    coefs = np.concatenate([np.empty(0), *(cut.coefs / cut.rhs for cut in cuts)])
    return sparse.csr_array((coefs, columns, ends), shape=(len(cuts), problem.n))


def _capacity_rows(problem: Problem) -> sparse.csr_array:
    """One row per (relation, direction) with a target: its highest level, scaled to one.

    Which way a sliding level is met is open, so it asks nothing of a single direction.
    """
    targets, matrix = problem.targets, problem.matrix
    plain = replace(problem, targets=replace(targets, sliding=np.zeros(len(targets))))
    needs = gather_needs(plain, Clock())
    columns = problem.transposed
    counts = np.diff(columns.indptr)[needs.cell]
    which = np.repeat(np.arange(len(needs)), counts)
    entries = ranges(columns.indptr[needs.cell], counts)
    relation, coef = columns.indices[entries], columns.data[entries]
    # The others must move the relation by `amount` in the direction `sign`.
    amount = np.abs(coef) * needs.level[which]
    sign = -np.sign(coef) * needs.side[which]
    key = relation * 2 + (sign > 0)
    best = np.lexsort((-amount, key))
    best = best[np.concatenate([[True], np.diff(key[best]) != 0])] if len(best) else best
    indptr, indices, data = [0], [], []
    for k in best.tolist():
        r = int(relation[k])
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        cells, coefs = matrix.indices[part], matrix.data[part]
        rises = coefs * sign[k] > 0
        carried = np.abs(coefs) * np.where(rises, problem.hi[cells], problem.lo[cells])
        carried[cells == needs.cell[which[k]]] = 0.0
        left = amount[k] - float(carried[problem.forced[cells]].sum())
        if left <= 1e-9 * amount[k]:
            continue
        rest: FloatArray = np.where(problem.forced[cells], 0.0, np.minimum(carried / left, 1.0))
        kept = rest > 0
        indices.append(cells[kept])
        data.append(rest[kept])
        indptr.append(indptr[-1] + int(kept.sum()))
    if not indices:
        return sparse.csr_array((0, problem.n))
    parts = (np.concatenate(data), np.concatenate(indices), np.array(indptr))
    return sparse.csr_array(parts, shape=(len(indptr) - 1, problem.n))
