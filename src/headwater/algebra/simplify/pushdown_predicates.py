"""Conditions move towards the rows they are about, so that joins and maps hold less.

A condition that can fail (a division, an overflow) never moves below a join or a map, nor in front of another
condition: it is asked only of rows that SQL asks it of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.algebra.clock import reads_clock
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Filter, Join, Negate, Node, Over, Present, Project, Repeat, Sum, Union, rebuild
from headwater.algebra.scalars import Column, Scalar, conjunction, conjuncts, substitute


def pushdown_predicates(node: Node) -> Node:
    """Every condition as far down as it can go."""
    return _Pusher().push(node, [])


class _Pusher:
    """One pass over a tree. What stands in several places stays one object where it is asked the same."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, tuple[Scalar, ...]], Node] = {}

    def push(self, node: Node, parts: list[Scalar]) -> Node:
        """The node filtered by all parts, which are in the order in which they are asked."""
        key = (id(node), tuple(parts))
        if key not in self._done:
            self._done[key] = self._push(node, parts)
        return self._done[key]

    def _push(self, node: Node, parts: list[Scalar]) -> Node:
        match node:
            case Filter(input=source, predicate=predicate):
                return self.push(source, conjuncts(predicate) + parts)
            case Project(input=source, columns=columns):
                values = dict(columns)
                return rebuild(node, (self.push(source, [substitute(part, values) for part in parts]),))
            case Union(inputs=inputs) if not isinstance(inputs[0], Sum):
                return rebuild(node, tuple(self.push(one, parts) for one in inputs))
            case Negate(input=source) | Repeat(input=source):
                return rebuild(node, (self.push(source, parts),))
            case Join():
                return self._push_into_join(node, parts)
            case Present():
                return self._push_into_present(node, parts)
            case Over():
                return self._push_into_over(node, parts)
        below = rebuild(node, tuple(self.push(child, []) for child in node.children))
        return Filter(below, conjunction(parts)) if parts else below

    def _push_into_join(self, node: Join, parts: list[Scalar]) -> Node:
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
        below = rebuild(node, (self.push(node.left, left), self.push(node.right, right)))
        assert isinstance(below, Join)
        condition = conjunction(here)
        return below if condition == node.condition else replace(below, condition=condition)

    def _push_into_present(self, node: Present, parts: list[Scalar]) -> Node:
        outputs = dict(node.outputs)
        keys = dict(node.sums.keys)
        above = [part for part in parts if _stays_above(substitute(part, outputs), keys)]
        if above:
            return Filter(self.push(node, [part for part in parts if part not in above]), conjunction(above))
        wanted = conjuncts(node.having) + [substitute(part, outputs) for part in parts]
        below, here = [], []
        for part in wanted:
            # A condition on keys takes or leaves whole groups. Without keys there is one group, even of no rows.
            about_keys = part.columns and part.columns <= keys.keys()
            moved = substitute(part, keys) if about_keys else part
            if about_keys and not may_raise(moved):
                below.append(moved)
            else:
                here.append(part)
        sums = rebuild(node.sums, (self.push(node.sums.input, below),))
        having = conjunction(here)
        return rebuild(node, (sums,)) if having == node.having else Present(sums, node.outputs, having)

    def _push_into_over(self, node: Over, parts: list[Scalar]) -> Node:
        """A condition on keys takes or leaves whole partitions; others are asked of what the window functions say."""
        outputs = dict(node.outputs)
        keys: dict[str, Scalar] = {key.name: key for _, key in node.keys if isinstance(key, Column)}
        above = [part for part in parts if _stays_above(substitute(part, outputs), keys)]
        if above:
            return Filter(self.push(node, [part for part in parts if part not in above]), conjunction(above))
        below: list[Scalar] = []
        here: list[Scalar] = []
        for part in conjuncts(node.having) + [substitute(part, outputs) for part in parts]:
            whole = part.columns and part.columns <= keys.keys() and not may_raise(part)
            (below if whole else here).append(part)
        having = conjunction(here)
        source = self.push(node.input, below)
        return rebuild(node, (source,)) if having == node.having else replace(node, input=source, having=having)


def _stays_above(part: Scalar, keys: Mapping[str, Scalar]) -> bool:
    """Whether a condition is not taken into a block: the clock moves by itself, so it decides outside (`During`)."""
    about_keys = part.columns and part.columns <= keys.keys()
    return reads_clock(part) and (not about_keys or may_raise(substitute(part, keys)))
