"""Answers to the analyst's queries, as tables and as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cube.explanation import Case, Explanation
from app.domain.cube import text_in
from app.domain.errors import UserError
from app.domain.masked import AxisMember
from app.pipeline.explore import Answer
from app.pipeline.export import ExportedProblem

_QUERY = re.compile(r"\s*(?:(?:--|//)[^\n]*\n\s*|/\*.*?\*/\s*)*(?:WITH|SELECT)\b", re.IGNORECASE | re.DOTALL)
_AXES = ("COLUMNS", "ROWS", "PAGES", "SECTIONS", "CHAPTERS")
#: Cases of one formula that are told one by one.
_CASES = 12
#: Wide enough for any table where there is no terminal.
_WIDE = 100_000


def read_query(argument: str) -> tuple[str, str]:
    """The text of a query and the file that it stands in: an argument that isn't MDX names its file.

    Raises
    ------
    UserError
        The file can't be read.
    """
    if _QUERY.match(argument):
        return argument, ""
    try:
        return Path(argument).read_text(encoding="utf-8-sig"), argument
    except UnicodeDecodeError:
        raise UserError(f"{argument} isn't UTF-8. Save it as UTF-8.") from None
    except (OSError, ValueError):
        shown = argument if len(argument) <= 80 else f"{argument[:80]}…"
        raise UserError(
            f"There is no file {shown}, nor is it a query: that begins with WITH or SELECT."
        ) from None


def read_parameters(written: Sequence[str] | None) -> dict[str, str]:
    """Members by parameter, from ``name=member`` each.

    Raises
    ------
    UserError
    """
    found: dict[str, str] = {}
    for text in written or ():
        name, sign, member = text.partition("=")
        name = name.strip().removeprefix("@")
        if not sign or not name.isidentifier() or not member.strip():
            raise UserError(f"--set {text[:80]} isn't a parameter and its member. Write --set name=[Member].")
        found[name] = member.strip()
    return found


def as_dict(answer: Answer) -> dict[str, Any]:
    """The answer as a document: slicer, axes with their positions, cells."""
    return {
        "cube": answer.cube,
        "slicer": [_member(member, answer.language, {}) for member in answer.slicer],
        "axes": [
            {
                "ordinal": number,
                "name": _AXES[number] if number < len(_AXES) else f"AXIS({number})",
                "hierarchies": list(axis.hierarchies),
                "positions": [
                    {
                        "ordinal": place,
                        "members": [
                            _member(member, answer.language, asked)
                            for member, asked in zip(position, properties, strict=True)
                        ],
                    }
                    for place, (position, properties) in enumerate(zip(axis.positions, found, strict=True))
                ],
            }
            for number, (axis, found) in enumerate(zip(answer.axes, answer.properties, strict=True))
        ],
        "cells": [
            {
                "ordinal": ordinal,
                "value": text if ordinal in answer.words else _number(value),
                "formatted_value": text,
            }
            for ordinal, (value, text) in enumerate(zip(answer.values.tolist(), answer.texts, strict=True))
        ],
    }


def _number(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def _member(member: AxisMember, language: str, properties: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "hierarchy": member.hierarchy,
        "unique_name": member.unique_name,
        "caption": text_in(member.captions, language),
        "level": member.level,
        "level_number": member.depth,
        "parent": member.parent,
        "properties": dict(properties),
    }


def show(answer: Answer) -> None:
    """Print the answer as a table; one for each position of the axes beyond the second."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDE
    if answer.slicer:
        console.print(f"Where {', '.join(_captions(answer.slicer, answer.language))}")
    shape = [len(axis.positions) for axis in answer.axes]
    columns, rows = [*shape, 1, 1][:2]
    for page, places in enumerate(product(*(range(size) for size in shape[2:][::-1]))):
        if places:
            position = [
                member
                for axis, place in zip(answer.axes[2:], places[::-1], strict=True)
                for member in axis.positions[place]
            ]
            console.print(f"\n{', '.join(_captions(position, answer.language))}")
        console.print(_table(answer, page * columns * rows, columns, rows))


def _table(answer: Answer, first: int, columns: int, rows: int) -> Table:
    table = Table(box=None, pad_edge=False)
    language = answer.language
    labels = _row_labels(answer)
    for head in labels[0]:
        table.add_column(Text(head))
    for column in range(columns):
        position = answer.axes[0].positions[column] if answer.axes else ()
        table.add_column(Text("\n".join(_captions(position, language))), justify="right")
    for row in range(rows):
        start = first + row * columns
        label = labels[1 + row] if len(answer.axes) > 1 else []
        table.add_row(*(Text(text) for text in (*label, *answer.texts[start : start + columns])))
    return table


def _row_labels(answer: Answer) -> list[list[str]]:
    """Heads of the row labels, then those of each row: captions, and properties asked for."""
    if len(answer.axes) < 2 or not answer.axes[1].positions:
        return [[]]
    axis, found = answer.axes[1], answer.properties[1]
    labels = [[""] * len(axis.hierarchies) + [key for asked in found[0] for key in asked]]
    for position, properties in zip(axis.positions, found, strict=True):
        values = [value or "" for asked in properties for value in asked.values()]
        labels.append([*_captions(position, answer.language), *values])
    return labels


def _captions(members: tuple[AxisMember, ...] | list[AxisMember], language: str) -> list[str]:
    return [text_in(member.captions, language) for member in members]


def explain(explanations: Sequence[Explanation]) -> None:
    """Print what each calculated member became."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not explanations:
        console.print("The query has no calculated members.")
    for number, explanation in enumerate(explanations):
        console.print(f"{chr(10) if number else ''}{explanation.member}")
        for mistake in explanation.refusal:
            console.print("  refused")
            console.print("\n".join(f"    {line}" for line in str(mistake).splitlines()))
        if not explanation.cases and not explanation.refusal:
            console.print("  decides no cell of this query: another calculated member comes first")
        for case in explanation.cases[:_CASES]:
            console.print(_case(case))
        if len(explanation.cases) > _CASES:
            console.print(f"  and {len(explanation.cases) - _CASES} more cases")


def exported(problems: Sequence[ExportedProblem], out: Path) -> None:
    """Print which problems were written, and what the run's patterns cost by them."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for problem in problems:
        proven = "no pattern costs less" if problem.proven else "not proven to be the least"
        insiders = ", without the sole contributors that the run feared" if problem.insiders else ""
        console.print(f"  {problem.path.name}: cost {problem.cost:,.6g}, {proven}{insiders}")
    if any(problem.insiders for problem in problems):
        console.print("JJ knows no sole contributors: without them a pattern may cost less.")
    console.print(f"{len(problems)} problems in {out}. They hold true values: keep them as safe as the data.")


def _case(case: Case) -> str:
    at = f" at {', '.join(case.when)}" if case.when else ""
    lines = [
        f"  {case.kind}{at}, {case.cells:,} cell{'s' if case.cells != 1 else ''}",
        f"    = {case.formula}",
    ]
    if case.resolved:
        lines.append(f"    = {case.resolved}")
    if case.inequality:
        lines.append(f"    printed, it says {case.inequality}")
    if case.neither is not None:
        lines += [f"    {line}" for line in str(case.neither).splitlines()]
    if case.operands:
        lines.append(f"    hidden whenever one of these is: {', '.join(case.operands)}")
    return "\n".join(lines)
