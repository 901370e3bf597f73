"""Measures, calculated members and named sets of a Mondrian schema as TOML."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lxml import etree

from app.domain.errors import UserError
from app.domain.numbers import format_decimals
from app.mdx import parse_expression, quote
from app.mdx.tree import String
from app.pipeline.mondrian_draft import Draft, Notes, remarks
from app.pipeline.relations import Select, quoted, sql_child
from app.pipeline.toml_text import pairs

#: Formats that print other digits there than in Analysis Services, whose names they bear here.
_NAMED = {"standard": "#,##0", "fixed": "0"}
_AGGREGATORS = ("sum", "count", "min", "max", "avg", "distinct-count", "median")


def add_measures(draft: Draft, elements: Sequence[etree._Element], facts: Select, notes: Notes) -> None:
    """Add the measures of one part's facts to a cube; averages last, which need what others count."""
    part = _Part(draft, facts, notes)
    for element in sorted(elements, key=lambda item: item.get("aggregator") == "avg"):
        part.measure(element)


class _Part:
    def __init__(self, draft: Draft, facts: Select, notes: Notes) -> None:
        self.draft, self.facts, self.notes = draft, facts, notes
        #: The measure that counts the facts in which an expression is something, by the expression.
        self.counts: dict[str, str] = {}

    def measure(self, element: etree._Element) -> None:
        draft, name = self.draft, element.get("name", "")
        if not draft.grants.sees_measure(draft.name, name):
            draft.unseen.add(name.lower())
            return
        if name in draft.measures:
            self.notes.leave(element, f"measure {name} is left: there is one of that name already.")
            return
        sql = sql_child(element, "MeasureExpression")
        if sql is None and element.get("column"):
            sql = f"{quoted(self.facts.relation.alias)}.{quoted(element.get('column', ''))}"
        aggregator = element.get("aggregator", "sum").replace("distinct count", "distinct-count")
        if aggregator not in _AGGREGATORS or (sql is None and aggregator != "count"):
            self.notes.leave(element, f"measure {name} is left: aggregator {aggregator} isn't known here.")
            return
        notes, caption = remarks(element), element.get("caption")
        whole = aggregator in ("count", "distinct-count") or element.get("datatype") == "Integer"
        # Where nothing is said, amounts keep their cents.
        form = _plain_format(element.get("formatString")) or ("#,##0" if whole else "#,##0.##")
        style = pairs(format=form, decimals=0 if whole else format_decimals(form))
        if aggregator == "count":
            if self.counts:
                what = f"{next(iter(self.counts.values()))} counts these facts already."
                self.notes.leave(element, f"measure {name} is left: {what}")
                return
            draft.measures[name] = self.count(name, sql or "1", [*notes, *pairs(caption=caption)], style)
        elif aggregator == "avg":
            self.average(element, name, sql or "", [*notes, *pairs(caption=caption)], style, form)
        else:
            head = pairs(
                name=name, caption=caption, aggregator=aggregator, column=self.facts.add(sql or "", name)
            )
            draft.measures[name] = "\n".join(["", "[[measure]]", *notes, *head, *style])

    def count(self, name: str, sql: str, notes: Sequence[str], style: Sequence[str]) -> str:
        """A count of one part's facts: beside others it is a sum of ones, so that rows of others are none."""
        aggregator = "count"
        if self.draft.parts or self.counts:
            aggregator, column = "sum", f"case when {sql} is null then null else 1 end"
        else:
            column = sql
        self.counts[sql] = name
        lines = pairs(name=name, aggregator=aggregator, column=self.facts.add(column, name))
        return "\n".join(["", "[[measure]]", *notes, *lines, *style])

    def average(
        self,
        element: etree._Element,
        name: str,
        sql: str,
        notes: Sequence[str],
        style: Sequence[str],
        form: str,
    ) -> None:
        """A sum divided by how many facts have a value, which are measures that can be protected."""
        total = f"{name} (sum)"
        head = pairs(
            name=total, aggregator="sum", column=self.facts.add(sql, name), decimals=format_decimals(form)
        )
        self.draft.helpers[total] = "\n".join(["", "[[measure]]", *head])
        if sql not in self.counts:
            number = f"{name} (count)"
            self.draft.helpers[number] = self.count(number, sql, [], [])
        divisor = self.counts[sql]
        what = f"it became a sum divided by {divisor}, so that both can be protected"
        self.notes.leave(element, f"measure {name} is an average: {what}.")
        formula = f"[Measures].{quote(total)} / [Measures].{quote(divisor)}"
        block = [*notes, *pairs(name=name, formula=formula), *style]
        self.draft.blocks.append("\n".join(["", "[[calculated]]", *block]))


