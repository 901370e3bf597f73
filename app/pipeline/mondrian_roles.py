"""What a role of a Mondrian schema may see: cubes, dimensions, hierarchies, levels, measures, members."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from app.mdx import quote

ALL, CUSTOM, NONE = "all", "custom", "none"


def _plain(name: str | None) -> str:
    """``[Store].[Store City]`` and ``Store.Store City`` as one."""
    return ".".join(re.findall(r"[^\[\].]+", name or "")).lower()


@dataclass(frozen=True)
class HierarchyGrant:
    """How much of a hierarchy is granted.

    Attributes
    ----------
    access : str
        ``all``, ``custom`` or ``none``.
    top, bottom : str
        Names of the first and last level that may be seen; empty: of any.
    members : tuple of (str, bool)
        Members and whether they are granted, with all beneath them; the later ones count.
    """

    access: str
    top: str = ""
    bottom: str = ""
    members: tuple[tuple[str, bool], ...] = ()

    def set_text(self) -> str:
        """The members granted, as an MDX set in hierarchical order."""
        text = "{}"
        for member, granted in self.members:
            branch = f"Descendants({member})"
            text = f"Union({text}, {branch})" if granted else f"Except({text}, {branch})"
        return f"Hierarchize({text})"


_WHOLE, _NOTHING = HierarchyGrant(ALL), HierarchyGrant(NONE)


class Grants:
    """Reads the grants of a role; without a role everything is granted."""

    def __init__(self, role: etree._Element | None) -> None:
        self._schema = ALL
        self._cubes: dict[str, etree._Element] = {}
        if role is not None:
            schemas = role.findall("SchemaGrant")
            self._schema = schemas[0].get("access", NONE) if schemas else NONE
            self._cubes = {item.get("cube", ""): item for item in role.iter("CubeGrant")}

    def sees_cube(self, cube: str) -> bool:
        grant = self._cubes.get(cube)
        return self._schema == ALL if grant is None else grant.get("access", NONE) != NONE

    def sees_dimension(self, cube: str, dimension: str) -> bool:
        access = self._access(cube, "DimensionGrant", "dimension", dimension)
        if access is None:
            # Of a cube granted in part, a hierarchy may be granted that stands for its dimension.
            named = [item.get("hierarchy") for item in self._grants(cube, "HierarchyGrant")]
            return self._default(cube) or any(_plain(n).split(".")[0] == dimension.lower() for n in named)
        return access != NONE

    def hierarchy(self, cube: str, dimension: str, name: str) -> HierarchyGrant:
        """What is granted of a hierarchy that the schema calls ``[Dimension]`` or ``[Dimension.Name]``."""
        wanted = {dimension.lower()} if name == dimension else {f"{dimension}.{name}".lower(), name.lower()}
        for item in self._grants(cube, "HierarchyGrant"):
            if _plain(item.get("hierarchy")) in wanted:
                return HierarchyGrant(
                    item.get("access", NONE),
                    _plain(item.get("topLevel")).split(".")[-1],
                    _plain(item.get("bottomLevel")).split(".")[-1],
                    tuple(
                        (member.get("member", ""), member.get("access", NONE) == ALL)
                        for member in item.findall("MemberGrant")
                    ),
                )
        if not self.sees_dimension(cube, dimension):
            return _NOTHING
        return _WHOLE

    def sees_measure(self, cube: str, name: str) -> bool:
        grant = self.hierarchy(cube, "Measures", "Measures")
        if grant.access != CUSTOM:
            # Measures of a cube granted in part are granted unless somebody took them away.
            return grant.access == ALL or not any(
                _plain(item.get("hierarchy")) == "measures" for item in self._grants(cube, "HierarchyGrant")
            )
        wanted = _plain(f"[Measures].{quote(name)}")
        return {_plain(member): granted for member, granted in grant.members}.get(wanted, False)

    def _default(self, cube: str) -> bool:
        grant = self._cubes.get(cube)
        return grant is None or grant.get("access") == ALL

    def _grants(self, cube: str, tag: str) -> list[etree._Element]:
        grant = self._cubes.get(cube)
        return [] if grant is None else grant.findall(tag)

    def _access(self, cube: str, tag: str, attribute: str, name: str) -> str | None:
        found = [item for item in self._grants(cube, tag) if _plain(item.get(attribute)) == name.lower()]
        return found[-1].get("access", NONE) if found else None
