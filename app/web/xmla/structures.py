"""Rows that tell of a cube's structure: dimensions, hierarchies, levels, members, measures, properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.domain.catalogue import Catalogue
from app.domain.cube import Cube, Hierarchy, text_in
from app.domain.publication import CalculatedDefinition
from app.web.xmla.rowset import Row

CATALOG = "Celosia"
MEASURES = "[Measures]"
#: Kinds of dimensions, members and levels, as XMLA numbers them.
TIME, MEASURE, OTHER = 1, 2, 3
REGULAR_MEMBER, ALL_MEMBER, MEASURE_MEMBER, FORMULA_MEMBER = 1, 2, 3, 4
_LEVEL_TYPES = {"year": 20, "quarter": 68, "month": 132, "week": 260, "day": 516}
_AGGREGATORS = {"sum": 1, "count": 2, "min": 3, "max": 4, "avg": 5, "distinct-count": 8}
#: Relatives of a member, as MDSCHEMA_MEMBERS asks for them.
CHILDREN, SIBLINGS, PARENT, SELF, DESCENDANTS, ANCESTORS = 1, 2, 4, 8, 16, 32


@dataclass(frozen=True)
class Shop:
    """What rowsets are made from: the catalogue of a release, and the reader's language."""

    catalogue: Catalogue
    language: str

    @property
    def cubes(self) -> Sequence[Cube]:
        return tuple(self.catalogue.cubes.values())

    def text(self, texts: Mapping[str, str]) -> str:
        return text_in(texts, self.language)

    def measures_calculated(self, cube: Cube) -> tuple[CalculatedDefinition, ...]:
        """Calculated measures that the cube offers."""
        found = self.catalogue.calculated.get(cube.name, ())
        return tuple(item for item in found if _plain_name(item.hierarchy) == "measures")

    def members_calculated(self, cube: Cube, tree: Hierarchy) -> tuple[CalculatedDefinition, ...]:
        """Calculated members that the cube offers on a hierarchy."""
        found = self.catalogue.calculated.get(cube.name, ())
        return tuple(item for item in found if _plain_name(item.hierarchy) == _plain_name(tree.unique_name))


def _plain_name(name: str) -> str:
    return name.replace("[", "").replace("]", "").lower()


def quote(name: str) -> str:
    """A name in brackets, as unique names are made of."""
    return f"[{name.replace(']', ']]')}]"


def dimension_name(tree: Hierarchy) -> str:
    return quote(tree.dimension)


def _place(cube: Cube) -> dict[str, object]:
    return {"CATALOG_NAME": CATALOG, "CUBE_NAME": cube.name}


def catalogs(shop: Shop) -> Iterator[Row]:
    yield {"CATALOG_NAME": CATALOG, "DESCRIPTION": shop.text(shop.catalogue.title)}


def tables(shop: Shop) -> Iterator[Row]:
    """Cubes as tables, and their dimensions as tables of the system, for clients that look for these."""
    for cube in shop.cubes:
        caption = shop.text(cube.captions) or cube.name
        yield {
            "TABLE_CATALOG": CATALOG,
            "TABLE_NAME": cube.name,
            "TABLE_TYPE": "TABLE",
            "DESCRIPTION": caption,
        }
        for name in _dimensions_of(cube):
            yield {
                "TABLE_CATALOG": CATALOG,
                "TABLE_SCHEMA": cube.name,
                "TABLE_NAME": f"{cube.name}:{name}",
                "TABLE_TYPE": "SYSTEM TABLE",
                "DESCRIPTION": f"{caption}: {name}",
            }


def metadata(shop: Shop) -> Iterator[Row]:
    """The cubes and their dimensions as Analysis Services tells them: what they are called, no more."""
    moment = shop.catalogue.released.strftime("%Y-%m-%dT%H:%M:%S")
    database: list[tuple[str, object]] = [("Name", CATALOG), ("ID", CATALOG), ("LastUpdate", moment)]
    made: list[tuple[tuple[str, object], ...]] = []
    for cube in shop.cubes:
        trees = tuple((("Name", name), ("ID", name)) for name in _dimensions_of(cube))
        made.append((("Name", cube.name), ("ID", cube.name), ("Dimensions", ((("Dimension", trees),),))))
    database.append(("Cubes", ((("Cube", tuple(made)),),)))
    yield {"METADATA": ((("Database", (tuple(database),)),),)}


