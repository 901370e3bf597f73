"""A publication over the real business data beside the repository: nothing of them is copied into it."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "turnover"

PUBLICATION = """
languages = ["en"]
title.en = "Turnover of firms"
[confidentiality]
effort = 8
[confidentiality.Business."Firms"]
weight = "unit"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Business."Turnover"]
with = "Firms"
weight = "log"
rules = [{ rule = "threshold", n = 3 }, { rule = "dominance", n = 1, k = 85 }]
"""

CUBE = """
name = "Business"
[facts]
file = "../data/firms.csv"
weight = "WEIGHT"
[[dimension]]
name = "Activity"
[[dimension.hierarchy]]
all.en = "All activities"
[[dimension.hierarchy.level]]
name = "A10"
key = "A10"
[[dimension.hierarchy.level]]
name = "A21"
key = "A21"
[[dimension.hierarchy.level]]
name = "A88"
key = "A88"
[[dimension]]
name = "Place"
[[dimension.hierarchy]]
all.en = "Country"
[[dimension.hierarchy.level]]
name = "NUTS1"
key = "NUTS1"
[[dimension.hierarchy.level]]
name = "NUTS2"
key = "NUTS2"
[[dimension.hierarchy.level]]
name = "NUTS3"
key = "NUTS3"
[[dimension]]
name = "Size"
[[dimension.hierarchy]]
all.en = "All sizes"
[[dimension.hierarchy.level]]
name = "Size"
key = "SIZE"
[[dimension]]
name = "Legal"
[[dimension.hierarchy]]
all.en = "All categories"
[[dimension.hierarchy.level]]
name = "Legal"
key = "CJ"
[[measure]]
name = "Firms"
aggregator = "count"
[[measure]]
name = "Turnover"
aggregator = "sum"
column = "TURNOVER"
"""

ACTIVITY = "{[Activity].[All], [Activity].[A10].Members, [Activity].[A21].Members, [Activity].[A88].Members}"
PLACE = "{[Place].[All], [Place].[NUTS1].Members, [Place].[NUTS2].Members, [Place].[NUTS3].Members}"
BROAD_ACTIVITY = "{[Activity].[All], [Activity].[A10].Members, [Activity].[A21].Members}"
BROAD_PLACE = "{[Place].[All], [Place].[NUTS1].Members, [Place].[NUTS2].Members}"
SIZE = "{[Size].[All], [Size].[Size].Members}"
LEGAL = "{[Legal].[All], [Legal].[Legal].Members}"

TABLES = {
    "activity-size": (SIZE, ACTIVITY),
    "activity-legal": (LEGAL, ACTIVITY),
    "nuts-size": (SIZE, PLACE),
    "nuts-legal": (LEGAL, PLACE),
    "activity-nuts": (BROAD_PLACE, BROAD_ACTIVITY),
}


def write_turnover(folder: Path) -> Path:
    """The publication folder; fails when the data aren't there."""
    (folder / "cubes").mkdir(parents=True)
    (folder / "sheets").mkdir()
    (folder / "data").mkdir()
    with gzip.open(DATA / "firms.csv.gz", "rt", encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle))
    assert len(rows) == 9_787, "the data of firms are other ones"
    with (folder / "data/firms.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(rows)
    (folder / "publication.toml").write_text(PUBLICATION)
    (folder / "cubes/business.toml").write_text(CUBE)
    for name, (columns, lines) in TABLES.items():
        queries = "".join(
            f'''[[query]]
id = "{measure.lower()}"
mdx = """
SELECT {columns} ON COLUMNS, {lines} ON ROWS
FROM [Business] WHERE ([Measures].[{measure}])"""
'''
            for measure in ("Firms", "Turnover")
        )
        (folder / f"sheets/{name}.toml").write_text(f'title.en = "{name}"\n{queries}')
    return folder
