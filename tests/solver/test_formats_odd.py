"""Text files as offices' programs write them, and what is told when they can't be read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from solver import Instance
from solver.errors import InputError, MultipleInputError
from solver.formats.hrc import parse_hrc, read_codelist
from solver.formats.rda import parse_rda, read_microdata, read_rda
from solver.formats.tabular import parse_delimited, read_delimited, read_table
from solver.generate import generate
from solver.protect import protect
from solver.rules import Dominance, PPercent, Threshold


@pytest.mark.parametrize(
    "text",
    [
        "c;v;\na;1;\nb;2;\n",
        "c;v\na;1;\nb;2;;;\n",
        "c;v;;\na;1\nb;2\n",
        "c;v\r\na;1\r\nb;2\r\n",
        "c;v\ra;1\rb;2",
        "sep=;\nc;v\na;1\nb;2\n",
        "SEP=|\r\nc|v\r\na|1\r\nb|2\r\n",
        "\n\n c ; v \n\na;1\n\nb;2\n\n",
        '"c";"v"\n"a";"1"\n"b";"2"\n',
        "c\tv\na\t1\nb\t2\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_one_table_however_it_is_written(text: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    table = read_table(tmp_path / "t.csv", dims=["c"], value="v")
    assert (table.codes, table.value.tolist()) == ((("a", "b"),), [1.0, 2.0])


def test_lines_are_counted_behind_a_separator_line() -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_delimited("sep=;\na;b\n1;2;3\n")
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told_and_read_when_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("c;v\na;1\n".encode(encoding))
    with pytest.raises(InputError, match="utf-16"):
        read_delimited(tmp_path / "t.csv")
    assert read_delimited(tmp_path / "t.csv", encoding=encoding).columns == (("a",), ("1",))


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n"])
def test_a_separator_is_one_character(separator: str) -> None:
    with pytest.raises(InputError, match="single character"):
        parse_delimited("a;b\n1;2\n", separator=separator)


@pytest.mark.parametrize(("wrong", "right"), [("Region", "region"), ("valeu", "value"), ("VALUE", "value")])
def test_the_nearest_column_is_told(wrong: str, right: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("region;value\na;1\n", "utf-8")
    with pytest.raises(InputError, match=f"Did you mean {right}"):
        read_table(tmp_path / "t.csv", dims=["region"], value=wrong)
    with pytest.raises(InputError, match=f"Did you mean {right}"):
        protect({"region": ["a"], "value": [1]}, ["region"], value=wrong)


def test_what_to_do_about_a_text_that_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c;v\na;1.5\nb;1,5\nc;x\n", "utf-8")
    with pytest.raises(MultipleInputError) as caught:
        read_table(tmp_path / "t.csv", dims=["c"], value="v")
    told = {problem.line: problem.remedy for problem in caught.value.problems}
    assert "same decimal mark" in told[3]
    assert "where the number is missing" in told[4]


@pytest.mark.parametrize(
    ("text", "mark", "tree"),
    [
        ("a\n@@b\n@@@@c\nd\n", "@@", {"Total": {"a": {"b": {"c": {}}}, "d": {}}}),
        ("a\n\tb\n\t\tc\nd\n", "\t", {"Total": {"a": {"b": {"c": {}}}, "d": {}}}),
        ("Total\n@a\n@@b\n@c\n", None, {"Total": {"a": {"b": {}}, "c": {}}}),
        ("a\r\n@ b\r\nc  \r\n", None, {"Total": {"a": {"b": {}}, "c": {}}}),
    ],
)
def test_level_marks(text: str, mark: str | None, tree: dict[str, Any]) -> None:
    assert parse_hrc(text, mark).tree() == tree


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a\n  @b\n", 2, "blanks before the level mark"),
        ("a\n\tb\n", 2, "begin with a tab"),
        ("a\nTotal\n", 2, "what the total above all codes is called"),
        ("Total\n@a\nb\n", 1, "not all others lie below it"),
        ("a\n@@b\n@@@@c\n", 2, "name them as its mark"),
    ],
)
def test_levels_are_never_guessed(text: str, line: int, told: str) -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_hrc(text, file="x.hrc")
    assert caught.value.problems[0].line == line
    assert told in str(caught.value)


def test_codes_of_a_list_may_hold_separators(tmp_path: Path) -> None:
    (tmp_path / "a.cdl").write_text('"1,5",x\n 01 , "y, z"\n1\n2;"say ""hi"""\n', "utf-8")
    assert list(read_codelist(tmp_path / "a.cdl")) == ["1,5", "01", "1", "2"]
    (tmp_path / "b.cdl").write_text('"1,x\n2,y\n', "utf-8")
    with pytest.raises(InputError, match="quote does not end"):
        read_codelist(tmp_path / "b.cdl")


