"""Recursive descent from MDX text to the tree, in time linear in the text.

Operators of equal precedence make one flat `Chain`, so that the tree is only as deep as the text is
nested, and nesting has a limit.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from fractions import Fraction

from app.mdx.source import MdxSyntaxError, Source
from app.mdx.tokens import END, NAME, NUMBER, PARAMETER, STRING, SYMBOL, Token, tokenize
from app.mdx.tree import (
    Alias,
    AxisDefinition,
    Braces,
    Call,
    Case,
    Chain,
    Expression,
    MemberDefinition,
    Name,
    Null,
    Number,
    Parameter,
    Parens,
    Part,
    Query,
    Range,
    SetDefinition,
    String,
    SubSelect,
    Unary,
)

#: Brackets, functions and dots within one another.
MAX_DEPTH = 50

#: Functions that are written after a dot without brackets.
PROPERTIES = frozenset(
    {
        "MEMBERS",
        "ALLMEMBERS",
        "CHILDREN",
        "PARENT",
        "CURRENTMEMBER",
        "DEFAULTMEMBER",
        "PREVMEMBER",
        "NEXTMEMBER",
        "FIRSTCHILD",
        "LASTCHILD",
        "FIRSTSIBLING",
        "LASTSIBLING",
        "SIBLINGS",
        "LEVEL",
        "LEVELS",
        "HIERARCHY",
        "DIMENSION",
        "NAME",
        "UNIQUENAME",
        "UNIQUE_NAME",
        "CAPTION",
        "MEMBER_CAPTION",
        "ORDINAL",
        "VALUE",
        "COUNT",
        "CURRENT",
        "CURRENTORDINAL",
        "DATAMEMBER",
        "KEY",
        "MEMBER_KEY",
        "ALL",
    }
)

_AXES = {"COLUMNS": 0, "ROWS": 1, "PAGES": 2, "SECTIONS": 3, "CHAPTERS": 4}
#: Words that end an expression or stand between its parts, so that they are no names.
_RESERVED = frozenset(
    {
        "SELECT",
        "FROM",
        "WHERE",
        "ON",
        "WITH",
        "AS",
        "AND",
        "OR",
        "XOR",
        "NOT",
        "IS",
        "IN",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "NON",
        "PROPERTIES",
        "DIMENSION",
        "CELL",
        "EMPTY",
    }
)
_PRECEDENCE: tuple[frozenset[str], ...] = (
    frozenset({"OR", "XOR"}),
    frozenset({"AND"}),
    frozenset({"=", "<>", "<", ">", "<=", ">=", "IS", "IN", "NOT IN"}),
    frozenset({"+", "-", "||"}),
    frozenset({"*", "/"}),
    frozenset({"^"}),
)
_COMPARISON = 2
_LEVEL_OF = {operator: level for level, operators in enumerate(_PRECEDENCE) for operator in operators}
_PIECE = re.compile(r"(\.&?|&|^&?)\[((?:[^\]]|\]\])*)\]")


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


class _Parser:
    def __init__(self, source: Source, tokens: list[Token] | None = None) -> None:
        self.source = source
        self.tokens = tokenize(source) if tokens is None else tokens
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def fail(self, expected: str) -> MdxSyntaxError:
        token = self.token
        found = f"“{token.text[:40]}”" if token.kind != END else "the end of the text"
        return MdxSyntaxError(self.source.mistake(token.at, f"Expected {expected}, but found {found}."))

    def is_word(self, word: str) -> bool:
        return self.tokens[self.index].word == word

    def take_word(self, word: str) -> bool:
        if self.tokens[self.index].word != word:
            return False
        self.index += 1
        return True

    def is_symbol(self, symbol: str) -> bool:
        token = self.tokens[self.index]
        return token.kind == SYMBOL and token.text == symbol

    def take_symbol(self, symbol: str) -> bool:
        token = self.tokens[self.index]
        if token.kind != SYMBOL or token.text != symbol:
            return False
        self.index += 1
        return True

    def need_word(self, word: str, after: str) -> None:
        if not self.take_word(word):
            near = difflib.get_close_matches(self.token.word, [word], cutoff=0.7)
            hint = f" (did you mean {word}?)" if near else ""
            raise self.fail(f"{word} {after}{hint}")

    def need_symbol(self, symbol: str, after: str) -> None:
        if not self.take_symbol(symbol):
            raise self.fail(f"{symbol!r} {after}")

    def end(self) -> None:
        if self.token.kind != END:
            raise self.fail("the end of the text")

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            cause = f"The query is nested more than {MAX_DEPTH} deep."
            raise MdxSyntaxError(self.source.mistake(self.token.at, cause, "Name its parts with WITH."))

    # Statements

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

    def names(self) -> tuple[Name, ...]:
        names = [self.name("the name of a property")]
        while self.is_symbol(",") and self.tokens[self.index + 1].kind == NAME:
            self.index += 1
            names.append(self.name("the name of a property"))
        return tuple(names)

    def name(self, expected: str) -> Name:
        token = self.token
        if token.kind != NAME or token.word in _RESERVED:
            raise self.fail(expected)
        parts: list[Part] = []
        self.name_parts(parts)
        while self.is_symbol(".") and self.tokens[self.index + 1].kind == NAME:
            self.index += 1
            self.name_parts(parts)
        return Name(tuple(parts), token.at)

    def name_parts(self, parts: list[Part]) -> None:
        token = self.token
        self.index += 1
        if token.word:
            parts.append(Part(token.text))
            return
        if token.text[0] == "&" and token.text[1] != "[":
            parts.append(Part(token.text[1:], (token.text[1:],)))
            return
        for place, (separator, text) in enumerate(_PIECE.findall(token.text)):
            text = text.replace("]]", "]")
            if place and separator == "&" and parts[-1].keys is not None:
                parts[-1] = Part(parts[-1].text, (*parts[-1].keys, text))
            else:
                parts.append(Part(text, (text,) if "&" in separator else None))

    # Expressions

    def expression(self, level: int = 0) -> Expression:
        self.enter()
        result = self.chain(level)
        if level == 0 and self.is_word("AS") and self.tokens[self.index + 1].kind == NAME:
            self.index += 1
            at = self.token.at
            name = self.name("a name for the set")
            if len(name.parts) != 1:
                raise MdxSyntaxError(self.source.mistake(at, "The name of a set has one part."))
            result = Alias(result, name.parts[0].text, at)
        self.depth -= 1
        return result

    def operator(self) -> str:
        token = self.tokens[self.index]
        if token.kind == SYMBOL:
            return token.text
        if token.word == "NOT" and self.tokens[self.index + 1].word == "IN":
            return "NOT IN"
        return token.word

    def chain(self, level: int) -> Expression:
        """Operands joined by operators of this level or a tighter one (precedence climbing)."""
        at = self.token.at
        left = self.unary()
        while (found := _LEVEL_OF.get(self.operator(), -1)) >= level:
            operands = [left]
            operators: list[str] = []
            while _LEVEL_OF.get(operator := self.operator(), -1) == found:
                if found == _COMPARISON and operators:
                    raise self.fail("AND, OR or the end of the comparison")
                self.index += 2 if operator == "NOT IN" else 1
                operators.append(operator)
                operands.append(self.chain(found + 1))
            left = Chain(tuple(operands), tuple(operators), at)
        return left

    def unary(self) -> Expression:
        token = self.token
        if token.kind == SYMBOL and token.text in "+-":
            operator = token.text
        elif token.word in ("NOT", "EXISTING"):
            operator = token.word
        else:
            return self.range()
        self.index += 1
        self.enter()
        operand = self.chain(_COMPARISON) if operator == "NOT" else self.unary()
        self.depth -= 1
        return Unary(operator, operand, token.at)  # type: ignore[arg-type]

    def range(self) -> Expression:
        first = self.postfix()
        if not self.is_symbol(":"):
            return first
        at = self.token.at
        self.index += 1
        return Range(first, self.postfix(), at)

    def postfix(self) -> Expression:
        entered = self.depth
        result = self.primary()
        while self.is_symbol("."):
            following = self.tokens[self.index + 1]
            if following.kind != NAME:
                self.index += 1
                raise self.fail("a name or function after the dot")
            called = self.tokens[self.index + 2]
            is_call = called.kind == SYMBOL and called.text == "(" and bool(following.word)
            self.index += 1
            if following.word and (is_call or following.word in PROPERTIES):
                self.enter()
                self.index += 1
                arguments = self.arguments() if is_call else None
                result = Call(following.text, result, arguments, following.at)
            elif isinstance(result, Name):
                parts = list(result.parts)
                self.name_parts(parts)
                result = Name(tuple(parts), result.at)
            else:
                raise self.fail("a function after the dot")
        self.depth = entered
        return result

    def arguments(self) -> tuple[Expression | None, ...]:
        self.need_symbol("(", "before the arguments")
        found: list[Expression | None] = []
        if self.take_symbol(")"):
            return ()
        while True:
            if self.is_symbol(",") or self.is_symbol(")"):
                found.append(None)
            else:
                found.append(self.expression())
            if self.take_symbol(")"):
                return tuple(found)
            if not self.take_symbol(","):
                raise self.fail("',' or ')' in the arguments")

    def primary(self) -> Expression:
        token = self.token
        if token.kind == NAME:
            if token.word == "CASE":
                return self.case()
            if token.word in _RESERVED:
                raise self.fail("a set, member or value")
            following = self.tokens[self.index + 1]
            if token.word and following.kind == SYMBOL and following.text == "(":
                self.index += 1
                return Call(token.text, None, self.arguments(), token.at)
            if token.word == "NULL":
                self.index += 1
                return Null(token.at)
            parts: list[Part] = []
            self.name_parts(parts)
            return Name(tuple(parts), token.at)
        self.index += 1
        if token.kind == NUMBER:
            return Number(_exact(token, self.source), token.at)
        if token.kind == STRING:
            quote = token.text[0]
            return String(token.text[1:-1].replace(quote * 2, quote), token.at)
        if token.kind == PARAMETER:
            return Parameter(token.text[1:], token.at)
        if token.kind == SYMBOL and token.text == "{":
            return Braces(self.items("}"), token.at)
        if token.kind == SYMBOL and token.text == "(":
            items = self.items(")")
            if not items:
                raise MdxSyntaxError(self.source.mistake(token.at, "A tuple needs a member."))
            return Parens(items, token.at)
        self.index -= 1
        raise self.fail("a set, member or value")

    def items(self, close: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        if self.take_symbol(close):
            return ()
        while True:
            items.append(self.expression())
            if self.take_symbol(close):
                return tuple(items)
            if not self.take_symbol(","):
                raise self.fail(f"',' or {close!r}")

    def case(self) -> Expression:
        at = self.token.at
        self.index += 1
        subject = None if self.is_word("WHEN") else self.expression()
        branches: list[tuple[Expression, Expression]] = []
        while self.take_word("WHEN"):
            condition = self.expression()
            self.need_word("THEN", "after the condition")
            branches.append((condition, self.expression()))
        if not branches:
            raise self.fail("WHEN in CASE")
        otherwise = self.expression() if self.take_word("ELSE") else None
        self.need_word("END", "at the end of CASE")
        return Case(subject, tuple(branches), otherwise, at)


def _exact(token: Token, source: Source) -> Fraction:
    mantissa, _, exponent = token.text.lower().partition("e")
    if len(exponent) > 4 or abs(int(exponent or 0)) > 308 or len(mantissa) > 400:
        raise MdxSyntaxError(source.mistake(token.at, "The number is out of range."))
    return Fraction(token.text)
