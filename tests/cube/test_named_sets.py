"""Named sets and calculated members of hierarchies in a cube's definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.errors import UserError
from app.domain.publication import NamedSetDefinition, Position
from app.mdx import parse
from app.pipeline.define import load_publication
from tests.cube.office import office
from tests.pipeline.offices import CUBE, write_office

SETS = (
    ("Coast", "{[Place].[Badalona]}"),
    ("Inland", "[Place].[Town].Members - [Coast]"),
    ("Largest", "TopCount([Place].[Town].Members, 1, [Measures].[Income])"),
    ("Seen", "NonEmpty([Place].[Town].Members)"),
)
CALCULATED = (
    ("[Place]", "Dry", "Aggregate([Inland])"),
    ("[Place]", "Difference", "[Place].[Dry] - [Place].[Badalona]"),
)


def opened(folder: Path, sets: tuple[tuple[str, str], ...]) -> Server:
    named = tuple(
        NamedSetDefinition(name, formula, Position("cubes/tax.toml", 60 + number))
        for number, (name, formula) in enumerate(sets)
    )
    return open_cube(replace(office(folder, CALCULATED), named_sets=named))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = opened(tmp_path_factory.mktemp("office"), SETS)
    yield made
    made.close()


def keys(server: Server, text: str, more: str = "") -> list[str]:
    answer = server.explore(parse(f"{more} SELECT {text} ON 0 FROM Tax WHERE [Time].[2022]"))
    return [position[0].unique_name.split("&")[-1].strip("[]") for position in answer.axes[0].positions]


def test_queries_use_the_sets_of_the_cube(server: Server) -> None:
    assert keys(server, "[Coast]") == ["08001"]
    assert keys(server, "{inland, [Coast]}") == ["28001", "28002", "08001"]
    assert keys(server, "[Seen]") == ["28001", "28002"]
    assert keys(server, "[Coast]", "WITH SET Coast AS {[Place].[Getafe]}") == ["28002"]
    assert [m.unique_name for m in server.members("[Coast]")] == ["[Place].[Town].&[08001]"]


def test_sets_by_values_stay_the_analysts(server: Server) -> None:
    assert keys(server, "[Largest]") == ["28001"]
    with pytest.raises(UserError, match="confidential"):
        server.execute(parse("SELECT [Measures].[Tax] ON 0 FROM Tax WHERE [Largest]"))


def test_members_of_hierarchies_use_them(server: Server) -> None:
    query = parse(
        "SELECT {[Place].[Dry], [Place].[Difference]} ON 0 FROM Tax "
        "WHERE ([Measures].[Income], [Time].[2023])"
    )
    answer = server.execute(query)
    assert answer.values[:2].tolist() == [120.0, 120.0 - 300.0]
    terms = {member.name: member.terms for member in answer.calculated}
    assert [coefficient for _, coefficient in terms["Difference"] or ()] == [-1, 1, 1]


@pytest.mark.parametrize(
    ("sets", "line", "cause"),
    [
        ((("A", "[Place].[Nowhere]"),), 60, "[Nowhere]"),
        ((("A", "{[Place].[Town]}"),), 60, "Expected a set"),
        ((("A", "{[Sex].[M]}"), ("B", "[A] + [Place].Members")), 61, "can't hold"),
        ((("A", "[B]"), ("B", "[A]")), 60, "defined by itself"),
    ],
)
def test_wrong_sets_are_told_with_their_line(
    tmp_path: Path, sets: tuple[tuple[str, str], ...], line: int, cause: str
) -> None:
    with pytest.raises(UserError) as failure:
        opened(tmp_path, (*sets, ("Inland", "{[Place].[Getafe]}")))
    told = {(item.file, item.line) for item in failure.value.mistakes if cause in item.cause}
    assert ("cubes/tax.toml", line) in told


def test_definition_files(tmp_path: Path) -> None:
    more = (
        '[[named-set]]\nname = "Ports"\nformula = "{[Place].[Town].&[a1]}"\n'
        '[[calculated]]\non = "[Place]"\nname = "Rest"\nformula = "[Place].[All] - [Place].[Coast]"\n'
        "solve-order = 3\n"
    )
    publication = load_publication(write_office(tmp_path / "right", cube=CUBE + more))
    (cube,) = publication.cubes
    assert [(item.name, item.formula) for item in cube.named_sets] == [("Ports", "{[Place].[Town].&[a1]}")]
    assert cube.calculated[-1].solve_order == 3
    lines = (CUBE + more).splitlines()
    wrong = more.replace('&[a1]}"', '&[a1]"').replace("solve-order", "solve-ordre")
    wrong += '[[named-set]]\nname = "ports"\n'
    with pytest.raises(UserError) as failure:
        load_publication(write_office(tmp_path / "wrong", cube=CUBE + wrong))
    told = {item.line: item.cause for item in failure.value.mistakes}
    first = lines.index("[[named-set]]") + 1
    assert "Expected" in told[first + 2]
    assert "solve-ordre" in told[first + 7]
    assert "formula is missing" in told[first + 8] or "twice" in told[first + 9]


def test_queries_of_dimensions_need_a_database(tmp_path: Path) -> None:
    cube = CUBE.replace('table = "../data/places.csv"', 'sql = "select * from places"')
    with pytest.raises(UserError, match="these are a file"):
        load_publication(write_office(tmp_path, cube=cube))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Generate([Inland], {[Inland].Current.Parent})", ["28"]),
        ("Generate([Inland] + [Coast], {[Inland].Current})", ["28001", "28002", "08001"]),
        ("Filter([Inland], [Inland].CurrentOrdinal = 1)", ["28002"]),
        ("Filter([Place].[Town].Members, NOT IsEmpty([Coast].CurrentOrdinal))", ["08001"]),
        ("Filter([Pairs], [Pairs].Current.Item(1) IS [Sex].[W] AND [Pairs].CurrentOrdinal > 1)", ["28002"]),
    ],
)
def test_where_an_iteration_is(server: Server, text: str, wanted: list[str]) -> None:
    assert keys(server, text, "WITH SET Pairs AS [Inland] * [Sex].[Sex].Members") == wanted


def test_where_an_iteration_over_a_set_by_values_is_stays_open(server: Server) -> None:
    text = "SELECT Filter([Largest], [Largest].CurrentOrdinal = 0) ON 0 FROM Tax"
    assert len(server.explore(parse(text)).axes[0].positions) == 1
    assert len(server.execute(parse(text)).axes[0].positions) == 3
