"""What the red team found, and how it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "shown elsewhere",
    "in the page",
    "drawn",
    "by a ratio",
    "by order",
    "worked out",
    "computed",
    "too narrow",
]


@dataclass(frozen=True)
class Promise:
    """What the office knows and the public doesn't: the interval that a sensitive cell must keep.

    ``lower`` and ``upper`` must lie within the attacker's interval, which must be ``width`` wide.
    """

    lower: float
    upper: float
    width: float


@dataclass(frozen=True)
class Finding:
    """A hidden cell that can be placed too well.

    Attributes
    ----------
    cell : str
        In words.
    kind : str
        ``shown elsewhere`` and ``in the page``: the number itself stands somewhere; ``drawn``: a mark of
        a chart gives it; ``by a ratio``: a shown ratio is made of it; ``by order``: a sorted
        table ranks hidden cells; ``worked out``: the site's own share, change or index of it is shown;
        ``computed``: the relations leave one number; ``too narrow``: they leave
        less than is promised.
    lower, upper : float
        Where the cell is.
    certain : bool
        False for what only the office can judge: the cell may be one that is hidden for others' sake.
    where : str
        Document that gives it away, if it is one.
    """

    cell: str
    kind: Kind
    lower: float
    upper: float
    certain: bool
    where: str = ""

    def __str__(self) -> str:
        span = f"{self.lower:,.6g}" if self.lower == self.upper else f"{self.lower:,.6g} … {self.upper:,.6g}"
        place = f" ({self.where})" if self.where else ""
        kind = f"{self.kind}: " if self.certain else ""
        return f"{kind}{self.cell} = {span}{place}"


@dataclass(frozen=True)
class PageLeak:
    """A hidden cell (index into the rows) that the page gives away; ``kind`` as in a finding."""

    row: int
    kind: Kind
    lower: float
    upper: float


@dataclass(frozen=True)
class Report:
    """The outcome of an attack.

    ``findings`` are certain, ``suspicions`` need the office's knowledge. ``notes`` say what couldn't be
    read or understood: a report with notes isn't a clean one.
    """

    documents: int
    cells: int
    hidden: int
    bounded: int
    findings: Sequence[Finding]
    suspicions: Sequence[Finding]
    notes: Sequence[str]
    checked_promises: int = 0

    @property
    def ok(self) -> bool:
        return not self.findings and not self.notes

    def as_dict(self) -> Mapping[str, object]:
        """For JSON."""
        return {
            "documents": self.documents,
            "cells": self.cells,
            "hidden": self.hidden,
            "bounded": self.bounded,
            "checked_promises": self.checked_promises,
            "findings": [vars(finding) for finding in self.findings],
            "suspicions": [vars(finding) for finding in self.suspicions],
            "notes": list(self.notes),
        }
