"""Discover: which rowset a client wants, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from app.domain.catalogue import Catalogue
from app.web.xmla import columns as shape
from app.web.xmla import structures
from app.web.xmla.columns import columns
from app.web.xmla.rowset import CONTENTS, Column, Row, Rowset, rowset_xml
from app.web.xmla.soap import NUMBER, Request, client_fault
from app.web.xmla.structures import CATALOG, Shop

DATA_SOURCE = "Celosia"
PROVIDER = "Celosia"
#: Windows' numbers of languages, without their region.
_LANGUAGES = {9: "en", 10: "es", 3: "ca", 12: "fr", 7: "de", 22: "pt", 16: "it", 86: "gl", 45: "eu"}
LCIDS = {"en": 1033, "es": 3082, "ca": 1027}
#: Restrictions that say which objects are visible or where they come from: everything here is.
_ANYTHING = frozenset(
    {
        "CUBE_SOURCE",
        "DIMENSION_VISIBILITY",
        "HIERARCHY_VISIBILITY",
        "LEVEL_VISIBILITY",
        "MEASURE_VISIBILITY",
        "PROPERTY_VISIBILITY",
        "TREE_OP",
        "SCHEMA_NAME",
        "BASE_CUBE_NAME",
        "HIERARCHY_ORIGIN",
        "LEVEL_ORIGIN",
        "PROPERTY_ORIGIN",
        "SCOPE",
        "OBJECTEXPANSION",
        "DATABASEID",
        "CUBEID",
    }
)
CELL_PROPERTIES = (
    "VALUE",
    "FORMATTED_VALUE",
    "FORMAT_STRING",
    "CELL_ORDINAL",
    "LANGUAGE",
    "FORE_COLOR",
    "BACK_COLOR",
    "FONT_NAME",
    "FONT_SIZE",
    "FONT_FLAGS",
    "UPDATEABLE",
    "ACTION_TYPE",
    "SOLVE_ORDER",
)

_PROPERTIES: tuple[tuple[str, str, str, str], ...] = (
    # name, type, access, value
    ("AxisFormat", "string", "ReadWrite", "TupleFormat"),
    ("BeginRange", "int", "ReadWrite", "-1"),
    ("Catalog", "string", "ReadWrite", CATALOG),
    ("Content", "string", "ReadWrite", "SchemaData"),
    ("Cube", "string", "ReadWrite", ""),
    ("DataSourceInfo", "string", "ReadWrite", DATA_SOURCE),
    ("DbpropMsmdSubqueries", "int", "ReadWrite", "1"),
    ("EndRange", "int", "ReadWrite", "-1"),
    ("Format", "string", "ReadWrite", "Multidimensional"),
    ("LocaleIdentifier", "unsignedInt", "ReadWrite", ""),
    ("MDXSupport", "string", "Read", "Core"),
    ("MdpropMdxSubqueries", "int", "Read", "1"),
    ("MdpropMdxDrillFunctions", "int", "Read", "7"),
    ("MdpropMdxNamedSets", "int", "Read", "15"),
    ("Password", "string", "Write", ""),
    ("ProviderName", "string", "Read", PROVIDER),
    ("ProviderType", "string", "Read", "MDP"),
    ("ProviderVersion", "string", "Read", "1.1"),
    ("DBMSVersion", "string", "Read", "1.1"),
    ("ServerName", "string", "Read", PROVIDER),
    ("StateSupport", "string", "Read", "Sessions"),
    ("Timeout", "unsignedInt", "ReadWrite", "0"),
    ("UserName", "string", "Read", ""),
)
_LITERALS = (
    ("DBLITERAL_CATALOG_NAME", "", ".", "0123456789", 24),
    ("DBLITERAL_CATALOG_SEPARATOR", ".", "", "", 0),
    ("DBLITERAL_COLUMN_ALIAS", "", "'\"[]", "0123456789", -1),
    ("DBLITERAL_COLUMN_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_CORRELATION_NAME", "", "'\"[]", "0123456789", -1),
    ("DBLITERAL_CUBE_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_DIMENSION_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_HIERARCHY_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_LEVEL_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_MEMBER_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_PROPERTY_NAME", "", ".", "0123456789", -1),
    ("DBLITERAL_QUOTE_PREFIX", "[", "", "", -1),
    ("DBLITERAL_QUOTE_SUFFIX", "]", "", "", -1),
)
_KEYWORDS = """
    ADDCALCULATEDMEMBERS AGGREGATE ALLMEMBERS ANCESTOR AND AS ASC AVG AXIS BASC BDESC BY CAPTION CASE CELL
    CHILDREN COLUMNS COUNT CROSSJOIN CURRENTMEMBER DEFAULTMEMBER DESC DESCENDANTS DIMENSION DISTINCT
    DRILLDOWNLEVEL DRILLDOWNMEMBER ELSE EMPTY END EXCEPT EXTRACT FILTER FIRSTCHILD FROM GENERATE HEAD
    HIERARCHIZE HIERARCHY IIF IN INTERSECT IS ISEMPTY LAG LEAD LEVEL LEVELS MAX MEASURE MEMBER MEMBERS MIN
    NEXTMEMBER NON NOT NULL ON OR ORDER PAGES PARENT PROPERTIES ROWS SELECT SET SUM TAIL THEN TOPCOUNT UNION
    WHEN WHERE WITH XOR YTD
