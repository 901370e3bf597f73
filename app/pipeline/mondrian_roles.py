"""What a role of a Mondrian schema may see: cubes, dimensions, hierarchies, levels, measures, members."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
    tops, bottoms : tuple of str
        Names of levels: the uppermost of the tops and the lowest of the bottoms bound what may be seen;
        empty: nothing bounds it.
    members : tuple of tuple of (str, bool)
        For each role that grants members: members and whether they are granted, with all beneath them; the
        later ones count. What any of the roles grants is granted; empty: all members are.
    """

    access: str
    tops: tuple[str, ...] = ()
    bottoms: tuple[str, ...] = ()
    members: tuple[tuple[tuple[str, bool], ...], ...] = ()

    def set_text(self) -> str:
        """The members granted, as an MDX set in hierarchical order."""
        texts = []
        for grants in self.members:
            text = "{}"
            for member, granted in grants:
                branch = f"Descendants({member})"
                text = f"Union({text}, {branch})" if granted else f"Except({text}, {branch})"
            texts.append(text)
        whole = texts[0]
        for text in texts[1:]:
            whole = f"Union({whole}, {text})"
        return f"Hierarchize({whole})"


def _joined(grants: Sequence[HierarchyGrant]) -> HierarchyGrant:
    """What several roles grant of a hierarchy together."""
    some = [grant for grant in grants if grant.access != NONE]
    whole = [grant for grant in some if grant.access == ALL]
    if not some or whole:
        return whole[0] if whole else _NOTHING

    def joined(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return sum(parts, ()) if all(parts) else ()

    return HierarchyGrant(
        CUSTOM,
        joined([grant.tops for grant in some]),
        joined([grant.bottoms for grant in some]),
        sum((grant.members for grant in some), ()) if all(grant.members for grant in some) else (),
    )


_WHOLE, _NOTHING = HierarchyGrant(ALL), HierarchyGrant(NONE)


def roles_of(role: etree._Element, roles: Mapping[str, etree._Element]) -> Iterator[etree._Element]:
    """The roles whose grants a role has: its own, or those of the roles that it is a union of.

    Raises
    ------
    KeyError
        With the name of a role that there isn't, or that is a union of itself.
    """
    union = role.find("Union")
    if union is None:
        yield role
        return
    others = {name: item for name, item in roles.items() if item is not role}
    for usage in union.findall("RoleUsage"):
        yield from roles_of(others[usage.get("roleName", "")], others)


class Grants:
    """What roles grant together; without a role everything is granted."""

    def __init__(self, roles: Sequence[etree._Element] | None) -> None:
        self._roles = tuple(_RoleGrants(role) for role in ([None] if roles is None else roles))

    def sees_cube(self, cube: str) -> bool:
        return any(role.sees_cube(cube) for role in self._roles)

    def hierarchy(self, cube: str, dimension: str, name: str) -> HierarchyGrant:
        """What is granted of a hierarchy that the schema calls ``[Dimension]`` or ``[Dimension.Name]``."""
        return _joined([role.hierarchy(cube, dimension, name) for role in self._of(cube)])

    def sees_measure(self, cube: str, name: str) -> bool:
        return any(role.sees_measure(cube, name) for role in self._of(cube))

    def sees_dimension(self, cube: str, dimension: str) -> bool:
        return any(role.sees_dimension(cube, dimension) for role in self._of(cube))

    def _of(self, cube: str) -> list[_RoleGrants]:
        return [role for role in self._roles if role.sees_cube(cube)]


class _RoleGrants:
    """Reads the grants of one role."""

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
        wanted = {dimension.lower()} if name == dimension else {f"{dimension}.{name}".lower(), name.lower()}
        for item in self._grants(cube, "HierarchyGrant"):
            if _plain(item.get("hierarchy")) in wanted:
                top, bottom = (_plain(item.get(key)).split(".")[-1] for key in ("topLevel", "bottomLevel"))
                members = tuple(
                    (member.get("member", ""), member.get("access", NONE) == ALL)
                    for member in item.findall("MemberGrant")
                )
                return HierarchyGrant(
                    item.get("access", NONE),
                    (top,) if top else (),
                    (bottom,) if bottom else (),
                    (members,) if members else (),
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
        granted = {_plain(member): may for grants in grant.members for member, may in grants}
        return granted.get(wanted, False)

    def _default(self, cube: str) -> bool:
        grant = self._cubes.get(cube)
        return grant is None or grant.get("access") == ALL

    def _grants(self, cube: str, tag: str) -> list[etree._Element]:
        grant = self._cubes.get(cube)
        return [] if grant is None else grant.findall(tag)

    def _access(self, cube: str, tag: str, attribute: str, name: str) -> str | None:
        found = [item for item in self._grants(cube, tag) if _plain(item.get(attribute)) == name.lower()]
        return found[-1].get("access", NONE) if found else None
