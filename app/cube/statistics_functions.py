"""MDX functions of pairs of cells over a set, quantiles, and mathematics as spreadsheets have it."""

from __future__ import annotations

import math
from fractions import Fraction

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.operators import to_truth
from app.cube.value_functions import applied, over_set, set_of
from app.cube.values import Value
from app.domain.formula import EMPTY, Apply, Linear, constant, divide
from app.mdx.tree import Call

_OF_PAIRS = {
    "CORRELATION": "correlation",
    "COVARIANCE": "covariance",
    "COVARIANCEN": "covariance-n",
    "LINREGSLOPE": "slope",
    "LINREGINTERCEPT": "intercept",
    "LINREGR2": "r2",
    "LINREGVARIANCE": "error-variance",
}
_QUARTILES = {"FIRSTQ": 25, "THIRDQ": 75}


@function(*_OF_PAIRS)
def _of_pairs(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A statistic of y and x at the positions of a set; without x, of y and the cell itself."""
    target, y, x = ev.arguments(call, 2, 3, ctx)
    members = set_of(ev, target, ctx)
    if not len(members):
        return EMPTY
    pairs = (*over_set(ev, members, y, ctx), *over_set(ev, members, x, ctx))
    return Apply(_OF_PAIRS[call.function.upper()], pairs)


@function("LINREGPOINT")
def _point(ev: Evaluator, call: Call, ctx: Context) -> Value:
    at, target, y, x = ev.arguments(call, 3, 4, ctx)
    members = set_of(ev, target, ctx)
    if not len(members):
        return EMPTY
    pairs = (*over_set(ev, members, y, ctx), *over_set(ev, members, x, ctx))
    return Apply("point", (ev.to_formula(at, ctx), *pairs))


@function("PERCENTILE", "FIRSTQ", "THIRDQ")
def _quantile(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A quantile of an expression over a set, between two values in proportion, as SQL's percentile_cont."""
    if call.function.upper() == "PERCENTILE":
        target, expression, share = ev.arguments(call, 3, 3, ctx)
        percent = ev.to_formula(share, ctx)
    else:
        target, expression = ev.arguments(call, 1, 2, ctx)
        percent = constant(_QUARTILES[call.function.upper()])
    members = set_of(ev, target, ctx)
    return Apply("quantile", (percent, *over_set(ev, members, expression, ctx))) if len(members) else EMPTY


@function(
    "SIN", "COS", "TAN", "ASIN", "ACOS", "ATN", "ATAN", "SINH", "COSH", "TANH", "ASINH", "ACOSH", "ATANH"
)
@function("LOG10", "DEGREES", "RADIANS", "SQRTPI", "SGN", "SIGN", "FIX", "CEILING", "FLOOR", "CINT", "CLNG")
def _of_one(ev: Evaluator, call: Call, ctx: Context) -> Value:
    (value,) = ev.arguments(call, 1, 1, ctx)
    same = {"ATAN": "atn", "SIGN": "sgn", "FLOOR": "int", "CLNG": "cint"}
    return applied(same.get(call.function.upper(), call.function.lower()), [ev.to_formula(value, ctx)])


@function("ATAN2", "MOD")
def _of_two(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Mod has the sign of the divisor, Atan2 takes x before y, both as in spreadsheets."""
    one, other = ev.arguments(call, 2, 2, ctx)
    return applied(call.function.lower(), [ev.to_formula(one, ctx), ev.to_formula(other, ctx)])


@function("PI")
def _pi(ev: Evaluator, call: Call, ctx: Context) -> Value:
    ev.arguments(call, 0, 0, ctx)
    return constant(Fraction(math.pi))


@function("DIVIDE")
def _divide(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """A quotient, or what is given instead where the divisor is zero or empty."""
    top, bottom, instead = ev.arguments(call, 2, 3, ctx)
    divisor = ev.to_formula(bottom, ctx)
    quotient = divide(ev.to_formula(top, ctx), divisor)
    if instead is None:
        return quotient
    if isinstance(divisor, Linear) and divisor.is_constant:
        return quotient if divisor.constant else ev.evaluate(instead, ctx)
    return Apply("if", (Apply("=", (divisor, constant(0))), ev.to_formula(instead, ctx), quotient))


@function("CBOOL")
def _truth(ev: Evaluator, call: Call, ctx: Context) -> Value:
    return to_truth(ev, ev.arguments(call, 1, 1, ctx)[0], ctx)
