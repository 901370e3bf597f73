"""Execute: a masked answer as a multidimensional dataset, or as a table of its cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from app.domain.cube import Cube, Hierarchy, text_in
from app.domain.masked import AxisMember, CellStatus, CellStyle, MaskedCellSet
from app.domain.numbers import format_value
from app.domain.patience import Patience
from app.serve.port import Asked
from app.web.words import by_figures_note
from app.web.xmla.discover import LCIDS
from app.web.xmla.rowset import XSI, Column, Row, rowset_xml
from app.web.xmla.soap import DATASET, EXCEPTION, encoded, quoted

#: What the format of a hidden cell says.
_HIDDEN = {int(CellStatus.CONFIDENTIAL): "[c]", int(CellStatus.UNRELEASED): "[x]"}
#: Cell properties by their names in MDX, and the elements that hold them.
_ELEMENTS = {
    "VALUE": "Value",
    "FORMATTED_VALUE": "FmtValue",
    "FORMAT_STRING": "FormatString",
    "CELL_ORDINAL": "CellOrdinal",
    "LANGUAGE": "Language",
    "FORE_COLOR": "ForeColor",
    "BACK_COLOR": "BackColor",
    "FONT_NAME": "FontName",
    "FONT_SIZE": "FontSize",
    "FONT_FLAGS": "FontFlags",
    "UPDATEABLE": "Updateable",
    "ACTION_TYPE": "ActionType",
    "SOLVE_ORDER": "SolveOrder",
    "NON_EMPTY_BEHAVIOR": "NonEmptyBehavior",
}
_USUAL = ("VALUE", "FORMATTED_VALUE", "FORMAT_STRING")
_MEMBER = (
    ("UName", "MEMBER_UNIQUE_NAME", "string"),
    ("Caption", "MEMBER_CAPTION", "string"),
    ("LName", "LEVEL_UNIQUE_NAME", "string"),
    ("LNum", "LEVEL_NUMBER", "int"),
    ("DisplayInfo", "DISPLAY_INFO", "unsignedInt"),
)
_DRILLED, _SAME_PARENT, _MOST_CHILDREN = 0x10000, 0x20000, 0xFFFF


class _Writer:
    """Writes one answer."""

    def __init__(self, asked: Asked, cube: Cube, language: str, patience: Patience) -> None:
        self.asked = asked
        self.patience = patience
        self.masked: MaskedCellSet = asked.masked
        self.language = language
        self.trees: Mapping[str, Hierarchy] = {tree.unique_name: tree for tree in cube.hierarchies}
        self.names = [name for name in asked.cell_properties if name in _ELEMENTS] or list(_USUAL)

    def info(self) -> str:
        axes = [
            self._axis_info(f"Axis{number}", hierarchies, self.properties(number))
            for number, hierarchies in enumerate(self.asked.hierarchies)
        ]
        axes.append(self._axis_info("SlicerAxis", [member.hierarchy for member in self.masked.slicer], ()))
        cells = "".join(f'<{_ELEMENTS[name]} name="{name}"/>' for name in self.names)
        return (
            f"<OlapInfo><CubeInfo><Cube><CubeName>{quoted(self.asked.cube)}</CubeName></Cube></CubeInfo>"
            f"<AxesInfo>{''.join(axes)}</AxesInfo><CellInfo>{cells}</CellInfo></OlapInfo>"
        )

    def properties(self, axis: int) -> tuple[str, ...]:
        """Names of the properties asked for on an axis, as far as its members have them."""
        positions = self.asked.properties[axis]
        return tuple(dict.fromkeys(name for position in positions for member in position for name in member))

    @staticmethod
    def _axis_info(name: str, hierarchies: Sequence[str], properties: Sequence[str]) -> str:
        parts = []
        for hierarchy in hierarchies:
            inner = [
                f'<{element} name="{quoted(f"{hierarchy}.[{column}]")}" type="xsd:{kind}"/>'
                for element, column, kind in _MEMBER
            ]
            inner += [
                f'<{encoded(item)} name="{quoted(f"{hierarchy}.[{item}]")}" type="xsd:string"/>'
                for item in properties
            ]
            parts.append(f'<HierarchyInfo name="{quoted(hierarchy)}">{"".join(inner)}</HierarchyInfo>')
        return f'<AxisInfo name="{name}">{"".join(parts)}</AxisInfo>'

    def axes(self) -> str:
        parts = []
        for number, axis in enumerate(self.masked.axes):
            tuples = self._tuples(axis.positions, self.asked.properties[number])
            parts.append(f'<Axis name="Axis{number}"><Tuples>{tuples}</Tuples></Axis>')
        slicer = self._tuples([self.masked.slicer], [[{} for _ in self.masked.slicer]])
        parts.append(f'<Axis name="SlicerAxis"><Tuples>{slicer}</Tuples></Axis>')
        return f"<Axes>{''.join(parts)}</Axes>"

    def _tuples(
        self,
        positions: Sequence[tuple[AxisMember, ...]],
        properties: Sequence[Sequence[Mapping[str, str | None]]],
    ) -> str:
        parts: list[str] = []
        for place, position in enumerate(positions):
            self.patience.check()
            parts.append("<Tuple>")
            for column, member in enumerate(position):
                before = positions[place - 1][column] if place else None
                after = positions[place + 1][column] if place + 1 < len(positions) else None
                own = properties[place][column]
                more = "".join(
                    f"<{encoded(name)}>{quoted(value)}</{encoded(name)}>"
                    for name, value in own.items()
                    if value is not None
                )
                parts.append(
                    f'<Member Hierarchy="{quoted(member.hierarchy)}">'
                    f"<UName>{quoted(member.unique_name)}</UName>"
                    f"<Caption>{quoted(text_in(member.captions, self.language))}</Caption>"
                    f"<LName>{quoted(member.level)}</LName><LNum>{member.depth}</LNum>"
                    f"<DisplayInfo>{self._display(member, before, after)}</DisplayInfo>{more}</Member>"
                )
            parts.append("</Tuple>")
        return "".join(parts)

    def _display(self, member: AxisMember, before: AxisMember | None, after: AxisMember | None) -> int:
        """How many children a member has, whether they follow, and whether a sibling goes before."""
        tree = self.trees.get(member.hierarchy)
        number = tree.index_of.get(member.unique_name) if tree is not None else None
        found = (
            min(len(tree.child_lists[number]), _MOST_CHILDREN)
            if tree is not None and number is not None
            else 0
        )
        if after is not None and after.parent == member.unique_name:
            found |= _DRILLED
        if before is not None and before.parent == member.parent and before.unique_name != member.unique_name:
            found |= _SAME_PARENT
        return found

    def value(self, place: int) -> float | str | None:
        """What a cell holds: None where it is hidden or empty."""
        if self.masked.status[place] == CellStatus.SHOWN:
            return float(self.masked.values[place])
        return self.masked.texts.get(place)

    def cells(self, first: int, last: int) -> str:
        parts = []
        for place in range(first, last):
            self.patience.check()
            inner = "".join(self._cell(place))
            # An empty cell is one that isn't told of.
            if inner:
                parts.append(f'<Cell CellOrdinal="{place}">{inner}</Cell>')
        return f"<CellData>{''.join(parts)}</CellData>"

    def warnings(self) -> str:
        if not self.masked.by_figures:
            return ""
        said = f'WarningCode="0" Description="{quoted(by_figures_note(self.language))}" Source="Celosia"'
        return f'<Messages xmlns="{EXCEPTION}"><Warning {said}/></Messages>'

    def _formatted(self, value: float | str | None, style: CellStyle) -> str:
        return value if isinstance(value, str) else format_value(value or 0.0, style, self.language)

    def _cell(self, place: int) -> Iterator[str]:
        hidden = _HIDDEN.get(int(self.masked.status[place]))
        value = self.value(place)
        if value is None and hidden is None:
            return
        style = self.masked.styles[self.masked.style[place]]
        for name in self.names:
            element = _ELEMENTS[name]
            if name == "VALUE" and value is not None:
                kind = "string" if isinstance(value, str) else "double"
                yield f'<{element} xsi:type="xsd:{kind}">{quoted(plain(value))}</{element}>'
            elif name == "FORMATTED_VALUE":
                text = hidden or self._formatted(value, style)
                yield f"<{element}>{quoted(text)}</{element}>"
            elif name == "FORMAT_STRING" and not hidden:
                yield f"<{element}>{quoted(style.format)}</{element}>"
            elif name == "CELL_ORDINAL":
                yield f"<{element}>{place}</{element}>"
            elif name == "LANGUAGE":
                yield f"<{element}>{LCIDS.get(self.language, 1033)}</{element}>"


def plain(value: float | str) -> str:
    """A value as XML Schema writes it."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def dataset_xml(
    asked: Asked,
    cube: Cube,
    language: str,
    content: str,
    patience: Patience,
    cells: tuple[int, int] = (-1, -1),
) -> str:
    """A masked answer as an mddataset; ``cells`` are the first and the last one wanted, -1 for all.

    Raises
    ------
    OverdueError, AbandonedError
        ``patience`` is at its end.
    """
    writer = _Writer(asked, cube, language, patience)
    n = math.prod(writer.masked.shape)
    first = max(cells[0], 0)
    last = n if cells[1] < 0 else min(cells[1] + 1, n)
    parts = [f'<root xmlns="{DATASET}" {XSI}>']
    if content in ("Schema", "SchemaData"):
        parts.append(_SCHEMA)
    if content in ("Data", "SchemaData"):
        parts += [writer.info(), writer.axes(), writer.cells(first, last), writer.warnings()]
    parts.append("</root>")
    return "".join(parts)


