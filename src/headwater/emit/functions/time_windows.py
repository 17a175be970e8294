"""Windows of time in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import from_microseconds
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import emits, fn, sub
from headwater.emit.functions.intervals import span
from headwater.emit.functions.literals import duckdb_literal, known


def _number(call: Call, position: int) -> int:
    value = known(call.args[position])
    assert isinstance(value, int)
    return value


def _begun(at: exp.Expr, slide: int, start: int) -> exp.Expr:
    """The last moment until then at which a window begins; before 1970, too, TIME_BUCKET goes down."""
    return fn("time_bucket", span(slide), at, duckdb_literal(from_microseconds(start), t.TIMESTAMP))


@emits("window_start")
def _window_start(call: Call, at: exp.Expr, *_: exp.Expr) -> exp.Expr:
    return _begun(at, _number(call, 1), _number(call, 2))


@emits("window_starts")
def _window_starts(call: Call, at: exp.Expr, *_: exp.Expr) -> exp.Expr:
    length, slide, start = (_number(call, position) for position in (1, 2, 3))
    first = sub(at.copy(), span(length - slide)) if length > slide else at.copy()
    return fn("generate_series", _begun(first, slide, start), _begun(at, slide, start), span(slide))
