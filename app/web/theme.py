"""The office's own colours, as a small style sheet over the site's."""

from __future__ import annotations

from app.domain.publication import Theme

_LIGHT, _DARK = "#ffffff", "#0b1416"


def theme_style(theme: Theme) -> bytes:
    """Rules for what the office states; on a coloured button the letters are those that read better."""
    rules = []
    if theme.accent:
        rules.append(f":root{{{_variables(theme.accent)}}}")
    dark = theme.accent_dark or theme.accent
    if dark:
        rules.append(f"@media screen and (prefers-color-scheme:dark){{:root{{{_variables(dark)}}}}}")
    return "\n".join(rules).encode()


def is_themed(theme: Theme) -> bool:
    """Whether the office states colours."""
    return bool(theme.accent or theme.accent_dark)


def _variables(accent: str) -> str:
    letters = max((_LIGHT, _DARK), key=lambda letter: _contrast(letter, accent))
    return f"--accent:{accent};--accent-ink:{letters}"


def _contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
