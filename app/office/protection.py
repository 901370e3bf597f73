"""Questions about the last run's protection: its cells by state, why one is hidden, and what if."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from app.db.store import Store
from app.domain.crawled import Crawl
from app.domain.errors import ConflictError, UserError
from app.domain.masked import AxisMember, CellStatus
from app.domain.people import Actor
from app.domain.primary import PrimaryResult
from app.domain.publication import Publication
from app.domain.release import Release
from app.domain.version import Version
from app.office.folders import scratch
from app.office.journal import Journal
from app.office.naming import Names
from app.office.questions import Choices, Member, choices_of, members_of
from app.office.states import STATES, StateTable, codes, state_table
from app.office.versions import Versions
from app.pipeline.define import load_publication
from app.pipeline.define_sheet import sheet_of_file
from app.pipeline.run import remembered
from app.pipeline.running import RESULTS, OpenCube
from app.pipeline.suppress import Suppression
from app.pipeline.what_if import (
    Computed,
    Figures,
    WhatIf,
    assess_again,
    what_if,
    with_merged,
    with_sheets,
    with_threshold,
    without_level,
    without_sheets,
)
from app.pipeline.why import Why, find_cell, why

__all__ = [
    "DECISIONS",
    "STATES",
    "CellLine",
    "CellLines",
    "Change",
    "Choices",
    "Effect",
    "Figures",
    "Member",
    "Protection",
    "StateTable",
    "WhatIf",
    "Why",
    "changed",
]

#: Changes a publication into the one that is asked about.
Change = Callable[[Publication], Publication]

DECISIONS = ("hide", "show", "waive")


@dataclass(frozen=True)
class CellLine:
    """A published cell of the last run: its key and name, one of `STATES`, and the rules that hit."""

    key: str
    name: str
    state: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class CellLines:
    """Some of the cells, how many there are of that kind, and how many of each state."""

    lines: tuple[CellLine, ...]
    found: int
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Effect:
    """Cells of the last run, shown or implied, that rules make sensitive: now, and by other rules.

    ``rules`` holds each reason with its cells now and then.
    """

    rules: tuple[tuple[str, int, int], ...]
    now: int
    then: int


class Protection:
    """Made by `app.bootstrap`."""

    def __init__(
        self, folder: Path, store: Store, versions: Versions, journal: Journal, open_cube: OpenCube
    ) -> None:
        self._folder = folder
        self._store = store
        self._versions = versions
        self._journal = journal
        self._open_cube = open_cube

    def names(self, language: str) -> Names:
        """What the cells of the last run are called in a language.

        Raises
        ------
        UserError
            If nothing has been run.
        """
        (crawl,) = self._results("crawl")
        return Names((cells.cube for cells in crawl.cubes), language)

    def cells(
        self, state: str = "", words: str = "", start: int = 0, limit: int = 100, language: str = ""
    ) -> CellLines:
        """Published cells of a state whose keys or names hold all the words.

        Raises
        ------
        UserError
            If nothing has been run.
        """
        crawl, primaries, suppression = self._results("crawl", "assess", "suppress")
        names = Names((cells.cube for cells in crawl.cubes), language)
        lines: list[CellLine] = []
        counts = dict.fromkeys(STATES, 0)
        wanted = words.casefold().split()
        found = 0
        for cells, verdicts, hidden in zip(crawl.cubes, primaries.cubes, suppression.hidden, strict=True):
            n = cells.n_published
            code = codes(cells, verdicts, hidden)
            for place, name in enumerate(STATES):
                counts[name] += int((code == place).sum())
            rows = np.flatnonzero(code == STATES.index(state)) if state else np.arange(n)
            for row, key in zip(rows.tolist(), cells.keys(rows), strict=True):
                if wanted:
                    told = f"{key} {names.said(key)}".casefold()
                    if not all(word in told for word in wanted):
                        continue
                if start <= found < start + limit:
                    reasons = verdicts.reasons_of(row)
                    lines.append(CellLine(key, names.said(key), STATES[code[row]], reasons))
                found += 1
        return CellLines(tuple(lines), found, tuple(counts.items()))

    def table(self, sheet: str, query: str, choices: tuple[str, ...], language: str) -> StateTable:
        """A sheet's table with the state of each cell.

        Raises
        ------
        UserError
            If nothing has been run, or there is no such sheet.
        """
        crawl, primaries, suppression = self._results("crawl", "assess", "suppress")
        return state_table(crawl, primaries, suppression, sheet, query, choices, language)

    def parameters(self, sheet: str) -> tuple[tuple[AxisMember, ...], ...]:
        """The members that each parameter of a sheet can take."""
        (crawl,) = self._results("crawl")
        found: tuple[tuple[AxisMember, ...], ...] = crawl.choices.get(sheet, ())
        return found

    def told_of(self, release: Release, keys: Sequence[str]) -> Mapping[str, CellLine]:
        """What the last run says of cells of a release; nothing when the release isn't what it found."""
        try:
            crawl, primaries, suppression = self._results("crawl", "assess", "suppress")
        except UserError:
            return {}
        rows: dict[str, tuple[int, int]] = {}
        hidden: list[bool] = []
        for number, (cells, mark) in enumerate(zip(crawl.cubes, suppression.hidden, strict=True)):
            n = cells.n_published
            rows.update((key, (number, row)) for row, key in enumerate(cells.keys(np.arange(n))))
            hidden.extend(mark[:n].tolist())
        if tuple(rows) != release.keys or hidden != (release.status == CellStatus.CONFIDENTIAL).tolist():
            return {}
        found: dict[str, CellLine] = {}
        for key in keys:
            number, row = rows[key]
            verdicts, mark = primaries.cubes[number], suppression.hidden[number]
            sensitive = "sensitive" if verdicts.sensitive[row] else "secondary"
            state = "known" if verdicts.known[row] else sensitive
            found[key] = CellLine(key, key, state if mark[row] else "shown", verdicts.reasons_of(row))
        return found

    def why(self, cell: str) -> Why:
        """Why a cell is as it is, and what would free it.

        Raises
        ------
        UserError
            If nothing has been run, or no sheet has the cell.
        """
        crawl, primaries, problems, suppression = self._results("crawl", "assess", "build", "suppress")
        return why(crawl, primaries, problems, suppression, cell)

    def choices(self) -> Choices:
        """What can be asked about the current version, or the folder's files.

        Raises
        ------
        UserError
            If there is a mistake in them.
        """
        with scratch() as folder:
            return choices_of(self._publication(folder / "publication"))

    def members(self, level: str) -> tuple[Member, ...]:
        """Members of a level ``Cube.Level`` in the last run.

        Raises
        ------
        UserError
            If nothing has been run.
        """
        (crawl,) = self._results("crawl")
        return members_of(tuple(cells.cube for cells in crawl.cubes), level)

    def what_if(
        self,
        change: Change,
        sheets: Sequence[Path] = (),
        given: Publication | None = None,
        draft: Publication | None = None,
        has_new_cells: bool = False,
    ) -> WhatIf:
        """What another rule or sheet would hide and cost; nothing is stored.

        ``given`` is what the change is made to: the current version, or else the folder's files; or to a
        ``draft``, which ``has_new_cells`` when its sheets, cubes or facts are others than ``given``'s.

        Raises
        ------
        UserError
            If nothing has been run, or the changed publication can't be computed.
        """
        found: Any = self._results("crawl", "assess", "suppress")
        past = remembered(self._store)
        with scratch() as folder:
            given = given or draft or self._publication(folder / "publication")
            if has_new_cells:
                given = replace(given, cubes=())
            asked = change(draft or given)
            if sheets:
                asked = with_sheets(asked, [sheet_of_file(path, asked) for path in sheets])
            return what_if(asked, given, Computed(*found), past, self._open_cube)

    def effect(self, asked: Publication) -> Effect:
        """What the rules of a publication do to the cells of the last run, before any search.

        Raises
        ------
        UserError
            If nothing has been run, or the publication's cubes are others than were run.
        """
        found: Any = self._results("crawl", "assess")
        crawl: Crawl = found[0]
        now: PrimaryResult = found[1]
        past = remembered(self._store)
        then = assess_again(asked, crawl, past, self._open_cube)
        before, after = _hits(now), _hits(then)
        rules = tuple((reason, before[reason], after[reason]) for reason in dict.fromkeys((*before, *after)))
        return Effect(
            rules,
            sum(int(item.sensitive.sum()) for item in now.cubes),
            sum(int(item.sensitive.sum()) for item in then.cubes),
        )

    def decide(
        self,
        actor: Actor,
        cell: str,
        decision: str,
        reason: str,
        percent: float = 10.0,
        origin: str = "",
        read: int | None = None,
    ) -> Version:
        """Write a decision on a cell into the publication, as a new version of it.

        Parameters
        ----------
        read : int, optional
            The version that was current when it was decided.

        Raises
        ------
        UserError
            If there is no such cell or decision, no reason, no version, or another than was ``read``.
        """
        if decision not in DECISIONS:
            raise UserError(f"A decision is one of {', '.join(DECISIONS)}.")
        if not reason.strip():
            raise UserError("A decision needs a reason: it is kept with it.")
        current = self._versions.current()
        if current is None:
            raise UserError("There is no version yet. Save one, or import a folder.")
        if read not in (None, current.id):
            raise ConflictError("Another version became current meanwhile. Look at the cell again.")
        (crawl,) = self._results("crawl")
        number, row = find_cell(crawl, cell)
        cells = crawl.cubes[number]
        if cells.coords[row, 0] >= cells.space.own[0] or not cells.has_contributors[row]:
            raise UserError(
                "Decisions are on cells of measures. Decide on the cells that this one is made of."
            )
        members = []
        for column, tree in enumerate(cells.cube.hierarchies, 1):
            place = int(cells.coords[row, column])
            if place >= cells.space.own[column]:
                raise UserError("A group of members is no cell of its own. Decide on the cells in it.")
            if place != tree.default_member:
                members.append(tree.unique_names[place])
        block = "\n".join(
            (
                "",
                "[[confidentiality.cells]]",
                f"cube = {_toml(cells.cube.name)}",
                f"measure = {_toml(cells.cube.measures[int(cells.coords[row, 0])].name)}",
                f"members = [{', '.join(_toml(member) for member in members)}]",
                f"decision = {_toml(decision)}",
                *([f"percent = {percent:g}"] if decision == "hide" else []),
                f"reason = {_toml(f'{reason.strip()} ({actor.name})')}",
                "",
            )
        )
        files = self._versions.files(current)
        texts = {
            **files.texts,
            "publication.toml": files.texts["publication.toml"].rstrip("\n") + "\n" + block,
        }
        after = {"decision": decision, "reason": reason.strip()}
        message = f"Decision: {decision} {cell}"
        with self._journal.together():
            saved = self._versions.save(texts, current, actor.name, message)
            self._journal.record(actor, "cell.decide", cell, {}, after, origin)
        return saved

    def _publication(self, into: Path) -> Publication:
        current = self._versions.current()
        if current is None:
            return load_publication(self._folder)
        return load_publication(self._versions.materialise(current, into))

    def _results(self, *names: str) -> Any:
        last = self._store.of_last_run()
        found: list[Crawl | PrimaryResult | Suppression] = []
        for name in names:
            stored = last.step(name)
            if stored is None:
                raise UserError("The publication hasn't been run yet. Run it first.")
            found.append(RESULTS.decode(stored.body))
        return found


