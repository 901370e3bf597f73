"""What levels, hierarchies and measures of Mondrian schemas say: names, hidden members, defaults, periods."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cube.server import Server
from app.domain.errors import UserError
from app.mdx import parse
from app.pipeline.mondrian import import_schema, write_files
from tests.cube.test_mondrian import opened, table

TABLES = """
create table sale (day integer, place integer, goods text, units integer, rebate real);
insert into sale values
  (1,1,'a',1,0.5),(2,2,'a',2,null),(3,3,'b',4,1.5),(4,4,'b',8,null),(5,5,null,16,null),(6,1,'c',32,4.0);
create table plan (quarter integer, goods text, amount integer);
insert into plan values (20221,'a',100),(20222,'b',200),(20231,'b',400);
create table place (id integer, country text, state text, city text);
insert into place values (1,'Israel','','Haifa'),(2,'Israel',null,'Eilat'),(3,'Vatican','Vatican','Vatican'),
  (4,'Spain','Catalonia','Reus'),(5,'Spain','Catalonia','Lleida');
create table day (id integer, ejercicio integer, trimestre text, quarter integer);
insert into day values (1,2022,'T1',20221),(2,2022,'T2',20222),(3,2022,'T2',20222),(4,2023,'T1',20231),
  (5,2023,'T2',20232),(6,2023,'T2',20232);
create table goods (code text, name text, caption text, kind text, rank integer, grams integer);
insert into goods values ('a','Apple','Poma','Food',2,100),('b','Bread','Pa','Food',1,250),
  ('c','Cup','Tassa','Home',3,90);
"""

SCHEMA = """<Schema name="Shop">
  <Dimension name="Tiempo" type="TimeDimension">
    <Hierarchy hasAll="false" primaryKey="id" defaultMember="[Tiempo].[2023].[T2]">
      <Table name="day"/>
      <Level name="Ejercicio fiscal" column="ejercicio" type="Numeric" uniqueMembers="true"
        levelType="TimeYears"/>
      <Level name="Trim" column="trimestre" uniqueMembers="false" levelType="TimeQuarters"/>
    </Hierarchy>
    <Hierarchy name="Quarters" hasAll="true" primaryKey="id">
      <Table name="day"/>
      <Level name="Quarter" column="quarter" type="Numeric" uniqueMembers="true"
        levelType="TimeQuarters"/>
    </Hierarchy>
  </Dimension>
  <Dimension name="Goods">
    <Hierarchy hasAll="true" allMemberName="Everything" allMemberCaption="Tot" primaryKey="code">
      <Table name="goods"/>
      <Level name="Kind" column="kind" uniqueMembers="true"/>
      <Level name="Goods" column="code" nameColumn="name" captionColumn="caption" ordinalColumn="rank"
        uniqueMembers="true">
        <Property name="Grams" column="grams" type="Numeric"/>
      </Level>
    </Hierarchy>
  </Dimension>
  <Cube name="Sales" defaultMeasure="Units">
    <Table name="sale"/>
    <DimensionUsage name="Tiempo" source="Tiempo" foreignKey="day"/>
    <DimensionUsage name="Goods" source="Goods" foreignKey="goods"/>
    <Dimension name="Place" foreignKey="place">
      <Hierarchy hasAll="true" primaryKey="id">
        <Table name="place"/>
        <Level name="Country" column="country" uniqueMembers="true"/>
        <Level name="State" column="state" hideMemberIf="IfBlankName"/>
        <Level name="City" column="city" hideMemberIf="IfParentsName"/>
      </Hierarchy>
    </Dimension>
    <Measure name="Rebate" column="rebate" aggregator="avg" formatString="0.00"/>
    <Measure name="Lines" column="units" aggregator="count"/>
    <Measure name="Units" column="units" aggregator="sum" formatString="|#,##0|style=red"/>
    <CalculatedMember name="Coast" dimension="Place" parent="[Place].[Spain]" formula="[Place].[Reus] / 2"/>
  </Cube>
  <Cube name="Plans">
    <Table name="plan"/>
    <DimensionUsage name="Tiempo" source="Tiempo" level="Quarter" foreignKey="quarter"/>
    <DimensionUsage name="Goods" source="Goods" foreignKey="goods"/>
    <Measure name="Amount" column="amount" aggregator="sum"/>
  </Cube>
  <Cube name="Off" enabled="false">
    <Table name="sale"/><Measure name="N" column="units" aggregator="sum"/>
  </Cube>
  <VirtualCube name="Both" defaultMeasure="Amount">
    <CubeUsages><CubeUsage cubeName="Sales" ignoreUnrelatedDimensions="true"/></CubeUsages>
    <VirtualCubeDimension name="Goods"/>
    <VirtualCubeDimension cubeName="Sales" name="Place"/>
    <VirtualCubeMeasure cubeName="Sales" name="[Measures].[Units]"/>
    <VirtualCubeMeasure cubeName="Plans" name="[Measures].[Amount]"/>
  </VirtualCube>
