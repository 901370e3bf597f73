"""Commands of the office's side: accounts and the journal."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.cli.failure import failures_in_words
from app.cli.who import user
from app.domain.errors import UserError
from app.domain.people import Role

_OFFICE = "The office"

Folder = Annotated[Path, typer.Argument(metavar="D", help="Folder of the publication.")]


class AccountRole(StrEnum):
    """Roles that an account can have."""

    analyst = "analyst"
    admin = "admin"
    auditor = "auditor"


account = typer.Typer(no_args_is_help=True, help="Accounts of the office.")


@account.command("add")
def add_account(
    folder: Folder,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name to sign in with, as ana or ana@office.org.")
    ],
    role: Annotated[AccountRole, typer.Option(help="What the account may do; the first one is an admin.")],
    single_sign_on: Annotated[
        bool, typer.Option("--single-sign-on", help="Without a password: OpenID Connect leads in.")
    ] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from a pipe, one line.")
    ] = False,
) -> None:
    """Make an account; the first admin begins here, with --role admin. Asks for the password."""
    from app.bootstrap import office

    with failures_in_words():
        password = None if single_sign_on else _password(password_stdin)
        has_admin = office.add_account(folder, user(), name, Role(role.value), password)
    typer.echo(f"Account {name} is {role.value}. It signs in at /studio of: celosia serve --studio {folder}")
    if not has_admin:
        typer.echo(f"There is no admin yet: celosia account add {folder} NAME --role admin")


def _password(piped: bool) -> str:
    """The password as it is typed, or the first line of a pipe.

    Raises
    ------
    UserError
        If nobody can be asked, or the pipe holds none.
    """
    if piped:
        line = sys.stdin.readline().rstrip("\r\n")
        if not line:
            raise UserError("Standard input holds no password: its first line is empty.")
        return line
    if not sys.stdin.isatty():
        raise UserError("There is no terminal to ask for the password. Pipe it in, with --password-stdin.")
    asked: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
    return asked


def verify_log(
    folder: Folder,
    head: Annotated[
        str, typer.Option(help="A digest noted before; it must still be in the chain.", metavar="DIGEST")
    ] = "",
) -> None:
    """Check the chain of hashes of the journal; exit 1 when an entry was changed, removed or cut off.

    Keep the digest that it prints elsewhere: with --head it proves later that nothing was cut off.
    """
    from app.bootstrap import office

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
    app.add_typer(account, name="account", rich_help_panel=_OFFICE)
    app.command("verify-log", rich_help_panel=_OFFICE)(verify_log)
