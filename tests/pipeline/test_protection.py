"""What the release shows gives no respondent away; what the rules say is what is hidden."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.crawled import Crawl, CubeCells
from app.domain.errors import InternalError, UserError
from app.domain.masked import CellStatus
from app.domain.primary import CubePrimaries, PrimaryResult
from app.pipeline.audit import audit_release
from app.pipeline.build import Problems, build_problems
from app.pipeline.define import load_publication
from app.pipeline.release import at_published_digits, make_release
from app.pipeline.run import run
from app.pipeline.running import RESULTS
from app.pipeline.suppress import Suppression, reachable_levels
from app.pipeline.union_rules import UnionRules
from solver import InfeasibleError, Instance, Status, solve
from tests.databases import new_store
from tests.pipeline.offices import CUBE, PUBLICATION, SHEETS, firms, write_csv, write_office
from tests.pipeline.test_equation import leaves_of_all, vector


class Ran:
    """A publication that was run, with what its steps found."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.publication = load_publication(folder)
        run(self.publication, store, open_cube)
        self.crawl: Crawl = self.step(store, "crawl")
        self.primaries: PrimaryResult = self.step(store, "assess")
        self.problems: Problems = self.step(store, "build")
        self.suppression: Suppression = self.step(store, "suppress")
        release = store.live_release()
        assert release is not None
        self.release = release
        self.status = store.status()

    @staticmethod
    def step(store: Store, name: str):
        stored = store.step(name)
        assert stored is not None
        return RESULTS.decode(stored.body)

    @property
    def cells(self) -> CubeCells:
        return self.crawl.cubes[0]

    @property
    def verdicts(self) -> CubePrimaries:
        return self.primaries.cubes[0]

    @property
    def hidden(self) -> np.ndarray:
        return self.suppression.hidden[0]

    def row(self, *parts: str) -> int:
        """The cell whose key has exactly these parts behind cube and measure."""
        keys = self.cells.keys(np.arange(len(self.cells)))
        wanted = {"Firms", *parts}
        found = [row for row, key in enumerate(keys) if set(key.split(" | ")) == wanted]
        assert len(found) == 1, (parts, found)
        return found[0]

    def shown(self, row: int) -> CellStatus:
        return CellStatus(int(self.release.status[row]))


def sheet(mdx: str) -> str:
    return f'title.en = "T"\n[[query]]\nid = "q"\nmdx = """\n{mdx}"""\n'


# ---------------------------------------------------------------------- an attacker of our own


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_hidden_cell_is_a_combination_of_what_is_shown(tmp_path: Path, store: Store, seed: int) -> None:
    ran = Ran(write_office(tmp_path / "office", firms(seed)), store)
    cells = ran.cells
    space = cells.space
    places = list(product(*(leaves_of_all(tree) for tree in space.trees)))
    for measure in range(int(space.own[0])):
        mine = cells.has_contributors & ~cells.is_derived & (cells.coords[:, 0] == measure)
        vectors = {row: vector(space, cells.coords[row], places) for row in np.flatnonzero(mine)}
        visible = np.arange(len(cells)) < cells.n_given
        known = [row for row in vectors if visible[row] and not ran.hidden[row]]
        shown = np.array([vectors[row] for row in known], dtype=float)
        zero = np.isin(known, np.flatnonzero(np.nan_to_num(cells.values) == 0))
        alive = ~shown[zero].any(axis=0)
        basis = shown[~zero][:, alive]
        secret = [row for row in vectors if ran.hidden[row] and ran.verdicts.sensitive[row]]
        assert secret
        for row in secret:
            wanted = np.array(vectors[row], dtype=float)[alive]
            best, *_ = np.linalg.lstsq(basis.T, wanted, rcond=None)
            assert np.abs(basis.T @ best - wanted).max() > 1e-6, cells.keys(np.array([row]))


