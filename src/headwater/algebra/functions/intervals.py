"""Arithmetic of dates, timestamps and intervals: what + - * / mean when an operand is not a number.

Spark's DATE plus an interval written in days is a DATE, plus one written in hours a TIMESTAMP. Headwater has one type
for both; beside a DATE a literal of whole days counts as days.
"""

from __future__ import annotations

import calendar
import datetime as dt
from decimal import ROUND_HALF_UP, Decimal

from headwater import types as t
from headwater.algebra.functions.casts import from_microseconds, microseconds
from headwater.algebra.functions.errors import division_by_zero, overflow
from headwater.algebra.functions.numbers import WIDE, fit_integer, round_to
from headwater.algebra.functions.registry import Signature
from headwater.algebra.functions.signatures import MORE_THAN_38, describe
from headwater.algebra.scalars import Call, Literal, Scalar

DAY = 86_400_000_000
#: The decimals that hold every interval.
AS_DECIMAL = {t.DAY_TIME_INTERVAL: t.Decimal(19, 0), t.YEAR_MONTH_INTERVAL: t.Decimal(10, 0)}

_LONGEST = 19
Interval = t.DayTimeInterval | t.YearMonthInterval
_TEMPORAL = (t.Date, t.Timestamp, t.DayTimeInterval, t.YearMonthInterval)


def temporal_signature(operator: str, args: tuple[Scalar, ...]) -> Signature | None:
    """The signature of an operator with a date, a timestamp or an interval; None if there is none of them."""
    if len(args) != 2 or not any(isinstance(arg.type, _TEMPORAL) for arg in args):
        return None
    found: Signature | None
    match operator:
        case "+":
            found = _sum(args[0], args[1]) or _swapped(_sum(args[1], args[0]))
        case "-":
            found = _difference(args[0], args[1])
        case "*":
            found = _scaled(args[0], args[1]) or _swapped(_scaled(args[1], args[0]))
        case "/":
            found = _scaled(args[0], args[1])
        case _:
            found = None
    if found is None:
        raise ValueError(f"is not defined for ({describe(args)})")
    return found


def _swapped(signature: Signature | None) -> Signature | None:
    return signature and Signature(signature.params[::-1], signature.result)


def _sum(left: Scalar, right: Scalar) -> Signature | None:
    match left.type, right.type:
        case t.Date(), t.Integer(bits) if bits <= 32:
            return Signature((t.DATE, t.INT), t.DATE)
        case t.Date(), t.DayTimeInterval():
            if whole_days(right) is not None:
                return Signature((t.DATE, right.type), t.DATE)
            return Signature((t.TIMESTAMP, right.type), t.TIMESTAMP)
        case (t.Date() | t.Timestamp(), t.YearMonthInterval()) | (t.Timestamp(), t.DayTimeInterval()):
            return Signature((left.type, right.type), left.type)
        case (a, b) if a == b and isinstance(a, Interval):
            return Signature((a, b), a)
    return None


def _difference(left: Scalar, right: Scalar) -> Signature | None:
    match left.type, right.type:
        case t.Date(), t.Date():
            return Signature((t.DATE, t.DATE), t.DAY_TIME_INTERVAL)
        case (t.Date() | t.Timestamp(), t.Date() | t.Timestamp()):
            return Signature((t.TIMESTAMP, t.TIMESTAMP), t.DAY_TIME_INTERVAL)
    return _sum(left, right)


def _scaled(left: Scalar, right: Scalar) -> Signature | None:
    kind = left.type
    if not isinstance(kind, Interval):
        return None
    match right.type:
        case t.Integer() | t.Null():
            return Signature((kind, t.BIGINT), kind)
        case t.Decimal(precision, scale) as factor:
            if _LONGEST + max(precision, scale + 1) > t.MAX_PRECISION:
                raise ValueError(f"an interval times or divided by {factor} {MORE_THAN_38}")
            return Signature((kind, factor), kind)
        case t.Float() | t.Double():
            return Signature((kind, t.DOUBLE), kind)
    return None


