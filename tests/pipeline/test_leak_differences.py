"""An attacker holds every release that was ever shown, and knows where the data changed.

It subtracts, adds and bounds over all of them at once, with linear programs of its own over the finest
cells: one unknown for each leaf and state of the data that differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.db.journal import JournalStore
from app.domain.crawled import CubeCells
from app.domain.errors import UserError
from app.domain.masked import CellStatus
from app.domain.primary import DIFFERENCE
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.pipeline.running import RESULTS, Wish
from tests.pipeline.offices import CUBE, PUBLICATION, SHEETS, TOWNS, firms, write_csv, write_office

Rows = list[dict[str, object]]
NEW = {"firm": 9999, "holding": "", "town": "a1", "activity": "farm", "size": "small", "turnover": 777}

MANY = [{**NEW, "firm": 5000 + number, "turnover": 100 + number} for number in range(12)]


class Seen:
    """What one release showed: shown cells over leaves, as an attacker would write them down."""

    def __init__(self, store: Store, rows: Rows) -> None:
        crawl = RESULTS.decode(store.step("crawl").body)  # type: ignore[union-attr]
        self.verdicts = RESULTS.decode(store.step("assess").body).cubes[0]  # type: ignore[union-attr]
        release = store.live_release()
        assert release is not None
        self.keys = release.keys
        self.status = release.status
        self.values = release.values
        self.cells: CubeCells = crawl.cubes[0]
        self.leaves = [np.flatnonzero(tree.last == np.arange(tree.size)) for tree in self.cells.space.trees]
        names = [
            [self.cells.cube.hierarchies[h].keys[leaf] for leaf in leaves]
            for h, leaves in enumerate(self.leaves)
        ]
        self.leaf_names = [(a, b, c) for a in names[0] for b in names[1] for c in names[2]]
        self.truth = {
            name: {
                leaf: sum(
                    1 if name == "Firms" else row["turnover"]  # type: ignore[misc]
                    for row in rows
                    if (row["town"], row["activity"], row["size"]) == leaf
                )
                for leaf in self.leaf_names
            }
            for name in ("Firms", "Turnover")
        }

    def shown(self, measure: int) -> list[tuple[np.ndarray, float]]:
        """Sums over leaves (bool[leaves]) that the release shows of a measure."""
        found = []
        cells, space = self.cells, self.cells.space
        for row in np.flatnonzero(self.status == CellStatus.SHOWN).tolist():
            if cells.coords[row, 0] != measure or not cells.has_contributors[row]:
                continue
            found.append((self.inside(cells.coords[row]), float(self.values[row])))
        assert space.columns == 4
        return found

    def inside(self, coords: np.ndarray) -> np.ndarray:
        covers = []
        space = self.cells.space
        for h, leaves in enumerate(self.leaves):
            number = int(coords[1 + h])
            terms = [(number, 1.0)] if number < space.own[1 + h] else space.extra(1 + h, number).terms or ()
            tree = space.trees[h]
            covers.append(np.array([any(m <= leaf <= tree.last[m] for m, _ in terms) for leaf in leaves]))
        return np.einsum("i,j,k->ijk", *covers).reshape(-1)


def bounds(seen: Sequence[Seen], measure: int, wish: Callable[[int, int], float]) -> tuple[float, float]:
    """Least and greatest value of Σ wish(state, leaf) · value that fits everything that was shown.

    Leaves whose value is the same in two states are one unknown: the attacker knows where nothing changed.
    """
    name = ("Firms", "Turnover")[measure]
    states, n = len(seen), len(seen[0].leaf_names)
    truth = [[item.truth[name][leaf] for leaf in seen[0].leaf_names] for item in seen]
    column = np.zeros((states, n), dtype=int)
    columns = 0
    for leaf in range(n):
        by_value: dict[float, int] = {}
        for state in range(states):
            value = truth[state][leaf]
            if value not in by_value:
                by_value[value] = columns
                columns += 1
            column[state, leaf] = by_value[value]
    rows, values = [], []
    for state, item in enumerate(seen):
        assert item.leaf_names == seen[0].leaf_names
        for inside, value in item.shown(measure):
            row = np.zeros(columns)
            np.add.at(row, column[state, inside], 1.0)
            rows.append(row)
            values.append(value)
    empty = [truth[s][leaf] == 0 for s in range(states) for leaf in range(n)]
    upper: list[float | None] = [None] * columns
    for place, zero in zip(column.reshape(-1), empty, strict=True):
        if zero:
            upper[place] = 0.0
    aim = np.zeros(columns)
    for state in range(states):
        for leaf in range(n):
            aim[column[state, leaf]] += wish(state, leaf)
    ends = []
    for sign in (1, -1):
        found = linprog(
            sign * aim,
            A_eq=np.array(rows),
            b_eq=np.array(values),
            bounds=[(0, top) for top in upper],
            method="highs",
        )
        assert found.status in (0, 3)
        ends.append(sign * found.fun if found.status == 0 else -sign * np.inf)
    return ends[0], ends[1]


def release(folder: Path, store: Store, rows: Rows) -> Seen:
    write_csv(folder / "data/firms.csv", rows)
    outcome = run(load_publication(folder), store, open_cube, wish=Wish(accepted=True))
    assert outcome.status["exposures"] == 0
    return Seen(store, rows)


def assert_no_difference_tells(seen: Sequence[Seen], before: Rows, after: Rows) -> None:
    """The change of each leaf between the last two states stays uncertain by a tenth, or by one firm."""
    old, new = seen[-2], seen[-1]
    checked = 0
    for measure, name in enumerate(("Firms", "Turnover")):
        for place, leaf in enumerate(new.leaf_names):
            change = new.truth[name][leaf] - old.truth[name][leaf]
            if change == 0:
                continue
            low, high = bounds(
                seen,
                measure,
                lambda state, which, place=place: (
                    ((state == len(seen) - 1) * 1.0 - (state == len(seen) - 2) * 1.0) * (which == place)
                ),
            )
            assert low <= change + 1e-6
            assert high >= change - 1e-6
            assert high - low >= (1 if name == "Firms" else 0.1 * abs(change)) - 1e-6, (name, leaf)
            checked += 1
    assert checked
    changed = {row["firm"] for row in before if row not in after} | {
        row["firm"] for row in after if row not in before
    }
    assert len(changed) < 3, "the test is about few respondents"
    both = {
        key: (old.values[a], new.values[b])
        for a, key in enumerate(old.keys)
        for b, other in enumerate(new.keys)
        if key == other and old.status[a] == new.status[b] == CellStatus.SHOWN
    }
    assert len(both) > 10
    assert all(one == other for one, other in both.values()), "two shown numbers differ by few respondents"


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "added": lambda rows: [*rows, NEW],
    "left": lambda rows: rows[1:],
    "corrected": lambda rows: [{**rows[0], "turnover": int(str(rows[0]["turnover"])) + 5000}, *rows[1:]],
    "moved": lambda rows: [
        {**row, "town": "a2"} if row["firm"] == _someone(rows, "a1") else row for row in rows
    ],
    "reordered and added": lambda rows: [NEW, *rows[::-1]],
}


def _someone(rows: Rows, town: str) -> object:
    return next(row["firm"] for row in rows if row["town"] == town and row["activity"] == "shop")


@pytest.mark.parametrize("kind", CHANGES)
def test_one_respondent_is_no_difference(kind: str, office: Path, store: Store) -> None:
    before, after = firms(), CHANGES[kind](firms())
    seen = [release(office, store, before), release(office, store, after)]
    assert seen[1].verdicts.reasons[DIFFERENCE].any()
    assert_no_difference_tells(seen, before, after)


def test_one_respondent_is_no_difference_on_either_database(office: Path, url: str) -> None:
    store = open_store(url)
    before, after = firms(seed=3), [*firms(seed=3), NEW]
    assert_no_difference_tells([release(office, store, before), release(office, store, after)], before, after)
    store.close()


def renumbered(rows: Rows, towns: Sequence[str] = TOWNS) -> Rows:
    """The same firms under new pseudonyms, be it those of some towns alone."""
    return [
        {**row, "firm": f"n{row['firm']}", "holding": row["holding"] and f"n{row['holding']}"}
        if row["town"] in towns
        else row
        for row in rows
    ]


@pytest.mark.parametrize("towns", [TOWNS, ("a1", "a2")], ids=["all", "some"])
@pytest.mark.parametrize("kind", ["added", "corrected", "moved"])
def test_new_pseudonyms_hide_no_change(kind: str, towns: Sequence[str], office: Path, store: Store) -> None:
    before, after = firms(), CHANGES[kind](firms())
    first, second = release(office, store, before), release(office, store, renumbered(after, towns))
    assert second.verdicts.reasons[DIFFERENCE].any()
    assert_no_difference_tells([first, second], before, after)


@pytest.mark.parametrize("each", [1, 2], ids=["holdings", "rows"])
def test_new_pseudonyms_of_a_part_of_somebody_hide_no_change(each: int, office: Path, store: Store) -> None:
    """Some firms of a holding are renamed, or every other row of each firm."""
    if each == 1:
        before = firms(seed=2)
        renamed = renumbered([*before, NEW], ("a1",))
    else:
        before = [{**row, "firm": number // 2, "holding": ""} for number, row in enumerate(firms(seed=2))]
        renamed = [row if number % 2 else renumbered([row])[0] for number, row in enumerate([*before, NEW])]
    seen = [release(office, store, before), release(office, store, renamed)]
    assert_no_difference_tells(seen, before, [*before, NEW])


def test_new_pseudonyms_alone_change_nothing(office: Path, store: Store) -> None:
    first = release(office, store, firms())
    second = release(office, store, renumbered(firms()))
    assert DIFFERENCE not in second.verdicts.reasons
    assert first.status.tolist() == second.status.tolist()


def test_other_respondents_are_no_renumbered_ones(office: Path, store: Store) -> None:
    release(office, store, firms())
    second = release(office, store, renumbered(firms(seed=2)))
    many = second.verdicts.reasons.get(DIFFERENCE, np.zeros(len(second.status), dtype=bool))
    total = second.keys.index("Firms | [Measures].[Turnover]")
    assert not many[total]


def test_rows_without_names_are_compared_too(tmp_path: Path, store: Store) -> None:
    cube = CUBE.replace('respondent = "firm"\nholding = "holding"\n', "")
    office = write_office(tmp_path / "o", cube=cube)
    before, after = firms(), [NEW, *firms()]
    seen = [release(office, store, before), release(office, store, after)]
    assert_no_difference_tells(seen, before, after)


def test_three_releases_are_no_better_than_two(office: Path, store: Store) -> None:
    one = firms()
    two = [*one, NEW]
    three = [*two, {**NEW, "firm": 8888, "turnover": 400, "activity": "shop"}]
    seen = [release(office, store, rows) for rows in (one, two, three)]
    assert_no_difference_tells(seen, two, three)
    assert_no_difference_tells([seen[0], seen[2]], one, three)
    back = [*seen, release(office, store, one)]
    assert_no_difference_tells(back, three, one)


def test_many_who_change_are_a_figure_like_any_other(office: Path, store: Store) -> None:
    before = firms()
    seen = [release(office, store, before), release(office, store, [*before, *MANY])]
    first, second = (dict(zip(item.keys, item.values.tolist(), strict=True)) for item in seen)
    differences = {
        second[key] - first[key] for key in first if key.startswith("Firms | [Measures].[Firms] | ")
    }
    assert 12 in differences


def test_a_release_that_tells_where_few_changed_is_not_shown_unasked(office: Path, url: str) -> None:
    """Cells that are newly hidden tell where the change is, though not what: somebody has to accept that."""
    store = open_store(url)
    first, rows = release(office, store, firms()), [*firms(), NEW]
    write_csv(office / "data/firms.csv", rows)
    outcome = run(load_publication(office), store, open_cube)
    assert outcome.release_id is not None
    waits = store.book.get(outcome.release_id)
    made = store.release(waits.id)
    assert made is not None
    before = dict(zip(first.keys, first.status.tolist(), strict=True))
    now = dict(zip(made.keys, made.status.tolist(), strict=True))
    told = {key for key, state in now.items() if state == CellStatus.CONFIDENTIAL} & {
        key for key, state in before.items() if state == CellStatus.SHOWN
    }
    assert 0 < waits.telltale <= len(told)
    assert (waits.state, outcome.status["telltale"]) == ("audited", waits.telltale)
    with pytest.raises(UserError, match=f"newly hides {waits.telltale} cells because few respondents"):
        store.book.approve(waits.id, waits.version, "eva")
    assert run(load_publication(office), store, open_cube).release_id == waits.id
    assert store.live_release_id() != waits.id
    assert run(load_publication(office), store, open_cube, wish=Wish(accepted=True)).ran == ()
    assert store.live_release_id() == waits.id
    notes = JournalStore(store.database).latest(20, action="release.approve")
    assert json.loads(notes[0].after)["accepted_telltale"] == waits.telltale
    # What is hidden already tells nothing new, and many who change may be seen.
    again = run(load_publication(office), store, open_cube)
    assert again.status["telltale"] == waits.telltale
    write_csv(office / "data/firms.csv", [*rows, *MANY])
    last = run(load_publication(office), store, open_cube)
    assert (last.status["telltale"], store.live_release_id()) == (0, last.release_id)
    store.close()


# ---------------------------------------------------------------------- the same data, other tables


def test_what_was_shown_stays_shown_or_known(office: Path, store: Store) -> None:
    """The data are the same, a sheet is new: the new pattern can't rest on cells that readers remember."""
    first = release(office, store, firms())
    (office / "sheets/new.toml").write_text(
        '''title.en = "New"
[[query]]
id = "table"
mdx = """
SELECT {[Size].[All], [Size].[Size].Members} ON COLUMNS,
  {[Place].[All], [Place].[Region].Members} ON ROWS FROM [Firms] WHERE ([Measures].[Turnover])"""
'''
    )
    (office / "sheets/activity/by-place.toml").unlink()
    second = release(office, store, firms())
    shown = {key for key, state in zip(first.keys, first.status, strict=True) if state == CellStatus.SHOWN}
    now = dict(zip(second.keys, second.status.tolist(), strict=True))
    assert {now[key] for key in shown & now.keys()} == {CellStatus.SHOWN}
    verdicts = second.verdicts
    cells = second.cells
    assert verdicts.known[cells.n_published :].any(), "cells that no sheet shows any more are known as well"
    hidden = np.flatnonzero(verdicts.sensitive & ~verdicts.known & cells.has_contributors)
    for row in hidden.tolist():
        inside = second.inside(cells.coords[row])
        value = float(np.nan_to_num(cells.values[row]))
        if value == 0:
            continue
        low, high = bounds(
            [first, second],
            int(cells.coords[row, 0]),
            lambda state, leaf, inside=inside: float(state == 1 and inside[leaf]),
        )
        assert high - low > 1e-6, cells.keys(np.array([row]))


