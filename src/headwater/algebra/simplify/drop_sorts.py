"""What is collected of a group's rows is in order already, and need not be sorted.

`array_sort(collect_list(struct(at, x)))` is how a query says that rows are merged one by one in the order of time.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.functions.arrays import ascending
from headwater.algebra.nodes import Node, Present, transform
from headwater.algebra.scalars import Call, Column, Scalar
from headwater.algebra.scalars import transform as transform_scalar


def drop_sorts(node: Node) -> Node:
    """present[x := array_sort(p)](sum[k; ; p := collect_list(y)]) = present[x := p](sum[k; ; p := collect_list(y)])."""
    return transform(node, _drop)


def _drop(node: Node) -> Node:
    if not isinstance(node, Present):
        return node
    collected = {name for name, one in node.sums.picks if one.function in ("collect_list", "collect_set")}
    if not collected:
        return node

    def bare(scalar: Scalar) -> Scalar | None:
        """What is sorted, if it was collected: that is in ascending order and has no NULL."""
        if not isinstance(scalar, Call) or scalar.function not in ("array_sort", "sort_array"):
            return None
        inner = scalar.args[0]
        return inner if isinstance(inner, Column) and inner.name in collected and ascending(scalar.args) else None

    outputs = tuple((name, transform_scalar(one, bare)) for name, one in node.outputs)
    return replace(node, outputs=outputs, having=transform_scalar(node.having, bare))
