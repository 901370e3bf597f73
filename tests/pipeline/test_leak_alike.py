"""Two divisions alike but for few records give one another away, unless each is tied to the other."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import PUBLICATION, write_csv
from tests.pipeline.test_protection import Ran, sheet

HIERARCHY = """
[[dimension.hierarchy]]
name = "{name}"
all.en = "All"
{levels}
"""
LEVEL = '[[dimension.hierarchy.level]]\nname = "{name}"\nkey = "{key}"\n'
CUBE = """
name = "Firms"
[facts]
file = "../data/firms.csv"
respondent = "firm"
{dimensions}
[[dimension]]
name = "Activity"
[[dimension.hierarchy]]
all.en = "All"
[[dimension.hierarchy.level]]
name = "Activity"
key = "activity"
[[measure]]
name = "Firms"
aggregator = "count"
[[measure]]
name = "Turnover"
aggregator = "sum"
column = "turnover"
"""
ACTIVITIES = ("farm", "shop")
#: Parts of a member's name, and the column of the facts that they are in.
COLUMNS = {"Town": "town", "Region": "region", "Code": "code", "Zone": "zone", "Activity": "activity"}


def levels(*names: str) -> str:
    return "".join(LEVEL.format(name=name, key=COLUMNS[name]) for name in names)


def dimensions(together: bool) -> str:
    place = HIERARCHY.format(name="Place", levels=levels("Region", "Town"))
    post = HIERARCHY.format(name="Post", levels=levels("Zone", "Code"))
    if together:
        return f'[[dimension]]\nname = "Where"\n{place}{post}'
    return f'[[dimension]]\nname = "Place"\n{place}[[dimension]]\nname = "Post"\n{post}'


def firms(seed: int, towns: int, astray: int, codes_by_town: int = 1) -> list[dict[str, object]]:
    """Firms whose postal code is (one of) their town's, but for a few."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for town in range(towns):
        for _ in range(chance.choice((2, 6, 9, 30, 50))):
            code = town * codes_by_town + chance.randrange(codes_by_town)
            activity = chance.choices(ACTIVITIES, (4, 1))[0]
            turnover = round(chance.lognormvariate(5, 1.2)) + 1
            rows.append(
                {"firm": len(rows), "town": town, "code": code, "activity": activity} | {"turnover": turnover}
            )
    for row in chance.sample(rows, astray):
        row["code"] = chance.randrange(towns * codes_by_town)
    for row in rows:
        row["region"] = f"r{int(str(row['town'])) // 8}"
        row["zone"] = f"z{int(str(row['code'])) // (8 * codes_by_town)}"
        row["town"], row["code"] = f"t{row['town']:02}", f"c{row['code']:02}"
    return rows


def office(folder: Path, rows: Sequence[dict[str, object]], together: bool, sheets: Sequence[str]) -> Path:
    write_csv(folder / "data/firms.csv", rows)
    texts = {
        "publication.toml": PUBLICATION,
        "cubes/firms.toml": CUBE.format(dimensions=dimensions(together)),
    }
    texts |= {f"sheets/s{number}.toml": sheet(query) for number, query in enumerate(sheets)}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def sheets(together: bool, measures: Sequence[str], division: Sequence[str], by: bool = True) -> list[str]:
    """A table of each division, by activity."""
    found = []
    for measure in measures:
        for level in division:
            name = "Place" if level in ("Town", "Region") else "Post"
            hierarchy = f"[Where.{name}]" if together else f"[{name}]"
            columns = "{[Activity].[All], [Activity].[Activity].Members}" if by else "{[Activity].[All]}"
            found.append(
                f"SELECT {columns} ON 0, {{{hierarchy}.[All], {hierarchy}.[{level}].Members}} ON 1 "
                f"FROM [Firms] WHERE ([Measures].[{measure}])"
            )
    return found


