"""From one format to another, chosen by the endings of the names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from solver.errors import InputError
from solver.formats.case import format_case, read_case
from solver.formats.hrc import read_hierarchy, write_hrc, write_tree
from solver.formats.jj import read_jj, write_jj
from solver.formats.tabular import format_delimited
from solver.hierarchy import Hierarchy
from solver.instance import Instance

PROBLEMS = (".jj", ".csp", ".gz")
HIERARCHIES = (".hrc", ".cdl", ".csv", ".txt")


def _write_pairs(hierarchy: Hierarchy, path: Path) -> None:
    pairs = [
        (hierarchy.codes[p], c) for c, p in zip(hierarchy.codes, hierarchy.parent, strict=True) if p >= 0
    ]
    columns = list(zip(*pairs, strict=True)) or [(), ()]
    path.write_text(format_delimited(["parent", "child"], columns), encoding="utf-8")


def write_problem(instance: Instance, path: Path) -> None:
    """Write a problem by the ending of the name, as it is read: ``.json`` a case, else JJ.

    Raises
    ------
    InputError
        If the format can't hold the problem.
    """
    if path.suffix.lower() == ".json":
        path.write_text(format_case(instance), encoding="utf-8")
    else:
        write_jj(instance, path)


def convert(source: str | Path, target: str | Path, *, mark: str | None = None) -> None:
    """Convert a problem (``.jj``, ``.csp``, gzipped or not, case ``.json``) or a hierarchy (``.hrc``, tree
    ``.json``, ``.cdl``, parent-child ``.csv``) into another format of its kind.

    Parameters
    ----------
    mark
        The level mark of an ``.hrc`` source; the target is written with ``@``.

    Raises
    ------
    InputError
        If an ending is unknown or the two are of different kinds.
    """
    old, new = Path(source), Path(target)
    ending, wanted = old.suffix.lower(), new.suffix.lower()
    of_hierarchy: dict[str, Callable[[Hierarchy, Path], None]] = {
        ".hrc": write_hrc,
        ".json": write_tree,
        ".csv": _write_pairs,
        ".txt": _write_pairs,
    }
    if ending in PROBLEMS or (ending == ".json" and wanted in PROBLEMS):
        if wanted in (*PROBLEMS, ".json"):
            write_problem(read_jj(old) if ending in PROBLEMS else read_case(old), new)
            return
    elif (ending in HIERARCHIES or ending == ".json") and wanted in of_hierarchy:
        of_hierarchy[wanted](read_hierarchy(old, mark=mark), new)
        return
    raise InputError(
        f"can't convert {ending or 'a name without ending'} to {wanted or 'a name without ending'}.",
        "Problems are .jj, .csp (.gz) and .json; hierarchies .hrc, .json, .cdl and .csv.",
        file=str(source),
    )