def cubes(shop: Shop) -> Iterator[Row]:
    moment = shop.catalogue.released.strftime("%Y-%m-%dT%H:%M:%S")
    for cube in shop.cubes:
        yield {
            **_place(cube),
            "CUBE_TYPE": "CUBE",
            "LAST_SCHEMA_UPDATE": moment,
            "LAST_DATA_UPDATE": moment,
            "DESCRIPTION": shop.text(shop.catalogue.description),
            "IS_DRILLTHROUGH_ENABLED": False,
            "IS_LINKABLE": False,
            "IS_WRITE_ENABLED": False,
            "IS_SQL_ENABLED": False,
            "CUBE_CAPTION": shop.text(cube.captions) or cube.name,
            "CUBE_SOURCE": 1,
        }


def _dimensions_of(cube: Cube) -> dict[str, list[Hierarchy]]:
    found: dict[str, list[Hierarchy]] = {}
    for tree in cube.hierarchies:
        found.setdefault(tree.dimension, []).append(tree)
    return found


def dimensions(shop: Shop) -> Iterator[Row]:
    for cube in shop.cubes:
        plain = {
            "IS_VIRTUAL": False,
            "IS_READWRITE": False,
            "DIMENSION_UNIQUE_SETTINGS": 1,
            "DIMENSION_IS_VISIBLE": True,
        }
        yield {
            **_place(cube),
            "DIMENSION_NAME": "Measures",
            "DIMENSION_UNIQUE_NAME": MEASURES,
            "DIMENSION_CAPTION": "Measures",
            "DIMENSION_ORDINAL": 0,
            "DIMENSION_TYPE": MEASURE,
            "DIMENSION_CARDINALITY": len(cube.measures) + len(shop.measures_calculated(cube)),
            "DEFAULT_HIERARCHY": MEASURES,
            **plain,
        }
        for ordinal, (name, trees) in enumerate(_dimensions_of(cube).items(), 1):
            yield {
                **_place(cube),
                "DIMENSION_NAME": name,
                "DIMENSION_UNIQUE_NAME": quote(name),
                "DIMENSION_CAPTION": shop.text(trees[0].captions) if len(trees) == 1 else name,
                "DIMENSION_ORDINAL": ordinal,
                "DIMENSION_TYPE": TIME if trees[0].time else OTHER,
                "DIMENSION_CARDINALITY": sum(tree.size for tree in trees),
                "DEFAULT_HIERARCHY": trees[0].unique_name,
                **plain,
            }


def hierarchies(shop: Shop) -> Iterator[Row]:
    plain = {
        "IS_VIRTUAL": False,
        "IS_READWRITE": False,
        "DIMENSION_UNIQUE_SETTINGS": 1,
        "DIMENSION_IS_VISIBLE": True,
        "DIMENSION_IS_SHARED": True,
        "HIERARCHY_IS_VISIBLE": True,
        "HIERARCHY_ORIGIN": 1,
        "INSTANCE_SELECTION": 0,
    }
    for cube in shop.cubes:
        yield {
            **_place(cube),
            "DIMENSION_UNIQUE_NAME": MEASURES,
            "HIERARCHY_NAME": "Measures",
            "HIERARCHY_UNIQUE_NAME": MEASURES,
            "HIERARCHY_CAPTION": "Measures",
            "DIMENSION_TYPE": MEASURE,
            "HIERARCHY_CARDINALITY": len(cube.measures) + len(shop.measures_calculated(cube)),
            "DEFAULT_MEMBER": cube.measures[0].unique_name,
            "STRUCTURE": 0,
            "HIERARCHY_ORDINAL": 0,
            **plain,
        }
        for ordinal, tree in enumerate(cube.hierarchies, 1):
            yield {
                **_place(cube),
                "DIMENSION_UNIQUE_NAME": dimension_name(tree),
                "HIERARCHY_NAME": tree.name,
                "HIERARCHY_UNIQUE_NAME": tree.unique_name,
                "HIERARCHY_CAPTION": shop.text(tree.captions) or tree.name,
                "DIMENSION_TYPE": TIME if tree.time else OTHER,
                "HIERARCHY_CARDINALITY": tree.size,
                "DEFAULT_MEMBER": tree.unique_names[tree.default_member],
                "ALL_MEMBER": tree.unique_names[0] if tree.has_all else None,
                "STRUCTURE": 2 if tree.parent_child else 0,
                "HIERARCHY_ORDINAL": ordinal,
                **plain,
            }


