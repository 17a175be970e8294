"""Functions of real numbers.

The JVM, DuckDB and Python each have their own exp, log and sin; they agree to the last digits but not always in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from headwater import types as t
from headwater.algebra.functions.arithmetic import arithmetic, fit, remainder_type
from headwater.algebra.functions.arithmetic import remainder as plain_remainder
from headwater.algebra.functions.comparison import sort_key
from headwater.algebra.functions.errors import division_by_zero
from headwater.algebra.functions.numbers import WIDE
from headwater.algebra.functions.registry import Function, Signature, define, register
from headwater.algebra.functions.signatures import common, count_args, describe, takes
from headwater.algebra.scalars import Call, Scalar

one_double = takes(t.DOUBLE, result=t.DOUBLE)
two_doubles = takes(t.DOUBLE, t.DOUBLE, result=t.DOUBLE)


def _total(function: Callable[[float], float], at_overflow: float = math.inf) -> Callable[..., object]:
    """Python raises where IEEE 754 has NaN or infinity."""

    def evaluate(call: Call, x: float) -> object:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return at_overflow

    return evaluate


def _odd(function: Callable[[float], float]) -> Callable[..., object]:
    return lambda call, x: math.copysign(_total(function)(call, abs(x)), x)  # type: ignore[arg-type]


def _cbrt(x: float) -> float:
    return math.cbrt(x)


def _atanh(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)


def _cot(x: float) -> float:
    tangent = math.tan(x)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1 / tangent


def _inverse(function: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(x: float) -> float:
        value = function(x)
        return math.copysign(math.inf, value) if value == 0 else 1 / value

    return evaluate


for _name, _evaluate, _summary in (
    ("sqrt", _total(math.sqrt), "Square root; NaN of a negative number."),
    ("cbrt", _total(_cbrt), "Cube root."),
    ("exp", _total(math.exp), "e to the power of the number."),
    ("sin", _total(math.sin), "Sine."),
    ("cos", _total(math.cos), "Cosine."),
    ("tan", _total(math.tan), "Tangent."),
    ("cot", _total(_cot), "Cotangent."),
    ("sec", _total(_inverse(math.cos)), "Secant."),
    ("csc", _total(_inverse(math.sin)), "Cosecant."),
    ("asin", _total(math.asin), "Inverse sine; NaN outside -1 to 1."),
    ("acos", _total(math.acos), "Inverse cosine; NaN outside -1 to 1."),
    ("atan", _total(math.atan), "Inverse tangent."),
    ("sinh", _odd(math.sinh), "Hyperbolic sine."),
    ("cosh", _total(math.cosh), "Hyperbolic cosine."),
    ("tanh", _total(math.tanh), "Hyperbolic tangent."),
    ("asinh", _total(math.asinh), "Inverse hyperbolic sine."),
    ("acosh", _total(math.acosh), "Inverse hyperbolic cosine; NaN below 1."),
    ("atanh", _total(_atanh), "Inverse hyperbolic tangent; NaN outside -1 to 1."),
    ("degrees", _total(math.degrees), "Radians as degrees."),
    ("radians", _total(math.radians), "Degrees as radians."),
    ("rint", _total(lambda x: float(round(x)) if math.isfinite(x) else x), "The nearest whole number, ties to even."),
):
    register(Function(_name, one_double, _evaluate, summary=_summary))


@define("hypot", two_doubles)
def hypot(call: Call, a: float, b: float) -> object:
    """The distance of a point from the origin."""
    return math.hypot(a, b)


@define("log1p", one_double)
def log1p(call: Call, x: float) -> object:
    """The natural logarithm of one more than the number, exact near 0; NULL of -1 and below."""
    return None if x <= -1 else math.log1p(x)


register(
    Function("expm1", one_double, _total(math.expm1), summary="One less than e to the power of the number, near 0 too.")
)


@define("width_bucket", takes(t.DOUBLE, t.DOUBLE, t.DOUBLE, t.BIGINT, result=t.BIGINT))
def width_bucket(call: Call, value: float, low: float, high: float, count: int) -> object:
    """Which of so many equal parts between two bounds a number is in, from 1; 0 before and one more behind them."""
    if count <= 0 or count == t.BIGINT.high or math.isnan(value) or low == high:
        return None
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    if (value < low) if low < high else (value > low):
        return 0
    if (value >= high) if low < high else (value <= high):
        return count + 1
    share = count * (value - low) / (high - low) if low < high else count * (low - value) / (low - high)
    return math.trunc(share) + 1


@define("atan2", two_doubles)
def atan2(call: Call, y: float, x: float) -> object:
    """The angle of the point (second, first)."""
    return math.atan2(y, x)


@define(("pow", "power"), two_doubles)
def power(call: Call, a: float, b: float) -> object:
    """The first number to the power of the second."""
    if math.isnan(b) or (abs(a) == 1 and math.isinf(b)):
        return math.nan  # Java's rule; C says 1
    try:
        return math.pow(a, b)
    except ValueError:
        return (
            math.inf if a == 0 and not (math.copysign(1, a) < 0 and b % 2 == 1) else -math.inf if a == 0 else math.nan
        )
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[..., object]:
    def evaluate(call: Call, x: float) -> object:
        return None if x <= 0 else function(x)

    return evaluate


for _name, _evaluate, _summary in (
    ("ln", _logarithm(math.log), "Natural logarithm; NULL of zero and below."),
    ("log10", _logarithm(math.log10), "Logarithm to base 10; NULL of zero and below."),
    ("log2", _logarithm(math.log2), "Logarithm to base 2; NULL of zero and below."),
):
    register(Function(_name, one_double, _evaluate, summary=_summary))


@define("log", takes(t.DOUBLE, t.DOUBLE, result=t.DOUBLE, least=1))
def log(call: Call, a: float, b: float | None = None) -> object:
    """Natural logarithm, or the logarithm of the second to the base of the first; NULL of zero and below."""
    if b is None:
        return None if a <= 0 else math.log(a)
    if a <= 0 or b <= 0:
        return None
    base, value = math.log(a), math.log(b)
    return value / base if base else math.nan if value == 0 else math.copysign(math.inf, value)


@define("pi", takes(result=t.DOUBLE))
def pi(call: Call) -> object:
    """The number pi."""
    return math.pi


@define("e", takes(result=t.DOUBLE))
def e(call: Call) -> object:
    """The number e."""
    return math.e


@define(("sign", "signum"), one_double)
def sign(call: Call, x: float) -> object:
    """-1, 0 or 1, as a DOUBLE."""
    return x if x == 0 or math.isnan(x) else math.copysign(1.0, x)


@define("isnan", takes(t.DOUBLE, result=t.BOOLEAN), strict=False)
def isnan(call: Call, x: float | None) -> object:
    """Whether the number is NaN; FALSE for NULL."""
    return x is not None and math.isnan(x)


@define("nanvl", two_doubles, strict=False)
def nanvl(call: Call, a: float | None, b: float | None) -> object:
    """The first number, or the second where the first is NaN."""
    return b if a is not None and math.isnan(a) else a


@define("pmod", lambda args: arithmetic(args, remainder_type), raises=True)
def pmod(call: Call, a: object, b: object) -> object:
    """The remainder, made positive by adding a positive divisor."""
    if b == 0:
        raise division_by_zero()
    rest = plain_remainder(a, b)
    if rest < 0:  # type: ignore[operator]
        moved = WIDE.add(rest, b) if isinstance(rest, Decimal) and isinstance(b, Decimal) else rest + b  # type: ignore[operator]
        rest = plain_remainder(moved, b)
    return fit(rest, call.type)


def _extreme_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 1_000_000)
    kind = common(args)
    if any(isinstance(arg.type, t.String) for arg in args) and not isinstance(kind, t.String):
        raise ValueError(f"takes arguments of one type, not ({describe(args)})")
    if not t.is_orderable(kind):
        raise ValueError(f"values of type {kind} have no order")
    return Signature((kind,) * len(args), kind)


@define("greatest", _extreme_signature, strict=False)
def greatest(call: Call, *values: object) -> object:
    """The largest argument that is not NULL."""
    return max((v for v in values if v is not None), key=sort_key, default=None)  # type: ignore[arg-type]


@define("least", _extreme_signature, strict=False)
def least(call: Call, *values: object) -> object:
    """The smallest argument that is not NULL."""
    return min((v for v in values if v is not None), key=sort_key, default=None)  # type: ignore[arg-type]


@define("factorial", takes(t.INT, result=t.BIGINT))
def factorial(call: Call, n: int) -> object:
    """n!; NULL outside 0 to 20."""
    return math.factorial(n) if 0 <= n <= 20 else None
