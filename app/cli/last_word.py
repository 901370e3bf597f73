"""What is said of that which nobody caught; imports next to nothing, to be there before the rest is."""

from __future__ import annotations

import os
import sys
from types import TracebackType

DEBUG_VARIABLE = "CELOSIA_DEBUG"


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
