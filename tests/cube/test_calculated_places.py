"""Calculated members stand where they are written when sets are ordered and drilled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.errors import UserError
from app.mdx import parse
from tests.cube.office import office

CALCULATED = (
    ("[Place].[Spain]", "Whole", "Aggregate([Place].[Province].Members)"),
    ("[Place].[Madrid]", "Towns", "Aggregate([Place].[Madrid].Children)"),
)


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = open_cube(office(tmp_path_factory.mktemp("office"), CALCULATED))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DrilldownLevel({[Place].[All]}, , , INCLUDE_CALC_MEMBERS)", "All|08|28|Whole"),
        ("DrilldownLevel({[Place].[All]})", "All|08|28"),
        (
            "Hierarchize(DrilldownMember({{DrilldownLevel({[Place].[All]},,,INCLUDE_CALC_MEMBERS)}}, "
            "{[Place].[28]},,,INCLUDE_CALC_MEMBERS))",
            "All|08|28|28001|28002|Towns|Whole",
        ),
        ("DrilldownMember({[Place].[28]} * {[Sex].[M]}, {[Place].[28]}, , , INCLUDE_CALC_MEMBERS)", None),
        (
            "ToggleDrillState({[Place].[28], [Place].[28].[Towns], [Place].[08]}, {[Place].[28]}, , "
            "INCLUDE_CALC_MEMBERS)",
            "28|08",
        ),
        (
            "Hierarchize({[Whole], [Towns], [Place].[Getafe], [Place].[28], [Place].[All]})",
            "All|28|28002|Towns|Whole",
        ),
        (
            "Hierarchize({[Whole], [Towns], [Place].[Getafe], [Place].[28], [Place].[All]}, POST)",
            "28002|Towns|28|Whole|All",
        ),
        (
            "Order({[Place].[28].Children, [Towns], [Place].[08], [Whole]}, [Income], DESC)",
            "Towns|28001|28002|Whole|08",
        ),
        ("Ancestor([Towns], 2)", "All"),
    ],
)
def test_calculated_members_have_their_place_in_a_hierarchy(
    placed: Server, text: str, expected: str | None
) -> None:
    answer = placed.explore(parse(f"SELECT {text} ON 0 FROM Tax WHERE [Time].[2022]"))
    found = [
        " ".join(member.unique_name.rsplit("].", 1)[-1].strip("&[]") for member in position)
        for position in answer.axes[0].positions
    ]
    assert found == (expected or "28 M|28001 M|28002 M|Towns M").split("|")


SAME_NAME = """WITH MEMBER [Place].[Madrid].[Half] AS [Place].[Madrid].[Getafe] / 2
MEMBER [Place].[Spain].[Half] AS [Place].CurrentMember.Parent / 2
MEMBER [Place].[28001].[Half] AS [Place].CurrentMember.Parent.Parent / 4
MEMBER [Place].[28].[Getafe town] AS [Place].[Madrid].[Half] * 2
SELECT {[Place].[28].[Half], [Place].[All].[Half], [Place].[Town].&[28001].[Half],
[Place].[28].[Getafe town]} ON 0 FROM Tax WHERE ([Income], [Time].[2022])"""


def test_calculated_members_of_one_name_stand_under_different_members(placed: Server) -> None:
    members = "{[Place].[Getafe], [Place].[All], [Place].[28]}"
    of_facts = placed.explore(
        parse(f"SELECT {members} ON 0 FROM Tax WHERE ([Income], [Time].[2022])")
    ).values[:3]
    answer = placed.explore(parse(SAME_NAME))
    getafe, spain, madrid = of_facts.tolist()
    assert answer.values[:4].tolist() == [getafe / 2, spain / 2, madrid / 4, getafe]
    names = [position[0].unique_name for position in answer.axes[0].positions]
    assert len(set(names)) == 4
    again = (
        SAME_NAME.split("SELECT")[0]
        + f"SELECT {{{', '.join(names)}}} ON 0 FROM Tax WHERE ([Income], [Time].[2022])"
    )
    assert placed.explore(parse(again)).values[:4].tolist() == answer.values[:4].tolist()
    # Their formulas say the same of different members.
    assert len({member.key for member in answer.calculated[-4:]}) == 4


def test_a_name_alone_is_refused_where_several_members_bear_it(placed: Server) -> None:
    two = SAME_NAME.replace("[Place].[Spain].[Half]", "[Place].[Getafe].[Half]")
    with pytest.raises(UserError, match="ambiguous"):
        placed.explore(parse(two.replace("[Place].[All].[Half]", "[Place].[Half]")))
    with pytest.raises(UserError, match="already"):
        placed.explore(parse(SAME_NAME.replace("[28001].[Half] AS", "[Province].[Madrid].[Half] AS")))
