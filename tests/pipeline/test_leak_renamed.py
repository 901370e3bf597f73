"""What two releases of the same facts tell when things are called otherwise in the second.

The attacker holds both, knows what became of every name, and bounds the finest cells by linear programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psycopg
import pytest

from app.bootstrap.engines import open_cube as open_any_cube
from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.domain.errors import UserError
from app.domain.masked import CellStatus
from app.domain.primary import DIFFERENCE
from app.pipeline.check import check_publication
from app.pipeline.define import load_publication
from app.pipeline.memory import read_past
from app.pipeline.run import known_releases, run
from app.pipeline.running import Wish
from tests.cube.engines import fill
from tests.databases import database_url
from tests.pipeline.offices import ACTIVITIES, CUBE, PUBLICATION, TOWNS, firms, write_csv, write_office
from tests.pipeline.test_leak_differences import Rows, Seen, bounds

#: Another weight gives another pattern.
FIRST = PUBLICATION.replace(', { rule = "dominance", n = 1, k = 85 }', "")
SECOND = FIRST.replace('weight = "value"', 'weight = "unit"')
SHEET = '''
title.en = "Turnover"
[[query]]
id = "table"
mdx = """
SELECT {[Activity].[All], [Activity].[Activity].Members} ON 0,
  {[Place].[All], [Place].[Region].Members, [Place].[Town].Members} ON 1
