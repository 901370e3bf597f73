"""Build each page's context from the release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from markupsafe import Markup

from app.domain.cube import text_in
from app.domain.masked import MaskedCellSet
from app.domain.publication import Folder, QueryDefinition, Sheet
from app.serve.answer import LiveReader, Served
from app.web import harvest
from app.web.arrange import Arrangement, hierarchies_of, opened_names, read_arrangement
from app.web.arranger import is_form, looking, settle
from app.web.blocks import View
from app.web.contents import LATEST, Choice, Contents, SheetEntry, address_query, choice_fields
from app.web.contexts import (
    AddressGroup,
    ApiPage,
    Chooser,
    ConfidentialityPage,
    ContactLinks,
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
from app.web.fields import edited, refuse_beyond
from app.web.finder import MOST, Look, finder, listing, offered, read_looks
from app.web.flows import address, flows
from app.web.formats.registry import formats_for
from app.web.language import INTERFACE, day_or_month, language_name, long_date, translations
from app.web.locate import AS_OF, prefix_of
from app.web.protection import protected_measures
from app.web.render import markdown
from app.web.search import Hit, SearchIndex
from app.web.tables import caption
from app.web.theme import is_themed


@dataclass(frozen=True, eq=False)
class Site:
    """One release in one language, from which pages are made.

    ``only`` is the address of its one sheet where that isn't among others, as in a preview.
    """

    contents: Contents
    language: str
    base: str
    prefix: str = ""
    only: str = ""

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
            released=long_date(catalogue.released, self.language),
            release_id=catalogue.release_id,
            theme=f"/theme.css?v={catalogue.release_id}" if is_themed(catalogue.theme) else "",
            logo=f"/logo.svg?v={catalogue.release_id}" if catalogue.theme.logo else "",
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

    def confidentiality(self, certified: bool) -> ConfidentialityPage:
        catalogue = self.contents.catalogue
        return ConfidentialityPage(
            frame=self.frame(self._("How the figures are protected"), "confidentiality", crumbs=()),
            cubes=protected_measures(catalogue, self.language),
            hide_zeros=catalogue.hide_zeros,
            certificate=f"{self.prefix}/certificate.json" if certified else "",
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
                self._("Data"),
                self._(
                    "A dataflow for each table and each cube, with filters, keys and pages as in SDMX "
                    "REST 3; formats by Accept or format=, old releases by asOf=. Own queries in MDX go to "
                    "POST /api/v1/mdx."
                ),
                (
                    example("/api/v1/dataflows"),
                    *(
                        example(f"{address('', self.contents.catalogue, flow)}?limit=10&format=csv")
                        for flow in list(flows(self.contents).values())[:1]
                    ),
                ),
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
        frame = self.frame(self._("Data for programs"), "api", crumbs=())
        return ApiPage(frame, groups, f"{self.base}/xmla")

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

        def first_sight() -> Iterator[tuple[SheetEntry, tuple[Choice, ...], tuple[MaskedCellSet, ...]]]:
            for entry in contents.root.walk():
                choices = contents.choices(entry.sheet, {})
                answers = answer_queries(reader, contents, entry, choices, {})
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
        arrangements = _arrangements(sheet, fields)
        editing = edited(fields, sheet)
        kept = tuple(pair for name, wanted in arrangements.items() for pair in wanted.fields(name))
        query = address_query(choices, kept)
        path = f"s/{quote(sheet.id)}"
        views = tuple(
            self.view(entry, definition, choices, served, arrangements[definition.id])
            for definition, served in answers
        )
        blocks = tuple(
            view.block(
                tuple(
                    pair
                    for name, other in arrangements.items()
                    if name != view.query.id
                    for pair in other.fields(name)
                ),
                editing == view.query.id,
                looks=read_looks(fields, view.query.id),
            )
            for view in views
        )
        before, after = self.contents.neighbours(sheet)
        title = text_in(sheet.title, self.language)
        return SheetPage(
            frame=self.frame(title, path, query, crumbs=entry.path),
            entry=entry,
            choosers=tuple(
                self._chooser(choice, fields.get(f"find.p.{choice.parameter.name}", "")) for choice in choices
            ),
            kept=kept,
            blocks=blocks,
            notes=markdown(text_in(sheet.notes, self.language)),
            before=before,
            after=after,
            hidden=len(frozenset().union(*(view.confidential for view in views))),
            signs=frozenset().union(*(block.signs for block in blocks)),
            address=self.only or f"{self.root}/{path}",
            citation=self._citation(entry, query),
            editing=any(block.arranger.editing for block in blocks),
            next_release=day_or_month(self.contents.catalogue.next_release_of(sheet), self.language),
            contact=self._contact(sheet),
            dataset=Markup(harvest.dataset_document(self.contents, entry, self.language, self.base)),
        )

    def view(
        self,
        entry: SheetEntry,
        query: QueryDefinition,
        choices: tuple[Choice, ...],
        served: Served,
        wanted: Arrangement,
    ) -> View:
        """A query as an address wants it seen."""
        return View(
            self.contents,
            self.language,
            self.base,
            self.root,
            entry,
            query,
            choices,
            served,
            wanted,
            self.only,
        )

    def settle(
        self,
        entry: SheetEntry,
        choices: tuple[Choice, ...],
        answers: tuple[tuple[QueryDefinition, Served], ...],
        fields: Mapping[str, str],
    ) -> str:
        """The address of what the form for arranging a table was sent with."""
        edited(fields, entry.sheet)
        said: list[tuple[str, str]] = [*choice_fields(choices)]
        said += [(name, fields[name]) for name in (AS_OF,) if name in fields]
        target = ""
        searching: list[tuple[str, str]] = []
        for query, served in answers:
            cube = self.contents.catalogue.cubes[self.contents.catalogue.cube_of[entry.sheet.id, query.id]]
            wanted = read_arrangement(fields, query.id)
            mine = {name: text for name, text in fields.items() if f".{query.id}." in name}
            if is_form(mine):
                wanted = settle(mine, query.id, wanted, served.masked, cube, self.language)
                searching = looking(mine, query.id)
                target = f"choose.{query.id}" if searching else query.id
                if any(name.startswith(f"spot.{query.id}.") for name in mine):
                    target = f"cell.{query.id}"
            said += wanted.fields(query.id)
        return f"{self.root}/s/{quote(entry.sheet.id)}?{urlencode([*said, *searching])}#{target}"

    def embed(self, view: View) -> EmbedPage:
        title = text_in(view.entry.sheet.title, self.language)
        path = f"s/{quote(view.entry.sheet.id)}"
        return EmbedPage(
            frame=self.frame(title, path, view.suffix.removeprefix("?")),
            block=view.block((), editing=False, expandable=False),
            source=Link(
                " · ".join(filter(None, [text_in(self.contents.catalogue.publisher, self.language), title])),
                f"{view.sheet_address}{view.suffix}",
            ),
        )

    def _contact(self, sheet: Sheet) -> ContactLinks | None:
        contact = self.contents.catalogue.contact_of(sheet)
        if not contact:
            return None
        ways = (
            Link(contact.email, f"mailto:{quote(contact.email, safe='@')}" if contact.email else ""),
            Link(contact.phone, f"tel:{harvest.telephone(contact.phone)}" if contact.phone else ""),
            Link(re.sub(r"^https?://|/$", "", contact.page), contact.page),
        )
        return ContactLinks(text_in(contact.name, self.language), tuple(way for way in ways if way.address))

    def _citation(self, entry: SheetEntry, state: str) -> str:
        catalogue = self.contents.catalogue
        # A citation names what was read, and that is one release.
        lasting = f"{self.base}{prefix_of(catalogue.release_id)}/{self.language}/s/{quote(entry.sheet.id)}"
        address = f"{lasting}?{state}" if state else lasting
        said = self._(
            "%(publisher)s (%(year)s). %(title)s. Table %(number)s of “%(site)s”. Released on %(date)s."
        )
        facts = {
            "publisher": text_in(catalogue.publisher, self.language),
            "year": catalogue.released.year,
            "title": text_in(entry.sheet.title, self.language),
            "number": entry.number,
            "site": text_in(catalogue.title, self.language),
            "date": long_date(catalogue.released, self.language),
        }
        return f"{said % facts} {address}"

    def _chooser(self, choice: Choice, words: str) -> Chooser:
        floor = min(member.depth for member in choice.options)
        latest = self._("The latest: %(period)s") % {"period": caption(choice.options[-1], self.language)}
        options = tuple(
            Option(
                key,
                caption(member, self.language),
                member.depth - floor,
                index == choice.chosen and not choice.follows,
            )
            for index, (member, key) in enumerate(zip(choice.options, choice.keys, strict=True))
        )
        search = None
        if len(options) > MOST:
            look = Look(words[:100])
            found = listing([option.text for option in options], look, choice.chosen)
            search = finder(f"p.{choice.parameter.name}", "", look, found, self.language)
            options = offered(options, found)
        return Chooser(
            field=f"p.{choice.parameter.name}",
            title=text_in(choice.parameter.title, self.language) or choice.parameter.name,
            options=(*options, *([Option(LATEST, latest, 0, choice.follows)] if choice.time else [])),
            finder=search,
        )


def _arrangements(sheet: Sheet, fields: Mapping[str, str]) -> dict[str, Arrangement]:
    return {query.id: read_arrangement(fields, query.id) for query in sheet.queries}


def answer_queries(
    reader: LiveReader,
    contents: Contents,
    entry: SheetEntry,
    choices: tuple[Choice, ...],
    fields: Mapping[str, str],
) -> tuple[tuple[QueryDefinition, Served], ...]:
    """The masked answers to all queries of a sheet, with the branches that an address opens."""
    return tuple(
        (query, answer_query(reader, contents, entry, query, choices, fields))
        for query in entry.sheet.queries
    )


def answer_query(
    reader: LiveReader,
    contents: Contents,
    entry: SheetEntry,
    query: QueryDefinition,
    choices: tuple[Choice, ...],
    fields: Mapping[str, str],
) -> Served:
    """The masked answer to a query of a sheet, with the branches that an address opens."""
    release = contents.catalogue.release_id
    choice = tuple(choice.member.unique_name for choice in choices)
    served = reader.answer(release, entry.sheet.id, query.id, choice)
    wanted = read_arrangement(fields, query.id)
    if not any(f".{query.id}." in name for name in fields):
        return served
    cube = contents.catalogue.cubes[contents.catalogue.cube_of[entry.sheet.id, query.id]]
    known = hierarchies_of(served.masked, cube)
    refuse_beyond(fields, query.id, len(known.members))
    if not wanted.opened:
        return served
    opened = tuple(name for number in sorted(wanted.opened) for name in opened_names(known, wanted, number))
    return reader.answer(release, entry.sheet.id, query.id, choice, opened)


def error_page(
    status: int, text: str, language: str, site: Site | None, ways: tuple[Link, ...] = ()
) -> ErrorPage:
    """An error in the reader's language, inside the site's frame when there is a site."""
    if site is not None:
        return ErrorPage(site.frame(text, "", crumbs=()), status, text, ways)
    languages = tuple(
        LanguageLink(code, language_name(code), f"/{code}/", code == language) for code in INTERFACE
    )
    frame = Frame(language, text, "Celosia", "", "/", (), languages, "", "")
    return ErrorPage(frame, status, text, ways)
