"""The text files of the publications that come with Celosia."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path


def copy_templates(name: str, folder: Path) -> None:
    """Copy every .toml of ``demo/<name>``; publication.toml last, so that it marks a complete folder."""
    with as_file(files("demo") / name) as templates:
        for template in sorted(templates.rglob("*.toml"), key=lambda path: path.name == "publication.toml"):
            target = folder / template.relative_to(templates)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(template, target)
