"""Spark SQL's types, and the rules by which they combine (ANSI mode).

A type is a small frozen value. `str(t)` is Spark's name for it and `parse_type` in `headwater.sql` reads it back.

Python values of a type, as the reference evaluator and the row API use them:

| type | value |
|---|---|
| BOOLEAN | bool |
| TINYINT SMALLINT INT BIGINT | int |
| DECIMAL(p,s) | decimal.Decimal with exactly s digits after the point |
| FLOAT DOUBLE | float (FLOAT: already rounded to 32 bits) |
| STRING BINARY | str, bytes |
| DATE | datetime.date |
| TIMESTAMP | datetime.datetime without a zone, meaning UTC |
| INTERVAL DAY TO SECOND | int, microseconds |
| INTERVAL YEAR TO MONTH | int, months |
| ARRAY MAP STRUCT | tuple of elements / of (key, value) pairs / of field values |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_PRECISION = 38
_MIN_ADJUSTED_SCALE = 6


@dataclass(frozen=True)
class Type:
    """Base of all types."""

    def __str__(self) -> str:
        return type(self).__name__.upper()


@dataclass(frozen=True)
class Null(Type):
    """The type of a bare NULL; it becomes any other type."""

    def __str__(self) -> str:
        return "VOID"


@dataclass(frozen=True)
class Boolean(Type):
    """TRUE, FALSE, NULL."""


@dataclass(frozen=True)
class Integer(Type):
    """TINYINT, SMALLINT, INT and BIGINT by their width in bits."""

    bits: int

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def as_decimal(self) -> Decimal:
        """The narrowest decimal that holds every value (Spark's DecimalType.forType)."""
        return Decimal({8: 3, 16: 5, 32: 10, 64: 20}[self.bits], 0)

    def __str__(self) -> str:
        return {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[self.bits]


@dataclass(frozen=True)
class Decimal(Type):
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 0 <= self.scale <= self.precision <= MAX_PRECISION or self.precision < 1:
            raise ValueError(f"DECIMAL({self.precision},{self.scale}) does not exist")

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True)
class Float(Type):
    """32-bit floating point."""


@dataclass(frozen=True)
class Double(Type):
    """64-bit floating point."""


@dataclass(frozen=True)
class String(Type):
    """Text in UTF-8, compared by code point."""


@dataclass(frozen=True)
class Binary(Type):
    """Bytes."""


@dataclass(frozen=True)
class Date(Type):
    """A day of the proleptic Gregorian calendar."""


@dataclass(frozen=True)
class Timestamp(Type):
    """A moment to the microsecond; written and read in UTC."""


@dataclass(frozen=True)
class DayTimeInterval(Type):
    """A length of time in microseconds."""

    def __str__(self) -> str:
        return "INTERVAL DAY TO SECOND"


@dataclass(frozen=True)
class YearMonthInterval(Type):
    """A length of time in months."""

    def __str__(self) -> str:
        return "INTERVAL YEAR TO MONTH"


@dataclass(frozen=True)
class Array(Type):
    """ARRAY<element>."""

    element: Type

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True)
class Map(Type):
    """MAP<key, value>."""

    key: Type
    value: Type

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class Struct(Type):
    """STRUCT<name: type, ...>."""

    fields: tuple[tuple[str, Type], ...]

    def __str__(self) -> str:
        return "STRUCT<" + ", ".join(f"{_field_name(name)}: {of}" for name, of in self.fields) + ">"


def _field_name(name: str) -> str:
    """A field's name, in backticks unless it is plain."""
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"


NULL = Null()
BOOLEAN = Boolean()
TINYINT, SMALLINT, INT, BIGINT = Integer(8), Integer(16), Integer(32), Integer(64)
FLOAT, DOUBLE = Float(), Double()
STRING, BINARY, DATE, TIMESTAMP = String(), Binary(), Date(), Timestamp()
DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL = DayTimeInterval(), YearMonthInterval()