def levels(shop: Shop) -> Iterator[Row]:
    plain = {
        "CUSTOM_ROLLUP_SETTINGS": 0,
        "LEVEL_UNIQUE_SETTINGS": 0,
        "LEVEL_IS_VISIBLE": True,
        "LEVEL_DBTYPE": 130,
        "LEVEL_KEY_CARDINALITY": 1,
        "LEVEL_ORIGIN": 1,
    }
    for cube in shop.cubes:
        yield {
            **_place(cube),
            "DIMENSION_UNIQUE_NAME": MEASURES,
            "HIERARCHY_UNIQUE_NAME": MEASURES,
            "LEVEL_NAME": "MeasuresLevel",
            "LEVEL_UNIQUE_NAME": "[Measures].[MeasuresLevel]",
            "LEVEL_CAPTION": "MeasuresLevel",
            "LEVEL_NUMBER": 0,
            "LEVEL_CARDINALITY": len(cube.measures) + len(shop.measures_calculated(cube)),
            "LEVEL_TYPE": 0,
            **plain,
        }
        for tree in cube.hierarchies:
            for depth, level in enumerate(tree.levels):
                kind = 1 if tree.has_all and depth == 0 else 0
                if tree.time:
                    kind = kind or _LEVEL_TYPES.get(level.name.lower(), 4)
                yield {
                    **_place(cube),
                    "DIMENSION_UNIQUE_NAME": dimension_name(tree),
                    "HIERARCHY_UNIQUE_NAME": tree.unique_name,
                    "LEVEL_NAME": level.name,
                    "LEVEL_UNIQUE_NAME": level.unique_name,
                    "LEVEL_CAPTION": shop.text(level.captions) or level.name,
                    "LEVEL_NUMBER": depth,
                    "LEVEL_CARDINALITY": int((tree.depth == depth).sum()),
                    "LEVEL_TYPE": kind,
                    **plain,
                }


def measures(shop: Shop) -> Iterator[Row]:
    plain = {"DATA_TYPE": 5, "MEASURE_IS_VISIBLE": True}
    for cube in shop.cubes:
        for measure in cube.measures:
            caption = shop.text(measure.captions) or measure.name
            yield {
                **_place(cube),
                "MEASURE_NAME": measure.name,
                "MEASURE_UNIQUE_NAME": measure.unique_name,
                "MEASURE_CAPTION": caption,
                "MEASURE_AGGREGATOR": _AGGREGATORS.get(measure.aggregator, 0),
                "NUMERIC_SCALE": measure.decimals,
                "MEASURE_UNITS": shop.text(measure.unit) or None,
                "MEASURE_UNQUALIFIED_CAPTION": caption,
                "MEASUREGROUP_NAME": cube.name,
                "DEFAULT_FORMAT_STRING": measure.format,
                **plain,
            }
        for item in shop.measures_calculated(cube):
            caption = shop.text(item.captions) or item.name
            yield {
                **_place(cube),
                "MEASURE_NAME": item.name,
                "MEASURE_UNIQUE_NAME": f"{MEASURES}.{quote(item.name)}",
                "MEASURE_CAPTION": caption,
                "MEASURE_AGGREGATOR": 127,
                "EXPRESSION": item.formula,
                "MEASURE_UNQUALIFIED_CAPTION": caption,
                "MEASURE_UNITS": shop.text(item.unit) or None,
                "MEASUREGROUP_NAME": cube.name,
                "DEFAULT_FORMAT_STRING": item.format,
                **plain,
            }


