"""From a data frame to a cell suppression problem: totals, rules, statuses, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solver.arguments import told
from solver.discreet import Discreet
from solver.errors import InputError
from solver.formats.apriori import Apriori
from solver.formats.frame import Frame, Kind, read_frame
from solver.formats.tabular import STATUS_LETTERS
from solver.formats.text import Problems, did_you_mean
from solver.hierarchy import Hierarchy
from solver.insiders import single_contributors
from solver.instance import Instance, Status
from solver.intake import HierarchyLike, Intake, take_in
from solver.least import least_known, least_values
from solver.rows import Choices, Columns, cells_from_cells, cells_from_units, read_floats, read_texts
from solver.rules import Assessment, Manual, Profiles, Rule, Threshold, Zero, assess
from solver.table import Floats, Relations, Violation, decimal_places, find_violations, relations_of
from solver.tabulate import Cells, owners_by_counts, recompute_totals

BINARY_SUMS = 1e-12
"""Relative difference that sums of doubles may have; sums of decimals may have none."""


@dataclass(frozen=True, eq=False, repr=False)
class TableProblem(Discreet):
    """A table of n cells and its suppression problem.

    Attributes
    ----------
    dims, hierarchies
        The dimensions.
    cells
        The cells with their profiles; ``cells.source`` is the input row of each, if it has one.
    assessment
        Which cells are primary, and why.
    instance
        What is to be solved; cell i of it is cell i of the table.
    violations
        Totals that are not the sum of their parts, and were accepted.
    notices
        What the author of the input should know.
    kind
        The library that the frame came from.
    counted
        Whether the numbers of contributors are known.
    """

    dims: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    cells: Cells
    assessment: Assessment
    instance: Instance
    violations: tuple[Violation, ...]
    notices: tuple[str, ...]
    kind: Kind
    counted: bool

    def codes(self, dim: str) -> list[str]:
        """The n codes of one dimension."""
        d = self.dims.index(dim)
        listed = self.hierarchies[d].codes
        return [listed[i] for i in self.cells.position[:, d].tolist()]


@dataclass
class _Draft:
    """The per-cell arrays of the instance while a-priori decisions change them.

    ``lower`` is NaN where nothing was said of it.
    """

    status: NDArray[np.int8]
    weight: Floats
    lower: Floats
    upper: Floats
    lpl: Floats
    upl: Floats
    spl: Floats


def _given_status(
    frame: Frame, columns: Columns, intake: Intake, cells: Cells, problems: Problems
) -> tuple[list[str], Floats, Floats]:
    """Stated status and levels of each cell: ``""`` and NaN where nothing is stated."""
    n = len(cells)
    stated, lpl, upl = [""] * n, np.full(n, np.nan), np.full(n, np.nan)
    rows = np.flatnonzero(cells.source >= 0)
    origin = intake.kept[cells.source[rows]]
    texts = read_texts(frame, columns.status, "status", problems)
    if texts is not None:
        right = [text.upper() in STATUS_LETTERS for text in texts]
        boolean = {t.upper() for t, ok in zip(texts, right, strict=True) if ok} <= {"TRUE", "FALSE"}
        for record, ok in enumerate(right):
            if not ok:
                told = repr(texts[record]) if texts[record] else "empty"
                need = "TRUE or FALSE" if boolean and any(right) else "S, U, P or X"
                problems.add(f"record {record + 1}: {columns.status} is {told}; need {need}.")
        for cell, record in zip(rows.tolist(), origin.tolist(), strict=True):
            stated[cell] = STATUS_LETTERS.get(texts[record].upper(), "s")
    stated_levels: tuple[tuple[str | None, Floats], ...] = ((columns.lpl, lpl), (columns.upl, upl))
    for name, levels in stated_levels:
        if name is not None:
            try:
                numbers = frame.numbers(name, "protection level")
            except InputError as error:
                problems.extend(error)
                continue
            if (numbers.wrong | (numbers.value < 0)).any():
                record = int(np.argmax(numbers.wrong | (numbers.value < 0))) + 1
                problems.add(f"{name} is no level of 0 or more in record {record}.", "Correct it.")
            levels[rows] = np.where(numbers.missing[origin], np.nan, numbers.value[origin])
    return stated, lpl, upl


def _costs(frame: Frame, columns: Columns, intake: Intake, cells: Cells, problems: Problems) -> Floats:
    size = np.abs(cells.profiles.value)
    if columns.cost == "value":
        return np.where(size > 0, size, 1.0)
    if columns.cost == "count":
        return np.maximum(cells.profiles.count.astype(np.float64), 1.0)
    if columns.cost == "unit":
        return np.ones(len(cells))
    column = read_floats(frame, columns.cost, "cost", problems)
    if column is None:
        return np.ones(len(cells))
    if (column < 0).any():
        problems.add(f"{columns.cost} is negative in record {int(np.argmax(column < 0)) + 1}.", "Correct it.")
    costs = np.where(size > 0, size, 1.0)
    rows = cells.source >= 0
    costs[rows] = column[intake.kept[cells.source[rows]]]
    return costs


def _decide(
    entries: Sequence[Apriori],
    names: Mapping[tuple[str, ...], int],
    value: Floats,
    draft: _Draft,
    problems: Problems,
) -> None:
    """Apply a-priori decisions in their order."""
    statuses = {"s": Status.FREE, "p": Status.SHOWN, "m": Status.HIDDEN, "ml": Status.HIDDEN}
    for entry in entries:
        cell = names.get(entry.codes)
        if cell is None:
            told = " × ".join(entry.codes)
            problems.found.append(
                InputError(
                    f"there is no cell {told}.",
                    did_you_mean(told, (" × ".join(key) for key in names)) or "Correct it.",
                    file=entry.file,
                    line=entry.line,
                )
            )
        elif entry.action == "u":
            draft.status[cell] = Status.SENSITIVE
        elif entry.action == "p" and draft.status[cell] == Status.SENSITIVE:
            told = " × ".join(entry.codes)
            problems.found.append(
                InputError(
                    f"cell {told} is sensitive and can't be one that must be shown.",
                    "Leave it out, or declare the cell safe (s) before.",
                    file=entry.file,
                    line=entry.line,
                )
            )
        elif entry.action in statuses:
            draft.status[cell] = statuses[entry.action]
            if entry.action == "s":
                draft.lpl[cell] = draft.upl[cell] = draft.spl[cell] = 0
        elif entry.action in ("c", "w"):
            draft.weight[cell] = entry.numbers[0]
        elif entry.action == "pl":
            draft.lpl[cell], draft.upl[cell] = entry.numbers
        elif not entry.numbers[0] <= value[cell] <= entry.numbers[1]:
            told = " × ".join(entry.codes)
            cause = f"the value of cell {told} is not between its bounds."
            problems.found.append(
                InputError(cause, "Correct the bounds.", file=entry.file, line=entry.line, cell=told)
            )
        else:
            draft.lower[cell], draft.upper[cell] = entry.numbers


def _check_empty_parts(
    cells: Cells, sensitive: NDArray[np.bool_], relations: Relations, names: Sequence[str], problems: Problems
) -> None:
    """A sensitive total over nothing but empty cells is a mistake of the data, not an infeasible problem."""
    matrix = relations.matrix
    empty = ~cells.profiles.occupied & (cells.profiles.value == 0)
    parts = abs(matrix) @ np.ones(len(cells)) - 1
    without = abs(matrix) @ empty.astype(np.float64)
    for r in np.flatnonzero(sensitive[relations.total] & (without >= parts)).tolist():
        total = int(relations.total[r])
        problems.add(
            f"{names[total]} is sensitive, but all its parts are empty.",
            "Correct its status or its parts.",
            cell=names[total],
        )


def build_problem(
    frame: object,
    dims: Sequence[str],
    hierarchies: Mapping[str, HierarchyLike],
    columns: Columns,
    choices: Choices,
    rules: Sequence[Rule] = (),
    apriori: Sequence[Apriori] = (),
) -> TableProblem:
    """Build the table and its suppression problem; see :func:`solver.protect.protect`.

    Raises
    ------
    MultipleInputError
        All mistakes that can be told at once.
    """
    taken = read_frame(frame)
    problems = Problems()
    notices: list[str] = []
    if not dims:
        problems.add("no dimension is named.", "Name at least one.")
        problems.stop()
    for dim in sorted({dim for dim in dims if list(dims).count(dim) > 1}):
        problems.add(f"dimension {dim} is named twice.", "Name it once.")
    if isinstance(rules, str | bytes) or not isinstance(rules, Sequence):
        problems.add(f"rules is {told(rules)}.", "Give a list of rules.")
        problems.stop()
    for rule in rules:
        if not isinstance(rule, Rule):
            remedy = "Give rules such as Threshold(3); parse_rule reads texts."
            problems.add(f"{told(rule)} is no rule.", remedy)
    problems.stop()
    if taken.columns and not taken.n:
        problems.add("there are no records.", "Give at least one.")
    intake = take_in(
        taken,
        dims,
        hierarchies,
        units=choices.rows == "units",
        total=choices.total,
        missing=choices.missing,
        missing_codes=choices.missing_codes,
        inner=choices.inner,
        problems=problems,
    )
    depth = max((rule.depth for rule in rules), default=0)
    if choices.rows == "units":
        cells = cells_from_units(taken, intake, columns, choices, depth, problems)
    else:
        cells = cells_from_cells(taken, intake, columns, choices, problems, notices)
    if cells is None or intake is None:
        # Mistakes in the other columns are told in the same go.
        if columns.cost not in ("value", "count", "unit") and columns.cost not in taken.columns:
            problems.add(f"cost column {columns.cost} not found; columns are {', '.join(taken.columns)}.")
        problems.stop()
        raise InputError("the frame holds no table.")
    notices[:0] = intake.notices
    columns_codes = [
        [h.codes[i] for i in cells.position[:, d].tolist()] for d, h in enumerate(intake.hierarchies)
    ]
    keys = list(zip(*columns_codes, strict=True))
    names = tuple(" × ".join(key) for key in keys)
    if len(set(names)) < len(names):
        names = tuple(" × ".join(map(repr, key)) for key in keys)
    relations = relations_of(cells.position, intake.hierarchies)
    stated, lpl, upl = _given_status(taken, columns, intake, cells, problems)
    weight = _costs(taken, columns, intake, cells, problems)
    violations = find_violations(
        relations, cells.decimals, names, dims, relative=_slack(taken, columns, choices)
    )
    rhs = np.zeros(relations.matrix.shape[0])
    if violations and choices.non_additive == "refuse":
        for violation in violations:
            problems.add(
                f"{violation.sentence}.",
                'Correct the table, or pass non_additive="recompute" or "constant".',
                cell=violation.total,
            )
    elif violations and choices.non_additive == "recompute":
        cells = _recomputed(cells, intake.hierarchies, relations)
    elif violations:
        rhs = _exact_differences(relations, cells)
    marked = np.array([s == "u" for s in stated], dtype=np.bool_)
    _check_empty_parts(cells, marked, relations, names, problems)
    problems.stop()
    listed = list(rules)
    if marked.any():
        at = np.flatnonzero(marked)
        listed.append(Manual(at, lpl=lpl[at], upl=upl[at], percent=choices.percent))
    counted = choices.rows == "units" or columns.count is not None
    if not counted and any(isinstance(rule, (Threshold, Zero)) for rule in rules):
        problems.add("a rule counts contributors, but no count column is named.", "Name it.")
        problems.stop()
    assessment = assess(cells.profiles, listed)
    draft = _draft(cells, assessment, stated, weight, choices, names, problems)
    _decide(apriori, {key: i for i, key in enumerate(keys)}, cells.profiles.value, draft, problems)
    _default_levels(draft, cells.profiles, assessment, choices)
    least = _bound_below(draft, cells, relations, rhs, choices, notices)
    overruled = assessment.sensitive & (draft.status == Status.FREE)
    notices += [
        f"{names[i]} is sensitive by rule, but safe a priori" for i in np.flatnonzero(overruled).tolist()
    ]
    if not listed and columns.status is None and not apriori:
        notices.append(
            "no rule, status or a-priori decision is given: nothing is sensitive, nothing is hidden"
        )
    problems.stop()
    owner = cells.owner if choices.rows == "units" else owners_by_counts(cells.profiles.count, relations)
    hidden = np.isin(draft.status, (Status.SENSITIVE, Status.HIDDEN))
    insiders = single_contributors(
        owner,
        hidden,
        relations,
        (draft.lpl, draft.upl, draft.spl),
        cells.profiles.value,
        least,
        cells.position,
        intake.hierarchies,
        names,
        scope=choices.insiders,
    )
    miss = np.abs(relations.matrix @ cells.profiles.value - rhs)
    instance = Instance(
        value=cells.profiles.value,
        weight=draft.weight,
        lower_bound=draft.lower,
        upper_bound=draft.upper,
        lpl=draft.lpl,
        upl=draft.upl,
        spl=draft.spl,
        status=draft.status,
        indptr=relations.matrix.indptr,
        indices=relations.matrix.indices,
        coefs=relations.matrix.data,
        rhs=rhs,
        names=names,
        insiders=insiders,
        decimals=cells.decimals,
        tolerance=2 * float(miss.max(initial=0)),
    )
    return TableProblem(
        tuple(dims),
        intake.hierarchies,
        cells,
        assessment,
        instance,
        violations,
        tuple(notices),
        taken.kind,
        counted,
    )


def _slack(frame: Frame, columns: Columns, choices: Choices) -> float:
    """No difference is accepted between decimals; doubles may have gone through binary sums."""
    if choices.rows == "units":
        return BINARY_SUMS
    column = frame.columns[columns.value or columns.count or ""]
    return BINARY_SUMS if column.dtype.kind == "f" else 0.0


def _exact_differences(relations: Relations, cells: Cells) -> Floats:
    """Sum of parts minus total of each relation, rounded to the decimals that the values have."""
    difference: Floats = relations.matrix @ cells.profiles.value
    digits = decimal_places(cells.decimals)
    return difference if digits is None else np.round(difference, digits)


def _recomputed(cells: Cells, hierarchies: Sequence[Hierarchy], relations: Relations) -> Cells:
    old = cells.profiles
    value = recompute_totals(old.value, cells.decimals, cells.position, hierarchies, relations)
    profiles = Profiles(value, old.count, old.top, old.kind, negative_values=old.negative_values)
    decimals = tuple(repr(x).removesuffix(".0") for x in value.tolist())
    return Cells(cells.position, profiles, cells.owner, cells.source, decimals)


def _draft(
    cells: Cells,
    assessment: Assessment,
    stated: Sequence[str],
    weight: Floats,
    choices: Choices,
    names: Sequence[str],
    problems: Problems,
) -> _Draft:
    n = len(cells)
    profiles = cells.profiles
    status = np.full(n, Status.FREE, dtype=np.int8)
    zero = (profiles.value == 0) if not choices.hide_zeros else ~profiles.occupied & (profiles.value == 0)
    status[zero] = Status.SHOWN
    shown = np.array([s == "z" for s in stated], dtype=np.bool_)
    status[shown] = Status.SHOWN
    status[np.array([s == "x" for s in stated], dtype=np.bool_)] = Status.HIDDEN
    for i in np.flatnonzero(shown & assessment.sensitive).tolist():
        problems.add(
            f"{names[i]} must be shown, but is sensitive by {', '.join(assessment.reasons_of(i))}.",
            "Change its status.",
            cell=names[i],
        )
    status[assessment.sensitive] = Status.SENSITIVE
    return _Draft(
        status,
        weight.copy(),
        np.full(n, np.nan),
        np.full(n, np.inf),
        assessment.lpl.copy(),
        assessment.upl.copy(),
        assessment.spl.copy(),
    )


def _bound_below(
    draft: _Draft,
    cells: Cells,
    relations: Relations,
    rhs: Floats,
    choices: Choices,
    notices: list[str],
) -> Floats:
    """Say what readers know each cell is at least, and ask no lower level that this rules out.

    Returns the least that each cell can be whatever is hidden.
    """
    profiles, unsaid = cells.profiles, np.isnan(draft.lower)
    if choices.negative_values:
        draft.lower[unsaid] = -np.inf
        return np.full(len(cells), -np.inf)
    shown = draft.status == Status.SHOWN
    known = least_known(profiles, shown, cells.decimals, choices.hide_zeros)
    draft.lower[unsaid] = known[unsaid]
    # Zeros that everybody sees are no parts of anything.
    zeros = shown & (profiles.value == 0)
    matrix = sparse.csr_array(relations.matrix @ sparse.diags_array((~zeros).astype(np.float64)))
    matrix.eliminate_zeros()
    least = np.minimum(least_values(matrix, draft.lower, rhs), profiles.value)
    room = profiles.value - least
    # What not even the value has room for was asked by mistake, and is told as such.
    cut = (draft.lpl > room) & (draft.lpl <= profiles.value)
    draft.lpl[cut] = room[cut]
    if cut.any():
        notices.append(
            f"{int(cut.sum())} lower levels are cut: as zeros are shown, readers know that what is hidden is "
            "none"
        )
    return least


def _default_levels(draft: _Draft, profiles: Profiles, assessment: Assessment, choices: Choices) -> None:
    """Cells that only an a-priori decision made sensitive are protected by the percentage."""
    bare = (draft.status == Status.SENSITIVE) & ~assessment.sensitive
    bare &= (draft.lpl == 0) & (draft.upl == 0) & (draft.spl == 0)
    relative = choices.percent / 100 * np.abs(profiles.value)
    draft.lpl[bare] = relative[bare]
    draft.upl[bare] = relative[bare]
