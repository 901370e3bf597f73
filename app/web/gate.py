"""The gate before readers' own queries: how long one may take, and how many are worked on at once.

What pages and files of the release take is known; a query may take as long as it likes. So queries have
threads of their own, few, and nobody who reads a page waits for one of these. Who comes when too many wait
already is told to come again, and so is who has waited in vain. A query stops when its reader has left, and
when the server ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.requests import Request

from app.domain.patience import AbandonedError, OverdueError, Patience
from app.web.language import marked as _
from app.web.refusals import RefusalError

T = TypeVar("T")

BUSY = _("Too many questions are being answered at the moment. Please ask again shortly.")
ENDING = _("The server is being restarted. Please ask again shortly.")
TOO_LONG = _("The query takes more than %(seconds)s seconds. Ask for fewer members at once.")


@dataclass(frozen=True)
class Allowance:
    """What readers' queries may take of the server.

    Attributes
    ----------
    seconds : float
        Of computing for one query; 0 is none at all.
    at_once : int
        Queries that are worked on at once.
    waiting : int
        Queries that may wait for their turn.
    patience : float
        Seconds that one may wait for its turn.
    """

    seconds: float = 10.0
    at_once: int = 2
    waiting: int = 20
    patience: float = 5.0

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and self.at_once >= 1 and self.waiting >= 0 and self.patience >= 0):
            raise ValueError("an allowance must let one query through")


class Gate:
    """Lets queries in, one event loop's."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = allowance or Allowance()
        self._turns = asyncio.Semaphore(self._allowance.at_once)
        self._inside: set[Patience] = set()
        self._ends = False

    def end(self) -> None:
        """Stop what is being worked on, and let nothing in any more; a signal's handler may say so."""
        self._ends = True
        for patience in tuple(self._inside):
            patience.give_up()

    async def answer(self, request: Request, work: Callable[[Patience], T]) -> T:
        """Work on a query in a thread, when it is its turn and as long as its reader waits.

        Raises
        ------
        RefusalError
            503 when too many are being answered or the server ends, 400 when the query takes too long.
        """
        if self._ends:
            raise RefusalError(503, ENDING)
        if len(self._inside) >= self._allowance.at_once + self._allowance.waiting:
            raise RefusalError(503, BUSY)
        patience = Patience(self._allowance.seconds)
        self._inside.add(patience)
        watching = asyncio.create_task(_leave_with(request, patience))
        try:
            await self._turn()
            try:
                return await run_sync(work, patience, limiter=CapacityLimiter(1))
            finally:
                self._turns.release()
        except AbandonedError:
            raise RefusalError(503, ENDING) from None
        except OverdueError as error:
            raise too_long(error) from None
        finally:
            watching.cancel()
            self._inside.discard(patience)

    async def _turn(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            await asyncio.wait_for(self._turns.acquire(), self._allowance.patience)
        except TimeoutError:
            raise RefusalError(503, BUSY) from None


def too_long(error: OverdueError) -> RefusalError:
    """What a reader is told whose query takes too long."""
    return RefusalError(400, TOO_LONG, seconds=f"{error.seconds:g}")


async def _leave_with(request: Request, patience: Patience) -> None:
    """Wait until the reader has left, and give the answer up then."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    patience.give_up()
