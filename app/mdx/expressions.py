"""Recursive descent over the expressions of MDX: sets, members, values and conditions."""

from __future__ import annotations

from fractions import Fraction

from app.mdx.reading import RESERVED, TokenReader
from app.mdx.source import MdxSyntaxError, Source
from app.mdx.tokens import NAME, NUMBER, PARAMETER, STRING, SYMBOL, Token
from app.mdx.tree import (
    Alias,
    Braces,
    Call,
    Case,
    Chain,
    Expression,
    Name,
    Null,
    Number,
    Parameter,
    Parens,
    Part,
    Range,
    String,
    Unary,
)

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
        "MEMBER_NAME",
        "MEMBER_UNIQUE_NAME",
        "MEMBER_VALUE",
        "MEMBERVALUE",
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

#: Those that give a set: what stands in brackets behind them is the number of its item.
_SETS = frozenset({"MEMBERS", "ALLMEMBERS", "CHILDREN", "SIBLINGS"})
#: What such a number may stand behind.
_HAS_ITEMS = (Call, Braces, Parens)

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


class ExpressionParser(TokenReader):
    """Operators of equal precedence make one flat `Chain`."""

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
                if operator == "IS" and self.take_word("EMPTY"):
                    return Call("IsEmpty", None, (left,), at)
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
        while self.is_symbol(".") or (self.is_symbol("(") and isinstance(result, _HAS_ITEMS)):
            if self.is_symbol("("):
                self.enter()
                at = self.token.at
                result = Call("Item", result, self.arguments(), at)
                continue
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
                arguments = self.arguments() if is_call and following.word not in _SETS else None
                result = Call(following.text, result, arguments, following.at)
            elif isinstance(result, Name):
                self.index -= 1
                result = self.longer(result)
            else:
                raise self.fail("a function after the dot")
        self.depth = entered
        return result

    def longer(self, name: Name) -> Name:
        """A name with what stands behind its dots, up to a function."""
        parts = list(name.parts)
        while self.is_symbol(".") and (following := self.tokens[self.index + 1]).kind == NAME:
            called = self.tokens[self.index + 2]
            is_call = called.kind == SYMBOL and called.text == "("
            if following.word and (is_call or following.word in PROPERTIES):
                break
            self.index += 1
            self.name_parts(parts)
        return Name(tuple(parts), name.at)

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
            if token.word in RESERVED:
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
