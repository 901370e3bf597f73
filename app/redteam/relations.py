"""Relations rebuilt from labels: totals and their parts, remainders, formulas, rounding.

For every additive measure, every hierarchy and every group of cells equal elsewhere, a total equals the
nearest published members below it plus what isn't published (a remainder, at least zero). Where all the
parts of an unpublished total are there, the total joins, because it links tables that share no cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.redteam.algebra import Linear, Meaning
from app.redteam.bands import PublicBand, bands_of, missing_cells
from app.redteam.knowledge import Knowledge
from app.redteam.structure import Coordinates, PublicHierarchy, Structure
from app.redteam.words import NotUnderstoodError


@dataclass
class System:
    """``row_lower ≤ Σ coef · cell ≤ row_upper`` over cells within bounds.

    ``remainders`` are the cells that no document shows, by the total and the parts that leave them.
    ``betrayed`` are hidden cells that a shown quotient is made of.
    """

    numbers: dict[Coordinates, int] = field(default_factory=dict)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    half: list[float] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)
    remainders: dict[int, Coordinates] = field(default_factory=dict)
    betrayed: set[Coordinates] = field(default_factory=set)
    not_understood: set[str] = field(default_factory=set)

    def cell(self, identity: Coordinates, lower: float = 0.0) -> int:
        number = self.numbers.get(identity)
        if number is None:
            number = self.numbers[identity] = len(self.lower)
            self.lower.append(lower)
            self.upper.append(math.inf)
            self.half.append(0.0)
        return number


def build_system(knowledge: Knowledge) -> System:
    """Every relation that a reader of one cube can write down."""
    structure = knowledge.structure
    system = System()
    meanings: dict[Coordinates, Meaning] = {}
    names: dict[Coordinates, Coordinates] = {}
    formulas: list[_FormulaRow] = []
    waiting = [(i, sight.meaning, sight.coordinates) for i, sight in knowledge.sights.items()]
    seen: set[Coordinates] = set()
    while waiting:
        identity, meaning, coordinates = waiting.pop()
        if identity in seen:
            continue
        seen.add(identity)
        measure = structure.measures.get(coordinates[0])
        sight = knowledge.sights.get(identity)
        if measure is not None:
            meanings[identity], names[identity] = meaning, coordinates
            number = system.cell(identity, 0.0 if measure.nonnegative else -math.inf)
            if meaning.is_calculated(coordinates):
                system.lower[number] = -math.inf
            if sight is not None and sight.shown:
                # The finest print of the number is the one that an attacker takes.
                value, half, _ = min(sight.shown, key=lambda shown: shown[1])
                system.lower[number] = system.upper[number] = value
                system.half[number] = half
            elif sight is not None and sight.empty and not sight.hidden:
                system.lower[number] = system.upper[number] = 0.0
            elif sight is not None and measure.frequency and not meaning.is_calculated(coordinates):
                # That nobody is in a cell is always shown.
                system.lower[number] = 1.0
        if not meaning.is_calculated(coordinates):
            continue
        if measure is None and (sight is None or not sight.shown):
            # A quotient that nobody sees says nothing.
            continue
        try:
            made_of = meaning.expand(coordinates)
        except NotUnderstoodError as error:
            system.not_understood.add(f"{knowledge.label(identity)}: {error}")
            continue
        operands = {**made_of.above.terms, **made_of.below.terms}
        waiting.extend((meaning.identity(operand), meaning, operand) for operand in operands)
        if made_of.is_linear and measure is not None:
            formulas.append(_FormulaRow(meaning, made_of.normalised(), identity))
        elif sight is not None and sight.shown:
            value, half, _ = min(sight.shown, key=lambda shown: shown[1])
            formulas.append(_FormulaRow(meaning, made_of.above, None, made_of.below, value, half))
            for operand in operands:
                other = knowledge.sights.get(meaning.identity(operand))
                if other is not None and other.hidden and not other.shown:
                    system.betrayed.add(meaning.identity(operand))
    for formula in formulas:
        _add_formula(system, formula)
    additive = {i for i in names if structure.measures[i[0]].additive}
    bands = tuple(bands_of(knowledge))
    for identity in missing_cells(bands, additive) - additive:
        system.cell(identity, _floor(knowledge, identity))
        additive.add(identity)
    _hierarchy_rows(system, knowledge, additive)
    _part_rows(system, structure)
    _band_rows(system, bands)
    return system


def _band_rows(system: System, bands: Sequence[PublicBand]) -> None:
    """Sums of bands between so many times the ends of these."""
    for band in bands:
        for identity, number in tuple(system.numbers.items()):
            count = system.numbers.get((band.counted, *identity[1:]))
            ends = band.of(identity[band.column]) if identity[0] == band.summed else None
            if count is None or ends is None or any(name.startswith("=") for name in identity):
                continue
            low, high = ends
            if math.isfinite(low) and low:
                system.rows.append(({number: 1 / low, count: -1.0}, 0.0, math.inf))
            if math.isfinite(high) and high:
                system.rows.append(({number: 1 / high, count: -1.0}, -math.inf, 0.0))


def _part_rows(system: System, structure: Structure) -> None:
    """Of two cells of one place, that of a part is no more than that of its whole."""
    for identity, number in tuple(system.numbers.items()):
        measure = structure.measures.get(identity[0])
        for whole in measure.of_which if measure is not None else ():
            other = system.numbers.get((whole, *identity[1:]))
            if other is not None:
                system.rows.append(({other: 1.0, number: -1.0}, 0.0, math.inf))


@dataclass(frozen=True)
class _FormulaRow:
    """``identity = above``, or where identity is None ``above / below`` printed as ``value ± half``."""

    meaning: Meaning
    above: Linear
    identity: Coordinates | None
    below: Linear = field(default_factory=Linear)
    value: float = 0.0
    half: float = 0.0


def _add_formula(system: System, formula: _FormulaRow) -> None:
    def add(row: dict[int, float], part: Linear, factor: float) -> float:
        for operand, coefficient in part.terms.items():
            number = system.numbers[formula.meaning.identity(operand)]
            row[number] = row.get(number, 0.0) + factor * coefficient
        return factor * part.constant

    if formula.identity is not None:
        row = {system.numbers[formula.identity]: -1.0}
        constant = add(row, formula.above, 1.0)
        system.rows.append((row, -constant, -constant))
        return
    # (r - δ)·D ≤ N ≤ (r + δ)·D, D being at least zero.
    for sign, sides in ((-1, (0.0, math.inf)), (1, (-math.inf, 0.0))):
        row = {}
        constant = add(row, formula.above, 1.0)
        constant += add(row, formula.below, -(formula.value + sign * formula.half))
        system.rows.append((row, sides[0] - constant, sides[1] - constant))


def _hierarchy_rows(system: System, knowledge: Knowledge, present: set[Coordinates]) -> None:
    """Totals and their parts, until no new cell comes up.

    A remainder is a cell like any other in the other hierarchies: what a province leaves over in every
    branch adds up to what it leaves over in all.
    """
    hierarchies = knowledge.structure.hierarchies
    groups: list[dict[Coordinates, set[str]]] = [defaultdict(set) for _ in hierarchies]
    waiting = sorted(present)
    entered: set[Coordinates] = set()
    rows: dict[tuple[int, Coordinates, str], tuple[dict[int, float], float, float]] = {}
    while waiting:
        for identity in waiting:
            entered.add(identity)
            for column in range(len(hierarchies)):
                rest = identity[: column + 1] + identity[column + 2 :]
                groups[column][rest].add(identity[column + 1])
        met: set[Coordinates] = set()
        for column, hierarchy in enumerate(hierarchies):
            for rest in {i[: column + 1] + i[column + 2 :] for i in waiting}:
                there = groups[column][rest]
                met |= _complete(hierarchy, column, rest, there)
                for total in sorted(there & hierarchy.children.keys()):
                    row = _total(system, knowledge, hierarchy, column, rest, total, there)
                    if row is not None:
                        rows[column, rest, total] = (row[0], 0.0, 0.0)
                        met |= row[1]
        for identity in met - entered:
            system.cell(identity, _floor(knowledge, identity))
        waiting = sorted(met - entered)
    system.rows.extend(rows.values())


def _floor(knowledge: Knowledge, identity: Coordinates) -> float:
    """Zero where the measure is never negative and no formula with a minus may stand in between."""
    plain = not any(name.startswith("=") for name in identity)
    return 0.0 if plain and knowledge.structure.measures[identity[0]].nonnegative else -math.inf


def _whole(rest: Coordinates, column: int, member: str) -> Coordinates:
    return (*rest[: column + 1], member, *rest[column + 1 :])


def _complete(
    hierarchy: PublicHierarchy, column: int, rest: Coordinates, there: set[str]
) -> set[Coordinates]:
    """Unpublished totals all of whose parts are there."""
    parents = {hierarchy.members[name].parent for name in there if name in hierarchy.members}
    return {
        _whole(rest, column, parent)
        for parent in parents
        if parent is not None and parent not in there and there.issuperset(hierarchy.children[parent])
    }


def _total(
    system: System,
    knowledge: Knowledge,
    hierarchy: PublicHierarchy,
    column: int,
    rest: Coordinates,
    total: str,
    there: set[str],
) -> tuple[dict[int, float], set[Coordinates]] | None:
    """The row of a total and its parts, and the remainder if there is one; None without a part."""
    parts: list[str] = []
    missing: list[str] = []
    for child in hierarchy.children[total]:
        _cover(hierarchy, child, there, parts, missing)
    if not parts:
        return None
    row = {system.cell(_whole(rest, column, total)): -1.0}
    for part in parts:
        row[system.cell(_whole(rest, column, part))] = 1.0
    if not missing:
        return row, set()
    left_over = _whole(rest, column, " + ".join(missing))
    remainder = system.cell(left_over, _floor(knowledge, left_over))
    system.remainders[remainder] = left_over
    row[remainder] = 1.0
    return row, {left_over}


def _cover(
    hierarchy: PublicHierarchy, member: str, there: set[str], parts: list[str], missing: list[str]
) -> None:
    """Split the branch of ``member`` into published parts and the largest unpublished branches."""
    if member in there:
        parts.append(member)
        return
    inner_parts: list[str] = []
    inner_missing: list[str] = []
    for child in hierarchy.children.get(member, ()):
        _cover(hierarchy, child, there, inner_parts, inner_missing)
    if inner_parts:
        parts.extend(inner_parts)
        missing.extend(inner_missing)
    else:
        missing.append(member)
