"""No maximum or minimum gives a few away because nobody else in a shown place can have it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.errors import InternalError, UserError
from app.domain.masked import CellStatus
from app.office.certificates import check_against
from app.pipeline.audit import audit_release
from app.pipeline.certify import recheck
from app.pipeline.memory import facts_kept, shown_cells
from app.pipeline.release import make_release
from app.pipeline.union_rules import UnionRules
from app.pipeline.why import why
from tests.pipeline.offices import CUBE, PUBLICATION, firms_of, write_csv, write_office
from tests.pipeline.test_equation import vector
from tests.pipeline.test_protection import Ran, sheet

FEWEST = 3
RULES = f"""
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{{ rule = "threshold", n = {FEWEST} }}]
[confidentiality.Firms."Turnover"]
with = "Firms"
rules = [{{ rule = "p-percent", p = 10 }}]
[confidentiality.Firms."Extreme"]
with = "Firms"
rules = []
"""
AGES = """[[dimension]]
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
#: Larger than every amount: amounts less from it turn maxima into minima.
MIRROR = 2000


def ran_with(
    folder: Path, store: Store, rows: list[dict[str, object]], queries: list[str], kind: str, more: str = ""
) -> Ran:
    measure = f'[[measure]]\nname = "Extreme"\naggregator = "{kind}"\ncolumn = "turnover"\n'
    if kind == "min":
        rows = [{**row, "turnover": MIRROR - int(str(row["turnover"]))} for row in rows]
    cube = CUBE.replace("[[calculated]]", measure + "[[calculated]]", 1)
    if "age" in rows[0]:
        cube = cube.replace("[[measure]]", AGES + "[[measure]]", 1)
        ages = sorted({str(row["age"]) for row in rows})
        write_csv(folder / "office/data/ages.csv", [{"age": age, "ten": age[0] + "0"} for age in ages])
    publication = PUBLICATION[: PUBLICATION.index("[confidentiality]")] + RULES + more
    sheets = {f"s{number}": sheet(query) for number, query in enumerate(queries)}
    return Ran(write_office(folder / "office", rows, publication, cube, sheets), store)


def few_told(ran: Ran, store: Store, hidden: np.ndarray | None = None) -> list[set[str]]:
    """Leaves whose extreme a reader of the release knows, and that have too few firms together."""
    cells, kind = ran.cells, next(m.aggregator for m in ran.cells.cube.measures if m.name == "Extreme")
    facts = facts_kept(store, "Firms", cells.fingerprint)
    assert facts is not None
    places = sorted(set(zip(*(column.tolist() for column in facts.leaf), strict=True)))
    firms = dict.fromkeys(places, 0)
    for place in zip(*(column.tolist() for column in facts.leaf), strict=True):
        firms[place] += 1
    number = [measure.name for measure in cells.cube.measures].index("Extreme")
    hidden = ran.hidden if hidden is None else hidden
    seen = {}
    for row in range(cells.n_published):
        value = cells.values[row]
        if (
            cells.coords[row, 0] == number
            and not hidden[row]
            and not np.isnan(value)
            and cells.has_contributors[row]
        ):
            inside = frozenset(np.flatnonzero(vector(cells.space, cells.coords[row], places)).tolist())
            seen[inside] = -value if kind == "min" else value
    ceiling = [min((v for s, v in seen.items() if leaf in s), default=np.inf) for leaf in range(len(places))]
    told = [{leaf for leaf in inside if ceiling[leaf] >= value} for inside, value in seen.items()]
    return [
        {str(places[leaf]) for leaf in leaves}
        for leaves in told
        if sum(firms[places[leaf]] for leaf in leaves) < FEWEST
    ]


def extremes_shown(ran: Ran) -> dict[str, float]:
    keys = ran.cells.keys(np.arange(ran.cells.n_published))
    return {
        key.split(" | ")[-1]: float(ran.release.values[row])
        for row, key in enumerate(keys)
        if "[Extreme]" in key and ran.shown(row) == CellStatus.SHOWN
    }


