"""Arithmetic in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import widens
from headwater.algebra.functions.errors import DIVISION_BY_ZERO
from headwater.algebra.functions.intervals import is_temporal
from headwater.algebra.scalars import Call, Cast, Scalar
from headwater.emit.functions.build import (
    both,
    case,
    cast,
    duckdb_type,
    emits,
    failure,
    fn,
    infix,
    is_not_null,
    mod,
    mul,
    number,
    whole_div,
    wrap,
)
from headwater.emit.functions.decimals import decimal_product, quotient, rounded_product
from headwater.emit.functions.intervals import emit_temporal
from headwater.emit.functions.literals import known


def relaxed(call: Call, args: tuple[exp.Expr, ...]) -> list[exp.Expr]:
    """Arguments without the casts that DuckDB makes by itself when at least one of them stands in its full type.

    Shorter to read, and `x + 1` keeps the literal bare.
    """
    kinds = [_is_bare(arg) for arg in call.args]
    if all(kinds):
        return list(args)
    return [_bare(arg, emitted) if bare else emitted for arg, emitted, bare in zip(call.args, args, kinds, strict=True)]


def _is_bare(arg: Scalar) -> bool:
    if not isinstance(arg.type, t.Integer):
        return False
    if known(arg) is not None:
        return True
    return isinstance(arg, Cast) and isinstance(arg.arg.type, t.Integer) and widens(arg.arg.type, arg.type)


def _bare(arg: Scalar, emitted: exp.Expr) -> exp.Expr:
    value = known(arg)
    if isinstance(value, int):
        return number(value)
    return emitted.this if isinstance(emitted, exp.Cast) else emitted


_KINDS: dict[str, type[exp.Expr]] = {"+": exp.Add, "-": exp.Sub}


@emits("+", "-")
def _add_or_subtract(call: Call, *args: exp.Expr) -> exp.Expr:
    if is_temporal(call):
        return emit_temporal(call, *args)
    plain = infix(_KINDS[call.function], *relaxed(call, args))
    if isinstance(call.type, t.Decimal):
        scale = max(p.type.scale for p in call.args if isinstance(p.type, t.Decimal))
        if scale != call.type.scale:
            return cast(plain, duckdb_type(call.type))
    return plain


@emits("*")
def _multiply(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    if is_temporal(call):
        return emit_temporal(call, a, b)
    if isinstance(call.type, t.Decimal):
        left, right = call.args[0].type, call.args[1].type
        assert isinstance(left, t.Decimal)
        assert isinstance(right, t.Decimal)
        if left.scale + right.scale > call.type.scale:
            return rounded_product(a, b, left, right, call.type)
        return decimal_product(a, b, left, right, call.type)
    return mul(*relaxed(call, (a, b)))


def guard_zero(call: Call, a: exp.Expr, b: exp.Expr, result: exp.Expr) -> exp.Expr:
    """The result, or an error where the divisor is zero and the dividend is not NULL."""
    if known(call.args[1]) not in (None, 0):
        return result
    zero = exp.EQ(this=wrap(_uncast(b)), expression=number(0))
    test = zero if known(call.args[0]) is not None else both(zero, is_not_null(_uncast(a)))
    return case(test, failure(DIVISION_BY_ZERO, "division by zero"), result)


def _uncast(value: exp.Expr) -> exp.Expr:
    """A number as it was before an implicit cast to DOUBLE: zero and NULL are the same there, and shorter to test."""
    inner = value.this if isinstance(value, exp.Cast) and isinstance(value.this, exp.Column) else value
    assert isinstance(inner, exp.Expr)
    return inner.copy()


@emits("/")
def _divide(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    if is_temporal(call):
        return emit_temporal(call, a, b)
    if isinstance(call.type, t.Decimal):
        left, right = call.args[0].type, call.args[1].type
        assert isinstance(left, t.Decimal)
        assert isinstance(right, t.Decimal)
        return quotient(a, b, left, right, call.type)
    return guard_zero(call, a, b, infix(exp.Div, a, b))


@emits("%", "mod")
def _modulo(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    kind = call.type
    match kind:
        case t.Integer():
            if known(call.args[1]) not in (None, -1):
                return mod(*relaxed(call, (a, b)))
            # The smallest integer % -1 overflows in DuckDB, and is 0.
            return cast(mod(widened(a, kind), widened(b, kind)), duckdb_type(call.type))
        case t.Decimal():
            return cast(mod(a, b), duckdb_type(call.type))
    return guard_zero(call, a, b, mod(a, b))


def widened(value: exp.Expr, kind: t.Integer) -> exp.Expr:
    """An integer in the next wider type."""
    return cast(value, {8: "SMALLINT", 16: "INTEGER", 32: "BIGINT", 64: "HUGEINT"}[kind.bits])


@emits("div")
def _integer_divide(call: Call, *args: exp.Expr) -> exp.Expr:
    return whole_div(*relaxed(call, args))


@emits("negate", "negative")
def _negate(call: Call, a: exp.Expr) -> exp.Expr:
    return exp.Neg(this=wrap(a))


@emits("abs")
def _absolute(call: Call, a: exp.Expr) -> exp.Expr:
    return fn("abs", a)


@emits("positive")
def _positive(call: Call, a: exp.Expr) -> exp.Expr:
    return a
