"""The slow truth: cells and contributors worked out by walking over all facts, for tests only."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import median

from app.domain.publication import (
    CalculatedDefinition,
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)

Path_ = tuple[tuple[int, str], ...]
MEASURES = {"n": "count", "x": "sum", "d": "sum", "u": "distinct-count", "lo": "min", "hi": "max"}
COLUMNS = {"n": None, "x": "x", "d": "d", "u": "x", "lo": "x", "hi": "x"}


@dataclass(frozen=True)
class Fact:
    paths: tuple[Path_, ...]
    x: int | None
    d: Fraction | None
    who: str
    weight: int = 1
    asked: bool = False


@dataclass
class NaiveCube:
    """Hierarchies ``H0``, ``H1`` … of the given numbers of levels over facts."""

    depths: Sequence[int]
    facts: Sequence[Fact]
    trees: list[list[Path_]] = field(default_factory=list)

    def __post_init__(self) -> None:
        placed = [list(fact.paths) for fact in self.facts]
        for h in range(len(self.depths)):
            nodes = {
                path[:k] for fact in self.facts for path in [fact.paths[h]] for k in range(len(path) + 1)
            }
            for row in placed:
                path = row[h]
                if any(len(other) > len(path) and other[: len(path)] == path for other in nodes) or not path:
                    level = path[-1][0] + 1 if path else 0
                    row[h] = (*path, (level, "#null"))
            nodes |= {row[h] for row in placed}
            self.trees.append(
                sorted(nodes, key=lambda path: [(key == "#null", level, key) for level, key in path])
            )
        self.placed = [tuple(row) for row in placed]

    def name(self, h: int, path: Path_) -> str:
        if not path:
            return f"[H{h}].[All]"
        level = path[-1][0]
        # Keys are paths here, so that they are unique in their level.
        keys = "".join(f"&[{key}]" for _, key in path) if path[-1][1] == "#null" else f"&[{path[-1][1]}]"
        return f"[H{h}].[L{level}].{keys}"

    def rows(self, cell: Sequence[Sequence[Path_]]) -> list[int]:
        """Facts in a cell that takes in some members of each hierarchy."""
        return [
            row
            for row, paths in enumerate(self.placed)
            if all(
                any(path[: len(m)] == m for m in members) for path, members in zip(paths, cell, strict=True)
            )
        ]

    def value(self, measure: str, cell: Sequence[Sequence[Path_]]) -> Fraction | None:
        facts = [self.facts[row] for row in self.rows(cell)]
        if measure == "n":
            return Fraction(sum(fact.weight for fact in facts)) if facts else None
        if measure == "d":
            found = [fact.d * fact.weight for fact in facts if fact.d is not None]
            return sum(found, Fraction(0)) if found else None
        xs = [(fact.x, fact.weight) for fact in facts if fact.x is not None]
        if not xs:
            return None
        plain = [x for x, _ in xs]
        totals: dict[str, Callable[[], int | float]] = {
            "x": lambda: sum(x * w for x, w in xs),
            "u": lambda: len(set(plain)),
            "lo": lambda: min(plain),
            "hi": lambda: max(plain),
            "mid": lambda: median(plain),
        }
        return Fraction(totals[measure]())

    def profile(
        self, measure: str, cell: Sequence[Sequence[Path_]], top: int
    ) -> tuple[int, int, list[Fraction], Fraction]:
        """Contributors, their weight, largest contributions, largest one of a contributor that asked."""
        by_who: dict[str, Fraction] = {}
        weight: dict[str, int] = {}
        asked: dict[str, bool] = {}
        for row in self.rows(cell):
            fact = self.facts[row]
            amount = {"n": Fraction(1), "x": Fraction(fact.x or 0), "d": fact.d or Fraction(0)}[measure]
            by_who[fact.who] = by_who.get(fact.who, Fraction(0)) + amount * fact.weight
            weight[fact.who] = min(weight.get(fact.who, fact.weight), fact.weight)
            asked[fact.who] = asked.get(fact.who, False) or fact.asked
        each = {who: abs(total) / weight[who] for who, total in by_who.items()}
        pieces = sorted((each[who] for who in each for _ in range(weight[who])), reverse=True)[:top]
        requested = max((each[who] for who in each if asked[who]), default=Fraction(0))
        return len(each), sum(weight.values()), pieces + [Fraction(0)] * (top - len(pieces)), requested

    def write(self, folder: Path) -> Path:
        """The facts as a CSV file: columns ``h0_0`` …, ``x``, ``d``, ``who``, ``weight``, ``asked``."""
        place = folder / "facts.csv"
        levels = [f"h{h}_{level}" for h, depth in enumerate(self.depths) for level in range(depth)]
        with place.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*levels, "x", "d", "who", "weight", "asked"])
            for fact in self.facts:
                keys = [
                    dict(path).get(level, "")
                    for path, depth in zip(fact.paths, self.depths, strict=True)
                    for level in range(depth)
                ]
                decimal = "" if fact.d is None else f"{float(fact.d):.2f}"
                writer.writerow(
                    [*keys, "" if fact.x is None else fact.x, decimal, fact.who, fact.weight, int(fact.asked)]
                )
        return place

    def definition(
        self, folder: Path, calculated: Sequence[tuple[str, str, str]] = (), weighted: bool = False
    ) -> CubeDefinition:
        at = Position("cube.toml", 1)
        return CubeDefinition(
            "C",
            {"en": "C"},
            FactsDefinition(
                str(self.write(folder)), None, None, "who", None, "weight" if weighted else None, "asked"
            ),
            tuple(
                DimensionDefinition(
                    f"H{h}",
                    {"en": f"H{h}"},
                    (
                        HierarchyDefinition(
                            f"H{h}",
                            {"en": f"H{h}"},
                            {"en": "All"},
                            tuple(
                                LevelDefinition(f"L{level}", {"en": f"L{level}"}, f"h{h}_{level}", {}, None)
                                for level in range(depth)
                            ),
                        ),
                    ),
                )
                for h, depth in enumerate(self.depths)
            ),
            tuple(
                MeasureDefinition(name, {"en": name}, aggregator, COLUMNS[name], {}, "#,##0", 0, False)
                for name, aggregator in MEASURES.items()
            ),
            tuple(
                CalculatedDefinition(hierarchy, name, {"en": name}, formula, None, None, {}, at)
                for hierarchy, name, formula in calculated
            ),
            at,
        )
