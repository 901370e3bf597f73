"""Formats: round trips, and mistakes told at once with file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.errors import InputError, MultipleInputError
from solver.formats.apriori import Apriori, parse_apriori, read_apriori, write_apriori
from solver.formats.hrc import parse_hrc, parse_tree, read_codelist, read_hierarchy, write_hrc, write_tree
from solver.formats.rda import parse_rda, read_microdata, read_rda, read_tabular, write_rda
from solver.formats.tabular import format_delimited, parse_delimited, read_delimited, read_table, write_table
from solver.formats.text import find_file, parse_numbers
from solver.hierarchy import Hierarchy

CODE = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=6)


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    codes = ["Total", *draw(st.lists(CODE.filter(lambda c: c != "Total"), unique=True, max_size=12))]
    pairs: list[tuple[str | None, str]] = [(None, "Total")]
    pairs += [(codes[draw(st.integers(0, i))], code) for i, code in enumerate(codes[1:])]
    return Hierarchy.from_pairs(pairs)


@given(hierarchies())
def test_hierarchy_round_trips(tmp_path_factory: pytest.TempPathFactory, hierarchy: Hierarchy) -> None:
    directory = tmp_path_factory.mktemp("h")
    write_tree(hierarchy, directory / "h.json")
    assert read_hierarchy(directory / "h.json").tree() == hierarchy.tree()
    if not any(code.startswith(("@", ".")) for code in hierarchy.codes):
        write_hrc(hierarchy, directory / "h.hrc")
        assert read_hierarchy(directory / "h.hrc", mark="@").tree() == hierarchy.tree()


def test_an_hrc_file_refuses_codes_that_it_cannot_carry(tmp_path: Path) -> None:
    with pytest.raises(MultipleInputError) as caught:
        write_hrc(Hierarchy.flat(["@a", "b", ".c"]), tmp_path / "h.hrc")
    assert [problem.cell for problem in caught.value.problems] == ["@a", ".c"]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a\n@@b\n", 2, "2 levels deep"),
        ("a\n@b\n.c\n", 2, "ambiguous level mark"),
        ("a\n@\n", 2, "no code behind"),
        ("@a\n", 1, "ambiguous"),
        ("a\nb\na\n", 3, "a is twice under Total"),
    ],
)
def test_hrc_mistakes_name_the_line(text: str, line: int, told: str) -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_hrc(text, file="x.hrc")
    assert (caught.value.problems[0].line, caught.value.problems[0].file) == (line, "x.hrc")
    assert told in str(caught.value)


def test_hrc_codes_that_trimming_makes_equal() -> None:
    with pytest.raises(InputError, match="without outer blanks"):
        parse_hrc(" 1\n1\n")


def test_an_empty_hrc_file_is_a_total_alone() -> None:
    assert parse_hrc("").tree() == {"Total": {}}


@pytest.mark.parametrize("text", ["[]", '{"a": 3}', '{"a": {}, "a": {}}', "{"])
def test_json_trees_that_are_none(text: str) -> None:
    with pytest.raises(InputError):
        parse_tree(text)


def test_codelist(tmp_path: Path) -> None:
    (tmp_path / "a.cdl").write_text('1,"One, first"\n2,Two\n', encoding="utf-8")
    assert read_codelist(tmp_path / "a.cdl") == {"1": "One, first", "2": "Two"}
    assert read_hierarchy(tmp_path / "a.cdl").tree() == {"Total": {"1": {}, "2": {}}}


def test_hierarchy_from_columns_of_levels() -> None:
    levels = [["A", "A", "B"], ["a1", "a2", "B"]]
    assert Hierarchy.from_levels(levels).tree() == {"Total": {"A": {"a1": {}, "a2": {}}, "B": {}}}


@given(
    st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2), max_size=6),
    st.sampled_from(";,\t|"),
)
def test_delimited_text_round_trips(rows: list[list[str]], separator: str) -> None:
    rows = [["x", *row] for row in rows]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    text = format_delimited(["a", "b", "c"], columns, separator=separator)
    read = parse_delimited(text, separator=separator)
    assert [list(column) for column in read.columns] == columns


def test_lines_are_counted_through_quoted_line_ends() -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_delimited('a,b\n"x\ny",1\nz\n', file="t.csv")
    assert [(p.file, p.line) for p in caught.value.problems] == [("t.csv", 4)]


@pytest.mark.parametrize("text", ['a,b\n"x,1\n', 'a,b\n"x"y,1\n', "a,a\n1,2\n", ""])
def test_delimited_text_that_is_none(text: str) -> None:
    with pytest.raises(InputError):
        parse_delimited(text)


@pytest.mark.parametrize(
    ("texts", "values", "wrong"),
    [
        (["1,5", "2", ".", ""], [1.5, 2, 0, 0], [False] * 4),
        (["1.5", "1e3", "-", "NA"], [1.5, 1000, 0, 0], [False] * 4),
        (["1.234,5", "2"], [0, 2], [True, False]),
        (["1 000", "x", "inf", "1e999"], [0, 0, 0, 0], [True] * 4),
    ],
)
def test_numbers(texts: list[str], values: list[float], wrong: list[bool]) -> None:
    numbers = parse_numbers(texts)
    assert numbers.value.tolist() == values
    assert numbers.wrong.tolist() == wrong


def test_numbers_keep_their_decimals() -> None:
    assert parse_numbers(["1234567890123,4567890123"]).decimals == ("1234567890123.4567890123",)


def test_files_are_found_whatever_their_case_and_old_directory(tmp_path: Path) -> None:
    (tmp_path / "Size.HRC").write_text("a\n", encoding="utf-8")
    assert find_file(tmp_path, "C:\\data\\size.hrc").name == "Size.HRC"
    (tmp_path / "SIZE.hrc").write_text("a\n", encoding="utf-8")
    with pytest.raises(InputError, match="could be"):
        find_file(tmp_path, "size.hrc")
    assert find_file(tmp_path, "SIZE.hrc").name == "SIZE.hrc"


def test_encoding_is_named_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("reg;n\nBúrgos;1\nCádiz;2\n".encode("cp1252"))
    with pytest.raises(InputError, match="cp1252") as caught:
        read_delimited(tmp_path / "t.csv")
    assert caught.value.line == 2
    assert read_delimited(tmp_path / "t.csv", encoding="cp1252").columns[0] == ("Búrgos", "Cádiz")
    (tmp_path / "u.csv").write_bytes("reg;n\nÁvila;1\n".encode("utf-16"))
    assert read_delimited(tmp_path / "u.csv").columns[0] == ("Ávila",)
    with pytest.raises(InputError, match="cannot be read"):
        read_delimited(tmp_path / "none.csv")


def test_table_round_trip(tmp_path: Path) -> None:
    text = "r;v;f;t1;c;l;u;s\nA;1,50;3;1;7;0,5;1;U\nB;0;;;1;;;S\nC;2,25;4;2;1;;;P\n"
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(
        tmp_path / "t.csv",
        dims=["r"],
        value="v",
        count="f",
        status="s",
        top=["t1"],
        cost="c",
        lpl="l",
        upl="u",
    )
    assert table.status == ("u", "empty", "z")
    for decimal in ".,":
        write_table(table, tmp_path / "w.csv", decimal=decimal)
        again = read_table(
            tmp_path / "w.csv",
            dims=["r"],
            value="value",
            count="freq",
            status="status",
            top=["top1"],
            cost="cost",
            lpl="lpl",
            upl="upl",
        )
        assert again.codes == table.codes
        assert again.status == table.status
        assert again.decimals == table.decimals
        for name in ("value", "count", "top", "weight", "lpl", "upl"):
            assert np.array_equal(getattr(again, name), getattr(table, name))


def test_table_mistakes_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("r;v;f;s\nA;x;3;U\nA;2;1.5;S\nB;3;;Q\nC;;2;S\n", encoding="utf-8")
    with pytest.raises(MultipleInputError) as caught:
        read_table(tmp_path / "t.csv", dims=["r"], value="v", count="f", status="s")
    found = {(p.line, p.cause.split(";")[0]) for p in caught.value.problems}
    assert {line for line, _ in found} == {2, 3, 4, 5}
    assert len(found) == 6


MICRO = """REG 1 2 99
  <RECODEABLE>
  <TOTCODE> "All"
  <HIERARCHICAL>
  <HIERCODELIST> "C:\\old\\reg.hrc"
  <HIERLEADSTRING> "@"
