"""What every route shares: the release's contents, the reader's language, pages, and refusals."""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from app.domain.errors import OperatorError
from app.serve.answer import LiveReader, ReleaseMovedError
from app.web import pages
from app.web.contents import Contents
from app.web.contexts import Page
from app.web.fields import UnknownFieldError, pairs_of, ways_out
from app.web.language import INTERFACE, preferred
from app.web.locate import AS_OF, LOCATED, RELEASE, Located, read_moment
from app.web.pages import Site
from app.web.refusals import NO_RELEASE, NO_RELEASE_YET, NO_VALUE, RefusalError, sentence, unreachable
from app.web.render import Renderer
from app.web.reply import LASTING, NO_STORE, REVALIDATE, Headers, Reply

log = logging.getLogger("celosia.site")

HTML = "text/html; charset=utf-8"
PROBLEM = "application/problem+json"
#: Addresses that are asked by POST alone.
ASKED = ("/xmla", "/api/v1/mdx")
#: Headers of what programs on any page may read.
ANYONE = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "ETag, Link, Retry-After, Content-Disposition"),
)

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
#: Seconds after which to ask again what couldn't be answered.
RETRY_AFTER = "2"
#: Releases whose contents are kept in memory.
_RELEASES = 4


class Desk:
    """One site's reader of releases and renderer of pages, and what routes need again and again.

    Parameters
    ----------
    reader : LiveReader
    render : Renderer
    public_url : str
        Where readers find the site; empty for the host of each request.
    """

    def __init__(self, reader: LiveReader, render: Renderer, public_url: str) -> None:
        self.reader = reader
        self.render = render
        self._public_url = public_url
        self._contents: OrderedDict[str, Contents] = OrderedDict()

    def contents_of(self, request: Request) -> Contents:
        """The contents of the release that a request is answered from; `RefusalError` 503 without one."""
        release = request.scope[RELEASE]
        if release is None:
            raise RefusalError(503)
        contents = self._contents.get(release)
        if contents is None:
            contents = self._contents[release] = Contents(self.reader.catalogue(release))
            while len(self._contents) > _RELEASES:
                self._contents.popitem(last=False)
        return contents

    def site(self, request: Request, language: str) -> Site:
        """The release in a language; `RefusalError` 404 for one that it doesn't have."""
        contents = self.contents_of(request)
        if language not in contents.catalogue.languages:
            raise RefusalError(404)
        return Site(contents, language, self.base(request), located(request).prefix)

    def below(self, request: Request) -> str:
        """What addresses of the request's release start with."""
        return self.base(request) + located(request).prefix

    def base(self, request: Request) -> str:
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
        # A proxy's word may also be "ws" or "wss", which no page is found under.
        scheme = "https" if request.scope["scheme"] in ("https", "wss") else "http"
        return f"{scheme}://{host}"

    def page(self, request: Request, page: Page) -> Response:
        """A page without cells as a response."""
        return Reply(self.render(page), HTML, cache_control=caching(request))

    async def refuse(self, request: Request, error: Exception) -> Response:
        """The error page of a request that has no answer."""
        language, site = self._reader_of(request)
        if isinstance(error, RefusalError):
            status, text = error.status, error.sentence(language)
        elif isinstance(error, OperatorError):
            log.error("%s while answering", type(error).__name__)
            status, text = 503, unreachable(language)
        else:
            if isinstance(error, HTTPException):
                status = error.status_code
            else:
                status = 503 if isinstance(error, ReleaseMovedError) else 404
            text = sentence(status, language)
        headers: Headers = (("retry-after", RETRY_AFTER),) if status == 503 else ()
        if status == 405:
            headers += (("allow", self.methods_at(request.scope["path"])),)
        if request.scope["path"].startswith("/api/"):
            body, media_type = problem(status, text), PROBLEM
            headers += ANYONE
        else:
            ways = ways_out(request, error, language) if isinstance(error, UnknownFieldError) else ()
            body, media_type = self.render(pages.error_page(status, text, language, site, ways)), HTML
        return Reply(body, media_type, status_code=status, cache_control=NO_STORE, headers=headers)

    def methods_at(self, path: str) -> str:
        """What may be asked of an address, as in ``Allow``."""
        if self.reader.takes_queries and path in ASKED:
            return "POST, OPTIONS"
        return "GET, HEAD, OPTIONS" if path.startswith("/api/v1/") else "GET, HEAD"

    def too_fast(self, scope: Scope, seconds: int) -> Reply:
        """The answer to a client that asks faster than it may."""
        request = Request(scope)
        language, site = self._reader_of(request)
        text = sentence(429, language)
        headers: Headers = (("retry-after", str(seconds)),)
        if scope["path"].startswith("/api/"):
            body, media_type, headers = problem(429, text), PROBLEM, (*headers, *ANYONE)
        else:
            body, media_type = self.render(pages.error_page(429, text, language, site)), HTML
        return Reply(body, media_type, status_code=429, cache_control=NO_STORE, headers=headers)

    def _reader_of(self, request: Request) -> tuple[str, Site | None]:
        """The language of an address that may be wrong in every other way."""
        contents = self._contents.get(request.scope[RELEASE] or "")
        offered = contents.catalogue.languages if contents is not None else INTERFACE
        first = request.scope["path"].lstrip("/").partition("/")[0]
        # Addresses for programs name the language in their query string; one said twice is none.
        said = request.query_params.getlist("lang") if first == "api" else [first]
        named = said[0] if len(said) == 1 else ""
        language = (
            named if named in offered else preferred(request.headers.get("accept-language", ""), offered)
        )
        prefix = located(request).prefix
        return language, Site(contents, language, "", prefix) if contents is not None else None


