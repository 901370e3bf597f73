"""The words of a formula, as the catalogue publishes them, into a tree.

Covers what statistics are made of: numbers, members, tuples, sets, the four operations, ``Aggregate`` and
``Sum`` over sets, ``PrevMember`` and ``CurrentMember``. Anything else is not understood, and said so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<name>\[(?:[^\]]|\]\])*\])|(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign>[-+*/(){},.:&]))"
)


class NotUnderstoodError(ValueError):
    """The formula is beyond these words."""


@dataclass(frozen=True)
class Number:
    value: float


@dataclass(frozen=True)
class Reference:
    """A dotted path, ``[Geography].[Province].&[28].Children``: names in brackets as written, words bare."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class TupleOf:
    members: tuple[Reference, ...]


@dataclass(frozen=True)
class SetOf:
    """Items, or from the first to the last (``ranged``)."""

    items: tuple[Node, ...]
    ranged: bool = False


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Operation:
    sign: str
    left: Node
    right: Node


Node = Number | Reference | TupleOf | SetOf | Call | Operation


def parse_words(text: str) -> Node:
    """The tree of a formula.

    Raises
    ------
    NotUnderstoodError
    """
    parser = _Parser(_tokens(text))
    node = parser.sum()
    if parser.peek():
        raise NotUnderstoodError(f"{parser.peek()} is left over")
    return node


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotUnderstoodError(f"{text[position : position + 10]!r}")
        tokens.append(match.group(match.lastgroup or 0))
        position = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise NotUnderstoodError(f"{token or 'the end'} where {expected or 'more'} should be")
        self._at += 1
        return token

    def sum(self) -> Node:
        node = self._product()
        while self.peek() in ("+", "-"):
            node = Operation(self._take(), node, self._product())
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self.peek() in ("*", "/"):
            node = Operation(self._take(), node, self._unary())
        return node

    def _unary(self) -> Node:
        if self.peek() == "-":
            self._take()
            return Operation("-", Number(0.0), self._unary())
        if self.peek() == "+":
            self._take()
            return self._unary()
        return self._atom()

    def _atom(self) -> Node:
        token = self.peek()
        if token == "(":
            self._take()
            items = self._list(")")
            if len(items) == 1:
                return items[0]
            if not all(isinstance(item, Reference) for item in items):
                raise NotUnderstoodError("a tuple of something else than members")
            return TupleOf(tuple(item for item in items if isinstance(item, Reference)))
        if token == "{":
            self._take()
            if self.peek() == "}":
                self._take()
                return SetOf(())
            items = self._list("}")
            return SetOf(tuple(items))
        if token and (token[0].isdigit()):
            return Number(float(self._take()))
        if token and (token[0] == "[" or token[0].isalpha()):
            return self._path()
        raise NotUnderstoodError(f"{token or 'the end'}")

    def _list(self, closing: str) -> list[Node]:
        items = [self._item()]
        while self.peek() == ",":
            self._take()
            items.append(self._item())
        self._take(closing)
        return items

    def _item(self) -> Node:
        node = self.sum()
        if self.peek() == ":":
            self._take()
            return SetOf((node, self.sum()), ranged=True)
        return node

    def _path(self) -> Node:
        parts = [self._take()]
        if parts[0][0] != "[" and self.peek() == "(":
            self._take()
            return Call(parts[0].upper(), tuple(self._list(")")))
        while self.peek() in (".", "&"):
            if self._take() == "&" or self.peek() == "&":
                if self.peek() == "&":
                    self._take()
                parts.append("&" + self._take())
            else:
                parts.append(self._take())
        return Reference(tuple(parts))
