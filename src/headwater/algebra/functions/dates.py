"""Dates and timestamps: their fields, and moving between them. Everything is in UTC."""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal

from headwater import types as t
from headwater.algebra.functions.casts import SECOND, from_microseconds, microseconds
from headwater.algebra.functions.errors import invalid_value, overflow
from headwater.algebra.functions.intervals import add_days, add_months
from headwater.algebra.functions.registry import Function, Signature, define, register
from headwater.algebra.functions.signatures import accepts, count_args, describe, literal_value, takes
from headwater.algebra.scalars import Call, Scalar

EPOCH_DATE = dt.date(1970, 1, 1)

# --- fields ---------------------------------------------------------------------------------------------------------

_date_field = takes(t.DATE, result=t.INT)
_time_field = takes(t.TIMESTAMP, result=t.INT)


def _field(read: Callable[..., int]) -> Callable[..., object]:
    return lambda call, value: read(value)


for _names, _read, _summary in (
    (("year",), lambda d: d.year, "The year."),
    (("quarter",), lambda d: (d.month + 2) // 3, "The quarter, 1 to 4."),
    (("month",), lambda d: d.month, "The month, 1 to 12."),
    (("day", "dayofmonth"), lambda d: d.day, "The day of the month."),
    (("dayofyear",), lambda d: d.timetuple().tm_yday, "The day of the year, from 1."),
    (("dayofweek",), lambda d: d.isoweekday() % 7 + 1, "The day of the week: Sunday is 1."),
    (("weekday",), lambda d: d.weekday(), "The day of the week: Monday is 0."),
    (("weekofyear",), lambda d: d.isocalendar().week, "The week of the year by ISO 8601."),
):
    for _name in _names:
        register(Function(_name, _date_field, _field(_read), summary=_summary))
for _name, _read, _summary in (
    ("hour", lambda m: m.hour, "The hour, 0 to 23."),
    ("minute", lambda m: m.minute, "The minute."),
    ("second", lambda m: m.second, "The second, without its fraction."),
):
    register(Function(_name, _time_field, _field(_read), summary=_summary))

#: EXTRACT's fields: the function that reads each of them, or the name DuckDB has for it.
PARTS = {
    "year": ("y", "years", "yr", "yrs"),
    "quarter": ("qtr",),
    "month": ("mon", "mons", "months"),
    "weekofyear": ("w", "week", "weeks"),
    "day": ("d", "days"),
    "dayofweek": ("dow",),
    "dayofweek_iso": ("dow_iso",),
    "dayofyear": ("doy",),
    "yearofweek": (),
    "hour": ("h", "hours", "hr", "hrs"),
    "minute": ("m", "min", "mins", "minutes"),
    "second": ("s", "sec", "seconds", "secs"),
}
_PART_NAMES = {alias: name for name, aliases in PARTS.items() for alias in (name, *aliases)}
_TIME_PARTS = ("hour", "minute", "second")


def part_name(args: tuple[Scalar, ...]) -> str:
    """The field a DATE_PART or EXTRACT reads, under one name."""
    field = literal_value(args[0])
    name = _PART_NAMES.get(str(field).lower()) if isinstance(field, str) else None
    if name is None:
        raise ValueError(f"the field must be a literal, one of {', '.join(PARTS)}")
    return name


def _part_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    name = part_name(args)
    wanted = t.TIMESTAMP if name in _TIME_PARTS else t.DATE
    if not accepts(args[1], wanted):
        raise ValueError(f"takes a field and a DATE or TIMESTAMP, not ({describe(args)})")
    return Signature((args[0].type, wanted), t.Decimal(8, 6) if name == "second" else t.INT)


@define(("date_part", "datepart"), _part_signature)
def date_part(call: Call, _field_name: str, value: dt.datetime) -> object:
    """A field of a date or timestamp, as EXTRACT(field FROM value); SECOND has its fraction."""
    match part_name(call.args):
        case "second":
            return Decimal(value.second * SECOND + value.microsecond).scaleb(-6)
        case "dayofweek_iso":
            return value.isoweekday()
        case "yearofweek":
            return value.isocalendar().year
        case name:
            from headwater.algebra.functions.registry import REGISTRY

            return REGISTRY[name].evaluate(call, value)


# --- moving ---------------------------------------------------------------------------------------------------------


def _days_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.DATE, t.INT, result=t.DATE)(args)
    if args[1].type == t.BIGINT:
        raise ValueError("takes an INT as its number of days, not a BIGINT")
    return signature


