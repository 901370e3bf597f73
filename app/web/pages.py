"""Build each page's context from the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from app.domain.cube import Texts, text_in
from app.domain.masked import MaskedCellSet
from app.domain.observations import observations_of
from app.domain.publication import Folder, QueryDefinition
from app.serve.answer import LiveReader, Served
from app.web import charts, harvest, maps
from app.web.arrange import Arrangement, arrange, read_arrangement
from app.web.arranger import arranger
from app.web.contents import Choice, Contents, SheetEntry
from app.web.contexts import (
    AddressGroup,
    ApiPage,
    Block,
    Chooser,
    ConfidentialityPage,
    Elsewhere,
    EmbedPage,
    ErrorPage,
    FolderPage,
    Frame,
    HomePage,
    LanguageLink,
    Link,
    Option,
    SearchPage,
    SearchResult,
    SheetPage,
)
from app.web.formats.download import TableDownload
from app.web.formats.registry import formats_for
from app.web.language import INTERFACE, language_name, long_date, translations
from app.web.locate import prefix_of
from app.web.protection import protected_measures
from app.web.render import markdown
from app.web.search import Hit, SearchIndex
from app.web.tables import caption, lay_out


@dataclass(frozen=True, eq=False)
class Site:
    """One release in one language, from which pages are made."""

    contents: Contents
    language: str
    base: str
    prefix: str = ""

    @property
    def root(self) -> str:
        """Where the addresses of this language begin, below a release's own prefix if there is one."""
        return f"{self.prefix}/{self.language}"

    def frame(
        self, title: str, path: str, query: str = "", crumbs: tuple[Folder, ...] | None = None
    ) -> Frame:
        """The surroundings of the page at ``path`` (below the language) with a query string."""
        catalogue = self.contents.catalogue
        site = text_in(catalogue.title, self.language)
        suffix = f"?{query}" if query else ""
        trail: tuple[Link, ...] = ()
        if crumbs is not None:
            trail = (
                Link(self._("Contents"), f"{self.root}/"),
                *(
                    Link(text_in(folder.title, self.language), f"{self.root}/f/{quote(folder.id)}")
                    for folder in crumbs
                    if folder.id
                ),
            )
        return Frame(
            language=self.language,
            title=title,
            site=site,
            publisher=text_in(catalogue.publisher, self.language),
            home=f"{self.root}/",
            crumbs=trail,
            languages=tuple(
                LanguageLink(
                    code, language_name(code), f"{self.prefix}/{code}/{path}{suffix}", code == self.language
                )
                for code in catalogue.languages
            ),
            released=long_date(catalogue.created, self.language),
            release_id=catalogue.release_id,
            canonical=f"{self.base}{self.root}/{path}{suffix}",
            description=text_in(catalogue.description, self.language),
            latest=f"/{self.language}/{path}{suffix}" if self.prefix else "",
        )

    def _(self, text: str) -> str:
        return translations(self.language).gettext(text)

    def home(self) -> HomePage:
        catalogue = self.contents.catalogue
        return HomePage(
            frame=self.frame(text_in(catalogue.title, self.language), ""),
            description=text_in(catalogue.description, self.language),
            root=self.contents.root,
            tables=len(self.contents.sheets),
        )

    def folder(self, path: str) -> FolderPage:
        entry = self.contents.folder(path)
        return FolderPage(
            frame=self.frame(
                text_in(entry.folder.title, self.language), f"f/{quote(path)}", crumbs=entry.path
            ),
            entry=entry,
            notes=markdown(text_in(entry.folder.notes, self.language)),
        )

    def confidentiality(self) -> ConfidentialityPage:
        catalogue = self.contents.catalogue
        return ConfidentialityPage(
            frame=self.frame(self._("How the figures are protected"), "confidentiality", crumbs=()),
            cubes=protected_measures(catalogue, self.language),
            hide_zeros=catalogue.hide_zeros,
        )

    def api(self) -> ApiPage:
        """What programs can read, with addresses that work."""

        def example(path: str) -> Link:
            return Link(f"{self.base}{path}", path)

        entry = next(self.contents.root.walk(), None)
        tables: tuple[Link, ...] = ()
        if entry is not None:
            choices = self.contents.choices(entry.sheet, {})
            state = address_query(choices)
            query = entry.sheet.queries[0]
            path = f"{self.root}/s/{quote(entry.sheet.id)}/{quote(query.id)}"
            tables = tuple(
                example(f"{path}.{form.extension}{f'?{state}' if state else ''}")
                for form in formats_for(query.view)
            )
        cubes = tuple(
            example(f"/api/v1/structure/{quote(name)}.json") for name in self.contents.catalogue.cubes
        )
        harvested = ("/catalog.ttl", "/catalog.jsonld", "/sitemap.xml", f"{self.root}/feed.atom")
        groups = (
            AddressGroup(
                self._("Catalogue"),
                self._("Folders, sheets, queries, and the members that each parameter can take."),
                (example("/api/v1/catalogue.json"),),
            ),
            AddressGroup(
                self._("Structure"),
                self._("Hierarchies with levels, members and parents; measures with units and decimals."),
                cubes,
            ),
            AddressGroup(
                self._("Tables"),
                self._("Each query of a sheet, for the same choices as its page: p.<parameter>=<key>."),
                tables,
            ),
            AddressGroup(
                self._("For portals, search engines and feed readers"),
                self._("The catalogue as DCAT-AP, the pages as a sitemap, the tables as an Atom feed."),
                tuple(map(example, harvested)),
            ),
            AddressGroup(
                self._("Description for programs"),
                self._("These addresses as an OpenAPI document."),
                (example("/api/v1/openapi.json"),),
            ),
        )
        return ApiPage(self.frame(self._("Data for programs"), "api", crumbs=()), groups)

    def search(self, words: str, index: SearchIndex) -> SearchPage:
        return SearchPage(
            frame=self.frame(self._("Search"), "search", urlencode({"q": words}), crumbs=()),
            words=words,
            results=tuple(self._result(hit) for hit in index.find(words)),
        )

    def _result(self, hit: Hit) -> SearchResult:
        address = f"{self.root}/s/{quote(hit.entry.sheet.id)}"
        folders = [text_in(folder.title, self.language) for folder in hit.entry.path if folder.id]
        return SearchResult(
            number=hit.entry.number,
            title=text_in(hit.entry.sheet.title, self.language),
            address=address,
            path=" › ".join(folders),
            members=tuple(
                Link(found.text, f"{address}?{urlencode(found.choice)}" if found.choice else address)
                for found in hit.members
            ),
        )

    def search_index(self, reader: LiveReader) -> SearchIndex:
        """The index of this release in this language, from each sheet as it first appears."""
        contents = self.contents
        release = contents.catalogue.release_id

        def first_sight() -> Iterator[tuple[SheetEntry, tuple[Choice, ...], tuple[MaskedCellSet, ...]]]:
            for entry in contents.root.walk():
                choices = contents.choices(entry.sheet, {})
                answers = answer_queries(reader, release, entry, choices)
                yield entry, choices, tuple(served.masked for _, served in answers)

        return SearchIndex(contents, self.language, first_sight())

    def sheet(
        self,
        entry: SheetEntry,
        choices: tuple[Choice, ...],
        answers: tuple[tuple[QueryDefinition, Served], ...],
        fields: Mapping[str, str],
    ) -> SheetPage:
        sheet = entry.sheet
        arrangements = {query.id: read_arrangement(fields, query.id) for query in sheet.queries}
        kept = tuple(pair for name, wanted in arrangements.items() for pair in wanted.fields(name))
        query = address_query(choices, kept)
        path = f"s/{quote(sheet.id)}"
        blocks = tuple(
            self._block(entry, definition, served.masked, choices, arrangements)
            for definition, served in answers
        )
        before, after = self.contents.neighbours(sheet)
        title = text_in(sheet.title, self.language)
        return SheetPage(
            frame=self.frame(title, path, query, crumbs=entry.path),
            entry=entry,
            choosers=tuple(self._chooser(choice) for choice in choices),
            kept=kept,
            blocks=blocks,
            notes=markdown(text_in(sheet.notes, self.language)),
            before=before,
            after=after,
            hidden=sum(block.table.hidden for block in blocks),
            empty=sum(block.table.empty for block in blocks),
            address=f"{self.root}/{path}",
            citation=self._citation(entry, choices),
            dataset=Markup(harvest.dataset_document(self.contents, entry, self.language, self.base)),
        )

    def embed(
        self, entry: SheetEntry, query: QueryDefinition, choices: tuple[Choice, ...], masked: MaskedCellSet
    ) -> EmbedPage:
        title = text_in(entry.sheet.title, self.language)
        state = address_query(choices)
        path = f"s/{quote(entry.sheet.id)}"
        return EmbedPage(
            frame=self.frame(title, path, state),
            block=self._block(entry, query, masked, choices, {query.id: Arrangement()}),
            source=Link(
                " · ".join(filter(None, [text_in(self.contents.catalogue.publisher, self.language), title])),
                f"{self.root}/{path}{f'?{state}' if state else ''}",
            ),
        )

    def _citation(self, entry: SheetEntry, choices: tuple[Choice, ...]) -> str:
        catalogue = self.contents.catalogue
        state = address_query(choices)
        # A citation names what was read, and that is one release.
        lasting = f"{self.base}{prefix_of(catalogue.release_id)}/{self.language}/s/{quote(entry.sheet.id)}"
        address = f"{lasting}?{state}" if state else lasting
        said = self._(
            "%(publisher)s (%(year)s). %(title)s. Table %(number)s of “%(site)s”. Released on %(date)s."
        )
        facts = {
            "publisher": text_in(catalogue.publisher, self.language),
            "year": catalogue.created.year,
            "title": text_in(entry.sheet.title, self.language),
            "number": entry.number,
            "site": text_in(catalogue.title, self.language),
            "date": long_date(catalogue.created, self.language),
        }
        return f"{said % facts} {address}"

    def _elsewhere(self, entry: SheetEntry, query: QueryDefinition, title: str, suffix: str) -> Elsewhere:
        path = f"{quote(entry.sheet.id)}/{quote(query.id)}"
        csv = f"{self.base}{self.root}/s/{path}.csv{suffix}"
        frame = f"{self.base}{self.root}/embed/{path}{suffix}"
        named = escape(title)
        return Elsewhere(
            embed=f'<iframe src="{escape(frame)}" title="{named}" width="100%" height="480"></iframe>',
            python=f'import pandas\n\ntable = pandas.read_csv("{csv}")',
            r=f'table <- read.csv("{csv}", check.names = FALSE)',
        )

    def _chooser(self, choice: Choice) -> Chooser:
        floor = min(member.depth for member in choice.options)
        return Chooser(
            field=f"p.{choice.parameter.name}",
            title=text_in(choice.parameter.title, self.language) or choice.parameter.name,
            options=tuple(
                Option(key, caption(member, self.language), member.depth - floor, index == choice.chosen)
                for index, (member, key) in enumerate(zip(choice.options, choice.keys, strict=True))
            ),
        )

    def _block(
        self,
        entry: SheetEntry,
        query: QueryDefinition,
        masked: MaskedCellSet,
        choices: tuple[Choice, ...],
        arrangements: Mapping[str, Arrangement],
    ) -> Block:
        sheet = entry.sheet
        base = f"{self.root}/s/{quote(sheet.id)}/{quote(query.id)}"
        state = address_query(choices)
        suffix = f"?{state}" if state else ""
        captions = self.contents.hierarchy_captions(sheet.id, query.id)
        wanted = arrangements[query.id]
        others = tuple(
            pair for name, other in arrangements.items() if name != query.id for pair in other.fields(name)
        )
        title = text_in(query.title, self.language) or text_in(sheet.title, self.language)
        return Block(
            id=query.id,
            title=title,
            context=self._context(choices, masked, captions, title),
            table=lay_out(arrange(masked, wanted), captions, self.language),
            chart=self._chart(entry, query, masked),
            maps=self._maps(entry, query, masked),
            downloads=tuple(
                Link(form.name, f"{base}.{form.extension}{suffix}") for form in formats_for(query.view)
            ),
            elsewhere=self._elsewhere(entry, query, title, suffix),
            arranger=arranger(
                query.id, masked, wanted, captions, (*choice_fields(choices), *others), self.language
            ),
        )

    def _chart(self, entry: SheetEntry, query: QueryDefinition, masked: MaskedCellSet) -> charts.Chart | None:
        if query.view != "chart":
            return None
        time = self.contents.time_hierarchies(entry.sheet.id, query.id)
        return charts.draw(masked, query.options, time, self.language)

    def _maps(
        self, entry: SheetEntry, query: QueryDefinition, masked: MaskedCellSet
    ) -> tuple[maps.TileMap, ...]:
        if query.view != "map":
            return ()
        catalogue = self.contents.catalogue
        cube = catalogue.cubes[catalogue.cube_of[entry.sheet.id, query.id]]
        return maps.draw_maps(masked, query.options, cube, self.language)

    def _context(
        self,
        choices: tuple[Choice, ...],
        masked: MaskedCellSet,
        captions: Mapping[str, Texts],
        title: str,
    ) -> tuple[tuple[str, str], ...]:
        """What holds for the whole table: the choices, then the rest of the slicer."""
        said = [
            (text_in(choice.parameter.title, self.language), caption(choice.member, self.language))
            for choice in choices
        ]
        chosen = {choice.member.unique_name for choice in choices}
        said += [
            (text_in(captions.get(member.hierarchy, {}), self.language), caption(member, self.language))
            for member in masked.slicer
            if member.unique_name not in chosen
        ]
        return tuple(pair for pair in said if pair != ("", title))

    def download(
        self, entry: SheetEntry, query: QueryDefinition, choices: tuple[Choice, ...], masked: MaskedCellSet
    ) -> TableDownload:
        catalogue = self.contents.catalogue
        sheet = entry.sheet
        state = address_query(choices)
        captions = self.contents.hierarchy_captions(sheet.id, query.id)
        names = [text_in(sheet.title, self.language), text_in(query.title, self.language)]
        chosen = ", ".join(caption(choice.member, self.language) for choice in choices)
        return TableDownload(
            cells=observations_of(masked),
            masked=masked,
            cube=catalogue.cubes[catalogue.cube_of[sheet.id, query.id]],
            language=self.language,
            number=entry.number,
            title=". ".join(dict.fromkeys(filter(None, [*names, chosen]))),
            notes=text_in(sheet.notes, self.language),
            publisher=text_in(catalogue.publisher, self.language),
            office=text_in(catalogue.publisher or catalogue.title, catalogue.languages[0]),
            identity=f"{sheet.id}/{query.id}",
            released=catalogue.created,
            address=f"{self.root}/s/{quote(sheet.id)}{f'?{state}' if state else ''}",
            context=self._context(choices, masked, captions, ""),
            lay_out=lambda: lay_out(masked, captions, self.language),
            draw_chart=lambda: self._chart(entry, query, masked),
            draw_maps=lambda: self._maps(entry, query, masked),
            words=self._words(),
        )

    def _words(self) -> dict[str, str]:
        return {
            "confidential": self._("confidential"),
            "hidden": self._("Confidential: showing the figure could tell about a single person or firm."),
            "empty": self._("There is nothing to count."),
            "table": self._("Table"),
            "about": self._("About this table"),
            "title": self._("Title"),
            "publisher": self._("Publisher"),
            "released": self._("Released"),
            "release": self._("Release"),
            "address": self._("Address"),
            "notes": self._("Notes"),
            "unit": self._("Unit"),
            "value": self._("Value"),
            "decimals": self._("Decimals"),
            "status": self._("Status of the figure"),
            "confidentiality": self._("Confidentiality of the figure"),
            "normal": self._("exact figure"),
            "free": self._("free to publish"),
        }


