"""The bounds of part references in DuckDB: parameters of the statement, `$p0`, `$p1`, ...

DuckDB plans a statement with its values, so that a scan skips the row groups that have no row of the part.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.algebra.scalars import Call, Literal
from headwater.emit.functions.build import cast, emits, fn, wrap


@emits("bound")
def _bound(call: Call, place: exp.Expr) -> exp.Expr:
    number = call.args[0]
    assert isinstance(number, Literal)
    # What is known of it is its type alone, so the planner must be told.
    return cast(exp.Parameter(this=exp.Var(this=f"p{number.value}")), "BIGINT")


@emits("part_timestamp")
def _part_timestamp(call: Call, part: exp.Expr, length: exp.Expr) -> exp.Expr:
    seconds = exp.Mul(this=wrap(part), expression=cast(length, "BIGINT"))
    return fn("MAKE_TIMESTAMP", exp.Mul(this=exp.paren(seconds), expression=exp.Literal.number(1_000_000)))
