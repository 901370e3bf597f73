"""Who is in "10 to 49 employees" has so many: how many firms there are bounds how many employees."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.bands import bounds_by_bands
from app.domain.crawled import Crawl
from app.domain.primary import PrimaryResult
from app.pipeline.assess import assess_cells
from app.pipeline.build import Problems, build_problems
from app.pipeline.crawl import crawl
from app.pipeline.define import load_publication
from app.pipeline.memory import read_memory
from app.pipeline.suppress import Suppression, levels_kept, suppress
from app.pipeline.union_rules import UnionRules
from tests.pipeline.offices import CUBE, PUBLICATION, TOWNS, write_csv, write_office
from tests.pipeline.test_protection import Ran, sheet

Place = tuple[str, str]
#: The ends of each class, as its label says.
CLASSES = {"s": (1, 9), "m": (10, 49), "l": (50, 249), "h": (250, np.inf)}
LABELS = {"s": "1 to 9", "m": "10 to 49", "l": "50 to 249", "h": "250 or more"}
BANDED = CUBE.replace(
    'name = "Size"\n[[dim', 'name = "Size"\ntable = "../data/sizes.csv"\nkey = "size"\n[[dim', 1
)
BANDED = BANDED.replace('key = "size"\n[[measure]]', 'key = "size"\nlabel = "label"\n[[measure]]')
QUERY = """SELECT {{[Size].[All], [Size].[Size].Members}} ON COLUMNS,
  {{[Place].[All], [Place].[Town].Members}} ON ROWS FROM [Firms] WHERE ([Measures].[{measure}])"""


def firms_by_class(seed: int) -> list[dict[str, object]]:
    """Firms whose turnover counts their employees, in classes of it; some classes of a town are thin."""
    chance = random.Random(seed)
    rows: list[dict[str, object]] = []
    for town, size in product(TOWNS, CLASSES):
        low, high = CLASSES[size]
        for _ in range(chance.choice((0, 1, 2, 4, 6)) if size in "lh" else chance.choice((2, 9, 12))):
            rows.append(
                {"firm": len(rows), "holding": "", "town": town, "activity": "farm", "size": size}
                | {"turnover": chance.randint(low, int(min(high, 4 * low)))}
            )
    return rows


def office(folder: Path, rows: list[dict[str, object]], cube: str = BANDED) -> Path:
    sheets = {measure: sheet(QUERY.format(measure=measure)) for measure in ("Firms", "Turnover")}
    made = write_office(folder, rows, PUBLICATION, cube, sheets)
    write_csv(made / "data/sizes.csv", ({"size": key, "label": label} for key, label in LABELS.items()))
    return made


class Reader:
    """What a reader makes of the tables: the numbers shown, the labels, and an integer program."""

    def __init__(self, found: Crawl, hidden: np.ndarray) -> None:
        (cells,) = found.cubes
        self.value: dict[tuple[str, str, str], float] = {}
        self.hidden: set[tuple[str, str, str]] = set()
        self.rows: dict[tuple[str, str, str], int] = {}
        for row, key in enumerate(cells.keys(np.arange(cells.n_published))):
            parts = key.split(" | ")
            at = {part.split("]")[0].strip("["): part.split("&")[-1].strip("[]") for part in parts[2:]}
            place = (parts[1].split(".")[-1].strip("[]"), at.get("Place", ""), at.get("Size", ""))
            self.rows[place] = row
            self.value[place] = float(np.nan_to_num(cells.values[row]))
            if hidden[row]:
                self.hidden.add(place)
        self.leaves = [(m, t, s) for m in ("Firms", "Turnover") for t in TOWNS for s in CLASSES]

    def range_of(self, wanted: Place, labels: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
        """The least and the largest number of firms of a town and class that the tables leave open."""
        number = {leaf: place for place, leaf in enumerate(self.leaves)}
        low, high = np.zeros(len(number)), np.full(len(number), np.inf)
        for leaf, place in number.items():
            if leaf in self.hidden:
                low[place] = 1
            else:
                low[place] = high[place] = self.value[leaf]
        rows, least, most = [], [], []
        for (measure, town, size), value in self.value.items():
            if (town and size) or (measure, town, size) in self.hidden:
                continue
            row = np.zeros(len(number))
            for leaf, place in number.items():
                row[place] = leaf[0] == measure and town in ("", leaf[1]) and size in ("", leaf[2])
            rows.append(row)
            least.append(value)
            most.append(value)
        for town, (size, (start, end)) in product(TOWNS, labels.items()):
            for factor, sign in ((start, 1.0), (end, -1.0)):
                if np.isfinite(factor):
                    row = np.zeros(len(number))
                    row[number["Turnover", town, size]] = sign
                    row[number["Firms", town, size]] = -sign * factor
                    rows.append(row)
                    least.append(0.0)
                    most.append(np.inf)
        told = LinearConstraint(np.array(rows), np.array(least), np.array(most))
        ends = []
        for sign in (1.0, -1.0):
            goal = np.zeros(len(number))
            goal[number["Firms", *wanted]] = sign
            best = milp(
                goal,
                integrality=np.ones(len(number)),
                bounds=Bounds(low, high),
                constraints=told,
                # Its presolve now and then takes a solution that there is for none.
                options={"presolve": False},
            )
            assert best.status in (0, 3, 4), best.message
            ends.append(sign * best.fun if best.status == 0 else sign * -np.inf)
        return ends[0], ends[1]


def too_narrow(
    found: Crawl, primaries: PrimaryResult, problems: Problems, pattern: Suppression, ends: bool
) -> list[Place]:
    """Sensitive numbers of firms whose range is below what it must be, with the labels' ends or without."""
    reader = Reader(found, pattern.hidden[0])
    lpl, upl, _ = levels_kept(0, primaries.cubes[0], problems, pattern)
    broken = []
    for (measure, town, size), row in reader.rows.items():
        if measure == "Firms" and town and size and primaries.cubes[0].sensitive[row]:
            value = reader.value[measure, town, size]
            low, high = reader.range_of((town, size), CLASSES if ends else {})
            # Firms come whole: what must be possible in parts is so from the next whole number on.
            if low > np.ceil(value - lpl[row] - 1e-6) or high < np.floor(value + upl[row] + 1e-6):
                broken.append((town, size))
    return broken


