"""Which levels are bands of a measure, where they end, and that what is said of cells is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.db import Store
from app.domain.bands import Band, bounds_by_bands
from app.domain.cube import Cube, Cuts, Hierarchy, Level, Measure
from app.domain.ends import ends_between, numbers_in, roundest
from app.domain.errors import UserError
from app.domain.known import FactRows
from app.domain.lattice import Space
from app.pipeline.bands import find_bands
from app.pipeline.define import draft_publication
from app.pipeline.twins import Twin
from tests.pipeline.test_leak_bands import BANDED, firms_by_class, office
from tests.pipeline.test_protection import Ran

COUNT, SUM, WHO = 0, 1, 2


def hierarchy(
    name: str, parents: Sequence[int], captions: Sequence[str], has_all: bool = True, time: bool = False
) -> Hierarchy:
    depth: list[int] = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    levels = tuple(Level(f"L{number}", f"[{name}].[L{number}]", {}) for number in range(max(depth) + 1))
    keys = tuple(f"{name}{number}" for number in range(len(parents)))
    return Hierarchy(
        name, name, f"[{name}]", {}, levels, has_all, 0, keys, tuple(f"[{name}].&[{key}]" for key in keys),
        {"en": tuple(captions)}, np.array(parents, dtype=np.int32), np.array(depth, dtype=np.int32),
        time=time,
    )  # fmt: skip


def flat(name: str, captions: Sequence[str], **more: bool) -> Hierarchy:
    return hierarchy(name, [-1, *[0] * len(captions)], ["All", *captions], **more)


def cube_of(
    hierarchies: Sequence[Hierarchy],
    leaves: Sequence[Sequence[int]],
    amounts: Sequence[float],
    who: Sequence[int],
) -> tuple[Cube, FactRows]:
    """A cube with the number of records, a sum and the number of respondents."""
    kinds = ("count", "sum", "distinct-count")
    measures = tuple(
        Measure(kind, f"[Measures].[{kind}]", {}, kind, {}, "0", 0, column=kind) for kind in kinds
    )
    cube = Cube("C", {}, tuple(hierarchies), measures)
    leaf = tuple(np.array(column, dtype=np.int32) for column in leaves)
    columns = (np.ones(len(amounts)), np.array(amounts, dtype=np.float64), np.array(who, dtype=np.float64))
    return cube, FactRows(cube, leaf, columns, np.array(who, dtype=np.uint64))


CUTS = np.array([12, 21, 30])


def incomes(n: int, seed: int = 1, captions: Sequence[str] = ("a", "b", "c", "d")) -> tuple[Cube, FactRows]:
    """Incomes of n records in bands of them, and in towns."""
    chance = np.random.default_rng(seed)
    amounts = np.concatenate([[11, 12, 20, 21, 29, 30], chance.integers(1, 50, n - 6)])
    band = 1 + np.searchsorted(CUTS, amounts, side="right")
    town = 1 + chance.integers(0, 3, n)
    trees = [flat("Band", captions), flat("Town", ["x", "y", "z"])]
    return cube_of(trees, [band, town], amounts, range(n))


def test_the_values_of_records_tell_a_level_of_bands_and_where_they_end() -> None:
    found = {(band.column, band.counted, band.summed): band for band in find_bands(*incomes(300))}
    assert set(found) == {(1, COUNT, SUM), (1, WHO, SUM)}
    band = found[1, COUNT, SUM]
    assert band.lower.tolist() == [0, 0, 12, 21, 30]
    assert band.upper.tolist() == [np.inf, 11, 20, 29, np.inf]
    assert (band.spread, band.within) == ((), ())


@pytest.mark.parametrize(
    ("captions", "told"),
    [(("low", "middle", "high", "most"), False), (("under 12", "12 to 21", "21 to 30", "over 30"), True)],
)
def test_a_few_records_lie_apart_by_chance_unless_labels_say_so(
    captions: tuple[str, ...], told: bool
) -> None:
    cube, facts = incomes(8, captions=captions)
    assert bool(find_bands(cube, facts)) == told


def test_members_that_say_nothing_of_size_are_no_bands() -> None:
    cube, facts = incomes(300)
    chance = np.random.default_rng(3)
    mixed = replace(facts, leaf=(chance.permutation(facts.leaf[0]), facts.leaf[1]))
    assert find_bands(cube, mixed) == ()


def test_those_not_stated_may_be_of_any_size() -> None:
    cube, facts = incomes(300, captions=("a", "b", "c", "d", "not stated"))
    leaf = facts.leaf[0].copy()
    leaf[::10] = 5
    band = find_bands(cube, replace(facts, leaf=(leaf, facts.leaf[1])))[0]
    assert (band.lower[5], band.upper[5]) == (-np.inf, np.inf)
    assert (band.lower[0], band.lower[3], band.upper[2]) == (-np.inf, 21, 20)


def test_bands_of_bands_are_as_wide_as_what_they_hold() -> None:
    cube, facts = incomes(300)
    parents = hierarchy("Band", [-1, 0, 1, 1, 0, 4, 4], ["All", "low", "a", "b", "high", "c", "d"])
    leaf = np.array([0, 2, 3, 5, 6], dtype=np.int32)[facts.leaf[0]]
    cube = replace(cube, hierarchies=(parents, cube.hierarchies[1]))
    band = find_bands(cube, replace(facts, cube=cube, leaf=(leaf, facts.leaf[1])))[0]
    assert band.lower.tolist() == [0, 0, 0, 12, 21, 21, 30]
    assert band.upper.tolist() == [np.inf, 20, 11, 20, np.inf, 29, np.inf]


def test_what_a_respondent_has_of_several_sources_makes_its_band() -> None:
    n = 300
    cube, facts = incomes(n)
    _, later = incomes(n, seed=2)
    source = flat("Source", ["work", "capital"])
    year = flat("Year", ["2022", "2023"], time=True)
    # Each has two records in each of two years; its band is that of the year.
    halves = []
    for amounts in (facts.amounts[SUM], later.amounts[SUM]):
        halves += [np.floor(amounts / 3), amounts - np.floor(amounts / 3)]
    leaves = [
        np.concatenate([np.tile(facts.leaf[0], 2), np.tile(later.leaf[0], 2)]),
        np.repeat([1, 2, 1, 2], n),
        np.repeat([1, 1, 2, 2], n),
    ]
    trees = [cube.hierarchies[0], source, year]
    found = find_bands(*cube_of(trees, leaves, np.concatenate(halves), np.tile(np.arange(n), 4)))
    people = [band for band in found if band.counted == WHO]
    assert [(band.spread, band.within) for band in people] == [((2,), ((3, 1),))]
    assert people[0].upper.tolist() == [np.inf, 11, 20, 29, np.inf]
    # Of records only that they are no more than what the respondent has.
    records = [band for band in found if band.counted == COUNT]
    assert all(np.isinf(band.lower).all() for band in records)
    assert [band.upper.tolist() for band in records] == [[np.inf, 11, 20, 29, np.inf]]


def test_a_hierarchy_that_a_finer_one_decides_is_told_of_the_finer_members() -> None:
    cube, facts = incomes(300)
    twin = Twin(2, 1, np.array([-1, 1, 2, 3], dtype=np.int64))
    mine = [band for band in find_bands(cube, facts, (twin,)) if band.column == 2 and band.counted == COUNT]
    assert [band.upper[1:].tolist() for band in mine] == [[11, 20, 29]]


@pytest.mark.parametrize(("captions", "found"), [(("under 12", "12 to 21", "21 to 30", "over 30"), True),
                                                 (("a", "b", "c", "d"), False)])  # fmt: skip
def test_where_the_facts_stay_labels_and_the_averages_of_cells_tell_bands(
    captions: tuple[str, ...], found: bool
) -> None:
    cube, facts = incomes(300, captions=captions)
    grid = np.array(list(np.ndindex(3, 5, 4)), dtype=np.int32)
    values = np.array([cell(cube, facts, row) for row in grid.tolist()])
    bands = find_bands(cube, None, (), (grid, values))
    assert [band.counted for band in bands] == ([COUNT, WHO] if found else [])
    for band in bands:
        assert band.lower.tolist() == [0, 0, 12, 21, 30]
        assert band.upper.tolist() == [np.inf, 12, 21, 30, np.inf]


def with_cuts(cube: Cube, *cuts: float) -> Cube:
    tree = cube.hierarchies[0]
    level = replace(tree.levels[1], bands=Cuts("sum", cuts))
    return replace(cube, hierarchies=(replace(tree, levels=(tree.levels[0], level)), cube.hierarchies[1]))


def test_declared_cuts_are_taken_as_they_are_however_few_records_there_are() -> None:
    cube, facts = incomes(8)
    band = find_bands(with_cuts(cube, 11.5, 21, 30), facts)[0]
    assert band.upper[1:].tolist() == [11.5, 21, 30, np.inf]
    band = find_bands(with_cuts(cube, 1, 11.5, 21, 30, 99), facts)[0]
    assert (band.lower[1], band.upper[4]) == (1, 99)
    # Where the engine keeps the facts, what is declared is all there is.
    assert [item.counted for item in find_bands(with_cuts(cube, 11.5, 21, 30), None)] == [COUNT, WHO]


@pytest.mark.parametrize("cuts", [(13, 21, 30), (12, 21), (12, 21, 30, 40)])
def test_declared_cuts_that_the_facts_break_are_told(cuts: tuple[float, ...]) -> None:
    cube, facts = incomes(300)
    with pytest.raises(UserError, match="L1") as refused:
        find_bands(with_cuts(cube, *cuts), facts)
    assert not any(f"{number:g}" in str(refused.value) for number in facts.amounts[SUM] if number > 9)


def test_a_cube_file_declares_its_bands(tmp_path: Path, store: Store) -> None:
    said = 'bands = { measure = "Turnover", cuts = [10, 50, 250] }\n'
    cube = BANDED.replace('label = "label"\n', f'label = "label"\norder = "size"\n{said}')
    rows = firms_by_class(2)
    with pytest.raises(UserError, match="Level Size of cube Firms doesn't divide Turnover"):
        # In the order of their keys the classes don't rise.
        Ran(office(tmp_path / "office", rows, cube), store)
    for n, row in enumerate(rows):
        row["size"] = {"s": "1", "m": "2", "l": "3", "h": "4"}[str(row["size"])]
        row["firm"] = n
    folder = office(tmp_path / "other", rows, cube)
    (folder / "data/sizes.csv").write_text("size,label\n1,s\n2,m\n3,l\n4,h\n", encoding="utf-8")
    (band,) = Ran(folder, store).cells.bands
    assert band.upper.tolist()[1:] == [10, 50, 250, np.inf]


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ('{ measure = "Turnover", cuts = [50, 10] }', "The cuts of bands rise."),
        ('{ measure = "Turnover" }', "Key cuts is missing."),
        ('{ measure = "Turnover", cuts = ["10"] }', "Key cuts is of the wrong type."),
        ('{ measure = "Turnovr", cuts = [10, 50, 250] }', "Measure Turnovr is no sum of this cube."),
    ],
)
def test_mistakes_in_bands_are_told(tmp_path: Path, said: str, cause: str) -> None:
    cube = BANDED.replace('label = "label"\n', f'label = "label"\nbands = {said}\n')
    _, mistakes = draft_publication(office(tmp_path / "office", firms_by_class(2), cube))
    assert cause in [mistake.cause for mistake in mistakes]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("12,000 to 21,000 €", {12000, 21000}),
        ("De 12.000 a 21.000 €", {12000, 21000}),
        ("1 000 000 o más", {1000000}),
        ("10–49", {10, 49, -49}),
        ("1.5 to 2.5", {1.5, 2.5, 1, 5, 2}),
        ("not stated", set()),
    ],
)
def test_numbers_of_labels_are_read_in_any_language(text: str, numbers: set[float]) -> None:
    assert numbers_in(text) == numbers


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_the_roundest_numbers_lie_between(low: float, width: float) -> None:
    first, last = roundest(low, low + width)
    assert low <= first <= last <= low + width


@given(st.integers(0, 500), st.integers(1, 500), st.frozensets(st.integers(0, 1000).map(float), max_size=3))
def test_ends_hold_for_the_values_on_both_sides(most: int, more: int, numbers: frozenset[float]) -> None:
    upper, lower = ends_between(float(most), float(most + more), numbers, frozenset(), 1.0)
    assert most <= upper
    assert lower <= most + more


# Records: town, band of the leaf, amount within it, respondent.
RECORDS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 39), st.integers(1, 2), st.integers(0, 12)),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(RECORDS, st.booleans())
def test_what_is_said_of_cells_is_true_of_them(
    records: list[tuple[int, int, int, int]], summed: bool
) -> None:
    """By record, or (``summed``) by what a respondent has in a year together, in all cells there are."""
    town, amount, year, who = (np.array(column) for column in zip(*records, strict=True))
    value = amount.astype(np.float64)
    if summed:
        _, person = np.unique(np.stack([year, who]), axis=1, return_inverse=True)
        value = np.bincount(person.reshape(-1), amount)[person.reshape(-1)]
    band = 1 + np.searchsorted(CUTS, value, side="right")
    trees = [
        hierarchy("Band", [-1, 0, 1, 1, 0, 4, 4], ["All", "under 21", "under 12", "12 to 21", "21 or more",
                                                    "21 to 30", "over 30"]),
        flat("Town", ["x", "y", "z"]),
        hierarchy("Year", [-1, -1], ["2022", "2023"], has_all=False, time=True),
    ]  # fmt: skip
    band = np.array([0, 2, 3, 5, 6])[band]
    cube, facts = cube_of(trees, [band, town, year - 1], amount, who)
    bands = find_bands(cube, facts)
    space = Space.of(cube)
    grid = np.array(list(np.ndindex(3, 7, 4, 2)), dtype=np.int32)
    values = np.array([cell(cube, facts, row) for row in grid.tolist()])
    # Some cells are no cells of the table; whatever is said of the others is true.
    kept = np.random.default_rng(len(records)).random(len(grid)) < 0.7
    grid, values = grid[kept], values[kept]
    bounds = bounds_by_bands(space, grid, values, bands)
    full = np.concatenate([np.nan_to_num(values), bounds.slack])
    assert np.abs(bounds.equations.matrix(len(full)) @ full).max(initial=0) < 1e-9
    assert (bounds.slack >= 0).all()
    # None is left out because it is false: what a band says, it says rightly.
    assert len(bounds.slack) >= sum(_said(band, grid, values, space) for band in bands[:1])


def _said(band: Band, coords: np.ndarray, values: np.ndarray, space: Space) -> int:
    """Upper ends that hold in cells of bands without parts, for which both measures are there."""
    places = {
        tuple(row[1:])
        for row, v in zip(coords.tolist(), values, strict=True)
        if row[0] == band.counted and v > 0
    }
    return sum(
        tuple(row[1:]) in places and np.isfinite(band.upper[row[1]])
        for row, v in zip(coords.tolist(), values, strict=True)
        if row[0] == band.summed and not np.isnan(v)
    )


def cell(cube: Cube, facts: FactRows, coords: Sequence[int]) -> float:
    inside = np.ones(len(facts.amounts[SUM]), dtype=np.bool_)
    for tree, leaf, member in zip(cube.hierarchies, facts.leaf, coords[1:], strict=True):
        inside &= (leaf >= member) & (leaf <= tree.last_descendant[member])
    if not inside.any():
        return np.nan
    column = facts.amounts[coords[0]][inside]
    return float(len(np.unique(column)) if coords[0] == WHO else column.sum())