def test_what_is_shown_is_exact_and_rounded_once(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    n = ran.cells.n_published
    shown = ran.release.status == CellStatus.SHOWN
    np.testing.assert_array_equal(
        ran.release.values[shown], at_published_digits(ran.cells.values[:n], ran.cells.decimals)[shown]
    )
    assert set(ran.cells.decimals.tolist()) == {0, 1}
    values = at_published_digits(np.array([-0.04, 2.25, 1e15 + 0.3]), np.array([1, 1, 0], dtype=np.int8))
    assert values.tolist() == [0.0, 2.3, 1e15]
    assert not np.signbit(values[0])


# ---------------------------------------------------------------------- rules


def test_thin_and_dominated_cells_are_sensitive_for_their_reasons(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    counts = (ran.cells.coords[:, 0] == 0) & ran.cells.has_contributors
    thin = np.flatnonzero(counts & (np.nan_to_num(ran.cells.values) > 0) & (ran.cells.values < 3))
    assert len(thin) > 3
    assert ran.verdicts.sensitive[thin].all()
    assert {"freq<3", "p%10", "(1,85)", "associated"} <= set(ran.verdicts.reasons)
    for name in ("p%10", "associated"):
        assert ran.verdicts.reasons[name].any(), name
    for row in thin:
        assert "freq<3" in ran.verdicts.reasons_of(int(row))


def test_a_holding_is_one_contributor(tmp_path: Path, store: Store) -> None:
    rows = [
        {"firm": i, "holding": "h" if town == "a1" else "", "town": town, "activity": activity,
         "size": "small", "turnover": 10}
        for i, (town, activity) in enumerate(product(["a1", "a2", "b1", "b2"] * 5, ["farm", "shop"]))
    ]  # fmt: skip
    ran = Ran(write_office(tmp_path / "office", rows), store)
    row = ran.row("[Measures].[Firms]", "[Place].[Town].&[a1]")
    assert ran.cells.values[row] == 10
    assert ran.verdicts.sensitive[row]
    assert ran.verdicts.holder[row] >= 0


def test_who_asked_and_holds_more_than_its_share_is_protected(tmp_path: Path, store: Store) -> None:
    rows = [{**row, "asked": int(row["firm"] in (0, 25))} for row in thin_region()]
    rows[0]["turnover"] = 300
    cube = CUBE.replace('holding = "holding"', 'holding = "holding"\nrequest = "asked"')
    publication = PUBLICATION.replace(
        'with = "Firms"\nweight = "value"\nrules = [',
        'with = "Firms"\nweight = "value"\nrules = [{ rule = "request", k = 50 }, ',
    )
    sheets = {"a": sheet(f"SELECT {{[Measures].[Turnover]}} ON COLUMNS, {PLACES} ON ROWS FROM [Firms]")}
    ran = Ran(write_office(tmp_path / "office", rows, publication, cube, sheets), store)
    asked = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a1]")
    assert ran.verdicts.reasons_of(asked) == ("request",)
    assert ran.verdicts.upl[asked] == pytest.approx(2 * 300 - (300 + 19 * 5))
    small = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a2]")
    assert not ran.verdicts.sensitive[small]


def test_a_zero_amount_falls_with_its_count(tmp_path: Path, store: Store) -> None:
    """That the two firms of a town sold nothing is their secret too."""
    rows = thin_region()
    for row in rows[30:32]:
        row["turnover"] = 0
    measures = "{[Measures].[Firms], [Measures].[Turnover]}"
    sheets = {"a": sheet(f"SELECT {measures} ON COLUMNS, {PLACES} ON ROWS FROM [Firms]")}
    ran = Ran(write_office(tmp_path / "office", rows, sheets=sheets), store)
    row = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a3]")
    assert ran.cells.values[row] == 0
    assert ran.shown(row) == CellStatus.CONFIDENTIAL


