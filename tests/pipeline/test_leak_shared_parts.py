"""Two cubes that have but a part in common, or the same sums, would still give each other away."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.errors import UserError
from app.domain.publication import Publication
from app.pipeline.check import check_publication
from app.pipeline.define import load_publication
from app.pipeline.run import run
from tests.pipeline.offices import CUBE, PUBLICATION, firms, write_csv, write_office
from tests.pipeline.test_protection import sheet

Rows = list[dict[str, object]]

LEVEL = '[[dimension.hierarchy.level]]\nname = "{}"\nkey = "{}"\n'
TIME = '[[dimension]]\nname = "Time"\n[[dimension.hierarchy]]\nall.en = "Ever"\n'
YEAR = TIME + LEVEL.format("Year", "year")
QUARTER = YEAR + LEVEL.format("Quarter", "quarter")
PLACE, ACTIVITY, SIZE = (
    f"[[dimension]]{part}" for part in CUBE[: CUBE.index("[[measure]]")].split("[[dimension]]")[1:]
)


@dataclass(frozen=True)
class Side:
    """A cube: its records, its dimensions, and the measures that it has."""

    rows: Rows
    dimensions: Sequence[str]
    measures: Sequence[str] = ("Firms", "Turnover")


def everybody(seed: int) -> Rows:
    chance = random.Random(seed)
    return [{**row, "turnover": chance.randint(100, 90_000), "year": 2024} for row in firms(seed, 500)]


def times(factor: float, side: Side) -> Side:
    return replace(
        side, rows=[{**row, "turnover": float(str(row["turnover"])) * factor} for row in side.rows]
    )


def renamed(side: Side) -> Side:
    return replace(side, rows=[{**row, "firm": f"p{row['firm']}"} for row in side.rows])


def shuffled(side: Side, seed: int) -> Side:
    return replace(side, rows=random.Random(seed).sample(side.rows, len(side.rows)))


def large_and_farms(seed: int) -> tuple[Side, Side]:
    """Firms that aren't small by activity, and farms by size."""
    rows = everybody(seed)
    large = [row for row in rows if row["size"] != "small"]
    farms = [row for row in rows if row["activity"] == "farm"]
    return Side(large, [PLACE, ACTIVITY]), Side(farms, [PLACE, SIZE])


def small_farms_and_others(seed: int) -> tuple[Side, Side]:
    """All firms, and a cube of the small farms and of firms that aren't in the first."""
    rows = everybody(seed)
    farms = [row for row in rows if (row["activity"], row["size"]) == ("farm", "small")]
    others = [{**row, "firm": 10_000 + i, "turnover": 7 + i} for i, row in enumerate(everybody(seed + 50))]
    return Side(rows, [PLACE, ACTIVITY, SIZE]), Side(farms + others[:200], [PLACE])


def halves(seed: int) -> tuple[Side, Side]:
    """Two samples that share half of their firms by chance."""
    rows = everybody(seed)
    return Side(rows[:300], [PLACE, ACTIVITY]), Side(rows[150:450], [PLACE, SIZE])


def quarters_and_years(seed: int) -> tuple[Side, Side]:
    chance = random.Random(seed)
    quarters, years = [], []
    for row in everybody(seed)[:80]:
        parts = [chance.randint(100, 900) for _ in range(4)]
        quarters += [{**row, "turnover": part, "quarter": f"2024Q{k}"} for k, part in enumerate(parts, 1)]
        years.append({**row, "turnover": sum(parts)})
    return Side(quarters, [PLACE, QUARTER]), Side(years, [PLACE, ACTIVITY, YEAR])


def persons_and_households(seed: int) -> tuple[Side, Side]:
    """The same amounts, brought by others: their sums at each town are the same."""
    rows = everybody(seed)
    by_town: dict[object, Rows] = {}
    for row in rows:
        by_town.setdefault(row["town"], []).append(row)
    pairs = []
    for town, listed in by_town.items():
        for start in range(0, len(listed), 2):
            total = sum(int(str(row["turnover"])) for row in listed[start : start + 2])
            pairs.append({**listed[start], "firm": f"{town}-{start}", "turnover": total})
    return Side(rows, [PLACE, ACTIVITY]), Side(pairs, [PLACE, SIZE])


