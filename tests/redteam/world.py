"""A tiny published cube for the tests: two hierarchies, one of them of two levels, and a count."""

from __future__ import annotations

from collections.abc import Mapping

from app.redteam.structure import Member, PublicHierarchy, PublicMeasure, Structure

PLACES = {"N": ("N1", "N2", "N3"), "S": ("S1", "S2")}
KINDS = ("a", "b", "c")


def place(name: str) -> str:
    if name == "all":
        return "[Place].[All]"
    return f"[Place].[{'Region' if name in PLACES else 'Town'}].&[{name}]"


def kind(name: str) -> str:
    return "[Kind].[All]" if name == "all" else f"[Kind].[Kind].&[{name}]"


def _hierarchy(
    name: str, tree: Mapping[str, str | None], level: Mapping[str, str], top: str
) -> PublicHierarchy:
    members = {
        unique: Member(unique, parent, level[unique], frozenset({unique.split("&")[-1].strip("[]")}))
        for unique, parent in tree.items()
    }
    return PublicHierarchy(name, members, top)


def structure(formulas: Mapping[str, str] | None = None, threshold: int = 3) -> Structure:
    tree: dict[str, str | None] = {place("all"): None}
    level = {place("all"): "[Place].[(All)]"}
    for region, towns in PLACES.items():
        tree[place(region)] = place("all")
        level[place(region)] = "[Place].[Region]"
        for town in towns:
            tree[place(town)] = place(region)
            level[place(town)] = "[Place].[Town]"
    kinds: dict[str, str | None] = {kind("all"): None} | {kind(k): kind("all") for k in KINDS}
    kind_level = {kind("all"): "[Kind].[(All)]"} | {kind(k): "[Kind].[Kind]" for k in KINDS}
    return Structure(
        "Test",
        (
            _hierarchy("[Place]", tree, level, place("all")),
            _hierarchy("[Kind]", kinds, kind_level, kind("all")),
        ),
        {
            "[Measures].[Count]": PublicMeasure("[Measures].[Count]", True, True, True, 0),
            "[Measures].[Sum]": PublicMeasure("[Measures].[Sum]", True, False, True, 0),
        },
        formulas or {},
        {"[Measures].[Count]": threshold},
    )


def every_place() -> list[str]:
    return ["all", *PLACES, *(town for towns in PLACES.values() for town in towns)]


def total(leaves: Mapping[tuple[str, str], int], at: str, of: str) -> int:
    """The count of a place and a kind, from the counts of towns and kinds."""
    towns = [t for region, ts in PLACES.items() for t in ts if at in ("all", region, t)]
    kinds = [k for k in KINDS if of in ("all", k)]
    return sum(leaves[t, k] for t in towns for k in kinds)