@pytest.mark.parametrize(("insiders", "hidden"), [("true", 3), ("false", 2)])
def test_a_sole_contributor_must_not_work_out_another(
    tmp_path: Path, store: Store, insiders: str, hidden: int
) -> None:
    """Two towns of one firm each: hidden alone, either firm knows the other's by subtracting its own."""
    rows = [*thin_region()[:30], *thin_region()[30:31], *thin_region()[30:31]]
    rows = [{**row, "firm": number} for number, row in enumerate(rows)]
    rows[31]["town"] = "b1"
    publication = PUBLICATION.split("[confidentiality]")[0] + (
        f"[confidentiality]\ninsiders = {insiders}\n"
        '[confidentiality.Firms."Firms"]\nrules = []\n'
        '[confidentiality.Firms."Turnover"]\nrules = [{ rule = "dominance", n = 1, k = 85 }]\n'
    )
    query = """SELECT {[Measures].[Turnover]} ON COLUMNS, {[Place].[All], [Place].[Town].&[a1],
      [Place].[Town].&[a2], [Place].[Town].&[a3], [Place].[Town].&[b1]} ON ROWS FROM [Firms]"""
    ran = Ran(write_office(tmp_path / "office", rows, publication, sheets={"a": sheet(query)}), store)
    assert ran.status["primaries"] == 2
    assert ran.release.status.tolist().count(CellStatus.CONFIDENTIAL) == hidden


