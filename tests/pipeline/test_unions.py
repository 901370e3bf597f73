"""Where it is asked for, what a relation hides together is protected as one cell is."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.cube.duckdb import open_cube
from app.db import Store, open_store
from app.domain.errors import InternalError
from app.domain.progress import StepProgress
from app.pipeline.audit import audit_release
from app.pipeline.define import load_publication
from app.pipeline.earlier import NO_PAST
from app.pipeline.release import make_release
from app.pipeline.run import run
from app.pipeline.union_rules import UnionRules
from app.pipeline.what_if import Computed, what_if
from app.pipeline.why import why
from tests.databases import new_store
from tests.jobs.forks import SERVER, die
from tests.pipeline.offices import PUBLICATION, TOWNS, write_office
from tests.pipeline.test_equation import leaves_of_all, vector
from tests.pipeline.test_protection import Ran, sheet

TABLE = """SELECT {[Activity].[All], [Activity].[Activity].Members} ON COLUMNS,
  {[Place].[All], [Place].[Region].Members, [Place].[Town].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Turnover])"""
ROW = "SELECT {[Place].[All], [Place].[Town].Members} ON COLUMNS FROM [Firms] WHERE ([Measures].[Turnover])"


THRESHOLD = '{ rule = "threshold", n = %d, p = 10 }'
DOMINANCE = '{ rule = "dominance", n = 1, k = 85 }'


def publication(unions: str, *rules: str) -> str:
    """The small office with rules on turnover alone, and ``unions`` as it is written, if it is."""
    text = PUBLICATION[: PUBLICATION.index("[confidentiality.Firms")]
    return (
        f'{text}[confidentiality.Firms."Firms"]\nrules = []\n[confidentiality.Firms."Turnover"]\n'
        f"{unions and f'unions = {unions}'}\nrules = [{', '.join(rules)}]\n"
    )


def firms_of(counts: Mapping[str, int | Sequence[int]], activity: str = "farm") -> list[dict[str, object]]:
    """So many firms in each town, or firms with such turnovers."""
    return [
        {"firm": f"{activity}-{town}{number}", "holding": "", "town": town, "activity": activity,
         "size": "small", "turnover": amount}
        for town, told in counts.items()
        for number, amount in enumerate([50] * told if isinstance(told, int) else told)
    ]  # fmt: skip


SEVEN = {"a1": 3, "a2": 4, "a3": 60, "b1": 25, "b2": 30, "c1": 40}


def reach(ran: Ran, rows: Sequence[int]) -> tuple[float, float]:
    """Bounds of a sum of cells to who knows what is shown: an attacker of the test's own."""
    cells = ran.cells
    n = len(cells)
    secret = ran.hidden | (np.arange(n) >= cells.n_given)
    value = np.nan_to_num(cells.values)
    matrix = np.zeros((len(cells.equations), n))
    for relation in range(len(cells.equations)):
        entries = slice(cells.equations.indptr[relation], cells.equations.indptr[relation + 1])
        matrix[relation, cells.equations.indices[entries]] = cells.equations.coefs[entries]
    aim = np.zeros(n)
    aim[list(rows)] = 1
    bounds = [
        (0.0, None) if hidden and v != 0 else (v, v) for hidden, v in zip(secret, value.tolist(), strict=True)
    ]
    found = []
    for sign in (1.0, -1.0):
        answer = linprog(sign * aim, A_eq=matrix, b_eq=cells.equations.rhs, bounds=bounds)
        found.append(sign * answer.fun if answer.status == 0 else math.inf)
    return found[0], found[1]


def hidden_towns(ran: Ran) -> set[str]:
    hidden = ran.cells.keys(np.flatnonzero(ran.hidden))
    return {town for town in TOWNS if any(f"&[{town}]" in key for key in hidden)}


def towns(ran: Ran, *names: str) -> list[int]:
    return [ran.row("[Measures].[Turnover]", f"[Place].[Town].&[{name}]") for name in names]


def test_two_thin_cells_and_their_sum(tmp_path: Path) -> None:
    for unions, expected in (("", {"a1", "a2"}), ("false", {"a1", "a2"}), ("true", {"a1", "a2", "b1"})):
        folder = write_office(
            tmp_path / (unions or "silent"),
            firms_of(SEVEN),
            publication(unions, THRESHOLD % 8),
            sheets={"a": sheet(ROW)},
        )
        store = new_store(folder / "celosia.sqlite3")
        ran = Ran(folder, store)
        assert hidden_towns(ran) == expected
        low, high = reach(ran, towns(ran, "a1", "a2"))
        if unions == "true":
            # Seven firms' 350, to be kept 10 % apart from.
            assert low <= 350 - 35 + 1e-6
            assert high >= 350 + 35 - 1e-6
        else:
            assert (low, high) == pytest.approx((350, 350))
        assert ran.status["exposures"] == 0
        store.close()


