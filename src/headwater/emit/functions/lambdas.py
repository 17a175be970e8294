"""Functions of functions in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater.algebra.functions import may_raise
from headwater.algebra.functions.lambdas import is_counted
from headwater.algebra.scalars import Call, Column, Parameter
from headwater.emit.functions.build import (
    both,
    case,
    cast,
    either,
    emits,
    fn,
    infix,
    is_null,
    let,
    null,
    number,
    sub,
)


def parameter_name(parameter: Parameter) -> exp.Identifier:
    """A parameter in SQL. Names of columns that begin with # are ours, and no other one goes on with x."""
    return exp.to_identifier(f"#x{parameter.number}", quoted=True)


@emits("aggregate", "reduce")
def _aggregate(
    call: Call, items: exp.Expr, start: exp.Expr, merge: exp.Expr, finish: exp.Expr | None = None
) -> exp.Expr:
    if finish is None:
        return fn("list_reduce", items, merge, start)

    # A NULL array is NULL, whatever the last lambda makes of NULL.
    def finished(x: exp.Expr) -> exp.Expr:
        merged = exp.Array(expressions=[fn("list_reduce", x.copy(), merge, start)])
        whole = exp.Bracket(this=fn("list_transform", merged, finish), expressions=[number(1)], offset=1)
        return case(is_null(x), null(call.type), whole)

    return finished(items) if isinstance(call.args[0], Column | Parameter) else let({"x": items}, finished)


@emits("transform")
def _transform(call: Call, items: exp.Expr, function: exp.Lambda) -> exp.Expr:
    return fn("list_transform", items, _from_zero(function) if is_counted(call) else function)


@emits("filter")
def _filter(call: Call, items: exp.Expr, function: exp.Lambda) -> exp.Expr:
    return fn("list_filter", items, _from_zero(function) if is_counted(call) else function)


def _from_zero(function: exp.Lambda) -> exp.Lambda:
    """A lambda whose second parameter is a place, which DuckDB counts from 1 and Spark from 0, as an INT."""
    place = function.expressions[1]
    from_one = exp.to_identifier(f"{place.name}#", quoted=True)
    from_zero = cast(sub(from_one.copy(), number(1)), "INTEGER")

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier) and node.name == place.name:
            return from_zero.copy()
        if isinstance(node, exp.Lambda) and place in node.expressions:
            return node  # it has a parameter of the same number of its own
        for child in list(node.iter_expressions()):
            after = replaced(child)
            if after is not child:
                child.replace(after)
        return node

    return exp.Lambda(this=replaced(function.this), expressions=[function.expressions[0], from_one])


@emits("exists", "forall")
def _decided(call: Call, items: exp.Expr, function: exp.Lambda) -> exp.Expr:
    """One element after the other, and no further than Spark goes: what comes behind may have no value."""
    some = call.function == "exists"
    found = exp.to_identifier("#found", quoted=True)
    test = (either if some else both)(function.this, found.copy())
    if may_raise(call.args[1]):
        settled = infix(exp.Is, found.copy(), exp.Boolean(this=some))
        test = case(settled, exp.Boolean(this=some), test)
    merge = exp.Lambda(this=test, expressions=[found, *function.expressions])
    return fn("list_reduce", items, merge, exp.Boolean(this=not some))
