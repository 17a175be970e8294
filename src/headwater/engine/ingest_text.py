"""Values written as text: the fields of a CSV file, and what JSON has no type for.

Text is read as Spark's casts read it, in ANSI mode: what is not a value of the type is an error, never NULL. Blanks
around a value that is not a string are ignored. A number in text for a FLOAT or DOUBLE column is rounded to the
nearest, as everywhere; for every other type it must fit exactly.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from headwater import types as t
from headwater.engine.arrow_types import arrow_type
from headwater.engine.ingest_columns import converted, in_calendar
from headwater.engine.ingest_values import (
    LOSES_DIGITS,
    NOT_UTF8,
    WRONG_SHAPE,
    WRONG_TYPE,
    Convert,
    RefusedError,
    beyond,
    check_text,
    distinct_keys,
    exact_decimal,
    from_python,
    microseconds,
    months,
    nullable,
    show,
    struct_items,
    utc,
    within,
    wrong_shape,
)

FromText = Callable[[str], object]

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([T ](?P<time>[0-9]{2}(:[0-9]{2}(:[0-9]{2})?)?)(\.(?P<fraction>[0-9]{1,9}))?"
    r"( ?(?P<zone>Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?",
    re.ASCII,
)
_DAY_TIME = re.compile(
    r"(?P<sign>[+-]?)(?P<days>[0-9]+) (?P<hours>[0-9]{1,2}):(?P<minutes>[0-9]{1,2}):(?P<seconds>[0-9]{1,2})"
    r"(\.(?P<fraction>[0-9]{1,9}))?",
    re.ASCII,
)
_YEAR_MONTH = re.compile(r"(?P<sign>[+-]?)(?P<years>[0-9]+)-(?P<months>[0-9]{1,2})", re.ASCII)
_INTERVAL = re.compile(r"INTERVAL\s+'(?P<text>[^']*)'\s+[A-Z]+(\s+TO\s+[A-Z]+)?", re.IGNORECASE)

_EXAMPLES: dict[type[t.Type], str] = {
    t.Boolean: "true or false",
    t.Integer: "a whole number such as 42",
    t.Decimal: "a number such as 12.50",
    t.Float: "a number such as 1.5e3, NaN or Infinity",
    t.Double: "a number such as 1.5e3, NaN or Infinity",
    t.Date: "2024-12-31",
    t.Timestamp: "2024-12-31 23:59:59.999999, with or without a zone such as Z or +02:00",
    t.DayTimeInterval: "days and time such as 1 12:30:00",
    t.YearMonthInterval: "years and months such as 1-6",
    t.Binary: "base64",
}


def column_of_text(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    """A column from fields as bytes; raises RefusedError with the index of the first at fault."""
    if isinstance(type_, t.Binary):
        return column
    try:
        text = column.cast(pa.string())
        out = text if isinstance(type_, t.String) else _cast(text, type_)
    except pa.ArrowInvalid:
        out = None
    if out is None:
        read = from_text(type_)
        return converted(column.to_pylist(), type_, lambda value: read(_decoded(value)))
    return out


def from_text(type_: t.Type) -> FromText:
    """How one field of a CSV file is read; a nested type has no such form.

    >>> from_text(t.DAY_TIME_INTERVAL)("1 00:00:01")
    86401000000
    """
    match type_:
        case t.Integer():
            return lambda text: _integer(text, type_)
        case t.Decimal():
            return lambda text: _decimal(text, type_)
        case t.Float() | t.Double():
            return lambda text: _floating(text, type_)
        case t.Binary():
            return str.encode
    return _READERS[type(type_)]


def from_json(type_: t.Type) -> Convert:
    """How a JSON value is read, once parsed with `decimal.Decimal` for numbers that have a point or exponent.

    Absent fields of a struct are NULL, as absent keys of a row are.
    """
    match type_:
        case t.Decimal() | t.Date() | t.Timestamp() | t.DayTimeInterval() | t.YearMonthInterval():
            return _text_or(type_, from_text(type_), from_python(type_))
        case t.Float() | t.Double():
            return lambda value: _json_floating(value, type_)
        case t.Binary():
            return _text_or(type_, _base64, from_python(type_))
        case t.Array(element):
            return _json_array(type_, nullable(from_json(element)))
        case t.Map(key, value):
            return _json_map(type_, _json_key(key), nullable(from_json(value)))
        case t.Struct(fields):
            return _json_struct(type_, [nullable(from_json(inner)) for _, inner in fields])
    return from_python(type_)


def _cast(text: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray | None:
    """Arrow's cast of a whole column, or None where it is not to be trusted and every value must be looked at."""
    if isinstance(type_, t.DayTimeInterval | t.YearMonthInterval):
        return None
    if isinstance(type_, t.Integer) and pc.any(pc.match_substring(text, "x", ignore_case=True)).as_py():
        return None  # Arrow reads 0x10 as sixteen
    if isinstance(type_, t.Decimal):
        longest = pc.max(pc.binary_length(text)).as_py() or 0
        if longest > t.MAX_PRECISION or pc.any(pc.match_substring(text, "e", ignore_case=True)).as_py():
            return None  # Arrow wraps around, or reads beyond a table, where the exponent is large
        return text.cast(pa.decimal256(2 * t.MAX_PRECISION, type_.scale)).cast(arrow_type(type_))
    out = text.cast(arrow_type(type_))
    if t.is_fractional(type_) and pc.any(pc.is_inf(out)).as_py():
        return None  # infinite, or only too large
    return out if in_calendar(out, type_) else None


