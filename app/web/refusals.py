"""What a reader is told when there is no answer: a status and one sentence."""

from __future__ import annotations

from app.domain.errors import CelosiaError
from app.web.language import translations


def _(text: str) -> str:
    """Marks a sentence for the catalogues; it is translated when said."""
    return text


SENTENCES = {
    400: _("The address has a part that this page can't read."),
    404: _("There is no such page, table or choice in this release."),
    405: _("This address can only be read."),
    413: _("The request is too large."),
    500: _("Something went wrong on our side, and nothing was shown rather than something wrong."),
    503: _("Nothing is published at the moment. Please come back later."),
}


class RefusalError(CelosiaError):
    """A request that has no answer; ``status`` is a key of `SENTENCES`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def sentence(status: int, language: str) -> str:
    """The sentence for a status, in a language; that of the nearest kind for a rarer status."""
    nearest = status if status in SENTENCES else 400 if status < 500 else 500
    return translations(language).gettext(SENTENCES[nearest])
