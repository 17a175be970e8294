"""Exact arithmetic on Python values of SQL's number types."""

from __future__ import annotations

import struct
from decimal import ROUND_HALF_UP, Context, Decimal

from headwater import types as t
from headwater.algebra.functions.errors import overflow

#: Wide enough for the product of two 38-digit numbers and for quotients to 38 digits after the point.
WIDE = Context(prec=400)


def fit_integer(value: int, kind: t.Type) -> int:
    """The value, if the type holds it."""
    assert isinstance(kind, t.Integer)
    if not kind.low <= value <= kind.high:
        raise overflow(f"{value} as {kind}")
    return value


def round_to(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The value with so many digits after the point."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=WIDE)


def fit_decimal(value: Decimal, kind: t.Type, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The value at the type's scale, if it then fits the precision."""
    assert isinstance(kind, t.Decimal)
    if value.adjusted() > t.MAX_PRECISION and not value.is_zero():
        raise overflow(f"{value} as {kind}")
    rounded = round_to(value, kind.scale, rounding)
    if rounded.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        raise overflow(f"{value} as {kind}")
    return positive_zero(rounded)


def positive_zero(value: Decimal) -> Decimal:
    """The value, where decimals have no negative zero. (Plain `+ 0` would cut at 28 digits.)"""
    return value.copy_abs() if value.is_zero() else value


def to_float32(value: float) -> float:
    """The nearest 32-bit float; too large ones become infinite, as in Java."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def fit_float(value: float, kind: t.Type) -> float:
    """The value in the precision of FLOAT or DOUBLE."""
    return to_float32(value) if isinstance(kind, t.Float) else value
