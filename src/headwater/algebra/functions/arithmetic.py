"""+ - * / % div and the sign, with Spark's result types."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from headwater import types as t
from headwater.algebra.functions.errors import division_by_zero
from headwater.algebra.functions.intervals import compute, fit_interval, is_temporal, temporal_signature
from headwater.algebra.functions.numbers import WIDE, fit_decimal, fit_float, fit_integer, positive_zero, round_to
from headwater.algebra.functions.registry import Resolver, Signature, define
from headwater.algebra.functions.signatures import MORE_THAN_38, common, count_args, decimal_of, describe
from headwater.algebra.scalars import Call, Scalar

DecimalRule = Callable[[t.Decimal, t.Decimal], t.Decimal]


def _sum_type(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale) + 1
    out = t.adjusted_decimal(whole + scale, scale)
    if out.scale < scale - 1:
        raise ValueError(f"{a} and {b}: the result {MORE_THAN_38}")
    return out


#: A product is rounded exactly as long as the digits cut off it, squared, fit 38 digits (see `emit.functions`).
_MOST_DIGITS_CUT = 19


def _product_type(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    out = t.adjusted_decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if a.scale + b.scale - out.scale > _MOST_DIGITS_CUT:
        raise ValueError(f"{a} * {b} {MORE_THAN_38}")
    return out


def quotient_type(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    """The type of a decimal division."""
    scale = max(6, a.scale + b.precision + 1)
    return t.adjusted_decimal(a.precision - a.scale + b.scale + scale, scale)


def remainder_type(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    """The type of a decimal remainder."""
    scale = max(a.scale, b.scale)
    if max(a.precision - a.scale, b.precision - b.scale) + scale > t.MAX_PRECISION:
        raise ValueError(f"{a} % {b} {MORE_THAN_38}")
    return t.adjusted_decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def arithmetic(args: tuple[Scalar, ...], decimal_rule: DecimalRule, exact_integers: bool = True) -> Signature:
    """The signature of a binary operator over numbers.

    Args:
        args: the two operands.
        decimal_rule: result type for two decimals.
        exact_integers: integers stay integers; if not they become DOUBLE, as under `/`.
    """
    count_args(args, 2)
    left, right = args
    if any(isinstance(arg.type, t.Decimal) for arg in args):
        a, b = decimal_of(left), decimal_of(right)
        a = b if isinstance(left.type, t.Null) else a
        b = a if isinstance(right.type, t.Null) else b
        if a and b:
            return Signature((a, b), decimal_rule(a, b))
    kind = common(args)
    if isinstance(kind, t.Null):
        kind = t.DOUBLE
    if not t.is_numeric(kind):
        raise ValueError(f"takes numbers, not ({describe(args)})")
    if isinstance(kind, t.Decimal):
        return Signature((kind, kind), decimal_rule(kind, kind))
    if isinstance(kind, t.Integer | t.Float) and not exact_integers:
        kind = t.DOUBLE
    return Signature((kind, kind), kind)


def _resolver(operator: str, rule: DecimalRule, exact_integers: bool = True) -> Resolver:
    return lambda args: temporal_signature(operator, args) or arithmetic(args, rule, exact_integers)


def fit(value: object, kind: t.Type) -> object:
    """An exact or double result in its type; raises when it does not fit."""
    match kind:
        case t.Integer():
            assert isinstance(value, int)
            return fit_integer(value, kind)
        case t.Decimal():
            assert isinstance(value, Decimal)
            return fit_decimal(value, kind)
    assert isinstance(value, float)
    return fit_float(value, kind)


@define("+", _resolver("+", _sum_type), raises=True)
def add(call: Call, a: object, b: object) -> object:
    """Sum; also a date or timestamp moved by an interval, or a date by days."""
    if is_temporal(call):
        return compute(call, a, b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return fit(WIDE.add(a, b), call.type)
    return fit(a + b, call.type)  # type: ignore[operator]


@define("-", _resolver("-", _sum_type), raises=True)
def subtract(call: Call, a: object, b: object) -> object:
    """Difference; also the interval between dates or timestamps."""
    if is_temporal(call):
        return compute(call, a, b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return fit(WIDE.subtract(a, b), call.type)
    return fit(a - b, call.type)  # type: ignore[operator]


@define("*", _resolver("*", _product_type), raises=True)
def multiply(call: Call, a: object, b: object) -> object:
    """Product; also an interval so many times."""
    if is_temporal(call):
        return compute(call, a, b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return fit(WIDE.multiply(a, b), call.type)
    return fit(a * b, call.type)  # type: ignore[operator]


def divide_decimal(a: Decimal, b: Decimal, kind: t.Type) -> Decimal:
    """Spark's decimal quotient: rounded half up to 38 digits after the point, then to the result's scale."""
    return fit_decimal(round_to(WIDE.divide(a, b), t.MAX_PRECISION), kind)


@define("/", _resolver("/", quotient_type, exact_integers=False), raises=True)
def divide(call: Call, a: object, b: object) -> object:
    """Quotient: DOUBLE for integers, exact for decimals; an error for a zero divisor."""
    if b == 0:
        raise division_by_zero()
    if is_temporal(call):
        return compute(call, a, b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return divide_decimal(a, b, call.type)
    assert isinstance(a, float)
    assert isinstance(b, float)
    return a / b


def remainder(a: object, b: object) -> object:
    """The remainder with the sign of the dividend."""
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return WIDE.remainder(a, b)
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    assert isinstance(a, float)
    assert isinstance(b, float)
    return math.nan if math.isinf(a) else math.fmod(a, b)


@define(("%", "mod"), _resolver("%", remainder_type), raises=True)
def modulo(call: Call, a: object, b: object) -> object:
    """Remainder with the sign of the dividend; an error for a zero divisor."""
    if b == 0:
        raise division_by_zero()
    return fit(remainder(a, b), call.type)


def _div_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = arithmetic(args, lambda a, b: a)
    kind = signature.params[0]
    if isinstance(kind, t.Integer):
        return Signature((t.BIGINT, t.BIGINT), t.BIGINT)
    raise ValueError(f"takes integers, not ({describe(args)})")


@define("div", _div_signature, raises=True)
def integer_divide(call: Call, a: int, b: int) -> object:
    """Whole part of the quotient, a BIGINT; an error for a zero divisor."""
    if b == 0:
        raise division_by_zero()
    quotient = abs(a) // abs(b)
    return fit_integer(quotient if (a < 0) == (b < 0) else -quotient, t.BIGINT)


def _sign_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = args[0].type
    if isinstance(kind, t.String | t.Null):
        kind = t.DOUBLE
    if not t.is_numeric(kind) and not isinstance(kind, t.DayTimeInterval | t.YearMonthInterval):
        raise ValueError(f"takes a number or an interval, not {kind}")
    return Signature((kind,), kind)


@define(("negate", "negative"), _sign_signature, raises=True)
def negate(call: Call, a: object) -> object:
    """The number with the other sign."""
    if isinstance(a, Decimal):
        return positive_zero(a.copy_negate())
    if isinstance(call.type, t.Integer):
        assert isinstance(a, int)
        return fit_integer(-a, call.type)
    if isinstance(a, int):
        return fit_interval(-a, call.type)
    return -a  # type: ignore[operator]


@define(("abs",), _sign_signature, raises=True)
def absolute(call: Call, a: object) -> object:
    """The number without its sign."""
    if isinstance(a, int):
        return fit_integer(abs(a), call.type) if isinstance(call.type, t.Integer) else fit_interval(abs(a), call.type)
    return a.copy_abs() if isinstance(a, Decimal) else abs(a)  # type: ignore[arg-type]


@define("positive", _sign_signature)
def positive(call: Call, a: object) -> object:
    """The number itself."""
    return a
