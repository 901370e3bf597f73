"""Why is this cell hidden, and what would free it?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.domain.crawled import Crawl, CubeCells
from app.domain.errors import UserError
from app.domain.lattice import Bools
from app.domain.primary import DIFFERENCE, CubePrimaries, PrimaryResult
from app.pipeline.build import Problem, Problems
from app.pipeline.stages import ranks_of
from app.pipeline.suppress import Suppression
from solver import InfeasibleError, Instance, SolverError, Status, explain, solve

#: Threats and relations that are told one by one.
_MOST = 10
#: Costs nearer to each other than this share of them are the same sum, added up otherwise.
_NOISE = 1e-12
#: About seconds of one core that the search for another pattern may take.
ALTERNATIVE_EFFORT = 3.0


@dataclass(frozen=True)
class Threat:
    """What showing a cell would give away: which cell, to whom, and the relations that add up to it."""

    cell: str
    attacker: str
    relations: tuple[str, ...]


@dataclass(frozen=True)
class Alternative:
    """The pattern with this cell shown: what it costs more, and what it hides and shows otherwise."""

    possible: bool
    extra_cost: float
    hides: tuple[str, ...]
    shows: tuple[str, ...]
    in_the_way: tuple[str, ...]


@dataclass(frozen=True)
class Why:
    """Why a cell is as it is.

    Attributes
    ----------
    cell : str
    state : str
        ``shown``, ``empty`` or ``hidden``.
    kind : str
        ``shown``; ``rule``; ``difference`` (from release ``since``); ``tied`` to the hidden cells in
        ``because``; ``ratio`` of the hidden cells in ``because``; ``secondary``, for the sake of ``threats``.
    reasons : tuple of str
        Rules that hit, as they are named.
    known : bool
        Readers know it from an earlier release.
    """

    cell: str
    state: str
    kind: str
    reasons: tuple[str, ...] = ()
    since: str = ""
    because: tuple[str, ...] = ()
    threats: tuple[Threat, ...] = ()
    alternative: Alternative | None = None
    known: bool = False


def why(
    crawl: Crawl, primaries: PrimaryResult, problems: Problems, suppression: Suppression, cell: str
) -> Why:
    """Explain the state of a published cell.

    Parameters
    ----------
    cell : str
        Its key, or its members' unique names with commas between.

    Raises
    ------
    UserError
        If no sheet has such a cell.
    """
    cube, row = find_cell(crawl, cell)
    cells, verdicts, hidden = crawl.cubes[cube], primaries.cubes[cube], suppression.hidden[cube]
    key = _key(cells, row)
    known = bool(verdicts.known[row])
    if not hidden[row]:
        state = "empty" if np.isnan(cells.values[row]) else "shown"
        return Why(key, state, "shown", known=known)
    reasons = verdicts.reasons_of(row)
    if reasons:
        kind = "difference" if reasons == (DIFFERENCE,) else "rule"
        return Why(key, "hidden", kind, reasons, verdicts.since.get(row, ""), known=known)
    operands = _operands(cells, row)
    if len(operands):
        return Why(key, "hidden", "ratio", because=cells.keys(operands[hidden[operands]]), known=known)
    partner = int(verdicts.partner[row])
    if partner >= 0 and hidden[partner]:
        return Why(key, "hidden", "tied", because=(_key(cells, partner),), known=known)
    attained = tuple(
        Threat(item.told, "outsider", (f"attained in {', '.join(cells.keys(np.array(item.by[:_MOST])))}",))
        for item in suppression.attained
        if item.cube == cube and row in item.rows
    )[:_MOST]
    for number, problem in enumerate(problems.problems):
        places = np.flatnonzero(problem.rows == row).tolist() if problem.cube == cube else []
        if places:
            pattern, place = _pattern(cells, verdicts, problem, suppression, number), places[0]
            threats = _threats(suppression.solved(number, problem), pattern, place)
            # Where only a maximum or minimum takes it, no search of this problem says what would free it.
            other = None
            if suppression.solutions[number].hidden[place]:
                other = _alternative(
                    _as_it_stands(cells, verdicts, problem, suppression, number, place), pattern, place
                )
            return Why(
                key, "hidden", "secondary", threats=(*attained, *threats), alternative=other, known=known
            )
    return Why(key, "hidden", "secondary", threats=attained, known=known)


def find_cell(crawl: Crawl, cell: str) -> tuple[int, int]:
    """The cube and row of a published cell.

    Raises
    ------
    UserError
        If no sheet has it, or several cubes do.
    """
    wanted = {
        part.strip() for part in re.split(r" \| |,(?![^\[]*\])", cell.strip().strip("()")) if part.strip()
    }
    found = [
        (cube, row)
        for cube, cells in enumerate(crawl.cubes)
        for row, key in enumerate(cells.keys(np.arange(cells.n_published)))
        if key == cell or set(key.split(" | ")) - {cells.cube.name} == wanted - {cells.cube.name}
    ]
    if not found:
        raise UserError(f"No sheet has a cell {cell}. Write its members' unique names with commas between.")
    if len(found) > 1:
        raise UserError(f"Several cubes have a cell {cell}. Write the cube's name first.")
    return found[0]


def _key(cells: CubeCells, row: int) -> str:
    return cells.keys(np.array([row], dtype=np.int64))[0]


def _operands(cells: CubeCells, row: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    place = np.flatnonzero(cells.derived.cell == row)
    if not len(place):
        return np.zeros(0, dtype=np.int64)
    start, end = cells.derived.indptr[place[0]], cells.derived.indptr[place[0] + 1]
    return cells.derived.indices[start:end]


def _pattern(
    cells: CubeCells, verdicts: CubePrimaries, problem: Problem, suppression: Suppression, number: int
) -> Bools:
    instance = suppression.solved(number, problem)
    return problem.pattern(instance, suppression.hidden[problem.cube], cells.n_given, verdicts.known)


def _as_it_stands(
    cells: CubeCells,
    verdicts: CubePrimaries,
    problem: Problem,
    suppression: Suppression,
    number: int,
    place: int,
) -> Instance:
    """The problem as it was solved, with all hidden that a search for this cell's sake must leave so.

    These are cells that went after it was solved, tied to others or for the sake of maxima and minima; and
    those of measures that protect this one or are protected by it, which are decided one after the other.
    """
    solved = suppression.solved(number, problem)
    pattern = _pattern(cells, verdicts, problem, suppression, number)
    beyond = ~suppression.solutions[number].hidden
    ranks = ranks_of(cells, verdicts.partner)[problem.rows]
    beyond[: len(ranks)] |= ranks != ranks[place]
    status = solved.status.copy()
    status[pattern & beyond & (status == Status.FREE)] = Status.HIDDEN
    return solved.replace(status=status)


def _threats(instance: Instance, pattern: Bools, place: int) -> tuple[Threat, ...]:
    return tuple(
        Threat(
            exposure.name,
            exposure.attacker,
            tuple(
                _relation(instance, relation, pattern)
                for relation in sorted({r for proof in exposure.certificate for r in proof})[:_MOST]
            ),
        )
        for exposure in explain(instance, pattern, place).exposes[:_MOST]
    )


def _relation(instance: Instance, relation: int, pattern: Bools) -> str:
    """A relation in words: names, hidden ones marked, no values."""
    start, end = instance.indptr[relation], instance.indptr[relation + 1]
    left: list[str] = []
    right: list[str] = []
    for cell, coef in zip(
        instance.indices[start:end].tolist(), instance.coefs[start:end].tolist(), strict=True
    ):
        factor = "" if abs(coef) == 1 else f"{abs(coef):g} × "
        mark = " [hidden]" if pattern[cell] else ""
        (left if coef < 0 else right).append(f"{factor}{instance.name(cell)}{mark}")
    return f"{' + '.join(left) or 'known'} = {' + '.join(right) or 'known'}"


def _alternative(instance: Instance, pattern: Bools, place: int) -> Alternative:
    """The pattern with one cell shown, begun from the one that there is."""
    status = instance.status.copy()
    status[place] = Status.SHOWN
    begin = pattern.copy()
    begin[place] = False
    try:
        shown = instance.replace(status=status)
        found = solve(shown, start=begin, work_limit=ALTERNATIVE_EFFORT)
    except InfeasibleError as error:
        cells = tuple(dict.fromkeys(obstacle.cell for obstacle in error.obstacles))[:_MOST]
        return Alternative(False, 0.0, (), (), cells)
    except SolverError:
        return Alternative(False, 0.0, (), (), ())
    now, then = instance.cost(pattern), instance.cost(found.hidden)
    return Alternative(
        True,
        0.0 if np.isclose(then, now, rtol=_NOISE, atol=0) else then - now,
        tuple(_names(instance, found.hidden & ~pattern)),
        tuple(_names(instance, pattern & ~found.hidden)),
        (),
    )


def _names(instance: Instance, mark: Bools) -> Iterator[str]:
    for cell in np.flatnonzero(mark).tolist():
        yield instance.name(cell)
