"""Commands of the queue: the worker."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from app.cli.failure import failures_in_words

_RUNNING = "Run for many"


def worker(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[D]", help="Folder of the publication; none with CELOSIA_DATABASE_URL alone."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="How many jobs at once.")] = 1,
) -> None:
    """Work on the jobs that the studio queues, until stopped; any number of workers share a database.

    When it is stopped, what it had in hand goes back to the queue, to go on at the step it had reached.
    """
    from app.bootstrap.jobs import open_queue
    from app.cli.operations import watched

    with failures_in_words(), open_queue(folder) as queue, watched(queue.store):
        working = queue.worker(jobs)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: working.stop())
        typer.echo("Waiting for jobs (stop with Ctrl-C)")
        working.run()


def register(app: typer.Typer) -> None:
    """Add the commands of the queue."""
    app.command("worker", rich_help_panel=_RUNNING)(worker)