def samples(seed: int) -> tuple[Side, Side]:
    """As many firms in each town in two surveys, of others."""
    one, other = (
        [{**row, "town": town, "firm": f"{half}{town}{i}"} for town in ("a1", "b1", "c1") for i, row in rows]
        for half, rows in (
            ("x", list(enumerate(everybody(seed)[:30]))),
            ("y", list(enumerate(everybody(seed + 9)[:30]))),
        )
    )
    return Side(one, [PLACE, ACTIVITY]), Side(other, [PLACE, SIZE])


Make = Callable[[int], tuple[Side, Side]]


def changed(make: Make, change: Callable[[Side], Side]) -> Make:
    def both(seed: int) -> tuple[Side, Side]:
        one, other = make(seed)
        return one, change(other)

    return both


def amounts_only(make: Make) -> Make:
    def both(seed: int) -> tuple[Side, Side]:
        one, other = make(seed)
        return replace(one, measures=["Turnover"]), replace(other, measures=["Turnover"])

    return both


REFUSED: dict[str, Make] = {
    "a member": large_and_farms,
    "a member, new names": changed(large_and_farms, renamed),
    "a member, amounts alone, in thousands": amounts_only(
        changed(large_and_farms, lambda s: times(0.001, s))
    ),
    "two members": small_farms_and_others,
    "two members, new names": changed(small_farms_and_others, renamed),
    "quarters": quarters_and_years,
    "quarters, new names": changed(quarters_and_years, renamed),
    "quarters, new names, in thousands": changed(quarters_and_years, lambda s: renamed(times(0.001, s))),
    "households": persons_and_households,
}
ALLOWED: dict[str, Make] = {
    "samples that meet": halves,
    "samples of one size": samples,
    "other amounts": amounts_only(
        changed(
            large_and_farms,
            lambda s: renamed(replace(s, rows=[{**r, "turnover": 3 + 17 * i} for i, r in enumerate(s.rows)])),
        )
    ),
}


def publication_of(folder: Path, one: Side, other: Side) -> Publication:
    sides = {"One": one, "Other": other}
    rules = '[confidentiality.{}."{}"]\nweight = "unit"\nrules = [{{ rule = "threshold", n = 3 }}]\n'
    head = PUBLICATION[: PUBLICATION.index("[confidentiality.Firms")]
    head += "".join(rules.format(name, measure) for name, side in sides.items() for measure in side.measures)
    query = "SELECT {{[Measures].[Turnover]}} ON 0, {{[Place].[Town].Members}} ON 1 FROM [{}]"
    write_office(folder, one.rows, head, sheets={name.lower(): sheet(query.format(name)) for name in sides})
    (folder / "cubes/firms.toml").unlink(missing_ok=True)
    measures = [
        "[[measure]]" + part for part in CUBE[: CUBE.index("[[calculated]]")].split("[[measure]]")[1:]
    ]
    for name, side in sides.items():
        write_csv(folder / f"data/{name.lower()}.csv", shuffled(side, 1).rows)
        kept = [part for part in measures if part.split('"')[1] in side.measures]
        facts = f'name = "{name}"\n[facts]\nfile = "../data/{name.lower()}.csv"\nrespondent = "firm"\n'
        text = facts + "".join([*side.dimensions, *kept])
        (folder / f"cubes/{name.lower()}.toml").write_text(text, encoding="utf-8")
    return load_publication(folder)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", list(REFUSED))
def test_cubes_with_something_in_common_are_refused(tmp_path: Path, kind: str, seed: int) -> None:
    with pytest.raises(UserError) as caught:
        check_publication(publication_of(tmp_path / "office", *REFUSED[kind](seed)), open_cube)
    (mistake,) = caught.value.mistakes
    assert mistake.file == "cubes/other.toml"
    assert "protected apart" in mistake.cause
    assert "one cube" in mistake.remedy


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", list(ALLOWED))
def test_cubes_that_chance_made_alike_are_no_mistake(tmp_path: Path, kind: str, seed: int) -> None:
    check_publication(publication_of(tmp_path / "office", *ALLOWED[kind](seed)), open_cube)


def test_nothing_is_released_of_such_cubes(tmp_path: Path, store: Store) -> None:
    publication = publication_of(tmp_path / "office", *large_and_farms(1))
    with pytest.raises(UserError, match="farm"):
        run(publication, store, open_cube)