def test_amounts_are_hidden_wherever_their_count_is(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    tied = np.flatnonzero(ran.verdicts.partner >= 0)
    tied = tied[(tied < ran.cells.n_published) & ran.verdicts.occupied[tied]]
    assert len(tied) > 20
    assert ran.hidden[ran.verdicts.partner[tied]].any()
    assert (ran.hidden[tied] >= ran.hidden[ran.verdicts.partner[tied]]).all()


def test_a_ratio_falls_with_its_operands_and_no_other(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    derived = ran.cells.derived
    assert len(derived) > 10
    for place, row in enumerate(derived.cell):
        operands = derived.indices[derived.indptr[place] : derived.indptr[place + 1]]
        assert len(operands) == 2
        expected = CellStatus.CONFIDENTIAL if ran.hidden[operands].any() else CellStatus.SHOWN
        if np.isfinite(ran.cells.values[row]):
            assert ran.shown(int(row)) == expected
    assert any(ran.shown(int(row)) == CellStatus.CONFIDENTIAL for row in derived.cell)


def test_operands_that_only_a_ratio_shows_are_protected(tmp_path: Path, store: Store) -> None:
    query = """SELECT {[Measures].[Average]} ON COLUMNS, {[Place].[Town].Members} ON ROWS FROM [Firms]"""
    total = """SELECT {[Measures].[Firms], [Measures].[Turnover]} ON COLUMNS,
      {[Place].[All], [Place].[Region].Members} ON ROWS FROM [Firms]"""
    ran = Ran(write_office(tmp_path / "office", sheets={"a": sheet(query), "b": sheet(total)}), store)
    assert ran.cells.n_given > ran.cells.n_published
    town = ran.row("[Measures].[Firms]", "[Place].[Town].&[c1]")
    assert ran.cells.n_published <= town < ran.cells.n_given
    derived = ran.cells.derived
    thin = [
        row
        for place, row in enumerate(derived.cell)
        if ran.verdicts.sensitive[derived.indices[derived.indptr[place] : derived.indptr[place + 1]]].any()
    ]
    assert thin
    assert all(ran.shown(int(row)) == CellStatus.CONFIDENTIAL for row in thin)


def test_what_a_total_leaves_over_is_protected(tmp_path: Path, store: Store) -> None:
    """Region A less two of its towns leaves a town of few firms, which no sheet shows."""
    query = """SELECT {[Measures].[Firms]} ON COLUMNS,
      {[Place].[Region].&[A], [Place].[Town].&[a1], [Place].[Town].&[a2]} ON ROWS FROM [Firms]"""
    rows = [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 5}
        for i, town in enumerate(["a1"] * 20 + ["a2"] * 10 + ["a3"] * 2 + ["b1"] * 9)
    ]
    ran = Ran(write_office(tmp_path / "office", rows, sheets={"a": sheet(query)}), store)
    rest = ran.row("[Measures].[Firms]", "[Place].[Town].&[a3]")
    assert rest >= ran.cells.n_given
    assert ran.verdicts.sensitive[rest]
    assert ran.status["implied_primaries"] == 1
    statuses = [ran.shown(row) for row in range(ran.cells.n_published)]
    assert statuses.count(CellStatus.CONFIDENTIAL) == 1


def test_the_difference_of_two_cells_doesn_t_give_them_away(tmp_path: Path, store: Store) -> None:
    cube = CUBE + (
        '[[calculated]]\non = "[Size]"\nname = "Gap"\n'
        'formula = "[Size].[Size].&[small] - [Size].[Size].&[large]"\n'
    )
    query = """SELECT {[Size].[Gap], [Size].[Size].&[small]} ON COLUMNS, {[Place].[Town].Members} ON ROWS
      FROM [Firms] WHERE ([Measures].[Firms])"""
    ran = Ran(write_office(tmp_path / "office", cube=cube, sheets={"a": sheet(query)}), store)
    checked = 0
    for town in ("a1", "a2", "a3", "b1", "b2", "c1"):
        keys = ran.cells.keys(np.arange(len(ran.cells)))
        large = f"Firms | [Measures].[Firms] | [Place].[Town].&[{town}] | [Size].[Size].&[large]"
        if large not in keys or not ran.verdicts.sensitive[keys.index(large)]:
            continue
        checked += 1
        pair = [row for row in range(ran.cells.n_published) if f"&[{town}]" in keys[row]]
        assert len(pair) == 2
        assert any(ran.shown(row) == CellStatus.CONFIDENTIAL for row in pair)
    assert checked


def test_a_zero_is_shown_unless_zeros_are_hidden(tmp_path: Path, store: Store) -> None:
    rows = firms()
    for row in rows:
        if row["town"] == "b1":
            row["turnover"] = 0
    ran = Ran(write_office(tmp_path / "office", rows), store)
    row = ran.row("[Measures].[Turnover]", "[Place].[Town].&[b1]")
    assert ran.release.values[row] == 0
    publication = PUBLICATION.replace("[confidentiality]", '[confidentiality]\nzeros = "hide"')
    ran = Ran(write_office(tmp_path / "hiding", rows, publication=publication), store)
    row = ran.row("[Measures].[Turnover]", "[Place].[Town].&[b1]")
    assert ran.shown(row) == CellStatus.CONFIDENTIAL


def decision(kind: str, members: str, measure: str = "Firms") -> str:
    return (
        f'[[confidentiality.cells]]\nmeasure = "{measure}"\nmembers = [{members}]\n'
        f'decision = "{kind}"\npercent = 20\nreason = "asked"\n'
    )


def test_manual_decisions_are_kept(tmp_path: Path, store: Store) -> None:
    # Of stores of their own: what a release showed is known to all that follow it.
    first, third = (new_store(tmp_path / name) for name in ("first.sqlite3", "third.sqlite3"))
    plain = Ran(write_office(tmp_path / "plain"), first)
    big, thin = '"[Place].[Town].&[a1]"', '"[Place].[Town].&[c1]", "[Activity].[Activity].&[shop]"'
    keys = plain.cells.keys(np.arange(plain.cells.n_published))
    thin_key = "Firms | [Measures].[Firms] | [Place].[Town].&[c1] | [Activity].[Activity].&[shop]"
    assert plain.verdicts.sensitive[keys.index(thin_key)]
    publication = PUBLICATION + decision("hide", big) + decision("waive", thin)
    ran = Ran(write_office(tmp_path / "decided", publication=publication), store)
    row = ran.row("[Measures].[Firms]", "[Place].[Town].&[a1]")
    assert ran.verdicts.reasons_of(row) == ("manual",)
    assert ran.verdicts.upl[row] == pytest.approx(0.2 * ran.cells.values[row])
    assert ran.shown(row) == CellStatus.CONFIDENTIAL
    assert not ran.verdicts.sensitive[ran.row(*thin_key.split(" | ")[1:])]
    publication = PUBLICATION + decision("show", big)
    ran = Ran(write_office(tmp_path / "showing", publication=publication), third)
    assert ran.shown(ran.row("[Measures].[Firms]", "[Place].[Town].&[a1]")) == CellStatus.SHOWN
    first.close()
    third.close()


def weights_of(ran: Ran) -> dict[int, float]:
    """What hiding costs, by row of the cell table."""
    return {
        int(row): float(weight)
        for problem in ran.problems.problems
        for row, weight in zip(problem.rows, problem.instance.weight, strict=False)
    }


def test_a_measure_may_be_weighed_by_another(tmp_path: Path, store: Store) -> None:
    publication = PUBLICATION.replace('weight = "value"', 'weight = { measure = "Firms" }')
    ran = Ran(
        write_office(tmp_path / "office", publication=publication, sheets={"q": SHEETS["activity/by-place"]}),
        store,
    )
    found = weights_of(ran)
    keys = ran.cells.keys(np.arange(ran.cells.n_published))
    rows = [row for row in found if row < len(keys) and "[Turnover]" in keys[row]]
    assert rows
    for row in rows:
        twin = keys.index(keys[row].replace("[Turnover]", "[Firms]"))
        assert found[row] == np.nan_to_num(ran.cells.values[twin])


def test_cells_near_the_sensitive_ones_cost_less_by_distance(tmp_path: Path, store: Store) -> None:
    publication = PUBLICATION.replace('weight = "unit"', 'weight = "distance"')
    sheets = {"q": SHEETS["activity/by-place"].replace("[Measures].[Turnover]", "[Measures].[Firms]")}
    ran = Ran(write_office(tmp_path / "office", publication=publication, sheets=sheets), store)
    for problem in ran.problems.problems:
        instance = problem.instance
        away = np.where(instance.status == Status.SENSITIVE, 0.0, instance.weight)
        relations = [
            instance.indices[start:end]
            for start, end in zip(instance.indptr[:-1], instance.indptr[1:], strict=True)
        ]
        for cell in np.flatnonzero(away > 0).tolist():
            neighbours = np.concatenate([inside for inside in relations if cell in inside])
            # Implied cells, at weight 0 whatever their place, are no measure of the way.
            if (instance.status[neighbours] != Status.VIRTUAL).all():
                assert away[neighbours].min() == away[cell] - 1
    assert {1.0, 2.0} <= set(weights_of(ran).values())
    assert ran.status["exposures"] == 0


def test_a_decision_on_no_cell_is_told(tmp_path: Path, store: Store) -> None:
    wrong = decision("hide", '"[Place].[Town].&[zz]"') + decision(
        "hide", '"[Place].[Town].&[a1]", "[Size].[Size].&[large]"'
    )
    office = write_office(tmp_path / "office", publication=PUBLICATION + wrong)
    with pytest.raises(UserError) as caught:
        run(load_publication(office), store, open_cube)
    assert len(caught.value.mistakes) == 2
    assert all(mistake.file == "publication.toml" and mistake.line for mistake in caught.value.mistakes)


def test_cells_that_must_be_shown_may_make_it_impossible(tmp_path: Path, store: Store) -> None:
    query = """SELECT {[Measures].[Firms]} ON COLUMNS, {[Place].[Region].&[A], [Place].[Town].&[a1],
      [Place].[Town].&[a2], [Place].[Town].&[a3]} ON ROWS FROM [Firms]"""
    rows = [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 5}
        for i, town in enumerate(["a1"] * 20 + ["a2"] * 10 + ["a3"] * 2)
    ]
    shown = "".join(
        decision("show", f'"[Place].{member}"')
        for member in ("[Region].&[A]", "[Town].&[a1]", "[Town].&[a2]")
    )
    office = write_office(
        tmp_path / "office", rows, publication=PUBLICATION + shown, sheets={"a": sheet(query)}
    )
    with pytest.raises(UserError, match="can't be protected"):
        run(load_publication(office), store, open_cube)
    assert store.live_release_id() is None


