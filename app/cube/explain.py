"""What the formulas of calculated members become, in words and signs for whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from app.cube.cells import Plan, Solved, solve
from app.cube.evaluate import Evaluator
from app.cube.explanation import Case, Explanation
from app.cube.source import CellSource
from app.domain.cube import IntArray
from app.domain.errors import UserError
from app.domain.formula import Apply, Formula, Linear, Overrides, Recompute, Text, Withheld, add, scale
from app.domain.numbers import plain_number
from app.domain.styles import style_of

#: Terms of a sum, and operands of a formula, that are written out.
_SHOWN = 40
_SIGNS = {"ratio": "/", "product": "·", "and": "AND", "or": "OR", "xor": "XOR"}
#: Kinds of formulas that say an inequality of their cells.
_QUOTIENTS = frozenset(["ratio", "average"])
_SHOWN_WITH = "No relation follows from it: it is shown where all the cells are shown that it is made of."
_COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
Place = tuple[int, int]


def explain(
    ev: Evaluator, added: Sequence[Place], coords: IntArray, base: IntArray, source: CellSource
) -> tuple[Explanation, ...]:
    """Explain the members added, and those that the cells or their formulas hang on.

    Parameters
    ----------
    coords : int32[n, 1+H]
        Cells of the answer.
    base : int32[1, 1+H]
        The cell that a member is tried at which no cell of the answer stands at.
    """
    pending = dict.fromkeys(added)
    pending.update(
        dict.fromkeys(place for place in ev.definitions if (coords[:, place[0]] == place[1]).any())
    )
    queue, found = list(pending), []
    while queue:
        place = queue.pop(0)
        definition = ev.definitions[place]
        column, number = place
        name = ev.unique_name(column, number)
        cells = coords[coords[:, column] == number]
        if not len(cells):
            cells = base.copy()
            cells[:, column] = number
        try:
            solved = solve(ev, cells, source)
        except UserError as error:
            found.append(Explanation(name, (), error.mistakes))
            continue
        cases = [
            case
            for plan in solved.plans
            if plan.definition is definition
            for case in _cases(ev, plan, solved, column)
        ]
        found.append(Explanation(name, _merged(cases)))
        used = {(p.definition.member.column, p.definition.number): None for p in solved.plans}
        queue.extend(other for other in used if other not in pending)
        pending.update(used)
    return tuple(found)


def _merged(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Equal cases as one, with the cells of all."""
    cells: dict[Case, int] = {}
    for case in cases:
        key = replace(case, cells=0)
        cells[key] = cells.get(key, 0) + case.cells
    return tuple(replace(case, cells=n) for case, n in cells.items())


def _cases(ev: Evaluator, plan: Plan, solved: Solved, column: int) -> Iterator[Case]:
    """A case for each kind of cell that the formula is for: a sum of ratios isn't linear."""
    when = tuple(ev.unique_name(c, m) for c, m in sorted(plan.known.items()) if c != column)
    kinds: dict[str, list[int]] = {}
    for place, row in enumerate(plan.rows.tolist()):
        kinds.setdefault(solved.kind.get(row, "linear"), []).append(place)
    for kind, places in kinds.items():
        case = _case(ev, plan, solved, places[0], kind)
        yield replace(case, when=when, cells=len(places))


def _case(ev: Evaluator, plan: Plan, solved: Solved, place: int, kind: str) -> Case:
    row = int(plan.rows[place])
    formula = _text(ev, plan.formula)
    used = [int(row) for operands in plan.operands for row in operands[place]]
    if kind == "linear":
        terms = plan.definition.member.terms
        resolved = ""
        if terms is not None:
            own = plan.definition.member.column
            resolved = _sum([(ev.unique_name(own, n), _exact(coef)) for n, coef in terms], None)
        elif solved.calculated[used].any():
            resolved = _resolved(ev, solved, row)
        return Case((), 0, kind, formula, "" if resolved == formula else resolved)
    start, end = solved.depends.indptr[row : row + 2]
    touched = solved.depends.indices[start:end][:_SHOWN].tolist()
    operands = (_cell(ev, solved, row, other) for other in touched)
    simple = all(other not in solved.kind for other in used)
    inequality = _inequality(ev, plan.formula, _decimals(ev, solved.coords[row])) if simple else ""
    neither = None
    if kind not in _QUOTIENTS and kind != "rank":
        definition = plan.definition
        cause = f"{definition.member.name} is neither a sum nor a quotient of cells, but {_a_kind(kind)}."
        neither = definition.source.mistake(definition.formula.at, cause, _SHOWN_WITH)
    return Case((), 0, kind, formula, "", tuple(operands), inequality, neither)


def _a_kind(kind: str) -> str:
    if kind in _COMPARISONS or kind in ("and", "or", "xor", "not", "is-empty"):
        return "a truth of them"
    return {
        "if": "hangs on a condition that they decide",
        "product": "a product of them",
        "scale": "a product of them",
    }.get(kind, f"the {kind} of them")


def _exact(coefficient: float) -> Fraction:
    return Fraction(coefficient).limit_denominator(10**9)


def _reference(ev: Evaluator, reference: Overrides) -> str:
    names = [ev.unique_name(column, number) for column, number in reference]
    if not names:
        return "(this cell)"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _cell(ev: Evaluator, solved: Solved, row: int, other: int) -> str:
    here, there = solved.coords[row], solved.coords[other]
    changed = np.flatnonzero(here != there).tolist()
    return _reference(ev, tuple((column, int(there[column])) for column in changed))


