"""Where the handed cases and instances are: beside the repository. Missing, they fail loudly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_SHARED = Path(__file__).resolve().parents[2] / ".." / "shared"


def cases(kind: str) -> list[Path]:
    """Files of the handed cases of a kind, at least one."""
    found = [path for path in sorted((_SHARED / "cases").glob("*.json")) if load(path)["case_type"] == kind]
    if not found:
        raise FileNotFoundError(f"no {kind} case in {_SHARED / 'cases'}")
    return found


def load(path: Path) -> dict[str, Any]:
    """A case as it is written."""
    return json.loads(path.read_text("utf-8"))


def instance_file(name: str) -> Path:
    """A handed instance."""
    path = _SHARED / "instances" / f"{name}.jj.gz"
    if not path.exists():
        raise FileNotFoundError(path)
    return path
