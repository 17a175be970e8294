"""From a map's payload to the value of an aggregate, in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.aggregates import SUM_OF_DOUBLES
from headwater.algebra.functions.errors import overflow
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    both,
    case,
    cast,
    either,
    emits,
    failure,
    fn,
    infix,
    null,
    number,
    text,
    wrap,
)
from headwater.emit.functions.decimals import long_quotient, unscaled


def _positive(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=wrap(count.copy()), expression=number(0))


def _none(count: exp.Expr) -> exp.Expr:
    return exp.EQ(this=wrap(count.copy()), expression=number(0))


@emits("sum_double")
def _sum_double(
    call: Call,
    total: exp.Expr,
    n: exp.Expr,
    nans: exp.Expr,
    pinf: exp.Expr,
    ninf: exp.Expr,
) -> exp.Expr:
    out_of_range = overflow(SUM_OF_DOUBLES)
    return case(
        _none(n),
        null(t.DOUBLE),
        either(_positive(nans), both(_positive(pinf), _positive(ninf))),
        cast(text("NaN"), "DOUBLE"),
        _positive(pinf),
        cast(text("Infinity"), "DOUBLE"),
        _positive(ninf),
        cast(text("-Infinity"), "DOUBLE"),
        exp.Not(this=fn("isfinite", total.copy())),
        cast(failure(out_of_range.code, out_of_range.message), "DOUBLE"),
        total,
    )


@emits("avg_decimal")
def _avg_decimal(call: Call, total: exp.Expr, n: exp.Expr, witness: exp.Expr) -> exp.Expr:
    kind, result = call.args[0].type, call.type
    assert isinstance(kind, t.Decimal)
    assert isinstance(result, t.Decimal)
    shift = result.scale - kind.scale
    count = cast(fn("nullif", n, number(0)), "HUGEINT")
    return long_quotient(unscaled(total, kind), count, shift, result, bottom_digits=19)


@emits("avg_double")
def _avg_double(call: Call, total: exp.Expr, n: exp.Expr) -> exp.Expr:
    return infix(exp.Div, total, fn("nullif", n, number(0)))


@emits("is_finite")
def _is_finite(call: Call, x: exp.Expr) -> exp.Expr:
    return fn("coalesce", fn("isfinite", x), exp.false())


@emits("is_nan")
def _is_nan(call: Call, x: exp.Expr) -> exp.Expr:
    return fn("coalesce", fn("isnan", x), exp.false())


@emits("is_positive_infinity")
def _is_positive_infinity(call: Call, x: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=wrap(x), expression=cast(text("Infinity"), "DOUBLE"))


@emits("is_negative_infinity")
def _is_negative_infinity(call: Call, x: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=wrap(x), expression=cast(text("-Infinity"), "DOUBLE"))
