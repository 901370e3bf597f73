"""Counts and persons are whole numbers: a weighted sum of a few of them must not have one solution only."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import PUBLICATION, firms_of, write_office
from tests.pipeline.test_protection import Ran, sheet

TOWNS = ("a1", "a2", "b1")
COUNTS = {"a1": 2, "a2": 4, "b1": 9}
#: Hiding the sum costs more than hiding its parts.
BY_VALUE = PUBLICATION.replace('weight = "unit"', 'weight = "value"')
WEIGHTS = ((5, 11, 0), (5, -11, 0), (0.3, 0.7, 0), (3, 7, 13), (1000, 1, 0), (2, 2, 0), (1, -1, 0))


def queries(weights: tuple[float, ...]) -> list[str]:
    used = [(weight, town) for weight, town in zip(weights, TOWNS, strict=True) if weight]
    members = " + ".join(f"{weight} * [Place].[Town].&[{town}]" for weight, town in used)
    cells = " + ".join(f"{weight} * ([Measures].[Firms], [Place].[Town].&[{town}])" for weight, town in used)
    shown = ", ".join(f"[Place].[Town].&[{town}]" for _, town in used)
    return [
        f"""WITH MEMBER [Place].[Index] AS '{members}', DECIMALS = 1
        SELECT {{[Measures].[Firms]}} ON 0, {{{shown}, [Place].[Index]}} ON 1 FROM [Firms]""",
        f"""WITH MEMBER [Measures].[Index] AS '{cells}', DECIMALS = 1
        SELECT {{[Measures].[Firms], [Measures].[Index]}} ON 0, {{{shown}}} ON 1 FROM [Firms]""",
    ]


@pytest.mark.parametrize("form", [0, 1], ids=["member", "measure"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_whole_numbers_leave_several_possibilities(
    tmp_path: Path, store: Store, weights: tuple[float, ...], form: int
) -> None:
    rows = firms_of({town: [5] * n for town, n in COUNTS.items()})
    office = write_office(tmp_path / "office", rows, BY_VALUE, sheets={"a": sheet(queries(weights)[form])})
    ran = Ran(office, store)
    release = ran.release
    total = sum(weight * COUNTS[town] for weight, town in zip(weights, TOWNS, strict=True))
    seen = [
        place
        for place, key in enumerate(release.keys)
        if release.status[place] == CellStatus.SHOWN
        and not any(f"Firms] | [Place].[Town].&[{t}]" in key for t in TOWNS)
    ]
    counts = {
        town: int(release.values[place])
        for place, key in enumerate(release.keys)
        for town in TOWNS
        if key == f"Firms | [Measures].[Firms] | [Place].[Town].&[{town}]"
        and release.status[place] == CellStatus.SHOWN
    }
    assert "a1" not in counts
    possible = np.array(list(product(range(1, 40), repeat=3)))
    for town, count in counts.items():
        possible = possible[possible[:, TOWNS.index(town)] == count]
    if seen:
        possible = possible[np.abs(possible @ np.array(weights) - total) < 0.05]
    thin = np.unique(possible[:, 0])
    assert {1, 2, 3} <= set(thin.tolist())


#: Persons employed by the firms of a town, and what a weighted sum of towns is; a1 has one firm.
PERSONS = {
    "few": ({"a1": (1,), "a2": (1, 1, 1)}, (5, 11), 1),
    "hundredths": ({"a1": (0.01,), "a2": (0.01, 0.01, 0.01)}, (5, 11), 0.01),
    "shares": ({"a1": (2,), "a2": (3, 2, 4)}, (0.3, 0.7), 1),
    "many": ({"a1": (4000,), "a2": (3000, 2000, 4000)}, (2, 3), 1),
}


@pytest.mark.parametrize("kind", list(PERSONS))
def test_amounts_that_are_whole_numbers_leave_several_possibilities(
    tmp_path: Path, store: Store, kind: str
) -> None:
    towns, (one, other), unit = PERSONS[kind]
    rows = firms_of(towns)
    query = f"""WITH MEMBER [Place].[Index] AS
      '{one} * [Place].[Town].&[a1] + {other} * [Place].[Town].&[a2]', DECIMALS = 3
    SELECT {{[Measures].[Turnover]}} ON 0,
      {{[Place].[Town].&[a1], [Place].[Town].&[a2], [Place].[Index]}} ON 1 FROM [Firms]"""
    ran = Ran(write_office(tmp_path / "office", rows, BY_VALUE, sheets={"a": sheet(query)}), store)
    (layout,) = ran.crawl.layouts.values()
    thin, rest, index = ran.release.values[layout.cell].tolist()
    assert np.isnan(thin)
    truth = {town: sum(amounts) / unit for town, amounts in towns.items()}
    possible = np.arange(0, 40_000.0)
    if not np.isnan(index):
        others = (index / unit - one * possible) / other
        possible = possible[(others >= 0) & (np.abs(others - np.round(others)) < 1e-6)]
        if not np.isnan(rest):
            possible = possible[np.abs(others - rest / unit) < 1e-6]
    assert possible.min() <= 0.9 * truth["a1"]
    assert possible.max() >= 1.1 * truth["a1"]
    assert (kind == "many") == (not np.isnan(index))


def test_plain_sums_stay_what_they_are(tmp_path: Path, store: Store) -> None:
    """A sum or difference is shown though its parts are hidden, where that is safe."""
    query = """WITH MEMBER [Place].[Two] AS '3 * [Place].[Town].&[a1] + 3 * [Place].[Town].&[a2]'
    SELECT {[Measures].[Firms]} ON 0,
      {[Place].[Town].&[a1], [Place].[Town].&[a2], [Place].[Two]} ON 1 FROM [Firms]"""
    rows = firms_of({"a1": [5] * 2, "a2": [5] * 12})
    ran = Ran(write_office(tmp_path / "office", rows, BY_VALUE, sheets={"a": sheet(query)}), store)
    assert ran.release.status.tolist() == [
        CellStatus.CONFIDENTIAL, CellStatus.CONFIDENTIAL, CellStatus.SHOWN
    ]  # fmt: skip
