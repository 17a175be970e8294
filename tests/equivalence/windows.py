"""Windows by the clock: the conditions that views have on `now()`, and the clock of a case.

The clock goes from one moment of interest to the next: those at which some row's time begins or ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from headwater import types as t

from .grammar import Expr, Maker, construct, kind_of
from .values import domain

_SPANS = {
    "5 MINUTES": timedelta(minutes=5),
    "15 SECONDS": timedelta(seconds=15),
    "1 DAY": timedelta(days=1),
    "1428 HOURS": timedelta(hours=1428),
}
_INSTANT = timedelta(microseconds=1)
#: The second that BIGINT columns count from.
_ZERO = 1_704_067_200  # 2024-01-01 00:00:00


def clocks(m: Maker, epochs: int) -> tuple[datetime, ...]:
    """A clock reading for each epoch; it never runs backwards, and stands still now and then."""
    own = [moment for moment in domain(t.TIMESTAMP) if isinstance(moment, datetime) and moment.year > 2000]
    shifts = [sign * span for span in (timedelta(0), *_SPANS.values()) for sign in (-1, 1)]
    moments = {moment + shift + jitter for moment in own for shift in shifts for jitter in (timedelta(0), _INSTANT)}
    moments |= {datetime(2024, 1, 1) + timedelta(seconds=seconds) for seconds in range(-4, 12)}
    moments |= {datetime(2024, month, day) for month in (1, 2, 3, 4) for day in (1, 15, 28)}
    chosen = sorted(m.rng.choices(sorted(moment for moment in moments if moment > datetime(2023, 12, 2)), k=epochs))
    for i in range(1, epochs):
        if m.chance(0.25):
            m.note("clock that stands still")
            chosen[i] = chosen[i - 1]
    return tuple(chosen)


def perhaps_window(m: Maker, columns: Sequence[Expr], share: float) -> str | None:
    """With some chance a condition on the clock over columns; None if none of them has to do with time."""
    if not m.chance(share):
        return None
    usable = [column for column in columns if kind_of(column.type) in ("timestamp", "date", "bigint")]
    if not usable:
        return None
    column = m.rng.choice(usable)
    with m.over(columns):
        made: str = m.make(f"window over {kind_of(column.type)}", column)
    return made


def _now(m: Maker) -> str:
    return m.rng.choice(["now()", "now()", "NOW()", "current_timestamp()", "current_timestamp"])


def _span(m: Maker) -> str:
    return f"INTERVAL {m.rng.choice(list(_SPANS))}"


@construct("window over timestamp", "window with a lower bound", 4)
def lower(m: Maker, c: Expr) -> str:
    return m.rng.choice([f"{c.sql} > {_now(m)} - {_span(m)}", f"{_now(m)} - {_span(m)} <= {c.sql}"])


@construct("window over timestamp", "window with an upper bound", 3)
def upper(m: Maker, c: Expr) -> str:
    return m.rng.choice([f"{c.sql} <= {_now(m)}", f"{_now(m)} > {c.sql}", f"{c.sql} < {_now(m)} - {_span(m)}"])


@construct("window over timestamp", "window with two bounds", 6)
def both(m: Maker, c: Expr) -> str:
    return f"{_now(m)} - {_span(m)} < {c.sql} AND {c.sql} <= {_now(m)}"


@construct("window over timestamp", "window with two beginnings and two ends", 2)
def twice(m: Maker, c: Expr) -> str | None:
    others = [column for column in m.scope if kind_of(column.type) == "timestamp" and column.sql != c.sql]
    if not others:
        return None
    other = m.rng.choice(others)
    return f"{upper(m, c)} AND {upper(m, other)} AND {lower(m, c)} AND {lower(m, other)}"


@construct("window over timestamp", "window by between", 3)
def between(m: Maker, c: Expr) -> str:
    ahead = m.rng.choice(["", f" + {_span(m)}"])
    return f"{c.sql} BETWEEN {_now(m)} - {_span(m)} AND {_now(m)}{ahead}"


@construct("window over timestamp", "window of rows to come", 2)
def future(m: Maker, c: Expr) -> str:
    return m.rng.choice([f"{c.sql} > {_now(m)}", f"{c.sql} >= {_now(m)} + {_span(m)}"])


@construct("window over timestamp", "window that is negated", 1.5)
def negated(m: Maker, c: Expr) -> str:
    return m.rng.choice([f"NOT ({c.sql} < {_now(m)} - {_span(m)})", f"NOT ({c.sql} > {_now(m)} OR {c.sql} IS NULL)"])


@construct("window over timestamp", "window by age", 2)
def age(m: Maker, c: Expr) -> str:
    sign = m.rng.choice(["<", "<=", ">", ">="])
    return m.rng.choice([f"{_now(m)} - {c.sql} {sign} {_span(m)}", f"{c.sql} + {_span(m)} {sign} {_now(m)}"])


@construct("window over timestamp", "window of a day or month", 2)
def calendar(m: Maker, c: Expr) -> str:
    unit = m.rng.choice(["DAY", "MONTH"])
    return m.rng.choice(
        [
            f"date_trunc('{unit}', {c.sql}) = date_trunc('{unit}', {_now(m)})",
            f"CAST({c.sql} AS DATE) = current_date()",
            f"{c.sql} >= date_trunc('{unit}', {_now(m)})",
        ]
    )


@construct("window over timestamp", "condition on the clock alone", 0.7)
def alone(m: Maker, c: Expr) -> str:
    sign = m.rng.choice(["<", ">="])
    return f"{_now(m)} {sign} TIMESTAMP '2024-02-01 00:00:00'"


@construct("window over date", "window over dates", 4)
def dates(m: Maker, c: Expr) -> str:
    today = m.rng.choice(["current_date()", "current_date", f"CAST({_now(m)} AS DATE)"])
    days = m.rng.choice([0, 1, 28, 60])
    return m.rng.choice(
        [
            f"{c.sql} >= {today}",
            f"{c.sql} BETWEEN {today} - INTERVAL {days} DAYS AND {today}",
            f"{c.sql} > date_sub({today}, {days})",
            f"{c.sql} = {today}",
        ]
    )


@construct("window over date", "window by months", 3)
def months(m: Maker, c: Expr) -> str:
    count = m.rng.choice([1, 2])
    return m.rng.choice(
        [
            f"{c.sql} > current_date() - INTERVAL {count} MONTH",
            f"{c.sql} <= current_date() AND {c.sql} >= add_months(current_date(), -{count})",
        ]
    )


@construct("window over date", "window by days between", 1.5)
def days_between(m: Maker, c: Expr) -> str:
    return f"datediff(current_date(), {c.sql}) {m.rng.choice(['<', '<=', '>='])} {m.rng.choice([0, 1, 60])}"


@construct("window over bigint", "window over whole seconds", 4)
def seconds(m: Maker, c: Expr) -> str:
    size = m.rng.choice([1, 3, 5])
    return m.rng.choice(
        [
            f"Now - {_ZERO + size} < {c.sql} AND {c.sql} <= Now - {_ZERO}",
            f"{c.sql} + {_ZERO} > Now",
            f"Now - {_ZERO} - {c.sql} <= {size}",
            f"{c.sql} < Now - {_ZERO}",
        ]
    )
