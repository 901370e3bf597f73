"""`celosia releases …`: what has been made, and who shows it when."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.failure import failures_in_words
from app.cli.options import ACCEPT, Accept
from app.cli.who import ORIGIN, user
from app.domain.errors import Mistake, UserError
from app.domain.people import command_line, on_behalf
from app.domain.release_life import ReleaseRecord, ReleaseState, TelltaleError, Trail, embargo_moment

app = typer.Typer(no_args_is_help=True, help="List releases, and approve, schedule, show or withdraw them.")

Folder = Annotated[Path, typer.Argument(metavar="D", help="Folder of the publication.")]
Release = Annotated[str, typer.Argument(metavar="RELEASE", help="Id of the release, as list shows it.")]
Actor = Annotated[str, typer.Option("--by", help="For whom you act; kept beside your own name.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept with the release.")]


@app.command("list")
def list_releases(
    folder: Folder, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List every release, newest first."""
    from app import bootstrap

    with failures_in_words(), bootstrap.publication_store(folder) as store:
        store.live_release_id()
        records = store.book.all()
    if as_json:
        typer.echo(json.dumps([_as_dict(record) for record in records], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for head in ("release", "state", "made", "by", "approved by", "embargo", "first shown"):
        table.add_column(head)
    for record in records:
        moments = [record.created, record.embargo, record.first_live]
        made, embargo, shown = (f"{moment:%Y-%m-%d %H:%M %Z}" if moment else "" for moment in moments)
        state = f"{record.state}, pruned" if record.pruned else str(record.state)
        if record.telltale and record.state is ReleaseState.AUDITED:
            state += f", {record.telltale} telltale cells"
        table.add_row(record.id, state, made, record.made_by, record.approved_by or "", embargo, shown)
    Console(highlight=False, soft_wrap=True).print(table)


@app.command()
def approve(
    folder: Folder,
    release: Release,
    by: Actor = "",
    accept: Accept = False,
) -> None:
    """Say that an audited release may be shown."""
    _move(folder, release, "approve", by, accepted=accept)


@app.command()
def revoke(folder: Folder, release: Release, by: Actor = "") -> None:
    """Take an approval back."""
    _move(folder, release, "revoke", by)


@app.command()
def schedule(
    folder: Folder,
    release: Release,
    moment: Annotated[str, typer.Argument(metavar="WHEN", help="As 2026-10-25T09:00, or with its offset.")],
    zone: Annotated[str, typer.Option(help="Time zone of WHEN, as Europe/Madrid.")] = "",
    by: Actor = "",
) -> None:
    """Let an approved release go live by itself at a moment."""
    with failures_in_words():
        embargo = embargo_moment(moment, zone)
    _move(folder, release, "schedule", by, embargo)


@app.command()
def unschedule(folder: Folder, release: Release, by: Actor = "") -> None:
    """Let a scheduled release wait for a new decision."""
    _move(folder, release, "unschedule", by)


@app.command()
def publish(folder: Folder, release: Release, by: Actor = "") -> None:
    """Show an approved release now, in place of the live one."""
    _move(folder, release, "publish", by)


@app.command("roll-back")
def roll_back(folder: Folder, release: Release, by: Actor = "") -> None:
    """Show an earlier release again."""
    _move(folder, release, "roll_back", by)


@app.command()
def withdraw(folder: Folder, release: Release, reason: Reason, by: Actor = "") -> None:
    """Take a release down for good, or never show it."""
    _move(folder, release, "withdraw", by, reason)


@app.command()
def forget(folder: Folder, release: Release, reason: Reason, by: Actor = "") -> None:
    """Let what a release showed count as unknown, because nobody can have seen it."""
    _move(folder, release, "forget", by, reason)


def _move(folder: Path, release: str, action: str, by: str, *more: object, **said: object) -> None:
    from app import bootstrap

    me = command_line(user()).name
    trail = Trail(me, ORIGIN)
    with failures_in_words(), bootstrap.publication_store(folder) as store:
        version = store.book.get(release).version
        move: Callable[..., ReleaseRecord] = getattr(store.book, action)
        try:
            record = move(release, version, on_behalf(me, by), *more, **said, trail=trail)
        except TelltaleError as error:
            remedy = f"Here that is: celosia releases approve {folder} {release} {ACCEPT}"
            raise UserError(Mistake("", 0, 0, str(error), remedy)) from None
    embargo = f" until {record.embargo:%Y-%m-%d %H:%M %Z}" if record.embargo else ""
    typer.echo(f"Release {record.id} is {record.state}{embargo}.")


def _as_dict(record: ReleaseRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "state": str(record.state),
        "made_by": record.made_by,
        "approved_by": record.approved_by,
        "reason": record.reason,
        "forgotten": record.forgotten,
        "pruned": record.pruned,
        "telltale": record.telltale,
        **{
            name: moment.isoformat() if moment else None
            for name, moment in (
                ("created", record.created),
                ("approved", record.approved),
                ("embargo", record.embargo),
                ("first_live", record.first_live),
                ("ended", record.ended),
            )
        },
    }
