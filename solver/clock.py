"""How long a heuristic may go on: wall-clock seconds, or deterministic work."""

from __future__ import annotations

import threading
import time


class OutOfTimeError(Exception):
    """The seconds of a clock are over: whoever holds a safe pattern goes on with that one."""


class Clock:
    """A limit of seconds, of work, or of both; None means no such limit.

    Work counts the size of the linear programs solved, in millions of columns and rows, so that
    a run without a limit of seconds ends at the same place on every machine.

    Parameters
    ----------
    seconds
        From now.
    work
        In millions.
    halted
        Set, from whichever thread, once nobody has any time left; shared with the clocks made of this one.
    """

    def __init__(
        self,
        seconds: float | None = None,
        work: float | None = None,
        halted: threading.Event | None = None,
    ) -> None:
        self._began = time.perf_counter()
        self._end = None if seconds is None else self._began + seconds
        self._limit = work
        self._halted = halted or threading.Event()
        self._parent: Clock | None = None
        self.work = 0.0

    def charge(self, size: float) -> None:
        """Note that a linear program of so many columns and rows was solved."""
        self.work += size / 1e6
        if self._parent is not None:
            self._parent.charge(size)

    def check(self) -> None:
        """Stop here if the seconds are over; a limit of work alone stops nobody in the middle.

        Raises
        ------
        OutOfTimeError
            They are.
        """
        if self._halted.is_set() or (self._end is not None and time.perf_counter() >= self._end):
            raise OutOfTimeError

    def part(self, fraction: float) -> Clock:
        """A clock for this fraction of what is left; what it spends is spent here too."""
        child = self.turn(fraction, fraction)
        child._parent = self
        return child

    def turn(self, seconds: float, work: float) -> Clock:
        """A clock for these fractions of the seconds and of the work left; what it spends is charged here by
        whoever waits for its end.
        """
        left = self.seconds_left
        effort = None if self._limit is None else max(self._limit - self.work, 0.0) * work
        return Clock(None if left is None else left * seconds, effort, self._halted)

    def at_most(self, work: float) -> Clock:
        """A clock for what is left, and no more work than that; what it spends is spent here too."""
        child = self.part(1.0)
        child._limit = work if child._limit is None else min(work, child._limit)
        return child

    def early(self, fraction: float) -> Clock:
        """A clock that is out when this fraction of the seconds left is over, but has all the work left."""
        seconds = self.seconds_left
        child = self.part(1.0)
        child._end = None if seconds is None else child._began + seconds * fraction
        return child

    @property
    def seconds_left(self) -> float | None:
        """Seconds left, never below 0; None without a limit of seconds."""
        if self._halted.is_set():
            return 0.0
        return None if self._end is None else max(self._end - time.perf_counter(), 0.0)

    @property
    def spent(self) -> float:
        """Part of the limit that is spent, 0 to 1 and beyond; 0 without a limit."""
        parts = [float(self._halted.is_set())]
        if self._end is not None:
            parts.append((time.perf_counter() - self._began) / max(self._end - self._began, 1e-9))
        if self._limit is not None:
            parts.append(self.work / self._limit if self._limit > 0 else 1.0)
        return max(parts)

    @property
    def limited(self) -> bool:
        """Is there any limit?"""
        return self._end is not None or self._limit is not None or self._halted.is_set()

    @property
    def out(self) -> bool:
        """Is the limit reached?"""
        if self._halted.is_set() or (self._limit is not None and self.work >= self._limit):
            return True
        return self._end is not None and time.perf_counter() >= self._end


class Strict(Clock):
    """Stops whoever works by a clock as soon as that has run out, of seconds or of work."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.seconds_left, halted=clock._halted)
        self._clock = clock

    def charge(self, size: float) -> None:
        """Note effort, there too."""
        self._clock.charge(size)

    def check(self) -> None:
        """Stop here if the clock is out."""
        if self._clock.out:
            raise OutOfTimeError

    @property
    def out(self) -> bool:
        """Is the limit reached?"""
        return self._clock.out
