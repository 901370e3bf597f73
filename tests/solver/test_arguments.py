"""Whatever is handed to the doors: an answer, or one error that says what is wrong and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from solver import Insider, Instance, audit, explain, insider_intervals, protect, solve
from solver.__main__ import main
from solver.errors import InputError
from solver.formats.case import format_case
from solver.rules import Dominance, PPercent, Request, Threshold, Zero

NAN = float("nan")
FRAME = {"a": ["x", "x", "y", "y"], "b": ["p", "q", "p", "q"], "v": [1.0, 20.0, 30.0, 4.0]}
#: What nobody means, in every argument.
ODD: dict[str, Any] = {
    "nan": NAN,
    "infinite": float("inf"),
    "negative": -1,
    "beyond doubles": 10**400,
    "beyond digits": 10**5000,
    "half": 1.5,
    "true": True,
    "complex": 1j,
    "text": "x",
    "no ASCII": "ñ☃",
    "zero character": "a\0b",
    "half a character": "\ud800",
    "bytes": b"x",
    "object": object(),
    "set": {1},
    "mapping": {"a": 1},
    "empty": [],
    "list of none": [None],
    "twice": ["a", "a"],
    "matrix": np.zeros((2, 2)),
    "no number": np.float64(NAN),
}
MATRIX = [[1.0, 1.0, -1.0]]


def instance() -> Instance:
    return Instance.from_arrays(
        [3.0, 4.0, 7.0], MATRIX, status=["u", "s", "s"], lpl=[1, 0, 0], upl=[1, 0, 0], names=["x", "y", "t"]
    )


def _arrays(**changed: Any) -> Instance:
    given: dict[str, Any] = {"value": [3.0, 4.0, 7.0], "relations": MATRIX, "status": ["u", "s", "s"]}
    return Instance.from_arrays(**given | changed)


def _insider(**changed: Any) -> Insider:
    given = {"name": "i", "known": [0], "targets": [1], "lpl": [1.0], "upl": [1.0], "spl": [0.0]}
    return Insider(**given | changed)


def _protect(**changed: Any) -> object:
    given = {"frame": FRAME, "dims": ["a", "b"], "value": "v", "rules": [PPercent(10)]}
    return protect(**given | changed)


def _solve(**changed: Any) -> object:
    given: dict[str, Any] = {"instance": instance()}
    return solve(**given | changed)


def _with_pattern(door: Callable[..., object], **more: Any) -> Callable[..., object]:
    def called(**changed: Any) -> object:
        return door(**{"instance": instance(), "hidden": np.ones(3, dtype=bool)} | more | changed)

    return called


_audit, _explain, _intervals = (
    _with_pattern(audit),
    _with_pattern(explain, cell=0),
    _with_pattern(insider_intervals),
)


def _index(**changed: Any) -> object:
    return instance().index(**changed)


def _threshold(**changed: Any) -> object:
    return Threshold(**{"n": 3} | changed)


def _dominance(**changed: Any) -> object:
    return Dominance(**{"n": 1, "k": 80} | changed)


#: What is called, and the door whose arguments it takes.
DOORS: dict[str, tuple[Callable[..., object], Callable[..., object]]] = {
    "protect": (_protect, protect),
    "solve": (_solve, solve),
    "audit": (_audit, audit),
    "explain": (_explain, explain),
    "insider_intervals": (_intervals, insider_intervals),
    "from_arrays": (_arrays, Instance.from_arrays),
    "from_jj": (Instance.from_jj, Instance.from_jj),
    "from_case": (Instance.from_case, Instance.from_case),
    "index": (_index, instance().index),
    "Insider": (_insider, Insider),
    "Threshold": (_threshold, Threshold),
    "Dominance": (_dominance, Dominance),
    "PPercent": (PPercent, PPercent),
    "Request": (Request, Request),
    "Zero": (Zero, Zero),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_odd_argument_is_taken_or_told(door: str) -> None:
    call, real = DOORS[door]
    for name in inspect.signature(real).parameters:
        for odd in ODD.values():
            # Texts of a door are columns, levels and files as often as not; lists are tried as well.
            for given in (odd, [odd] * 3):
                with suppress(InputError):
                    call(**{name: given})


def test_an_error_can_be_written_whatever_it_names() -> None:
    with pytest.raises(InputError, match="not found") as caught:
        _protect(value="\ud800")
    assert str(caught.value).encode()


@pytest.mark.parametrize(
    ("told", "odd"),
    {
        "percent": lambda: _protect(percent=NAN),
        "percent ": lambda: _protect(percent=-1),
        "apriori": lambda: _protect(apriori=[3]),
        "hide_zeros": lambda: _protect(hide_zeros="no"),
        "seed": lambda: _solve(seed=NAN),
        "threads": lambda: _solve(threads=-1),
        "start": lambda: _solve(start=[0.5, NAN, 2]),
        "pattern": lambda: _explain(hidden=["no", "no", "no"]),
        "cell": lambda: _explain(cell=1.5),
        "tolerance": lambda: _arrays(tolerance=NAN),
        "status": lambda: _arrays(status=[0.5, 1, 1]),
        "status ": lambda: _arrays(status=[256, 1, 1]),
        "known": lambda: _insider(known=[0.5]),
        "relations": lambda: _arrays(relations=3),
    }.items(),
)
def test_what_no_argument_means_is_not_taken(told: str, odd: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=told.strip()) as caught:
        odd()
    assert caught.value.remedy or "expected" in caught.value.cause


@pytest.mark.parametrize(
    "words",
    [
        ["--time-limit", "nan"],
        ["--time-limit", "-1"],
        ["--work-limit=-inf"],
        ["--threads", "0"],
        ["--threads", "9" * 30],
        ["--seed", "-1"],
        ["--start", "a\0b"],
        ["--start", "\udcff"],
    ],
)
def test_commands_tell_an_odd_option(
    words: list[str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "problem.json"
    file.write_text(format_case(instance()), encoding="utf-8")
    assert main(["solve", str(file), *words]) == 2
    assert capsys.readouterr().err.startswith("error: ")