def problem(status: int, text: str) -> bytes:
    """An error as programs read it (RFC 9457)."""
    document = {"type": "about:blank", "status": status, "title": text}
    return json.dumps(document, ensure_ascii=False).encode()


def last_words(path: str, status: int, accept_language: str = "") -> tuple[str, bytes]:
    """Media type and body of a refusal that needs no release: for what stands around the whole site."""
    first = path.lstrip("/").partition("/")[0]
    language = first if first in INTERFACE else preferred(accept_language, INTERFACE)
    words = unreachable(language) if status == 503 else sentence(status, language)
    if path.startswith("/api/"):
        return PROBLEM, problem(status, words)
    page = (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>{words}</title><h1>{words}</h1>'
    )
    return HTML, page.encode()


def located(request: Request) -> Located:
    """Where a request leads."""
    located = request.scope[LOCATED]
    assert isinstance(located, Located)
    return located


async def admitted(request: Request) -> None:
    """Every route's first question: whether there is the release that the address is about."""
    if refusal := located(request).refusal:
        moments = [value for name, value in pairs_of(request) if name == AS_OF]
        if refusal == 400 and len(moments) == 1 and read_moment(moments[0]) is None:
            raise RefusalError(400, NO_VALUE, name=AS_OF, value=moments[0])
        if refusal == 404:
            if moments:
                raise RefusalError(404, NO_RELEASE_YET, value=moments[0])
            raise RefusalError(404, NO_RELEASE)
        raise RefusalError(refusal)


async def unread() -> Response:
    """The answer to reading one of the addresses that are only `ASKED`."""
    raise HTTPException(405)


async def body_of(request: Request, most: int) -> bytes | None:
    """The body of a request; None when it has more than ``most`` bytes, or its sender is said to be gone.

    `app.web.operate` says so of a body that grows beyond its limits, and then somebody still waits.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                return None
            parts.append(part)
    except ClientDisconnect:
        return None
    return b"".join(parts)


def caching(request: Request) -> str:
    """For how long an answer may be kept."""
    return LASTING if located(request).lasting else REVALIDATE
