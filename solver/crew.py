"""Tasks of independent components on threads.

HiGHS lets other threads of Python run while it solves, and that is where most of a search's time goes:
threads take about as long as processes would, which would each have to load the libraries and be sent the
problem.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

_T = TypeVar("_T")


class Crew:
    """So many threads; one, or one task, works in the caller's own.

    Parameters
    ----------
    stop
        Called in the caller's thread when it is interrupted while others work; tasks must end soon
        after that.
    """

    def __init__(self, threads: int, stop: Callable[[], None]) -> None:
        self._threads, self._stop = threads, stop
        self._caller = threading.get_ident()
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def tell(self, call: Callable[[], object]) -> None:
        """Have something called in the caller's thread: at once if that is this one, soon otherwise."""
        if threading.get_ident() == self._caller:
            call()
        else:
            self._calls.put(call)

    def run(self, tasks: Sequence[Callable[[], _T]]) -> list[_T]:
        """What the tasks return, which begin in their order.

        Of errors, that of the first task to have one is raised, once all have ended. An interrupt stops the
        tasks, whose results count; a second one ends all, as does an error in what the caller was told.
        """
        if self._threads == 1 or len(tasks) < 2:
            return [task() for task in tasks]
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(task) for task in tasks]
            for future in futures:
                future.add_done_callback(lambda _: self._calls.put(_wake))
            interrupted = False
            try:
                while not (all(future.done() for future in futures) and self._calls.empty()):
                    try:
                        self._calls.get()()
                    except KeyboardInterrupt:
                        if interrupted:
                            raise
                        interrupted = True
                        self._stop()
            except BaseException:
                self._stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in futures]


def _wake() -> None:
    """There may be no more calls: the caller's thread is to look."""
