"""Several processes of one command: each does the same, and all end together.

Python computes on one core in a process; a site that is asked by many at once has a process for each core.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import typer

_ENDING = (signal.SIGTERM, signal.SIGINT)
#: Seconds before one that was lost soon after its beginning is begun again.
_PAUSE = 1.0
#: Seconds between two looks at whether all have ended.
_LOOK = 0.05

Work = Callable[[int], None]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def together(count: int, work: Work, patience: float) -> None:
    """Do the work in so many processes, each told its number; in this one where it is but one.

    One that is lost is begun again. One that says why it can't go on ends all, and so does a signal to this
    process, or its loss.

    Parameters
    ----------
    patience : float
        Seconds that they may take to end.

    Raises
    ------
    SystemExit
    """
    if count == 1:
        work(0)
        return
    leash, ours = os.pipe()
    began: dict[int, tuple[int, float]] = {}

    def begin(number: int) -> None:
        child = os.fork()
        if child == 0:
            os.close(ours)
            _be(work, number, leash)
        began[child] = number, time.monotonic()

    for told in _ENDING:
        signal.signal(told, _leave)
    try:
        for number in range(count):
            begin(number)
        while True:
            child, status = os.waitpid(-1, 0)
            number, since = began.pop(child)
            code = os.waitstatus_to_exitcode(status)
            if code > 0:
                raise SystemExit(code)
            if time.monotonic() - since < _PAUSE:
                time.sleep(_PAUSE)
            begin(number)
    finally:
        _end(set(began), patience)


def _leave(_number: int, _frame: FrameType | None) -> None:
    # Whoever says it again doesn't wait; those who lose this process end then by themselves.
    for told in _ENDING:
        signal.signal(told, signal.SIG_DFL)
    raise SystemExit(0)


def _be(work: Work, number: int, leash: int) -> NoReturn:
    """What one of the processes does, and how it ends."""
    # A terminal's Ctrl-C is for the first process, which tells the others.
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()
    code = 1
    try:
        work(number)
        code = 0
    except typer.Exit as end:
        code = end.exit_code
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with(leash: int) -> None:
    """End when the first process is lost: nobody else holds the other end."""
    os.read(leash, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _end(children: set[int], patience: float) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)
    until = time.monotonic() + patience
    while children:
        children -= {child for child in children if os.waitpid(child, os.WNOHANG)[0]}
        if children and time.monotonic() > until:
            for child in children:
                os.kill(child, signal.SIGKILL)
            until += patience
        if children:
            time.sleep(_LOOK)
