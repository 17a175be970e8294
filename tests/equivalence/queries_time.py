"""Groups by windows of time and by sessions; and what reads the windows that views show."""

from __future__ import annotations

import re
from dataclasses import replace

from headwater import types as t

from .grammar import MAX_ROWS, WINDOW_TYPE, Expr, Maker, Query, construct, kind_of
from .queries import _aggregates, _around, _from, _named, _where
from .sources import From

#: Arguments behind the time, and how many windows a row is in at most.
_WINDOWS = (
    ("'1 day'", 1),
    ("'10 seconds'", 1),
    ("86400000000", 1),
    ("'7 days', '7 days', '3 days'", 1),
    ("'20 minutes', '10 minutes'", 2),
    ("'1 day', '6 hours'", 4),
    ("'10 minutes', '4 minutes'", 3),
    ("'60 days', '17 days', '-2 days 1 hour'", 4),
    ("'1 minute', 15250000", 4),
)
#: One of them is just what lies between two of the times that rows have, and one is a microsecond less.
_GAPS = ("15.25 seconds", "15.249999 seconds", "1 day", "59 days", "10 minutes", "1 microsecond", "INTERVAL 2 WEEKS")


def _time(m: Maker, clause: From) -> Expr | None:
    usable = [c for c in clause.columns if kind_of(c.type) in ("timestamp", "date")]
    return m.rng.choice(usable) if usable else None


def _keys(m: Maker, clause: From, most: int) -> list[Expr]:
    usable = [c for c in clause.columns if kind_of(c.type) not in ("array", "struct", "timestamp", "double", "float")]
    return m.rng.sample(usable, min(len(usable), m.rng.randint(0, most)))


def _shown(m: Maker, name: str) -> list[Expr]:
    """The window, or what it has; a name of its own may be in any case."""
    spelt = name.upper() if m.chance(0.1) else name
    every = [
        Expr(f"{spelt}.start", t.TIMESTAMP),
        Expr(f"{spelt}.end", t.TIMESTAMP),
        Expr(spelt, WINDOW_TYPE),
    ]
    return m.rng.sample(every, m.rng.choice([1, 1, 2, 2, 3]))


def _grouped(m: Maker, clause: From, call: str, rows: float) -> Query:
    name = call.partition("(")[0]
    keys = _keys(m, clause, 2)
    with m.over(clause.columns):
        aggregates = _aggregates(m, rows, 3)
    window = _shown(m, name)
    scope = [*keys, *(one for one in window if one.type == t.TIMESTAMP), *aggregates]
    having = ""
    if m.chance(0.3):
        m.note("having beside a window of time")
        with m.over(scope):
            having = f" HAVING {m.scalar('boolean', 2).sql}"
    if m.chance(0.3):
        aggregates.append(_around(m, scope))
    text, columns = _named(m, [*keys, *window, *aggregates])
    groups = [key.sql for key in keys]
    groups.insert(m.rng.randint(0, len(groups)), call)
    where = _where(m, clause, 0.4)
    return Query(f"SELECT {text} FROM {clause.sql}{where} GROUP BY {', '.join(groups)}{having}", columns, rows)


def _has_window_column(clause: From) -> bool:
    """Whether `window` means a column of FROM: then it is not the query's own window."""
    return any(re.fullmatch(r"(session_)?window", column.name or "", re.IGNORECASE) for column in clause.columns)


@construct("query", "group by a window of time", 3, duckdb=False)
def group_by_window(m: Maker) -> Query | None:
    clause = _from(m)
    time = _time(m, clause)
    arguments, most = m.rng.choice(_WINDOWS)
    if time is None or clause.rows * most > MAX_ROWS or _has_window_column(clause):
        return None
    return _grouped(m, clause, f"window({time.sql}, {arguments})", clause.rows * most)


@construct("query", "group by sessions", 3, duckdb=False)
def group_by_session(m: Maker) -> Query | None:
    clause = _from(m)
    time = _time(m, clause)
    if time is None or _has_window_column(clause):
        return None
    return _grouped(m, clause, f"session_window({time.sql}, '{m.rng.choice(_GAPS)}')", clause.rows)


@construct("query", "rows in windows of time", 1, duckdb=False)
def in_windows(m: Maker) -> Query | None:
    clause = _from(m)
    time = _time(m, clause)
    arguments, most = m.rng.choice(_WINDOWS)
    if time is None or clause.rows * most > MAX_ROWS or _has_window_column(clause):
        return None
    call = f"window({time.sql}, {arguments})"
    window = m.rng.choice([Expr(call, WINDOW_TYPE), Expr(f"{call}.start", t.TIMESTAMP)])
    others = m.rng.sample(clause.columns, min(2, len(clause.columns)))
    text, columns = _named(m, [*others, window])
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.4)}", columns, clause.rows * most)


@construct("timestamp", "start or end of a window of time", 2, duckdb=False)
def end_of_window(m: Maker, depth: int) -> Expr | None:
    windows = m.columns("window")
    if not windows:
        return None
    chosen = m.rng.choice(windows)
    return replace(chosen, sql=f"{chosen.sql}.{m.rng.choice(['start', 'end', 'END'])}", type=t.TIMESTAMP, name=None)
