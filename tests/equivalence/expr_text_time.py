"""Strings, dates and timestamps."""

from __future__ import annotations

from headwater import types as t

from .grammar import Expr, Maker, construct
from .values import literal


def _string(sql: str) -> Expr:
    return Expr(sql, t.STRING)


@construct("string", "concatenation", 3)
def concatenation(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("string", depth).sql, m.scalar("string", depth).sql
    return _string(m.rng.choice([f"({a} || {b})", f"concat({a}, {b})"]))


@construct("string", "upper, lower", 2)
def letter_case(m: Maker, depth: int) -> Expr:
    return _string(f"{m.rng.choice(['upper', 'lower', 'ucase', 'lcase'])}({m.scalar('string', depth).sql})")


@construct("string", "trim", 1)
def trim(m: Maker, depth: int) -> Expr:
    return _string(f"{m.rng.choice(['trim', 'ltrim', 'rtrim'])}({m.scalar('string', depth).sql})")


@construct("string", "substring", 1.5)
def substring(m: Maker, depth: int) -> Expr:
    start, length = m.rng.choice([1, 1, 2, 3]), m.rng.choice([1, 2])
    return _string(f"{m.rng.choice(['substring', 'substr'])}({m.scalar('string', depth).sql}, {start}, {length})")


@construct("string", "substring from the end", 0.5, duckdb=False)
def substring_backwards(m: Maker, depth: int) -> Expr:
    return _string(f"substring({m.scalar('string', depth).sql}, {m.rng.choice([0, -1, -2])}, {m.rng.choice([1, 2])})")


@construct("string", "left, right", 0.7)
def left_right(m: Maker, depth: int) -> Expr:
    return _string(f"{m.rng.choice(['left', 'right'])}({m.scalar('string', depth).sql}, {m.rng.choice([1, 2])})")


@construct("string", "replace", 1)
def replace_text(m: Maker, depth: int) -> Expr:
    return _string(f"replace({m.scalar('string', depth).sql}, 'a', {m.constant('string').sql})")


@construct("string", "reverse", 0.5)
def reverse(m: Maker, depth: int) -> Expr:
    return _string(f"reverse({m.scalar('string', depth).sql})")


@construct("string", "lpad, rpad", 0.7)
def pad(m: Maker, depth: int) -> Expr:
    return _string(f"{m.rng.choice(['lpad', 'rpad'])}({m.scalar('string', depth).sql}, 3, 'z')")


@construct("string", "repeat", 0.3)
def repeat(m: Maker, depth: int) -> Expr:
    return _string(f"repeat({m.leaf('string').sql}, 2)")


@construct("string", "integer to string", 1)
def string_of_integer(m: Maker, depth: int) -> Expr:
    return _string(f"CAST({m.scalar(m.rng.choice(['int', 'bigint']), depth).sql} AS STRING)")


@construct("string", "date to string", 0.7)
def string_of_date(m: Maker, depth: int) -> Expr:
    return _string(f"CAST({m.scalar('date', depth).sql} AS STRING)")


@construct("string", "decimal, boolean to string", 0.7)
def string_of_other(m: Maker, depth: int) -> Expr:
    return _string(f"CAST({m.leaf(m.rng.choice(['decimal', 'boolean'])).sql} AS STRING)")


@construct("boolean", "like", 1)
def like(m: Maker, depth: int) -> Expr:
    pattern = m.rng.choice(["a%", "%b", "_", "%", "", "a_c", "%a%"])
    word = m.rng.choice(["", "NOT "])
    return Expr(f"({m.scalar('string', depth).sql} {word}LIKE '{pattern}')", t.BOOLEAN)


@construct("boolean", "startswith, contains", 0.7)
def contains(m: Maker, depth: int) -> Expr:
    name = m.rng.choice(["startswith", "endswith", "contains"])
    return Expr(f"{name}({m.scalar('string', depth).sql}, {m.constant('string').sql})", t.BOOLEAN)


# Dates and timestamps


def _date(sql: str) -> Expr:
    return Expr(sql, t.DATE)


@construct("date", "date_add", 2)
def date_add(m: Maker, depth: int) -> Expr:
    days = m.rng.choice(["1", "31", "(-1)", "0"])
    return _date(f"{m.rng.choice(['date_add', 'date_sub'])}({m.scalar('date', depth).sql}, {days})")


@construct("date", "last_day", 0.7)
def last_day(m: Maker, depth: int) -> Expr:
    return _date(f"last_day({m.scalar('date', depth).sql})")


@construct("date", "add_months", 0.7)
def add_months(m: Maker, depth: int) -> Expr:
    return _date(f"add_months({m.scalar('date', depth).sql}, {m.rng.choice([1, 12])})")


@construct("date", "trunc", 0.7)
def trunc(m: Maker, depth: int) -> Expr:
    return _date(f"trunc({m.scalar('date', depth).sql}, '{m.rng.choice(['MONTH', 'YEAR'])}')")


@construct("date", "timestamp to date", 1.5)
def date_of_timestamp(m: Maker, depth: int) -> Expr:
    return _date(f"CAST({m.scalar('timestamp', depth).sql} AS DATE)")


@construct("date", "string to date", 0.4)
def date_of_string(m: Maker, depth: int) -> Expr:
    return _date(m.rng.choice(["CAST('2024-02-29' AS DATE)", "DATE '2024-01-01'"]))


def _timestamp(sql: str) -> Expr:
    return Expr(sql, t.TIMESTAMP)


@construct("timestamp", "date to timestamp", 1)
def timestamp_of_date(m: Maker, depth: int) -> Expr:
    return _timestamp(f"CAST({m.scalar('date', depth).sql} AS TIMESTAMP)")


@construct("timestamp", "date_trunc", 1.5)
def date_trunc(m: Maker, depth: int) -> Expr:
    unit = m.rng.choice(["YEAR", "MONTH", "DAY", "HOUR", "MINUTE"])
    return _timestamp(f"date_trunc('{unit}', {m.scalar('timestamp', depth).sql})")


@construct("timestamp", "timestamp plus interval", 1.5)
def timestamp_shift(m: Maker, depth: int) -> Expr:
    interval = m.rng.choice(["INTERVAL 1 DAY", "INTERVAL '2' HOUR", "INTERVAL 30 MINUTES"])
    return _timestamp(f"({m.scalar('timestamp', depth).sql} {m.rng.choice(['+', '-'])} {interval})")


@construct("timestamp", "timestamp literal", 0.4)
def timestamp_literal(m: Maker, depth: int) -> Expr:
    return _timestamp(literal(m.rng.choice(["2024-02-29 12:30:00", "1970-01-01 00:00:00"]), t.TIMESTAMP))
