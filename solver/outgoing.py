"""The commands `adjust`, `round` and `intervals`: their arguments, and the tables that they write."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from solver.adjust import adjust
from solver.errors import InputError
from solver.formats.convert import PROBLEMS, write_problem
from solver.formats.tabular import format_delimited
from solver.grid import written
from solver.instance import BoolArray, Instance
from solver.publish import Perturbed, publish_intervals
from solver.rounding import round_table
from solver.solution import ProgressCallback

_TEXTS = (".csv", ".txt")


def add_output(parser: argparse.ArgumentParser, *, problems: bool) -> None:
    """Declare where the table goes."""
    kinds = "text (.csv, .txt)" + (" or a problem (.jj, .csp, .gz, case .json)" if problems else "")
    parser.add_argument("--output", metavar="TABLE", help=f"file for the table: {kinds}; default: printed")


#: How a default is said in a help text.
DEFAULT = "(default: %(default)s)"


def add_search(parser: argparse.ArgumentParser) -> None:
    """Declare the limits of a search."""
    add = parser.add_argument
    add("--time-limit", type=float, metavar="SECONDS", help="seconds to search for at most (default: none)")
    add("--threads", type=int, default=1, help=f"components to search side by side {DEFAULT}")
    add("--seed", type=int, default=0, help=f"of what is drawn at random {DEFAULT}")


def run_adjust(
    instance: Instance, options: argparse.Namespace, progress: ProgressCallback | None
) -> dict[str, Any]:
    """Adjust a table and write it; gives what is told of it."""
    _check_output(options.output, problems=True)
    done = adjust(
        instance,
        unit=options.unit,
        move_zeros=options.move_zeros,
        time_limit=options.time_limit,
        threads=options.threads,
        seed=options.seed,
        progress=progress,
    )
    moved = int((done.value != instance.value)[done.published].sum())
    return {**_summary(done), "unit": written(done.unit), "moved": moved, **_written(done, options.output)}


def run_round(
    instance: Instance, options: argparse.Namespace, progress: ProgressCallback | None
) -> dict[str, Any]:
    """Round a table and write it; gives what is told of it, and what readers find out all the same."""
    _check_output(options.output, problems=True)
    done = round_table(
        instance,
        options.base,
        time_limit=options.time_limit,
        threads=options.threads,
        seed=options.seed,
        progress=progress,
    )
    exposed = {(exposure.cell, exposure.attacker) for exposure in done.report.exposures}
    known = [
        {
            "cell": instance.name(found.cell),
            "attacker": found.attacker,
            "interval": [end if np.isfinite(end) else None for end in found.interval],
            "required": list(found.required[:2]),
            "required_width": found.required[2],
            "protected": (found.cell, found.attacker) not in exposed,
        }
        for found in done.report.intervals
    ]
    told = {"base": written(done.base), "steps": done.steps, "protects": done.report.ok, "known": known}
    return {**_summary(done), **told, **_written(done, options.output)}


def run_intervals(instance: Instance, hidden: BoolArray, options: argparse.Namespace) -> dict[str, Any]:
    """Write a table with intervals for the cells of a pattern; gives what is told of it."""
    _check_output(options.output, problems=False)
    told = publish_intervals(instance, hidden)
    columns = told.columns()
    answer = {"cells": len(told.cells), "hidden": int(hidden.sum()), "unit": written(told.unit)}
    return answer | _text(columns, options.output)


def _summary(done: Perturbed) -> dict[str, Any]:
    return {
        "status": done.status,
        "cost": done.cost,
        "lower_bound": done.lower_bound,
        "gap": done.gap,
        "seconds": done.seconds,
    }


def _check_output(output: str | None, *, problems: bool) -> None:
    """Before the search, which may take long."""
    endings = (*_TEXTS, *((*PROBLEMS, ".json") if problems else ()))
    if output is not None and Path(output).suffix.lower() not in endings:
        raise InputError("no table is written under that ending.", f"Use {', '.join(endings)}.", file=output)


def _written(done: Perturbed, output: str | None) -> dict[str, Any]:
    if output is not None and Path(output).suffix.lower() not in _TEXTS:
        write_problem(done.table(), Path(output))
        return {}
    shown = np.flatnonzero(done.published).tolist()
    return _text({**done.columns(), "value": [done.decimals[cell] for cell in shown]}, output)


def _text(columns: Mapping[str, Any], output: str | None) -> dict[str, Any]:
    """Write columns as text, or give it where no file was named."""
    text = format_delimited(list(columns), [[_field(x) for x in column] for column in columns.values()])
    if output is None:
        return {"table": text}
    Path(output).write_text(text, encoding="utf-8")
    return {}


def _field(value: object) -> object:
    """Whole amounts without a decimal; nothing for what is missing or without limit."""
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0") if np.isfinite(value) else ""
    return value
