"""The site as one ASGI application: guard around cache around routes."""

from __future__ import annotations

import json
from functools import partial
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from app.domain.errors import OperatorError
from app.domain.publication import QueryDefinition
from app.serve.answer import LiveReader, NotPublishedError, ReleaseMovedError, Served
from app.serve.port import Asker, ReleaseStore
from app.web import harvest, pages
from app.web.api_routes import Api
from app.web.arrange import read_arrangement
from app.web.arranger import is_form
from app.web.assets import Assets, load_assets
from app.web.cache import ReplyCache
from app.web.contents import Choice, SheetEntry
from app.web.desk import (
    ANYONE,
    HTML,
    RETRY_AFTER,
    Desk,
    admitted,
    body_of,
    caching,
    last_words,
    located,
    unread,
)
from app.web.fields import Known, chosen, fields_of, fields_of_sheet, unasked
from app.web.files import file_response
from app.web.formats.registry import BY_EXTENSION
from app.web.gate import Gate
from app.web.guard import Guard
from app.web.language import preferred
from app.web.limits import Limits, RateLimit
from app.web.locate import RELEASE, Located, locate
from app.web.pages import Site
from app.web.query_routes import Queries
from app.web.refusals import RefusalError
from app.web.render import Renderer
from app.web.reply import NO_STORE, Headers, Reply, moved, redirect
from app.web.search import SearchIndex
from app.web.theme import theme_style
from app.web.xmla import endpoint, soap
from app.web.xmla.soap import FaultError, client_fault, fault


def create_app(
    store: ReleaseStore,
    patience: float = 0.25,
    cache_bytes: int = 64 << 20,
    public_url: str | None = None,
    asker: Asker | None = None,
    limits: Limits | None = None,
    gate: Gate | None = None,
) -> ASGIApp:
    """The public site over a store of releases.

    Parameters
    ----------
    store : ReleaseStore
    patience : float
        Seconds for which a switch of releases may go unnoticed; 0 asks the store at every request.
    cache_bytes : int
        Memory for finished responses.
    public_url : str, optional
        Where readers find the site, as in ``https://stats.example.org``, for the addresses that pages,
        feeds and catalogues name; the host of each request where it isn't given.
    asker : Asker, optional
        Answers readers' own queries over the released cells.
    limits : Limits, optional
        How fast one client may ask; as fast as it can where it isn't given.
    gate : Gate, optional
        How much readers' own queries may take; who has it can stop them.
    """
    reader = LiveReader(store, patience, asker=asker)
    assets = load_assets()
    desk = Desk(reader, Renderer(assets, reader.takes_queries), (public_url or "").rstrip("/"))
    front = _Front(desk, assets, gate or Gate())
    inside: ASGIApp = ReplyCache(front.routes(), cache_bytes)
    if limits is not None:
        inside = RateLimit(inside, limits, desk.too_fast)

    async def where(scope: Scope) -> Located:
        marks = reader.recent_marks()
        # A store that takes its time keeps nobody waiting but those who ask it.
        return locate(scope, await run_sync(reader.marks) if marks is None else marks)

    return Guard(
        inside,
        locate=where,
        is_data=_is_data,
        is_embeddable=_is_embeddable,
        refusal=last_words,
    )


def _is_data(path: str) -> bool:
    """Whether an address gives cells: ``/<language>/s/…``, ``/<language>/embed/…``, ``/api/v1/data/…``."""
    return path.split("/")[2:3] in (["s"], ["embed"]) or path.startswith(("/api/v1/data/", "/api/v1/mdx"))


def _is_embeddable(path: str) -> bool:
    """Whether other sites may show an address in a frame: ``/<language>/embed/…``."""
    return path.split("/")[2:3] == ["embed"]