def is_numeric(t: Type) -> bool:
    return isinstance(t, Integer | Decimal | Float | Double)


def is_fractional(t: Type) -> bool:
    return isinstance(t, Float | Double)


def is_nested(t: Type) -> bool:
    return isinstance(t, Array | Map | Struct)


def is_orderable(t: Type) -> bool:
    """Whether `<` is defined. (Arrays and structs of orderable types are, in Spark; Headwater passes them through.)"""
    return not is_nested(t)


def is_sortable(t: Type) -> bool:
    """Whether arrays of it can be sorted: a struct by one field after the other, with NULL first. MAP has no order."""
    match t:
        case Map():
            return False
        case Array(element):
            return is_sortable(element)
        case Struct(fields):
            return all(is_sortable(f) for _, f in fields)
    return True


def is_groupable(t: Type) -> bool:
    """Whether GROUP BY and equality joins accept it. MAP has no equality in Spark."""
    match t:
        case Map():
            return False
        case Array(element):
            return is_groupable(element)
        case Struct(fields):
            return all(is_groupable(f) for _, f in fields)
    return True


def bounded_decimal(precision: int, scale: int) -> Decimal:
    """Spark's DecimalType.bounded: cut both at 38."""
    return Decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted_decimal(precision: int, scale: int) -> Decimal:
    """Spark's adjustPrecisionScale: too many digits cost digits after the point first, down to six."""
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_ADJUSTED_SCALE)))


def as_decimal(t: Type) -> Decimal | None:
    """The decimal an exact number takes part in decimal arithmetic as."""
    match t:
        case Decimal():
            return t
        case Integer():
            return t.as_decimal
    return None


def decimal_union(a: Decimal, b: Decimal) -> Decimal:
    """The narrowest decimal that holds both (Spark's widerDecimalType).

    Too many digits are bounded, which keeps the scale where possible: `DECIMAL(38,0)` and `DECIMAL(10,5)` meet at
    `DECIMAL(38,5)`, as in Spark.
    """
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return bounded_decimal(whole + scale, scale)


def common_type(a: Type, b: Type) -> Type | None:
    """The type two operands of a comparison, CASE or UNION meet at, or None (Spark's ANSI type coercion).

    >>> str(common_type(INT, Decimal(10, 2)))
    'DECIMAL(12,2)'
    >>> str(common_type(STRING, INT))
    'BIGINT'
    """
    if a == b:
        return a
    match a, b:
        case Null(), _:
            return b
        case _, Null():
            return a
        case Integer(), Integer():
            return Integer(max(a.bits, b.bits))
        case (Integer() | Decimal(), Integer() | Decimal()):
            left, right = as_decimal(a), as_decimal(b)
            assert left and right
            return decimal_union(left, right)
        # Spark's ANSI rule: a FLOAT beside an exact number becomes DOUBLE, so that INT digits survive.
        case (Float() | Double(), Integer() | Decimal()) | (Integer() | Decimal(), Float() | Double()):
            return DOUBLE
        case (Float(), Double()) | (Double(), Float()):
            return DOUBLE
        case (Date(), Timestamp()) | (Timestamp(), Date()):
            return TIMESTAMP
        case (String(), other) | (other, String()):
            return _string_meets(other)
        case Array(x), Array(y):
            element = common_type(x, y)
            return Array(element) if element else None
    return None


def _string_meets(other: Type) -> Type | None:
    """ANSI mode turns the string into the other side's type: an integer's into BIGINT, other numbers' into DOUBLE."""
    match other:
        case Integer():
            return BIGINT
        case Decimal() | Float() | Double():
            return DOUBLE
        case Boolean() | Binary() | Date() | Timestamp():
            return other
    return None


@dataclass(frozen=True)
class Field:
    """A named, typed column of a relation."""

    name: str
    type: Type
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


Schema = tuple[Field, ...]
