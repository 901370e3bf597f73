"""Case files: cells and equations as JSON, with insiders.

`cells`: id, value, weight, status, lb, ub (null: unbounded), lpl, upl, spl. `equations`:
Σ coef·part − total = rhs, where `total` may be null. `insiders`: name, knows, targets.
Numbers that are not exact in binary may be decimal strings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from solver.errors import InputError
from solver.instance import Insider, Instance, Status


def read_case(source: str | Path | Mapping[str, Any]) -> Instance:
    """Read a case from a file or a parsed mapping.

    Raises
    ------
    InputError
        Names the file, and the cell or equation with the cause.
    """
    if isinstance(source, Mapping):
        return _build(source, None)
    file = str(source)
    try:
        # Floats stay text so that 1234567890123.45 keeps its decimals.
        data = json.loads(Path(source).read_text("utf-8-sig"), parse_float=str)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}.", file=file, line=error.lineno) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}.", file=file) from None
    if not isinstance(data, dict):
        raise InputError("a case is a JSON object.", "Give cells and equations.", file=file)
    return _build(data, file)


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
    try:
        cells, equations = list(data["cells"]), list(data.get("equations") or ())
        ids = {str(cell["id"]): k for k, cell in enumerate(cells)}
    except (KeyError, TypeError) as error:
        raise InputError(f"a case needs cells, each with an id: {error}.", file=file) from None
    reader = _Reader(file, ids)
    n = len(cells)
    if len(ids) != n:
        raise InputError("two cells have the same id.", file=file)
    values = [reader.number(cell, "value") for cell in cells]
    indptr, rhs = [0], []
    indices: list[int] = []
    coefs: list[float] = []
    for k, equation in enumerate(equations):
        terms = reader.equation(equation, k)
        indices.extend(terms)
        coefs.extend(terms.values())
        indptr.append(len(indices))
        rhs.append(reader.number(equation, "rhs", 0.0))
    try:
        return Instance(
            value=np.array(values),
            weight=np.array(
                [reader.number(c, "weight", max(abs(v), 1.0)) for c, v in zip(cells, values, strict=True)]
            ),
            lower_bound=np.array([reader.number(cell, "lb", -np.inf) for cell in cells]),
            upper_bound=np.array([reader.number(cell, "ub", np.inf) for cell in cells]),
            lpl=np.array([reader.number(cell, "lpl", 0.0) for cell in cells]),
            upl=np.array([reader.number(cell, "upl", 0.0) for cell in cells]),
            spl=np.array([reader.number(cell, "spl", 0.0) for cell in cells]),
            status=np.array([reader.status(cell) for cell in cells], dtype=np.int8),
            indptr=np.array(indptr),
            indices=np.array(indices),
            coefs=np.array(coefs),
            rhs=np.array(rhs),
            names=tuple(ids),
            insiders=tuple(reader.insider(item) for item in data.get("insiders") or ()),
            decimals=tuple(_decimal_text(cell["value"]) for cell in cells),
        )
    except InputError as error:
        raise InputError(error.cause, error.remedy, file=file, cell=error.cell) from None


class _Reader:
    def __init__(self, file: str | None, ids: dict[str, int]) -> None:
        self._file, self._ids = file, ids

    def number(self, item: Mapping[str, Any], key: str, default: float | None = None) -> float:
        raw = item.get(key)
        if raw is None and default is not None:
            return default
        try:
            if raw is None or isinstance(raw, bool):
                raise ValueError(raw)
            return float(raw)
        except (TypeError, ValueError):
            where = str(item["id"]) if "id" in item else None
            raise InputError(f"{key} is no number: {raw!r}.", file=self._file, cell=where) from None

    def status(self, cell: Mapping[str, Any]) -> int:
        code = str(cell.get("status", "s"))
        try:
            return int(Status.from_code(code))
        except ValueError:
            raise InputError(
                f"status “{code}” is none of u, s, z, x, v.", file=self._file, cell=str(cell["id"])
            ) from None

    def cell(self, name: Any, where: str) -> int:
        try:
            return self._ids[str(name)]
        except KeyError:
            raise InputError(f"{where} names cell {name}, which is not listed.", file=self._file) from None

    def equation(self, item: Mapping[str, Any], number: int) -> dict[int, float]:
        where = f"equation {number}"
        terms: dict[int, float] = {}
        pairs = [(part[0], part[1]) for part in item.get("parts") or ()]
        if item.get("total") is not None:
            pairs.append((-1, item["total"]))
        for coef, name in pairs:
            cell = self.cell(name, where)
            terms[cell] = terms.get(cell, 0.0) + float(coef)
        return {cell: coef for cell, coef in terms.items() if coef}

    def insider(self, item: Mapping[str, Any]) -> Insider:
        name = str(item.get("name", "insider"))
        known = [self.cell(cell, f"insider {name}") for cell in item.get("knows") or ()]
        targets = list(item.get("targets") or ())
        return Insider(
            name=name,
            known=np.array(known, dtype=np.int64),
            targets=np.array([self.cell(t["cell"], f"insider {name}") for t in targets], dtype=np.int64),
            lpl=np.array([self.number(t, "lpl", 0.0) for t in targets]),
            upl=np.array([self.number(t, "upl", 0.0) for t in targets]),
            spl=np.array([self.number(t, "spl", 0.0) for t in targets]),
        )


def _decimal_text(raw: Any) -> str:
    return raw if isinstance(raw, str) else repr(raw)


def _text(number: float) -> str | int | None:
    value = float(number)
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
