"""What can have no rows is left out."""

from __future__ import annotations

from headwater.algebra.nodes import (
    Explode,
    Filter,
    Join,
    Keep,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Union,
    Values,
    transform,
)
from headwater.algebra.scalars import Literal, conjuncts


def drop_empty(node: Node) -> Node:
    """A filter that lets nothing pass is no rows at all, and neither is what is made of no rows."""
    return transform(node, _drop)


def _drop(node: Node) -> Node:
    match node:
        case Filter(predicate=condition) | Join(condition=condition) if any(map(_never, conjuncts(condition))):
            return _nothing(node)
        case Filter() | Project() | Negate() | Repeat() | Keep() | Over() | Explode() | Join():
            return _nothing(node) if any(_is_empty(child) for child in node.children) else node
        case Outer():
            on_left, on_right = not _is_empty(node.left), not _is_empty(node.right)
            rows = (on_left and (on_right or node.keeps_left)) or (on_right and node.keeps_right)
            return node if rows else _nothing(node)
        case Present(having=having) if node.sums.keys:
            return _nothing(node) if _is_empty(node.sums.input) or any(map(_never, conjuncts(having))) else node
        case Union(inputs=inputs) if any(_is_empty(one) for one in inputs):
            left = tuple(one for one in inputs if not _is_empty(one))
            return _nothing(node) if not left else left[0] if len(left) == 1 else Union(left)
    return node


def _never(part: object) -> bool:
    return isinstance(part, Literal) and part.value is not True


def _is_empty(node: Node) -> bool:
    return isinstance(node, Values) and not node.rows


def _nothing(node: Node) -> Node:
    return Values(node.schema, ())
