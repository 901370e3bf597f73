"""Where templates and static files lie: beside the packages in a checkout, inside `app` when installed."""

from __future__ import annotations

from pathlib import Path

from app.domain.errors import OperatorError


def share(name: str) -> Path:
    """The folder ``templates`` or ``static``."""
    here = Path(__file__).resolve()
    for folder in (here.parents[1] / "_share" / name, here.parents[2] / name):
        if folder.is_dir():
            return folder
    raise OperatorError(f"The installation of celosia is incomplete: its folder {name} is missing.")
