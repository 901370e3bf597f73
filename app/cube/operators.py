"""MDX operators: arithmetic, comparison, logic, ranges, CASE."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from app.cube.context import Context
from app.cube.conversions import number_of
from app.cube.evaluate import OPERATORS, Evaluator
from app.cube.sets import distinct, keep
from app.cube.values import HierarchyValue, SetValue, TupleValue, Value
from app.domain.formula import EMPTY, Apply, Formula, Linear, add, constant, divide, multiply, power, scale
from app.mdx.tree import Call, Case, Chain, Expression, Null, Range, Unary


def _chain(ev: Evaluator, node: Chain, ctx: Context) -> Value:
    operator = node.operators[0]
    if operator in ("AND", "OR", "XOR"):
        return _logic(ev, node, ctx)
    values = [ev.evaluate(operand, ctx) for operand in node.operands]
    if operator in ("=", "<>", "<", ">", "<=", ">=", "IS", "IN", "NOT IN"):
        return _compare(ev, operator, values, node, ctx)
    if not all(isinstance(value, str) for value in values) and "||" not in node.operators:
        values = [_as_number(value) for value in values]
    if "||" in node.operators or any(isinstance(value, str) for value in values):
        if not all(isinstance(value, str) for value in values) or "-" in node.operators:
            raise ev.error(ctx, node.at, "Texts can only be joined to texts.")
        texts = [value for value in values if isinstance(value, str)]
        ev.write(sum(map(len, texts)), node, ctx)
        return "".join(texts)
    if any(isinstance(value, SetValue) for value in values):
        return _set_chain(ev, node, ctx)
    result = ev.as_formula(values[0], node.operands[0], ctx)
    formulas = [ev.as_formula(value, part, ctx) for value, part in zip(values, node.operands, strict=True)]
    if operator in "+-":
        return add(formulas, [1, *(1 if sign == "+" else -1 for sign in node.operators)])
    for sign, right in zip(node.operators, formulas[1:], strict=True):
        result = {"*": multiply, "/": divide, "^": power}[sign](result, right)
    return result


def _set_chain(ev: Evaluator, node: Chain, ctx: Context) -> SetValue:
    parts = [ev.to_any_set(operand, ctx) for operand in node.operands]
    if set(node.operators) == {"*"}:
        return ev.cross(parts, node.at, ctx)
    result = parts[0]
    for sign, part, operand in zip(node.operators, parts[1:], node.operands[1:], strict=True):
        if sign == "+":
            result = distinct(ev.join([result, part], [node.at, operand.at], ctx))
        elif sign == "-":
            ev.join([result, part], [node.at, operand.at], ctx)
            result = keep(distinct(result), part, False)
        else:
            raise ev.error(ctx, operand.at, "Sets can't be divided.")
    return result


def _logic(ev: Evaluator, node: Chain, ctx: Context) -> Value:
    truths = [to_truth(ev, operand, ctx) for operand in node.operands]
    if any(not isinstance(truth, bool) for truth in truths):
        formulas = tuple(
            ev.as_formula(truth, part, ctx) for truth, part in zip(truths, node.operands, strict=True)
        )
        if len(set(node.operators)) > 1:
            raise ev.error(ctx, node.at, "OR and XOR need brackets between them.")
        return Apply(node.operators[0].lower(), formulas)
    result = bool(truths[0])
    for sign, truth in zip(node.operators, truths[1:], strict=True):
        if sign == "AND":
            result = result and bool(truth)
        else:
            result = (result or bool(truth)) if sign == "OR" else result != bool(truth)
    return result


def to_truth(ev: Evaluator, node: Expression | None, ctx: Context) -> bool | Formula:
    """A truth value, or a formula that is 0 or 1 by the values of cells."""
    node = ev.given(node, ctx)
    value = ev.evaluate(node, ctx)
    if isinstance(value, bool):
        return value
    formula = ev.as_formula(value, node, ctx)
    if isinstance(formula, Linear) and formula.is_constant:
        return bool(formula.constant)
    return formula


def _compare(ev: Evaluator, operator: str, values: list[Value], node: Chain, ctx: Context) -> Value:
    left, right = values
    if operator == "IS":
        if isinstance(right, Linear) and right.is_empty:
            return (isinstance(left, TupleValue) and left.is_nothing) or left == right
        one, other = ev.position(left, ctx), ev.position(right, ctx)
        if isinstance(left, HierarchyValue) and isinstance(right, HierarchyValue):
            return left == right
        return one == other if one is not None and other is not None else left == right
    if operator in ("IN", "NOT IN"):
        position = ev.to_tuple(node.operands[0], ctx)
        members = ev.to_set(node.operands[1], ctx)
        found = members.columns == position.columns and position.numbers in map(tuple, members.rows.tolist())
        return found == (operator == "IN")
    if isinstance(left, str) and isinstance(right, str):
        return _holds(operator, (left > right) - (left < right))
    left, right = _as_number(left), _as_number(right)
    if isinstance(left, str) or isinstance(right, str):
        raise ev.error(ctx, node.at, "A text can only be compared to a text.")
    one_value = ev.as_formula(left, node.operands[0], ctx)
    other_value = ev.as_formula(right, node.operands[1], ctx)
    if all(isinstance(side, Linear) and side.is_constant for side in (one_value, other_value)):
        a, b = (side.constant or Fraction(0) for side in (one_value, other_value) if isinstance(side, Linear))
        return _holds(operator, (a > b) - (a < b))
    return Apply(operator, (one_value, other_value))


def _as_number(value: Value) -> Value:
    """A text beside a number as the number that it is; any other value as it is."""
    number = number_of(value) if isinstance(value, str) else None
    return value if number is None else number


def _unary(ev: Evaluator, node: Unary, ctx: Context) -> Value:
    if node.operator == "NOT":
        truth = to_truth(ev, node.operand, ctx)
        return not truth if isinstance(truth, bool) else Apply("not", (truth,))
    if node.operator == "EXISTING":
        return _existing(ev, ev.to_any_set(node.operand, ctx), ctx)
    formula = ev.to_formula(node.operand, ctx)
    return scale(formula, Fraction(-1)) if node.operator == "-" else formula


def _existing(ev: Evaluator, members: SetValue, ctx: Context) -> SetValue:
    """Tuples whose members stand above or below the current ones, or are these."""
    chosen = np.ones(len(members), dtype=bool)
    for place, column in enumerate(members.columns):
        tree = ev.columns[column].hierarchy
        current = ctx.current(column)
        numbers = members.rows[:, place]
        if not 0 <= current < tree.size:
            chosen &= numbers == current
            continue
        own = np.minimum(numbers, tree.size - 1)
        below = (numbers >= current) & (numbers <= tree.last_descendant[current])
        above = (numbers <= current) & (tree.last_descendant[own] >= current)
        chosen &= (numbers < tree.size) & (below | above)
    return members.taking(members.rows[chosen])


def _range(ev: Evaluator, node: Range, ctx: Context) -> SetValue:
    if isinstance(node.first, Null) or isinstance(node.last, Null):
        return _open_range(ev, node, ctx)
    ends = [ev.to_member(end, ctx) for end in (node.first, node.last)]
    if ends[0].columns != ends[1].columns:
        raise ev.error(ctx, node.at, "The ends of a range are of different hierarchies.")
    column = ev.columns[ends[0].columns[0]]
    first, last = (end.numbers[0] for end in ends)
    if -1 in (first, last) or max(first, last) >= column.hierarchy.size:
        return SetValue.of(ends[0].columns, [])
    depth = column.hierarchy.depth
    if depth[first] != depth[last]:
        raise ev.error(ctx, node.at, "The ends of a range are of different levels.")
    members = column.at_level[depth[first]]
    low, high = np.searchsorted(members, sorted((first, last)))
    return SetValue(ends[0].columns, members[low : high + 1, None])


def _open_range(ev: Evaluator, node: Range, ctx: Context) -> SetValue:
    """From the first member of the level, or to the last one."""
    if isinstance(node.first, Null) and isinstance(node.last, Null):
        raise ev.error(ctx, node.at, "A range needs one member at least.")
    end = ev.to_member(node.last if isinstance(node.first, Null) else node.first, ctx)
    column, number = ev.columns[end.columns[0]], end.numbers[0]
    if not 0 <= number < column.hierarchy.size:
        return SetValue.of(end.columns, [])
    members = column.at_level[column.hierarchy.depth[number]]
    inside = members <= number if isinstance(node.first, Null) else members >= number
    return SetValue(end.columns, members[inside][:, None])


def _case(ev: Evaluator, node: Case, ctx: Context) -> Value:
    branches: list[tuple[Formula, Formula]] = []
    for condition, result in node.branches:
        if node.subject is None:
            truth = to_truth(ev, condition, ctx)
        else:
            sign = "IS" if _are_members(ev, node.subject, condition, ctx) else "="
            truth = to_truth(ev, Chain((node.subject, condition), (sign,), condition.at), ctx)
        if truth is True and not branches:
            return ev.evaluate(result, ctx)
        if not isinstance(truth, bool) and isinstance(ev.evaluate(result, ctx), SetValue):
            # Which set it is, cells say: for whoever may see them.
            if ev.value_here(truth, ctx, Call("CASE", None, (), node.at)):
                return ev.evaluate(result, ctx)
            continue
        if truth is not False:
            branches.append(
                (constant(int(truth)) if isinstance(truth, bool) else truth, ev.to_cell(result, ctx))
            )
    if not branches:
        return EMPTY if node.otherwise is None else ev.evaluate(node.otherwise, ctx)
    value: Formula = EMPTY if node.otherwise is None else ev.to_cell(node.otherwise, ctx)
    for truth_formula, result_formula in reversed(branches):
        value = Apply("if", (truth_formula, result_formula, value))
    return value


def _are_members(ev: Evaluator, one: Expression, other: Expression, ctx: Context) -> bool:
    """Whether both are members of one hierarchy that aren't measures: then it is asked which they are."""
    left, right = (ev.position(ev.evaluate(node, ctx), ctx) for node in (one, other))
    if left is None or right is None or len(left.columns) != 1:
        return False
    return left.columns == right.columns != (0,)


def _holds(operator: str, order: int) -> bool:
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        ">": order > 0,
        "<=": order <= 0,
        ">=": order >= 0,
    }[operator]


OPERATORS.update({Chain: _chain, Unary: _unary, Range: _range, Case: _case})
