"""Import of Mondrian 3 schemas: cubes as definition files, and a list of what they don't take over.

Facts stay where they are: each file reads them from the database by a query. A virtual cube is one query
over the facts of its cubes, one below the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from app.domain.errors import Mistake, OperatorError, UserError
from app.pipeline.mondrian_dimensions import add_dimension
from app.pipeline.mondrian_draft import Draft, Notes, remarks
from app.pipeline.mondrian_measures import add_calculated, add_measures, add_named_set, needed_measures
from app.pipeline.mondrian_roles import Grants, roles_of
from app.pipeline.relations import Select, relation_of
from app.pipeline.toml_text import pairs

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
    "access", "aggregator", "alias", "allLevelName", "allMemberCaption", "allMemberName", "approxRowCount",
    "bottomLevel", "cache", "caption", "captionColumn", "column", "cube", "cubeName", "datatype",
    "defaultMeasure", "defaultMember", "description", "dialect", "dimension", "enabled", "expression",
    "foreignKey", "formatString", "formula", "hasAll", "hideMemberIf", "hierarchy", "highCardinality",
    "ignoreUnrelatedDimensions", "internalType", "leftAlias", "leftKey", "level", "levelType",
    "measuresCaption", "member", "metamodelVersion", "name", "nameColumn", "nullParentValue",
    "ordinalColumn", "parent", "parentColumn", "primaryKey", "primaryKeyTable", "rightAlias", "rightKey",
    "rollupPolicy", "schema", "source", "table", "topLevel", "type", "uniqueKeyLevelName", "uniqueMembers",
    "value", "visible",
})  # fmt: skip


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


class _Schema:
    def __init__(self, root: etree._Element, file: str, url: str, language: str, role: str | None) -> None:
        self.root = root
        self.file = file
        self.url = url
        self.language = language
        self.notes = Notes(file)
        self.shared = {item.get("name", ""): item for item in root.findall("Dimension")}
        self.cubes = {item.get("name", ""): item for item in root.findall("Cube")}
        self.role = role
        #: The role, and those that it is a union of.
        self.roles: tuple[etree._Element, ...] = ()
        self.grants = Grants(None)
        if role is not None:
            element = self.find_role(role)
            united = self.united(element)
            self.roles, self.grants = (element, *united), Grants(united)

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

    def convert(self) -> Imported:
        self.look_for_the_unknown()
        files: dict[str, str] = {}
        for element in [*self.cubes.values(), *self.root.findall("VirtualCube")]:
            if element.get("enabled") == "false" or not self.grants.sees_cube(element.get("name", "")):
                continue
            draft = self.cube(element) if element.tag == "Cube" else self.virtual_cube(element)
            if draft is None:
                continue
            stem = re.sub(r"[^\w-]+", "-", draft.name.lower()).strip("-") or "cube"
            while f"{stem}.toml" in files:
                stem += "-2"
            files[f"{stem}.toml"] = self.text(draft, element)
        if not files:
            raise UserError(Mistake(self.file, 0, 0, "The schema has no cube that can be taken over."))
        return Imported(files, tuple(self.notes.left))

    def look_for_the_unknown(self) -> None:
        for element in self.root.iter(etree.Element):
            tag = str(element.tag)
            if any(above.tag in _LEFT for above in element.iterancestors()):
                continue
            if any(element is role or role in element.iterancestors() for role in self.roles):
                continue
            if tag in _LEFT:
                name = element.get("name") or element.get("table") or ""
                self.notes.leave(element, f"{tag} {name}".strip() + f" is left: {_LEFT[tag]}.")
            if tag == "CubeUsage" and element.get("ignoreUnrelatedDimensions") == "true":
                what = (
                    f"measures of cube {element.get('cubeName')} are empty at members of dimensions it lacks"
                )
                self.notes.leave(element, f"ignoreUnrelatedDimensions is left: {what}.")
            for name in element.attrib:
                if str(name) not in _KNOWN and tag not in _LEFT:
                    self.notes.leave(element, f"attribute {name} of {tag} is left.")

    def text(self, draft: Draft, element: etree._Element) -> str:
        head = [
            f"# From the Mondrian schema {self.file}.",
            *remarks(element),
            *pairs(name=draft.name, caption=element.get("caption") or draft.name),
            "",
            "[facts]",
            *pairs(url=self.url, sql=Select.union(draft.parts)),
            '# respondent = "…" # the column that tells who is protected',
        ]
        for name, lines in draft.dimensions.items():
            if not all(name in held for held in draft.held):
                # Facts of the other parts are of none of its members.
                lines.insert(lines.index("[[dimension]]") + 1, "unknown = false")
        blocks = [
            *("\n".join(lines) for lines in draft.dimensions.values()),
            *self.measures(draft, element),
            *draft.helpers.values(),
            *draft.blocks,
        ]
        return "\n".join(["\n".join(head), *blocks]) + "\n"

    def measures(self, draft: Draft, element: etree._Element) -> list[str]:
        """The blocks of measures: the default one is the first."""
        default = element.get("defaultMeasure", "").removeprefix("[Measures].").strip("[]")
        if default and default not in draft.measures:
            what = f"default measure {default} is left: it is none of the measures of facts"
            self.notes.leave(element, f"{what}, of which the first is taken.")
        ordered = sorted(draft.measures, key=lambda name: name != default)
        return [draft.measures[name] for name in ordered]

    # Cubes

    def cube(self, element: etree._Element) -> Draft | None:
        draft = Draft(element.get("name", ""), self.grants)
        if not self.add_part(draft, element, None, None):
            return None
        self.add_formulas(draft, element)
        return draft

    def add_formulas(self, draft: Draft, element: etree._Element) -> None:
        for item in element.findall("CalculatedMember"):
            add_calculated(draft, item, self.notes)
        for item in [*self.root.findall("NamedSet"), *element.findall("NamedSet")]:
            add_named_set(draft, item, self.notes)

    def virtual_cube(self, element: etree._Element) -> Draft | None:
        draft = Draft(element.get("name", ""), self.grants)
        wanted: dict[str, list[str]] = {}
        for item in element.findall("VirtualCubeMeasure"):
            name = item.get("name", "").removeprefix("[Measures].").strip("[]")
            wanted.setdefault(item.get("cubeName", ""), []).append(name)
        dimensions = [
            (item.get("cubeName"), item.get("name", "")) for item in element.findall("VirtualCubeDimension")
        ]
        for owner, measures in wanted.items():
            if owner not in self.cubes:
                self.notes.leave(element, f"measures of cube {owner} are left: there is no such cube.")
                continue
            chosen = [name for of, name in dimensions if of in (None, owner)]
            for name, by in needed_measures(self.cubes[owner], measures).items():
                self.notes.leave(element, f"measure {name} of cube {owner} comes too: {by} needs it.")
                measures.append(name)
            self.add_part(draft, self.cubes[owner], chosen, measures)
            for item in self.cubes[owner].findall("CalculatedMember"):
                if item.get("name") in measures or item.get("dimension", "Measures") != "Measures":
                    add_calculated(draft, item, self.notes)
        self.add_formulas(draft, element)
        if not draft.parts:
            what = f"virtual cube {draft.name} is left: it has no measures of known cubes."
            self.notes.leave(element, what)
            return None
        return draft

    def add_part(
        self,
        draft: Draft,
        element: etree._Element,
        dimensions: Sequence[str] | None,
        measures: Sequence[str] | None,
    ) -> bool:
        """Add the facts of a cube, with some of its dimensions and measures (None: all)."""
        relation = relation_of(element)
        if relation is None:
            self.notes.leave(element, f"cube {element.get('name')} is left: it has no table of facts.")
            return False
        part, held = Select(relation), set[str]()
        for usage in [*element.findall("Dimension"), *element.findall("DimensionUsage")]:
            name = str(usage.get("name") or usage.get("source", ""))
            if dimensions is not None and name not in dimensions:
                continue
            if not self.grants.sees_dimension(draft.name, name):
                draft.unseen.add(name.lower())
                continue
            source: etree._Element | None = usage
            if usage.tag == "DimensionUsage":
                source = self.shared.get(usage.get("source", ""))
            if source is None:
                what = f"dimension {name} is left: there is no shared dimension {usage.get('source')}."
                self.notes.leave(usage, what)
                continue
            held.add(name)
            add_dimension(draft, usage, source, part, self.notes, self.role)
        chosen = element.findall("Measure")
        if measures is not None:
            chosen = [measure for name in measures for measure in chosen if measure.get("name") == name]
        add_measures(draft, chosen, part, self.notes)
        draft.parts.append(part)
        draft.held.append(held)
        return True


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
