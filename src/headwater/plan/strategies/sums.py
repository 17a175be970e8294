"""A sum over a join, taken apart: what both `tree` and `viewlet` build their maps from.

A `Block` is the whole sum. A `Part` is a set of its leaves as a statement reads them: a relation as it is, or a map
that has them joined and added up by what is still needed of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

from headwater import types as t
from headwater.algebra.clock import reads_clock
from headwater.algebra.folds import Pick
from headwater.algebra.functions import may_raise
from headwater.algebra.joins import FlatJoin, flatten
from headwater.algebra.nodes import COUNT, ONE, Filter, Join, Node, Scan, Sum, Version, total_of
from headwater.algebra.scalars import TRUE, Call, Column, Literal, Scalar, call, cast, conjunction, transform
from headwater.plan.polynomials import ALWAYS, CONSTANT, Factors, Monomial, columns_of, polynomial

#: A block whose expressions grow beyond this when projections are seen through is left as it is.
_MOST_SCALARS = 2000
Leaves = frozenset[int]
#: Names of totals, which no key can have.
_TOTALS = rf"{COUNT}|s\d+"


@dataclass
class Part:
    """Some leaves of a block as a statement reads them.

    Attributes:
        leaves: which.
        rows: where they are read.
        items: what is known of a row, by what it is over the leaves.
        totals: of products of factors; the empty product is the count. None for a leaf that is read as it is.
    """

    leaves: Leaves
    rows: Node
    items: Mapping[Scalar, Column]
    totals: Mapping[Factors, Column] | None = None

    @property
    def count(self) -> Scalar:
        return ONE if self.totals is None else self.totals[()]

    def total(self, factors: Factors) -> Scalar:
        if self.totals is not None:
            return self.totals[factors]
        out: Scalar = ONE
        for _, factor in factors:
            value = over(factor, self.items)
            out = times(out, value if _is_total(value) else call("weigh", value, ONE))
        return out


class Block:
    """A sum over a join of at least two leaves.

    Attributes:
        leaves: what is joined.
        keys: what it is grouped by, over the leaves' columns.
        polynomials: of the terms, by name; None for a term that can only be computed from all its columns.
        count: what a joined row counts for.
        late: conditions that may raise, read the clock, or read nothing: asked at the end.
        waiting: all other conditions.
    """

    def __init__(self, sums: Sum, flat: FlatJoin) -> None:
        self.leaves = flat.leaves
        self._factors: dict[Leaves, list[Factors]] = {}
        self._ranks: dict[Scalar, tuple[str, str]] = {}
        self._owner = {name: i for i, leaf in enumerate(flat.leaves) for name in leaf.column_names}
        self.keys = tuple((name, flat.through(key)) for name, key in sums.keys)
        self._terms = {name: flat.through(term) for name, term in sums.terms}
        self._count = flat.through(sums.count)
        self.polynomials = {name: polynomial(term, self.leaves_of) for name, term in self._terms.items()}
        self._leave_to_columns()
        found = ALWAYS if sums.count == ONE else polynomial(call("carry", self._count, ONE), self.leaves_of)
        assert found is not None  # a column
        self.count = found
        self.late = [one for one in flat.conditions if may_raise(one) or reads_clock(one) or not one.columns]
        self.waiting = [one for one in flat.conditions if one not in self.late]

    @staticmethod
    def of(sums: Sum) -> Block | None:
        """The block of a sum; None if it joins nothing, or is no sum of changes."""
        block = Block.of_any(sums)
        return block if block is not None and len(block.leaves) > 1 else None

    @staticmethod
    def of_any(sums: Sum) -> Block | None:
        """The same for a sum that may be over a single leaf."""
        if sums.picks:
            return None
        flat = flatten(sums.input)
        return Block(sums, flat) if flat.size <= _MOST_SCALARS else None

    def _leave_to_columns(self) -> None:
        """A term of columns that must be known anyway is computed from them."""
        known = {name for one in self._unexpanded() for name in one.columns}
        for name, term in self._terms.items():
            if known and term.columns <= known:
                self.polynomials[name] = None

    def _unexpanded(self) -> list[Scalar]:
        return [self._terms[name] for name, monomials in self.polynomials.items() if monomials is None]

    @property
    def all(self) -> Leaves:
        return frozenset(range(len(self.leaves)))

    def without_polynomials(self) -> Block:
        """The same block with each term of several leaves computed from its columns."""
        self.polynomials = {
            name: found if found is not None and len(self.leaves_of(self._terms[name])) < 2 else None
            for name, found in self.polynomials.items()
        }
        self._leave_to_columns()
        self._factors.clear()
        return self

    def leaves_of(self, scalar: Scalar) -> Leaves:
        return frozenset(self._owner[name] for name in scalar.columns)

    @property
    def wanted(self) -> tuple[Scalar, ...]:
        """What must be known of a joined row at the end: for keys, terms and conditions that are computed there."""
        found: dict[Scalar, None] = {}
        for _, key in self.keys:
            whole = len(self.leaves_of(key)) == 1 and not may_raise(key)
            found |= dict.fromkeys([key] if whole else columns_of(key))
        for one in (*self._unexpanded(), *self.late):
            found |= dict.fromkeys(columns_of(one))
        return tuple(found)

    def needed(self, inside: Leaves, outside: Leaves, wanted: Iterable[Scalar]) -> tuple[Scalar, ...]:
        """What must be known of some leaves joined, to join them with all of `outside` and then know what is wanted."""
        found = {one: None for one in wanted if self.leaves_of(one) <= inside}
        for condition in self.waiting:
            leaves = self.leaves_of(condition)
            if leaves <= outside and not leaves <= inside:
                found |= {one: None for one in columns_of(condition) if self.leaves_of(one) <= inside}
        return tuple(sorted(found, key=self._rank))

    def _rank(self, scalar: Scalar) -> tuple[str, str]:
        """An order that does not depend on the aliases a query uses."""
        if scalar not in self._ranks:
            leaves = [self.leaves[i] for i in sorted(self.leaves_of(scalar))]
            names = [leaf.relation if isinstance(leaf, Scan) else "" for leaf in leaves]
            self._ranks[scalar] = ", ".join(names), str(transform(scalar, _bare))
        return self._ranks[scalar]

    def between(self, parts: Sequence[Part]) -> list[Scalar]:
        """The conditions among some parts that no part has asked by itself."""
        everything = frozenset().union(*(one.leaves for one in parts))
        found = [one for one in self.waiting if self.leaves_of(one) <= everything]
        return [one for one in found if not any(self.leaves_of(one) <= part.leaves for part in parts)]

    def factors(self, leaves: Leaves) -> list[Factors]:
        """The products whose totals are needed of some leaves, without the empty one; in an order of its own."""
        if leaves not in self._factors:
            found = {one.within(leaves) for one in self._monomials()} - {()}
            ordered = sorted(found, key=lambda factors: [self._rank(factor) for _, factor in factors])
            self._factors[leaves] = ordered
        return self._factors[leaves]

    def _monomials(self) -> Iterator[Monomial]:
        yield from self.count
        for monomials in self.polynomials.values():
            yield from monomials or ()

    # -- reading -------------------------------------------------------------------------------------------------------

    def own(self, leaf: int) -> list[Scalar]:
        """The conditions that are about one leaf alone."""
        return [one for one in self.waiting if self.leaves_of(one) == {leaf}]

    def reads_as_it_is(self, leaf: int) -> bool:
        """Whether a map of this leaf would only repeat what is stored: a table or a view, unfiltered, or a block.

        What is added up of a table by few columns is smaller than the table; of a block it is not, and a condition on
        it is its HAVING.
        """
        node = self.leaves[leaf]
        if not isinstance(node, Scan) or node.grows:
            return False
        return node.alias.startswith("#") or not (self.own(leaf) or self.factors(frozenset({leaf})))

    def raw(self, leaf: int, rows: Node | None = None) -> Part:
        """A leaf read as it is, or its change."""
        node = self.leaves[leaf] if rows is None else rows
        own = self.own(leaf)
        items: dict[Scalar, Column] = {Column(f.name, f.type): Column(f.name, f.type) for f in node.schema}
        return Part(frozenset({leaf}), Filter(node, conjunction(own)) if own else node, items)

    def definition(self, leaves: Leaves, keys: tuple[Scalar, ...]) -> Sum:
        """The map of some leaves joined, by these keys."""
        parts = [self.raw(i) for i in sorted(leaves, key=self._order)]
        return self.combined(parts, keys)

    def _order(self, leaf: int) -> tuple[str, int]:
        node = self.leaves[leaf]
        return (node.relation if isinstance(node, Scan) else "", leaf)

    def combined(self, parts: Sequence[Part], keys: tuple[Scalar, ...]) -> Sum:
        """Parts joined and added up by these keys: with the totals that are needed of them together."""
        leaves = frozenset().union(*(one.leaves for one in parts))
        items = {scalar: column for one in parts for scalar, column in one.items.items()}
        named = tuple((name, over(key, items)) for name, key in zip(names_of(keys), keys, strict=True))
        terms = tuple(
            (f"s{i}", self._plain(parts, factors, items)) for i, factors in enumerate(self.factors(leaves), 1)
        )
        return Sum(self._joined(parts, items), named, terms, (), _product(one.count for one in parts))

    def _plain(self, parts: Sequence[Part], factors: Factors, items: Mapping[Scalar, Column]) -> Scalar:
        """The total of a product of factors; a factor of rows that are read as they are stays a plain term."""
        if len(factors) == 1 and all(one.totals is None for one in parts):
            return over(factors[0][1], items)
        return _as_term(self._total(parts, factors))

    def whole(self, parts: Sequence[Part]) -> Sum:
        """All parts joined: the block itself."""
        items = {scalar: column for one in parts for scalar, column in one.items.items()}
        rows = self._joined(parts, items)
        if self.late:
            rows = Filter(rows, conjunction([over(one, items) for one in self.late]))
        keys = tuple((name, over(key, items)) for name, key in self.keys)
        terms = tuple((name, self._term(name, parts, items)) for name in self._terms)
        return Sum(rows, keys, terms, (), self._sum(self.count, parts, ONE.type, as_term=False))

    def _joined(self, parts: Sequence[Part], items: Mapping[Scalar, Column]) -> Node:
        rows, condition = parts[0].rows, conjunction([over(one, items) for one in self.between(parts)])
        for i, part in enumerate(parts[1:], 1):
            rows = Join(rows, part.rows, condition if i == len(parts) - 1 else TRUE)
        return rows

    def _term(self, name: str, parts: Sequence[Part], items: Mapping[Scalar, Column]) -> Scalar:
        monomials = self.polynomials[name]
        term = self._terms[name]
        if monomials is None:
            value, count = over(term, items), _product(one.count for one in parts)
            if count == ONE:
                return value
            return call("carry" if _is_total(value) else "weigh", value, count)
        if all(one.totals is None for one in parts):
            return over(term, items)
        return self._sum(monomials, parts, total_of(term))

    def _sum(self, monomials: Sequence[Monomial], parts: Sequence[Part], into: t.Type, as_term: bool = True) -> Scalar:
        ordered = sorted(monomials, key=lambda one: -one.sign)
        out: Scalar | None = None
        for one in ordered:
            value = self._total(parts, one.factors)
            if out is None:
                out = value if one.sign > 0 else call("carry", value, Literal(-1, t.BIGINT))
            else:
                out = call("total_plus" if one.sign > 0 else "total_minus", out, value)
        assert out is not None
        out = out if out.type == into else cast(out, into)
        return _as_term(out) if as_term else out

    def _total(self, parts: Sequence[Part], factors: Factors) -> Scalar:
        monomial = Monomial(1, factors)
        out = _product(one.total(monomial.within(one.leaves)) for one in parts)
        for leaf, constant in factors:
            if leaf == CONSTANT:
                out = times(out, call("weigh", constant, ONE))
        return out


def names_of(keys: Sequence[Scalar]) -> list[str]:
    """Names for the keys of a map: a column's own without its alias, made different where two are alike."""
    taken: set[str] = set()
    out: list[str] = []
    for key in keys:
        text = key.name.rpartition(".")[2] if isinstance(key, Column) else "key"
        text = "key" if re.fullmatch(_TOTALS, text.lower()) else text
        free = (name for name in chain([text], (f"{text}_{n}" for n in count(2))) if name.lower() not in taken)
        out.append(next(free))
        taken.add(out[-1].lower())
    return out


