"""A hierarchy that two others decide together must not give away what their table hides."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.lattice import Space
from app.domain.masked import CellStatus
from app.pipeline.define import load_publication
from app.pipeline.joints import find_joints
from app.pipeline.together import Together
from app.pipeline.twins import find_twins
from tests.pipeline.offices import PUBLICATION, write_csv
from tests.pipeline.test_leak_divisions import CUBE, LEVEL
from tests.pipeline.test_protection import Ran, sheet

NAMES = ("Home", "Work", "Kind")
DIMENSIONS = "".join(
    f'[[dimension]]\nname = "{name}"\n' + LEVEL.format(name=name, key=name.lower()) for name in NAMES
)
PLACES = ("a", "b", "c")
#: Which kind a pair of places is of.
KINDS: dict[str, Callable[[str, str], str]] = {
    "diagonal": lambda home, work: "stay" if home == work else "go",
    "a row and more": lambda home, work: "near" if home == "a" or work == "b" else "far",
    "three": lambda home, work: ("x", "y", "z")[(PLACES.index(home) + PLACES.index(work)) % 3],
}
CROSSED = "{{[{0}].[All], [{0}].[{0}].Members}}"
TABLES = {
    "crossed": f"SELECT {CROSSED.format('Home')} ON 0, {CROSSED.format('Work')} ON 1 FROM [Firms]",
    "margins": "SELECT {[Measures].[Firms]} ON 0, {[Home].[Home].Members} ON 1 FROM [Firms]",
}


def write_commuters(folder: Path, people: dict[tuple[str, str], int], kind: str, tables: str) -> Path:
    rows = [
        {"firm": f"{pair}{number}", "home": pair[0], "work": pair[1], "turnover": 5}
        | {"kind": KINDS[kind](*pair)}
        for pair, n in people.items()
        for number in range(n)
    ]
    write_csv(folder / "data/firms.csv", rows)
    for name, text in {
        "publication.toml": PUBLICATION,
        "cubes/firms.toml": CUBE.format(dimensions=DIMENSIONS),
        "sheets/a.toml": sheet(TABLES[tables] + " WHERE [Measures].[Firms]" * (tables == "crossed")),
        "sheets/b.toml": sheet("SELECT {[Measures].[Firms]} ON 0, [Kind].[Kind].Members ON 1 FROM [Firms]"),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("tables", list(TABLES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_no_pair_is_worked_out_from_its_kind(
    tmp_path: Path, store: Store, kind: str, tables: str, seed: int
) -> None:
    chance = random.Random(seed)
    people = {pair: chance.choice((1, 2, 9, 14, 30)) for pair in product(PLACES, PLACES)}
    ran = Ran(write_commuters(tmp_path, people, kind, tables), store)
    pairs = list(people)
    rows, values = [], []
    for layout in ran.crawl.layouts.values():
        for number, cell in enumerate(layout.cell.tolist()):
            if ran.release.status[cell] == CellStatus.SHOWN:
                width = len(layout.axes[0].positions)
                names = {
                    member.hierarchy: member.unique_name.split("&")[-1].strip("[]")
                    for member in (
                        *layout.axes[0].positions[number % width],
                        *layout.axes[1].positions[number // width],
                    )
                    if "&" in member.unique_name
                }
                rows.append(
                    [
                        all(
                            {"[Home]": pair[0], "[Work]": pair[1], "[Kind]": KINDS[kind](*pair)}[name] == term
                            for name, term in names.items()
                        )
                        for pair in pairs
                    ]
                )
                values.append(float(ran.release.values[cell]))
    assert values
    # Where a table shows a pair, everybody sees whether it has people.
    least = float(tables == "crossed")
    for place, pair in enumerate(pairs):
        if people[pair] < 3:
            wanted = np.arange(len(pairs)) == place
            ends = [linprog(sign * wanted, A_eq=rows, b_eq=values, bounds=(least, None)) for sign in (1, -1)]
            found = [end.fun if end.status == 0 else -np.inf for end in ends]
            assert -found[1] - found[0] >= 1, (pair, people)


def test_what_few_facts_have_in_common_by_chance_is_no_rule(tmp_path: Path) -> None:
    few = dict.fromkeys(product(PLACES, PLACES), 1)
    many = dict.fromkeys(product(PLACES, PLACES), 9)
    for number, people in enumerate((few, many)):
        folder = write_commuters(tmp_path / str(number), people, "diagonal", "crossed")
        server = open_cube(load_publication(folder).cubes[0])
        cube = server.discover()
        space, together = Space.of(cube), Together(server, cube)
        twins = find_twins(together, cube, space)
        assert not twins
        found = find_joints(together, cube, space, twins)
        assert [cube.hierarchies[joint.column - 1].name for joint in found] == ["Kind"] * number
        server.close()


def test_divisions_of_thousands_are_compared_too(tmp_path: Path) -> None:
    rows = [
        {"firm": n, "work": f"p{n % 2100}", "law": f"t{n % 2100 // 2 * 2}", "turnover": 5}
        for n in range(4200)
    ]
    rows += [{"firm": -n, "work": f"q{n}", "law": f"u{n}", "turnover": 5} for n in range(1, 1200)]
    dimensions = "".join(
        f'[[dimension]]\nname = "{name}"\n' + LEVEL.format(name=name, key=name.lower())
        for name in ("Work", "Law")
    )
    write_csv(tmp_path / "data/firms.csv", rows)
    for name, text in {
        "publication.toml": PUBLICATION,
        "cubes/firms.toml": CUBE.format(dimensions=dimensions),
        "sheets/a.toml": sheet("SELECT {[Measures].[Firms]} ON 0, [Work].[All] ON 1 FROM [Firms]"),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    server = open_cube(load_publication(tmp_path).cubes[0])
    cube = server.discover()
    (twin,) = find_twins(Together(server, cube), cube, Space.of(cube))
    assert [cube.hierarchies[column - 1].name for column in (twin.fine, twin.coarse)] == ["Work", "Law"]
    server.close()