"""
_ENUMERATIONS = (
    ("Content", "The parts of an answer", ("None", "Schema", "Data", "SchemaData")),
    ("Format", "The form of an answer", ("Tabular", "Multidimensional")),
    ("AxisFormat", "The form of an axis", ("TupleFormat",)),
)


def _datasources(shop: Shop) -> Iterator[Row]:
    yield {
        "DataSourceName": DATA_SOURCE,
        "DataSourceDescription": shop.text(shop.catalogue.title),
        "URL": None,
        "DataSourceInfo": DATA_SOURCE,
        "ProviderName": PROVIDER,
        "ProviderType": "MDP",
        "AuthenticationMode": "Unauthenticated",
    }


def _properties(shop: Shop) -> Iterator[Row]:
    for name, kind, access, value in _PROPERTIES:
        told = str(LCIDS.get(shop.language, 1033)) if name == "LocaleIdentifier" else value
        yield {
            "PropertyName": name,
            "PropertyDescription": name,
            "PropertyType": kind,
            "PropertyAccessType": access,
            "IsRequired": False,
            "Value": told,
        }


def _literals(shop: Shop) -> Iterator[Row]:
    for name, value, invalid, start, most in _LITERALS:
        yield {
            "LiteralName": name,
            "LiteralValue": value or None,
            "LiteralInvalidChars": invalid or None,
            "LiteralInvalidStartingChars": start or None,
            "LiteralMaxLength": most,
        }


def _keywords(shop: Shop) -> Iterator[Row]:
    return ({"Keyword": word} for word in _KEYWORDS.split())


def _enumerators(shop: Shop) -> Iterator[Row]:
    for name, description, elements in _ENUMERATIONS:
        for place, element in enumerate(elements):
            yield {
                "EnumName": name,
                "EnumDescription": description,
                "EnumType": "string",
                "ElementName": element,
                "ElementDescription": element,
                "ElementValue": str(place),
            }


def _nothing(shop: Shop) -> Iterator[Row]:
    return iter(())


def _schema_rowsets(shop: Shop) -> Iterator[Row]:
    for rowset, _ in ROWSETS.values():
        yield {
            "SchemaName": rowset.name,
            # Each restriction is an element of its own.
            "Restrictions": tuple((("Name", name), ("Type", "xsd:string")) for name in rowset.restrictions)
            or None,
            "Description": rowset.description or rowset.name,
        }


Make = Callable[[Shop], Iterable[Row]]
_ALL: tuple[tuple[Rowset, Make], ...] = (
    (
        Rowset(
            "DISCOVER_DATASOURCES",
            columns(
                "DataSourceName",
                "DataSourceDescription",
                "URL",
                "DataSourceInfo",
                "ProviderName",
                "ProviderType",
                "AuthenticationMode",
            ),
            ("DataSourceName", "URL", "ProviderName", "ProviderType", "AuthenticationMode"),
        ),
        _datasources,
    ),
    (
        Rowset(
            "DISCOVER_PROPERTIES",
            columns(
                "PropertyName",
                "PropertyDescription",
                "PropertyType",
                "PropertyAccessType",
                "IsRequired:boolean",
                "Value",
            ),
            ("PropertyName",),
        ),
        _properties,
    ),
    (
        Rowset(
            "DISCOVER_SCHEMA_ROWSETS",
            (Column("SchemaName"), Column("Restrictions", "restrictions"), Column("Description")),
            ("SchemaName",),
        ),
        _schema_rowsets,
    ),
    (
        Rowset(
            "DISCOVER_ENUMERATORS",
            columns(
                "EnumName", "EnumDescription", "EnumType", "ElementName", "ElementDescription", "ElementValue"
            ),
            ("EnumName",),
        ),
        _enumerators,
    ),
    (Rowset("DISCOVER_KEYWORDS", columns("Keyword"), ("Keyword",)), _keywords),
    (
        Rowset(
            "DISCOVER_LITERALS",
            columns(
                "LiteralName",
                "LiteralValue",
                "LiteralInvalidChars",
                "LiteralInvalidStartingChars",
                "LiteralMaxLength:int",
            ),
            ("LiteralName",),
        ),
        _literals,
    ),
    (
        Rowset(
            "DISCOVER_XML_METADATA",
            (Column("METADATA", "xml"),),
            ("ObjectExpansion", "DatabaseID", "CubeID"),
        ),
        structures.metadata,
    ),
    (
        Rowset(
            "DBSCHEMA_TABLES",
            columns("TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "DESCRIPTION"),
            ("TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE"),
        ),
        structures.tables,
    ),
    (shape.CATALOGS, structures.catalogs),
    (shape.CUBES, structures.cubes),
    (shape.DIMENSIONS, structures.dimensions),
    (shape.HIERARCHIES, structures.hierarchies),
    (shape.LEVELS, structures.levels),
    (shape.MEASURE_ROWS, structures.measures),
    (shape.MEMBERS, structures.members),
    (shape.PROPERTIES, structures.properties),
    (shape.SETS, structures.sets),
    (shape.GROUPS, structures.groups),
    (shape.GROUP_DIMENSIONS, structures.group_dimensions),
    (
        Rowset(
            "MDSCHEMA_ACTIONS",
            columns("CATALOG_NAME", "CUBE_NAME", "ACTION_NAME"),
            (
                *("CATALOG_NAME", "SCHEMA_NAME", "CUBE_NAME", "ACTION_NAME", "ACTION_TYPE", "COORDINATE"),
                *("COORDINATE_TYPE", "INVOCATION", "CUBE_SOURCE"),
            ),
        ),
        _nothing,
    ),
    (
        Rowset(
            "MDSCHEMA_KPIS",
            columns("CATALOG_NAME", "CUBE_NAME", "KPI_NAME"),
            ("CATALOG_NAME", "SCHEMA_NAME", "CUBE_NAME", "KPI_NAME", "CUBE_SOURCE"),
        ),
        _nothing,
    ),
    (
        Rowset(
            "MDSCHEMA_FUNCTIONS",
            columns("FUNCTION_NAME", "DESCRIPTION"),
            ("LIBRARY_NAME", "INTERFACE_NAME", "FUNCTION_NAME", "ORIGIN"),
        ),
        _nothing,
    ),
)
ROWSETS: Mapping[str, tuple[Rowset, Make]] = {rowset.name: (rowset, make) for rowset, make in _ALL}


def discover(request: Request, catalogue: Catalogue, language: str) -> str:
    """The rowset that a request asks for, as XML.

    Raises
    ------
    FaultError
        When there is none of this name, or it can't be restricted so.
    """
    if not request.request_type:
        raise client_fault("Discover has no RequestType.")
    if request.request_type not in ROWSETS:
        raise client_fault(f"There is no rowset {request.request_type[:80]} here.")
    rowset, make = ROWSETS[request.request_type]
    known = {name.upper(): name for name in rowset.restrictions}
    unknown = sorted(request.restrictions.keys() - known.keys())
    if unknown:
        raise client_fault(f"{rowset.name} can't be restricted by {unknown[0][:80]}.")
    shop = Shop(catalogue, language)
    rows = _rows(rowset, make, request, shop)
    given = request.properties.get("catalog") if rowset.name.startswith("MDSCHEMA_") else None
    if given and given != CATALOG:
        rows = iter(())
    return rowset_xml(rowset.columns, rows, content_of(request))


def _rows(rowset: Rowset, make: Make, request: Request, shop: Shop) -> Iterable[Row]:
    wanted = {
        name: {value.lower() for value in values}
        for name, values in request.restrictions.items()
        if name not in _ANYTHING and any(values)
    }
    if rowset is shape.MEMBERS and "MEMBER_UNIQUE_NAME" in wanted:
        relatives = request.restrictions.get("TREE_OP", ("8",))[0] or "8"
        if not NUMBER.fullmatch(relatives):
            raise client_fault("TREE_OP is a number.")
        del wanted["MEMBER_UNIQUE_NAME"]
        member = request.restrictions["MEMBER_UNIQUE_NAME"][0]
        made: Iterable[Row] = structures.members(shop, member, int(relatives))
        # The levels restrict where the member stands, not where its relatives do.
        wanted.pop("LEVEL_UNIQUE_NAME", None)
        wanted.pop("LEVEL_NUMBER", None)
    elif rowset is shape.PROPERTIES and wanted.get("PROPERTY_TYPE") == {"2"}:
        made = structures.cell_properties(shop, CELL_PROPERTIES)
    else:
        made = make(shop)
    known = {column.name.upper(): column.name for column in rowset.columns}
    tests = [(known[name], values) for name, values in wanted.items() if name in known]
    return (row for row in made if all(_matches(row.get(name), values) for name, values in tests))


def _matches(value: object, wanted: set[str]) -> bool:
    return value is not None and str(value).lower() in wanted


def content_of(request: Request) -> str:
    """What of the answer a client wants.

    Raises
    ------
    FaultError
    """
    content = request.properties.get("content") or "SchemaData"
    known = {name.lower(): name for name in CONTENTS}
    if content.lower() not in known:
        raise client_fault(f"Content is one of {', '.join(CONTENTS)}.")
    return known[content.lower()]


def language_of(request: Request) -> str | None:
    """The language of a request's LocaleIdentifier, if it says one."""
    given = request.properties.get("localeidentifier", "")
    return _LANGUAGES.get(int(given) & 0x3FF) if NUMBER.fullmatch(given) else None
