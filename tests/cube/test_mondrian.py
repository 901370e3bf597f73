"""Mondrian 3 schemas become cubes that answer as the schema means."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import duckdb
import pytest

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.cube.sources import read_database
from app.domain.errors import OperatorError, UserError
from app.mdx import parse
from app.pipeline.define_cube import read_cube
from app.pipeline.explore import explore
from app.pipeline.mondrian import import_schema, write_files
from app.pipeline.toml import Mistakes, read_document

TABLES = """
create table sales (store integer, day integer, clerk integer, promo text, units integer, price real);
insert into sales values (1,1,10,'ad',3,2.5),(2,1,11,'ad',4,1.0),(1,2,12,null,5,2.0),(3,2,12,'tv',6,0.5);
create table stock (store integer, day integer, place integer, pieces integer);
insert into stock values (1,1,7,100),(2,2,8,50);
create table store (id integer, name text, city integer, area integer);
insert into store values (1,'One',1,20),(2,'Two',2,30),(3,'Three',2,40);
create table city (id integer, name text, region text, rank integer);
insert into city values (1,'Oslo','North',2),(2,'Rome','South',1);
create table day (id integer, year integer, month integer, week integer);
insert into day values (1,2023,12,52),(2,2024,1,1);
create table clerk (id integer, boss integer, name text);
insert into clerk values (9,0,'Ann'),(10,9,'Bob'),(11,9,'Cy'),(12,10,'Di');
"""

SCHEMA = """<?xml version="1.0"?>
<Schema name="Shop">
  <!-- shared by both cubes -->
  <Dimension name="Store">
    <Hierarchy hasAll="true" allMemberName="All Stores" primaryKey="id" primaryKeyTable="store">
      <Join leftKey="city" rightKey="id"><Table name="store"/><Table name="city"/></Join>
      <Level name="Region" table="city" column="region" uniqueMembers="true"/>
      <Level name="City" table="city" column="id" nameColumn="name" ordinalColumn="rank"
        uniqueMembers="true"/>
      <Level name="Shop" table="store" column="id" nameColumn="name" uniqueMembers="true">
        <Property name="Area" column="area" type="Numeric"/>
      </Level>
    </Hierarchy>
  </Dimension>
  <Dimension name="Time" type="TimeDimension">
    <Hierarchy hasAll="false" primaryKey="id">
      <Table name="day"/>
      <Level name="Year" column="year" type="Numeric" uniqueMembers="true" levelType="TimeYears"/>
      <Level name="Month" column="month" type="Numeric" levelType="TimeMonths"/>
    </Hierarchy>
    <Hierarchy name="Weekly" hasAll="true" primaryKey="id">
      <Table name="day"/>
      <Level name="Week" uniqueMembers="false">
        <KeyExpression><SQL dialect="generic">"day"."year" * 100 + "day"."week"</SQL></KeyExpression>
      </Level>
    </Hierarchy>
  </Dimension>
  <Cube name="Sales" caption="All sales">
    <Annotations><Annotation name="owner">The shop</Annotation></Annotations>
    <Table name="sales"><AggName name="agg_sales"/></Table>
    <DimensionUsage name="Store" source="Store" foreignKey="store"/>
    <DimensionUsage name="Time" source="Time" foreignKey="day"/>
    <Dimension name="Clerk" foreignKey="clerk">
      <Hierarchy hasAll="true" allMemberName="All Clerks" primaryKey="id">
        <Table name="clerk"/>
        <Level name="Person" column="id" nameColumn="name" parentColumn="boss"
          nullParentValue="0" uniqueMembers="true">
          <Closure parentColumn="boss" childColumn="id"><Table name="clerk_closure"/></Closure>
        </Level>
      </Hierarchy>
    </Dimension>
    <Dimension name="Promo" foreignKey="promo">
      <Hierarchy hasAll="true" primaryKey="code">
        <InlineTable alias="promos">
          <ColumnDefs>
            <ColumnDef name="code" type="String"/><ColumnDef name="label" type="String"/>
          </ColumnDefs>
          <Rows>
            <Row><Value column="code">ad</Value><Value column="label">It's: an ad</Value></Row>
            <Row><Value column="code">tv</Value><Value column="label">Television</Value></Row>
          </Rows>
        </InlineTable>
        <Level name="Kind" column="code" nameColumn="label" uniqueMembers="true"/>
      </Hierarchy>
    </Dimension>
    <Dimension name="Slogan">
      <Hierarchy hasAll="true"><Level name="Slogan" column="promo" uniqueMembers="true"/></Hierarchy>
    </Dimension>
    <Measure name="Units" column="units" aggregator="sum" formatString="#,##0"/>
    <Measure name="Lines" column="units" aggregator="count" formatString="0"/>
    <Measure name="Clerks" column="clerk" aggregator="distinct count" formatString="0"/>
    <Measure name="Mean price" column="price" aggregator="avg" formatString="0.00"/>
    <Measure name="Turnover" aggregator="sum" formatString="#,##0.00">
      <MeasureExpression><SQL dialect="mysql">wrong</SQL>
        <SQL dialect="generic">"sales"."units" * "sales"."price"</SQL></MeasureExpression>
    </Measure>
    <CalculatedMember name="Per unit" dimension="Measures">
      <Formula>[Measures].[Turnover] / [Measures].[Units]</Formula>
      <CalculatedMemberProperty name="FORMAT_STRING" value="0.0"/>
      <CalculatedMemberProperty name="SOLVE_ORDER" value="5"/>
    </CalculatedMember>
    <CalculatedMember name="Worth" dimension="Measures" formula="[Measures].[Turnover] * 2">
      <CalculatedMemberProperty name="FORMAT_STRING" expression="'0.00'"/>
      <CalculatedMemberProperty name="SOLVE_ORDER" expression="3"/>
    </CalculatedMember>
    <CalculatedMember name="Loud" dimension="Measures" formula="[Measures].[Turnover] * 3">
      <CalculatedMemberProperty name="FORMAT_STRING" expression="IIF([Measures].[Units] &gt; 5, '0.0', '0')"/>
    </CalculatedMember>
    <CalculatedMember name="Abroad" hierarchy="[Store]" formula="[Store].[All Stores] - [Store].[North]"/>
    <CalculatedMember name="Broken" dimension="Measures" formula="1 +"/>
    <NamedSet name="South shops" formula="Descendants([Store].[South], [Store].[Shop])"/>
  </Cube>
  <Cube name="Stock">
    <View alias="held"><SQL dialect="generic">select * from stock where pieces > 0</SQL></View>
    <DimensionUsage name="Store" source="Store" foreignKey="store"/>
    <DimensionUsage name="Time" source="Time" foreignKey="day"/>
    <Dimension name="Shelf">
      <Hierarchy hasAll="true"><Level name="Shelf" column="place" uniqueMembers="true"/></Hierarchy>
    </Dimension>
    <Measure name="Pieces" column="pieces" aggregator="sum" formatString="#,##0"/>
  </Cube>
  <VirtualCube name="Both">
    <VirtualCubeDimension name="Store"/>
    <VirtualCubeDimension name="Time"/>
    <VirtualCubeDimension cubeName="Stock" name="Shelf"/>
    <VirtualCubeMeasure cubeName="Sales" name="[Measures].[Units]"/>
    <VirtualCubeMeasure cubeName="Sales" name="[Measures].[Lines]"/>
    <VirtualCubeMeasure cubeName="Stock" name="[Measures].[Pieces]"/>
    <CalculatedMember name="Turns" dimension="Measures" formula="[Measures].[Units] / [Measures].[Pieces]"/>
  </VirtualCube>
  <Role name="clerk"><SchemaGrant access="all"/></Role>
  <UserDefinedFunction name="Magic" className="org.example.Magic"/>
