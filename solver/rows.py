"""From the rows of a frame, units or cells, to the cells of a table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from solver.arguments import as_number, choice, require, text
from solver.errors import InputError
from solver.formats.frame import Frame
from solver.formats.text import Problems
from solver.hierarchy import TOTAL
from solver.insiders import Scope
from solver.intake import InnerPolicy, Intake, MissingPolicy
from solver.rules import check_contributions
from solver.table import Floats, Ints
from solver.tabulate import Cells, tabulate_cells, tabulate_units

Rows = Literal["units", "cells"]
NonAdditive = Literal["refuse", "recompute", "constant"]


@dataclass(frozen=True)
class Columns:
    """Which column is what; see :func:`solver.protect.protect`."""

    value: str | None = None
    count: str | None = None
    top: tuple[str, ...] = ()
    weight: str | None = None
    holding: str | None = None
    request: str | None = None
    status: str | None = None
    cost: str = "value"
    lpl: str | None = None
    upl: str | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name != "top" and getattr(self, item.name) is not None:
                require(getattr(self, item.name), str, item.name, "Give the name of a column.")
        text(self.cost, "cost")


@dataclass(frozen=True)
class Choices:
    """How to treat what is special; see :func:`solver.protect.protect`."""

    rows: Rows = "units"
    total: str = TOTAL
    missing: MissingPolicy = "category"
    missing_codes: tuple[str, ...] = ("", "NA")
    inner: InnerPolicy = "unspecified"
    non_additive: NonAdditive = "refuse"
    negative_values: bool = False
    hide_zeros: bool = False
    percent: float = 10.0
    insiders: Scope = "relations"

    def __post_init__(self) -> None:
        allowed: dict[str, tuple[str, ...]] = {
            "rows": ("units", "cells"),
            "missing": ("category", "drop", "stop"),
            "inner": ("unspecified", "stop"),
            "non_additive": ("refuse", "recompute", "constant"),
            "insiders": ("relations", "all", "none"),
        }
        for name, values in allowed.items():
            choice(getattr(self, name), name, values)
        if not text(self.total, "total").strip():
            raise InputError("total is empty.", "Give the code of what is in all.")
        for name in ("negative_values", "hide_zeros"):
            require(getattr(self, name), (bool, np.bool_), name, "Say True or False.")
        as_number(self.percent, "percent", 0.0, "Give a percentage, 0 or more.", finite=True)


def read_floats(frame: Frame, name: str | None, role: str, problems: Problems) -> Floats | None:
    """A numeric column without gaps; mistakes are noted with their records."""
    if name is None:
        return None
    try:
        numbers = frame.numbers(name, role)
    except InputError as error:
        problems.extend(error)
        return None
    bad = np.flatnonzero(numbers.wrong | numbers.missing).tolist()
    if bad:
        listed = ", ".join(str(i + 1) for i in bad[:10]) + (
            f" and {len(bad) - 10} more" if len(bad) > 10 else ""
        )
        problems.add(f"{name} is no number in record {listed}.", "Give a number.")
    return numbers.value


def read_texts(frame: Frame, name: str | None, role: str, problems: Problems) -> list[str] | None:
    if name is None:
        return None
    try:
        return [(text or "").strip() for text in frame.texts(name, role)]
    except InputError as error:
        problems.extend(error)
        return None


def cells_from_units(
    frame: Frame, intake: Intake | None, columns: Columns, choices: Choices, depth: int, problems: Problems
) -> Cells | None:
    for name in ("count", "status", "lpl", "upl"):
        if getattr(columns, name) is not None:
            problems.add(f"{name} belongs to tables of cells.", 'Leave it out, or pass rows="cells".')
    value = read_floats(frame, columns.value, "value", problems)
    weight = read_floats(frame, columns.weight, "weight", problems)
    holding = read_texts(frame, columns.holding, "holding", problems)
    request = read_texts(frame, columns.request, "request", problems)
    if problems.found or intake is None:
        return None
    kept = intake.kept
    amount = np.ones(frame.n) if value is None else value
    owner = None
    if holding is not None:
        # A unit without a holding is one of its own.
        single = [code or f"\0{row}" for row, code in enumerate(holding)]
        owner = np.unique(np.array(single), return_inverse=True)[1].astype(np.int64)[kept]
    try:
        return tabulate_units(
            intake.position,
            intake.hierarchies,
            amount[kept],
            depth=depth,
            weight=None if weight is None else weight[kept],
            holding=owner,
            request=None if request is None else np.array(request, dtype=np.str_)[kept],
            kind="frequency" if value is None else "magnitude",
            negative_values=choices.negative_values,
        )
    except InputError as error:
        problems.extend(error)
        return None


def _check_given(
    value: Floats, count: Ints, top: Floats, choices: Choices, problems: Problems, notices: list[str]
) -> None:
    for finding in check_contributions(value, count, top, negative_values=choices.negative_values):
        if finding.severity == "error":
            problems.add(f"record {finding.row + 1}: {finding.cause}.", "Correct the record.")
        else:
            notices.append(f"record {finding.row + 1}: {finding.cause}")


def cells_from_cells(
    frame: Frame,
    intake: Intake | None,
    columns: Columns,
    choices: Choices,
    problems: Problems,
    notices: list[str],
) -> Cells | None:
    for role in ("weight", "holding", "request"):
        if getattr(columns, role) is not None:
            problems.add(f"{role} belongs to units.", 'Leave it out, or pass rows="units".')
    name = columns.value or columns.count
    if name is None:
        problems.add(
            "no column holds the cells' values.", "Name it as value, or as count for a frequency table."
        )
        return None
    value = read_floats(frame, name, "value", problems)
    count = read_floats(frame, columns.count, "count", problems)
    tops = [read_floats(frame, top, "top", problems) for top in columns.top]
    if problems.found or intake is None or value is None:
        return None
    kept = intake.kept
    known = np.where(value != 0, 2**31, 0) if count is None else count
    number = known.astype(np.int64)
    if (known < 0).any() or (known != number).any():
        odd = int(np.argmax((known < 0) | (known != number)))
        problems.add(
            f"{columns.count} is no whole number of contributors in record {odd + 1}.", "Correct it."
        )
        return None
    given = [t for t in tops if t is not None]
    top = np.column_stack(given) if given else np.zeros((len(value), 0))
    if count is not None and given:
        _check_given(value, number, top, choices, problems, notices)
    if not choices.negative_values and (value < 0).any():
        row = int(np.argmax(value < 0)) + 1
        problems.add(f"{name} is negative in record {row}.", "Pass negative_values=True if that is meant.")
    keys, first = np.unique(intake.position, axis=0, return_index=True)
    if len(keys) < len(kept):
        twice = sorted(set(range(len(kept))) - set(first.tolist()))
        listed = ", ".join(str(kept[i] + 1) for i in twice[:10])
        problems.add(f"the cell of record {listed} is there already.", "Keep one record for each cell.")
    if problems.found:
        return None
    decimals = frame.numbers(name, "value").decimals
    frequency = columns.value is None or columns.value == columns.count
    return tabulate_cells(
        intake.position,
        intake.hierarchies,
        value[kept],
        [decimals[i] for i in kept.tolist()],
        number[kept],
        np.abs(top[kept]),
        kind="frequency" if frequency else "magnitude",
        negative_values=choices.negative_values,
    )
