"""Whatever a case file or an option holds: one clear error or an audited answer, never a traceback."""

from __future__ import annotations

import copy
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver import Hierarchy, InputError, MultipleInputError, solve
from solver.__main__ import main
from solver.formats.case import read_case
from tests.interrupted import AT_IMPORT

CASE: dict[str, Any] = {
    "id": "h",
    "case_type": "csp",
    "cells": [
        {"id": "T", "value": 60, "weight": 60, "status": "z", "lb": 0, "ub": None},
        {
            "id": "a",
            "value": 4,
            "weight": 4,
            "status": "u",
            "lb": 0,
            "ub": None,
            "lpl": 1,
            "upl": 1,
            "spl": 0,
        },
        {"id": "b", "value": 56, "weight": 56, "status": "s", "lb": 0, "ub": None},
    ],
    "equations": [{"total": "T", "parts": [[1, "a"], [1, "b"]], "rhs": 0}],
    "insiders": [{"name": "x", "knows": ["b"], "targets": [{"cell": "a", "lpl": 0, "upl": 0, "spl": 0}]}],
}
WRONG: tuple[Any, ...] = (
    *(None, True, "x", "", [], {}, [1], "NaN", float("nan"), float("inf"), -1, "1e400", 10**400),
    *("-inf", "0x10", "4,5", 1e30, 1e-320),
)


