"""FROM clauses: relations, views, derived tables, and the ways they are joined."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .grammar import MAX_ROWS, Expr, Maker, Query, construct, kind_of
from .windows import perhaps_window

MAX_LEAVES = 6  #: relations one view reads, counted per occurrence
_JOINABLE = ("int", "bigint", "string", "decimal", "date", "double", "boolean", "timestamp", "smallint", "tinyint")
_PARTNERS = 4.0  #: how many times fewer pairs an equality leaves; only a guess, to keep results small


@dataclass(frozen=True)
class From:
    """A FROM clause: its text, what must stand in WHERE because of it, its columns, and how many rows at most."""

    sql: str
    columns: tuple[Expr, ...]
    rows: float
    where: str | None = None


def aliased(m: Maker, query: Query, text: str, bare: bool = False) -> From:
    """A query or relation under a new alias; with `bare`, its columns are named without the alias before them."""
    alias = m.alias("r")
    word = m.rng.choice([" AS ", " "])
    prefix = "" if bare else f"{alias}."
    columns = tuple(replace(column, sql=f"{prefix}{_spelt(m, column.name or '')}") for column in query.columns)
    return From(f"{text}{word}{alias}", columns, query.rows)


def _spelt(m: Maker, name: str) -> str:
    """A column's name as a user may write it."""
    if m.chance(0.03):
        m.note("column name in capitals")
        return name.upper()
    if m.chance(0.03):
        m.note("column name in backticks")
        return f"`{name}`"
    return name


# Sources: one thing to read


@construct("source", "base relation", 8)
def base_relation(m: Maker, bare: bool) -> From | None:
    return _named(m, [name for name in m.relations if name in m.bases], bare)


@construct("source", "view over view", 6)
def view_over_view(m: Maker, bare: bool) -> From | None:
    return _named(m, [name for name in m.relations if name.startswith("v")], bare)


@construct("source", "CTE read", 12)
def cte_read(m: Maker, bare: bool) -> From | None:
    return _named(m, [name for name in m.relations if name.startswith("c")], bare)


@construct("source", "derived table", 2.5)
def derived_table(m: Maker, bare: bool) -> From | None:
    if m.leaves >= MAX_LEAVES - 2 or m.nesting >= 2:
        return None
    inner = m.nested()
    return aliased(m, inner, f"({inner.sql})", bare) if inner else None


def _named(m: Maker, names: list[str], bare: bool) -> From | None:
    if not names:
        return None
    name = m.rng.choice(names)
    m.leaves += 1
    m.reads.add(name)
    text = f"(SELECT * FROM {name} WHERE {m.filters[name]})" if name in m.filters else name
    return aliased(m, m.relations[name], text, bare)


def source(m: Maker, bare: bool = False) -> From:
    made: From = m.make("source", bare)
    return made


# FROM: one source or several


@construct("from", "one source", 10)
def one_source(m: Maker) -> From:
    return source(m, bare=m.chance(0.4))


def _pairs(left: From, right: From) -> list[tuple[Expr, Expr]]:
    """Columns that can be compared for equality, of equal kind."""
    return [
        (a, b)
        for a in left.columns
        for b in right.columns
        if kind_of(a.type) == kind_of(b.type) and kind_of(a.type) in _JOINABLE
    ]


def _joined(left: From, right: From, sql: str, shrink: float, where: str | None = None) -> From | None:
    rows = left.rows * right.rows / shrink
    if rows > MAX_ROWS:
        return None
    conditions = " AND ".join(part for part in (left.where, right.where, where) if part)
    return From(sql, left.columns + right.columns, max(1.0, left.rows * right.rows), conditions or None)


def _equality(m: Maker, left: From, right: From, operator: str = "=") -> str | None:
    pairs = _pairs(left, right)
    if not pairs:
        return None
    chosen = m.rng.sample(pairs, min(len(pairs), m.rng.choice([1, 1, 1, 2])))
    sides = ((a, b) if m.chance(0.7) else (b, a) for a, b in chosen)
    return " AND ".join(f"{a.sql} {operator} {b.sql}" for a, b in sides)


def _two(m: Maker) -> tuple[From, From] | None:
    if m.leaves >= MAX_LEAVES:
        return None
    return source(m), source(m)


