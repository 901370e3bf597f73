"""What the pipeline asks of a cube server, for every engine alike (`app.cube.port`).

What MDX means is in test_mdx_semantics, which runs on every engine too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.cube.port import CubeServer, Group, Shown
from app.domain.errors import UserError
from app.domain.publication import CubeDefinition
from app.mdx import parse
from tests.cube.engines import ENGINES, opened
from tests.cube.office import ROWS, office


def definition(folder: Path, rows: tuple[tuple[str, ...], ...] = ROWS) -> CubeDefinition:
    """An office in which every fact is a contributor of its own, so that a count counts them."""
    cube = office(folder, (("[Measures]", "Rate", "[Measures].[Tax] / [Measures].[Income]"),), rows=rows)
    return replace(cube, facts=replace(cube.facts, respondent=None, holding=None))


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CubeServer]:
    with opened(engine, definition(tmp_path_factory.mktemp("office")), count="People") as found:
        yield found


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CubeServer]:
    """The same cube on the default engine."""
    found = open_cube(definition(tmp_path_factory.mktemp("truth")))
    yield found
    found.close()


def all_cells(server: CubeServer) -> np.ndarray:
    cube = server.discover()
    sizes = [len(cube.measures), *(tree.size for tree in cube.hierarchies)]
    return np.array(list(product(*map(range, sizes))), dtype=np.int32)


def test_discover(server: CubeServer, truth: CubeServer) -> None:
    cube, expected = server.discover(), truth.discover()
    assert cube.name == expected.name
    assert [(m.name, m.unique_name, m.aggregator, m.decimals) for m in cube.measures] == [
        (m.name, m.unique_name, m.aggregator, m.decimals) for m in expected.measures
    ]
    for tree, wanted in zip(cube.hierarchies, expected.hierarchies, strict=True):
        assert tree.unique_name == wanted.unique_name
        assert tree.unique_names == wanted.unique_names
        assert tree.keys == wanted.keys
        assert tree.member_captions["en"] == wanted.member_captions["en"]
        assert tree.parent.tolist() == wanted.parent.tolist()
        assert tree.depth.tolist() == wanted.depth.tolist()
        assert [level.unique_name for level in tree.levels] == [level.unique_name for level in wanted.levels]
        assert (tree.has_all, tree.default_member, tree.time) == (
            wanted.has_all,
            wanted.default_member,
            wanted.time,
        )
        assert dict(tree.properties) == dict(wanted.properties)


def test_values(server: CubeServer, truth: CubeServer) -> None:
    cells = all_cells(server)
    np.testing.assert_allclose(server.values(cells), truth.values(cells))
    assert len(server.values(cells[:0])) == 0


def test_members(server: CubeServer, truth: CubeServer) -> None:
    for text in ("[Place].Members", "{[Place].[Madrid].Children, [Place].[08]}", "[Time].[2022].Children"):
        found = [(m.unique_name, m.captions["en"], m.depth, m.parent) for m in server.members(text)]
        wanted = [(m.unique_name, m.captions["en"], m.depth, m.parent) for m in truth.members(text)]
        assert found == wanted
    for wrong in ("[Place].[Nowhere]", "[Place].Members * [Sex].Members", "[Place"):
        with pytest.raises(UserError):
            server.members(wrong)


QUERIES = (
    "SELECT {[Measures].[Income], [Rate]} ON 0, NON EMPTY [Place].Members * [Sex].Members ON 1 FROM Tax",
    "WITH MEMBER [Place].[Both] AS Aggregate({[Place].[28002], [Place].[08]}) "
    "SELECT [Measures].Members ON 0, {[Place].[Both], [Place].[28]} ON 1 FROM Tax WHERE [Time].[2023]",
    "SELECT TopCount([Place].[Town].Members, 1, [Measures].[Income]) ON 0 FROM Tax WHERE [Time].[2022]",
)


@pytest.mark.parametrize("text", QUERIES)
def test_execute(server: CubeServer, truth: CubeServer, text: str) -> None:
    found, wanted = server.execute(parse(text)), truth.execute(parse(text))
    assert [[m.unique_name for m in p] for axis in found.axes for p in axis.positions] == [
        [m.unique_name for m in p] for axis in wanted.axes for p in axis.positions
    ]
    assert (found.n_cells, found.n_read) == (wanted.n_cells, wanted.n_read)
    assert found.coords.tolist() == wanted.coords.tolist()
    assert [member.key for member in found.calculated] == [member.key for member in wanted.calculated]
    np.testing.assert_allclose(found.values, wanted.values)
    for name in ("cell", "constant", "indptr", "indices", "coefs"):
        assert getattr(found.linear, name).tolist() == getattr(wanted.linear, name).tolist()
    assert found.nonlinear.indices.tolist() == wanted.nonlinear.indices.tolist()
    assert found.nonlinear.kind == wanted.nonlinear.kind


def test_explore_and_arrange(server: CubeServer) -> None:
    query = parse(QUERIES[2])
    (best,) = server.explore(query).axes[0].positions
    open_set = server.execute(query)
    assert len(open_set.axes[0].positions) == 3
    read = open_set.coords[open_set.n_cells : open_set.n_cells + open_set.n_read]
    values = open_set.values[open_set.n_cells : open_set.n_cells + open_set.n_read]
    biggest = int(np.nanargmax(values))
    hidden = np.arange(len(read)) == biggest
    made = server.arrange(query, Shown(read, np.where(hidden, np.nan, values), hidden))
    assert made.axes[0].positions[0] != best


def test_profiles_are_never_less_careful_than_the_facts(server: CubeServer, truth: CubeServer) -> None:
    """A profile may know less; then it takes fewer to be behind a cell, and more of it to be one's own."""
    cube = server.discover()
    sums = [number for number, measure in enumerate(cube.measures) if measure.additive]
    cells = all_cells(server)
    cells = cells[np.isin(cells[:, 0], sums)]
    group = Group(2, np.array([2, 4], dtype=np.int32))
    together = cells[cells[:, 2] == 0].copy()
    together[:, 2] = cube.hierarchies[1].size
    # Members of two hierarchies taken together need be no product.
    tuples = Group.of((2, 1), ((2, cube.hierarchies[0].size - 1), (4, cube.hierarchies[0].size - 2)))
    scattered = together[together[:, 1] == 0] + np.eye(len(together[0]), dtype=np.int32)[2]
    for coords in (cells, together, scattered):
        groups = (group, tuples)
        found, wanted = server.measure(coords, groups, 3), truth.measure(coords, groups, 3)
        np.testing.assert_allclose(found.value, wanted.value)
        assert (found.count <= wanted.count).all()
        assert (found.weighted_count <= wanted.weighted_count).all()
        assert (np.cumsum(found.top, axis=1) >= np.cumsum(wanted.top, axis=1) - 1e-9).all()
        assert (found.mass >= wanted.mass - 1e-9).all()
        told = np.unique(np.stack([found.holder, wanted.holder])[:, found.holder >= 0], axis=1)
        # Numbers are an engine's own, but one contributor has one number.
        assert (wanted.holder[found.holder >= 0] >= 0).all()
        assert all(len(np.unique(side)) == len(side) for side in told)
    people = cells[cells[:, 0] == 0]
    counted, known = server.measure(people, (), 2), truth.measure(people, (), 2)
    assert counted.count.tolist() == known.count.tolist()
    assert counted.top.tolist() == known.top.tolist()
    with pytest.raises(ValueError):
        server.measure(cells, (), 1)


