"""Two divisions of the same people, seen apart, must not single anybody out when they are put together."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.db import Store
from app.domain.masked import CellStatus
from app.domain.release import Release
from tests.pipeline.offices import PUBLICATION, write_csv
from tests.pipeline.test_protection import Ran, sheet

CUBE = """
name = "Firms"
[facts]
file = "../data/firms.csv"
respondent = "firm"
{dimensions}
[[measure]]
name = "Firms"
aggregator = "count"
[[measure]]
name = "Turnover"
aggregator = "sum"
column = "turnover"
"""
LEVEL = """
[[dimension.hierarchy]]
name = "{name}"
all.en = "All"
[[dimension.hierarchy.level]]
name = "{name}"
key = "{key}"
"""
ONE_DIMENSION = '[[dimension]]\nname = "Age"\n' + "".join(
    LEVEL.format(name=name, key=key) for name, key in (("Work", "work"), ("Law", "law"))
)
TWO_DIMENSIONS = "".join(
    f'[[dimension]]\nname = "{name}"\n' + LEVEL.format(name=name, key=key)
    for name, key in (("Work", "work"), ("Law", "law"))
)

#: Pairs that have people: neither division decides the other; then the first decides the second.
ACROSS = (("0-14", "0-17"), ("15-64", "0-17"), ("15-64", "18-66"), ("65+", "18-66"), ("65+", "67+"))
NESTED = (("0-9", "0-17"), ("10-17", "0-17"), ("18-40", "18+"), ("41-64", "18+"), ("65+", "18+"))


def run_on(folder: Path, store: Store, dimensions: str, people: dict[tuple[str, str], int]) -> Ran:
    one = "[Age.Work]" if dimensions is ONE_DIMENSION else "[Work]"
    other = "[Age.Law]" if dimensions is ONE_DIMENSION else "[Law]"
    rows = [
        {"firm": f"{pair}{number}", "work": pair[0], "law": pair[1], "turnover": 5}
        for pair, n in people.items()
        for number in range(n)
    ]
    write_csv(folder / "data/firms.csv", rows)
    for name, text in {
        "publication.toml": PUBLICATION,
        "cubes/firms.toml": CUBE.format(dimensions=dimensions),
        "sheets/a.toml": sheet(f"SELECT {{[Firms]}} ON 0, {one}.[Work].Members ON 1 FROM [Firms]"),
        "sheets/b.toml": sheet(f"SELECT {{[Firms]}} ON 0, {other}.[Law].Members ON 1 FROM [Firms]"),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("{[Firms]}", "{[Measures].[Firms]}"), encoding="utf-8")
    return Ran(folder, store)


def seen(ran: Ran, release: Release) -> dict[str, float]:
    """What the two sheets show, by the last name in each member's unique name."""
    found = {}
    for layout in ran.crawl.layouts.values():
        for position, cell in zip(layout.axes[1].positions, layout.cell.tolist(), strict=True):
            if release.status[cell] == CellStatus.SHOWN:
                found[position[0].unique_name.split("&")[-1].strip("[]")] = float(release.values[cell])
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("dimensions", "pairs"),
    [(ONE_DIMENSION, ACROSS), (ONE_DIMENSION, NESTED), (TWO_DIMENSIONS, NESTED), (TWO_DIMENSIONS, ACROSS)],
    ids=["across", "nested", "two dimensions", "two dimensions across"],
)
def test_nobody_is_left_over_between_two_divisions(
    tmp_path: Path, store: Store, dimensions: str, pairs: tuple[tuple[str, str], ...], seed: int
) -> None:
    chance = random.Random(seed)
    # Across dimensions, only many who keep apart tell chance from rule.
    crowd = 30 if (dimensions, pairs) == (TWO_DIMENSIONS, ACROSS) else 1
    people = {pair: chance.choice((1, 2, 9 * crowd, 12 * crowd, 20 * crowd)) for pair in pairs}
    ran = run_on(tmp_path, store, dimensions, people)
    shown = seen(ran, ran.release)
    rows = [[name in pair for pair in pairs] for name in shown]
    for k in (1, 2):
        for few in combinations(range(len(pairs)), k):
            if sum(people[pairs[place]] for place in few) < 3:
                wanted = np.isin(np.arange(len(pairs)), few).astype(float)
                ends = [
                    linprog(sign * wanted, A_eq=rows or None, b_eq=list(shown.values()) or None)
                    for sign in (1, -1)
                ]
                found = [end.fun if end.status == 0 else -np.inf for end in ends]
                assert -found[1] - found[0] >= 1, (few, people, shown)
    if min(people.values()) > 2:
        assert len(shown) == len({name for pair in pairs for name in pair})
