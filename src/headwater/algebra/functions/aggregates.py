"""What turns the payload of a map into the value of an aggregate; made by the compiler only."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from headwater import types as t
from headwater.algebra.functions.arithmetic import divide_decimal
from headwater.algebra.functions.errors import overflow
from headwater.algebra.functions.registry import Resolver, Signature, define
from headwater.algebra.functions.signatures import count_args, takes
from headwater.algebra.scalars import Call, Scalar

SUM_OF_DOUBLES = "a sum of DOUBLE"
_five = takes(t.DOUBLE, t.BIGINT, t.BIGINT, t.BIGINT, t.BIGINT, result=t.DOUBLE)


@define("sum_double", _five, internal=True, raises=True)
def sum_double(call: Call, total: float, n: int, nans: int, pinf: int, ninf: int) -> object:
    """SUM of doubles from the total of the finite ones and how many were not finite.

    A total that left the range of DOUBLE cannot be told from one that will come back, so it is refused.
    """
    if n == 0:
        return None
    if nans > 0 or (pinf > 0 and ninf > 0):
        return math.nan
    if pinf > 0:
        return math.inf
    if ninf > 0:
        return -math.inf
    if not math.isfinite(total):
        raise overflow(SUM_OF_DOUBLES)
    return total


def _avg_decimal_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    total, n, witness = (arg.type for arg in args)
    if not isinstance(total, t.Decimal) or not isinstance(witness, t.Decimal) or n != t.BIGINT:
        raise ValueError("takes a DECIMAL total, a BIGINT count and a NULL of the result's DECIMAL type")
    return Signature((total, n, witness), witness)


@define("avg_decimal", _avg_decimal_signature, strict=False, internal=True, raises=True)
def avg_decimal(call: Call, total: Decimal | None, n: int | None, witness: object) -> object:
    """AVG of decimals: total divided by count, rounded half up to the type of the third argument."""
    if total is None or not n:
        return None
    return divide_decimal(total, Decimal(n), call.type)


@define("avg_double", takes(t.DOUBLE, t.BIGINT, result=t.DOUBLE), internal=True)
def avg_double(call: Call, total: float, n: int) -> object:
    """AVG of doubles: total divided by count, NULL of none."""
    return None if n == 0 else total / n


_double_test = takes(t.DOUBLE, result=t.BOOLEAN)


@define("is_finite", _double_test, strict=False, internal=True)
def is_finite(call: Call, x: float | None) -> object:
    """Whether a double is a number and not infinite; FALSE for NULL."""
    return x is not None and math.isfinite(x)


@define("is_positive_infinity", _double_test, strict=False, internal=True)
def is_positive_infinity(call: Call, x: float | None) -> object:
    """Whether a double is infinity; FALSE for NULL."""
    return x == math.inf


@define("is_negative_infinity", _double_test, strict=False, internal=True)
def is_negative_infinity(call: Call, x: float | None) -> object:
    """Whether a double is minus infinity; FALSE for NULL."""
    return x == -math.inf


@define("is_nan", _double_test, strict=False, internal=True)
def is_nan(call: Call, x: float | None) -> object:
    """Whether a double is not a number; FALSE for NULL."""
    return x is not None and math.isnan(x)


def _unscaled_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = args[0].type
    if not isinstance(kind, t.Decimal) or kind.precision > 18:
        raise ValueError("takes a DECIMAL of at most 18 digits")
    return Signature((kind,), t.BIGINT)


@define("unscaled", _unscaled_signature, internal=True)
def unscaled(call: Call, x: Decimal) -> object:
    """A decimal without its point."""
    kind = call.args[0].type
    assert isinstance(kind, t.Decimal)
    return int(x.scaleb(kind.scale))


@define("square", takes(t.BIGINT, result=t.Decimal(t.MAX_PRECISION, 0)), internal=True)
def square(call: Call, x: int) -> object:
    """The square of a number below 10^12, which is exact."""
    return Decimal(x * x)


_TOTAL = t.Decimal(t.MAX_PRECISION, 0)


@define("variance_of", takes(t.BIGINT, _TOTAL, _TOTAL, t.BOOLEAN, t.INT, result=t.DOUBLE), internal=True)
def variance_of(call: Call, n: int, total: Decimal, squares: Decimal, sample: bool, scale: int) -> object:
    """VARIANCE from how many numbers there are, their total and that of their squares, all without the point."""
    if n <= (1 if sample else 0):
        return None
    spread = n * int(squares) - int(total) ** 2
    return spread / (n * (n - 1 if sample else n)) / 100**scale


_EXACT = Context(prec=100)


def _weighed(of: Callable[[t.Type], t.Type]) -> Resolver:
    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 2)
        value, n = (arg.type for arg in args)
        if n != t.BIGINT:
            raise ValueError("takes a number and a BIGINT count")
        return Signature((value, n), of(value))

    return resolve


def _total_type(kind: t.Type) -> t.Type:
    from headwater.algebra.nodes import total_type

    return total_type(kind)


@define("weigh", _weighed(_total_type), internal=True)
def weigh(call: Call, term: Any, n: int) -> object:
    """A term's part in a total, if it is there n times."""
    if isinstance(call.type, t.Decimal):
        return _EXACT.multiply(Decimal(term), Decimal(n))
    return int(term) * n if isinstance(term, bool) else term * n


def _product_type(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    total, n = (arg.type for arg in args)
    match total, n:
        case _, t.BIGINT:
            return Signature((total, n), total)
        case t.Decimal(_, a), t.Decimal(_, b) if a + b <= t.MAX_PRECISION:
            return Signature((total, n), t.Decimal(t.MAX_PRECISION, a + b))
    raise ValueError("takes a total and a BIGINT count, or two totals")


@define("carry", _product_type, internal=True)
def carry(call: Call, total: Any, n: Any) -> object:
    """A total, if all that it is made of is there n times; or the product of two totals."""
    return _EXACT.multiply(total, Decimal(n)) if isinstance(total, Decimal) else total * n


def _same_totals(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    a, b = (arg.type for arg in args)
    if isinstance(a, t.Decimal) and isinstance(b, t.Decimal):
        both: t.Type = t.Decimal(t.MAX_PRECISION, max(a.scale, b.scale))
    elif a == b and a in (t.BIGINT, t.DOUBLE):
        both = a
    else:
        raise ValueError("takes two totals of the same kind")
    return Signature((both, both), both)


@define("total_plus", _same_totals, internal=True)
def total_plus(call: Call, a: Any, b: Any) -> object:
    """Two totals added up."""
    return _EXACT.add(a, b) if isinstance(a, Decimal) else a + b


@define("total_minus", _same_totals, internal=True)
def total_minus(call: Call, a: Any, b: Any) -> object:
    """A total less another."""
    return _EXACT.subtract(a, b) if isinstance(a, Decimal) else a - b
