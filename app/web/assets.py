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
    """Replies by path below ``/static/``, and the version that addresses carry."""

    replies: Mapping[str, Reply]
    versions: Mapping[str, str]

    def address(self, name: str) -> str:
        """Address of a file, which changes when its bytes do."""
        return f"/static/{name}?v={self.versions[name]}"

    def reply(self, name: str) -> Reply:
        """The file's response; `NotPublishedError` when there is none."""
        try:
            return self.replies[name]
        except KeyError:
            raise NotPublishedError(name) from None


def load_assets() -> Assets:
    """Read every file of the folder ``static``."""
    root = share("static")
    replies, versions = {}, {}
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.suffix not in _MEDIA_TYPES:
            continue
        name = path.relative_to(root).as_posix()
        body = path.read_bytes()
        versions[name] = sha256(body).hexdigest()[:12]
        replies[name] = Reply(body, _MEDIA_TYPES[path.suffix], cache_control=IMMUTABLE)
    return Assets(replies, versions)
