"""ROUND, BROUND, CEIL and FLOOR."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from headwater import types as t
from headwater.algebra.functions.errors import overflow
from headwater.algebra.functions.numbers import fit_decimal, fit_integer, positive_zero, round_to
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import count_args, describe, literal_value
from headwater.algebra.scalars import Call, Scalar

#: A DOUBLE is rounded through its decimal text; so many digits leave room for every double that has a fraction.
MOST_DOUBLE_DIGITS = 15
_MOST_INTEGER_DIGITS = 18


def round_digits(args: tuple[Scalar, ...]) -> int:
    """The literal second argument of ROUND, 0 if left out."""
    if len(args) == 1:
        return 0
    digits = literal_value(args[1])
    if not isinstance(digits, int):
        raise ValueError("the number of digits must be an integer literal")
    return digits


def _round_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 2)
    digits = round_digits(args)
    kind = args[0].type
    if isinstance(kind, t.Null | t.String):
        kind = t.DOUBLE
    result: t.Type = kind
    match kind:
        case t.Integer():
            if digits < -_MOST_INTEGER_DIGITS:
                raise ValueError(f"rounds at most {_MOST_INTEGER_DIGITS} digits before the point")
        case t.Double():
            if not 0 <= digits <= MOST_DOUBLE_DIGITS:
                raise ValueError(f"rounds a DOUBLE to 0 to {MOST_DOUBLE_DIGITS} digits; cast it to DECIMAL for others")
        case t.Decimal(precision, scale):
            whole = precision - scale + 1
            if digits < 0:
                result = t.Decimal(min(max(whole, -digits + 1), t.MAX_PRECISION), 0)
            else:
                kept = min(scale, digits)
                result = t.Decimal(min(whole + kept, t.MAX_PRECISION), kept)
        case _:
            raise ValueError(f"takes an integer, a DECIMAL or a DOUBLE, not ({describe(args)})")
    return Signature((kind, t.INT)[: len(args)], result)


@define("round", _round_signature, raises=True)
def round_half_up(call: Call, value: object, _digits: int = 0) -> object:
    """Rounded half up to a literal number of digits after the point, 0 if left out."""
    return _round(call, value, ROUND_HALF_UP)


@define("bround", _round_signature, raises=True)
def round_half_even(call: Call, value: object, _digits: int = 0) -> object:
    """Rounded half to even to a literal number of digits after the point, 0 if left out."""
    return _round(call, value, ROUND_HALF_EVEN)


def _round(call: Call, value: object, rounding: str) -> object:
    digits = round_digits(call.args)
    match value:
        case int():
            return value if digits >= 0 else fit_integer(int(_rounded(Decimal(value), digits, rounding)), call.type)
        case Decimal():
            return fit_decimal(_rounded(value, digits, rounding), call.type)
        case float():
            return float(_rounded(Decimal(repr(value)), digits, rounding)) + 0.0 if math.isfinite(value) else value
    raise AssertionError(value)


def _rounded(value: Decimal, digits: int, rounding: str) -> Decimal:
    if -digits > value.adjusted() + 1:
        return Decimal(0)
    return positive_zero(round_to(value, digits, rounding))


def _whole_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 2)
    if len(args) == 2:
        return _scaled_signature(args)
    match args[0].type:
        case t.Integer():
            return Signature((t.BIGINT,), t.BIGINT)
        case t.Double() | t.Float() | t.String() | t.Null():
            return Signature((t.DOUBLE,), t.BIGINT)
        case t.Decimal(precision, scale) as kind:
            return Signature((kind,), t.bounded_decimal(precision - scale + 1, 0))
    raise ValueError(f"takes a number, not {args[0].type}")


#: DOUBLE as CEIL and FLOOR to a number of digits take it.
_DOUBLE_AS_DECIMAL = t.Decimal(30, 15)


def _scaled_signature(args: tuple[Scalar, ...]) -> Signature:
    """CEIL and FLOOR to a number of digits: every number is a DECIMAL."""
    kind = _DOUBLE_AS_DECIMAL if isinstance(args[0].type, t.Double) else t.as_decimal(args[0].type)
    if kind is None:
        raise ValueError(f"takes an integer, a DECIMAL or a DOUBLE, not {args[0].type}")
    digits = round_digits(args)
    whole = kind.precision - kind.scale + 1
    if digits < 0:
        if -digits >= t.MAX_PRECISION:
            raise ValueError(f"rounds at most {t.MAX_PRECISION - 1} digits before the point")
        return Signature((kind, t.INT), t.Decimal(min(max(whole, -digits + 1), t.MAX_PRECISION), 0))
    kept = min(kind.scale, digits)
    return Signature((kind, t.INT), t.Decimal(min(whole + kept, t.MAX_PRECISION), kept))


def _whole(call: Call, value: object, rounding: str) -> object:
    if isinstance(value, Decimal) and len(call.args) == 2:
        digits = round_digits(call.args)
        return fit_decimal(value if digits > call.type.scale else round_to(value, digits, rounding), call.type)  # type: ignore[attr-defined]
    if isinstance(value, Decimal):
        return fit_decimal(round_to(value, 0, rounding), call.type)
    if isinstance(value, float):
        if math.isnan(value):
            return 0  # Java's answer
        if math.isinf(value):
            raise overflow(f"{value} as BIGINT")
        return fit_integer(math.ceil(value) if rounding == ROUND_CEILING else math.floor(value), t.BIGINT)
    return value


@define(("ceil", "ceiling"), _whole_signature, raises=True)
def ceil(call: Call, value: object, _digits: int = 0) -> object:
    """The smallest whole number not below: BIGINT, or DECIMAL for decimals and with a literal number of digits."""
    return _whole(call, value, ROUND_CEILING)


@define("floor", _whole_signature, raises=True)
def floor(call: Call, value: object, _digits: int = 0) -> object:
    """The largest whole number not above: BIGINT, or DECIMAL for decimals and with a literal number of digits."""
    return _whole(call, value, ROUND_FLOOR)
