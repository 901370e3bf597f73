"""Commands that ask about the protection: why, what-if, verify, key."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.failure import failures_in_words
from app.domain.errors import UserError

if TYPE_CHECKING:
    from app.office.protection import Figures, WhatIf, Why

_PANEL = "Look and check"
_LISTED = 20
_THREATS = 2

Folder = Annotated[Path, typer.Argument(metavar="D", help="Folder of the publication.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def why(
    folder: Folder,
    cell: Annotated[
        str, typer.Argument(metavar="CELL", help="Its members' unique names, with commas between.")
    ],
    as_json: Json = False,
) -> None:
    """Say why a cell is hidden, and what would free it. For the office: it names sensitive cells."""
    from app.bootstrap import protection

    with failures_in_words():
        found = protection.explain_cell(folder, cell)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        _show_why(found)


def what_if(
    folder: Folder,
    threshold: Annotated[
        int | None, typer.Option(help="Contributors that a cell must have, in place of the rules' number.")
    ] = None,
    measure: Annotated[
        str, typer.Option(help="The measure that the threshold is for; all when left out.")
    ] = "",
    sheet: Annotated[list[Path] | None, typer.Option(help="A sheet's file to add; may be repeated.")] = None,
    drop_sheet: Annotated[list[str] | None, typer.Option(help="Id of a sheet to leave out.")] = None,
    drop_level: Annotated[str, typer.Option(help="A level to leave out, as Cube.Level.")] = "",
    merge: Annotated[
        str, typer.Option(help="A level of which some members are taken as one, as Cube.Level.")
    ] = "",
    member: Annotated[list[str] | None, typer.Option(help="Key of a member to merge; repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Say what another rule, a sheet more or less, a level less, or merged members would hide and cost."""
    from app.bootstrap import protection
    from app.office.protection import changed

    with failures_in_words():
        if threshold is None and not sheet and not drop_sheet and not drop_level and not merge:
            raise UserError("Say what: --threshold, --sheet, --drop-sheet, --drop-level or --merge.")
        change = changed(threshold, measure, drop_sheet or [], drop_level, merge, member or [])
        found = protection.ask_what_if(folder, change, tuple(sheet or ()))
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        _show_what_if(found)


def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE.JSON", help="The certificate's file.")],
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder of the publication: hashes and audit are made again.")
    ] = None,
    url: Annotated[str, typer.Option(help="Address of the site that publishes it.")] = "",
) -> None:
    """Check a release's certificate; exit 1 when something isn't as it says."""
    from app.bootstrap import protection

    with failures_in_words():
        try:
            text = certificate.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UserError(f"{certificate} can't be read.") from None
        report = protection.verify_certificate(text, folder, url)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"Release {report.release}, signed by key {report.key or '—'}")
    for finding in report.findings:
        detail = f" ({finding.detail})" if finding.detail else ""
        verdict = "WRONG" if not finding.ok else "as it says" if finding.checked else "NOT CHECKED"
        console.print(f"  {verdict}: {finding.what}{detail}")
    if not report.ok:
        raise typer.Exit(1)


def key(folder: Folder) -> None:
    """Print the public key that certificates are checked with; it is made when there is none."""
    from app.bootstrap import protection

    with failures_in_words():
        public, name = protection.signing_key(folder)
    typer.echo(f"{public}\n{name}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for name, command in (("why", why), ("what-if", what_if), ("verify", verify), ("key", key)):
        app.command(name, rich_help_panel=_PANEL)(command)


def _show_why(found: Why) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    say = console.print
    say(found.cell)
    if found.known:
        say("Readers know it from an earlier release.")
    match found.kind:
        case "shown":
            say("It is empty." if found.state == "empty" else "It is shown.")
        case "rule":
            say(f"It is sensitive: {', '.join(found.reasons)}.")
            say("More contributors would free it, or a decision to waive the rules, with its reason.")
        case "difference":
            say(f"Its change since release {found.since} would give respondents away.")
            say("It is free again when enough respondents have changed.")
        case "ratio":
            say(f"It is worked out from hidden cells: {', '.join(found.because)}.")
            say("They would have to be shown.")
        case "tied":
            say(f"The cell that protects it is hidden: {found.because[0]}. That would have to be shown.")
        case _:
            say("It is hidden for others' sake. Shown, it would give away:")
            for threat in found.threats[:_THREATS]:
                say(f"  {threat.cell}, to {threat.attacker}, by")
                for relation in threat.relations:
                    say(f"    {relation}")
            if len(found.threats) > _THREATS:
                say(f"  and {len(found.threats) - _THREATS} more (see --json)")
            _show_alternative(console, found)


def _show_alternative(console: Console, found: Why) -> None:
    other = found.alternative
    if other is None:
        return
    if not other.possible:
        named = f" of {', '.join(other.in_the_way)}" if other.in_the_way else ""
        console.print(f"No pattern shows it: that takes other rules or levels{named}.")
        return
    console.print(f"It could be shown for a cost of {other.extra_cost:+,.6g}, by")
    for verb, cells in (("hiding", other.hides), ("showing", other.shows)):
        for cell in cells[:_LISTED]:
            console.print(f"  {verb} {cell}")
        if len(cells) > _LISTED:
            console.print(f"  and {len(cells) - _LISTED} more")


def _show_what_if(found: WhatIf) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for head in ("", "now", "then"):
        table.add_column(head, justify="right" if head else "left")
    for label, tell in _FIGURES:
        table.add_row(label, tell(found.now), tell(found.then))
    console.print(table)
    for verb, cells in (("Hidden then", found.newly_hidden), ("Shown then", found.newly_shown)):
        if cells:
            console.print(f"{verb}: {len(cells):,}")
            for cell in cells[:_LISTED]:
                console.print(f"  {cell}", markup=False, soft_wrap=True)
            if len(cells) > _LISTED:
                console.print(f"  and {len(cells) - _LISTED:,} more (see --json)")


_FIGURES: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("published cells", lambda figures: f"{figures.cells:,}"),
    ("sensitive cells", lambda figures: f"{figures.sensitive:,}"),
    ("hidden cells", lambda figures: f"{figures.hidden:,}"),
    ("value hidden", lambda figures: f"{figures.lost:.2%}"),
    ("cost of the pattern", lambda figures: f"{figures.cost:,.6g}"),
)
