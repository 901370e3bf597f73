"""Readers' own queries over a release: what the sheets show, what follows from it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.errors import UserError
from app.domain.masked import CellStatus, MaskedCellSet
from app.mdx import parse, substitute, to_text
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.serve.adhoc import Adhoc
from app.serve.answer import LiveReader, NotPublishedError
from tests.databases import new_store
from tests.pipeline.offices import CUBE, SHEETS, write_office

SHOWN, EMPTY, HIDDEN = CellStatus.SHOWN, CellStatus.EMPTY, CellStatus.CONFIDENTIAL
UNRELEASED = CellStatus.UNRELEASED


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = write_office(tmp_path_factory.mktemp("office"))
    opened = new_store(folder / "release.sqlite3")
    run(load_publication(folder), opened, open_cube)
    yield opened
    opened.close()


ZONES = """
[[dimension.hierarchy]]
name = "Zones"
all.en = "All zones"
[[dimension.hierarchy.level]]
name = "Zone"
key = "region"
[[dimension]]
name = "Activity"
"""
BY_ZONE = '''
title.en = "Zones"
[[query]]
id = "table"
mdx = """
SELECT {[Activity].[All], [Activity].[Activity].Members} ON COLUMNS,
  {[Place.Zones].[All], [Place.Zones].[Zone].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Firms])"""
'''


def test_two_names_of_a_place_show_one_cell(tmp_path: Path) -> None:
    """Cells of a hierarchy that follows from another are recorded as its members, and asked for as shown."""
    cube = CUBE.replace('[[dimension]]\nname = "Activity"\n', ZONES.lstrip(), 1)
    write_office(tmp_path, cube=cube, sheets={**SHEETS, "zones": BY_ZONE})
    store = new_store(tmp_path / "release.sqlite3")
    run(load_publication(tmp_path), store, open_cube)
    reader = LiveReader(store, asker=Adhoc())
    answers = released(reader)
    for sheet, query in zip(answers[::2], answers[1::2], strict=True):
        assert query.status.tolist() == sheet.status.tolist()
    by_zone, by_region = (
        ask(reader, f"SELECT {{[Activity].[Activity].Members}} * {{{place}.Members}} ON 0 FROM Firms")
        for place in ("[Place.Zones].[Zone]", "[Place].[Region]")
    )
    assert by_zone.status.tolist() == by_region.status.tolist()
    assert SHOWN in by_zone.status
    np.testing.assert_array_equal(by_zone.values, by_region.values)
    store.close()


@pytest.fixture(scope="module")
def reader(store: Store) -> LiveReader:
    return LiveReader(store, asker=Adhoc())


def ask(reader: LiveReader, text: str) -> MaskedCellSet:
    release_id = reader.live_id()
    assert release_id is not None
    return reader.ask(release_id, text).asked.masked


def released(reader: LiveReader) -> tuple[MaskedCellSet, ...]:
    """What the sheets show, each query as a reader would ask it, next to each other."""
    release_id = reader.live_id()
    assert release_id is not None
    catalogue = reader.catalogue(release_id)
    found: list[MaskedCellSet] = []
    for sheet in catalogue.root.walk():
        for query in sheet.queries:
            for chosen in product(*catalogue.choices[sheet.id]):
                names = [parameter.name for parameter in sheet.parameters]
                members = [member.unique_name for member in chosen]
                text = to_text(substitute(parse(query.mdx), dict(zip(names, members, strict=True))))
                found.append(reader.answer(release_id, sheet.id, query.id, tuple(members)).masked)
                found.append(ask(reader, text))
    return tuple(found)


def test_what_a_sheet_shows_a_query_shows(reader: LiveReader) -> None:
    answers = released(reader)
    assert len(answers) > 10
    for sheet, query in zip(answers[::2], answers[1::2], strict=True):
        assert query.axes == sheet.axes
        assert query.status.tolist() == sheet.status.tolist()
        assert query.styles == sheet.styles
        digits = [query.styles[number].decimals for number in query.style.tolist()]
        rounded = [round(value, n) for value, n in zip(query.values.tolist(), digits, strict=True)]
        np.testing.assert_array_equal(rounded, sheet.values)
    met = np.concatenate([answer.status for answer in answers])
    assert set(met.tolist()) == {SHOWN, EMPTY, HIDDEN}


def test_the_same_query_on_its_side_shows_the_same_numbers(reader: LiveReader) -> None:
    sets = "{[Activity].[All], [Activity].[Activity].Members}", "{[Place].[Region].Members}"
    one = ask(reader, f"SELECT {sets[0]} ON 0, {sets[1]} ON 1 FROM Firms")
    other = ask(reader, f"SELECT {sets[1]} ON 0, {sets[0]} ON 1 FROM Firms")
    shape = one.shape[::-1]
    np.testing.assert_array_equal(one.values.reshape(shape), other.values.reshape(shape[::-1]).T)
    np.testing.assert_array_equal(one.status.reshape(shape), other.status.reshape(shape[::-1]).T)


def test_a_cell_that_no_sheet_shows_is_not_released(reader: LiveReader) -> None:
    answer = ask(
        reader,
        "SELECT [Activity].[Activity].Members ON 0, [Size].[Size].Members ON 1 FROM Firms "
        "WHERE [Place].[Town].&[a1]",
    )
    assert (answer.status == UNRELEASED).all()
    assert np.isnan(answer.values).all()


def test_a_formula_gives_the_reason_of_its_operands(reader: LiveReader) -> None:
    """Not released over cells that no sheet shows; confidential as soon as one of them is."""
    towns = ask(reader, "SELECT [Place].[Town].Members * [Activity].[Activity].Members ON 0 FROM Firms")
    place, activity = next(
        position
        for position, status in zip(towns.axes[0].positions, towns.status, strict=True)
        if status == HIDDEN
    )
    answer = ask(
        reader,
        "WITH MEMBER [Measures].[Outside] AS 2 * ([Measures].[Firms], [Size].[All].FirstChild) "
        "MEMBER [Measures].[Both] AS [Measures].[Outside] + [Measures].[Firms] "
        "SELECT {[Measures].[Firms], [Measures].[Outside], [Measures].[Both]} ON 0 FROM Firms "
        f"WHERE ({place.unique_name}, {activity.unique_name})",
    )
    assert answer.status.tolist() == [HIDDEN, UNRELEASED, HIDDEN]


def test_formulas_are_worked_out_from_shown_cells_only(reader: LiveReader) -> None:
    text = (
        "WITH MEMBER [Measures].[Twice] AS 2 * [Measures].[Firms] "
        "MEMBER [Measures].[Known] AS IIF(IsEmpty([Measures].[Firms]), 0, 1) "
        "MEMBER [Measures].[Never less] AS CoalesceEmpty([Measures].[Firms], 0) "
        "SELECT {[Measures].[Firms], [Measures].[Twice], [Measures].[Known], [Measures].[Never less]} ON 0, "
        "{[Activity].[All], [Activity].[Activity].Members} * [Place].[Town].Members ON 1 FROM Firms"
    )
    answer = ask(reader, text)
    status, values = answer.status.reshape(-1, 4), answer.values.reshape(-1, 4)
    hidden = status[:, 0] == HIDDEN
    assert hidden.any()
    assert (status[hidden] == HIDDEN).all()
    shown = status[:, 0] == SHOWN
    np.testing.assert_array_equal(values[shown, 1], 2 * values[shown, 0])
    assert (values[shown, 2] == 1).all()
    empty = status[:, 0] == EMPTY
    assert (status[empty, 1] == EMPTY).all()
    assert (values[empty, 3] == 0).all()


def test_a_sum_over_a_hidden_cell_is_hidden(reader: LiveReader) -> None:
    towns = ask(reader, "SELECT [Place].[Town].Members * [Activity].[Activity].Members ON 0 FROM Firms")
    hidden = [
        ", ".join(f"({position[0].unique_name}, {position[1].unique_name})" for position in [position])
        for position, status in zip(towns.axes[0].positions, towns.status, strict=True)
        if status == HIDDEN
    ]
    for cell in hidden[:5]:
        answer = ask(
            reader,
            f"WITH MEMBER [Measures].[S] AS Sum({{{cell}}}, [Measures].[Firms]) + 0 * [Measures].[Firms] "
            "MEMBER [Measures].[Rank] AS Rank([Place].[Town].&[a1], [Place].[Town].Members, [Measures].[S]) "
            "SELECT {[Measures].[S], [Measures].[Rank]} ON 0 FROM Firms",
        )
        assert answer.status.tolist() == [HIDDEN, HIDDEN]


def test_sets_by_values_see_released_values(reader: LiveReader) -> None:
    everything = "{[Activity].[Activity].Members} * {[Place].[Town].Members}"
    plain = ask(reader, f"SELECT {everything} ON 0 FROM Firms")
    by_value = ask(reader, f"SELECT Order({everything}, [Measures].[Firms], BDESC) ON 0 FROM Firms")
    # Empty cells come after all others, hidden ones at the very end.
    lowest = {SHOWN: 0.0, EMPTY: -1.0, HIDDEN: -2.0}
    ranks = [
        value if status == SHOWN else lowest[CellStatus(int(status))]
        for value, status in zip(plain.values, plain.status, strict=True)
    ]
    assert {0.0, -1.0, -2.0} & set(ranks) == {-1.0, -2.0}
    order = sorted(range(len(ranks)), key=lambda place: -ranks[place])
    assert len(set(ranks)) < len(ranks)
    assert by_value.axes[0].positions == tuple(plain.axes[0].positions[place] for place in order)
    above = ask(reader, f"SELECT Filter({everything}, [Measures].[Firms] > 1) ON 0 FROM Firms")
    kept = [place for place, rank in enumerate(ranks) if rank > 1]
    assert above.axes[0].positions == tuple(plain.axes[0].positions[place] for place in kept)


def test_a_group_of_shown_cells_is_their_sum(reader: LiveReader) -> None:
    plain = ask(reader, "SELECT [Activity].[Activity].Members * [Place].Members ON 0 FROM Firms")
    shown: dict[str, list[tuple[str, float]]] = {}
    for position, status, value in zip(plain.axes[0].positions, plain.status, plain.values, strict=True):
        if status == SHOWN and "[Town]" in position[1].unique_name:
            shown.setdefault(position[0].unique_name, []).append((position[1].unique_name, value))
    activity, cells = max(shown.items(), key=lambda item: len(item[1]))
    assert len(cells) > 1
    group = ", ".join(name for name, _ in cells)
    answer = ask(
        reader,
        f"WITH MEMBER [Place].[Some] AS Aggregate({{{group}}}) SELECT [Place].[Some] ON 0 FROM Firms "
        f"WHERE {activity}",
    )
    assert answer.values.tolist() == [sum(value for _, value in cells)]
    sliced = ask(reader, f"SELECT [Measures].[Firms] ON 0 FROM Firms WHERE {{{group}}} * {{{activity}}}")
    assert sliced.values.tolist() == answer.values.tolist()


def test_words(reader: LiveReader) -> None:
    answer = ask(
        reader,
        "WITH MEMBER [Measures].[Name] AS [Place].CurrentMember.UniqueName "
        "SELECT [Measures].[Name] ON 0, [Place].[Region].Members ON 1 FROM Firms",
    )
    assert answer.texts[0] == "[Place].[Region].&[A]"
    assert (answer.status == EMPTY).all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT", "1:7"),
        ("SELECT [Place].[Nowhere] ON 0 FROM Firms", "Nowhere"),
        ("SELECT [Place].Members ON 0 FROM Elsewhere", "There is Firms."),
        ("SELECT [Place].Members ON 0 FROM Firms WHERE @activity", "@activity"),
        ("SELECT {" + "[Place].Members * " * 12 + "[Place].Members} ON 0 FROM Firms", "both sides"),
        ("SELECT " + "x" * 200_001 + " ON 0 FROM Firms", "200,000"),
    ],
)
def test_mistakes_are_told(reader: LiveReader, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        ask(reader, text)


def test_limits(reader: LiveReader) -> None:
    many = "Generate([Place].Members, [Activity].Members * [Size].Members, ALL)"
    power = "Generate([Activity].Members * [Size].Members, [Place].Members, ALL)"
    with pytest.raises(UserError, match="limit"):
        ask(reader, f"SELECT {many} ON 0, Generate([Place].Members, {power}, ALL) ON 1 FROM Firms")


def within(depth: int) -> str:
    """A set that goes through the towns once for each town, that often."""
    towns = "[Place].[Town].Members"
    return f"Generate({towns}, Head({within(depth - 1)}, 1))" if depth else towns


MANY = "Generate([Place].[Town].Members, [Place].[Town].Members * [Activity].[Activity].Members, ALL)"
LONG = "a" * 50_000


def measure(formula: str, name: str = "X", more: str = "") -> str:
    """A query of one calculated measure, at each of many towns and activities."""
    made = f"WITH MEMBER [Measures].[{name}] AS {formula}{more}"
    return f"{made} SELECT [Measures].[{name}] ON 0, {MANY} ON 1 FROM Firms"


#: Queries of which a few words would take hours, or all memory; and what is said of each.
GROWING = {
    f"SELECT {within(14)} ON 0 FROM Firms": "sets within sets too often",
    f"SELECT Filter({MANY}, Count({within(12)}) > 0) ON 0 FROM Firms": "sets within sets too often",
    measure("Replace(" * 40 + '"aaaaaaaaaa"' + ', "a", "aaaaaaaaaa")' * 40): "longer than 1,000,000 letters",
    measure(f'Len(Generate({MANY}, "{LONG}"))'): "longer than 1,000,000 letters",
    measure(f'"{LONG}"'): "250 letters at most",
    measure(f'IIf([Measures].[Firms] > 1, "{LONG}", 1)'): "250 letters at most",
    measure("1", more=f", FORMAT_STRING = '{LONG}'"): "250 letters at most",
    measure("1", more=f", CAPTION = '{LONG}'"): "250 letters at most",
    measure("1", LONG): "250 letters at most",
    f"SELECT VisualTotals([Place].Members, '{'*' * 50_000}') ON 0 FROM Firms": "250 letters at most",
    f"WITH {' '.join(f'SET [S{n}] AS [Place]' for n in range(2000))} SELECT FROM Firms": "more than 1,000",
}


@pytest.mark.parametrize(("text", "told"), GROWING.items(), ids=map(str, range(len(GROWING))))
def test_a_query_that_grows_beyond_measure_is_refused_where_it_does(
    reader: LiveReader, text: str, told: str
) -> None:
    with pytest.raises(UserError) as refused:
        ask(reader, text)
    (mistake,) = refused.value.mistakes
    assert told in mistake.cause
    assert mistake.line == 1


def test_what_is_said_again_is_answered_once(reader: LiveReader) -> None:
    cased = ", ".join("member_caption"[:n].upper() + "member_caption"[n:] for n in range(14))
    text = f"SELECT [Place].[Town].Members DIMENSION PROPERTIES {cased} ON 0 FROM Firms"
    release_id = reader.live_id()
    assert release_id is not None
    asked = reader.ask(release_id, f"{text} CELL PROPERTIES {', '.join(['VALUE'] * 500)}").asked
    assert asked.cell_properties == ("VALUE",)
    assert {len(member) for position in asked.properties[0] for member in position} == {1}


@pytest.mark.parametrize("depth", [1, 2, 30, 900])
def test_a_chain_of_formulas_is_worked_out_link_by_link(reader: LiveReader, depth: int) -> None:
    links = "".join(f"MEMBER [Measures].[X{n + 1}] AS '[Measures].[X{n}] + 1' " for n in range(depth))
    text = f"WITH MEMBER [Measures].[X0] AS '1' {links}SELECT [Measures].[X{depth}] ON 0 FROM Firms"
    assert ask(reader, text).values.tolist() == [1 + depth]


def test_a_site_without_queries_says_so(store: Store) -> None:
    reader = LiveReader(store)
    release_id = reader.live_id()
    assert release_id is not None
    with pytest.raises(NotPublishedError):
        reader.ask(release_id, "SELECT FROM Firms")


def test_every_shown_number_is_one_that_was_released(reader: LiveReader, store: Store) -> None:
    """Whatever is asked of own cells: a number comes from the release's own list."""
    release = store.live_release()
    assert release is not None
    known = set(release.values[np.isfinite(release.values)].tolist())
    for slicer, rows in product(("[Size].[All]", "[Size].[Size].&[small]"), ("Activity", "Place")):
        text = f"SELECT [Measures].Members ON 0, [{rows}].Members ON 1 FROM Firms WHERE {slicer}"
        answer = ask(reader, text)
        assert set(answer.values[answer.status == SHOWN].tolist()) <= known
