"""The clock in DuckDB: two variables of the connection that writes, set once an epoch.

DuckDB takes them for constants when it plans, so that a scan skips the row groups in which no row can match (measured:
10 rows of 5,000,000 by a range of `getvariable('now')` take 0.6 ms, as with a literal).
"""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from headwater import types as t
from headwater.algebra.clock import CLOCKS
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import cast, emits, fn, text
from headwater.emit.functions.literals import duckdb_literal


@emits(*CLOCKS)
def _clock(call: Call) -> exp.Expr:
    return cast(fn("getvariable", text(call.function)), "TIMESTAMP")


def set_clock(variable: str, moment: dt.datetime) -> str:
    """The statement that says what a clock reads."""
    assert variable in CLOCKS
    return f"SET VARIABLE {variable} = {duckdb_literal(moment, t.TIMESTAMP).sql('duckdb')}"
