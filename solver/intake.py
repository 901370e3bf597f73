"""From the columns of a frame to places in hierarchies: missing codes, inner codes, unknown codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from solver.arguments import told
from solver.errors import InputError
from solver.formats.frame import Frame
from solver.formats.hrc import read_hierarchy
from solver.formats.text import Problems
from solver.hierarchy import Hierarchy
from solver.table import Ints, positions

HierarchyLike = Hierarchy | Mapping[str, Any] | str | Path | Sequence[str]
"""A hierarchy, a nested mapping, the name of a file, or the frame's columns of its levels, coarsest first."""

MissingPolicy = Literal["category", "drop", "stop"]
InnerPolicy = Literal["unspecified", "stop"]

MISSING = "(missing)"
UNSPECIFIED = "{} (unspecified)"
TOTALS = frozenset(
    (
        *("total", "totals", "tot", "all", "sum", "totaal", "alle", "insgesamt", "gesamt", "summe"),
        *("ensemble", "totale", "suma", "todos", "tots", "totes", "_t"),
    )
)
"""What totals are called in the files of statistics offices."""


@dataclass(frozen=True, eq=False)
class Intake:
    """Rows placed in hierarchies: i8[r, d] positions of the kept rows, their numbers, and what to tell."""

    position: Ints
    hierarchies: tuple[Hierarchy, ...]
    kept: Ints
    notices: tuple[str, ...]


def _rows(mask: NDArray[np.bool_]) -> str:
    rows = (np.flatnonzero(mask) + 1).tolist()
    more = f" and {len(rows) - 10} more" if len(rows) > 10 else ""
    return f"record{'s' if len(rows) > 1 else ''} {', '.join(map(str, rows[:10]))}{more}"


def _units(n: int) -> str:
    return f"{n} unit{'s' if n != 1 else ''}"


def _resolve(
    frame: Frame, dim: str, given: HierarchyLike | None, codes: Sequence[str], total: str
) -> tuple[Hierarchy, bool]:
    """The hierarchy, and whether it was given (so that every code must be in it)."""
    if given is None:
        return Hierarchy.flat(dict.fromkeys(code for code in codes if code), total), False
    if isinstance(given, Hierarchy):
        return given, True
    if isinstance(given, Mapping):
        return Hierarchy.from_tree(given), True
    if isinstance(given, (str, Path)):
        return read_hierarchy(given, total=total), True
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise InputError(
            f"the hierarchy of {dim} is {told(given)}.",
            "Give a Hierarchy, a nested mapping, the name of a file, or the names of columns.",
        )
    columns = [[(code or "").strip() for code in frame.texts(name, "level")] for name in given]
    listed = [row for row in dict.fromkeys(zip(*columns, strict=True)) if all(row)]
    return Hierarchy.from_levels(tuple(zip(*listed, strict=True)) if listed else (), total), True


def _told_trimmed(dim: str, raw: Sequence[str | None]) -> list[str]:
    spelled: dict[str, set[str]] = {}
    for code in dict.fromkeys(raw):
        if code is not None:
            spelled.setdefault(code.strip(), set()).add(code)
    return [
        f"{dim}: {' and '.join(repr(s) for s in sorted(same))} are the same code without outer blanks"
        for same in spelled.values()
        if len(same) > 1
    ]


def _told_totals(dim: str, hierarchy: Hierarchy) -> list[str]:
    """Codes directly below the total that are called like a total themselves."""
    top = hierarchy.codes[0] if hierarchy.n else ""
    below = [
        code for code, parent in zip(hierarchy.codes, hierarchy.parent.tolist(), strict=True) if parent == 0
    ]
    return [
        f"{dim}: {code!r} is called like a total, but is counted as a part of {top!r}; is it?"
        for code in below
        if code.strip("[]() .").casefold() in TOTALS
    ]


