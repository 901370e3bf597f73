"""What is hidden is no zero: parts of a small remainder, in whole numbers, are one each."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import ACTIVITIES, TOWNS, write_office
from tests.pipeline.test_protection import Ran, sheet

MEASURES = ("Firms", "Turnover")
PUBLICATION = """
languages = ["en"]
title.en = "Small office"
[confidentiality]
zeros = "{zeros}"
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{{ rule = "threshold", n = 3 }}]
[confidentiality.Firms."Turnover"]
weight = "unit"
rules = [{{ rule = "p-percent", p = 10 }}]
"""


def rows(seed: int) -> list[dict[str, object]]:
    """Towns and activities with many firms, and some with one or two that have one employee each."""
    chance = random.Random(seed)
    made: list[dict[str, object]] = []
    for town, activity in product(TOWNS, ACTIVITIES):
        thin = chance.random() < 0.4
        for _ in range(chance.choice((0, 1, 1, 1, 2)) if thin else 20):
            made.append(
                {
                    "firm": len(made),
                    "holding": "",
                    "town": town,
                    "activity": activity,
                    "size": "small",
                    "turnover": 1 if thin else chance.randint(1, 9),
                }
            )
    return made


def solutions(ran: Ran, measure: str, least: float) -> dict[tuple[str, str], tuple[float, float]]:
    """Between which whole numbers each hidden part lies by what is shown, when none is below ``least``."""
    value: dict[tuple[str, str], float] = {}
    hidden: set[tuple[str, str]] = set()
    for town, activity in product(("", *TOWNS), ("", *ACTIVITIES)):
        parts = [f"[Measures].[{measure}]"]
        parts += [f"[Place].[Town].&[{town}]"] * bool(town)
        parts += [f"[Activity].[Activity].&[{activity}]"] * bool(activity)
        row = ran.row(*parts)
        value[town, activity] = float(np.nan_to_num(ran.release.values[row]))
        if ran.shown(row) is CellStatus.CONFIDENTIAL:
            hidden.add((town, activity))
    leaves = [place for place in hidden if all(place)]
    known, rest = [], []
    for town, activity in value:
        if all((town, activity)) or (town, activity) in hidden:
            continue
        inside = [(t, a) for t, a in product(TOWNS, ACTIVITIES) if town in ("", t) and activity in ("", a)]
        known.append([float(leaf in inside) for leaf in leaves])
        rest.append(value[town, activity] - sum(value[leaf] for leaf in inside if leaf not in hidden))
    told = [LinearConstraint(np.array(known), rest, rest)] if known and leaves else []
    found = {}
    for number, leaf in enumerate(leaves):
        ends = []
        for sign in (1.0, -1.0):
            goal = np.zeros(len(leaves))
            goal[number] = sign
            best = milp(
                goal, integrality=np.ones(len(leaves)), bounds=Bounds(least, np.inf), constraints=told
            )
            assert best.status in (0, 3, 4)
            ends.append(sign * best.fun if best.status == 0 else np.inf)
        found[leaf] = (ends[0], ends[1])
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("zeros", ["show", "hide"])
@pytest.mark.parametrize("measure", MEASURES)
def test_no_hidden_part_is_one_because_none_is_zero(
    tmp_path: Path, store: Store, measure: str, zeros: str, seed: int
) -> None:
    publication = PUBLICATION.format(zeros=zeros)
    query = f"""SELECT {{[Activity].[All], [Activity].[Activity].Members}} ON COLUMNS,
  {{[Place].[All], [Place].[Town].Members}} ON ROWS FROM [Firms] WHERE ([Measures].[{measure}])"""
    folder = write_office(tmp_path / "office", rows(seed), publication, sheets={"a": sheet(query)})
    ran = Ran(folder, store)
    # A hidden amount may be a zero that was reported where those are hidden; a count never is.
    found = solutions(ran, measure, 1.0 if measure == "Firms" or zeros == "show" else 0.0)
    assert found
    for (town, activity), (low, high) in found.items():
        row = ran.row(
            f"[Measures].[{measure}]", f"[Place].[Town].&[{town}]", f"[Activity].[Activity].&[{activity}]"
        )
        value = ran.cells.values[row]
        if ran.verdicts.sensitive[row]:
            assert high >= value + ran.verdicts.upl[row], (town, activity)
            assert low < high, (town, activity)
