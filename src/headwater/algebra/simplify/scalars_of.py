"""The scalars inside a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headwater.algebra.nodes import During, Explode, Filter, Join, Named, Node, Outer, Over, Present, Project, Sum
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
        case Join() | Outer():
            after = replace(node, condition=rewrite(node.condition))
        case During():
            after = replace(node, starts=rewrite(node.starts), ends=rewrite(node.ends))
        case Explode():
            after = replace(node, source=rewrite(node.source))
        case Sum():
            picks = tuple((name, one.map(rewrite)) for name, one in node.picks)
            after = replace(
                node, keys=named(node.keys), terms=named(node.terms), picks=picks, count=rewrite(node.count)
            )
        case Over():
            calls = tuple((name, one.map(rewrite)) for name, one in node.calls)
            outputs = named(node.outputs)
            after = Over(node.input, named(node.keys), calls, outputs, rewrite(node.having))
        case Present():
            after = replace(node, outputs=named(node.outputs), having=rewrite(node.having))
    return node if after == node else after
