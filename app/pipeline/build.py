"""build: one solver instance for each independent problem, protecting measures first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from app.domain.bands import bounds_by_bands
from app.domain.bounds import bounds_of
from app.domain.completeness import joined, missing_relations
from app.domain.crawled import Crawl, CubeCells
from app.domain.equation import Equations
from app.domain.errors import InternalError, UserError
from app.domain.known import Behind
from app.domain.lattice import Bools, Longs, row_of
from app.domain.least import least_known
from app.domain.nearly import bounds_nearly
from app.domain.primary import CubePrimaries, PrimaryResult
from app.domain.publication import Confidentiality, Publication
from app.domain.statistics import bounds_between
from app.pipeline.insiders import Levels, find_insiders
from app.pipeline.weigh import weigh
from solver import InputError, Instance, Status
from solver.least import least_values

Floats = NDArray[np.float64]

ADDS_UP = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """Cells that hang together, as the solver takes them.

    ``rows`` (int64[k]) are the instance's first k cells in the table of cube ``cube``; those behind them are
    slacks of bounds and cells of earlier releases, which nobody sees. ``rank`` is how many protecting
    measures stand above its measures: problems of lower rank are solved first. ``holder`` (int64[k]) is the
    sole contributor of each row, -1 where there is none or none is feared.
    """

    cube: int
    rank: int
    rows: Longs
    holder: Longs
    instance: Instance

    def __post_init__(self) -> None:
        if len(self.rows) > self.instance.n or np.any(
            self.instance.status[len(self.rows) :] != Status.VIRTUAL
        ):
            raise ValueError("a problem's rows and cells differ")

    def pattern(self, instance: Instance, hidden: Bools, n_given: int, known: Bools) -> Bools:
        """The part of a pattern over the cube's table that is the problem's: what readers can't see.

        Implied cells are always hidden, and cells known from earlier releases never are. ``instance`` is the
        problem's as it was solved, which may have more virtual cells.
        """
        result = np.ones(instance.n, dtype=np.bool_)
        result[: len(self.rows)] = (hidden[self.rows] | (self.rows >= n_given)) & ~known[self.rows]
        return result


@dataclass(frozen=True, eq=False)
class Problems:
    """All problems in the order of solving; a cell in none of them stands in no relation that matters."""

    problems: tuple[Problem, ...]


def build_problems(publication: Publication, crawl: Crawl, primaries: PrimaryResult) -> Problems:
    """Turn sensitive cells and equations into problems.

    A cell of value zero is known to everyone and is left out. Components without a sensitive cell need no
    protection and are left out too.

    Raises
    ------
    InternalError
        If an equation doesn't hold for the crawled values.
    UserError
        If a cell breaks a bound that readers are told.
    """
    problems: list[Problem] = []
    for number, (cells, verdicts) in enumerate(zip(crawl.cubes, primaries.cubes, strict=True)):
        problems.extend(problems_of(publication.confidentiality, number, cells, verdicts))
    return Problems(
        tuple(sorted(problems, key=lambda problem: (problem.rank, problem.cube, problem.rows[0])))
    )


def problems_of(
    confidentiality: Confidentiality, number: int, cells: CubeCells, verdicts: CubePrimaries
) -> Iterator[Problem]:
    """The problems of one cube, which has that number among the crawl's."""
    value = np.nan_to_num(cells.values)
    bounds = bounds_of(
        cells.space, cells.coords, cells.values, tuple(item.aggregator for item in cells.cube.measures)
    )
    for more in (
        bounds_between(cells.space, cells.coords, cells.values, cells.cube.measures),
        bounds_by_bands(cells.space, cells.coords, cells.values, cells.bands),
        bounds_nearly(cells.values, cells.nearly),
    ):
        bounds = bounds.and_others(more, len(cells))
    exact = joined(cells.equations, missing_relations(cells.space, cells.coords, cells.equations))
    equations = joined(exact, bounds.equations)
    past = verdicts.behind
    n, slack = len(cells), len(bounds.slack)
    equations = joined(equations, _behind(past.equations, n, slack))

    def extended(column: NDArray[Any], slacks: float | Floats, earlier: float | Floats) -> NDArray[Any]:
        parts = ((slacks, slack), (earlier, len(past)))
        more = [np.broadcast_to(np.asarray(part, dtype=column.dtype), size) for part, size in parts]
        return np.concatenate([column, *more])

    status = extended(_status(cells, verdicts, value), float(Status.VIRTUAL), float(Status.VIRTUAL))
    known = (extended(value, 1.0, 1.0) == 0) & (status == Status.SHOWN)
    _check_signs(cells, value)
    lower = extended(least_known(cells, confidentiality.hide_zeros), 0.0, past.lower)
    value = extended(value, bounds.slack, past.value)
    _check_equations(cells, equations, value)
    matrix = _relations(equations, known)
    weight = extended(weigh(confidentiality, cells, verdicts, matrix), 0.0, 0.0)
    least = least_values(matrix, np.where(known, 0.0, lower), equations.rhs)
    lpl = extended(verdicts.lpl, 0.0, past.lpl)
    lpl = np.where(np.isinf(least), lpl, np.clip(np.minimum(lpl, value - least), 0, None))
    upl, spl = extended(verdicts.upl, 0.0, past.upl), extended(verdicts.spl, 0.0, past.spl)
    free = ~known & ~extended(cells.is_derived, 0.0, 0.0)
    rank = _ranks(confidentiality, cells)
    for places, relations in _components(matrix, free, np.maximum(np.maximum(lpl, upl), spl) > 0):
        part = matrix[relations][:, places]
        rows = places[places < n]
        if not len(rows):
            # Cells of the past that nothing ties to today's: there is nothing left to decide.
            continue
        holder = verdicts.holder[rows] if confidentiality.insiders else np.full(len(rows), -1, dtype=np.int64)
        levels = Levels(value[rows], least[rows], lpl[rows], upl[rows], spl[rows])
        insiders = find_insiders(cells, rows, part[:, : len(rows)], holder, levels)
        try:
            instance = Instance(
                value=value[places],
                weight=weight[places],
                lower_bound=lower[places],
                upper_bound=np.full(len(places), np.inf),
                lpl=lpl[places],
                upl=upl[places],
                spl=spl[places],
                status=status[places],
                indptr=part.indptr,
                indices=part.indices,
                coefs=part.data,
                rhs=equations.rhs[relations],
                names=(*cells.keys(rows), *_names(past, places[len(rows) :] - n, slack)),
                insiders=insiders,
                tolerance=_tolerance(part, value[places], equations.rhs[relations]),
            )
        except InputError as error:
            raise InternalError(f"a problem of cube {cells.cube.name} is malformed: {error.cause}") from error
        yield Problem(number, int(rank[rows].max()), rows, holder, instance)


