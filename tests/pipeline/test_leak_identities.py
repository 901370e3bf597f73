"""Measures that add up to one another in every record give one another away, unless they are tied."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from app.db import Store
from app.domain.cube import Cube, Measure
from app.domain.known import FactRows
from app.pipeline.identities import find_identities
from tests.pipeline.offices import CUBE, PUBLICATION, write_office
from tests.pipeline.test_protection import Ran, sheet

NAMES = ("Turnover", "Home", "Abroad")
MEASURE = '[[measure]]\nname = "{name}"\naggregator = "sum"\ncolumn = "{column}"\n'
RULES = "".join(
    f'[confidentiality.Firms."{name}"]\nrules = [{{ rule = "threshold", n = 3, p = 20 }}]\n' for name in NAMES
)


@pytest.mark.parametrize("published", [NAMES, NAMES[:2], NAMES[1:]])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_part_is_worked_out_from_the_other_and_the_whole(
    tmp_path: Path, store: Store, published: tuple[str, ...], seed: int
) -> None:
    chance = random.Random(seed)
    towns = [f"{letter}{number}" for letter, number in ("a1", "a2", "a3", "b1", "b2", "c1")]
    sizes = dict(zip(towns, (2, 8, 9, 12, 9, 10), strict=True))
    rows = []
    for town, n in sizes.items():
        share = chance.random()
        for i in range(n):
            whole = chance.randint(20, 200)
            home = round(whole * share)
            rows.append(
                {"firm": f"{town}{i}", "holding": "", "town": town, "activity": "farm", "size": "small"}
                | {"turnover": whole, "home": home, "abroad": whole - home}
            )
    more = "".join(MEASURE.format(name=name, column=name.lower()) for name in NAMES[1:])
    measures = ", ".join(f"[Measures].[{name}]" for name in published)
    query = f"SELECT {{{measures}}} ON 0, {{[Place].[All], [Place].[Town].Members}} ON 1 FROM [Firms]"
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION[: PUBLICATION.index('[confidentiality.Firms."Turnover"]')] + RULES,
        CUBE.replace("[[calculated]]", f"{more}[[calculated]]", 1),
        {"a": sheet(query)},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    lines = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    seen = ran.release.values[layout.cell].reshape(-1, len(published))
    # Unknown are what each town sells at home and abroad.
    rows_of, values = [], []
    for line, told in zip(lines, seen.tolist(), strict=True):
        for name, value in zip(published, told, strict=True):
            if not np.isnan(value):
                inside = [line in ("All", town) for town in towns]
                rows_of.append(
                    [here and name != "Abroad" for here in inside]
                    + [here and name != "Home" for here in inside]
                )
                values.append(value)
    for name in NAMES:
        wanted = np.zeros(2 * len(towns))
        wanted[[column for column, out in ((0, "Abroad"), (len(towns), "Home")) if name != out]] = 1
        truth = sum(float(str(row[name.lower()])) for row in rows if row["town"] == "a1")
        top = linprog(-wanted, A_eq=rows_of, b_eq=values)
        assert top.status == 3 or -top.fun >= 1.2 * truth - 1e-6, name


def test_identities_are_those_that_hold_in_every_record() -> None:
    chance = np.random.default_rng(1)
    a, b = chance.integers(0, 90, 400).astype(float), chance.integers(0, 90, 400) / 10
    columns = {"a": a, "b": b, "sum": a + b, "thousands": a / 1000, "five": np.full(400, 5.0)}
    columns["nearly"] = a - b + (np.arange(400) == 399)
    kinds = dict.fromkeys(columns, "sum") | {"count": "count"}
    amounts = (*columns.values(), np.ones(400))
    measures = tuple(
        Measure(name, f"[Measures].[{name}]", {"en": name}, kind, {}, "0", 0, False)
        for name, kind in kinds.items()
    )
    cube = Cube("C", {"en": "C"}, (), measures)
    found = find_identities(cube, FactRows(cube, (), amounts, None))
    names = [{measures[number].name for number, _ in identity} for identity in found]
    assert {"a", "thousands"} in names
    assert {"five", "count"} in names
    assert len(found) == 3
    for identity in found:
        assert np.allclose(sum(factor * amounts[number] for number, factor in identity), 0)
    assert not find_identities(cube, FactRows(cube, (), tuple(column[:20] for column in amounts), None))
