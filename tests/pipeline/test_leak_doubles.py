"""The same numbers under two names would be hidden twice, apart: one would give the other away."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.pipeline.test_define import mistakes
from tests.pipeline.test_protection import sheet

Rows = list[dict[str, object]]

UNPROTECTED = PUBLICATION + '[confidentiality.Firms."Again"]\nrules = []\n'
MEASURE = '[[measure]]\nname = "Again"\naggregator = "{}"\n{}\n[[calculated]]'


@pytest.mark.parametrize(
    ("aggregator", "column", "twin"),
    [("sum", "turnover", "Turnover"), ("count", "turnover", "Firms"), ("count", "", "Firms")],
)
def test_a_measure_that_repeats_another_is_refused(
    tmp_path: Path, aggregator: str, column: str, twin: str
) -> None:
    again = MEASURE.format(aggregator, column and f'column = "{column}"')
    cube = CUBE.replace("[[calculated]]", again, 1)
    (mistake,) = mistakes(write_office(tmp_path, publication=UNPROTECTED, cube=cube))
    assert mistake.file == "cubes/firms.toml"
    assert f"Measure Again has the numbers of measure {twin}" in mistake.cause
    assert "[[calculated]]" in mistake.remedy


def test_another_statistic_of_the_same_column_is_a_measure_of_its_own(tmp_path: Path) -> None:
    cube = CUBE.replace("[[calculated]]", MEASURE.format("max", 'column = "turnover"'), 1)
    publication = load_publication(write_office(tmp_path, publication=UNPROTECTED, cube=cube))
    assert [measure.name for measure in publication.cubes[0].measures] == ["Firms", "Turnover", "Again"]


@pytest.mark.parametrize("path", ["../data/firms.csv", "../data/../data/firms.csv", "../data/link.csv"])
def test_two_cubes_of_the_same_facts_are_refused(tmp_path: Path, path: str) -> None:
    rules = PUBLICATION[PUBLICATION.index("[confidentiality.Firms") :].replace(".Firms.", ".Other.")
    folder = write_office(tmp_path, publication=PUBLICATION + rules)
    (folder / "data/link.csv").symlink_to(folder / "data/firms.csv")
    other = CUBE.replace('name = "Firms"', 'name = "Other"', 1).replace("../data/firms.csv", path)
    (folder / "cubes/other.toml").write_text(other, encoding="utf-8")
    # A set of one cube's members needs to know which: the sheets of one cube are not of interest here.
    text = (folder / "sheets/activity/sizes.toml").read_text(encoding="utf-8")
    text = text.replace('title.en = "Activity"\nset', 'title.en = "Activity"\ncube = "Firms"\nset')
    (folder / "sheets/activity/sizes.toml").write_text(text, encoding="utf-8")
    (mistake,) = mistakes(folder)
    assert mistake.file == "cubes/other.toml"
    assert "Firms and Other read the same facts" in mistake.cause


#: What another file holds, and whether two cubes may be made of both.
OTHERS: dict[str, tuple[Callable[[Rows], Rows], bool]] = {
    "a copy": (lambda rows: rows, False),
    "another order": (lambda rows: rows[::-1], False),
    "a part": (lambda rows: rows[:35], False),
    "two corrected": (lambda rows: [{**row, "turnover": 1} for row in rows[:2]] + rows[2:], False),
    "other amounts": (lambda rows: [{**row, "turnover": i} for i, row in enumerate(rows)], False),
    "other names": (lambda rows: [{**row, "firm": 1000 + i} for i, row in enumerate(rows)], False),
    "other firms": (
        lambda rows: [{**row, "firm": 1000 + i, "turnover": i} for i, row in enumerate(rows)],
        True,
    ),
    "a few firms": (lambda rows: rows[:10], True),
}


#: The same for amounts that are told in other units, where nothing else is counted.
IN_OTHER_UNITS: dict[str, tuple[Callable[[Rows], Rows], bool]] = {
    "thousands": (lambda rows: times(0.001, rows), False),
    "thousands of other names": (lambda rows: renamed(times(0.001, rows)), False),
    "another currency, a part, other names": (lambda rows: renamed(times(1.0837, rows[:35])), False),
    "whole thousands": (
        lambda rows: [{**row, "turnover": round(turnover(row) / 1000)} for row in rows],
        False,
    ),
    "two corrected": (
        lambda rows: [{**row, "turnover": 1} for row in rows[:2]] + times(100, rows[2:]),
        False,
    ),
    "thousands of some, millions of others": (
        lambda rows: times(0.001, rows[:30]) + times(0.000001, rows[30:]),
        True,
    ),
    "amounts of their own": (
        lambda rows: [{**row, "turnover": 5 + i**2} for i, row in enumerate(rows)],
        True,
    ),
}


def turnover(row: dict[str, object]) -> float:
    assert isinstance(row["turnover"], int)
    return row["turnover"]


def times(factor: float, rows: Rows) -> Rows:
    return [{**row, "turnover": turnover(row) * factor} for row in rows]


def renamed(rows: Rows) -> Rows:
    return [{**row, "firm": 1000 + i} for i, row in enumerate(rows)]


@pytest.mark.parametrize("kind", list(OTHERS))
def test_two_cubes_of_the_same_records_are_refused(tmp_path: Path, store: Store, kind: str) -> None:
    make, allowed = OTHERS[kind]
    rows = [{**row, "turnover": 10 + 7 * i} for i, row in enumerate(firms(n=60))]
    answered(two_cubes(tmp_path, rows, make(rows), "Firms", "Turnover"), store, allowed)


@pytest.mark.parametrize("kind", list(IN_OTHER_UNITS))
def test_other_units_do_not_make_other_records(tmp_path: Path, store: Store, kind: str) -> None:
    make, allowed = IN_OTHER_UNITS[kind]
    rows = [{**row, "turnover": 20_011 + 7919 * i} for i, row in enumerate(firms(n=60))]
    answered(two_cubes(tmp_path, rows, make(rows), "Turnover"), store, allowed)


def test_amounts_that_a_large_cube_has_anyway_are_no_likeness(tmp_path: Path, store: Store) -> None:
    rows = [{**row, "turnover": 1 + i % 40} for i, row in enumerate(firms(n=3000))]
    often = [
        row
        for row in rows
        if (row["activity"], row["size"]) == ("farm", "small") and row["town"] in ("a1", "b1")
    ]
    other = [{**row, "firm": 5000 + i, "turnover": 2 + 3 * (i % 12)} for i, row in enumerate(often[:40])]
    answered(two_cubes(tmp_path, rows, other, "Turnover"), store, allowed=True)


def two_cubes(tmp_path: Path, rows: Rows, others: Rows, *measured: str) -> Publication:
    """Two cubes of some measures, each of records of its own."""
    names = ("Firms", "Other")
    query = "SELECT {{[Measures].[{}]}} ON 0, {{[Place].[Town].Members}} ON 1 FROM [{}]"
    rules = '[confidentiality.{}."{}"]\nweight = "unit"\nrules = [{{ rule = "threshold", n = 3 }}]\n'
    head = PUBLICATION[: PUBLICATION.index("[confidentiality.Firms")]
    folder = write_office(
        tmp_path / "office",
        rows,
        head + "".join(rules.format(name, measure) for name in names for measure in measured),
        sheets={name.lower(): sheet(query.format(measured[0], name)) for name in names},
    )
    write_csv(folder / "data/other.csv", others)
    dimensions, *measures = CUBE[: CUBE.index("[[calculated]]")].split("[[measure]]")
    kept = [one for one in measures if one.split('"')[1] in measured]
    text = "[[measure]]".join([dimensions, *kept])
    for name in names:
        own = text.replace('name = "Firms"', f'name = "{name}"', 1).replace(
            "firms.csv", f"{name.lower()}.csv"
        )
        (folder / f"cubes/{name.lower()}.toml").write_text(own, encoding="utf-8")
    return load_publication(folder)


def answered(publication: Publication, store: Store, allowed: bool) -> None:
    if allowed:
        check_publication(publication, open_cube)
        return
    for door in (
        lambda: check_publication(publication, open_cube),
        lambda: run(publication, store, open_cube),
    ):
        with pytest.raises(UserError) as caught:
            door()
        (mistake,) = caught.value.mistakes
        assert mistake.file == "cubes/other.toml"
        assert "Firms and Other read the same facts" in mistake.cause
