"""Where the parser is in a text: tokens taken one after another, and names of them."""

from __future__ import annotations

import difflib
import re

from app.mdx.source import MdxSyntaxError, Source
from app.mdx.tokens import END, NAME, SYMBOL, Token, tokenize
from app.mdx.tree import Name, Part

#: Brackets, functions and dots within one another.
MAX_DEPTH = 50

#: Words that end an expression or stand between its parts, so that they are no names.
RESERVED = frozenset(
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
_PIECE = re.compile(r"(\.&?|&|^&?)\[((?:[^\]]|\]\])*)\]")


class TokenReader:
    """Takes tokens in turn; what isn't as expected is told with its place."""

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

    def names(self) -> tuple[Name, ...]:
        names = [self.name("the name of a property")]
        while self.is_symbol(",") and self.tokens[self.index + 1].kind == NAME:
            self.index += 1
            names.append(self.name("the name of a property"))
        return tuple(names)

    def name(self, expected: str) -> Name:
        token = self.token
        if token.kind != NAME or token.word in RESERVED:
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
        keys: list[str] = []
        for separator, text in _PIECE.findall(token.text):
            text = text.replace("]]", "]")
            if keys and separator != "&":
                parts.append(Part(keys[0], tuple(keys)))
                keys = []
            if "&" in separator:
                keys.append(text)
            else:
                parts.append(Part(text))
        if keys:
            parts.append(Part(keys[0], tuple(keys)))
