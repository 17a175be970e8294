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

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import TypeAlias

from headwater.algebra.joins import FlatJoin, equates
from headwater.algebra.nodes import Scan, Sum
from headwater.algebra.scalars import Scalar
from headwater.plan.program import BlockPlan, Map
from headwater.plan.sizes import Sizes
from headwater.plan.statistics import unknown
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import Block, Leaves, Part, stored

NAME = "tree"


def trees(one: Map, view: str, number: int, sizes: Sizes) -> list[BlockPlan]:
    """The trees that are worth weighing for a block, in doubt the first.

    They join in different orders, and keep inputs that are only filtered as they are, or as maps.

    Args:
        one: the block.
        view: whose.
        number: after which their maps are numbered.
        sizes: of the relations and blocks below.
    """
    block = Block.of(one.present.sums) if one.present is not None else None
    if block is None or one.present is None:
        return [BlockPlan([one], statements_of(one))]
    made: dict[tuple[str, ...], BlockPlan] = {}
    for shape in (None, *_Shapes(block, sizes).worth_weighing()):
        for bare in (False, True):
            tree = _Tree(view, number, block, shape, bare)
            maps = [*tree.maps, Map(one.name, replace(one.present, input=tree.top))]
            found = BlockPlan(maps, [statement for each in maps for statement in statements_of(each)])
            made.setdefault(tuple(str(each.definition) for each in maps), found)
    return list(made.values())


#: A tree of leaves: a leaf, or two trees that are joined.
Shape: TypeAlias = "int | tuple[Shape, Shape]"
#: Of so many leaves all trees are weighed; of so many, the one through which the fewest rows go.
_FEW, _SOME = 4, 8


class _Shapes:
    """The orders in which a block's leaves can be joined, so that every join has an equality if it can have one."""

    def __init__(self, block: Block, sizes: Sizes) -> None:
        self._block, self._sizes = block, sizes
        self._equalities = [block.leaves_of(one) for one in block.waiting if equates(one)]
        self._best: dict[Leaves, tuple[float, Shape]] = {}

    def worth_weighing(self) -> list[Shape]:
        leaves = self._block.all
        if 2 < len(leaves) <= _FEW:
            return list(self._all(leaves))
        return [self._leanest(leaves)[1]] if 2 < len(leaves) <= _SOME else []

    def _all(self, leaves: Leaves) -> Iterator[Shape]:
        if len(leaves) == 1:
            yield from leaves
            return
        for left, right in self._halves(leaves):
            yield from product(self._all(left), self._all(right))

    def _leanest(self, leaves: Leaves) -> tuple[float, Shape]:
        """The tree of some leaves through which the fewest rows go in an epoch, and how many."""
        if len(leaves) == 1:
            return 0.0, next(iter(leaves))
        if leaves not in self._best:
            ways = [(self._leanest(left), self._leanest(right)) for left, right in self._halves(leaves)]
            rows, shape = min(((a[0] + b[0], (a[1], b[1])) for a, b in ways), key=lambda way: way[0])
            self._best[leaves] = rows + self._through(leaves), shape
        return self._best[leaves]

    def _through(self, leaves: Leaves) -> float:
        """How many rows of some leaves joined change in an epoch: a changed row of a leaf meets its share of them."""
        block = self._block
        held = tuple(one for one in block.waiting if block.leaves_of(one) <= leaves)
        rows = self._sizes.joins(FlatJoin(tuple(block.leaves[i] for i in sorted(leaves)), held, {}))[-1].rows
        changes = 0.0
        for node in (block.leaves[i] for i in leaves):
            known = self._sizes.relation(node.relation) if isinstance(node, Scan) else unknown()
            changes += known.rate * known.share * rows / max(known.rows, 1.0)
        return changes

    def _halves(self, leaves: Leaves) -> list[tuple[Leaves, Leaves]]:
        """Two parts of some leaves, in all ways; each connected, if there is such a way."""
        first, *others = sorted(leaves)
        chosen = [frozenset({first, *some}) for n in range(len(others)) for some in combinations(others, n)]
        halves = [(one, leaves - one) for one in chosen]
        return [pair for pair in halves if all(map(self._is_connected, pair))] or halves

    def _is_connected(self, leaves: Leaves) -> bool:
        reached = frozenset(list(leaves)[:1])
        while True:
            more = reached.union(*(one for one in self._equalities if one <= leaves and one & reached))
            if more == reached:
                return reached == leaves
            reached = more


class _Tree:
    """The maps of one block."""

    def __init__(self, view: str, number: int, block: Block, shape: Shape | None, bare: bool) -> None:
        """Make the tree.

        Args:
            view: whose.
            number: after which its maps are numbered.
            block: what it is a tree of.
            shape: in which order leaves are joined; None for what is connected first, by the fewest columns.
            bare: read leaves that are only filtered as they are.
        """
        self._view, self._number = view, number
        self._block, self._bare = block, bare
        self.maps: list[Map] = []
        self.top = self._by_rank() if shape is None else self._shaped(shape)

    def _by_rank(self) -> Sum:
        parts = [self._leaf(i) for i in range(len(self._block.leaves))]
        while len(parts) > 2:
            pair = min(combinations(parts, 2), key=self._rank)
            parts = [one for one in parts if one not in pair] + [self._joined(pair)]
        return self._block.whole(sorted(parts, key=_order))

    def _shaped(self, shape: Shape) -> Sum:
        assert not isinstance(shape, int)
        return self._block.whole(sorted(map(self._part, shape), key=_order))

    def _part(self, shape: Shape) -> Part:
        if isinstance(shape, int):
            return self._leaf(shape)
        left, right = map(self._part, shape)
        return self._joined((left, right))

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
        plain = isinstance(node, Scan) and not block.factors(me)
        if block.reads_as_it_is(leaf) or (plain and (self._bare or not block.own(leaf))):
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
