"""The viewlet transform: maps that maintain each other, down to maps of single relations.

The change of a block by a change of relation R joins dR with the rest of the block. That rest does not depend on R, so
it is materialised: it falls apart into the components that are still connected by equalities once the columns of dR are
known, and each is a map, keyed by what it shares with dR and with the result. These maps are maintained so too,
each with fewer relations than the one before, until the change of a map needs nothing but dR. (Ahmad, Kennedy, Koch,
Nikolic, "DBToaster", section 4; section 5.1 for the rules.)

| rule | here |
|---|---|
| duplicate elimination | one map for one set of leaves and keys; equal maps of all views are one (`plan.share`) |
| 1, decomposition | one map per connected component of the rest |
| 2, polynomial expansion | terms are multiplied out, so that a map keeps totals of its own factors |
| 3, input variables | a condition between dR and a map is asked when they are joined; the map has its columns as keys |
| 4, nested aggregates | they are blocks of their own, whose change is minus what was shown, plus what is shown now |

An epoch is one step per changed relation. Within a step, all changes are computed from what the step before left, and
then added: maps are brought up to date step by step (`Map.stepwise`), not once at the end. A relation that stands in a
block several times changes in all these places at once: one statement per set of places, as in `dR x R + R x dR +
dR x dR`.

`viewlet naive` is the transform without rules 1 and 2: the whole rest is one map, and a term over several relations is
computed from its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from headwater.algebra.joins import equates
from headwater.algebra.nodes import Sum
from headwater.algebra.scalars import Scalar
from headwater.delta.derive import derive
from headwater.plan.program import Add, BlockPlan, Map, Statement
from headwater.plan.strategies.first_order import statements_of
from headwater.plan.strategies.sums import Block, Leaves, Part, stored

NAME = "viewlet"
NAIVE = "viewlet naive"
#: A block in which a relation stands more often than this is left as it is: its statements double with each.
_MOST_PLACES = 4
#: And so is one that needs more maps than this; naive transforms of many joins do.
_MOST_MAPS = 64


def viewlet(one: Map, view: str, number: int) -> BlockPlan:
    """The maps that a block needs, itself last; their names begin after a number."""
    return _plan(one, _Viewlets.of(one, view, number, naive=False))


def viewlet_naive(one: Map, view: str, number: int) -> BlockPlan:
    """The same by the bare transform."""
    return _plan(one, _Viewlets.of(one, view, number, naive=True))


def _plan(one: Map, made: _Viewlets | None) -> BlockPlan:
    if made is None:
        joins = one.present is not None and Block.of(one.present.sums) is not None
        return BlockPlan([one], statements_of(one), given_up=joins)
    return BlockPlan([*made.maps, one], made.statements)


class _TooMany(Exception):
    pass


class _Viewlets:
    """The maps of one block, and the statements for it and for them."""

    def __init__(self, view: str, number: int, block: Block, naive: bool) -> None:
        self._view, self._number = view, number
        self._block, self._naive = block, naive
        self._known: dict[tuple[Leaves, tuple[Scalar, ...]], tuple[Map, str]] = {}
        self.statements: list[Statement] = []

    @staticmethod
    def of(one: Map, view: str, number: int, naive: bool) -> _Viewlets | None:
        """The transform of a block; None for one that is maintained by its own delta."""
        block = Block.of(one.present.sums) if one.present is not None else None
        if block is None:
            return None
        made = _Viewlets(view, number, block.without_polynomials() if naive else block, naive)
        if any(len(made._places(relation, block.all)) > _MOST_PLACES for relation in made._relations(block.all)):
            return None
        try:
            made._transform(one.name, block.all, block.wanted, None)
        except _TooMany:
            return None
        made._order()
        return made

    @property
    def maps(self) -> list[Map]:
        return [one for one, _ in self._known.values()]

    def _order(self) -> None:
        """Within a step a map is read before it is added to: those of many relations read those of fewer."""
        degree = {one.name: len(leaves) for (leaves, _), (one, _) in self._known.items()}
        self.statements.sort(key=lambda one: -degree.get(one.target, len(self._block.leaves) + 1))

    def _relations(self, leaves: Leaves) -> list[str]:
        return sorted({name for i in leaves for name in self._block.leaves[i].relations})

    def _places(self, relation: str, leaves: Leaves) -> list[int]:
        return [i for i in sorted(leaves) if relation in self._block.leaves[i].relations]

    def _transform(
        self, target: str, leaves: Leaves, wanted: tuple[Scalar, ...], keys: tuple[Scalar, ...] | None
    ) -> None:
        """Statements for a map of some leaves, and the maps that they need. Without keys it is the block itself."""
        for relation in self._relations(leaves):
            places = self._places(relation, leaves)
            for changed in _subsets(places):
                rest = [self._part(one, leaves, wanted) for one in self._components(leaves - changed)]
                for deltas in self._deltas(relation, changed):
                    parts = [*deltas, *rest]
                    term = self._block.whole(parts) if keys is None else self._block.combined(parts, keys)
                    self.statements.append(Add(relation, target, term))

    def _deltas(self, relation: str, changed: frozenset[int]) -> Iterator[list[Part]]:
        """The changed leaves' own changes, one choice of terms at a time."""
        choices = [
            [self._block.raw(i, term) for term in derive(self._block.leaves[i], relation)] for i in sorted(changed)
        ]
        for one in product(*choices):
            yield list(one)

    def _components(self, leaves: Leaves) -> list[Leaves]:
        """What is still connected by equalities among these leaves alone.

        An inequality connects nothing: what it joins may be as large as all pairs, and is better asked when needed.
        """
        if self._naive:
            return [leaves] if leaves else []
        groups = [frozenset({i}) for i in sorted(leaves)]
        for condition in self._block.waiting:
            inside = self._block.leaves_of(condition)
            if inside <= leaves and equates(condition) is not None:
                met = [one for one in groups if one & inside]
                groups = [one for one in groups if one not in met] + [frozenset().union(*met)]
        return sorted(groups, key=sorted)

    def _part(self, leaves: Leaves, outside: Leaves, wanted: tuple[Scalar, ...]) -> Part:
        """Some leaves as they are read: a map of their own, unless they are one relation that is stored anyway."""
        block = self._block
        if len(leaves) == 1 and block.reads_as_it_is(next(iter(leaves))):
            return block.raw(next(iter(leaves)))
        keys = block.needed(leaves, outside, wanted)
        if (leaves, keys) not in self._known:
            if len(self._known) >= _MOST_MAPS:
                raise _TooMany
            self._number += 1
            name = f"{self._view}${self._number}"
            one = Map(name, block.definition(leaves, keys), stepwise=True)
            self._known[leaves, keys] = one, f"#t{self._number}"
            self._transform(name, leaves, keys, keys)
        found, alias = self._known[leaves, keys]
        assert isinstance(found.definition, Sum)
        return stored(found.name, alias, found.definition, leaves, keys, block.factors(leaves))


def _subsets(places: list[int]) -> Iterator[frozenset[int]]:
    for size in range(1, len(places) + 1):
        yield from map(frozenset, combinations(places, size))
