"""The studio as one ASGI application: who asks, may they, is the form theirs; then the route."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable, iscoroutinefunction
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from anyio.to_thread import run_sync
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.errors import InternalError, Mistake, OperatorError, UserError
from app.domain.people import CITIZEN, Actor, Role
from app.office.office import Office
from app.web.assets import Assets, load_assets
from app.web.contexts import LanguageLink
from app.web.documents import HALF_A_LETTER, DocumentError, read_document
from app.web.guard import Shield
from app.web.language import INTERFACE, language_name, preferred, translations
from app.web.language import marked as _
from app.web.render import environment
from app.web.studio.routes import Route, Routes, Tab, gather
from app.web.studio.visit import Frame, NavItem, RefusedError, StudioPage, Visit, status_of

SESSION = "celosia_studio"
LANGUAGE = "celosia_language"
_UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"x-robots-tag", b"noindex"),
]


REFUSALS = {
    400: _("The request can't be read."),
    401: _("Sign in first."),
    403: _("Your account may not do this."),
    404: _("There is no such page."),
    405: _("This address can't be used that way."),
    409: _("Nothing was changed:"),
    413: _("The file or form is too large."),
    421: _("The studio doesn't answer under this host name."),
    422: _("That can't be done as it was asked:"),
    500: _("Something went wrong on our side."),
    503: _("The office can't be reached at the moment:"),
}


#: What a change lacks that could overwrite others' work.
_LOST_WHEREFROM = _(
    "Nothing was changed: field {field} is missing. It says what was read before, "
    "so that nobody's work is overwritten."
)


@dataclass(frozen=True, eq=False)
class RefusalPage:
    template: ClassVar[str] = "studio/refusal.html"
    frame: Frame
    sentence: str
    mistakes: tuple[Mistake, ...]


def create_studio(
    office: Office,
    parts: Iterable[Routes],
    public_url: str | None = None,
    hosts: Sequence[str] = _LOOPBACK,
) -> ASGIApp:
    """The office's side of the site.

    Parameters
    ----------
    office : Office
    parts : iterable of Routes
        The registries of all parts; each route says which permission it needs.
    public_url : str, optional
        Where people find the site; the studio answers under that host alone.
    hosts : sequence of str
        Host names to answer under when there is no ``public_url``.

    Raises
    ------
    InternalError
        If a route doesn't say its permission, or two claim one address.
    """
    routes, tabs = gather(parts)
    studio = _Studio(office, load_assets(), tabs, public_url, hosts)
    router = Router([studio.endpoint(route) for route in routes], redirect_slashes=False, default=_not_found)
    return Shield(_Front(studio, router), HEADERS, _last_words)


def beside(site: ASGIApp, studio: ASGIApp) -> ASGIApp:
    """The public site, and the studio below its own path."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_studio = scope["type"] != "lifespan" and (path == "/studio" or path.startswith("/studio/"))
        await (studio if is_studio else site)(scope, receive, send)

    return answer