def stored(name: str, alias: str, sums: Sum, leaves: Leaves, keys: tuple[Scalar, ...], factors: list[Factors]) -> Part:
    """A map as it is read: under an alias that no query can use."""
    scan = Scan(name, alias, sums.schema, Version.STORED)
    items = {key: scan.column(f"{alias}.{own}") for key, (own, _) in zip(keys, sums.keys, strict=True)}
    totals: dict[Factors, Column] = {(): scan.column(f"{alias}.{COUNT}")}
    for one, (own, _) in zip(factors, sums.terms, strict=True):
        totals[one] = scan.column(f"{alias}.{own}")
    return Part(leaves, scan, items, totals)


def again(sums: Sum, entries: Node, read: Mapping[str, Column]) -> Sum:
    """A sum from the entries of a map that has it, several to a key perhaps; `read` are their columns, by its names."""
    keys = tuple((name, read[name]) for name, _ in sums.keys)
    terms = tuple((name, call("carry", read[name], ONE)) for name, _ in sums.terms)
    picks = tuple((name, Pick(pick.function, (read[name],))) for name, pick in sums.picks)
    return Sum(entries, keys, terms, picks, read[COUNT])


def over(scalar: Scalar, items: Mapping[Scalar, Column]) -> Scalar:
    """A scalar over the leaves' columns, over what is known of a row."""
    return transform(scalar, items.get)


def times(a: Scalar, b: Scalar) -> Scalar:
    """The product of two totals, or counts."""
    if ONE in (a, b):
        return b if a == ONE else a
    return call("carry", b, a) if a.type == t.BIGINT else call("carry", a, b)


def _product(scalars: Iterable[Scalar]) -> Scalar:
    out: Scalar = ONE
    for one in scalars:
        out = times(out, one)
    return out


def _is_total(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function in ("carry", "weigh", "total_plus", "total_minus")


def _as_term(total: Scalar) -> Scalar:
    """A total as a term of a sum, which leaves it in its own type."""
    return total if _is_total(total) or total_of(total) == total.type else call("carry", total, ONE)


def _bare(scalar: Scalar) -> Scalar | None:
    return Column(scalar.name.rpartition(".")[2], scalar.type) if isinstance(scalar, Column) else None
