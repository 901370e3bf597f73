"""What a reader is told when there is no answer: a status and one sentence."""

from __future__ import annotations

from app.domain.errors import CelosiaError
from app.web.language import marked as _
from app.web.language import translations

SENTENCES = {
    400: _("The address has a part that this page can't read."),
    404: _("There is no such page, table or choice in this release."),
    405: _("This address can't be used that way."),
    406: _("This table can't be had in any of the formats asked for."),
    410: _("This release was withdrawn, and nothing of it is shown any more."),
    413: _("The request is too large."),
    414: _("The address is too long. Whole levels make it shorter than members chosen by hand."),
    415: _("A query has to come as JSON or as plain text."),
    429: _("Too many requests in a short time. Please wait a moment."),
    500: _("Something went wrong on our side, and nothing was shown rather than something wrong."),
    503: _("Nothing is published at the moment. Please come back later."),
}

#: Of a 503 while there is a release, but the storage doesn't answer.
UNREACHABLE = _("The figures can't be reached at the moment. Please come back shortly.")

#: Of a field whose value can't be read, or means nothing.
NO_VALUE = _("“%(name)s” can't be “%(value)s”.")

#: Of addresses below ``/r/``, and of moments before the first release.
NO_RELEASE = _("There is no such release.")
NO_RELEASE_YET = _("Nothing had been released yet by “%(value)s”.")

#: Letters of a reader's own words that are said back.
_LONGEST = 80


class RefusalError(CelosiaError):
    """A request that has no answer.

    Parameters
    ----------
    status : int
        A key of `SENTENCES`.
    text : str
        A sentence that is closer to the point, marked for the catalogues; its places are named.
    said : str
        What stands in the places: words of the request, never of the data.
    """

    def __init__(self, status: int, text: str = "", **said: str) -> None:
        super().__init__(status)
        self.status = status
        self._text = text
        self._said = {
            name: word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…" for name, word in said.items()
        }

    def sentence(self, language: str) -> str:
        """What the reader is told."""
        if not self._text:
            return sentence(self.status, language)
        return translations(language).gettext(self._text) % self._said


def sentence(status: int, language: str) -> str:
    """The sentence for a status, in a language; that of the nearest kind for a rarer status."""
    nearest = status if status in SENTENCES else 400 if status < 500 else 500
    return translations(language).gettext(SENTENCES[nearest])


def unreachable(language: str) -> str:
    """The sentence for when the storage doesn't answer, in a language."""
    return translations(language).gettext(UNREACHABLE)
