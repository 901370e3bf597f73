"""The confidentiality section as a form: read from its text, and written back without losing comments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable, Table

from app.domain.errors import Mistake, UserError
from app.domain.toml import read_toml
from app.domain.version import Files
from app.office.sheet_form import LONGEST_FORM
from app.pipeline.define_rules import DECISIONS, PARAMETERS, RESERVED, WEIGHTS

__all__ = [
    "BY_MEASURE",
    "FILE",
    "PARAMETERS",
    "WEIGHTS",
    "DecisionForm",
    "MeasureForm",
    "RuleForm",
    "RulesForm",
    "measures_of",
    "read_rules",
    "write_rules",
]

FILE = "publication.toml"
#: Before the name of a measure that another one is weighed by.
BY_MEASURE = "measure:"
_SHAPE = "The section has a shape that the form can't show."
_AS_TEXT = "Edit it as text."


@dataclass(frozen=True)
class RuleForm:
    """A rule by its name, with its parameters as they are typed."""

    rule: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class MeasureForm:
    """How a measure is protected.

    ``protector`` names the measure that it is tied to; ``weight`` is a word of the file's, or `BY_MEASURE`
    and a name; ``stated``: that there is no rule is written, so that every number may be published;
    ``unions``: sums of hidden cells are protected, too.
    """

    cube: str
    measure: str
    protector: str
    weight: str
    rules: tuple[RuleForm, ...]
    stated: bool
    unions: bool = False


@dataclass(frozen=True)
class DecisionForm:
    """A decision on one cell, as it is typed."""

    cube: str
    measure: str
    members: tuple[str, ...]
    decision: str
    percent: str
    reason: str


@dataclass(frozen=True)
class RulesForm:
    """What the form shows; ``effort`` is empty where the file says none."""

    hide_zeros: bool
    insiders: bool
    effort: str
    measures: tuple[MeasureForm, ...]
    decisions: tuple[DecisionForm, ...]


def measures_of(files: Files) -> dict[str, tuple[str, ...]]:
    """Names of the measures of each cube, as far as the cubes' files can be read."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(files.texts):
        if not (path.startswith("cubes/") and path.endswith(".toml")):
            continue
        try:
            cube = read_toml(files.texts[path])
        except (ValueError, RecursionError):
            continue
        name, listed = cube.get("name"), cube.get("measure")
        if isinstance(name, str) and isinstance(listed, list):
            names = [item.get("name") for item in listed if isinstance(item, dict)]
            found[name] = tuple(name for name in names if isinstance(name, str))
    return found


def read_rules(text: str, cubes: Mapping[str, Sequence[str]]) -> RulesForm:
    """The form of a publication's text, with every measure of its cubes.

    Raises
    ------
    UserError
        If it isn't TOML, or a part has a shape that the form can't show.
    """
    try:
        section = read_toml(text).get("confidentiality", {})
    except (ValueError, RecursionError):
        raise UserError(Mistake(FILE, 0, 0, "This isn't TOML.", _AS_TEXT)) from None
    _require(isinstance(section, dict))
    zeros, insiders = section.get("zeros", "show"), section.get("insiders", True)
    _require(zeros in ("show", "hide") and isinstance(insiders, bool))
    measures = []
    for cube in dict.fromkeys((*cubes, *(name for name in section if name not in RESERVED))):
        tables = section.get(cube, {})
        _require(isinstance(tables, dict))
        for measure in dict.fromkeys((*cubes.get(cube, ()), *tables)):
            table = tables.get(measure, {})
            _require(isinstance(table, dict))
            measures.append(_measure(cube, measure, table))
    decisions = section.get("cells", [])
    _require(isinstance(decisions, list))
    return RulesForm(
        zeros == "hide",
        insiders,
        _typed(section["effort"]) if "effort" in section else "",
        tuple(measures),
        tuple(_decision(table, cubes) for table in decisions),
    )


def write_rules(text: str, form: RulesForm, cubes: Mapping[str, Sequence[str]]) -> str:
    """The publication's text with what the form says; the rest of it stays as it was written.

    Raises
    ------
    UserError
        If a number is none, or the text has a shape that the form can't write.
    """
    before = read_rules(text, cubes)
    if before == form:
        return text
    if len(text) > LONGEST_FORM:
        raise UserError(Mistake(FILE, 0, 0, "The file is too long for a form.", _AS_TEXT))
    try:
        document = tomlkit.parse(text)
    except TOMLKitError:
        raise UserError(Mistake(FILE, 0, 0, "This isn't TOML.", _AS_TEXT)) from None
    if "confidentiality" not in document:
        document["confidentiality"] = tomlkit.table()
    section: Any = document["confidentiality"]
    if form.hide_zeros != before.hide_zeros:
        section["zeros"] = "hide" if form.hide_zeros else "show"
    if form.insiders != before.insiders:
        section["insiders"] = form.insiders
    if form.effort != before.effort:
        _put(section, "effort", _number(form.effort) if form.effort else None)
    was = {(item.cube, item.measure): item for item in before.measures}
    for item in form.measures:
        if item != was.get((item.cube, item.measure)):
            _write_measure(section, item)
    _write_decisions(section, before.decisions, form.decisions)
    written = tomlkit.dumps(document)
    if read_rules(written, cubes) != _plain(form):
        raise UserError(Mistake(FILE, 0, 0, _SHAPE, _AS_TEXT))
    return written


# ---------------------------------------------------------------------- reading


def _require(holds: bool) -> None:
    if not holds:
        raise UserError(Mistake(FILE, 0, 0, _SHAPE, _AS_TEXT))


