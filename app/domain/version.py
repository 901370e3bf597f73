"""Versions of a publication: its text files and uploaded facts at one moment."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.errors import Mistake, UserError

TEXT_ENDINGS = (".toml", ".md", ".mdx", ".txt", ".json", ".geojson", ".topojson", ".svg")
FACT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt.gz", ".parquet", ".pq")
LONGEST_TEXT = 1 << 20
#: Borders are long texts that nobody types.
LONGEST_MAP = 32 << 20
MAP_ENDINGS = (".json", ".geojson", ".topojson")
MOST_FILES = 5000

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,199}")
_DEEPEST = 20
#: No database takes these.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Upload:
    """A file of facts that the database keeps, known by the SHA-256 of its bytes."""

    digest: str
    name: str
    size: int
    author: str
    created: datetime


@dataclass(frozen=True)
class Version:
    """A version, without its files.

    Attributes
    ----------
    id : int
    parent : int or None
        The version that it was made from.
    state : str
        ``draft`` (its author still edits it), ``current``, or ``past``.
    author, message : str
    created : datetime
        With time zone.
    revision : int
        How often a draft was saved: whoever saves names the one that was read.
    digest : str
        SHA-256 over paths and contents.
    """

    id: int
    parent: int | None
    state: str
    author: str
    message: str
    created: datetime
    revision: int
    digest: str


@dataclass(frozen=True)
class Files:
    """What a version holds: texts by path, and the digests of uploads by path."""

    texts: Mapping[str, str]
    uploads: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mistakes = []
        whole = self.texts.keys() | self.uploads.keys()
        for path, text in self.texts.items():
            mistakes += _wrong_path(path, TEXT_ENDINGS)
            if len(text) > longest(path):
                most = f"At most {longest(path) >> 20} million letters are kept."
                mistakes.append(Mistake(path, 0, 0, "The file is too long.", most))
            if not _storable(text):
                mistakes.append(Mistake(path, 0, 0, "The text holds a character that can't be kept."))
        for path in self.uploads:
            mistakes += _wrong_path(path, FACT_ENDINGS)
        folders = {path[:end] for path in whole for end, sign in enumerate(path) if sign == "/"}
        mistakes += [
            Mistake(path, 0, 0, "A file and a folder have the same name.") for path in folders & whole
        ]
        twice = {path.lower() for path in self.texts} & {path.lower() for path in self.uploads}
        mistakes += [Mistake(path, 0, 0, "A text and facts have the same name.") for path in twice]
        if len(self.texts) + len(self.uploads) > MOST_FILES:
            mistakes.append(Mistake("", 0, 0, f"There are more than {MOST_FILES} files."))
        if mistakes:
            raise UserError(mistakes)

    @property
    def digest(self) -> str:
        """SHA-256 over paths and contents."""
        whole = hashlib.sha256()
        lines = [f"t {path}\0{text_digest(text)}" for path, text in self.texts.items()]
        lines += [f"u {path}\0{digest}" for path, digest in self.uploads.items()]
        for line in sorted(lines):
            whole.update(f"{line}\n".encode())
        return whole.hexdigest()


@dataclass(frozen=True)
class Change:
    """What became of one file: ``kind`` is added, removed or changed; ``lines`` a unified diff of texts."""

    path: str
    kind: str
    lines: tuple[str, ...]


def longest(path: str) -> int:
    """Letters that a text may have at a path."""
    return LONGEST_MAP if path.lower().endswith(MAP_ENDINGS) else LONGEST_TEXT


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def _wrong_path(path: str, endings: tuple[str, ...]) -> list[Mistake]:
    shown = path.encode("utf-8", "backslashreplace").decode()[:200]
    parts = path.split("/")
    if len(path) > 400 or len(parts) > _DEEPEST or not all(_PART.fullmatch(part) for part in parts):
        remedy = "Use letters, digits, - and _, in folders divided by /."
        return [Mistake(shown, 0, 0, "This can't be the path of a file.", remedy)]
    if not path.lower().endswith(endings):
        return [
            Mistake(
                shown, 0, 0, "A file of this kind doesn't belong here.", f"Allowed: {', '.join(endings)}."
            )
        ]
    return []