def test_facts_are_told_whole_or_not_at_all(server: CubeServer, truth: CubeServer) -> None:
    found, wanted = server.facts(), truth.facts()
    assert wanted is not None
    if found is not None:
        assert [column.tolist() for column in found.leaf] == [column.tolist() for column in wanted.leaf]


def test_fingerprint(engine: str, tmp_path: Path) -> None:
    other = [list(row) for row in ROWS]
    other[0][4] = "101"
    prints = []
    for number, rows in enumerate((ROWS, ROWS, tuple(tuple(row) for row in other))):
        (tmp_path / str(number)).mkdir()
        with opened(engine, definition(tmp_path / str(number), rows)) as found:
            prints.append(found.fingerprint())
            assert found.fingerprint() == prints[-1]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT [Place].[Getaffe] ON 0 FROM Tax", "28002"),
        ("SELECT [Place].Members ON 0 FROM Elsewhere", "Elsewhere"),
        ("SELECT {[Place].[28], [Sex].[W]} ON 0 FROM Tax", "can't hold"),
        ("WITH MEMBER [Measures].[X] AS [Measures].[X] + 1 SELECT [X] ON 0 FROM Tax", "itself"),
        ("SELECT [Place].Members ON 0, [Place].Members ON 1 FROM Tax", "axis 0"),
    ],
)
def test_mistakes_have_their_place(server: CubeServer, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        server.execute(parse(text))
    assert all(mistake.line == 1 and mistake.column for mistake in caught.value.mistakes)


def test_a_cube_can_be_opened_and_closed_again(engine: str, tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        with opened(engine, definition(tmp_path / str(number))) as found:
            assert found.discover().name == "Tax"
