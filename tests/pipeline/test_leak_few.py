"""The median, the least and the most of a few records tell their sum."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Measure
from app.domain.lattice import Space
from app.domain.statistics import bounds_between
from tests.pipeline.offices import CUBE, PUBLICATION, firms_of, write_office
from tests.pipeline.test_equation import tree
from tests.pipeline.test_protection import Ran, sheet

OF = {"min": min, "median": np.median, "max": max}
AMOUNTS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def true_range(n: int, told: dict[str, float]) -> tuple[float, float]:
    """The least and the largest sum of n amounts in order, none below 0, of which statistics are told."""
    order = np.eye(n)[:-1] - np.eye(n)[1:]
    picks = {"min": np.eye(n)[0], "max": np.eye(n)[-1]}
    picks["median"] = (np.eye(n)[(n - 1) // 2] + np.eye(n)[n // 2]) / 2
    equal = {"A_eq": [picks[kind] for kind in told], "b_eq": list(told.values())} if told else {}
    below = {"A_ub": order, "b_ub": np.zeros(n - 1)} if n > 1 else {}
    low = linprog(np.ones(n), **equal, **below)
    high = linprog(-np.ones(n), **equal, **below)
    return low.fun, np.inf if high.status == 3 else -high.fun


@settings(deadline=None, max_examples=60)
@given(AMOUNTS, st.sets(st.sampled_from(list(OF)), min_size=1))
def test_what_is_told_bounds_a_sum_as_closely_as_it_is_known(amounts: list[int], kinds: set[str]) -> None:
    shown = sorted(kinds)
    names = ["count", "sum", *shown]
    measures = [
        Measure(name, name, {}, name, {}, "", 0, column="x" if name != "count" else "") for name in names
    ]
    statistics = [float(OF[kind](amounts)) for kind in shown]
    values = np.array([len(amounts), sum(amounts), *statistics], dtype=np.float64)
    place = tree([-1])
    space = Space([place], np.array([True, True, *[False] * len(shown)]), [names, ["all"]])
    coords = np.array([[number, 0] for number in range(len(names))], dtype=np.int32)
    bounds = bounds_between(space, coords, values, measures)
    n = len(values) + len(bounds.slack)
    matrix = np.zeros((len(bounds.equations), n))
    for number in range(len(matrix)):
        part = slice(*bounds.equations.indptr[number : number + 2].tolist())
        matrix[number, bounds.equations.indices[part]] = bounds.equations.coefs[part]
    known = [(value, value) for value in values]
    known[1] = (0, np.inf)
    free = [(0, np.inf)] * len(bounds.slack)
    goal = np.eye(n)[1]
    equal = {"A_eq": matrix, "b_eq": np.zeros(len(matrix))}
    low, high = (linprog(sign * goal, bounds=[*known, *free], **equal) for sign in (1, -1))
    least, most = true_range(len(amounts), dict(zip(shown, statistics, strict=True)))
    assert low.fun == pytest.approx(least)
    assert (np.inf if high.status == 3 else -high.fun) == pytest.approx(most)


RULES = """
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{ rule = "threshold", n = 2 }]
[confidentiality.Firms."Turnover"]
with = "Firms"
rules = [{ rule = "p-percent", p = 10 }]
"""


@pytest.mark.parametrize(
    ("amounts", "shown"),
    [((26, 164), ["median"]), ((9, 60, 100), ["min", "median", "max"]), ((3, 6, 60, 100), list(OF))],
    ids=["two", "three", "four"],
)
def test_statistics_of_a_town_do_not_tell_its_hidden_sum(
    tmp_path: Path, store: Store, amounts: Sequence[int], shown: list[str]
) -> None:
    towns = {"a1": amounts, "a2": (30, 40, 50, 60), "a3": (35, 45, 55, 65), "b1": (20, 30, 40, 50)}
    rows = firms_of(towns)
    statistics = "".join(
        f'[[measure]]\nname = "{kind}"\naggregator = "{kind}"\ncolumn = "turnover"\n' for kind in shown
    )
    rules = RULES + "".join(f'[confidentiality.Firms."{kind}"]\nrules = []\n' for kind in shown)
    columns = ", ".join(f"[Measures].[{name}]" for name in ["Firms", "Turnover", *shown])
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index("[confidentiality]")] + rules,
        CUBE.replace("[[calculated]]", f"{statistics}[[calculated]]", 1),
        {"a": sheet(f"SELECT {{{columns}}} ON 0, {{[Place].[Town].Members}} ON 1 FROM [Firms]")},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = dict(zip(names, ran.release.values[layout.cell].reshape(len(names), -1).tolist(), strict=True))
    firms, turnover, *statistic = seen["a1"]
    assert firms == len(amounts)
    assert np.isnan(turnover)
    told = {kind: value for kind, value in zip(shown, statistic, strict=True) if not np.isnan(value)}
    least, most = true_range(len(amounts), told)
    # The second contributor mustn't know the largest to within 10 %, whatever the others bring.
    *others, _, largest = amounts
    level = 0.1 * largest - sum(others)
    assert least <= sum(amounts) - level + 1e-6
    assert most >= sum(amounts) + level - 1e-6
