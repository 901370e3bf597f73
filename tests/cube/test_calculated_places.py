"""Calculated members stand where they are written when sets are ordered and drilled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
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
