"""TOML as it is written out by an import."""

from __future__ import annotations

import json
import re


def pairs(**values: str | int | None) -> list[str]:
    """A line for each key that has a value."""
    lines: list[str] = []
    for name, value in values.items():
        if value is None:
            continue
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else text(name)
        lines.append(f"{key} = {value if isinstance(value, int) else text(value)}")
    return lines


def text(value: str) -> str:
    """A text in quotes; several lines stay several."""
    if "\n" in value and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", value):
        inside = value.replace("\\", "\\\\").replace('"""', '""\\"')
        return f'"""\n{inside}\n"""'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(value: str) -> list[str]:
    return [f"# {' '.join(line.split())}" for line in value.splitlines() if line.strip()]