def thin_region(**more: object) -> list[dict[str, object]]:
    """Region A with towns of 20, 10 and 2 firms, and region B with one of 9."""
    return [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 5, **more}
        for i, town in enumerate(["a1"] * 20 + ["a2"] * 10 + ["a3"] * 2 + ["b1"] * 9)
    ]


PLACES = "{[Place].[Region].&[A], [Place].[Town].&[a1], [Place].[Town].&[a2], [Place].[Town].&[a3]}"


def test_distinct_counts_bound_each_other(tmp_path: Path, store: Store) -> None:
    """No owner has firms in two towns, so the counts add up, as readers may guess."""
    cube = CUBE + '[[measure]]\nname = "Owners"\naggregator = "distinct-count"\ncolumn = "firm"\n'
    publication = PUBLICATION + (
        '[confidentiality.Firms."Owners"]\nweight = "unit"\nrules = [{ rule = "threshold", n = 3 }]\n'
    )
    sheets = {"a": sheet(f"SELECT {{[Measures].[Owners]}} ON COLUMNS, {PLACES} ON ROWS FROM [Firms]")}
    ran = Ran(write_office(tmp_path / "office", thin_region(), publication, cube, sheets), store)
    thin = ran.row("[Measures].[Owners]", "[Place].[Town].&[a3]")
    assert ran.verdicts.reasons_of(thin) == ("freq<3",)
    statuses = ran.release.status.tolist()
    assert statuses.count(CellStatus.CONFIDENTIAL) >= 2
    assert ran.shown(thin) == CellStatus.CONFIDENTIAL