</Schema>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.executescript(TABLES)
    (tmp_path / "shop.xml").write_text(SCHEMA)
    return tmp_path


def opened(folder: Path, name: str) -> Server:
    mistakes = Mistakes()
    reader = read_document(folder / "cubes" / name, name, mistakes)
    assert reader is not None, mistakes.found
    cube = read_cube(reader, folder, ("en",))
    assert not mistakes.found
    assert cube is not None
    return open_cube(cube)


def table(server: Server, text: str) -> dict[str, float | None]:
    answer = server.explore(parse(text))
    captions = [" ".join(m.captions["en"] for m in position) for position in answer.axes[0].positions]
    values = answer.values[: answer.n_cells].tolist()
    return {
        caption: None if value != value else value for caption, value in zip(captions, values, strict=True)
    }


def test_cubes_answer_as_the_schema_means(folder: Path) -> None:
    imported = import_schema(folder / "shop.xml", f"sqlite:///{folder / 'shop.db'}")
    written = list(write_files(imported.files, folder / "cubes"))
    assert [path.name for path in written] == ["sales.toml", "stock.toml", "both.toml"]
    text = written[0].read_text()
    assert "# owner: The shop" in text
    _, worth, loud = re.split(r'name = "(?:Worth|Loud)"', text)
    assert 'format = "0.00"' in worth.split("[[")[0]
    assert "solve-order = 3" in worth.split("[[")[0]
    assert "format" not in loud.split("[[")[0]
    sales = opened(folder, "sales.toml")
    year = "WHERE [Time].[2024]"
    measures = "{[Units], [Lines], [Clerks], [Mean price], [Turnover], [Per unit]}"
    assert table(sales, f"SELECT {measures} ON 0 FROM Sales {year}") == {
        "Units": 11, "Lines": 2, "Clerks": 1, "Mean price": 1.25, "Turnover": 13, "Per unit": 13 / 11,
    }  # fmt: skip
    units = "FROM Sales WHERE ([Measures].[Units], [Time].[2023])"
    assert table(sales, f"SELECT [Store].[City].Members ON 0 {units}") == {"Oslo": 3, "Rome": 4}
    assert table(sales, f"SELECT {{[Store].[South].[Rome].[Two], [Abroad]}} ON 0 {units}") == {
        "Two": 4,
        "Abroad": 4,
    }
    assert table(sales, f"SELECT [South shops] ON 0 {units}") == {"Two": 4, "Three": None}
    assert table(sales, f"SELECT [Clerk].[Ann].Children ON 0 {units}") == {"Bob": 3, "Cy": 4}
    assert table(sales, f"SELECT [Promo].[Kind].Members ON 0 {units}")["It's: an ad"] == 7
    assert table(sales, f"SELECT [Slogan].[Slogan].Members ON 0 {units}")["ad"] == 7
    assert table(sales, f"SELECT [Time.Weekly].[Week].Members ON 0 {units}") == {"202352": 7, "202401": None}
    area = 'WITH MEMBER [Measures].[A] AS [Store].CurrentMember.Properties("Area", TYPED)'
    assert table(sales, f"{area} SELECT {{[A]}} ON 0 FROM Sales WHERE [Store].[Shop].[Two]") == {"A": 30}
    sales.close()


