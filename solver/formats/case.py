"""Case files: cells and equations as JSON, with insiders.

`cells`: id, value, weight, status, lb, ub (null: unbounded), lpl, upl, spl. `equations`:
Σ coef·part − total = rhs, where `total` may be null. `insiders`: name, knows, targets.
Numbers that are not exact in binary may be decimal strings.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

from solver.errors import InputError
from solver.formats.text import Problems, read_json
from solver.instance import Insider, Instance, Status


def read_case(source: str | Path | Mapping[str, Any]) -> Instance:
    """Read a case from a file or a parsed mapping.

    Raises
    ------
    MultipleInputError
        Every mistake, each with the file and the cell, equation or insider.
    """
    if isinstance(source, Mapping):
        return _build(source, None)
    # Floats stay text so that 1234567890123.45 keeps its decimals.
    data = read_json(source, parse_float=str, parse_int=str)
    if not isinstance(data, dict):
        raise InputError("a case is a JSON object.", "Give cells and equations.", file=str(source))
    return _build(data, str(source))


def format_case(instance: Instance) -> str:
    """The JSON text of a case for an instance."""
    texts = instance.decimals or tuple(repr(float(v)) for v in instance.value)
    cells = [
        {
            "id": instance.name(i),
            "value": texts[i],
            "weight": _text(instance.weight[i]),
            "status": Status(instance.status[i]).code,
            "lb": _text(instance.lower_bound[i]),
            "ub": _text(instance.upper_bound[i]),
            "lpl": _text(instance.lpl[i]),
            "upl": _text(instance.upl[i]),
            "spl": _text(instance.spl[i]),
        }
        for i in range(instance.n)
    ]
    equations = [
        {
            "total": None,
            "parts": [
                [_text(instance.coefs[k]), instance.name(int(instance.indices[k]))]
                for k in range(instance.indptr[r], instance.indptr[r + 1])
            ],
            "rhs": _text(instance.rhs[r]),
        }
        for r in range(instance.m)
    ]
    insiders = [
        {
            "name": insider.name,
            "knows": [instance.name(int(i)) for i in insider.known],
            "targets": [
                {
                    "cell": instance.name(int(cell)),
                    "lpl": _text(insider.lpl[k]),
                    "upl": _text(insider.upl[k]),
                    "spl": _text(insider.spl[k]),
                }
                for k, cell in enumerate(insider.targets)
            ],
        }
        for insider in instance.insiders
    ]
    return json.dumps(
        {"case_type": "csp", "cells": cells, "equations": equations, "insiders": insiders}, indent=1
    )


def write_case(instance: Instance, path: str | Path) -> None:
    """Write a case file."""
    Path(path).write_text(format_case(instance) + "\n", "utf-8")


def _build(data: Mapping[str, Any], file: str | None) -> Instance:
    kind = data.get("case_type", "csp")
    if kind != "csp":
        raise InputError(f"the case is of type {kind}, not csp.", "Give cells and equations.", file=file)
    if "cells" not in data:
        raise InputError("a case needs cells.", 'List them under "cells", each with its id.', file=file)
    if data.get("equations") is None:
        # Without relations nothing is ever in danger: a key that is misspelt must not come to that.
        raise InputError("a case needs equations.", 'List them under "equations", [] for none.', file=file)
    problems = Problems(file)
    cells, equations, insiders = (
        _objects(data.get(key), key, problems) for key in ("cells", "equations", "insiders")
    )
    ids = _ids(cells, problems)
    problems.stop()
    reader = _Reader(problems, ids)
    columns = {
        key: [reader.number(cell, key, name, default) for name, cell in zip(ids, cells, strict=True)]
        for key, default in _NUMBERS.items()
    }
    sizes = [max(abs(value), 1.0) for value in columns["value"]]
    weight = [
        reader.number(cell, "weight", name, size)
        for (name, cell), size in zip(zip(ids, cells, strict=True), sizes, strict=True)
    ]
    status = [reader.status(cell, name) for name, cell in zip(ids, cells, strict=True)]
    rows = [reader.equation(equation, k) for k, equation in enumerate(equations)]
    attackers = [reader.insider(item, k) for k, item in enumerate(insiders)]
    problems.stop()
    try:
        return Instance(
            value=np.array(columns["value"]),
            weight=np.array(weight),
            lower_bound=np.array(columns["lb"]),
            upper_bound=np.array(columns["ub"]),
            lpl=np.array(columns["lpl"]),
            upl=np.array(columns["upl"]),
            spl=np.array(columns["spl"]),
            status=np.array(status, dtype=np.int8),
            indptr=np.cumsum([0, *(len(terms) for _, terms in rows)]),
            indices=np.array([cell for _, terms in rows for cell in terms], dtype=np.int64),
            coefs=np.array([coef for _, terms in rows for coef in terms.values()], dtype=np.float64),
            rhs=np.array([right for right, _ in rows], dtype=np.float64),
            names=tuple(ids),
            insiders=tuple(Insider(**attacker) for attacker in attackers),
            decimals=tuple(_decimal_text(cell["value"]) for cell in cells),
        )
    except InputError as error:
        raise InputError(error.cause, error.remedy, file=file, cell=error.cell) from None


# What each number of a cell is when it is left out or null; a value never is.
_NUMBERS: Mapping[str, float | None] = {
    "value": None,
    "lb": -np.inf,
    "ub": np.inf,
    "lpl": 0.0,
    "upl": 0.0,
    "spl": 0.0,
}


def _objects(given: Any, what: str, problems: Problems) -> list[Mapping[str, Any]]:
    """The objects of a list; everything else is noted."""
    if given is None:
        return []
    if not isinstance(given, Sequence) or isinstance(given, str):
        problems.add(f"{what} is no list.", f"Give a list of {what}.")
        return []
    for k, item in enumerate(given):
        if not isinstance(item, Mapping):
            problems.add(f"{what}[{k}] is {_told(item)}, not an object.", f"See what {what} hold.")
    return [item for item in given if isinstance(item, Mapping)]


def _ids(cells: Sequence[Mapping[str, Any]], problems: Problems) -> dict[str, int]:
    """The position of each cell by its id."""
    ids: dict[str, int] = {}
    for k, cell in enumerate(cells):
        given = cell.get("id")
        if isinstance(given, bool) or not isinstance(given, str | int | float):
            problems.add(f"cells[{k}] has no id.", "Give each cell an id, a text.")
        elif str(given) in ids:
            problems.add(
                f"cells[{ids[str(given)]}] and cells[{k}] have the same id.",
                "Give each cell an id of its own.",
                cell=str(given),
            )
        else:
            ids[str(given)] = k
    return ids


def _told(item: Any) -> str:
    """What was found, short enough for a message."""
    text = repr(item)
    return text if len(text) <= 60 else text[:57] + "…"


class _Reader:
    """Reads the parts of a case and notes all their mistakes."""

    def __init__(self, problems: Problems, ids: Mapping[str, int]) -> None:
        self._problems, self._ids = problems, ids

    def number(
        self, item: Mapping[str, Any], key: str, cell: str | None = None, default: float | None = None
    ) -> float:
        return self._number(item.get(key), key, cell, default)

    def _number(self, raw: Any, what: str, cell: str | None, default: float | None = None) -> float:
        if raw is None and default is not None:
            return default
        try:
            if isinstance(raw, bool) or not isinstance(raw, str | Number):
                raise TypeError(raw)
            number = float(raw)  # type: ignore[arg-type]
            if number != number:
                raise ValueError(raw)
        except (TypeError, ValueError, OverflowError):
            told = "missing" if raw is None else f"no number: {_told(raw)}"
            self._problems.add(f"{what} is {told}.", "Write digits with a decimal point.", cell=cell)
            return 0.0
        return number

    def status(self, cell: Mapping[str, Any], name: str) -> int:
        code = cell.get("status", "s")
        try:
            return int(Status.from_code(str(code)))
        except ValueError:
            self._problems.add(f"status “{_told(code)}” is none of u, s, z, x, v.", cell=name)
            return int(Status.FREE)

    def _cell(self, name: Any, where: str) -> int:
        known = isinstance(name, str | int | float) and str(name) in self._ids
        if not known:
            near = difflib.get_close_matches(str(name), self._ids, 1) if isinstance(name, str) else ()
            self._problems.add(
                f"{where} names cell {_told(name)}, which is not listed.",
                f"Did you mean {near[0]!r}?" if near else "List it among the cells.",
            )
        return self._ids[str(name)] if known else 0

    def equation(self, item: Mapping[str, Any], number: int) -> tuple[float, dict[int, float]]:
        """The right-hand side and the coefficients of the cells."""
        total = item.get("total")
        where = f"equations[{number}]" if total is None else f"equations[{number}] ({_told(total)})"
        terms: dict[int, float] = {}
        parts = item.get("parts")
        if parts is None:
            parts = []
        if not isinstance(parts, Sequence) or isinstance(parts, str):
            self._problems.add(f"{where}: parts is no list.", "Write [[1, id], …].")
            parts = []
        pairs = []
        for part in parts:
            if isinstance(part, Sequence) and not isinstance(part, str) and len(part) == 2:
                pairs.append((self._number(part[0], f"{where}: a coefficient", None), part[1]))
            else:
                self._problems.add(
                    f"{where}: {_told(part)} is no pair of coefficient and cell.", "Write [1, id]."
                )
        if total is not None:
            pairs.append((-1.0, total))
        for coef, name in pairs:
            cell = self._cell(name, where)
            terms[cell] = terms.get(cell, 0.0) + coef
        right = self._number(item.get("rhs"), f"{where}: rhs", None, 0.0)
        return right, {cell: coef for cell, coef in terms.items() if coef}

    def insider(self, item: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The fields of an insider."""
        name = item.get("name")
        where = f"insiders[{number}]" if name is None else f"insider {_told(name)}"
        known = item.get("knows")
        if known is not None and (not isinstance(known, Sequence) or isinstance(known, str)):
            self._problems.add(f"{where}: knows is no list.", "List ids of cells.")
            known = ()
        targets = _objects(item.get("targets"), f"{where}: targets", self._problems)
        levels = {
            key: np.array([self.number(t, key, f"{t.get('cell')}, {where}", 0.0) for t in targets])
            for key in ("lpl", "upl", "spl")
        }
        return {
            "name": "insider" if name is None else str(name),
            "known": np.array([self._cell(cell, where) for cell in known or ()], dtype=np.int64),
            "targets": np.array([self._cell(t.get("cell"), where) for t in targets], dtype=np.int64),
            **levels,
        }


def _decimal_text(raw: Any) -> str:
    return str(raw)


def _text(number: float) -> str | int | None:
    value = float(number)
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
