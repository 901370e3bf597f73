"""Connections to the site: how many there may be, and how long one may take.

The server that we build on waits for ever: for the head of a request, for a body that trickles, and for a
reader who takes nothing of an answer. A few hundred such connections of one client were all that the machine
could hold, and nobody else got in. Here each connection has a time for what it is at, all together have a
number that the machine can hold, and each client a smaller one. Where there are too many, the one goes that
has asked for nothing for longest; where all are being answered, who comes then is told to come again.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic
from typing import Any

import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

#: Connections at once in a process, where the machine can hold so many.
_CONNECTIONS = 1000
#: Files that a process opens beside its connections: databases, threads, what is being written.
_FILES = 64
#: Connections that wait for a process to take them, and the rounds in which it takes so many before it looks.
_WAITING, _ROUNDS = 128, 3


@dataclass(frozen=True)
class Bounds:
    """How many connections a process holds, and how long each may take.

    Parameters
    ----------
    connections : int
        At once, in all.
    client : int
        At once from one client that is no trusted proxy; an IPv6 network of 64 bits is one client.
    waiting : int
        That may wait to be taken.
    head : float
        Seconds until the whole head of a request is here, from the connection's or the last answer's time.
    body : float
        Seconds in which a body brings `rate` bytes a second on average, and again in the next so many.
    rate : int
        Bytes a second of a body.
    answer : float
        Seconds after which an answer of which the reader takes nothing is given up.
    """

    connections: int = _CONNECTIONS
    client: int = 100
    waiting: int = _WAITING
    head: float = 10.0
    body: float = 10.0
    rate: int = 500
    answer: float = 60.0


def raise_limit() -> None:
    """Let this process open as many files as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Where there is no limit, some systems don't take that word for one.
            return


def bounds_here() -> Bounds:
    """Bounds of which this process can open the files."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return Bounds()
    waiting = max(1, min(_WAITING, soft // 16))
    left = soft - _open_files() - _FILES - _ROUNDS * waiting
    return Bounds(connections=max(8, min(_CONNECTIONS, left)), waiting=waiting)


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return _FILES


class Connections:
    """The connections of one process.

    Parameters
    ----------
    bounds : Bounds
    trusted : callable
        Whether an address is a proxy's: all readers come from theirs, so they are bounded in all alone.
    refusal : ASGI application
        What is answered where there are too many.
    """

    def __init__(self, bounds: Bounds, trusted: Callable[[str], bool], refusal: ASGIApp) -> None:
        self.bounds = bounds
        self.refusal = refusal
        self._trusted = trusted
        self._open: set[Connection] = set()
        self._of_client: dict[str, int] = {}
        #: Those of which no request is in hand; who has waited longest comes first.
        self._idle: dict[Connection, None] = {}

    def protocol(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        """A connection that is to be made, as the server asks for one."""
        return Connection(self, config, server_state, app_state, _loop)

    def crowded(self, one: Connection) -> bool:
        """Whether there are too many, or too many of that one's client."""
        mine = self._of_client.get(one.whose, 0)
        return len(self._open) > self.bounds.connections or mine > self.bounds.client

    def made(self, one: Connection) -> None:
        """Count a new connection in, and make room for it where there is none left."""
        address = one.client[0] if one.client else ""
        one.whose = "" if not address or self._trusted(address) else _whose(address)
        self._open.add(one)
        if one.whose:
            self._of_client[one.whose] = self._of_client.get(one.whose, 0) + 1
        self.waits(one)
        if self._of_client.get(one.whose, 0) > self.bounds.client:
            self._close_idle(one, one.whose)
        if len(self._open) > self.bounds.connections:
            self._close_idle(one, "")
        if len(self._open) > self.bounds.connections + self.bounds.waiting:
            self.close(one)

    def waits(self, one: Connection) -> None:
        """Of a connection that asks for nothing from now on."""
        one.since = monotonic()
        self._idle[one] = None

    def asks(self, one: Connection) -> None:
        """Of a connection when the head of a request is here."""
        self._idle.pop(one, None)
        one.since, one.received = monotonic(), 0

    def lost(self, one: Connection) -> None:
        """Count a connection out."""
        self._idle.pop(one, None)
        if one not in self._open:
            return
        self._open.discard(one)
        if one.whose:
            self._of_client[one.whose] -= 1
            if not self._of_client[one.whose]:
                del self._of_client[one.whose]

    def close(self, one: Connection) -> None:
        """Close a connection to which nothing is left to be sent."""
        self.lost(one)
        one.transport.close()

    def sweep(self) -> None:
        """Close what has taken too long; to be called about once a second."""
        now = monotonic()
        for one in tuple(self._open):
            one.look(now, one in self._idle)

    def _close_idle(self, new: Connection, whose: str) -> None:
        """Close the connection that has waited longest: of one client, or of all."""
        for one in self._idle:
            if one is not new and not one.unsent and (not whose or one.whose == whose):
                self.close(one)
                return


class Connection(H11Protocol):
    """One connection."""

    #: The client, as far as it is bounded by itself.
    whose = ""
    #: When it began to do what it does, and what it has brought since.
    since, received = 0.0, 0
    #: What was left to be sent at the last look that found another number, and when that was.
    _left, _moved = 0, 0.0
    #: When something came last.
    _heard = 0.0

    def __init__(
        self,
        connections: Connections,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._all = connections
        self._site = self.app

    @property
    def unsent(self) -> int:
        """Bytes that the machine hasn't taken yet, since the reader takes none."""
        return self.transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all.made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        self._heard = monotonic()
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        self.app = self._all.refusal if self._all.crowded(self) else self._site
        super().handle_events()
        if self.cycle is not before:
            self._all.asks(self)

    def on_response_complete(self) -> None:
        self._all.waits(self)
        super().on_response_complete()

    def shutdown(self) -> None:
        super().shutdown()
        coming = self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused
        if coming and monotonic() - self._heard > self._all.bounds.head / 10:
            # Not waited for: it would be cut off in the middle anyway.
            self._all.close(self)

    def look(self, now: float, idle: bool) -> None:
        """Close this one if it has taken too long for what it is at."""
        bounds = self._all.bounds
        if left := self.unsent:
            if left != self._left:
                self._left, self._moved = left, now
            elif now - self._moved > bounds.answer:
                self.transport.abort()
            return
        self._left = 0
        if idle:
            if now - self.since > bounds.head:
                self._all.close(self)
        elif self.conn.their_state is h11.SEND_BODY:
            # Who waits for us brings nothing.
            ours = self.flow.read_paused or self.cycle.waiting_for_100_continue
            if ours or (now - self.since > bounds.body and self.received >= bounds.rate * bounds.body):
                self.since, self.received = now, 0
            elif now - self.since > bounds.body:
                self._all.close(self)


def _whose(address: str) -> str:
    """The client that an address is of."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((int(found) >> 64 << 64, 64)))
    return address
