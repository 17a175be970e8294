"""Constants in DuckDB's SQL."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from sqlglot import exp

from headwater import types as t
from headwater.algebra.clock import is_settled
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import Lambda, Literal, Scalar
from headwater.emit.functions.build import cast, duckdb_type, fn, null, number, text


def constant(scalar: Scalar) -> Literal | None:
    """The literal a scalar without columns amounts to; None for anything else.

    Raises:
        EvaluationError: it has no value. It must fail only when it is reached, which may be never.
    """
    if isinstance(scalar, Literal):
        return scalar
    if isinstance(scalar, Lambda) or not is_settled(scalar):
        return None
    return Literal(evaluate_scalar(scalar, {}), scalar.type)


def known(scalar: Scalar) -> object:
    """The value of a constant that is neither NULL nor failing, else None."""
    try:
        literal = constant(scalar)
    except EvaluationError:
        return None
    return literal.value if literal else None


def duckdb_literal(value: object, kind: t.Type) -> exp.Expr:
    """A constant of exactly the given type."""
    if value is None:
        return null(kind)
    match kind:
        case t.Boolean():
            return exp.Boolean(this=bool(value))
        case t.Integer(bits):
            assert isinstance(value, int)
            return number(value) if bits == 32 else cast(number(value), duckdb_type(kind))
        case t.DayTimeInterval() | t.YearMonthInterval():
            assert isinstance(value, int)
            return cast(number(value), duckdb_type(kind))
        case t.Decimal():
            assert isinstance(value, Decimal)
            return cast(_plain_number(value), duckdb_type(kind))
        case t.Float() | t.Double():
            assert isinstance(value, float)
            return _floating(value, kind)
        case t.String():
            return text(str(value))
        case t.Binary():
            assert isinstance(value, bytes)
            return fn("unhex", text(value.hex().upper()))
        case t.Date():
            assert isinstance(value, dt.date)
            return cast(text(value.isoformat()), "DATE")
        case t.Timestamp():
            assert isinstance(value, dt.datetime)
            return cast(text(value.isoformat(sep=" ")), "TIMESTAMP")
    return _nested(value, kind)


#: DuckDB reads a bare number of more digits as a DOUBLE.
_MOST_BARE_DIGITS = 30


def _plain_number(value: Decimal) -> exp.Expr:
    if len(value.as_tuple().digits) > _MOST_BARE_DIGITS or value.as_tuple().exponent < -_MOST_BARE_DIGITS:  # type: ignore[operator]
        return text(format(value, "f"))
    literal = exp.Literal.number(format(value.copy_abs(), "f"))
    return exp.Neg(this=literal) if value < 0 else literal


def _floating(value: float, kind: t.Type) -> exp.Expr:
    if not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return cast(text(word), duckdb_type(kind))
    # The exponent is what makes it a DOUBLE and not a DECIMAL.
    digits = repr(abs(value))
    literal = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
    signed = exp.Neg(this=literal) if math.copysign(1.0, value) < 0 else literal
    return cast(signed, "FLOAT") if isinstance(kind, t.Float) else signed


def _nested(value: object, kind: t.Type) -> exp.Expr:
    assert isinstance(value, tuple)
    match kind:
        case t.Array(element):
            items = fn("list_value", *(duckdb_literal(item, element) for item in value))
            return cast(items, duckdb_type(kind))
        case t.Map(key, item):
            keys = fn("list_value", *(duckdb_literal(k, key) for k, _ in value))
            items = fn("list_value", *(duckdb_literal(v, item) for _, v in value))
            return cast(fn("map", keys, items), duckdb_type(kind))
        case t.Struct(fields):
            row = fn("row", *(duckdb_literal(v, f) for v, (_, f) in zip(value, fields, strict=True)))
            return cast(row, duckdb_type(kind))
    raise AssertionError(f"no literal of type {kind}")
