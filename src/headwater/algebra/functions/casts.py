"""CAST and TRY_CAST by Spark's ANSI rules."""

from __future__ import annotations

import datetime as dt
import math
from decimal import ROUND_DOWN, Decimal

from headwater import types as t
from headwater.algebra.functions import parsing
from headwater.algebra.functions.errors import EvaluationError, invalid_value, overflow
from headwater.algebra.functions.numbers import WIDE, fit_decimal, fit_float, fit_integer, round_to

EPOCH = dt.datetime(1970, 1, 1)
SECOND = 1_000_000


def can_cast(source: t.Type, target: t.Type) -> bool:
    """Whether CAST between the types exists and gives Spark's answer on every engine.

    Spark also writes FLOAT and DOUBLE as STRING; the text is Java's own, and not the same in Java 17 and 19
    (5.6843418860808015E-14 and 5.684341886080802E-14), so Headwater does not.
    """
    if source == target or isinstance(source, t.Null):
        return True
    numbers = (t.Integer, t.Decimal, t.Float, t.Double, t.Boolean)
    match source, target:
        case t.Array(a), t.Array(b):
            return can_cast(a, b)
        case t.Binary(), t.String():
            return True
        case (t.String(), t.Date() | t.Timestamp() | t.Binary()):
            return True
        case t.String(), _:
            return isinstance(target, numbers)
        case (t.Integer() | t.Decimal() | t.Boolean() | t.Date() | t.Timestamp(), t.String()):
            return True
        case (t.Date(), t.Timestamp()) | (t.Timestamp(), t.Date() | t.Integer() | t.Double()):
            return True
        case t.Integer(), t.Timestamp():
            return True
    return isinstance(source, numbers) and isinstance(target, numbers)


def cast_raises(source: t.Type, target: t.Type) -> bool:
    """Whether some value of the source type has no counterpart in the target type."""
    match source, target:
        case _ if source == target or isinstance(source, t.Null):
            return False
        case t.Array(a), t.Array(b):
            return cast_raises(a, b)
        case t.Binary(), t.String():
            return True  # bytes that are not UTF-8
        case _, (t.String() | t.Binary()):
            return False
        case t.String(), _:
            return True
        case _, (t.Float() | t.Double() | t.Boolean() | t.Date()):
            return False
        case t.Boolean(), t.Integer():
            return False
        case t.Boolean(), t.Decimal(precision, scale):
            return precision == scale
        case (t.Integer() | t.Decimal(), t.Integer() | t.Decimal()):
            return not widens(source, target)
        case t.Date(), t.Timestamp():
            return False
    return True


def widens(source: t.Type, target: t.Type) -> bool:
    """Whether an exact number keeps its value under every circumstance."""
    match source, target:
        case t.Integer(a), t.Integer(b):
            return a <= b
        case (t.Integer() | t.Decimal(), t.Decimal()):
            exact = t.as_decimal(source)
            assert exact
            assert isinstance(target, t.Decimal)
            whole = exact.precision - exact.scale
            return exact.scale <= target.scale and whole <= target.precision - target.scale
    return False


def cast_value(value: object, source: t.Type, target: t.Type, safe: bool = False) -> object:
    """One value in another type.

    Args:
        value: a value of the source type, or None.
        source: its type.
        target: the wanted type; `can_cast` holds.
        safe: None instead of an error, as TRY_CAST.

    Raises:
        EvaluationError: the value has no counterpart.
    """
    if value is None or source == target:
        return value
    if isinstance(source, t.Array) and isinstance(target, t.Array) and isinstance(value, tuple):
        return tuple(cast_value(item, source.element, target.element, safe) for item in value)
    try:
        return _convert(value, target)
    except EvaluationError:
        if safe:
            return None
        raise


def _convert(value: object, target: t.Type) -> object:
    match target:
        case t.Boolean():
            return parsing.parse_boolean(value) if isinstance(value, str) else value != 0
        case t.Integer():
            return _to_integer(value, target)
        case t.Decimal():
            if isinstance(value, float) and not math.isfinite(value):
                return None  # as in Spark, even in ANSI mode
            return fit_decimal(_to_decimal(value, target), target)
        case t.Float() | t.Double():
            return fit_float(_to_double(value, target), target)
        case t.String():
            return to_text(value)
        case t.Binary():
            assert isinstance(value, str)
            return value.encode()
        case t.Date():
            return value.date() if isinstance(value, dt.datetime) else parsing.parse_date(str(value))
        case t.Timestamp():
            return _to_timestamp(value)
    raise AssertionError(f"no cast from {value!r} to {target}")


def _to_integer(value: object, target: t.Integer) -> int:
    match value:
        case bool() | int():
            return fit_integer(int(value), target)
        case Decimal():
            return fit_integer(int(round_to(value, 0, ROUND_DOWN)), target)
        case float():
            if not math.isfinite(value):
                raise overflow(f"{value} as {target}")
            return fit_integer(math.trunc(value), target)
        case str():
            return parsing.parse_integer(value, target)
        case dt.datetime():
            return fit_integer(microseconds(value) // SECOND, target)
    raise AssertionError(value)


def _to_decimal(value: object, target: t.Decimal) -> Decimal:
    match value:
        case bool() | int():
            return Decimal(int(value))
        case Decimal():
            return value
        case str():
            return parsing.parse_decimal(value, target)
        case float():
            # Spark goes through the double's text: 1.005 is then 1.005 and rounds up to 1.01.
            return WIDE.create_decimal(repr(value))
    raise AssertionError(value)


def _to_double(value: object, target: t.Type) -> float:
    match value:
        case str():
            return parsing.parse_double(value, target)
        case dt.datetime():
            return microseconds(value) / SECOND
    return float(value)  # type: ignore[arg-type]


def _to_timestamp(value: object) -> dt.datetime:
    match value:
        case dt.date():
            return dt.datetime(value.year, value.month, value.day)
        case int():
            return from_microseconds(value * SECOND)
    return parsing.parse_timestamp(str(value))


def to_text(value: object) -> str:
    """A value as CAST to STRING writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return _decoded(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            text = value.isoformat(sep=" ")
            return text.rstrip("0") if "." in text else text
    return str(value)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise invalid_value("bytes that are not UTF-8 as STRING") from None


def microseconds(value: dt.datetime) -> int:
    """Microseconds since 1970, as Spark and DuckDB store a timestamp."""
    return (value - EPOCH) // dt.timedelta(microseconds=1)


def from_microseconds(micros: int) -> dt.datetime:
    """The moment so many microseconds after 1970.

    Raises:
        EvaluationError: it is not in the years 1 to 9999.
    """
    try:
        return EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise overflow(f"{micros} microseconds as TIMESTAMP") from None
