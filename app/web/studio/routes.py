"""Routes of the studio: a registry in which every one says which permission it needs.

An address without a permission can't be written: the registry refuses it, so the application doesn't start.
The test of who may go where walks the same registry. What changes a draft or a release must say which state
of it the change was decided on: nothing that somebody else saved meanwhile is overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.responses import Response

from app.domain.errors import InternalError
from app.domain.people import Permission
from app.web.studio.visit import Visit

Answer = Callable[[Visit], Response | Awaitable[Response]]

#: Bytes of a request's body, unless a route says otherwise.
BODY_LIMIT = 4 << 20

#: Below these addresses every change names, in this field, the state that it was decided on.
AS_READ = {"/studio/drafts/{draft:int}/": "revision", "/studio/releases/{release}/": "version"}


class _Number(IntegerConvertor):
    """A number of the database's: a longer one is no address, and Python refuses to read one of thousands."""

    regex = "[0-9]{1,10}"


register_url_convertor("int", _Number())

_METHODS = ("GET", "POST")
_PATH = re.compile(r"/studio(/[A-Za-z0-9{_][A-Za-z0-9{}_:.-]*)*")


@dataclass(frozen=True)
class Route:
    """One address of the studio.

    Attributes
    ----------
    method : str
        GET changes nothing; POST needs the form token of its visitor.
    path : str
        As Starlette writes it, below ``/studio``; below ``/studio/api/`` answers and refusals are JSON.
    permission : Permission
        What whoever asks must be allowed.
    answer : callable
        Of a `Visit`; a plain function is run in a thread.
    body_limit : int
        Bytes.
    as_read : str
        Field without which the request isn't taken: it names the state that a change was decided on. Empty
        for what overwrites nothing.
    """

    method: str
    path: str
    permission: Permission
    answer: Answer
    body_limit: int = BODY_LIMIT
    as_read: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.permission, Permission):
            raise InternalError(f"route {self.method} {self.path} doesn't say which permission it needs")
        if self.method not in _METHODS or not _PATH.fullmatch(self.path):
            raise InternalError(f"route {self.method} {self.path} isn't one of the studio")


@dataclass(frozen=True)
class Tab:
    """A place in the studio's navigation, for those who may go there; ``text`` is translated when shown.

    ``also`` are other paths whose pages belong to the place.
    """

    text: str
    path: str
    permission: Permission
    order: int
    also: tuple[str, ...] = ()


@dataclass
class Routes:
    """The routes of one part of the studio, collected by decorators."""

    found: list[Route] = field(default_factory=list)
    tabs: list[Tab] = field(default_factory=list)

    def get(self, path: str, permission: Permission) -> Callable[[Answer], Answer]:
        """Register a page or document."""
        return self._register("GET", path, permission, BODY_LIMIT)

    def post(
        self, path: str, permission: Permission, body_limit: int = BODY_LIMIT, as_read: str = ""
    ) -> Callable[[Answer], Answer]:
        """Register what a form or program sends."""
        below = (field for start, field in AS_READ.items() if path.startswith(start))
        return self._register("POST", path, permission, body_limit, as_read or next(below, ""))

    def _register(
        self, method: str, path: str, permission: Permission, limit: int, as_read: str = ""
    ) -> Callable[[Answer], Answer]:
        def register(answer: Answer) -> Answer:
            self.found.append(Route(method, path, permission, answer, limit, as_read))
            return answer

        return register

    def tab(
        self, text: str, path: str, permission: Permission, order: int, also: tuple[str, ...] = ()
    ) -> None:
        """Add a place to the navigation."""
        self.tabs.append(Tab(text, path, permission, order, also))


def gather(parts: Iterable[Routes]) -> tuple[tuple[Route, ...], tuple[Tab, ...]]:
    """All routes and tabs of the studio.

    Raises
    ------
    InternalError
        If two parts claim the same address.
    """
    routes: dict[tuple[str, str], Route] = {}
    tabs: list[Tab] = []
    for part in parts:
        for route in part.found:
            if (route.method, route.path) in routes:
                raise InternalError(f"route {route.method} {route.path} is registered twice")
            routes[route.method, route.path] = route
        tabs += part.tabs
    return tuple(routes.values()), tuple(sorted(tabs, key=lambda tab: tab.order))
