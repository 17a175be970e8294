"""Lambdas as arguments: `(acc, x) -> acc + x` bound with the types that a function calls it with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.lambdas import Wanted, wanted_lambda
from headwater.algebra.scalars import Lambda, Literal, Parameter, Scalar
from headwater.sql.names import fold

if TYPE_CHECKING:
    from headwater.sql.bind import Binder


def next_lambda(binder: Binder, name: str, node: exp.Anonymous, args: tuple[Scalar, ...]) -> Wanted | None:
    """The lambda that a function takes behind the arguments that are bound, or None if it takes a value."""
    try:
        return wanted_lambda(name, args)
    except ValueError as error:
        raise binder.place.mistake("HW122", f"{name.upper()}: {error}", node) from None


def bind_lambda(binder: Binder, name: str, node: exp.Expr, wanted: Wanted) -> Lambda:
    """The lambda an argument means. Its parameters hide columns of the same name; all others it can read."""
    place = binder.place
    if not isinstance(node, exp.Lambda):
        raise place.mistake("HW122", f"{name.upper()}: takes a lambda here: x -> ...", node)
    place.only(node, ("this", "expressions"), "HW209")
    try:
        wanted.check_count(len(node.expressions))
    except ValueError as error:
        raise place.mistake("HW122", f"{name.upper()}: {error}", node) from None
    parameters: dict[str, Parameter] = {}
    for named, of in zip(node.expressions, wanted.types, strict=False):
        if fold(named.name) in parameters:
            raise place.mistake("HW122", f"two parameters of a lambda are called {named.name}", named)
        parameters[fold(named.name)] = Parameter(binder.depth + len(parameters) + 1, of)

    def lookup(column: exp.Column) -> Scalar:
        first, *fields = column.parts
        found: Scalar | None = parameters.get(fold(first.name))
        if found is None:
            return binder.lookup(column)
        for field in fields:
            found = inner.call("field", column, found, Literal(field.name, t.STRING), shown=place.text(column))
        return found

    inner = binder.inside(lookup, len(parameters))
    return Lambda(tuple(parameters.values()), inner.bind(node.this))
