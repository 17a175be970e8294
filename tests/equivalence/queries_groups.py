"""Rows compared with sums over rows like them: what planners keep as groups and running sums; and sums of products."""

from __future__ import annotations

from dataclasses import replace

from headwater import types as t

from .grammar import Expr, Maker, Query, construct, fits, kind_of
from .queries import _named
from .sources import MAX_LEAVES, From, aliased

_ORDERED = ("int", "bigint", "string", "date", "decimal", "timestamp")
_NUMBERS = ("int", "bigint", "decimal", "smallint", "tinyint")


def _twice(m: Maker) -> tuple[From, From, str] | None:
    """A relation read twice, under two aliases, and its name."""
    names = [name for name in m.relations if name in m.bases or name.startswith("v")]
    if m.leaves + 2 > MAX_LEAVES or not names:
        return None
    name = m.rng.choice(names)
    query = m.relations[name]
    m.leaves += 2
    m.reads.add(name)
    return aliased(m, query, name), aliased(m, query, name), name


def _pick(m: Maker, outer: From, kinds: tuple[str, ...]) -> int | None:
    usable = [i for i, column in enumerate(outer.columns) if kind_of(column.type) in kinds]
    return m.rng.choice(usable) if usable else None


def _inner_sum(m: Maker, inner: From) -> Expr:
    number = _pick(m, inner, _NUMBERS)
    if number is None or m.chance(0.4):
        return Expr("count(*)", t.BIGINT, inner.rows)
    return Expr(f"{m.rng.choice(['sum', 'count'])}({inner.columns[number].sql})", t.BIGINT, 0)


def _shown(m: Maker, outer: From, key: int | None) -> list[Expr]:
    items = [Expr("count(*)", t.BIGINT, outer.rows)]
    number = _pick(m, outer, _NUMBERS)
    if number is not None:
        column, of = outer.columns[number], t.BIGINT
        if isinstance(column.type, t.Decimal):
            of = t.bounded_decimal(column.type.precision + 10, column.type.scale)
        if fits(column.bound * outer.rows, of):
            items.append(Expr(f"sum({column.sql})", of, column.bound * outer.rows))
    return ([outer.columns[key]] if key is not None else []) + items


@construct("query", "rows beside their own group", 1.5)
def own_group(m: Maker) -> Query | None:
    both = _twice(m)
    key = _pick(m, both[0], _ORDERED) if both else None
    if both is None or key is None:
        return None
    outer, inner, _ = both
    test = m.rng.choice(["<", "<=", ">", "="])
    same = f"{inner.columns[key].sql} = {outer.columns[key].sql}"
    nested = f"(SELECT {_inner_sum(m, inner).sql} FROM {inner.sql} WHERE {same})"
    grouped = m.chance(0.7)
    text, columns = _named(m, _shown(m, outer, key if grouped else None))
    end = f" GROUP BY {outer.columns[key].sql}" if grouped else ""
    return Query(
        f"SELECT {text} FROM {outer.sql} WHERE {m.rng.randint(0, 3)} {test} {nested}{end}", columns, outer.rows
    )


@construct("query", "rows beside a running sum", 1.5)
def running(m: Maker) -> Query | None:
    both = _twice(m)
    key = _pick(m, both[0], _ORDERED) if both else None
    if both is None or key is None:
        return None
    outer, inner, _ = both
    test = m.rng.choice(["<", "<=", ">", ">="])
    where = f"{inner.columns[key].sql} {test} {outer.columns[key].sql}"
    equal = _pick(m, outer, _ORDERED)
    if equal is not None and equal != key and m.chance(0.4):
        where += f" AND {inner.columns[equal].sql} = {outer.columns[equal].sql}"
    nested = f"(SELECT {_inner_sum(m, inner).sql} FROM {inner.sql} WHERE {where})"
    text, columns = _named(m, _shown(m, outer, None))
    return Query(
        f"SELECT {text} FROM {outer.sql} WHERE {m.rng.randint(0, 3)} {m.rng.choice(['<', '>='])} {nested}", columns, 1
    )


@construct("query", "sum over a join of several", 2)
def several(m: Maker) -> Query | None:
    """Three or four relations in a chain of equalities: planners have a choice of trees here."""
    names = [name for name in m.relations if name in m.bases or name.startswith("v")]
    most = min(4, MAX_LEAVES - m.leaves)
    if most < 3 or not names:
        return None
    sources: list[From] = []
    conditions: list[str] = []
    for _ in range(m.rng.randint(3, most)):
        name = m.rng.choice(names)
        one = aliased(m, m.relations[name], name)
        pairs = [(a, b) for a in (sources[-1].columns if sources else ()) for b in one.columns if a.type == b.type]
        pairs = [(a, b) for a, b in pairs if kind_of(a.type) in _ORDERED]
        if sources and not pairs:
            return None
        if sources:
            a, b = m.rng.choice(pairs)
            conditions.append(f"{a.sql} = {b.sql}")
        sources.append(one)
        m.reads.add(name)
        m.leaves += 1
    rows = 1
    for one in sources:
        rows *= max(one.rows, 1)
    if rows > _MOST_JOINED:
        return None
    own = _pick(m, sources[0], _ORDERED)
    if own is not None and m.chance(0.4):
        conditions.append(f"{sources[0].columns[own].sql} IS NOT NULL")
    whole = replace(m.rng.choice(sources), rows=rows)
    key = _pick(m, whole, _ORDERED)
    text, columns = _named(m, _shown(m, whole, key))
    end = f" GROUP BY {whole.columns[key].sql}" if key is not None else ""
    joined = ", ".join(one.sql for one in sources)
    return Query(f"SELECT {text} FROM {joined} WHERE {' AND '.join(conditions)}{end}", columns, rows)


#: Rows that a join of several may have at most: the reference evaluator joins one by one.
_MOST_JOINED = 200_000


def _as_decimal(column: Expr) -> Expr | None:
    """A column as a DECIMAL of few digits, which an INT always fits into."""
    if isinstance(column.type, t.Decimal) and column.type.precision <= 12:
        return column
    if column.type in (t.INT, t.SMALLINT, t.TINYINT):
        return replace(column, sql=f"CAST({column.sql} AS DECIMAL(10,0))", type=t.Decimal(10, 0))
    return None


@construct("aggregate", "sum of a product of decimals", 4)
def sum_product(m: Maker, rows: float) -> Expr | None:
    """Of columns of several sources, if the clause has them: such sums are multiplied out."""
    usable = [column for column in map(_as_decimal, m.scope) if column is not None]
    if len(usable) < 2:
        return None
    a, b = m.rng.sample(usable, 2)
    assert isinstance(a.type, t.Decimal) and isinstance(b.type, t.Decimal)
    text, bound = f"{a.sql} * {b.sql}", a.bound * b.bound
    precision, scale = a.type.precision + b.type.precision + 1, a.type.scale + b.type.scale
    if m.chance(0.5):
        c = m.rng.choice(usable)
        assert isinstance(c.type, t.Decimal)
        text, bound = f"{text} {m.rng.choice('+-')} {c.sql}", bound + c.bound
        whole = max(precision - scale, c.type.precision - c.type.scale)
        scale = max(scale, c.type.scale)
        precision = whole + scale + 1
    if precision + 10 > t.MAX_PRECISION:
        return None
    of = t.Decimal(precision + 10, scale)
    return Expr(f"sum({text})", of, bound * rows) if fits(bound * rows, of) else None
