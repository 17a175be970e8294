"""Timestamps from parts and formats, and counted in units, in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import SECOND
from headwater.algebra.functions.errors import INVALID_VALUE
from headwater.algebra.functions.moments import UNIT_MICROS, UNIT_MONTHS, unit_of
from headwater.algebra.functions.readings import SHORT_MONTHS, form_of, layout
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import (
    add,
    both,
    case,
    cast,
    either,
    emits,
    failure,
    fn,
    infix,
    is_null,
    let,
    mul,
    null,
    number,
    sub,
    text,
    try_cast,
    whole_div,
)
from headwater.emit.functions.decimals import unscaled


@emits("dayname", "monthname")
def _name(call: Call, value: exp.Expr) -> exp.Expr:
    return fn("strftime", value, text("%a" if call.function == "dayname" else "%b"))


# --- parts and units ------------------------------------------------------------------------------------------------


@emits("make_timestamp", "make_timestamp_ltz")
def _make_timestamp(call: Call, *parts: exp.Expr) -> exp.Expr:
    names = ("y", "mo", "d", "h", "mi")
    seconds = call.args[5].type
    assert isinstance(seconds, t.Decimal)

    def body(u: exp.Expr, h: exp.Expr, **fields: exp.Expr) -> exp.Expr:
        wrong = either(infix(exp.LT, u.copy(), number(0)), infix(exp.GT, u.copy(), number(60 * SECOND)))
        wrong = either(wrong, infix(exp.GT, h.copy(), number(23)))
        named = {**fields, "h": h}
        start = fn("make_timestamp", *(cast(named[name].copy(), "BIGINT") for name in names), number(0))
        moment = fn("make_timestamp", add(fn("epoch_us", start), u.copy()))
        return case(wrong, failure(INVALID_VALUE, "there is no such time of day"), moment)

    micros = cast(unscaled(parts[5], seconds), "BIGINT")
    return let({**dict(zip(names, parts[:5], strict=True)), "u": micros}, body)


@emits("timestampadd")
def _timestampadd(call: Call, _unit: exp.Expr, count: exp.Expr, start: exp.Expr) -> exp.Expr:
    unit = unit_of(call.args)
    if unit in UNIT_MONTHS:
        months = cast(mul(count, number(UNIT_MONTHS[unit])), "INTEGER")
        return add(start, fn("to_months", months))
    return fn("make_timestamp", add(fn("epoch_us", start), mul(count, number(UNIT_MICROS[unit]))))


@emits("timestampdiff")
def _timestampdiff(call: Call, _unit: exp.Expr, start: exp.Expr, end: exp.Expr) -> exp.Expr:
    unit = unit_of(call.args)
    if unit in UNIT_MICROS:
        micros = sub(fn("epoch_us", end), fn("epoch_us", start))
        return whole_div(micros, cast(number(UNIT_MICROS[unit]), "BIGINT")) if unit != "MICROSECOND" else micros

    def body(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        def day(moment: exp.Expr) -> exp.Expr:
            return cast(moment.copy(), "DATE")

        def time(moment: exp.Expr) -> exp.Expr:
            return cast(moment.copy(), "TIME")

        short = both(infix(exp.GT, day(b), day(a)), infix(exp.LT, time(b), time(a)))
        long = both(infix(exp.LT, day(b), day(a)), infix(exp.GT, time(b), time(a)))
        last = case(short, sub(day(b), number(1)), long, add(day(b), number(1)), day(b))
        return whole_div(sub(_packed(last), _packed(a.copy())), number(32 * UNIT_MONTHS[unit]))

    return let({"a": start, "b": end}, body)


def _packed(value: exp.Expr) -> exp.Expr:
    """Months and days in one number in which a month has 32 days."""
    months = add(mul(fn("year", value), number(12)), fn("month", value.copy()))
    return add(mul(months, number(32)), fn("day", value.copy()))


# --- formats --------------------------------------------------------------------------------------------------------


def _read(call: Call, value: exp.Expr, safe: bool) -> exp.Expr:
    """The timestamp in a text in the call's format; an error, or NULL if `safe`, where it is none."""
    plan = layout(form_of(call.args))
    names = [text(f"g{place}") for place in range(len(plan.fields))]
    parts = fn("regexp_extract", value, text(f"(?s)^(?:{plan.pattern})$"), exp.Array(expressions=names))

    def part(p: exp.Expr, field: str) -> exp.Expr:
        return exp.Dot(this=p.copy(), expression=exp.to_identifier(f"g{plan.fields.index(field)}"))

    def whole(p: exp.Expr, field: str, default: int) -> exp.Expr:
        if field == "month" and "month name" in plan.fields:
            listed = fn("list_value", *(text(month) for month in SHORT_MONTHS))
            return fn("coalesce", fn("list_position", listed, fn("lower", part(p, "month name"))), number(0))
        if field not in plan.fields:
            return number(default)
        return fn("coalesce", try_cast(part(p, field), "BIGINT"), number(0))

    def body(p: exp.Expr, v: exp.Expr) -> exp.Expr:
        failed: exp.Expr = infix(exp.EQ, part(p, "year"), text(""))
        for field, most in (("hour", 23), ("minute", 59), ("second", 59)):
            if field in plan.fields:
                failed = either(failed, infix(exp.GT, whole(p, field, 0), number(most)))
        calendar = [whole(p, field, 1) for field in ("year", "month", "day")]
        # The last day of a month is the earlier one of 31 and what the next month leaves; make_date raises instead.
        failed = either(failed, is_null(fn("try", fn("make_date", *calendar))))
        clock = [whole(p, field, 0) for field in ("hour", "minute", "second")]
        moment = fn("make_timestamp", *(one.copy() for one in calendar), *clock)
        if "fraction" in plan.fields:
            digits = fn("rpad", part(p, "fraction"), number(6), text("0"))
            moment = fn("make_timestamp", add(fn("epoch_us", moment), cast(digits, "BIGINT")))
        form = form_of(call.args).replace("'", "")
        refused = null(t.TIMESTAMP)
        if not safe:
            refused = fn(
                "error", fn("concat", text(f"{INVALID_VALUE}: '"), v, text(f"' does not fit the format {form}"))
            )
        return case(is_null(part(p, "year")), null(t.TIMESTAMP), failed, refused, moment)

    return let({"p": parts, "v": value.copy()}, body)


@emits("to_date", "to_timestamp", "to_timestamp_ltz")
def _converted(call: Call, value: exp.Expr, form: exp.Expr | None = None) -> exp.Expr:
    if form is None:
        return value
    moment = _read(call, value, safe=False)
    return cast(moment, "DATE") if call.function == "to_date" else moment


@emits("try_to_date", "try_to_timestamp")
def _tried(call: Call, value: exp.Expr, _form: exp.Expr) -> exp.Expr:
    moment = _read(call, value, safe=True)
    return cast(moment, "DATE") if call.function == "try_to_date" else moment


@emits("unix_timestamp", "to_unix_timestamp")
def _unix_timestamp(call: Call, value: exp.Expr, _form: exp.Expr | None = None) -> exp.Expr:
    moment = _read(call, value, safe=False) if isinstance(call.args[0].type, t.String) else value
    return whole_div(fn("epoch_us", moment), number(SECOND))