@define(("date_add", "dateadd"), _days_signature, raises=True)
def date_add(call: Call, start: dt.date, days: int) -> object:
    """The date so many days later."""
    return add_days(start, days)


@define("date_sub", _days_signature, raises=True)
def date_sub(call: Call, start: dt.date, days: int) -> object:
    """The date so many days earlier."""
    return add_days(start, -days)


@define(("datediff", "date_diff"), takes(t.DATE, t.DATE, result=t.INT))
def datediff(call: Call, end: dt.date, start: dt.date) -> object:
    """Days from the second date to the first."""
    return (end - start).days


@define("add_months", takes(t.DATE, t.INT, result=t.DATE), raises=True)
def add_months_to_date(call: Call, start: dt.date, months: int) -> object:
    """The date so many months later, or the last day of that month."""
    return add_months(start, months)


@define("months_between", takes(t.TIMESTAMP, t.TIMESTAMP, result=t.DOUBLE))
def months_between(call: Call, end: dt.datetime, start: dt.datetime) -> object:
    """Months from the second to the first, a month having 31 days, rounded to 8 digits."""
    months = (end.year - start.year) * 12 + end.month - start.month
    if end.day == start.day or (_is_last_day(end) and _is_last_day(start)):
        return float(months)
    seconds = (end.day - start.day) * 86_400 + _second_of_day(end) - _second_of_day(start)
    return math.floor((months + seconds / (31 * 86_400)) * 1e8 + 0.5) / 1e8


def _is_last_day(value: dt.date) -> bool:
    return value.day == calendar.monthrange(value.year, value.month)[1]


def _second_of_day(value: dt.datetime) -> int:
    return value.hour * 3600 + value.minute * 60 + value.second


@define("last_day", takes(t.DATE, result=t.DATE))
def last_day(call: Call, value: dt.date) -> object:
    """The last day of the month."""
    return value.replace(day=calendar.monthrange(value.year, value.month)[1])


_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def weekday_number(args: tuple[Scalar, ...]) -> int:
    """The literal weekday of NEXT_DAY: Monday is 0."""
    name = literal_value(args[1])
    for number, word in enumerate(_WEEKDAYS):
        if isinstance(name, str) and name.lower() in (word, word[:3], word[:2]):
            return number
    raise ValueError("takes the literal name of a weekday, such as 'MO', 'MON' or 'MONDAY'")


def _next_day_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.DATE, t.STRING, result=t.DATE)(args)
    weekday_number(args)
    return signature


@define("next_day", _next_day_signature, raises=True)
def next_day(call: Call, value: dt.date, _weekday: str) -> object:
    """The next date after this one that is on a weekday, given as a literal."""
    return add_days(value, (weekday_number(call.args) - value.weekday() - 1) % 7 + 1)


# --- truncation -----------------------------------------------------------------------------------------------------

_UNITS = {
    "year": ("year", "yyyy", "yy"),
    "quarter": ("quarter",),
    "month": ("month", "mm", "mon"),
    "week": ("week",),
    "day": ("day", "dd"),
    "hour": ("hour",),
    "minute": ("minute",),
    "second": ("second",),
    "millisecond": ("millisecond",),
    "microsecond": ("microsecond",),
}
_UNIT_NAMES = {alias: unit for unit, aliases in _UNITS.items() for alias in aliases}
_DATE_UNITS = ("year", "quarter", "month", "week")


def unit_name(arg: Scalar, of_date: bool) -> str | None:
    """The unit that TRUNC or DATE_TRUNC cuts to; None for a word that makes the result NULL."""
    word = literal_value(arg)
    unit = _UNIT_NAMES.get(word.lower()) if isinstance(word, str) else None
    return unit if unit is None or not of_date or unit in _DATE_UNITS else None


