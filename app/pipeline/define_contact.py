"""define: whom readers ask about the figures, and when the next ones are expected."""

from __future__ import annotations

import re
from datetime import date

from app.domain.publication import Contact
from app.pipeline.toml import Reader

_EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+")
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{2,}")
_PAGE = re.compile(r"https?://[^\s<>\"]+")
_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?", re.ASCII)


def read_contact(reader: Reader, languages: tuple[str, ...]) -> Contact:
    """The table ``[contact]`` of a publication or of a sheet; an empty one where there is none."""
    table = reader.table("contact")
    if table is None:
        return Contact()
    name = table.texts("name", languages)
    contact = Contact(
        name,
        _said(table, "email", _EMAIL, '"statistics@office.example"'),
        _said(table, "phone", _PHONE, '"+34 900 000 000"'),
        _said(table, "page", _PAGE, '"https://office.example/ask"'),
    )
    if not any(key in table.values for key in ("email", "phone", "page")):
        table.wrong("The contact doesn't say how to ask.", "Give it an email, a phone or a page.")
    table.done()
    return contact


def _said(table: Reader, key: str, form: re.Pattern[str], example: str) -> str:
    text = (table.text(key) or "").strip()
    if text and not form.fullmatch(text):
        table.wrong(f"Key {key} of the contact can't be read.", f"Write it as {example}.", key)
        return ""
    return text


def read_next_release(reader: Reader) -> str:
    """When new figures are expected, an ISO day or month; empty where nothing is said."""
    found = reader.take("next-release", (str, date), "a date")
    # A date and time says the day.
    text = "" if found is None else found.isoformat()[:10] if isinstance(found, date) else found
    if not text:
        return ""
    try:
        if not _DAY.fullmatch(text):
            raise ValueError(text)
        date.fromisoformat(text if len(text) > 7 else f"{text}-01")
    except ValueError:
        remedy = 'Write a day or a month, as "2027-03-15" or "2027-03".'
        reader.wrong("The next release isn't a date.", remedy, "next-release")
        return ""
    return text
