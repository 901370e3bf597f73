"""What a calculated cell is made of: a linear combination of cells, or a quotient of two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.redteam.structure import Coordinates, Structure
from app.redteam.words import (
    Call,
    Node,
    NotUnderstoodError,
    Number,
    Operation,
    Reference,
    SetOf,
    TupleOf,
    parse_words,
)


@dataclass(frozen=True)
class Linear:
    """``constant + Σ coefficient · cell``."""

    terms: Mapping[Coordinates, float] = field(default_factory=dict)
    constant: float = 0.0

    def plus(self, other: Linear, factor: float = 1.0) -> Linear:
        terms = dict(self.terms)
        for cell, coefficient in other.terms.items():
            terms[cell] = terms.get(cell, 0.0) + factor * coefficient
        return Linear({c: k for c, k in terms.items() if k}, self.constant + factor * other.constant)

    def times(self, factor: float) -> Linear:
        return Linear().plus(self, factor)


@dataclass(frozen=True)
class Quotient:
    """``above / below``; ``below`` is the constant 1 for what is linear."""

    above: Linear
    below: Linear = Linear(constant=1.0)

    @property
    def is_linear(self) -> bool:
        return not self.below.terms

    def normalised(self) -> Linear:
        return self.above.times(1.0 / self.below.constant)


class Meaning:
    """Resolves coordinates under the formulas of one query.

    Parameters
    ----------
    structure : Structure
    formulas : mapping
        The query's own formulas, by unique name.
    """

    def __init__(self, structure: Structure, formulas: Mapping[str, str]) -> None:
        self._structure = structure
        self._formulas = {**structure.formulas, **formulas}
        self._trees: dict[str, Node] = {}
        self._identities: dict[str, str] = {}

    def identity(self, coordinates: Coordinates) -> Coordinates:
        """The same cell under whatever name: a group is its members, another calculated one its formula."""
        return tuple(name if name not in self._formulas else self._identity_of(name) for name in coordinates)

    def _identity_of(self, name: str) -> str:
        if name not in self._identities:
            identity = "= " + " ".join(self._formulas[name].split())
            try:
                match self._tree(name):
                    case Call("AGGREGATE" | "SUM", (items,)):
                        members = self._members(items, ())
                        order = list(self._structure.hierarchies[self._column_of(members[0]) - 1].members)
                        identity = " + ".join(sorted(members, key=order.index))
            except (NotUnderstoodError, ValueError, IndexError):
                # It stays its formula; what expands it says that it isn't understood.
                identity = "= " + " ".join(self._formulas[name].split())
            self._identities[name] = identity
        return self._identities[name]

    def is_calculated(self, coordinates: Coordinates) -> bool:
        return any(name in self._formulas for name in coordinates)

    def expand(self, coordinates: Coordinates) -> Quotient:
        """One step of what a calculated cell is made of; measures first.

        Raises
        ------
        NotUnderstoodError
        """
        for column, name in enumerate(coordinates):
            if name in self._formulas:
                return self._value(self._tree(name), coordinates, column, frozenset({name}))
        raise NotUnderstoodError("not a calculated cell")

    def _tree(self, name: str) -> Node:
        if name not in self._trees:
            self._trees[name] = parse_words(self._formulas[name])
        return self._trees[name]

    def _value(self, node: Node, at: Coordinates, column: int, open_names: frozenset[str]) -> Quotient:
        """Value of a node at coordinates whose ``column`` the formula itself replaces."""
        match node:
            case Number(value):
                return Quotient(Linear(constant=value))
            case Reference() | TupleOf():
                members = node.members if isinstance(node, TupleOf) else (node,)
                where = at
                for member in members:
                    where = self._move(where, member)
                return self._cell(where, column, open_names)
            case Call("AGGREGATE" | "SUM", arguments):
                measure = arguments[1] if len(arguments) > 1 else None
                total = Linear()
                for name in self._members(arguments[0], at):
                    where = self._place(at, name)
                    part = (
                        self._value(measure, where, column, open_names)
                        if measure is not None
                        else self._cell(where, column, open_names)
                    )
                    if not part.is_linear:
                        raise NotUnderstoodError("a sum of quotients")
                    total = total.plus(part.normalised())
                return Quotient(total)
            case Operation(sign, left, right):
                return _combine(
                    sign,
                    self._value(left, at, column, open_names),
                    self._value(right, at, column, open_names),
                )
        raise NotUnderstoodError(f"{type(node).__name__}")

    def _cell(self, where: Coordinates, column: int, open_names: frozenset[str]) -> Quotient:
        name = where[column]
        if name in open_names:
            raise NotUnderstoodError(f"{name} is made of itself")
        measure = where[0]
        if measure in self._formulas:
            return self._value(self._tree(measure), where, 0, open_names | {measure})
        return Quotient(Linear({where: 1.0}))

    def _place(self, at: Coordinates, member: str) -> Coordinates:
        column = self._column_of(member)
        return (*at[:column], member, *at[column + 1 :])

    def _column_of(self, member: str) -> int:
        if member in self._structure.measures or member.startswith("[Measures]"):
            return 0
        for index, hierarchy in enumerate(self._structure.hierarchies):
            if member in hierarchy.members:
                return 1 + index
        for name, column in self._structure.column.items():
            if member in self._formulas and member.startswith(name + "."):
                return column
        raise NotUnderstoodError(member)

    def _move(self, at: Coordinates, reference: Reference) -> Coordinates:
        return self._place(at, self._member(reference, at))

    def _member(self, reference: Reference, at: Coordinates) -> str:
        parts = reference.parts
        tail = parts[-1].upper()
        if tail in ("PREVMEMBER", "CURRENTMEMBER", "PARENT"):
            name = ".".join(parts[:-1])
            if name in self._structure.column:
                name = at[self._structure.column[name]]
            else:
                name = self._member(Reference(parts[:-1]), at)
            if tail == "CURRENTMEMBER":
                return name
            hierarchy = self._structure.hierarchies[self._column_of(name) - 1]
            other = hierarchy.previous(name) if tail == "PREVMEMBER" else hierarchy.members[name].parent
            if other is None:
                raise NotUnderstoodError(f"nothing before {name}")
            return other
        text = ".".join(parts)
        if text in self._formulas or text in self._structure.measures:
            return text
        for hierarchy in self._structure.hierarchies:
            if text in hierarchy.members:
                return text
            by_words = hierarchy.by_words.get((".".join(parts[:-1]), parts[-1]))
            if by_words is not None:
                return by_words
        raise NotUnderstoodError(text)

    def _members(self, node: Node, at: Coordinates) -> list[str]:
        if isinstance(node, SetOf):
            if node.ranged:
                first, last = (self._members(item, at)[0] for item in node.items)
                hierarchy = self._structure.hierarchies[self._column_of(first) - 1]
                level = hierarchy.levels[hierarchy.members[first].level]
                return list(level[level.index(first) : level.index(last) + 1])
            return [member for item in node.items for member in self._members(item, at)]
        if isinstance(node, Reference):
            tail = node.parts[-1].upper()
            head = ".".join(node.parts[:-1])
            if tail == "CHILDREN":
                member = self._member(Reference(node.parts[:-1]), at)
                hierarchy = self._structure.hierarchies[self._column_of(member) - 1]
                return list(hierarchy.children.get(member, ()))
            if tail == "MEMBERS":
                for hierarchy in self._structure.hierarchies:
                    if head in hierarchy.levels:
                        return list(hierarchy.levels[head])
            return [self._member(node, at)]
        raise NotUnderstoodError(f"a set of {type(node).__name__}")


def _combine(sign: str, left: Quotient, right: Quotient) -> Quotient:
    if sign in "+-":
        factor = 1.0 if sign == "+" else -1.0
        if left.is_linear and right.is_linear:
            return Quotient(left.normalised().plus(right.normalised(), factor))
        if right.is_linear and not right.above.terms:
            shift = right.normalised().constant * factor
            return Quotient(left.above.plus(left.below, shift), left.below)
        if left.is_linear and not left.above.terms:
            shift = left.normalised().constant
            return Quotient(right.above.times(factor).plus(right.below, shift), right.below)
        if left.below == right.below:
            return Quotient(left.above.plus(right.above, factor), left.below)
    elif sign == "*":
        for one, other in ((left, right), (right, left)):
            if one.is_linear and not one.above.terms:
                return Quotient(other.above.times(one.normalised().constant), other.below)
    elif sign == "/":
        if right.is_linear and not right.above.terms and right.normalised().constant:
            return Quotient(left.above.times(1.0 / right.normalised().constant), left.below)
        if left.is_linear and right.is_linear:
            return Quotient(left.normalised(), right.normalised())
        if right.is_linear is False and left.is_linear and not left.above.terms:
            return Quotient(right.below.times(left.normalised().constant), right.above)
    raise NotUnderstoodError(f"{sign} of these quotients")
