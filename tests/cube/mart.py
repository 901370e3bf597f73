"""A shopping mart as Mondrian schemas describe them: snowflakes, ragged places, employees with a closure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.pipeline.define_cube import read_cube
from app.pipeline.mondrian import import_schema, write_files
from app.pipeline.toml import Mistakes, read_document

SCHEMA = """<?xml version="1.0"?>
<Schema name="Mart">
  <Dimension name="Time" type="TimeDimension">
    <Hierarchy hasAll="false" primaryKey="id">
      <Table name="day"/>
      <Level name="Year" column="year" type="Numeric" uniqueMembers="true" levelType="TimeYears"/>
      <Level name="Quarter" column="quarter" uniqueMembers="false" levelType="TimeQuarters"/>
      <Level name="Month" column="month" type="Numeric" uniqueMembers="false" levelType="TimeMonths"/>
    </Hierarchy>
    <Hierarchy name="Season" hasAll="true" allMemberName="All Seasons" primaryKey="id">
      <Table name="day"/>
      <Level name="Season" column="season" uniqueMembers="true"/>
    </Hierarchy>
  </Dimension>
  <Dimension name="Store">
    <Hierarchy hasAll="true" allMemberName="All Stores" primaryKey="id">
      <Table name="store"/>
      <Level name="Country" column="country" uniqueMembers="true"/>
      <Level name="State" column="state" uniqueMembers="true" hideMemberIf="IfBlankName"/>
      <Level name="City" column="city" uniqueMembers="false" hideMemberIf="IfParentsName"/>
      <Level name="Shop" column="name" uniqueMembers="true">
        <Property name="Kind" column="kind"/>
        <Property name="Sqft" column="sqft" type="Numeric"/>
      </Level>
    </Hierarchy>
  </Dimension>
  <Dimension name="Product">
    <Hierarchy hasAll="true" allMemberName="All Products" primaryKey="id" primaryKeyTable="product">
      <Join leftKey="class" rightKey="id"><Table name="product"/><Table name="class"/></Join>
      <Level name="Family" table="class" column="family" uniqueMembers="true"/>
      <Level name="Department" table="class" column="department" uniqueMembers="false"/>
      <Level name="Brand" table="product" column="brand" uniqueMembers="false"/>
      <Level name="Product" table="product" column="name" uniqueMembers="true"/>
    </Hierarchy>
  </Dimension>
  <Cube name="Sales" defaultMeasure="Unit Sales">
    <Table name="sales"/>
    <DimensionUsage name="Time" source="Time" foreignKey="day"/>
    <DimensionUsage name="Store" source="Store" foreignKey="store"/>
    <DimensionUsage name="Product" source="Product" foreignKey="product"/>
    <Dimension name="Gender" foreignKey="customer">
      <Hierarchy hasAll="true" allMemberName="All Gender" primaryKey="id">
        <Table name="customer"/>
        <Level name="Gender" column="gender" uniqueMembers="true"/>
      </Hierarchy>
    </Dimension>
    <Measure name="Unit Sales" column="units" aggregator="sum" formatString="Standard"/>
    <Measure name="Store Cost" column="cost" aggregator="sum" formatString="#,##0.00"/>
    <Measure name="Store Sales" column="amount" aggregator="sum" formatString="#,##0.00"/>
    <Measure name="Sales Count" column="units" aggregator="count" formatString="#,##0"/>
    <Measure name="Customer Count" column="customer" aggregator="distinct-count" formatString="#,##0"/>
    <CalculatedMember name="Profit" dimension="Measures">
      <Formula>[Measures].[Store Sales] - [Measures].[Store Cost]</Formula>
      <CalculatedMemberProperty name="FORMAT_STRING" value="$#,##0.00"/>
    </CalculatedMember>
    <CalculatedMember name="Profit last Period" dimension="Measures" visible="false">
      <Formula>COALESCEEMPTY((Measures.[Profit], [Time].PREVMEMBER), Measures.[Profit])</Formula>
    </CalculatedMember>
    <CalculatedMember name="Profit Growth" dimension="Measures" caption="Gewinn">
      <Formula>([Measures].[Profit] - [Measures].[Profit last Period])
        / [Measures].[Profit last Period]</Formula>
      <CalculatedMemberProperty name="FORMAT_STRING" value="0.0%"/>
    </CalculatedMember>
    <NamedSet name="Top Sellers">
      <Formula>TopCount([Product].[Department].MEMBERS, 2, [Measures].[Store Sales])</Formula>
    </NamedSet>
  </Cube>
  <Cube name="HR">
    <Table name="pay"/>
    <DimensionUsage name="Time" source="Time" foreignKey="day"/>
    <Dimension name="Employees" foreignKey="employee">
      <Hierarchy hasAll="true" allMemberName="All Employees" primaryKey="id">
        <Table name="employee"/>
        <Level name="Employee Id" column="id" parentColumn="boss" nameColumn="name" nullParentValue="0"
          type="Numeric" uniqueMembers="true">
          <Closure parentColumn="boss" childColumn="employee"><Table name="closure"/></Closure>
          <Property name="Position" column="position"/>
        </Level>
      </Hierarchy>
    </Dimension>
    <Measure name="Org Salary" column="salary" aggregator="sum" formatString="Currency"/>
    <Measure name="Count" column="employee" aggregator="count" formatString="#,#"/>
    <Measure name="Number of Employees" column="employee" aggregator="distinct-count" formatString="#,#"/>
    <CalculatedMember name="Average Salary" dimension="Measures">
      <Formula>[Measures].[Org Salary] / [Measures].[Number of Employees]</Formula>
    </CalculatedMember>
  </Cube>
