"""Small publications on disk for the tests of the pipeline."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

PUBLICATION = """
languages = ["en", "es"]
title.en = "Small office"
title.es = "Oficina pequeña"
[confidentiality]
[confidentiality.Firms."Firms"]
weight = "unit"
rules = [{ rule = "threshold", n = 3 }]
[confidentiality.Firms."Turnover"]
with = "Firms"
weight = "value"
rules = [{ rule = "p-percent", p = 10 }, { rule = "dominance", n = 1, k = 85 }]
"""

CUBE = """
name = "Firms"
[facts]
file = "../data/firms.csv"
respondent = "firm"
holding = "holding"
[[dimension]]
name = "Place"
table = "../data/places.csv"
key = "town"
[[dimension.hierarchy]]
all.en = "Everywhere"
[[dimension.hierarchy.level]]
name = "Region"
key = "region"
[[dimension.hierarchy.level]]
name = "Town"
key = "town"
label = "town_name"
[[dimension]]
name = "Activity"
[[dimension.hierarchy]]
all.en = "All activities"
[[dimension.hierarchy.level]]
name = "Activity"
key = "activity"
[[dimension]]
name = "Size"
[[dimension.hierarchy]]
all.en = "All sizes"
[[dimension.hierarchy.level]]
name = "Size"
key = "size"
[[measure]]
name = "Firms"
aggregator = "count"
[[measure]]
name = "Turnover"
aggregator = "sum"
column = "turnover"
unit.en = "euros"
[[calculated]]
on = "[Measures]"
name = "Average"
formula = "[Measures].[Turnover] / [Measures].[Firms]"
decimals = 1
[[calculated]]
on = "[Place]"
name = "Coast"
formula = "Aggregate({[Place].[Town].&[a1], [Place].[Town].&[b1]})"
"""

SHEETS = {
    "activity/folder": 'title.en = "Activity"',
    "activity/by-place": '''
title.en = "Activity by place"
[[query]]
id = "firms"
mdx = """
SELECT {[Activity].[All], [Activity].[Activity].Members} ON COLUMNS,
  {[Place].[All], [Place].[Region].Members, [Place].[Town].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Firms])"""
[[query]]
id = "turnover"
mdx = """
SELECT {[Activity].[All], [Activity].[Activity].Members} ON COLUMNS,
  {[Place].[All], [Place].[Region].Members, [Place].[Town].Members} ON ROWS
FROM [Firms] WHERE ([Measures].[Turnover])"""
''',
    "activity/sizes": '''
title.en = "Sizes of an activity"
[[parameter]]
name = "activity"
title.en = "Activity"
set = "[Activity].[Activity].Members"
[[query]]
id = "table"
mdx = """
SELECT {[Measures].[Firms], [Measures].[Turnover], [Measures].[Average]} ON COLUMNS,
  {[Size].[All], [Size].[Size].Members} ON ROWS
FROM [Firms] WHERE (@activity)"""
''',
    "coast": '''
title.en = "Coast"
[[query]]
id = "table"
mdx = """
SELECT {[Measures].[Firms], [Measures].[Average]} ON COLUMNS,
  {[Place].[All], [Place].[Coast]} ON ROWS
FROM [Firms]"""
[[query]]
id = "part"
mdx = """
SELECT {[Place].[Region].&[A], [Place].[Town].&[a1]} ON COLUMNS,
  {[Size].[All], [Size].[Size].&[small]} ON ROWS
FROM [Firms] WHERE ([Measures].[Turnover])"""
''',
}

TOWNS = ("a1", "a2", "a3", "b1", "b2", "c1")
ACTIVITIES = ("farm", "mill", "shop", "bank")
SIZES = ("small", "middle", "large")


def firms(seed: int = 1, n: int = 160) -> list[dict[str, object]]:
    """Made-up firms: thin towns and activities, heavy tails, some holdings."""
    chance = random.Random(seed)
    return [
        {
            "firm": number,
            "holding": f"h{number // 2}" if number % 9 < 2 else "",
            "town": chance.choices(TOWNS, (40, 25, 4, 30, 8, 3))[0],
            "activity": chance.choices(ACTIVITIES, (40, 10, 40, 5))[0],
            "size": chance.choices(SIZES, (70, 20, 5))[0],
            "turnover": round(chance.lognormvariate(4, 1.5)) + 1,
        }
        for number in range(n)
    ]


def firms_of(turnovers: Mapping[str, Iterable[float]]) -> list[dict[str, object]]:
    """Small farms, by town as many as there are turnovers."""
    return [
        {"firm": f"{town}{i}", "holding": "", "town": town, "activity": "farm", "size": "small"}
        | {"turnover": turnover}
        for town, listed in turnovers.items()
        for i, turnover in enumerate(listed)
    ]


def write_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    listed = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)


def write_office(
    folder: Path,
    rows: Iterable[Mapping[str, object]] | None = None,
    publication: str = PUBLICATION,
    cube: str = CUBE,
    sheets: Mapping[str, str] = SHEETS,
) -> Path:
    """A whole publication folder."""
    write_csv(folder / "data/firms.csv", rows if rows is not None else firms())
    write_csv(
        folder / "data/places.csv",
        ({"town": town, "town_name": f"Town {town}", "region": town[0].upper()} for town in TOWNS),
    )
    (folder / "cubes").mkdir(exist_ok=True)
    (folder / "publication.toml").write_text(publication, encoding="utf-8")
    (folder / "cubes/firms.toml").write_text(cube, encoding="utf-8")
    for name, text in sheets.items():
        path = folder / "sheets" / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
