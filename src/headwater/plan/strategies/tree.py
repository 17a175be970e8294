"""Join trees: aggregation below every join, one map of partial sums per node.

A block that sums over a join keeps, instead of its inputs, what the sum needs of them: each input filtered, grouped by
the columns that the joins and the groups above need, its own factors of the terms added up; then each join of two of
these, grouped by what is needed above it; up to the sum itself:

    sum[k; t](A join B join C)   =   sum[k; carry(t, count)](AB join C'),   AB = sum[...](A' join B')

A change goes up from its leaf, `dN = dA join B_new + A_old join dB` at each node, for all relations that changed in the
epoch in one pass: maps have their steps after the base relations, children before parents. A term is multiplied out
into factors that belong to one leaf each (`headwater.plan.polynomials`); one that cannot be is computed at the top, and
its columns become part of the keys.

(Ahmad et al., "DBToaster", section 4, pushes aggregates below joins by factorisation; which partial results to keep is
its materialisation decision. Ours is one tree.)
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from headwater.algebra.joins import equates
from headwater.algebra.nodes import Scan, Sum
from headwater.algebra.scalars import Scalar
from headwater.plan.program import BlockPlan, Map
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import Block, Leaves, Part, stored

NAME = "tree"


def tree(one: Map, view: str, number: int) -> BlockPlan:
    """The maps that a block needs, itself last; their names begin after a number."""
    block = Block.of(one.present.sums) if one.present is not None else None
    if block is None or one.present is None:
        return BlockPlan([one], statements_of(one))
    made = _Tree(view, number, block)
    maps = [*made.maps, Map(one.name, replace(one.present, input=made.top))]
    return BlockPlan(maps, [statement for each in maps for statement in statements_of(each)])


class _Tree:
    """The maps of one block."""

    def __init__(self, view: str, number: int, block: Block) -> None:
        self._view, self._number = view, number
        self._block = block
        self.maps: list[Map] = []
        self.top = self._build()

    def _build(self) -> Sum:
        parts = [self._leaf(i) for i in range(len(self._block.leaves))]
        while len(parts) > 2:
            pair = min(combinations(parts, 2), key=self._rank)
            parts = [one for one in parts if one not in pair] + [self._joined(pair)]
        return self._block.whole(sorted(parts, key=_order))

    def _rank(self, pair: tuple[Part, Part]) -> tuple[bool, int, int]:
        """Those that an equality connects first, then the fewest columns to group by."""
        both = pair[0].leaves | pair[1].leaves
        connected = any(equates(one) for one in self._block.between(pair))
        return not connected, len(self._needed(both)), len(both)

    def _needed(self, leaves: Leaves) -> tuple[Scalar, ...]:
        return self._block.needed(leaves, self._block.all, self._block.wanted)

    def _leaf(self, leaf: int) -> Part:
        me = frozenset({leaf})
        block = self._block
        node = block.leaves[leaf]
        if block.reads_as_it_is(leaf) or (isinstance(node, Scan) and not block.own(leaf) and not block.factors(me)):
            return block.raw(leaf)
        return self._stored(me, block.definition(me, self._needed(me)))

    def _joined(self, pair: tuple[Part, Part]) -> Part:
        both = pair[0].leaves | pair[1].leaves
        return self._stored(both, self._block.combined(sorted(pair, key=_order), self._needed(both)))

    def _stored(self, leaves: Leaves, sums: Sum) -> Part:
        """A node as a map, and how it is read."""
        self._number += 1
        name = f"{self._view}${self._number}"
        self.maps.append(Map(name, sums))
        factors = self._block.factors(leaves)
        return stored(name, f"#t{self._number}", sums, leaves, self._needed(leaves), factors)


def _order(part: Part) -> tuple[str, list[int]]:
    """An order that does not depend on how a query lists its relations."""
    names = sorted(node.relation for node in part.rows.walk() if isinstance(node, Scan))
    return ", ".join(names), sorted(part.leaves)
