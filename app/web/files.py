"""A download as a response: whole when it is small, streamed when it is long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import cast

from starlette.responses import Response

from app import __version__
from app.domain.patience import Patience
from app.serve.stamp import Stamp
from app.web.desk import ANYONE
from app.web.formats.download import Download, TableDownload
from app.web.formats.registry import Format
from app.web.reply import Headers, Reply, Stream

#: Cells beyond which a file is sent as it is made, and made again each time, rather than kept.
LONG = 20_000


def file_response(
    form: Format, download: TableDownload, stamps: tuple[Stamp, ...], name: str, caching: str
) -> Response:
    """The file of a whole table."""
    return _response(form, download, stamps, name, caching)


def cells_response(
    form: Format,
    download: Download,
    stamps: tuple[Stamp, ...],
    name: str,
    caching: str,
    headers: Headers = (),
    keep: bool = True,
) -> Response:
    """The file of any list of cells; `Format.whole` must not hold of its format.

    ``keep`` False: the address alone doesn't say what the file is, so it isn't kept under it.
    """
    assert not form.whole
    return _response(form, download, stamps, name, caching, headers, keep)


def _response(
    form: Format,
    download: Download,
    stamps: tuple[Stamp, ...],
    name: str,
    caching: str,
    headers: Headers = (),
    keep: bool = True,
) -> Response:
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)
    told = (("content-disposition", f'attachment; filename="{safe}.{form.suffix}"'), *ANYONE, *headers)

    def parts() -> Iterator[bytes]:
        # A format of whole tables is only ever given one.
        return form.parts(cast(TableDownload, download))

    if form.streams and len(download.cells) > LONG:
        # Made as fast as it is read, by whichever thread: nobody's clock runs for it.
        download = replace(download, patience=Patience())
        return Stream(parts, form.media_type, stamps, _tag(form, download), caching, told)
    body = b"".join(parts())
    return Reply(body, form.media_type, stamps, cache_control=caching, headers=told, keep=keep)


def _tag(form: Format, download: Download) -> str:
    """What the bytes follow from, and no hidden number is part of that."""
    cells = download.cells
    digest = sha256(
        repr((__version__, form.extension, download.language, download.identity, cells.release_id)).encode()
    )
    for column in cells.columns:
        digest.update(repr([member.unique_name for member in column.members]).encode())
        digest.update(column.codes.tobytes())
        digest.update(str(column.stride).encode())
    for array in (cells.status, cells.values, cells.style):
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]
