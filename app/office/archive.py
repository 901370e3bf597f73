"""Publications as ZIP files: written with facts that their reader may see, and read with suspicion."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.domain.errors import Mistake, UserError
from app.domain.version import FACT_ENDINGS, MOST_FILES, TEXT_ENDINGS, Files, Version, longest
from app.office.folders import scratch
from app.office.versions import Versions

#: Bytes that an archive may unpack to, and how many times its own size.
LARGEST = 2 << 30
_SWELLS = 200
_FREE_SWELLING = 16 << 20
_CHUNK = 1 << 20
#: The same for every archive, so that the same version gives the same bytes.
_MOMENT = (2000, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Unpacked:
    """What an archive holds: texts by path, and facts by path as files of a temporary folder."""

    texts: Mapping[str, str]
    facts: Mapping[str, Path]


def write_zip(versions: Versions, version: Version, target: IO[bytes], author: str | None = None) -> None:
    """Write a version's files, facts included: all, or those alone that ``author`` uploaded."""
    files = versions.files(version)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in sorted(files.texts.items()):
            archive.writestr(_entry(path), text.encode())
        for path, digest in sorted(files.uploads.items()):
            if author is not None and not versions.holds(author, digest):
                continue
            with archive.open(_entry(path), "w", force_zip64=True) as inside:
                for body in versions.chunks(digest):
                    inside.write(body)


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


@contextmanager
def unpacked(source: IO[bytes], size: int, largest: int = LARGEST) -> Iterator[Unpacked]:
    """The files of an archive, as long as the context lasts.

    Nothing is written under a name that the archive chose, and unpacking stops at a limit of bytes that are
    counted as they come, not as the archive claims.

    Parameters
    ----------
    source : file
    size : int
        Its bytes.
    largest : int
        Bytes that it may unpack to.

    Raises
    ------
    UserError
        If it is no archive, or one that can't be trusted.
    """
    allowed = min(largest, max(_FREE_SWELLING, size * _SWELLS))
    with scratch() as folder:
        try:
            with zipfile.ZipFile(source) as archive:
                entries = _entries(archive)
                texts: dict[str, str] = {}
                facts: dict[str, Path] = {}
                left = allowed
                for number, (path, entry) in enumerate(entries.items()):
                    is_text = path.lower().endswith(TEXT_ENDINGS) and not path.lower().endswith(FACT_ENDINGS)
                    place = folder / f"{number}"
                    limit = min(left, longest(path) * 4) if is_text else left
                    left -= _unpack(archive, entry, place, path, limit)
                    if is_text:
                        texts[path] = _text(place, path)
                    else:
                        facts[path] = place
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError):
            raise UserError("This isn't a ZIP file, or it is damaged.") from None
        yield Unpacked(texts, facts)


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Files by the path that they shall have; an outermost folder that holds everything is left out."""
    listed = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(listed) > MOST_FILES:
        raise UserError(f"The archive holds more than {MOST_FILES} files.")
    mistakes = []
    for entry in listed:
        name = entry.filename.encode("utf-8", "backslashreplace").decode()[:200]
        parts = entry.filename.split("/")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.filename.startswith("/") or "\\" in entry.filename or ".." in parts or ":" in parts[0]:
            mistakes.append(Mistake(name, 0, 0, "The path leads out of the archive."))
        elif kind not in (0, stat.S_IFREG):
            mistakes.append(Mistake(name, 0, 0, "A link or device doesn't belong here."))
        elif not plainly_packed(entry):
            mistakes.append(Mistake(name, 0, 0, "The file is packed in a way that isn't read here."))
        elif entry.flag_bits & 1:
            mistakes.append(Mistake(name, 0, 0, "The file is encrypted."))
    if mistakes:
        raise UserError(mistakes)
    wanted = [entry for entry in listed if not _is_hidden(entry.filename)]
    tops = {entry.filename.partition("/")[0] for entry in wanted}
    strip = len(tops) == 1 and all("/" in entry.filename for entry in wanted)
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in wanted:
        path = entry.filename.partition("/")[2] if strip else entry.filename
        if path in found:
            raise UserError(Mistake(path, 0, 0, "The archive holds this file twice."))
        found[path] = entry
    # The paths' own rules hold before a byte is unpacked.
    facts = {path: "0" * 64 for path in found if path.lower().endswith(FACT_ENDINGS)}
    Files({path: "" for path in found if path not in facts}, facts)
    return found


def plainly_packed(entry: zipfile.ZipInfo) -> bool:
    """Whether an entry is packed as nearly all are. Other ways take memory by what the archive claims."""
    return entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, path: str, limit: int) -> int:
    written = 0
    with archive.open(entry) as inside, place.open("wb") as file:
        while body := inside.read(_CHUNK):
            written += len(body)
            if written > limit:
                raise UserError(Mistake(path, 0, 0, "The archive unpacks to more than is allowed."))
            file.write(body)
    return written


def _text(place: Path, path: str) -> str:
    try:
        return place.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(Mistake(path, 0, 0, "The file isn't UTF-8.", "Save it as UTF-8.")) from None
