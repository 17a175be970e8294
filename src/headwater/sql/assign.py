"""INSERT: rows in the types of the table they go into, by Spark's ANSI store assignment."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import can_cast, cast_value
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node, Project, Values
from headwater.algebra.scalars import cast
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.sql.place import Place


def can_assign(source: t.Type, target: t.Type) -> bool:
    """Whether INSERT converts by itself.

    Numbers become other numbers, with an error where one does not fit; anything plain becomes STRING; dates and
    timestamps become each other. A STRING becomes nothing else.
    """
    if source == target:
        return True
    match source, target:
        case t.Null(), _:
            return True
        case t.Array(a), t.Array(b):
            return can_assign(a, b)
        case t.Map(key_a, value_a), t.Map(key_b, value_b):
            return can_assign(key_a, key_b) and can_assign(value_a, value_b)
        case t.Struct(fields_a), t.Struct(fields_b):
            return len(fields_a) == len(fields_b) and all(
                can_assign(a, b) for (_, a), (_, b) in zip(fields_a, fields_b, strict=True)
            )
        case ((t.Date() | t.Timestamp()), (t.Date() | t.Timestamp())):
            return True
        case _, t.String():
            return not t.is_nested(source)
    return t.is_numeric(source) and t.is_numeric(target)


def refusal(given: t.Type, wanted: t.Field) -> HeadwaterError | None:
    """Why a column does not take values of a type by itself; None if it does."""
    message = f"column {wanted.name} is {wanted.type} and cannot take {given}"
    if not can_assign(given, wanted.type):
        return UserError("HW113", message, hint=f"convert it: CAST(... AS {wanted.type})")
    return None if can_cast(given, wanted.type) else NotSupported("HW214", f"{message} yet")


def assign_rows(node: Node, target: t.Schema, query: exp.Expr, place: Place) -> Node:
    """The node's columns, by position, under the names and in the types of the target."""
    if len(node.schema) != len(target):
        raise place.mistake(
            "HW128",
            f"INSERT gives {_columns(len(node.schema))}, the target has {_columns(len(target))}: "
            + ", ".join(field.name for field in target),
            query,
        )
    for position, (given, wanted) in enumerate(zip(node.schema, target, strict=True)):
        refused = refusal(given.type, wanted)
        if refused is not None:
            raise refused.at(place.span(_maker(query, position)), place.source)
    if isinstance(node, Values):
        return _assign_values(node, target, query, place)
    return Project(
        node,
        tuple(
            (wanted.name, cast(node.column(given.name), wanted.type))
            for given, wanted in zip(node.schema, target, strict=True)
        ),
    )


def _assign_values(node: Values, target: t.Schema, query: exp.Expr, place: Place) -> Node:
    rows = []
    for number, row in enumerate(node.rows):
        cells = []
        for position, (value, given, wanted) in enumerate(zip(row, node.fields, target, strict=True)):
            try:
                cells.append(cast_value(value, given.type, wanted.type))
            except EvaluationError as error:
                raise place.mistake(
                    error.code, f"column {wanted.name}: {error.message}", _maker(query, position, number), None
                ) from None
        rows.append(tuple(cells))
    fields = tuple(
        t.Field(wanted.name, wanted.type, any(row[position] is None for row in rows))
        for position, wanted in enumerate(target)
    )
    return Values(fields, tuple(rows))


def _maker(query: exp.Expr, position: int, row: int = 0) -> exp.Expr:
    """The part of a query that makes a cell, as near as can be told."""
    if isinstance(query, exp.Values):
        cells: exp.Expr = query.expressions[row]
        return list[exp.Expr](cells.expressions)[position] if isinstance(cells, exp.Tuple) else cells
    if isinstance(query, exp.Select) and not any(item.is_star for item in query.expressions):
        return list[exp.Expr](query.expressions)[position]
    return query


def _columns(count: int) -> str:
    return f"{count} column" + ("" if count == 1 else "s")
