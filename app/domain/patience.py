"""How long somebody waits for an answer that anybody may ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import thread_time

from app.domain.errors import CelosiaError


class OverdueError(CelosiaError):
    """The answer takes more work than it may; ``seconds`` says how much that is."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class AbandonedError(CelosiaError):
    """Nobody waits for the answer any more."""


class Patience:
    """Asked again and again by whatever works on an answer, whether it is to go on.

    Parameters
    ----------
    seconds : float
        Of work from the first question on.
    clock : callable
        Seconds, never going back: by default those that the thread which asks has computed, so that a busy
        machine makes no query too long.
    """

    def __init__(self, seconds: float = math.inf, clock: Callable[[], float] = thread_time) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began: float | None = None
        self._given_up = False

    def give_up(self) -> None:
        """Wait no longer; any thread may say so."""
        self._given_up = True

    def check(self) -> None:
        """Go on, or not.

        Raises
        ------
        OverdueError
        AbandonedError
        """
        if self._given_up:
            raise AbandonedError
        if self._began is None:
            self._began = self._clock()
        if self._clock() - self._began >= self._seconds:
            raise OverdueError(self._seconds)