class _Studio:
    """What the routes share."""

    def __init__(
        self,
        office: Office,
        assets: Assets,
        tabs: tuple[Tab, ...],
        public_url: str | None,
        hosts: Sequence[str],
    ) -> None:
        self.office = office
        self._tabs = tabs
        self._public_url = (public_url or "").rstrip("/")
        parts = urlsplit(public_url) if public_url else None
        self.secure = parts is not None and parts.scheme == "https"
        self._hosts = {parts.hostname} if parts is not None else set(hosts)
        self._environments = {}
        for language in INTERFACE:
            self._environments[language] = environment(language)
            self._environments[language].globals["asset"] = assets.address
            self._environments[language].globals["form_token"] = _form_token

    # ------------------------------------------------------------------ pages

    def render(self, page: StudioPage) -> bytes:
        """A page in its reader's language."""
        return self._environments[page.frame.language].get_template(page.template).render(page=page).encode()

    def base(self, visit: Visit) -> str:
        """Scheme and host of the studio's own addresses; the host was checked already."""
        return self._public_url or f"{visit.request.url.scheme}://{visit.request.headers['host']}"

    def navigation(self, visit: Visit) -> tuple[NavItem, ...]:
        """The places that the visitor may go to."""
        if visit.actor.role is Role.CITIZEN:
            return ()
        paths = [
            tab.path
            for tab in self._tabs
            if any(_is_below(visit.path, path) for path in (tab.path, *tab.also))
        ]
        here = max(paths, key=len, default="")
        return tuple(
            NavItem(visit.say(tab.text), tab.path, tab.path == here)
            for tab in self._tabs
            if visit.actor.may(tab.permission)
        )

    def languages(self, visit: Visit) -> tuple[LanguageLink, ...]:
        """The same page in each language."""
        path = visit.path if visit.request.method == "GET" else "/studio"
        return tuple(
            LanguageLink(code, language_name(code), f"{quote(path)}?lang={code}", code == visit.language)
            for code in INTERFACE
        )

    # ------------------------------------------------------------------ requests

    def knows_host(self, request: Request) -> bool:
        """Whether a request was sent to a name that is ours."""
        host = request.headers.get("host", "")
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?", host)
        return match is not None and match.group(1).strip("[]").lower() in self._hosts

    def visit_of(self, request: Request) -> Visit:
        """Who sent a request: by token where one is given, else by cookie.

        Raises
        ------
        RefusedError
            401 for a token that isn't valid.
        """
        people = self.office.people
        actor = self.actor_of(request)
        by_token = bool(request.headers.get("authorization", ""))
        cookie = "" if by_token else request.cookies.get(SESSION, "")
        if not by_token and people.unsigned(cookie) is None:
            cookie = people.visit_cookie()
        client = request.client.host if request.client else ""
        return Visit(request, self.office, self, actor, self.language_of(request), cookie, _address(client))

    def actor_of(self, request: Request) -> Actor:
        """Who sent a request, and what they may do by now.

        Raises
        ------
        RefusedError
            401 for a token that isn't valid.
        """
        people = self.office.people
        bearer = request.headers.get("authorization", "")
        if bearer:
            scheme, _space, text = bearer.partition(" ")
            found = people.actor_of_token(text.strip()) if scheme.lower() == "bearer" else None
            if found is None:
                raise RefusedError(401)
            return found
        cookie = request.cookies.get(SESSION, "")
        return people.actor_of_cookie(cookie) if cookie else CITIZEN

    def language_of(self, request: Request) -> str:
        """The language asked for, or chosen before, or liked best."""
        for wish in (request.query_params.get("lang", ""), request.cookies.get(LANGUAGE, "")):
            if wish in INTERFACE:
                return wish
        return preferred(request.headers.get("accept-language", ""), INTERFACE)

    def endpoint(self, route: Route) -> StarletteRoute:
        """A route with its guards in front."""

        async def answer(request: Request) -> Response:
            visit: Visit = request.state.visit
            if any("\0" in text for text in (request.url.path, *sum(request.query_params.multi_items(), ()))):
                raise RefusedError(404)
            if not visit.actor.may(route.permission):
                raise RefusedError(401 if visit.actor.role is Role.CITIZEN else 403)
            if request.method in _UNSAFE:
                visit = await self._read_body(visit, route)
            try:
                return await _run(route, visit)
            finally:
                await visit.form.close()

        return StarletteRoute(route.path, answer, methods=[route.method])

    async def _read_body(self, visit: Visit, route: Route) -> Visit:
        """The visit with its form, once that is known to come from a page of ours."""
        request = visit.request
        by_token = visit.actor.scopes is not None
        if not by_token and not _is_same_site(request):
            raise RefusedError(403)
        _limit_body(request, route.body_limit)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        document: Mapping[str, Any] = {}
        form = FormData()
        try:
            if kind == "application/json":
                document = _document(visit, await request.body())
            elif kind in ("application/x-www-form-urlencoded", "multipart/form-data"):
                form = await request.form(max_files=20, max_fields=2000, max_part_size=route.body_limit)
            elif await request.body():
                raise RefusedError(400)
        except (HTTPException, MultiPartException, UnicodeDecodeError, ClientDisconnect):
            raise RefusedError(400) from None
        _check_letters(form)
        request.state.document = document
        if not by_token:
            token = request.headers.get("x-csrf-token") or str(form.get("csrf", ""))
            if not self.office.people.is_form_token(visit.cookie, token):
                await form.close()
                raise RefusedError(403, _("This form is no longer valid. Open the page again and repeat."))
        visit = replace(visit, form=form)
        told = route.as_read in document if visit.is_api else visit.text(route.as_read).strip()
        if route.as_read and not told:
            await form.close()
            raise RefusedError(428, visit.say(_LOST_WHEREFROM, field=route.as_read))
        return visit


