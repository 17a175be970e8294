"""Picks and window functions as DuckDB's aggregates."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.folds import Frame, Pick, Sorting, WindowCall
from headwater.algebra.functions.picks import several_rows
from headwater.algebra.nodes import total_type
from headwater.algebra.scalars import Literal, Scalar
from headwater.algebra.windows import UNFRAMED, is_total
from headwater.emit.functions.build import case, cast, duckdb_type, failure, fn, number, text
from headwater.emit.functions.literals import duckdb_literal
from headwater.emit.functions.orders import sort_keys
from headwater.emit.layout import column

Emit = Callable[[Scalar], exp.Expr]


def _not_null(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.null()))


def _where(aggregate: exp.Expr, condition: exp.Expr) -> exp.Expr:
    return exp.Filter(this=aggregate, expression=exp.Where(this=condition))


def _sorted(value: exp.Expr, descending: bool = False, nulls_first: bool = True) -> exp.Ordered:
    return exp.Ordered(this=value, desc=descending, nulls_first=nulls_first)


def _ordered(name: str, value: exp.Expr, *order: exp.Ordered, distinct: bool = False) -> exp.Expr:
    inner: exp.Expr = exp.Distinct(expressions=[value]) if distinct else value
    return fn(name, exp.Order(this=inner, expressions=list(order)) if order else inner)


def _finite(name: str, x: exp.Expr) -> exp.Expr:
    """A moment; DuckDB raises where a value is infinite or not a number."""
    strange = fn("bool_or", exp.Not(this=fn("isfinite", x.copy())))
    known = _where(fn(name, x.copy()), fn("isfinite", x))
    return case(fn("coalesce", strange, exp.false()), cast(text("NaN"), "DOUBLE"), known)


def pick_sql(pick: Pick, emit: Emit) -> exp.Expr:
    """The aggregate that computes a pick from the rows of a group, each as often as it is there."""
    args = [emit(arg) for arg in pick.args]
    x = args[0]
    constant = isinstance(pick.args[0], Literal)  # DuckDB refuses to sort by a constant
    match pick.function:
        case "min" | "max":
            return fn(pick.function, x)
        case "first":
            keys = [_key(one, emit) for one in pick.order if not isinstance(one.scalar, Literal)]
            return _ordered("first", x, *keys, *([] if constant else [_sorted(x.copy())]))
        case "count_distinct":
            known = exp.and_(*(_not_null(arg.copy()) for arg in args))
            whole = x if len(args) == 1 else fn("row", *args)
            return _where(exp.Count(this=exp.Distinct(expressions=[whole])), known)
        case "sum_distinct":
            into = duckdb_type(total_type(pick.args[0].type))
            total = exp.Sum(this=exp.Distinct(expressions=[cast(x, into)]))
            return fn("coalesce", cast(total, into.copy()), cast(number(0), into.copy()))
        case "sum_distinct_double":
            return fn("coalesce", exp.Sum(this=exp.Distinct(expressions=[x])), cast(number(0), "DOUBLE"))
        case "collect_list" | "collect_set":
            unique = pick.function == "collect_set"
            order = [] if constant else [_sorted(one) for one in sort_keys(pick.args[0].type, x.copy())]
            found = _where(_ordered("list", x, *order, distinct=unique), _not_null(x.copy()))
            return fn("coalesce", found, cast(exp.Array(expressions=[]), duckdb_type(pick.type)))
        case "percentile":
            share = pick.args[1]
            assert isinstance(share, Literal)
            return fn("quantile_cont", x, duckdb_literal(share.value, share.type))  # it has to be a constant
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _finite(pick.function, x)
        case "single":
            error = several_rows()
            several = exp.GT(this=exp.Count(this=exp.Star()), expression=number(1))
            return case(several, cast(failure(error.code, error.message), duckdb_type(pick.type)), fn("any_value", x))
    raise AssertionError(pick.function)


def window_sql(call: WindowCall, keys: list[exp.Expr], emit: Emit, names: tuple[str, ...]) -> exp.Expr:
    """A window function over a partition; `names` are all columns, which break ties, and which copy of a row it is."""
    order = [_key(one, emit) for one in call.order if not isinstance(one.scalar, Literal)]
    if is_total(call):
        order += [_sorted(column(text)) for text in names]
    spec = None if call.function in UNFRAMED else _frame(call.frame, bool(order))
    window = exp.Window(
        this=_function(call, emit),
        partition_by=[key.copy() for key in keys],
        order=exp.Order(expressions=order) if order else None,
        spec=spec,
    )
    into = duckdb_type(call.type)
    if call.function == "total":
        return fn("coalesce", cast(window, into), cast(number(0), into.copy()))
    return cast(window, into)


def _key(one: Sorting, emit: Emit) -> exp.Ordered:
    return _sorted(emit(one.scalar), one.descending, one.nulls_first)


def _function(call: WindowCall, emit: Emit) -> exp.Expr:
    args = [emit(arg) for arg in call.args]
    match call.function:
        case "count":
            return exp.Count(this=exp.Star())
        case "total":
            return exp.Sum(this=_term(call.args[0].type, args[0], call.type))
    return fn(call.function, *args)


def _term(kind: t.Type, value: exp.Expr, into: t.Type) -> exp.Expr:
    if isinstance(kind, t.Boolean):
        return exp.Case(ifs=[exp.If(this=value, true=number(1))], default=number(0))
    return cast(value, duckdb_type(into))


def _frame(frame: Frame, ordered: bool) -> exp.WindowSpec | None:
    if (frame.low, frame.high) == (None, None):
        if not ordered:
            return None
        frame = Frame("rows", None, None)
    start, start_side = _end(frame.low, "PRECEDING")
    end, end_side = _end(frame.high, "FOLLOWING")
    return exp.WindowSpec(kind=frame.unit.upper(), start=start, start_side=start_side, end=end, end_side=end_side)


def _end(offset: int | None, unbounded: str) -> tuple[exp.Expr | str, str | None]:
    if offset is None:
        return "UNBOUNDED", unbounded
    if offset == 0:
        return "CURRENT ROW", None
    return number(abs(offset)), "PRECEDING" if offset < 0 else "FOLLOWING"
