"""Dates as text in a given format.

Java's format letters are translated to strftime's; only those that print the same everywhere are taken.
"""

from __future__ import annotations

import datetime as dt
import re

from headwater import types as t
from headwater.algebra.functions.casts import SECOND, from_microseconds
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import literal_value, takes
from headwater.algebra.scalars import Call, Scalar

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Runs of Java's letters and what strftime calls the same thing.
_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "DDD": "%j",
    "E": "%a",
    "EE": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "a": "%p",
}
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z'\[\]{}#]")


def strftime_format(text: str) -> str:
    """Java's date format as strftime's.

    Raises:
        ValueError: it has letters Headwater does not know.
    """
    out, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if not found:
            raise ValueError(f"the format {text!r} has {text[position]!r}, which is not supported")
        token = found.group()
        position = found.end()
        if token.startswith("'"):
            out.append((token[1:-1].replace("''", "'") or "'").replace("%", "%%"))
        elif token[0].isalpha():
            if token not in _LETTERS:
                raise ValueError(f"the format has {token!r}; supported are {', '.join(_LETTERS)}")
            out.append(_LETTERS[token])
        else:
            out.append(token.replace("%", "%%"))
    return "".join(out)


def _formatted(value: dt.datetime, pattern: str) -> str:
    fields = {
        "%Y": f"{value.year:04}",
        "%y": f"{value.year % 100:02}",
        "%m": f"{value.month:02}",
        "%b": MONTHS[value.month - 1][:3],
        "%B": MONTHS[value.month - 1],
        "%d": f"{value.day:02}",
        "%j": f"{value.timetuple().tm_yday:03}",
        "%a": DAYS[value.weekday()][:3],
        "%A": DAYS[value.weekday()],
        "%H": f"{value.hour:02}",
        "%I": f"{(value.hour + 11) % 12 + 1:02}",
        "%M": f"{value.minute:02}",
        "%S": f"{value.second:02}",
        "%g": f"{value.microsecond // 1000:03}",
        "%f": f"{value.microsecond:06}",
        "%p": "PM" if value.hour >= 12 else "AM",
        "%%": "%",
    }
    return re.sub("%.", lambda found: fields[found.group()], pattern)


def format_of(args: tuple[Scalar, ...]) -> str:
    """The strftime format of a DATE_FORMAT or FROM_UNIXTIME call."""
    if len(args) == 1:
        return strftime_format("yyyy-MM-dd HH:mm:ss")
    value = literal_value(args[1])
    if not isinstance(value, str):
        raise ValueError("the format must be a text literal")
    return strftime_format(value)


def _format_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.TIMESTAMP, t.STRING, result=t.STRING)(args)
    format_of(args)
    return signature


@define("date_format", _format_signature)
def date_format(call: Call, value: dt.datetime, _format: str) -> object:
    """A date or timestamp as text in a literal format of yyyy, MM, dd, HH, mm, ss and the like."""
    return _formatted(value, format_of(call.args))


def _from_unixtime_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.BIGINT, t.STRING, result=t.STRING, least=1)(args)
    format_of(args)
    return signature


@define("from_unixtime", _from_unixtime_signature, raises=True)
def from_unixtime(call: Call, seconds: int, _format: str = "") -> object:
    """The moment so many seconds after 1970 as text, in a literal format or as yyyy-MM-dd HH:mm:ss."""
    return _formatted(from_microseconds(seconds * SECOND), format_of(call.args))