def test_facts_may_stand_in_a_duckdb_file(folder: Path) -> None:
    file = folder / "shop.duckdb"
    with duckdb.connect(file) as database:
        database.execute(TABLES)
    list(write_files(import_schema(folder / "shop.xml", f"duckdb:///{file}").files, folder / "cubes"))
    for name in ("sales.toml", "both.toml"):
        cube = opened(folder, name)
        query = f"SELECT {{[Units], [Lines]}} ON 0 FROM {name[:-5]} WHERE ([Time].[2023], [Store].[Oslo])"
        assert table(cube, query) == {"Units": 3, "Lines": 1}
        cube.close()
    sales = opened(folder, "sales.toml")
    units = table(sales, "SELECT [Promo].[Kind].Members ON 0 FROM Sales WHERE [Time].[2023]")
    assert units["It's: an ad"] == 7
    sales.close()


@pytest.mark.parametrize(
    ("url", "sql", "error", "cause"),
    [
        ("none.duckdb", "select 1", OperatorError, "can't be read"),
        ("shop.duckdb", "select * from nothing", UserError, "refuses the query: .*nothing"),
        (
            "shop.duckdb",
            "insert into day values (3, 2025, 1, 1)",
            UserError,
            "refuses the query: .*read-only",
        ),
        ("shop.duckdb", "select * from read_text('{}')", UserError, "refuses the query: .*disabled"),
        ("shop.duckdb", "set enable_external_access = true", UserError, "refuses the query"),
    ],
)
def test_a_duckdb_file_is_read_and_no_other(
    folder: Path, url: str, sql: str, error: type[Exception], cause: str
) -> None:
    with duckdb.connect(folder / "shop.duckdb") as database:
        database.execute(TABLES)
    with pytest.raises(error, match=cause):
        read_database(f"duckdb:///{folder / url}", sql.format(folder / "shop.xml"))