def _resolved(ev: Evaluator, solved: Solved, row: int) -> str:
    start, end = solved.linear.indptr[row : row + 2]
    cells = zip(
        solved.linear.indices[start:end].tolist(), solved.linear.data[start:end].tolist(), strict=True
    )
    ordered = sorted(cells, key=lambda cell: tuple(solved.coords[cell[0]].tolist()))
    terms = [(_cell(ev, solved, row, other), _exact(coef)) for other, coef in ordered]
    constant = _exact(float(solved.constant[row]))
    return _sum(terms, constant or None)


def number_text(value: Fraction) -> str:
    """An exact number: as a decimal where that ends, else as a fraction."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1 or value.denominator > 10**12:
        return f"{value.numerator}/{value.denominator}"
    return plain_number(float(value))


def _sum(terms: Sequence[tuple[str, Fraction]], constant: Fraction | None) -> str:
    parts: list[str] = []
    for text, coefficient in terms[:_SHOWN]:
        size = abs(coefficient)
        shown = text if size == 1 else f"{number_text(size)} · {text}"
        parts.append(f"{'-' if coefficient < 0 else '+'} {shown}")
    if len(terms) > _SHOWN:
        parts.append(f"+ … ({len(terms) - _SHOWN} more)")
    if constant is not None:
        parts.append(f"{'-' if constant < 0 else '+'} {number_text(abs(constant))}")
    if not parts:
        return "empty"
    whole = " ".join(parts)
    return whole.removeprefix("+ ") if whole.startswith("+") else f"-{whole.removeprefix('- ')}"


def _text(ev: Evaluator, formula: Formula) -> str:
    match formula:
        case Linear():
            terms = [(_reference(ev, reference), value) for reference, value in formula.terms.items()]
            return _sum(terms, formula.constant)
        case Text(words):
            return f'"{words}"'
        case Withheld(kind):
            return f"{kind} among the values that are shown"
        case Recompute():
            there = [ev.unique_name(column, number) for column, number in formula.elsewhere]
            for columns, rows in formula.groups:
                places = (zip(columns, row, strict=True) for row in rows[:_SHOWN])
                names = [[ev.unique_name(*place) for place in row] for row in places]
                told = (name[0] if len(name) == 1 else f"({', '.join(name)})" for name in names)
                there.append(f"{{{', '.join(told)}}}")
            return f"{formula.function} of the facts of {', '.join(there)}"
        case Apply(function, arguments):
            parts = [_bracketed(ev, argument) for argument in arguments]
            if function in _SIGNS or function in _COMPARISONS:
                return f" {_SIGNS.get(function, function)} ".join(parts)
            if function == "scale":
                return " · ".join(parts[::-1])
            if function == "sum":
                return " + ".join(parts)
            inner = [_text(ev, argument) for argument in arguments[:_SHOWN]]
            more = ["…"] if len(arguments) > _SHOWN else []
            return f"{function}({', '.join([*inner, *more])})"


def _bracketed(ev: Evaluator, formula: Formula) -> str:
    text = _text(ev, formula)
    if isinstance(formula, Linear):
        alone = len(formula.terms) + (formula.constant is not None) <= 1
        return text if alone and not text.startswith("-") else f"({text})"
    return f"({text})" if isinstance(formula, Apply) else text


def _decimals(ev: Evaluator, cell: IntArray) -> int:
    calculated = [
        ev.definitions[column, number].member
        for column, number in enumerate(cell.tolist())
        if number >= ev.columns[column].hierarchy.size
    ]
    return style_of(ev.names.cube, int(cell[0]), calculated).decimals


def _inequality(ev: Evaluator, formula: Formula, decimals: int) -> str:
    """The two sides that a printed ratio is between, by half a unit of its last digit."""
    factor, shift, inner = Fraction(1), Fraction(0), formula
    while isinstance(inner, Apply) and inner.function in ("scale", "sum"):
        rest = [part for part in inner.arguments if isinstance(part, Linear) and part.is_constant]
        others = [part for part in inner.arguments if part not in rest]
        if len(others) != 1 or len(rest) != 1:
            return ""
        amount = rest[0].constant or Fraction(0)
        if inner.function == "scale":
            factor *= amount
        else:
            shift += factor * amount
        inner = others[0]
    if not isinstance(inner, Apply):
        return ""
    half = Fraction(1, 2 * 10**decimals)
    low, high = (_sum([("r", Fraction(1))], side) for side in (-shift - half, half - shift))
    if inner.function == "average":
        top: Formula = scale(add(inner.arguments), factor)
        below = "n"
        note = "n: how many of them aren't empty"
    elif inner.function == "ratio" and all(isinstance(part, Linear) for part in inner.arguments):
        top, below = scale(inner.arguments[0], factor), _bracketed(ev, inner.arguments[1])
        note = "where the divisor is positive"
    else:
        return ""
    sides = f"({low}) · {below} ≤ {_text(ev, top)} ≤ ({high}) · {below}"
    digits = "1 decimal" if decimals == 1 else f"{decimals} decimals"
    return f"{sides}  [r: the value to {digits}; {note}]"
