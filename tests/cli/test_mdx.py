"""The analyst's commands: MDX on the raw cube."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.cli.test_commands import assert_words, celosia


@pytest.fixture(scope="module")
def firms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mdx") / "firms"
    assert celosia("init", str(folder)).returncode == 0
    return folder


def test_answer_as_json(firms: Path, tmp_path: Path) -> None:
    file = tmp_path / "query.mdx"
    file.write_text(
        "-- the two largest towns\n"
        "WITH MEMBER [Measures].[Mean] AS [Measures].[Turnover] / [Measures].[Firms], "
        "FORMAT_STRING = '#,##0.00'\n"
        "SELECT {[Measures].[Firms], [Measures].[Mean]} ON COLUMNS,\n"
        "TopCount([Territory].[Town].Members, 2, [Measures].[Firms]) "
        "DIMENSION PROPERTIES [Territory].MEMBER_KEY, PARENT_UNIQUE_NAME ON ROWS\n"
        "FROM Firms WHERE [Activity].[Trade]"
    )
    done = celosia("mdx", str(firms), str(file), "--format", "json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    with (firms / "data" / "firms.csv").open(encoding="utf-8") as table:
        trade = [row for row in csv.DictReader(table) if row["activity"] == "Trade"]
    towns: dict[str, list[float]] = {}
    for row in trade:
        towns.setdefault(row["town"], []).append(float(row["turnover"]))
    largest = sorted(towns, key=lambda town: -len(towns[town]))[:2]
    assert [member["unique_name"] for member in answer["slicer"]] == ["[Activity].[Activity].&[Trade]"]
    rows = answer["axes"][1]
    assert rows["hierarchies"] == ["[Territory]"]
    members = [position["members"][0] for position in rows["positions"]]
    assert [member["caption"] for member in members] == largest
    assert {member["level"] for member in members} == {"[Territory].[Town]"}
    assert [member["properties"]["MEMBER_KEY"] for member in members] == largest
    assert all(member["parent"] for member in members)
    assert all(member["properties"]["PARENT_UNIQUE_NAME"] == member["parent"] for member in members)
    means = [sum(towns[town]) / len(towns[town]) for town in largest]
    expected = [part for town, mean in zip(largest, means, strict=True) for part in (len(towns[town]), mean)]
    assert [cell["ordinal"] for cell in answer["cells"]] == [0, 1, 2, 3]
    assert [cell["value"] for cell in answer["cells"]] == pytest.approx(expected)
    assert [cell["formatted_value"] for cell in answer["cells"]] == [
        format(value, ",.2f" if place % 2 else ",.0f") for place, value in enumerate(expected)
    ]


def test_answer_as_a_table(firms: Path) -> None:
    query = (
        "SELECT {[Measures].[Firms]} ON 0, "
        "{[Territory].[Region].[North]} * {[Activity].[Activity].Members} ON 1 FROM Firms"
    )
    done = celosia("mdx", str(firms), query)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["Firms"]
    assert [line.split()[:2] for line in lines[1:3]] == [["North", "Building"], ["North", "Farming"]]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT FROM Firm", "1:13: There is no cube Firm."),
        ("SELECT [Territory].[Oka] ON 0 FROM Firms", "1:8"),
        ("SELECT {[Activity].Members} DIMENSION PROPERTIES colour ON 0 FROM Firms", "colour"),
        ("SELECT FROM", "name of a cube"),
        ("nowhere.mdx", "no file nowhere.mdx"),
    ],
)
def test_wrong_queries_are_said_with_their_place(firms: Path, query: str, said: str) -> None:
    assert_words(celosia("mdx", str(firms), query), 2, said)


def test_formulas_are_explained(firms: Path) -> None:
    query = (
        "WITH MEMBER [Measures].[Twice] AS 2 * [Measures].[Turnover] "
        "MEMBER [Measures].[Self] AS [Measures].[Self] "
        "SELECT {[Measures].[Twice], [Measures].[Turnover per firm]} ON 0 FROM Firms"
    )
    done = celosia("explain-formula", str(firms), query)
    assert done.returncode == 0, done.stderr
    assert "= 2 · [Measures].[Turnover]" in done.stdout
    assert "(r - 0.05) · [Measures].[Firms] ≤ [Measures].[Turnover]" in done.stdout
    assert "refers to itself" in done.stdout


def test_a_mondrian_schema_is_taken_over(tmp_path: Path) -> None:
    schema = tmp_path / "schema.xml"
    schema.write_text(
        '<Schema><Cube name="Sales"><Table name="sales"/>'
        '<Dimension name="Shop"><Hierarchy><Level name="Shop" column="shop"/></Hierarchy></Dimension>'
        '<Measure name="Units" column="units" aggregator="sum"/></Cube><Role name="boss"/></Schema>'
    )
    done = celosia(
        "import-schema", str(schema), "--out", "made", "--url", "sqlite:///shop.db", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "Wrote made/sales.toml" in done.stdout
    assert "schema.xml:1: Role boss is left" in done.stdout
    assert 'url = "sqlite:///shop.db"' in (tmp_path / "made" / "sales.toml").read_text()
    again = celosia("import-schema", str(schema), "--out", "made", folder=tmp_path)
    assert_words(again, 2, "sales.toml already")


def test_cubes_are_asked_before_there_are_rules_or_sheets(firms: Path, tmp_path: Path) -> None:
    """As after an import: what isn't there yet has nothing to do with the raw data."""
    for part in ("cubes", "data"):
        shutil.copytree(firms / part, tmp_path / part)
    query = "WITH MEMBER [Measures].[X] AS 2 * [Measures].[Firms] SELECT {[Measures].[X]} ON 0 FROM Firms"
    for text in (
        "",
        'languages = ["es", "en"]\ntitle.es = "Empresas"\n[confidentiality]\nzeros = "perhaps"\n',
    ):
        if text:
            (tmp_path / "publication.toml").write_text(text)
        done = celosia("mdx", str(tmp_path), query)
        assert done.returncode == 0, done.stderr
        assert celosia("explain-formula", str(tmp_path), query).returncode == 0
    assert_words(celosia("check", str(tmp_path)), 2, "zeros")
    (tmp_path / "cubes" / "firms.toml").write_text('name = "Firms"\n[facts]\nfile = "none.csv"\n')
    assert_words(celosia("mdx", str(tmp_path), query), 2, "none.csv")


def test_parameters_and_languages(firms: Path) -> None:
    query = "SELECT {@place} ON 0 FROM Firms"
    done = celosia("mdx", str(firms), query, "--format", "json", "--set", "place=[Territory].[All]")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    (position,) = answer["axes"][0]["positions"]
    assert position["members"][0]["unique_name"] == "[Territory].[All]"
    for more, words in (
        ((), "Parameter @place has no value"),
        (("--set", "place"), "--set name=[Member]"),
        (("--set", "place=[Territory].[All]", "--language", "fr"), "isn't in fr"),
    ):
        assert_words(celosia("mdx", str(firms), query, *more), 2, words)
    formula = "WITH MEMBER [Measures].[X] AS ([Measures].[Firms], @place) * 2 SELECT [X] ON 0 FROM Firms"
    told = celosia("explain-formula", str(firms), formula, "--set", "place=[Territory].[All]")
    assert "linear" in told.stdout
