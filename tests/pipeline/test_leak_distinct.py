"""Distinct counts add up where nobody is counted twice, and readers know where that is so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import CUBE, PUBLICATION, write_office
from tests.pipeline.test_protection import Ran, sheet

SIZES = {"a1": 2, "a2": 9, "a3": 8, "b1": 12, "b2": 7}
DISTINCT = '[[measure]]\nname = "Owners"\naggregator = "distinct-count"\ncolumn = "owner"\n[[calculated]]'
#: The cheapest town to hide is another one for each measure.
RULES = """
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "value"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Owners"]
weight = { measure = "Turnover" }
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Turnover"]
rules = []
"""
ALL = "[Place].[All], [Place].[Region].Members, [Place].[Town].Members"
LINES = {
    "remainder": "[Place].[Region].&[A], [Place].[Town].&[a2], [Place].[Town].&[a3]",
    "pairs": ALL,
    "whole": "[Place].[All], [Place].[Town].Members",
}


def rows(wanderer: str = "") -> list[dict[str, object]]:
    """Towns' firms, each with an owner of its own; the ``wanderer`` owns one in each of two towns as well."""
    listed: list[dict[str, object]] = []
    for town, n in SIZES.items():
        for i in range(n):
            row = {"firm": f"{town}{i}", "holding": "", "town": town, "activity": "farm", "size": "small"}
            listed.append(row | {"owner": f"{town}{i}", "turnover": 1 if town == "a2" else 50})
    if wanderer:
        for row in (listed[2], listed[2 + 9], listed[2 + 9 + 8]):
            row["owner"] = wanderer
    return listed


def ran_with(tmp_path: Path, store: Store, listed: list[dict[str, object]], query: str) -> Ran:
    office = write_office(
        tmp_path / "office",
        listed,
        PUBLICATION[: PUBLICATION.index("[confidentiality]")] + RULES,
        CUBE.replace("[[calculated]]", DISTINCT, 1),
        {"a": sheet(query)},
    )
    return Ran(office, store)


@pytest.mark.parametrize("measures", [("Owners",), ("Firms", "Owners")], ids="+".join)
@pytest.mark.parametrize("lines", list(LINES))
def test_nobody_is_worked_out_by_subtracting_distinct_counts(
    tmp_path: Path, store: Store, measures: tuple[str, ...], lines: str
) -> None:
    """A reader who takes both measures for the number of firms leaves a town of two up to three."""
    columns = ", ".join(f"[Measures].[{name}]" for name in measures)
    ran = ran_with(
        tmp_path, store, rows(), f"SELECT {{{columns}}} ON 0, {{{LINES[lines]}}} ON 1 FROM [Firms]"
    )
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = ran.release.values[layout.cell].reshape(-1, len(measures))
    table, values = [], []
    for name, told in zip(names, seen.tolist(), strict=True):
        for value in told:
            if not np.isnan(value):
                table.append([name in ("All", town, town[0].upper()) for town in SIZES])
                values.append(value)
    thin = np.array([float(town == "a1") for town in SIZES])
    told = {"A_eq": table, "b_eq": values} if values else {}
    low = linprog(thin, bounds=(1, None), **told)
    high = linprog(-thin, bounds=(1, None), **told)
    assert low.fun <= 1 + 1e-6
    assert high.status == 3 or -high.fun >= 3 - 1e-6
    assert np.isnan(seen).any()


def test_who_is_counted_in_two_towns_makes_no_sum(tmp_path: Path, store: Store) -> None:
    """Region A has one owner less than its towns: their sum says nothing exact of the thin one."""
    query = f"SELECT {{[Measures].[Owners]}} ON 0, {{{LINES['remainder']}}} ON 1 FROM [Firms]"
    ran = ran_with(tmp_path, store, rows("rover"), query)
    cells = ran.cells
    assert not len(cells.equations)
    assert (ran.release.status == CellStatus.SHOWN).all()


#: Of two measures that are one another, or twice as many, and whose cheapest patterns differ.
ALIKE = """
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "value"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Owners"]
weight = { measure = "Turnover" }
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Numbers"]
weight = "value"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Turnover"]
rules = []
"""


@pytest.mark.parametrize(("other", "per_owner"), [("Numbers", 1), ("Firms", 2)])
def test_counts_that_are_the_same_by_other_names_are_hidden_together(
    tmp_path: Path, store: Store, other: str, per_owner: int
) -> None:
    """Each owner has a tax number and two records: what one count leaves hidden, the other doesn't show."""
    listed = [row | {"number": f"n{row['owner']}", "firm": row["owner"]} for row in rows() for _ in range(2)]
    numbers = DISTINCT.replace("Owners", "Numbers").replace('"owner"', '"number"')
    office = write_office(
        tmp_path / "office",
        listed,
        PUBLICATION[: PUBLICATION.index("[confidentiality]")] + ALIKE,
        CUBE.replace("[[calculated]]", DISTINCT.replace("[[calculated]]", numbers), 1),
        {
            "a": sheet(
                f"SELECT {{[Measures].[Owners], [Measures].[{other}]}} ON 0, "
                "{[Place].[Region].&[A], [Place].[Region].&[A].Children} ON 1 FROM [Firms]"
            )
        },
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    whole, thin, *others = ran.release.values[layout.cell].reshape(-1, 2) / (1, per_owner)
    assert np.isnan(thin).all()
    # A town that either count shows is known by both; the thin one isn't the rest of the region.
    unknown = [np.isnan(town).all() for town in others]
    assert np.isnan(whole).all() or any(unknown)
