"""Text as values: what CAST from STRING accepts.

Narrower than Spark in three places, where it raises instead: zone names other than UTC and GMT in a timestamp, times
without a date (Spark takes today's), and Java's own `1.5f` and hexadecimal floats.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal, InvalidOperation

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError, invalid_value
from headwater.algebra.functions.numbers import WIDE

#: What Spark trims before it parses: ASCII blanks and control characters.
BLANKS = "".join(map(chr, range(0x21))) + "\x7f"

INTEGER = "[+-]?[0-9]+"
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NOT_FINITE = r"[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]"
DATE = r"\+?([0-9]{4})(?:-([0-9]{1,2}))?(?:-([0-9]{1,2})(?:[T ].*)?)?"
TIMESTAMP = (
    r"\+?([0-9]{4})(?:-([0-9]{1,2}))?(?:-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?"
    r"(?: *(?:Z|UTC|GMT|([+-])([0-9]{1,2})(?::([0-9]{1,2}))?))?)?)?)?)?"
)

TRUE_WORDS = ("t", "true", "y", "yes", "1")
FALSE_WORDS = ("f", "false", "n", "no", "0")


def _refuse(text: str, kind: t.Type) -> EvaluationError:
    return invalid_value(f"'{text}' is not a valid {kind}")


def parse_integer(text: str, kind: t.Integer) -> int:
    """Digits with an optional sign."""
    trimmed = text.strip(BLANKS)
    if not re.fullmatch(INTEGER, trimmed) or not kind.low <= int(trimmed) <= kind.high:
        raise _refuse(text, kind)
    return int(trimmed)


def parse_decimal(text: str, kind: t.Decimal) -> Decimal:
    """A number with an optional point and exponent, exact."""
    trimmed = text.strip(BLANKS)
    if not re.fullmatch(NUMBER, trimmed):
        raise _refuse(text, kind)
    try:
        return WIDE.create_decimal(trimmed)
    except InvalidOperation:
        raise _refuse(text, kind) from None


def parse_double(text: str, kind: t.Type) -> float:
    """A number, an infinity or NaN."""
    trimmed = text.strip(BLANKS)
    if not re.fullmatch(f"{NUMBER}|{NOT_FINITE}", trimmed):
        raise _refuse(text, kind)
    return float(trimmed)


def parse_boolean(text: str) -> bool:
    """One of the words for true and false, in any case."""
    word = text.strip(BLANKS).lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise _refuse(text, t.BOOLEAN)


def parse_date(text: str) -> dt.date:
    """Year, month and day; what follows a blank or T is ignored, missing parts are 1."""
    found = re.fullmatch(DATE, text.strip(BLANKS), re.DOTALL)
    if not found:
        raise _refuse(text, t.DATE)
    year, month, day = (int(part or 1) for part in found.groups())
    try:
        return dt.date(year, month, day)
    except ValueError:
        raise _refuse(text, t.DATE) from None


def parse_timestamp(text: str) -> dt.datetime:
    """A date and a time of day with an optional offset from UTC; digits past the microsecond are cut off."""
    found = re.fullmatch(TIMESTAMP, text.strip(BLANKS))
    if not found:
        raise _refuse(text, t.TIMESTAMP)
    year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
    micros = int((fraction or "").ljust(6, "0")[:6])
    offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    if int(minutes or 0) > 59 or abs(offset) > dt.timedelta(hours=18):
        raise _refuse(text, t.TIMESTAMP)
    try:
        local = dt.datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)
        )
        return local + dt.timedelta(microseconds=micros) - offset
    except (ValueError, OverflowError):
        raise _refuse(text, t.TIMESTAMP) from None
