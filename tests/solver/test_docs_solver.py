"""The page for the statistician says what happens."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from solver.__main__ import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "solver.md"


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (result.failed, result.attempted > 20) == (0, True), capsys.readouterr().out
    console = re.findall(r"```console\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    steps = re.findall(r"\$ python -m solver (.*)\n((?:(?!\$).*\n)*)", "".join(console))
    assert len(steps) == 8
    for command, expected in steps:
        capsys.readouterr()
        assert main(shlex.split(command)) == 0, command
        assert expected in capsys.readouterr().out