def test_the_option_off_changes_no_byte(tmp_path: Path) -> None:
    bodies = []
    for name, unions in (("silent", ""), ("off", "false")):
        folder = write_office(tmp_path / name, publication=publication(unions, THRESHOLD % 3, DOMINANCE))
        store = new_store(tmp_path / f"{name}.sqlite3")
        ran = Ran(folder, store)
        bodies.append([mark.tobytes() for mark in ran.suppression.hidden])
        assert not any(
            ran.suppression.solved(number, problem).n != problem.instance.n
            for number, problem in enumerate(ran.problems.problems)
        )
        store.close()
    assert bodies[0] == bodies[1]


def test_what_a_total_leaves_over_is_a_part(tmp_path: Path, store: Store) -> None:
    """A thin town hides with two towns that no sheet shows, and the three are thin together."""
    shown = ", ".join(f"[Place].[Town].&[{town}]" for town in ("a1", "a3", "b1", "b2"))
    folder = write_office(
        tmp_path / "office",
        firms_of({**SEVEN, "a2": 2, "c1": 2}),
        publication("true", THRESHOLD % 8),
        sheets={"a": sheet(ROW.replace("[Place].[Town].Members", shown))},
    )
    ran = Ran(folder, store)
    implied = range(ran.cells.n_given, len(ran.cells))
    (rest,) = [row for row in implied if {town for town, _ in leaves(ran, [row])} == {"a2", "c1"}]
    low, high = reach(ran, [*towns(ran, "a1"), rest])
    assert low <= 350 - 35 + 1e-6
    assert high >= 350 + 35 - 1e-6
    assert ran.hidden[towns(ran, "b1")].all()


def test_one_owner_of_two_hidden_cells_dominates_their_sum(tmp_path: Path) -> None:
    """Each of two cells hides the other well, and both belong to one holding."""
    made = firms_of({"a1": [100, 2, 1], "a2": [100, 1, 1], "a3": [90] * 9, "b1": [10] * 9, "c1": [80] * 9})
    for firm in made:
        if firm["turnover"] == 100:
            firm["holding"] = "giant"
    owned, level = 205.0, 200 / 0.85 - 205
    for unions in ("false", "true"):
        text = publication(unions, DOMINANCE)
        folder = write_office(tmp_path / unions, made, text, sheets={"a": sheet(ROW)})
        store = new_store(folder / "celosia.sqlite3")
        ran = Ran(folder, store)
        store.close()
        low, high = reach(ran, towns(ran, "a1", "a2"))
        if unions == "true":
            assert {"a1", "a2"} < hidden_towns(ran)
            assert low <= owned - level + 1e-6
            assert high >= owned + level - 1e-6
        else:
            assert hidden_towns(ran) == {"a1", "a2"}
            assert (low, high) == pytest.approx((owned, owned))


PLACES = tuple(product(("a1", "a2", "b1", "b2", "c1"), ("farm", "mill", "shop")))
#: Thin cells, full ones, and some that one firm dominates.
CELLS = ([], [50] * 2, [50] * 2, [45] * 3, [50] * 8, [50] * 9, [40] * 9, [40] * 10, [400, 10, 10, 10])
OFFICES = st.lists(st.sampled_from(CELLS), min_size=len(PLACES), max_size=len(PLACES))


def sums_told(ran: Ran) -> list[list[int]]:
    """Hidden cells of each relation that gives their sum, where there are several."""
    cells = ran.cells
    secret = (ran.hidden | (np.arange(len(cells)) >= cells.n_given)) & (np.nan_to_num(cells.values) != 0)
    found = []
    for relation in range(len(cells.equations)):
        entries = slice(cells.equations.indptr[relation], cells.equations.indptr[relation + 1])
        rows, coefs = cells.equations.indices[entries], cells.equations.coefs[entries]
        chosen = coefs[secret[rows]]
        if len(chosen) > 1 and len(set(chosen.tolist())) == 1:
            found.append(rows[secret[rows]].tolist())
    return found


def leaves(ran: Ran, rows: Sequence[int]) -> set[tuple[str, ...]]:
    """Town and activity of every fact in some cells."""
    space = ran.cells.space
    spots = list(product(*(leaves_of_all(tree) for tree in space.trees)))
    inside = sum(np.array(vector(space, ran.cells.coords[row], spots)) for row in rows)
    assert set(np.unique(inside)) <= {0, 1}
    names = [tree.unique_names for tree in ran.cells.cube.hierarchies]
    return {
        tuple(names[h][spot[h]].rpartition("&[")[2].rstrip("]") for h in (0, 1))
        for spot, taken in zip(spots, np.asarray(inside).tolist(), strict=True)
        if taken
    }


