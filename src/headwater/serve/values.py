"""One value as text for people and CSV, and as JSON for programs. Nothing is rounded in any of them.

| type | text and CSV | JSON |
|---|---|---|
| NULL | `NULL` / an empty field | `null` |
| BOOLEAN | `true` | `true` |
| integers | `42` | the number, all digits |
| DECIMAL | `1.50`, all digits of its scale | the same as a string: readers make a DOUBLE of a number |
| FLOAT, DOUBLE | the shortest text that reads back the same | that number; `"NaN"`, `"Infinity"`, `"-Infinity"` |
| STRING | itself | a string |
| BINARY | hexadecimal digits | base64 as a string, as rows in JSON are read |
| DATE | `2026-01-31` | the same as a string |
| TIMESTAMP | `2026-01-31 10:00:00`, fractions if there are any; UTC | `"2026-01-31T10:00:00Z"` |
| INTERVAL DAY TO SECOND | `INTERVAL '1 02:00:00' DAY TO SECOND` | the same as a string |
| INTERVAL YEAR TO MONTH | the number of months | that number |
| ARRAY, STRUCT | as JSON | array, object |
| MAP | as JSON | object if the keys are strings, else an array of `[key, value]` |
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import struct
from typing import Any

import pyarrow as pa


def text(value: Any, kind: pa.DataType) -> str:
    """A value that is not NULL, as text."""
    if pa.types.is_timestamp(kind):
        return _timestamp(value, " ", "")
    if pa.types.is_nested(kind):
        return json_text(value, kind)
    if pa.types.is_floating(kind):
        return _float(value, kind)
    if isinstance(value, bytes):
        return value.hex()
    plain = jsonable(value, kind)
    return plain if isinstance(plain, str) else json.dumps(plain)


def json_text(value: Any, kind: pa.DataType) -> str:
    """A value as a JSON text."""
    return json.dumps(jsonable(value, kind), ensure_ascii=False)


def jsonable(value: Any, kind: pa.DataType) -> Any:
    """A value in what `json.dumps` writes without loss."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(_float(value, kind)) if math.isfinite(value) else _float(value, kind)
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if pa.types.is_timestamp(kind):
        return _timestamp(value, "T", "Z")
    if pa.types.is_date(kind):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return _day_time(value // datetime.timedelta(microseconds=1))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if pa.types.is_map(kind):
        pairs = [(jsonable(k, kind.key_type), jsonable(v, kind.item_type)) for k, v in value]
        return dict(pairs) if _is_text(kind.key_type) else [list(pair) for pair in pairs]
    if pa.types.is_struct(kind):
        return {f.name: jsonable(value[f.name], f.type) for f in kind}
    if _is_list(kind):
        return [jsonable(item, kind.value_type) for item in value]
    return value


def is_number(kind: pa.DataType) -> bool:
    """Whether people expect the column flush right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _float(value: float, kind: pa.DataType) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if pa.types.is_float32(kind):
        # The value came as a 64-bit float with digits that a 32-bit one does not have.
        for digits in range(1, 9):
            short = float(f"{value:.{digits}g}")
            if struct.pack("f", short) == struct.pack("f", value):
                return repr(short)
    return repr(value)


def _timestamp(value: datetime.datetime, between: str, after: str) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value.isoformat(sep=between) + after


def _day_time(microseconds: int) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"INTERVAL '{sign}{days} {hours:02d}:{minutes:02d}:{seconds:02d}{tail}' DAY TO SECOND"
