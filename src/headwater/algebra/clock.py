"""Scalars that read the clock: which ones do, and which ones only ever grow as it advances."""

from __future__ import annotations

import datetime as dt

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import Call, Cast, Given, Literal, Scalar, call, transform

#: The functions of no arguments whose value is a clock reading.
CLOCKS = ("now", "before")
#: The relation that changes when the clock advances; no user can name one so.
CLOCK = "#clock"

#: Functions of the clock that never fall as it rises, by the argument that may be the clock; the others are literals.
_RISING = {
    "add_months": 0,
    "date_add": 0,
    "date_sub": 0,
    "dateadd": 0,
    "date_trunc": 1,
    "last_day": 0,
    "trunc": 0,
    "unix_date": 0,
    "unix_micros": 0,
    "unix_millis": 0,
    "unix_seconds": 0,
    "year": 0,
}
_OPPOSITES = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "and": "or", "or": "and"}
#: Units of which whole days are made.
_DAYS = ("DAY", "DD", "WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY")


def now() -> Call:
    """The clock of the epoch under way; another object at each call, so that an error can tell where it was written."""
    return call("now")


def reads_clock(scalar: Scalar) -> bool:
    return any(isinstance(part, Call) and part.function in CLOCKS for part in scalar.walk())


def is_settled(scalar: Scalar) -> bool:
    """Whether it has one value for all rows at all times, which is known: it reads nothing, and nothing is given."""
    return not (scalar.columns or scalar.free) and not any(
        isinstance(part, Given) or (isinstance(part, Call) and part.function in (*CLOCKS, "bound"))
        for part in scalar.walk()
    )


def is_moment(scalar: Scalar) -> bool:
    """Whether it is computed from the clock and constants only."""
    return not scalar.columns and reads_clock(scalar) and not scalar.free


def with_clock(scalar: Scalar, values: dict[str, Scalar]) -> Scalar:
    """The scalar with other scalars in place of `now()` and `before()`."""
    return transform(scalar, lambda one: values.get(one.function) if isinstance(one, Call) and not one.args else None)


def at_moment(scalar: Scalar, moment: dt.datetime) -> Scalar:
    """The scalar at a moment: `now()` is a constant then."""
    return with_clock(scalar, {"now": Literal(moment, t.TIMESTAMP)})


def rises(scalar: Scalar) -> bool:
    """Whether a moment never falls as the clock advances.

    Months are added to days only: 28 February 23:00 is a month after 30 January 23:00, and later than a month after
    31 January 1:00.
    """
    match scalar:
        case Call(function="now"):
            return True
        case Cast(arg=arg, type=to, safe=False):
            times, numbers = (t.Date, t.Timestamp), (t.Integer, t.Decimal, t.Double)
            same = any(isinstance(arg.type, kinds) and isinstance(to, kinds) for kinds in (times, numbers))
            return same and rises(arg)
        case Call(function="+", args=(Literal(), _)):
            return _moved(scalar.args[1], scalar.args[0])
        case Call(function="+" | "-", args=(_, Literal())):
            return _moved(*scalar.args)
        case Call(function="div", args=(source, Literal(value=int(divisor)))):
            return divisor > 0 and rises(source)
        case Call(function=function, args=args) if function in _RISING:
            place = _RISING[function]
            return rises(args[place]) and all(isinstance(a, Literal) for i, a in enumerate(args) if i != place)
    return False


def _moved(source: Scalar, amount: Scalar) -> bool:
    return rises(source) and (not isinstance(amount.type, t.YearMonthInterval) or _whole_days(source))


def _whole_days(scalar: Scalar) -> bool:
    if isinstance(scalar.type, t.Date):
        return True
    match scalar:
        case Call(function="date_trunc", args=(Literal(value=str(unit)), _)):
            return unit.upper() in _DAYS
        case Cast(arg=arg):
            return _whole_days(arg)
        case Call(function="+" | "-", args=(source, Literal(type=t.YearMonthInterval()))):
            return _whole_days(source)
    return False


def opposite(condition: Scalar) -> Scalar:
    """NOT of a condition, without the NOT where it is made of comparisons: DuckDB then skips what cannot match."""
    match condition:
        case Call(function="not", args=(inner,)):
            return inner
        case Call(function="and" | "or" as connective, args=args):
            return call(_OPPOSITES[connective], *(opposite(one) for one in args))
        case Call(function=function, args=args) if function in _OPPOSITES:
            return Call(_OPPOSITES[function], args)
    return call("not", condition)


def moved_over(left: Scalar, right: Scalar) -> tuple[Scalar, Scalar] | None:
    """What else is compared by `left < right`, so that one side is the clock and the other has no part of it.

    `now() - ts < i` is `now() < ts + i`, and that is `now() - i < ts` if `i` is a constant: the column stands alone
    then, and stored rows are found by it.
    """
    if not is_moment(left):
        taken = _taken_out(left, right)
        if taken is None:
            return None
        left, right = taken
    match right:
        case Call(function="+" | "-" as sign, args=(source, Literal() as amount)) if _is_exact(source, amount):
            moved = call("-" if sign == "+" else "+", left, amount)
            if moved.type == source.type and has_value(moved):
                return moved, source
    return left, right


def has_value(moment: Scalar) -> bool:
    """Whether a moment that rises can be computed today, and for some generations."""
    try:
        for day in (dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1)):
            evaluate_scalar(at_moment(moment, day), {})
    except EvaluationError:
        return False
    return True


def _taken_out(left: Scalar, right: Scalar) -> tuple[Scalar, Scalar] | None:
    """`now() - ts` and `right` as `now()` and `ts + right`, where that is the same."""
    match left:
        case Call(function="-", args=(moment, source)) if is_moment(moment) and not reads_clock(source):
            kinds = {moment.type, source.type}
            if kinds in ({t.BIGINT}, {t.TIMESTAMP}) or (kinds == {t.DATE} and isinstance(right, Literal)):
                return moment, call("+", source, right)
        case Call(function="datediff" | "date_diff", args=(moment, source)) if is_moment(moment):
            if not reads_clock(source) and isinstance(right, Literal) and right.type == t.INT:
                return moment, call("+", source, right)
    return None


def _is_exact(source: Scalar, amount: Literal) -> bool:
    """Whether adding an amount to one side of a comparison is the same as taking it from the other."""
    match source.type, amount.type:
        case (t.Timestamp(), t.DayTimeInterval()) | (t.Date(), t.Integer() | t.DayTimeInterval()):
            return True
        case t.Integer(64), t.Integer(64):
            return True
    return False
