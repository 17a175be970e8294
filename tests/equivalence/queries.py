"""Queries: projections, aggregates, unions, CTEs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from headwater import types as t

from .grammar import MAX_ROWS, Expr, Maker, Query, construct, fits, kind_of
from .sources import MAX_LEAVES, From, source
from .windows import perhaps_window

_INTEGERS = ("int", "bigint", "smallint", "tinyint")
_NUMBERS = (*_INTEGERS, "decimal", "double", "float")


def _from(m: Maker) -> From:
    made: From = m.make("from")
    return made


def _where(m: Maker, clause: From, share: float) -> str:
    """The WHERE clause: what the joins need, and with some chance a predicate of its own."""
    parts = [clause.where] if clause.where else []
    if m.chance(share):
        m.note("where")
        with m.over(clause.columns), m.holding(2):
            parts.append(m.scalar("boolean", m.rng.choice([1, 2, 2, 3])).sql)
    if window := perhaps_window(m, clause.columns, 0.15):
        m.note("window in where")
        parts.insert(m.rng.randint(0, len(parts)), window)
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _named(m: Maker, items: Sequence[Expr]) -> tuple[str, tuple[Expr, ...]]:
    """The SELECT list, and the columns it makes."""
    parts: list[str] = []
    columns: list[Expr] = []
    taken: set[str] = set()
    for item in items:
        if item.name and item.name not in taken and m.chance(0.5):
            name = item.name
            parts.append(item.sql)
        else:
            name = m.alias("x")
            parts.append(f"{item.sql}{m.rng.choice([' AS ', ' '])}{name}")
        taken.add(name)
        columns.append(replace(item, sql=name, name=name))
    return ", ".join(parts), tuple(columns)


def _items(m: Maker, clause: From) -> list[Expr]:
    """Columns passed through and expressions over them."""
    some = [column for column in clause.columns if m.chance(0.5)][:5]
    with m.over(clause.columns), m.holding(2):
        made = [m.scalar(m.kind(), m.rng.choice([1, 2, 2, 3])) for _ in range(m.rng.choice([0, 1, 1, 2]))]
    items = some + made or [m.rng.choice(clause.columns)]
    m.rng.shuffle(items)
    return items


@construct("query", "projection", 6)
def projection(m: Maker) -> Query:
    clause = _from(m)
    text, columns = _named(m, _items(m, clause))
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.5)}", columns, clause.rows)


@construct("query", "select star", 1.5)
def select_star(m: Maker) -> Query:
    clause = source(m, bare=True)
    columns = tuple(replace(column, sql=column.name or "") for column in clause.columns)
    text = "*"
    if m.chance(0.4):
        m.note("select star and more")
        with m.over(clause.columns):
            extra, more = _named(m, [m.scalar(m.kind(), 2)])
        if more[0].name not in {column.name for column in columns}:
            text, columns = f"*, {extra}", columns + more
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.5)}", columns, clause.rows)


@construct("query", "constant row", 0.2)
def constant_row(m: Maker) -> Query:
    with m.over(()):
        text, columns = _named(m, [m.scalar(m.kind(), 1) for _ in range(2)])
    return Query(f"SELECT {text}", columns, 1)


# Aggregates


@construct("aggregate", "count star", 5)
def count_star(m: Maker, rows: float) -> Expr:
    return Expr(m.rng.choice(["count(*)", "COUNT(*)", "count(1)"]), t.BIGINT, rows)


@construct("aggregate", "count of a column", 4)
def count_column(m: Maker, rows: float) -> Expr:
    arg = m.rng.choice(m.scope) if m.scope and m.chance(0.7) else m.scalar(m.kind(), 1)
    return Expr(f"count({arg.sql})", t.BIGINT, rows)


@construct("aggregate", "sum of integers", 6)
def sum_integers(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar(m.rng.choice(_INTEGERS), m.rng.choice([0, 1, 1, 2]))
    return _sum(arg, t.BIGINT, rows)


@construct("aggregate", "sum of decimals", 3)
def sum_decimals(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar("decimal", m.rng.choice([0, 1, 2]))
    assert isinstance(arg.type, t.Decimal)
    return _sum(arg, t.bounded_decimal(arg.type.precision + 10, arg.type.scale), rows)


@construct("aggregate", "sum of doubles", 3)
def sum_doubles(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar(m.rng.choice(["double", "double", "float"]), m.rng.choice([0, 1, 2]))
    return _sum(arg, t.DOUBLE, rows) if arg.exact else None


@construct("aggregate", "average", 3)
def average(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar(m.rng.choice([*_INTEGERS, "double"]), m.rng.choice([0, 1]))
    if not arg.exact or not fits(arg.bound * rows, t.DOUBLE):
        return None
    return Expr(f"{m.rng.choice(['avg', 'AVG', 'mean'])}({arg.sql})", t.DOUBLE, arg.bound, exact=False)


@construct("aggregate", "average of decimals", 1, duckdb=False)
def average_decimals(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar("decimal", m.rng.choice([0, 1]))
    assert isinstance(arg.type, t.Decimal)
    of = t.bounded_decimal(arg.type.precision + 4, arg.type.scale + 4)
    return Expr(f"avg({arg.sql})", of, arg.bound) if fits(arg.bound * rows, of) else None


def _sum(arg: Expr, of: t.Type, rows: float) -> Expr | None:
    bound = arg.bound * rows
    return Expr(f"sum({arg.sql})", of, bound) if fits(bound, of) else None


def _aggregates(m: Maker, rows: float, most: int) -> list[Expr]:
    return [m.make("aggregate", rows) for _ in range(m.rng.randint(1, most))]


def _around(m: Maker, scope: Sequence[Expr]) -> Expr:
    """An expression over keys and aggregates."""
    m.note("expression around aggregates")
    with m.over(scope):
        kinds = [kind_of(column.type) for column in scope]
        kind = m.rng.choice([kind for kind in kinds if kind in _NUMBERS] or ["int"])
        return m.scalar(kind, 2)


def _keys(m: Maker) -> list[Expr]:
    usable = [c for c in m.scope if kind_of(c.type) not in ("array", "struct") or m.chance(0.2)]
    keys = m.rng.sample(usable, min(len(usable), m.rng.choice([1, 1, 1, 2, 2, 3])))
    if m.chance(0.25) or not keys:
        expression = m.scalar(m.kind(), 2)
        # A bare number in GROUP BY would be a position.
        if not re.fullmatch(r"\(?-?\d+\)?", expression.sql):
            m.note("group by expression")
            keys.append(replace(expression, name=None))
    unique = {key.sql: key for key in keys}
    return list(unique.values())


@construct("query", "group by", 10)
def group_by(m: Maker) -> Query | None:
    clause = _from(m)
    with m.over(clause.columns):
        keys = _keys(m)
        aggregates = _aggregates(m, clause.rows, 3)
    if not keys:
        return None
    having = ""
    if m.chance(0.3):
        m.note("having")
        with m.over([*keys, *aggregates]), m.holding(1):
            having = f" HAVING {m.scalar('boolean', 2).sql}"
    if not having and (window := perhaps_window(m, [*keys, *aggregates], 0.05)):
        m.note("window in having")
        having = f" HAVING {window}"
    shown = [key for key in keys if m.chance(0.85)]
    if m.chance(0.4):
        aggregates.append(_around(m, [*keys, *aggregates]))
    text, columns = _named(m, [*shown, *aggregates])
    groups = ", ".join(key.sql for key in keys)
    if len(shown) == len(keys) and m.chance(0.15):
        m.note("group by position")
        groups = ", ".join(str(i) for i in range(1, len(keys) + 1))
    return Query(
        f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.4)} GROUP BY {groups}{having}", columns, clause.rows
    )


@construct("query", "group by without aggregates", 1)
def group_only(m: Maker) -> Query | None:
    clause = _from(m)
    with m.over(clause.columns):
        keys = _keys(m)
    if not keys:
        return None
    text, columns = _named(m, keys)
    groups = ", ".join(key.sql for key in keys)
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.4)} GROUP BY {groups}", columns, clause.rows)


@construct("query", "global aggregate", 3)
def global_aggregate(m: Maker) -> Query:
    clause = _from(m)
    with m.over(clause.columns):
        items = _aggregates(m, clause.rows, 4)
    if m.chance(0.3):
        items.append(_around(m, items))
    having = ""
    if m.chance(0.15):
        m.note("having without group by")
        with m.over(items[:1]):
            having = f" HAVING {m.scalar('boolean', 1).sql}"
    text, columns = _named(m, items)
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.4)}{having}", columns, 1)


# Compound queries


@construct("query", "union all", 3)
def union_all(m: Maker) -> Query | None:
    if m.leaves >= MAX_LEAVES - 1:
        return None
    first = source(m)
    chosen = [c for c in first.columns if m.chance(0.6)][:4] or [first.columns[0]]
    text, columns = _named(m, chosen)
    arms = [f"SELECT {text} FROM {first.sql}{_where(m, first, 0.4)}"]
    rows = first.rows
    for _ in range(m.rng.choice([1, 1, 2])):
        other = source(m)
        with m.over(other.columns):
            items = [m.scalar(kind_of(c.type), m.rng.choice([0, 1])) for c in columns]
        merged = [_merged(a, b) for a, b in zip(columns, items, strict=True)]
        # In DuckDB a SUM of decimals has all 38 digits, and then the meeting of two scales has too few.
        m.duckdb &= not any(
            isinstance(a.type, t.Decimal) and a.type != b.type for a, b in zip(columns, items, strict=True)
        )
        if any(each is None for each in merged):
            return None
        columns = tuple(each for each in merged if each)
        arms.append(f"SELECT {', '.join(item.sql for item in items)} FROM {other.sql}{_where(m, other, 0.4)}")
        rows += other.rows
    return Query(" UNION ALL ".join(arms), columns, rows) if rows <= MAX_ROWS else None


def _merged(a: Expr, b: Expr) -> Expr | None:
    """A column of a union: the type both arms meet at."""
    of = t.common_type(a.type, b.type)
    if of is None or not fits(max(a.bound, b.bound), of):
        return None
    return replace(a, type=of, bound=max(a.bound, b.bound), exact=a.exact and b.exact)


@construct("query", "with", 3)
def with_clause(m: Maker) -> Query | None:
    if m.nesting or m.leaves >= MAX_LEAVES - 1:
        return None
    before = dict(m.relations)
    parts: list[str] = []
    try:
        for _ in range(m.rng.choice([1, 1, 2])):
            inner = m.nested()
            if inner is None:
                return None
            name = m.alias("c")
            parts.append(f"{name} AS ({inner.sql})")
            m.relations[name] = inner
        outer: Query = m.make("query", but=("with", "constant row"))
        return replace(outer, sql=f"WITH {', '.join(parts)} {outer.sql}")
    finally:
        m.relations.clear()
        m.relations.update(before)
