"""Style sheet, font and icons: read once at start, served under addresses that name their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from app.serve.answer import NotPublishedError
from app.web.places import share
from app.web.reply import IMMUTABLE, Reply

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, eq=False)
class Assets:
    """Replies by path below ``/static/``: for addresses that carry the right version, and for others."""

    lasting: Mapping[str, Reply]
    passing: Mapping[str, Reply]
    versions: Mapping[str, str]

    def address(self, name: str) -> str:
        """Address of a file, which changes when its bytes do."""
        return f"/static/{name}?v={self.versions[name]}"

    def reply(self, name: str, version: str) -> Reply:
        """The file's response; `NotPublishedError` when there is none."""
        kept = self.lasting if version == self.versions.get(name) else self.passing
        try:
            return kept[name]
        except KeyError:
            raise NotPublishedError(name) from None


def load_assets() -> Assets:
    """Read every file of the folder ``static``; style sheets name the versions of what they load."""
    root = share("static")
    files = [path for path in root.rglob("*") if path.is_file() and path.suffix in _MEDIA_TYPES]
    lasting: dict[str, Reply] = {}
    passing: dict[str, Reply] = {}
    versions: dict[str, str] = {}
    for path in sorted(files, key=lambda path: (path.suffix == ".css", path)):
        name = path.relative_to(root).as_posix()
        body = path.read_bytes()
        if path.suffix == ".css":
            for loaded, version in versions.items():
                body = body.replace(f'url("{loaded}")'.encode(), f'url("{loaded}?v={version}")'.encode())
        versions[name] = sha256(body).hexdigest()[:12]
        lasting[name] = Reply(body, _MEDIA_TYPES[path.suffix], cache_control=IMMUTABLE)
        passing[name] = Reply(body, _MEDIA_TYPES[path.suffix])
    return Assets(lasting, passing, versions)
