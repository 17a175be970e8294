"""Columns that nobody reads above an `Explode` below a `Sum` go before rows are multiplied, not after.

Where the rows of groups are kept, for aggregates that do not add up, they are kept once for each element.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import Explode, Node, Project, Sum, scalars, transform


def narrow_explodes(node: Node) -> Node:
    """`sum[k; t](explode[e](R)) = sum[k; t](explode[e](project[c](R)))`, c the columns that k, t and e read."""
    return transform(node, _narrow)


def _narrow(node: Node) -> Node:
    match node:
        case Sum(input=Explode(input=source) as exploded):
            read = exploded.source.columns.union(*(scalar.columns for scalar in scalars(node)))
            kept = tuple((f.name, source.column(f.name)) for f in source.schema if f.name in read)
            if kept and len(kept) < len(source.schema):
                return replace(node, input=replace(exploded, input=Project(source, kept)))
    return node
