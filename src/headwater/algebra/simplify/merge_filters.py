"""Two filters in a row become one; a filter that lets all rows pass goes."""

from __future__ import annotations

from headwater.algebra.nodes import Filter, Node, transform
from headwater.algebra.scalars import TRUE, conjunction, conjuncts


def merge_filters(node: Node) -> Node:
    """Filter[p](Filter[q](R)) = Filter[q and p](R), and Filter[true](R) = R.

    The inner predicate stays in front: it may guard the outer one.
    """
    return transform(node, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Filter(input=source, predicate=predicate) if predicate == TRUE:
            return source
        case Filter(input=Filter(input=source, predicate=inner), predicate=outer):
            return Filter(source, conjunction(conjuncts(inner) + conjuncts(outer)))
    return node