def test_metadata_tags() -> None:
    text = '# made by hand\n<SEPARATOR> "{}"\nA\n <RECODABLE>\n <MISSING> "98" "99"\n// the end\n'
    for written, separator in {"\\t": "\t", "TAB": "\t", "\t": "\t", ";": ";"}.items():
        metadata = parse_rda(text.format(written))
        assert (metadata.separator, len(metadata.variables)) == (separator, 1)
        assert metadata.variables[0].missing == ("98", "99")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A 1 2\n <RECODABEL>\n", "Did you mean RECODABLE"),
        ("A 1 2\n <RECODABLE\n", "is no tag"),
        ("A 1 0\n <RECODABLE>\n", "0 characters wide"),
    ],
)
def test_metadata_mistakes(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_rda(text)


def test_weights_of_microdata_are_told_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text('<SEPARATOR> ";"\nA\n <RECODABLE>\nW\n <NUMERIC>\n <WEIGHT>\n', "utf-8")
    (tmp_path / "m.asc").write_text("a;1,5\nb;0\nc;-1\n", "utf-8")
    with pytest.raises(MultipleInputError) as caught:
        read_microdata(read_rda(tmp_path / "m.rda"), tmp_path / "m.asc")
    assert [problem.line for problem in caught.value.problems] == [2, 3]


def test_a_total_of_another_name_is_not_silently_a_part() -> None:
    frame = {"r": ["Totaal", "a", "b"], "v": [30, 10, 20]}
    assert any("called like a total" in n for n in protect(frame, ["r"], value="v", rows="cells").notices)
    named = protect(frame, ["r"], value="v", rows="cells", total="Totaal")
    assert not any("called like a total" in notice for notice in named.notices)
    assert len(named.frame["r"]) == 3


def test_nothing_at_all_is_no_table() -> None:
    for rows in ("units", "cells"):
        with pytest.raises(InputError, match="no records"):
            protect({"r": [], "v": []}, ["r"], value="v", rows=rows)


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ("1;u\n", "there is no cell 1. Did you mean 01"),
        ("02;ab;25;29\n", "value of cell 02 is not between its bounds"),
        ("02;c\n", "'c' needs 1 number and has 0"),
        ("02;u;5\n", "'u' needs no numbers and has 1"),
        ("02;e\n", "is no a-priori letter"),
    ],
)
def test_decisions_that_cannot_be_followed_are_told_with_their_line(
    decision: str, told: str, tmp_path: Path
) -> None:
    frame = {"r": ["01", "02"], "v": [10, 20]}
    (tmp_path / "a.hst").write_text("01;s\n" + decision, "utf-8")
    with pytest.raises(InputError, match=told) as caught:
        protect(frame, ["r"], value="v", rows="cells", apriori=tmp_path / "a.hst")
    assert "a.hst:2" in str(caught.value)


@pytest.mark.parametrize("rule", [Threshold, PPercent, lambda n: Dominance(n, 80), lambda k: Dominance(1, k)])
@pytest.mark.parametrize("number", ["3", None, float("nan"), -1, [3]])
def test_numbers_of_rules_are_numbers(rule: Any, number: object) -> None:
    with pytest.raises(InputError):
        rule(number)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"rules": ["freq<3"]}, "is no rule"),
        ({"rules": Threshold(3)}, "list of rules"),
        ({"hierarchies": {"r": 5}}, "the hierarchy of r is 5"),
        ({"dims": ["r", "r"]}, "named twice"),
    ],
)
def test_arguments_of_another_kind(more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        protect({"r": ["a"], "v": [1]}, **{"dims": ["r"], "value": "v", **more})


def test_a_name_may_be_as_long_as_its_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c;v\n" + "x" * 200_000 + ";1\ny;2\n", "utf-8")
    assert len(read_table(tmp_path / "t.csv", dims=["c"], value="v")) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        (b"\x1f\x8b\x08\x00broken", "a broken gzip file"),
        (gzip.compress(b"0\n" * 500, mtime=0)[:-20], "a broken gzip file"),
        (b"0\n2\n\xff\xfe", "not text"),
    ],
)
def test_a_file_that_is_no_jj_file_is_told_in_words(content: bytes | None, told: str, tmp_path: Path) -> None:
    file = tmp_path / "table.jj"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=told) as failed:
        Instance.from_jj(file)
    assert "Errno" not in str(failed.value)
    assert "codec" not in str(failed.value)


@pytest.mark.parametrize("primaries", [0, 26])
def test_a_number_of_primaries_that_there_is_no_room_for_is_told_with_what_there_is(primaries: int) -> None:
    with pytest.raises(InputError, match="Ask for 1 to 25"):
        generate("random", "5x5", primaries=primaries)
