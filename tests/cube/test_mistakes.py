"""Bad queries, bad definitions and bad data: one clear answer that names the place."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from app.cube.duckdb import open_cube
from app.cube.port import CubeServer
from app.domain.errors import OperatorError, UserError
from app.domain.publication import CubeDefinition, FactsDefinition, MeasureDefinition
from app.mdx import parse
from tests.cube.office import ROWS, TOWNS, office, write_csv

HEADER = ("year", "month", "town", "sex", "income", "tax", "person", "household")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CubeServer]:
    opened = open_cube(office(tmp_path_factory.mktemp("office")))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "at", "cause"),
    [
        (
            "SELECT [Place].[Getaffe] ON 0 FROM Tax",
            "[Place]",
            r"no \[Place\].\[Getaffe\]. Nearest: .*&\[28002\]",
        ),
        (
            "SELECT [Plaice].Members ON 0 FROM Tax",
            "[Plaice]",
            r"nothing called \[Plaice\]. Nearest: \[Place\]",
        ),
        ("SELECT [Measures].[Incom] ON 0 FROM Tax", "[Measures]", r"Nearest: \[Measures\].\[Income\]"),
        ("SELECT [Place].[Madrid].[Badalona] ON 0 FROM Tax", "[Place]", "has no member"),
        ("SELECT [Time].[01] ON 0 FROM Tax", "[Time]", r"ambiguous: .*&\[2022\]&\[01\], .*&\[2023\]&\[01\]"),
        ("SELECT {[Sex].[W], [Place].[Madrid]} ON 0 FROM Tax", "[Place]", "can't hold members of"),
        ("SELECT Union([Sex].Members, [Place].Members) ON 0 FROM Tax", "MEMBERS_2", "can't hold members of"),
        ("SELECT ([Sex].[W], [Sex].[M]) ON 0 FROM Tax", "[Sex].[M]", "in the tuple twice"),
        ("SELECT [Sex].Members * [Sex].Members ON 0 FROM Tax", "[Sex]", "both sides of a CrossJoin"),
        ("SELECT [Sex].Members ON 0, {[Sex].[W]} ON 1 FROM Tax", "{", "on this axis and on axis 0"),
        ("SELECT [Sex].Members ON 0 FROM Tax WHERE [Sex].[W]", "[Sex]", "on this axis and on the slicer"),
        ("SELECT [Sex].[Sex] ON 0 FROM Tax", "[Sex]", "this is a level. Add .Members"),
        ("SELECT 1 ON 0 FROM Tax", "1", "Expected a set, but this is a number"),
        ("SELECT Memberz([Sex]) ON 0 FROM Tax", "Memberz", "no function Memberz. Nearest: .*MEMBERS"),
        ("SELECT Head() ON 0 FROM Tax", "Head", "takes 1 to 2 arguments, but has 0"),
        ("SELECT Head([Sex].Members, 1.5) ON 0 FROM Tax", "1.5", "whole number"),
        ("SELECT Descendants([Place].[All], [Sex].[Sex]) ON 0 FROM Tax", "Descendants", "another hierarchy"),
        ("SELECT Descendants([Place].[All], 1, SELFISH) ON 0 FROM Tax", "SELFISH", "Expected SELF, AFTER"),
        ("SELECT [Place].[Madrid] : [Sex].[W] ON 0 FROM Tax", ":", "different hierarchies"),
        ("SELECT [Place].[Madrid] : [Place].[Getafe] ON 0 FROM Tax", ":", "different levels"),
        (
            "SELECT [Sex].Members ON 0 FROM Tax WHERE TopCount([Place].Members, 3, [Measures].[Income])",
            "TopCount",
            "confidential.*can stand on an axis",
        ),
        (
            "SELECT [Sex].Members ON 0 FROM "
            "(SELECT Filter([Place].Members, [Measures].[Income] > 3) ON 0 FROM Tax)",
            "Filter",
            "confidential",
        ),
        (
            "WITH MEMBER [Measures].[X] AS Sum(Head(Order([Place].Members, [Income]), 2), [Income]) "
            "SELECT [X] ON 0 FROM Tax",
            "Head",
            "confidential",
        ),
        (
            "WITH SET Best AS TopCount([Place].Members, 3, [Income]) "
            "MEMBER [Measures].[X] AS Count(Best) SELECT [X] ON 0 FROM Tax",
            "Best)",
            "confidential",
        ),
        (
            "WITH SET Best AS TopCount([Place].Members, 3, [Income]) SELECT Best.Item(0) ON 0 FROM Tax",
            "Best.Item",
            "confidential",
        ),
        (
            "SELECT DrilldownLevel(TopCount([Place].Members, 3, [Income])) ON 0 FROM Tax",
            "TopCount",
            "confidential",
        ),
        (
            "WITH MEMBER [Measures].[R] AS Rank([Sex].CurrentMember, [Sex].Members, [Income]) "
            "SELECT Order([Sex].Members, [R]) ON 0 FROM Tax",
            "WITH",
            "is a rank",
        ),
        (
            "WITH MEMBER [Measures].[R] AS Rank([Sex].CurrentMember, [Sex].Members, [Income]) + 1 "
            "SELECT [R] ON 0 FROM Tax",
            "MEMBER [Measures]",
            "worked out from a rank",
        ),
        ("SELECT YTD([Place].[Getafe]) ON 0 FROM Tax", "YTD", "no level called Year. Use PeriodsToDate"),
        ("SELECT @p ON 0 FROM Tax", "@p", "Parameter @p has no value"),
        ("SELECT [Sex].Members ON 0 FROM Taxes", "Taxes", "This is cube Tax"),
        ("SELECT [Sex].[W] ON 0 FROM (SELECT {} ON 0 FROM Tax)", "{}", "empty set"),
        ("SELECT [Sex].[W] ON 0 FROM (SELECT [Place].[28] ON 0 FROM Taxes)", "Taxes", "This is cube Tax"),
        (
            "SELECT FROM (SELECT {([Sex].[W], [Place].[28]), ([Sex].[M], [Place].[08])} ON 0 FROM Tax)",
            "{",
            "every combination",
        ),
        (
            "SELECT [Sex].[W] ON 0 FROM (SELECT [Sex].[W] ON 0 FROM (SELECT [Sex].[M] ON 0 FROM Tax))",
            "[Sex].[M]",
            "leave no member",
        ),
        ("SELECT [Sex].Members ON 0 FROM Tax WHERE {}", "{}", "empty set"),
        ("SELECT [Sex].Members ON 0 FROM Tax WHERE [Place].[All].Parent", "Parent", "isn't there"),
        ("WITH MEMBER X AS 1 SELECT FROM Tax", "MEMBER", r"Write \[Measures\].\[X\]"),
        (
            "WITH MEMBER [Measures].[X] AS [Measures].[X] + 1 SELECT [Measures].[X] ON 0 FROM Tax",
            "MEMBER",
            "refers to itself",
        ),
        (
            "WITH MEMBER [Measures].[X] AS [Measures].[Y] MEMBER [Measures].[Y] AS [Measures].[X] "
            "SELECT [Measures].[X] ON 0 FROM Tax",
            "MEMBER",
            "refers to itself",
        ),
        ("WITH MEMBER [Place].[Madrid] AS 1 SELECT FROM Tax", "MEMBER", "has a member Madrid of its own"),
        ("WITH MEMBER [Measures].[income] AS 1 SELECT FROM Tax", "MEMBER", "has a member income of its own"),
        (
            "WITH MEMBER [Measures].[X] AS 1 MEMBER [Measures].[x] AS 2 SELECT FROM Tax",
            "MEMBER",
            "has a calculated member x already",
        ),
        ("WITH SET s AS {s} SELECT s ON 0 FROM Tax", "s}", "defined by itself"),
        (
            "WITH MEMBER [Measures].[X] AS 'a' + 1 SELECT [Measures].[X] ON 0 FROM Tax",
            "'a'",
            "Texts can only be joined",
        ),
        (
            "WITH MEMBER [Measures].[X] AS [Sex].Members SELECT [Measures].[X] ON 0 FROM Tax",
            "Members",
            "Expected a value, but this is a set",
        ),
        ("WITH MEMBER [Measures].[X] AS 1, SOLVE_ORDER = 'a' SELECT FROM Tax", "'a'", "this is a text"),
        *(
            (f"SELECT {name}([Sex].Members, 30, [Sex].CurrentMember.Name) ON 0 FROM Tax", name, "are texts")
            for name in ("TopPercent", "BottomPercent", "TopSum", "BottomSum")
        ),
        *(
            (
                f"WITH MEMBER [Measures].[X] AS 1, {key} = IIF([Income] > 5, '0', '0.0') SELECT FROM Tax",
                "IIF",
                f"{key} takes a text in quotes",
            )
            for key in ("FORMAT_STRING", "UNIT", "CAPTION_ES")
        ),
        ("WITH MEMBER [Measures].[X] AS 1, FORMAT_STRING = 'a' + 'b' SELECT FROM Tax", "'a'", "takes a text"),
        ("WITH MEMBER [Measures].[X] AS 1, FORMAT_STRING = 0.0 SELECT FROM Tax", "0.0", "takes a text"),
        (
            "WITH MEMBER [Sex].[X] AS Aggregate({([Sex].[W], [Place].[All]), ([Sex].[Both], [Place].[28])}) "
            "SELECT [Measures].[Middle] ON 0 FROM Tax WHERE [Sex].[X]",
            "Aggregate",
            "more than once",
        ),
        (
            "SELECT [Time].Members * [Place].Members * Foo ON 0 FROM Tax",
            "Foo",
            "nothing called",
        ),
    ],
)
def test_queries(server: CubeServer, text: str, at: str, cause: str) -> None:
    with pytest.raises(UserError, match=cause) as caught:
        server.execute(parse(text, "sheets/a.toml", 5))
    (mistake,) = caught.value.mistakes
    assert (mistake.file, mistake.line) == ("sheets/a.toml", 5)
    at = {"MEMBERS_2": "Members)"}.get(at, at)
    assert at in text
    places = [found.start() + 1 for found in re.finditer(re.escape(at), text)]
    assert mistake.column in places, mistake
    assert mistake.excerpt


def test_crossjoin_limit(server: CubeServer) -> None:
    many = "{" + ", ".join(["[Place].[Madrid]"] * 1200) + "}"
    text = f"SELECT CrossJoin({many}, Generate({many}, {{[Sex].[W]}}, ALL)) ON 0 FROM Tax"
    with pytest.raises(UserError, match=r"1,200 × 1,200 = 1,440,000 tuples; the limit is 1,000,000"):
        server.execute(parse(text))


def test_answer_limit(server: CubeServer) -> None:
    one = "{" + ", ".join(["[Place].[Madrid]"] * 2000) + "}"
    other = "{" + ", ".join(["[Sex].[W]"] * 2000) + "}"
    with pytest.raises(UserError, match="span 4,000,000 cells"):
        server.execute(parse(f"SELECT {one} ON 0, {other} ON 1 FROM Tax"))


def test_calculated_members_of_the_cube_are_checked_at_once(tmp_path: Path) -> None:
    wrong = (("[Measures]", "A", "[Measures].[Incom]"), ("[Plce]", "B", "1"), ("[Measures]", "C", "1 +"))
    with pytest.raises(UserError) as caught:
        open_cube(office(tmp_path, wrong))
    assert {mistake.file for mistake in caught.value.mistakes} == {"cubes/tax.toml"}
    assert {mistake.line for mistake in caught.value.mistakes} == {40}
    assert len(caught.value.mistakes) == 2


def test_every_missing_column_is_named(tmp_path: Path) -> None:
    cube = office(tmp_path)
    measures = (
        MeasureDefinition("A", {}, "sum", "incom", {}, "0", 0, True),
        MeasureDefinition("B", {}, "mode", "tax", {}, "0", 0, True),
        MeasureDefinition("C", {}, "sum", None, {}, "0", 0, True),
    )
    facts = replace(cube.facts, respondent="persn")
    with pytest.raises(UserError) as caught:
        open_cube(replace(cube, measures=measures, facts=facts))
    text = str(caught.value)
    assert len(caught.value.mistakes) == 4
    assert "no column incom, which measure A needs. Nearest: income" in text
    assert "no column persn" in text
    assert "no aggregator mode" in text
    assert "Measure C (sum) has no column" in text


def test_wrong_types(tmp_path: Path) -> None:
    rows = [(*row[:4], "many" if n in (1, 3) else row[4], *row[5:]) for n, row in enumerate(ROWS)]
    with pytest.raises(UserError, match="2 values of column income are no numbers, the first in row 2"):
        open_cube(office(tmp_path, rows=rows))
    cube = office(tmp_path)
    wrong = replace(cube, measures=(MeasureDefinition("D", {}, "sum", "day", {}, "0", 0, True),))
    table = pa.table({name: [row[n] for row in ROWS] for n, name in enumerate(HEADER)})
    day = pa.array(np.array(["2024-01-01"] * len(ROWS), dtype="datetime64[D]"))
    pq.write_table(table.append_column("day", day), tmp_path / "facts.parquet")
    facts = replace(cube.facts, file=str(tmp_path / "facts.parquet"))
    with pytest.raises(UserError, match="Column day is DATE, but measure D needs numbers"):
        open_cube(replace(wrong, facts=facts))


def test_infinite_values(tmp_path: Path) -> None:
    rows = [(*row[:4], "inf", *row[5:]) for row in ROWS]
    with pytest.raises(UserError, match="infinite"):
        open_cube(office(tmp_path, rows=rows))


def test_weights_must_be_positive(tmp_path: Path) -> None:
    cube = office(tmp_path)
    facts = replace(cube.facts, weight="income")
    with pytest.raises(UserError, match="2 rows have no weight above zero"):
        open_cube(replace(cube, facts=facts, measures=cube.measures[:2]))


def test_empty_and_absent_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"facts.csv has no rows"):
        open_cube(office(tmp_path, rows=()))
    cube = office(tmp_path)
    (tmp_path / "facts.csv").write_bytes(b"")
    with pytest.raises(UserError, match=r"facts.csv is empty"):
        open_cube(cube)
    (tmp_path / "facts.csv").unlink()
    with pytest.raises(UserError, match=r"facts.csv isn't there"):
        open_cube(cube)


def with_facts(cube: CubeDefinition, place: Path) -> CubeDefinition:
    return replace(cube, facts=replace(cube.facts, file=str(place)))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    cube = office(tmp_path)
    table = pa.table({name: [row[n] for row in ROWS] * 500 for n, name in enumerate(HEADER)})
    pq.write_table(table, tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    zipped = gzip.compress((tmp_path / "facts.csv").read_bytes())
    damaged = {
        "cut.parquet": whole[: len(whole) // 2],
        "noise.parquet": b"PAR1" + b"\x00" * 100 + b"PAR1",
        "text.parquet": b"a,b\n1,2\n",
        "flipped.parquet": whole[:40] + bytes(255 - b for b in whole[40:400]) + whole[400:],
        "cut.csv.gz": zipped[: len(zipped) // 2],
        "binary.csv": bytes(range(256)) * 20,
        "uneven.csv": b"year,month\n1,2\n1,2,3,4\n" * 10,
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises((OperatorError, UserError), match=re.escape(name)):
            open_cube(with_facts(cube, tmp_path / name))


def test_facts_without_their_dimension_row(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"2 rows of facts.csv have a key that towns.csv lacks: 28002"):
        open_cube(office(tmp_path, towns=TOWNS[:1] + TOWNS[2:]))


def test_a_key_has_one_parent(tmp_path: Path) -> None:
    twice = (*TOWNS, ("28001", "Alcalá", "08", "Barcelona", "1", "300"))
    with pytest.raises(
        UserError, match=r"towns.csv: key “28001” of dimension Place stands in several places"
    ):
        open_cube(office(tmp_path, towns=twice))
    cube = office(tmp_path)
    place = cube.dimensions[1]
    (tree,) = place.hierarchies
    upside_down = replace(
        tree, levels=(tree.levels[1], replace(tree.levels[0], caption_columns={}, order=None))
    )
    with pytest.raises(
        UserError, match=r"Key “28” of level Province .Place. stands under “28001” and “28002”"
    ):
        open_cube(replace(cube, dimensions=(cube.dimensions[0], replace(place, hierarchies=(upside_down,)))))
    loose = replace(upside_down, levels=tuple(replace(level, unique=False) for level in upside_down.levels))
    opened = open_cube(replace(cube, dimensions=(cube.dimensions[0], replace(place, hierarchies=(loose,)))))
    assert "[Place].[Province].&[28001]&[28]" in opened.discover().hierarchies[1].unique_names
    opened.close()


def test_keys_that_differ_in_case_alone(tmp_path: Path) -> None:
    rows = [(*row[:3], sex, *row[4:]) for row, sex in zip(ROWS, "WwMmWwM", strict=True)]
    opened = open_cube(office(tmp_path, rows=rows))
    for key in "WwMm":
        (member,) = opened.members(f"{{[Sex].[Sex].&[{key}]}}")
        assert member.unique_name == f"[Sex].[Sex].&[{key}]"
        assert opened.members(f"{{[Sex].[{key}]}}") == (member,)
    opened.close()


def test_members_without_facts_are_there(tmp_path: Path) -> None:
    opened = open_cube(office(tmp_path, towns=(*TOWNS, ("08002", "Vic", "08", "Barcelona", "1", "45"))))
    answer = opened.execute(parse("SELECT [Place].[Vic] ON 0 FROM Tax"))
    assert np.isnan(answer.values).all()
    opened.close()


def test_same_answers_from_csv_parquet_and_database(tmp_path: Path) -> None:
    cube = office(tmp_path)
    query = parse(
        "SELECT [Measures].Members ON 0, [Place].Members * [Sex].Members ON 1 FROM Tax WHERE [Time].[2023]"
    )
    names = dict(enumerate(HEADER))
    columns = {name: [row[n] or None for row in ROWS] for n, name in names.items()}
    numbers = pa.table(
        {
            **columns,
            "income": pa.array([None if v is None else int(v) for v in columns["income"]], pa.int32()),
            "tax": pa.array([None if v is None else float(v) for v in columns["tax"]]),
        }
    )
    pq.write_table(numbers, tmp_path / "facts.parquet")
    decimals = numbers.set_column(5, "tax", pc_decimal(numbers["tax"]))
    pq.write_table(decimals, tmp_path / "decimal.parquet")
    url = f"sqlite:///{tmp_path / 'facts.db'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE TABLE t ({', '.join(HEADER)})"))
        marks = ", ".join(f":{name}" for name in HEADER)
        connection.execute(sa.text(f"INSERT INTO t VALUES ({marks})"), numbers.to_pylist())
    engine.dispose()
    database = replace(
        cube, facts=FactsDefinition(None, url, "SELECT * FROM t", "person", "household", None, None)
    )
    answers = []
    for definition in (
        cube,
        with_facts(cube, tmp_path / "facts.parquet"),
        with_facts(cube, tmp_path / "decimal.parquet"),
        database,
    ):
        opened = open_cube(definition)
        answers.append(opened.execute(query).values)
        opened.close()
    for other in answers[1:]:
        assert np.array_equal(answers[0], other, equal_nan=True)


def pc_decimal(column: pa.ChunkedArray) -> pa.Array:
    return column.cast(pa.decimal128(12, 2)).combine_chunks()


def test_databases_that_fail(tmp_path: Path) -> None:
    cube = office(tmp_path)

    def at(url: str, sql: str) -> CubeDefinition:
        return replace(cube, facts=FactsDefinition(None, url, sql, None, None, None, None))

    with pytest.raises(UserError, match="URL"):
        open_cube(at("nonsense", "SELECT 1"))
    with pytest.raises((OperatorError, UserError)) as caught:
        open_cube(at("postgresql+psycopg://someone:secret@localhost:1/none", "SELECT 1"))
    assert "secret" not in str(caught.value)
    with pytest.raises((OperatorError, UserError), match="nowhere"):
        open_cube(at("sqlite://", "SELECT * FROM nowhere"))
    # A text that isn't one is told by its column: it may be somebody's name.
    with pytest.raises((OperatorError, UserError), match="UTF-8 column 'name'") as caught:
        open_cube(at("sqlite://", "SELECT CAST(x'536563726574e1' AS TEXT) AS name"))
    assert "Secret" not in str(caught.value)


def test_fingerprint_follows_the_data(tmp_path: Path) -> None:
    def fingerprint(cube: CubeDefinition) -> str:
        opened = open_cube(cube)
        opened.close()
        return opened.fingerprint()

    first = fingerprint(office(tmp_path))
    assert fingerprint(office(tmp_path)) == first
    assert fingerprint(office(tmp_path, rows=ROWS[:-1])) != first
    assert (
        fingerprint(office(tmp_path, towns=(*TOWNS, ("08002", "Vic", "08", "Barcelona", "1", "45")))) != first
    )

    count = itertools.count()

    def database(rows: tuple[tuple[str, ...], ...]) -> CubeDefinition:
        url = f"sqlite:///{tmp_path / str(next(count))}.db"
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE TABLE t ({', '.join(HEADER)})"))
            for row in rows:
                connection.execute(
                    sa.text("INSERT INTO t VALUES (:a,:b,:c,:d,:e,:f,:g,:h)"),
                    dict(zip("abcdefgh", [text or None for text in row], strict=True)),
                )
        engine.dispose()
        return replace(
            office(tmp_path), facts=FactsDefinition(None, url, "SELECT * FROM t", None, None, None, None)
        )

    assert fingerprint(database(ROWS)) == fingerprint(database(ROWS[::-1]))
    assert fingerprint(database(ROWS)) != fingerprint(database(ROWS[1:]))


def test_doubles_add_up_to_the_same_bits_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    income = np.exp(rng.normal(0, 20, 4000))
    order = rng.permutation(len(income))
    found = []
    for number, values in enumerate((income, income[order])):
        table = pa.table(
            {
                name: pa.array(np.resize([row[n] for row in ROWS], len(income)))
                for n, name in enumerate(HEADER)
            }
        )
        sex = pa.array(np.where(values > 1, "W", "M"))
        table = table.set_column(4, "income", pa.array(values)).set_column(3, "sex", sex)
        pq.write_table(table.set_column(5, "tax", pa.array(values)), tmp_path / f"{number}.parquet")
        cube = office(tmp_path)
        measures = (MeasureDefinition("Income", {}, "sum", "income", {}, "0", 0, True),)
        opened = open_cube(
            replace(
                with_facts(cube, tmp_path / f"{number}.parquet"),
                measures=measures,
                dimensions=cube.dimensions[2:],
            )
        )
        found.append(opened.execute(parse("SELECT [Sex].Members ON 0 FROM Tax")).values)
        opened.close()
    assert np.array_equal(found[0], found[1])
    assert found[0][0] == pytest.approx(float(np.sum(income)), rel=1e-14)


def test_integers_beyond_a_double_are_exact(tmp_path: Path) -> None:
    big = 2**61
    values = [big, -big, 7, big, 5, -big, 1]
    rows = [(*row[:4], str(value), *row[5:]) for row, value in zip(ROWS, values, strict=True)]
    write_csv(tmp_path / "big.csv", HEADER, rows)
    opened = open_cube(office(tmp_path, rows=rows))
    answer = opened.execute(
        parse("SELECT [Measures].[Income] ON 0 FROM Tax WHERE {[Time].[2022], [Time].[2023]}")
    )
    assert answer.values[0] == 13
    opened.close()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("*".join(["[Tax]"] * 2000), "functions of functions more than"),
        ("CASE " + " ".join(["WHEN [Tax] > 1 THEN 1"] * 1000) + " END", "functions of functions more than"),
        ("^".join(["9"] * 2000), "too large"),
        ("*".join(["1.7e300"] * 2000), "too large"),
        ("1 / " + " / ".join(["3.1"] * 2000), "too many digits"),
        (" + ".join(f"1 / {n}" for n in range(1, 3000)), "too many digits"),
        (" AND ".join(["[Tax] > 1"] * 2000), None),
        ("Sum({" + ", ".join(["[Sex].[W]"] * 2000) + "}, [Tax])", None),
    ],
)
def test_formulas_that_grow_without_end_are_refused(server: CubeServer, text: str, cause: str | None) -> None:
    query = parse(f"WITH MEMBER [Measures].[X] AS {text} SELECT [X] ON 0 FROM Tax")
    if cause is None:
        assert server.execute(query).n_cells == 1
    else:
        with pytest.raises(UserError, match=cause):
            server.execute(query)


def test_many_definitions_take_no_longer_each(server: CubeServer) -> None:
    def seconds(n: int) -> float:
        members = " ".join(f"MEMBER [Measures].[m{k}] AS {k}" for k in range(n))
        query = parse(f"WITH {members} SELECT [m7] ON 0 FROM Tax")
        start = process_time()
        assert server.execute(query).values[0] == 7
        return process_time() - start

    assert seconds(4000) < 40 * max(seconds(400), 0.02)
