"""Function calls by name: scalar functions, aggregates, conversions, and clear refusals of the rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from headwater import types as t
from headwater.algebra import scalars
from headwater.algebra.folds import Sorting
from headwater.algebra.functions import REGISTRY
from headwater.algebra.scalars import Literal, Scalar
from headwater.sql.aggregate_call import AggregateCall
from headwater.sql.function_names import (
    AGGREGATES,
    CLOCK_FUNCTIONS,
    GENERATORS,
    NOT_CALLABLE,
    NOT_DETERMINISTIC,
    OPERATORS,
    OTHER_AGGREGATES,
    OTHER_FUNCTIONS,
    TIME_WINDOWS,
    TRIED_CASTS,
    TYPE_NAMES,
    UNIT_FIRST,
    WINDOW_FUNCTIONS,
)
from headwater.sql.lambdas import bind_lambda, next_lambda
from headwater.sql.place import did_you_mean
from headwater.sql.types import parse_type

if TYPE_CHECKING:
    from headwater.sql.bind import Binder


#: The type of a window of time.
WINDOW = t.Struct((("start", t.TIMESTAMP), ("end", t.TIMESTAMP)))


def function_name(node: exp.Anonymous) -> str:
    """The name a call is made by, in lower case."""
    return (node.this if isinstance(node.this, str) else node.this.name).lower()


def callable_names() -> list[str]:
    """Every name a user can call."""
    scalar = [name for name in REGISTRY if _is_callable(name)]
    return sorted({*scalar, *AGGREGATES, *CLOCK_FUNCTIONS, *TYPE_NAMES, *TIME_WINDOWS, "window_time"})


def _is_callable(name: str) -> bool:
    return name in REGISTRY and not REGISTRY[name].internal and name.isidentifier() and name not in NOT_CALLABLE


def bind_call(binder: Binder, node: exp.Anonymous) -> Scalar:
    """The scalar a call means."""
    binder.place.only(node, ("this", "expressions"), "HW209")
    name = function_name(node)
    if name in AGGREGATES:
        return _aggregate(binder, node, _Around(node))
    _refuse(binder, node, name)
    if name == "struct":
        return _struct(binder, node)
    if name in CLOCK_FUNCTIONS and not (node.expressions and name == "unix_timestamp"):
        return _clock(binder, node, name)
    args: list[Scalar] = []
    for position, arg in enumerate(node.expressions):
        if isinstance(arg, exp.Lambda) and not _is_callable(name):
            raise _unknown(binder, node, name)
        wanted = next_lambda(binder, name, node, tuple(args))
        if wanted is not None:
            args.append(bind_lambda(binder, name, arg, wanted))
        else:
            args.append(_argument(binder, name, arg, position, node))
    if name in TYPE_NAMES and name not in REGISTRY:
        if len(args) != 1:
            raise binder.place.mistake("HW122", f"{name.upper()}: takes 1 argument, not {len(args)}", node)
        return binder.convert(args[0], parse_type(name), node)
    if name in TRIED_CASTS and len(args) == 1:
        return binder.convert(args[0], TRIED_CASTS[name], node, safe=True)
    if name == "window_time":
        return _window_time(binder, node, args)
    if name == "decode" and len(args) > 2:
        return _decoded(binder, node, args)
    if name in UNIT_FIRST and len(args) == 3:
        name = UNIT_FIRST[name]
    if name == "extract" and name not in REGISTRY and "date_part" in REGISTRY:
        name = "date_part"
    if not _is_callable(name):
        raise _unknown(binder, node, name)
    return binder.call(OPERATORS.get(name, name), node, *args, shown=name.upper())


def _clock(binder: Binder, node: exp.Anonymous, name: str) -> Scalar:
    """A function of the clock. TIMESTAMP has no zone, and the clock is in UTC."""
    if node.expressions:
        raise binder.place.mistake("HW122", f"{name.upper()}: takes 0 arguments, not {len(node.expressions)}", node)
    moment = binder.place.clock(node)
    match CLOCK_FUNCTIONS[name]:
        case "date":
            return binder.convert(moment, t.DATE, node)
        case "seconds":
            return binder.call("unix_seconds", node, moment)
        case "week":  # 5 January 1970 was a Monday
            day = binder.call("unix_date", node, binder.convert(moment, t.DATE, node))
            return binder.call("div", node, binder.call("-", node, day, Literal(4, t.INT)), Literal(7, t.INT))
    return moment


def _struct(binder: Binder, node: exp.Anonymous) -> Scalar:
    """struct(a, b AS c): a named_struct with the names of columns and aliases, and col1, col2, ... for the others."""
    args: list[Scalar] = []
    for place, arg in enumerate(node.expressions, 1):
        named = isinstance(arg, exp.Alias | exp.Column | exp.Dot)
        name = arg.alias_or_name if isinstance(arg, exp.Alias | exp.Column) else arg.expression.name if named else ""
        args += [Literal(name or f"col{place}", t.STRING), binder.bind(arg.this if isinstance(arg, exp.Alias) else arg)]
    return binder.call("named_struct", node, *args, shown="STRUCT")


def _window_time(binder: Binder, node: exp.Anonymous, args: list[Scalar]) -> Scalar:
    if [arg.type for arg in args] != [WINDOW]:
        given = ", ".join(str(arg.type) for arg in args)
        raise binder.place.mistake("HW122", f"WINDOW_TIME: takes a window, not ({given})", node)
    return window_time(args[0])


def window_time(window: Scalar) -> Scalar:
    """The time that a window counts as: the last microsecond before its end."""
    end = scalars.call("field", window, Literal("end", t.STRING))
    return scalars.call("-", end, Literal(1, t.DAY_TIME_INTERVAL))


def _decoded(binder: Binder, node: exp.Anonymous, args: list[Scalar]) -> Scalar:
    """decode(x, 1, 'a', 2, 'b', 'other'): CASE, in which NULL equals NULL."""
    subject, rest = args[0], args[1:]
    parts: list[Scalar] = []
    while len(rest) > 1:
        parts += [binder.call("<=>", node, subject, rest[0], shown="DECODE"), rest[1]]
        rest = rest[2:]
    return binder.call("case", node, *parts, rest[0] if rest else Literal(None, t.NULL), shown="DECODE")


def _argument(binder: Binder, name: str, arg: exp.Expr, position: int, call: exp.Anonymous) -> Scalar:
    unit = name in UNIT_FIRST and position == 0 and len(call.expressions) == 3
    if unit and isinstance(arg, exp.Column) and not arg.table:
        return Literal(arg.name.upper(), t.STRING)
    if isinstance(arg, exp.Alias):
        raise binder.place.mistake("HW122", f"{name.upper()}: arguments have no names", arg)
    return binder.bind(arg)


def bind_filtered(binder: Binder, node: exp.Expr) -> Scalar:
    """An aggregate with FILTER, IGNORE NULLS or WITHIN GROUP behind it."""
    around = _Around(node)
    call = node
    while not isinstance(call, exp.Anonymous):
        if isinstance(call, exp.Filter) and around.where is None:
            around.where = call.expression.this
        elif isinstance(call, exp.WithinGroup) and not around.order:
            around.order = call.expression.expressions
        elif isinstance(call, exp.IgnoreNulls):
            around.ignores_nulls = True
        else:
            raise binder.place.unsupported("HW203", f"{binder.place.text(node)} is not supported", node)
        call = call.this
    name = function_name(call)
    if name not in AGGREGATES:
        if name in OTHER_AGGREGATES:
            raise binder.place.unsupported("HW203", f"aggregate {name.upper()} is not supported yet", node)
        raise binder.place.mistake("HW123", f"{name.upper()} is not an aggregate", node)
    if around.order and AGGREGATES[name] == "percentile_cont":
        key = around.order[0]
        if key.args.get("desc") or len(around.order) != 1:
            raise binder.place.unsupported("HW203", "WITHIN GROUP takes one key, ascending", node)
        call = exp.Anonymous(this="percentile", expressions=[key.this.copy(), *call.expressions])
        around.order = []
    return _aggregate(binder, call, around)


@dataclass
class _Around:
    """What stands around the call of an aggregate."""

    whole: exp.Expr
    where: exp.Expr | None = None
    order: list[exp.Expr] = field(default_factory=list)
    ignores_nulls: bool = False


def _aggregate(binder: Binder, node: exp.Anonymous, around: _Around) -> Scalar:
    place, name, shown, whole = binder.place, AGGREGATES[function_name(node)], function_name(node).upper(), around.whole
    taken = binder.aggregates
    if taken is None:
        raise place.mistake(
            "HW123",
            f"{shown} cannot stand in {binder.clause}",
            whole,
            "compute it in a derived table or a view, or use HAVING",
        )
    args = node.expressions
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        place.only(args[0], ("expressions",), "HW203")
        args = args[0].expressions
    if args and isinstance(args[-1], exp.Order) and not around.order and not distinct:
        around.order = args[-1].expressions
        args = [*args[:-1], args[-1].this]
    if len(args) == 1 and isinstance(args[0], exp.IgnoreNulls):
        args, around.ignores_nulls = [args[0].this], True
    if around.order and name not in ("first", "last"):
        raise place.unsupported("HW203", f"{shown} by an order is not supported", whole)
    if around.ignores_nulls and name not in ("first", "last", "any_value"):
        raise place.unsupported("HW203", f"{shown} IGNORE NULLS is not supported", whole)
    condition = taken.condition(around.where) if around.where is not None else None
    if name == "count" and len(args) == 1 and isinstance(args[0], exp.Star) and not distinct:
        place.only(args[0], (), "HW209")
        return taken.add(AggregateCall(name, whole, (), where=condition))
    if not args and name != "grouping_id":
        raise place.mistake("HW122", f"{shown}: takes at least 1 argument, not 0", whole)
    order = tuple(
        Sorting(taken.argument(one.this), bool(one.args.get("desc")), bool(one.args.get("nulls_first")))
        for one in around.order
    )
    bound = tuple(taken.argument(arg) for arg in args)
    return taken.add(AggregateCall(name, whole, bound, distinct, condition, order, around.ignores_nulls))


def _refuse(binder: Binder, node: exp.Anonymous, name: str) -> None:
    shown, place = name.upper(), binder.place
    if name in OTHER_AGGREGATES and name not in REGISTRY:
        raise place.unsupported(
            "HW203", f"aggregate {shown} is not supported yet", node, "docs/sql/queries.md lists those that are"
        )
    if name in WINDOW_FUNCTIONS:
        raise place.mistake(
            "HW138", f"{shown} is a window function: it needs OVER", node, f"{shown}(...) OVER (ORDER BY ...)"
        )
    if name in GENERATORS:
        raise place.unsupported(
            "HW207",
            f"{shown} makes rows, and cannot stand here",
            node,
            "EXPLODE and POSEXPLODE stand alone as an item of a select list, or in LATERAL VIEW",
        )
    if name in TIME_WINDOWS:
        raise place.unsupported(
            "HW225",
            f"{shown} cannot stand in {binder.clause}",
            node,
            "it stands in GROUP BY; select it in a derived table to use it elsewhere",
        )
    if name in NOT_DETERMINISTIC:
        raise place.unsupported(
            "HW206",
            f"{shown} has another value every time, so no stored result of it could stay right",
            node,
            "store the value in a column when the row is inserted",
        )


def _unknown(binder: Binder, node: exp.Anonymous, name: str) -> Exception:
    hint = did_you_mean(name, callable_names()) or "docs/sql/functions.md lists the functions"
    # sqlglot knows the names of some more, which other systems have.
    known = name in OTHER_FUNCTIONS or name.upper() in SparkParser.FUNCTIONS
    if known or name.upper() in SparkParser.FUNCTION_PARSERS:
        return binder.place.unsupported("HW211", f"function {name.upper()} is not supported yet", node, hint)
    return binder.place.mistake("HW121", f"there is no function {name.upper()}", node, hint)
