"""Text as dates and timestamps in a given format: TO_DATE, TO_TIMESTAMP and UNIX_TIMESTAMP with two arguments.

The format becomes a regular expression with a group for each field. It is a literal, and takes what one grammar can
say: fields of a fixed number of digits, and of any number where something else follows.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from headwater import types as t
from headwater.algebra.functions.casts import SECOND, microseconds
from headwater.algebra.functions.errors import EvaluationError, invalid_value
from headwater.algebra.functions.formats import MONTHS
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import accepts, count_args, describe, literal_value
from headwater.algebra.scalars import Call, Scalar

DEFAULT = "yyyy-MM-dd HH:mm:ss"
SHORT_MONTHS = tuple(month[:3].lower() for month in MONTHS)

_TWO, _ANY = "([0-9]{2})", "([0-9]{1,19})"
_FIELDS = {
    "yyyy": ("year", "([0-9]{4})"),
    "MM": ("month", _TWO),
    "M": ("month", _ANY),
    "MMM": ("month name", "([A-Za-z]{3})"),
    "dd": ("day", _TWO),
    "d": ("day", _ANY),
    "HH": ("hour", _TWO),
    "H": ("hour", _ANY),
    "mm": ("minute", _TWO),
    "m": ("minute", _ANY),
    "ss": ("second", _TWO),
    "s": ("second", _ANY),
    # As many digits as there are letters, or fewer.
    **{"S" * n: ("fraction", f"([0-9]{{1,{n}}})") for n in range(1, 7)},
}
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z'\[\]{}#]")


@dataclass(frozen=True)
class Layout:
    """A format, read: its regular expression, and the field of each group."""

    pattern: str
    fields: tuple[str, ...]


@lru_cache(maxsize=256)
def layout(text: str) -> Layout:
    """What a format says.

    Raises:
        ValueError: it has something else, a field twice, or fields that cannot be told apart.
    """
    parts: list[str] = []
    fields: list[str] = []
    position, loose = 0, False
    while position < len(text):
        found = _TOKEN.match(text, position)
        if not found:
            raise ValueError(f"the format {text!r} has {text[position]!r}, which is not supported")
        token, position = found.group(), found.end()
        if not token[0].isalpha():
            literal = (token[1:-1].replace("''", "'") or "'") if token[0] == "'" else token
            if literal[0].isdigit() or literal.lower() != literal.upper():
                # Java compares letters in any case, and digits would run into fields.
                literal_pattern = "".join(_either_case(c) for c in literal)
            else:
                literal_pattern = re.escape(literal)
            if loose and literal[0].isdigit():
                raise ValueError(f"the format {text!r} has fields that run into each other")
            parts.append(literal_pattern)
            loose = False
            continue
        if token not in _FIELDS:
            raise ValueError(f"the format has {token!r}; supported for reading are {', '.join(_FIELDS)}")
        field, pattern = _FIELDS[token]
        if field.split()[0] in {known.split()[0] for known in fields}:
            raise ValueError(f"the format has the {field} twice")
        if loose and field != "month name":
            raise ValueError(f"the format {text!r} has fields that run into each other")
        parts.append(pattern)
        fields.append(field)
        loose = pattern == _ANY or field == "fraction"
    if "fraction" in fields and any("S" in quoted for quoted in re.findall("'[^']*'", text)):
        raise ValueError("the format has a quoted S beside a fraction of seconds")
    if "year" not in fields:
        raise ValueError("the format must have the year, yyyy")
    return Layout("".join(parts), tuple(fields))


def _either_case(character: str) -> str:
    lower, upper = character.lower(), character.upper()
    if lower == upper:
        return re.escape(character)
    if len(lower) != 1 or not character.isascii():
        raise ValueError(f"the format has {character!r}, which is not supported")
    return f"[{lower}{upper}]"


def read_moment(text: str, form: str) -> dt.datetime:
    """The timestamp that a text in a format means; what the format does not say is 1, or 0 in the time of day.

    Raises:
        EvaluationError: the text does not fit the format.
    """
    plan = layout(form)
    found = re.fullmatch(plan.pattern, text)
    try:
        if found:
            parts = dict(zip(plan.fields, found.groups(), strict=True))
            month = SHORT_MONTHS.index(parts["month name"].lower()) + 1 if "month name" in parts else None
            hour, minute, second = (int(parts.get(name, 0)) for name in ("hour", "minute", "second"))
            micros = int(parts.get("fraction", "").ljust(6, "0"))
            day = dt.date(int(parts["year"]), month or int(parts.get("month", 1)), int(parts.get("day", 1)))
            return dt.datetime.combine(day, dt.time(hour, minute, second, micros))
    except (ValueError, OverflowError):
        pass
    raise invalid_value(f"'{text}' does not fit the format {form}")


def form_of(args: tuple[Scalar, ...]) -> str:
    """The literal format of a call."""
    form = literal_value(args[1]) if len(args) == 2 else DEFAULT
    if not isinstance(form, str):
        raise ValueError("the format must be a text literal")
    layout(form)
    return form


def _converted(args: tuple[Scalar, ...], kind: t.Type) -> Signature:
    count_args(args, 1, 2)
    if len(args) == 2:
        if not isinstance(args[0].type, t.String | t.Null):
            raise ValueError(f"takes text beside a format, not {args[0].type}")
        form_of(args)
        return Signature((t.STRING, t.STRING), kind)
    if not accepts(args[0], kind):
        raise ValueError(f"takes text, a DATE or a TIMESTAMP, not ({describe(args)})")
    return Signature((kind,), kind)


@define("to_date", lambda args: _converted(args, t.DATE), raises=True)
def to_date(call: Call, value: dt.date | str, _form: str = "") -> object:
    """The date in a text, in a literal format if one is given, or of a timestamp."""
    return read_moment(value, form_of(call.args)).date() if isinstance(value, str) else value


@define(("to_timestamp", "to_timestamp_ltz"), lambda args: _converted(args, t.TIMESTAMP), raises=True)
def to_timestamp(call: Call, value: dt.datetime | str, _form: str = "") -> object:
    """The timestamp in a text, in a literal format if one is given, or at the beginning of a date."""
    return read_moment(value, form_of(call.args)) if isinstance(value, str) else value


def _tried(args: tuple[Scalar, ...], kind: t.Type) -> Signature:
    count_args(args, 2)
    return _converted(args, kind)


@define("try_to_timestamp", lambda args: _tried(args, t.TIMESTAMP))
def try_to_timestamp(call: Call, text: str, _form: str) -> object:
    """The timestamp in a text in a literal format, or NULL; without a format it is try_cast."""
    try:
        return read_moment(text, form_of(call.args))
    except EvaluationError:
        return None


@define("try_to_date", lambda args: _tried(args, t.DATE))
def try_to_date(call: Call, text: str, _form: str) -> object:
    """The date in a text in a literal format, or NULL; without a format it is try_cast."""
    moment = try_to_timestamp(call, text, _form)
    return moment.date() if isinstance(moment, dt.datetime) else None


def _unix_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 2)
    if isinstance(args[0].type, t.String):
        form_of(args)
        return Signature((t.STRING,) * len(args), t.BIGINT)
    if len(args) == 2 or not isinstance(args[0].type, t.Date | t.Timestamp | t.Null):
        raise ValueError(f"takes text and a format, a DATE or a TIMESTAMP, not ({describe(args)})")
    return Signature((t.TIMESTAMP,), t.BIGINT)


@define(("unix_timestamp", "to_unix_timestamp"), _unix_signature, raises=True)
def unix_timestamp(call: Call, value: dt.datetime | str, _form: str = "") -> object:
    """Seconds since 1970, without their fraction; of a text in a literal format, or as yyyy-MM-dd HH:mm:ss."""
    moment = read_moment(value, form_of(call.args)) if isinstance(value, str) else value
    return int(Decimal(microseconds(moment)) / SECOND)