class _Front:
    """Around the router: host, visitor, cookies, and errors in words."""

    def __init__(self, studio: _Studio, router: ASGIApp) -> None:
        self._studio = studio
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003})
            return
        request = Request(scope, receive)
        if not self._studio.knows_host(request):
            await _plain(421)(scope, receive, send)
            return
        try:
            visit = await run_sync(self._studio.visit_of, request)
        except RefusedError as error:
            await _plain(error.status)(scope, receive, send)
            return
        except OperatorError:
            await _plain(503)(scope, receive, send)
            return
        request.state.visit = visit
        cookies = self._cookies(request, visit)
        begun = False

        async def with_cookies(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = list(message["headers"])
                if not any(name == b"set-cookie" for name, _value in headers):
                    headers += cookies
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self._router(scope, receive, with_cookies)
        except (RefusedError, UserError, OperatorError, HTTPException) as error:
            if begun:
                raise InternalError("a response broke off") from error
            response = await run_sync(refuse, visit, error)
            await response(scope, receive, with_cookies)

    def _cookies(self, request: Request, visit: Visit) -> list[tuple[bytes, bytes]]:
        found = []
        if visit.cookie and visit.cookie != request.cookies.get(SESSION):
            found.append((b"set-cookie", cookie_header(SESSION, visit.cookie, self._studio.secure)))
        if request.query_params.get("lang") in INTERFACE:
            found.append((b"set-cookie", cookie_header(LANGUAGE, visit.language, self._studio.secure)))
        return found


def cookie_header(name: str, value: str, secure: bool) -> bytes:
    """A cookie that scripts can't read and other sites can't send along with a form."""
    tail = "; Secure" if secure else ""
    return f"{name}={value}; Path=/studio; HttpOnly; SameSite=Lax{tail}".encode()


def refuse(visit: Visit, error: Exception) -> Response:
    """What is said instead of an answer."""
    mistakes: tuple[Mistake, ...] = ()
    status, sentence = 404, ""
    if isinstance(error, RefusedError):
        status, sentence, mistakes = error.status, error.sentence, error.mistakes
    elif isinstance(error, HTTPException):
        status = error.status_code
    elif isinstance(error, UserError):
        status, mistakes = status_of(error), error.mistakes
    elif isinstance(error, OperatorError):
        status, mistakes = 503, (Mistake("", 0, 0, str(error)),)
    known = status if status in REFUSALS else 400
    words = visit.say(sentence or REFUSALS[known])
    if status == 401 and not visit.is_api and visit.request.method == "GET":
        here = visit.path + (f"?{visit.request.url.query}" if visit.request.url.query else "")
        return RedirectResponse(f"/studio/sign-in?next={quote(here, safe='')}", status_code=303)
    if visit.is_api:
        return visit.json(
            {
                "type": "about:blank",
                "status": status,
                "title": words,
                "mistakes": [as_document(visit, mistake) for mistake in mistakes],
            },
            status,
        )
    return visit.page(RefusalPage(visit.frame(words), words, visit.mistakes(mistakes)), status)


def as_document(visit: Visit, mistake: Mistake) -> dict[str, object]:
    """A mistake for a program."""
    return {
        "file": mistake.file,
        "line": mistake.line,
        "column": mistake.column,
        "cause": visit.told(mistake.cause),
        "remedy": visit.told(mistake.remedy) if mistake.remedy else "",
        "excerpt": mistake.excerpt,
    }


async def _run(route: Route, visit: Visit) -> Response:
    answer: Callable[[Visit], Any] = route.answer
    found: object = answer(visit) if iscoroutinefunction(answer) else await run_sync(answer, visit)
    if isawaitable(found):
        found = await found
    if not isinstance(found, Response):
        raise InternalError(f"route {route.path} gave no response")
    return found


@pass_context
def _form_token(context: Context) -> Markup:
    """The hidden field without which a form isn't accepted."""
    return Markup('<input type="hidden" name="csrf" value="{}">').format(context["page"].frame.form_token)


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(404)


def _is_below(path: str, tab: str) -> bool:
    return path == tab or path.startswith(f"{tab}/")


def _is_same_site(request: Request) -> bool:
    """Whether a browser says that a page of ours sent the form; one that says nothing has its token yet."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


def _limit_body(request: Request, limit: int) -> None:
    """Refuse a body that is, or grows, longer than ``limit`` bytes."""
    length = request.headers.get("content-length", "")
    if length and (not length.isdigit() or int(length) > limit):
        raise RefusedError(413)
    receive = request._receive
    seen = 0

    async def counting() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise RefusedError(413)
        return message

    request._receive = counting


def _document(visit: Visit, body: bytes) -> Mapping[str, Any]:
    try:
        found = read_document(body)
    except DocumentError as error:
        told = error.mistake(visit.language)
        raise RefusedError(400, told.cause, (told,)) from None
    try:
        # A lone half of a pair is no letter, however it was written.
        json.dumps(found, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise RefusedError(400, visit.say(HALF_A_LETTER)) from None
    return found


def _check_letters(form: FormData) -> None:
    """No field may hold what neither database nor page can carry."""
    for name, value in form.multi_items():
        for text in (name, value):
            if isinstance(text, str) and ("\0" in text or any("\ud800" <= c <= "\udfff" for c in text)):
                raise RefusedError(400)


def _address(client: str) -> str:
    try:
        return str(ipaddress.ip_address(client))
    except ValueError:
        return ""


def _plain(status: int) -> Response:
    return Response(REFUSALS[status], status_code=status, media_type="text/plain")


def _last_words(path: str) -> tuple[str, bytes]:
    words = translations("en").gettext(REFUSALS[500])
    if path.startswith("/studio/api/"):
        document = {"type": "about:blank", "status": 500, "title": words, "mistakes": []}
        return "application/problem+json", json.dumps(document).encode()
    return "text/html; charset=utf-8", f"<!doctype html><title>{words}</title><h1>{words}</h1>".encode()
