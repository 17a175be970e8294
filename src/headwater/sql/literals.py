"""Constants as Spark reads them.

Functions here take the text of a literal and raise ValueError with a reason a user understands.
"""

from __future__ import annotations

import decimal
import math
import re
from itertools import pairwise

from headwater import types as t
from headwater.algebra.functions.numbers import to_float32
from headwater.algebra.scalars import Literal

_INT, _BIGINT = t.INT, t.BIGINT


def number(text: str) -> Literal:
    """A number without a suffix: INT, else BIGINT, else DECIMAL; DECIMAL with a point; DOUBLE with an exponent.

    >>> number("1.50").type
    Decimal(precision=3, scale=2)
    """
    if "e" in text.lower():
        return floating(text, t.DOUBLE)
    if "." in text:
        return exact(text)
    value = int(text)
    for kind in (_INT, _BIGINT):
        if kind.low <= value <= kind.high:
            return Literal(value, kind)
    return exact(text)


def exact(text: str) -> Literal:
    """A DECIMAL with as many digits as are written."""
    value = decimal.Decimal(text)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > t.MAX_PRECISION:
        raise ValueError(f"{text} has more than {t.MAX_PRECISION} digits")
    with decimal.localcontext(prec=2 * t.MAX_PRECISION):
        return Literal(value.quantize(decimal.Decimal(1).scaleb(-scale)), t.Decimal(precision, scale))


def floating(text: str, kind: t.Type) -> Literal:
    """A FLOAT or DOUBLE."""
    value = float(text)
    if isinstance(kind, t.Float):
        value = to_float32(value)
    if math.isinf(value):
        raise ValueError(f"{text} is out of the range of {kind}")
    return Literal(value, kind)


def suffixed(text: str, kind: t.Type) -> Literal:
    """A number with a suffix that names its type (`10L`, `1.5D`)."""
    if isinstance(kind, t.Integer):
        value = int(text)
        if not kind.low <= value <= kind.high:
            raise ValueError(f"{text} is out of the range of {kind}")
        return Literal(value, kind)
    if isinstance(kind, t.Decimal):
        return exact(text)
    return floating(text, kind)


def binary(text: str) -> Literal:
    """The digits of X'1F'; an odd number of them has a zero in front."""
    try:
        return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text), t.BINARY)
    except ValueError:
        raise ValueError(f"X'{text}' has a character that is not a hexadecimal digit") from None


_SECOND = 1_000_000
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
    "DAY": 86400 * _SECOND,
    "WEEK": 7 * 86400 * _SECOND,
}
_MONTHS = {"MONTH": 1, "YEAR": 12}
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_LARGEST = {"HOUR": 23, "MINUTE": 59, "SECOND": 59}
_QUANTITY = re.compile(r"([+-]?)(\d*)(?:\.(\d{0,9}))?")


def interval(parts: list[tuple[str, str]]) -> Literal:
    """An interval of quantities with units, such as `[("1", "DAY"), ("2", "HOURS")]`."""
    if not parts:
        raise ValueError("an interval needs a quantity and a unit")
    months, micros = 0, 0
    kinds: set[t.Type] = set()
    for quantity, unit in parts:
        name = unit.upper().removesuffix("S")
        if name in _MONTHS:
            kinds.add(t.YEAR_MONTH_INTERVAL)
            months += _whole(quantity, name) * _MONTHS[name]
        elif name == "SECOND":
            kinds.add(t.DAY_TIME_INTERVAL)
            micros += _seconds(quantity)
        elif name in _MICROSECONDS:
            kinds.add(t.DAY_TIME_INTERVAL)
            micros += _whole(quantity, name) * _MICROSECONDS[name]
        else:
            raise ValueError(f"{unit} is not a unit of an interval")
    if len(kinds) > 1:
        raise ValueError("an interval has years and months, or days and times, not both")
    return bounded_interval(months if t.YEAR_MONTH_INTERVAL in kinds else micros, kinds.pop())


def interval_text(text: str) -> Literal:
    """The quoted form with units inside: `'1 day 2 hours'`."""
    words = text.split()
    if words and words[0].upper() == "INTERVAL":
        words = words[1:]
    if not words or len(words) % 2:
        raise ValueError(f"'{text}' is not an interval: write quantities and units, such as '1 day 2 hours'")
    return interval(list(zip(words[::2], words[1::2], strict=True)))


def interval_range(text: str, first: str, last: str) -> Literal:
    """The standard form `'1 10:20:30' DAY TO SECOND` or `'1-2' YEAR TO MONTH`."""
    first, last = first.upper(), last.upper()
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if (first, last) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"(\d+)-(\d+)", body.strip())
        if not match or int(match[2]) > 11:
            raise ValueError(f"'{text}' is not years-months such as '1-2'")
        return bounded_interval(sign * (12 * int(match[1]) + int(match[2])), t.YEAR_MONTH_INTERVAL)
    if first not in _FIELDS or last not in _FIELDS or _FIELDS.index(first) >= _FIELDS.index(last):
        raise ValueError(f"{first} TO {last} is not a range of interval fields")
    fields = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    pattern = r"(\d+)"
    for before, field in pairwise(fields):
        pattern += (r"\s+" if before == "DAY" else ":") + (r"(\d+(?:\.\d{1,9})?)" if field == "SECOND" else r"(\d+)")
    match = re.fullmatch(pattern, body.strip())
    if not match:
        raise ValueError(f"'{text}' does not fit {first} TO {last}")
    total = 0
    for position, (field, value) in enumerate(zip(fields, match.groups(), strict=True)):
        if position and int(value.split(".")[0]) > _LARGEST[field]:
            raise ValueError(f"{field} {value} of '{text}' is more than {_LARGEST[field]}")
        total += _seconds(value) if field == "SECOND" else int(value) * _MICROSECONDS[field]
    return bounded_interval(sign * total, t.DAY_TIME_INTERVAL)


def _whole(quantity: str, unit: str) -> int:
    match = _QUANTITY.fullmatch(quantity.strip())
    if not match or not match[2]:
        raise ValueError(f"'{quantity}' is not a quantity of an interval")
    if match[3]:
        raise ValueError(f"{unit} cannot have a fraction; only SECOND can")
    return int(match[1] + match[2])


def _seconds(quantity: str) -> int:
    match = _QUANTITY.fullmatch(quantity.strip())
    if not match or not (match[2] or match[3]):
        raise ValueError(f"'{quantity}' is not a quantity of an interval")
    # Spark reads nine digits and keeps six.
    micros = int(match[2] or 0) * _SECOND + int((match[3] or "").ljust(9, "0")) // 1000
    return -micros if match[1] == "-" else micros


def bounded_interval(value: int, kind: t.Type) -> Literal:
    """An interval of so many microseconds or months, if there can be one."""
    limit = _BIGINT if kind == t.DAY_TIME_INTERVAL else _INT
    if not limit.low <= value <= limit.high:
        raise ValueError("the interval is too long")
    return Literal(value, kind)