def _decoded(value: object) -> str:
    if isinstance(value, str):
        return value
    assert isinstance(value, bytes)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RefusedError(NOT_UTF8, f"{show(value)} is not valid UTF-8", "convert the file to UTF-8") from None


def _unreadable(text: str, type_: t.Type) -> RefusedError:
    example = _EXAMPLES[type(type_)]
    return RefusedError(WRONG_TYPE, f"{show(text)} is not a value of {type_}", f"expected {example}")


def _string(text: str) -> str:
    return check_text(text)


def _boolean(text: str) -> bool:
    value = {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())
    if value is None:
        raise _unreadable(text, t.BOOLEAN)
    return value


def _integer(text: str, type_: t.Integer) -> int:
    bare = text.strip()
    if not _INTEGER.fullmatch(bare):
        raise _unreadable(text, type_)
    # Python refuses to read very long numbers; they are out of range anyway.
    value = int(bare) if len(bare) < 1000 else None
    if value is None or not type_.low <= value <= type_.high:
        raise beyond(show(bare), type_)
    return value


def _decimal(text: str, type_: t.Decimal) -> decimal.Decimal:
    bare = text.strip()
    if not _NUMBER.fullmatch(bare):
        raise _unreadable(text, type_)
    try:
        return exact_decimal(decimal.Decimal(bare), type_)
    except decimal.InvalidOperation:  # an exponent beyond what even Decimal holds
        raise beyond(show(bare), type_) from None


def _floating(text: str, type_: t.Type) -> float:
    bare = text.strip()
    if _NOT_FINITE.fullmatch(bare):
        return float(bare)
    if not _NUMBER.fullmatch(bare):
        raise _unreadable(text, type_)
    # Through Arrow for FLOAT: rounding to 64 bits first and to 32 then is not always the nearest.
    value = float(pa.scalar(bare).cast(pa.float32()).as_py()) if isinstance(type_, t.Float) else float(bare)
    if value in (float("inf"), float("-inf")):
        raise beyond(show(bare), type_)
    return value


def _date(text: str) -> dt.date:
    bare = text.strip()
    if not _DATE.fullmatch(bare):
        raise _unreadable(text, t.DATE)
    try:
        return dt.date.fromisoformat(bare)
    except ValueError:
        raise _no_such_day(text, t.DATE) from None


def _timestamp(text: str) -> dt.datetime:
    found = _TIMESTAMP.fullmatch(text.strip())
    if not found:
        raise _unreadable(text, t.TIMESTAMP)
    zone = {"Z": "+00:00", "UTC": "+00:00"}.get(found["zone"], found["zone"] or "")
    try:
        moment = dt.datetime.fromisoformat(f"{found['date']}T{found['time'] or '00:00'}{zone}")
    except ValueError:
        raise _no_such_day(text, t.TIMESTAMP) from None
    return utc(moment.replace(microsecond=_micros(found["fraction"], text, t.TIMESTAMP)), text)


def _no_such_day(text: str, type_: t.Type) -> RefusedError:
    return RefusedError(WRONG_TYPE, f"{show(text)} names a day or time that does not exist, so it is no {type_}")


def _micros(fraction: str | None, text: str, type_: t.Type) -> int:
    digits = (fraction or "").ljust(6, "0")
    if digits[6:].strip("0"):
        raise RefusedError(LOSES_DIGITS, f"{show(text)} has more than 6 digits of seconds, which {type_} would lose")
    return int(digits[:6])


