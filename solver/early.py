"""Ctrl-C while the package loads: ``python -m solver`` ends without a word, as when nothing was begun.

Compiled modules may turn the interruption into an error of import of their own, so it isn't left to them.
"""

from __future__ import annotations

import os
import sys
from types import FrameType

INTERRUPTED = 130
# Python names a package so while it loads it to run it.
_A_COMMAND = sys.argv[:1] == ["-m"] and "solver" in sys.orig_argv[1:]

try:
    import signal
except KeyboardInterrupt:
    if _A_COMMAND:
        os._exit(INTERRUPTED)
    raise


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def listen() -> None:
    """An interruption ends the process from now on, until :func:`hand_over`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def hand_over() -> None:
    """Interruptions are exceptions again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _A_COMMAND:
    listen()
