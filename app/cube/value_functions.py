"""MDX functions that give values: sums and other statistics of cells, texts, truths."""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from functools import reduce

import numpy as np

from app.cube.arrays import compute
from app.cube.context import Context, Positions
from app.cube.evaluate import Evaluator, function
from app.cube.operators import to_truth
from app.cube.sets import distinct
from app.cube.values import SetValue, Value
from app.domain.cellset import FloatArray
from app.domain.cube import IntArray
from app.domain.formula import (
    EMPTY,
    Apply,
    Formula,
    FormulaError,
    Linear,
    Overrides,
    Recompute,
    Text,
    Withheld,
    add,
    constant,
)
from app.mdx import brief
from app.mdx.tree import Call, Expression

#: Tuples of which it is looked up one by one what they have in common.
_MOST_COMPARED = 5000


def set_of(ev: Evaluator, node: Expression | None, ctx: Context) -> SetValue:
    return ev.decided(ev.same_set(node, ctx), node, ctx)


def over_set(ev: Evaluator, members: SetValue, expression: Expression | None, ctx: Context) -> list[Formula]:
    """The expression (or the cell itself) at each position of a set."""
    ev.spend(len(members), expression, ctx)
    alike = ev.value_anywhere(expression, members, ctx)
    if isinstance(alike, Linear):
        moved = [(_moves(reference, members.columns), value) for reference, value in alike.terms.items()]
        return [
            Linear(
                alike.constant,
                {
                    tuple((c, number if place < 0 else row[place]) for c, place, number in moves): value
                    for moves, value in moved
                },
            )
            for row in members.rows.tolist()
        ]
    return [ev.to_formula(expression, ctx.at(position)) for position in members.tuples()]


