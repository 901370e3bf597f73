"""Commands of the office's side: the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.bootstrap import office
from app.cli.failure import failures_in_words

_OFFICE = "The office"

Folder = Annotated[Path, typer.Argument(metavar="D", help="Folder of the publication.")]


def verify_log(
    folder: Folder,
    head: Annotated[
        str, typer.Option(help="A digest noted before; it must still be in the chain.", metavar="DIGEST")
    ] = "",
) -> None:
    """Check the chain of hashes of the journal; exit 1 when an entry was changed, removed or cut off.

    Keep the digest that it prints elsewhere: with --head it proves later that nothing was cut off.
    """
    with failures_in_words():
        verdict = office.verify_log(folder, head)
    if verdict.broken_at:
        typer.echo(
            f"The journal is broken at entry {verdict.broken_at}: it isn't what was written.", err=True
        )
    if not verdict.head_found:
        typer.echo("The digest given isn't in the chain: entries were cut off or rewritten.", err=True)
    if not verdict.ok:
        raise typer.Exit(1)
    typer.echo(f"{verdict.entries} entries, unbroken. Digest of the last: {verdict.head or 'none'}")


def register(app: typer.Typer) -> None:
    """Add the office's commands."""
    app.command("verify-log", rich_help_panel=_OFFICE)(verify_log)
