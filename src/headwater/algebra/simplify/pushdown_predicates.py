"""Conditions move towards the rows they are about, so that joins and maps hold less.

A condition that can fail (a division, an overflow) never moves below a join or a map, nor in front of another
condition: it is asked only of rows that SQL asks it of.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Filter, Join, Negate, Node, Present, Project, Sum, Union, rebuild
from headwater.algebra.scalars import Scalar, conjunction, conjuncts, substitute


def pushdown_predicates(node: Node) -> Node:
    """Every condition as far down as it can go."""
    return _push(node, [])


def _push(node: Node, parts: list[Scalar]) -> Node:
    """The node filtered by all parts, which are in the order in which they are asked."""
    match node:
        case Filter(input=source, predicate=predicate):
            return _push(source, conjuncts(predicate) + parts)
        case Project(input=source, columns=columns):
            values = dict(columns)
            return rebuild(node, (_push(source, [substitute(part, values) for part in parts]),))
        case Union(inputs=inputs) if not isinstance(inputs[0], Sum):
            return rebuild(node, tuple(_push(one, parts) for one in inputs))
        case Negate(input=source):
            return rebuild(node, (_push(source, parts),))
        case Join():
            return _push_into_join(node, parts)
        case Present():
            return _push_into_present(node, parts)
    below = rebuild(node, tuple(_push(child, []) for child in node.children))
    return Filter(below, conjunction(parts)) if parts else below


def _push_into_join(node: Join, parts: list[Scalar]) -> Node:
    left, right, here = [], [], []
    sides = (frozenset(node.left.column_names), frozenset(node.right.column_names))
    for part in conjuncts(node.condition) + parts:
        if not part.columns or may_raise(part):
            here.append(part)
        elif part.columns <= sides[0]:
            left.append(part)
        elif part.columns <= sides[1]:
            right.append(part)
        else:
            here.append(part)
    below = rebuild(node, (_push(node.left, left), _push(node.right, right)))
    assert isinstance(below, Join)
    condition = conjunction(here)
    return below if condition == node.condition else replace(below, condition=condition)


def _push_into_present(node: Present, parts: list[Scalar]) -> Node:
    outputs = dict(node.outputs)
    wanted = conjuncts(node.having) + [substitute(part, outputs) for part in parts]
    keys = dict(node.sums.keys)
    below, here = [], []
    for part in wanted:
        # A condition on keys takes or leaves whole groups. Without keys there is one group, even of no rows.
        about_keys = part.columns and part.columns <= keys.keys()
        moved = substitute(part, keys) if about_keys else part
        if about_keys and not may_raise(moved):
            below.append(moved)
        else:
            here.append(part)
    sums = rebuild(node.sums, (_push(node.sums.input, below),))
    having = conjunction(here)
    return rebuild(node, (sums,)) if having == node.having else Present(sums, node.outputs, having)