def _place_inner(
    dim: str, place: Ints, hierarchy: Hierarchy, policy: InnerPolicy, problems: Problems, notices: list[str]
) -> tuple[Ints, Hierarchy]:
    """Units with an inner code go below a child of their own, or are refused."""
    inner = ~hierarchy.is_leaf[place]
    if not inner.any():
        return place, hierarchy
    for node in np.unique(place[inner]).tolist():
        mask = place == node
        code = hierarchy.codes[node]
        verb = "carries" if mask.sum() == 1 else "carry"
        told = (
            f"{_rows(mask)} {verb} the inner code {code}: {_units(int(mask.sum()))} cannot be placed below it"
        )
        if policy == "stop":
            problems.add(f"{dim}: {told}.", 'Correct the codes, or pass inner="unspecified".')
            continue
        child = UNSPECIFIED.format(code)
        hierarchy = hierarchy.with_codes([child], code)
        place = np.where(mask, hierarchy.index[child], place)
        notices.append(f"{dim}: {told}; counted in {child!r}")
    return place, hierarchy


def take_in(
    frame: Frame,
    dims: Sequence[str],
    hierarchies: Mapping[str, HierarchyLike],
    *,
    units: bool,
    total: str,
    missing: MissingPolicy,
    missing_codes: Sequence[str],
    inner: InnerPolicy,
    problems: Problems,
) -> Intake | None:
    """Place the rows of a frame in the hierarchies of its dimensions.

    A code in ``missing_codes`` is missing unless the dimension's own hierarchy has it: NA may be Namibia.

    Returns
    -------
    None if something is wrong; then ``problems`` holds it.
    """
    notices: list[str] = []
    before = len(problems.found)
    for dim in hierarchies:
        if dim not in dims:
            problems.add(f"a hierarchy is given for {dim}, which is no dimension.", f"Use {', '.join(dims)}.")
    keep = np.ones(frame.n, dtype=np.bool_)
    resolved: list[tuple[str, list[str], Hierarchy]] = []
    for dim in dims:
        try:
            raw = frame.texts(dim, "dimension")
            codes = [(code or "").strip() for code in raw]
            hierarchy, given = _resolve(frame, dim, hierarchies.get(dim), codes, total)
        except InputError as error:
            problems.extend(error)
            continue
        notices += _told_trimmed(dim, raw)
        known = hierarchy.index if given else {}
        lost = np.array([(c in missing_codes and c not in known) or not c for c in codes], dtype=np.bool_)
        if lost.any() and missing == "stop":
            problems.add(f"{dim}: {_rows(lost)} have no code.", 'Complete them, or pass missing="category".')
        elif lost.any() and missing == "drop":
            keep &= ~lost
            notices.append(f"{dim}: {_rows(lost)} without a code dropped, from the totals too")
        elif lost.any():
            codes = [MISSING if gone else code for code, gone in zip(codes, lost.tolist(), strict=True)]
            notices.append(f"{dim}: {_rows(lost)} without a code counted in {MISSING!r} and in the totals")
        if not given:
            hierarchy = Hierarchy.flat(dict.fromkeys(c for c in codes if c), total)
        elif MISSING in codes and MISSING not in hierarchy.index:
            hierarchy = hierarchy.with_codes([MISSING], hierarchy.codes[0])
        notices += _told_totals(dim, hierarchy)
        resolved.append((dim, codes, hierarchy))
    kept = np.flatnonzero(keep)
    places: list[Ints] = []
    final: list[Hierarchy] = []
    for dim, codes, hierarchy in resolved:
        try:
            place = positions([codes[i] for i in kept.tolist()], hierarchy, dim)
        except InputError as error:
            problems.extend(error)
            continue
        if units:
            place, hierarchy = _place_inner(dim, place, hierarchy, inner, problems, notices)
        places.append(place)
        final.append(hierarchy)
    if len(problems.found) > before or not places:
        return None
    return Intake(np.column_stack(places), tuple(final), kept, tuple(notices))
