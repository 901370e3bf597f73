"""Parent-child hierarchies: a tree in two columns."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.errors import UserError
from app.domain.publication import (
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)
from app.mdx import parse
from app.pipeline.define import load_publication
from tests.cube.office import write_csv
from tests.pipeline.offices import CUBE, write_office

#: key, key above, name
STAFF = (
    ("1", "", "Ana"),
    ("2", "1", "Ben"),
    ("3", "1", "Cai"),
    ("4", "2", "Dot"),
    ("5", "2", "Eve"),
    ("6", "0", "Fay"),
)
#: key, hours
WORK = (("1", "8"), ("2", "4"), ("4", "2"), ("5", "1"), ("3", "16"), ("4", "32"), ("6", "64"))


def definition(folder: Path, staff: Sequence[Sequence[str]], work: Sequence[Sequence[str]]) -> CubeDefinition:
    facts = write_csv(folder / "work.csv", ("staff", "hours"), work)
    table = write_csv(folder / "staff.csv", ("id", "boss", "name"), staff)
    level = LevelDefinition(
        "Person", {"en": "Person"}, "id", {"en": "name"}, None, parent="boss", null_parent="0"
    )
    tree = HierarchyDefinition("Staff", {"en": "Staff"}, {"en": "Everyone"}, (level,))
    return CubeDefinition(
        "Work",
        {"en": "Work"},
        FactsDefinition(facts, None, None, None, None, None, None),
        (DimensionDefinition("Staff", {"en": "Staff"}, (tree,), table, "id", "staff"),),
        (MeasureDefinition("Hours", {"en": "Hours"}, "sum", "hours", {}, "0", 0, True),),
        (),
        Position("cubes/work.toml", 1),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = open_cube(definition(tmp_path_factory.mktemp("staff"), STAFF, WORK))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Staff].[Everyone].Children", {"Ana": 63, "Fay": 64}),
        ("[Staff].[Ana].Children", {"(Ana)": 8, "Ben": 39, "Cai": 16}),
        ("[Staff].[Person].[Ben].Children", {"(Ben)": 4, "Dot": 34, "Eve": 1}),
        ("[Staff].[Person].&[5]", {"Eve": 1}),
        ("[Staff].[Eve].Parent.Parent", {"Ana": 63}),
        ("[Staff].[Ana].[Ben].[Eve]", {"Eve": 1}),
        ("[Staff].[Ben].DataMember", {"(Ben)": 4}),
        ("[Staff].[Eve].DataMember", {"Eve": 1}),
        ("[Staff].[Person 3].Members", {"(Ben)": 4, "Dot": 34, "Eve": 1}),
        ("Descendants([Staff].[Ana], , LEAVES)", {"(Ana)": 8, "(Ben)": 4, "Dot": 34, "Eve": 1, "Cai": 16}),
        ("Ascendants([Staff].[Dot])", {"Dot": 34, "Ben": 39, "Ana": 63, "Everyone": 127}),
    ],
)
def test_members_and_values(server: Server, text: str, expected: dict[str, float]) -> None:
    answer = server.execute(parse(f"SELECT {{{text}}} ON 0 FROM Work"))
    captions = [position[0].captions["en"] for position in answer.axes[0].positions]
    assert dict(zip(captions, answer.values.tolist(), strict=True)) == expected


def test_the_level_of_the_definition_holds_the_whole_tree(server: Server) -> None:
    captions = [member.captions["en"] for member in server.members("[Staff].[Person].Members")]
    assert captions == ["Ana", "(Ana)", "Ben", "(Ben)", "Dot", "Eve", "Cai", "Fay"]
    (eve,) = server.members("[Staff].[Eve]")
    assert (eve.unique_name, eve.level, eve.depth) == ("[Staff].[Person].&[5]", "[Staff].[Person 3]", 3)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]]]:
    n = draw(st.integers(1, 9))
    parents = [draw(st.integers(-1, k - 1)) for k in range(n)]
    return parents, draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(-5, 20)), min_size=1, max_size=15)
    )


@settings(max_examples=25, deadline=None)
@given(trees(), st.randoms(use_true_random=False))
def test_a_member_is_all_that_is_beneath_it(
    made: tuple[list[int], list[tuple[int, int]]], random: np.random.RandomState
) -> None:
    parents, work = made
    staff = [(f"k{k}", "" if p < 0 else f"k{p}", f"n{k}") for k, p in enumerate(parents)]
    random.shuffle(staff)
    with tempfile.TemporaryDirectory() as folder:
        server = open_cube(
            definition(Path(folder), staff, [(f"k{member}", str(hours)) for member, hours in work])
        )
        try:
            (tree,) = server.discover().hierarchies
            coords = np.stack([np.zeros(tree.size, np.int32), np.arange(tree.size, dtype=np.int32)], axis=1)
            values = dict(zip(tree.unique_names, server.values(coords).tolist(), strict=True))
        finally:
            server.close()
    for k in range(len(parents)):
        inside = []
        for member, hours in work:
            above = member
            while above not in (k, -1):
                above = parents[above]
            if above == k:
                inside.append(hours)
        value = values[f"[Staff].[Person].&[k{k}]"]
        assert math.isnan(value) if not inside else value == sum(inside)
    for member in range(tree.size):
        beneath = [values[tree.unique_names[child]] for child in tree.child_lists[member]]
        if beneath and not math.isnan(values[tree.unique_names[member]]):
            assert np.nansum(beneath) == values[tree.unique_names[member]]


@pytest.mark.parametrize(
    ("staff", "cause"),
    [
        ((("1", "2", "Ana"), ("2", "1", "Ben")), "circle: “1” → “2” → “1”"),
        ((("1", "9", "Ana"), ("2", "1", "Ben")), "“9”, which isn't there"),
        ((("1", "", "Ana"), ("2", "", "Ben"), ("2", "1", "Ben")), "several places"),
        (tuple((str(k), str(k - 1) if k > 1 else "", "x") for k in range(1, 40)), "deep; the limit is 30"),
    ],
)
def test_wrong_trees(tmp_path: Path, staff: Sequence[Sequence[str]], cause: str) -> None:
    with pytest.raises(UserError) as failure:
        open_cube(definition(tmp_path, staff, (("1", "8"),)))
    assert cause in str(failure.value)


def test_definition_files(tmp_path: Path) -> None:
    level = '[[dimension.hierarchy.level]]\nname = "Size"\nkey = "size"\n'
    tree = CUBE.replace(level, level + 'parent = "activity"\nnull-parent = "0"\n')
    publication = load_publication(write_office(tmp_path / "right", cube=tree))
    (size,) = publication.cubes[0].dimensions[-1].hierarchies
    assert (size.levels[0].parent, size.levels[0].null_parent) == ("activity", "0")
    wrong = CUBE.replace(level, level + 'parent = "activty"\n' + level.replace("Size", "Other"))
    with pytest.raises(UserError) as failure:
        load_publication(write_office(tmp_path / "wrong", cube=wrong))
    told = str(failure.value)
    assert "no column activty" in told
    assert "that level alone" in told