def test_virtual_cubes_hold_the_facts_of_several(folder: Path) -> None:
    imported = import_schema(folder / "shop.xml", f"sqlite:///{folder / 'shop.db'}")
    list(write_files(imported.files, folder / "cubes"))
    both = opened(folder, "both.toml")
    measures = "SELECT {[Units], [Lines], [Pieces], [Turns]} ON 0 FROM Both"
    assert table(both, f"{measures} WHERE ([Time].[2023], [Store].[Oslo])") == {
        "Units": 3, "Lines": 1, "Pieces": 100, "Turns": 0.03,
    }  # fmt: skip
    assert table(both, f"{measures} WHERE ([Time].[2024], [Shelf].[8])") == {
        "Units": None, "Lines": None, "Pieces": 50, "Turns": None,
    }  # fmt: skip
    both.close()


def test_a_virtual_cube_has_what_its_calculated_measures_are_made_of(folder: Path) -> None:
    more = """<VirtualCubeMeasure cubeName="Sales" name="[Measures].[Doubled]"/>
    <VirtualCubeMeasure cubeName="Sales" name="[Measures].[Units]"/>"""
    doubled = '<CalculatedMember name="Doubled" dimension="Measures" formula="2 * [Measures].[Per unit]"/>'
    schema = SCHEMA.replace('<NamedSet name="South', f'{doubled}<NamedSet name="South')
    schema = schema.replace('<VirtualCubeMeasure cubeName="Sales" name="[Measures].[Units]"/>', more, 1)
    (folder / "shop.xml").write_text(schema)
    imported = import_schema(folder / "shop.xml", f"sqlite:///{folder / 'shop.db'}")
    list(write_files(imported.files, folder / "cubes"))
    both = opened(folder, "both.toml")
    assert [measure.name for measure in both.discover().measures] == ["Units", "Lines", "Turnover", "Pieces"]
    found = table(both, "SELECT {[Doubled], [Pieces]} ON 0 FROM Both WHERE [Time].[2024]")
    assert found == {"Doubled": pytest.approx(26 / 11), "Pieces": 50}
    both.close()
    for name, by in (("Per unit", "Doubled"), ("Turnover", "Per unit")):
        assert any(f"measure {name} of cube Sales comes too: {by} needs it" in item for item in imported.left)


@pytest.mark.parametrize(
    ("form", "digits"), [("Standard", "11"), ("|Fixed|style=red", "11"), ("Percent", "1100.00%")]
)
def test_named_formats_print_as_mondrian_prints_them(folder: Path, form: str, digits: str) -> None:
    (folder / "shop.xml").write_text(SCHEMA.replace('formatString="#,##0"', f'formatString="{form}"', 1))
    imported = import_schema(folder / "shop.xml", f"sqlite:///{folder / 'shop.db'}")
    list(write_files(imported.files, folder / "cubes"))
    sales = opened(folder, "sales.toml")
    answer = explore(sales, parse("SELECT [Units] ON 0 FROM Sales WHERE [Time].[2024]"), "en")
    assert answer.texts == (digits,)
    sales.close()


