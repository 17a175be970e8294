"""Join trees: aggregation below every join, one map of partial sums per node.

A block that sums over a join keeps, instead of its inputs, what the sum needs of them: each input filtered, grouped by
the columns that the joins and the groups above need, its own terms added up; then each join of two of these, grouped
by what is needed above it; up to the sum itself:

    sum[k; t](A join B join C)   =   sum[k; carry(t, count)](AB join C'),   AB = sum[...](A' join B')

A change goes up from its leaf, `dN = dA join B_new + A_old join dB` at each node, for all relations that changed in the
epoch in one pass: maps have their steps after the base relations, children before parents. A term belongs to the leaf
whose columns it reads, and is multiplied on the way by how many rows it meets (`weigh`, `carry`). One that reads
several leaves, or may raise, is computed at the top: its columns become part of the keys.

(Ahmad et al., "DBToaster", section 4, pushes aggregates below joins by factorisation; which partial results to keep is
its materialisation decision. Ours is one tree.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import COUNT, ONE, Filter, Join, Named, Node, Project, Scan, Sum, Version
from headwater.algebra.scalars import TRUE, Column, Scalar, call, conjunction, conjuncts, substitute, transform
from headwater.plan.blocks import cut
from headwater.plan.program import Map, Program
from headwater.plan.strategies.first_order import statements_of

NAME = "tree"
#: A block whose expressions grow beyond this when projections are seen through is left as it is.
_MOST_SCALARS = 2000


def tree(view: str, query: Node) -> Program:
    """Compile a view's query."""
    blocks = cut(view, query)
    number = len(blocks)
    maps: list[Map] = []
    for block in blocks:
        made = _Tree.of(block, view, number)
        maps += made
        number += len(made) - 1
    return Program(view, NAME, query, tuple(maps), tuple(one for made in maps for one in statements_of(made)))


@dataclass(frozen=True)
class _Flat:
    """A join seen as its leaves and conditions, and what its columns are made of."""

    leaves: tuple[Node, ...]
    conditions: tuple[Scalar, ...]
    columns: Mapping[str, Scalar]

    def through(self, scalar: Scalar) -> Scalar:
        return substitute(scalar, self.columns)


def _flatten(node: Node) -> _Flat:
    match node:
        case Join(left=left, right=right, condition=condition):
            a, b = _flatten(left), _flatten(right)
            both = _Flat(a.leaves + b.leaves, a.conditions + b.conditions, {**a.columns, **b.columns})
            return replace(both, conditions=both.conditions + _parts(both.through(condition)))
        case Filter(input=source, predicate=predicate):
            flat = _flatten(source)
            return replace(flat, conditions=flat.conditions + _parts(flat.through(predicate)))
        case Project(input=source, columns=columns):
            flat = _flatten(source)
            return replace(flat, columns={name: flat.through(scalar) for name, scalar in columns})
    return _Flat((node,), (), {f.name: Column(f.name, f.type) for f in node.schema})


def _parts(condition: Scalar) -> tuple[Scalar, ...]:
    return tuple(one for one in conjuncts(condition) if one != TRUE)


@dataclass
class _Part:
    """A node of the tree: some of the leaves joined.

    Attributes:
        leaves: their numbers.
        rows: where its entries are read.
        items: what is known of a row, by what it is over the leaves.
        terms: totals of terms, by their names; none for a leaf that is read as it is.
        count: how many rows an entry stands for.
    """

    leaves: frozenset[int]
    rows: Node
    items: dict[Scalar, Column]
    terms: dict[str, Column] = field(default_factory=dict)
    count: Scalar = ONE