#: The largest of region A is that of one firm alone in its town.
LEFT_OVER = {"a1": [10, 20, 30, 40, 50], "a2": [15, 25, 35, 41, 51], "a3": [900], "b1": [5, 6, 7, 8, 950]}
TOWNS_OF_A = "{[Place].[Region].&[A], [Place].[Town].&[a1], [Place].[Town].&[a2]%s}"


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("alone", ["", ", [Place].[Town].&[a3]"])
def test_what_the_other_towns_leave_over_is_not_told(
    tmp_path: Path, store: Store, kind: str, alone: str
) -> None:
    """Whether or not a sheet has the cell of the town of one firm."""
    query = f"SELECT {{[Measures].[Extreme]}} ON 0, {TOWNS_OF_A % alone} ON 1 FROM [Firms]"
    ran = ran_with(tmp_path, store, firms_of(LEFT_OVER), [query], kind)
    assert not few_told(ran, store)
    # One figure less is enough.
    assert len(extremes_shown(ran)) == 2
    assert few_told(ran, store, np.zeros(len(ran.cells), dtype=np.bool_))


AGED = {"00": [900, 880], "05": [10, 20, 30, 40], "10": [11, 22, 33, 950], "15": [1, 2, 3, 4]}


@pytest.mark.parametrize("kind", ["max", "min"])
def test_two_divisions_of_the_same_ages_do_not_tell_a_maximum(
    tmp_path: Path, store: Store, kind: str
) -> None:
    rows = [
        {**row, "age": age, "firm": f"{age}-{number}"}
        for age, amounts in AGED.items()
        for number, row in enumerate(firms_of({"a1": amounts}))
    ]
    queries = [
        "SELECT {[Measures].[Extreme]} ON 0, "
        f"{{[Age].[{name}].[All], [Age].[{name}].[{level}].Members}} ON 1 FROM [Firms]"
        for name, level in (("By five", "Five"), ("By ten", "Ten"))
    ]
    ran = ran_with(tmp_path, store, rows, queries, kind)
    assert not few_told(ran, store)
    shown = extremes_shown(ran)
    assert "[Age.By five].[Five].&[00]" not in shown
    # What holds those of 00 leaves them as much room as they were promised: a tenth of their size.
    size = 900 if kind == "max" else MIRROR - 900
    above = [value for key, value in shown.items() if "Five].&[00]" in key or key == "[Measures].[Extreme]"]
    assert all(value >= 1.1 * size if kind == "max" else value <= 0.9 * size for value in above)


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("seed", range(4))
def test_margins_and_tables_of_two_dimensions_tell_of_no_few(
    tmp_path: Path, store: Store, seed: int, kind: str
) -> None:
    chance = random.Random(seed)
    rows = [
        {**row, "firm": f"f{number}", "activity": chance.choice(("farm", "bank", "shop"))}
        for number, row in enumerate(
            firms_of(
                {
                    t: [chance.randint(1, 999) for _ in range(k)]
                    for t, k in (("a1", 9), ("a2", 5), ("a3", 2), ("b1", 7))
                }
            )
        )
    ]
    places = "{[Place].[All], [Place].[Region].Members, [Place].[Town].Members}"
    activities = "{[Activity].[All], [Activity].[Activity].Members}"
    queries = [
        f"SELECT {{[Measures].[Extreme]}} ON 0, {places} ON 1 FROM [Firms]",
        f"SELECT {{[Measures].[Extreme]}} ON 0, {activities} ON 1 FROM [Firms]",
    ]
    if seed % 2:
        queries.append(f"SELECT {activities} ON 0, {places} ON 1 FROM [Firms] WHERE ([Measures].[Extreme])")
    ran = ran_with(tmp_path, store, rows, queries, kind)
    # Too few in a set of several places is judged by its parts, so that none lies in one place.
    assert not [leaves for leaves in few_told(ran, store) if len(leaves) == 1]


def test_what_must_be_shown_stands_in_the_way(tmp_path: Path, store: Store) -> None:
    query = f"SELECT {{[Measures].[Extreme]}} ON 0, {TOWNS_OF_A % ''} ON 1 FROM [Firms]"
    decisions = "".join(
        f'[[confidentiality.cells]]\nmeasure = "Extreme"\nmembers = ["{member}"]\n'
        'decision = "show"\nreason = "known"\n'
        for member in ("[Place].[Region].&[A]", "[Place].[Town].&[a1]", "[Place].[Town].&[a2]")
    )
    with pytest.raises(UserError, match=r"&\[a3\] can't be protected .* must be shown: .*Region\]\.&\[A\]"):
        ran_with(tmp_path, store, firms_of(LEFT_OVER), [query], "max", decisions)
    assert store.live_release() is None


