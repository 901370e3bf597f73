"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

#: Of who shows a release although its newly hidden cells tell where few changed.
ACCEPT = "--accept-telltale"
Accept = Annotated[
    bool, typer.Option(ACCEPT, help="Show it though cells newly hidden tell where few changed.")
]
