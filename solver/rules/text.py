"""Rules as text, written as their reasons are.

``freq<3``, ``weighted freq<3``, ``(1,85)``, ``p%10``, ``request:1=70,2=60``, ``zero:5``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from solver.errors import InputError
from solver.rules.base import Rule
from solver.rules.dominance import Dominance
from solver.rules.p_percent import PPercent
from solver.rules.request import Request
from solver.rules.threshold import Threshold
from solver.rules.zero import Zero

_NUMBER = r"(\d+(?:\.\d+)?)"


def _shares(text: str) -> Request:
    pairs = (part.partition("=") for part in text.split(","))
    return Request({code.strip(): float(share) for code, _, share in pairs})


_WRITTEN: tuple[tuple[str, Callable[..., Rule]], ...] = (
    (r"freq\s*<\s*(\d+)", lambda n: Threshold(int(n))),
    (r"weighted freq\s*<\s*(\d+)", lambda n: Threshold(int(n), weighted=True)),
    (rf"\(\s*(\d+)\s*,\s*{_NUMBER}\s*\)", lambda n, k: Dominance(int(n), float(k))),
    (rf"p%\s*{_NUMBER}", lambda p: PPercent(float(p))),
    (rf"request:((?:[^=,]+={_NUMBER},?)+)", lambda shares, _: _shares(shares.rstrip(","))),
    (rf"zero:\s*{_NUMBER}", lambda width: Zero(float(width))),
)


def parse_rule(text: str) -> Rule:
    """The rule that a text names.

    Raises
    ------
    InputError
        If it names none; says how rules are written.
    """
    for pattern, make in _WRITTEN:
        match = re.fullmatch(pattern, text.strip())
        if match:
            return make(*match.groups())
    raise InputError(
        f"{text!r} is no rule.", "Write freq<3, (1,85), p%10, request:1=70,2=60 or zero:5, as many as apply."
    )