def choice_fields(choices: tuple[Choice, ...]) -> tuple[tuple[str, str], ...]:
    """What an address says of choices."""
    return tuple((f"p.{choice.parameter.name}", choice.key) for choice in choices)


def address_query(choices: tuple[Choice, ...], more: tuple[tuple[str, str], ...] = ()) -> str:
    """The query string that says these choices, and more fields."""
    return urlencode((*choice_fields(choices), *more))


def answer_queries(
    reader: LiveReader, release_id: str, entry: SheetEntry, choices: tuple[Choice, ...]
) -> tuple[tuple[QueryDefinition, Served], ...]:
    """The masked answers to all queries of a sheet."""
    choice = tuple(choice.member.unique_name for choice in choices)
    return tuple(
        (query, reader.answer(release_id, entry.sheet.id, query.id, choice)) for query in entry.sheet.queries
    )


def error_page(status: int, text: str, language: str, site: Site | None) -> ErrorPage:
    """An error in the reader's language, inside the site's frame when there is a site."""
    if site is not None:
        return ErrorPage(site.frame(text, "", crumbs=()), status, text)
    languages = tuple(
        LanguageLink(code, language_name(code), f"/{code}/", code == language) for code in INTERFACE
    )
    frame = Frame(language, text, "Celosia", "", "/", (), languages, "", "")
    return ErrorPage(frame, status, text)
