"""Rows that are read once need no store of their own."""

from __future__ import annotations

from collections import Counter

from headwater.algebra.nodes import Keep, Node, Over, Present, rebuild


def drop_keeps(node: Node) -> Node:
    """keep(R) = R, where only one place reads it. Places in a block that is read several times count once."""
    reads: Counter[Node] = Counter()
    _count(node, reads)
    done: dict[int, Node] = {}

    def dropped(one: Node) -> Node:
        if id(one) not in done:
            below = rebuild(one, tuple(map(dropped, one.children)))
            done[id(one)] = below.children[0] if isinstance(one, Keep) and reads[one] == 1 else below
        return done[id(one)]

    return dropped(node)


def _count(node: Node, reads: Counter[Node]) -> None:
    for child in node.children:
        block = isinstance(child, Present | Over | Keep)
        reads[child] += block
        if not block or reads[child] == 1:
            _count(child, reads)