def test_the_audit_and_why_know_who_attains_a_maximum(tmp_path: Path, store: Store) -> None:
    query = f"SELECT {{[Measures].[Extreme]}} ON 0, {TOWNS_OF_A % ', [Place].[Town].&[a3]'} ON 1 FROM [Firms]"
    ran = ran_with(tmp_path, store, firms_of(LEFT_OVER), [query], "max")
    (release,) = store.book.all()
    certificate = store.book.certificate(release.id)
    assert certificate is not None
    findings = {finding.what: finding.ok for finding in check_against(certificate, store).findings}
    assert findings["audit of Firms"]
    server = open_cube(ran.publication.cubes[0])
    judge = UnionRules(ran.publication.confidentiality, ran.crawl, {"Firms": server})
    assert audit_release(ran.crawl, ran.primaries, ran.problems, ran.suppression, judge).ok
    sensitive = ran.verdicts.sensitive.copy()
    pattern = replace(ran.suppression, hidden=(sensitive,), attained=())
    report = audit_release(ran.crawl, ran.primaries, ran.problems, pattern, judge)
    assert any("&[a3]" in item.cell and "&[A]" in item.how for item in report.breaches)
    with pytest.raises(InternalError, match="nothing can be released"):
        make_release(ran.publication, ran.crawl, pattern, report)
    server.close()
    (kept,) = shown_cells("r", ran.crawl, ran.primaries, ran.problems, pattern)
    facts = facts_kept(store, "Firms", ran.cells.fingerprint)
    assert any("&[a3]" in told for told in recheck(kept, (), False, (), facts))
    secondary = np.flatnonzero(ran.hidden & ~ran.verdicts.sensitive)
    for row in secondary.tolist():
        told = why(
            ran.crawl, ran.primaries, ran.problems, ran.suppression, ran.cells.keys(np.array([row]))[0]
        )
        assert told.kind == "secondary"
        assert any("&[a3]" in threat.cell for threat in told.threats)
        # What only a maximum takes, the search for sums would show for nothing.
        assert told.alternative is None or told.alternative.extra_cost >= 0


def test_a_total_is_no_less_than_a_maximum_that_is_told_of_a_part(tmp_path: Path, store: Store) -> None:
    """Maxima that nobody protects still bound the turnover of a town."""
    rules = RULES.replace('with = "Firms"\n', "")
    turnover = (
        f"SELECT {{[Measures].[Turnover]}} ON 0, {TOWNS_OF_A % ', [Place].[Town].&[a3]'} ON 1 FROM [Firms]"
    )
    extreme = f"SELECT {{[Measures].[Extreme]}} ON 0, {TOWNS_OF_A % ''} ON 1 FROM [Firms]"
    measure = '[[measure]]\nname = "Extreme"\naggregator = "max"\ncolumn = "turnover"\n'
    turnovers = {"a1": [300, 310, 320, 330], "a2": [200, 210, 220, 230], "a3": [900, 5, 6, 7]}
    office = write_office(
        tmp_path / "office",
        firms_of(turnovers),
        PUBLICATION[: PUBLICATION.index("[confidentiality]")] + rules,
        CUBE.replace("[[calculated]]", measure + "[[calculated]]", 1),
        {"a": sheet(turnover), "b": sheet(extreme)},
    )
    ran = Ran(office, store)
    row = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a3]")
    assert ran.shown(row) == CellStatus.CONFIDENTIAL
    # 900 in A would be in a3, whose turnover of 918 has to be possible down to its level.
    assert ran.verdicts.lpl[row] > 18
    assert len(extremes_shown(ran)) == 2


def test_nothing_is_looked_at_where_there_are_no_maxima(office: Path, store: Store) -> None:
    ran = Ran(office, store)
    assert ran.suppression.attained == ()
    assert not ran.suppression.limits
