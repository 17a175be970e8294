"""A projection of constant rows is computed now, and one constant row is written into what it is joined with."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.clock import reads_clock
from headwater.algebra.evaluate import canonical
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import Filter, Join, Node, Project, Values, transform
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, substitute


def evaluate_values(node: Node) -> Node:
    """Project[c := f(x)](Values) = Values; one that would raise stays, to raise when it is asked for.

    join[c](R, values(x)) = project[.., x](filter[c'](R))
    """
    return transform(node, _evaluate)


def _evaluate(node: Node) -> Node:
    match node:
        case Project(input=Values() as values, columns=columns) if not any(reads_clock(one) for _, one in columns):
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
        case Join(left=rows, right=Values(rows=[_]) as one) | Join(left=Values(rows=[_]) as one, right=rows):
            return _written_in(node, rows, one)
    return node


def _written_in(node: Join, rows: Node, one: Values) -> Node:
    values: dict[str, Scalar] = {
        f.name: Literal(value, f.type) for f, value in zip(one.fields, one.rows[0], strict=True)
    }
    condition = substitute(node.condition, values)
    source = rows if condition == TRUE else Filter(rows, condition)
    values |= {f.name: Column(f.name, f.type) for f in rows.schema}
    return Project(source, tuple((name, values[name]) for name in node.column_names))
