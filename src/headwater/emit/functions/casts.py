"""CAST and TRY_CAST in DuckDB, with Spark's ANSI results."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import SECOND, widens
from headwater.algebra.scalars import Cast, Column
from headwater.emit.functions.build import (
    case,
    cast,
    duckdb_type,
    fn,
    infix,
    mul,
    null,
    number,
    text,
    try_cast,
    whole_div,
)
from headwater.emit.functions.parsing import narrowed, parsed

#: A decimal of at most so many digits is an integer that a double holds, divided by a power of ten that it holds too.
_EXACT_DOUBLE_DIGITS = 15


def emit_cast(scalar: Cast, inner: exp.Expr) -> exp.Expr:
    """The emitted argument in the cast's type."""
    source, target, safe = scalar.arg.type, scalar.type, scalar.safe
    to = duckdb_type(target)
    if isinstance(source, t.Null):
        return null(target)
    convert = try_cast if safe else cast
    match source, target:
        case _ if source == target:
            return inner
        case t.Array(a), t.Array(b):
            item = exp.to_identifier("_element")
            converted = emit_cast(Cast(Column("_element", a), b, safe), item)
            return fn("list_transform", inner, exp.Lambda(this=converted, expressions=[item.copy()]))
        case t.Binary(), t.String():
            return fn("try", fn("decode", inner)) if safe else fn("decode", inner)
        case t.String(), _:
            return parsed(inner, target, safe)
        case t.Decimal(), t.String():
            return _decimal_to_text(inner, source)
        case (t.Float() | t.Double() | t.Decimal(), t.Integer()):
            return convert(fn("trunc", inner), to)
        case (t.Float() | t.Double(), t.Decimal()):
            # Through the text of the double, as Spark does, or 1.005 would round down.
            wide = cast(inner, "DOUBLE") if isinstance(source, t.Float) else inner
            finite = fn("isfinite", inner.copy())
            return case(finite, narrowed(cast(wide, "TEXT"), target, safe), null(target))
        case t.Boolean(), t.Decimal():
            return convert(cast(inner, "INTEGER"), to)  # directly, TRUE would be the smallest positive number
        case t.Decimal(precision), (t.Float() | t.Double()) if precision > _EXACT_DOUBLE_DIGITS:
            return cast(cast(inner, "TEXT"), to)
        case t.Decimal(), t.Float():
            return cast(cast(inner, "TEXT"), to)
        case t.Double(), t.Float():
            return _double_to_float(inner)
        case t.Timestamp(), t.Double():
            return infix(exp.Div, fn("epoch_us", inner), number(SECOND))
        case t.Timestamp(), t.Integer(bits):
            seconds = epoch_seconds(inner)
            return seconds if bits == 64 else convert(seconds, to)
        case t.Integer(), t.Timestamp():
            micros = mul(cast(inner, "BIGINT"), number(SECOND))
            return fn("make_timestamp", fn("try", micros) if safe else micros)
    if widens(source, target):
        return cast(inner, to)
    return convert(inner, to)


def epoch_seconds(moment: exp.Expr) -> exp.Expr:
    """Whole seconds since 1970, rounded down."""
    return whole_div(fn("epoch_us", fn("date_trunc", text("second"), moment)), number(SECOND))


def _double_to_float(inner: exp.Expr) -> exp.Expr:
    # Past the largest float Java gives infinity where DuckDB raises.
    bound = exp.Literal.number("3.4028235677973366e38")
    sign = fn("sign", inner.copy())
    infinite = exp.Mul(this=sign, expression=cast(text("Infinity"), "DOUBLE"))
    too_large = exp.GTE(this=fn("abs", inner.copy()), expression=bound)
    finite = exp.And(this=too_large, expression=fn("isfinite", inner.copy()))
    return cast(case(finite, infinite, inner), "FLOAT")


def _decimal_to_text(inner: exp.Expr, source: t.Decimal) -> exp.Expr:
    if source.scale < source.precision:
        return cast(inner, "TEXT")
    # DuckDB leaves out the zero before the point where the type has no digits there.
    return fn("regexp_replace", cast(inner, "TEXT"), text(r"^(-?)\."), text(r"\10."))
