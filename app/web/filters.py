"""Which cells a program asks for: the parameters of SDMX REST 3, and the plainer ones of JSON-stat services.

``c[Sex]=W,M`` and ``Sex=W,M`` are any of these codes; ``c[TIME_PERIOD]=ge:2020+lt:2023`` all of these
conditions; a key path ``W.*.2023`` says a code, or any, for each dimension in turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.observations import Observations, Rows
from app.web.fields import Known, Pairs, by_name
from app.web.formats import sdmx
from app.web.language import marked as _
from app.web.locate import AS_OF
from app.web.refusals import NO_VALUE, RefusalError

_Mask = NDArray[np.bool_]


NO_DIMENSION = _("There is no dimension “%(name)s” here.")
NO_CODE = _("The dimension “%(name)s” has no code “%(code)s”.")
NO_OPERATOR = _("“%(name)s” is no operator. There are eq, ne, lt, le, gt, ge, sw, ew, co and nc.")
NO_KEY = _("The key “%(key)s” doesn't have a code, or *, for each of the %(count)s dimensions.")
NO_NUMBER = _("“%(name)s” has to be a whole number of at least %(least)s.")
NO_TIME = _("“%(name)s” needs a dimension of time, and there is none here.")
CHOSEN = _("Nothing here is as asked of “%(name)s”: “%(field)s” in the address chooses it, now “%(code)s”.")
ONLY_FLAT = _("Observations can only be had one by one: dimensionAtObservation=AllDimensions.")

_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "eq": lambda code, wanted: code == wanted,
    "ne": lambda code, wanted: code != wanted,
    "lt": lambda code, wanted: code < wanted,
    "le": lambda code, wanted: code <= wanted or code.startswith(wanted),
    "gt": lambda code, wanted: code > wanted and not code.startswith(wanted),
    "ge": lambda code, wanted: code >= wanted,
    "sw": lambda code, wanted: code.startswith(wanted),
    "ew": lambda code, wanted: code.endswith(wanted),
    "co": lambda code, wanted: wanted in code,
    "nc": lambda code, wanted: wanted not in code,
}
#: What SDMX writes for a year, and finer periods of it.
_PERIOD = re.compile(r"\d{4}(-[\w:.+-]+)?$", re.ASCII)
_PERIODS = {"startPeriod": "ge", "endPeriod": "le"}
_COUNTS = ("firstNObservations", "lastNObservations")
_PAGING = ("offset", "limit")
#: Parameters that aren't about cells.
APART = ("lang", "format", AS_OF)


@dataclass(frozen=True)
class Page:
    """A part of the cells asked for: ``total`` is how many there are."""

    offset: int
    limit: int | None
    total: int


def wanted_cells(
    cells: Observations,
    dimensions: Sequence[sdmx.Dimension],
    key: str,
    pairs: Pairs,
    fields: Mapping[str, str],
) -> tuple[Observations, Page]:
    """The cells that a key path and parameters ask for.

    Parameters
    ----------
    dimensions
        Those of the cells, in the order of their columns.
    key : str
        Empty for all.
    pairs
        Parameters in order, without those that aren't about cells.
    fields : mapping of hierarchy to the field that chooses its member
        A wish that this choice leaves nothing of is refused, and the field named: an empty answer would be
        taken for a year without figures.

    Raises
    ------
    RefusalError
        400, with what can't be understood.
    """
    wishes = _Wishes(cells, dimensions, fields)
    known = (*_PERIODS, *_COUNTS, *_PAGING, "dimensionAtObservation")
    others: Pairs = []
    for name, value in pairs:
        if name.startswith("c[") and name.endswith("]"):
            wishes.condition(name[2:-1], value)
        elif name in wishes.places and name not in known:
            wishes.codes(name, value.split(","))
        else:
            others.append((name, value))
    single = by_name(others, Known(frozenset((*known, *APART, *wishes.places))))
    if single.get("dimensionAtObservation", "AllDimensions") != "AllDimensions":
        raise RefusalError(400, ONLY_FLAT)
    for name, operator in _PERIODS.items():
        if name in single:
            wishes.period(name, operator, single[name])
    rows = np.flatnonzero(wishes.mask(key))
    for name in _COUNTS:
        if name in single:
            rows = wishes.of_each_series(rows, name, whole_number(single, name, 1))
    page = Page(
        whole_number(single, "offset", 0) if "offset" in single else 0,
        whole_number(single, "limit", 1) if "limit" in single else None,
        len(rows),
    )
    if len(rows) == len(cells) and page.offset == 0 and page.limit is None:
        return cells, page
    end = None if page.limit is None else page.offset + page.limit
    return cells.select(rows[page.offset : end]), page


def whole_number(fields: Mapping[str, str], name: str, least: int) -> int:
    """A parameter that is a number; `RefusalError` 400 when it is none, or less than it may be."""
    text = fields[name]
    if not (text.isascii() and text.isdigit()):
        raise RefusalError(400, NO_NUMBER, name=name, least=str(least))
    # Longer ones are numbers too, and more than there is of anything.
    digits = text.lstrip("0")
    number = int(digits or "0") if len(digits) < 16 else 10**15
    if number < least:
        raise RefusalError(400, NO_NUMBER, name=name, least=str(least))
    return number


class _Wishes:
    """Conditions on the members of each column, all of which must hold."""

    def __init__(
        self, cells: Observations, dimensions: Sequence[sdmx.Dimension], fields: Mapping[str, str]
    ) -> None:
        self._cells = cells
        self._codes = [
            [d.codes[m.unique_name] for m in c.members]
            for d, c in zip(dimensions, cells.columns, strict=True)
        ]
        self.places = {dimension.id: place for place, dimension in enumerate(dimensions)}
        self._known = [frozenset(dimension.codes.values()) for dimension in dimensions]
        self._keep: list[_Mask] = [np.ones(len(codes), np.bool_) for codes in self._codes]
        self._ids = [dimension.id for dimension in dimensions]
        self._fields = {
            place: fields[dimension.hierarchy]
            for place, dimension in enumerate(dimensions)
            if dimension.hierarchy in fields
        }

    def condition(self, name: str, text: str) -> None:
        """``eq:A,B`` or ``A,B`` are any of them, ``ge:A+lt:B`` both."""
        place = self.places.get(name)
        if place is None:
            raise RefusalError(400, NO_DIMENSION, name=name)
        # A plus sign that wasn't escaped arrives as a space.
        for condition in text.replace(" ", "+").split("+"):
            operator, colon, rest = condition.partition(":")
            if not colon:
                self.codes(name, condition.split(","))
            elif operator not in _OPERATORS:
                raise RefusalError(400, NO_OPERATOR, name=operator)
            elif operator == "eq":
                self.codes(name, rest.split(","))
            else:
                self._compare(place, operator, rest.split(","))

    def codes(self, name: str, wanted: Sequence[str]) -> None:
        """Any of these codes of a dimension."""
        place = self.places[name]
        for code in wanted:
            if code not in self._known[place]:
                raise RefusalError(400, NO_CODE, name=name, code=code)
        self._keep[place] &= np.array([code in wanted for code in self._codes[place]], np.bool_)

    def period(self, name: str, operator: str, value: str) -> None:
        """From a period on, or up to it; it may be one that there isn't, but a period."""
        place = self._time(name)
        known = value and any(code.startswith(value) for code in self._known[place])
        if not known and not _PERIOD.match(value):
            raise RefusalError(400, NO_VALUE, name=name, value=value)
        self._compare(place, operator, [value])

    def _compare(self, place: int, operator: str, values: Sequence[str]) -> None:
        # Of several values any may hold, but none of those that are ruled out.
        together = all if operator in ("ne", "nc") else any
        holds = _OPERATORS[operator]
        self._keep[place] &= np.array(
            [together(holds(code, value) for value in values) for code in self._codes[place]], np.bool_
        )

    def _time(self, name: str) -> int:
        place = self.places.get(sdmx.TIME)
        if place is None:
            raise RefusalError(400, NO_TIME, name=name)
        return place

    def mask(self, key: str) -> _Mask:
        """Which cells are wanted, by the conditions so far and a key path."""
        rows = np.arange(len(self._cells), dtype=np.int64)
        at = [column.at(rows) for column in self._cells.columns]
        wanted = np.ones(len(rows), np.bool_)
        for keep, codes in zip(self._keep, at, strict=True):
            if not keep.all():
                wanted &= keep[codes]
        self._possible(self._keep)
        if key not in ("", "*", "all"):
            of_key = np.zeros(len(rows), np.bool_)
            for one in key.split(","):
                fits = np.ones(len(rows), np.bool_)
                masks = self._key(one)
                self._possible(masks)
                for keep, codes in zip(masks, at, strict=True):
                    fits &= keep[codes]
                of_key |= fits
            wanted &= of_key
        return wanted

    def _possible(self, masks: Sequence[_Mask]) -> None:
        """Refuse what the choices of the address leave nothing of."""
        for place, field in self._fields.items():
            if self._codes[place] and not masks[place].any():
                code = ", ".join(self._codes[place])
                raise RefusalError(400, CHOSEN, name=self._ids[place], code=code, field=field)

    def _key(self, key: str) -> list[_Mask]:
        parts = key.split(".")
        if len(parts) != len(self._codes):
            raise RefusalError(400, NO_KEY, key=key, count=str(len(self._codes)))
        masks: list[_Mask] = []
        for place, part in enumerate(parts):
            wanted = part.replace(" ", "+").split("+")
            if part in ("", "*"):
                masks.append(np.ones(len(self._codes[place]), np.bool_))
                continue
            for code in wanted:
                if code not in self._known[place]:
                    raise RefusalError(400, NO_CODE, name=self._ids[place], code=code)
            masks.append(np.array([code in wanted for code in self._codes[place]], np.bool_))
        return masks

    def of_each_series(self, rows: Rows, name: str, count: int) -> Rows:
        """The first or last ``count`` periods of what is alike but for the time, among some cells."""
        time = self._time(name)
        series = np.zeros(len(rows), np.int64)
        for place, column in enumerate(self._cells.columns):
            if place != time:
                series = np.unique(
                    series * max(len(column.members), 1) + column.at(rows), return_inverse=True
                )[1].reshape(-1)
        rank = np.argsort(
            np.argsort(np.array(self._codes[time], dtype=np.str_), kind="stable"), kind="stable"
        )
        moment = rank[self._cells.columns[time].at(rows)]
        if name == "lastNObservations":
            moment = -moment
        order = np.lexsort((moment, series))
        starts = np.searchsorted(series[order], series[order], side="left")
        near = np.arange(len(rows)) - starts < count
        chosen: Rows = np.sort(rows[order[near]])
        return chosen
