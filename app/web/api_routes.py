"""The addresses for programs, below ``/api/v1``."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Request
from starlette.responses import Response

from app.domain.cube import text_in
from app.domain.observations import Observations, observations_of
from app.serve.stamp import Stamp
from app.web import api
from app.web.arrange import Arrangement
from app.web.contents import Choice, Contents
from app.web.desk import ANYONE, Desk, caching, located
from app.web.fields import Known, by_name, chosen, fields_of, pairs_of, unasked
from app.web.files import cells_response
from app.web.filters import APART, Page, wanted_cells, whole_number
from app.web.flows import VERSION, Flow, address, agency_of, flows
from app.web.formats import sdmx
from app.web.formats.download import Download
from app.web.formats.registry import FORMATS
from app.web.language import marked as _
from app.web.language import preferred
from app.web.locate import RELEASE
from app.web.negotiation import NO_LANGUAGE, accepted_format, named_format
from app.web.openapi import openapi_document
from app.web.pages import Site
from app.web.refusals import RefusalError
from app.web.reply import Headers, Reply
from app.web.words import file_words

#: Formats that any list of cells can be had in; the first is what a client gets that has no wish.
LISTS = tuple(sorted((form for form in FORMATS if not form.whole), key=lambda form: form.extension != "json"))
#: Cells that a format takes at once which can't be sent as it is made.
MOST_CELLS = 200_000
_MOST_FLOWS = 1000


TOO_MANY = _("These are %(count)s cells, too many for this format. Filter or page them, or take CSV.")


class Api:
    """The routes of the API over a site's desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        get = partial(app.get, response_class=Response, include_in_schema=False)
        plain = partial(get, dependencies=[Depends(unasked)])
        plain("/api/v1/openapi.json")(self.openapi)
        plain("/api/v1/catalogue.json")(self.catalogue)
        plain("/api/v1/structure/{name}.json")(self.structure)
        get("/api/v1/dataflows")(self.dataflows)
        get("/api/v1/structure/dataflow/{agency}/{flow}/{version}")(self.dimensions)
        get("/api/v1/data/dataflow/{agency}/{flow}/{version}")(self.data)
        get("/api/v1/data/dataflow/{agency}/{flow}/{version}/{key}")(self.data)
        app.options("/api/v1/{path:path}", include_in_schema=False)(self.preflight)
        get("/api/v1/{path:path}")(self.nowhere)

    async def preflight(self, request: Request, path: str) -> Response:
        methods = self._desk.methods_at(request.scope["path"])
        headers = (
            *ANYONE,
            ("allow", methods),
            ("access-control-allow-methods", methods),
            ("access-control-allow-headers", "Accept, Accept-Language, Content-Type, If-None-Match, Range"),
            ("access-control-max-age", "86400"),
        )
        return Reply(b"", "text/plain; charset=utf-8", headers=headers, status_code=204)

    async def nowhere(self, path: str) -> Response:
        raise RefusalError(404)

    async def openapi(self, request: Request) -> Response:
        body = openapi_document(
            self._desk.contents_of(request), self._desk.below(request), self._desk.reader.takes_queries
        )
        return self._json(request, body)

    async def catalogue(self, request: Request) -> Response:
        contents = self._desk.contents_of(request)
        return self._json(request, await run_sync(api.catalogue_document, contents, located(request).prefix))

    async def structure(self, request: Request, name: str) -> Response:
        catalogue = self._desk.contents_of(request).catalogue
        cube = catalogue.cubes.get(name)
        if cube is None:
            raise RefusalError(404)
        return self._json(request, await run_sync(api.structure_document, catalogue, cube))

    async def dataflows(self, request: Request) -> Response:
        contents = self._desk.contents_of(request)
        fields = fields_of(request, Known(frozenset(_PAGING)))
        found = list(flows(contents).values())
        offset = whole_number(fields, "offset", 0) if "offset" in fields else 0
        limit = min(whole_number(fields, "limit", 1) if "limit" in fields else 100, _MOST_FLOWS)
        prefix = located(request).prefix
        body = api.dataflows_document(contents, prefix, found[offset : offset + limit], len(found))
        links = self._links(request, Page(offset, limit, len(found)))
        return Reply(body, api.MEDIA_TYPE, cache_control=caching(request), headers=(*ANYONE, *links))

    async def dimensions(self, request: Request, agency: str, flow: str, version: str) -> Response:
        site, found = self._found(request, agency, flow, version)
        fields = fields_of(request, Known(_choices_of(found) | {"lang"}))

        def made() -> bytes:
            download, _ = self._cells(request, site, found, self._choices(site, found, fields))
            return api.dimensions_document(download, address(site.prefix, site.contents.catalogue, found))

        return self._said(request, await run_sync(made), "lang" in fields)

    async def data(self, request: Request, agency: str, flow: str, version: str, key: str = "") -> Response:
        site, found = self._found(request, agency, flow, version)
        return await run_sync(self._data, request, site, found, key)

    def _data(self, request: Request, site: Site, flow: Flow, key: str) -> Response:
        pairs = pairs_of(request)
        own = [pair for pair in pairs if pair[0] in APART or pair[0].startswith("p.")]
        fields = by_name(own, Known(_choices_of(flow) | set(APART)))
        if "format" in fields:
            form = named_format(fields["format"], LISTS)
        else:
            form = accepted_format(request.headers.get("accept", ""), LISTS)
        choices = self._choices(site, flow, fields)
        download, stamp = self._cells(request, site, flow, choices)
        about_cells = [pair for pair in pairs if pair[0] not in fields]
        choosers = {choice.member.hierarchy: f"p.{choice.parameter.name}" for choice in choices}
        cells, page = wanted_cells(download.cells, sdmx.dimensions(download), key, about_cells, choosers)
        if not form.streams and len(cells) > MOST_CELLS:
            raise RefusalError(413, TOO_MANY, count=str(len(cells)))
        links = self._links(request, page) if page.limit is not None else ()
        headers = (*links, ("x-total-count", str(page.total)), *_varying(fields))
        return cells_response(
            form,
            download.of(cells),
            (stamp,),
            flow.id,
            caching(request),
            headers,
            keep={"lang", "format"} <= set(fields),
        )

    # ------------------------------------------------------------------ shared

    def _found(self, request: Request, agency: str, flow: str, version: str) -> tuple[Site, Flow]:
        contents = self._desk.contents_of(request)
        if agency not in ("*", agency_of(contents.catalogue)) or version not in (
            "*",
            "~",
            "+",
            "latest",
            VERSION,
        ):
            raise RefusalError(404)
        found = flows(contents).get(flow)
        if found is None:
            raise RefusalError(404)
        return self._desk.site(request, self._language(request, contents)), found

    def _language(self, request: Request, contents: Contents) -> str:
        wish = next((value for name, value in pairs_of(request) if name == "lang"), "")
        if wish and wish not in contents.catalogue.languages:
            raise RefusalError(400, NO_LANGUAGE, name=wish, languages=", ".join(contents.catalogue.languages))
        return wish or preferred(request.headers.get("accept-language", ""), contents.catalogue.languages)

    def _choices(self, site: Site, flow: Flow, fields: dict[str, str]) -> tuple[Choice, ...]:
        """What an address chooses for the parameters of a flow's sheet."""
        return site.contents.choices(flow.entry.sheet, chosen(fields)) if flow.entry is not None else ()

    def _cells(
        self, request: Request, site: Site, flow: Flow, made: tuple[Choice, ...]
    ) -> tuple[Download, Stamp]:
        """All cells of a flow, and the stamp that lets them out."""
        release = request.scope[RELEASE]
        if flow.entry is None or flow.query is None:
            served = self._desk.reader.cube(release, flow.cube.name)
            return _of_cube(site, flow, served.cells), served.stamp
        members = tuple(choice.member.unique_name for choice in made)
        answer = self._desk.reader.answer(release, flow.entry.sheet.id, flow.query.id, members)
        whole = site.view(flow.entry, flow.query, made, answer, Arrangement()).download()
        return whole.listed(observations_of(answer.masked), flow.id), answer.stamp

    def _links(self, request: Request, page: Page) -> Headers:
        """Where the neighbouring pages are (RFC 8288)."""
        assert page.limit is not None
        others = [pair for pair in pairs_of(request) if pair[0] not in _PAGING]
        path = self._desk.below(request) + request.scope["path"]
        last = (max(page.total - 1, 0) // page.limit) * page.limit
        places = {"first": 0, "last": last}
        if page.offset > 0:
            places["prev"] = min(max(page.offset - page.limit, 0), last)
        if page.offset + page.limit < page.total:
            places["next"] = page.offset + page.limit
        links = [
            f'<{path}?{urlencode([*others, ("offset", offset), ("limit", page.limit)])}>; rel="{rel}"'
            for rel, offset in places.items()
        ]
        return (("link", ", ".join(links)),)

    def _json(self, request: Request, body: bytes) -> Response:
        return Reply(body, api.MEDIA_TYPE, cache_control=caching(request), headers=ANYONE)

    def _said(self, request: Request, body: bytes, keep: bool) -> Response:
        """A document in the reader's language."""
        headers = (*ANYONE, ("vary", "Accept-Language"))
        return Reply(body, api.MEDIA_TYPE, cache_control=caching(request), headers=headers, keep=keep)


def _of_cube(site: Site, flow: Flow, cells: Observations) -> Download:
    """Released cells of a whole cube, for files that list them."""
    catalogue, language = site.contents.catalogue, site.language
    return Download(
        cells=cells,
        cube=flow.cube,
        language=language,
        number="",
        title=flow.title(language),
        notes=text_in(catalogue.description, language),
        publisher=text_in(catalogue.publisher, language),
        office=text_in(catalogue.publisher or catalogue.title, catalogue.languages[0]),
        identity=flow.id,
        released=catalogue.released,
        address=f"{site.root}/",
        words=file_words(language),
        contact=catalogue.contact,
        next_release=catalogue.next_release,
    )


_PAGING = ("offset", "limit")


def _choices_of(flow: Flow) -> frozenset[str]:
    """The fields that say a flow's choices."""
    parameters = flow.entry.sheet.parameters if flow.entry is not None else ()
    return frozenset(f"p.{parameter.name}" for parameter in parameters)


def _varying(fields: dict[str, str]) -> Headers:
    """Headers of the request that an answer depends on."""
    said = {"Accept": "format", "Accept-Language": "lang"}
    return tuple(("vary", header) for header, field in said.items() if field not in fields)
