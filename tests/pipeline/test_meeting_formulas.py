"""Formulas that meet in a cell: which is worked out over which is part of what the cell is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.mdx import parse
from app.pipeline.crawl import crawl
from app.pipeline.define import load_publication
from tests.pipeline.offices import CUBE, PUBLICATION, firms, write_office
from tests.pipeline.test_protection import sheet

MEAN = "MEMBER [Measures].[Mean] AS [Measures].[Turnover] / [Measures].[Firms]"
TOWNS = "{[Place].[Town].&[a1], [Place].[Town].&[b1]}"
BOTH = "[Place].[Town].&[a1] + [Place].[Town].&[b1]"
SUM = "MEMBER [Measures].[Mean] AS [Measures].[Turnover] + [Measures].[Firms]"
SHARE = "[Place].[Town].&[a1] / [Place].[All]"
KINDS = '[[measure]]\nname = "Kinds"\naggregator = "distinct-count"\ncolumn = "activity"\n'
FREE = '[confidentiality.Firms."Kinds"]\nweight = "unit"\nrules = []\n'


def query(*definitions: str, measure: str = "[Measures].[Mean]") -> str:
    return f"WITH {' '.join(definitions)} SELECT {{{measure}}} ON 0, {{[Place].[Two]}} ON 1 FROM [Firms]"


@pytest.mark.parametrize(
    "queries",
    [
        (query(f"MEMBER [Place].[Two] AS {BOTH}", MEAN), query(MEAN, f"MEMBER [Place].[Two] AS {BOTH}")),
        (
            query(MEAN, f"MEMBER [Place].[Two] AS {BOTH}, SOLVE_ORDER = 2"),
            query(MEAN, f"MEMBER [Place].[Two] AS Aggregate({TOWNS})"),
        ),
        (
            query(f"MEMBER [Place].[Two] AS {SHARE}", SUM),
            query(SUM, f"MEMBER [Place].[Two] AS {SHARE}"),
        ),
        (
            # The formula that meets the other does so beneath a third.
            query(
                "MEMBER [Measures].[In] AS [Measures].[Turnover] / [Measures].[Firms]",
                f"MEMBER [Place].[Two] AS {BOTH}",
                "MEMBER [Measures].[Mean] AS [Measures].[In] * 2",
            ),
            query(
                f"MEMBER [Place].[Two] AS {BOTH}",
                "MEMBER [Measures].[In] AS [Measures].[Turnover] / [Measures].[Firms]",
                "MEMBER [Measures].[Mean] AS [Measures].[In] * 2",
            ),
        ),
        (
            query(f"MEMBER [Place].[Two] AS {BOTH}", measure="[Measures].[Kinds]"),
            query(f"MEMBER [Place].[Two] AS Aggregate({TOWNS})", measure="[Measures].[Kinds]"),
        ),
    ],
    ids=["order", "solve-order", "neither-adds", "beneath", "distinct-count"],
)
def test_cells_of_two_values_are_two_cells(tmp_path: Path, queries: tuple[str, str]) -> None:
    sheets = {f"s{n}": sheet(text) for n, text in enumerate(queries)}
    office = write_office(tmp_path / "office", firms(1), PUBLICATION + FREE, CUBE + KINDS, sheets)
    publication = load_publication(office)
    server = open_cube(publication.cubes[0])
    values = [server.execute(parse(text)).values[0] for text in queries]
    assert not np.isclose(*values)
    found = crawl(publication, {"Firms": server})
    cells = [int(layout.cell[0]) for _, layout in sorted(found.layouts.items())]
    assert cells[0] != cells[1]
    np.testing.assert_allclose(found.cubes[0].values[cells], values)
    keys = found.cubes[0].keys(np.array(cells))
    assert keys[0] != keys[1]
