"""A query of a sheet as an address wants it seen: on its page, in a frame elsewhere, in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from urllib.parse import quote, urlencode

import numpy as np
from markupsafe import escape

from app.domain.cube import Cube, Texts, text_in
from app.domain.masked import CellStatus, MaskedCellSet
from app.domain.observations import observations_of
from app.domain.publication import QueryDefinition
from app.serve.answer import Served
from app.web import charts, maps
from app.web.arrange import TABLE, Arrangement, Hierarchies, ancestors, arrange, hierarchies_of, present
from app.web.arranger import Subject, arranger, with_sorters
from app.web.contents import Choice, Contents, SheetEntry, choice_fields
from app.web.contexts import Block, Elsewhere, Link, Spot, Way
from app.web.derive import figures_text
from app.web.finder import Look
from app.web.formats.download import TableDownload
from app.web.formats.registry import formats_for
from app.web.language import translations
from app.web.moves import flat, take
from app.web.spots import place_of, said_at
from app.web.tables import MEASURES, SIGNS, STATES, Toggle, caption, grid_of, lay_out, nesting
from app.web.windows import Side, page_with, pager, window
from app.web.words import by_figures_note, file_words

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class View:
    """A query's masked cells for one choice, as published, and how an address wants them arranged.

    ``base`` is the site's scheme and host, ``root`` where its addresses of this language begin; ``only`` is
    where the sheet is found when it isn't below that.
    """

    contents: Contents
    language: str
    base: str
    root: str
    entry: SheetEntry
    query: QueryDefinition
    choices: tuple[Choice, ...]
    served: Served
    wanted: Arrangement
    only: str = ""

    def _(self, text: str) -> str:
        return translations(self.language).gettext(text)

    @property
    def published(self) -> MaskedCellSet:
        return self.served.masked

    @property
    def cube(self) -> Cube:
        catalogue = self.contents.catalogue
        return catalogue.cubes[catalogue.cube_of[self.entry.sheet.id, self.query.id]]

    @cached_property
    def captions(self) -> Mapping[str, Texts]:
        return self.contents.hierarchy_captions(self.entry.sheet.id, self.query.id)

    @cached_property
    def known(self) -> Hierarchies:
        """The hierarchies of the published table."""
        return hierarchies_of(self.published, self.cube)

    @cached_property
    def masked(self) -> MaskedCellSet:
        """The cells as they are wanted."""
        return arrange(self.published, self.wanted, self.cube)

    @property
    def title(self) -> str:
        own = text_in(self.query.title, self.language)
        return own or text_in(self.entry.sheet.title, self.language)

    @property
    def note(self) -> str:
        """What readers must know of how the table came to be."""
        notes = [by_figures_note(self.language)] if self.masked.by_figures else []
        if self.wanted.show:
            notes.append(self._("The figures are worked out of those of the table as published."))
        return " ".join(notes)

    @property
    def _figures(self) -> str:
        """What the figures are shown as, empty for as published."""
        return figures_text(self.wanted.show, self.known.members, self.language) if self.wanted.show else ""

    @property
    def _undrawn(self) -> str:
        """That figures can't be drawn as an address asks; other members or a later release may be why."""
        wanted = self.wanted.chart
        if wanted in ("", TABLE, *self._kinds):
            return ""
        return self._("These figures can't be drawn as “%(kind)s”.") % {"kind": self._kind_names[wanted]}

    @property
    def _kind_names(self) -> Mapping[str, str]:
        return {
            "bar": self._("Bars"),
            "line": self._("Lines"),
            "stacked": self._("Stacked bars"),
            "pyramid": self._("Pyramid"),
            "scatter": self._("Scatter"),
        }

    @property
    def sheet_address(self) -> str:
        return self.only or f"{self.root}/s/{quote(self.entry.sheet.id)}"

    @property
    def suffix(self) -> str:
        """The query string of this state, for files and frames of this query alone."""
        said = urlencode(
            (*choice_fields(self.choices), *replace(self.wanted, page=(1, 1), cell=()).fields(self.query.id))
        )
        return f"?{said}" if said else ""

    # ------------------------------------------------------------------ on a page

    def block(
        self,
        others: Fields,
        editing: bool,
        expandable: bool = True,
        looks: Mapping[int, Look] = MappingProxyType({}),
    ) -> Block:
        """The query on a page whose address says ``others`` of its other queries."""
        subject = Subject(
            self.query.id,
            self.published,
            self.known,
            self.cube,
            self.wanted,
            self.captions,
            self.sheet_address,
            (*choice_fields(self.choices), *others),
            self.language,
            turns=self.query.view != "map",
            looks=looks,
        )
        spot = self._place
        shown, (down, across) = self._window
        first = (down.first - 1, across.first - 1)
        status = self.masked.status
        table = lay_out(
            shown,
            self.captions,
            self.language,
            self._toggles(subject) if expandable else {},
            (spot[0] - first[0], spot[1] - first[1]) if spot is not None else None,
            nesting(grid_of(self.masked).rows)[first[0] : down.last],
        )
        base = f"{self.sheet_address}/{quote(self.query.id)}"
        return Block(
            id=self.query.id,
            title=self.title,
            context=self._context(self.title),
            note=" ".join(filter(None, (self.note, self._undrawn))),
            table=replace(
                table,
                head=with_sorters(table.head, subject, across.first, across.total, down.total)
                if expandable
                else table.head,
                hidden=int((status == CellStatus.CONFIDENTIAL).sum()),
                empty=int((status == CellStatus.EMPTY).sum()),
                unreleased=int((status == CellStatus.UNRELEASED).sum()),
            ),
            chart=self._chart(),
            maps=self._maps(),
            downloads=tuple(
                Link(form.name, f"{base}.{form.extension}{self.suffix}")
                for form in formats_for(self.drawn_as)
            ),
            elsewhere=self._elsewhere(subject, (down, across)),
            arranger=replace(arranger(subject, editing), ways=self._ways(subject)),
            pager=pager((down, across), subject),
            spot=self._spot(subject, spot) if self.wanted.cell else None,
            signs=frozenset(
                STATES[state]
                for state in SIGNS
                if any(bool(np.any(cells.status == state)) for cells in self._seen)
            ),
        )

    @cached_property
    def _place(self) -> tuple[int, int] | None:
        """Row and column of the cell that the address points at."""
        return place_of(self.masked, self.known, self.wanted.cell) if self.wanted.cell else None

    @cached_property
    def _window(self) -> tuple[MaskedCellSet, tuple[Side, Side]]:
        """The part of a large table that the page shows."""
        page = self.wanted.page
        if self._place is not None and page == (1, 1):
            page = page_with(self.masked, self._place)
        return window(self.masked, page)

    @cached_property
    def _seen(self) -> tuple[MaskedCellSet, ...]:
        """Everything that the page shows cells of: a part of the table, a chart or maps of the whole."""
        drawn = (self._mapped,) if self.query.view == "map" else (self.masked,) if self._kind else ()
        return (self._window[0], *drawn)

    @property
    def confidential(self) -> frozenset[tuple[str, int]]:
        """The figures that the page shows as confidential, each once, also among several queries.

        What is worked out of the figures of a query is another figure than they are.
        """
        worked = f"{self.query.id} {self.wanted.show}" if self.wanted.show else ""
        rows = (cells.cell[cells.status == CellStatus.CONFIDENTIAL] for cells in self._seen)
        return frozenset((worked, row) for row in np.unique(np.concatenate(list(rows))).tolist())

    @cached_property
    def _time(self) -> frozenset[str]:
        return self.contents.time_hierarchies(self.entry.sheet.id, self.query.id)

    @property
    def _adds_up(self) -> bool:
        """Whether the columns are parts of a whole: of one measure that adds up, no totals, no periods."""
        across = [name for axis in self.masked.axes[:1] for name in axis.hierarchies]
        if self.wanted.show:
            return False
        if MEASURES in across or not self._time.isdisjoint(across):
            return False
        if any(ancestors(self.masked, name, self.cube) & present(self.masked, name) for name in across):
            return False
        measures = {m.unique_name for m in self.masked.slicer if m.hierarchy == MEASURES}
        measures |= present(self.masked, MEASURES)
        own = {m.unique_name: m for m in self.cube.measures}
        return all(name in own and own[name].additive for name in measures or [next(iter(own))])

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        """Kinds of chart that a reader may choose among, the published one first."""
        if self.query.view == "map":
            return ()
        options = self.query.options
        may = charts.kinds_for(self.masked, options, self._time, self.language, self._adds_up)
        own = (charts.usual(self.masked, options, self._time),) if self.query.view == "chart" else ()
        if self.wanted.show and own == ("stacked",):
            own = ("bar",)
        return tuple(dict.fromkeys((*own, *may)))

    @cached_property
    def _kind(self) -> str:
        """The kind of chart that is shown, empty for none; never one that the figures don't allow."""
        if self.wanted.chart in self._kinds:
            return self.wanted.chart
        return self._kinds[0] if self.query.view == "chart" and self.wanted.chart != TABLE else ""

    @property
    def drawn_as(self) -> str:
        """The view that decides which files there are: a table with a chart has those of charts."""
        if self.query.view == "map":
            return "map"
        return "chart" if self._kind else "table"

    def _ways(self, subject: Subject) -> tuple[Way, ...]:
        """Links to the other ways of showing the table, none where there is one way only."""
        own = self._kinds[0] if self.query.view == "chart" else ""
        ways = [("", self._("Table"), TABLE), *((kind, self._kind_names[kind], kind) for kind in self._kinds)]
        return tuple(
            Way(
                text,
                subject.address(replace(self.wanted, cell=(), chart="" if kind == own else said)),
                kind == self._kind,
            )
            for kind, text, said in ways
            if self._kinds
        )

    def _spot(self, subject: Subject, place: tuple[int, int] | None) -> Spot:
        leave = subject.address(replace(self.wanted, cell=()))
        if place is None:
            return Spot(
                self._("The figure that the address names isn't in this table as it is arranged."),
                "",
                "",
                leave,
            )
        alone = take(flat(self.masked), [place[0]], [place[1]])
        ((row,),) = (group.rows for group in lay_out(alone, self.captions, self.language).groups)
        return Spot(said_at(self.masked, place, self.language), row.cells[0].state, row.cells[0].text, leave)

    def _toggles(self, subject: Subject) -> dict[str, Toggle]:
        """Links that open and close the branch of a member, by its unique name."""
        wanted = replace(self.wanted, page=(1, 1), cell=())
        whole = flat(arrange(self.published, replace(wanted, folded={}, sort=0), self.cube))
        openable = self.served.openable()
        found: dict[str, Toggle] = {}
        for number, members in enumerate(self.known.members):
            name = members.members[0].hierarchy
            above = ancestors(whole, name, self.cube)
            here = present(whole, name)
            closed, opened = wanted.folded.get(number, ()), wanted.opened.get(number, ())
            for term, member in zip(members.terms, members.members, strict=True):
                if member.unique_name not in here:
                    continue
                if term in opened:
                    rest = tuple(item for item in opened if item != term)
                    then = replace(wanted, opened={**wanted.opened, number: rest})
                elif term in closed:
                    rest = tuple(item for item in closed if item != term)
                    then = replace(wanted, folded={**wanted.folded, number: rest})
                elif member.unique_name in above:
                    then = replace(wanted, folded={**wanted.folded, number: (*closed, term)})
                elif member.unique_name in openable:
                    then = replace(wanted, opened={**wanted.opened, number: (*opened, term)})
                else:
                    continue
                is_open = term not in closed and (term in opened or member.unique_name in above)
                text = self._("Close %(member)s") if is_open else self._("Open %(member)s")
                said = text % {"member": caption(member, self.language)}
                found[member.unique_name] = Toggle(subject.address(then), said, is_open)
        return found

    def _chart(self) -> charts.Chart | None:
        if not self._kind:
            return None
        options = self.query.options
        if self.wanted.chart == self._kind or self.wanted.show:
            options = charts.as_kind(options, self._kind)
        return charts.draw(self.masked, options, self._time, self.language)

    def _maps(self) -> tuple[maps.AreaMap, ...]:
        if self.query.view != "map":
            return ()
        shapes = self.contents.catalogue.shapes.get(str(self.query.options.get("shapes")))
        return maps.draw_maps(self._mapped, self.query.options, self.cube, self.language, shapes)

    @cached_property
    def _mapped(self) -> MaskedCellSet:
        # An area of which there is nothing to count is drawn as one.
        wanted = maps.with_areas_down(replace(self.wanted, empty=True), self.known)
        return arrange(self.published, wanted, self.cube)

    def _context(self, title: str) -> tuple[tuple[str, str], ...]:
        """What holds for the whole table: the choices, then the rest of the slicer."""
        said = [
            (text_in(choice.parameter.title, self.language), caption(choice.member, self.language))
            for choice in self.choices
        ]
        if self._figures:
            said.append((self._("Shown as"), self._figures))
        chosen = {choice.member.unique_name for choice in self.choices}
        said += [
            (text_in(self.captions.get(member.hierarchy, {}), self.language), caption(member, self.language))
            for member in self.masked.slicer
            if member.unique_name not in chosen
        ]
        return tuple(pair for pair in said if pair != ("", title))

    def _elsewhere(self, subject: Subject, place: tuple[Side, Side]) -> Elsewhere:
        path = f"{quote(self.entry.sheet.id)}/{quote(self.query.id)}"
        csv = f"{self.base}{self.root}/s/{path}.csv{self.suffix}"
        frame = f"{self.base}{self.root}/embed/{path}{self.suffix}"
        named = escape(self.title)
        return Elsewhere(
            embed=f'<iframe src="{escape(frame)}" title="{named}" width="100%" height="480"></iframe>',
            python=f'import pandas\n\ntable = pandas.read_csv("{csv}")',
            r=f'table <- read.csv("{csv}", check.names = FALSE)',
            state=(*subject.kept, *replace(self.wanted, cell=()).fields(self.query.id)),
            first=(place[0].first, place[1].first),
            size=(place[0].total, place[1].total),
        )

    # ------------------------------------------------------------------ in a file

    def download(self) -> TableDownload:
        catalogue = self.contents.catalogue
        sheet = self.entry.sheet
        names = [text_in(sheet.title, self.language), text_in(self.query.title, self.language)]
        chosen = ", ".join(caption(choice.member, self.language) for choice in self.choices)
        return TableDownload(
            cells=observations_of(self.masked),
            masked=self.masked,
            cube=self.cube,
            language=self.language,
            number=self.entry.number,
            title=". ".join(dict.fromkeys(filter(None, [*names, chosen, self._figures]))),
            notes="\n\n".join(filter(None, [text_in(sheet.notes, self.language), self.note])),
            publisher=text_in(catalogue.publisher, self.language),
            office=text_in(catalogue.publisher or catalogue.title, catalogue.languages[0]),
            # Other figures are another set of data.
            identity=f"{sheet.id}/{'.'.join(filter(None, [self.query.id, self.wanted.show]))}",
            released=catalogue.released,
            address=f"{self.sheet_address}{self.suffix}",
            context=self._context(""),
            lay_out=lambda: lay_out(self.masked, self.captions, self.language),
            draw_chart=self._chart,
            draw_maps=self._maps,
            words=file_words(self.language),
            contact=catalogue.contact_of(sheet),
            next_release=catalogue.next_release_of(sheet),
        )