</Schema>
"""
STORES = (
    (1, "Canada", "BC", "Vancouver", "Store 19", "Deluxe", 23112),
    (2, "Canada", "BC", "Victoria", "Store 20", "Mid-Size", 34452),
    (3, "Israel", "Israel Region", "Israel Region", "Store 22", "Small", 12000),
    (4, "Israel", "Haifa Region", "Haifa", "Store 21", "Small", None),
    (5, "Vatican", None, "Vatican City", "Store 17", "Kiosk", 900),
    (6, "USA", "CA", "Alameda", "Store 6", "Gourmet", 23688),
    (7, "USA", "CA", "Beverly Hills", "Store 7", "Super", 23598),
    (8, "USA", "WA", "Seattle", "Store 15", "Super", 21215),
    (9, "USA", "WA", "Seattle", "Store 16", "Small", 20000),
)
CLASSES = (
    (1, "Drink", "Dairy"),
    (2, "Drink", "Beverages"),
    (3, "Food", "Dairy"),
    (4, "Food", "Snacks"),
    (5, "Non-Consumable", "Household"),
)
PRODUCTS = (
    (1, 1, "Good", "Good Milk"), (2, 1, "Club", "Club Milk"), (3, 2, "Good", "Good Cola"),
    (4, 3, "Club", "Club Cheese"), (5, 3, "Club", "Club Yogurt"), (6, 4, "Best", "Best Chips"),
    (7, 4, "Good", "Good Nuts"), (8, 5, "Hill", "Hill Candles"), (9, 2, "Best", "Best Tea"),
)  # fmt: skip
STAFF = (
    (1, 0, "Sheri", "President"), (2, 1, "Derrick", "VP"), (3, 1, "Maya", "VP"), (4, 2, "Roberta", "Manager"),
    (5, 2, "Kim", "Manager"), (6, 4, "Walter", "Clerk"), (7, 4, "Beth", "Clerk"),
    (8, 3, "Rebecca", "Manager"), (9, 8, "Pedro", "Clerk"), (10, 0, "Owner", "Owner"),
)  # fmt: skip
MONTHS = {1997: range(1, 13), 1998: range(1, 8)}


def _tables(seed: int = 7) -> dict[str, tuple[str, list[tuple[object, ...]]]]:
    chance = random.Random(seed)
    days = [
        (
            year * 100 + month,
            year,
            f"Q{(month + 2) // 3}",
            month,
            "cold" if month in (1, 2, 3, 10, 11, 12) else "warm",
        )
        for year, months in MONTHS.items()
        for month in months
    ]
    customers = [(n, chance.choice("FM")) for n in range(1, 31)]
    sales: list[tuple[object, ...]] = []
    for _ in range(420):
        day, store, product = chance.choice(days)[0], chance.choice(STORES)[0], chance.choice(PRODUCTS)[0]
        if (store, product) in ((3, 8), (5, 1), (5, 2)) or (store == 5 and day < 199800):
            continue
        units = None if chance.random() < 0.05 else chance.randint(0, 6)
        cents = None if units is None else chance.randint(50, 400) * units
        cost = None if cents is None else cents * 2 // 5
        sales.append(
            (
                *(day, store, product, chance.choice(customers)[0], units),
                *(None if value is None else value / 100 for value in (cost, cents)),
            )
        )
    boss = {number: above for number, above, _, _ in STAFF}
    closure: list[tuple[object, ...]] = []
    for number in boss:
        above, steps = number, 0
        while above:
            closure.append((above, number, steps))
            above, steps = boss[above], steps + 1
    pay: list[tuple[object, ...]] = [
        (day[0], number, chance.randint(10, 90) * 100)
        for day in days
        for number in boss
        if chance.random() < 0.7 and number != 3
    ]
    return {
        "day": ("id int, year int, quarter text, month int, season text", list(days)),
        "store": (
            "id int, country text, state text, city text, name text, kind text, sqft int",
            list(STORES),
        ),
        "class": ("id int, family text, department text", list(CLASSES)),
        "product": ("id int, class int, brand text, name text", list(PRODUCTS)),
        "customer": ("id int, gender text", list(customers)),
        "sales": (
            "day int, store int, product int, customer int, units int, "
            "cost decimal(12,2), amount decimal(12,2)",
            sales,
        ),
        "employee": ("id int, boss int, name text, position text", list(STAFF)),
        "closure": ("boss int, employee int, distance int", closure),
        "pay": ("day int, employee int, salary int", pay),
    }


def _fill(base: duckdb.DuckDBPyConnection) -> None:
    for name, (columns, rows) in _tables().items():
        base.execute(f"CREATE TABLE {name} ({columns})")
        base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def mart(folder: Path) -> Iterator[tuple[dict[str, Server], duckdb.DuckDBPyConnection]]:
    """The cubes by name, and their tables, joined as ``s`` (sales) and ``h`` (pay)."""
    with duckdb.connect(folder / "mart.duckdb") as file:
        _fill(file)
    (folder / "mart.xml").write_text(SCHEMA)
    imported = import_schema(folder / "mart.xml", f"duckdb:///{folder / 'mart.duckdb'}")
    cubes: dict[str, Server] = {}
    for path in write_files(imported.files, folder / "cubes"):
        mistakes = Mistakes()
        reader = read_document(path, path.name, mistakes)
        assert reader is not None, mistakes.found
        definition = read_cube(reader, folder, ("en",))
        assert definition is not None, mistakes.found
        cubes[definition.name] = open_cube(definition)
    # One thread: rows of a union or a group come in one order, whatever else runs.
    base = duckdb.connect(config={"threads": 1})
    _fill(base)
    base.execute(
        "CREATE VIEW s AS SELECT s.*, year, quarter, month, season, country, state, city, t.name AS shop, "
        "kind, sqft, family, department, brand, p.name AS item, gender FROM sales s JOIN day d ON d.id = day "
        "JOIN store t ON t.id = store JOIN product p ON p.id = product JOIN class c ON c.id = class "
        "JOIN customer k ON k.id = customer"
    )
    base.execute(
        "CREATE VIEW h AS SELECT c.boss AS above, e.name, y.*, year, quarter, month FROM pay y "
        "JOIN closure c USING (employee) JOIN employee e ON e.id = c.boss JOIN day d ON d.id = day"
    )
    yield cubes, base
    for cube in cubes.values():
        cube.close()
    base.close()
