"""What files of every format say in the reader's language."""

from __future__ import annotations

from app.web.language import translations


def by_figures_note(language: str) -> str:
    """Said of a table whose members are chosen, ordered or ranked by the figures that are shown."""
    _ = translations(language).gettext
    return _(
        "Members are chosen, ordered or ranked by the figures that are shown: "
        "one whose figure is confidential is left out or comes last, however large it is."
    )


def file_words(language: str) -> dict[str, str]:
    """What files say, in a language."""
    _ = translations(language).gettext
    return {
        "confidential": _("confidential"),
        "hidden": _("Confidential: showing the figure could tell about a single person or firm."),
        "not released": _("not released"),
        "unreleased": _("Not released: no table of this release shows the figure, whatever it is."),
        "empty": _("There is nothing to count."),
        "table": _("Table"),
        "about": _("About this table"),
        "title": _("Title"),
        "publisher": _("Publisher"),
        "released": _("Released"),
        "release": _("Release"),
        "next release": _("Next release"),
        "contact": _("Contact"),
        "address": _("Address"),
        "notes": _("Notes"),
        "unit": _("Unit"),
        "value": _("Value"),
        "decimals": _("Decimals"),
        "status": _("Status of the figure"),
        "confidentiality": _("Confidentiality of the figure"),
        "normal": _("exact figure"),
        "free": _("free to publish"),
    }
