"""How fast one client may ask: a bucket of tokens for each, around everything that costs work.

Raw ASGI between guard and cache. Static files and the health check are free. A client on this very machine
isn't limited unless that is wanted: without a proxy in front that is the office itself, and behind one the
server takes the client's address from the proxy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import monotonic

from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.reply import Reply

_FREE = ("/static/", "/healthz")
_HERE = ("127.0.0.1", "::1", "testclient")
#: Clients that are remembered; those that asked longest ago are forgotten first, and theirs are full buckets.
_CLIENTS = 50_000


@dataclass(frozen=True)
class Limits:
    """``rate`` requests a second in the long run, ``burst`` at once; ``here``: also from this machine."""

    rate: float
    burst: int
    here: bool = False

    def __post_init__(self) -> None:
        if not (self.rate > 0 and self.burst >= 1):
            raise ValueError("a limit of requests must let some through")


class RateLimit:
    """Answer 429 with `Retry-After` to a client that asks faster than the limits.

    Parameters
    ----------
    app : ASGI application
    limits : Limits
    refusal : callable
        The reply to a refused request, given the seconds to wait.
    clock : callable
        Seconds, never going back.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        refusal: Callable[[Scope, int], Reply],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._app = app
        self._limits = limits
        self._refusal = refusal
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(_FREE):
            client = scope.get("client")
            address = client[0] if client else ""
            if self._limits.here or address not in _HERE:
                wait = self._wait(address)
                if wait > 0:
                    await self._refusal(scope, ceil(wait))(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _wait(self, client: str) -> float:
        """Seconds until the client has a token; 0 when it had one, which is gone now."""
        now = self._clock()
        burst = float(self._limits.burst)
        tokens, then = self._buckets.pop(client, (burst, now))
        tokens = min(burst, tokens + (now - then) * self._limits.rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._limits.rate
        self._buckets[client] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return wait