def test_a_stricter_rule_hides_what_was_shown_but_does_not_rest_on_it(office: Path, store: Store) -> None:
    first = release(office, store, firms())
    (office / "publication.toml").write_text(PUBLICATION.replace("n = 3", "n = 6"))
    second = release(office, store, firms())
    verdicts = second.verdicts
    both = verdicts.known & verdicts.sensitive
    assert both[: second.cells.n_published].any()
    assert (verdicts.upl[both] == 0).all()
    assert (second.status[np.flatnonzero(both[: len(second.status)])] == CellStatus.CONFIDENTIAL).all()
    assert (second.status == CellStatus.CONFIDENTIAL).sum() > (first.status == CellStatus.CONFIDENTIAL).sum()


def test_a_release_that_is_forgotten_counts_no_more(office: Path, store: Store) -> None:
    release(office, store, firms())
    record = store.book.all()[0]
    store.book.withdraw(record.id, record.version, "eva", "test data")
    record = store.book.get(record.id)
    store.book.forget(record.id, record.version, "eva", "test data, on an inner machine only")
    second = release(office, store, [*firms(), NEW])
    assert DIFFERENCE not in second.verdicts.reasons
    assert not second.verdicts.known.any()


def test_a_decision_to_show_what_would_tell_a_difference_is_refused(office: Path, store: Store) -> None:
    release(office, store, firms())
    (office / "publication.toml").write_text(
        PUBLICATION
        + '[[confidentiality.cells]]\nmeasure = "Firms"\nmembers = ["[Activity].[Activity].&[farm]"]\n'
        'decision = "show"\nreason = "known"\n'
    )
    with pytest.raises(UserError, match="must be shown, but its change since release"):
        release(office, store, [*firms(), NEW])
    assert len(store.book.all()) == 1


def test_towns_that_move_to_another_region_are_no_unchanged_regions(office: Path, store: Store) -> None:
    first = release(office, store, firms())
    write_csv(
        office / "data/places.csv",
        (
            {"town": town, "town_name": f"Town {town}", "region": "B" if town == "a3" else town[0].upper()}
            for town in TOWNS
        ),
    )
    second = release(office, store, firms())
    region = "Firms | [Measures].[Firms] | [Place].[Region].&[A]"
    states = [item.status[item.keys.index(region)] for item in (first, second)]
    assert CellStatus.CONFIDENTIAL in states, "the region with and without the town tells of the town"
    assert SHEETS
