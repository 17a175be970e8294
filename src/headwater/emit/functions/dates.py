"""Dates and timestamps in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import SECOND
from headwater.algebra.functions.dates import part_name, unit_name, weekday_number
from headwater.algebra.functions.formats import format_of
from headwater.algebra.scalars import Call, Cast
from headwater.emit.functions.build import (
    add,
    both,
    case,
    cast,
    either,
    emits,
    fn,
    infix,
    let,
    mod,
    mul,
    null,
    number,
    sub,
    text,
    whole_div,
)
from headwater.emit.functions.casts import epoch_seconds

#: Functions of DuckDB, and what to add, for our names of fields.
_FIELDS = {
    "year": ("year", 0),
    "quarter": ("quarter", 0),
    "month": ("month", 0),
    "day": ("day", 0),
    "dayofmonth": ("day", 0),
    "dayofyear": ("dayofyear", 0),
    "dayofweek": ("dayofweek", 1),
    "weekday": ("isodow", -1),
    "weekofyear": ("week", 0),
    "hour": ("hour", 0),
    "minute": ("minute", 0),
    "second": ("second", 0),
    "dayofweek_iso": ("isodow", 0),
    "yearofweek": ("isoyear", 0),
}


def _read(name: str, value: exp.Expr) -> exp.Expr:
    function, offset = _FIELDS[name]
    found = fn(function, value)
    if offset:
        found = add(found, number(offset)) if offset > 0 else sub(found, number(-offset))
    return cast(found, "INTEGER")


def _uncast(call: Call, position: int, value: exp.Expr) -> exp.Expr:
    """A timestamp whose date is read needs no cast to DATE first."""
    arg = call.args[position]
    if isinstance(arg, Cast) and isinstance(arg.arg.type, t.Timestamp) and isinstance(value, exp.Cast):
        inner = value.this
        assert isinstance(inner, exp.Expr)
        return inner
    return value


@emits(*(name for name in _FIELDS if name not in ("dayofweek_iso", "yearofweek")))
def _field(call: Call, value: exp.Expr) -> exp.Expr:
    return _read(call.function, _uncast(call, 0, value))


@emits("date_part", "datepart")
def _date_part(call: Call, _name: exp.Expr, value: exp.Expr) -> exp.Expr:
    name = part_name(call.args)
    if name == "second":
        # DuckDB's MICROSECONDS include the seconds.
        micros = cast(fn("microsecond", value), "DECIMAL(8, 0)")
        unit = cast(exp.Literal.number("0.000001"), "DECIMAL(6, 6)")
        return cast(mul(micros, unit), "DECIMAL(8, 6)")
    return _read(name, _uncast(call, 1, value))


@emits("date_add", "dateadd")
def _date_add(call: Call, start: exp.Expr, days: exp.Expr) -> exp.Expr:
    return add(start, days)


@emits("date_sub")
def _date_sub(call: Call, start: exp.Expr, days: exp.Expr) -> exp.Expr:
    return sub(start, days)


@emits("datediff", "date_diff")
def _datediff(call: Call, end: exp.Expr, start: exp.Expr) -> exp.Expr:
    return cast(sub(end, start), "INTEGER")


@emits("add_months")
def _add_months(call: Call, start: exp.Expr, months: exp.Expr) -> exp.Expr:
    return cast(add(start, fn("to_months", months)), "DATE")


@emits("months_between")
def _months_between(call: Call, end: exp.Expr, start: exp.Expr) -> exp.Expr:
    def body(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        def month(moment: exp.Expr) -> exp.Expr:
            return add(mul(fn("year", moment.copy()), number(12)), fn("month", moment.copy()))

        def is_last(moment: exp.Expr) -> exp.Expr:
            return exp.EQ(this=cast(moment.copy(), "DATE"), expression=fn("last_day", moment.copy()))

        def second_of_day(moment: exp.Expr) -> exp.Expr:
            whole = mul(add(mul(fn("hour", moment.copy()), number(60)), fn("minute", moment.copy())), number(60))
            return add(whole, fn("second", moment.copy()))

        months = sub(month(a), month(b))
        same_day = exp.EQ(this=fn("day", a.copy()), expression=fn("day", b.copy()))
        days = mul(sub(fn("day", a.copy()), fn("day", b.copy())), number(86_400))
        seconds = sub(add(days, second_of_day(a)), second_of_day(b))
        exact = add(months.copy(), infix(exp.Div, seconds, number(31 * 86_400)))
        scale = exp.Literal.number("1e8")
        half = exp.Literal.number("0.5e0")
        rounded = infix(exp.Div, fn("floor", add(mul(exact, scale), half)), scale.copy())
        return case(either(same_day, both(is_last(a), is_last(b))), cast(months, "DOUBLE"), rounded)

    return let({"a": end, "b": start}, body)


@emits("last_day")
def _last_day(call: Call, value: exp.Expr) -> exp.Expr:
    return fn("last_day", _uncast(call, 0, value))


@emits("next_day")
def _next_day(call: Call, value: exp.Expr, _weekday: exp.Expr) -> exp.Expr:
    # ISO days count from Monday as 1, ours from 0; 7 keeps the dividend positive.
    distance = mod(sub(number(weekday_number(call.args) + 7), fn("isodow", value.copy())), number(7))
    return add(value, cast(add(distance, number(1)), "INTEGER"))


@emits("trunc")
def _trunc(call: Call, value: exp.Expr, _unit: exp.Expr) -> exp.Expr:
    unit = unit_name(call.args[1], of_date=True)
    return cast(fn("date_trunc", text(unit), value), "DATE") if unit else null(t.DATE)


@emits("date_trunc")
def _date_trunc(call: Call, _unit: exp.Expr, value: exp.Expr) -> exp.Expr:
    unit = unit_name(call.args[0], of_date=False)
    return fn("date_trunc", text(unit), value) if unit else null(t.TIMESTAMP)


@emits("make_date")
def _make_date(call: Call, *fields: exp.Expr) -> exp.Expr:
    return fn("make_date", *fields)


@emits("unix_seconds")
def _unix_seconds(call: Call, value: exp.Expr) -> exp.Expr:
    return epoch_seconds(value)


@emits("unix_millis")
def _unix_millis(call: Call, value: exp.Expr) -> exp.Expr:
    # EPOCH_MS rounds; this goes down.
    return whole_div(fn("epoch_us", fn("date_trunc", text("millisecond"), value)), number(1_000))


@emits("unix_micros")
def _unix_micros(call: Call, value: exp.Expr) -> exp.Expr:
    return fn("epoch_us", value)


@emits("timestamp_seconds", "timestamp_millis", "timestamp_micros")
def _moment(call: Call, value: exp.Expr) -> exp.Expr:
    factor = {"timestamp_seconds": SECOND, "timestamp_millis": 1_000}.get(call.function)
    return fn("make_timestamp", mul(value, number(factor)) if factor else value)


@emits("unix_date")
def _unix_date(call: Call, value: exp.Expr) -> exp.Expr:
    return cast(sub(value, cast(text("1970-01-01"), "DATE")), "INTEGER")


@emits("date_from_unix_date")
def _date_from_unix_date(call: Call, days: exp.Expr) -> exp.Expr:
    return add(cast(text("1970-01-01"), "DATE"), days)


@emits("date_format")
def _date_format(call: Call, value: exp.Expr, _format: exp.Expr) -> exp.Expr:
    return fn("strftime", value, text(format_of(call.args)))


@emits("from_unixtime")
def _from_unixtime(call: Call, seconds: exp.Expr, _format: exp.Expr | None = None) -> exp.Expr:
    return fn("strftime", fn("make_timestamp", mul(seconds, number(SECOND))), text(format_of(call.args)))
