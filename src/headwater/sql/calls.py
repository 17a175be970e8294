"""Function calls by name: scalar functions, aggregates, conversions, and clear refusals of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser

from headwater import types as t
from headwater.algebra.functions import REGISTRY
from headwater.algebra.scalars import Literal, Scalar
from headwater.sql.function_names import (
    AGGREGATES,
    GENERATORS,
    NOT_CALLABLE,
    NOT_DETERMINISTIC,
    OPERATORS,
    OTHER_AGGREGATES,
    TYPE_NAMES,
    UNIT_FIRST,
    WINDOW_FUNCTIONS,
)
from headwater.sql.place import did_you_mean
from headwater.sql.types import parse_type

if TYPE_CHECKING:
    from headwater.sql.bind import Binder


def function_name(node: exp.Anonymous) -> str:
    """The name a call is made by, in lower case."""
    return (node.this if isinstance(node.this, str) else node.this.name).lower()


def callable_names() -> list[str]:
    """Every name a user can call."""
    scalar = [name for name in REGISTRY if _is_callable(name)]
    return sorted({*scalar, *AGGREGATES, *TYPE_NAMES})


def _is_callable(name: str) -> bool:
    return name in REGISTRY and not REGISTRY[name].internal and name.isidentifier() and name not in NOT_CALLABLE


def bind_call(binder: Binder, node: exp.Anonymous) -> Scalar:
    """The scalar a call means."""
    binder.place.only(node, ("this", "expressions"), "HW209")
    name = function_name(node)
    if name in AGGREGATES:
        return _aggregate(binder, node, AGGREGATES[name])
    _refuse(binder, node, name)
    args = [_argument(binder, name, arg, position, node) for position, arg in enumerate(node.expressions)]
    if name in TYPE_NAMES and name not in REGISTRY:
        if len(args) != 1:
            raise binder.place.mistake("HW122", f"{name.upper()}: takes 1 argument, not {len(args)}", node)
        return binder.convert(args[0], parse_type(name), node)
    if name == "extract" and name not in REGISTRY and "date_part" in REGISTRY:
        name = "date_part"
    if not _is_callable(name):
        raise _unknown(binder, node, name)
    return binder.call(OPERATORS.get(name, name), node, *args, shown=name.upper())


def _argument(binder: Binder, name: str, arg: exp.Expr, position: int, call: exp.Anonymous) -> Scalar:
    unit = name in UNIT_FIRST and position == 0 and len(call.expressions) == 3
    if unit and isinstance(arg, exp.Column) and not arg.table:
        return Literal(arg.name.upper(), t.STRING)
    if isinstance(arg, exp.Alias):
        raise binder.place.mistake("HW122", f"{name.upper()}: arguments have no names", arg)
    return binder.bind(arg)


def _aggregate(binder: Binder, node: exp.Anonymous, name: str) -> Scalar:
    if binder.aggregates is None:
        raise binder.place.mistake(
            "HW123",
            f"{function_name(node).upper()} cannot stand in {binder.clause}",
            node,
            "compute it in a derived table or a view, or use HAVING",
        )
    args = node.expressions
    if name == "count" and len(args) == 1 and isinstance(args[0], exp.Star):
        binder.place.only(args[0], (), "HW209")
        return binder.aggregates.add(name, node, [])
    if not args:
        raise binder.place.mistake("HW122", f"{name.upper()}: takes at least 1 argument, not 0", node)
    return binder.aggregates.add(name, node, [binder.aggregates.argument(arg) for arg in args])


def _refuse(binder: Binder, node: exp.Anonymous, name: str) -> None:
    shown, place = name.upper(), binder.place
    if name in OTHER_AGGREGATES and name not in REGISTRY:
        raise place.unsupported(
            "HW203", f"aggregate {shown} is not supported yet", node, "SUM, COUNT and AVG are; see docs/sql/queries.md"
        )
    if name in WINDOW_FUNCTIONS:
        raise place.unsupported("HW205", f"window function {shown} is not supported yet", node)
    if name in GENERATORS:
        raise place.unsupported("HW207", f"{shown}, which makes rows, is not supported yet", node)
    if name in NOT_DETERMINISTIC or (name == "unix_timestamp" and not node.expressions):
        raise place.unsupported(
            "HW206",
            f"{shown} has another value every time, so no stored result of it could stay right",
            node,
            "store the value in a column when the row is inserted",
        )


def _unknown(binder: Binder, node: exp.Anonymous, name: str) -> Exception:
    hint = did_you_mean(name, callable_names()) or "docs/sql/functions.md lists the functions"
    # sqlglot knows the names of most of Spark's functions, and of some other systems.
    if name.upper() in SparkParser.FUNCTIONS or name.upper() in SparkParser.FUNCTION_PARSERS:
        return binder.place.unsupported("HW211", f"function {name.upper()} is not supported yet", node, hint)
    return binder.place.mistake("HW121", f"there is no function {name.upper()}", node, hint)
