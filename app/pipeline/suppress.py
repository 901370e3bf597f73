"""suppress: the solver's pattern for every problem, tied measures after those that protect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.domain.cellset import FloatArray
from app.domain.crawled import Crawl, CubeCells
from app.domain.errors import InternalError, UserError
from app.domain.lattice import Bools, Longs
from app.domain.primary import CubePrimaries, PrimaryResult
from app.domain.progress import ProgressCallback, StepProgress
from app.pipeline.build import Problem, Problems
from app.pipeline.earlier import Begin
from app.pipeline.extremes import Attained, ExtremeJudge, Extremes, Promise
from app.pipeline.insiders import Levels, find_insiders, learn
from app.pipeline.stages import decided_first, ranks_of
from app.pipeline.unions import Union, UnionJudge, exposed_unions, judged_again, unions_in, with_unions
from solver import InfeasibleError, Insider, Instance, Progress, Solution, SolverError, Status, solve
from solver.audit import find_exposures
from solver.errors import Obstacle
from solver.explain import obstacles
from solver.least import least_values
from solver.solution import ProgressCallback as SolverProgress

#: What a problem may always spend, however much those before it took.
MIN_EFFORT = 1.0
#: Sole contributors times protected cells up to which each one's view of each is worked out.
MOST_QUESTIONS = 4_000
NOTHING = Begin()
Statuses = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Suppression:
    """What is hidden: bool[n] for each cube's table, and the solution of each problem.

    Of implied cells only the sensitive ones are marked: no sheet shows the others either. ``attained``
    says what was hidden for the sake of maxima and minima; ``limits`` (float64[3, n] by cube: lpl, upl,
    spl) are levels beyond which readers know these in any case.

    ``altered`` and ``statuses`` are there for `solved` and `levels` alone: instances of problems whose levels
    had to be cut down to what hiding everything can give, or which got further targets of insiders, or
    unions behind their cells; and the status (int8[n]) of each problem's cells as it was solved, with those
    hidden beforehand that are tied to others.
    """

    hidden: tuple[Bools, ...]
    solutions: tuple[Solution, ...]
    altered: Mapping[int, Instance]
    attained: tuple[Attained, ...] = ()
    limits: Mapping[int, FloatArray] = field(default_factory=dict)
    # Last, so that patterns can be read that were kept before there was such a field.
    statuses: tuple[Statuses, ...] = ()

    def __post_init__(self) -> None:
        if self.statuses and len(self.statuses) != len(self.solutions):
            raise ValueError("problems and their solutions differ")

    def solved(self, number: int, problem: Problem) -> Instance:
        """The problem of that number as it was solved, which isn't as it was built.

        Raises
        ------
        UserError
            If an earlier version of Celosia kept the pattern, which didn't keep the statuses.
        """
        instance = self.altered.get(number, problem.instance)
        if not self.statuses:
            raise UserError(
                "An earlier version of Celosia made the last run, and kept only in part which problems it "
                "solved. Run the publication again."
            )
        return instance.replace(status=self.statuses[number])

    def levels(self, number: int, problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Levels of the problem's rows (float64[k] each: lpl, upl, spl) as it was solved."""
        instance, k = self.altered.get(number, problem.instance), len(problem.rows)
        return instance.lpl[:k], instance.upl[:k], instance.spl[:k]


class Judge(UnionJudge, ExtremeJudge, Protocol):
    """Whoever knows the rules and who contributes to what."""

    def cost(self, cube: int, verdicts: CubePrimaries) -> FloatArray:
        """What hiding each cell of a cube's table costs (float64[n])."""
        ...


