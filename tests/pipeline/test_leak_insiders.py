"""Whoever is alone in a cell knows its number, and must not work out another's from it, however far."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from app.db import Store
from app.pipeline.insiders import Levels, find_insiders
from app.pipeline.suppress import levels_kept
from tests.pipeline.offices import PUBLICATION, write_office
from tests.pipeline.test_equation import leaves_of_all, vector
from tests.pipeline.test_protection import Ran, sheet

TABLE = sheet(
    """SELECT {[Activity].[All], [Activity].[Activity].Members} ON COLUMNS,
  {[Place].[All], [Place].[Region].Members, [Place].[Town].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Turnover])"""
)


def rows(seed: int) -> list[dict[str, object]]:
    """Few thin cells among many full ones, so that patterns are short cycles."""
    chance = random.Random(seed)
    made: list[dict[str, object]] = []
    for town, activity in product(("a1", "a2", "a3", "b1", "b2"), ("farm", "mill", "shop", "bank")):
        for _ in range(chance.choice((1, 2, 5, 6, 7, 8, 9))):
            made.append(
                {
                    "firm": len(made),
                    "holding": "",
                    "town": town,
                    "activity": activity,
                    "size": "small",
                    "turnover": chance.randint(40, 60),
                }
            )
    return made


def alone(ran: Ran) -> dict[int, list[int]]:
    holder = ran.verdicts.holder
    return {int(who): np.flatnonzero(holder == who).tolist() for who in np.unique(holder[holder >= 0])}


@pytest.mark.parametrize("seed", range(8))
def test_no_sole_contributor_works_out_another_cell(tmp_path: Path, store: Store, seed: int) -> None:
    ran = Ran(write_office(tmp_path / "office", rows(seed), sheets={"a": TABLE}), store)
    cells = ran.cells
    space = cells.space
    places = list(product(*(leaves_of_all(tree) for tree in space.trees)))
    vectors = np.array([vector(space, row, places) for row in cells.coords], dtype=float)
    full = np.nan_to_num(cells.values) != 0
    vectors = vectors[:, ~vectors[~full].any(axis=0)]
    shown = np.flatnonzero((np.arange(len(cells)) < cells.n_given) & ~ran.hidden & full)
    secret = np.flatnonzero(ran.verdicts.sensitive & (ran.verdicts.upl > 0))
    assert len(secret) > 1

    def told(known: list[int] | np.ndarray, cell: int) -> bool:
        if not len(known):
            return False
        best, *_ = np.linalg.lstsq(vectors[known].T, vectors[cell], rcond=None)
        return bool(np.abs(vectors[known].T @ best - vectors[cell]).max() < 1e-6)

    attackers = alone(ran)
    assert attackers
    for mine in attackers.values():
        for cell in np.setdiff1d(secret, mine).tolist():
            if not told(mine, cell):
                assert not told([*shown, *mine], cell), cells.keys(np.array([mine[0], cell]))


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_no_sole_contributor_bounds_another_cell_too_closely(tmp_path: Path, store: Store, seed: int) -> None:
    """Nor of cells that share no relation with its own does it learn more than the rules allow."""
    chance = random.Random(seed)
    made = [
        {"firm": f"{town}{activity}{i}", "holding": "", "town": town, "activity": activity, "size": "small",
         "turnover": chance.randint(1, 60)}
        for town, activity in product(("a1", "a2", "a3", "b1", "b2"), ("farm", "mill", "shop"))
        for i in range(chance.choice((1, 1, 2, 3, 4, 6)))
    ]  # fmt: skip
    rules = PUBLICATION[PUBLICATION.index('rules = [{ rule = "p-percent"') :]
    own = PUBLICATION.replace(rules, 'rules = [{ rule = "threshold", n = 3, p = 15 }]\n')
    ran = Ran(write_office(tmp_path / "office", made, own, sheets={"a": TABLE}), store)
    cells, space, n = ran.cells, ran.cells.space, ran.cells.n_published
    places = list(product(*(leaves_of_all(tree) for tree in space.trees)))
    vectors = np.array([vector(space, row, places) for row in cells.coords[:n]], dtype=float)
    vectors = vectors[:, vectors[np.nan_to_num(cells.values[:n]) != 0].any(axis=0)]
    value = np.nan_to_num(cells.values[:n])
    lpl, upl, _ = levels_kept(0, ran.verdicts, ran.problems, ran.suppression)
    for mine in alone(ran).values():
        known = [row for row in range(n) if not ran.hidden[row] or row in mine]
        for row in np.flatnonzero(ran.hidden[:n] & ran.verdicts.sensitive[:n]).tolist():
            # What holds the attacker's own can't look smaller to it than that.
            if row in mine or any(
                (vectors[row] >= vectors[own_row]).all() for own_row in mine if own_row < n
            ):
                continue
            low, high = (
                linprog(sign * vectors[row], A_eq=vectors[known], b_eq=value[known]) for sign in (1, -1)
            )
            assert low.fun <= value[row] - lpl[row] + 1e-5, cells.keys(np.array([mine[0], row]))
            assert high.status == 3 or -high.fun >= value[row] + upl[row] - 1e-5


def test_two_thin_cells_at_opposite_corners(tmp_path: Path, store: Store) -> None:
    """The only firm of one corner goes round the square to the two firms of the other."""
    amounts = {
        ("a1", "farm"): [100], ("a1", "mill"): [30] * 4, ("a1", "shop"): [50] * 9,
        ("a2", "farm"): [28] * 4, ("a2", "mill"): [70, 9], ("a2", "shop"): [60] * 8,
        ("a3", "farm"): [60] * 7, ("a3", "mill"): [80] * 7, ("a3", "shop"): [90] * 7,
    }  # fmt: skip
    made = [
        {"firm": f"{place}{i}", "holding": "", "town": place[0], "activity": place[1], "size": "small",
         "turnover": amount}
        for place, listed in amounts.items() for i, amount in enumerate(listed)
    ]  # fmt: skip
    for insiders, expected in (("true", 6), ("false", 4)):
        publication = PUBLICATION.replace("[confidentiality]", f"[confidentiality]\ninsiders = {insiders}", 1)
        folder = write_office(tmp_path / insiders, made, publication, sheets={"a": TABLE})
        ran = Ran(folder, store)
        n = ran.cells.n_published
        inner = ((ran.cells.coords[:n, 1] > 0) & (ran.cells.coords[:n, 2] > 0)) & ran.hidden[:n]
        assert inner.sum() >= expected if insiders == "true" else inner.sum() == expected


def test_what_a_sole_contributor_learns_may_stand_in_an_earlier_release(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    problem = next(item for item in ran.problems.problems if (item.holder >= 0).any())
    instance, k = problem.instance, len(problem.rows)
    relations = sparse.csr_array(
        (instance.coefs, instance.indices, instance.indptr), shape=(instance.m, instance.n)
    )
    who = int(problem.holder[problem.holder >= 0][0])
    earlier = instance.n
    levels = Levels(
        np.append(instance.value, 40.0),
        np.append(np.zeros(instance.n), -np.inf),
        np.append(instance.lpl, 3.0),
        np.append(instance.upl, 4.0),
        np.append(instance.spl, 0.0),
    )
    found = find_insiders(
        ran.crawl.cubes[problem.cube],
        problem.rows,
        relations[:, :k],
        problem.holder,
        levels,
        {who: np.array([earlier])},
    )
    (insider,) = [item for item in found if earlier in item.targets]
    assert problem.holder[insider.known[0]] == who
    place = int(np.flatnonzero(insider.targets == earlier)[0])
    assert (insider.lpl[place], insider.upl[place]) == (3.0, 4.0)