def _behind(equations: Equations, n: int, slack: int) -> Equations:
    """Relations of earlier cells, which stand behind the slacks of bounds."""
    shift = np.where(equations.indices >= n, slack, 0)
    return Equations(equations.indptr, equations.indices + shift, equations.coefs, equations.rhs)


def _names(past: Behind, places: Longs, slack: int) -> Iterator[str]:
    for place in places.tolist():
        yield f"slack {place}" if place < slack else past.names[place - slack]


def _check_equations(cells: CubeCells, equations: Equations, value: Floats) -> None:
    matrix = equations.matrix(len(value))
    miss = np.abs(matrix @ value - equations.rhs)
    scale = np.abs(matrix) @ np.abs(value) + np.abs(equations.rhs)
    if np.any(miss > ADDS_UP * scale):
        raise InternalError(
            f"{int(np.sum(miss > ADDS_UP * scale))} equations don't hold in {cells.cube.name}"
        )


def _status(cells: CubeCells, verdicts: CubePrimaries, value: Floats) -> NDArray[np.int8]:
    status = np.full(len(cells), Status.FREE, dtype=np.int8)
    status[cells.n_given :] = Status.VIRTUAL
    status[: cells.n_given][verdicts.sensitive[: cells.n_given]] = Status.SENSITIVE
    status[(value == 0) & ~verdicts.sensitive] = Status.SHOWN
    status[verdicts.must_show | verdicts.known] = Status.SHOWN
    return status


def _check_signs(cells: CubeCells, value: Floats) -> None:
    for number, measure in enumerate(cells.cube.measures):
        mine = (cells.coords[:, 0] == number) & cells.has_contributors
        if measure.nonnegative and np.any(value[mine] < 0):
            raise UserError(
                f"Measure {measure.name} of cube {cells.cube.name} has negative cells. "
                "Write nonnegative = false for it."
            )


def _relations(equations: Equations, known: Bools) -> sparse.csr_array:
    """The equations without the zeros that everyone knows."""
    relation = equations.relation
    kept = ~known[equations.indices]
    return sparse.csr_array(
        (equations.coefs[kept], (relation[kept], equations.indices[kept])), shape=(len(equations), len(known))
    )


def _ranks(confidentiality: Confidentiality, cells: CubeCells) -> NDArray[np.int64]:
    """How many protecting measures stand above each cell's measure."""
    above = {
        item.measure: item.associated_with
        for item in confidentiality.measures
        if item.cube == cells.cube.name and item.associated_with is not None
    }
    ranks = np.zeros(len(cells), dtype=np.int64)
    for number, measure in enumerate(cells.cube.measures):
        depth, name = 0, measure.name
        while name in above:
            name, depth = above[name], depth + 1
        ranks[cells.coords[:, 0] == number] = depth
    return ranks


def _components(matrix: sparse.csr_array, free: Bools, leveled: Bools) -> Iterator[tuple[Longs, Longs]]:
    """Rows and relations of each connected component that has something to protect."""
    m, n = matrix.shape
    relation = row_of(matrix.indptr)
    graph = sparse.coo_array(
        (np.ones(len(relation), dtype=np.int8), (relation, matrix.indices + m)), shape=(m + n, m + n)
    )
    _, label = csgraph.connected_components(graph, directed=False)
    busy = np.zeros(n, dtype=np.bool_)
    busy[matrix.indices] = True
    wanted = np.unique(label[m:][leveled & busy & free])
    order = np.argsort(label[m:], kind="stable")
    bounds = np.searchsorted(label[m:][order], np.stack([wanted, wanted + 1]))
    filled = np.flatnonzero(np.diff(matrix.indptr))
    by_label = filled[np.argsort(label[filled], kind="stable")]
    edges = np.searchsorted(label[by_label], np.stack([wanted, wanted + 1]))
    for place in range(len(wanted)):
        rows = order[bounds[0, place] : bounds[1, place]]
        yield np.sort(rows[busy[rows]]), np.sort(by_label[edges[0, place] : edges[1, place]])


def _tolerance(part: sparse.csr_array, value: Floats, rhs: Floats) -> float:
    """How far the doubles of the cube's sums miss each other; 0 where they are exact."""
    return float(np.abs(part @ value - rhs).max(initial=0.0))