def suppress(
    effort: float,
    crawl: Crawl,
    primaries: PrimaryResult,
    problems: Problems,
    judge: Judge,
    progress: ProgressCallback | None = None,
    begin: Begin = NOTHING,
) -> Suppression:
    """Solve all problems and close the coupling between measures and formulas.

    ``effort`` (about seconds of one core) is shared out by the number of cells to protect, and what a
    problem leaves over goes to those after it. It counts work, not time: the pattern is the same always.

    ``judge`` says which sums of a relation's hidden cells must be protected like cells.
    ``begin`` is an earlier pattern: where it does as well, it stays. Where facts and rules are the same
    still, it stays in any case.

    Raises
    ------
    UserError
        If no pattern protects some cell; names what stands in the way.
    InternalError
        If the solver fails.
    """
    hidden = [verdicts.sensitive.copy() for verdicts in primaries.cubes]
    solutions: list[Solution] = []
    altered: dict[int, Instance] = {}
    statuses: list[Statuses] = []
    sizes = [len(problem.instance.protected) for problem in problems.problems]
    for number, problem in enumerate(problems.problems):
        cells, verdicts = crawl.cubes[problem.cube], primaries.cubes[problem.cube]
        instance = problem.instance
        status = instance.status.copy()
        bound = np.flatnonzero(_bound(cells, verdicts, hidden[problem.cube])[problem.rows])
        status[bound[status[bound] == Status.FREE]] = Status.HIDDEN
        instance = instance.replace(status=status)

        def tell(state: Progress, number: int = number) -> None:
            if progress is not None:
                message = f"{state.phase}, problem {number + 1} of {len(problems.problems)}"
                total = len(problems.problems)
                progress(StepProgress("suppress", number, total, message, state.lower, state.upper))

        share = effort * sizes[number] / sum(sizes[number:])
        decided = frozenset(cells.keys(problem.rows[verdicts.must_show[problem.rows]]))
        solution, solved, instance, took = _begin(
            problem, cells, verdicts, instance, hidden[problem.cube], tell, share, decided, begin
        )
        solution, solved = _go_on(problem, cells, instance, solution, solved, judge, tell, decided)
        if solved is not instance:
            altered[number] = solved
        statuses.append(solved.status)
        # However short the search was, whoever watches hears what came of it.
        tell(Progress("solved", solution.lower_bound, solution.cost, solution.seconds))
        solutions.append(solution)
        effort = max(effort - took - float(solution.statistics["work"]), MIN_EFFORT)
        _mark(problem, cells, solution, hidden[problem.cube])
    for place, (cells, verdicts) in enumerate(zip(crawl.cubes, primaries.cubes, strict=True)):
        close_coupling(cells, verdicts, hidden[place])
    pattern = Suppression(tuple(hidden), tuple(solutions), altered, statuses=tuple(statuses))
    return _without_told_extremes(crawl, primaries, problems, pattern, judge)


def _without_told_extremes(
    crawl: Crawl, primaries: PrimaryResult, problems: Problems, pattern: Suppression, judge: Judge
) -> Suppression:
    """The pattern with what more must be hidden so that no maximum or minimum is told by being attained.

    Whatever more is hidden leaves the linear relations no tighter than they were.
    """
    attained: list[Attained] = []
    limits: dict[int, FloatArray] = {}
    for place, (cells, verdicts) in enumerate(zip(crawl.cubes, primaries.cubes, strict=True)):
        extremes = extremes_of(place, cells, verdicts, problems, pattern, judge)
        if not len(extremes):
            continue
        levels = np.stack(extremes.levels())
        if np.any(levels < np.stack(levels_kept(place, verdicts, problems, pattern))):
            limits[place] = levels
        while found := extremes.close(pattern.hidden[place], judge.cost(place, verdicts)):
            attained.extend(found)
            close_coupling(cells, verdicts, pattern.hidden[place])
    return replace(pattern, attained=tuple(attained), limits=limits)


def extremes_of(
    number: int,
    cells: CubeCells,
    verdicts: CubePrimaries,
    problems: Problems,
    suppression: Suppression,
    judge: ExtremeJudge,
) -> Extremes:
    """The maxima and minima of a cube, with the levels that the pattern keeps."""
    levels = levels_kept(number, verdicts, problems, suppression)
    promise = Promise(verdicts.sensitive, verdicts.must_show, verdicts.known, *levels)
    return Extremes(number, cells, promise, judge)


def _begin(
    problem: Problem,
    cells: CubeCells,
    verdicts: CubePrimaries,
    instance: Instance,
    hidden: Bools,
    tell: SolverProgress,
    work_limit: float,
    decided: frozenset[str],
    begin: Begin,
) -> tuple[Solution, Instance, Instance, float]:
    """The solution against outsiders and the insiders' first targets, its instance, the instance as it was
    given with what earlier measures hide of tied ones, and the work that these took.

    Tied measures come one after the other; the cost is that of all secondaries together.
    """

    def solve_part(part: Instance) -> Solution:
        return _solve(part, tell, work_limit / 2, decided, begin)[0]

    def bound(marked: Bools) -> Bools:
        return _bound(cells, verdicts, marked)

    ranks = ranks_of(cells, verdicts.partner)[problem.rows]
    whole, parts = decided_first(problem, ranks, instance, hidden, bound, solve_part)
    took = sum(float(part.statistics["work"]) for part in parts)
    if not parts:
        return *_solve(instance, tell, work_limit, decided, begin), instance, took
    status = instance.status.copy()
    tied = ranks > ranks.min()
    status[: len(tied)][tied] = whole.status[: len(tied)][tied]
    given = instance.replace(status=status)
    solution, solved = _solve(whole, tell, max(work_limit - took, MIN_EFFORT), decided, begin)
    solved = solved.replace(status=status)
    bound_below = sum(part.lower_bound for part in parts) + solution.lower_bound
    return solution.proven(solved.cost(solution.hidden), bound_below), solved, given, took