def attack(ran: Ran, rows: Sequence[dict[str, object]]) -> int:
    """Whoever knows that town and postal code are alike, and by how much at most they aren't, comes no
    closer to any sensitive cell than the rules allow; how many cells there were to come close to."""
    cells, verdicts = ran.cells, ran.verdicts
    keys = cells.keys(np.arange(cells.n_published))
    pairs = sorted({(str(row["town"]), str(row["code"])) for row in rows})
    often = {pair: sum((row["town"], row["code"]) == pair for row in rows) for pair in pairs}
    towns, codes = sorted({t for t, _ in pairs}), sorted({c for _, c in pairs})
    home = {code: max(towns, key=lambda t: often.get((t, code), 0)) for code in codes}
    sensitive_cells = 0
    for measure in ("Firms", "Turnover"):
        amount = np.array([1.0 if measure == "Firms" else float(str(row["turnover"])) for row in rows])
        unknown = {
            key: place
            for place, key in enumerate(product(("town", "code"), towns + codes, ACTIVITIES))
            if (key[0] == "town") == (key[1] in towns)
        }
        unknown = {key: place for place, key in enumerate(unknown)}
        vectors, told, values, sensitive = {}, [], [], []
        top = np.full(len(unknown), np.inf)
        for number, key in enumerate(keys):
            if f"[{measure}]" not in key:
                continue
            where = {
                COLUMNS[level]: found[1]
                for level in COLUMNS
                for found in [re.search(rf"\[{level}\]\.(?:&\[\w+\]\.)*&\[(\w+)\](?!\.)", key)]
                if found
            }
            side = "code" if {"code", "zone"} & set(where) else "town"
            inside = {
                (row[side], row["activity"])
                for row in rows
                if all(row[column] == value for column, value in where.items())
            }
            vector = np.zeros(len(unknown))
            for name, activity in inside:
                vector[unknown[side, str(name), str(activity)]] = 1.0
            vectors[number] = vector
            status = ran.release.status[number]
            if status == CellStatus.SHOWN:
                told.append(vector)
                values.append(ran.release.values[number])
            elif verdicts.sensitive[number]:
                sensitive.append(number)
        # That nobody is at a place is known.
        there = {("town", r["town"], r["activity"]) for r in rows}
        there |= {("code", r["code"], r["activity"]) for r in rows}
        for place_key, place in unknown.items():
            if place_key not in there:
                top[place] = 0
        limits, room = [], []
        for town, activity in product(towns, ACTIVITIES):
            vector = np.zeros(len(unknown))
            vector[unknown["town", town, activity]] = 1.0
            for code in codes:
                if home[code] == town:
                    vector[unknown["code", code, activity]] = -1.0
            astray = np.array([(r["town"] == town) != (home[str(r["code"])] == town) for r in rows])
            astray &= np.array([r["activity"] == activity for r in rows])
            limits += [vector, -vector]
            room += [amount[astray].sum()] * 2
        bounds = np.stack([np.zeros(len(unknown)), top], axis=1)
        for number in sensitive:
            true = cells.values[number]
            ends = []
            for sign in (1.0, -1.0):
                best = linprog(
                    sign * vectors[number],
                    A_ub=np.array(limits),
                    b_ub=room,
                    A_eq=np.array(told),
                    b_eq=values,
                    bounds=bounds,
                )
                assert best.status in (0, 3), best.message
                ends.append(sign * best.fun if best.status == 0 else -sign * np.inf)
            least = 1.0 if measure == "Firms" else 0.0
            low = max(true - verdicts.lpl[number], least)
            assert ends[0] <= low + 1e-6, (keys[number], ends, true, verdicts.lpl[number])
            assert ends[1] >= true + verdicts.upl[number] - 1e-6, (keys[number], ends, true)
        sensitive_cells += len(sensitive)
    return sensitive_cells


@pytest.mark.parametrize(
    ("together", "astray", "seed"),
    [(False, 1, 1), (False, 6, 2), (True, 6, 4)],
)
def test_no_town_is_worked_out_from_postal_codes(
    tmp_path: Path, store: Store, together: bool, astray: int, seed: int
) -> None:
    rows = firms(seed, 52, astray)
    queries = sheets(together, ("Firms", "Turnover"), ("Town", "Code"))
    ran = Ran(office(tmp_path, rows, together, queries), store)
    assert attack(ran, rows) > 20


@pytest.mark.parametrize(
    ("division", "codes_by_town", "seed"),
    [(("Town", "Code"), 2, 5), (("Region", "Code"), 1, 6)],
)
def test_no_level_is_worked_out_from_another_hierarchy(
    tmp_path: Path, store: Store, division: tuple[str, str], codes_by_town: int, seed: int
) -> None:
    rows = firms(seed, 52, 3, codes_by_town)
    queries = sheets(False, ("Firms", "Turnover"), division)
    ran = Ran(office(tmp_path, rows, False, queries), store)
    assert attack(ran, rows) > 5