def test_the_part_that_is_its_whole_s_maximum_takes_it_along(tmp_path: Path, store: Store) -> None:
    cube = CUBE + '[[measure]]\nname = "Largest"\naggregator = "max"\ncolumn = "turnover"\n'
    publication = PUBLICATION + '[confidentiality.Firms."Largest"]\nwith = "Firms"\nrules = []\n'
    measures = "{[Measures].[Firms], [Measures].[Largest]}"
    sheets = {"a": sheet(f"SELECT {measures} ON COLUMNS, {PLACES} ON ROWS FROM [Firms]")}
    rows = thin_region()
    rows[31]["turnover"] = 900
    ran = Ran(write_office(tmp_path / "office", rows, publication, cube, sheets), store)
    thin = ran.row("[Measures].[Largest]", "[Place].[Town].&[a3]")
    whole = ran.row("[Measures].[Largest]", "[Place].[Region].&[A]")
    assert ran.cells.values[thin] == ran.cells.values[whole] == 900
    assert ran.shown(thin) == ran.shown(whole) == CellStatus.CONFIDENTIAL


TWINS = """
[[dimension]]
name = "Age"
table = "../data/ages.csv"
key = "age"
[[dimension.hierarchy]]
name = "By five"
all.en = "All"
[[dimension.hierarchy.level]]
name = "Five"
key = "age"
[[dimension.hierarchy]]
name = "By ten"
all.en = "All"
[[dimension.hierarchy.level]]
name = "Ten"
key = "ten"
"""


def test_two_hierarchies_of_one_dimension_do_not_give_each_other_away(tmp_path: Path, store: Store) -> None:
    """Firms by five and by ten years: the ten less the one five is the other five."""
    ages = ["00"] * 2 + ["05"] * 20 + ["10"] * 9 + ["15"] * 12
    rows = [
        {
            "firm": i,
            "holding": "",
            "town": "a1",
            "activity": "farm",
            "size": "small",
            "turnover": 5,
            "age": age,
        }
        for i, age in enumerate(ages)
    ]
    cube = CUBE.replace("[[measure]]", TWINS + "[[measure]]", 1)
    sheets = {
        "five": sheet("SELECT {[Age.By five].[Five].Members} ON COLUMNS FROM [Firms]"),
        "ten": sheet("SELECT {[Age.By ten].[Ten].Members} ON COLUMNS FROM [Firms]"),
    }
    office = write_office(tmp_path / "office", rows, cube=cube, sheets=sheets)
    tens = [{"age": age, "ten": age[0]} for age in ("00", "05", "10", "15")]
    write_csv(office / "data/ages.csv", tens)
    text = (office / "publication.toml").read_text() + decision("hide", '"[Age.By ten].[Ten].&[1]"')
    (office / "publication.toml").write_text(text)
    ran = Ran(office, store)
    assert ran.verdicts.reasons["manual"].sum() == 1
    shown = dict(zip(ran.release.keys, ran.release.status.tolist(), strict=True))
    five = [status for key, status in shown.items() if "[Age.By five].[Five]" in key and "{" not in key]
    assert len(ran.release.keys) == 6
    ten = [status for key, status in shown.items() if "{" in key]
    assert five[0] == CellStatus.CONFIDENTIAL
    assert five[1] == CellStatus.CONFIDENTIAL or ten[0] == CellStatus.CONFIDENTIAL
    assert len(ran.cells.equations) >= 2


