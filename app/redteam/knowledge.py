"""Everything that was read, cell by cell: the numbers shown, the hidden marks, and where they contradict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.redteam.algebra import Meaning
from app.redteam.structure import Coordinates, Structure


@dataclass(frozen=True)
class Observation:
    """One cell as one document shows it.

    Attributes
    ----------
    coordinates : Coordinates
        With the names that the document uses.
    value : float or None
        None when the document has no number.
    half : float
        Half a unit of the last printed digit.
    hidden : bool
        Whether the document says that the cell is confidential.
    where : str
        Address of the document.
    """

    coordinates: Coordinates
    value: float | None
    half: float
    hidden: bool
    where: str


@dataclass
class Sight:
    """All that was seen of one cell: the different numbers, and where it is hidden or empty."""

    meaning: Meaning
    coordinates: Coordinates
    shown: list[tuple[float, float, str]] = field(default_factory=list)
    hidden: str = ""
    empty: str = ""


class Knowledge:
    """What is known of one cube."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self._sights: dict[Coordinates, Sight] = {}

    def learn(self, meaning: Meaning, observations: Sequence[Observation]) -> None:
        for seen in observations:
            identity = meaning.identity(seen.coordinates)
            sight = self._sights.get(identity)
            if sight is None:
                sight = self._sights[identity] = Sight(meaning, seen.coordinates)
            if seen.value is not None:
                if not any(value == seen.value and half <= seen.half for value, half, _ in sight.shown):
                    sight.shown.append((seen.value, seen.half, seen.where))
            elif seen.hidden and not sight.hidden:
                sight.hidden = seen.where
            elif not seen.hidden and not sight.empty:
                sight.empty = seen.where

    @property
    def sights(self) -> Mapping[Coordinates, Sight]:
        """By identity: calculated members stand there as their formulas."""
        return self._sights

    def contradictions(self) -> Iterator[tuple[Coordinates, float, str]]:
        """Cells hidden in one place whose number stands in another: cell, number, place."""
        for identity, sight in self._sights.items():
            if sight.hidden and sight.shown:
                value, _, where = sight.shown[0]
                yield identity, value, where

    def label(self, identity: Coordinates) -> str:
        """A cell in words: its measure and every member that isn't the whole."""
        parts = [identity[0]]
        for hierarchy, name in zip(self.structure.hierarchies, identity[1:], strict=True):
            if name != hierarchy.all_member:
                parts.append(name)
        return ", ".join(parts)