def _trunc_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.DATE, t.STRING, result=t.DATE)(args)
    unit_name(args[1], of_date=True)
    return signature


def _start(value: dt.date, unit: str) -> dt.date:
    match unit:
        case "year":
            return dt.date(value.year, 1, 1)
        case "quarter":
            return dt.date(value.year, (value.month - 1) // 3 * 3 + 1, 1)
        case "month":
            return dt.date(value.year, value.month, 1)
        case "week":
            return add_days(value, -value.weekday())
    return dt.date(value.year, value.month, value.day)


@define("trunc", _trunc_signature)
def trunc(call: Call, value: dt.date, _unit: str) -> object:
    """The first day of the literal YEAR, QUARTER, MONTH or WEEK; NULL for other words."""
    unit = unit_name(call.args[1], of_date=True)
    return _start(value, unit) if unit else None


def _date_trunc_signature(args: tuple[Scalar, ...]) -> Signature:
    signature = takes(t.STRING, t.TIMESTAMP, result=t.TIMESTAMP)(args)
    unit_name(args[0], of_date=False)
    return signature


_MICROS = {"hour": 3_600 * SECOND, "minute": 60 * SECOND, "second": SECOND, "millisecond": 1_000, "microsecond": 1}


@define("date_trunc", _date_trunc_signature)
def date_trunc(call: Call, _unit: str, value: dt.datetime) -> object:
    """The beginning of the literal unit, YEAR to MICROSECOND; NULL for other words."""
    unit = unit_name(call.args[0], of_date=False)
    if unit is None:
        return None
    if unit in _MICROS:
        micros = microseconds(value)
        return from_microseconds(micros - micros % _MICROS[unit])
    start = _start(value.date(), unit)
    return dt.datetime(start.year, start.month, start.day)


# --- making ---------------------------------------------------------------------------------------------------------


@define("make_date", takes(t.INT, t.INT, t.INT, result=t.DATE), raises=True)
def make_date(call: Call, year: int, month: int, day: int) -> object:
    """The date of a year, month and day."""
    try:
        return dt.date(year, month, day)
    except ValueError:
        raise invalid_value(f"there is no date {year}-{month}-{day}") from None


def _unix(divisor: int) -> Callable[..., object]:
    return lambda call, value: microseconds(value) // divisor


_from_moment = takes(t.TIMESTAMP, result=t.BIGINT)
register(Function("unix_seconds", _from_moment, _unix(SECOND), summary="Seconds since 1970, rounded down."))
register(Function("unix_millis", _from_moment, _unix(1_000), summary="Milliseconds since 1970, rounded down."))
register(Function("unix_micros", _from_moment, _unix(1), summary="Microseconds since 1970."))


def _moment(factor: int) -> Callable[..., object]:
    def evaluate(call: Call, value: int) -> object:
        if not t.BIGINT.low <= value * factor <= t.BIGINT.high:
            raise overflow(f"{value} as TIMESTAMP")
        return from_microseconds(value * factor)

    return evaluate


def _integer_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    if not isinstance(args[0].type, t.Integer | t.Null):
        raise ValueError(f"takes an integer, not ({describe(args)})")
    return Signature((t.BIGINT,), t.TIMESTAMP)


for _name, _factor, _word in (
    ("timestamp_seconds", SECOND, "seconds"),
    ("timestamp_millis", 1_000, "milliseconds"),
    ("timestamp_micros", 1, "microseconds"),
):
    _summary = f"The moment so many {_word} after 1970."
    register(Function(_name, _integer_signature, _moment(_factor), raises=True, summary=_summary))


@define("unix_date", takes(t.DATE, result=t.INT))
def unix_date(call: Call, value: dt.date) -> object:
    """Days since 1970."""
    return (value - EPOCH_DATE).days


@define("date_from_unix_date", takes(t.INT, result=t.DATE), raises=True)
def date_from_unix_date(call: Call, days: int) -> object:
    """The date so many days after 1970-01-01."""
    return add_days(EPOCH_DATE, days)
