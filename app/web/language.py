"""Languages of the interface: gettext catalogues, locales, and which one a reader wants."""

from __future__ import annotations

import gettext
from collections.abc import Iterable
from datetime import date, datetime
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.dates import format_date, format_skeleton
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from app.domain.numbers import locale_of

#: Languages that the interface speaks; English is the language of its source.
INTERFACE = ("en", "es", "ca")

LOCALES = Path(__file__).parent / "locale"


def marked(text: str) -> str:
    """A sentence as it is, marked for the catalogues where it is called ``_``: it is translated when said."""
    return text


@cache
def translations(language: str) -> gettext.NullTranslations:
    """The interface's texts; English where the language has no catalogue."""
    path = LOCALES / language / "LC_MESSAGES" / "messages.po"
    if language not in INTERFACE or not path.is_file():
        return gettext.NullTranslations()
    with path.open("rb") as file:
        catalogue = read_po(file, locale=language)
    binary = BytesIO()
    write_mo(binary, catalogue)
    binary.seek(0)
    return gettext.GNUTranslations(binary)


def language_name(language: str) -> str:
    """The language's name in itself, as in *español*."""
    name = locale_of(language).get_display_name(language) or language
    return name[:1].upper() + name[1:]


def long_date(moment: datetime, language: str) -> str:
    """The date as a reader writes it: *27 de noviembre de 2026*; in English *27 November 2026*."""
    locale = locale_of(language)
    # Babel's English is America's where no country is said; everybody understands the day first.
    form = "d MMMM y" if str(locale) == "en" else "long"
    return format_date(moment.date(), format=form, locale=locale)


def day_or_month(text: str, language: str) -> str:
    """An ISO day or month as a reader writes it, *15 March 2027* or *March 2027*; an empty text of none."""
    if not text:
        return ""
    locale = locale_of(language)
    if len(text) == len("2027-03"):
        return str(format_skeleton("yMMMM", date.fromisoformat(f"{text}-01"), locale=locale))
    return long_date(datetime.fromisoformat(text), language)


def preferred(accept_language: str, offered: Iterable[str]) -> str:
    """The offered language that an Accept-Language header likes best; the first one by default."""
    offered = tuple(offered)
    wishes = []
    for part in accept_language.split(",")[:20]:
        tag, _, quality = part.strip().partition(";")
        try:
            weight = float(quality.strip().removeprefix("q=")) if quality else 1.0
        except ValueError:
            continue
        wishes.append((weight, tag.strip().lower()))
    for weight, tag in sorted(wishes, key=lambda wish: -wish[0]):
        if weight <= 0:
            continue
        for language in offered:
            if tag == language.lower() or tag.partition("-")[0] == language.lower():
                return language
    return offered[0]
