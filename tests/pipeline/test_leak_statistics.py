"""Statistics that don't add up, over groups of members: published, and hidden with their parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import CUBE, PUBLICATION, write_office
from tests.pipeline.test_protection import Ran, sheet

RULES = '\n[confidentiality.Firms."Statistic"]\nwith = "Firms"\nrules = [{ rule = "threshold", n = 3 }]\n'
QUERY = """WITH
  MEMBER [Place].[Thin] AS 'Aggregate({[Place].[Town].&[a1], [Place].[Town].&[a2]})'
  MEMBER [Place].[Full] AS 'Aggregate({[Place].[Town].&[a1], [Place].[Town].&[b1]})'
  MEMBER [Place].[Gap] AS '[Place].[Town].&[a1] - [Place].[Town].&[a2]'
SELECT {[Measures].[Statistic]} ON 0,
  {[Place].[All], [Place].[Town].Members, [Place].[Thin], [Place].[Full], [Place].[Gap]} ON 1
FROM [Firms]"""


@pytest.mark.parametrize("aggregator", ["distinct-count", "min", "max", "median"])
def test_a_group_is_hidden_with_its_parts(tmp_path: Path, store: Store, aggregator: str) -> None:
    measure = (
        f'[[measure]]\nname = "Statistic"\naggregator = "{aggregator}"\ncolumn = "owner"\n[[calculated]]'
    )
    rows = [
        {"firm": i, "holding": "", "town": town, "activity": "farm", "size": "small", "turnover": 5}
        | {"owner": i % 30 + 1}
        for i, town in enumerate(["a1"] * 20 + ["a2"] * 2 + ["a3"] * 10 + ["b1"] * 9 + ["c1"] * 7)
    ]
    office = write_office(
        tmp_path / "office",
        rows,
        PUBLICATION + RULES,
        CUBE.replace("[[calculated]]", measure, 1),
        {"a": sheet(QUERY)},
    )
    ran = Ran(office, store)
    (layout,) = ran.crawl.layouts.values()
    names = [position[0].unique_name.split(".")[-1].strip("&[]") for position in layout.axes[1].positions]
    state = dict(zip(names, ran.release.status[layout.cell].tolist(), strict=True))
    shown = {name for name, status in state.items() if status == CellStatus.SHOWN}
    assert not shown & {"a2", "Thin"}
    assert ("Full" in shown) == ({"a1", "b1"} <= shown)
    if "a1" in shown:
        assert "Gap" not in shown
    assert np.isnan(ran.release.values[layout.cell[names.index("a2")]])
