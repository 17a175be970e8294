"""The scalars inside a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headwater.algebra.nodes import Filter, Join, Named, Node, Present, Project, Sum
from headwater.algebra.scalars import Scalar


def map_scalars(node: Node, rewrite: Callable[[Scalar], Scalar]) -> Node:
    """The node with every scalar of its own rewritten; the same object when nothing changed."""

    def named(items: tuple[Named, ...]) -> tuple[Named, ...]:
        new = tuple((name, rewrite(scalar)) for name, scalar in items)
        return items if all(a[1] is b[1] for a, b in zip(items, new, strict=True)) else new

    after: Node = node
    match node:
        case Filter():
            after = replace(node, predicate=rewrite(node.predicate))
        case Project():
            after = replace(node, columns=named(node.columns))
        case Join():
            after = replace(node, condition=rewrite(node.condition))
        case Sum():
            after = replace(node, keys=named(node.keys), terms=named(node.terms))
        case Present():
            after = replace(node, outputs=named(node.outputs), having=rewrite(node.having))
    return node if after == node else after