class _Tree:
    """The maps of one block."""

    def __init__(self, view: str, number: int, sums: Sum, flat: _Flat) -> None:
        self._view, self._number = view, number
        self._flat = flat
        self._owner = {name: i for i, leaf in enumerate(flat.leaves) for name in leaf.column_names}
        self._keys = tuple((name, flat.through(key)) for name, key in sums.keys)
        self._terms = {name: flat.through(term) for name, term in sums.terms}
        self._late = [one for one in flat.conditions if may_raise(one) or not one.columns]
        self._waiting = [one for one in flat.conditions if one not in self._late]
        self._home = {name: self._home_of(term) for name, term in self._terms.items()}
        self.maps: list[Map] = []

    @staticmethod
    def of(block: Map, view: str, number: int) -> list[Map]:
        """The maps that a block needs, itself last."""
        present = block.present
        if present is None or present.sums.picks:
            return [block]
        flat = _flatten(present.sums.input)
        size = sum(1 for one in (*flat.conditions, *flat.columns.values()) for _ in one.walk())
        if len(flat.leaves) < 2 or size > _MOST_SCALARS:
            return [block]
        made = _Tree(view, number, present.sums, flat)
        top = made.build()
        return [*made.maps, Map(block.name, replace(present, input=top))]

    # -- what belongs where --------------------------------------------------------------------------------------------

    def _leaves_of(self, scalars: Iterable[Scalar]) -> frozenset[int]:
        return frozenset(self._owner[name] for one in scalars for name in one.columns)

    def _home_of(self, term: Scalar) -> int | None:
        """The leaf that a term can be added up at."""
        leaves = self._leaves_of([term])
        return next(iter(leaves)) if len(leaves) == 1 and not may_raise(term) else None

    def _needed(self, inside: frozenset[int]) -> list[Scalar]:
        """What must be known of the rows of some leaves once all conditions among them have been asked."""
        wanted: dict[Scalar, None] = {}

        def columns(scalar: Scalar) -> None:
            for one in scalar.walk():
                if isinstance(one, Column) and self._owner[one.name] in inside:
                    wanted.setdefault(one)

        for _, key in self._keys:
            leaves = self._leaves_of([key])
            if len(leaves) == 1 and leaves <= inside and not may_raise(key):
                wanted.setdefault(key)
            else:
                columns(key)
        for name, term in self._terms.items():
            if self._home[name] is None:
                columns(term)
        for one in self._waiting:
            if not self._leaves_of([one]) <= inside:
                columns(one)
        for one in self._late:
            columns(one)
        return list(wanted)

    # -- building ------------------------------------------------------------------------------------------------------

    def build(self) -> Sum:
        parts = [self._leaf(i) for i in range(len(self._flat.leaves))]
        while len(parts) > 2:
            a, b = min(combinations(parts, 2), key=self._rank)
            parts = [one for one in parts if one is not a and one is not b] + [self._joined(a, b)]
        return self._top(*parts)

    def _rank(self, pair: tuple[_Part, _Part]) -> tuple[bool, int, int]:
        """Connected ones first, then the fewest columns to group by."""
        a, b = pair
        both = a.leaves | b.leaves
        connected = any(self._leaves_of([one]) <= both for one in self._between(a, b))
        return not connected, len(self._needed(both)), len(both)

    def _between(self, a: _Part, b: _Part) -> list[Scalar]:
        both = a.leaves | b.leaves
        found = [one for one in self._waiting if self._leaves_of([one]) <= both]
        return [one for one in found if not any(self._leaves_of([one]) <= side.leaves for side in (a, b))]

    def _leaf(self, i: int) -> _Part:
        leaf, me = self._flat.leaves[i], frozenset({i})
        own = [one for one in self._waiting if self._leaves_of([one]) == me]
        terms = {name: term for name, term in self._terms.items() if self._home[name] == i}
        if isinstance(leaf, Scan) and not own and not terms:
            return _Part(me, leaf, {Column(f.name, f.type): Column(f.name, f.type) for f in leaf.schema})
        rows = Filter(leaf, conjunction(own)) if own else leaf
        return self._stored(me, Sum(rows, self._named(self._needed(me)), tuple(terms.items())))

    def _joined(self, a: _Part, b: _Part) -> _Part:
        both = a.leaves | b.leaves
        keys = self._needed(both)
        rows = Join(a.rows, b.rows, self._condition(a, b))
        items = a.items | b.items
        named = tuple((name, _over(key, items)) for name, key in self._named(keys))
        terms = tuple((name, self._term(name, a, b)) for name in self._terms if self._home[name] in both)
        return self._stored(both, Sum(rows, named, terms, (), _product(a.count, b.count)), keys)

    def _top(self, a: _Part, b: _Part) -> Sum:
        rows: Node = Join(a.rows, b.rows, self._condition(a, b))
        items = a.items | b.items
        if self._late:
            rows = Filter(rows, conjunction([_over(one, items) for one in self._late]))
        named = tuple((name, _over(key, items)) for name, key in self._keys)
        terms = tuple((name, self._term(name, a, b)) for name in self._terms)
        return Sum(rows, named, terms, (), _product(a.count, b.count))

    def _condition(self, a: _Part, b: _Part) -> Scalar:
        return conjunction([_over(one, a.items | b.items) for one in self._between(a, b)])

    def _term(self, name: str, a: _Part, b: _Part) -> Scalar:
        """A term of a join: what it adds up to on its side, times the rows of the other."""
        mine, other = (b, a) if self._home[name] in b.leaves else (a, b)
        if name in mine.terms:
            return call("carry", mine.terms[name], other.count)
        value = _over(self._terms[name], a.items | b.items)
        count = _product(a.count, b.count)
        return value if count == ONE else call("weigh", value, count)

    def _named(self, keys: list[Scalar]) -> tuple[Named, ...]:
        """Names for the keys of a map: a column's own, if no term has it."""
        return tuple(
            (key.name if isinstance(key, Column) and key.name not in self._terms else f"#e{i}", key)
            for i, key in enumerate(keys, 1)
        )

    def _stored(self, leaves: frozenset[int], sums: Sum, keys: list[Scalar] | None = None) -> _Part:
        """A node as a map, and how it is read."""
        self._number += 1
        name, alias = f"{self._view}${self._number}", f"#t{self._number}"
        self.maps.append(Map(name, sums))
        scan = Scan(name, alias, sums.schema, Version.STORED)
        meant = keys if keys is not None else [key for _, key in sums.keys]
        items = {key: scan.column(f"{alias}.{own}") for key, (own, _) in zip(meant, sums.keys, strict=True)}
        terms = {own: scan.column(f"{alias}.{own}") for own, _ in sums.terms}
        return _Part(leaves, scan, items, terms, scan.column(f"{alias}.{COUNT}"))


def _over(scalar: Scalar, items: Mapping[Scalar, Column]) -> Scalar:
    return transform(scalar, items.get)


def _product(a: Scalar, b: Scalar) -> Scalar:
    if ONE in (a, b):
        return b if a == ONE else a
    return call("carry", a, b)