# ---------------------------------------------------------------------- the last gate


def test_a_pattern_with_a_leak_is_never_released(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    n = ran.cells.n_published
    secondary = np.flatnonzero(ran.hidden[:n] & ~ran.verdicts.sensitive[:n] & ~ran.cells.is_derived[:n])
    leaks = 0
    judge = UnionRules(ran.publication.confidentiality, ran.crawl, {})
    for row in (*secondary[:6], np.flatnonzero(ran.verdicts.sensitive)[0], ran.cells.derived.cell[0]):
        hidden = ran.hidden.copy()
        if row in ran.cells.derived.cell:
            place = int(np.flatnonzero(ran.cells.derived.cell == row)[0])
            hidden[ran.cells.derived.indices[ran.cells.derived.indptr[place]]] = True
        hidden[row] = False
        pattern = replace(ran.suppression, hidden=(hidden,))
        report = audit_release(ran.crawl, ran.primaries, ran.problems, pattern, judge)
        leaks += not report.ok
        if not report.ok:
            with pytest.raises(InternalError, match="nothing can be released"):
                make_release(ran.publication, ran.crawl, pattern, report)
    assert leaks >= 6


def test_equations_that_do_not_hold_stop_the_run(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    values = ran.cells.values.copy()
    values[int(ran.cells.equations.indices[0])] += 1
    broken = replace(ran.crawl, cubes=(replace(ran.cells, values=values),))
    with pytest.raises(InternalError, match="don't hold"):
        build_problems(ran.publication, broken, ran.primaries)


def test_levels_beyond_what_structure_allows_are_cut_down() -> None:
    """Two parts of at least one each: their total can't look smaller than two."""
    instance = Instance.from_arrays(
        [2.0, 1.0, 1.0],
        [[-1.0, 1.0, 1.0]],
        status=list("uuu"),
        lower_bound=[1.0, 1.0, 1.0],
        lpl=[1.0, 0.0, 0.0],
        upl=[1.0, 2.0, 2.0],
    )
    with pytest.raises(InfeasibleError) as caught:
        solve(instance)
    reachable = reachable_levels(instance, caught.value.obstacles, frozenset())
    assert reachable is not None
    assert reachable.lpl.tolist() == [0.0, 0.0, 0.0]
    assert solve(reachable).hidden.all()
    assert reachable_levels(reachable, caught.value.obstacles, frozenset()) is None


def test_cubes_are_checked_on_their_own(tmp_path: Path) -> None:
    from app.pipeline.check import check_publication

    check_publication(load_publication(write_office(tmp_path / "good")), open_cube)
    sheets = {
        **SHEETS,
        "x": sheet("SELECT {[Place].[Nowhere]} ON COLUMNS FROM [Firms]"),
        "y": SHEETS["activity/sizes"].replace(
            '"[Activity].[Activity].Members"', '"[Activity].[Actvity].Members"'
        ),
    }
    wrong = PUBLICATION + decision("hide", '"[Place].[Town].&[zz]"')
    office = write_office(tmp_path / "bad", publication=wrong, sheets=sheets)
    with pytest.raises(UserError) as caught:
        check_publication(load_publication(office), open_cube)
    assert {mistake.file for mistake in caught.value.mistakes} == {
        "publication.toml",
        "sheets/x.toml",
        "sheets/y.toml",
    }
