"""Mistakes in the reader's language: sentences are found in the catalogue, names stay as they are.

Whoever finds a mistake says it in English, with what it names put in; the layers below know no reader. The
catalogue ``mistakes.po`` has each sentence with ``{}`` for what is put in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from babel.messages.pofile import read_po

from app.domain.errors import Mistake
from app.web.language import INTERFACE, LOCALES

_GAP = "{}"
#: Letters of a sentence; what is longer holds somebody's text and is left as it is.
_LONGEST = 500


@cache
def templates(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of English sentences with their translations, the most specific first."""
    path = LOCALES / language / "LC_MESSAGES" / "mistakes.po"
    if language not in INTERFACE or not path.is_file():
        return ()
    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    said = {str(message.id): str(message.string) for message in catalogue if message.id}
    found = sorted(said, key=lambda text: (-len(text.replace(_GAP, "")), text))
    return tuple((_pattern(text), said[text]) for text in found)


def _pattern(text: str) -> re.Pattern[str]:
    # What somebody wrote there may be an empty text.
    return re.compile("(.*?)".join(re.escape(part) for part in text.split(_GAP)), re.DOTALL)


def translated(mistakes: Iterable[Mistake], told: Callable[[str], str]) -> tuple[Mistake, ...]:
    """Mistakes in the words of ``told``, which says a sentence in the reader's language."""
    return tuple(
        replace(mistake, cause=told(mistake.cause), remedy=told(mistake.remedy) if mistake.remedy else "")
        for mistake in mistakes
    )


def in_words_of(text: str, language: str) -> str:
    """A sentence about a mistake in a language; as it is where the catalogue has none like it."""
    for pattern, said in templates(language) if len(text) <= _LONGEST else ():
        match = pattern.fullmatch(text)
        if match is not None:
            # What is put in may be said by a sentence of the catalogue itself.
            put_in = [in_words_of(part, language) for part in match.groups()]
            fixed = said.split(_GAP)
            return fixed[0] + "".join(map("".join, zip(put_in, fixed[1:], strict=True)))
    return text