def _measure_members(shop: Shop, cube: Cube) -> Iterator[Row]:
    for ordinal, row in enumerate(row for row in measures(shop) if row["CUBE_NAME"] == cube.name):
        yield {
            **_place(cube),
            "DIMENSION_UNIQUE_NAME": MEASURES,
            "HIERARCHY_UNIQUE_NAME": MEASURES,
            "LEVEL_UNIQUE_NAME": "[Measures].[MeasuresLevel]",
            "LEVEL_NUMBER": 0,
            "MEMBER_ORDINAL": ordinal,
            "MEMBER_NAME": row["MEASURE_NAME"],
            "MEMBER_UNIQUE_NAME": row["MEASURE_UNIQUE_NAME"],
            "MEMBER_TYPE": FORMULA_MEMBER if "EXPRESSION" in row else MEASURE_MEMBER,
            "MEMBER_CAPTION": row["MEASURE_CAPTION"],
            "CHILDREN_CARDINALITY": 0,
            "PARENT_LEVEL": 0,
            "PARENT_COUNT": 0,
            "EXPRESSION": row.get("EXPRESSION"),
            "MEMBER_KEY": row["MEASURE_NAME"],
            "IS_PLACEHOLDERMEMBER": False,
            "IS_DATAMEMBER": False,
        }


def _members_of(shop: Shop, cube: Cube, tree: Hierarchy, wanted: Sequence[int]) -> Iterator[Row]:
    place = {
        **_place(cube),
        "DIMENSION_UNIQUE_NAME": dimension_name(tree),
        "HIERARCHY_UNIQUE_NAME": tree.unique_name,
        "IS_PLACEHOLDERMEMBER": False,
        "IS_DATAMEMBER": False,
    }
    for member in wanted:
        above, depth = int(tree.parent[member]), int(tree.depth[member])
        caption = tree.caption(member, shop.language)
        yield {
            **place,
            "LEVEL_UNIQUE_NAME": tree.levels[depth].unique_name,
            "LEVEL_NUMBER": depth,
            "MEMBER_ORDINAL": member,
            "MEMBER_NAME": tree.names[member],
            "MEMBER_UNIQUE_NAME": tree.unique_names[member],
            "MEMBER_TYPE": ALL_MEMBER if tree.has_all and member == 0 else REGULAR_MEMBER,
            "MEMBER_CAPTION": caption,
            "CHILDREN_CARDINALITY": len(tree.child_lists[member]),
            "PARENT_LEVEL": int(tree.depth[above]) if above >= 0 else 0,
            "PARENT_UNIQUE_NAME": tree.unique_names[above] if above >= 0 else None,
            "PARENT_COUNT": int(above >= 0),
            "MEMBER_KEY": tree.keys[member],
        }


def _formula_members(shop: Shop, cube: Cube, tree: Hierarchy) -> Iterator[Row]:
    for ordinal, item in enumerate(shop.members_calculated(cube, tree), tree.size):
        caption = shop.text(item.captions) or item.name
        yield {
            **_place(cube),
            "DIMENSION_UNIQUE_NAME": dimension_name(tree),
            "HIERARCHY_UNIQUE_NAME": tree.unique_name,
            "LEVEL_UNIQUE_NAME": tree.levels[0].unique_name,
            "LEVEL_NUMBER": 0,
            "MEMBER_ORDINAL": ordinal,
            "MEMBER_NAME": item.name,
            "MEMBER_UNIQUE_NAME": f"{tree.unique_name}.{quote(item.name)}",
            "MEMBER_TYPE": FORMULA_MEMBER,
            "MEMBER_CAPTION": caption,
            "CHILDREN_CARDINALITY": 0,
            "PARENT_LEVEL": 0,
            "PARENT_COUNT": 0,
            "EXPRESSION": item.formula,
            "MEMBER_KEY": item.name,
            "IS_PLACEHOLDERMEMBER": False,
            "IS_DATAMEMBER": False,
        }


