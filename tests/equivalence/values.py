"""Values of each column type: the small domains they are drawn from, and their forms in JSON and SQL.

Domains are tiny on purpose, so that groups, join partners and duplicates collide. Doubles are multiples of 0.25 in a
small range, whose sums are exact in any order.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

from headwater import types as t
from headwater.algebra.functions.numbers import positive_zero

NAN = float("nan")  # one object, because Python finds NaN in a dictionary by identity only
INFINITY = math.inf

ARRAY_TYPE = t.Array(t.INT)
STRUCT_TYPE = t.Struct((("x", t.INT), ("y", t.STRING)))

_DOMAINS: dict[t.Type, tuple[object, ...]] = {
    t.BOOLEAN: (True, False),
    t.TINYINT: (-1, 0, 1, 2),
    t.SMALLINT: (-2, 0, 1, 7),
    t.INT: (-2, -1, 0, 1, 1, 2, 2, 3, 5),
    t.BIGINT: (-3, 0, 1, 2, 4, 10),
    t.FLOAT: (-0.5, 0.0, 0.25, 1.5),
    t.DOUBLE: (-1.25, -0.25, 0.0, 0.5, 0.75, 1.0, 2.0, 3.25),
    t.STRING: ("", "a", "a", "b", "B", "ab", "ba", "abc", "é", " x "),
    t.BINARY: (b"", b"a", b"\x00\xff"),
    t.DATE: (date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 1), date(1969, 7, 20)),
    t.TIMESTAMP: (
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 23, 59, 59, 999999),
        datetime(2024, 2, 29, 12, 30),
        datetime(2024, 2, 29, 12, 30, 15, 250000),
        datetime(1969, 7, 20, 20, 17, 40),
    ),
    ARRAY_TYPE: ((), (1,), (1, 2), (2, None)),
    STRUCT_TYPE: ((1, "a"), (2, None), (None, "b")),
}
_DECIMALS = ("-1.50", "-0.25", "0.00", "0.10", "0.50", "1.00", "1.25", "2.75", "10.00")
_RARE_DOUBLES = (NAN, INFINITY, -INFINITY)

DECIMAL_TYPES = (t.Decimal(5, 2), t.Decimal(10, 2), t.Decimal(8, 3), t.Decimal(12, 0))
COLUMN_TYPES: tuple[t.Type, ...] = (*_DOMAINS, *DECIMAL_TYPES)
BY_NAME: dict[str, t.Type] = {str(each): each for each in COLUMN_TYPES}


def domain(of: t.Type) -> tuple[object, ...]:
    """All values a column of a type takes, NULL and the rare doubles aside."""
    if isinstance(of, t.Decimal):
        unit = Decimal(1).scaleb(-of.scale)
        return tuple(dict.fromkeys(positive_zero(Decimal(text).quantize(unit)) for text in _DECIMALS))
    return _DOMAINS[of]


def draw(rng: random.Random, of: t.Type, null_share: float, rare: bool = False) -> object:
    """A value of a type: NULL, with `rare` sometimes NaN or an infinity, else one of its domain."""
    if rng.random() < null_share:
        return None
    if rare and of == t.DOUBLE and rng.random() < 0.15:
        return rng.choice(_RARE_DOUBLES)
    return rng.choice(domain(of))


def bound(of: t.Type) -> float:
    """The largest magnitude of a number in the domain."""
    return max((abs(float(v)) for v in domain(of) if isinstance(v, int | float | Decimal)), default=0.0)


def simplest(of: t.Type) -> tuple[object, ...]:
    """Values a reader finds plain, plainest first; a shrinker tries them."""
    match of:
        case t.Boolean():
            return (True,)
        case t.Integer():
            return (0, 1)
        case t.Float() | t.Double():
            return (0.0, 1.0)
        case t.Decimal(_, scale):
            unit = Decimal(1).scaleb(-scale)
            return (Decimal(0).quantize(unit), Decimal(1).quantize(unit))
        case t.String():
            return ("", "a")
    return domain(of)[:1]


def canonical(value: object) -> object:
    """A value in the one form in which equal values are equal in Python, whichever engine it came from."""
    match value:
        case float() if math.isnan(value):
            return NAN
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case dict():
            return tuple(canonical(v) for v in value.values())
        case list() | tuple():
            return tuple(canonical(v) for v in value)
        case bytearray() | memoryview():
            return bytes(value)
    return value


def canonical_row(row: Iterable[object]) -> tuple[object, ...]:
    return tuple(canonical(value) for value in row)


def encode(value: object) -> object:
    """A value as JSON can hold it; its column's type reads it back."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return (
                value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
            )
        case Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case date():  # datetimes are dates too
            return value.isoformat()
        case tuple():
            return [encode(v) for v in value]
    raise TypeError(f"no JSON form for {value!r}")


def decode(data: object, of: t.Type) -> object:
    """The inverse of `encode`."""
    if data is None:
        return None
    match of:
        case t.Float() | t.Double():
            return canonical(float(data))  # type: ignore[arg-type]
        case t.Decimal():
            return Decimal(str(data))
        case t.Binary():
            return bytes.fromhex(str(data))
        case t.Date():
            return date.fromisoformat(str(data))
        case t.Timestamp():
            return datetime.fromisoformat(str(data))
        case t.Array(element):
            assert isinstance(data, list)
            return tuple(decode(v, element) for v in data)
        case t.Struct(fields):
            assert isinstance(data, list)
            return tuple(decode(v, f) for v, (_, f) in zip(data, fields, strict=True))
    return data


def plain(value: object, of: t.Type) -> object:
    """A value as a user hands it to the row API: lists and dicts for nested types."""
    if value is None:
        return None
    match of:
        case t.Array(element):
            assert isinstance(value, tuple)
            return [plain(v, element) for v in value]
        case t.Struct(fields):
            assert isinstance(value, tuple)
            return {name: plain(v, f) for v, (name, f) in zip(value, fields, strict=True)}
    return value


def literal(value: object, of: t.Type) -> str:
    """A value as Spark SQL writes it."""
    if value is None:
        return "NULL"
    match of:
        case t.Boolean():
            return "TRUE" if value else "FALSE"
        case t.String():
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        case t.Float() | t.Double():
            assert isinstance(value, float)
            text = repr(value) if math.isfinite(value) else f"'{encode(value)}'"
            return f"CAST({text} AS {of})"
        case t.Binary():
            assert isinstance(value, bytes)
            return f"X'{value.hex()}'"
        case t.Date():
            return f"DATE '{value}'"
        case t.Timestamp():
            return f"TIMESTAMP '{value}'"
        case t.Array(element):
            assert isinstance(value, tuple)
            return "array(" + ", ".join(literal(v, element) for v in value) + ")"
        case t.Struct(fields):
            assert isinstance(value, tuple)
            parts = (f"'{name}', {literal(v, f)}" for v, (name, f) in zip(value, fields, strict=True))
            return "named_struct(" + ", ".join(parts) + ")"
    return str(value)
