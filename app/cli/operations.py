"""Commands for whoever runs the machines: backup, restore, doctor; and what a long-lived process tells."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.failure import failures_in_words
from app.cli.who import user

if TYPE_CHECKING:
    from app.db.store import Store
    from app.watch.metrics import Metrics

_RUNNING = "Run for many"
_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="[D]", help="Folder of the publication; none with CELOSIA_DATABASE_URL alone."),
]


@contextmanager
def watched(store: Store, number: int = 0) -> Iterator[Metrics]:
    """Logs, metrics and traces of a process that stays, as the environment wishes; SIGTERM ends it.

    Of several processes each has its metrics at a port of its own: that of the first one and those after it.
    """
    from app.bootstrap import operations
    from app.watch.logs import LOG_VARIABLE, install_logs
    from app.watch.metrics import METRICS_VARIABLE, Metrics
    from app.watch.traces import install_traces

    install_logs(os.environ.get(LOG_VARIABLE, ""))
    install_traces("celosia")
    signal.signal(signal.SIGTERM, _leave)
    metrics = Metrics(partial(operations.counts, store))
    address = os.environ.get(METRICS_VARIABLE)
    if not address:
        yield metrics
        return
    port, end = metrics.serve(address, number)
    typer.echo(f"Metrics at port {port}, path /metrics")
    try:
        yield metrics
    finally:
        end()


def _leave(number: int, _frame: object) -> None:
    # Whoever says it again doesn't wait for the end in order: Python would only complain of the exception.
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(0)


def backup(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="The new file.")],
    folder: Folder = None,
) -> None:
    """Write everything that the database holds, as of one moment, into a new file; others go on working.

    The file holds true values of hidden cells: keep it as safe as the data.
    """
    from app.bootstrap import operations

    with failures_in_words():
        made = operations.back_up(folder, out)
    typer.echo(
        f"{out}: {sum(made.rows.values()):,} rows of {len(made.rows)} tables. Keep it as safe as the data."
    )


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.")],
    folder: Folder = None,
) -> None:
    """Fill a new, empty database from a backup, of either kind; a damaged file is refused.

    Nobody is signed in afterwards. A backup of an older version is brought up to date.
    """
    from app.bootstrap import operations

    with failures_in_words():
        found = operations.restore(folder, path, user())
    made = found.created.strftime("%Y-%m-%d %H:%M UTC")
    typer.echo(f"Restored {sum(found.rows.values()):,} rows, as of {made}.")


def doctor(folder: Folder = None, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Look for what may be wrong: database, clocks, disk, rights, solver, journal; exit 1 if something is."""
    from app.bootstrap import operations
    from app.office.doctor import State
    from app.web.places import share

    with failures_in_words():
        files = {
            "style sheet": share("static") / "site.css",
            "font": share("static") / "fonts" / "source-sans-3.woff2",
            "pages": share("templates") / "sheet.html",
            "the studio's pages": share("templates") / "studio" / "base.html",
        }
        findings = operations.doctor(folder, files)
    if as_json:
        typer.echo(json.dumps([vars(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            words = f"{finding.words}. {finding.remedy}" if finding.remedy else finding.words
            table.add_row(f"[{_STYLES[finding.state]}]{finding.state}[/]", finding.name, words)
        Console(soft_wrap=True).print(table, highlight=False)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the operators' commands."""
    for command in (backup, restore, doctor):
        app.command(rich_help_panel=_RUNNING)(command)