ROLES = """
  <Role name="north">
    <SchemaGrant access="none">
      <CubeGrant cube="Sales" access="all">
        <DimensionGrant dimension="[Promo]" access="none"/>
        <HierarchyGrant hierarchy="[Store]" access="custom" bottomLevel="[Store].[City]">
          <MemberGrant member="[Store].[North]" access="all"/>
          <MemberGrant member="[Store].[South].[Rome]" access="none"/>
        </HierarchyGrant>
        <HierarchyGrant hierarchy="[Time.Weekly]" access="none"/>
        <HierarchyGrant hierarchy="[Measures]" access="custom">
          <MemberGrant member="[Measures].[Units]" access="all"/>
          <MemberGrant member="[Measures].[Lines]" access="all"/>
          <MemberGrant member="[Measures].[Lines]" access="none"/>
          <MemberGrant member="[Measures].[Clerks]" access="all"/>
        </HierarchyGrant>
      </CubeGrant>
    </SchemaGrant>
  </Role>
  <Role name="stock">
    <SchemaGrant access="all"><CubeGrant cube="Sales" access="none"/></SchemaGrant>
  </Role>
  <Role name="part">
    <SchemaGrant access="none">
      <CubeGrant cube="Sales" access="custom"><HierarchyGrant hierarchy="[Clerk]" access="all"/></CubeGrant>
    </SchemaGrant>
  </Role>
  <UserDefinedFunction"""


UNIONS = """
  <Role name="south">
    <SchemaGrant access="none">
      <CubeGrant cube="Sales" access="all">
        <HierarchyGrant hierarchy="[Promo]" access="none"/>
        <HierarchyGrant hierarchy="[Store]" access="custom" bottomLevel="[Store].[Region]">
          <MemberGrant member="[Store].[South]" access="all"/>
        </HierarchyGrant>
        <HierarchyGrant hierarchy="[Measures]" access="custom">
          <MemberGrant member="[Measures].[Turnover]" access="all"/>
        </HierarchyGrant>
      </CubeGrant>
    </SchemaGrant>
  </Role>
  <Role name="both"><Union><RoleUsage roleName="north"/><RoleUsage roleName="south"/></Union></Role>
  <Role name="more"><Union><RoleUsage roleName="both"/><RoleUsage roleName="stock"/></Union></Role>
  <Role name="round"><Union><RoleUsage roleName="round"/></Union></Role>
  <Role name="lost"><Union><RoleUsage roleName="nobody"/></Union></Role>
  <UserDefinedFunction"""


def test_a_union_of_roles_sees_what_any_of_them_does(folder: Path) -> None:
    roles = ROLES.replace("\n  <UserDefinedFunction", UNIONS)
    (folder / "shop.xml").write_text(SCHEMA.replace("\n  <UserDefinedFunction", roles))
    url = f"sqlite:///{folder / 'shop.db'}"
    imported = import_schema(folder / "shop.xml", url, role="both")
    assert list(imported.files) == ["sales.toml"]
    list(write_files(imported.files, folder / "cubes"))
    sales = opened(folder, "sales.toml")
    cube = sales.discover()
    assert [measure.name for measure in cube.measures] == ["Units", "Clerks", "Turnover"]
    # One role sees weeks, the other cities; neither sees Promo.
    trees = {tree.unique_name: tree for tree in cube.hierarchies}
    assert "[Time.Weekly]" in trees
    assert "[Promo]" not in trees
    assert [level.name for level in trees["[Store]"].levels] == ["(All)", "Region", "City"]
    seen = table(sales, "SELECT [Store of both] ON 0 FROM Sales WHERE [Measures].[Units]")
    assert {"North", "Oslo", "South", "Rome"} <= set(seen)
    sales.close()
    files = import_schema(folder / "shop.xml", url, role="more").files
    assert list(files) == ["sales.toml", "stock.toml", "both.toml"]
    for name, other in (("round", "round"), ("lost", "nobody")):
        with pytest.raises(UserError, match=rf"Role {name} is a union with {other}\. There is no such role"):
            import_schema(folder / "shop.xml", url, role=name)


