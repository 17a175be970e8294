"""One Python value into one column: what each type takes, and why a value is refused.

`from_python(type)` gives a function from a value that is not NULL to the form from which `pyarrow.array` builds the
column. This is the exact and slow road: whole columns go through Arrow first (`ingest_columns`) and come here only
when Arrow objects, or when their Python types are unusual.
"""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import reprlib
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeGuard

import pyarrow as pa

from headwater import types as t
from headwater.sql.names import fold

Convert = Callable[[object], object]

WRONG_TYPE = "HW324"
OUT_OF_RANGE = "HW325"
LOSES_DIGITS = "HW326"
NOT_UTF8 = "HW328"
WRONG_SHAPE = "HW330"

EXACT_IN_DOUBLE = 1 << 53
EXACT_IN_FLOAT = 1 << 24
_SHOWN = 60
_MICROSECOND = dt.timedelta(microseconds=1)


class RefusedError(Exception):
    """A value, or a whole column, that does not fit; where it stood is added by whoever knows.

    Attributes:
        code: the code of the error the user will see.
        reason: what is wrong, with the value.
        hint: what to do about it.
        index: the row, counted from 0 within what was converted; None if it is about the whole column.
    """

    def __init__(self, code: str, reason: str, hint: str | None = None, index: int | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.hint = hint
        self.index = index


def show(value: object) -> str:
    """A value for an error message: its repr, cut to about sixty characters.

    >>> show("x" * 1000)[-10:]
    "xxxxxx'..."
    """
    if isinstance(value, str | bytes):
        return repr(value[:_SHOWN]) + ("..." if len(value) > _SHOWN else "")
    if isinstance(value, dt.date | decimal.Decimal):
        return str(value)[:_SHOWN]
    try:
        text = reprlib.repr(value) if isinstance(value, list | tuple | dict | set) else repr(value)
    except Exception:  # a repr that fails (an int of 5,000 digits does) must not hide what is wrong
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def is_null(value: object) -> bool:
    """None, and what pandas and NumPy mean by it in the values of their rows (NA, NaT; not NaN)."""
    if value is None:
        return True
    name = type(value).__name__
    if name in ("NAType", "NaTType"):
        return _library(value) == "pandas"
    return name in ("datetime64", "timedelta64") and value != value


def from_python(type_: t.Type) -> Convert:
    """The conversion of values of a type, NULL aside.

    The function it returns raises RefusedError.

    >>> from_python(t.Decimal(5, 2))(decimal.Decimal("1.5"))
    Decimal('1.50')
    """
    match type_:
        case t.Integer():
            return lambda value: _integer(value, type_)
        case t.Decimal():
            return lambda value: _decimal(value, type_)
        case t.Float() | t.Double():
            return lambda value: _floating(value, type_)
        case t.Array(element):
            return _array(type_, nullable(from_python(element)))
        case t.Map(key, value):
            return _map(type_, from_python(key), nullable(from_python(value)))
        case t.Struct(fields):
            return _struct(type_, [(name, nullable(from_python(inner))) for name, inner in fields])
    return _LEAVES[type(type_)]


def nullable(convert: Convert) -> Convert:
    """A conversion that lets NULL through."""
    return lambda value: None if is_null(value) else convert(value)


def takes(type_: t.Type) -> str:
    """What a type may be given as, in words."""
    return _TAKES[type(type_)]


def wrong_type(value: object, type_: t.Type, hint: str | None = None) -> RefusedError:
    """The refusal of a value whose Python type is none of those the column takes."""
    return RefusedError(WRONG_TYPE, f"{show(value)} is a {type(value).__name__}; {type_} takes {takes(type_)}", hint)


def out_of_range(value: object, type_: t.Type) -> RefusedError:
    """The refusal of a value beyond the ends of its type."""
    return beyond(show(value), type_)


def beyond(shown: str, type_: t.Type) -> RefusedError:
    """The same, for a value that Python cannot hold and that is already text."""
    return RefusedError(OUT_OF_RANGE, f"{shown} is out of range: {type_} holds {bounds(type_)}")


def bounds(type_: t.Type) -> str:
    """The ends of a type, in words."""
    match type_:
        case t.Integer():
            return f"{type_.low} to {type_.high}"
        case t.Decimal(precision, scale):
            return f"at most {precision - scale} digits before the point"
        case t.Date():
            return "0001-01-01 to 9999-12-31"
        case t.Timestamp():
            return "0001-01-01 00:00:00 to 9999-12-31 23:59:59.999999 in UTC"
        case t.YearMonthInterval():
            return f"{t.INT.low} to {t.INT.high} months"
        case t.DayTimeInterval():
            return f"{t.BIGINT.low} to {t.BIGINT.high} microseconds"
    return "numbers up to about 3.4e38" if isinstance(type_, t.Float) else "numbers up to about 1.8e308"


def exact_decimal(value: decimal.Decimal, type_: t.Decimal) -> decimal.Decimal:
    """The value with exactly the type's digits after the point, or RefusedError."""
    if not value.is_finite():
        raise RefusedError(
            WRONG_TYPE, f"{show(value)} is not a number that DECIMAL can hold", "use None for a missing value"
        )
    # Checked on the exponent first: 1E+1000000 must not be written out.
    if value and value.adjusted() >= type_.precision - type_.scale:
        raise out_of_range(value, type_)
    try:
        return value.quantize(decimal.Decimal((0, (1,), -type_.scale)), context=_EXACT)
    except decimal.Inexact:
        raise RefusedError(
            LOSES_DIGITS,
            f"{show(value)} has more than {type_.scale} digits after the point and would lose some as {type_}",
            "round it first, or give the column more digits",
        ) from None


def utc(value: dt.datetime, shown: object) -> dt.datetime:
    """A moment without zone, in UTC; without a zone it is UTC already."""
    if value.tzinfo is None:
        return value
    try:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise out_of_range(shown, t.TIMESTAMP) from None


def rounded_float(value: float, shown: object) -> float:
    """The nearest 32-bit number."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        raise out_of_range(shown, t.FLOAT) from None


def check_text(value: str) -> str:
    """The string, unless it cannot be written as UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RefusedError(
            NOT_UTF8,
            f"{show(value)} is not valid Unicode: character {error.start} is half of a surrogate pair",
            "text read with errors='surrogateescape' is bytes in disguise: decode it with its true encoding",
        ) from None
    return value


def microseconds(value: int, shown: object) -> int:
    """A length of time that fits into 64 bits."""
    if not t.BIGINT.low <= value <= t.BIGINT.high:
        raise out_of_range(shown, t.DAY_TIME_INTERVAL)
    return value


def months(value: int, shown: object) -> int:
    """A number of months that fits into 32 bits."""
    if not t.INT.low <= value <= t.INT.high:
        raise out_of_range(shown, t.YEAR_MONTH_INTERVAL)
    return value


def distinct_keys(keys: list[object], shown: object) -> None:
    """Refuse a map with two equal keys, as Spark does."""
    seen: set[Hashable] = set()
    for key in keys:
        frozen = _frozen(key)
        if frozen in seen:
            raise RefusedError(WRONG_SHAPE, f"{show(shown)} has the key {show(key)} twice")
        seen.add(frozen)


def within(refused: RefusedError, place: str) -> RefusedError:
    """The same refusal, about a part of a nested value."""
    return RefusedError(refused.code, f"{place}: {refused.reason}", refused.hint)


_EXACT = decimal.Context(prec=t.MAX_PRECISION, traps=[decimal.Inexact, decimal.InvalidOperation])


def _boolean(value: object) -> bool:
    value = _native(value)
    if isinstance(value, bool):
        return value
    raise wrong_type(value, t.BOOLEAN)


def _integer(value: object, type_: t.Integer) -> int:
    value = _native(value)
    if not _is_int(value):
        hint = "use int(value)" if isinstance(value, str | float | decimal.Decimal | bool) else None
        raise wrong_type(value, type_, hint)
    if not type_.low <= value <= type_.high:
        raise out_of_range(value, type_)
    return int(value)


def _decimal(value: object, type_: t.Decimal) -> decimal.Decimal:
    value = _native(value)
    if isinstance(value, decimal.Decimal):
        return exact_decimal(value, type_)
    if _is_int(value):
        if abs(value) >= 10**t.MAX_PRECISION:
            raise out_of_range(value, type_)
        return exact_decimal(decimal.Decimal(value), type_)
    if isinstance(value, float) and value != value:
        raise RefusedError(WRONG_TYPE, f"nan is not a number that {type_} can hold", "use None for a missing value")
    hint = "a float is not exact: use decimal.Decimal(str(value))" if isinstance(value, float) else None
    raise wrong_type(value, type_, hint)


def _floating(value: object, type_: t.Type) -> float:
    value = _native(value)
    if isinstance(value, float):
        return rounded_float(value, value) if isinstance(type_, t.Float) else value
    if not _is_int(value):
        raise wrong_type(value, type_, "use float(value)" if isinstance(value, decimal.Decimal | str) else None)
    largest = EXACT_IN_FLOAT if isinstance(type_, t.Float) else EXACT_IN_DOUBLE
    if abs(value) > largest:
        raise RefusedError(
            LOSES_DIGITS,
            f"{show(value)} is an integer beyond {largest}, from where {type_} is not exact",
            "use float(value) if rounding is meant",
        )
    return float(value)


def _string(value: object) -> str:
    if isinstance(value, str):
        return check_text(str(value))
    raise wrong_type(value, t.STRING, "use value.decode()" if isinstance(value, bytes) else "use str(value)")


def _binary(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise wrong_type(value, t.BINARY, "use value.encode()" if isinstance(value, str) else None)


def _date(value: object) -> dt.date:
    value = _native(value)
    if isinstance(value, dt.datetime):
        raise wrong_type(value, t.DATE, "use value.date()")
    if isinstance(value, dt.date):
        return value
    hint = "use datetime.date.fromisoformat(value)" if isinstance(value, str) else None
    raise wrong_type(value, t.DATE, hint)


def _timestamp(value: object) -> dt.datetime:
    native = _native(value)
    if isinstance(native, dt.datetime):
        if getattr(native, "nanosecond", 0):
            raise _finer_than_a_microsecond(value, t.TIMESTAMP)
        return utc(native, value)
    if isinstance(native, dt.date):
        return dt.datetime(native.year, native.month, native.day)
    hint = "use datetime.datetime.fromisoformat(value)" if isinstance(value, str) else None
    raise wrong_type(value, t.TIMESTAMP, hint)


def _day_time(value: object) -> int:
    native = _native(value)
    if isinstance(native, dt.timedelta):
        if getattr(native, "nanoseconds", 0):
            raise _finer_than_a_microsecond(value, t.DAY_TIME_INTERVAL)
        return microseconds(native // _MICROSECOND, value)
    if _is_int(native):
        return microseconds(native, value)
    if isinstance(native, pa.MonthDayNano):
        if native.months:
            raise RefusedError(WRONG_TYPE, f"{show(value)} has months; INTERVAL DAY TO SECOND does not")
        if native.nanoseconds % 1000:
            raise _finer_than_a_microsecond(value, t.DAY_TIME_INTERVAL)
        return microseconds(native.days * 86_400_000_000 + native.nanoseconds // 1000, value)
    raise wrong_type(value, t.DAY_TIME_INTERVAL)


def _year_month(value: object) -> int:
    native = _native(value)
    if _is_int(native):
        return months(native, value)
    if isinstance(native, pa.MonthDayNano):
        if native.days or native.nanoseconds:
            raise RefusedError(WRONG_TYPE, f"{show(value)} has days or seconds; INTERVAL YEAR TO MONTH does not")
        return months(native.months, value)
    raise wrong_type(value, t.YEAR_MONTH_INTERVAL)


def _void(value: object) -> object:
    raise wrong_type(value, t.NULL)


def _array(type_: t.Array, element: Convert) -> Convert:
    def convert(value: object) -> list[object]:
        if not _is_sequence(value):
            raise wrong_shape(value, type_)
        out: list[object] = []
        for position, item in enumerate(value):
            try:
                out.append(element(item))
            except RefusedError as refused:
                raise within(refused, f"element {position}") from None
        return out

    return convert


def _map(type_: t.Map, key: Convert, value: Convert) -> Convert:
    def convert(given: object) -> list[tuple[object, object]]:
        if not isinstance(given, Mapping | list | tuple):
            raise wrong_shape(given, type_)
        out = []
        for pair in given.items() if isinstance(given, Mapping) else given:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise wrong_shape(given, type_)
            if is_null(pair[0]):
                raise RefusedError(WRONG_SHAPE, f"{show(given)} has a NULL key")
            try:
                out.append((key(pair[0]), value(pair[1])))
            except RefusedError as refused:
                raise within(refused, f"entry {show(pair[0])}") from None
        distinct_keys([k for k, _ in out], given)
        return out

    return convert


def _struct(type_: t.Struct, fields: list[tuple[str, Convert]]) -> Convert:
    def convert(value: object) -> dict[str, object]:
        named = as_mapping(value)
        if named is not None:
            items = struct_items(named, type_)
        elif isinstance(value, list | tuple) and len(value) == len(fields):
            items = list(value)
        else:
            raise wrong_shape(value, type_)
        out = {}
        for (name, inner), item in zip(fields, items, strict=True):
            try:
                out[name] = inner(item)
            except RefusedError as refused:
                raise within(refused, f"field {name}") from None
        return out

    return convert


def as_mapping(value: object) -> Mapping[object, object] | None:
    """A value with named parts: a mapping, a named tuple or a Spark Row."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or getattr(value, "__fields__", None)
        if names is not None and len(names) == len(value):
            return dict(zip(names, value, strict=True))
    return None


def struct_items(given: Mapping[object, object], type_: t.Struct, *, absent_is_null: bool = False) -> list[object]:
    """The parts of a struct in the order of its fields, found by name without case."""
    by_name = {fold(str(name)): item for name, item in given.items()}
    wanted = [fold(name) for name, _ in type_.fields]
    unknown = sorted(set(by_name) - set(wanted))
    if unknown or len(by_name) < len(given):
        what = f"an unknown field {show(unknown[0])}" if unknown else "a field twice"
        raise RefusedError(WRONG_SHAPE, f"{show(dict(given))} has {what}; {type_} was expected")
    missing = [name for name in wanted if name not in by_name]
    if missing and not absent_is_null:
        raise RefusedError(WRONG_SHAPE, f"{show(dict(given))} has no field {show(missing[0])}; {type_} was expected")
    return [by_name.get(name) for name in wanted]


def wrong_shape(value: object, type_: t.Type) -> RefusedError:
    """The refusal of a value that is not the array, map or struct the column wants."""
    return RefusedError(WRONG_SHAPE, f"{show(value)} is a {type(value).__name__}; {type_} takes {takes(type_)}")


def _finer_than_a_microsecond(value: object, type_: t.Type) -> RefusedError:
    return RefusedError(
        LOSES_DIGITS, f"{show(value)} has nanoseconds, which {type_} would lose", "round it to microseconds first"
    )


def _native(value: Any) -> Any:
    """A NumPy scalar as the Python value it stands for; everything else as it is."""
    if _library(value) != "numpy" or getattr(value, "shape", None) != ():
        return value
    kind = value.dtype.kind
    if kind in "mM":
        if kind == "M" and value.dtype.name.endswith("[D]"):
            return value.item()
        target = "datetime64[us]" if kind == "M" else "timedelta64[us]"
        coarse = value.astype(target)
        if coarse != value:
            raise _finer_than_a_microsecond(value, t.TIMESTAMP if kind == "M" else t.DAY_TIME_INTERVAL)
        return coarse.item()
    return value.item()


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_sequence(value: object) -> TypeGuard[Iterable[object]]:
    return isinstance(value, list | tuple) or (_library(value) == "numpy" and bool(getattr(value, "ndim", None)))


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _frozen(value: object) -> Hashable:
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    assert isinstance(value, Hashable)
    return value


_LEAVES: dict[type[t.Type], Convert] = {
    t.Null: _void,
    t.Boolean: _boolean,
    t.String: _string,
    t.Binary: _binary,
    t.Date: _date,
    t.Timestamp: _timestamp,
    t.DayTimeInterval: _day_time,
    t.YearMonthInterval: _year_month,
}

_TAKES: dict[type[t.Type], str] = {
    t.Null: "None only",
    t.Boolean: "bool",
    t.Integer: "int",
    t.Decimal: "decimal.Decimal or int",
    t.Float: "float or int",
    t.Double: "float or int",
    t.String: "str",
    t.Binary: "bytes",
    t.Date: "datetime.date",
    t.Timestamp: "datetime.datetime or datetime.date",
    t.DayTimeInterval: "datetime.timedelta or int (microseconds)",
    t.YearMonthInterval: "int (months)",
    t.Array: "a list or tuple",
    t.Map: "a dict or a list of (key, value) pairs",
    t.Struct: "a dict, or a tuple with one value per field",
}
