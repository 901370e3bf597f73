"""Reading the downloads: tidy CSV and JSON-stat 2, into rows of named members."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import product
from typing import Any


class UnreadableError(ValueError):
    """The document isn't what its address promises."""


@dataclass(frozen=True)
class TableRow:
    """One cell of a document.

    ``members`` are unique names by hierarchy, ``captions`` the texts by hierarchy, ``digits`` the decimals
    that the number is printed with.
    """

    members: Mapping[str, str]
    captions: Mapping[str, str]
    value: float | None
    digits: int
    hidden: bool


@dataclass(frozen=True)
class Document:
    """A download as it was read; ``rows`` in its own order."""

    address: str
    rows: Sequence[TableRow]
    decimals: Mapping[str, int] = field(default_factory=dict)


def read_csv(address: str, text: str) -> Document:
    """A tidy CSV.

    Raises
    ------
    UnreadableError
    """
    lines = list(csv.reader(StringIO(text.lstrip("\ufeff"))))
    if not lines or "OBS_VALUE" not in lines[0]:
        raise UnreadableError("no column OBS_VALUE")
    header = lines[0]
    hierarchies = [(i, name) for i, name in enumerate(header) if name.startswith("[")]
    value, status = header.index("OBS_VALUE"), header.index("OBS_STATUS")
    rows = []
    for line in lines[1:]:
        if len(line) != len(header):
            raise UnreadableError("a row of another length")
        number = line[value].strip()
        captions = {name: line[i + 1] for i, name in hierarchies if i + 1 < len(header)}
        rows.append(
            TableRow(
                {name: line[i] for i, name in hierarchies},
                captions,
                _number(number) if number else None,
                len(number.partition(".")[2]),
                line[status] in ("Q", "O"),
            )
        )
    return Document(address, rows)


def read_jsonstat(address: str, text: str) -> Document:
    """A JSON-stat 2 dataset.

    Raises
    ------
    UnreadableError
    """
    try:
        dataset = json.loads(text)
        names, sizes = dataset["id"], dataset["size"]
        categories = [dataset["dimension"][name]["category"] for name in names]
        members = [_ordered(category["index"]) for category in categories]
        labels = [category.get("label", {}) for category in categories]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"no JSON-stat dataset: {error}") from error
    if [len(found) for found in members] != list(sizes):
        raise UnreadableError("sizes that don't fit the categories")
    values, status = dataset["value"], dataset.get("status", {})
    decimals: dict[str, int] = {}
    for category in categories:
        for name, unit in category.get("unit", {}).items():
            decimals[name] = int(unit.get("decimals", 0))
    rows = []
    for place, combination in enumerate(product(*members)):
        value, mark = _at(values, place), _at(status, place)
        if value is None and mark is None:
            continue
        rows.append(
            TableRow(
                dict(zip(names, combination, strict=True)),
                {
                    name: str(label.get(member, member))
                    for name, label, member in zip(names, labels, combination, strict=True)
                },
                None if value is None else float(value),
                len(repr(value).partition(".")[2]) if isinstance(value, float) else 0,
                mark in ("C", "O"),
            )
        )
    return Document(address, rows, decimals)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UnreadableError(f"{text!r} is no number") from None


def _ordered(index: Any) -> list[str]:
    if isinstance(index, Mapping):
        return sorted(index, key=lambda name: index[name])
    return list(index)


def _at(values: Any, place: int) -> Any:
    if isinstance(values, Mapping):
        return values.get(str(place))
    if isinstance(values, list):
        return values[place] if place < len(values) else None
    return values
