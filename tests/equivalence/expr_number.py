"""Numbers: arithmetic, rounding, conversions between number types.

Magnitudes are bounded by construction, so nothing overflows, and divisors go through NULLIF, but for the few that may
fail and have their view suspended.
"""

from __future__ import annotations

import re

from headwater import types as t

from .grammar import Expr, Maker, construct, fits


def _checked(sql: str, of: t.Type, bound: float, *args: Expr, exact: bool = True) -> Expr | None:
    """The expression, unless its values may be too large for its type."""
    if not fits(bound, of):
        return None
    return Expr(sql, of, bound, exact and all(arg.exact for arg in args))


def _sum(m: Maker, a: Expr, b: Expr, of: t.Type) -> Expr | None:
    return _checked(f"({a.sql} {m.rng.choice(['+', '-'])} {b.sql})", of, a.bound + b.bound, a, b)


def _product(a: Expr, b: Expr, of: t.Type) -> Expr | None:
    return _checked(f"({a.sql} * {b.sql})", of, a.bound * b.bound, a, b)


# INT


@construct("int", "int sum", 5)
def int_sum(m: Maker, depth: int) -> Expr | None:
    return _sum(m, m.scalar("int", depth), m.scalar("int", depth), t.INT)


@construct("int", "int product", 3)
def int_product(m: Maker, depth: int) -> Expr | None:
    return _product(m.scalar("int", depth), m.scalar("int", depth), t.INT)


@construct("int", "int sign", 1)
def int_negated(m: Maker, depth: int) -> Expr:
    arg = m.scalar("int", depth)
    return Expr(f"(-{arg.sql})", t.INT, arg.bound)


@construct("int", "abs", 1)
def int_abs(m: Maker, depth: int) -> Expr:
    arg = m.scalar("int", depth)
    return Expr(f"abs({arg.sql})", t.INT, arg.bound)