def table_xml(asked: Asked, cube: Cube, language: str, content: str, patience: Patience) -> str:
    """A masked answer as a rowset: a column for each level on the rows, and one for each tuple of columns.

    A cell that is hidden isn't there, like an empty one: a table has no place to tell them apart.

    Raises
    ------
    OverdueError, AbandonedError
        ``patience`` is at its end.
    """
    writer = _Writer(asked, cube, language, patience)
    masked, axes = writer.masked, writer.masked.axes
    depths: dict[str, set[int]] = {}
    for axis in axes[1:]:
        for position in axis.positions:
            for member in position:
                depths.setdefault(member.hierarchy, set()).update(range(member.depth + 1))
    columns = [
        (f"{tree.levels[depth].unique_name}.[MEMBER_CAPTION]", hierarchy, depth)
        for hierarchy, found in depths.items()
        if (tree := writer.trees.get(hierarchy)) is not None
        for depth in sorted(found)
        if not (tree.has_all and depth == 0)
    ]
    flat = {hierarchy for hierarchy in depths if hierarchy not in writer.trees}
    columns += [(f"{hierarchy}.[MEMBER_CAPTION]", hierarchy, -1) for hierarchy in flat]
    tops = axes[0].positions if axes else ((),)
    heads = [".".join(member.unique_name for member in position) or "Value" for position in tops]
    kinds = [Column(name) for name, _, _ in columns]
    kinds += [Column(name, "double") for name in dict.fromkeys(heads)]

    def rows() -> Iterator[Row]:
        shape = masked.shape
        for number in range(math.prod(shape[1:])):
            patience.check()
            rest, found = number, dict[str, object]()
            chosen: dict[str, AxisMember] = {}
            for axis, size in zip(axes[1:], shape[1:], strict=True):
                rest, here = divmod(rest, size)
                chosen.update({member.hierarchy: member for member in axis.positions[here]})
            for name, hierarchy, depth in columns:
                found[name] = _ancestor(writer, chosen.get(hierarchy), depth)
            for place, head in enumerate(heads):
                value = writer.value(number * len(heads) + place)
                found[head] = None if value is None else plain(value)
            yield found

    return rowset_xml(kinds, rows(), content)


def _ancestor(writer: _Writer, member: AxisMember | None, depth: int) -> str | None:
    """The caption of a member, or of what stands above it at a depth."""
    if member is None or depth > member.depth:
        return None
    tree = writer.trees.get(member.hierarchy)
    number = tree.index_of.get(member.unique_name) if tree is not None else None
    if tree is None or number is None or depth < 0:
        return text_in(member.captions, writer.language)
    while number >= 0 and tree.depth[number] > depth:
        number = int(tree.parent[number])
    return tree.caption(number, writer.language) if number >= 0 and tree.depth[number] == depth else None


_SCHEMA = (
    f'<xsd:schema targetNamespace="{DATASET}" elementFormDefault="qualified">'
    '<xsd:element name="root"><xsd:complexType><xsd:sequence>'
    + "".join(
        f'<xsd:element name="{name}" minOccurs="0"><xsd:complexType><xsd:sequence><xsd:any minOccurs="0" '
        'maxOccurs="unbounded" processContents="skip"/></xsd:sequence></xsd:complexType></xsd:element>'
        for name in ("OlapInfo", "Axes", "CellData")
    )
    + "</xsd:sequence></xsd:complexType></xsd:element></xsd:schema>"
)
