"""Trees that read parts: a reference `M[a .. b]` is a filter of M by its column PART between two bounds.

The bounds are functions of the part that is evaluated, so they are kept beside the tree, in a `PartQuery`, and stand in
it by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater import types as t
from headwater.algebra.nodes import (
    Explode,
    Filter,
    Join,
    Keep,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Union,
    scalars,
    transform,
)
from headwater.algebra.scalars import Call, Column, Literal, Scalar, call, conjunction, conjuncts
from headwater.algebra.scalars import transform as transform_scalar
from headwater.algebra.simplify.scalars_of import map_scalars
from headwater.algebra.subscripts import Subscript, holders

#: The column of every relation with parts that holds the subscript, and what is computed from it.
PART, PART_TIMESTAMP = "PART", "PART_TIMESTAMP"


@dataclass(frozen=True)
class Reference:
    """`relation[first .. last]`, in the subscript of the part that is evaluated."""

    relation: str
    first: Subscript
    last: Subscript

    def __str__(self) -> str:
        inside = str(self.first) if self.first == self.last else f"{self.first} .. {self.last}"
        return f"{self.relation}[{inside}]"


@dataclass(frozen=True)
class PartQuery:
    """What a part holds.

    Attributes:
        query: over whole relations and parts of relations; its columns are those of the view, without PART.
        references: the parts that it reads; the bounds of the n-th have the numbers 2n and 2n + 1 in the query.
    """

    query: Node
    references: tuple[Reference, ...]

    def bounds(self, subscript: int) -> list[int]:
        """The bounds of its references for a part."""
        return [one.at(subscript) for each in self.references for one in (each.first, each.last)]

    @cached_property
    def whole(self) -> frozenset[str]:
        """Relations that it reads whole, perhaps beside parts of them."""
        filters = [node for node in self.query.walk() if isinstance(node, Filter)]
        named = {_compared(condition) for one in filters for condition in conjuncts(one.predicate)}
        scans = [node for node in self.query.walk() if isinstance(node, Scan)]
        return frozenset(one.relation for one in scans if f"{one.alias}.{PART}" not in named)

    @cached_property
    def is_empty_over_nothing(self) -> bool:
        """Whether a part is empty if all parts that it reads are."""
        return _is_empty(self.query, self.whole)

    @cached_property
    def is_blind(self) -> bool:
        """Whether it has the same rows wherever the same rows lie in other parts: it does not look at PART.

        What is left out are the conditions that say which parts a reference reads.
        """
        subscripts = {f"{node.alias}.{PART}" for node in self.query.walk() if isinstance(node, Scan)}
        for node in self.query.walk():
            for scalar in scalars(node):
                parts = conjuncts(scalar) if isinstance(node, Filter) else [scalar]
                for one in parts:
                    if _compared(one) is None and any(
                        isinstance(each, Column) and each.name in subscripts for each in one.walk()
                    ):
                        return False
        return True

    def read_by(self, subscript: int) -> Iterator[tuple[str, range]]:
        """The parts that a part needs, by relation."""
        for one in self.references:
            yield one.relation, range(one.first.at(subscript), one.last.at(subscript) + 1)

    def affected(self, relation: str, part: int, begin: int, end: int) -> set[int]:
        """The parts from `begin` to before `end` that read a part of a relation."""
        found: set[int] = set()
        for one in self.references:
            if one.relation == relation:
                found.update(holders(one.first, one.last, part, begin, end))
        return found

    def to_dict(self) -> dict[str, object]:
        return {
            "query": str(self.query),
            "references": [[one.relation, one.first.to_json(), one.last.to_json()] for one in self.references],
        }


def _compared(condition: Scalar) -> str | None:
    """The column that a condition compares with a bound, if it does nothing else."""
    match condition:
        case Call(args=(Column(name=part), Call(function="bound"))):
            return part
        case Call(args=(Call(function="bound"), Column(name=part))):
            return part
    return None


def bound(place: int) -> Scalar:
    """The bound with this number."""
    return call("bound", Literal(place, t.INT))


def between(scan: Scan, place: int, single: bool) -> Node:
    """The rows of the parts that a reference names; its bounds have the numbers `place` and `place + 1`.

    Args:
        scan: of the relation.
        place: the number of the first bound.
        single: there is one part, so that the second bound is not needed.
    """
    part = scan.column(f"{scan.alias}.{PART}")
    if single:
        return Filter(scan, call("=", part, bound(place)))
    return Filter(scan, conjunction([call(">=", part, bound(place)), call("<=", part, bound(place + 1))]))


def at_part(node: Node, bounds: Sequence[int]) -> Node:
    """The tree for one part: its bounds are constants."""

    def value(scalar: Scalar) -> Scalar | None:
        match scalar:
            case Call(function="bound", args=(Literal(value=int(place)),)):
                return Literal(bounds[place], t.BIGINT)
        return None

    return transform(node, lambda one: map_scalars(one, lambda scalar: transform_scalar(scalar, value)))


def _is_empty(node: Node, whole: frozenset[str]) -> bool:
    """Whether a tree has no rows if the relations that it reads have none, but for some."""
    match node:
        case Scan(relation=relation):
            return relation not in whole
        case Present():
            return bool(node.sums.keys) and _is_empty(node.sums.input, whole)
        case Filter() | Project() | Negate() | Repeat() | Keep() | Explode() | Over():
            return _is_empty(node.children[0], whole)
        case Join():
            return any(_is_empty(one, whole) for one in node.children)
        case Outer(keeps_left=left, keeps_right=right) if not (left and right):
            return _is_empty(node.children[0 if left else 1], whole)
        case Union() | Outer():
            return all(_is_empty(one, whole) for one in node.children)
    return False