def changed(
    threshold: int | None,
    measure: str,
    sheets: Sequence[str],
    level: str,
    merged: str = "",
    members: Sequence[str] = (),
) -> Change:
    """A change by its parts: another threshold (of a measure), sheets to leave out, a level to leave out
    (``Cube.Level``, or the level alone where there is one cube), a level of which some members are merged."""

    def change(publication: Publication) -> Publication:
        if threshold is not None:
            publication = with_threshold(publication, "", measure, threshold)
        if sheets:
            publication = without_sheets(publication, sheets)
        if level:
            publication = without_level(publication, *_level(publication, level))
        if merged:
            publication = with_merged(publication, *_level(publication, merged), members)
        return publication

    return change


def _hits(found: PrimaryResult) -> Counter[str]:
    """Sensitive cells by reason."""
    hits: Counter[str] = Counter()
    for verdicts in found.cubes:
        for reason, hit in verdicts.reasons.items():
            hits[reason] += int((hit & verdicts.sensitive).sum())
    return hits


def _level(publication: Publication, named: str) -> tuple[str, str]:
    """Cube and level of ``Cube.Level``; of the level alone where there is one cube."""
    cube, _dot, name = named.rpartition(".")
    if not cube and len(publication.cubes) == 1:
        cube = publication.cubes[0].name
    return cube, name


def _toml(text: str) -> str:
    """A text as a TOML string on one line."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