def _moves(reference: Overrides, columns: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """A reference as it is at a position of a set: columns, in order, with the place in the tuple (-1: none)
    or the number that the reference has itself.
    """
    own = dict(reference)
    return [
        (column, -1, own[column]) if column in own else (column, columns.index(column), -1)
        for column in sorted({*own, *columns})
    ]


@function("SUM")
def _sum(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, expression = ev.arguments(call, 1, 2, ctx)
    members = set_of(ev, target, ctx)
    alike = ev.value_anywhere(expression, members, ctx)
    known = ev.kept.get((id(call), id(members.rows)))
    if known is not None and alike is not None and known[0] == alike:
        total: Formula = known[1]
        return total
    total = add(over_set(ev, members, expression, ctx))
    if alike is not None:
        # With the call and the rows, so that their numbers stay theirs.
        ev.kept[id(call), id(members.rows)] = alike, total, call, members.rows
    return total


@function("AGGREGATE")
def _aggregate(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The measure over all positions together, by its own aggregator."""
    target, expression = ev.arguments(call, 1, 2, ctx)
    members = set_of(ev, target, ctx)
    if not len(members):
        return EMPTY
    formulas = over_set(ev, members, expression, ctx)
    measures = {_measure_of(formula, ctx) for formula in formulas}
    cube = ev.names.cube
    if all(number < len(cube.measures) and cube.measures[number].additive for number in measures):
        return add(formulas)
    (measure,) = measures if len(measures) == 1 else (-1,)
    if not 0 <= measure < len(cube.measures):
        cause = "Aggregate of a calculated measure has no meaning of its own."
        raise ev.error(ctx, call.at, cause, "Use Sum, or give the member a lower SOLVE_ORDER.")
    if len(formulas) == 1:
        return formulas[0]
    if members.columns == (0,):
        raise ev.error(ctx, call.at, "Aggregate of different measures has no meaning.")
    parts = {
        column: np.unique(members.rows[:, place]) for place, column in enumerate(members.columns) if column
    }
    if len(distinct(members)) != math.prod(map(len, parts.values())):
        name, aggregator = cube.measures[measure].name, cube.measures[measure].aggregator
        if aggregator in ("min", "max"):
            return Apply(aggregator, tuple(formulas))
        rows = _disjoint_tuples(ev, members, call, ctx)
        if aggregator != "distinct-count" and _meet(ev, members.columns, rows):
            cause = f"Aggregate of {name} would take facts that several of these tuples have more than once."
            raise ev.error(ctx, call.at, cause, "Give tuples that have nothing in common.")
        return Recompute(aggregator, ((members.columns, rows),), _elsewhere(formulas, parts))
    groups = tuple(
        ((column,), tuple((number,) for number in _disjoint_members(ev, column, numbers, call, ctx)))
        for column, numbers in parts.items()
    )
    return Recompute(cube.measures[measure].aggregator, groups, _elsewhere(formulas, parts))


def _elsewhere(formulas: list[Formula], parts: Collection[int]) -> Overrides:
    """What references to cells say of other columns than these."""
    references = [formula.terms for formula in formulas if isinstance(formula, Linear)]
    return tuple(part for part in next(iter(references[0])) if part[0] not in parts)


def _disjoint_tuples(
    ev: Evaluator, members: SetValue, call: Call, ctx: Context
) -> tuple[tuple[int, ...], ...]:
    """Tuples of own members, without those of which all members stand beneath another one's."""
    placed = [
        ev.placed_members(column, members.rows[:, place]) for place, column in enumerate(members.columns)
    ]
    rows = np.unique(np.array(placed, dtype=np.int32).T, axis=0)
    last = []
    for place, column in enumerate(members.columns):
        tree = ev.columns[column].hierarchy
        if rows[:, place].max() >= tree.size:
            cause = "A measure can't be taken again over tuples that hold calculated members."
            raise ev.error(ctx, call.at, cause)
        last.append(tree.last_descendant[rows[:, place]])
    ends = np.array(last).T
    if _are_disjoint(ev, members.columns, rows):
        return tuple(tuple(row) for row in rows.tolist())
    if len(rows) > _MOST_COMPARED:
        cause = f"A measure can't be taken again over more than {_MOST_COMPARED:,} tuples of several levels."
        raise ev.error(ctx, call.at, cause)
    kept = [row for row in rows if np.count_nonzero(((rows <= row) & (row <= ends)).all(axis=1)) == 1]
    return tuple(tuple(row.tolist()) for row in kept)


def _are_disjoint(ev: Evaluator, columns: tuple[int, ...], rows: IntArray) -> bool:
    """Whether it is plain that different tuples have nothing in common: no member can be beneath another."""
    depths = (ev.columns[c].hierarchy.depth[rows[:, place]] for place, c in enumerate(columns))
    return all(bool((depth == depth[0]).all()) for depth in depths)


def _meet(ev: Evaluator, columns: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> bool:
    """Whether some facts are in two of the tuples."""
    table = np.array(rows)
    if _are_disjoint(ev, columns, table):
        return False
    ends = np.array([ev.columns[c].hierarchy.last_descendant[table[:, p]] for p, c in enumerate(columns)]).T
    return any(
        np.count_nonzero(((table <= end) & (row <= ends)).all(axis=1)) > 1
        for row, end in zip(table, ends, strict=True)
    )


def _disjoint_members(
    ev: Evaluator, column: int, numbers: IntArray, call: Call, ctx: Context
) -> tuple[int, ...]:
    """Own members that members of a column take in, without those that stand beneath another one."""
    tree = ev.columns[column].hierarchy
    own: set[int] = set()
    for number in ev.placed_members(column, numbers):
        if number < tree.size:
            own.add(number)
            continue
        calculated = ev.definitions[column, number].member
        if not calculated.is_group:
            name = brief(calculated.name)
            cause = f"{name} isn't a group of members, so a measure can't be taken over it again."
            raise ev.error(ctx, call.at, cause)
        own.update(member for member, _ in calculated.terms or ())
    kept: list[int] = []
    for number in sorted(own):
        if not kept or number > tree.last_descendant[kept[-1]]:
            kept.append(number)
    return tuple(kept)


def _measure_of(formula: Formula, ctx: Context) -> int:
    if not isinstance(formula, Linear) or len(formula.terms) != 1:
        return -2
    (reference,) = formula.terms
    return dict(reference).get(0, -1) if 0 in dict(reference) else ctx.current(0)


@function(
    "AVG",
    "MIN",
    "MAX",
    "MEDIAN",
    "STDEV",
    "STDDEV",
    "STDEVP",
    "STDDEVP",
    "VAR",
    "VARIANCE",
    "VARP",
    "VARIANCEP",
)
def _statistic(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, expression = ev.arguments(call, 1, 2, ctx)
    formulas = over_set(ev, set_of(ev, target, ctx), expression, ctx)
    names = {"AVG": "average", "STDDEV": "stdev", "STDDEVP": "stdevp", "VARIANCE": "var", "VARIANCEP": "varp"}
    name = call.function.upper()
    return Apply(names.get(name, name.lower()), tuple(formulas)) if formulas else EMPTY


@function("COUNT")
def _count(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, word = ev.arguments(call, 1, 2, ctx)
    if isinstance(target, Call) and target.function.upper() == "LEVELS" and target.arguments is None:
        return constant(len(ev.columns[ev.to_column(target.target, ctx)].hierarchy.levels))
    members = set_of(ev, target, ctx)
    flag = ev.flag(word, ("EXCLUDEEMPTY", "INCLUDEEMPTY"), ctx)
    if flag != "EXCLUDEEMPTY":
        return constant(len(members))
    return Apply("nonempty-count", tuple(over_set(ev, members, None, ctx))) if len(members) else constant(0)


@function("DISTINCTCOUNT")
def _distinct_count(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Different positions whose cell isn't empty."""
    members = distinct(set_of(ev, ev.arguments(call, 1, 1, ctx)[0], ctx))
    return Apply("nonempty-count", tuple(over_set(ev, members, None, ctx))) if len(members) else constant(0)


@function("IIF")
def _iif(ev: Evaluator, call: Call, ctx: Context) -> Value:
    condition, yes, no = ev.arguments(call, 3, 3, ctx)
    truth = to_truth(ev, condition, ctx)
    if isinstance(truth, bool):
        return ev.evaluate(ev.given(yes if truth else no, ctx), ctx)
    values = [ev.evaluate(ev.given(node, ctx), ctx) for node in (yes, no)]
    if any(isinstance(value, SetValue) for value in values):
        # Which of two sets it is, cells say: for whoever may see them.
        return values[0 if ev.value_here(truth, ctx, call) else 1]
    return _either(truth, ev.to_cell(yes, ctx), ev.to_cell(no, ctx))


def _either(truth: Formula, yes: Formula, no: Formula) -> Formula:
    """One of two by a truth of cells; a quotient that is merely kept from a divisor of nothing is itself."""
    if isinstance(truth, Apply) and truth.function in ("=", "<>", "is-empty"):
        tested, *other = truth.arguments
        of_zero = all(isinstance(part, Linear) and part.is_constant and not part.constant for part in other)
        guarded, else_ = (yes, no) if truth.function == "<>" else (no, yes)
        quotient = guarded
        while isinstance(quotient, Apply) and quotient.function == "scale":
            quotient = quotient.arguments[0]
        divides = (
            isinstance(quotient, Apply) and quotient.function == "ratio" and quotient.arguments[1] == tested
        )
        if of_zero and divides and isinstance(else_, Linear) and else_.is_empty:
            return guarded
    return Apply("if", (truth, yes, no))


@function("ISEMPTY")
def _is_empty(ev: Evaluator, call: Call, ctx: Context) -> Value:
    node = ev.given(ev.arguments(call, 1, 1, ctx)[0], ctx)
    value = ev.evaluate(node, ctx)
    if isinstance(value, str):
        return not value
    formula = ev.as_formula(value, node, ctx)
    if isinstance(formula, Linear) and formula.is_constant:
        return formula.is_empty
    return Apply("is-empty", (formula,))


def _may_be_filled(formula: Formula) -> bool:
    return not (isinstance(formula, Linear) and formula.is_empty)


@function("COALESCEEMPTY")
def _coalesce(ev: Evaluator, call: Call, ctx: Context) -> Value:
    nodes = [ev.given(node, ctx) for node in call.arguments or ()]
    if not nodes:
        raise ev.error(ctx, call.at, "CoalesceEmpty takes at least one value.")
    formulas: list[Formula] = []
    for node in nodes:
        value = ev.evaluate(node, ctx)
        if not isinstance(value, str):
            formulas.append(ev.as_formula(value, node, ctx))
        elif value and not any(_may_be_filled(part) for part in formulas):
            return value
        elif value:
            formulas.append(ev.to_cell(node, ctx))
            break
    formulas = [part for part in formulas if _may_be_filled(part)]
    if not formulas:
        return EMPTY
    for place, part in enumerate(formulas):
        if isinstance(part, Linear) and part.constant is not None:
            # Never empty, so what follows never counts.
            formulas = formulas[: place + 1]
            break
    if isinstance(formulas[-1], Text):
        # Whether there is a text in a cell is told by conditions.
        return reduce(
            lambda rest, part: Apply("if", (Apply("is-empty", (part,)), rest, part)), formulas[::-1]
        )
    return Apply("coalesce", tuple(formulas)) if len(formulas) > 1 else formulas[0]


@function("ABS", "INT", "ROUND", "SQRT", "EXP", "LN", "LOG", "POWER", "SQR")
def _mathematics(ev: Evaluator, call: Call, ctx: Context) -> Value:
    value, other = ev.arguments(call, 1, 2, ctx)
    formulas = [ev.to_formula(node, ctx) for node in (value, other) if node is not None]
    name = call.function.lower()
    if len(formulas) == 2 and name not in ("round", "power", "log"):
        raise ev.error(ctx, call.at, f"{call.function} takes one argument.")
    if name == "power" and len(formulas) != 2:
        raise ev.error(ctx, call.at, "Power takes a value and an exponent.")
    return applied(name, formulas)


def applied(name: str, formulas: list[Formula]) -> Formula:
    """A function of numbers, worked out where they are all known.

    Raises
    ------
    FormulaError
        When the number is too large.
    """
    constants = [part.constant for part in formulas if isinstance(part, Linear) and part.is_constant]
    known = [value for value in constants if value is not None]
    if len(known) < len(formulas):
        return Apply(name, tuple(formulas))
    result = float(compute(name, [np.array([float(value)]) for value in known])[0])
    if math.isinf(result):
        raise FormulaError("A number of the formula is too large.")
    return EMPTY if math.isnan(result) else constant(Fraction(result))


@function("RANK")
def _rank(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The place of a tuple in a set; with a value, one more than how many there are of a larger one.

    Published, it is taken among the values that are shown.
    """
    target, where, value = ev.arguments(call, 2, 3, ctx)
    position, members = ev.to_tuple(target, ctx), ev.same_set(where, ctx)
    if position.is_nothing:
        return EMPTY
    if value is None:
        if members.pending or position.numbers in members.unseen:
            return Withheld("rank")
        if position.columns != members.columns:
            return constant(0)
        met = np.flatnonzero((members.rows == np.array(position.numbers)).all(axis=1))
        return constant(int(met[0]) + 1 if len(met) else 0)
    own = ev.to_formula(value, ctx.at(position))
    if ev.sees_values or ev.look is None:
        return Apply("rank", (own, *over_set(ev, members, value, ctx)))
    mine = ev.looked([(own, Positions(ctx.at(position)))], ctx, call)
    if mine is None or members.pending or mine.hidden[0]:
        return Withheld("rank")
    shown = _shown_values(ev, members, value, ctx, call)
    return Withheld("rank") if shown is None else constant(_place(float(mine.values[0]), shown))


@function("CURRENTORDINAL")
def _ordinal_in(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """The place, from 0, at which an iteration over a set is; empty where it is at none of its tuples."""
    members = ev.same_set(ev.arguments(call, 1, 1, ctx)[0], ctx)
    here = tuple(map(ctx.current, members.columns))
    if members.pending or here in members.unseen:
        return Withheld("rank")
    met = np.flatnonzero((members.rows == np.array(here)).all(axis=1))
    return constant(int(met[0])) if len(met) else EMPTY


def _shown_values(
    ev: Evaluator, members: SetValue, value: Expression, ctx: Context, call: Call
) -> FloatArray | None:
    """What is shown of an expression over a set, ascending; kept for the other cells with the same one."""
    here = sorted(item for item in {**ctx.known, **ctx.overrides}.items() if item[0] not in members.columns)
    key = id(call), id(members.rows), tuple(here)
    if key not in ev.kept:
        with ev.apart():
            formulas = over_set(ev, members, value, ctx)
            places = (Positions(ctx.at(position)) for position in members.tuples())
            looked = ev.looked(list(zip(formulas, places, strict=True)), ctx, call)
            basis = ev.basis
        values = None if looked is None else looked.values[~looked.hidden]
        ordered = None if values is None else np.sort(values[~np.isnan(values)])
        ev.kept[key] = ordered, basis, call, members.rows
    found: FloatArray | None = ev.kept[key][0]
    ev.meet(ev.kept[key][1])
    return found


def _place(own: float, shown: FloatArray) -> int:
    """One more than how many values, ascending, are larger; an empty one is less than any."""
    return 1 + len(shown) - int(np.searchsorted(shown, -math.inf if math.isnan(own) else own, side="right"))


@function("VALUE")
def _value(ev: Evaluator, call: Call, ctx: Context) -> Value:
    return ev.to_formula(ev.arguments(call, 1, 1, ctx)[0], ctx)


@function("ORDINAL")
def _ordinal(ev: Evaluator, call: Call, ctx: Context) -> Value:
    return constant(ev.to_level(ev.arguments(call, 1, 1, ctx)[0], ctx).level)


@function("ISLEAF", "ISANCESTOR", "ISSIBLING", "ISGENERATION")
def _relation(ev: Evaluator, call: Call, ctx: Context) -> Value:
    target, other = ev.arguments(call, 1, 2, ctx)
    member = ev.to_member(target, ctx)
    tree = ev.columns[member.columns[0]].hierarchy
    number = member.numbers[0]
    if not 0 <= number < tree.size:
        return False
    name = call.function.upper()
    if name == "ISLEAF":
        return len(tree.child_lists[number]) == 0
    if name == "ISGENERATION":
        return int(tree.last_descendant[number] > number) == ev.to_integer(other, ctx)
    second = ev.to_member(other, ctx)
    if second.columns != member.columns or not 0 <= second.numbers[0] < tree.size:
        return False
    if name == "ISANCESTOR":
        return bool(number < second.numbers[0] <= tree.last_descendant[number])
    return bool(tree.parent[number] == tree.parent[second.numbers[0]])