def _solve(
    instance: Instance,
    tell: SolverProgress,
    work_limit: float,
    decided: frozenset[str],
    begin: Begin = NOTHING,
) -> tuple[Solution, Instance]:
    """The solution, and the instance with levels cut down to what is possible at all."""
    names = instance.names or ()
    start = np.array([name in begin.hidden for name in names], dtype=np.bool_) if begin.hidden else None
    while True:
        try:
            found = solve(instance, progress=tell, work_limit=work_limit, start=start)
            return _standing(instance, found, begin.standing), instance
        except InfeasibleError as error:
            # A search names some cells; asking for all at once saves one search after another.
            everything = obstacles(instance, instance.protected, instance.n) or error.obstacles
            reachable = reachable_levels(instance, everything, decided)
            if reachable is None:
                raise _explain(everything, decided) from error
            instance = reachable
        except SolverError as error:
            raise InternalError("the solver failed") from error


def _standing(instance: Instance, found: Solution, standing: frozenset[str]) -> Solution:
    """The pattern that stands if it hides all that may be hidden, which is safe if any pattern is; else the
    one that was found.

    What was shown stays shown, so that a search could only show more, by the work that it may spend once
    again: the pattern would hang on how often a publication was run.
    """
    names = instance.names or ()
    free = np.flatnonzero(instance.status == Status.FREE).tolist()
    if not all(names[cell] in standing for cell in free):
        return found
    hidden = instance.status != Status.SHOWN
    return replace(found, hidden=hidden).proven(instance.cost(hidden), found.lower_bound)


def _go_on(
    problem: Problem,
    cells: CubeCells,
    instance: Instance,
    solution: Solution,
    solved: Instance,
    judge: UnionJudge,
    tell: SolverProgress,
    decided: frozenset[str],
) -> tuple[Solution, Instance]:
    """The solution with what more it takes once it is seen what is hidden.

    Against sole contributors who go on from relation to relation: each round gives those who learned a cell,
    or too much of one, that cell as a target. And for unions: each round gives those that are sensitive and
    derivable levels of their own. What is hidden stays hidden.
    """
    targets: dict[int, Longs] = {}
    unions: list[Union] = []
    asked: set[bytes] = set()
    while True:
        more = learned_by_insiders(problem, solved, solution.hidden)
        if not more:
            more = narrowed_by_insiders(problem, cells, solved, solution.hidden, unions)
        found: tuple[Union, ...] = ()
        if not more:
            found = exposed_unions(problem.cube, cells, problem.rows, solved, solution.hidden, judge, asked)
        if not more and not found:
            return solution, solved
        for who, told in more.items():
            targets[who] = np.union1d(targets.get(who, told), told)
        instance = with_unions(instance, [_within_reach(instance, union) for union in found])
        unions.extend(found)
        instance = instance.replace(insiders=_insiders(problem, cells, instance, targets, unions))
        status = instance.status.copy()
        hidden = np.append(solution.hidden, np.ones(len(found), dtype=np.bool_))
        status[hidden & (status == Status.FREE)] = Status.HIDDEN

        def tell_on(state: Progress, before: Solution = solution) -> None:
            # This search doesn't count again what is hidden already, and proves nothing about the whole.
            tell(replace(state, lower=before.lower_bound, upper=before.cost + state.upper))

        again, solved = _solve(instance.replace(status=status), tell_on, MIN_EFFORT, decided)
        solved = solved.replace(status=instance.status)
        solution = again.proven(instance.cost(again.hidden), solution.lower_bound)


def _least(instance: Instance) -> FloatArray:
    return least_values(instance.matrix, instance.lower_bound, instance.rhs)


def _within_reach(instance: Instance, union: Union) -> Union:
    """A union with a lower level that leaves its parts what each is at least, whatever is hidden."""
    down = float(instance.value[union.parts].sum() - _least(instance)[union.parts].sum())
    return replace(union, lpl=max(min(union.lpl, down), 0.0))


