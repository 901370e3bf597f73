"""Readers know that what is hidden is no zero where zeros are shown; an attacker of its own tries that."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

from solver import Protection, protect
from solver.formats.apriori import Apriori
from solver.rules import PPercent, Threshold

UNITS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 6)), min_size=4, max_size=24
)


class Attacker:
    """Whole numbers in the finest cells that fit everything shown: each hidden one is a unit or more."""

    def __init__(self, done: Protection, least: float) -> None:
        problem = done.problem
        codes = list(zip(problem.codes("r"), problem.codes("c"), strict=True))
        self.leaves = [i for i, (r, c) in enumerate(codes) if "Total" not in (r, c)]
        self.inside = np.array(
            [
                [
                    float(r in (codes[leaf][0], "Total") and c in (codes[leaf][1], "Total"))
                    for leaf in self.leaves
                ]
                for r, c in codes
            ]
        )
        self.value, self.hidden = problem.cells.profiles.value, done.solution.hidden
        empty = self.value[self.leaves] == 0
        self.least = np.where(empty, 0.0, least)
        self.most = np.where(empty, 0.0, np.inf)

    def range(self, cell: int) -> tuple[float, float]:
        shown = ~self.hidden
        seen = LinearConstraint(self.inside[shown], self.value[shown], self.value[shown])
        ends = []
        for sign in (1.0, -1.0):
            found = milp(
                sign * self.inside[cell],
                constraints=[seen] if shown.any() else [],
                integrality=np.ones(len(self.leaves)),
                bounds=(self.least, self.most),
            )
            assert found.status in (0, 3, 4), found.message
            ends.append(sign * found.fun if found.status == 0 else -sign * np.inf)
        return ends[0], ends[1]

    def floor(self, cell: int) -> float:
        """What the cell is at least though everything were hidden."""
        return float(self.inside[cell] @ self.least)


@settings(max_examples=25, deadline=None)
@given(UNITS, st.booleans())
def test_a_hidden_count_is_one_or_more_and_still_uncertain(
    units: list[tuple[str, str, int]], hide_zeros: bool
) -> None:
    frame = {"r": [r for r, _, _ in units], "c": [c for _, c, _ in units]}
    done = protect(frame, ["r", "c"], rules=[Threshold(3)], hide_zeros=hide_zeros)
    attacker = Attacker(done, 1.0)
    for cell in np.flatnonzero(done.problem.assessment.sensitive).tolist():
        low, high = attacker.range(cell)
        assert low <= max(1.0, attacker.floor(cell)) + 1e-6
        assert high >= 3 - 1e-6


@settings(max_examples=25, deadline=None)
@given(UNITS)
def test_a_hidden_amount_in_whole_numbers_is_a_unit_or_more(units: list[tuple[str, str, int]]) -> None:
    frame = {"r": [r for r, _, _ in units], "c": [c for _, c, _ in units], "v": [v for _, _, v in units]}
    done = protect(frame, ["r", "c"], {}, "v", [Threshold(3, percent=50), PPercent(20)])
    attacker, asked = Attacker(done, 1.0), done.problem.assessment
    for cell in np.flatnonzero(asked.sensitive).tolist():
        low, high = attacker.range(cell)
        value = attacker.value[cell]
        # The attacker takes whole numbers alone, so that it may miss a level by less than one.
        assert low < max(value - asked.lpl[cell], attacker.floor(cell)) + 1
        assert high > value + asked.upl[cell] - 1


CELLS = {"r": ["a", "b", "c", "d", "Total"], "n": [1, 1, 1, 0, 3], "s": ["U", "U", "U", "S", "S"]}


def test_three_parts_of_three_are_not_one_each() -> None:
    done = protect(CELLS, ["r"], {}, "n", rows="cells", status="s")
    instance = done.problem.instance
    assert instance.lower_bound.tolist() == [1, 1, 1, 1, 0]
    assert done.solution.hidden[np.argmax(instance.value == 3)], "the total would tell each of them"
    assert "3 lower levels are cut: as zeros are shown" in " ".join(done.problem.notices)


@pytest.mark.parametrize(
    "more", [{"hide_zeros": True}, {"apriori": (Apriori(("d",), "m"),)}, {"apriori": (Apriori(("d",), "s"),)}]
)
def test_where_a_zero_may_be_hidden_nobody_knows_that_a_hidden_one_is_none(more: dict[str, object]) -> None:
    frame = {**CELLS, "k": [1, 1, 1, 1, 4]}
    done = protect(frame, ["r"], {}, "n", rows="cells", status="s", count="k", **more)  # type: ignore[arg-type]
    assert (done.problem.instance.lower_bound == 0).all()


def test_decimals_say_the_unit_and_a_stated_bound_stands() -> None:
    frame = {"r": ["a", "b", "c"], "n": ["0.5", "0.25", "7"]}
    bounds = (Apriori(("c",), "ab", (0.0, 9.0)),)
    done = protect(frame, ["r"], {}, "n", rows="cells", apriori=bounds)
    named = dict(zip(done.problem.codes("r"), done.problem.instance.lower_bound.tolist(), strict=True))
    assert named == {"a": 0.01, "b": 0.01, "c": 0.0, "Total": 0.01}
    assert (
        protect(frame, ["r"], {}, "n", rows="cells", negative_values=True).problem.instance.lower_bound < 0
    ).all()
