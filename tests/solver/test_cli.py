"""The command line on real files: solve, audit, explain, convert, and what it answers to mistakes."""

from __future__ import annotations

import argparse
import json
import re
import signal
from itertools import count
from pathlib import Path

import pytest
from shared import instance_file

from solver.__main__ import _Bar, _parser, main
from solver.formats.jj import write_jj
from solver.generate import generate


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    code = main([str(argument) for argument in (*arguments, "--json")])
    return code, json.loads(capsys.readouterr().out)


def test_solve_audit_explain_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, pattern = instance_file("rta_ex1"), tmp_path / "pattern.txt"
    code, solved = _run(capsys, "solve", problem, "--method", "exact", "--output", pattern)
    assert code == 0
    assert {"status", "cost", "lower_bound", "gap", "secondaries", "exposures", "method", "seconds"} <= set(
        solved
    )
    assert (solved["status"], solved["cost"], solved["lower_bound"], solved["gap"]) == (
        "optimal",
        5333,
        5333,
        0,
    )
    code, audited = _run(capsys, "audit", problem, "--pattern", pattern)
    assert code == 0
    assert audited["ok"]
    assert {cell["cell"] for cell in audited["cells"]} == set(pattern.read_text().split())
    code, exposed = _run(capsys, "audit", problem)
    assert code == 1
    assert exposed["exposures"]
    code, explained = _run(
        capsys, "explain", problem, "--pattern", pattern, "--cell", solved["secondaries"][0]
    )
    assert code == 0
    assert explained["necessary"]
    assert explained["relations"]
    assert main(["convert", str(problem), str(tmp_path / "copy.json")]) == 0
    capsys.readouterr()
    assert _run(capsys, "solve", tmp_path / "copy.json")[1]["cost"] == 5333


