"""+ - * / of dates, timestamps and intervals in DuckDB, where intervals are integers of microseconds or months."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.intervals import AS_DECIMAL, DAY, whole_days
from headwater.algebra.scalars import Call, Scalar
from headwater.emit.functions.build import add, cast, duckdb_type, fn, infix, mul, number, sub
from headwater.emit.functions.decimals import quotient
from headwater.emit.functions.literals import known

_UNITS = (("DAY", DAY), ("HOUR", DAY // 24), ("MINUTE", 60_000_000), ("SECOND", 1_000_000), ("MICROSECOND", 1))


def emit_temporal(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """The operator's value, exactly of the call's type."""
    match call.function:
        case "+":
            if isinstance(call.args[0].type, t.Integer | t.DayTimeInterval | t.YearMonthInterval):
                return _move(call, call.args[1], b, call.args[0], a)
            return _move(call, call.args[0], a, call.args[1], b)
        case "-":
            return _difference(call, a, b)
        case "*":
            if isinstance(call.args[0].type, t.DayTimeInterval | t.YearMonthInterval):
                return _multiply(call, a, call.args[1].type, b)
            return _multiply(call, b, call.args[0].type, a)
    return _divide(call, a, b)


def _difference(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    match call.args[0].type, call.args[1].type:
        case t.Date(), t.Date():
            return mul(sub(a, b), number(DAY))
        case t.Timestamp(), t.Timestamp():
            return sub(fn("epoch_us", a), fn("epoch_us", b))
    return _move(call, call.args[0], a, call.args[1], b)


def _move(call: Call, start: Scalar, a: exp.Expr, amount: Scalar, b: exp.Expr) -> exp.Expr:
    change = add if call.function == "+" else sub
    match start.type, amount.type:
        case t.Date(), t.Integer():
            return change(a, b)
        case t.Date(), t.DayTimeInterval():
            days = whole_days(amount)
            assert days is not None
            return change(a, number(days))
        case t.Date(), t.YearMonthInterval():
            return cast(change(a, _months(amount, b)), "DATE")
        case t.Timestamp(), t.YearMonthInterval():
            return change(a, _months(amount, b))
        case t.Timestamp(), t.DayTimeInterval():
            return change(a, _microseconds(amount, b))
    return change(a, b)


def _months(amount: Scalar, emitted: exp.Expr) -> exp.Expr:
    months = known(amount)
    return _interval(months, "MONTH") if isinstance(months, int) else fn("to_months", emitted)


def _microseconds(amount: Scalar, emitted: exp.Expr) -> exp.Expr:
    micros = known(amount)
    return span(micros) if isinstance(micros, int) else fn("to_microseconds", emitted)


def span(micros: int) -> exp.Expr:
    """An interval of so many microseconds, in the largest unit that has no fraction."""
    unit, size = next((unit, size) for unit, size in _UNITS if micros % size == 0)
    return _interval(micros // size, unit)


def _interval(count: int, unit: str) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.Var(this=unit))


def _multiply(call: Call, interval: exp.Expr, kind: t.Type, factor: exp.Expr) -> exp.Expr:
    to = duckdb_type(call.type)
    match kind:
        case t.Integer():
            product = mul(interval, factor)
            return product if isinstance(call.type, t.DayTimeInterval) else cast(product, to)
        case t.Decimal():
            return cast(mul(cast(interval, "DECIMAL(19, 0)"), factor), to)  # the cast rounds half up
    return cast(fn("round", mul(interval, factor)), to)


def _divide(call: Call, interval: exp.Expr, divisor: exp.Expr) -> exp.Expr:
    from headwater.emit.functions.arithmetic import guard_zero

    exact = AS_DECIMAL[call.type]
    match call.args[1].type:
        case t.Integer() as kind:
            units = quotient(cast(interval, duckdb_type(exact)), divisor, exact, kind.as_decimal, exact)
            return cast(units, duckdb_type(call.type))
        case t.Decimal() as kind:
            units = quotient(cast(interval, duckdb_type(exact)), divisor, exact, kind, exact)
            return cast(units, duckdb_type(call.type))
    nearest = cast(fn("round", infix(exp.Div, interval, divisor)), duckdb_type(call.type))
    return guard_zero(call, interval, divisor, nearest)
