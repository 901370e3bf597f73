"""Tokens of MDX: one pass of one regular expression over the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from app.domain.texts import unprintable
from app.mdx.source import MdxSyntaxError, Source

#: Longer texts are refused before anything else happens.
MAX_LENGTH = 1_000_000
#: So are texts of more tokens, so that no query keeps the parser for over a second.
MAX_TOKENS = 50_000

NAME = "name"
NUMBER = "number"
STRING = "string"
PARAMETER = "parameter"
SYMBOL = "symbol"
END = "end"

# A dotted chain of quoted names is one token: it is most of what a long query consists of.
_QUOTED = r"\[[^\]]*(?:\]\][^\]]*)*\]"
_TOKEN = re.compile(
    rf"""
    (?P<blank> \s+ | --[^\n]* | //[^\n]* | (?s:/\*.*?\*/) )
  | (?P<open> /\* )
  | (?P<name> (?:{_QUOTED}|\&{_QUOTED}) (?: (?:\.\&?|\&) {_QUOTED} )* | [^\W\d]\w* | \&\w+ )
  | (?P<number> (?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)? )
  | (?P<string> '[^']*(?:''[^']*)*' | "[^"]*(?:""[^"]*)*" )
  | (?P<parameter> @[^\W\d]\w* )
  | (?P<symbol> <> | <= | >= | \|\| | [-+*/^(){{}},.:=<>] )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """``text`` as written; for a bare word ``word`` is the word in capitals, else ``""``."""

    kind: str
    text: str
    at: int
    word: str


def tokenize(source: Source, start: int = 0, part: str | None = None) -> list[Token]:
    """Tokens of a text, or of a part of it that stands at offset ``start``, ending in an END token.

    Raises
    ------
    MdxSyntaxError
        At the first character that begins no token, or when the text is too long.
    """
    text = source.text if part is None else part
    if len(text) > MAX_LENGTH:
        cause = f"The query has {len(text):,} characters; the limit is {MAX_LENGTH:,}."
        raise MdxSyntaxError(Source("", source.file, source.line).mistake(0, cause, "Split it."))
    if wrong := unprintable(text):
        where, name = wrong
        cause = f"The query holds the control character {name}."
        raise MdxSyntaxError(source.mistake(start + where, cause, "Take it out."))
    tokens: list[Token] = []
    position = 0
    match = _TOKEN.match
    while position < len(text):
        found = match(text, position)
        if found is None or found.lastgroup == "open":
            at = start + position
            raise MdxSyntaxError(source.mistake(at, *_no_token(text[position : position + 2])))
        kind = found.lastgroup or ""
        if kind != "blank":
            written = found.group()
            word = written.upper() if kind == NAME and written[0] not in "[&" else ""
            tokens.append(Token(kind, written, start + position, word))
            if len(tokens) > MAX_TOKENS:
                cause = f"The query has more than {MAX_TOKENS:,} words and signs."
                raise MdxSyntaxError(source.mistake(start + position, cause, "Split it."))
        position = found.end()
    tokens.append(Token(END, "", start + len(text), ""))
    return tokens


def _no_token(start: str) -> tuple[str, str]:
    if start[0] == "[":
        return "A name in square brackets is never closed.", "Add the closing ]."
    if start[0] in "'\"":
        return "A text in quotes is never closed.", "Add the closing quote."
    if start == "/*":
        return "A comment is never closed.", "Add the closing */."
    return f"The character {start[0]!r} has no meaning in MDX.", ""
