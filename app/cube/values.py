"""What expressions evaluate to: members, tuples, sets, levels, hierarchies, formulas, texts, truths."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.domain.cube import IntArray
from app.domain.formula import Formula


@dataclass(frozen=True, slots=True)
class TupleValue:
    """A member of each of some columns; a member alone is a tuple of one. A number of -1: no member."""

    columns: tuple[int, ...]
    numbers: tuple[int, ...]

    @property
    def is_nothing(self) -> bool:
        return -1 in self.numbers


@dataclass(frozen=True, eq=False)
class SetValue:
    """Tuples over the same columns in order: int32[n, k].

    A set that is ``pending`` is chosen or ordered by cells that may be confidential, before it is known
    which of them are: it holds every tuple that may come to be in it. Afterwards, ``unseen`` are the tuples
    of an ordered set whose cells are.
    """

    columns: tuple[int, ...]
    rows: IntArray
    pending: bool = False
    unseen: frozenset[tuple[int, ...]] = frozenset()

    @staticmethod
    def of(columns: tuple[int, ...], rows: list[tuple[int, ...]]) -> SetValue:
        return SetValue(columns, np.array(rows, dtype=np.int32).reshape(len(rows), len(columns)))

    def __len__(self) -> int:
        return len(self.rows)

    def taking(self, rows: IntArray) -> SetValue:
        """The set with only these of its rows, in this order."""
        return replace(self, rows=rows)

    def tuples(self) -> list[TupleValue]:
        return [TupleValue(self.columns, tuple(row)) for row in self.rows.tolist()]


@dataclass(frozen=True, slots=True)
class LevelValue:
    column: int
    level: int


@dataclass(frozen=True, slots=True)
class HierarchyValue:
    column: int


@dataclass(frozen=True, slots=True)
class DimensionValue:
    """A dimension of several hierarchies, none of which bears its name."""

    name: str
    columns: tuple[int, ...]


Value = TupleValue | SetValue | LevelValue | HierarchyValue | DimensionValue | Formula | str | bool
