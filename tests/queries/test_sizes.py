"""What is emitted grows with a query, not exponentially with one of its parts."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.nodes import Filter, Scan
from headwater.algebra.scalars import Column, Literal, call, conjunction
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql

R = Scan("r", "r", (t.Field("a", t.INT), t.Field("b", t.INT)))


def _text(conditions: int) -> str:
    """A query of conditions that may fail, each of which is asked only where those before it hold."""
    quotient = call("/", Column("r.a", t.INT), Column("r.b", t.INT))
    parts = [call(">", quotient, Literal(float(n), t.DOUBLE)) for n in range(conditions)]
    return sql(Emitter().rows(Filter(R, conjunction(list(parts)))))


def test_conditions_that_may_fail_are_written_once_each() -> None:
    one, two, twenty = (len(_text(n)) for n in (1, 2, 20))
    assert twenty < one + 25 * (two - one)