def whole_days(arg: Scalar) -> int | None:
    """The days of a literal interval that has nothing else."""
    if isinstance(arg, Literal) and isinstance(arg.value, int) and arg.value % DAY == 0:
        return arg.value // DAY
    return None


def is_temporal(call: Call) -> bool:
    """Whether an operator was resolved by `temporal_signature`."""
    return any(isinstance(arg.type, _TEMPORAL) for arg in call.args)


def compute(call: Call, a: object, b: object) -> object:
    """The value of such an operator."""
    match call.function:
        case "+":
            return _move(call, b, a, 1) if _is_amount(call.args[0].type) else _move(call, a, b, 1)
        case "-":
            return _subtract(call, a, b)
        case "*":
            interval, factor = (a, b) if isinstance(call.args[0].type, Interval) else (b, a)
            return _multiply(interval, factor, call.type)
        case "/":
            return _divide(a, b, call.type)
    raise AssertionError(call.function)


def _is_amount(kind: t.Type) -> bool:
    return isinstance(kind, t.Integer | t.DayTimeInterval | t.YearMonthInterval)


def _subtract(call: Call, a: object, b: object) -> object:
    if isinstance(a, dt.datetime) and isinstance(b, dt.datetime):
        return microseconds(a) - microseconds(b)
    if isinstance(a, dt.date) and isinstance(b, dt.date):
        return (a - b).days * DAY
    return _move(call, a, b, -1)


def _move(call: Call, start: object, amount: object, sign: int) -> object:
    """A date, timestamp or interval moved by an amount of days, microseconds or months."""
    assert isinstance(amount, int)
    if isinstance(start, int):
        return fit_interval(start + sign * amount, call.type)
    kinds = [arg.type for arg in call.args]
    if t.YEAR_MONTH_INTERVAL in kinds:
        assert isinstance(start, dt.date)
        return add_months(start, sign * amount)
    if isinstance(start, dt.datetime):
        return from_microseconds(microseconds(start) + sign * amount)
    assert isinstance(start, dt.date)
    return add_days(start, sign * (amount // DAY if t.DAY_TIME_INTERVAL in kinds else amount))


def fit_interval(value: int, kind: t.Type) -> int:
    """The value, if an interval of this kind holds it."""
    return fit_integer(value, t.BIGINT if isinstance(kind, t.DayTimeInterval) else t.INT)


def _multiply(interval: object, factor: object, kind: t.Type) -> int:
    assert isinstance(interval, int)
    match factor:
        case int():
            return fit_interval(interval * factor, kind)
        case Decimal():
            return fit_interval(int(round_to(WIDE.multiply(Decimal(interval), factor), 0)), kind)
    assert isinstance(factor, float)
    return _nearest(interval * factor, kind)


def _divide(interval: object, divisor: object, kind: t.Type) -> int:
    assert isinstance(interval, int)
    if divisor == 0:
        raise division_by_zero()
    if isinstance(divisor, float):
        return _nearest(interval / divisor, kind)
    assert isinstance(divisor, int | Decimal)
    return fit_interval(int(round_to(WIDE.divide(Decimal(interval), Decimal(divisor)), 0)), kind)


def _nearest(value: float, kind: t.Type) -> int:
    if value != value or value in (float("inf"), float("-inf")):
        raise overflow(f"{value} as {kind}")
    return fit_interval(int(Decimal(value).quantize(Decimal(1), ROUND_HALF_UP, WIDE)), kind)


def add_days(start: dt.date, days: int) -> dt.date:
    """A date so many days later."""
    try:
        return start + dt.timedelta(days=days)
    except OverflowError:
        raise overflow(f"{start} + {days} days as DATE") from None


def add_months(start: dt.date, months: int) -> dt.date:
    """A date or timestamp so many months later; the last day of the month where the day does not exist."""
    total = start.year * 12 + start.month - 1 + months
    year, month = divmod(total, 12)
    if not dt.MINYEAR <= year <= dt.MAXYEAR:
        raise overflow(f"{start} + {months} months")
    last = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))
