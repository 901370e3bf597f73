"""A shop's cube for answers in SQL: ragged products, two hierarchies of stores, three levels of time, staff
under one another."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path

import duckdb

from app.domain.publication import (
    CubeDefinition,
    DimensionDefinition,
    FactsDefinition,
    HierarchyDefinition,
    LevelDefinition,
    MeasureDefinition,
    Position,
)

#: category, family (none: the item hangs from its category), item
PRODUCTS = (
    ("Drink", "Cold", "juice"),
    ("Drink", "Cold", "milk"),
    ("Drink", "Hot", "coffee"),
    ("Drink", None, "water"),
    ("Food", "Fresh", "apple"),
    ("Food", "Fresh", "bread"),
    ("Food", "Tins", "beans"),
    ("Other", None, "soap"),
)
#: store, city, region, format, floor space
STORES = (
    ("s1", "Alba", "North", "big", "900"),
    ("s2", "Alba", "North", "small", "80"),
    ("s3", "Brea", "North", "small", "120"),
    ("s4", "Coto", "South", "big", "700"),
    ("s5", "Dena", "South", "kiosk", ""),
)
#: person, boss
STAFF = (("ann", ""), ("bob", "ann"), ("cat", "ann"), ("dan", "bob"), ("eve", "bob"), ("fay", ""))
HEADER = ("year", "quarter", "month", "item", "store", "staff", "units", "amount", "buyer")


def facts(n: int = 240, seed: int = 4) -> list[tuple[object, ...]]:
    """Sales with holes: stores that don't sell some items, nulls, zeros, and nothing in some months."""
    chance = random.Random(seed)
    rows: list[tuple[object, ...]] = []
    for _ in range(n):
        year = chance.choice((2021, 2022))
        month = chance.choice((1, 2, 3, 5, 6, 8, 11) if year == 2021 else (1, 2, 4, 5, 9))
        item = chance.choice(PRODUCTS)[2]
        store = chance.choice(STORES)[0]
        if (item, store) in (("soap", "s1"), ("beans", "s5"), ("coffee", "s3")) or (store, year) == (
            "s5",
            2021,
        ):
            continue
        units = chance.choice(("", 0, *range(1, 9)))
        amount = "" if chance.random() < 0.1 else f"{chance.randint(-200, 5000) / 100:.2f}"
        rows.append(
            (
                year,
                f"Q{(month + 2) // 3}",
                f"{month:02d}",
                item,
                store,
                chance.choice(STAFF)[0],
                units,
                amount,
                chance.choice("abcdefghij"),
            )
        )
    return rows


def _write(place: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    with place.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return str(place)


def _level(name: str, key: str, **more: object) -> LevelDefinition:
    return LevelDefinition(name, {"en": name}, key, {}, None, **more)  # type: ignore[arg-type]


def _tree(name: str, levels: Sequence[LevelDefinition], all_: bool = True, **more: object):
    return HierarchyDefinition(
        name, {"en": name}, {"en": f"All {name}"} if all_ else None, tuple(levels), **more
    )


def shop(folder: Path) -> tuple[CubeDefinition, duckdb.DuckDBPyConnection]:
    """The cube's definition, and its facts joined to all their tables as view ``f`` in a database."""
    sales = _write(folder / "sales.csv", HEADER, facts())
    products = _write(folder / "products.csv", ("category", "family", "item"), PRODUCTS)
    stores = _write(folder / "stores.csv", ("store", "city", "region", "format", "space"), STORES)
    staff = _write(folder / "staff.csv", ("person", "boss"), STAFF)
    day = _tree(
        "Time",
        [_level("Year", "year"), _level("Quarter", "quarter"), _level("Month", "month")],
        all_=False,
        time=True,
    )
    product = _tree(
        "Product", [_level("Category", "category"), _level("Family", "family"), _level("Item", "item")]
    )
    place = _tree(
        "Place",
        [
            _level("Region", "region"),
            _level("City", "city"),
            _level("Store", "store", properties={"space": "space", "format": "format"}),
        ],
    )
    kind = _tree("Format", [_level("Format", "format")])
    people = _tree("Staff", [_level("Person", "person", parent="boss")])

    def measure(name: str, aggregator: str, column: str | None, decimals: int = 0) -> MeasureDefinition:
        form = "#,##0" + ("." + "0" * decimals if decimals else "")
        return MeasureDefinition(name, {"en": name}, aggregator, column, {}, form, decimals, False)

    cube = CubeDefinition(
        "Shop",
        {"en": "Shop"},
        FactsDefinition(sales, None, None, None, None, None, None),
        (
            DimensionDefinition("Time", {"en": "Time"}, (day,)),
            DimensionDefinition("Product", {"en": "Product"}, (product,), products, "item", "item"),
            DimensionDefinition("Store", {"en": "Store"}, (place, kind), stores, "store", "store"),
            DimensionDefinition("Staff", {"en": "Staff"}, (people,), staff, "person", "staff"),
        ),
        (
            measure("Units", "sum", "units"),
            measure("Amount", "sum", "amount", 2),
            measure("Lines", "count", None),
            measure("Buyers", "distinct-count", "buyer"),
            measure("Most", "max", "units"),
            measure("Least", "min", "units"),
            measure("Mean", "avg", "units", 2),
            measure("Middle", "median", "units", 1),
        ),
        (),
        Position("cubes/shop.toml", 1),
    )
    # One thread: rows of a union or a group come in one order, whatever else runs.
    base = duckdb.connect(config={"threads": 1})
    for name, path in (("sales", sales), ("products", products), ("stores", stores)):
        base.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('{path}', header = true)")
    items = [item for _, _, item in PRODUCTS]
    base.execute(
        f"CREATE VIEW f AS SELECT *, list_position({items}, item) AS p "
        "FROM sales JOIN products USING (item) JOIN stores USING (store)"
    )
    return cube, base