FROM [Firms] WHERE ([Measures].[Turnover])"""
'''
Change = Callable[[str], str]


def without_formulas(cube: str) -> str:
    return cube[: cube.index("[[calculated]]")]


def swap(*pairs: tuple[str, str]) -> Change:
    def change(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return change


RENAMED: dict[str, Change] = {
    "nothing": swap(),
    "measure": swap(('"Turnover"', '"Sales"'), ("[Turnover]", "[Sales]")),
    "level": swap(('name = "Town"', 'name = "Municipality"'), ("[Town]", "[Municipality]")),
    "upper level": swap(('name = "Region"', 'name = "Province"'), ("[Region]", "[Province]")),
    "dimension": swap(('name = "Place"', 'name = "Territory"'), ("[Place]", "[Territory]")),
    "hierarchy": swap(
        ('[[dimension.hierarchy]]\nall.en = "Everywhere"',
         '[[dimension.hierarchy]]\nname = "Main"\nall.en = "Everywhere"'),
        ("[Place]", "[Place.Main]"),
    ),
    "cube": swap(('name = "Firms"\n[facts]', 'name = "Companies"\n[facts]'),
                 ("confidentiality.Firms", "confidentiality.Companies"),
                 ("FROM [Firms]", "FROM [Companies]")),
    "keys": swap(('key = "activity"', 'key = "code"')),
    "level left out": swap(
        ('[[dimension.hierarchy.level]]\nname = "Region"\nkey = "region"\n', ""),
        (" [Place].[Region].Members,", ""),
    ),
}  # fmt: skip

RENAMED["several things"] = lambda text: RENAMED["keys"](
    RENAMED["dimension"](RENAMED["level"](RENAMED["measure"](text)))
)


def rows_of(seed: int) -> Rows:
    """Firms, with their activities by another code as well."""
    return [{**row, "code": f"x{str(row['activity'])[::-1]}"} for row in firms(seed)]


def release(
    folder: Path, store: Store, rows: Rows, change: Change = str, publication: str = FIRST, more: str = ""
) -> Seen:
    cube = change(without_formulas(CUBE))
    write_office(folder, rows, change(publication) + more, cube, {"turnover": change(SHEET)})
    outcome = run(load_publication(folder), store, open_cube, wish=Wish(accepted=True))
    assert outcome.status["exposures"] == 0
    seen = Seen(store, rows)
    # Leaves by the codes that they began with, whatever they are called.
    codes = {row["code"]: row["activity"] for row in rows}
    back = [tuple(codes.get(part, part) for part in leaf) for leaf in seen.leaf_names]
    order = sorted(range(len(back)), key=back.__getitem__)
    inside = seen.inside
    seen.inside = lambda coords: inside(coords)[order]  # type: ignore[method-assign]
    seen.leaf_names = [back[number] for number in order]
    seen.truth = {
        name: {
            leaf: sum(
                1 if name == "Firms" else int(str(row["turnover"]))
                for row in rows
                if (row["town"], row["activity"], row["size"]) == leaf
            )
            for leaf in seen.leaf_names
        }
        for name in ("Firms", "Turnover")
    }
    return seen


def assert_promises_hold(first: Seen, second: Seen) -> int:
    """No cell that is sensitive by its rules is bounded closer than it was promised; how many there are."""
    verdicts, cells = second.verdicts, second.cells
    checked = 0
    for row in np.flatnonzero(second.status == CellStatus.CONFIDENTIAL).tolist():
        if not set(verdicts.reasons_of(row)) - {DIFFERENCE} or verdicts.known[row]:
            continue
        inside = second.inside(cells.coords[row])
        low, high = bounds(
            [first, second],
            int(cells.coords[row, 0]),
            lambda state, leaf, inside=inside: float(state == 1 and inside[leaf]),
        )
        value = float(cells.values[row])
        assert low <= value - verdicts.lpl[row] + 1, cells.keys(np.array([row]))
        assert high >= value + verdicts.upl[row] - 1, cells.keys(np.array([row]))
        checked += 1
    return checked


@pytest.mark.parametrize("what", RENAMED)
def test_the_same_facts_by_another_name_tell_no_more(what: str, tmp_path: Path, store: Store) -> None:
    rows = rows_of(2)
    first = release(tmp_path / "o", store, rows)
    second = release(tmp_path / "o", store, rows, RENAMED[what], SECOND)
    assert assert_promises_hold(first, second)
    assert second.verdicts.known.any()


def test_a_cube_by_another_name_is_known_on_either_database(tmp_path: Path, url: str) -> None:
    store = open_store(url)
    first = release(tmp_path / "o", store, rows_of(1))
    second = release(tmp_path / "o", store, [*rows_of(1), *rows_of(3)[:1]], RENAMED["cube"], SECOND)
    assert assert_promises_hold(first, second)
    assert second.verdicts.reasons[DIFFERENCE].any()
    store.close()


#: What can't be known again when the facts are others too: what the error names, and what declares it.
DECLARED: dict[str, tuple[Change, str, Change]] = {
    "dimension": (
        RENAMED["dimension"], "[Place] of cube Firms",
        swap(('name = "Place"\n', 'name = "Place"\nformerly = ["Place"]\n'),
             ('name = "Place"\nformerly', 'name = "Territory"\nformerly')),
    ),
    "hierarchy": (
        RENAMED["hierarchy"], "[Place] of cube Firms",
        swap(('name = "Main"', 'name = "Main"\nformerly = ["Place"]')),
    ),
    "cube": (
        RENAMED["cube"], "cube Firms",
        swap(('name = "Companies"', 'name = "Companies"\nformerly = ["Firms"]')),
    ),
    "measure": (
        swap(('"Turnover"', '"Sales"'), ("[Turnover]", "[Sales]"), ('"turnover"', '"sales"')),
        "[Measures].[Turnover] of cube Firms",
        swap(('name = "Sales"', 'name = "Sales"\nformerly = ["Turnover"]')),
    ),
}  # fmt: skip


def others() -> Rows:
    """A third of the firms as they were, and others: too few to know things again by them."""
    rows = [*rows_of(1)[:53], *({**row, "firm": f"o{row['firm']}"} for row in rows_of(2)[53:])]
    return [{**row, "sales": row["turnover"]} for row in rows]


@pytest.mark.parametrize("what", DECLARED)
def test_what_is_gone_stops_the_run_until_its_name_is_declared(
    what: str, tmp_path: Path, store: Store
) -> None:
    change, named, declare = DECLARED[what]
    release(tmp_path / "o", store, rows_of(1))
    with pytest.raises(UserError) as caught:
        release(tmp_path / "o", store, others(), change)
    (mistake,) = caught.value.mistakes
    with pytest.raises(UserError) as foretold:
        check_publication(
            load_publication(tmp_path / "o"), open_cube, read_past(store, known_releases(store))
        )
    assert mistake in foretold.value.mistakes
    assert named in mistake.cause
    assert "formerly" in mistake.remedy
    assert "[[release.forget]]" in mistake.remedy
    assert len(store.book.all()) == 1

    def both(text: str) -> str:
        text = change(text)
        if what == "dimension":
            return text.replace('name = "Territory"', 'name = "Territory"\nformerly = ["Place"]')
        return declare(text)

    second = release(tmp_path / "o", store, others(), both)
    assert DIFFERENCE in second.verdicts.reasons


@pytest.mark.parametrize("what", DECLARED)
def test_what_authors_decide_to_forget_is_in_the_certificate(what: str, tmp_path: Path, store: Store) -> None:
    change, named, _ = DECLARED[what]
    release(tmp_path / "o", store, rows_of(1))
    gone = "" if what == "cube" else f'what = "{named.split(" of ")[0]}"\n'
    forget = f'\n[[release.forget]]\ncube = "Firms"\n{gone}reason = "other definitions"\n'
    second = release(tmp_path / "o", store, others(), change, more=forget)
    assert not second.verdicts.known.any()
    live = store.live_release()
    assert live is not None
    told = json.loads(store.book.certificate(live.id))["forgotten"]
    assert [(item["cube"], item["reason"]) for item in told] == [("Firms", "other definitions")]


def test_a_member_that_was_split_is_asked_about(tmp_path: Path, store: Store) -> None:
    rows = rows_of(1)
    release(tmp_path / "o", store, rows)
    split = [{**row, "activity": f"farm {row['size']}"} if row["activity"] == "farm" else row for row in rows]
    write_csv(tmp_path / "o/data/firms.csv", split)
    with pytest.raises(UserError, match=r"\[Activity\].\[Activity\].&\[farm\] of cube Firms"):
        run(load_publication(tmp_path / "o"), store, open_cube)
    assert len(store.book.all()) == 1


def test_keys_are_known_by_respondents_where_amounts_tell_nothing(tmp_path: Path, store: Store) -> None:
    rows: Rows = [{**row, "turnover": 5} for row in rows_of(1)]
    release(tmp_path / "o", store, rows)
    second = release(tmp_path / "o", store, rows, RENAMED["keys"])
    assert second.verdicts.known.any()


def test_keys_that_changed_their_places_are_declared(tmp_path: Path, store: Store) -> None:
    """Each key is there, and means another thing."""
    names = {"farm": "mill", "mill": "farm"}
    rows = rows_of(2)
    first = release(tmp_path / "o", store, rows)
    swapped = [{**row, "activity": names.get(str(row["activity"]), row["activity"])} for row in rows]
    recoded = (
        '\n[dimension.hierarchy.level.recoded]\nfarm = "mill"\nmill = "farm"\n[[dimension]]\nname = "Size"'
    )
    second = release(tmp_path / "o", store, swapped, swap(('[[dimension]]\nname = "Size"', recoded)), FIRST)
    shown = [set(item.values[item.status == CellStatus.SHOWN].tolist()) for item in (first, second)]
    assert shown[0] <= shown[1]
    assert DIFFERENCE not in second.verdicts.reasons


def test_keys_of_an_engine_that_gives_no_facts_are_declared(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "o"
    cube = without_formulas(CUBE)
    sheet = {"turnover": SHEET}
    facts = load_publication(write_office(folder, firms(), FIRST, cube, sheet)).cubes[0]
    with database_url("postgresql", tmp_path, empty=True) as url:
        with psycopg.connect(url) as connection:
            fill(facts, lambda statement: connection.execute(statement.encode()))

        def publish(activity: str, more: str = "") -> None:
            select = f"select firm, holding, town, {activity} as activity, size, turnover from facts"
            engine = f'engine = "postgresql"\n[facts]\nurl = "{url}"\nsql = "{select}"'
            text = cube.replace("[facts]", engine).replace('file = "../data/firms.csv"', "")
            text = text.replace('[[dimension]]\nname = "Size"', f'{more}\n[[dimension]]\nname = "Size"')
            write_office(folder, firms(), FIRST, text, sheet)
            run(load_publication(folder), store, open_any_cube, wish=Wish(accepted=True))

        publish("activity")
        first = store.live_release()
        with pytest.raises(UserError, match=r"\[Activity\].\[Activity\].&\[bank\], .* of cube Firms"):
            publish("'x' || activity")
        assert store.live_release_id() == first.id  # type: ignore[union-attr]
        codes = "\n".join(f'{code} = "x{code}"' for code in ACTIVITIES)
        publish("'x' || activity", f"[dimension.hierarchy.level.recoded]\n{codes}")
        second = store.live_release()
    assert first is not None
    assert second is not None
    assert second.id != first.id
    shown = [set(item.values[item.status == CellStatus.SHOWN].tolist()) for item in (first, second)]
    assert shown[0] <= shown[1]


def test_members_whose_facts_are_gone_are_no_mistake(tmp_path: Path, store: Store) -> None:
    rows = rows_of(1)
    release(tmp_path / "o", store, rows)
    second = release(tmp_path / "o", store, [row for row in rows if row["activity"] != "mill"])
    assert second.verdicts.known.any()
    everything = second.keys.index("Firms | [Measures].[Turnover]")
    assert second.status[everything] == CellStatus.SHOWN, "all who left are counted, not one"
    assert set(TOWNS) == {leaf[0] for leaf in second.leaf_names}


def test_a_sheet_that_is_gone_is_no_mistake(tmp_path: Path, store: Store) -> None:
    rows = rows_of(1)
    release(tmp_path / "o", store, rows)
    other = swap((" [Place].[Region].Members, [Place].[Town].Members", " [Place].[Region].Members"))
    second = release(tmp_path / "o", store, rows, other)
    assert second.verdicts.known[second.cells.n_published :].any()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (swap(('name = "Turnover"', 'name = "Turnover"\nformerly = ["Firms"]')), "There is a Firms today"),
        (swap(('name = "Town"', 'name = "Town"\nrecoded = { a = "b", c = "b" }')), "Two keys became one"),
        (swap(('name = "Town"', 'name = "Town"\nformerly = "City"')), "Key formerly is of the wrong type"),
    ],
)
def test_former_names_are_checked(written: Change, said: str, tmp_path: Path) -> None:
    folder = write_office(tmp_path / "o", cube=written(CUBE))
    with pytest.raises(UserError, match=said):
        load_publication(folder)