def _interval_text(text: str) -> str:
    """The inside of `INTERVAL '...' DAY TO SECOND`, which is how Spark writes intervals, or the text itself."""
    wrapped = _INTERVAL.fullmatch(text.strip())
    return wrapped["text"].strip() if wrapped else text.strip()


def _day_time(text: str) -> int:
    found = _DAY_TIME.fullmatch(_interval_text(text))
    if not found or len(found["days"]) > 12:
        raise _unreadable(text, t.DAY_TIME_INTERVAL)
    hours, minutes, seconds = int(found["hours"]), int(found["minutes"]), int(found["seconds"])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise _unreadable(text, t.DAY_TIME_INTERVAL)
    whole = ((int(found["days"]) * 24 + hours) * 60 + minutes) * 60 + seconds
    value = whole * 1_000_000 + _micros(found["fraction"], text, t.DAY_TIME_INTERVAL)
    return microseconds(-value if found["sign"] == "-" else value, text)


def _year_month(text: str) -> int:
    found = _YEAR_MONTH.fullmatch(_interval_text(text))
    if not found or int(found["months"]) > 11 or len(found["years"]) > 12:
        raise _unreadable(text, t.YEAR_MONTH_INTERVAL)
    value = int(found["years"]) * 12 + int(found["months"])
    return months(-value if found["sign"] == "-" else value, text)


def _void(text: str) -> object:
    raise RefusedError(WRONG_TYPE, f"{show(text)} is in a column of type VOID, which holds NULL only")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _unreadable(text, t.BINARY) from None


def _text_or(type_: t.Type, read: FromText, otherwise: Convert) -> Convert:
    def convert(value: object) -> object:
        if isinstance(value, str):
            return read(value)
        if isinstance(value, int | decimal.Decimal) and not isinstance(value, bool):
            if not isinstance(type_, t.Decimal | t.DayTimeInterval | t.YearMonthInterval):
                raise _unreadable(str(value), type_)
            return otherwise(value)
        raise _json_kind(value, type_)

    return convert


def _json_floating(value: object, type_: t.Type) -> float:
    if isinstance(value, float) or (isinstance(value, int | decimal.Decimal) and not isinstance(value, bool)):
        return _floating(str(value), type_)
    if isinstance(value, str) and _NOT_FINITE.fullmatch(value):
        return float(value)
    raise _json_kind(value, type_)


def _json_kind(value: object, type_: t.Type) -> RefusedError:
    example = _EXAMPLES[type(type_)]
    return RefusedError(WRONG_TYPE, f"{show(value)} is not a value of {type_}", f"expected {example}")


def _json_array(type_: t.Type, element: Convert) -> Convert:
    def convert(value: object) -> list[object]:
        if not isinstance(value, list):
            raise wrong_shape(value, type_)
        return [_part(element, item, f"element {position}") for position, item in enumerate(value)]

    return convert


def _json_key(type_: t.Type) -> FromText:
    if t.is_nested(type_):
        raise RefusedError(WRONG_SHAPE, f"a JSON object cannot have keys of type {type_}")
    return _base64 if isinstance(type_, t.Binary) else from_text(type_)


def _json_map(type_: t.Type, key: FromText, value: Convert) -> Convert:
    def convert(given: object) -> list[tuple[object, object]]:
        if not isinstance(given, dict):
            raise wrong_shape(given, type_)
        out = [(key(name), _part(value, item, f"entry {show(name)}")) for name, item in given.items()]
        distinct_keys([name for name, _ in out], given)
        return out

    return convert


def _json_struct(type_: t.Struct, fields: list[Convert]) -> Convert:
    names = [name for name, _ in type_.fields]

    def convert(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise wrong_shape(value, type_)
        items = struct_items(value, type_, absent_is_null=True)
        return {
            name: _part(inner, item, f"field {name}") for name, inner, item in zip(names, fields, items, strict=True)
        }

    return convert


def _part(convert: Convert, value: object, place: str) -> object:
    try:
        return convert(value)
    except RefusedError as refused:
        raise within(refused, place) from None


_READERS: dict[type[t.Type], FromText] = {
    t.Null: _void,
    t.Boolean: _boolean,
    t.String: _string,
    t.Date: _date,
    t.Timestamp: _timestamp,
    t.DayTimeInterval: _day_time,
    t.YearMonthInterval: _year_month,
}
