"""A small office's cube with time, regions and sexes, for tests that write out what they expect."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.domain.publication import (
    CalculatedDefinition,
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)

AT = Position("cubes/tax.toml", 1)
#: month, town, sex, income, tax (euros with cents), person, household
ROWS: tuple[tuple[str, ...], ...] = (
    ("2022", "01", "28001", "W", "100", "10.10", "a", "k"),
    ("2022", "02", "28001", "M", "250", "20.20", "b", "k"),
    ("2022", "02", "28002", "W", "75", "0.30", "c", ""),
    ("2023", "01", "28001", "W", "120", "12.10", "a", "k"),
    ("2023", "01", "08001", "M", "300", "", "d", ""),
    ("2023", "02", "08001", "W", "", "7.77", "e", ""),
    ("2023", "03", "28002", "M", "0", "0.00", "f", ""),
)
TOWNS = (
    ("28001", "Alcalá", "28", "Madrid", "2", "300"),
    ("28002", "Getafe", "28", "Madrid", "2", "180"),
    ("08001", "Badalona", "08", "Barcelona", "1", "220"),
)


def write_csv(place: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    with place.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(place)


def level(name: str, key: str, **more: object) -> LevelDefinition:
    made = LevelDefinition(name, {"en": name}, key, {}, None)
    return replace(made, **more)  # type: ignore[arg-type]


def office(
    folder: Path,
    calculated: Sequence[tuple[str, str, str]] = (),
    rows: Sequence[Sequence[str]] = ROWS,
    towns: Sequence[Sequence[str]] = TOWNS,
) -> CubeDefinition:
    facts = write_csv(
        folder / "facts.csv",
        ("year", "month", "town", "sex", "income", "tax", "person", "household"),
        rows,
    )
    table = write_csv(
        folder / "towns.csv", ("code", "name", "province", "province_name", "rank", "area"), towns
    )
    time = HierarchyDefinition(
        "Time", {"en": "Time"}, None, (level("Year", "year"), level("Month", "month")), None, True
    )
    places = HierarchyDefinition(
        "Place",
        {"en": "Place"},
        {"en": "Spain", "es": "España"},
        (
            level("Province", "province", caption_columns={"en": "province_name"}, order="rank"),
            level("Town", "code", caption_columns={"en": "name"}, properties={"area": "area"}),
        ),
    )
    sexes = HierarchyDefinition("Sex", {"en": "Sex"}, {"en": "Both"}, (level("Sex", "sex"),))
    return CubeDefinition(
        "Tax",
        {"en": "Tax"},
        FactsDefinition(facts, None, None, "person", "household", None, None),
        (
            DimensionDefinition("Time", {"en": "Time"}, (time,)),
            DimensionDefinition("Place", {"en": "Place"}, (places,), table, "code", "town"),
            DimensionDefinition("Sex", {"en": "Sex"}, (sexes,)),
        ),
        (
            MeasureDefinition("People", {"en": "People"}, "count", None, {}, "#,##0", 0, True),
            MeasureDefinition("Income", {"en": "Income"}, "sum", "income", {}, "#,##0", 0, True),
            MeasureDefinition("Tax", {"en": "Tax"}, "sum", "tax", {}, "#,##0.00", 2, True),
            MeasureDefinition("Persons", {"en": "Persons"}, "distinct-count", "person", {}, "0", 0, True),
            MeasureDefinition("Highest", {"en": "Highest"}, "max", "income", {}, "0", 0, True),
            MeasureDefinition("Mean", {"en": "Mean"}, "avg", "income", {}, "0", 0, True),
            MeasureDefinition("Middle", {"en": "Middle"}, "median", "income", {}, "0", 0, True),
        ),
        tuple(
            CalculatedDefinition(
                hierarchy, name, {"en": name}, formula, None, None, {}, Position("cubes/tax.toml", 40)
            )
            for hierarchy, name, formula in calculated
        ),
        AT,
    )
