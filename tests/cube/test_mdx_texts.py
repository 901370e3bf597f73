"""What MDX functions of texts and of drilling mean, and that texts made of values stay the analyst's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.errors import UserError
from app.mdx import parse
from tests.cube.office import office

CALCULATED = (("[Place]", "Big", "Aggregate({[Place].[Alcalá], [Place].[Badalona]})"),)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = open_cube(office(tmp_path_factory.mktemp("office"), CALCULATED))
    yield opened
    opened.close()


def cell(formula: str, where: str = "[Time].[2022]") -> str:
    return f"WITH MEMBER [Measures].[It] AS {formula} SELECT {{[It]}} ON 0 FROM Tax WHERE {where}"


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("[Place].[28].Name", "Madrid"),
        ("[Place].[28].Caption", "Madrid"),
        ("[Place].[28].UniqueName", "[Place].[Province].&[28]"),
        ("[Place].[28].MEMBER_UNIQUE_NAME", "[Place].[Province].&[28]"),
        ("[Place].[28].MemberValue", "Madrid"),
        ("[Place].[28].MEMBER_NAME", "Madrid"),
        ('[Place].[28].Properties("MEMBER_TYPE")', "1"),
        ('[Place].[All].Properties("MEMBER_TYPE")', "2"),
        ('[Place].[28].Properties("IS_DATAMEMBER")', "false"),
        ("[Place].[28].Level.Name", "Province"),
        ("[Place].[28].Level.UniqueName", "[Place].[Province]"),
        ("[Place].[28].Hierarchy.UniqueName", "[Place]"),
        ("[Place].[Big].UniqueName", "[Place].[Big]"),
        ('[Place].[Getafe].Properties("area")', "180"),
        ('[Place].[Getafe].Properties("MEMBER_KEY")', "28002"),
        ('[Place].[Getafe].Properties("PARENT_UNIQUE_NAME")', "[Place].[Province].&[28]"),
        ('[Place].[28].Properties("CHILDREN_CARDINALITY")', "2"),
        ('Format(1234.5, "#,##0.00") || ""', "1,234.50"),
        ('Format([Income], "0.0") || " euros"', "425.0 euros"),
        ('IIF([Income] > 400, "much", "little")', "much"),
        ('CASE WHEN [Income] > 500 THEN "much" WHEN [Tax] > 30 THEN "some" ELSE "little" END', "some"),
        ('Generate([Place].[Town].Members, [Place].CurrentMember.Name, ", ")', "Badalona, Alcalá, Getafe"),
        ("MemberToStr([Place].[28])", "[Place].[Province].&[28]"),
        ("TupleToStr(([Sex].[M], [Place].[28]))", "([Sex].[Sex].&[M], [Place].[Province].&[28])"),
        ("SetToStr({[Sex].[M], [Sex].[W]})", "{[Sex].[Sex].&[M], [Sex].[Sex].&[W]}"),
        ('UCase(Left("madrid", 3)) || Mid("madrid", 4) || Trim("  ! ")', "MADrid!"),
        ('Replace("a-b-c", "-", "+")', "a+b+c"),
        ('"a" + "b"', "ab"),
    ],
)
def test_texts(server: Server, formula: str, text: str) -> None:
    query = parse(cell(formula))
    assert server.explore(query).texts == {0: text}
    with pytest.raises(UserError, match=r"published|confidential"):
        server.execute(query)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('[Place].[Getafe].Properties("area", TYPED) / 2', 90.0),
        ('[Income] / [Place].[Getafe].Properties("area", TYPED)', 425 / 180),
        ('Val("12.5 km")', 12.5),
        ('CInt([Place].[28].Properties("MEMBER_KEY")) + 1', 29.0),
        ('InStr([Place].[28].Name, "drid")', 3.0),
        ('InStr(1, [Place].[28].MEMBER_CAPTION, "drid")', 3.0),
        ('InStr(3, "banana", "an")', 4.0),
        ('InStr(3, "banana", "b")', 0.0),
        ('Len("abc")', 3.0),
        ("[Place].[28].Level.Ordinal", 1.0),
        ("Int(7 / 2)", 3.0),
        ("Round(10 / 3, 2)", 3.33),
        ("Abs(-3) + Sqrt(16)", 7.0),
        ("CoalesceEmpty(NULL, 4, [Income])", 4.0),
        ("CoalesceEmpty(NULL, [Income])", 425.0),
        ("IIF([Sex].CurrentMember IN {[Sex].[All], [Sex].[M]}, [Income], 0)", 425.0),
        ("IIF([Sex].CurrentMember NOT IN {[Sex].[M]}, [Tax], 0)", 30.6),
        ('IIF(Generate([Sex].[Sex].Members, [Sex].CurrentMember.Name) = "MW", 1, 0)', 1.0),
        ("IIF(IsEmpty(NULL), 1, 2)", 1.0),
        ('IIF(IsEmpty([Place].[Getafe].Properties("area")), 1, 2)', 2.0),
        ('IIF(CoalesceEmpty("", [Place].[28].Name, "none") = "Madrid", 1, 2)', 1.0),
        ("[Place].Levels.Count", 3.0),
        ("IIF([Time].[2022].[01].PrevMember IS NULL, 1, 2)", 1.0),
        ('(StrToMember("[Sex].[" || "W" || "]"), [Income])', 175.0),
        ('Sum(StrToSet("{[Sex].[W], [Sex].[M]}"), [Income])', 425.0),
        ('StrToValue("[Measures].[Income] * 2")', 850.0),
        ("Rank([Sex].[M], {[Sex].[W], [Sex].[M]})", 2.0),
        ("Rank([Place].[28], [Sex].[Sex].Members * {[Place].[28]})", 0.0),
    ],
)
def test_linear_values_that_texts_and_constants_give(server: Server, formula: str, expected: float) -> None:
    answer = server.execute(parse(cell(formula)))
    assert answer.values[0] == pytest.approx(expected, rel=1e-12)
    assert not len(answer.nonlinear.cell)


def test_words_stand_for_empty_cells(server: Server) -> None:
    formula = 'CoalesceEmpty(([Income], [Time].[2022]), NULL, "none", [Tax])'
    query = (
        f"WITH MEMBER [Measures].[It] AS {formula} SELECT [It] ON 0, [Place].[Province].Members ON 1 FROM Tax"
    )
    answer = server.explore(parse(query))
    assert dict(answer.texts) == {0: "none"}
    assert answer.values[1] == 425.0
    with pytest.raises(UserError, match="Texts can't be published"):
        server.execute(parse(query))


def test_distinct_count_of_positions(server: Server) -> None:
    towns = "{[Place].[Getafe], [Place].[Getafe], [Place].[Alcalá], [Place].[Badalona]}"
    answer = server.execute(parse(cell(f"DistinctCount({{[Income]}} * {towns})")))
    assert answer.values[0] == 2.0


def test_format_alone_says_how_a_published_value_prints(server: Server) -> None:
    answer = server.execute(parse(cell('Format([Income] / [People], "#,##0.0")')))
    (member,) = (member for member in answer.calculated if member.name == "It")
    assert (member.format, member.decimals) == ("#,##0.0", 1)
    assert answer.values[0] == pytest.approx(425 / 3)
    assert answer.nonlinear.kind == ("ratio",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DrilldownLevel({[Place].[All], [Place].[28]})", "All|28|28001|28002"),
        ("DrilldownLevel({[Place].[All], [Place].[28]}, [Place].[(All)])", "All|08|28|28"),
        ("DrilldownLevel({([Sex].[M], [Place].[28])}, , 1)", "M 28|M 28001|M 28002"),
        ("DrilldownLevel({([Sex].[M], [Place].[28])})", "M 28"),
        ("DrilldownLevel({([Sex].[All], [Place].[28])})", "All 28|M 28|W 28"),
        (
            "DrilldownMember({[Place].[All]}, {[Place].[All], [Place].[28]}, RECURSIVE)",
            "All|08|28|28001|28002",
        ),
        ("DrilldownMember({[Place].[All]}, {[Place].[All], [Place].[28]})", "All|08|28"),
        ("DrilldownMember({[Sex].Members} * {[Place].[28]}, {[Place].[28]})", None),
        ("DrillupMember({[Place].[28], [Place].[Alcalá], [Place].[08]}, {[Place].[28]})", "28|08"),
        ("DrillupMember({[Place].[All], [Place].[28], [Place].[Alcalá]}, {[Place].[All]})", "All"),
        ("ToggleDrillState({[Place].[28], [Place].[08]}, {[Place].[28]})", "28|28001|28002|08"),
        (
            "ToggleDrillState(ToggleDrillState({[Sex].[M]} * {[Place].[28]}, [Place].[28]), [Place].[28])",
            "M 28",
        ),
        ("DrillupLevel({[Place].[All], [Place].[28], [Place].[Alcalá]}, [Place].[(All)])", "All"),
        ("DrillupLevel({[Place].[All], [Place].[28], [Place].[Alcalá]})", "All|28"),
        ("AddCalculatedMembers([Place].[Province].Members)", "08|28|Big"),
        ("StripCalculatedMembers({[Place].[28], [Place].[Big]})", "28"),
        ("Generate({[Sex].[M], [Sex].[W]}, {[Place].[28], [Place].[08]})", "28|08"),
        ("Extract({[Sex].[M]} * {[Place].[28], [Place].[08]}, [Place], [Sex])", "28 M|08 M"),
        (
            'Filter([Place].[Town].Members, [Place].CurrentMember.Properties("area", TYPED) > 200)',
            "08001|28001",
        ),
        (
            'Order([Place].[Town].Members, Val([Place].CurrentMember.Properties("area")), BASC)',
            "28002|08001|28001",
        ),
        ("Head([Place].[Town].Members, Int(5 / 2))", "08001|28001"),
    ],
)
def test_sets(server: Server, text: str, expected: str | None) -> None:
    answer = server.execute(parse(f"SELECT {text} ON 0 FROM Tax"))
    found = [
        " ".join(member.unique_name.rsplit("].", 1)[-1].strip("&[]") for member in position)
        for position in answer.axes[0].positions
    ]
    wanted = [f"{sex} {place}" for sex in ("All", "M", "W") for place in ("28", "28001", "28002")]
    assert found == (wanted if expected is None else expected.split("|"))


@pytest.mark.parametrize(
    "text",
    [
        'Filter([Place].[Town].Members, Format([Income], "0") = "425")',
        "Generate([Place].[Town].Members, IIF([Income] > 3, {[Sex].[M]}, {[Sex].[W]}))",
        "Filter([Place].[Town].Members, Count(TopCount([Sex].Members, 1, [Income])) = 1)",
        'StrToSet("TopCount([Place].[Town].Members, 1, [Measures].[Income])")',
        "Head([Place].[Town].Members, [Income])",
    ],
)
def test_sets_chosen_by_values_are_refused(server: Server, text: str) -> None:
    with pytest.raises(UserError):
        server.execute(parse(f"SELECT {text} ON 0 FROM Tax WHERE [Time].[2022]"))


@pytest.mark.parametrize(
    ("formula", "cause"),
    [
        ('"a" > 3', "compared to a text"),
        ('Mid("abc", 0)', "from 1"),
        ("DrilldownLevel({[Sex].[M]}, , 4)", "count from 0"),
        ("DrilldownMember({[Sex].[M]}, {[Place].[28]})", "one of its hierarchies"),
        ('[Place].[28].Properties("area", TIPED)', "Expected TYPED"),
    ],
)
def test_mistakes(server: Server, formula: str, cause: str) -> None:
    with pytest.raises(UserError) as failure:
        server.explore(parse(cell(formula)))
    assert cause in str(failure.value)
