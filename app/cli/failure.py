"""How a command ends when it can't go on: short words on standard error and an exit code.

Exit 2 is the user's to mend, exit 1 is ours or the machine's. A traceback is shown only when
``CELOSIA_DEBUG`` is set, because its text may hold values of cells.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import typer

from app.domain.errors import InternalError, OperatorError, UserError

DEBUG_VARIABLE = "CELOSIA_DEBUG"


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


def _last_word(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if os.environ.get(DEBUG_VARIABLE):
        sys.__excepthook__(kind, error, trace)
    elif issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("Interrupted.\n")
    elif issubclass(kind, OSError) and isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(f"The machine refused: {error.strerror or kind.__name__}{place}.\n")
    else:
        sys.stderr.write(
            f"A fault of Celosia's own ({kind.__name__}); nothing was published. "
            f"Please report it, with the output of the same command under {DEBUG_VARIABLE}=1.\n"
        )


def install_last_word() -> None:
    """Say in one line what nobody caught; Python exits 1 by itself then."""
    sys.excepthook = _last_word
