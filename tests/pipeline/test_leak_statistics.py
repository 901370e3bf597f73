"""Statistics that don't add up, over groups of members: published, and hidden with their parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import CUBE, PUBLICATION, firms_of, write_office
from tests.pipeline.test_protection import Ran, sheet

RULES = '\n[confidentiality.Firms."Statistic"]\nwith = "Firms"\nrules = [{ rule = "threshold", n = 3 }]\n'
QUERY = """WITH
  MEMBER [Place].[Thin] AS 'Aggregate({[Place].[Town].&[a1], [Place].[Town].&[a2]})'
  MEMBER [Place].[Full] AS 'Aggregate({[Place].[Town].&[a1], [Place].[Town].&[b1]})'
  MEMBER [Place].[Gap] AS '[Place].[Town].&[a1] - [Place].[Town].&[a2]'
SELECT {[Measures].[Statistic]} ON 0,
  {[Place].[All], [Place].[Town].Members, [Place].[Thin], [Place].[Full], [Place].[Gap]} ON 1
FROM [Firms]"""


@pytest.mark.parametrize("aggregator", ["distinct-count", "min", "max", "median"])
def test_a_group_is_hidden_with_its_parts(tmp_path: Path, store: Store, aggregator: str) -> None:
    measure = (
        f'[[measure]]\nname = "Statistic"\naggregator = "{aggregator}"\ncolumn = "owner"\n[[calculated]]'
    )
    rows = [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 5}
        | {"owner": i % 30 + 1}
        for i, town in enumerate(["a1"] * 20 + ["a2"] * 2 + ["a3"] * 10 + ["b1"] * 9 + ["c1"] * 7)
    ]
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION + RULES,
        CUBE.replace("[[calculated]]", measure, 1),
        {"a": sheet(QUERY)},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    state = dict(zip(names, ran.release.status[layout.cell].tolist(), strict=True))
    shown = {name for name, status in state.items() if status == CellStatus.SHOWN}
    assert not shown & {"a2", "Thin"}
    assert ("Full" in shown) == ({"a1", "b1"} <= shown)
    if "a1" in shown:
        assert "Gap" not in shown
    assert np.isnan(ran.release.values[layout.cell[names.index("a2")]])


SECOND = """
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Turnover"]
rules = [{ rule = "threshold", n = 3, p = 10 }]
[confidentiality.Firms."Statistic"]
rules = []
"""
#: Of another measure, the least and the most that a town's statistic leaves it, given its number of firms.
TELLS: dict[tuple[str, str], Callable[[float, int], tuple[float, float]]] = {
    ("Firms", "distinct-count"): lambda found, _: (found, np.inf),
    ("Turnover", "max"): lambda found, n: (found, n * found),
    ("Turnover", "min"): lambda found, n: (n * found, np.inf),
    ("Turnover", "median"): lambda found, n: (n * found / 2, np.inf),
}


@pytest.mark.parametrize("shape", ["level", "steep"])
@pytest.mark.parametrize(("measure", "aggregator"), list(TELLS))
def test_one_statistic_does_not_give_another_away(
    tmp_path: Path, store: Store, measure: str, aggregator: str, shape: str
) -> None:
    """Whatever is hidden for a thin town's sake keeps it uncertain, though another statistic is shown."""
    column = "firm" if aggregator == "distinct-count" else "turnover"
    statistic = (
        f'[[measure]]\nname = "Statistic"\naggregator = "{aggregator}"\ncolumn = "{column}"\n[[calculated]]'
    )
    sizes = {"a1": 30, "a2": 2, "a3": 6, "b1": 9, "c1": 12}
    rows = firms_of({town: [500, *[500 if shape == "level" else 1] * (n - 1)] for town, n in sizes.items()})
    query = """SELECT {[Measures].[Firms], [Measures].[Turnover], [Measures].[Statistic]} ON 0,
      {[Place].[All], [Place].[Town].Members} ON 1 FROM [Firms]"""
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index("[confidentiality]")] + SECOND,
        CUBE.replace("[[calculated]]", statistic, 1),
        {"a": sheet(query)},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = ran.release.values[layout.cell].reshape(-1, 3)[:, [0 if measure == "Firms" else 1, 2]]
    told = dict(zip(names, seen.tolist(), strict=True))
    truth = {town: float(n if measure == "Firms" else 0) for town, n in sizes.items()}
    for row in rows if measure == "Turnover" else []:
        truth[str(row["town"])] += float(str(row["turnover"]))
    bounds = []
    for town, n in sizes.items():
        shown, other = told[town]
        least, most = (1.0, np.inf) if np.isnan(other) else TELLS[measure, aggregator](other, n)
        bounds.append((least, most) if np.isnan(shown) else (shown, shown))
    whole = told["All"][0]
    equal = {} if np.isnan(whole) else {"A_eq": np.ones((1, len(sizes))), "b_eq": [whole]}
    thin = np.array([town == "a2" for town in sizes], dtype=float)
    top = linprog(-thin, bounds=bounds, **equal)
    assert np.isnan(told["a2"][0])
    assert top.status == 3 or -top.fun >= (3 if measure == "Firms" else 1.1 * truth["a2"]) - 1e-6


#: Firms' amounts by town; a2 is thin, and its median is the highest.
TOWNS = {
    "two": {"a1": (10, 90, 95), "a2": (100, 100)},
    "three": {"a1": (10, 90, 95), "a2": (100, 100), "a3": (20, 93, 96, 97)},
    "alone": {"a2": (100, 100)},
    "far": {"a1": (10, 60, 64), "a2": (100, 100)},
}


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("towns", list(TOWNS))
def test_a_median_tells_of_no_part_above_or_below_the_others(
    tmp_path: Path, store: Store, towns: str, mirrored: bool
) -> None:
    """A region's median above those of all other towns is at most that of the thin one, and so mirrored."""
    statistic = '[[measure]]\nname = "Statistic"\naggregator = "median"\ncolumn = "turnover"\n[[calculated]]'
    rows = firms_of(
        {
            town: [200 - amount if mirrored else amount for amount in amounts]
            for town, amounts in TOWNS[towns].items()
        }
    )
    rows += [{**rows[0], "firm": f"b{i}", "town": "b1"} for i in range(4)]
    query = """SELECT {[Measures].[Statistic]} ON 0, {[Place].[Region].&[A],
      [Place].[Region].&[A].Children} ON 1 FROM [Firms]"""
    cube = CUBE.replace("[[calculated]]", statistic, 1)
    office = write_office(tmp_path / "office", rows, PUBLICATION + RULES, cube, {"a": sheet(query)})
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    told = dict(zip(names, ran.release.values[layout.cell].tolist(), strict=True))
    others = [told[town] for town in TOWNS[towns] if town != "a2"]
    assert np.isnan(told["a2"])
    if not np.isnan([told["A"], *others]).any():
        # The median of a2 itself is 100, and has to be possible from 90 to 110.
        assert not all(part < told["A"] for part in others) or told["A"] <= 90
        assert not all(part > told["A"] for part in others) or told["A"] >= 110
    assert (towns == "far") == (not np.isnan(told["A"]))
