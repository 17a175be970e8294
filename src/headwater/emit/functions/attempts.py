"""Arithmetic that gives NULL where it has no value, in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.attempts import TRIED, operation
from headwater.algebra.scalars import Call
from headwater.emit.functions.build import EMITTERS, case, emits, fn, infix, let, mod, null, number


@emits(*TRIED)
def _attempt(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """The operands are computed outside of TRY: their own errors stay errors."""

    def body(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        plain = operation(call)
        if isinstance(call.type, t.Float | t.Double) and plain.function in ("/", "%"):
            value = infix(exp.Div, a.copy(), b.copy()) if plain.function == "/" else mod(a.copy(), b.copy())
            return case(infix(exp.EQ, b.copy(), number(0)), null(call.type), value)
        return fn("try", EMITTERS[plain.function](plain, a.copy(), b.copy()))

    return let({"a": a, "b": b}, body)