def needed_measures(cube: etree._Element, wanted: Sequence[str]) -> dict[str, str]:
    """Measures of a cube that the calculated ones among those wanted are made of, by name: which needs it."""
    formulas = {item.get("name", ""): formula_text(item) for item in cube.findall("CalculatedMember")}
    known = {name.lower(): name for name in formulas}
    known.update((item.get("name", "").lower(), item.get("name", "")) for item in cube.findall("Measure"))
    found: dict[str, str] = {}
    open_ends = list(wanted)
    while open_ends:
        by = open_ends.pop(0)
        for word in _names_in(formulas.get(by, "")):
            name = known.get(word)
            if name is not None and name not in found and name not in wanted:
                found[name] = by
                open_ends.append(name)
    return found


def _names_in(formula: str) -> list[str]:
    """Names that a formula names, in small letters, as they come."""
    return [(quoted or plain).lower() for quoted, plain in re.findall(r"\[([^\]]*)\]|(\w+)", formula)]


def formula_text(element: etree._Element) -> str:
    return (element.findtext("Formula") or element.get("formula") or "").strip()


def add_calculated(draft: Draft, element: etree._Element, notes: Notes) -> None:
    """Add a calculated member to a cube."""
    name = element.get("name", "")
    properties = {}
    for item in element.findall("CalculatedMemberProperty"):
        said, worked_out = item.get("value"), (item.get("expression") or "").strip()
        if said is None and worked_out:
            said = _constant(worked_out)
            if said is None:
                what = f"{item.get('name')} of calculated member {name}"
                notes.leave(element, f"{what} is left: it is not the same in all cells.")
                continue
        properties[item.get("name", "")] = said or ""
    if "MEMBER_ORDINAL" in properties:
        notes.leave(element, f"MEMBER_ORDINAL of calculated member {name} is left.")
    formula = _formula(draft, element, f"calculated member {name}", notes)
    if formula is None:
        return
    owner = element.get("hierarchy") or quote(element.get("dimension", "Measures"))
    if owner.strip("[]") == "Measures" and not draft.grants.sees_measure(draft.name, name):
        return
    form = _plain_format(element.get("formatString") or properties.get("FORMAT_STRING"))
    lines = pairs(
        on=element.get("parent") or owner,
        name=name,
        caption=element.get("caption"),
        formula=formula,
        format=form,
        decimals=format_decimals(form),
    )
    order = properties.get("SOLVE_ORDER", "")
    if re.fullmatch(r"-?\d+", order):
        lines.append(f"solve-order = {int(order)}")
    block = "\n".join(["", "[[calculated]]", *remarks(element), *lines])
    if block not in draft.blocks:
        draft.blocks.append(block)


def add_named_set(draft: Draft, element: etree._Element, notes: Notes) -> None:
    """Add a named set to a cube."""
    formula = _formula(draft, element, f"named set {element.get('name')}", notes)
    if formula is not None:
        lines = pairs(name=element.get("name"), formula=formula)
        draft.blocks.append("\n".join(["", "[[named-set]]", *remarks(element), *lines]))


def _formula(draft: Draft, element: etree._Element, what: str, notes: Notes) -> str | None:
    text = formula_text(element)
    try:
        parse_expression(text)
    except UserError as error:
        notes.leave(element, f"{what} is left: {error.mistakes[0].cause}")
        return None
    if not draft.unseen.isdisjoint(_names_in(text)):
        notes.leave(element, f"{what} is left: it names what the role doesn't see.")
        return None
    return text


def _constant(expression: str) -> str | None:
    """The text or number that an expression is; None for one that has to be worked out."""
    try:
        node = parse_expression(expression)
    except UserError:
        return None
    if isinstance(node, String):
        return node.value
    return expression if re.fullmatch(r"-?\d+", expression) else None


def _plain_format(form: str | None) -> str | None:
    """A format without its style, as of ``|#,##0|style=red``; named ones as Mondrian prints them."""
    plain = form.split("|")[1] if form and form.startswith("|") else form
    return _NAMED.get(plain.strip().lower(), plain) if plain else plain
