"""How a command ends when it can't go on: short words on standard error and an exit code.

Exit 2 is the user's to mend, exit 1 is ours or the machine's. A traceback is shown only when
``CELOSIA_DEBUG`` is set, because its text may hold values of cells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from app.cli.last_word import DEBUG_VARIABLE
from app.domain.errors import InternalError, OperatorError, UserError


@contextmanager
def failures_in_words() -> Iterator[None]:
    """Turn the errors of the tree into messages and exit codes."""
    try:
        yield
    except UserError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        for mistake in error.mistakes:
            typer.echo(str(mistake), err=True)
        raise typer.Exit(2) from None
    except OperatorError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except InternalError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        typer.echo(f"Stopped, nothing was published: {error}", err=True)
        raise typer.Exit(1) from None
