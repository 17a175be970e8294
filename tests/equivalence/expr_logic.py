"""Booleans, and the expressions that fit every kind: CASE, COALESCE and their relatives."""

from __future__ import annotations

from headwater import types as t

from .grammar import Expr, Maker, construct, fits, kind_of
from .values import domain, literal

_COMPARED = ("int", "bigint", "decimal", "double", "string", "date", "timestamp", "boolean")
_COMPARED_WEIGHTS = (6, 3, 3, 3, 4, 2, 2, 1)


def _boolean(sql: str) -> Expr:
    return Expr(sql, t.BOOLEAN)


def compared_kind(m: Maker) -> str:
    """A kind to compare, rather one that a column in scope has."""
    kinds = [kind_of(column.type) for column in m.scope]
    usable = [kind for kind in kinds if kind in _COMPARED]
    if usable and m.chance(0.8):
        return m.rng.choice(usable)
    return m.rng.choices(_COMPARED, _COMPARED_WEIGHTS)[0]


@construct("boolean", "comparison", 8)
def comparison(m: Maker, depth: int) -> Expr:
    kind = compared_kind(m)
    operator = m.rng.choice(["=", "<", ">", "<=", ">=", "<>", "!=", "=="])
    return _boolean(f"({m.scalar(kind, depth).sql} {operator} {m.scalar(kind, depth).sql})")


@construct("boolean", "comparison across number types", 2)
def mixed_comparison(m: Maker, depth: int) -> Expr:
    left, right = m.rng.sample(["int", "bigint", "decimal", "double", "smallint"], 2)
    operator = m.rng.choice(["=", "<", ">="])
    return _boolean(f"({m.scalar(left, depth).sql} {operator} {m.scalar(right, depth).sql})")


@construct("boolean", "null-safe equality", 1)
def null_safe(m: Maker, depth: int) -> Expr:
    kind = compared_kind(m)
    return _boolean(f"({m.scalar(kind, depth).sql} <=> {m.scalar(kind, depth).sql})")


@construct("boolean", "and", 3)
def conjunction(m: Maker, depth: int) -> Expr:
    return _boolean(f"({m.scalar('boolean', depth).sql} AND {m.scalar('boolean', depth).sql})")


@construct("boolean", "and that guards", 0.3, duckdb=False)
def guarded(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", 0)
    operator = m.rng.choice(["=", ">=", "<>"])
    return _boolean(f"({b.sql} <> 0 AND {a.sql} % {b.sql} {operator} {m.scalar('int', 0).sql})")


@construct("boolean", "or", 3)
def disjunction(m: Maker, depth: int) -> Expr:
    return _boolean(f"({m.scalar('boolean', depth).sql} OR {m.scalar('boolean', depth).sql})")


@construct("boolean", "not", 1.5)
def negation(m: Maker, depth: int) -> Expr:
    return _boolean(f"(NOT {m.scalar('boolean', depth).sql})")


@construct("boolean", "is null", 2)
def is_null(m: Maker, depth: int) -> Expr:
    arg = m.rng.choice(m.scope) if m.scope and m.chance(0.7) else m.scalar(compared_kind(m), depth)
    return _boolean(f"({arg.sql} IS {m.rng.choice(['', 'NOT '])}NULL)")


@construct("boolean", "between", 1)
def between(m: Maker, depth: int) -> Expr:
    kind = compared_kind(m)
    word = m.rng.choice(["", "NOT "])
    arg, low, high = (m.scalar(kind, depth).sql for _ in range(3))
    return _boolean(f"({arg} {word}BETWEEN {low} AND {high})")


@construct("boolean", "in list", 1.5)
def in_list(m: Maker, depth: int) -> Expr | None:
    columns = [c for c in m.scope if kind_of(c.type) in ("int", "string", "date", "bigint")]
    if not columns:
        return None
    column = m.rng.choice(columns)
    values = [literal(v, column.type) for v in m.rng.sample(domain(column.type), 2)]
    if m.chance(0.2):
        values.append("NULL")
    return _boolean(f"({column.sql} {m.rng.choice(['', 'NOT '])}IN ({', '.join(values)}))")


@construct("boolean", "is true, is false", 0.7)
def is_truth(m: Maker, depth: int) -> Expr:
    word = m.rng.choice(["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"])
    return _boolean(f"({m.scalar('boolean', depth).sql} IS {word})")


# Constructs below fit every kind.


def _meet(kind: str, *args: Expr) -> t.Type | None:
    """The type several expressions of one kind meet at, if it is not too wide."""
    met = args[0].type
    if len({arg.type for arg in args}) > 1 and any(
        isinstance(a.type, t.Decimal) and a.type.precision > 18 for a in args
    ):
        return None  # a SUM of decimals: in DuckDB it has all 38 digits, and then the meeting of two scales has too few
    for arg in args[1:]:
        common = t.common_type(met, arg.type)
        if common is None:
            return None
        met = common
    return met if fits(max(arg.bound for arg in args), met) else None


def _joined(sql: str, kind: str, *args: Expr) -> Expr | None:
    met = _meet(kind, *args)
    if met is None:
        return None
    return Expr(sql, met, max(arg.bound for arg in args), all(arg.exact for arg in args))


@construct("any", "case when", 3)
def searched_case(m: Maker, kind: str, depth: int) -> Expr | None:
    arms = [(m.scalar("boolean", depth), m.scalar(kind, depth)) for _ in range(m.rng.choice([1, 1, 2]))]
    values = [value for _, value in arms]
    text = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in arms)
    if m.chance(0.7):
        values.append(m.scalar(kind, depth))
        text += f" ELSE {values[-1].sql}"
    return _joined(f"CASE {text} END", kind, *values)


