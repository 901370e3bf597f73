"""define: what is protected and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from app.domain.publication import (
    CellDecision,
    Confidentiality,
    CubeDefinition,
    MeasureProtection,
    RuleDefinition,
)
from app.pipeline.toml import Reader, nearest
from solver.errors import InputError
from solver.rules import Dominance, PPercent, Request, Rule, Threshold, Zero

WEIGHTS = ("value", "unit", "log", "distance")
#: Aggregators of measures that others may be weighed by: a cell's is the sum over its contributors.
WEIGHING = ("sum", "count")
DECISIONS = ("hide", "show", "waive")
#: Decisions on single cells.
MOST_CELLS = 20_000
RESERVED = ("zeros", "insiders", "effort", "cells")

#: Parameters of each rule: those it must have, those it may have.
PARAMETERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "threshold": (("n",), ("p",)),
    "dominance": (("n", "k"), ()),
    "p-percent": (("p",), ()),
    "request": (("k",), ()),
    "zero": (("width",), ()),
}

REQUESTED = "1"
DEFAULT_EFFORT = Confidentiality((), (), False, True).effort


def rule_of(definition: RuleDefinition) -> Rule:
    """The solver's rule of a definition.

    Raises
    ------
    solver.errors.InputError
        If a parameter is out of range.
    """
    given = definition.parameters
    match definition.name:
        case "threshold":
            return Threshold(_whole(given["n"]), given.get("p", 10.0))
        case "dominance":
            return Dominance(_whole(given["n"]), given["k"])
        case "p-percent":
            return PPercent(given["p"])
        case "request":
            return Request({REQUESTED: given["k"]})
        case "zero":
            return Zero(given["width"])
    raise InputError(f"rule {definition.name!r} is unknown.")


def _whole(number: float) -> int:
    """The number as the rules take it; they refuse one that isn't whole."""
    return int(number) if number == int(number) else cast(int, number)


def read_confidentiality(
    root: Reader, cubes: Mapping[str, CubeDefinition], cubes_uncertain: bool
) -> Confidentiality:
    """The confidentiality section; mistakes are noted.

    ``cubes_uncertain``: some cube couldn't be read, so a name that isn't found may be right.
    """
    section = root.table("confidentiality", required=True)
    if section is None:
        return Confidentiality((), (), False, True)
    hide_zeros = section.choice("zeros", ("show", "hide"), "show") == "hide"
    insiders = section.flag("insiders", True)
    effort = section.number("effort", DEFAULT_EFFORT)
    if not 0 < effort < float("inf"):
        section.wrong("Key effort is out of range.", "Give seconds, above 0.", "effort")
    protections: list[MeasureProtection] = []
    for name in section.values:
        if name in RESERVED:
            continue
        table = section.table(name)
        if table is None:
            continue
        if name not in cubes:
            if not (cubes_uncertain and name):
                section.wrong(f"There is no cube {name}.", nearest(name, [*cubes, *RESERVED]), name)
            continue
        protections.extend(_protections(table, cubes[name]))
    for cube in cubes.values():
        stated = section.values.get(cube.name)
        _ask_for_rules(section, cube, stated if isinstance(stated, dict) else {})
    decisions = tuple(_decisions(section, cubes))
    section.done(*section.values)
    return Confidentiality(tuple(protections), decisions, hide_zeros, insiders, effort)


def _protections(section: Reader, cube: CubeDefinition) -> Iterator[MeasureProtection]:
    measures = [measure.name for measure in cube.measures]
    partner: dict[str, str] = {}
    for name in section.values:
        table = section.table(name)
        if table is None:
            continue
        if name not in measures:
            section.wrong(f"Cube {cube.name} has no measure {name}.", nearest(name, measures), name)
            continue
        associated = table.text("with")
        if associated is not None:
            if associated == name or associated not in measures:
                table.wrong(
                    f"Cube {cube.name} has no other measure {associated}.",
                    nearest(associated, [measure for measure in measures if measure != name]),
                    "with",
                )
            elif associated not in section.values:
                table.wrong(
                    f"Measure {associated} has no rules of its own.",
                    f"Add [confidentiality.{cube.name}.{associated!r}].",
                    "with",
                )
            partner[name] = associated
            walked = [name]
            while walked[-1] in partner and len(walked) <= len(partner) + 1:
                walked.append(partner[walked[-1]])
            if len(walked) > len(partner) + 1:
                table.wrong("Measures protect each other in a circle.", "Let one stand alone.", "with")
        weight, weighed_by = _weight(table, cube)
        unions = table.flag("unions", False)
        if unions and not any(item.name == name and item.aggregator in WEIGHING for item in cube.measures):
            table.wrong(
                f"Measure {name} doesn't add up, so that no sum of hidden cells can be worked out.",
                "Leave unions out.",
                "unions",
            )
        rules = tuple(_rules(table))
        table.done()
        yield MeasureProtection(cube.name, name, rules, associated, weight, weighed_by, unions)


