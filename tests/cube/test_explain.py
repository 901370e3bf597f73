"""What explain says that formulas become."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cube.explanation import Case, Explanation
from app.cube.remote import RemoteServer
from app.cube.server import Server
from app.mdx import parse
from tests.cube.engines import ENGINES, opened
from tests.cube.office import office

CALCULATED = (
    ("[Measures]", "Rate", "[Measures].[Tax] / [Measures].[Income]"),
    ("[Place]", "Big", "Aggregate({[Place].[Alcalá], [Place].[Badalona]})"),
)


@pytest.fixture(scope="module", params=ENGINES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server | RemoteServer]:
    with opened(request.param, office(tmp_path_factory.mktemp("office"), CALCULATED)) as found:
        yield found


def explained(
    server: Server | RemoteServer, formula: str, more: str = "", axes: str = "{[X]} ON 0"
) -> Explanation:
    query = parse(f"WITH {more} MEMBER [Measures].[X] AS {formula} SELECT {axes} FROM Tax")
    (found,) = (item for item in server.explain(query) if item.member == "[Measures].[X]")
    return found


@pytest.mark.parametrize(
    ("formula", "equation"),
    [
        ("[Income] - 0.5 * [Tax] + 3", "[Measures].[Income] - 0.5 · [Measures].[Tax] + 3"),
        ("-[Income] / 3", "-1/3 · [Measures].[Income]"),
        (
            "Sum({[Sex].[M], [Sex].[W]}, [Income])",
            "([Measures].[Income], [Sex].[Sex].&[M]) + ([Measures].[Income], [Sex].[Sex].&[W])",
        ),
        (
            "IIF([Sex].CurrentMember IS [Sex].[M], [Tax], ([Income], [Place].[28]))",
            "([Measures].[Income], [Place].[Province].&[28])",
        ),
        ("([Income], [Place].[Big])", "([Measures].[Income], [Place].[Big])"),
    ],
)
def test_linear_formulas_are_equations(server: Server | RemoteServer, formula: str, equation: str) -> None:
    (case,) = explained(server, formula).cases
    assert (case.kind, case.formula, case.inequality) == ("linear", equation, "")


def test_nested_members_are_resolved(server: Server | RemoteServer) -> None:
    more = "MEMBER [Measures].[Net] AS [Income] - [Tax]"
    (case,) = explained(server, "2 * [Net] + [Tax]", more).cases
    assert case.formula == "2 · [Measures].[Net] + [Measures].[Tax]"
    assert case.resolved == "2 · [Measures].[Income] - [Measures].[Tax]"


def test_what_hangs_on_the_current_member_has_its_cases(server: Server | RemoteServer) -> None:
    axes = "{[X]} ON 0, {[Time].[2022].[02] : [Time].[2023].[02]} ON 1"
    found = explained(server, "[Income] - ([Income], [Time].PrevMember)", axes=axes)
    assert [(case.when, case.cells) for case in found.cases] == [
        (("[Time].[Month].&[2022]&[02]",), 1),
        (("[Time].[Month].&[2023]&[01]",), 1),
        (("[Time].[Month].&[2023]&[02]",), 1),
    ]
    assert (
        found.cases[0].formula == "[Measures].[Income] - ([Measures].[Income], [Time].[Month].&[2022]&[01])"
    )


RATIO = "(r - 0.05) · [Measures].[Income] ≤ 100 · [Measures].[Tax] ≤ (r + 0.05) · [Measures].[Income]"


@pytest.mark.parametrize(
    ("formula", "form", "kind", "inequality"),
    [
        ("100 * [Tax] / [Income]", "0.0", "ratio", RATIO),
        ("[Tax] / [Income] * 100", "0.0", "ratio", RATIO),
        (
            "[Tax] / [Income] - 1",
            "0%",
            "ratio",
            "(r + 0.995) · [Measures].[Income] ≤ [Measures].[Tax] ≤ (r + 1.005) · [Measures].[Income]",
        ),
        (
            "Avg({[Sex].[M], [Sex].[W]}, [Tax])",
            "0",
            "average",
            "(r - 0.5) · n ≤ ([Measures].[Tax], [Sex].[Sex].&[M]) + ([Measures].[Tax], [Sex].[Sex].&[W])"
            " ≤ (r + 0.5) · n",
        ),
        ("[Tax] * [Income]", "0", "product", ""),
        ("[Rate] + [Rate]", "0", "ratio", ""),
        ("IIF([Tax] > 3, [Income], 0)", "0", "if", ""),
        ("IIF([Income] = 0, NULL, 100 * [Tax] / [Income])", "0.0", "ratio", RATIO),
        ("IIF(IsEmpty([Income]), NULL, 100 * [Tax] / [Income])", "0.0", "ratio", RATIO),
        ("IIF([Income] <> 0, 100 * ([Tax] / [Income]), NULL)", "0.0", "ratio", RATIO),
        ("IIF([Income] = 0, 0, [Tax] / [Income])", "0.0", "if", ""),
        ("IIF([Tax] = 0, NULL, [Tax] / [Income])", "0.0", "if", ""),
    ],
)
def test_ratios_are_the_inequality_of_their_rounding(
    server: Server | RemoteServer, formula: str, form: str, kind: str, inequality: str
) -> None:
    (case,) = explained(server, f"{formula}, FORMAT_STRING = '{form}'").cases
    assert case.kind == kind
    assert case.inequality.split("  [")[0] == inequality
    assert any("[Measures].[Tax]" in operand for operand in case.operands)
    if kind in ("ratio", "average"):
        assert case.neither is None
    else:
        assert case.neither is not None
        assert "neither a sum nor a quotient" in case.neither.cause
        assert case.neither.column == len("WITH  MEMBER [Measures].[X] AS ") + 1


def test_members_of_hierarchies_and_of_the_cube(server: Server | RemoteServer) -> None:
    found = server.explain(
        parse(
            "WITH MEMBER [Place].[Rest] AS [Place].[All] - [Place].[Big] "
            "SELECT {[Income], [Rate]} ON 0, {[Place].[Rest]} ON 1 FROM Tax"
        )
    )
    by_name = {item.member: item.cases for item in found}
    assert set(by_name) == {"[Place].[Rest]", "[Measures].[Rate]", "[Place].[Big]"}
    assert by_name["[Place].[Rest]"][0].resolved == "[Place].[Town].&[28002]"
    (group,) = by_name["[Place].[Big]"]
    assert group.formula == "[Place].[Town].&[28001] + [Place].[Town].&[08001]"


def test_refusals_say_where_and_why(server: Server | RemoteServer) -> None:
    text = (
        "WITH MEMBER [Measures].[Bad] AS [Bad] + 1 MEMBER [Measures].[Good] AS [Tax] * 2 "
        "MEMBER [Measures].[Odd] AS [Place].Members "
        "SELECT [Place].Members ON 0 FROM Tax WHERE TopCount([Sex].[Sex].Members, 2, [Tax])"
    )
    found = {item.member: item for item in server.explain(parse(text))}
    assert "refers to itself" in found["[Measures].[Bad]"].refusal[0].cause
    assert "Expected a value" in found["[Measures].[Odd]"].refusal[0].cause
    assert found["[Measures].[Odd]"].refusal[0].column == text.index("Members SELECT") + 1
    assert found["[Measures].[Good]"].cases == (Case((), 1, "linear", "2 · [Measures].[Tax]"),)
    assert "confidential" in found["the query"].refusal[0].cause