def _measure(cube: str, measure: str, table: Mapping[str, Any]) -> MeasureForm:
    weight, rules, protector = table.get("weight", "value"), table.get("rules", []), table.get("with", "")
    if isinstance(weight, dict) and weight.keys() == {"measure"} and isinstance(weight["measure"], str):
        weight = BY_MEASURE + weight["measure"]
    _require(isinstance(weight, str) and isinstance(rules, list) and isinstance(protector, str))
    _require(weight in WEIGHTS or weight.startswith(BY_MEASURE))
    unions = table.get("unions", False)
    _require(isinstance(unions, bool))
    stated = table.get("rules") == []
    return MeasureForm(cube, measure, protector, weight, tuple(_rule(rule) for rule in rules), stated, unions)


def _rule(table: Any) -> RuleForm:
    _require(isinstance(table, dict) and table.get("rule") in PARAMETERS)
    needed, optional = PARAMETERS[table["rule"]]
    _require(table.keys() <= {"rule", *needed, *optional})
    parameters = {key: _typed(table[key]) for key in (*needed, *optional) if key in table}
    return RuleForm(table["rule"], parameters)


def _typed(value: Any) -> str:
    _require(isinstance(value, int | float) and not isinstance(value, bool))
    return f"{value:.15g}"


def _decision(table: Any, cubes: Mapping[str, Sequence[str]]) -> DecisionForm:
    _require(isinstance(table, dict))
    cube = table.get("cube", next(iter(cubes), "") if len(cubes) == 1 else "")
    members, decision = table.get("members", []), table.get("decision", "")
    texts = (cube, table.get("measure", ""), table.get("reason", ""), decision)
    _require(isinstance(members, list) and all(isinstance(item, str) for item in (*members, *texts)))
    _require(decision in DECISIONS)
    percent = _typed(table["percent"]) if "percent" in table else ""
    return DecisionForm(cube, texts[1], tuple(members), decision, percent, texts[2])


# ---------------------------------------------------------------------- writing


def _number(typed: str) -> int | float:
    """A number as typed, with a point or a comma.

    Raises
    ------
    UserError
    """
    try:
        value = float(typed.strip().replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e15:
        raise UserError(Mistake(FILE, 0, 0, f"This isn't a number: {typed[:40]}"))
    return int(value) if value == int(value) else value


def _plain(form: RulesForm) -> RulesForm:
    """The form as it is read back: numbers in their own writing."""

    def plain(typed: str) -> str:
        return _typed(_number(typed)) if typed else ""

    def rule(item: RuleForm) -> RuleForm:
        return RuleForm(item.rule, {key: plain(typed) for key, typed in item.parameters.items() if typed})

    measures = (
        replace(
            item,
            rules=tuple(map(rule, item.rules)),
            stated=item.stated and not item.rules,
        )
        for item in form.measures
    )
    decisions = (replace(item, percent=plain(item.percent)) for item in form.decisions)
    return replace(form, effort=plain(form.effort), measures=tuple(measures), decisions=tuple(decisions))


def _put(table: Any, key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    elif table.get(key) != value:
        table[key] = value


def _write_measure(section: Any, item: MeasureForm) -> None:
    if item.cube not in section:
        section[item.cube] = tomlkit.table(is_super_table=True)
    tables = section[item.cube]
    if item.measure not in tables:
        if not (item.protector or item.rules or item.stated or item.unions):
            return  # Nothing was said of it, and nothing is.
        tables[item.measure] = tomlkit.table()
    table = tables[item.measure]
    _put(table, "with", item.protector or None)
    if item.weight.startswith(BY_MEASURE):
        other = tomlkit.inline_table()
        other["measure"] = item.weight.removeprefix(BY_MEASURE)
        _put(table, "weight", other)
    elif item.weight != "value" or "weight" in table:
        _put(table, "weight", item.weight)
    if item.unions or "unions" in table:
        _put(table, "unions", item.unions)
    if not item.rules:
        _put(table, "rules", tomlkit.array() if item.stated else None)
        return
    there = table.get("rules")
    rules = list(_rules(item.rules))
    if isinstance(there, AoT):
        table["rules"] = tomlkit.aot()
        for rule in rules:
            added = tomlkit.table()
            added.update(rule)
            table["rules"].append(added)
        return
    array: Array = tomlkit.array()
    for rule in rules:
        array.append(rule)
    if there != array:
        table["rules"] = array.multiline(len(rules) > 2)


def _rules(rules: Sequence[RuleForm]) -> Iterator[InlineTable]:
    for rule in rules:
        written = tomlkit.inline_table()
        written["rule"] = rule.rule
        for key, typed in rule.parameters.items():
            if typed:
                written[key] = _number(typed)
        yield written


def _write_decisions(section: Any, before: Sequence[DecisionForm], after: Sequence[DecisionForm]) -> None:
    """Decisions are changed or taken away; new ones are made where the cell is seen."""
    if before == after:
        return
    there = section["cells"]
    left = list(after)
    for number in reversed(range(len(before))):
        old = before[number]
        same = left[-1] if left else None
        if same is None or _cell(same) != _cell(old):
            del there[number]
            continue
        left.pop()
        table: Table = there[number]
        _put(table, "decision", same.decision)
        _put(table, "percent", _number(same.percent) if same.percent else None)
        _put(table, "reason", same.reason)
    if not len(there):
        del section["cells"]


def _cell(item: DecisionForm) -> tuple[object, ...]:
    return item.cube, item.measure, item.members
