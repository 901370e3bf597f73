"""The attack: read everything, rebuild the relations, bound what is hidden, and judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from lxml.html import HtmlElement

from app.domain.progress import ProgressCallback, StepProgress
from app.redteam.algebra import Meaning
from app.redteam.bounds import Intervals, interval_of_cells, narrowed
from app.redteam.derived import derived_leaks
from app.redteam.exports import DRAWING, FRAGMENT, READERS, export_leaks
from app.redteam.knowledge import Knowledge, Observation
from app.redteam.maxima import told_extremes
from app.redteam.pages import (
    block_of,
    links_of,
    order_tells,
    parse_page,
    read_block,
    rows_as_printed,
    shows_of,
)
from app.redteam.relations import System, build_system
from app.redteam.report import Finding, Kind, PageLeak, Promise, Report
from app.redteam.site import Page, Query, Site, read_catalogue
from app.redteam.structure import Coordinates, Structure
from app.redteam.tables import Document, TableRow, UnreadableError, read_csv, read_jsonstat
from app.redteam.workbook import workbook_leaks

#: Share of a value (and least amount) within which two numbers are the same one.
TOLERANCE = 1e-6
#: Downloads that repeat the tidy CSV's cells.
COPIES = frozenset({"xlsx", DRAWING, FRAGMENT, *READERS})
#: Columns that each table is sorted by.
SORTED_COLUMNS = 2
#: Choices of each table of which derived figures are read.
DERIVED = 4

Promises = Mapping[str, Mapping[Coordinates, Promise]]


def _silent(progress: StepProgress) -> None:
    """Tell nobody."""


def attack(
    client: httpx.Client, promises: Promises | None = None, progress: ProgressCallback = _silent
) -> Report:
    """Try to work out the hidden cells of a site.

    Parameters
    ----------
    client : httpx.Client
        With the site's address as its base.
    promises : mapping of cube to mapping of cell to Promise, optional
        What the office knows of the sensitive cells; with it, findings are exactly the broken promises
        besides numbers that stand in a document as they are.
    progress : callable

    Raises
    ------
    UserError
        There is no such site, or it shows nothing.
    OperatorError
        The site stopped answering.
    """
    site = Site(client)
    structures, pages = read_catalogue(site)
    reading = _Reading(site, {name: Knowledge(structure) for name, structure in structures.items()})
    for number, page in enumerate(pages):
        progress(StepProgress("read", number, len(pages), f"{site.documents:,} documents, {page.address}"))
        reading.page(page)
    for address, text in site.leftovers():
        said = f"{site.documents:,} documents, further pages: {urlsplit(address).path}"
        progress(StepProgress("read", len(pages), len(pages), said))
        reading.arranged(address, text)
    progress(StepProgress("read", len(pages), len(pages)))
    findings, suspicions = list(reading.findings), []
    bounded = checked = 0
    for number, (name, knowledge) in enumerate(reading.cubes.items()):
        progress(StepProgress("bound", number, len(structures), name))
        system = build_system(knowledge)
        extremes, unseen = told_extremes(knowledge)
        reading.notes.extend(unseen)
        intervals = narrowed(interval_of_cells(system), system, extremes)
        judged = _Judgement(knowledge, system, intervals, (promises or {}).get(name), reading.marks)
        found, suspected = judged.all()
        findings += found
        suspicions += suspected
        bounded += judged.bounded
        checked += judged.checked
        reading.notes.extend(sorted(f"formula not understood: {text}" for text in system.not_understood))
        if intervals.failed:
            reading.notes.append(f"{name}: the relations of {len(intervals.failed)} cells contradict")
    progress(StepProgress("bound", len(structures), len(structures)))
    return Report(
        documents=site.documents,
        cells=sum(len(knowledge.sights) for knowledge in reading.cubes.values()),
        hidden=sum(bool(s.hidden) for k in reading.cubes.values() for s in k.sights.values()),
        bounded=bounded,
        findings=tuple(dict.fromkeys(findings)),
        suspicions=tuple(dict.fromkeys(suspicions)),
        notes=tuple(dict.fromkeys([*site.notes, *reading.notes])),
        checked_promises=checked,
    )


class _Reading:
    """Turns documents into knowledge."""

    def __init__(self, site: Site, cubes: dict[str, Knowledge]) -> None:
        self.cubes = cubes
        self.findings: list[Finding] = []
        self.marks: dict[tuple[str, Coordinates], list[tuple[PageLeak, str]]] = {}
        self.notes: list[str] = []
        self._site = site
        self._sheets: dict[str, Page] = {}
        self._derived: Counter[tuple[str, str]] = Counter()
        self._meanings: dict[tuple[str, tuple[tuple[str, str], ...]], Meaning] = {}

    def page(self, page: Page) -> None:
        self._sheets[urlsplit(page.address).path] = page
        text = self._site.text(page.address)
        tree = parse_page(text) if text else None
        for query in page.queries:
            structure = self.cubes[query.cube].structure
            meaning = self._meaning(query, structure)
            listed: Document | None = None
            for kind, address in query.downloads.items():
                if kind in COPIES:
                    continue
                document = self._document(kind, address)
                if document is None:
                    continue
                self._learn(query, meaning, document)
                if kind == "csv":
                    listed = document
            if listed is not None:
                self._copies(query, meaning, listed)
            if tree is None or listed is None:
                continue
            block = block_of(tree, query.identity, query.position)
            if block is None:
                self.notes.append(f"{page.address}: no table of {query.identity}")
                continue
            self._block(query, block, listed, page.address)
            self._elsewhere(query, meaning, block, listed)
            if page.first and any(row.hidden for row in listed.rows):
                self._sort(page, query, block)
                self._draw(page, query, meaning, block, listed)
                self._derive(page, query, meaning, listed)

    def _sort(self, page: Page, query: Query, block: HtmlElement) -> None:
        """Ask for the table sorted by its first columns: do hidden cells come in an order of their own?"""
        published = rows_as_printed(block)
        columns = max((len(row) for row in published), default=2) - 2
        for column in range(1, min(columns, SORTED_COLUMNS) + 1):
            address = asking(page.address, **{f"sort.{query.identity}": str(column)})
            text = self._site.text(address)
            found = block_of(parse_page(text), query.identity, query.position) if text else None
            if found is None:
                continue
            if order_tells(published, rows_as_printed(found), column - 1 - columns):
                self.findings.append(Finding(query.identity, "by order", -math.inf, math.inf, True, address))

    def _draw(self, page: Page, query: Query, meaning: Meaning, block: HtmlElement, listed: Document) -> None:
        """Ask for every other way in which the page offers to draw the table."""
        for address in links_of(block):
            parts = urlsplit(address)
            on_page = parts.path in ("", urlsplit(page.address).path)
            if not on_page or f"chart.{query.identity}" not in dict(parse_qsl(parts.query)):
                continue
            text = self._site.text(address)
            drawn = block_of(parse_page(text), query.identity, query.position) if text else None
            if drawn is not None:
                self._block(query, drawn, listed, address)
                self._elsewhere(query, meaning, drawn, listed)

    def _derive(self, page: Page, query: Query, meaning: Meaning, listed: Document) -> None:
        """Ask for everything that the page offers to show the figures as."""
        table = (urlsplit(page.address).path, query.identity)
        self._derived[table] += 1
        if self._derived[table] > DERIVED:
            return
        form = self._site.text(asking(page.address, edit=query.identity), linked=False)
        if form is None:
            return
        structure = self.cubes[query.cube].structure
        for show in shows_of(parse_page(form), query.identity):
            said = {f"show.{query.identity}": show}
            file, address = asking(query.downloads["csv"], **said), asking(page.address, **said)
            made, text = self._document("csv", file, linked=False), self._site.text(address, linked=False)
            if made is None or text is None:
                continue
            for leak in derived_leaks(show, made.rows, listed.rows, structure):
                self._note_leak(query, meaning, listed.rows[leak.row], leak, file)
            block = block_of(parse_page(text), query.identity, query.position)
            if block is not None:
                self._block(query, block, made, address)

    def arranged(self, address: str, text: str) -> None:
        """A sheet in another arrangement, each of its tables against its own download."""
        page = self._sheets.get(urlsplit(address).path)
        if page is None or not urlsplit(address).query:
            return
        tree = parse_page(text)
        for query in page.queries:
            block = block_of(tree, query.identity, query.position)
            if block is None:
                continue
            file = f"/{query.identity}.csv"
            own = next((link for link in links_of(block) if urlsplit(link).path.endswith(file)), None)
            listed = self._document("csv", own) if own else None
            if listed is not None:
                self._block(query, block, listed, address)

    def _elsewhere(self, query: Query, meaning: Meaning, block: HtmlElement, listed: Document) -> None:
        """The same table in a frame on other people's pages, and its drawing as a file."""
        for address in dict.fromkeys(links_of(block)):
            path = urlsplit(address).path
            if "/embed/" in path:
                text = self._site.text(address)
                if text is not None:
                    self._block(query, parse_page(text), listed, address)
            elif path.endswith(f"/{query.identity}.{DRAWING}") and address not in query.downloads.values():
                self._copy(DRAWING, address, query, meaning, listed)

    def _block(self, query: Query, block: HtmlElement, listed: Document, address: str) -> None:
        meaning = self._meaning(query, self.cubes[query.cube].structure)
        leaks, trouble = read_block(block, listed.rows)
        if trouble:
            self.notes.append(f"{address}: {trouble}")
        for leak in leaks:
            self._note_leak(query, meaning, listed.rows[leak.row], leak, address)

    def _meaning(self, query: Query, structure: Structure) -> Meaning:
        key = (query.cube, tuple(sorted(query.formulas.items())))
        if key not in self._meanings:
            self._meanings[key] = Meaning(structure, query.formulas)
        return self._meanings[key]

    def _document(self, kind: str, address: str, linked: bool = True) -> Document | None:
        text = self._site.text(address, linked)
        if text is None:
            return None
        try:
            if kind == "csv":
                return read_csv(address, text)
            if kind == "json":
                return read_jsonstat(address, text)
        except UnreadableError as error:
            self.notes.append(f"{address}: {error}")
            return None
        self.notes.append(f"{address}: a format that isn't read")
        return None

    def _copies(self, query: Query, meaning: Meaning, listed: Document) -> None:
        """The downloads that repeat the cells of the tidy CSV."""
        for kind, address in query.downloads.items():
            if kind in COPIES:
                self._copy(kind, address, query, meaning, listed)

    def _copy(self, kind: str, address: str, query: Query, meaning: Meaning, listed: Document) -> None:
        content = self._site.content(address)
        if content is None:
            return
        try:
            leaks = (
                workbook_leaks(content, listed.rows)
                if kind == "xlsx"
                else export_leaks(kind, content, listed.rows)
            )
            for leak in leaks:
                self._note_leak(query, meaning, listed.rows[leak.row], leak, address)
        except UnreadableError as error:
            self.notes.append(f"{address}: {error}")

    def _learn(self, query: Query, meaning: Meaning, document: Document) -> None:
        structure = self.cubes[query.cube].structure
        digits: dict[str, int] = dict(document.decimals)
        for row in document.rows:
            measure = row.members.get("[Measures]", "")
            digits[measure] = max(digits.get(measure, 0), row.digits)
        observations = []
        for row in document.rows:
            coordinates = _coordinates(row, structure)
            half = 0.5 * 10.0 ** -digits[row.members.get("[Measures]", "")]
            observations.append(Observation(coordinates, row.value, half, row.hidden, document.address))
        self.cubes[query.cube].learn(meaning, observations)

    def _note_leak(self, query: Query, meaning: Meaning, row: TableRow, leak: PageLeak, address: str) -> None:
        knowledge = self.cubes[query.cube]
        identity = meaning.identity(_coordinates(row, knowledge.structure))
        if leak.kind == "drawn":
            # Whether the drawing tells the truth shows when the relations are known.
            self.marks.setdefault((query.cube, identity), []).append((leak, address))
        else:
            self.findings.append(
                Finding(knowledge.label(identity), leak.kind, leak.lower, leak.upper, True, address)
            )


