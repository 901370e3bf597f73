"""The confidentiality rules in a reader's words.

The minimum number of contributors is told. The percentages of dominance and p% rules are not: with them
a reader could compute how close a hidden figure may be guessed, and where it can't lie.
"""

from __future__ import annotations

from app.domain.catalogue import Catalogue
from app.domain.cube import text_in
from app.domain.numbers import plain_number
from app.domain.publication import MeasureProtection, RuleDefinition
from app.web.contexts import ProtectedMeasure
from app.web.language import translations


def protected_measures(
    catalogue: Catalogue, language: str
) -> tuple[tuple[str, tuple[ProtectedMeasure, ...]], ...]:
    """For each cube its caption and its protected measures."""
    cubes = []
    for name, cube in catalogue.cubes.items():
        measures = tuple(
            ProtectedMeasure(
                _measure(catalogue, name, protection.measure, language),
                _sentences(catalogue, protection, language),
            )
            for protection in catalogue.protection
            if protection.cube == name
        )
        if measures:
            cubes.append((text_in(cube.captions, language) or name, measures))
    return tuple(cubes)


def _measure(catalogue: Catalogue, cube: str, name: str, language: str) -> str:
    found = [m for m in catalogue.cubes[cube].measures if name in (m.name, m.unique_name)]
    return text_in(found[0].captions, language) or name if found else name


def _sentences(catalogue: Catalogue, protection: MeasureProtection, language: str) -> tuple[str, ...]:
    _ = translations(language).gettext
    said = []
    if protection.associated_with is not None:
        measure = _measure(catalogue, protection.cube, protection.associated_with, language)
        said.append(_("Hidden wherever “%(measure)s” is hidden.") % {"measure": measure})
    said += [_rule(rule, language) for rule in protection.rules]
    return tuple(dict.fromkeys(said))


def _rule(rule: RuleDefinition, language: str) -> str:
    _ = translations(language).gettext
    if rule.name == "threshold":
        return _("Hidden when fewer than %(n)s contribute to it.") % {"n": plain_number(rule.parameters["n"])}
    if rule.name == "request":
        return _("Hidden when it would tell about a contributor that asked for confidentiality.")
    if rule.name == "dominance":
        return _("Hidden when one or a few contributors make up most of it.")
    if rule.name == "p-percent":
        return _("Hidden when one contributor could estimate another's figure closely.")
    return _("Hidden when it is zero and that would tell about everybody in it.")