def without_bands(folder: Path) -> tuple[Crawl, PrimaryResult, Problems, Suppression]:
    """The pattern of whoever doesn't know of bands."""
    publication = load_publication(folder)
    (cube,) = publication.cubes
    servers = {cube.name: open_cube(cube)}
    found = crawl(publication, servers)
    found = replace(found, cubes=tuple(replace(cells, bands=()) for cells in found.cubes))
    primaries = assess_cells(publication, found, servers)
    problems = build_problems(publication, found, primaries)
    judge = UnionRules(publication.confidentiality, found, servers)
    return found, primaries, problems, suppress(30.0, found, primaries, problems, judge)


SEEDS = (2, 5, 6, 7, 9, 10)


def test_whoever_knows_nothing_of_bands_gives_firms_away(tmp_path: Path) -> None:
    """Of cheapest patterns there are several, not each of which does."""
    given_away = []
    for seed in SEEDS:
        unaware = without_bands(office(tmp_path / str(seed), firms_by_class(seed)))
        assert too_narrow(*unaware, ends=False) == []
        given_away += too_narrow(*unaware, ends=True)
    assert given_away


@pytest.mark.parametrize("seed", SEEDS)
def test_classes_of_employees_do_not_bound_how_many_firms_are_hidden(
    tmp_path: Path, store: Store, seed: int
) -> None:
    folder = office(tmp_path / "office", firms_by_class(seed))
    ran = Ran(folder, store)
    assert len(ran.cells.bands) == 1
    assert too_narrow(ran.crawl, ran.primaries, ran.problems, ran.suppression, ends=True) == []


def test_a_sum_in_all_is_bounded_by_the_classes_of_its_firms(tmp_path: Path, store: Store) -> None:
    """Employees are shown in all alone, firms by class: so many of each class have so many at least."""
    rows = firms_by_class(2)
    folder = office(tmp_path / "office", rows)
    totals = "SELECT {[Place].[All], [Place].[Town].Members} ON 0 FROM [Firms] WHERE ([Measures].[Turnover])"
    (folder / "sheets/Turnover.toml").write_text(sheet(totals), encoding="utf-8")
    ran = Ran(folder, store)
    bounds = bounds_by_bands(ran.cells.space, ran.cells.coords, ran.cells.values, ran.cells.bands)
    row = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a1]")
    mine = [
        set(ran.cells.keys(part[part < len(ran.cells)]))
        for part in np.split(bounds.equations.indices, bounds.equations.indptr[1:-1])
        if row in part
    ]
    classes = {str(fact["size"]) for fact in rows if fact["town"] == "a1"}
    firms = {
        f"Firms | [Measures].[Firms] | [Place].[Town].&[a1] | [Size].[Size].&[{size}]" for size in classes
    }
    assert firms | set(ran.cells.keys(np.array([row]))) in mine


def test_a_release_made_with_bands_is_verified_with_them(tmp_path: Path, store: Store) -> None:
    ran = Ran(office(tmp_path / "office", firms_by_class(2)), store)
    (problem,) = {item.rank for item in ran.problems.problems}
    assert problem == 1
    kept = read_memory(store.book.knowledge(ran.release.id) or b"")
    assert [band.summed for band in kept.shown[0].cells.bands] == [1]
