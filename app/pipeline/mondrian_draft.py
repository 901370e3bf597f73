"""A cube of a Mondrian schema while it is put together, and what of the schema isn't taken over."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from app.pipeline.mondrian_roles import Grants
from app.pipeline.relations import Select
from app.pipeline.toml_text import comment


class Notes:
    """What is left, one line each, with its place in the schema."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.left: dict[str, None] = {}

    def leave(self, element: etree._Element, what: str) -> None:
        self.left.setdefault(f"{self.file}:{element.sourceline}: {what}")


@dataclass
class Draft:
    """A cube as TOML blocks, and one query of its facts for each part.

    Attributes
    ----------
    grants : Grants
        What of it the role may see.
    dimensions : dict of str to list of str
        Lines of each dimension.
    measures, helpers : dict of str to str
        Blocks of measures; ``helpers`` are those that only formulas need.
    blocks : list of str
        Calculated members and named sets.
    parts : list of Select
    held : list of set of str
        The dimensions that each part has.
    unseen : set of str
        Names, in small letters, of what the role doesn't see, so that no formula may name it.
    """

    name: str
    grants: Grants
    dimensions: dict[str, list[str]] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    parts: list[Select] = field(default_factory=list)
    held: list[set[str]] = field(default_factory=list)
    unseen: set[str] = field(default_factory=set)


def remarks(element: etree._Element) -> list[str]:
    """Annotations as comments."""
    found = element.findall("Annotations/Annotation")
    return [line for item in found for line in comment(f"{item.get('name')}: {item.text or ''}")]
