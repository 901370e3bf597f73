"""Which format and language a program wants: said in the address, or by the headers of its request."""

from __future__ import annotations

from collections.abc import Sequence

from app.web.formats.registry import Format
from app.web.language import marked as _
from app.web.refusals import RefusalError

NO_FORMAT = _("There is no format “%(name)s” here. There are %(formats)s.")
NO_LANGUAGE = _("There is no language “%(name)s” here. There are %(languages)s.")


def named_format(name: str, offered: Sequence[Format]) -> Format:
    """The format of this name; `RefusalError` 400 when it isn't offered."""
    for form in offered:
        if form.extension == name:
            return form
    raise RefusalError(400, NO_FORMAT, name=name, formats=", ".join(form.extension for form in offered))


def accepted_format(accept: str, offered: Sequence[Format]) -> Format:
    """The offered format that an Accept header likes best, the first one when it likes all alike.

    Raises
    ------
    RefusalError
        406 when it takes none of them.
    """
    best: tuple[float, int] | None = None
    chosen = offered[0]
    ranges = [_media_range(part) for part in accept.split(",")[:40] if part.strip()]
    if not ranges:
        return chosen
    for place, form in enumerate(offered):
        weights = [(rank, weight) for kind, weight in ranges if (rank := _fits(kind, form.kind))]
        if not weights:
            continue
        weight = max(weights)[1]
        if weight > 0 and (best is None or (weight, -place) > best):
            best, chosen = (weight, -place), form
    if best is None:
        raise RefusalError(406)
    return chosen


def _media_range(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weight = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                weight = float(parameter[2:])
            except ValueError:
                weight = 0.0
    return kind, weight


def _fits(kind: str, media_type: str) -> int:
    """How closely a media range means a media type: 0 not at all, 3 exactly."""
    if kind == media_type:
        return 3
    if kind.endswith("/*") and media_type.startswith(kind[:-1]):
        return 2
    return 1 if kind == "*/*" else 0