def asking(address: str, **said: str) -> str:
    """An address with further fields."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(said)}"


def _coordinates(row: TableRow, structure: Structure) -> Coordinates:
    measure = row.members.get("[Measures]") or next(iter(structure.measures))
    return (
        measure,
        *(row.members.get(hierarchy.name) or hierarchy.default or "" for hierarchy in structure.hierarchies),
    )


class _Judgement:
    """Which intervals are too narrow."""

    def __init__(
        self,
        knowledge: Knowledge,
        system: System,
        intervals: Intervals,
        promises: Mapping[Coordinates, Promise] | None,
        marks: Mapping[tuple[str, Coordinates], list[tuple[PageLeak, str]]],
    ) -> None:
        self._knowledge = knowledge
        self._system = system
        self._intervals = intervals
        self._promises = promises
        self._marks = marks
        self.bounded = 0
        self.checked = 0

    def all(self) -> tuple[list[Finding], list[Finding]]:
        """Findings and suspicions."""
        findings = [
            Finding(self._knowledge.label(identity), "shown elsewhere", value, value, True, where)
            for identity, value, where in self._knowledge.contradictions()
        ]
        suspicions: list[Finding] = []
        for identity, number in self._system.numbers.items():
            known = self._system.lower[number] == self._system.upper[number]
            if known or number in self._intervals.failed:
                continue
            self.bounded += 1
            verdict = self._judge(identity, number)
            if verdict is not None:
                (findings if verdict.certain else suspicions).append(verdict)
        for (cube, identity), seen in self._marks.items():
            if cube == self._knowledge.structure.cube:
                findings += [f for leak, where in seen if (f := self._drawn(identity, leak, where))]
        return findings, suspicions

    def _judge(self, identity: Coordinates, number: int) -> Finding | None:
        lower, upper = float(self._intervals.lower[number]), float(self._intervals.upper[number])
        slack = TOLERANCE * max(1.0, abs(lower) if math.isfinite(lower) else 0.0)
        exact = upper - lower <= slack
        label = self._knowledge.label(identity)
        kind: Kind = "computed" if exact else "too narrow"
        promise = (self._promises or {}).get(identity)
        if promise is not None:
            self.checked += 1
            slack = TOLERANCE * max(1.0, abs(promise.upper))
            broken = (
                lower > promise.lower + slack
                or upper < promise.upper - slack
                or upper - lower < promise.width - slack
            )
            return Finding(label, kind, lower, upper, True) if broken else None
        if identity in self._system.betrayed:
            # No ratio is shown whose parts are hidden: so says the site of itself.
            return Finding(label, "by a ratio", lower, upper, True)
        if self._promises is not None:
            # Hidden for others' sake: nobody was promised anything.
            return None
        sight = self._knowledge.sights.get(identity)
        marked = sight is not None and bool(sight.hidden)
        structure = self._knowledge.structure
        plain = not any(name.startswith("=") for name in identity)
        threshold = structure.thresholds.get(identity[0])
        if plain and threshold and structure.measures[identity[0]].frequency:
            if slack < lower and upper < threshold - slack:
                # Fewer than the threshold for certain: nobody hides it for others' sake.
                return Finding(label, kind, lower, upper, True)
            if 1.0 + slack < lower < threshold - slack:
                return Finding(label, kind, lower, upper, False)
        if exact and marked:
            # A maximum that is hidden for another's sake may be told: only the office knows which is one.
            certain = plain and structure.measures[identity[0]].aggregator not in ("max", "min")
            return Finding(label, kind, lower, upper, certain)
        return None

    def _drawn(self, identity: Coordinates, leak: PageLeak, where: str) -> Finding | None:
        """A mark's reading, unless the relations prove it to be drawn at random."""
        number = self._system.numbers.get(identity)
        if number is not None:
            lower, upper = self._intervals.lower[number], self._intervals.upper[number]
            if leak.upper < lower - TOLERANCE or leak.lower > upper + TOLERANCE:
                return None
        return Finding(self._knowledge.label(identity), "drawn", leak.lower, leak.upper, True, where)