@settings(max_examples=20, deadline=None)
@given(amounts=OFFICES)
def test_no_sum_that_a_relation_tells_is_sensitive(
    amounts: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = [
        firm
        for (town, activity), listed in zip(PLACES, amounts, strict=True)
        for firm in firms_of({town: listed}, activity)
    ]
    if not made:
        return
    text = publication("true", THRESHOLD % 6, DOMINANCE)
    folder = write_office(tmp_path_factory.mktemp("office"), made, text, sheets={"a": sheet(TABLE)})
    store = new_store(folder / "celosia.sqlite3")
    ran = Ran(folder, store)
    store.close()
    assert ran.status["exposures"] == 0
    for rows in sums_told(ran):
        within = leaves(ran, rows)
        inside = [int(str(firm["turnover"])) for firm in made if (firm["town"], firm["activity"]) in within]
        assert len(inside) >= 6, ran.cells.keys(np.array(rows))
        assert max(inside) <= 0.85 * sum(inside), ran.cells.keys(np.array(rows))


def run_and_die(folder: Path, url: str, where: str) -> None:
    def progress(state: StepProgress) -> None:
        if state.step == where and state.message == "begins":
            die()

    run(load_publication(folder), open_store(url), open_cube, progress=progress)


@pytest.fixture
def seven(tmp_path: Path) -> Path:
    return write_office(
        tmp_path / "office", firms_of(SEVEN), publication("true", THRESHOLD % 8), sheets={"a": sheet(ROW)}
    )


@pytest.mark.parametrize("where", ["suppress", "audit"])
def test_a_killed_run_ends_with_the_same_pattern(seven: Path, tmp_path: Path, where: str) -> None:
    straight = new_store(tmp_path / "straight.sqlite3")
    expected = Ran(seven, straight)
    straight.close()
    url = f"sqlite:///{tmp_path / 'killed.sqlite3'}"
    process = SERVER.Process(target=run_and_die, args=(seven, url, where))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    again = open_store(url)
    ran = Ran(seven, again)
    again.close()
    assert np.array_equal(ran.hidden, expected.hidden)
    for number, problem in enumerate(expected.problems.problems):
        straight_on, gone_on = (item.suppression.solved(number, problem) for item in (expected, ran))
        assert np.array_equal(straight_on.status, gone_on.status)


def test_a_pattern_that_leaves_a_union_is_never_released(seven: Path, store: Store) -> None:
    ran = Ran(seven, store)
    cells = ran.cells
    server = open_cube(ran.publication.cubes[0])
    judge = UnionRules(ran.publication.confidentiality, ran.crawl, {"Firms": server})
    assert audit_release(ran.crawl, ran.primaries, ran.problems, ran.suppression, judge).ok
    hidden = np.zeros(len(cells), dtype=np.bool_)
    hidden[towns(ran, "a1", "a2")] = True
    # Whether the pattern says what must be protected or keeps silent about it.
    built = tuple(problem.instance.status for problem in ran.problems.problems)
    for altered, statuses in ((ran.suppression.altered, ran.suppression.statuses), ({}, built)):
        pattern = replace(ran.suppression, hidden=(hidden,), altered=altered, statuses=statuses)
        report = audit_release(ran.crawl, ran.primaries, ran.problems, pattern, judge)
        assert not report.ok
        assert any("&[a1]" in item.cell and "&[a2]" in item.cell for item in report.breaches)
        with pytest.raises(InternalError, match="nothing can be released"):
            make_release(ran.publication, ran.crawl, pattern, report)
    server.close()


def test_why_and_what_if_know_of_unions(seven: Path, store: Store) -> None:
    ran = Ran(seven, store)
    key = ran.cells.keys(np.array(towns(ran, "b1")))[0]
    told = why(ran.crawl, ran.primaries, ran.problems, ran.suppression, key)
    assert told.kind == "secondary"
    assert any("&[a1]" in threat.cell and "&[a2]" in threat.cell for threat in told.threats)
    assert told.alternative is not None
    assert told.alternative.possible
    rules = ran.publication.confidentiality
    measures = tuple(replace(item, unions=False) for item in rules.measures)
    asked = replace(ran.publication, confidentiality=replace(rules, measures=measures))
    now = Computed(ran.crawl, ran.primaries, ran.suppression)
    past = NO_PAST
    without = what_if(asked, ran.publication, now, past, open_cube)
    assert without.newly_hidden == ()
    back = what_if(ran.publication, ran.publication, now, past, open_cube)
    assert (back.newly_hidden, back.newly_shown) == ((), ())
