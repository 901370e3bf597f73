"""The addresses of readers' own queries: ``/<language>/query``, its files, and ``POST /api/v1/mdx``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from starlette.responses import Response

from app.domain.errors import Mistake, UserError
from app.domain.patience import OverdueError, Patience
from app.serve.answer import ServedQuery
from app.web.builder import FIELDS, NO_CUBE, QUERY_FORMATS, builder_page, query_download, written
from app.web.desk import ANYONE, HTML, PROBLEM, Desk, body_of, caching, unread
from app.web.documents import DocumentError, read_document
from app.web.fields import Known, fields_of, known_among, pairs_of
from app.web.files import file_response
from app.web.gate import Gate, too_long
from app.web.language import marked as _
from app.web.language import preferred
from app.web.locate import RELEASE
from app.web.mistakes import in_words_of, translated
from app.web.negotiation import NO_LANGUAGE, accepted_format, named_format
from app.web.pages import Site
from app.web.refusals import RefusalError
from app.web.reply import NO_STORE, Reply

#: Bytes of a request with a query.
MAX_BODY = 1 << 20


NO_ANSWER = _("The query can't be answered; “errors” says where and why.")
NO_QUERY = _('There is no query: send {"mdx": "SELECT …"}, or the query itself as plain text.')
SEND = _('Send {"mdx": "SELECT …"}, or the query itself as plain text.')
HALF_A_LETTER = _("The query has half of a character (\\ud800 to \\udfff), which is no text.")


class Queries:
    """The routes of readers' own queries over a site's desk."""

    def __init__(self, desk: Desk, gate: Gate) -> None:
        self._desk = desk
        self._gate = gate

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        get = partial(app.get, response_class=Response, include_in_schema=False)
        get("/{language}/query")(self.page)
        get("/{language}/query.{extension}")(self.file)
        app.post("/api/v1/mdx", response_class=Response, include_in_schema=False)(self.mdx)
        get("/api/v1/mdx")(unread)

    # ------------------------------------------------------------------ pages and files

    async def page(self, request: Request, language: str) -> Response:
        site = self._desk.site(request, language)
        pairs = known_among(pairs_of(request), FIELDS)
        work = partial(self._page, request, site, pairs)
        if {"mdx", "build"}.isdisjoint(dict(pairs)):
            return await run_sync(work, Patience())
        return await self._gate.answer(request, work)

    def _page(
        self, request: Request, site: Site, pairs: Sequence[tuple[str, str]], patience: Patience
    ) -> Response:
        fields = dict(pairs)
        cubes = site.contents.catalogue.cubes
        name = fields.get("cube") or next(iter(cubes), "")
        if name not in cubes:
            raise RefusalError(400, NO_CUBE, name=name)
        cube = cubes[name]
        if "fresh" in fields:
            # What was chosen of another cube means nothing of this one.
            pairs = [pair for pair in pairs if pair[0] == "cube"]
        mdx = fields.get("mdx", "").replace("\r\n", "\n").strip()
        served: ServedQuery | None = None
        mistakes: list[str] = []
        told = partial(in_words_of, language=site.language)
        try:
            if not mdx and "build" in fields:
                mdx = written(cube, pairs, site.language)
            if mdx:
                served = self._desk.reader.ask(request.scope[RELEASE], mdx, patience)
        except OverdueError as error:
            mistakes = [too_long(error).sentence(site.language)]
        except RefusalError as error:
            if error.status != 400:
                raise
            mistakes = [error.sentence(site.language)]
        except UserError as error:
            mistakes = [str(mistake) for mistake in translated(error.mistakes, told)]
        asked = served.asked if served is not None else None
        body = self._desk.render(builder_page(site, cube, pairs, mdx, asked, mistakes))
        stamps = (served.stamp,) if served is not None else ()
        return Reply(body, HTML, stamps, 400 if mistakes else 200, caching(request))

    async def file(self, request: Request, language: str, extension: str) -> Response:
        site = self._desk.site(request, language)
        form = next((form for form in QUERY_FORMATS if form.extension == extension), None)
        mdx = fields_of(request, Known(frozenset({"mdx"}))).get("mdx", "").strip()
        if form is None or not mdx:
            raise RefusalError(404)

        def answered(patience: Patience) -> Response:
            try:
                served = self._desk.reader.ask(request.scope[RELEASE], mdx, patience)
            except UserError:
                raise RefusalError(400) from None
            download = query_download(site, served.asked, mdx, patience)
            return file_response(form, download, (served.stamp,), "query", caching(request))

        return await self._gate.answer(request, answered)

    # ------------------------------------------------------------------ programs

    async def mdx(self, request: Request) -> Response:
        fields = fields_of(request, Known(frozenset({"format", "lang"})))
        contents = self._desk.contents_of(request)
        languages = contents.catalogue.languages
        language = fields.get("lang") or preferred(request.headers.get("accept-language", ""), languages)
        if language not in languages:
            raise RefusalError(400, NO_LANGUAGE, name=language, languages=", ".join(languages))
        offered = tuple(sorted(QUERY_FORMATS, key=lambda form: form.extension != "json"))
        if "format" in fields:
            form = named_format(fields["format"], offered)
        else:
            form = accepted_format(request.headers.get("accept", ""), offered)
        try:
            text = await _query_of(request)
        except DocumentError as error:
            remedy = RefusalError(400, SEND).sentence(language)
            told = f"{error.sentence(language)} {remedy}"
            return _mistaken(told, (error.mistake(language, remedy),))
        site = self._desk.site(request, language)

        def answered(patience: Patience) -> Response:
            try:
                served = self._desk.reader.ask(request.scope[RELEASE], text, patience)
            except UserError as error:
                told = RefusalError(400, NO_ANSWER).sentence(language)
                return _mistaken(told, translated(error.mistakes, partial(in_words_of, language=language)))
            download = query_download(site, served.asked, text, patience)
            return file_response(form, download, (served.stamp,), "query", NO_STORE)

        return await self._gate.answer(request, answered)


async def _query_of(request: Request) -> str:
    """The query in a request's body.

    Raises
    ------
    RefusalError
        413 when it is too long, 415 when it is neither JSON nor text, 400 when there is none in it.
    DocumentError
        If it says that it is JSON and isn't.
    """
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind not in ("application/json", "text/plain"):
        raise RefusalError(415)
    body = await body_of(request, MAX_BODY)
    if body is None:
        raise RefusalError(413)
    if kind == "application/json":
        text = read_document(body).get("mdx", "")
    else:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise RefusalError(400, NO_QUERY) from None
    if not isinstance(text, str) or not text.strip():
        raise RefusalError(400, NO_QUERY)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        # JSON can write it, but it is no text and can't be said back.
        raise RefusalError(400, HALF_A_LETTER)
    return text.strip()


def _mistaken(told: str, mistakes: tuple[Mistake, ...]) -> Response:
    document = {
        "type": "about:blank",
        "status": 400,
        "title": told,
        "errors": [
            {"line": m.line, "column": m.column, "cause": m.cause, "remedy": m.remedy} for m in mistakes
        ],
    }
    body = json.dumps(document, ensure_ascii=False).encode()
    return Reply(body, PROBLEM, status_code=400, cache_control=NO_STORE, headers=ANYONE)
