"""The site as one ASGI application: guard around cache around routes."""

from __future__ import annotations

import json
import re
from functools import partial
from urllib.parse import parse_qsl

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from app.domain.publication import QueryDefinition
from app.serve.answer import LiveReader, NotPublishedError, ReleaseMovedError, Served
from app.serve.port import ReleaseStore
from app.web import api, harvest, pages
from app.web.assets import Assets, load_assets
from app.web.cache import ReplyCache
from app.web.contents import Choice, Contents, SheetEntry
from app.web.contexts import Page
from app.web.formats.registry import BY_EXTENSION
from app.web.guard import RELEASE, Guard
from app.web.language import INTERFACE, preferred
from app.web.openapi import openapi_document
from app.web.pages import Site
from app.web.refusals import RefusalError, sentence
from app.web.render import Renderer
from app.web.reply import IMMUTABLE, NO_STORE, REVALIDATE, Reply, redirect
from app.web.search import SearchIndex

HTML = "text/html; charset=utf-8"

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_ANYONE = (("access-control-allow-origin", "*"),)


def create_app(
    store: ReleaseStore,
    patience: float = 0.25,
    cache_bytes: int = 64 << 20,
    public_url: str | None = None,
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
    """
    reader = LiveReader(store, patience)
    assets = load_assets()
    front = _Front(reader, assets, Renderer(assets), (public_url or "").rstrip("/"))
    return Guard(
        ReplyCache(front.routes(), cache_bytes),
        live_id=reader.live_id,
        is_data=_is_data,
        is_embeddable=_is_embeddable,
        refusal=_last_words,
    )


def _is_data(path: str) -> bool:
    """Whether an address gives cells: ``/<language>/s/…`` or ``/<language>/embed/…``."""
    return path.split("/")[2:3] in (["s"], ["embed"])


def _is_embeddable(path: str) -> bool:
    """Whether other sites may show an address in a frame: ``/<language>/embed/…``."""
    return path.split("/")[2:3] == ["embed"]


def _last_words(path: str) -> tuple[str, bytes]:
    language = path.split("/")[1] if path.split("/")[1:2] and path.split("/")[1] in INTERFACE else "en"
    if path.startswith("/api/"):
        return "application/problem+json", _problem(500, language)
    words = sentence(500, language)
    page = (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>{words}</title><h1>{words}</h1>'
    )
    return HTML, page.encode()


def _problem(status: int, language: str) -> bytes:
    document = {"type": "about:blank", "status": status, "title": sentence(status, language)}
    return json.dumps(document, ensure_ascii=False).encode()


class _Front:
    """The routes and what they share."""

    def __init__(self, reader: LiveReader, assets: Assets, renderer: Renderer, public_url: str) -> None:
        self._public_url = public_url
        self._reader = reader
        self._assets = assets
        self._render = renderer
        self._contents: Contents | None = None
        self._indices: dict[tuple[str, str], SearchIndex] = {}

    def routes(self) -> FastAPI:
        app = FastAPI(
            title="Celosia",
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        get = partial(app.get, response_class=Response, include_in_schema=False)
        get("/")(self.entrance)
        get("/healthz")(self.health)
        get("/robots.txt")(self.robots)
        get("/sitemap.xml")(self.sitemap)
        get("/catalog.jsonld")(self.catalogue_jsonld)
        get("/catalog.ttl")(self.catalogue_turtle)
        get("/static/{name:path}")(self.static)
        get("/api/v1/openapi.json")(self.openapi)
        get("/api/v1/catalogue.json")(self.catalogue)
        get("/api/v1/structure/{name}.json")(self.structure)
        get("/{language}")(self.language)
        get("/{language}/")(self.home)
        get("/{language}/confidentiality")(self.confidentiality)
        get("/{language}/search")(self.search)
        get("/{language}/api")(self.api_page)
        get("/{language}/feed.atom")(self.feed)
        get("/{language}/embed/{path:path}")(self.embed)
        get("/{language}/f/{path:path}")(self.folder)
        get("/{language}/s/{path:path}")(self.sheet)
        for error in (RefusalError, NotPublishedError, ReleaseMovedError, HTTPException):
            app.add_exception_handler(error, self.refuse)
        return app

    # ------------------------------------------------------------------ addresses without cells

    async def entrance(self, request: Request) -> Response:
        languages = self._contents_of(request).catalogue.languages
        language = preferred(request.headers.get("accept-language", ""), languages)
        return redirect(f"/{language}/", vary="Accept-Language")

    async def health(self, request: Request) -> Response:
        live = request.scope[RELEASE]
        body = json.dumps({"status": "ok" if live else "no live release", "release": live}).encode()
        return Reply(body, "application/json", status_code=200 if live else 503, cache_control=NO_STORE)

    async def robots(self, request: Request) -> Response:
        text = f"User-agent: *\nAllow: /\nSitemap: {self._base(request)}/sitemap.xml\n"
        return Reply(text.encode(), "text/plain; charset=utf-8")

    async def sitemap(self, request: Request) -> Response:
        return Reply(harvest.sitemap(self._contents_of(request), self._base(request)), harvest.SITEMAP)

    async def catalogue_jsonld(self, request: Request) -> Response:
        body = harvest.catalogue_jsonld(self._contents_of(request), self._base(request))
        return Reply(body, harvest.JSON_LD, headers=_ANYONE)

    async def catalogue_turtle(self, request: Request) -> Response:
        body = harvest.catalogue_turtle(self._contents_of(request), self._base(request))
        return Reply(body, harvest.TURTLE, headers=_ANYONE)

    async def feed(self, request: Request, language: str) -> Response:
        site = self._site(request, language)
        return Reply(harvest.feed(site.contents, language, site.base), harvest.ATOM, headers=_ANYONE)

    async def static(self, name: str, v: str = "") -> Response:
        return self._assets.reply(name, v)

    async def catalogue(self, request: Request) -> Response:
        body = await run_sync(lambda: api.catalogue_document(self._contents_of(request)))
        return Reply(body, api.MEDIA_TYPE, headers=_ANYONE)

    async def structure(self, request: Request, name: str) -> Response:
        catalogue = self._contents_of(request).catalogue
        cube = catalogue.cubes.get(name)
        if cube is None:
            raise RefusalError(404)
        body = await run_sync(api.structure_document, catalogue, cube)
        return Reply(body, api.MEDIA_TYPE, headers=_ANYONE)

    async def openapi(self, request: Request) -> Response:
        body = openapi_document(self._contents_of(request), self._base(request))
        return Reply(body, api.MEDIA_TYPE, headers=_ANYONE)

    async def api_page(self, request: Request, language: str) -> Response:
        return self._page(self._site(request, language).api())

    async def language(self, request: Request, language: str) -> Response:
        self._site(request, language)
        return redirect(f"/{language}/")

    async def home(self, request: Request, language: str) -> Response:
        return self._page(self._site(request, language).home())

    async def folder(self, request: Request, language: str, path: str) -> Response:
        return self._page(self._site(request, language).folder(path))

    async def confidentiality(self, request: Request, language: str) -> Response:
        return self._page(self._site(request, language).confidentiality())

    async def search(self, request: Request, language: str) -> Response:
        site = self._site(request, language)
        fields, _ = _wishes(request)
        words = " ".join(fields.get("q", "").split())[:200]
        return await run_sync(self._search, site, words)

    def _search(self, site: Site, words: str) -> Response:
        key = (site.contents.catalogue.release_id, site.language)
        index = self._indices.get(key)
        if index is None:
            index = site.search_index(self._reader)
            self._indices = {k: v for k, v in self._indices.items() if k[0] == key[0]} | {key: index}
        return self._page(site.search(words, index))

    # ------------------------------------------------------------------ addresses with cells

    async def sheet(self, request: Request, language: str, path: str) -> Response:
        site = self._site(request, language)
        fields, caching = _wishes(request)
        parent, _, last = path.rpartition("/")
        name, dot, extension = last.rpartition(".")
        if dot and path not in site.contents.sheets:
            return await run_sync(self._download, request, site, parent, name, extension, fields, caching)
        return await run_sync(self._sheet, request, site, path, fields, caching)

    async def embed(self, request: Request, language: str, path: str) -> Response:
        site = self._site(request, language)
        fields, caching = _wishes(request)
        parent, _, query_id = path.rpartition("/")
        return await run_sync(self._embed, request, site, parent, query_id, fields, caching)

    def _embed(
        self, request: Request, site: Site, path: str, query_id: str, fields: dict[str, str], caching: str
    ) -> Response:
        entry, query, choices, served = self._one_query(request, site, path, query_id, fields)
        body = self._render(site.embed(entry, query, choices, served.masked))
        return Reply(body, HTML, (served.stamp,), cache_control=caching)

    def _one_query(
        self, request: Request, site: Site, path: str, query_id: str, fields: dict[str, str]
    ) -> tuple[SheetEntry, QueryDefinition, tuple[Choice, ...], Served]:
        entry = site.contents.sheet(path)
        query = next((query for query in entry.sheet.queries if query.id == query_id), None)
        if query is None:
            raise RefusalError(404)
        choices = site.contents.choices(entry.sheet, _chosen(fields))
        choice = tuple(choice.member.unique_name for choice in choices)
        return entry, query, choices, self._reader.answer(request.scope[RELEASE], path, query.id, choice)

    def _sheet(
        self, request: Request, site: Site, path: str, fields: dict[str, str], caching: str
    ) -> Response:
        entry = site.contents.sheet(path)
        choices = site.contents.choices(entry.sheet, _chosen(fields))
        answers = pages.answer_queries(self._reader, request.scope[RELEASE], entry, choices)
        body = self._render(site.sheet(entry, choices, answers, fields))
        return Reply(body, HTML, tuple(served.stamp for _, served in answers), cache_control=caching)

    def _download(
        self,
        request: Request,
        site: Site,
        path: str,
        query_id: str,
        extension: str,
        fields: dict[str, str],
        caching: str,
    ) -> Response:
        form = BY_EXTENSION.get(extension)
        if form is None:
            raise RefusalError(404)
        entry, query, choices, served = self._one_query(request, site, path, query_id, fields)
        if query.view not in form.views:
            raise RefusalError(404)
        name = "-".join([*entry.sheet.id.split("/")[-1:], query.id, *(choice.key for choice in choices)])
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)
        return Reply(
            form.write(site.download(entry, query, choices, served.masked)),
            form.media_type,
            (served.stamp,),
            cache_control=caching,
            headers=(("content-disposition", f'attachment; filename="{safe}.{form.suffix}"'), *_ANYONE),
        )

    # ------------------------------------------------------------------ shared

    def _contents_of(self, request: Request) -> Contents:
        live = request.scope[RELEASE]
        if live is None:
            raise RefusalError(503)
        contents = self._contents
        if contents is None or contents.catalogue.release_id != live:
            contents = Contents(self._reader.catalogue(live))
            self._contents = contents
        return contents

    def _site(self, request: Request, language: str) -> Site:
        contents = self._contents_of(request)
        if language not in contents.catalogue.languages:
            raise RefusalError(404)
        return Site(contents, language, self._base(request))

    def _base(self, request: Request) -> str:
        """Scheme and host that addresses start with.

        Raises
        ------
        RefusalError
            400 when a request's own host is none.
        """
        if self._public_url:
            return self._public_url
        host = request.headers.get("host", "localhost")
        if not _HOST.fullmatch(host):
            raise RefusalError(400)
        return f"{request.scope['scheme']}://{host}"

    def _page(self, page: Page) -> Response:
        return Reply(self._render(page), HTML)

    async def refuse(self, request: Request, error: Exception) -> Response:
        """The error page of a request that has no answer."""
        if isinstance(error, RefusalError):
            status = error.status
        elif isinstance(error, HTTPException):
            status = error.status_code
        else:
            status = 503 if isinstance(error, ReleaseMovedError) else 404
        language, site = self._reader_of(request)
        headers = (("retry-after", "2"),) if status == 503 else ()
        if request.url.path.startswith("/api/"):
            body, media_type = _problem(status, language), "application/problem+json"
        else:
            body, media_type = self._render(pages.error_page(status, language, site)), HTML
        return Reply(body, media_type, status_code=status, cache_control=NO_STORE, headers=headers)

    def _reader_of(self, request: Request) -> tuple[str, Site | None]:
        """The language of an address that may be wrong in every other way."""
        live = request.scope[RELEASE]
        contents = self._contents
        if contents is not None and contents.catalogue.release_id != live:
            contents = None
        offered = contents.catalogue.languages if contents is not None else INTERFACE
        first = request.url.path.split("/")[1] if "/" in request.url.path else ""
        language = (
            first if first in offered else preferred(request.headers.get("accept-language", ""), offered)
        )
        return language, Site(contents, language, "") if contents is not None else None


def _wishes(request: Request) -> tuple[dict[str, str], str]:
    """The fields of the query string, and for how long the answer may be kept.

    Raises
    ------
    RefusalError
        400 for a query string that isn't UTF-8 or says a thing twice, 404 for a release that isn't live.
    """
    try:
        pairs = parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=64,
        )
    except ValueError:
        raise RefusalError(400) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RefusalError(400)
    caching = REVALIDATE
    if "release" in fields:
        if fields["release"] != request.scope[RELEASE]:
            raise RefusalError(404)
        caching = IMMUTABLE
    return fields, caching


def _chosen(fields: dict[str, str]) -> dict[str, str]:
    """Choices by parameter."""
    return {name[2:]: value for name, value in fields.items() if name.startswith("p.")}
