"""The commands that write a changed table, or one with intervals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shared import instance_file

from solver import Instance, audit_adjustment
from solver.__main__ import main


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    code = main([str(argument) for argument in (*arguments, "--json")])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("ending", ["csv", "jj", "jj.gz", "json"])
def test_an_adjusted_table_is_written_in_every_format(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, target = instance_file("rta_ex1"), tmp_path / f"table.{ending}"
    code, told = _run(capsys, "adjust", problem, "--output", target)
    assert (code, told["status"], told["cost"], told["unit"], "table" in told) == (
        *(0, "optimal", 50000, "1"),
        False,
    )
    if ending == "csv":
        header, *rows = target.read_text("utf-8").splitlines()
        assert header == "cell;value"
        decimals = [row.partition(";")[2] for row in rows]
    else:
        table = (Instance.from_case if ending == "json" else Instance.from_jj)(target)
        decimals = list(table.decimals)
        # Nothing that was computed from the old values is left.
        assert not table.lpl.any()
        assert (table.weight == table.value.clip(1)).all()
    assert audit_adjustment(Instance.from_jj(problem), decimals).ok


def test_rounding_says_whether_it_protects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = instance_file("rta_ex1")
    code, told = _run(capsys, "round", problem, "--base", "50")
    assert (code, told["protects"], told["steps"], told["base"]) == (0, True, 1, "50")
    assert "7;50" in told["table"]
    code, told = _run(capsys, "round", problem, "--base", "5", "--output", tmp_path / "table.txt")
    assert (code, [known["protected"] for known in told["known"]]) == (1, [True, False])
    assert main(["round", str(problem), "--base", "5"]) == 1
    assert "11: outsider knows [36, 44], needs [35.294, 44.706]" in capsys.readouterr().err


def test_intervals_are_written_for_hidden_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, pattern = instance_file("rta_ex1"), tmp_path / "pattern"
    _run(capsys, "solve", problem, "--output", pattern)
    code, told = _run(capsys, "intervals", problem, "--pattern", pattern)
    assert (code, told["hidden"], told["unit"]) == (0, 4, "1")
    assert {"0;300;;", "7;;0;50"} <= set(told["table"].splitlines())
    code, told = _run(capsys, "intervals", problem)
    assert (code, "exposes" in told["error"]) == (2, True)


def test_what_is_impossible_is_told_with_its_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "p.jj"
    cells = ["0 60 1 z 60 60 0 0 0 T", *(f"{k} 20 1 u 15 25 5 5 0 {name}" for k, name in enumerate("abc", 1))]
    problem.write_text("\n".join(["0", "4", *cells, "1", "0 4 : 0 (-1) 1 (1) 2 (1) 3 (1)", ""]))
    code, told = _run(capsys, "adjust", problem)
    assert (code, told["status"], told["conflict"]["cells"]) == (3, "infeasible", ["a", "b", "c"])
    assert (told["conflict"]["spelled"], told["conflict"]["kept"]) == (["T = a + b + c"], ["T"])
    assert main(["adjust", str(problem)]) == 3
    assert "cells a, b, c can't change together by T = a + b + c" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["adjust", "--output", "table.xls"],
        ["adjust", "--output", "table"],
        ["adjust", "--unit", "0"],
        ["adjust", "--time-limit", "-1"],
        ["round", "--base", "x"],
        ["round", "--base", "5", "--threads", "0"],
        ["intervals", "--output", "table.jj"],
        ["intervals", "--pattern", "nowhere"],
        ["adjust", "--output", "no folder/table.csv"],
    ],
)
def test_mistakes_end_in_one_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command, *options = words
    code, told = _run(capsys, command, instance_file("rta_ex1"), *options)
    assert (code, list(told)) == (2, ["error"])
