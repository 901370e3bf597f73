"""Progress of a run on a terminal, or line by line into a file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.domain.progress import StepProgress


def bounds_text(progress: StepProgress) -> str:
    """Both bounds of the solver, or nothing while there are none."""
    if math.isnan(progress.lower) and math.isnan(progress.upper):
        return ""
    lower = "…" if not math.isfinite(progress.lower) else f"{progress.lower:,.6g}"
    upper = "…" if not math.isfinite(progress.upper) else f"{progress.upper:,.6g}"
    return f"cost {upper}, proven at least {lower}"


#: Seconds between lines about a step that goes on, where there is no terminal.
_EVERY = 20.0


class ProgressDisplay:
    """A bar for each step; where there is no terminal, a line when a step begins and ends, and now and then.

    Use it as a context manager and as the pipeline's progress callback. ``clock`` gives seconds.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._bars = Progress(
            TextColumn("[bold]{task.description:<9}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[message]}"),
            console=self._console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._step = ""
        self._since = self._told = 0.0

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()
        elif self._step and kind is None:
            self._end_line()

    def __call__(self, progress: StepProgress) -> None:
        message = "  ".join(part for part in (progress.message, bounds_text(progress)) if part)
        if not self._console.is_terminal:
            if progress.step != self._step:
                if self._step:
                    self._end_line()
                self._step, self._since = progress.step, self._clock()
                self._told = self._since
                self._line(f"{progress.step} …")
            elif self._clock() - self._told >= _EVERY:
                self._told = self._clock()
                done = f"{progress.done:,} of {progress.total:,}" if progress.total else ""
                self._line(f"{progress.step}: {'  '.join(filter(None, (done, message)))}")
            return
        if progress.step not in self._tasks:
            if self._step:
                self._bars.stop_task(self._tasks[self._step])
            self._tasks[progress.step] = self._bars.add_task(progress.step, total=None, message="")
            self._step = progress.step
        self._bars.update(
            self._tasks[progress.step],
            completed=progress.done,
            total=progress.total or None,
            message=message,
        )

    def _end_line(self) -> None:
        self._line(f"{self._step} done in {self._clock() - self._since:.1f} s")

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
