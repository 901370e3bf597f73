"""What is told of work that takes long, on a terminal and in a log."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from app.cli.progress import ProgressDisplay
from app.domain.progress import StepProgress


class Watch:
    """A clock that somebody sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_has_a_line_now_and_then_and_no_more() -> None:
    out, watch = StringIO(), Watch()
    with ProgressDisplay(Console(file=out, width=40), watch) as tell:
        for number in range(100):
            watch.now = float(number)
            tell(StepProgress("read", number, 100, f"/en/s/a-rather-long-name-of-a-sheet/{number}"))
        tell(StepProgress("bound", 0, 1, "Tax"))
    assert out.getvalue().splitlines() == [
        "read …",
        *(f"read: {n} of 100  /en/s/a-rather-long-name-of-a-sheet/{n}" for n in (20, 40, 60, 80)),
        "read done in 99.0 s",
        "bound …",
        "bound done in 0.0 s",
    ]


def test_a_terminal_sees_what_is_read() -> None:
    out = StringIO()
    with ProgressDisplay(Console(file=out, width=100, force_terminal=True)) as tell:
        tell(StepProgress("read", 3, 12, "41 documents, /en/s/regions"))
    assert "3/12" in out.getvalue()
    assert "41 documents" in out.getvalue()
