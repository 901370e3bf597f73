"""The `protect` command: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from solver.errors import InputError
from solver.formats.convert import write_problem
from solver.formats.rda import Metadata, read_microdata, read_rda, read_tabular
from solver.formats.tabular import format_delimited, read_delimited
from solver.intake import HierarchyLike
from solver.outgoing import add_search
from solver.protect import Protection, protect
from solver.rules.text import parse_rule
from solver.solution import ProgressCallback
from solver.table import EMPTY, CellTable


def add_protect(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `protect` behind `file`, which is microdata or a table of cells as text."""
    add = parser.add_argument
    add(
        "--metadata",
        help="the .rda file that describes the data (default: the first line names the columns)",
    )
    add("--dims", help="columns that span the table, with commas (default: all dimensions of the metadata)")
    add("--value", help="column to add up (default: the first response; none: units are counted)")
    add(
        "--hierarchy",
        action="append",
        default=[],
        metavar="DIM=FILE",
        help="hierarchy of a dimension; repeat (default: flat)",
    )
    add(
        "--rule",
        action="append",
        default=[],
        help="freq<3, (1,85), p%%10, request:1=70,2=60, zero:5; repeat (default: none)",
    )
    add(
        "--rows",
        choices=("units", "cells"),
        help="what a row is (default: cells if there is a status column)",
    )
    add("--count", help="of cells: column of the number of contributors (default: none)")
    add("--status", help="of cells: column of the status (default: none)")
    add(
        "--top",
        help="of cells: columns of the largest contributions, with commas, the largest first (default: none)",
    )
    add("--lpl", help="of cells: column of the lower protection level (default: none)")
    add("--upl", help="of cells: column of the upper protection level (default: none)")
    add("--weight", help="of units: column of the sampling weight (default: none)")
    add("--holding", help="of units: column of the owner (default: none)")
    add("--request", help="of units: column of the request code (default: none)")
    add("--cost", default="value", help="value, count, unit, or a column of cells (default: %(default)s)")
    add("--apriori", help="a-priori (history) file (default: none)")
    add("--total", default="Total", help="code of the total (default: %(default)s)")
    add(
        "--missing",
        choices=("category", "drop", "stop"),
        default="category",
        help="rows without a code (default: %(default)s)",
    )
    add(
        "--non-additive",
        choices=("refuse", "recompute", "constant"),
        default="refuse",
        help="wrong totals (default: %(default)s)",
    )
    add(
        "--negative-values",
        action="store_true",
        help="values may be negative (default: all know that they are not)",
    )
    add(
        "--insiders",
        choices=("relations", "all", "none"),
        default="relations",
        help="against whom single contributors are protected (default: %(default)s)",
    )
    add("--encoding", help="of the data (default: UTF-8)")
    add("--method", default="auto", help="see solve (default: %(default)s)")
    add_search(parser)
    add("--out", help="text file for the protected table (default: standard output)")
    add(
        "--problem",
        help="also write the problem: .jj, or a case (.json), which holds insiders (default: not written)",
    )


