"""Full-text search over titles, members, units and notes; never over figures.

Words are compared by their stem in the reader's language, without accents, and by their beginning.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log

import snowballstemmer

from app.domain.cube import text_in
from app.domain.masked import AxisMember, MaskedCellSet
from app.web.contents import Choice, Contents, SheetEntry
from app.web.tables import caption

_STEMMERS = {"en": "english", "es": "spanish", "ca": "catalan"}
_WORD = re.compile(r"\w+")
_LONGEST_QUERY = 200
#: Words of so few letters are articles and the like, unless there are no others.
_SHORT = 2
_TITLE, _QUERY, _FOLDER, _MEMBER, _NOTES = 8.0, 5.0, 3.0, 2.0, 1.0
_BEGINNING = 0.6
_NAMED = 6


@dataclass(frozen=True)
class Found:
    """A member that answers to the words, and the choice that makes it appear (may be empty)."""

    text: str
    choice: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Hit:
    """A sheet that answers to every word."""

    entry: SheetEntry
    score: float
    members: tuple[Found, ...]


@dataclass(frozen=True)
class _Entry:
    document: int
    weight: float
    member: Found | None


class SearchIndex:
    """An index of one release in one language.

    Parameters
    ----------
    contents : Contents
    language : str
    answers : iterable of (SheetEntry, choices, masked cellsets)
        Each sheet as it first appears, for the members on its axes.
    """

    def __init__(
        self,
        contents: Contents,
        language: str,
        answers: Iterable[tuple[SheetEntry, tuple[Choice, ...], tuple[MaskedCellSet, ...]]],
    ) -> None:
        self._language = language
        self._sheets: list[SheetEntry] = []
        self._postings: dict[str, list[_Entry]] = {}
        for entry, choices, cellsets in answers:
            document = len(self._sheets)
            self._sheets.append(entry)
            for weight, text in self._texts(entry, cellsets):
                self._add(document, weight, text, None)
            for found in dict.fromkeys(_members(contents, choices, cellsets, language)):
                self._add(document, _MEMBER, found.text, found)
        self._words = sorted(self._postings)

    def _texts(self, entry: SheetEntry, cellsets: tuple[MaskedCellSet, ...]) -> Iterator[tuple[float, str]]:
        language = self._language
        yield _TITLE, text_in(entry.sheet.title, language)
        yield _NOTES, text_in(entry.sheet.notes, language)
        for folder in entry.path:
            yield _FOLDER, text_in(folder.title, language)
        for query in entry.sheet.queries:
            yield _QUERY, text_in(query.title, language)
        for unit in dict.fromkeys(text_in(s.unit, language) for cells in cellsets for s in cells.styles):
            yield _NOTES, unit

    def _add(self, document: int, weight: float, text: str, member: Found | None) -> None:
        for word in _WORD.findall(text):
            for form in {fold(word), _stem(word, self._language)}:
                self._postings.setdefault(form, []).append(_Entry(document, weight, member))

    def find(self, words: str, limit: int = 50) -> tuple[Hit, ...]:
        """Sheets with every word, the best first."""
        every = dict.fromkeys(_WORD.findall(words[:_LONGEST_QUERY]))
        asked = [word for word in every if len(word) > _SHORT] or list(every)
        scores: dict[int, float] = {}
        named: dict[int, dict[Found, int]] = {}
        for number, word in enumerate(asked):
            best: dict[int, float] = {}
            for form, share in self._forms(word):
                entries = self._postings[form]
                rarity = log(1 + len(self._sheets) / len({entry.document for entry in entries}))
                for entry in entries:
                    score = share * entry.weight * rarity
                    best[entry.document] = max(best.get(entry.document, 0.0), score)
                    if entry.member is not None:
                        counts = named.setdefault(entry.document, {})
                        counts[entry.member] = counts.get(entry.member, 0) + 1
            scores = {
                document: scores.get(document, 0.0) + score
                for document, score in best.items()
                if number == 0 or document in scores
            }
        order = sorted(scores, key=lambda document: (-scores[document], document))[:limit]
        return tuple(
            Hit(
                self._sheets[document],
                scores[document],
                tuple(sorted(named.get(document, {}), key=lambda f: -named[document][f])[:_NAMED]),
            )
            for document in order
        )

    def _forms(self, word: str) -> Iterator[tuple[str, float]]:
        stem, start = _stem(word, self._language), fold(word)
        if stem in self._postings:
            yield stem, 1.0
        place = bisect_left(self._words, start)
        while place < len(self._words) and self._words[place].startswith(start):
            if self._words[place] != stem:
                yield self._words[place], 1.0 if self._words[place] == start else _BEGINNING
            place += 1


def _members(
    contents: Contents, choices: tuple[Choice, ...], cellsets: tuple[MaskedCellSet, ...], language: str
) -> Iterator[Found]:
    """Members on the axes, the options of parameters, and what each option makes appear."""
    present = [
        m for cells in cellsets for axis in cells.axes for position in axis.positions for m in position
    ]
    chosen = {choice.member.unique_name for choice in choices}
    below = [member for member in present if member.parent in chosen]
    for member in present:
        if member.unique_name not in chosen and member.parent not in chosen:
            yield Found(caption(member, language), ())
    for choice in choices:
        field = f"p.{choice.parameter.name}"
        opens = any(member.parent == choice.member.unique_name for member in below)
        for option, key in zip(choice.options, choice.keys, strict=True):
            yield Found(caption(option, language), ((field, key),))
            if opens:
                for name in _children(contents, choice, option, language):
                    yield Found(name, ((field, key),))


def _children(contents: Contents, choice: Choice, option: AxisMember, language: str) -> Iterator[str]:
    cube = contents.catalogue.cubes[choice.parameter.cube]
    hierarchy = cube.hierarchies[cube.hierarchy_index[option.hierarchy]]
    for child in hierarchy.child_lists[hierarchy.index_of[option.unique_name]]:
        yield hierarchy.caption(int(child), language)


@lru_cache(maxsize=100_000)
def _stem(word: str, language: str) -> str:
    name = _STEMMERS.get(language)
    return fold(snowballstemmer.stemmer(name).stemWord(word.casefold()) if name else word)


def fold(word: str) -> str:
    """Letters alone: without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))
