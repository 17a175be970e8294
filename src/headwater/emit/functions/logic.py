"""Comparisons, three-valued logic and CASE in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.functions.casts import widens
from headwater.algebra.scalars import Call, Cast, Scalar
from headwater.emit.functions.arithmetic import relaxed
from headwater.emit.functions.build import (
    both,
    case,
    cast,
    duckdb_type,
    either,
    emits,
    fn,
    infix,
    is_not_null,
    is_null,
    null,
    number,
    wrap,
)

_KINDS: dict[str, type[exp.Expr]] = {
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "<=>": exp.NullSafeEQ,
    "equal_null": exp.NullSafeEQ,
}


def _without_widening(arg: Scalar, emitted: exp.Expr) -> exp.Expr:
    """A decimal is compared as it stands: DuckDB widens both sides itself, and columns stay columns."""
    if isinstance(arg, Cast) and isinstance(arg.arg.type, t.Decimal) and widens(arg.arg.type, arg.type):
        assert isinstance(emitted, exp.Cast)
        inner = emitted.this
        assert isinstance(inner, exp.Expr)
        return inner
    return emitted


@emits(*_KINDS)
def _compare(call: Call, *args: exp.Expr) -> exp.Expr:
    sides = relaxed(call, args)
    if isinstance(call.args[0].type, t.Decimal):
        sides = [_without_widening(arg, side) for arg, side in zip(call.args, sides, strict=True)]
    return infix(_KINDS[call.function], *sides)


@emits("in")
def _is_in(call: Call, *args: exp.Expr) -> exp.Expr:
    value, *items = relaxed(call, args)
    return exp.In(this=wrap(value), expressions=items)


@emits("and")
def _conjunction(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    # DuckDB orders the sides of AND as it likes; only CASE keeps an error behind its guard.
    if may_raise(call.args[1]):
        return case(exp.Not(this=wrap(a)), exp.false(), both(a.copy(), b))
    return both(a, b)


@emits("or")
def _disjunction(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    if may_raise(call.args[1]):
        return case(a, exp.true(), either(a.copy(), b))
    return either(a, b)


@emits("not")
def _negation(call: Call, a: exp.Expr) -> exp.Expr:
    return exp.Not(this=wrap(a))


@emits("is null", "isnull")
def _null_test(call: Call, a: exp.Expr) -> exp.Expr:
    return is_null(a)


@emits("is not null", "isnotnull")
def _not_null_test(call: Call, a: exp.Expr) -> exp.Expr:
    return is_not_null(a)


def _truth(call: Call, a: exp.Expr) -> exp.Expr:
    words = call.function.split()
    test = exp.Is(this=wrap(a), expression=exp.Boolean(this=words[-1] == "true"))
    return exp.Not(this=test) if "not" in words else test


emits("is true", "is not true", "is false", "is not false")(_truth)


@emits("case", "if")
def _choose(call: Call, *args: exp.Expr) -> exp.Expr:
    return case(*args)


@emits("coalesce", "nvl", "ifnull")
def _coalesce(call: Call, *args: exp.Expr) -> exp.Expr:
    return args[0] if len(args) == 1 else exp.Coalesce(this=args[0], expressions=list(args[1:]))


@emits("nvl2")
def _nvl2(call: Call, a: exp.Expr, then: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    return case(is_not_null(a), then, otherwise)


@emits("nullif")
def _nullif(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    # DuckDB's NULLIF would give the type both meet at.
    return (
        case(infix(exp.EQ, a, b), null(call.type), a.copy()) if call.args[1].type != call.type else fn("nullif", a, b)
    )


@emits("zeroifnull")
def _zeroifnull(call: Call, a: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=a, expressions=[cast(number(0), duckdb_type(call.type))])


@emits("nullifzero")
def _nullifzero(call: Call, a: exp.Expr) -> exp.Expr:
    return fn("nullif", a, cast(number(0), duckdb_type(call.type)))
