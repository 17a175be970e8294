"""An arm of a union whose constants make a condition above it fail for all its rows is left out.

A correlated subquery without a row is NULL, and has an arm of its own: `x > NULL` lets nothing of it pass.
"""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Join, Node, Project, Union, Values, rebuild, transform
from headwater.algebra.scalars import Literal, Scalar, conjuncts, substitute
from headwater.algebra.simplify.fold_constants import fold


def drop_arms(node: Node) -> Node:
    """filter[c](R + project[x := 1](S)) = filter[c](R), where c is never TRUE for x = 1; and so for a join."""
    return transform(node, _drop)


def _drop(node: Node) -> Node:
    match node:
        case Filter(input=source, predicate=condition):
            return rebuild(node, (_reduced(source, conjuncts(condition)),))
        case Join(left=left, right=right, condition=condition):
            parts = conjuncts(condition)
            return rebuild(node, (_reduced(left, parts), _reduced(right, parts)))
    return node


def _reduced(node: Node, parts: list[Scalar]) -> Node:
    """The node without arms in which a condition never holds."""
    match node:
        case Union(inputs=inputs):
            left = tuple(one for one in inputs if not _never(one, parts))
            if len(left) == len(inputs):
                return node
            return Values(node.schema, ()) if not left else left[0] if len(left) == 1 else Union(left)
        case Project(input=Union() as source, columns=columns):
            values = dict(columns)
            below = _reduced(source, [substitute(part, values) for part in parts])
            return rebuild(node, (below,))
    return node


def _never(arm: Node, parts: list[Scalar]) -> bool:
    if not isinstance(arm, Project):
        return False
    constants: dict[str, Scalar] = {name: one for name, one in arm.columns if isinstance(one, Literal)}
    for part in parts:
        found = fold(substitute(part, constants)) if part.columns & constants.keys() else part
        if isinstance(found, Literal) and found.value is not True:
            return True
    return False