@construct("from", "inner join on equality", 8)
def equality_join(m: Maker) -> From | None:
    both = _two(m)
    condition = both and _equality(m, *both)
    if not both or not condition:
        return None
    left, right = both
    extra = ""
    if m.chance(0.25):
        m.note("join with a further condition")
        with m.over(left.columns + right.columns):
            extra = f" AND {m.scalar('boolean', 1).sql}"
    if window := perhaps_window(m, left.columns + right.columns, 0.08):
        m.note("window in a join's condition")
        extra += f" AND {window}"
    word = m.rng.choice(["JOIN", "INNER JOIN"])
    return _joined(left, right, f"{left.sql} {word} {right.sql} ON {condition}{extra}", _PARTNERS)


@construct("from", "self join", 4)
def self_join(m: Maker) -> From | None:
    names = list(m.relations)
    if m.leaves >= MAX_LEAVES or not names:
        return None
    name = m.rng.choice(names)
    left, right = _named(m, [name], False), _named(m, [name], False)
    assert left and right
    condition = _equality(m, left, right)
    if condition is None:
        return None
    return _joined(left, right, f"{left.sql} JOIN {right.sql} ON {condition}", _PARTNERS)


@construct("from", "comma join", 3)
def comma_join(m: Maker) -> From | None:
    both = _two(m)
    condition = both and _equality(m, *both)
    if not both or not condition:
        return None
    return _joined(*both, f"{both[0].sql}, {both[1].sql}", _PARTNERS, condition)


@construct("from", "cross join", 1.5)
def cross_join(m: Maker) -> From | None:
    both = _two(m)
    return _joined(*both, f"{both[0].sql} CROSS JOIN {both[1].sql}", 1.0) if both else None


@construct("from", "join on any condition", 2)
def theta_join(m: Maker) -> From | None:
    both = _two(m)
    if not both:
        return None
    left, right = both
    with m.over(left.columns + right.columns):
        condition = m.scalar("boolean", 2).sql
    return _joined(left, right, f"{left.sql} JOIN {right.sql} ON {condition}", 2.0)


@construct("from", "join on null-safe equality", 1)
def null_safe_join(m: Maker) -> From | None:
    both = _two(m)
    condition = both and _equality(m, *both, operator="<=>")
    if not both or not condition:
        return None
    return _joined(*both, f"{both[0].sql} JOIN {both[1].sql} ON {condition}", _PARTNERS)


@construct("from", "join on expressions", 1.5)
def expression_join(m: Maker) -> From | None:
    both = _two(m)
    if not both:
        return None
    left, right = both
    kind = m.rng.choice(["int", "string", "date"])
    with m.over(left.columns):
        a = m.scalar(kind, 1)
    with m.over(right.columns):
        b = m.scalar(kind, 1)
    return _joined(left, right, f"{left.sql} JOIN {right.sql} ON {a.sql} = {b.sql}", 2.0)


@construct("from", "join using", 1.5)
def using_join(m: Maker) -> From | None:
    both = _two(m)
    if not both:
        return None
    left, right = both
    shared = [a.name for a, b in _pairs(left, right) if a.name and a.name == b.name and a.type == b.type]
    if not shared:
        return None
    name = m.rng.choice(shared)
    made = _joined(left, right, f"{left.sql} JOIN {right.sql} USING ({name})", _PARTNERS)
    if made is None:
        return None
    # The shared column may also be read without an alias, and only so counts once in SELECT *.
    merged = tuple(replace(c, sql=name) if c.name == name and c in left.columns else c for c in made.columns)
    return replace(made, columns=merged)


@construct("from", "three-way join", 4)
def three_way_join(m: Maker) -> From | None:
    both = _two(m)
    condition = both and _equality(m, *both)
    if not both or not condition or m.leaves >= MAX_LEAVES:
        return None
    left, right = both
    third = source(m)
    two = _joined(left, right, f"{left.sql} JOIN {right.sql} ON {condition}", _PARTNERS)
    other = two and _equality(m, two, third)
    if not two or not other:
        return None
    return _joined(two, third, f"{two.sql} JOIN {third.sql} ON {other}", _PARTNERS**2)
