"""Who runs a command."""

from __future__ import annotations

import getpass

#: Where commands come from, as the journal says it.
ORIGIN = "command line"


def user() -> str:
    """Name of the account of the machine that runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
