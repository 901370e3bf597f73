"""What the commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from app.cli.options import ACCEPT
from app.redteam.report import Report

_FIGURES = (
    ("cells", "published cells"),
    ("implied_cells", "implied cells"),
    ("equations", "equations"),
    ("arranged", "answers ordered or chosen by the values that are shown"),
    ("problems", "problems"),
    ("primaries", "sensitive cells"),
    ("implied_primaries", "sensitive implied cells"),
    ("secondaries", "hidden for their sake"),
    ("lowered_levels", "levels cut to what is possible"),
    ("hidden_share", "share of cells hidden"),
    ("exposures", "exposures"),
    ("telltale", "newly hidden because few changed in them"),
    ("cost", "cost of the pattern"),
    ("lower_bound", "proven lower bound"),
)
_LISTED = 20


def address(host: str, port: int) -> None:
    """Where the site is."""
    shown = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else host
    Console().print(f"Serving at [bold]http://{shown}:{port}/[/bold] (stop with Ctrl-C)", highlight=False)


def status(figures: Mapping[str, Any]) -> None:
    """The live release and the figures of the last run."""
    console = Console()
    live = figures.get("release")
    console.print(
        f"Release {live['id']} is {live['state']}." if live else "No release is live: nothing is shown.",
        highlight=False,
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for key, label in _FIGURES:
        value = figures.get(key)
        if value is not None:
            shown = f"{value:.2%}" if key == "hidden_share" else f"{value:,.6g}"
            table.add_row(label, f"[bold]{shown}[/bold]")
    for step, seconds in (figures.get("seconds") or {}).items():
        table.add_row(f"{step} took", f"{seconds:.1f} s")
    console.print(table, highlight=False)


def telltale(cells: int, folder: Path, release: str) -> None:
    """Why a release waits, and what can be done."""
    Console(highlight=False, markup=False, soft_wrap=True).print(
        f"Release {release} isn't shown yet: it hides {cells:,} cells that the last one showed, because few "
        "respondents changed in them. Nobody can work out what changed, but whoever compares the two sees "
        "where. Wait until more changes come together and run again, or accept that: "
        f"celosia run {folder} {ACCEPT}"
    )


def attack(report: Report) -> None:
    """What the red team found."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"Read {report.documents:,} documents: {report.cells:,} cells, {report.hidden:,} of them hidden; "
        f"bounded {report.bounded:,} unknown cells."
    )
    if report.checked_promises:
        console.print(f"Held {report.checked_promises:,} protection intervals against the bounds.")
    _listed(console, "Found", report.findings)
    _listed(console, "Could not read or understand", report.notes)
    if report.ok:
        console.print("Nothing found.")
    if report.suspicions:
        _listed(console, "Only the office can judge", report.suspicions)
        console.print(
            "These cells are narrowed down, which is no leak where one is hidden for others' sake. To have "
            "them judged, hold them against what was promised: celosia attack ADDRESS --truth D"
        )


def _listed(console: Console, title: str, items: Sequence[object]) -> None:
    if items:
        console.print(f"{title}: {len(items):,}")
    for item in items[:_LISTED]:
        console.print(f"  {item}")
    if len(items) > _LISTED:
        console.print(f"  and {len(items) - _LISTED:,} more (see --json)")