@pytest.mark.parametrize(
    ("relation", "spelled"),
    [
        ("0 3 : 0 (-1) 1 (1) 2 (1)", "total = a + b"),
        ("0 3 : 0 (1) 1 (-1) 2 (-1)", "a + b = total"),
        ("-2 3 : 0 (-1) 1 (1) 3 (1)", "total = a + c + 2"),
        ("1 2 : 1 (1) 3 (-0.5)", "0.5 · c + 1 = a"),
        ("4 1 : 1 (1)", "4 = a"),
    ],
)
def test_an_explanation_names_the_cells_of_its_relations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], relation: str, spelled: str
) -> None:
    cells = [
        "0 12 12 z 0 99 0 0 0 total",
        "1 4 4 u 0 99 1 1 0 a",
        "2 8 8 s 0 99 0 0 0 b",
        "3 6 6 s 0 99 0 0 0 c",
    ]
    (tmp_path / "p.jj").write_text("\n".join(["0", "4", *cells, "1", relation, ""]))
    (tmp_path / "hidden").write_text("a\n")
    words = ["explain", str(tmp_path / "p.jj"), "--pattern", str(tmp_path / "hidden"), "--cell", "a"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "a is in [4, 4]" in told
    assert "elation" not in told
    hidden, shown = ("a\nb\n", "b") if "2 (" in relation else ("a\nc\n", "c")
    (tmp_path / "hidden").write_text(hidden)
    assert main([*words[:-1], shown]) == 0
    assert f"  Relation 0: {spelled}\n" in capsys.readouterr().out


def test_whole_amounts_are_written_without_decimals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units = tmp_path / "units.csv"
    units.write_text("r;v\nA;61\nA;61\nB;20\nB;22\nB;31.5\nC;7\nC;8\nC;9\n")
    assert main(["protect", str(units), "--dims", "r", "--value", "v", "--rule", "freq<3"]) == 0
    header, *rows = (line.split(";") for line in capsys.readouterr().out.splitlines())
    values = {row[0]: row[header.index("value")] for row in rows}
    assert values == {"Total": "219.5", "A": "122", "B": "73.5", "C": "24"}
    assert not [field for row in rows for field in row if field.endswith(".0")]


def test_levels_out_of_reach_are_clipped_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "reach.jj"
    problem.write_text(
        "0\n3\n0 10 10 s 0 99 0 0 0\n1 4 4 u 0 99 5 2 0\n2 6 6 s 0 99 0 0 0\n1\n0 3 : 0 (-1) 1 (1) 2 (1)\n"
    )
    code, refused = _run(capsys, "solve", problem)
    assert (code, refused["status"], refused["obstacles"][0]["cell"]) == (3, "infeasible", "1")
    code, clipped = _run(capsys, "solve", problem, "--clip-levels")
    assert (code, clipped["status"], clipped["clipped"]) == (0, "optimal", ["1"])


def test_mistakes_are_told_with_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem = tmp_path / "bad.jj"
    problem.write_text("0\n1\n0 ten 1 u 0 20 0 0 0\n0\n")
    code, answer = _run(capsys, "solve", problem)
    assert code == 2
    assert answer["error"].endswith(
        "bad.jj:3, cell 0: value is no number: “ten”. Write a number, with a point."
    )
    problem.write_text("0\n1\n0 10 1 u 0 20 0 0 0\n1\n0 one : 0 (1)\n")
    code, answer = _run(capsys, "solve", problem)
    assert (code, answer["error"].partition("bad.jj:")[2]) == (
        2,
        "5: not a number: 'one'. Write rhs k : id (coef) id (coef) ….",
    )
    (tmp_path / "pattern").write_text("7\n99\n")
    code, answer = _run(capsys, "audit", instance_file("rta_ex1"), "--pattern", tmp_path / "pattern")
    assert code == 2
    assert "99" in answer["error"]


def test_what_insiders_find_out_is_told_on_demand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [
        {"id": name, "value": value, "status": status, "lb": 0, "lpl": level, "upl": level}
        for name, value, status, level in (
            ("T", 225, "z", 0),
            ("a", 50, "u", 5),
            ("b", 30, "u", 3),
            ("c", 145, "s", 0),
        )
    ]
    insiders = [{"name": "owner of a", "knows": ["a"], "targets": [{"cell": "b", "lpl": 3, "upl": 3}]}]
    case = {
        "cells": cells,
        "equations": [{"total": "T", "parts": [[1, "a"], [1, "b"], [1, "c"]]}],
        "insiders": insiders,
    }
    (tmp_path / "case.json").write_text(json.dumps(case), "utf-8")
    for pattern, code, interval in (("", 1, [30, 30]), ("c\n", 0, [0, 175])):
        (tmp_path / "pattern").write_text(pattern, "utf-8")
        found = _run(capsys, "audit", tmp_path / "case.json", "--pattern", tmp_path / "pattern", "--insiders")
        assert found[0] == code
        (known,) = found[1]["insiders"]
        assert (known["attacker"], known["cell"], known["interval"]) == ("owner of a", "b", interval)
        assert known["required"] == [27, 33]
    assert main(["audit", str(tmp_path / "case.json"), "--insiders"]) == 1
    assert "b: owner of a knows [30, 30]" in capsys.readouterr().out


ALONE = "r;v\n" + "".join(
    f"{region};{v}\n" for region, v in (("A", 90), ("B", 1), ("B", 2), ("C", 3), ("C", 4))
)


def test_a_problem_with_insiders_is_written_as_a_case_and_the_table_isnt_lost_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    units, table = tmp_path / "units.csv", tmp_path / "table.csv"
    units.write_text(ALONE)
    words = ("protect", units, "--dims", "r", "--value", "v", "--rule", "freq<3", "--out", table)
    code, refused = _run(capsys, *words, "--problem", tmp_path / "problem.jj")
    assert (code, "insiders" in refused["error"], ".json" in refused["error"]) == (2, True, True)
    assert "primary" in table.read_text()
    code, done = _run(capsys, *words, "--problem", tmp_path / "problem.json")
    assert (code, _run(capsys, "solve", tmp_path / "problem.json")[1]["cost"]) == (0, done["cost"])


def test_protecting_without_any_rule_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    units = tmp_path / "units.csv"
    units.write_text(ALONE)
    words = ("protect", units, "--dims", "r", "--value", "v")
    told = "nothing is sensitive"
    assert any(told in notice for notice in _run(capsys, *words)[1]["notices"])
    assert not any(told in notice for notice in _run(capsys, *words, "--rule", "freq<3")[1]["notices"])


@pytest.mark.parametrize(
    "command", ["solve", "audit", "explain", "adjust", "round", "intervals", "convert", "protect", "generate"]
)
def test_help_says_what_file_a_command_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert ("a JJ file (.jj, .csp, .gz)" in told) == (command not in {"convert", "protect", "generate"})


def _commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


@pytest.mark.parametrize("command", _commands())
def test_help_says_what_every_option_does_and_what_holds_without_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    for action in _commands()[command]._actions:
        assert action.help, action.dest
        if action.required or action.dest == "help":
            continue
        assert action.option_strings[0] in printed
        assert "default: " in action.help, action.option_strings
        if action.default is not None and action.default is not False and action.default != []:
            assert f"default: {action.default})" in printed


def test_names_with_blanks_are_told_apart_and_an_interrupted_search_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tmp_path / "named.jj"
    lines = [
        "0",
        "9",
        *(f"{k} {v} 1 s 0 99 0 0 0 cell {k}" for k, v in enumerate((40, 20, 20, 20, 5, 15, 20, 15, 5))),
    ]
    lines[6] = "4 5 1 u 0 99 2 2 0 cell 4"
    parts = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8)]
    lines += ["6", *(f"0 3 : {a} (-1) {b} (1) {c} (1)" for a, b, c in parts)]
    problem.write_text("\n".join(lines) + "\n")
    assert main(["solve", str(problem)]) == 0
    assert re.search(r"^secondaries: cell \d, cell \d, cell \d$", capsys.readouterr().out, re.MULTILINE)

    reports = count()

    def interrupt(self: object, progress: object) -> None:
        # A second interrupt ends all.
        if next(reports) == 0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(_Bar, "update", interrupt)
    write_jj(generate("random", "12x12", primaries=12), tmp_path / "larger.jj")
    assert main(["solve", str(tmp_path / "larger.jj")]) == 0
    assert "interrupted:" in capsys.readouterr().out
