"""What MDX functions mean, written out on a small cube."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from app.cube.port import CubeServer
from app.domain.cell_key import Numbering, cell_keys
from app.domain.cellset import CellSet
from app.domain.errors import UserError
from app.domain.lattice import Space
from app.mdx import parse
from tests.cube.engines import ENGINES, opened
from tests.cube.office import office

CALCULATED = (
    ("[Measures]", "Rate", "[Measures].[Tax] / [Measures].[Income]"),
    ("[Place]", "Big", "Aggregate({[Place].[Alcalá], [Place].[Badalona]})"),
)


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CubeServer]:
    with opened(request.param, office(tmp_path_factory.mktemp("office"), CALCULATED)) as found:
        yield found


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CubeServer]:
    """An engine that has the facts themselves, with captions in every language, and contributors."""
    with opened("duckdb", office(tmp_path_factory.mktemp("office"), CALCULATED)) as found:
        yield found


def names(server: CubeServer, text: str) -> list[str]:
    """Captions and keys of a set on columns, short: the last part of each unique name."""
    answer = server.execute(parse(f"SELECT {text} ON 0 FROM Tax"))
    return [
        " ".join(
            member.unique_name.rsplit("].", 1)[-1].strip("&[]").replace("]&[", "-") for member in position
        )
        for position in answer.axes[0].positions
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Place].Members", "All 08 08001 28 28001 28002"),
        ("[Place].[Province].Members", "08 28"),
        ("[Place].[All].Children", "08 28"),
        ("[Place].[Spain].FirstChild.Children", "08001"),
        ("[Place].[Madrid].Children", "28001 28002"),
        ("[Place].[Madrid].[Getafe]", "28002"),
        ("[Place].[Town].&[28002]", "28002"),
        ("[Place].&[28]", "28"),
        ("[Place].[28]", "28"),
        ("Place.Town.Members", "08001 28001 28002"),
        ("[Getafe]", "28002"),
        ("[Place].[Getafe].Parent.LastChild", "28002"),
        ("[Place].[Getafe].Siblings", "28001 28002"),
        ("[Place].[Getafe].FirstSibling", "28001"),
        ("Ancestor([Place].[Getafe], [Place].[Province])", "28"),
        ("Ancestor([Place].[Getafe], 2)", "All"),
        ("Ancestors([Place].[Getafe], 1)", "28"),
        ("Ascendants([Place].[Getafe])", "28002 28 All"),
        ("Descendants([Place].[All], [Place].[Province], SELF_AND_BEFORE)", "All 08 28"),
        ("Descendants([Place].[All], [Place].[Province], AFTER)", "08001 28001 28002"),
        ("Descendants([Place].[All], [Place].[Province], SELF_BEFORE_AFTER)", "All 08 08001 28 28001 28002"),
        ("Descendants([Place].[All], [Place].[Province], BEFORE_AND_AFTER)", "All 08001 28001 28002"),
        ("Descendants([Place].[All], 2)", "08001 28001 28002"),
        ("Descendants([Place].[All], , LEAVES)", "08001 28001 28002"),
        ("Descendants({[Place].[Madrid], [Place].[Barcelona]}, 1)", "28001 28002 08001"),
        ("[Place].DefaultMember", "All"),
        ("[Place].CurrentMember", "All"),
        ("[Time].[Month].Members", "2022-01 2022-02 2023-01 2023-02 2023-03"),
        ("[Time].[2022].[02].NextMember", "2023-01"),
        ("[Time].[2022].[01].PrevMember", ""),
        ("[Time].[2023].[01].Lag(2)", "2022-01"),
        ("[Time].[2022].[01].Lead(3)", "2023-02"),
        ("[Time].[2022].[02] : [Time].[2023].[02]", "2022-02 2023-01 2023-02"),
        ("[Time].[2023].[02] : [Time].[2022].[02]", "2022-02 2023-01 2023-02"),
        ("YTD([Time].[2023].[02])", "2023-01 2023-02"),
        ("PeriodsToDate([Time].[Year], [Time].[2023].[02])", "2023-01 2023-02"),
        ("LastPeriods(2, [Time].[2023].[02])", "2023-01 2023-02"),
        ("LastPeriods(-2, [Time].[2023].[02])", "2023-02 2023-03"),
        ("LastPeriods(99999999999, [Time].[2023].[02])", "2022-01 2022-02 2023-01 2023-02"),
        ("LastPeriods(-99999999999, [Time].[2023].[02])", "2023-02 2023-03"),
        ("ParallelPeriod([Time].[Year], 1, [Time].[2023].[02])", "2022-02"),
        ("ParallelPeriod([Time].[Year], 1, [Time].[2023].[03])", ""),
        ("Cousin([Time].[2023].[02], [Time].[2022])", "2022-02"),
        ("OpeningPeriod([Time].[Month], [Time].[2023])", "2023-01"),
        ("ClosingPeriod([Time].[Month], [Time].[2023])", "2023-03"),
        ("CrossJoin([Sex].[Sex].Members, {[Place].[28]})", "M 28|W 28"),
        ("[Sex].[Sex].Members * {[Place].[28], [Place].[08]}", "M 28|M 08|W 28|W 08"),
        ("([Sex].[W], [Place].[28])", "W 28"),
        ("Union([Sex].Members, {[Sex].[W]})", "All M W"),
        ("Union([Sex].Members, {[Sex].[W]}, ALL)", "All M W W"),
        ("{[Sex].[W]} + {[Sex].[M]} + {[Sex].[W]}", "W M"),
        ("[Sex].Members - {[Sex].[M]}", "All W"),
        ("Except([Sex].Members, {[Sex].[M]})", "All W"),
        ("Intersect([Sex].Members, {[Sex].[W], [Sex].[M]})", "M W"),
        ("Distinct({[Sex].[W], [Sex].[W], [Sex].[M]})", "W M"),
        ("{[Sex].[W], [Sex].[W]}", "W W"),
        ("Head([Sex].Members)", "All"),
        ("Tail([Sex].Members, 2)", "M W"),
        ("Subset([Sex].Members, 1, 1)", "M"),
        ("[Sex].Members.Item(2)", "W"),
        ("Hierarchize({[Place].[Getafe], [Place].[28], [Place].[All]})", "All 28 28002"),
        ("Hierarchize({[Place].[28], [Place].[Getafe], [Place].[All]}, POST)", "28002 28 All"),
        ("Generate({[Place].[28], [Place].[08]}, [Place].CurrentMember.Children)", "28001 28002 08001"),
        ("Generate([Sex].[Sex].Members, {[Place].[28]}, ALL)", "28 28"),
        ("Extract([Sex].[Sex].Members * {[Place].[28]}, [Sex])", "M W"),
        ('Filter([Place].[Town].Members, [Place].CurrentMember.Name <> "Getafe")', "08001 28001"),
        ('Filter([Place].[Town].Members, [Place].CurrentMember.Properties("area") = "180")', "28002"),
        ("Filter([Place].Members, [Place].CurrentMember.Level IS [Place].[Province])", "08 28"),
        ("Filter([Place].Members, [Place].CurrentMember.Level.Ordinal = 1)", "08 28"),
        ("Filter([Place].Members, IsLeaf([Place].CurrentMember))", "08001 28001 28002"),
        ("Filter([Place].Members, [Place].CurrentMember.Parent IS [Place].[28])", "28001 28002"),
        ("Filter([Place].Members, [Place].CurrentMember IN {[Place].[28]})", "28"),
        ("Filter([Place].Members, IsAncestor([Place].[28], [Place].CurrentMember))", "28001 28002"),
        ("Order([Place].[Town].Members, [Place].CurrentMember.Caption, BDESC)", "28002 08001 28001"),
        ("Order([Place].Members, [Place].CurrentMember.Caption, ASC)", "All 08 08001 28 28001 28002"),
        ("Order([Place].Members, [Place].CurrentMember.Caption, DESC)", "All 28 28002 28001 08 08001"),
        ("Order([Place].[Town].Members, [Place].CurrentMember.Caption, DESC)", "28002 28001 08001"),
        ("Order([Place].[Town].Members, [Place].CurrentMember.Caption)", "08001 28001 28002"),
        (
            "Order([Sex].[Sex].Members * [Place].[Town].Members, [Place].CurrentMember.Caption, DESC)",
            "M 28002|M 28001|M 08001|W 28002|W 28001|W 08001",
        ),
        (
            "Order([Place].[Town].Members * [Sex].[Sex].Members, [Sex].CurrentMember.Caption, DESC)",
            "08001 W|08001 M|28001 W|28001 M|28002 W|28002 M",
        ),
        ("DrillupLevel({[Place].[Madrid].Children}, [Place].[(All)])", "28001 28002"),
        ("DrilldownLevel({[Place].[All]})", "All 08 28"),
        ("DrilldownMember({[Place].[08], [Place].[28]}, {[Place].[28]})", "08 28 28001 28002"),
        ("ToggleDrillState({[Place].[28], [Place].[Alcalá], [Place].[08]}, {[Place].[28]})", "28 08"),
        ("DrillupLevel({[Place].[28], [Place].[Alcalá]})", "28"),
        ('StrToMember("[Place].[28]").Children', "28001 28002"),
        ('StrToSet("{[Sex].[W]}")', "W"),
        ("[Place].Levels(1).Members", "08 28"),
        ("[Place].[28].Hierarchy.Members", "All 08 08001 28 28001 28002"),
        ("[Place].AllMembers", "All 08 08001 28 28001 28002 Big"),
        ("AddCalculatedMembers({[Place].[28]})", "28 Big"),
        ("NonEmpty([Place].[Town].Members)", "28001 28002"),
        ("NonEmpty([Place].[Town].Members, [Sex].[Sex].Members)", "28001 28002"),
        ("NonEmpty([Place].[Town].Members, {([Time].[2023], [Measures].[Tax])})", "08001 28001 28002"),
        ("NonEmptyCrossJoin([Place].[Town].Members, {[Sex].[M]})", "28001 M"),
        ("Generate({[Place].[28]}, EXISTING [Place].[Town].Members)", "28001 28002"),
        ("EXISTING [Place].[Town].Members", "08001 28001 28002"),
        ("{}", ""),
        ("[Place].[28002].Children", ""),
    ],
)
def test_sets(server: CubeServer, text: str, expected: str) -> None:
    pairs = "|" in expected or text.startswith(("([", "NonEmptyCrossJoin"))
    assert names(server, text) == (expected.split("|") if pairs else expected.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TopCount([Place].[Town].Members, 2, [Measures].[Income])", "28001 28002"),
        ("BottomCount([Place].[Town].Members, 2, [Measures].[Income])", "08001 28002"),
        ("TopCount([Place].[Town].Members, 1)", "08001"),
        ("TopPercent([Place].[Town].Members, 80, [Measures].[Income])", "28001"),
        ("TopPercent([Place].[Town].Members, 90, [Measures].[Income])", "28001 28002"),
        ("TopPercent([Place].[Town].Members, 0, [Measures].[Income])", ""),
        ("Order([Place].[Town].Members, [Measures].[People], ASC)", "08001 28002 28001"),
        ("BottomPercent([Place].[Town].Members, 10, [Measures].[Income])", "08001 28002"),
        ("TopSum([Place].[Town].Members, 300, [Measures].[Income])", "28001"),
        ("BottomSum([Place].[Town].Members, 75, [Measures].[Income])", "08001 28002"),
        ("Filter([Place].Members, [Measures].[Income] > 100)", "All 28 28001"),
        (
            "Filter([Place].Members, NOT IsEmpty([Measures].[Income]) AND [Measures].[People] < 3)",
            "28001 28002",
        ),
        ("Order([Place].Members, [Measures].[Income], BASC)", "08 08001 28002 28001 All 28"),
        ("Order([Place].Members, [Measures].[Income], DESC)", "All 28 28001 28002 08 08001"),
        (
            "Order([Place].Members, [Measures].[Income] / [Measures].[People], BDESC)",
            "28001 All 28 28002 08 08001",
        ),
        (
            "Order({[Sex].Members}, Rank([Sex].CurrentMember, [Sex].Members, [Measures].[Income]), BDESC)",
            "W M All",
        ),
        ("Filter([Place].Members, Aggregate({[Sex].[W], [Sex].[M]}, [Measures].[Persons]) = 3)", "All 28"),
    ],
)
def test_sets_by_values_are_the_analysts_at_once(server: CubeServer, text: str, expected: str) -> None:
    query = parse(f"SELECT {text} ON 0 FROM Tax WHERE [Time].[2022]")
    answer = server.explore(query)
    found = [
        position[0].unique_name.rsplit("].", 1)[-1].strip("&[]") for position in answer.axes[0].positions
    ]
    assert found == expected.split()
    if "Aggregate" in text:
        with pytest.raises(UserError, match="taken over several members"):
            server.execute(query)
    elif ", 1)" not in text:
        candidates = server.execute(query)
        assert candidates.n_read > 0
        assert all(position in candidates.axes[0].positions for position in answer.axes[0].positions)


def value(server: CubeServer, formula: str, where: str = "", more: str = "") -> tuple[float, CellSet]:
    slicer = f" WHERE {where}" if where else ""
    # A rank is told when it is known what is shown; the analyst's is told at once.
    answer = (server.explore if "Rank" in formula else server.execute)(
        parse(
            f"WITH {more} MEMBER [Measures].[It] AS {formula} "
            f"SELECT {{[Measures].[It]}} ON 0 FROM Tax{slicer}"
        )
    )
    return float(answer.values[0]), answer


NAN = math.nan


@pytest.mark.parametrize(
    ("formula", "where", "expected", "kind"),
    [
        ("[Measures].[People]", "[Time].[2022]", 3, ""),
        ("[Measures].[Tax]", "[Time].[2022]", 30.60, ""),
        ("[Measures].[Tax] + [Measures].[Tax]", "[Time].[2022]", 61.20, ""),
        ("[Measures].[Income] - [Measures].[People]", "[Time].[2022]", 422, ""),
        ("[Measures].[Income] / 4", "[Time].[2022]", 106.25, ""),
        ("-[Measures].[Income] * 2 + 1", "[Time].[2022]", -849, ""),
        ("[Measures].[Income] / [Measures].[People]", "[Time].[2022]", 425 / 3, "ratio"),
        ("[Measures].[Rate]", "[Time].[2022]", 30.6 / 425, "ratio"),
        ("1 - [Measures].[Rate]", "[Time].[2022]", 1 - 30.6 / 425, "ratio"),
        ("[Measures].[Rate] * 100", "[Time].[2022]", 3060 / 425, "ratio"),
        ("[Measures].[Income] * [Measures].[People]", "[Time].[2022]", 1275, "product"),
        ("[Measures].[Income]", "([Time].[2022], [Place].[08])", NAN, ""),
        ("[Measures].[Income] + 1", "([Time].[2022], [Place].[08])", 1, ""),
        ("[Measures].[Income] * 2", "([Time].[2022], [Place].[08])", NAN, ""),
        ("1 / [Measures].[Income]", "([Time].[2023], [Place].[28], [Sex].[M])", NAN, "ratio"),
        ("1 / 0", "", NAN, ""),
        ("NULL", "", NAN, ""),
        ("([Measures].[Income], [Time].PrevMember)", "[Time].[2023]", 425, ""),
        ("([Measures].[Income], [Time].PrevMember)", "[Time].[2022]", NAN, ""),
        ("[Measures].[Income] - ([Measures].[Income], [Time].PrevMember)", "[Time].[2023]", -5, ""),
        (
            "([Measures].[Income] - ([Measures].[Income], [Time].PrevMember))"
            " / ([Measures].[Income], [Time].PrevMember)",
            "[Time].[2023]",
            -5 / 425,
            "ratio",
        ),
        (
            "[Measures].[Income] / ([Measures].[Income], [Place].[All])",
            "([Time].[2023], [Place].[28])",
            120 / 420,
            "ratio",
        ),
        ("Sum({[Sex].[W], [Sex].[M]}, [Measures].[Income])", "[Time].[2023]", 420, ""),
        ("Sum([Place].CurrentMember.Children, [Measures].[Income] * 2)", "[Time].[2023]", 840, ""),
        ("Sum(YTD([Time].CurrentMember), [Measures].[Income])", "[Time].[2023].[02]", 420, ""),
        ("Sum(YTD(), [Measures].[People])", "[Time].[2023].[02]", 3, ""),
        ("Aggregate({[Sex].[W], [Sex].[M]}, [Measures].[Income])", "[Time].[2023]", 420, ""),
        ("Aggregate({[Sex].[W], [Sex].[M]}, [Measures].[Persons])", "[Time].[2023]", 4, "distinct-count"),
        ("Aggregate([Time].[Year].Members, [Measures].[Persons])", "", 6, "distinct-count"),
        ("Sum([Time].[Year].Members, [Measures].[Persons])", "", 7, ""),
        ("Aggregate([Time].[Year].Members, [Measures].[Highest])", "", 300, "max"),
        ("Aggregate([Time].[Year].Members, [Measures].[Mean])", "", 845 / 6, "avg"),
        ("Aggregate([Time].[Year].Members, [Measures].[Middle])", "", 110, "median"),
        ("Avg([Place].[Province].Members, [Measures].[Income])", "[Time].[2022]", 425, "average"),
        ("Max([Place].[Town].Members, [Measures].[Income])", "[Time].[2022]", 350, "max"),
        ("Min([Place].[Town].Members, [Measures].[Income])", "[Time].[2022]", 75, "min"),
        ("Median([Place].[Town].Members, [Measures].[Income])", "[Time].[2023]", 120, "median"),
        ("Count([Place].[Town].Members)", "", 3, ""),
        (
            "Count({[Measures].[Income]} * [Place].[Town].Members, EXCLUDEEMPTY)",
            "[Time].[2022]",
            2,
            "nonempty-count",
        ),
        ("[Place].[Town].Members.Count", "", 3, ""),
        ("IIF([Place].CurrentMember.Level.Ordinal = 0, [Measures].[Income], 0)", "[Time].[2022]", 425, ""),
        ("IIF([Measures].[Income] > 400, 1, 2)", "[Time].[2022]", 1, "if"),
        ("IIF(IsEmpty([Measures].[Income]), -1, 1)", "([Time].[2022], [Place].[08])", -1, "if"),
        ("CoalesceEmpty([Measures].[Income], 7)", "([Time].[2022], [Place].[08])", 7, "coalesce"),
        ("CASE WHEN 1 = 2 THEN 5 WHEN [Place].CurrentMember IS [Place].[All] THEN 6 ELSE 7 END", "", 6, ""),
        ('CASE [Sex].CurrentMember.Name WHEN "W" THEN 1 ELSE 2 END', "[Sex].[W]", 1, ""),
        ("Abs(-[Measures].[Income])", "[Time].[2022]", 425, "abs"),
        ("Round([Measures].[Income] / 7, 1)", "[Time].[2022]", 60.7, "round"),
        ("Int([Measures].[Income] / 7)", "[Time].[2022]", 60, "int"),
        ("Rank([Place].[28], [Place].[Province].Members)", "", 2, ""),
        ("Rank([Place].[28], [Place].[Province].Members, [Measures].[Income])", "[Time].[2022]", 1, "rank"),
        ("([Measures].[Income], ParallelPeriod([Time].[Year], 1))", "[Time].[2023].[02]", 325, ""),
        ("([Measures].[Income], [Place].[Big])", "[Time].[2023]", 420, ""),
        ("[Place].[Big] + 0", "([Time].[2023], [Measures].[Income])", NAN, "refused"),
    ],
)
def test_values(server: CubeServer, formula: str, where: str, expected: float, kind: str) -> None:
    if kind == "refused":
        # A measure's formula that keeps the measure refers to itself.
        formula, where, expected, kind = "([Place].[Big], [Measures].[Income]) + 0", "[Time].[2023]", 420, ""
    found, answer = value(server, formula, where)
    assert found == pytest.approx(expected, nan_ok=True, rel=1e-12)
    kinds = dict(zip(answer.nonlinear.cell.tolist(), answer.nonlinear.kind, strict=True))
    assert kinds.get(0, "") == kind


def test_decimals_add_up_exactly(server: CubeServer) -> None:
    found, _ = value(server, "[Measures].[Tax]", "([Time].[2022], [Place].[28])")
    assert found == 30.6
    found, _ = value(server, "Sum([Place].[Town].Members, [Measures].[Tax])", "[Time].[2022]")
    assert found == 30.6


def test_group_by_ratio_is_the_ratio_of_sums(server: CubeServer) -> None:
    answer = server.execute(
        parse("SELECT {[Measures].[Rate]} ON 0, {[Place].[Big]} ON 1 FROM Tax WHERE [Time].[2023]")
    )
    assert answer.values[0] == pytest.approx((12.10 + 7.77) / 420)
    (row,) = answer.nonlinear.cell.tolist()
    operands = answer.coords[answer.nonlinear.indices]
    # The operands are the group's own cells, which have contributors of their own.
    assert row == 0
    assert (operands[:, 2] == answer.cube.hierarchies[1].size).all()
    assert len(answer.linear.cell) == 2


def test_solve_order_decides(server: CubeServer) -> None:
    text = (
        "WITH MEMBER [Measures].[R] AS [Measures].[Tax] / [Measures].[Income], SOLVE_ORDER = {} "
        "MEMBER [Sex].[Gap] AS [Sex].[W] - [Sex].[M], SOLVE_ORDER = {} "
        "SELECT {{[Measures].[R]}} ON 0, {{[Sex].[Gap]}} ON 1 FROM Tax WHERE [Time].[2022]"
    )
    difference_of_rates = server.execute(parse(text.format(1, 2))).values[0]
    rate_of_differences = server.execute(parse(text.format(2, 1))).values[0]
    assert difference_of_rates == pytest.approx(10.4 / 175 - 20.2 / 250)
    assert rate_of_differences == pytest.approx((10.4 - 20.2) / (175 - 250))


def test_named_sets_and_nesting(server: CubeServer) -> None:
    more = (
        "SET towns AS {[Place].[Alcalá], [Place].[Getafe]} MEMBER [Place].[G] AS Sum(towns) "
        "MEMBER [Place].[H] AS [Place].[G] - [Place].[Getafe]"
    )
    found, answer = value(server, "([Measures].[Income], [Place].[H]) * 2", "[Time].[2022]", more)
    assert found == 700
    terms = {member.name: member.terms for member in answer.calculated}
    assert terms["H"] == ((4, 1.0),)
    assert terms["G"] == ((4, 1.0), (5, 1.0))
    assert [member.is_group for member in answer.calculated if member.name == "H"] == [True]


def test_total_without_a_part_is_the_group_of_the_others(server: CubeServer) -> None:
    more = "MEMBER [Place].[Rest] AS [Place].[All] - [Place].[Getafe]"
    found, answer = value(server, "([Measures].[Income], [Place].[Rest]) + 0", "[Time].[2022]", more)
    assert found == 350
    (rest,) = (member for member in answer.calculated if member.name == "Rest")
    assert rest.is_group
    names = answer.cube.hierarchies[1].unique_names
    assert [names[number] for number, _ in rest.terms or ()] == [
        "[Place].[Province].&[08]",
        "[Place].[Town].&[28001]",
    ]


def test_equal_formulas_have_equal_keys(server: CubeServer) -> None:
    def keys(formula: str) -> set[str]:
        text = f"WITH MEMBER [Place].[X] AS {formula} SELECT [Place].[X] ON 0 FROM Tax WHERE [Time].[2022]"
        answer = server.execute(parse(text))
        space = Space.of(answer.cube)
        coords = Numbering(space, answer.calculated)(answer.coords[:1])
        return set(cell_keys(answer.cube, space, coords))

    same = keys("Aggregate({[Place].[28001], [Place].[08001]})")
    assert keys("Aggregate({[Place].[Town].&[08001], [Place].[Alcalá]})") == same
    assert keys("([Place].[Big])") == keys("[Place].[Big]")
    assert keys("[Place].[28001] - [Place].[08001]") != same


def test_slicer_set_is_aggregated(server: CubeServer) -> None:
    answer = server.execute(
        parse(
            "SELECT {[Measures].[Income], [Measures].[Persons]} ON 0 FROM Tax "
            "WHERE {[Time].[2022], [Time].[2023]} * {[Sex].[W], [Sex].[M]}"
        )
    )
    assert answer.values[:2].tolist() == [845, 6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT [Sex].[Sex].Members ON 0 FROM (SELECT {[Sex].[W]} ON 0 FROM Tax)", [2]),
        ("SELECT [Sex].Members ON 0 FROM (SELECT {[Place].[Getafe]} ON 0 FROM Tax)", [1, NAN, 1]),
        ("SELECT Head([Place].[Town].Members) ON 0 FROM (SELECT {[Place].[28]} ON 0 FROM Tax)", [2]),
        (
            "SELECT [Sex].Members ON 0 FROM (SELECT {[Place].[Alcalá], [Place].[Badalona]} ON 0 FROM Tax)",
            [2, 1, 1],
        ),
        ("SELECT [Sex].Members ON 0 FROM (SELECT {[Time].[2023]} ON 0 FROM Tax)", [4, 2, 2]),
        ("SELECT [Sex].Members ON 0 FROM (SELECT [Time].[Year].Members ON 0 FROM Tax)", [3, 1, 2]),
        ("SELECT FROM (SELECT {[Sex].[W]} * {[Place].[28]} ON 0 FROM Tax WHERE [Time].[2023])", [1]),
        ("SELECT FROM (SELECT [Place].[28] ON 0 FROM (SELECT [Place].[Town].Members ON 0 FROM Tax))", [3]),
        ("SELECT FROM Tax WHERE {[Place].[All], [Place].[28]}", [3]),
        # Without a total, what a part leaves of the default member, else of the first one.
        ("SELECT FROM (SELECT {[Time].[2022].[02], [Time].[2023].[01]} ON 0 FROM Tax)", [2]),
        ("SELECT FROM (SELECT {[Time].[2023].[01], [Time].[2023].[03]} ON 0 FROM Tax)", [3]),
        ("SELECT [Measures].[Highest] ON 0 FROM (SELECT [Time].[2023].Children ON 0 FROM Tax)", [300]),
    ],
)
def test_sub_selects(server: CubeServer, text: str, expected: list[float]) -> None:
    answer = server.execute(parse(text))
    assert answer.values[: answer.n_cells].tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    "tuples", ["([W], [28002]), ([M], [28001])", "([W], [28002]), ([M], [28]), ([M], [28001])"]
)
def test_measures_that_dont_add_up_are_taken_again_over_any_tuples(server: CubeServer, tuples: str) -> None:
    text = tuples.replace("[W]", "[Sex].[W]").replace("[M]", "[Sex].[M]").replace("[28", "[Place].[28")
    query = parse(f"SELECT {{[Persons], [Middle], [Highest]}} ON 0 FROM Tax WHERE {{{text}}}")
    answer = server.execute(query)
    assert answer.values[: answer.n_cells].tolist() == [2, 162.5, 250]


def test_calculated_members_stand_where_they_are_written(server: CubeServer) -> None:
    query = (
        "WITH MEMBER [Place].[Madrid].[Rest] AS [Place].[Getafe] / 2 "
        "MEMBER [Measures].[Above] AS [Place].CurrentMember.Parent.Name "
        "MEMBER [Measures].[Deep] AS [Place].CurrentMember.Level.Ordinal "
    )
    of_madrid = "AddCalculatedMembers([Place].[Madrid].Children)"
    answer = server.explore(parse(f"{query} SELECT {{[Deep], [Above]}} ON 0, {of_madrid} ON 1 FROM Tax"))
    there = [position[0] for position in answer.axes[1].positions]
    rest = next(row for row, member in enumerate(there) if member.captions["en"] == "Rest")
    assert there[rest].parent == there[0].parent
    assert answer.values[2 * rest] == answer.values[0] == 2
    assert answer.texts[2 * rest + 1] == answer.texts[1]
    elsewhere = server.explore(
        parse(f"{query} SELECT AddCalculatedMembers([Place].[08].Children) ON 0 FROM Tax")
    )
    captions = [position[0].captions["en"] for position in elsewhere.axes[0].positions]
    assert "Rest" not in captions


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ('Sum([Place].[Town].Members, [Place].CurrentMember.Properties("area"))', 700),
        ('[Place].[Getafe].Properties("area") - 80', 100),
        ('Count(Filter([Place].[Town].Members, [Place].CurrentMember.Properties("area") > 190))', 2),
    ],
)
def test_texts_that_are_numbers_count_as_such_beside_numbers(
    server: CubeServer, formula: str, expected: float
) -> None:
    assert value(server, formula)[0] == expected


def test_a_measure_comes_before_members_of_its_name(server: CubeServer) -> None:
    text = "WITH MEMBER [Measures].[w] AS 7 SELECT {[w]} ON 0 FROM Tax"
    assert server.execute(parse(text)).values.tolist() == [7]


def test_axes_and_cell_order(server: CubeServer) -> None:
    answer = server.execute(
        parse(
            "SELECT {[Measures].[Income], [Measures].[People]} ON 0, [Sex].Members ON 1, "
            "[Time].[Year].Members ON 2 FROM Tax"
        )
    )
    assert [len(axis.positions) for axis in answer.axes] == [2, 3, 2]
    assert answer.values[: answer.n_cells].tolist() == [425, 3, 250, 1, 175, 2, 420, 4, 300, 2, 120, 2]
    assert [member.unique_name for member in answer.slicer] == []
    answer = server.execute(parse("SELECT FROM Tax"))
    assert answer.values.tolist() == [3]
    assert [member.unique_name for member in answer.slicer] == [
        "[Measures].[People]",
        "[Time].[Year].&[2022]",
    ]


def test_non_empty_drops_positions_without_facts(server: CubeServer) -> None:
    query = (
        "SELECT {[Measures].[Income]} ON 0, NON EMPTY [Place].[Province].Members * [Sex].[Sex].Members ON 1 "
        "FROM Tax WHERE [Time].[2022]"
    )
    answer = server.execute(parse(query))
    assert [[m.captions["en"] for m in position] for position in answer.axes[1].positions] == [
        ["Madrid", "M"],
        ["Madrid", "W"],
    ]
    assert answer.n_cells == 2
    query = "SELECT NON EMPTY {[Sex].[W]} ON 0, NON EMPTY {[Place].[08]} ON 1 FROM Tax WHERE [Time].[2022]"
    answer = server.execute(parse(query))
    assert (answer.n_cells, answer.axes[0].positions) == (0, ())


@pytest.mark.parametrize(
    "formula",
    [
        "IIF([Measures].[Income] > {}, 1, NULL)",
        "IIF([Measures].[Income] > {}, NULL, [Measures].[Income])",
        "CASE WHEN [Measures].[Income] > {} THEN [Measures].[Income] END",
        "[Measures].[Income] / IIF([Measures].[Income] > {}, 1, 0)",
        "[Measures].[People] / ([Measures].[Income] - {})",
    ],
)
@pytest.mark.parametrize(
    "rows", ["NON EMPTY [Place].[Town].Members", "NonEmpty([Place].[Town].Members, {[Measures].[X]})"]
)
def test_emptiness_never_hangs_on_a_value(server: CubeServer, formula: str, rows: str) -> None:
    """Else the positions that stay would tell which cells are above a bound that the author chose."""
    shown = set()
    for bound in (0, 75, 200, 350, 10**9):
        member = f"WITH MEMBER [Measures].[X] AS {formula.format(bound)}"
        answer = server.execute(parse(f"{member} SELECT {{[Measures].[X]}} ON 0, {rows} ON 1 FROM Tax"))
        shown.add(tuple(position[0].unique_name for position in answer.axes[1].positions))
    assert len(shown) == 1
    assert len(shown.pop()) >= 2


def test_what_members_show(facts: CubeServer) -> None:
    server = facts
    (madrid,) = server.members("[Place].[Madrid]")
    assert madrid.unique_name == "[Place].[Province].&[28]"
    assert (madrid.captions, madrid.level, madrid.depth) == (
        {"en": "Madrid", "es": "Madrid"},
        "[Place].[Province]",
        1,
    )
    assert madrid.parent == "[Place].[All]"
    (spain,) = server.members("[Place].[All]")
    assert spain.captions == {"en": "Spain", "es": "España"}


def test_formats_give_decimals(server: CubeServer) -> None:
    decimals = {}
    for form in ("0", "#,##0.0", "0.0%", "Percent", "#,##0.00;(#,##0.0)"):
        text = (
            f'WITH MEMBER [Measures].[X] AS 1, FORMAT_STRING = "{form}" SELECT [Measures].[X] ON 0 FROM Tax'
        )
        (member,) = (m for m in server.execute(parse(text)).calculated if m.name == "X")
        decimals[form] = member.decimals
    assert decimals == {"0": 0, "#,##0.0": 1, "0.0%": 3, "Percent": 4, "#,##0.00;(#,##0.0)": 2}


def test_colours_are_left_and_a_format_needs_no_quotes(server: CubeServer) -> None:
    text = (
        "WITH MEMBER [Measures].[X] AS 1, FORMAT_STRING = Percent, FORE_COLOR = IIF([Income] > 5, 255, 0) "
        "SELECT [Measures].[X] ON 0 FROM Tax"
    )
    (member,) = (m for m in server.execute(parse(text)).calculated if m.name == "X")
    assert (member.format, member.decimals) == ("Percent", 4)


def test_recursive_formula_over_time_ends(server: CubeServer) -> None:
    formula = (
        "IIF([Time].CurrentMember.PrevMember IS NULL, [Measures].[Income], "
        "[Measures].[Income] + ([Measures].[It], [Time].PrevMember))"
    )
    found, answer = value(server, formula, "[Time].[2023].[02]")
    assert found == 845
    row = answer.linear.cell.tolist().index(0)
    span = slice(answer.linear.indptr[row], answer.linear.indptr[row + 1])
    assert np.allclose(answer.linear.coefs[span], 1)
    assert span.stop - span.start == 4


def test_profile_counts_households(facts: CubeServer) -> None:
    server = facts
    answer = server.execute(
        parse("SELECT {[Measures].[Income]} ON 0, [Place].[Town].Members ON 1 FROM Tax WHERE [Time].[2022]")
    )
    found = server.measure(answer.coords)
    # Badalona, Alcalá (one household of two), Getafe.
    assert found.count.tolist() == [0, 1, 1]
    assert found.top[:, 0].tolist() == [0, 350, 75]
    assert found.holder[0] == -1
    assert found.holder[1] != found.holder[2]