def learned_by_insiders(problem: Problem, instance: Instance, hidden: Bools) -> Mapping[int, Longs]:
    """Protected cells that sole contributors find out exactly, though no target of theirs, by contributor."""
    aims = {int(problem.holder[insider.known[0]]): insider.targets for insider in instance.insiders}
    relations = instance.matrix
    protected = np.maximum(np.maximum(instance.lpl, instance.upl), instance.spl) > 0
    found = learn(relations, problem.holder, hidden, protected)
    more = {who: np.setdiff1d(told, aims.get(who, told[:0])) for who, told in found.items()}
    return {who: told for who, told in more.items() if len(told)}


def narrowed_by_insiders(
    problem: Problem, cells: CubeCells, instance: Instance, hidden: Bools, unions: Sequence[Union]
) -> Mapping[int, Longs]:
    """Protected cells that sole contributors know too closely, though no target of theirs, by contributor.

    Looked for where `MOST_QUESTIONS` are enough: each contributor's view of each cell is a linear program.
    """
    aims = {int(problem.holder[insider.known[0]]): insider.targets for insider in instance.insiders}
    alone = np.unique(problem.holder[problem.holder >= 0])
    protected = np.flatnonzero(np.maximum(np.maximum(instance.lpl, instance.upl), instance.spl) > 0)
    protected = protected[protected < instance.n - len(unions)]
    if not 0 < len(alone) * len(protected) <= MOST_QUESTIONS:
        return {}
    everything = _insiders(problem, cells, instance, dict.fromkeys(alone.tolist(), protected), unions)
    asked: list[Insider] = []
    who: dict[str, int] = {}
    for insider in everything:
        number = int(problem.holder[insider.known[0]])
        new = ~np.isin(insider.targets, aims.get(number, insider.targets[:0]))
        if new.any():
            who[insider.name] = number
            levels = (insider.lpl[new], insider.upl[new], insider.spl[new])
            asked.append(Insider(insider.name, insider.known, insider.targets[new], *levels))
    none = np.zeros(instance.n)
    question = instance.replace(insiders=tuple(asked), lpl=none, upl=none, spl=none)
    found: dict[int, list[int]] = {}
    for exposure in find_exposures(question, hidden) if asked else ():
        if exposure.attacker in who:  # A sensitive cell that is shown at all is for others to tell.
            found.setdefault(who[exposure.attacker], []).append(exposure.cell)
    return {number: np.unique(told) for number, told in found.items()}


def _insiders(
    problem: Problem,
    cells: CubeCells,
    instance: Instance,
    targets: Mapping[int, Longs],
    unions: Sequence[Union],
) -> tuple[Insider, ...]:
    levels = Levels(instance.value, _least(instance), instance.lpl, instance.upl, instance.spl)
    relations = instance.matrix[:, : len(problem.rows)]
    parts = [union.parts for union in unions]
    return find_insiders(cells, problem.rows, relations, problem.holder, levels, targets, parts)