def _weight(table: Reader, cube: CubeDefinition) -> tuple[str, str]:
    """What hiding a cell costs: a word, or ``{ measure = "…" }``."""
    if not isinstance(table.values.get("weight"), dict):
        return table.choice("weight", WEIGHTS, "value"), ""
    inner = table.table("weight")
    assert inner is not None
    named = inner.text("measure", required=True) or ""
    inner.done()
    known = [item.name for item in cube.measures if item.aggregator in WEIGHING]
    if named and named not in known:
        inner.wrong(
            f"Cube {cube.name} has no measure {named} that adds up.", nearest(named, known), "measure"
        )
    return "measure", named


def _ask_for_rules(section: Reader, cube: CubeDefinition, stated: Mapping[str, object]) -> None:
    """Silence protects nothing: that a measure needs no protection has to be written."""
    for measure in cube.measures:
        table = stated.get(measure.name)
        if isinstance(table, dict) and not {"rules", "with"} & table.keys():
            section.wrong(
                f"Measure {measure.name} of cube {cube.name} has neither rules nor a measure to protect it.",
                'Give rules, or with = "…", or rules = [] if every number of it may be published.',
                cube.name,
            )
        elif table is None:
            section.wrong(
                f"Nothing is said of how measure {measure.name} of cube {cube.name} is protected.",
                f'Add [confidentiality.{cube.name}."{measure.name}"] with rules, or with rules = [] '
                "if every number of it may be published.",
                cube.name if cube.name in section.values else None,
            )


def _rules(table: Reader) -> Iterator[RuleDefinition]:
    names: set[str] = set()
    for entry in table.tables("rules"):
        written = entry.text("rule", required=True)
        if written is None:
            continue
        if written not in PARAMETERS:
            entry.wrong(f"There is no rule {written}.", nearest(written, list(PARAMETERS)), "rule")
            continue
        needed, optional = PARAMETERS[written]
        parameters = {
            key: entry.number(key, 0.0)
            for key in (*needed, *optional)
            if key in needed or key in entry.values
        }
        missing = [key for key in needed if key not in entry.values]
        if missing:
            entry.wrong(f"Rule {written} needs {' and '.join(missing)}.", "Add it.")
        entry.done(*needed, *optional)
        definition = RuleDefinition(written, parameters)
        if missing or any(not isinstance(entry.values[key], int | float) for key in parameters):
            continue
        try:
            rule = rule_of(definition)
        except InputError as error:
            entry.wrong(error.cause, error.remedy)
            continue
        if rule.name in names:
            entry.wrong(f"Rule {rule.name} is given twice.", "Keep one of the two.")
        names.add(rule.name)
        yield definition


def _decisions(section: Reader, cubes: Mapping[str, CubeDefinition]) -> Iterator[CellDecision]:
    for table in section.tables("cells", most=MOST_CELLS):
        cube = table.text("cube", required=len(cubes) != 1) or next(iter(cubes), "")
        measure = table.text("measure", required=True) or ""
        if cubes and cube not in cubes:
            table.wrong(f"There is no cube {cube}.", nearest(cube, list(cubes)), "cube")
        elif cubes and measure:
            known = [item.name for item in cubes[cube].measures]
            if measure not in known:
                table.wrong(f"Cube {cube} has no measure {measure}.", nearest(measure, known), "measure")
        members = table.strings("members", required=True)
        decision = cast(Literal["hide", "show", "waive"], table.choice("decision", DECISIONS))
        percent = table.number("percent", 10.0)
        if not 0 < percent < float("inf"):
            table.wrong("Key percent is out of range.", "Give a percentage above 0.", "percent")
        reason = table.text("reason", required=True) or ""
        table.done()
        yield CellDecision(cube, measure, members, decision, percent, reason, table.at())