def test_a_role_sees_what_it_is_granted(folder: Path) -> None:
    (folder / "shop.xml").write_text(SCHEMA.replace("\n  <UserDefinedFunction", ROLES))
    url = f"sqlite:///{folder / 'shop.db'}"
    imported = import_schema(folder / "shop.xml", url, role="north")
    assert list(imported.files) == ["sales.toml"]
    list(write_files(imported.files, folder / "cubes"))
    sales = opened(folder, "sales.toml")
    cube = sales.discover()
    assert [measure.name for measure in cube.measures] == ["Units", "Clerks"]
    assert sorted(tree.unique_name for tree in cube.hierarchies) == [
        "[Clerk]",
        "[Slogan]",
        "[Store]",
        "[Time]",
    ]
    assert [level.name for level in cube.hierarchies[cube.hierarchy_index["[Store]"]].levels] == [
        "(All)",
        "Region",
        "City",
    ]
    assert table(sales, "SELECT [Store of north] ON 0 FROM Sales WHERE [Time].[2023]") == {
        "North": 3,
        "Oslo": 3,
    }
    sales.close()
    assert any("named set Store of north" in item for item in imported.left)
    assert list(import_schema(folder / "shop.xml", url, role="stock").files) == ["stock.toml", "both.toml"]
    part = import_schema(folder / "shop.xml", url, role="part")
    (text,) = part.files.values()
    assert 'name = "Clerk"' in text
    assert 'name = "Promo"' not in text
    with pytest.raises(UserError, match=r"no role x\. There is clerk, north, stock, part"):
        import_schema(folder / "shop.xml", url, role="x")


def test_what_is_left_is_told_with_its_line(folder: Path) -> None:
    left = import_schema(folder / "shop.xml", "sqlite:///shop.db").left
    lines = SCHEMA.splitlines()
    for word, said in (
        ("AggName", "agg_sales"),
        ("<Closure", "Closure"),
        ("<Role", "Role clerk"),
        ("<UserDefinedFunction", "Magic"),
        ("Broken", "Broken"),
        ("Mean price", "an average"),
        ("Loud", "FORMAT_STRING of calculated member Loud is left"),
    ):
        number = next(n for n, line in enumerate(lines, 1) if word in line)
        assert any(item.startswith(f"shop.xml:{number}: ") and said in item for item in left), word
    assert len(left) == 7


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("<Schema><Cube>", "shop.xml:1:"),
        ("<Other/>", "begins with Schema"),
        ("<Schema/>", "no cube"),
        ('<!DOCTYPE Schema [<!ENTITY a SYSTEM "file:///etc/passwd">]><Schema name="&a;"/>', "entities"),
        ('<Schema><Cube name="A"/></Schema>', "no cube"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "shop.xml").write_text(text)
    with pytest.raises(UserError) as failure:
        import_schema(tmp_path / "shop.xml", "sqlite:///shop.db")
    assert cause in str(failure.value)


def test_entities_in_another_encoding(tmp_path: Path) -> None:
    text = '<!DOCTYPE Schema [<!ENTITY a "b">]><Schema name="&a;"/>'
    (tmp_path / "shop.xml").write_bytes(text.encode("utf-16"))
    with pytest.raises(UserError, match="entities"):
        import_schema(tmp_path / "shop.xml", "sqlite:///shop.db")


def test_nothing_is_overwritten(folder: Path) -> None:
    imported = import_schema(folder / "shop.xml", "sqlite:///shop.db")
    list(write_files(imported.files, folder / "cubes"))
    with pytest.raises(UserError, match="already"):
        list(write_files(imported.files, folder / "cubes"))