def levels_kept(
    number: int, verdicts: CubePrimaries, problems: Problems, suppression: Suppression
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Levels of a table's published cells (float64[n] each: lpl, upl, spl) as the pattern keeps them: those
    of the rules, except where nothing that may be hidden gives as much.
    """
    lpl, upl, spl = verdicts.lpl.copy(), verdicts.upl.copy(), verdicts.spl.copy()
    for place, problem in enumerate(problems.problems):
        if problem.cube == number:
            rows = problem.rows
            lpl[rows], upl[rows], spl[rows] = suppression.levels(place, problem)
    if number in suppression.limits:
        for levels, limit in zip((lpl, upl, spl), suppression.limits[number], strict=True):
            np.minimum(levels, limit, out=levels)
    return lpl, upl, spl


def reachable_levels(
    instance: Instance, found: Sequence[Obstacle], decided: frozenset[str]
) -> Instance | None:
    """The instance with levels no higher than hiding everything gives, None if that isn't what is wrong.

    What a reader knows when nothing at all is shown, from the structure and from earlier releases, no
    pattern can take away. Where a cell that must be shown by decision (``decided`` are their names) stands
    in the way, its author has to decide instead.
    """
    lpl, upl, spl = (np.array(levels) for levels in (instance.lpl, instance.upl, instance.spl))
    insiders = {insider.name: insider for insider in instance.insiders}
    cut = False
    for obstacle in found:
        if decided.intersection(obstacle.shown):
            return None
        cell = instance.index(obstacle.cell)
        down = max(float(instance.value[cell]) - obstacle.interval[0], 0.0)
        up = max(obstacle.interval[1] - float(instance.value[cell]), 0.0)
        limits = (down, up, down + up)
        insider = insiders.get(obstacle.attacker)
        if insider is None:
            for levels, limit in zip((lpl, upl, spl), limits, strict=True):
                cut |= bool(levels[cell] > limit)
                levels[cell] = min(levels[cell], limit)
        else:
            place = np.flatnonzero(insider.targets == cell)
            mine = [np.array(levels) for levels in (insider.lpl, insider.upl, insider.spl)]
            for levels, limit in zip(mine, limits, strict=True):
                cut |= bool((levels[place] > limit).any())
                levels[place] = np.minimum(levels[place], limit)
            insiders[obstacle.attacker] = replace(insider, lpl=mine[0], upl=mine[1], spl=mine[2])
    if not cut:
        return None
    return instance.replace(lpl=lpl, upl=upl, spl=spl, insiders=tuple(insiders.values()))


def lowered_levels(
    crawl: Crawl, primaries: PrimaryResult, problems: Problems, pattern: Suppression, judge: UnionJudge
) -> int:
    """How many cells and unions have a level below their rule's: as high as hiding everything would give, no
    higher."""
    lowered = 0
    for place, problem in enumerate(problems.problems):
        solved = pattern.solved(place, problem)
        verdicts = primaries.cubes[problem.cube]
        rows = problem.rows
        n = len(rows)  # slacks of inequalities stand behind the cells
        lowered += int(
            (
                (solved.lpl[:n] < verdicts.lpl[rows])
                | (solved.upl[:n] < verdicts.upl[rows])
                | (solved.spl[:n] < verdicts.spl[rows])
            ).sum()
        )
        unions = unions_in(problem.instance, solved)
        again = judged_again(problem.cube, crawl.cubes[problem.cube], rows, unions, judge)
        lowered += sum(
            now.lpl < rule.lpl or now.upl < rule.upl or now.spl < rule.spl
            for now, rule in zip(unions, again, strict=True)
        )
    return lowered


def _mark(problem: Problem, cells: CubeCells, solution: Solution, hidden: Bools) -> None:
    rows = problem.rows
    visible = rows < cells.n_given
    hidden[rows[visible]] |= solution.hidden[: len(rows)][visible]


def _bound(cells: CubeCells, verdicts: CubePrimaries, hidden: Bools) -> Bools:
    """Cells that must go because the protecting measure's cell is hidden."""
    partner = verdicts.partner
    result = np.zeros(len(cells), dtype=np.bool_)
    tied = np.flatnonzero((partner >= 0) & verdicts.occupied & ~verdicts.must_show)
    result[tied] = hidden[partner[tied]]
    result[cells.n_given :] &= verdicts.sensitive[cells.n_given :]
    return result


def close_coupling(cells: CubeCells, verdicts: CubePrimaries, hidden: Bools) -> None:
    """Hide tied cells wherever the protecting one is hidden, and ratios with a hidden operand; in place."""
    while True:
        more = _bound(cells, verdicts, hidden) & ~hidden
        if not more.any():
            break
        hidden |= more
    hidden |= derived_hidden(cells, hidden)


def derived_hidden(cells: CubeCells, hidden: Bools) -> Bools:
    """bool[n]: non-linear cells with a hidden operand."""
    derived = cells.derived
    result = np.zeros(len(cells), dtype=np.bool_)
    counts = np.concatenate([[0], np.cumsum(hidden[derived.indices])])
    result[derived.cell] = counts[derived.indptr[1:]] > counts[derived.indptr[:-1]]
    return result


def _explain(found: Sequence[Obstacle], decided: frozenset[str]) -> UserError:
    """Which cells can't be protected and what stands in the way; names only, no values."""
    lines = []
    for obstacle in sorted(found, key=lambda obstacle: not decided.intersection(obstacle.shown))[:20]:
        line = f"Cell {obstacle.cell} can't be protected against {obstacle.attacker}"
        if decided.intersection(obstacle.shown):
            shown = [name for name in obstacle.shown if name in decided]
            line += f" while these must be shown: {', '.join(shown[:5])}"
        lines.append(f"{line}.")
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return UserError(
        " ".join(lines) + more + " Take decisions to show back, or leave cells out of the sheets."
    )