@construct("int", "remainder", 1)
def int_remainder(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", depth)
    divisor = f"nullif({b.sql}, 0)"
    return Expr(m.rng.choice([f"({a.sql} % {divisor})", f"mod({a.sql}, {divisor})"]), t.INT, min(a.bound, b.bound))


@construct("int", "remainder that may fail", 0.15, duckdb=False)
def int_unguarded(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", 0)
    columns = m.columns("int")
    if len(columns) > 1 and m.chance(0.7):  # rather of two relations: a pair may fail that is never there
        a, b = m.rng.choice(columns), m.rng.choice(columns)
        others = [one for one in columns if one.sql.split(".")[0] != a.sql.split(".")[0]]
        b = m.rng.choice(others) if others else b
    return Expr(f"({a.sql} % {b.sql})", t.INT, min(a.bound, b.bound))


@construct("int", "guarded remainder", 0.3, duckdb=False)
def int_guarded(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", 0)
    return Expr(f"CASE WHEN {b.sql} <> 0 THEN {a.sql} % {b.sql} END", t.INT, min(a.bound, b.bound))


@construct("int", "pmod", 0.5, duckdb=False)
def int_pmod(m: Maker, depth: int) -> Expr:
    a = m.scalar("int", depth)
    return Expr(f"pmod({a.sql}, 3)", t.INT, 3)


@construct("int", "narrower integers widened", 1)
def int_widened(m: Maker, depth: int) -> Expr | None:
    a, b = m.scalar(m.rng.choice(["tinyint", "smallint"]), depth), m.scalar("int", depth)
    return _sum(m, a, b, t.INT)


@construct("int", "boolean to int", 0.7)
def int_of_boolean(m: Maker, depth: int) -> Expr:
    return Expr(f"CAST({m.scalar('boolean', depth).sql} AS INT)", t.INT, 1)


@construct("int", "length", 1.5)
def length(m: Maker, depth: int) -> Expr:
    return Expr(f"length({m.scalar('string', depth).sql})", t.INT, 60)


@construct("int", "instr", 0.7)
def instr(m: Maker, depth: int) -> Expr:
    text = m.scalar("string", depth).sql
    sought = m.constant("string").sql
    return Expr(m.rng.choice([f"instr({text}, {sought})", f"locate({sought}, {text})"]), t.INT, 60)


@construct("int", "date parts", 2)
def date_part(m: Maker, depth: int) -> Expr:
    part = m.rng.choice(["year", "month", "day", "quarter", "dayofyear"])
    return Expr(f"{part}({m.scalar(m.rng.choice(['date', 'timestamp']), depth).sql})", t.INT, 3000)


@construct("int", "day of week", 0.7, duckdb=False)
def day_of_week(m: Maker, depth: int) -> Expr:
    return Expr(f"{m.rng.choice(['dayofweek', 'weekday'])}({m.scalar('date', depth).sql})", t.INT, 7)


@construct("int", "time parts", 1)
def time_part(m: Maker, depth: int) -> Expr:
    return Expr(f"{m.rng.choice(['hour', 'minute', 'second'])}({m.scalar('timestamp', depth).sql})", t.INT, 59)


@construct("int", "extract", 0.7)
def extract(m: Maker, depth: int) -> Expr:
    return Expr(f"extract({m.rng.choice(['YEAR', 'MONTH', 'DAY'])} FROM {m.scalar('date', depth).sql})", t.INT, 3000)


@construct("int", "datediff", 1)
def datediff(m: Maker, depth: int) -> Expr:
    return Expr(f"datediff({m.scalar('date', depth).sql}, {m.scalar('date', depth).sql})", t.INT, 40_000)


# BIGINT


@construct("bigint", "bigint sum", 4)
def bigint_sum(m: Maker, depth: int) -> Expr | None:
    other = m.rng.choice(["bigint", "int"])
    return _sum(m, m.scalar("bigint", depth), m.scalar(other, depth), t.BIGINT)


@construct("bigint", "bigint product", 3)
def bigint_product(m: Maker, depth: int) -> Expr | None:
    other = m.rng.choice(["bigint", "int"])
    return _product(m.scalar("bigint", depth), m.scalar(other, depth), t.BIGINT)


@construct("bigint", "int to bigint", 2)
def bigint_of_int(m: Maker, depth: int) -> Expr:
    arg = m.scalar("int", depth)
    return Expr(f"CAST({arg.sql} AS BIGINT)", t.BIGINT, arg.bound)


@construct("bigint", "bigint literal", 0.7)
def bigint_literal(m: Maker, depth: int) -> Expr:
    return Expr(m.rng.choice(["0L", "2L", "7L"]), t.BIGINT, 7)


@construct("bigint", "div", 1)
def integer_division(m: Maker, depth: int) -> Expr:
    a, b = m.scalar("int", depth), m.scalar("int", depth)
    return Expr(f"({a.sql} div nullif({b.sql}, 0))", t.BIGINT, a.bound)


@construct("bigint", "floor, ceil of decimals", 1)
def floor_decimal(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar("decimal", depth)
    sql = f"CAST({m.rng.choice(['floor', 'ceil'])}({arg.sql}) AS BIGINT)"
    return _checked(sql, t.BIGINT, arg.bound + 1, arg)


@construct("bigint", "bigint remainder", 0.7)
def bigint_remainder(m: Maker, depth: int) -> Expr:
    a = m.scalar("bigint", depth)
    return Expr(f"({a.sql} % nullif({m.scalar('int', depth).sql}, 0))", t.BIGINT, a.bound)


# DECIMAL


def _sum_type(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    scale = max(a.scale, b.scale)
    return t.adjusted_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def _decimal(arg: Expr) -> t.Decimal:
    """The decimal an operand takes part as; Spark takes a literal by its digits, not by its type."""
    if re.fullmatch(r"\(?-?\d\)?", arg.sql):
        return t.Decimal(1, 0)
    found = t.as_decimal(arg.type)
    assert found
    return found


@construct("decimal", "decimal sum", 4)
def decimal_sum(m: Maker, depth: int) -> Expr | None:
    a, b = m.scalar("decimal", depth), m.scalar(m.rng.choice(["decimal", "int"]), depth)
    return _sum(m, a, b, _sum_type(_decimal(a), _decimal(b)))


@construct("decimal", "decimal product", 3)
def decimal_product(m: Maker, depth: int) -> Expr | None:
    a, b = m.scalar("decimal", depth), m.scalar(m.rng.choice(["decimal", "int"]), depth)
    x, y = _decimal(a), _decimal(b)
    return _product(a, b, t.adjusted_decimal(x.precision + y.precision + 1, x.scale + y.scale))


@construct("decimal", "decimal literal", 1)
def decimal_literal(m: Maker, depth: int) -> Expr:
    return Expr(*m.rng.choice([("1.50", t.Decimal(3, 2)), ("0.1", t.Decimal(1, 1)), ("12.25BD", t.Decimal(4, 2))]), 13)


@construct("decimal", "decimal quotient", 1, duckdb=False)
def decimal_quotient(m: Maker, depth: int) -> Expr | None:
    a, b = m.scalar("decimal", depth), m.scalar("decimal", depth)
    x, y = _decimal(a), _decimal(b)
    scale = max(6, x.scale + y.precision + 1)
    of = t.adjusted_decimal(x.precision - x.scale + y.scale + scale, scale)
    # The smallest divisor that is not zero is one unit of its last digit.
    return _checked(f"({a.sql} / nullif({b.sql}, 0))", of, a.bound * 10.0**y.scale, a, b)


@construct("decimal", "round", 1)
def decimal_round(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar("decimal", depth)
    held = _decimal(arg)
    if held.scale < 1:
        return None
    of = t.Decimal(held.precision - held.scale + 2, 1)
    return _checked(f"round({arg.sql}, 1)", of, arg.bound + 1, arg)


@construct("decimal", "int to decimal", 1)
def decimal_of_int(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar("int", depth)
    of = t.Decimal(14, 2)
    return _checked(f"CAST({arg.sql} AS {of})", of, arg.bound, arg)


@construct("decimal", "decimal rounded by a cast", 1)
def decimal_narrowed(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar("decimal", depth)
    of = t.Decimal(15, 1)
    return _checked(f"CAST({arg.sql} AS {of})", of, arg.bound + 1, arg)


@construct("decimal", "decimal sign", 0.7)
def decimal_negated(m: Maker, depth: int) -> Expr:
    arg = m.scalar("decimal", depth)
    return Expr(m.rng.choice([f"(-{arg.sql})", f"abs({arg.sql})"]), arg.type, arg.bound)


# DOUBLE


@construct("double", "double sum", 4)
def double_sum(m: Maker, depth: int) -> Expr | None:
    other = m.rng.choice(["double", "double", "int", "float"])
    return _sum(m, m.scalar("double", depth), m.scalar(other, depth), t.DOUBLE)


@construct("double", "double product", 2)
def double_product(m: Maker, depth: int) -> Expr | None:
    other = m.rng.choice(["double", "int"])
    return _product(m.scalar("double", depth), m.scalar(other, depth), t.DOUBLE)


@construct("double", "double literal", 1)
def double_literal(m: Maker, depth: int) -> Expr:
    return Expr(m.rng.choice(["0.5D", "2D", "1e0", "CAST(0.25 AS DOUBLE)"]), t.DOUBLE, 2)


@construct("double", "int to double", 1)
def double_of_int(m: Maker, depth: int) -> Expr | None:
    arg = m.scalar(m.rng.choice(["int", "bigint"]), depth)
    return _checked(f"CAST({arg.sql} AS DOUBLE)", t.DOUBLE, arg.bound, arg)


@construct("double", "quotient", 2)
def quotient(m: Maker, depth: int) -> Expr:
    kind = m.rng.choice(["int", "bigint", "double"])
    a, b = m.scalar(kind, depth), m.scalar(kind, depth)
    return Expr(f"({a.sql} / nullif({b.sql}, 0))", t.DOUBLE, a.bound * 1e6, exact=False)


@construct("double", "halved", 1)
def halved(m: Maker, depth: int) -> Expr:
    arg = m.scalar("double", depth)
    return Expr(f"({arg.sql} / 2)", t.DOUBLE, arg.bound, arg.exact)


@construct("double", "double sign", 1)
def double_negated(m: Maker, depth: int) -> Expr:
    arg = m.scalar("double", depth)
    return Expr(m.rng.choice([f"(-{arg.sql})", f"abs({arg.sql})"]), t.DOUBLE, arg.bound, arg.exact)