def members(shop: Shop, member: str = "", relatives: int = SELF) -> Iterator[Row]:
    """Members of all hierarchies; with ``member``, those that stand to it as ``relatives`` says."""
    for cube in shop.cubes:
        if not member:
            yield from _measure_members(shop, cube)
        elif relatives & SELF:
            yield from (row for row in _measure_members(shop, cube) if row["MEMBER_UNIQUE_NAME"] == member)
        for tree in cube.hierarchies:
            if not member:
                yield from _members_of(shop, cube, tree, range(tree.size))
                yield from _formula_members(shop, cube, tree)
                continue
            number = tree.index_of.get(member)
            if number is not None:
                yield from _members_of(shop, cube, tree, _relatives(tree, number, relatives))
            elif relatives & SELF:
                yield from (
                    row for row in _formula_members(shop, cube, tree) if row["MEMBER_UNIQUE_NAME"] == member
                )


def _relatives(tree: Hierarchy, member: int, which: int) -> list[int]:
    found: set[int] = set()
    above = int(tree.parent[member])
    if which & CHILDREN:
        found.update(tree.child_lists[member].tolist())
    if which & SIBLINGS:
        same = (
            tree.child_lists[above].tolist()
            if above >= 0
            else [m for m in range(tree.size) if tree.parent[m] < 0]
        )
        found.update(item for item in same if item != member)
    if which & PARENT and above >= 0:
        found.add(above)
    if which & DESCENDANTS:
        found.update(range(member + 1, int(tree.last_descendant[member]) + 1))
    while which & ANCESTORS and above >= 0:
        found.add(above)
        above = int(tree.parent[above])
    if which & SELF:
        found.add(member)
    return sorted(found)


def properties(shop: Shop) -> Iterator[Row]:
    """Member properties of each level."""
    for cube in shop.cubes:
        for tree in cube.hierarchies:
            for depth, level in enumerate(tree.levels):
                if tree.has_all and depth == 0:
                    continue
                for name in tree.properties:
                    yield {
                        **_place(cube),
                        "DIMENSION_UNIQUE_NAME": dimension_name(tree),
                        "HIERARCHY_UNIQUE_NAME": tree.unique_name,
                        "LEVEL_UNIQUE_NAME": level.unique_name,
                        "PROPERTY_TYPE": 1,
                        "PROPERTY_NAME": name,
                        "PROPERTY_CAPTION": name,
                        "DATA_TYPE": 130,
                        "PROPERTY_CONTENT_TYPE": 0,
                        "PROPERTY_ORIGIN": 1,
                        "PROPERTY_IS_VISIBLE": True,
                    }


def cell_properties(shop: Shop, names: Sequence[str]) -> Iterator[Row]:
    """Properties of cells that Execute can tell: those of PROPERTY_TYPE 2."""
    for cube in shop.cubes:
        for name in names:
            yield {
                **_place(cube),
                "PROPERTY_TYPE": 2,
                "PROPERTY_NAME": name,
                "PROPERTY_CAPTION": name,
                "DATA_TYPE": 130,
                "PROPERTY_CONTENT_TYPE": 0,
                "PROPERTY_IS_VISIBLE": True,
            }


def sets(shop: Shop) -> Iterator[Row]:
    for cube in shop.cubes:
        for named in shop.catalogue.named_sets.get(cube.name, ()):
            yield {
                **_place(cube),
                "SET_NAME": named.name,
                "SCOPE": 1,
                "EXPRESSION": named.formula,
                "SET_CAPTION": named.name,
            }


def groups(shop: Shop) -> Iterator[Row]:
    for cube in shop.cubes:
        yield {
            **_place(cube),
            "MEASUREGROUP_NAME": cube.name,
            "IS_WRITE_ENABLED": False,
            "MEASUREGROUP_CAPTION": shop.text(cube.captions) or cube.name,
        }


def group_dimensions(shop: Shop) -> Iterator[Row]:
    for cube in shop.cubes:
        for name in _dimensions_of(cube):
            yield {
                **_place(cube),
                "MEASUREGROUP_NAME": cube.name,
                "MEASUREGROUP_CARDINALITY": "ONE",
                "DIMENSION_UNIQUE_NAME": quote(name),
                "DIMENSION_CARDINALITY": "MANY",
                "DIMENSION_IS_VISIBLE": True,
                "DIMENSION_IS_FACT_DIMENSION": False,
            }