NACE 4 3
  <RECODABLE>
  <HIERARCHICAL>
  <HIERLEVELS> 1 2
W 8 3
  <NUMERIC>
  <WEIGHT>
  <DECIMALS> 1
OWN 12 1
  <HOLDING>
ASK 14 1
  <REQUEST> "1" "2"
V 16 5
  <NUMERIC>
"""


def test_microdata_of_fixed_columns(tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text(MICRO, encoding="utf-8")
    (tmp_path / "REG.hrc").write_text("N\n@N1\n@N2\nS\n", encoding="utf-8")
    (tmp_path / "m.asc").write_text(
        "N1 A01 1.5 h 1  12.5\n99 A02 2.0 h      7\nS  B01 1.0   2     3\n", "utf-8"
    )
    metadata = read_rda(tmp_path / "m.rda")
    data = read_microdata(metadata, tmp_path / "m.asc")
    assert (data.dims, data.responses) == (("REG", "NACE"), ("W", "V"))
    assert (data.weight, data.holding, data.request) == ("W", "OWN", "ASK")
    assert tuple(data.columns["REG"]) == ("N1", "", "S")
    assert list(data.columns["V"]) == [12.5, 7, 3]
    codes = {dim: [str(code) for code in data.columns[dim]] for dim in data.dims}
    found = metadata.hierarchies(tmp_path, codes)
    assert found["REG"].tree() == {"All": {"N": {"N1": {}, "N2": {}}, "S": {}}}
    assert found["NACE"].tree() == {"Total": {"A": {"A01": {}, "A02": {}}, "B": {"B01": {}}}}


def test_metadata_round_trip(tmp_path: Path) -> None:
    tabular = (
        '<SEPARATOR> ","\n<UNSAFE> "X"\nreg\n <RECODABLE>\n <TOTCODE> "All"\n <DISTANCE> 1 3 5\n'
        " <TRUNCABLE>\nv\n <NUMERIC>\n"
        "c\n <NUMERIC> <COST>\nf\n <FREQUENCY>\nt\n <MAXSCORE>\nl\n <NUMERIC> <LOWERPL>\n"
        "u\n <NUMERIC> <UPPERPL>\ns\n <STATUS>\n"
    )
    for text in (MICRO, tabular):
        metadata = parse_rda(text)
        write_rda(metadata, tmp_path / "w.rda")
        again = read_rda(tmp_path / "w.rda")

        def bare(meta: object) -> object:
            variables = [{k: v for k, v in vars(x).items() if k != "line"} for x in meta.variables]  # type: ignore[attr-defined]
            return variables, meta.separator, meta.unsafe  # type: ignore[attr-defined]

        assert bare(again) == bare(metadata)
    assert "<DISTANCE> 1 3 5" in (tmp_path / "w.rda").read_text("utf-8")


def test_tabular_text_by_metadata(tmp_path: Path) -> None:
    rda = (
        '<SEPARATOR> ","\n<UNSAFE> "X"\nreg\n <RECODABLE>\nv\n <NUMERIC>\n'
        "c\n <NUMERIC> <COST>\nf\n <FREQUENCY>\nt\n <MAXSCORE>\ns\n <STATUS>\n"
    )
    (tmp_path / "t.rda").write_text(rda, encoding="utf-8")
    (tmp_path / "t.tab").write_text("Total,30,1,9,12,S\nA,10,2,2,8,X\nB,20,3,7,12,P\n", encoding="utf-8")
    table = read_tabular(read_rda(tmp_path / "t.rda"), tmp_path / "t.tab")
    assert table.codes == (("Total", "A", "B"),)
    assert table.status == ("s", "u", "z")
    assert table.weight is not None
    assert table.weight.tolist() == [1, 2, 3]
    assert table.top is not None
    assert table.top.tolist() == [[12], [8], [12]]


def test_metadata_mistakes_are_told_at_once() -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_rda("<TOTCODE> x\na\n <WHAT>\n <HIERLEVELS> a\n <CODELIST>\n", file="m.rda")
    assert [p.line for p in caught.value.problems] == [1, 3, 4, 5]
    with pytest.raises(InputError, match="no variable"):
        parse_rda("")


def test_apriori_round_trip(tmp_path: Path) -> None:
    text = "Total;A;u\nN;A;c;25\nN; B ;pl;3;5,5\nS;A;ab;0;100\nS;B;ml;\n"
    entries = parse_apriori(text, dims=2)
    assert [(e.codes, e.action, e.numbers) for e in entries] == [
        (("Total", "A"), "u", ()),
        (("N", "A"), "c", (25.0,)),
        (("N", "B"), "pl", (3.0, 5.5)),
        (("S", "A"), "ab", (0.0, 100.0)),
        (("S", "B"), "ml", ()),
    ]
    write_apriori([Apriori(e.codes, e.action, e.numbers) for e in entries], tmp_path / "a.hst")
    again = read_apriori(tmp_path / "a.hst", dims=2)
    assert [(e.codes, e.action, e.numbers) for e in again] == [
        (e.codes, e.action, e.numbers) for e in entries
    ]


def test_apriori_mistakes_are_told_at_once() -> None:
    with pytest.raises(MultipleInputError) as caught:
        parse_apriori("a;q\na\na;pl;1\na;c;x\na;c;-1\na;ab;5;1\n", dims=1, separator=";", file="a.hst")
    assert [p.line for p in caught.value.problems] == [1, 2, 3, 4, 5, 6]
