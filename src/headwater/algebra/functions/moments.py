"""Timestamps from their parts, moved by units and counted in them; names of days and months."""

from __future__ import annotations

import datetime as dt
from decimal import ROUND_DOWN, Decimal

from headwater import types as t
from headwater.algebra.functions.casts import from_microseconds, microseconds
from headwater.algebra.functions.errors import invalid_value, overflow
from headwater.algebra.functions.formats import DAYS, MONTHS
from headwater.algebra.functions.intervals import add_months
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import accepts, count_args, describe, literal_value, takes
from headwater.algebra.scalars import Call, Scalar


@define("dayname", takes(t.DATE, result=t.STRING))
def dayname(call: Call, value: dt.date) -> object:
    """The day of the week in three letters."""
    return DAYS[value.weekday()][:3]


@define("monthname", takes(t.DATE, result=t.STRING))
def monthname(call: Call, value: dt.date) -> object:
    """The month in three letters."""
    return MONTHS[value.month - 1][:3]


SECONDS = t.Decimal(16, 6)


def _make_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 6)
    if not all(accepts(arg, t.INT) for arg in args[:5]):
        raise ValueError(f"takes five INT and the seconds, not ({describe(args)})")
    if not isinstance(args[5].type, t.Integer | t.Decimal | t.Null):
        raise ValueError(f"takes the seconds as an integer or a DECIMAL, not {args[5].type}")
    return Signature((*(t.INT,) * 5, SECONDS), t.TIMESTAMP)


@define(("make_timestamp", "make_timestamp_ltz"), _make_signature, raises=True)
def make_timestamp(call: Call, year: int, month: int, day: int, hour: int, minute: int, second: Decimal) -> object:
    """The timestamp of a year, month, day, hour, minute and second; 60 seconds are the next minute."""
    if not 0 <= second <= 60:
        raise invalid_value(f"there is no second {second}")
    micros = int(second.scaleb(6).to_integral_value(ROUND_DOWN))
    try:
        start = dt.datetime(year, month, day, hour, minute)
        return start + dt.timedelta(microseconds=micros)
    except (ValueError, OverflowError):
        raise invalid_value(f"there is no timestamp {year}-{month}-{day} {hour}:{minute}:{second}") from None


#: Units, as months or as microseconds.
UNIT_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
UNIT_MICROS = {
    "WEEK": 7 * 86_400_000_000,
    "DAY": 86_400_000_000,
    "DAYOFYEAR": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def unit_of(args: tuple[Scalar, ...]) -> str:
    """The literal unit of TIMESTAMPADD and TIMESTAMPDIFF."""
    unit = literal_value(args[0])
    if not isinstance(unit, str) or unit.upper() not in {**UNIT_MONTHS, **UNIT_MICROS}:
        raise ValueError(f"the unit must be one of {', '.join([*UNIT_MONTHS, *UNIT_MICROS])}")
    return unit.upper()


def _add_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    unit_of(args)
    if not isinstance(args[1].type, t.Integer | t.Null) or not accepts(args[2], t.TIMESTAMP):
        raise ValueError(f"takes a unit, an integer and a TIMESTAMP, not ({describe(args)})")
    if args[1].type == t.BIGINT and unit_of(args) in UNIT_MONTHS:
        raise ValueError("takes an INT as its number of months, not a BIGINT")
    return Signature((t.STRING, t.INT if unit_of(args) in UNIT_MONTHS else t.BIGINT, t.TIMESTAMP), t.TIMESTAMP)


@define("timestampadd", _add_signature, raises=True)
def timestampadd(call: Call, _unit: str, count: int, start: dt.datetime) -> object:
    """The timestamp so many units later: timestampadd(HOUR, 3, x). DATEADD and DATE_ADD with a unit are the same."""
    unit = unit_of(call.args)
    if unit in UNIT_MICROS:
        moved = count * UNIT_MICROS[unit]
        if not t.BIGINT.low <= moved <= t.BIGINT.high:
            raise overflow(f"{count} {unit}")
        return from_microseconds(microseconds(start) + moved)
    months = count * UNIT_MONTHS[unit]
    if not t.INT.low <= months <= t.INT.high:
        raise overflow(f"{count} {unit}")
    moved_date = add_months(start.date(), months)
    return dt.datetime.combine(moved_date, start.time())


def _diff_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    if unit_of(args) == "DAYOFYEAR":
        raise ValueError("the unit is called DAY")
    if not all(accepts(arg, t.TIMESTAMP) for arg in args[1:]):
        raise ValueError(f"takes a unit and two TIMESTAMPs, not ({describe(args)})")
    return Signature((t.STRING, t.TIMESTAMP, t.TIMESTAMP), t.BIGINT)


@define("timestampdiff", _diff_signature)
def timestampdiff(call: Call, _unit: str, start: dt.datetime, end: dt.datetime) -> object:
    """Whole units from the first to the second: timestampdiff(HOUR, a, b). DATEDIFF with a unit is the same."""
    unit = unit_of(call.args)
    if unit in UNIT_MICROS:
        return _truncated(microseconds(end) - microseconds(start), UNIT_MICROS[unit])
    last = end.date()
    # As Java counts: a day that is not complete counts as none, and months are compared by their days.
    if last > start.date() and end.time() < start.time():
        last -= dt.timedelta(days=1)
    elif last < start.date() and end.time() > start.time():
        last += dt.timedelta(days=1)
    return _truncated(_packed(last) - _packed(start), 32 * UNIT_MONTHS[unit])


def _packed(value: dt.date) -> int:
    """Months and days in one number in which a month has 32 days."""
    return (value.year * 12 + value.month) * 32 + value.day


def _truncated(value: int, unit: int) -> int:
    return abs(value) // unit * (-1 if value < 0 else 1)
