"""A projection of constant rows is computed now."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.evaluate import canonical
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import Node, Project, Values, transform


def evaluate_values(node: Node) -> Node:
    """Project[c := f(x)](Values) = Values; one that would raise stays, to raise when it is asked for."""
    return transform(node, _evaluate)


def _evaluate(node: Node) -> Node:
    match node:
        case Project(input=Values() as values, columns=columns):
            try:
                rows = tuple(
                    tuple(
                        canonical(evaluate_scalar(scalar, dict(zip(values.column_names, row, strict=True))))
                        for _, scalar in columns
                    )
                    for row in values.rows
                )
            except EvaluationError:
                return node
            fields = tuple(
                t.Field(name, scalar.type, any(row[position] is None for row in rows))
                for position, (name, scalar) in enumerate(columns)
            )
            return Values(fields, rows)
    return node
