"""Instances check themselves at birth, and JJ and case files say what they mean."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from brute import random_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from solver import InputError, Insider, Instance, MultipleInputError
from solver.formats.case import format_case, read_case
from solver.formats.jj import format_jj, parse_jj, write_jj

RELATION = [[1.0, -1.0, -1.0]]


def _instance(**changes: object) -> Instance:
    parts: dict = {"value": [10.0, 4.0, 6.0], "relations": RELATION, "status": ["s", "u", "s"]}
    return Instance.from_arrays(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": [10.0, 4.0, 6.5]}, "relation 0: -0.5"),
        ({"value": [np.nan, 4.0, 6.0]}, "value is not finite"),
        ({"weight": [1, -1, 1]}, "weight"),
        ({"lower_bound": [0, 5, 0]}, "cell 1"),
        ({"upper_bound": [9, 9, 9]}, "upper_bound is below"),
        ({"upl": [0, -1, 0]}, "upl"),
        ({"spl": [0, np.inf, 0]}, "spl"),
        ({"names": ["a", "a", "b"]}, "names must differ"),
        ({"status": [0, 1, 7]}, "status"),
        ({"insiders": [Insider("x", [0], [2], [1.0], [1.0], [0.0])]}, "not hidden in every pattern"),
    ],
)
def test_what_is_wrong_cannot_be_born(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _instance(**changes)


def test_an_insider_cannot_be_kept_from_what_it_knows() -> None:
    with pytest.raises(InputError, match="knows cell 1"):
        Insider("x", [1], [1], [1.0], [1.0], [0.0])


def test_a_tolerance_accepts_what_does_not_add_up() -> None:
    assert _instance(value=[10.0, 4.0, 6.5], tolerance=0.5).tolerance == 0.5


def test_decimals_add_up_exactly_where_doubles_do_not() -> None:
    values = ["136545.3", "81234.7", "55310.6"]
    text = "0\n3\n" + "".join(f"{k} {v} 1 s 0 1e9 0 0 0\n" for k, v in enumerate(values))
    text += "1\n0 3 : 0 (-1) 1 (1) 2 (1)\n"
    assert parse_jj(text).exact(0) == Fraction("136545.3")


def test_a_cent_missing_among_thirteen_digits_is_told() -> None:
    values = ["1234567890123.46", "1000000000000.01", "234567890123.44"]
    text = "0\n3\n" + "".join(f"{k} {v} 1 s 0 1e20 0 0 0\n" for k, v in enumerate(values))
    with pytest.raises(InputError, match=r"relation 0: -0\.01"):
        parse_jj(text + "1\n0 3 : 0 (-1) 1 (1) 2 (1)\n")


def test_arrays_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError):
        _instance().value[0] = 1.0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_files_go_round(seed: int) -> None:
    instance = random_instance(seed)
    copies = [Instance.from_case(_json(format_case(instance)))]
    if not instance.insiders:
        copies.append(parse_jj(format_jj(instance)))
    for copy in copies:
        for key in ("value", "weight", "lower_bound", "upper_bound", "lpl", "upl", "spl", "status", "rhs"):
            assert (getattr(copy, key) == getattr(instance, key)).all(), key
        assert (copy.matrix.toarray() == instance.matrix.toarray()).all()
        assert [i.known.tolist() for i in copy.insiders] == [i.known.tolist() for i in instance.insiders]


def test_gzip_or_not(tmp_path: Path) -> None:
    for name in ("a.jj", "a.jj.gz", "a.csp"):
        write_jj(_instance(names=["total", "one", "the other"]), tmp_path / name)
        assert Instance.from_jj(tmp_path / name).names == ("total", "one", "the other")
    assert gzip.decompress((tmp_path / "a.jj.gz").read_bytes()) == (tmp_path / "a.jj").read_bytes()


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (2, "three", "number of cells"),
        (3, "0 10 1 q 0 20 0 0 0", "no status “q”. Use one of"),
        (4, "1 4 1 u 0 20 0 0", "9 fields"),
        (5, "2 six 1 s 0 20 0 0 0", "value is no number: “six”"),
        (7, "0 3 : 0 (1) 1 (-1) 9 (-1)", "cell 9"),
        (7, "0 2 : 0 (1) 1 (-1) 2 (-1)", "announces 2"),
        (7, "0 3 0 (1) 1 (-1) 2 (-1)", "no relation. Write rhs"),
    ],
)
def test_a_wrong_line_is_named(line: int, text: str, message: str) -> None:
    lines = format_jj(_instance()).splitlines()
    lines[line - 1] = text
    with pytest.raises(InputError, match=message) as caught:
        parse_jj("\n".join(lines), "problem.jj")
    assert (caught.value.file, caught.value.line) == ("problem.jj", line)


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("0 10 1 s 0 9 0 0 0", 3, "upper_bound is below the value"),
        ("0 inf 1 s 0 20 0 0 0", 3, "value is not finite"),
        ("0 10 -1 s 0 20 0 0 0", 3, "weight is not a finite number"),
        ("0 10 1 s 0 20 -5 0 0", 3, "lpl is not a finite number"),
    ],
)
def test_a_number_that_cannot_be_is_told_with_its_line_and_what_to_do(
    text: str, line: int, cause: str
) -> None:
    lines = format_jj(_instance()).splitlines()
    lines[line - 1] = text
    with pytest.raises(InputError, match=f"^problem.jj:{line}, cell 0: {cause}.* Give ") as caught:
        parse_jj("\n".join(lines), "problem.jj")
    assert caught.value.line == line


def test_all_mistakes_of_a_file_are_told_in_one_go() -> None:
    lines = format_jj(_instance()).splitlines()
    lines[2], lines[3], lines[6] = "0 ten 1 q 0 20 0 0 0", lines[4], "0 one : 0 (1)"
    with pytest.raises(MultipleInputError) as caught:
        parse_jj("\n".join(lines), "problem.jj")
    assert [problem.line for problem in caught.value.problems] == [3, 3, 5, 7]
    assert all(problem.remedy for problem in caught.value.problems)
    assert "that of line 4 too" in str(caught.value)
    with pytest.raises(MultipleInputError, match="the file ends where a relation should be") as caught:
        parse_jj("\n".join(lines[:6]), "problem.jj")
    assert len(caught.value.problems) == 4


def test_a_file_of_something_else_is_not_told_line_by_line() -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_jj("0\n100000\n" + "a b\n" * 100_000, "novel.jj")
    assert len(caught.value.problems) <= 51


def test_an_empty_file_is_told_as_one() -> None:
    with pytest.raises(
        InputError, match=r"^empty\.jj:1: the file ends where the first line, 0, should be\. Give"
    ):
        parse_jj("", "empty.jj")


def test_files_that_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "cut.jj.gz").write_bytes(gzip.compress(format_jj(_instance()).encode())[:40])
    (tmp_path / "short.jj").write_text("\n".join(format_jj(_instance()).splitlines()[:4]))
    (tmp_path / "case.json").write_text('{"cells": [')
    for name in ("cut.jj.gz", "short.jj", "absent.jj"):
        with pytest.raises(InputError, match=name):
            Instance.from_jj(tmp_path / name)
    with pytest.raises(InputError, match="not JSON"):
        read_case(tmp_path / "case.json")


def _json(text: str) -> dict:
    import json

    return json.loads(text)