class _Front:
    """The routes and what they share."""

    def __init__(self, desk: Desk, assets: Assets, gate: Gate) -> None:
        self._desk = desk
        self._gate = gate
        self._reader = desk.reader
        self._assets = assets
        self._indices: dict[tuple[str, str], SearchIndex] = {}

    def routes(self) -> FastAPI:
        app = FastAPI(
            title="Celosia",
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            dependencies=[Depends(admitted)],
        )
        get = partial(app.get, response_class=Response, include_in_schema=False)
        plain = partial(get, dependencies=[Depends(unasked)])
        plain("/")(self.entrance)
        get("/healthz")(self.health)
        get("/robots.txt")(self.robots)
        plain("/sitemap.xml")(self.sitemap)
        plain("/catalog.jsonld")(self.catalogue_jsonld)
        plain("/catalog.ttl")(self.catalogue_turtle)
        plain("/certificate.json")(self.certificate)
        get("/static/{name:path}")(self.static)
        if self._reader.takes_queries:
            Queries(self._desk, self._gate).add_to(app)
            app.post("/xmla", response_class=Response, include_in_schema=False)(self.xmla)
            app.options("/xmla", response_class=Response, include_in_schema=False)(self.xmla_options)
            # Before the addresses of languages, which would take its name for one.
            get("/xmla")(unread)
        Api(self._desk).add_to(app)
        get("/theme.css")(self.theme)
        get("/logo.svg")(self.logo)
        plain("/{language}")(self.language)
        plain("/{language}/")(self.home)
        plain("/{language}/confidentiality")(self.confidentiality)
        get("/{language}/search")(self.search)
        plain("/{language}/api")(self.api_page)
        plain("/{language}/feed.atom")(self.feed)
        get("/{language}/embed/{path:path}")(self.embed)
        plain("/{language}/f/{path:path}")(self.folder)
        get("/{language}/s/{path:path}")(self.sheet)
        get("/{language}/{page}/")(self.slashed)
        for error in (RefusalError, NotPublishedError, ReleaseMovedError, HTTPException, OperatorError):
            app.add_exception_handler(error, self._desk.refuse)
        return app

    # ------------------------------------------------------------------ addresses without cells

    async def entrance(self, request: Request) -> Response:
        languages = self._desk.contents_of(request).catalogue.languages
        language = preferred(request.headers.get("accept-language", ""), languages)
        return redirect(f"{located(request).prefix}/{language}/", vary="Accept-Language")

    async def health(self, request: Request) -> Response:
        live = request.scope[RELEASE]
        body = json.dumps({"status": "ok" if live else "no live release", "release": live}).encode()
        return Reply(body, "application/json", status_code=200 if live else 503, cache_control=NO_STORE)

    async def robots(self, request: Request) -> Response:
        text = f"User-agent: *\nAllow: /\nSitemap: {self._desk.base(request)}/sitemap.xml\n"
        return Reply(text.encode(), "text/plain; charset=utf-8")

    async def sitemap(self, request: Request) -> Response:
        return Reply(
            harvest.sitemap(
                self._desk.contents_of(request), self._desk.below(request), self._reader.takes_queries
            ),
            harvest.SITEMAP,
        )

    async def catalogue_jsonld(self, request: Request) -> Response:
        body = harvest.catalogue_jsonld(self._desk.contents_of(request), self._desk.below(request))
        return Reply(body, harvest.JSON_LD, cache_control=caching(request), headers=ANYONE)

    async def catalogue_turtle(self, request: Request) -> Response:
        body = harvest.catalogue_turtle(self._desk.contents_of(request), self._desk.below(request))
        return Reply(body, harvest.TURTLE, cache_control=caching(request), headers=ANYONE)

    async def certificate(self, request: Request) -> Response:
        release = self._desk.contents_of(request).catalogue.release_id
        text = await run_sync(self._reader.certificate, release)
        if text is None:
            raise RefusalError(404)
        return Reply(text.encode(), "application/json", cache_control=caching(request), headers=ANYONE)

    async def feed(self, request: Request, language: str) -> Response:
        site = self._desk.site(request, language)
        return Reply(
            harvest.feed(site.contents, language, self._desk.below(request)), harvest.ATOM, headers=ANYONE
        )

    async def static(self, name: str, v: str = "") -> Response:
        return self._assets.reply(name, v)

    async def theme(self, request: Request) -> Response:
        return Reply(theme_style(self._desk.contents_of(request).catalogue.theme), "text/css; charset=utf-8")

    async def logo(self, request: Request) -> Response:
        drawn = self._desk.contents_of(request).catalogue.theme.logo
        if not drawn:
            raise RefusalError(404)
        return Reply(drawn.encode(), "image/svg+xml")

    async def xmla(self, request: Request) -> Response:
        body = await body_of(request, endpoint.MAX_BODY)
        if body is None:
            told, status = fault(client_fault("The message has more than 1 MB.")), 413
            return Reply(told, soap.MEDIA_TYPE, status_code=status, cache_control=NO_STORE, headers=ANYONE)
        release = request.scope[RELEASE]
        if release is None:
            raise RefusalError(503)
        languages = request.headers.get("accept-language", "")
        work = partial(endpoint.respond, body, self._reader, release, languages)
        headers: Headers = ANYONE
        try:
            status, told, stamps = await self._gate.answer(request, work)
        except RefusalError as error:
            words = error.sentence(preferred(languages, self._desk.contents_of(request).catalogue.languages))
            status, told, stamps = error.status, fault(FaultError("Server", words)), ()
            headers += (("retry-after", RETRY_AFTER),)
        return Reply(told, soap.MEDIA_TYPE, stamps, status, NO_STORE, headers)

    async def xmla_options(self) -> Response:
        allowed = (
            ("access-control-allow-methods", "POST, OPTIONS"),
            ("access-control-allow-headers", "Content-Type, SOAPAction"),
            ("access-control-max-age", "86400"),
            ("allow", "POST, OPTIONS"),
        )
        return Reply(b"", "text/plain", status_code=200, cache_control=NO_STORE, headers=ANYONE + allowed)

    async def api_page(self, request: Request, language: str) -> Response:
        return self._desk.page(request, self._desk.site(request, language).api())

    async def language(self, request: Request, language: str) -> Response:
        return redirect(f"{self._desk.site(request, language).root}/")

    async def home(self, request: Request, language: str) -> Response:
        return self._desk.page(request, self._desk.site(request, language).home())

    async def slashed(self, request: Request, language: str, page: str) -> Response:
        """A page's address with a slash too many."""
        asks = ("query",) if self._reader.takes_queries else ()
        if page not in ("confidentiality", "search", "api", *asks):
            raise RefusalError(404)
        return _unslashed(request, self._desk.site(request, language), page)

    async def folder(self, request: Request, language: str, path: str) -> Response:
        if path.strip("/") and path.endswith("/"):
            return _unslashed(request, self._desk.site(request, language), f"f/{path}")
        return self._desk.page(request, self._desk.site(request, language).folder(path))

    async def confidentiality(self, request: Request, language: str) -> Response:
        site = self._desk.site(request, language)
        text = await run_sync(self._reader.certificate, site.contents.catalogue.release_id)
        return self._desk.page(request, site.confidentiality(certified=text is not None))

    async def search(self, request: Request, language: str) -> Response:
        site = self._desk.site(request, language)
        fields = fields_of(request, Known(frozenset({"q"})))
        words = " ".join(fields.get("q", "").split())[:200]
        return await run_sync(self._search, request, site, words)

    def _search(self, request: Request, site: Site, words: str) -> Response:
        key = (site.contents.catalogue.release_id, site.language)
        index = self._indices.get(key)
        if index is None:
            index = site.search_index(self._reader)
            self._indices = {k: v for k, v in self._indices.items() if k[0] == key[0]} | {key: index}
        return self._desk.page(request, site.search(words, index))

    # ------------------------------------------------------------------ addresses with cells

    async def sheet(self, request: Request, language: str, path: str) -> Response:
        site = self._desk.site(request, language)
        if path.strip("/") and path.endswith("/"):
            return _unslashed(request, site, f"s/{path}")
        parent, _, last = path.rpartition("/")
        name, dot, extension = last.rpartition(".")
        if dot and path not in site.contents.sheets:
            return await run_sync(self._download, request, site, parent, name, extension)
        return await run_sync(self._sheet, request, site, path)

    async def embed(self, request: Request, language: str, path: str) -> Response:
        site = self._desk.site(request, language)
        if path.strip("/") and path.endswith("/"):
            return _unslashed(request, site, f"embed/{path}")
        parent, _, query_id = path.rpartition("/")
        return await run_sync(self._embed, request, site, parent, query_id)

    def _embed(self, request: Request, site: Site, path: str, query_id: str) -> Response:
        entry, query, choices, served, fields = self._one_query(request, site, path, query_id)
        wanted = read_arrangement(fields, query.id)
        body = self._desk.render(site.embed(site.view(entry, query, choices, served, wanted)))
        return Reply(body, HTML, (served.stamp,), cache_control=caching(request))

    def _one_query(
        self, request: Request, site: Site, path: str, query_id: str
    ) -> tuple[SheetEntry, QueryDefinition, tuple[Choice, ...], Served, dict[str, str]]:
        entry = site.contents.sheet(path)
        query = next((query for query in entry.sheet.queries if query.id == query_id), None)
        if query is None:
            raise RefusalError(404)
        fields = fields_of(request, fields_of_sheet(entry.sheet))
        choices = site.contents.choices(entry.sheet, chosen(fields))
        served = pages.answer_query(self._reader, site.contents, entry, query, choices, fields)
        return entry, query, choices, served, fields

    def _sheet(self, request: Request, site: Site, path: str) -> Response:
        entry = site.contents.sheet(path)
        fields = fields_of(request, fields_of_sheet(entry.sheet))
        choices = site.contents.choices(entry.sheet, chosen(fields))
        answers = pages.answer_queries(self._reader, site.contents, entry, choices, fields)
        if is_form(fields):
            return redirect(site.settle(entry, choices, answers, fields))
        body = self._desk.render(site.sheet(entry, choices, answers, fields))
        return Reply(body, HTML, tuple(served.stamp for _, served in answers), cache_control=caching(request))

    def _download(
        self,
        request: Request,
        site: Site,
        path: str,
        query_id: str,
        extension: str,
    ) -> Response:
        form = BY_EXTENSION.get(extension)
        if form is None:
            raise RefusalError(404)
        entry, query, choices, served, fields = self._one_query(request, site, path, query_id)
        view = site.view(entry, query, choices, served, read_arrangement(fields, query.id))
        if view.drawn_as not in form.views:
            raise RefusalError(404)
        name = "-".join([*entry.sheet.id.split("/")[-1:], query.id, *(choice.key for choice in choices)])
        return file_response(form, view.download(), (served.stamp,), name, caching(request))


def _unslashed(request: Request, site: Site, path: str) -> Response:
    """On to a page's own address, with the same fields."""
    state = f"?{request.url.query}" if request.url.query else ""
    return moved(f"{site.root}/{quote(path.rstrip('/'))}{state}")
