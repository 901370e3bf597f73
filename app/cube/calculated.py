"""Calculated members of a cube and of a query: their columns, keys, terms and precedence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from app.cube.context import Context, Definition, NeedColumnError
from app.cube.evaluate import MAX_NESTING, Evaluator, axis_name
from app.cube.measure_styles import style_of_formula
from app.cube.values import HierarchyValue, LevelValue, TupleValue
from app.domain.cellset import CalculatedMember
from app.domain.cube import Cube, Hierarchy
from app.domain.errors import UserError
from app.domain.formula import Linear
from app.domain.numbers import format_decimals, spelled_out
from app.domain.publication import CalculatedDefinition
from app.mdx import Source, brief, parse_expression, quote, to_text
from app.mdx.tree import Call, Expression, Given, MemberDefinition, Name, Number, Parens, Part, String

#: Longer keys are cut and end in a hash.
_LONGEST_KEY = 240
#: Functions that come to calculated members without naming them.
_NAMES_ANY = frozenset({"ALLMEMBERS", "ADDCALCULATEDMEMBERS", "STRTOMEMBER", "STRTOSET", "STRTOTUPLE"})
#: What members are taken together by a slicer or sub-select comes before any formula.
_BELOW_ALL = Fraction(-(10**9))


class Calculations:
    """Collects definitions into an evaluator, then finds their keys and terms."""

    def __init__(self, ev: Evaluator, cube: Cube) -> None:
        self.ev = ev
        self.cube = cube
        self.language = next(iter(cube.captions), "en")
        self.added: list[tuple[int, int]] = []
        self._members_of = Counter(column for column, _ in ev.definitions)
        self._known_terms: dict[tuple[int, int], dict[int, float] | None] = {}
        self._known_texts: dict[tuple[int, int], str] = {}
        #: The calculated members that a text has in it, and those of the texts that are being made.
        self._known_names: dict[tuple[int, int], set[tuple[int, int]]] = {}
        self._naming: list[set[tuple[int, int]]] = []

    def add_cube(self, definition: CalculatedDefinition) -> None:
        """A member that the cube offers.

        Raises
        ------
        UserError
        """
        source = Source(definition.formula, definition.at.file, definition.at.line)
        formula, form, is_text = self._formatted(
            parse_expression(definition.formula, definition.at.file, definition.at.line), definition.format
        )
        owner = parse_expression(definition.hierarchy, definition.at.file, definition.at.line)
        if not isinstance(owner, Name):
            raise UserError(source.mistake(0, f"{definition.hierarchy} isn't the name of a hierarchy."))
        column, parent = self._owner(
            owner, Source(definition.hierarchy, definition.at.file, definition.at.line)
        )
        member = CalculatedMember(
            column,
            "",
            definition.name,
            definition.captions or {self.language: definition.name},
            None,
            form,
            definition.decimals,
            definition.unit or None,
        )
        order = None if definition.solve_order is None else Fraction(definition.solve_order)
        self._add(member, formula, source, 0, order, parent=parent, is_text=is_text)

    def add_query(self, definition: MemberDefinition, source: Source) -> None:
        """A member of WITH MEMBER.

        Raises
        ------
        UserError
        """
        *owner, last = definition.name.parts
        if not owner or last.keys is not None:
            cause = f"Calculated member {brief(definition.name)} doesn't say its hierarchy."
            remedy = f"Write [Measures].{quote(last.text)}, or the hierarchy it belongs to."
            raise UserError(source.mistake(definition.at, cause, remedy))
        column, parent = self._owner(Name(tuple(owner), definition.name.at), source)
        options = dict(definition.properties)
        captions: dict[str, str] = {}
        style: dict[str, str] = {}
        numbers: dict[str, Fraction] = {}
        for key, value in options.items():
            if key.startswith("CAPTION"):
                language = key.removeprefix("CAPTION").strip("_").lower() or self.language
                captions[language] = self._text(key, value, source)
            elif key in ("SOLVE_ORDER", "DECIMALS"):
                numbers[key] = self._number(key, value, source)
            elif key in ("FORMAT_STRING", "UNIT"):
                style[key] = self._text(key, value, source)
            # Colours and fonts are nothing that a table has.
        words = self.ev.limits.words
        if max(map(len, (last.text, *captions.values(), *style.values()))) > words:
            cause = f"A name, caption or format has {words:,} letters at most."
            raise UserError(source.mistake(definition.at, cause))
        formula, form, is_text = self._formatted(definition.formula, style.get("FORMAT_STRING"))
        decimals = int(numbers["DECIMALS"]) if "DECIMALS" in numbers else format_decimals(form)
        member = CalculatedMember(
            column,
            "",
            last.text,
            captions or {self.language: last.text},
            None,
            form,
            decimals,
            {self.language: style["UNIT"]} if "UNIT" in style else None,
        )
        order = numbers.get("SOLVE_ORDER")
        self._add(member, formula, source, definition.at, order, parent=parent, is_text=is_text)

    def add_group(
        self, columns: tuple[int, ...], rows: tuple[tuple[int, ...], ...], source: Source
    ) -> TupleValue:
        """Members or tuples taken together, as a member of their first hierarchy: a slicer that is a set."""
        name = f"{{{', '.join(self._written(columns, row) for row in rows)}}}"
        formula = Call("Aggregate", None, (Given(columns, rows),))
        member = CalculatedMember(columns[0], "", name, {self.language: name}, None)
        number = self._add(member, formula, Source(name, source.file), 0, None, below_all=True)
        return TupleValue(columns[:1], (number,))

    def _written(self, columns: tuple[int, ...], row: tuple[int, ...]) -> str:
        names = [self.ev.unique_name(column, number) for column, number in zip(columns, row, strict=True)]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def add_total(self, column: int, member: int, parts: list[int], caption: str, source: Source) -> int:
        """A part of the members beneath a member, which it then counts as; a star stands for its name."""
        tree = self.ev.columns[column].hierarchy
        names = [tree.unique_names[part] for part in parts]
        name = f"{tree.unique_names[member]} of {{{', '.join(names)}}} as {caption}"
        known = self.ev.names.calculated_at(column, -1, name)
        if known is not None:
            return known
        captions = {code: caption.replace("*", own[member]) for code, own in tree.member_captions.items()}
        formula = Call("Aggregate", None, (Given((column,), tuple((part,) for part in parts)),))
        made = CalculatedMember(column, "", name, captions, None)
        number = self._add(made, formula, Source(name, source.file), 0, None, below_all=True)
        place = (column, number)
        self.ev.definitions[place] = replace(self.ev.definitions[place], stands_for=member)
        return number

    def _formatted(self, formula: Expression, form: str | None) -> tuple[Expression, str | None, bool]:
        """The formula and its format, spelled out.

        One that only formats a value is that value and its format: what is published keeps its number so, and
        the analyst gets the text that it is.
        """
        inner = formula
        while isinstance(inner, Parens) and len(inner.items) == 1:
            inner = inner.items[0]
        match inner:
            case Call(name, None, (value, String(text))) if (
                value and form is None and name.upper() == "FORMAT"
            ):
                return value, spelled_out(text, self.language), True
        return formula, None if form is None else spelled_out(form, self.language), False

    def _text(self, key: str, value: Expression, source: Source) -> str:
        if isinstance(value, Name) and len(value.parts) == 1 and value.parts[0].keys is None:
            return value.parts[0].text
        if not isinstance(value, String):
            remedy = "It is the same in all cells: a value can't choose it."
            raise UserError(source.mistake(value.at, f"{key} takes a text in quotes.", remedy))
        return value.value

    def _number(self, key: str, value: Expression, source: Source) -> Fraction:
        result = self.ev.to_formula(value, Context(source, {}))
        if not isinstance(result, Linear) or result.constant is None or result.terms:
            raise UserError(source.mistake(value.at, f"{key} takes a number."))
        return result.constant

    def _owner(self, name: Name, source: Source) -> tuple[int, int]:
        """The hierarchy that a calculated member is of, and the member that it is under (-1: none)."""
        found = self.ev.names.resolve(name, source)
        if isinstance(found, (HierarchyValue, LevelValue)):
            return found.column, -1
        if isinstance(found, TupleValue):
            (column, *_), (number, *_) = found.columns, found.numbers
            return column, number if number < self.ev.columns[column].hierarchy.size else -1
        cause = f"Dimension {found.name} has several hierarchies."
        raise UserError(source.mistake(name.at, cause, "Write the one that the member belongs to."))

    def _add(
        self,
        member: CalculatedMember,
        formula: Expression,
        source: Source,
        at: int,
        order: Fraction | None,
        below_all: bool = False,
        parent: int = -1,
        is_text: bool = False,
    ) -> int:
        column = self.ev.columns[member.column]
        names = self.ev.names
        owner = column.hierarchy.unique_name if parent < 0 else column.hierarchy.unique_names[parent]
        if names.calculated_at(member.column, parent, member.name) is not None:
            cause = f"{owner} has a calculated member {member.name} already."
            raise UserError(source.mistake(at, cause, "Choose another name."))
        own = column.named(Part(member.name), range(len(column.hierarchy.levels)))
        if parent >= 0:
            own = [number for number in own if column.hierarchy.parent[number] == parent]
        if own:
            cause = f"{owner} has a member {member.name} of its own."
            raise UserError(source.mistake(at, cause, "Choose another name."))
        number = column.hierarchy.size + self._members_of[member.column]
        self._members_of[member.column] += 1
        rank = _BELOW_ALL if below_all else order or Fraction(0)
        together = _is_aggregate(formula)
        precedence = (rank, not together, len(self.ev.definitions))
        member = replace(member, takes_together=together, precedence=precedence)
        self.ev.definitions[member.column, number] = Definition(
            member, number, formula, source, at, order, parent=parent, is_text=is_text
        )
        names.add_calculated(member.column, parent, member.name, number)
        self.added.append((member.column, number))
        return number

    def finish(self) -> tuple[CalculatedMember, ...]:
        """Terms and keys of what was added; all calculated members, by column and number.

        Among members that meet in a cell, the one of higher SOLVE_ORDER is worked out last, that is, its
        formula is over the others' values; so is the one defined later. Aggregates come before all others,
        so that a ratio of a group is the ratio of its sums.
        """
        # Of a part of a hierarchy, members that the cube defines are other sums.
        again = (place for place in self.ev.definitions if place[0] in self.ev.visual)
        for place in dict.fromkeys([*self.added, *again]):
            found = self.ev.definitions[place]
            terms = self._terms(found, ())
            member = style_of_formula(self.ev, found)
            member = replace(member, terms=None if terms is None else tuple(sorted(terms.items())))
            key = self._key(found, member)
            names = tuple(sorted(self._known_names.get(place, {place})))
            self.ev.definitions[place] = replace(found, member=replace(member, key=key, names=names))
        return tuple(self.ev.definitions[place].member for place in sorted(self.ev.definitions))

    def _terms(self, definition: Definition, above: tuple[object, ...]) -> dict[int, float] | None:
        """Own members of the column that the value is a fixed combination of, whatever the other columns."""
        place = (definition.member.column, definition.number)
        if place[0] == 0 or place in above:
            return None
        self._check_nesting(definition, above)
        if place not in self._known_terms:
            self._known_terms[place] = self._find_terms(definition, (*above, place))
        return self._known_terms[place]

    def _check_nesting(self, definition: Definition, above: tuple[object, ...]) -> None:
        if len(above) > MAX_NESTING:
            cause = f"Calculated members are defined by one another more than {MAX_NESTING} deep."
            raise UserError(definition.source.mistake(definition.at, cause))

    def _find_terms(self, definition: Definition, above: tuple[object, ...]) -> dict[int, float] | None:
        column = definition.member.column
        additive = next((m for m, measure in enumerate(self.cube.measures) if measure.additive), None)
        known = {} if additive is None else {0: additive}
        with self.ev.apart():
            try:
                formula = self.ev.to_formula(definition.formula, Context(definition.source, known))
            except NeedColumnError:
                return None
            if self.ev.basis.is_partial:
                return None
        if not isinstance(formula, Linear) or formula.constant is not None or not formula.terms:
            return None
        tree = self.ev.columns[column].hierarchy
        total: dict[int, Fraction] = {}
        for reference, coefficient in formula.terms.items():
            if len(reference) != 1 or reference[0][0] != column:
                return None
            number = reference[0][1]
            if number < tree.size and column in self.ev.visual:
                number = int(self.ev.visual[column][number])
            if number < tree.size:
                total[number] = total.get(number, Fraction(0)) + coefficient
                continue
            inner = self._terms(self.ev.definitions[column, number], above)
            if inner is None:
                return None
            for member, value in inner.items():
                total[member] = total.get(member, Fraction(0)) + coefficient * Fraction(value)
        return {member: float(value) for member, value in _disjoint(tree, total).items()}

    def _key(self, definition: Definition, member: CalculatedMember) -> str:
        tree = self.ev.columns[member.column].hierarchy
        everything_adds = all(measure.additive for measure in self.cube.measures)
        if member.terms is not None and (everything_adds or _is_aggregate(definition.formula)):
            parts = (f"{value:g}*{tree.unique_names[number]}" for number, value in member.terms)
            text = f"{{{' + '.join(parts)}}}"
        else:
            text = self._text_of(definition, ()) + self._part_of_the_cube()
        if definition.solve_order is not None:
            text += f" @{definition.solve_order}"
        return _shortened(f"{tree.unique_name}={text}")

    def _part_of_the_cube(self) -> str:
        """What the formula's members may have been cut down to, without its saying so."""
        parts = [
            tree.unique_names[member]
            for column, place in sorted(self.ev.within.items())
            for tree in [self.ev.columns[column].hierarchy]
            for member in np.flatnonzero(place == 1).tolist()
        ]
        return f" within {_digest(', '.join(parts))}" if parts else ""

    def _text_of(self, definition: Definition, above: tuple[object, ...]) -> str:
        place = (definition.member.column, definition.number)
        if place in above:
            return definition.member.name
        self._check_nesting(definition, above)
        if place not in self._known_texts:
            self._naming.append({place})
            text = self._normal(definition.formula, definition.source, (*above, place))
            if definition.parent >= 0:
                # What is current in its formula hangs on where it stands.
                text += f" under {self.ev.unique_name(place[0], definition.parent)}"
            self._known_texts[place] = _shortened(text)
            self._known_names[place] = self._naming.pop()
        if self._naming:
            self._naming[-1] |= self._known_names[place]
        return self._known_texts[place]

    def _normal(self, node: Expression, source: Source, above: tuple[object, ...]) -> str:
        """The formula with every name resolved, so that equal formulas have equal texts."""
        match node:
            case Parens(items) if len(items) == 1:
                return self._normal(items[0], source, above)
            case Name():
                return self._normal_name(node, source, above)
            case Number() | String():
                return to_text(node)
            case Given(columns, rows):
                return f"(Braces {' '.join(self._normal_row(columns, row, above) for row in rows)})"
            case Call(name, None, (Number(value),)) if name.upper() == "AXIS":
                return self._normal_set(axis_name(int(value)), above) or to_text(node)
            case Call(name, target, arguments):
                if name.upper() in _NAMES_ANY and self._naming:
                    self._naming[-1] |= self.ev.definitions.keys()
                inner = [target, *(arguments or ())]
                shown = ("" if part is None else self._normal(part, source, above) for part in inner)
                return f"{name.upper()}({','.join(shown)})"
            case _:
                inner_parts = [
                    self._normal(part, source, above) if not isinstance(part, str) else part
                    for part in _parts(node)
                ]
                return f"({' '.join(inner_parts)})"

    def _normal_row(self, columns: tuple[int, ...], row: tuple[int, ...], above: tuple[object, ...]) -> str:
        """As of the same members written out."""
        names = [self._normal_member(c, n, above) for c, n in zip(columns, row, strict=True)]
        return names[0] if len(names) == 1 else f"(Parens {' '.join(names)})"

    def _normal_member(self, column: int, number: int, above: tuple[object, ...]) -> str:
        tree = self.ev.columns[column].hierarchy
        if number < tree.size:
            return tree.unique_names[number]
        return self._text_of(self.ev.definitions[column, number], above)

    def _normal_set(self, name: str, above: tuple[object, ...]) -> str | None:
        """The formula of a set; None where there is none of that name, or it is within itself."""
        if name not in self.ev.sets or name in above:
            return None
        expression, where = self.ev.sets[name]
        return _shortened(self._normal(expression, where, (*above, name)))

    def _normal_name(self, node: Name, source: Source, above: tuple[object, ...]) -> str:
        name = node.parts[0].text.lower()
        of_set = self._normal_set(name, above) if len(node.parts) == 1 else None
        if of_set is not None:
            return of_set
        try:
            found = self.ev.names.resolve(node, source)
        except UserError:
            # A word such as LEAVES; a name that is wrong has been complained of when it was evaluated.
            return to_text(node).upper()
        if isinstance(found, HierarchyValue):
            return self.ev.columns[found.column].hierarchy.unique_name
        if isinstance(found, LevelValue):
            return self.ev.columns[found.column].hierarchy.levels[found.level].unique_name
        if not isinstance(found, TupleValue):
            return to_text(node)
        return self._normal_member(found.columns[0], found.numbers[0], above)


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_KEY:
        return text
    return f"{text[: _LONGEST_KEY // 2]}…{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _parts(node: Expression) -> list[Expression | str]:
    """Parts of an operator, set or case with its signs between them."""
    parts: list[Expression | str] = [type(node).__name__]
    for name in node.__dataclass_fields__:
        if name != "at":
            _collect(getattr(node, name), parts)
    return parts


def _collect(value: object, parts: list[Expression | str]) -> None:
    if isinstance(value, tuple):
        for item in value:
            _collect(item, parts)
    elif isinstance(value, str) or value is None:
        parts.append(value or "")
    else:
        parts.append(value)  # type: ignore[arg-type]


def _is_aggregate(formula: Expression) -> bool:
    while isinstance(formula, Parens) and len(formula.items) == 1:
        formula = formula.items[0]
    return isinstance(formula, Call) and formula.function.upper() == "AGGREGATE"


def _disjoint(tree: Hierarchy, terms: Mapping[int, Fraction]) -> dict[int, Fraction]:
    """The combination without a member above another: such a one is written as its children."""
    pending = dict(terms)
    while True:
        numbers = sorted(pending)
        above = next(
            (member for member, following in pairwise(numbers) if following <= tree.last_descendant[member]),
            None,
        )
        if above is None:
            return {member: value for member, value in sorted(pending.items()) if value}
        value = pending.pop(above)
        for child in tree.child_lists[above].tolist():
            pending[child] = pending.get(child, Fraction(0)) + value
