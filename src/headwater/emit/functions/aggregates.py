"""From a map's payload to the value of an aggregate, in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.aggregates import SUM_OF_DOUBLES
from headwater.algebra.functions.errors import overflow
from headwater.algebra.scalars import Call, Literal
from headwater.emit.functions.build import (
    both,
    case,
    cast,
    duckdb_type,
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
from headwater.emit.functions.decimals import long_quotient, quotient, unscaled


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


#: A group has at most ten to this many rows; a total of more does not fit, which raises.
_ROWS = 14


@emits("avg_decimal")
def _avg_decimal(call: Call, total: exp.Expr, n: exp.Expr, witness: exp.Expr) -> exp.Expr:
    kind, result = call.args[0].type, call.type
    assert isinstance(kind, t.Decimal)
    assert isinstance(result, t.Decimal)
    shift = result.scale - kind.scale
    count = cast(fn("nullif", n, number(0)), "HUGEINT")
    digits = result.precision - result.scale + _ROWS + kind.scale
    if digits + shift < t.MAX_PRECISION:
        total_type = t.Decimal(digits, kind.scale)
        return quotient(cast(total, duckdb_type(total_type)), count, total_type, t.Decimal(19, 0), result)
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


@emits("unscaled")
def _unscaled(call: Call, x: exp.Expr) -> exp.Expr:
    kind = call.args[0].type
    assert isinstance(kind, t.Decimal)
    return cast(unscaled(x, kind), "BIGINT")


@emits("square")
def _square(call: Call, x: exp.Expr) -> exp.Expr:
    return cast(infix(exp.Mul, cast(x, "HUGEINT"), x.copy()), "DECIMAL(38, 0)")


@emits("variance_of")
def _variance_of(
    call: Call, n: exp.Expr, total: exp.Expr, squares: exp.Expr, sample: exp.Expr, scale: exp.Expr
) -> exp.Expr:
    """Exact where the products have fewer than 38 digits; the difference of two large ones must not be rounded."""
    taken, shift = call.args[3], call.args[4]
    assert isinstance(taken, Literal) and isinstance(shift, Literal) and isinstance(shift.value, int)
    ones = 1 if taken.value else 0

    def product(kind: str) -> exp.Expr:
        weighed = infix(exp.Mul, cast(n.copy(), kind), cast(squares.copy(), kind))
        return infix(exp.Sub, weighed, infix(exp.Mul, cast(total.copy(), kind), cast(total.copy(), kind)))

    small = exp.LT(
        this=infix(exp.Mul, cast(n.copy(), "DOUBLE"), cast(squares.copy(), "DOUBLE")),
        expression=cast(text("1e37"), "DOUBLE"),
    )
    spread = case(small, cast(product("HUGEINT"), "DOUBLE"), product("DOUBLE"))
    freedom = infix(exp.Sub, n.copy(), number(ones)) if ones else n.copy()
    pairs = infix(exp.Mul, cast(n.copy(), "DOUBLE"), cast(freedom, "DOUBLE"))
    unit = cast(text(f"1e{2 * shift.value}"), "DOUBLE")
    few = exp.LTE(this=wrap(n.copy()), expression=number(ones))
    return case(few, null(t.DOUBLE), infix(exp.Div, infix(exp.Div, spread, pairs), unit))


@emits("weigh")
def _weigh(call: Call, term: exp.Expr, n: exp.Expr) -> exp.Expr:
    if call.args[0].type == t.BOOLEAN:
        return exp.Case(ifs=[exp.If(this=term, true=n)], default=number(0))
    return infix(exp.Mul, cast(term, duckdb_type(call.type)), n)


@emits("carry")
def _carry(call: Call, total: exp.Expr, n: exp.Expr) -> exp.Expr:
    return cast(infix(exp.Mul, total, n), duckdb_type(call.type))


@emits("total_plus")
def _total_plus(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    return infix(exp.Add, a, b)


@emits("total_minus")
def _total_minus(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    return infix(exp.Sub, a, b)
