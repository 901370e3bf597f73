"""The same numbers under two names would be hidden twice, apart: one would give the other away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.errors import UserError
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


def records() -> Rows:
    return [{**row, "turnover": 10 + 7 * i} for i, row in enumerate(firms(n=60))]


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


@pytest.mark.parametrize("kind", list(OTHERS))
def test_two_cubes_of_the_same_records_are_refused(tmp_path: Path, store: Store, kind: str) -> None:
    make, allowed = OTHERS[kind]
    rules = PUBLICATION[PUBLICATION.index("[confidentiality.Firms") :].replace(".Firms.", ".Other.")
    query = "SELECT {{[Measures].[Firms]}} ON 0, {{[Place].[Town].Members}} ON 1 FROM [{}]"
    folder = write_office(
        tmp_path / "office",
        records(),
        PUBLICATION + rules,
        sheets={"a": sheet(query.format("Firms")), "b": sheet(query.format("Other"))},
    )
    write_csv(folder / "data/other.csv", make(records()))
    other = CUBE.replace('name = "Firms"', 'name = "Other"', 1).replace(
        "../data/firms.csv", "../data/other.csv"
    )
    (folder / "cubes/other.toml").write_text(other, encoding="utf-8")
    publication = load_publication(folder)
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
