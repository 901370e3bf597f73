"""Recursive descent from MDX text to the tree, in time linear in the text.

Operators of equal precedence make one flat `Chain`, so that the tree is only as deep as the text is
nested, and nesting has a limit.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from app.mdx.expressions import ExpressionParser
from app.mdx.source import MdxSyntaxError, Source
from app.mdx.tokens import END, NAME, NUMBER, STRING, tokenize
from app.mdx.tree import AxisDefinition, Expression, MemberDefinition, Name, Query, SetDefinition, SubSelect

_AXES = {"COLUMNS": 0, "ROWS": 1, "PAGES": 2, "SECTIONS": 3, "CHAPTERS": 4}


def parse(text: str, file: str = "", line: int = 1) -> Query:
    """The tree of a query.

    Parameters
    ----------
    text : str
    file, line
        Where the text begins, for error messages.

    Raises
    ------
    MdxSyntaxError
    """
    source = Source(text, file, line)
    return _Parser(source).query()


def parse_expression(text: str, file: str = "", line: int = 1) -> Expression:
    """The tree of a set, member or formula that stands alone.

    Raises
    ------
    MdxSyntaxError
    """
    parser = _Parser(Source(text, file, line))
    expression = parser.expression()
    parser.end()
    return expression


class _Parser(ExpressionParser):
    """Statements: what a query defines, its axes, cube and slicer."""

    def query(self) -> Query:
        definitions: list[MemberDefinition | SetDefinition] = []
        if self.take_word("WITH"):
            while (definition := self.definition()) is not None:
                definitions.append(definition)
                self.take_symbol(",")
            if not definitions:
                raise self.fail("MEMBER or SET after WITH")
        axes, cube, slicer = self.select("SELECT, or WITH")
        properties: tuple[Name, ...] = ()
        if self.take_word("CELL"):
            self.need_word("PROPERTIES", "after CELL")
            properties = self.names()
        self.end()
        return Query(tuple(definitions), axes, cube, slicer, properties, self.source)

    def definition(self) -> MemberDefinition | SetDefinition | None:
        at = self.token.at
        if self.take_word("MEMBER"):
            name = self.name("the name of the calculated member")
            self.need_word("AS", "after the member's name")
            formula = self.formula()
            properties: list[tuple[str, Expression]] = []
            while self.is_symbol(",") and not self.starts_definition(self.index + 1):
                self.index += 1
                key = self.token
                if key.kind != NAME:
                    raise self.fail("the name of a property")
                self.index += 1
                self.need_symbol("=", "after the property's name")
                properties.append((key.text.strip("[]").upper(), self.expression()))
            return MemberDefinition(name, formula, tuple(properties), at)
        if self.take_word("SET"):
            name = self.name("the name of the set")
            self.need_word("AS", "after the set's name")
            return SetDefinition(name, self.formula(), at)
        return None

    def starts_definition(self, index: int) -> bool:
        return self.tokens[index].word in ("MEMBER", "SET", "SELECT")

    def formula(self) -> Expression:
        """An expression, or one written as a text in single quotes."""
        token = self.token
        follows = self.tokens[self.index + 1] if token.kind == STRING else None
        ends = follows is not None and (
            follows.kind == END or follows.word in ("MEMBER", "SET", "SELECT") or follows.text == ","
        )
        if not ends or token.text[0] != "'":
            return self.expression()
        self.index += 1
        body = token.text[1:-1]
        tokens = tokenize(self.source, token.at + 1, body.replace("''", "'"))
        # Each doubled quote before a token moves it on by one.
        doubled = [found.start() - count for count, found in enumerate(re.finditer("''", body))]
        shift = [bisect_left(doubled, inner.at - token.at - 1) for inner in tokens]
        tokens = [inner._replace(at=inner.at + more) for inner, more in zip(tokens, shift, strict=True)]
        parser = _Parser(self.source, tokens)
        expression = parser.expression()
        parser.end()
        return expression

    def select(self, expected: str) -> tuple[tuple[AxisDefinition, ...], Name | SubSelect, Expression | None]:
        if not self.take_word("SELECT"):
            raise self.fail(expected)
        axes: dict[int, AxisDefinition] = {}
        if not self.is_word("FROM"):
            while True:
                axis = self.axis()
                if axis.ordinal in axes:
                    cause = f"Axis {axis.ordinal} is given twice."
                    raise MdxSyntaxError(self.source.mistake(axis.at, cause))
                axes[axis.ordinal] = axis
                if not self.take_symbol(","):
                    break
        self.need_word("FROM", "or ',' after the axes" if axes else "or an axis")
        missing = sorted(set(range(len(axes))) - set(axes))
        if missing:
            at = axes[max(axes)].at
            raise MdxSyntaxError(self.source.mistake(at, f"Axis {missing[0]} is missing before this one."))
        cube: Name | SubSelect
        at = self.token.at
        if self.take_symbol("("):
            self.enter()
            inner, source, where = self.select("SELECT of a sub-select")
            self.depth -= 1
            self.need_symbol(")", "at the end of the sub-select")
            cube = SubSelect(inner, source, where, at)
        else:
            cube = self.name("the name of a cube")
        slicer = self.expression() if self.take_word("WHERE") else None
        return tuple(axes[ordinal] for ordinal in sorted(axes)), cube, slicer

    def axis(self) -> AxisDefinition:
        at = self.token.at
        non_empty = False
        if self.take_word("NON"):
            self.need_word("EMPTY", "after NON")
            non_empty = True
        expression = self.expression()
        properties: tuple[Name, ...] = ()
        if self.is_word("DIMENSION") or self.is_word("PROPERTIES"):
            self.take_word("DIMENSION")
            self.need_word("PROPERTIES", "after DIMENSION")
            properties = self.names()
        self.need_word("ON", "after the set of an axis")
        return AxisDefinition(self.ordinal(), expression, non_empty, properties, at)

    def ordinal(self) -> int:
        token = self.token
        if token.word in _AXES:
            self.index += 1
            return _AXES[token.word]
        bracketed = self.take_word("AXIS")
        if bracketed:
            self.need_symbol("(", "after AXIS")
        token = self.token
        if token.kind != NUMBER or not token.text.isdigit() or len(token.text) > 2:
            raise self.fail("COLUMNS, ROWS, PAGES or the number of an axis")
        self.index += 1
        if bracketed:
            self.need_symbol(")", "after the number of the axis")
        return int(token.text)