def _from_metadata(
    metadata: Metadata, arguments: argparse.Namespace
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Columns and roles as the metadata give them."""
    directory = Path(metadata.file or "").parent
    columns: Mapping[str, Any]
    if metadata.of("status") or metadata.of("frequency"):
        table = read_tabular(metadata, arguments.file, encoding=arguments.encoding)
        columns, roles = _cell_columns(table)
        codes: dict[str, Any] = dict(zip(table.dims, table.codes, strict=True))
    else:
        micro = read_microdata(metadata, arguments.file, encoding=arguments.encoding)
        responses = [name for name in micro.responses if name != micro.weight]
        columns = micro.columns
        roles = {
            "rows": "units",
            "dims": list(micro.dims),
            "value": responses[0] if responses else None,
            "weight": micro.weight,
            "holding": micro.holding,
            "request": micro.request,
        }
        codes = {dim: micro.columns[dim] for dim in micro.dims}
    roles["hierarchies"] = metadata.hierarchies(directory, codes)
    return columns, roles


def _cell_columns(table: CellTable) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of a table of cells; a leading blank keeps their names apart from those of dimensions."""
    columns: dict[str, Any] = dict(zip(table.dims, table.codes, strict=True))
    columns[" value"] = table.value if table.decimals is None else table.decimals
    columns[" status"] = ["s" if status == EMPTY else status for status in table.status]
    roles: dict[str, Any] = {
        "rows": "cells",
        "dims": list(table.dims),
        "value": " value",
        "status": " status",
    }
    optional = {"count": table.count, "cost": table.weight, "lpl": table.lpl, "upl": table.upl}
    for role, column in optional.items():
        if column is not None:
            columns[f" {role}"] = column
            roles[role] = f" {role}"
    if table.top is not None:
        roles["top"] = [f" top{j + 1}" for j in range(table.top.shape[1])]
        columns.update(zip(roles["top"], table.top.T, strict=True))
    return columns, roles


def _roles(arguments: argparse.Namespace) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """The columns of the data and the role of each; arguments overrule the metadata."""
    hierarchies: dict[str, HierarchyLike] = {}
    for given in arguments.hierarchy:
        dim, sign, file = given.partition("=")
        if not sign:
            raise InputError(f"--hierarchy {given} names no file.", "Write DIM=FILE.")
        hierarchies[dim] = file
    columns: Mapping[str, Any]
    if arguments.metadata:
        columns, roles = _from_metadata(read_rda(arguments.metadata), arguments)
    else:
        text = read_delimited(arguments.file, encoding=arguments.encoding)
        columns = dict(zip(text.header, text.columns, strict=True))
        cells = arguments.status or arguments.count or arguments.top or arguments.lpl or arguments.upl
        roles = {"rows": "cells" if cells else "units", "dims": None, "hierarchies": {}}
    if arguments.dims:
        roles["dims"] = [dim.strip() for dim in arguments.dims.split(",")]
    if not roles["dims"]:
        raise InputError("no dimension is named.", "Name them with --dims, separated by commas.")
    if arguments.top:
        roles["top"] = [name.strip() for name in arguments.top.split(",")]
    for role in ("value", "rows", "count", "status", "lpl", "upl", "weight", "holding", "request"):
        if getattr(arguments, role) is not None:
            roles[role] = getattr(arguments, role)
    if arguments.cost != "value":
        roles["cost"] = arguments.cost
    roles["hierarchies"] = {
        dim: h
        for dim, h in {**roles["hierarchies"], **hierarchies}.items()
        if dim in roles["dims"] or dim in hierarchies
    }
    return columns, roles


def run_protect(arguments: argparse.Namespace, progress: ProgressCallback | None = None) -> dict[str, Any]:
    """Protect a table; write it, and say what was done.

    Returns
    -------
    ``cells``, ``primaries``, ``secondaries``, ``cost``, ``lower_bound``, ``gap``, ``status``, ``method``,
    ``seconds``, ``exposures``, ``notices``, and ``table`` when no file was to be written.
    """
    columns, roles = _roles(arguments)
    done = protect(
        columns,
        roles.pop("dims"),
        roles.pop("hierarchies"),
        roles.pop("value", None),
        [parse_rule(text) for text in arguments.rule],
        apriori=arguments.apriori or (),
        total=arguments.total,
        missing=arguments.missing,
        non_additive=arguments.non_additive,
        negative_values=arguments.negative_values,
        insiders=arguments.insiders,
        method=arguments.method,
        time_limit=arguments.time_limit,
        threads=arguments.threads,
        seed=arguments.seed,
        progress=progress,
        **roles,
    )
    # The table first: a problem that its format can't hold is no reason to lose what was computed.
    summary = _summary(done, arguments.out)
    if arguments.problem:
        write_problem(done.problem.instance, Path(arguments.problem))
    return summary


def _summary(done: Protection, out: str | None) -> dict[str, Any]:
    frame = done.frame
    text = format_delimited(list(frame), [[_field(x) for x in column] for column in frame.values()])
    status = np.array(frame["status"])
    summary: dict[str, Any] = {
        "status": done.solution.status,
        "cost": done.solution.cost,
        "lower_bound": done.solution.lower_bound,
        "gap": done.solution.gap,
        "cells": len(status),
        "primaries": int((status == "primary").sum()),
        "secondaries": int((status == "secondary").sum()),
        "exposures": len(done.audit.exposures),
        "method": done.solution.method,
        "seconds": done.solution.seconds,
        "notices": list(done.notices),
    }
    if out is None:
        summary["table"] = text
    else:
        Path(out).write_text(text, encoding="utf-8")
    return summary


def _field(value: object) -> object:
    """A field of a text file: whole amounts without a decimal, nothing for what is missing."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return "" if value is None else value
