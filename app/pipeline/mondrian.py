"""Import of Mondrian 3 schemas: cubes as definition files, and a list of what they don't take over.

Facts stay where they are: each file reads them from the database by a query. A virtual cube is one query
over the facts of its cubes, one below the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree

from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.numbers import format_decimals
from app.mdx import parse_expression, quote
from app.pipeline.mondrian_roles import NONE, Grants, HierarchyGrant, roles_of
from app.pipeline.relations import Select, quoted, relation_of, sql_child
from app.pipeline.toml_text import comment, pairs

_LARGEST = 20_000_000
#: Elements that are reported and left, and why.
_LEFT = {
    "Role": "the cubes as it sees them come with --role",
    "UserDefinedFunction": "functions of one's own can't be run here",
    "AggName": "aggregate tables aren't needed",
    "AggPattern": "aggregate tables aren't needed",
    "AggExclude": "aggregate tables aren't needed",
    "Closure": "not needed: the tree is walked",
    "Parameter": "parameters belong to sheets here",
    "WritebackTable": "nothing is written back",
    "Action": "there are no actions",
    "DrillThroughAction": "there are no actions",
    "CellFormatter": "only format strings print cells",
    "MemberFormatter": "captions come from columns",
    "PropertyFormatter": "properties come from columns",
    "MemberReaderParameter": "members come from tables",
}
#: Attributes that change nothing here, or are read where they stand.
_KNOWN = frozenset({
    "aggregator", "alias", "approxRowCount", "cache", "caption", "captionColumn", "column", "cubeName",
    "datatype", "defaultMeasure", "defaultMember", "description", "dimension", "enabled", "foreignKey",
    "formatString", "formula", "hasAll", "hierarchy", "allMemberName", "allMemberCaption",
    "allLevelName", "highCardinality", "ignoreUnrelatedDimensions", "internalType", "leftAlias",
    "leftKey", "levelType", "measuresCaption", "metamodelVersion", "name", "nameColumn",
    "nullParentValue", "ordinalColumn", "parentColumn", "primaryKey", "primaryKeyTable", "rightAlias",
    "rightKey", "schema", "source", "table", "type", "uniqueKeyLevelName", "uniqueMembers", "value",
    "visible", "expression", "dialect", "access", "member", "topLevel", "bottomLevel", "rollupPolicy", "cube",
})  # fmt: skip
_AGGREGATORS = ("sum", "count", "min", "max", "avg", "distinct-count", "median")


@dataclass(frozen=True)
class Imported:
    """Definition files by name, and what was left, one line each."""

    files: Mapping[str, str]
    left: tuple[str, ...]


def import_schema(path: Path, url: str, language: str = "en", role: str | None = None) -> Imported:
    """The cubes of a Mondrian 3 schema.

    Parameters
    ----------
    url
        SQLAlchemy URL of the database that the schema is about.
    role
        The schema's role as which the cubes are seen; None: all there is.

    Raises
    ------
    UserError
        When the file is no such schema.
    OperatorError
        When it can't be read.
    """
    return _Schema(_read(path), path.name, url, language, role).convert()


def _read(path: Path) -> etree._Element:
    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path} has more than {_LARGEST:,} bytes.")
        body = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except OSError as error:
        raise OperatorError(f"{path} can't be read: {error.strerror}.") from error
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    entities = Mistake(path.name, 0, 0, "The file declares entities.", "Write them out.")
    if b"<!ENTITY" in body:
        raise UserError(entities)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        line, column = error.position
        raise UserError(Mistake(path.name, line, column, f"This isn't XML: {error.msg}.")) from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise UserError(entities)
    if root.tag != "Schema":
        raise UserError(
            Mistake(path.name, 1, 0, f"A Mondrian 3 schema begins with Schema, this one with {root.tag!s}.")
        )
    return root


@dataclass
class _Cube:
    """A cube while it is put together: TOML blocks, and one query of its facts for each part."""

    name: str
    dimensions: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    parts: list[Select] = field(default_factory=list)
    measures: set[str] = field(default_factory=set)
    #: The measure that counts the facts of the part that is being added.
    count: str = ""


class _Schema:
    def __init__(self, root: etree._Element, file: str, url: str, language: str, role: str | None) -> None:
        self.root = root
        self.file = file
        self.url = url
        self.language = language
        self.left: dict[str, None] = {}
        self.shared = {item.get("name", ""): item for item in root.findall("Dimension")}
        self.cubes = {item.get("name", ""): item for item in root.findall("Cube")}
        self.role = None if role is None else self.find_role(role)
        #: The role, and those that it is a union of.
        self.roles = () if self.role is None else (self.role, *self.united(self.role))
        self.grants = Grants(None if self.role is None else self.united(self.role))
        #: What the role doesn't see of the cube at hand, so that no formula may name it.
        self.unseen: set[str] = set()

    def find_role(self, name: str) -> etree._Element:
        roles = self.all_roles()
        if name not in roles:
            there = f"There is {', '.join(roles)}." if roles else "It has none."
            raise UserError(Mistake(self.file, 0, 0, f"The schema has no role {name}.", there))
        return roles[name]

    def all_roles(self) -> dict[str, etree._Element]:
        return {item.get("name", ""): item for item in self.root.findall("Role")}

    def united(self, role: etree._Element) -> tuple[etree._Element, ...]:
        try:
            return tuple(roles_of(role, self.all_roles()))
        except KeyError as error:
            what = f"Role {role.get('name')} is a union with {error.args[0]}"
            hint = "There is no such role, or it is a union with itself."
            raise UserError(Mistake(self.file, role.sourceline or 0, 0, f"{what}.", hint)) from None

    def leave(self, element: etree._Element, what: str) -> None:
        self.left.setdefault(f"{self.file}:{element.sourceline}: {what}")

    def convert(self) -> Imported:
        self.look_for_the_unknown()
        files: dict[str, str] = {}
        for element in [*self.cubes.values(), *self.root.findall("VirtualCube")]:
            if not self.grants.sees_cube(element.get("name", "")):
                continue
            cube = self.cube(element) if element.tag == "Cube" else self.virtual_cube(element)
            if cube is None:
                continue
            stem = re.sub(r"[^\w-]+", "-", cube.name.lower()).strip("-") or "cube"
            while f"{stem}.toml" in files:
                stem += "-2"
            files[f"{stem}.toml"] = self.text(cube, element)
        if not files:
            raise UserError(Mistake(self.file, 0, 0, "The schema has no cube that can be taken over."))
        return Imported(files, tuple(self.left))

    def look_for_the_unknown(self) -> None:
        for element in self.root.iter(etree.Element):
            tag = str(element.tag)
            if any(above.tag in _LEFT for above in element.iterancestors()):
                continue
            if any(element is role or role in element.iterancestors() for role in self.roles):
                continue
            if tag in _LEFT:
                name = element.get("name") or element.get("table") or ""
                self.leave(element, f"{tag} {name}".strip() + f" is left: {_LEFT[tag]}.")
            if element.get("hideMemberIf", "Never") != "Never":
                what = "members without a key are skipped, those with a blank name aren't"
                self.leave(element, f"hideMemberIf of {tag} {element.get('name', '')}: {what}.")
            for name in element.attrib:
                if str(name) not in _KNOWN and str(name) != "hideMemberIf" and tag not in _LEFT:
                    self.leave(element, f"attribute {name} of {tag} is left.")

    def text(self, cube: _Cube, element: etree._Element) -> str:
        head = [
            f"# From the Mondrian schema {self.file}.",
            *self.annotations(element),
            *pairs(name=cube.name, caption=element.get("caption") or cube.name),
            "",
            "[facts]",
            *pairs(url=self.url, sql=Select.union(cube.parts)),
            '# respondent = "…" # the column that tells who is protected',
        ]
        return "\n".join(["\n".join(head), *cube.dimensions, *cube.blocks]) + "\n"

    @staticmethod
    def annotations(element: etree._Element) -> list[str]:
        found = element.findall("Annotations/Annotation")
        return [line for item in found for line in comment(f"{item.get('name')}: {item.text or ''}")]

    # Cubes

    def cube(self, element: etree._Element) -> _Cube | None:
        cube = _Cube(element.get("name", ""))
        self.unseen = set()
        if not self.add_part(cube, element, None, None):
            return None
        for item in element.findall("CalculatedMember"):
            self.calculated(cube, item)
        for item in [*self.root.findall("NamedSet"), *element.findall("NamedSet")]:
            self.named_set(cube, item)
        return cube

    def virtual_cube(self, element: etree._Element) -> _Cube | None:
        cube = _Cube(element.get("name", ""))
        self.unseen = set()
        wanted: dict[str, list[str]] = {}
        for item in element.findall("VirtualCubeMeasure"):
            name = item.get("name", "").removeprefix("[Measures].").strip("[]")
            wanted.setdefault(item.get("cubeName", ""), []).append(name)
        dimensions = [
            (item.get("cubeName"), item.get("name", "")) for item in element.findall("VirtualCubeDimension")
        ]
        for owner, measures in wanted.items():
            if owner not in self.cubes:
                self.leave(element, f"measures of cube {owner} are left: there is no such cube.")
                continue
            chosen = [name for of, name in dimensions if of in (None, owner)]
            self.add_part(cube, self.cubes[owner], chosen, measures)
            for item in self.cubes[owner].findall("CalculatedMember"):
                if item.get("name") in measures or item.get("dimension", "Measures") != "Measures":
                    self.calculated(cube, item)
        for item in element.findall("CalculatedMember"):
            self.calculated(cube, item)
        for item in [*self.root.findall("NamedSet"), *element.findall("NamedSet")]:
            self.named_set(cube, item)
        if not cube.parts:
            self.leave(element, f"virtual cube {cube.name} is left: it has no measures of known cubes.")
            return None
        return cube

    def add_part(
        self,
        cube: _Cube,
        element: etree._Element,
        dimensions: Sequence[str] | None,
        measures: Sequence[str] | None,
    ) -> bool:
        """Add the facts of a cube, with some of its dimensions and measures (None: all)."""
        relation = relation_of(element)
        if relation is None:
            self.leave(element, f"cube {element.get('name')} is left: it has no table of facts.")
            return False
        part = Select(relation)
        first = not cube.parts
        for usage in [*element.findall("Dimension"), *element.findall("DimensionUsage")]:
            name = usage.get("name") or usage.get("source", "")
            if dimensions is not None and name not in dimensions:
                continue
            if not self.grants.sees_dimension(cube.name, str(name)):
                self.unseen.add(str(name).lower())
                continue
            source: etree._Element | None = usage
            if usage.tag == "DimensionUsage":
                source = self.shared.get(usage.get("source", ""))
            if source is None:
                self.leave(
                    usage, f"dimension {name} is left: there is no shared dimension {usage.get('source')}."
                )
                continue
            if usage.get("level"):
                self.leave(usage, f"dimension {name}: joining at a level above the lowest isn't taken over.")
            block = self.dimension(cube, str(name), source, usage, part)
            is_new = f"\n[[dimension]]\n{pairs(name=name)[0]}\n" not in "".join(cube.dimensions)
            if block is not None and (first or is_new):
                cube.dimensions.append(block)
        cube.count = ""
        chosen = [m for m in element.findall("Measure") if measures is None or m.get("name") in measures]
        # Averages last: they need the count.
        for measure in sorted(chosen, key=lambda item: item.get("aggregator") == "avg"):
            self.measure(cube, measure, part)
        cube.parts.append(part)
        return True

    # Dimensions

    def dimension(
        self, cube: _Cube, name: str, source: etree._Element, usage: etree._Element, facts: Select
    ) -> str | None:
        of_role = {
            item: self.grants.hierarchy(cube.name, name, item.get("name") or name)
            for item in source.findall("Hierarchy")
        }
        hierarchies = [item for item, grant in of_role.items() if grant.access != NONE]
        hidden = [item.get("name") for item, grant in of_role.items() if grant.access == NONE]
        self.unseen |= {f"{name}.{item}".lower() for item in hidden if item}
        table: Select | None = None
        keys: list[str] = []
        for hierarchy in hierarchies:
            relation = relation_of(hierarchy)
            if relation is None or relation == facts.relation:
                continue
            at = hierarchy.get("primaryKeyTable") or relation.alias
            key = f"{quoted(at)}.{quoted(hierarchy.get('primaryKey', ''))}"
            if table is None:
                table, keys = Select(relation), [key]
            elif not table.holds(relation):
                table.join(relation, f"{keys[0]} = {key}")
        lines = [
            "",
            "[[dimension]]",
            *pairs(name=name, caption=usage.get("caption") or source.get("caption")),
        ]
        lines[1:1] = self.annotations(source)
        if table is not None:
            foreign = usage.get("foreignKey") or source.get("foreignKey")
            if not foreign:
                self.leave(usage, f"dimension {name} is left: it has no foreign key.")
                return None
            joined = table.add(keys[0], "key")
            fact = facts.add(f"{quoted(facts.relation.alias)}.{quoted(foreign)}", f"{name} key")
        time = source.get("type") == "TimeDimension"
        body: list[str] = []
        for hierarchy in hierarchies:
            relation = relation_of(hierarchy)
            of_facts = relation is None or relation == facts.relation
            if of_facts and table is not None:
                self.leave(hierarchy, f"a hierarchy of {name} on the facts is left: others have a table.")
                continue
            select = facts if table is None else table
            prefix = f"{name} " if table is None else ""
            alias = facts.relation.alias if relation is None else relation.alias
            grant = of_role[hierarchy]
            body += self.hierarchy(name, hierarchy, select, alias, prefix, time, grant)
            if grant.members:
                self.granted_members(cube, hierarchy.get("name") or name, grant)
        if not body:
            self.leave(source, f"dimension {name} is left: it has no hierarchy.")
            return None
        if table is not None:
            lines += pairs(sql=table.text(), key=joined, fact=fact)
        return "\n".join([*lines, *body])

    def granted_members(self, cube: _Cube, hierarchy: str, grant: HierarchyGrant) -> None:
        """Members of a role as a named set: the facts of others stay in the cube, and in its totals."""
        if self.role is None:
            return
        name = f"{hierarchy} of {self.role.get('name')}"
        what = f"members that role {self.role.get('name')} may see of {hierarchy}"
        if grant.tops:
            self.leave(self.role, f"{what} aren't told: their names begin above the level where it begins.")
            return
        lines = pairs(name=name, formula=grant.set_text())
        cube.blocks.append("\n".join(["", "[[named-set]]", *lines]))
        self.leave(self.role, f"{what} are named set {name}; the cube has the others too.")

    def hierarchy(
        self,
        dimension: str,
        element: etree._Element,
        select: Select,
        alias: str,
        prefix: str,
        time: bool,
        grant: HierarchyGrant,
    ) -> list[str]:
        name = element.get("name") or dimension
        lines = ["[[dimension.hierarchy]]", *self.annotations(element)]
        lines += pairs(name=name, caption=element.get("caption"))
        levels = element.findall("Level")
        names = [level.get("name", "").lower() for level in levels]
        first = min((names.index(top) for top in grant.tops if top in names), default=0)
        last = max((names.index(low) for low in grant.bottoms if low in names), default=len(levels) - 1)
        self.unseen |= {*names[:first], *names[last + 1 :]}
        if element.get("hasAll", "true") == "true" and not grant.tops:
            everything = element.get("allMemberCaption") or element.get("allMemberName") or f"All {name}s"
            lines += pairs(all=everything)
        default = re.findall(r"\[([^\]]*)\]", element.get("defaultMember", ""))
        if default:
            lines += pairs(default=default[-1])
        if time:
            lines.append("time = true")
        for place, level in enumerate(levels[first : last + 1]):
            lines += self.level(level, select, level.get("table") or alias, prefix, place == 0)
        return lines

    def level(
        self, element: etree._Element, select: Select, alias: str, prefix: str, is_top: bool
    ) -> list[str]:
        name = element.get("name", "")

        def column(kind: str, attribute: str, tag: str = "") -> str | None:
            sql = sql_child(element, tag) if tag else None
            if sql is None and element.get(attribute):
                sql = f"{quoted(alias)}.{quoted(element.get(attribute, ''))}"
            return None if sql is None else select.add(sql, f"{prefix}{name}{kind}")

        lines = ["[[dimension.hierarchy.level]]", *self.annotations(element)]
        lines += pairs(
            name=name,
            caption=element.get("caption"),
            key=column("", "column", "KeyExpression"),
            label=column(" caption", "captionColumn", "CaptionExpression")
            or column(" name", "nameColumn", "NameExpression"),
            order=column(" order", "ordinalColumn", "OrdinalExpression"),
            parent=column(" parent", "parentColumn", "ParentExpression"),
        )
        if element.get("parentColumn"):
            lines += pairs(null_parent=element.get("nullParentValue"))
        elif not is_top and element.get("uniqueMembers", "false") != "true":
            lines.append("unique = false")
        properties = element.findall("Property")
        if properties:
            lines.append("[dimension.hierarchy.level.properties]")
            for item in properties:
                sql = f"{quoted(alias)}.{quoted(item.get('column', ''))}"
                lines += pairs(
                    **{item.get("name", ""): select.add(sql, f"{prefix}{name} {item.get('name')}")}
                )
        return lines

    # Measures and formulas

    def measure(self, cube: _Cube, element: etree._Element, facts: Select) -> None:
        name = element.get("name", "")
        if not self.grants.sees_measure(cube.name, name):
            self.unseen.add(name.lower())
            return
        if name in cube.measures:
            self.leave(element, f"measure {name} is left: there is one of that name already.")
            return
        sql = sql_child(element, "MeasureExpression")
        if sql is None and element.get("column"):
            sql = f"{quoted(facts.relation.alias)}.{quoted(element.get('column', ''))}"
        aggregator = element.get("aggregator", "sum").replace("distinct count", "distinct-count")
        if aggregator not in _AGGREGATORS or (sql is None and aggregator != "count"):
            self.leave(element, f"measure {name} is left: aggregator {aggregator} isn't known here.")
            return
        if aggregator == "count" and cube.count:
            self.leave(element, f"measure {name} is left: {cube.count} counts these facts already.")
            return
        cube.measures.add(name)
        form = element.get("formatString") or "#,##0"
        whole = aggregator in ("count", "distinct-count")
        style = pairs(format=form, decimals=0 if whole else format_decimals(form))
        notes, caption = self.annotations(element), element.get("caption")
        if aggregator == "count":
            self.count(cube, name, sql or "1", facts, [*notes, *pairs(caption=caption)], style)
            return
        column = facts.add(sql or "", name)
        if aggregator != "avg":
            head = pairs(name=name, caption=caption, aggregator=aggregator, column=column)
            cube.blocks.append("\n".join(["", "[[measure]]", *notes, *head, *style]))
            return
        head = pairs(name=f"{name} (sum)", aggregator="sum", column=column, decimals=format_decimals(form))
        cube.blocks.append("\n".join(["", "[[measure]]", *head]))
        if not cube.count:
            self.count(cube, f"{name} (count)", sql or "", facts, [], [])
        what = f"it became a sum divided by {cube.count}, which is right where the column has no nulls"
        self.leave(element, f"measure {name} is an average: {what}.")
        formula = f"[Measures].{quote(f'{name} (sum)')} / [Measures].{quote(cube.count)}"
        head = pairs(name=name, caption=caption, formula=formula)
        cube.blocks.append("\n".join(["", "[[calculated]]", *notes, *head, *style]))

    @staticmethod
    def count(
        cube: _Cube, name: str, sql: str, facts: Select, notes: Sequence[str], style: Sequence[str]
    ) -> None:
        """A count of one part's facts: of several, each is a sum of ones, so that rows of others are none."""
        cube.count = name
        aggregator = "count"
        if cube.parts:
            aggregator, sql = "sum", f"case when {sql} is null then null else 1 end"
        lines = pairs(name=name, aggregator=aggregator, column=facts.add(sql, name))
        cube.blocks.append("\n".join(["", "[[measure]]", *notes, *lines, *style]))

    def calculated(self, cube: _Cube, element: etree._Element) -> None:
        name = element.get("name", "")
        properties = {
            item.get("name", ""): item.get("value") or (item.get("expression") or "").strip("'\"")
            for item in element.findall("CalculatedMemberProperty")
        }
        if "MEMBER_ORDINAL" in properties:
            self.leave(element, f"MEMBER_ORDINAL of calculated member {name} is left.")
        formula = self.formula(element, f"calculated member {name}")
        if formula is None:
            return
        owner = element.get("hierarchy") or quote(element.get("dimension", "Measures"))
        if owner.strip("[]") == "Measures" and not self.grants.sees_measure(cube.name, name):
            return
        form = element.get("formatString") or properties.get("FORMAT_STRING")
        lines = pairs(
            on=owner,
            name=name,
            caption=element.get("caption"),
            formula=formula,
            format=form,
            decimals=format_decimals(form),
        )
        order = properties.get("SOLVE_ORDER", "")
        if re.fullmatch(r"-?\d+", order):
            lines.append(f"solve-order = {int(order)}")
        block = "\n".join(["", "[[calculated]]", *self.annotations(element), *lines])
        if block not in cube.blocks:
            cube.blocks.append(block)

    def named_set(self, cube: _Cube, element: etree._Element) -> None:
        formula = self.formula(element, f"named set {element.get('name')}")
        if formula is not None:
            lines = pairs(name=element.get("name"), formula=formula)
            cube.blocks.append("\n".join(["", "[[named-set]]", *self.annotations(element), *lines]))

    def formula(self, element: etree._Element, what: str) -> str | None:
        text = (element.findtext("Formula") or element.get("formula") or "").strip()
        try:
            parse_expression(text)
        except UserError as error:
            self.leave(element, f"{what} is left: {error.mistakes[0].cause}")
            return None
        named = {(quoted or plain).lower() for quoted, plain in re.findall(r"\[([^\]]*)\]|(\w+)", text)}
        if named & self.unseen:
            self.leave(element, f"{what} is left: it names what the role doesn't see.")
            return None
        return text


def write_files(files: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """Write definition files into a folder; none is written when one is there already.

    Raises
    ------
    UserError, OperatorError
    """
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise UserError(f"{folder} has {', '.join(there)} already. Choose another folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
            yield folder / name
    except OSError as error:
        raise OperatorError(f"Can't write into {folder}: {error.strerror}.") from error