def _places(item: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every part of a case."""
    keys = item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
    found = [(*above, key) for key in keys]
    return found + [place for key in keys for place in _places(item[key], (*above, key))]


@pytest.mark.parametrize("place", _places(CASE), ids=lambda place: ".".join(map(str, place)))
def test_any_part_of_a_case_may_be_wrong(place: tuple[Any, ...], tmp_path: Path) -> None:
    for wrong in (*WRONG, ...):
        case = copy.deepcopy(CASE)
        part: Any = case
        for key in place[:-1]:
            part = part[key]
        if wrong is ...:
            del part[place[-1]]
        else:
            part[place[-1]] = wrong
        file = tmp_path / "case.json"
        file.write_text(json.dumps(case), "utf-8")
        assert main(["solve", str(file), "--json"]) in (0, 2, 3)
        try:
            read_case(file)
        except InputError as error:
            first = error.problems[0] if isinstance(error, MultipleInputError) else error
            assert first.file == str(file)


def test_all_mistakes_of_a_case_are_told_at_once() -> None:
    case = copy.deepcopy(CASE)
    case["cells"][1] |= {"value": "four", "status": "q", "lb": "NaN"}
    case["equations"][0]["parts"] += [["one", "b"], [1, "aa"], 5]
    case["insiders"][0]["targets"][0]["cell"] = "zz"
    with pytest.raises(MultipleInputError) as caught:
        read_case(case)
    told = str(caught.value)
    assert len(caught.value.problems) == 7
    for part in ("cell a: value is no number: 'four'", "“'q'” is none of", "cell a: lb is no number"):
        assert part in told
    assert "equations[0] ('T'): a coefficient is no number: 'one'" in told
    assert "names cell 'zz', which is not listed" in told


def test_a_relation_that_does_not_add_up_is_told_with_its_cells() -> None:
    case = copy.deepcopy(CASE)
    case["cells"][0]["value"] = "60.10"
    with pytest.raises(InputError, match=r"relation 0: -0\.1 \(a, b, T\)"):
        read_case(case)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "[]", "3", "null", "[" * 100_000, '{"cells":' * 50_000, '{"a": ' + "9" * 5000 + "}", "\0"],
)
@pytest.mark.parametrize("ending", ["json", "jj", "csp", "gz", "hrc", "csv", "cdl", "rda"])
def test_files_without_sense(text: str, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"file.{ending}"
    file.write_text(text, "utf-8")
    commands = (
        ["solve", str(file)],
        ["audit", str(file), "--pattern", str(file)],
        ["convert", str(file), str(tmp_path / "out.json")],
        ["convert", str(file), str(tmp_path / "out.hrc")],
        ["protect", str(file), "--dims", "a"],
        ["protect", str(file), "--metadata", str(file)],
    )
    for command in commands:
        assert main(command) in (0, 2)


def test_utf_16_is_read(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_bytes(json.dumps(CASE).encode("utf-16"))
    assert main(["solve", str(tmp_path / "case.json")]) == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--time-limit", "nan"],
        ["--time-limit", "-1"],
        ["--work-limit", "nan"],
        ["--threads", "0"],
        ["--seed", "-1"],
        ["--output", "/nonexistent/pattern"],
        ["--start", "/nonexistent/pattern"],
    ],
)
def test_options_without_sense_are_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "case.json").write_text(json.dumps(CASE), "utf-8")
    assert main(["solve", str(tmp_path / "case.json"), "--json", *options]) == 2
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]
    assert options[0].strip("-").replace("-", "_") in told or options[1] in told


def test_no_time_at_all_still_gives_an_audited_answer() -> None:
    for limit in (0.0, 0.01):
        assert solve(read_case(CASE), time_limit=limit).cost == 56


def test_an_interrupt_while_reading_ends_without_a_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "case.json"
    os.mkfifo(pipe)
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "solver", "solve", str(pipe)]
    process = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True)
    # Opening the other end waits until the command reads.
    with process, pipe.open("w"):
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told.strip()) == (130, "error: interrupted.")


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "{}", "--output", "a\0b"),
        ("solve", "{}", "--start", "a\0b"),
        ("solve", "a\0.jj"),
        ("audit", "{}", "--pattern", "a\0b"),
        ("adjust", "{}", "--output", "a\0b.csv"),
        ("round", "{}", "--base", "5", "--output", "a\0b.jj"),
        ("intervals", "{}", "--output", "a\0b.csv"),
        ("convert", "{}", "a\0b.jj"),
        ("protect", "{}", "--hierarchy", "d=a\0b"),
        ("generate", "random", "a\0b.jj", "--shape", "3x3"),
    ],
)
def test_a_name_with_a_nul_is_refused_in_one_sentence(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = tmp_path / "case.json"
    case.write_text(json.dumps(CASE))
    assert main([word.format(case) for word in words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert "NUL" in told.err


# As Python starts a package: it is named so while it loads.
INTERRUPT = f"""{AT_IMPORT}
import runpy
sys.argv, sys.orig_argv = ["-m"], ["python", "-m", "solver", *sys.argv[1:]]
import solver
sys.argv = sys.orig_argv[2:]
runpy.run_module("solver", run_name="__main__")
"""


@pytest.mark.parametrize("module", ["numpy", "scipy.sparse", "highspy", "argparse", "solver.solve"])
def test_an_interrupt_while_the_program_loads_ends_without_a_word(module: str, tmp_path: Path) -> None:
    case = tmp_path / "case.json"
    case.write_text(json.dumps(CASE))
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT, module, "solve", str(case)],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("answer", ["", "--json"])
@pytest.mark.parametrize(("streams", "code"), [("2>&-", 0), (">&-", 0), (">/dev/full", 2)])
def test_an_answer_that_cannot_be_told_ends_without_a_traceback(
    tmp_path: Path, streams: str, code: int, answer: str
) -> None:
    case = tmp_path / "case.json"
    case.write_text(json.dumps(CASE))
    root = Path(__file__).resolve().parents[2]
    line = f"exec {sys.executable} -m solver solve {case} {answer} {streams}"
    done = subprocess.run(["sh", "-c", line], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.strip() in ("", "error: the answer: cannot be written: No space left on device.")
    assert bool(done.stderr) == (code == 2)


@pytest.mark.parametrize("code", [None, 0, 1, 1.5, float("nan"), b"x", ("a",), object()])
def test_codes_that_are_no_texts_are_told(code: Any) -> None:
    for make in (
        lambda: Hierarchy.from_tree({"T": {code: {}, "a": {}}}),
        lambda: Hierarchy.from_tree({"T": {"a": {code: {}}}}),
        lambda: Hierarchy.from_tree({code: {"a": {}}}),
        lambda: Hierarchy.from_pairs([("T", code), (code, "a")]),
        lambda: Hierarchy.flat([code, "a"]),
        lambda: Hierarchy(("T", code), np.array([-1, 0])),
    ):
        with pytest.raises(InputError, match="is no text"):
            make()


@pytest.mark.parametrize("key", ["cells", "equations"])
@pytest.mark.parametrize("instead", [None, "misspelt"])
def test_a_case_without_its_cells_or_relations_is_refused(
    key: str, instead: str | None, tmp_path: Path
) -> None:
    """Without relations no cell is ever in danger: that must not come of a key that isn't known."""
    case = copy.deepcopy(CASE)
    content = case.pop(key)
    if instead is not None:
        case[instead] = content
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case))
    with pytest.raises(InputError, match=f"a case needs {key}"):
        read_case(file)
