"""crawl: what earlier releases showed, under the names that it has today.

A measure, level, dimension or cube that is called otherwise, or members with other keys, are still what
readers saw. What authors declare is taken; else it is known again by its definition and by its records. What
can't be found stops the run: two releases of the same facts that nobody compares tell what both hide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from app.cube.port import CubeServer
from app.domain.cube import Cube
from app.domain.errors import Mistake, UserError
from app.domain.known import FactRows, ShownCells
from app.domain.publication import Forgetting, Publication
from app.pipeline.earlier import Past
from app.pipeline.matching import Match
from app.pipeline.same_facts import alike

NAMED_AT_MOST = 5
_REMEDY = (
    "Write formerly (recoded, for keys) where it has another name now, or [[release.forget]] in "
    "publication.toml where it is gone."
)


def recognised(
    publication: Publication, servers: Mapping[str, CubeServer], past: Past, strict: bool = True
) -> Past:
    """What earlier releases showed in the cubes of today.

    Parameters
    ----------
    strict
        Whether what can't be found is a mistake; else it is left as it was.

    Raises
    ------
    UserError
        With all that earlier releases showed and that no cube has any more.
    """
    if not past.shown:
        return past
    found = _Recognition(publication, servers, past)
    result = found.result()
    if strict and found.mistakes:
        raise UserError(found.mistakes)
    return result


class _Recognition:
    def __init__(self, publication: Publication, servers: Mapping[str, CubeServer], past: Past) -> None:
        self.mistakes: list[Mistake] = []
        self._definitions = {cube.name: cube for cube in publication.cubes if cube.name in servers}
        self._forget = publication.release.forget
        self._servers, self._past = servers, past
        self._forgotten: dict[Forgetting, None] = {}
        self._former: dict[str, list[str]] = {}

    def result(self) -> Past:
        shown: dict[str, list[ShownCells]] = {}
        for name, items in self._past.shown.items():
            target = self._target(name, items)
            if target is None:
                continue
            self._former.setdefault(target, []).append(name)
            shown.setdefault(target, []).extend(self._under_today(name, target, items))
        place = {release: number for number, release in enumerate(self._past.order)}
        return Past(
            {
                name: tuple(sorted(items, key=lambda item: place.get(item.release_id, 0)))
                for name, items in shown.items()
            },
            self._snapshot,
            self._past.order,
            tuple(self._forgotten),
            self._past.rules,
        )

    def _target(self, name: str, items: Sequence[ShownCells]) -> str | None:
        """The cube of today that an earlier one is."""
        if name in self._definitions:
            return name
        for definition in self._definitions.values():
            if name in definition.formerly:
                return definition.name
        facts = self._past.snapshot(name, items[-1].cells.fingerprint)
        same = [
            other
            for other in self._definitions
            if other not in self._past.shown
            and facts is not None
            and (now := self._servers[other].facts()) is not None
            and alike(facts, now)
        ]
        if len(same) == 1:
            return same[0]
        if not self._forgets(name, name, ""):
            cause = f"Earlier releases showed cube {name}, which isn't there any more."
            self.mistakes.append(Mistake("publication.toml", 0, 0, cause, _REMEDY))
        return None

    def _under_today(self, name: str, target: str, items: Sequence[ShownCells]) -> Iterator[ShownCells]:
        lost: dict[str, None] = {}
        without: dict[str, None] = {}
        for item in items:
            facts = partial(self._past.snapshot, name, item.cells.fingerprint)
            match = self._match(item.cells.cube, facts, target)
            lost.update(dict.fromkeys(match.lost(item)))
            without.update(dict.fromkeys(match.without_total()))
            yield match.names.of_shown(item)
        at = self._definitions[target].at
        gone = [what for what in lost if not self._forgets(name, target, what)]
        if gone:
            some = ", ".join(gone[:NAMED_AT_MOST]) + (f" … ({len(gone)})" if gone[NAMED_AT_MOST:] else "")
            cause = f"Earlier releases showed {some} of cube {target}, which isn't there any more."
            self.mistakes.append(Mistake(at.file, at.line, at.column, cause, _REMEDY))
        for what in without:
            if not self._forgets(name, target, what):
                cause = f"Cube {target} was shown without {what}, which has no total."
                remedy = "Give it all, or write [[release.forget]] in publication.toml."
                self.mistakes.append(Mistake(at.file, at.line, at.column, cause, remedy))

    def _match(self, old: Cube, facts: Callable[[], FactRows | None], target: str) -> Match:
        return Match(old, facts, self._servers[target], self._definitions[target])

    def _forgets(self, name: str, target: str, what: str) -> bool:
        """Whether its authors decided that something needn't be known any more; notes the decision."""
        for item in self._forget:
            mine = item.cube in (name, target)
            if mine and (item.what == what or (item.what and what.startswith(f"{item.what}."))):
                self._forgotten[item] = None
                return True
        return False

    def _snapshot(self, cube: str, fingerprint: str) -> FactRows | None:
        for name in self._former.get(cube, [cube]):
            rows = self._past.snapshot(name, fingerprint)
            if rows is not None:
                return self._match(
                    rows.cube, partial(self._past.snapshot, name, fingerprint), cube
                ).names.of_facts(rows)
        return None
