"""Constructs beyond select, project, join and sum: outer joins, set operations, inner queries, windows and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater import types as t

from .grammar import MAX_ROWS, Expr, Maker, Query, construct, fits, kind_of
from .queries import _from, _items, _keys, _merged, _named, _where
from .sources import _PARTNERS, MAX_LEAVES, From, _equality, _joined, _two, source
from .values import ARRAY_TYPE, bound

_ORDERED = (
    "int",
    "bigint",
    "string",
    "decimal",
    "date",
    "double",
    "boolean",
    "timestamp",
    "smallint",
    "tinyint",
    "float",
)
_INTEGERS = ("int", "bigint", "smallint", "tinyint")
_DIRECTIONS = ("", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST")


def _orderable(columns: Sequence[Expr]) -> list[Expr]:
    return [column for column in columns if kind_of(column.type) in _ORDERED]


# Joins


def _outer(m: Maker, words: Sequence[str], shown: str) -> From | None:
    both = _two(m)
    if not both:
        return None
    left, right = both
    if left.where or right.where:
        return None
    condition = _equality(m, left, right, m.rng.choice(["=", "=", "=", "=", "<=>"])) if m.chance(0.8) else None
    if condition is None or m.chance(0.25):
        m.note("outer join with any condition")
        with m.over(left.columns + right.columns):
            other = m.scalar("boolean", m.rng.choice([1, 2])).sql
        condition = other if condition is None else f"{condition} AND {other}"
    word = m.rng.choice(words)
    # Every row of one side comes at least once, so the guess of few partners would be too low.
    made = _joined(left, right, f"{left.sql} {word} {right.sql} ON {condition}", _PARTNERS / 2)
    if made is None or shown == "both":
        return made
    return replace(left, sql=made.sql, rows=left.rows)


@construct("from", "left join", 4)
def left_join(m: Maker) -> From | None:
    return _outer(m, ["LEFT JOIN", "LEFT OUTER JOIN"], "both")


@construct("from", "right join", 2)
def right_join(m: Maker) -> From | None:
    return _outer(m, ["RIGHT JOIN"], "both")


@construct("from", "full join", 3)
def full_join(m: Maker) -> From | None:
    return _outer(m, ["FULL JOIN", "FULL OUTER JOIN"], "both")


@construct("from", "semi join", 2)
def semi_join(m: Maker) -> From | None:
    return _outer(m, ["LEFT SEMI JOIN"], "left")


@construct("from", "anti join", 2)
def anti_join(m: Maker) -> From | None:
    return _outer(m, ["LEFT ANTI JOIN"], "left")


@construct("from", "outer join using", 1.5)
def outer_using(m: Maker) -> From | None:
    both = _two(m)
    if not both or both[0].where or both[1].where:
        return None
    left, right = both
    names = [
        a.name
        for a in left.columns
        for b in right.columns
        if a.name and a.name == b.name and a.type == b.type and kind_of(a.type) in _ORDERED
    ]
    if not names:
        return None
    name = m.rng.choice(names)
    word = m.rng.choice(["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    made = _joined(left, right, f"{left.sql} {word} {right.sql} USING ({name})", _PARTNERS / 2)
    if made is None:
        return None
    merged = next(replace(c, sql=name) for c in left.columns if c.name == name)
    return replace(made, columns=(merged, *(c for c in made.columns if c.name != name)))


@construct("from", "lateral view", 2, duckdb=False)
def lateral_view(m: Maker) -> From | None:
    left = source(m)
    arrays = [c for c in left.columns if c.type == ARRAY_TYPE]
    if not arrays or left.where:
        return None
    name, alias = m.alias("e"), m.alias("l")
    element = Expr(f"{alias}.{name}", t.INT, bound(t.INT), name=name)
    if m.chance(0.4):
        number = m.alias("i")
        position = Expr(f"{alias}.{number}", t.INT, 5, name=number)
        text = f"posexplode({m.rng.choice(arrays).sql}) {alias} AS {number}, {name}"
        more: tuple[Expr, ...] = (position, element)
    else:
        text, more = f"explode({m.rng.choice(arrays).sql}) {alias} AS {name}", (element,)
    outer = m.rng.choice(["", " OUTER"])
    return From(f"{left.sql} LATERAL VIEW{outer} {text}", left.columns + more, left.rows * 3)


@construct("from", "lateral query", 2)
def lateral_query(m: Maker) -> From | None:
    both = _two(m)
    if not both or both[0].where or both[1].where:
        return None
    left, right = both
    condition = _equality(m, left, right, m.rng.choice(["=", "=", "<"]))
    column = m.rng.choice(right.columns)
    if condition is None or kind_of(column.type) not in _ORDERED:
        return None
    alias, name = m.alias("l"), m.alias("y")
    found = replace(column, sql=f"{alias}.{name}", name=name)
    if m.chance(0.6):
        end = m.rng.choice(["", "", " HAVING count(*) > 1", " LIMIT 1"])
        inner = f"SELECT max({column.sql}) AS {name} FROM {right.sql} WHERE {condition}{end}"
        way = m.rng.choice(["CROSS JOIN", "LEFT JOIN"])
        rows = left.rows
    else:
        inner = f"SELECT {column.sql} AS {name} FROM {right.sql} WHERE {condition}"
        way = m.rng.choice(["CROSS JOIN", "LEFT JOIN"])
        rows = left.rows * right.rows
    if rows > MAX_ROWS:
        return None
    on = " ON TRUE" if way == "LEFT JOIN" else ""
    return From(f"{left.sql} {way} LATERAL ({inner}) {alias}{on}", (*left.columns, found), max(1.0, rows))


# Aggregates


@construct("aggregate", "min or max", 5)
def extreme(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar(m.kind(), m.rng.choice([0, 0, 1]))
    if kind_of(arg.type) not in _ORDERED:
        return None
    return replace(arg, sql=f"{m.rng.choice(['min', 'max', 'MAX'])}({arg.sql})", name=None)


@construct("aggregate", "count distinct", 3)
def count_distinct(m: Maker, rows: float) -> Expr:
    args = [m.scalar(m.kind(), 1) for _ in range(m.rng.choice([1, 1, 1]))]
    return Expr(f"count(DISTINCT {', '.join(arg.sql for arg in args)})", t.BIGINT, rows)


@construct("aggregate", "sum distinct", 2)
def sum_distinct(m: Maker, rows: float) -> Expr | None:
    arg = m.scalar(m.rng.choice(_INTEGERS), 1)
    if not fits(arg.bound * rows, t.BIGINT):
        return None
    return Expr(f"sum(DISTINCT {arg.sql})", t.BIGINT, arg.bound * rows)


@construct("aggregate", "average distinct", 1)
def average_distinct(m: Maker, rows: float) -> Expr:
    arg = m.scalar("int", 1)
    return Expr(f"avg(DISTINCT {arg.sql})", t.DOUBLE, arg.bound, exact=False)


@construct("aggregate", "variance", 2)
def variance(m: Maker, rows: float) -> Expr:
    arg = m.scalar(m.rng.choice(["int", "bigint", "decimal"]), 0)
    name = m.rng.choice(["stddev", "stddev_pop", "variance", "var_pop", "var_samp", "stddev_samp"])
    return Expr(f"{name}({arg.sql})", t.DOUBLE, arg.bound**2 + 1, exact=False)


@construct("aggregate", "every or some", 2)
def every_or_some(m: Maker, rows: float) -> Expr:
    return Expr(f"{m.rng.choice(['bool_and', 'bool_or'])}({m.scalar('boolean', 1).sql})", t.BOOLEAN)


@construct("aggregate", "count if", 1, duckdb=False)
def count_if(m: Maker, rows: float) -> Expr:
    return Expr(f"count_if({m.scalar('boolean', 1).sql})", t.BIGINT, rows)


@construct("aggregate", "median or percentile", 1.5, duckdb=False)
def median(m: Maker, rows: float) -> Expr:
    arg = m.scalar(m.rng.choice(["int", "bigint"]), 0)
    text = m.rng.choice([f"median({arg.sql})", f"percentile({arg.sql}, 0.25)"])
    return Expr(text, t.DOUBLE, arg.bound, exact=False)


@construct("aggregate", "collect", 1.5, duckdb=False)
def collect(m: Maker, rows: float) -> Expr:
    return Expr(f"{m.rng.choice(['collect_list', 'collect_set'])}({m.scalar('int', 0).sql})", ARRAY_TYPE)


@construct("aggregate", "machine over rows in order", 1, duckdb=False)
def machine(m: Maker, rows: float) -> Expr:
    """What a pattern over the rows of a group becomes: they are put in order and merged one by one."""
    order, value = m.scalar(m.rng.choice(["timestamp", "date", "int", "string"]), 0), m.scalar("int", 0)
    listed = f"{m.rng.choice(['array_sort', 'sort_array'])}(collect_list(struct({order.sql} AS at, {value.sql} AS v)))"
    found = "if(s.run >= 1 AND s.before <= e.v, s.found + 1, s.found)"
    on = f"named_struct('run', s.run + 1, 'found', {found}, 'before', e.v)"
    off = "named_struct('run', 0, 'found', s.found, 'before', CAST(NULL AS INT))"
    merge = f"(s, e) -> CASE WHEN e.v > {m.rng.choice([0, 1, -2])} THEN {on} ELSE {off} END"
    start = "named_struct('run', 0, 'found', 0, 'before', CAST(NULL AS INT))"
    return Expr(f"aggregate({listed}, {start}, {merge}, s -> s.found * 100 + s.run)", t.INT, 101 * rows)


@construct("aggregate", "value at the extreme", 1.5, duckdb=False)
def by_extreme(m: Maker, rows: float) -> Expr | None:
    value, by = m.scalar(m.kind(), 0), m.scalar(m.rng.choice(["int", "date", "string"]), 0)
    if kind_of(value.type) not in _ORDERED:
        return None
    return replace(value, sql=f"{m.rng.choice(['min_by', 'max_by'])}({value.sql}, {by.sql})", name=None)


@construct("aggregate", "first or last", 2, duckdb=False)
def first_or_last(m: Maker, rows: float) -> Expr | None:
    value = m.scalar(m.kind(), 0)
    if kind_of(value.type) not in _ORDERED:
        return None
    keys = [m.scalar(m.rng.choice(["int", "date", "string", "decimal"]), 0).sql for _ in range(m.rng.choice([1, 1, 2]))]
    order = ", ".join(f"{key} {m.rng.choice(_DIRECTIONS)}" for key in keys)
    name = m.rng.choice(["first", "last", "first_value", "last_value"])
    within = f"{name}({value.sql}{m.rng.choice(['', ', TRUE'])}) WITHIN GROUP (ORDER BY {order})"
    return replace(value, sql=m.rng.choice([f"{name}({value.sql} ORDER BY {order})", within]), name=None)


@construct("aggregate", "filtered", 3)
def filtered(m: Maker, rows: float) -> Expr:
    made: Expr = m.make("aggregate", rows, but=("filtered", "machine over rows in order"))
    return replace(made, sql=f"{made.sql} FILTER (WHERE {m.scalar('boolean', 1).sql})", name=None)


# Queries over queries


@construct("query", "distinct", 3)
def distinct(m: Maker) -> Query:
    clause = _from(m)
    text, columns = _named(m, _items(m, clause))
    return Query(f"SELECT DISTINCT {text} FROM {clause.sql}{_where(m, clause, 0.5)}", columns, clause.rows)


@construct("query", "set operation", 4)
def set_operation(m: Maker) -> Query | None:
    if m.leaves >= MAX_LEAVES - 1:
        return None
    first, other = source(m), source(m)
    chosen = [c for c in first.columns if m.chance(0.6)][:3] or [first.columns[0]]
    text, columns = _named(m, chosen)
    with m.over(other.columns):
        items = [m.scalar(kind_of(c.type), m.rng.choice([0, 0, 1])) for c in columns]
    m.duckdb &= not any(isinstance(a.type, t.Decimal) and a.type != b.type for a, b in zip(columns, items, strict=True))
    merged = [_merged(a, b) for a, b in zip(columns, items, strict=True)]
    if any(each is None for each in merged) or first.rows + other.rows > MAX_ROWS:
        return None
    word = m.rng.choice(["UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION DISTINCT"])
    m.note(word.lower())
    sql = (
        f"SELECT {text} FROM {first.sql}{_where(m, first, 0.4)} {word} "
        f"SELECT {', '.join(item.sql for item in items)} FROM {other.sql}{_where(m, other, 0.4)}"
    )
    return Query(sql, tuple(each for each in merged if each), first.rows + other.rows)


@construct("query", "first rows", 3)
def first_rows(m: Maker) -> Query | None:
    clause = _from(m)
    chosen = [c for c in _orderable(clause.columns) if m.chance(0.7)][:4]
    if not chosen:
        return None
    text, columns = _named(m, chosen)
    # All columns, so that it is certain which rows come first.
    keys = [f"{c.name} {m.rng.choice(['', 'ASC', 'DESC', 'DESC NULLS FIRST', 'ASC NULLS LAST'])}" for c in columns]
    m.rng.shuffle(keys)
    limit = m.rng.choice([1, 2, 3, 5])
    offset = f" OFFSET {m.rng.choice([1, 2])}" if m.chance(0.2) else ""
    where = _where(m, clause, 0.4)
    return Query(
        f"SELECT {text} FROM {clause.sql}{where} ORDER BY {', '.join(keys)} LIMIT {limit}{offset}", columns, limit
    )


@construct("query", "group by a query", 1)
def group_by_query(m: Maker) -> Query | None:
    clause = _from(m)
    with m.over(clause.columns), m.holding(2):
        made = exists(m, 1) or in_query(m, 1)
    if made is None:
        return None
    text, columns = _named(m, [replace(made, name=None), Expr("count(*)", t.BIGINT, clause.rows)])
    group = m.rng.choice([columns[0].sql, "1", "ALL"])
    m.duckdb &= group != "ALL"  # DuckDB takes what reads no column for no group
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.3)} GROUP BY {group}", columns, 3)


@construct("query", "grouping sets", 2, duckdb=False)
def grouping_sets(m: Maker) -> Query | None:
    clause = _from(m)
    with m.over(clause.columns):
        keys = [key for key in _keys(m) if key.name][:3]
        aggregates = [m.make("aggregate", clause.rows) for _ in range(m.rng.randint(1, 2))]
    if len(keys) < 2:
        return None
    names = [key.sql for key in keys]
    groups = m.rng.choice(
        [
            f"ROLLUP({', '.join(names)})",
            f"CUBE({', '.join(names[:2])})" + "".join(f", {name}" for name in names[2:]),
            f"GROUPING SETS (({names[0]}), ({', '.join(names)}), ())",
            f"{names[0]}, ROLLUP({', '.join(names[1:])})",
        ]
    )
    extra = [Expr(f"grouping({names[-1]})", t.TINYINT, 1), Expr(f"grouping_id({', '.join(names)})", t.BIGINT, 8)]
    text, columns = _named(m, [*keys, *aggregates, *(one for one in extra if m.chance(0.4))])
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.3)} GROUP BY {groups}", columns, clause.rows * 8)


@construct("query", "explode", 1.5, duckdb=False)
def explode(m: Maker) -> Query | None:
    clause = _from(m)
    arrays = [c for c in clause.columns if c.type == ARRAY_TYPE]
    if not arrays:
        return None
    text, columns = _named(m, [c for c in clause.columns if m.chance(0.5)][:3])
    name, number = m.alias("x"), m.alias("x")
    element = Expr(name, t.INT, bound(t.INT), name=name)
    one = m.rng.choice(arrays).sql
    if m.chance(0.4):
        made = f"{m.rng.choice(['posexplode', 'posexplode_outer'])}({one}) AS ({number}, {name})"
        more: tuple[Expr, ...] = (Expr(number, t.INT, 5, name=number), element)
    else:
        made, more = f"{m.rng.choice(['explode', 'explode_outer'])}({one}) AS {name}", (element,)
    items = f"{text}, {made}" if text else made
    if columns and m.chance(0.3):
        m.note("window over exploded rows")
        count = m.alias("x")
        items += f", count(*) OVER (PARTITION BY {name}) AS {count}"
        more += (Expr(count, t.BIGINT, clause.rows * 3, name=count),)
    return Query(f"SELECT {items} FROM {clause.sql}{_where(m, clause, 0.5)}", (*columns, *more), clause.rows * 3)


# Windows


def _over(m: Maker, columns: Sequence[Expr], order: bool, total: bool) -> str:
    partition = [c.sql for c in columns if m.chance(0.3)][:2]
    parts = [f"PARTITION BY {', '.join(partition)}"] if partition else []
    if order:
        keys = list(columns) if total else m.rng.sample(list(columns), min(len(columns), m.rng.choice([1, 1, 2])))
        m.rng.shuffle(keys)
        parts.append("ORDER BY " + ", ".join(f"{c.sql} {m.rng.choice(_DIRECTIONS)}" for c in keys))
    return " ".join(parts)


_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
)


def _window(m: Maker, columns: Sequence[Expr], rows: float) -> Expr | None:
    kind = m.rng.choice(["row_number", "rank", "shift", "sum", "extreme", "value", "share", "ntile", "range"])
    m.note(f"window: {kind}")
    number = [c for c in columns if kind_of(c.type) in _INTEGERS]
    one = m.rng.choice(columns)
    match kind:
        case "row_number":
            return Expr(f"row_number() OVER ({_over(m, columns, True, True)})", t.INT, rows)
        case "rank":
            name = m.rng.choice(["rank", "dense_rank"])
            return Expr(f"{name}() OVER ({_over(m, columns, True, False)})", t.INT, rows)
        case "share":
            name = m.rng.choice(["percent_rank", "cume_dist"])
            return Expr(f"{name}() OVER ({_over(m, columns, True, False)})", t.DOUBLE, 1, exact=False)
        case "ntile":
            return Expr(f"ntile({m.rng.choice([2, 3])}) OVER ({_over(m, columns, True, True)})", t.INT, 3)
        case "shift":
            by = m.rng.choice(["", ", 1", ", 2"])
            name = m.rng.choice(["lag", "lead"])
            return replace(one, sql=f"{name}({one.sql}{by}) OVER ({_over(m, columns, True, True)})", name=None)
        case "value":
            name = m.rng.choice(["first_value", "last_value"])
            frame = m.rng.choice(["", " " + m.rng.choice(_FRAMES)])
            return replace(one, sql=f"{name}({one.sql}) OVER ({_over(m, columns, True, True)}{frame})", name=None)
        case "sum" if number:
            arg = m.rng.choice(number)
            if not fits(arg.bound * rows, t.BIGINT):
                return None
            total = m.chance(0.5)
            over = _over(m, columns, total or m.chance(0.6), total)
            frame = " " + m.rng.choice(_FRAMES) if total else ""
            text = m.rng.choice([f"sum({arg.sql})", f"sum({arg.sql})", "count(*)", f"count({arg.sql})"])
            return Expr(f"{text} OVER ({over}{frame})", t.BIGINT, max(arg.bound * rows, rows))
        case "range":
            return _ranged(m, columns, rows)
        case "extreme":
            total = m.chance(0.4)
            over = _over(m, columns, total or m.chance(0.6), total)
            frame = " " + m.rng.choice(_FRAMES) if total else ""
            return replace(one, sql=f"{m.rng.choice(['min', 'max'])}({one.sql}) OVER ({over}{frame})", name=None)
    return None


def _ranged(m: Maker, columns: Sequence[Expr], rows: float) -> Expr | None:
    """A frame by how far the one key of the order is away."""
    keys = [c for c in columns if kind_of(c.type) in (*_INTEGERS, "date", "timestamp")]
    if not keys:
        return None
    key = m.rng.choice(keys)
    kind = kind_of(key.type)
    m.note(f"frame of range by {kind if kind in ('date', 'timestamp') else 'a whole number'}")
    far = {"date": "INTERVAL 30 DAYS", "timestamp": "INTERVAL 26 HOURS"}.get(kind, "2")
    near = {"date": "INTERVAL 1 DAY", "timestamp": "INTERVAL 15 SECONDS"}.get(kind, "1")
    frame = m.rng.choice(
        [
            f"{far} PRECEDING AND CURRENT ROW",
            f"{far} PRECEDING AND {near} PRECEDING",
            f"{near} FOLLOWING AND {far} FOLLOWING",
            f"UNBOUNDED PRECEDING AND {near} FOLLOWING",
            f"{near} PRECEDING AND UNBOUNDED FOLLOWING",
        ]
    )
    partition = f"PARTITION BY {m.rng.choice(columns).sql} " if m.chance(0.5) else ""
    over = f"{partition}ORDER BY {key.sql} {m.rng.choice(_DIRECTIONS)} RANGE BETWEEN {frame}"
    one = m.rng.choice(columns)
    if m.chance(0.3):
        return Expr(f"count(*) OVER ({over})", t.BIGINT, rows)
    numbers = [c for c in columns if kind_of(c.type) in _INTEGERS and fits(c.bound * rows, t.BIGINT)]
    if numbers and m.chance(0.5):
        arg = m.rng.choice(numbers)
        return Expr(f"sum({arg.sql}) OVER ({over})", t.BIGINT, arg.bound * rows)
    return replace(one, sql=f"{m.rng.choice(['min', 'max'])}({one.sql}) OVER ({over})", name=None)


@construct("query", "window functions", 5)
def windows(m: Maker) -> Query | None:
    clause = _from(m)
    columns = _orderable(clause.columns)
    if not columns or len(columns) < len(clause.columns):
        return None  # ties that only other columns tell apart would be broken in an order that nobody knows
    made = [one for one in (_window(m, columns, clause.rows) for _ in range(m.rng.randint(1, 2))) if one]
    if not made:
        return None
    qualify = ""
    if m.chance(0.3):
        m.note("qualify")
        qualify = f" QUALIFY row_number() OVER ({_over(m, columns, True, True)}) <= {m.rng.choice([1, 2])}"
    if qualify or len(made) > 1:
        m.duckdb = False  # of equal rows, which is first for one function need not be first for the other
    text, shown = _named(m, [*(c for c in columns if m.chance(0.5)), *made])
    return Query(f"SELECT {text} FROM {clause.sql}{_where(m, clause, 0.4)}{qualify}", shown, clause.rows)


# Queries inside expressions


def _inner(m: Maker) -> tuple[From, str, tuple[Expr, ...]] | None:
    """What an inner query reads, its WHERE, and the columns that it sees."""
    if not m.queries or m.leaves >= MAX_LEAVES or m.nesting >= 2:
        return None
    outside = tuple(c for c in m.scope if "." in c.sql) if m.queries > 1 else ()
    before = m.queries
    m.queries = 0 if m.chance(0.7) else 1
    try:
        with m.over(()):
            clause = source(m)
        parts: list[str] = []
        outer = From("", outside, 1)
        if outside and m.chance(0.7):
            condition = _equality(m, clause, outer, m.rng.choice(["=", "=", "=", "<", "<>"]))
            if condition:
                m.note("correlated by " + ("equality" if " = " in condition else "another comparison"))
                parts.append(condition)
        if m.chance(0.4):
            with m.over((*clause.columns, *outside) if m.chance(0.3) else clause.columns):
                parts.append(m.scalar("boolean", 1).sql)
    finally:
        m.queries = before
    return clause, f" WHERE {' AND '.join(parts)}" if parts else "", clause.columns


def _aggregated(m: Maker, column: Expr, where: str) -> tuple[str, str]:
    """What an inner query selects, and the end of it; perhaps an aggregate, which has a row over no rows, too."""
    if not m.chance(0.3):
        return column.sql, where
    m.note("inner aggregate without group by")
    having = f" HAVING count(*) {m.rng.choice(['> 1', '< 2', '> 0'])}" if m.chance(0.4) else ""
    return f"{m.rng.choice(['min', 'max'])}({column.sql})", f"{where}{having}"


@construct("boolean", "exists", 1.5)
def exists(m: Maker, depth: int) -> Expr | None:
    inner = _inner(m)
    if inner is None:
        return None
    clause, where, columns = inner
    word = m.rng.choice(["EXISTS", "NOT EXISTS"])
    known = _orderable(columns)
    what, end = _aggregated(m, m.rng.choice(known), where) if known and m.chance(0.5) else ("1", where)
    return Expr(f"({word} (SELECT {what} FROM {clause.sql}{end}))", t.BOOLEAN)


def _matched(m: Maker, words: Sequence[str]) -> tuple[str, str] | None:
    """A value beside an inner query of one column of its type; and the word between them."""
    scope = m.scope
    inner = _inner(m)
    if inner is None:
        return None
    clause, where, columns = inner
    pairs = [(a, b) for a in scope for b in columns if a.type == b.type and kind_of(a.type) in _ORDERED]
    if not pairs:
        return None
    a, b = m.rng.choice(pairs)
    word = m.rng.choice(words)
    what, end = _aggregated(m, b, where)
    return f"({a.sql} {word} (SELECT {what} FROM {clause.sql}{end}))", word


@construct("boolean", "in a query", 1.5)
def in_query(m: Maker, depth: int) -> Expr | None:
    made = _matched(m, ["IN", "NOT IN"])
    if made is None:
        return None
    m.note(f"{made[1].lower()} a query")
    return Expr(made[0], t.BOOLEAN)


@construct("boolean", "compared with a query", 0.7)
def compared(m: Maker, depth: int) -> Expr | None:
    made = _matched(m, ["> ALL", "<= ANY", "= ANY", "<> ALL"])
    return Expr(made[0], t.BOOLEAN) if made else None


@construct("any", "scalar query", 0.6)
def scalar_query(m: Maker, kind: str, depth: int) -> Expr | None:
    if kind not in _ORDERED:
        return None
    inner = _inner(m)
    if inner is None:
        return None
    clause, where, columns = inner
    usable = [c for c in columns if kind_of(c.type) == kind]
    if kind == "bigint" and m.chance(0.5):
        return Expr(f"(SELECT count(*) FROM {clause.sql}{where})", t.BIGINT, clause.rows)
    if not usable:
        return None
    column = m.rng.choice(usable)
    name = m.rng.choice(["min", "max"])
    return replace(column, sql=f"(SELECT {name}({column.sql}) FROM {clause.sql}{where})", name=None)
