"""A join seen as a whole: what is joined, under which conditions, and what its columns are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.algebra.nodes import Filter, Join, Node, Project, Values
from headwater.algebra.scalars import TRUE, Call, Column, Scalar, conjunction, conjuncts, substitute

#: Equality, of which NULL is TRUE to neither or to both.
EQUALITIES = ("=", "<=>")
#: Comparisons, and what they are with their sides exchanged.
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class FlatJoin:
    """Joins, filters and projections above some leaves, as one.

    Attributes:
        leaves: what is joined; anything but joins, filters and projections.
        conditions: over the leaves' columns; all hold.
        columns: each column of the whole, over the leaves' columns.
    """

    leaves: tuple[Node, ...]
    conditions: tuple[Scalar, ...]
    columns: Mapping[str, Scalar]

    def through(self, scalar: Scalar) -> Scalar:
        """A scalar over the columns of the whole, over those of the leaves."""
        return substitute(scalar, self.columns)

    @property
    def size(self) -> int:
        """How many scalars it has: projections over projections may grow without bound when they are seen through."""
        return sum(1 for one in (*self.conditions, *self.columns.values()) for _ in one.walk())


def flatten(node: Node) -> FlatJoin:
    """Everything down to the first node that is no join, filter or projection."""
    match node:
        case Join(left=left, right=right, condition=condition):
            a, b = flatten(left), flatten(right)
            both = FlatJoin(a.leaves + b.leaves, a.conditions + b.conditions, {**a.columns, **b.columns})
            return replace(both, conditions=both.conditions + tuple(conjuncts(both.through(condition))))
        case Filter(input=source, predicate=predicate):
            flat = flatten(source)
            return replace(flat, conditions=flat.conditions + tuple(conjuncts(flat.through(predicate))))
        case Project(input=source, columns=columns):
            flat = flatten(source)
            return replace(flat, columns={name: flat.through(scalar) for name, scalar in columns})
    return FlatJoin((node,), (), {f.name: Column(f.name, f.type) for f in node.schema})


def joined(leaves: Sequence[Node], conditions: Iterable[Scalar]) -> Node:
    """All leaves joined in order, filtered by all conditions."""
    node = leaves[0] if leaves else Values((), ((),))
    for other in leaves[1:]:
        node = Join(node, other, TRUE)
    wanted = conjunction(list(conditions))
    return node if wanted == TRUE else Filter(node, wanted)


def equates(condition: Scalar) -> tuple[Scalar, Scalar] | None:
    """The two sides of an equality."""
    if isinstance(condition, Call) and condition.function in EQUALITIES:
        return condition.args[0], condition.args[1]
    return None
