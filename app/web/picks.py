"""Which members of a hierarchy a reader wants to see, as addresses say it.

A pick is a list of terms with commas between them: a member's key, ``<key>:<key>`` for one to another as the
table lists them, ``level:<depth>`` for all members of a level, ``from:<key>`` for a period and all after it,
``last:<n>`` for the last n periods. All but the first follow the releases: what they mean is worked out anew
in each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from urllib.parse import quote, unquote

from app.domain.cube import Cube, Hierarchy
from app.domain.masked import AxisMember
from app.serve.answer import NotPublishedError
from app.web.language import marked as _
from app.web.refusals import RefusalError

LEVEL, FROM, LAST = "level:", "from:", "last:"
#: Between the ends of a run; no term of a member holds it.
_TO = ":"
#: Members in a row that are said by their ends: thousands of them fit in an address then.
_RUN = 5

#: The most periods that ``last:`` counts.
_MOST = 100_000


NO_PICK = _("“%(value)s” doesn't say which members to show.")
BACKWARDS = _("“%(value)s” runs backwards: the table lists its end before its beginning.")


@dataclass(frozen=True, eq=False)
class Members:
    """The members of one hierarchy that a table was published with, in order, each with its term.

    ``hierarchy`` is None for measures. A term of another member of the hierarchy means nobody here: a choice
    may outlive the table that it was made in.
    """

    members: tuple[AxisMember, ...]
    terms: tuple[str, ...]
    hierarchy: Hierarchy | None

    @property
    def time(self) -> bool:
        """Whether they are periods."""
        return self.hierarchy is not None and self.hierarchy.time

    def pick(self, wanted: str) -> frozenset[str]:
        """Unique names of the members that a pick means; all of them when it is empty.

        Raises
        ------
        RefusalError
            400 for a term that can't be read, one of periods where there are none, or a run that is said from
            its end: what means nobody would show everybody.
        NotPublishedError
            A member that the table doesn't have.
        """
        terms = wanted.split(",") if wanted else []
        found = frozenset(member.unique_name for term in terms for member in self._meant(term))
        return found or frozenset(member.unique_name for member in self.members)

    def named(self, terms: Sequence[str]) -> frozenset[str]:
        """Unique names of the members that terms of single members mean, none when there are no terms."""
        return frozenset(member.unique_name for term in terms for member in self._member(term))

    def said(self, terms: Collection[str]) -> str:
        """The pick of single members, in the table's order and as short as it gets."""
        wanted, parts = set(terms), []
        for chosen, run in groupby(self.terms, wanted.__contains__):
            found = list(run)
            if not chosen:
                continue
            if len(found) < _RUN or f"{found[0]}{_TO}" in (LEVEL, FROM, LAST):
                parts += found
            else:
                parts.append(f"{found[0]}{_TO}{found[-1]}")
        return ",".join([*parts, *(term for term in terms if term not in self.terms)])

    def _meant(self, term: str) -> Sequence[AxisMember]:
        if term.startswith(LEVEL):
            depth = _number(term, LEVEL)
            if depth >= (len(self.hierarchy.levels) if self.hierarchy is not None else 1):
                raise RefusalError(400, NO_PICK, value=term)
            return [member for member in self.members if member.depth == depth]
        if term.startswith((FROM, LAST)) and not self.time:
            raise RefusalError(400, NO_PICK, value=term)
        if term.startswith(FROM):
            start = self._member(term.removeprefix(FROM))
            return [
                member
                for first in start
                for member in self.members[self.members.index(first) :]
                if member.depth == first.depth
            ]
        if term.startswith(LAST):
            deepest = max((member.depth for member in self.members), default=0)
            periods = [member for member in self.members if member.depth == deepest]
            count = _number(term, LAST)
            if not count:
                raise RefusalError(400, NO_PICK, value=term)
            return periods[-count:]
        if _TO in term:
            ends = [self._member(end) for end in term.split(_TO, 1)]
            first, last = (self.members.index(end[0]) if end else -1 for end in ends)
            if 0 <= last < first:
                raise RefusalError(400, BACKWARDS, value=term)
            return self.members[first : last + 1] if first >= 0 else []
        return self._member(term)

    def _member(self, term: str) -> Sequence[AxisMember]:
        if term in self.terms:
            return [self.members[self.terms.index(term)]]
        if self.hierarchy is None or term not in terms_of(self.hierarchy).values():
            raise NotPublishedError(unquote(term))
        return []

    def depths(self) -> tuple[int, ...]:
        """The levels that members stand on, from the top."""
        return tuple(sorted({member.depth for member in self.members}))


def members_of(cube: Cube, members: Sequence[AxisMember]) -> Members:
    """Members with the terms that addresses call them by."""
    index = cube.hierarchy_index.get(members[0].hierarchy) if members else None
    hierarchy = cube.hierarchies[index] if index is not None else None
    known = terms_of(hierarchy) if hierarchy is not None else {}
    # Measures and calculated members go by their names.
    own = [member.unique_name.rpartition("[")[2].rstrip("]") for member in members]
    terms = [
        known.get(member.unique_name) or quote(name, safe="")
        for member, name in zip(members, own, strict=True)
    ]
    if len(set(terms)) < len(terms):
        terms = [known.get(m.unique_name) or quote(m.unique_name, safe="") for m in members]
    return Members(tuple(members), tuple(terms), hierarchy)


@lru_cache(maxsize=256)
def terms_of(hierarchy: Hierarchy) -> Mapping[str, str]:
    """The term of each member by unique name: its key, its level and key, or its unique name,
    whichever first tells it apart from all others."""
    names = [level.name for level in hierarchy.levels]
    own = ["All" if hierarchy.has_all and not at else key for at, key in enumerate(hierarchy.keys)]
    levelled = [f"{names[depth]}.{key}" for depth, key in zip(hierarchy.depth.tolist(), own, strict=True)]
    keys, levels = Counter(own), Counter([*levelled, *own])
    return {
        name: quote(key if key and keys[key] == 1 else level if levels[level] == 1 else name, safe="")
        for name, key, level in zip(hierarchy.unique_names, own, levelled, strict=True)
    }


def _number(term: str, start: str) -> int:
    text = term.removeprefix(start)
    if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= _MOST):
        raise RefusalError(400, NO_PICK, value=term)
    return int(text)