</Schema>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    with sqlite3.connect(place / "shop.db") as database:
        database.executescript(TABLES)
    (place / "shop.xml").write_text(SCHEMA)
    imported = import_schema(place / "shop.xml", f"sqlite:///{place / 'shop.db'}")
    names = [path.name for path in write_files(imported.files, place / "cubes")]
    assert names == ["sales.toml", "plans.toml", "both.toml"]
    told = "\n".join(imported.left)
    assert "ignoreUnrelatedDimensions is left" in told
    assert "hierarchy Tiempo is left: it has no level Quarter to join at" in told
    assert "Rebate is an average" in told
    assert "hideMemberIf" not in told
    return place


@pytest.fixture(scope="module")
def sales(folder: Path) -> Iterator[Server]:
    server = opened(folder, "sales.toml")
    yield server
    server.close()


EVER = "ON 0 FROM Sales WHERE {[Tiempo].[2022], [Tiempo].[2023]}"
NOW = "ON 0 FROM Sales"
GOODS = "[Goods].[Goods].Members, [Goods].CurrentMember"


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        # Names are what queries say, captions what is shown; keys are after an ampersand.
        ("{[Goods].[Food].[Apple], [Goods].&[c], [Goods].[Everything]}", EVER, "Poma 3, Tassa 32, Tot 63"),
        ("{[Goods].[Tot], [Goods].[All], [Goods].[Goods].[Pa]}", EVER, "Tot 63, Tot 63, Pa 12"),
        ("[Goods].[Food].Children", EVER, "Pa 12, Poma 3"),
        (f'Filter({GOODS}.Name = "Cup")', EVER, "Tassa 32"),
        (f'Filter({GOODS}.Caption = "Pa")', EVER, "Pa 12"),
        (f'Filter({GOODS}.Properties("Grams") > 95)', EVER, "Pa 12, Poma 3"),
        # Members whose name is blank, or their parent's, are none.
        ("[Place].[Israel].Children", EVER, "Eilat 2, Haifa 33"),
        ("[Place].[State].Members", EVER, "Catalonia 24, Vatican 4"),
        ("[Place].[City].Members", EVER, "Eilat 2, Haifa 33, Lleida 16, Reus 8"),
        ("{[Place].[Haifa].Parent, [Place].[Vatican].FirstChild}", EVER, "Israel 35, Vatican 4"),
        ("AddCalculatedMembers([Place].[Spain].Children)", EVER, "Catalonia 24, Coast 4"),
        # Periods are known by what the schema says of levels, whatever they are called.
        ("Ytd([Tiempo].[2022].[T2])", NOW, "T1 1, T2 6"),
        ("Qtd([Tiempo].[2022].[T2])", NOW, "T2 6"),
        ("Ytd()", NOW, "T1 8, T2 48"),
        ("{[Tiempo].DefaultMember, ParallelPeriod([Tiempo].[Ejercicio fiscal])}", NOW, "T2 48, T2 6"),
        ("{[Measures].DefaultMember, [Rebate]}", NOW, "Units 48, Rebate 4"),
        ("{[Rebate], [Lines]}", EVER, "Rebate 2, Lines 6"),
    ],
)
def test_schema(sales: Server, text: str, where: str, expected: str) -> None:
    answer = sales.explore(parse(f"SELECT {text} {where}"))
    captions = [position[0].captions["en"] for position in answer.axes[0].positions]
    found = zip(captions, answer.values[: answer.n_cells].tolist(), strict=True)
    assert ", ".join(f"{caption} {value:g}" for caption, value in found) == expected


def test_facts_are_joined_at_the_level_that_is_said(folder: Path) -> None:
    plans = opened(folder, "plans.toml")
    months = "SELECT [Tiempo.Quarters].[Quarter].Members ON 0 FROM Plans"
    assert table(plans, months) == {"20221": 100, "20222": 200, "20231": 400, "20232": None}
    plans.close()


def test_facts_of_other_cubes_are_in_totals_and_in_no_member(folder: Path) -> None:
    both = opened(folder, "both.toml")
    assert table(both, "SELECT [Place].[Country].Members ON 0 FROM Both WHERE [Amount]") == {
        "Israel": None, "Spain": None, "Vatican": None,
    }  # fmt: skip
    assert table(both, "SELECT {[Place].[All], [Place].[All].Children} ON 0 FROM Both") == {
        "All Places": 700, "Israel": None, "Spain": None, "Vatican": None,
    }  # fmt: skip
    assert table(both, "SELECT {[Place].[All], [Place].[Spain]} ON 0 FROM Both WHERE [Units]") == {
        "All Places": 63, "Spain": 24,
    }  # fmt: skip
    both.close()


@pytest.mark.parametrize("default", ["[Tiempo].[2024]", "[Tiempo].[2022].[T4]", "T9"])
def test_a_default_member_that_isnt_there_is_told(folder: Path, default: str, tmp_path: Path) -> None:
    text = (folder / "cubes" / "sales.toml").read_text().replace("[Tiempo].[2023].[T2]", default)
    (tmp_path / "cubes").mkdir()
    (tmp_path / "cubes" / "sales.toml").write_text(text)
    with pytest.raises(UserError, match="Hierarchy Tiempo has no member"):
        opened(tmp_path, "sales.toml")
