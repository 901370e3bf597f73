"""Why a cell is sensitive, in words: the rules' own names (``freq<3``, ``p%10``) say it to few readers."""

from __future__ import annotations

import re

from app.web.language import marked as _
from app.web.language import translations

RULE_WORDS = {
    "threshold": _("Minimum frequency"),
    "dominance": _("Dominance (n,k)"),
    "p-percent": _("p% rule"),
    "request": _("Request rule"),
    "zero": _("Zeros"),
}
#: How the names of rules with numbers are written, and what the numbers are.
_NUMBERED = (
    (re.compile(r"freq<(?P<n>\d+)"), "threshold"),
    (re.compile(r"\((?P<n>\d+),(?P<k>[\d.]+)\)"), "dominance"),
    (re.compile(r"p%(?P<p>[\d.]+)"), "p-percent"),
)
_OTHERS = {
    "request": RULE_WORDS["request"],
    "zero": RULE_WORDS["zero"],
    "manual": _("decided by hand"),
    "associated": _("together with the measure that protects it"),
    "difference": _("too few changed since a release"),
}


def reason_said(reason: str, language: str) -> str:
    """A reason of the assessment, in the reader's language; one that isn't known as it is."""
    say = translations(language).gettext
    for form, rule in _NUMBERED:
        if found := form.fullmatch(reason):
            numbers = ", ".join(f"{key} = {value}" for key, value in found.groupdict().items())
            return f"{say(RULE_WORDS[rule])}: {numbers}"
    return say(_OTHERS[reason]) if reason in _OTHERS else reason
