"""Sums by level combinations in one statement, over a table or view of encoded facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.cube.cuboids import Column, Levels, Ready, Sums
from app.domain.cube import IntArray


class GroupingScanner(ABC):
    """Asks relation ``facts``: a column of member numbers for each level, and each measure's columns.

    Attributes
    ----------
    grouped : dict of (hierarchy, level) to str
        Columns of member numbers; a fact without a member there has the number after the last.
    sizes : dict of str to int
        Members of a column's hierarchy.
    aggregators, limbs : list
        Of each measure: its aggregator, and how many columns its exact sums take.
    """

    def __init__(self) -> None:
        self.grouped: dict[tuple[int, int], str] = {}
        self.sizes: dict[str, int] = {}
        self.aggregators: list[str] = []
        self.limbs: list[int] = []

    @abstractmethod
    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        """The columns that a statement in DuckDB's dialect gives."""

    def scan(
        self, wanted: Sequence[Levels], measures: Sequence[int]
    ) -> list[tuple[Mapping[int, IntArray], dict[int, Column]]]:
        """See `app.cube.cuboids.Scanner`: one statement of grouping sets for all level combinations."""
        sets = [
            {h: self.grouped[h, level] for h, level in enumerate(levels) if level >= 0} for levels in wanted
        ]
        names = sorted({name for grouped in sets for name in grouped.values()})
        selected = [f"coalesce({name}, 0) AS {name}_" for name in names]
        for m in measures:
            selected.extend(self.aggregates(m))
        if len(sets) > 1 and names:
            # One bit for each column, the last the lowest, from calls that every database knows.
            bits_of = (f"{2**place} * grouping({name})" for place, name in enumerate(reversed(names)))
            selected.append(f"CAST({' + '.join(bits_of)} AS BIGINT) AS which")
        grouping = ", ".join(f"({', '.join(grouped.values())})" for grouped in sets)
        found = self.arrays(f"SELECT {', '.join(selected)} FROM facts GROUP BY GROUPING SETS ({grouping})")
        answers: list[tuple[Mapping[int, IntArray], dict[int, Column]]] = []
        for grouped in sets:
            inside = np.ones(len(next(iter(found.values()))), dtype=bool)
            if "which" in found:
                bits = (name not in grouped.values() for name in names)
                inside &= found["which"] == int("".join("1" if absent else "0" for absent in bits), 2)
            for name in grouped.values():
                inside &= found[f"{name}_"] < self.sizes[name]
            rows = np.flatnonzero(inside)
            members = {h: found[f"{name}_"][rows].astype(np.int32) for h, name in grouped.items()}
            answers.append((members, {m: self.column(m, found).take(rows) for m in measures}))
        return answers

    def aggregates(self, m: int) -> list[str]:
        aggregator = self.aggregators[m]
        if aggregator in ("sum", "count", "avg"):
            limbs = [f"CAST(sum(m{m}_{limb}) AS BIGINT) AS m{m}_{limb}" for limb in range(self.limbs[m])]
            return [*limbs, f"CAST(sum(m{m}_p) AS BIGINT) AS m{m}_p"]
        if aggregator == "distinct-count":
            return [f"CAST(nullif(count(DISTINCT m{m}_v), 0) AS DOUBLE) AS m{m}_v"]
        return [f"{aggregator}(m{m}_v) AS m{m}_v"]

    def column(self, m: int, found: Mapping[str, NDArray[Any]]) -> Column:
        if f"m{m}_v" in found:
            return Ready(np.ma.filled(found[f"m{m}_v"].astype(np.float64), np.nan))
        limbs = np.stack([found[f"m{m}_{limb}"] for limb in range(self.limbs[m])], axis=1)
        return Sums(np.asarray(found[f"m{m}_p"]), np.ascontiguousarray(limbs))
