"""The columns of the rowsets that tell of a cube's structure, and by which of them they may be restricted."""

from __future__ import annotations

from app.web.xmla.rowset import Column, Rowset


def columns(*names: str) -> tuple[Column, ...]:
    """Columns by name; ``NAME:kind`` where it isn't a text."""
    split = (name.partition(":") for name in names)
    return tuple(Column(name, kind or "string") for name, _, kind in split)


_PLACE = ("CATALOG_NAME", "SCHEMA_NAME", "CUBE_NAME")

CATALOGS = Rowset("DBSCHEMA_CATALOGS", columns("CATALOG_NAME", "DESCRIPTION", "ROLES"), ("CATALOG_NAME",))
CUBES = Rowset(
    "MDSCHEMA_CUBES",
    columns(
        *_PLACE,
        "CUBE_TYPE",
        "LAST_SCHEMA_UPDATE:dateTime",
        "LAST_DATA_UPDATE:dateTime",
        "DESCRIPTION",
        "IS_DRILLTHROUGH_ENABLED:boolean",
        "IS_LINKABLE:boolean",
        "IS_WRITE_ENABLED:boolean",
        "IS_SQL_ENABLED:boolean",
        "CUBE_CAPTION",
        "BASE_CUBE_NAME",
        "CUBE_SOURCE:unsignedShort",
    ),
    ("CATALOG_NAME", "SCHEMA_NAME", "CUBE_NAME", "BASE_CUBE_NAME", "CUBE_SOURCE"),
)
DIMENSIONS = Rowset(
    "MDSCHEMA_DIMENSIONS",
    columns(
        *_PLACE,
        "DIMENSION_NAME",
        "DIMENSION_UNIQUE_NAME",
        "DIMENSION_CAPTION",
        "DIMENSION_ORDINAL:unsignedInt",
        "DIMENSION_TYPE:short",
        "DIMENSION_CARDINALITY:unsignedInt",
        "DEFAULT_HIERARCHY",
        "DESCRIPTION",
        "IS_VIRTUAL:boolean",
        "IS_READWRITE:boolean",
        "DIMENSION_UNIQUE_SETTINGS:int",
        "DIMENSION_IS_VISIBLE:boolean",
    ),
    (*_PLACE, "DIMENSION_NAME", "DIMENSION_UNIQUE_NAME", "CUBE_SOURCE", "DIMENSION_VISIBILITY"),
)
HIERARCHIES = Rowset(
    "MDSCHEMA_HIERARCHIES",
    columns(
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "HIERARCHY_CAPTION",
        "DIMENSION_TYPE:short",
        "HIERARCHY_CARDINALITY:unsignedInt",
        "DEFAULT_MEMBER",
        "ALL_MEMBER",
        "DESCRIPTION",
        "STRUCTURE:short",
        "IS_VIRTUAL:boolean",
        "IS_READWRITE:boolean",
        "DIMENSION_UNIQUE_SETTINGS:int",
        "DIMENSION_IS_VISIBLE:boolean",
        "HIERARCHY_ORDINAL:unsignedInt",
        "DIMENSION_IS_SHARED:boolean",
        "HIERARCHY_IS_VISIBLE:boolean",
        "HIERARCHY_ORIGIN:unsignedShort",
        "HIERARCHY_DISPLAY_FOLDER",
        "INSTANCE_SELECTION:unsignedShort",
    ),
    (
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "HIERARCHY_ORIGIN",
        "CUBE_SOURCE",
        "HIERARCHY_VISIBILITY",
    ),
)
LEVELS = Rowset(
    "MDSCHEMA_LEVELS",
    columns(
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_NAME",
        "LEVEL_UNIQUE_NAME",
        "LEVEL_CAPTION",
        "LEVEL_NUMBER:unsignedInt",
        "LEVEL_CARDINALITY:unsignedInt",
        "LEVEL_TYPE:int",
        "DESCRIPTION",
        "CUSTOM_ROLLUP_SETTINGS:int",
        "LEVEL_UNIQUE_SETTINGS:int",
        "LEVEL_IS_VISIBLE:boolean",
        "LEVEL_ORDERING_PROPERTY",
        "LEVEL_DBTYPE:int",
        "LEVEL_KEY_CARDINALITY:unsignedShort",
        "LEVEL_ORIGIN:unsignedShort",
    ),
    (
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_NAME",
        "LEVEL_UNIQUE_NAME",
        "LEVEL_ORIGIN",
        "CUBE_SOURCE",
        "LEVEL_VISIBILITY",
    ),
)
MEASURE_ROWS = Rowset(
    "MDSCHEMA_MEASURES",
    columns(
        *_PLACE,
        "MEASURE_NAME",
        "MEASURE_UNIQUE_NAME",
        "MEASURE_CAPTION",
        "MEASURE_AGGREGATOR:int",
        "DATA_TYPE:unsignedShort",
        "NUMERIC_PRECISION:unsignedShort",
        "NUMERIC_SCALE:short",
        "MEASURE_UNITS",
        "DESCRIPTION",
        "EXPRESSION",
        "MEASURE_IS_VISIBLE:boolean",
        "LEVELS_LIST",
        "MEASURE_NAME_SQL_COLUMN_NAME",
        "MEASURE_UNQUALIFIED_CAPTION",
        "MEASUREGROUP_NAME",
        "MEASURE_DISPLAY_FOLDER",
        "DEFAULT_FORMAT_STRING",
    ),
    (
        *_PLACE,
        "MEASURE_NAME",
        "MEASURE_UNIQUE_NAME",
        "MEASUREGROUP_NAME",
        "CUBE_SOURCE",
        "MEASURE_VISIBILITY",
    ),
)
MEMBERS = Rowset(
    "MDSCHEMA_MEMBERS",
    columns(
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_UNIQUE_NAME",
        "LEVEL_NUMBER:unsignedInt",
        "MEMBER_ORDINAL:unsignedInt",
        "MEMBER_NAME",
        "MEMBER_UNIQUE_NAME",
        "MEMBER_TYPE:int",
        "MEMBER_CAPTION",
        "CHILDREN_CARDINALITY:unsignedInt",
        "PARENT_LEVEL:unsignedInt",
        "PARENT_UNIQUE_NAME",
        "PARENT_COUNT:unsignedInt",
        "EXPRESSION",
        "MEMBER_KEY",
        "IS_PLACEHOLDERMEMBER:boolean",
        "IS_DATAMEMBER:boolean",
    ),
    (
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_UNIQUE_NAME",
        "LEVEL_NUMBER",
        "MEMBER_NAME",
        "MEMBER_UNIQUE_NAME",
        "MEMBER_CAPTION",
        "MEMBER_TYPE",
        "TREE_OP",
        "CUBE_SOURCE",
    ),
)
PROPERTIES = Rowset(
    "MDSCHEMA_PROPERTIES",
    columns(
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_UNIQUE_NAME",
        "MEMBER_UNIQUE_NAME",
        "PROPERTY_TYPE:short",
        "PROPERTY_NAME",
        "PROPERTY_CAPTION",
        "DATA_TYPE:unsignedShort",
        "PROPERTY_CONTENT_TYPE:short",
        "DESCRIPTION",
        "PROPERTY_ORIGIN:unsignedShort",
        "PROPERTY_IS_VISIBLE:boolean",
    ),
    (
        *_PLACE,
        "DIMENSION_UNIQUE_NAME",
        "HIERARCHY_UNIQUE_NAME",
        "LEVEL_UNIQUE_NAME",
        "MEMBER_UNIQUE_NAME",
        "PROPERTY_NAME",
        "PROPERTY_TYPE",
        "PROPERTY_CONTENT_TYPE",
        "PROPERTY_ORIGIN",
        "CUBE_SOURCE",
        "PROPERTY_VISIBILITY",
    ),
)
SETS = Rowset(
    "MDSCHEMA_SETS",
    columns(*_PLACE, "SET_NAME", "SCOPE:int", "DESCRIPTION", "EXPRESSION", "DIMENSIONS", "SET_CAPTION"),
    (*_PLACE, "SET_NAME", "SCOPE", "CUBE_SOURCE"),
)
GROUPS = Rowset(
    "MDSCHEMA_MEASUREGROUPS",
    columns(*_PLACE, "MEASUREGROUP_NAME", "DESCRIPTION", "IS_WRITE_ENABLED:boolean", "MEASUREGROUP_CAPTION"),
    (*_PLACE, "MEASUREGROUP_NAME"),
)
GROUP_DIMENSIONS = Rowset(
    "MDSCHEMA_MEASUREGROUP_DIMENSIONS",
    columns(
        *_PLACE,
        "MEASUREGROUP_NAME",
        "MEASUREGROUP_CARDINALITY",
        "DIMENSION_UNIQUE_NAME",
        "DIMENSION_CARDINALITY",
        "DIMENSION_IS_VISIBLE:boolean",
        "DIMENSION_IS_FACT_DIMENSION:boolean",
    ),
    (*_PLACE, "MEASUREGROUP_NAME", "DIMENSION_UNIQUE_NAME", "DIMENSION_VISIBILITY"),
)
