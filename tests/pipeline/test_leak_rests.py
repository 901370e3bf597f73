"""A total less cells that differ from it in several hierarchies leaves no few firms, though no table has it.

The attacker adds up and takes off whatever is shown of a measure, once each, and looks at whose sum it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from app.db import Store
from app.domain.lattice import Space, Tree
from app.domain.masked import CellStatus
from app.domain.rests import rests
from tests.pipeline.offices import ACTIVITIES, SIZES, write_office
from tests.pipeline.test_leak_empty_places import PLACES, PUBLICATION, REGIONS, inside
from tests.pipeline.test_protection import Ran, sheet

Row = dict[str, object]
#: A cell: its region or town, activity and size; "" for all.
Cell = tuple[str, str, str]
ALL: Cell = ("", "", "")
FEW = 3


def mdx(measure: str, cells: Sequence[Cell]) -> str:
    tuples = ", ".join(
        f"([Place].{place(town)}, [Activity].{member('Activity', activity)}, [Size].{member('Size', size)})"
        for town, activity, size in cells
    )
    return f"SELECT {{[Measures].[{measure}]}} ON COLUMNS, {{{tuples}}} ON ROWS FROM [Firms]"


def place(name: str) -> str:
    return member("Region" if name in REGIONS else "Town", name)


def member(level: str, key: str) -> str:
    return f"[{level}].&[{key}]" if key else "[All]"


def lies_in(where: tuple[str, str, str], cell: Cell) -> bool:
    return all(
        not part or name == part or name in REGIONS.get(part, ())
        for name, part in zip(where, cell, strict=True)
    )


def crossed(chance: random.Random, k: int) -> list[Cell]:
    """Disjoint cells of a region and a size, or a region and an activity."""
    pairs = list(product(REGIONS, SIZES))
    by = chance.choice([0, 1])
    return [
        (region, "", size) if by else (region, ACTIVITIES[SIZES.index(size)], "")
        for region, size in chance.sample(pairs, k)
    ]


def mixed(chance: random.Random) -> list[Cell]:
    """Cells of three hierarchies, of which some lie in others."""
    region, activity, size = chance.choice("AB"), chance.choice(ACTIVITIES), chance.choice(SIZES)
    other = chance.choice([name for name in ACTIVITIES if name != activity])
    return [(region, activity, size), (region, activity, ""), ("", other, size)]


#: The cells that are shown beside the total of everything, and one of a region.
KINDS: dict[str, Callable[[random.Random], list[Cell]]] = {
    "one": lambda chance: crossed(chance, 1),
    "two": lambda chance: crossed(chance, 2),
    "three": lambda chance: crossed(chance, 3),
    "all but two": lambda chance: chance.sample([(r, "", s) for r in "AB" for s in SIZES], 4),
    "overlapping": lambda chance: [
        ("A", "", "small"),
        ("", "mill", "small"),
        ("A", "mill", ""),
        ("B", "shop", ""),
    ],
    "in a region": lambda chance: [("A", "", ""), ("a1", "", "small"), ("a2", "mill", "")],
    "mixed": mixed,
}


def few_beside(chance: random.Random, cells: Sequence[Cell]) -> list[Row]:
    """Many firms in each of the cells; and in none of them two that share something with each, so that no
    hierarchy tells them from the others."""
    rows: list[Row] = []
    rest = [where for where in PLACES if not any(lies_in(where, cell) for cell in cells)]
    for cell in cells:
        mine = [where for where in PLACES if lies_in(where, cell)]
        rows += [firm(chance, chance.choice(mine)) for _ in range(chance.randint(6, 9))]
    first = [chance.choice(cells)] * 2 if len(cells) == 1 else chance.sample(cells, 2)
    for which, cell in enumerate(first):
        near = [
            [where for where in rest if where[number] in (part, *REGIONS.get(part, ()))]
            for number, part in enumerate(cell)
            if part
        ]
        near = [wheres for wheres in near if wheres]
        rows.append(firm(chance, chance.choice(near[which % len(near)])))
    return [{**row, "firm": number} for number, row in enumerate(rows)]


def firm(chance: random.Random, where: tuple[str, str, str]) -> Row:
    town, activity, size = where
    turnover = chance.randint(200, 900)
    return {"holding": "", "town": town, "activity": activity, "size": size, "turnover": turnover}


def told(ran: Ran, rows: Sequence[Row], measure: str) -> list[set[int]]:
    """Sets of firms whose sum is a sum or difference of cells that are shown of a measure."""
    at = np.array([PLACES.index((row["town"], row["activity"], row["size"])) for row in rows])  # type: ignore[arg-type]
    seen = []
    for row, key in enumerate(ran.cells.keys(np.arange(ran.cells.n_published))):
        if ran.shown(row) is not CellStatus.CONFIDENTIAL and key.split(" | ")[1] == f"[Measures].[{measure}]":
            seen.append(inside(key.split(" | ")[2:])[at].astype(int))
    assert len(seen) < 8
    found = []
    for signs in product((0, 1, -1), repeat=len(seen)):
        whose = np.array(signs, dtype=int) @ np.array(seen).reshape(len(seen), len(rows))
        if whose.any() and ((whose == 0) | (whose == 1)).all():
            found.append(set(np.flatnonzero(whose).tolist()))
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_no_few_firms_are_left_beside_what_is_shown(
    tmp_path: Path, store: Store, kind: str, seed: int
) -> None:
    chance = random.Random(f"{kind} {seed}")
    cells = KINDS[kind](chance)
    rows = few_beside(chance, [cell for cell in cells if cell != ("A", "", "")])
    sheets = {name.lower(): sheet(mdx(name, [ALL, *cells])) for name in ("Firms", "Turnover")}
    ran = Ran(write_office(tmp_path / "office", rows, PUBLICATION, sheets=sheets), store)
    for measure in ("Firms", "Turnover"):
        for firms in told(ran, rows, measure):
            assert len(firms) >= FEW, (measure, cells, [rows[number] for number in firms])


def test_what_is_left_bounds_the_hidden_cells_among_those_taken_off(tmp_path: Path, store: Store) -> None:
    """All less two other cells leaves the small ones of A, of which one has most, and little besides."""
    cells = [("A", "", "small"), ("B", "", "middle"), ("C", "", "large")]
    amounts = {
        ("a1", "farm", "small"): [1000, 10],
        ("a2", "mill", "small"): [10],
        ("b1", "mill", "middle"): [500, 520, 480],
        ("b2", "farm", "middle"): [510, 490],
        ("c1", "mill", "large"): [530, 470],
        ("c1", "farm", "large"): [505, 495, 500],
        ("c1", "farm", "small"): [3, 4, 5],
        ("b2", "mill", "large"): [6, 4, 5],
        ("b1", "mill", "small"): [9, 10, 11],
        ("a1", "farm", "middle"): [10, 12, 9],
    }
    rows: list[Row] = [
        {"holding": "", "town": where[0], "activity": where[1], "size": where[2], "turnover": amount}
        for where, listed in amounts.items()
        for amount in listed
    ]
    rows = [{**row, "firm": number} for number, row in enumerate(rows)]
    shown = {"turnover": sheet(mdx("Turnover", [ALL, *cells]))}
    ran = Ran(write_office(tmp_path / "office", rows, PUBLICATION, sheets=shown), store)
    hidden = [
        ran.shown(ran.row("[Measures].[Turnover]", *parts)) is CellStatus.CONFIDENTIAL
        for parts in [
            (),
            *((f"[Place].[Region].&[{region}]", f"[Size].[Size].&[{size}]") for region, _, size in cells),
        ]
    ]
    assert hidden[1]
    assert hidden[0] or any(hidden[2:]), "the largest firm is known to a twentieth"


def test_rests_are_those_that_leaves_tell() -> None:
    """Against every cell and every set of leaves, on small trees with groups."""
    for seed in range(30):
        space, coords = some_cells(random.Random(seed))
        sets = [leaf_set(space, row) for row in coords.tolist()]
        first = [place for place, leaves in enumerate(sets) if leaves not in sets[:place]]
        found = list(rests(space, coords))
        direct = {
            (total, part)
            for total, part in product(first, repeat=2)
            if sets[part] < sets[total]
            and not any(sets[part] < sets[other] < sets[total] for other in first)
            and sum(leaf_sets(space, coords[part])[h] != leaf_sets(space, coords[total])[h] for h in range(3))
            > 1
        }
        assert {(rest.total, part) for rest in found for part in rest.less.tolist()} == direct
        assert {(rest.total, int(rest.less[0])) for rest in found if len(rest.less) == 1} == direct
        for rest in found:
            less = rest.less.tolist()
            assert all(not sets[a] & sets[b] for a, b in combinations(less, 2))
            more = [b for a, b in direct if a == rest.total and b not in less]
            free = any(all(not sets[part] & sets[other] for other in less) for part in more)
            assert rest.least is not free


def some_cells(chance: random.Random) -> tuple[Space, np.ndarray]:
    parents = np.array([-1, 0, 1, 1, 1, 0, 5, 5], dtype=np.int32)
    tree = Tree.of(parents, np.array([7, 4, 2, 3, 4, 7, 6, 7], dtype=np.int32))
    space = Space([tree] * 3, np.array([True]), [["m"], *([[str(n) for n in range(8)]] * 3)])
    groups = [[(2, 1.0), (3, 1.0)], [(3, 1.0), (5, 1.0)]]
    numbers = [[*range(8), *(space.number(h, group, "", False) for group in groups)] for h in (1, 2, 3)]
    rows = {(0, *(chance.choice([0, *listed]) for listed in numbers)) for _ in range(14)}
    return space, np.array(sorted(rows | {(0, 0, 0, 0)}), dtype=np.int32)


def leaf_sets(space: Space, row: Sequence[int]) -> list[frozenset[int]]:
    found = []
    for h, tree in enumerate(space.trees):
        number = int(row[1 + h])
        terms = [(number, 1.0)] if number < tree.size else space.extra(1 + h, number).terms or ()
        leaves = {leaf for leaf in range(tree.size) if tree.last[leaf] == leaf}
        found.append(frozenset(leaf for leaf in leaves if any(m <= leaf <= tree.last[m] for m, _ in terms)))
    return found


def leaf_set(space: Space, row: Sequence[int]) -> frozenset[tuple[int, ...]]:
    return frozenset(product(*leaf_sets(space, row)))