@construct("any", "simple case", 1)
def simple_case(m: Maker, kind: str, depth: int) -> Expr | None:
    subject = m.rng.choice(["int", "string", "date"])
    value, other = m.scalar(kind, depth), m.scalar(kind, depth)
    tested, against = m.scalar(subject, depth), m.constant(subject)
    return _joined(f"CASE {tested.sql} WHEN {against.sql} THEN {value.sql} ELSE {other.sql} END", kind, value, other)


@construct("any", "if", 1)
def if_function(m: Maker, kind: str, depth: int) -> Expr | None:
    value, other = m.scalar(kind, depth), m.scalar(kind, depth)
    return _joined(f"if({m.scalar('boolean', depth).sql}, {value.sql}, {other.sql})", kind, value, other)


@construct("any", "coalesce", 3)
def coalesce(m: Maker, kind: str, depth: int) -> Expr | None:
    args = [m.scalar(kind, depth) for _ in range(m.rng.choice([2, 2, 3]))]
    return _joined(f"coalesce({', '.join(arg.sql for arg in args)})", kind, *args)


@construct("any", "nvl", 0.7)
def nvl(m: Maker, kind: str, depth: int) -> Expr | None:
    a, b = m.scalar(kind, depth), m.scalar(kind, depth)
    return _joined(f"{m.rng.choice(['nvl', 'ifnull'])}({a.sql}, {b.sql})", kind, a, b)


@construct("any", "nvl2", 0.5)
def nvl2(m: Maker, kind: str, depth: int) -> Expr | None:
    a, b = m.scalar(kind, depth), m.scalar(kind, depth)
    return _joined(f"nvl2({m.scalar(compared_kind(m), depth).sql}, {a.sql}, {b.sql})", kind, a, b)


@construct("any", "nullif", 1)
def nullif(m: Maker, kind: str, depth: int) -> Expr | None:
    if kind not in _COMPARED:
        return None
    a, b = m.scalar(kind, depth), m.scalar(kind, depth)
    # The result has the first argument's type; decimals of two types would have to meet first.
    return Expr(f"nullif({a.sql}, {b.sql})", a.type, a.bound, a.exact) if a.type == b.type else None


@construct("any", "greatest, least", 1)
def extreme(m: Maker, kind: str, depth: int) -> Expr | None:
    if kind not in _COMPARED:
        return None
    args = [m.scalar(kind, depth) for _ in range(m.rng.choice([2, 3]))]
    return _joined(f"{m.rng.choice(['greatest', 'least'])}({', '.join(arg.sql for arg in args)})", kind, *args)
