"""Parts of a join that no condition links, so that what is about one of them need not be about their product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import Filter, Join, Node
from headwater.algebra.scalars import TRUE, Scalar, conjunction, conjuncts


@dataclass(frozen=True)
class _Part:
    """Leaves of a join that conditions link, and those conditions."""

    leaves: tuple[Node, ...]
    conditions: tuple[Scalar, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for leaf in self.leaves for name in leaf.column_names)

    @property
    def node(self) -> Node:
        joined = reduce(lambda a, b: Join(a, b, TRUE), self.leaves)
        return Filter(joined, conjunction(list(self.conditions))) if self.conditions else joined


def extend_part(node: Node, needed: frozenset[str], extend: Callable[[Node], Node]) -> Node:
    """A join with columns added to the part that has the needed ones; to all of it, if no part has them all.

    Args:
        node: a join, perhaps filtered, or anything else.
        needed: columns that the new ones depend on.
        extend: adds the new columns to a node.
    """
    leaves, conditions = _flatten(node)
    parts, rest = _parts(leaves, conditions)
    mine = next((part for part in parts if needed and needed <= part.columns), None)
    if mine is None or len(parts) == 1:
        return extend(node)
    others = [part.node for part in parts if part is not mine]
    whole = reduce(lambda a, b: Join(a, b, TRUE), others, extend(mine.node))
    return Filter(whole, conjunction(rest)) if rest else whole


def _flatten(node: Node) -> tuple[list[Node], list[Scalar]]:
    """The leaves of a join, and all its conditions."""
    match node:
        case Filter(input=Filter() | Join() as below, predicate=predicate):
            leaves, conditions = _flatten(below)
            return leaves, conditions + conjuncts(predicate)
        case Join(left=left, right=right, condition=condition):
            (a, first), (b, second) = _flatten(left), _flatten(right)
            return a + b, first + second + conjuncts(condition)
    return [node], []


def _parts(leaves: list[Node], conditions: list[Scalar]) -> tuple[list[_Part], list[Scalar]]:
    """Leaves that conditions link, together; and the conditions that belong to no part, or may raise."""
    found = [_Part((leaf,), ()) for leaf in leaves]
    rest: list[Scalar] = []
    for condition in conditions:
        linked = [part for part in found if condition.columns & part.columns]
        if may_raise(condition) or not linked:
            rest.append(condition)
            continue
        together = _Part(
            tuple(leaf for part in linked for leaf in part.leaves),
            (*(one for part in linked for one in part.conditions), condition),
        )
        found = [together if part is linked[0] else part for part in found if part not in linked[1:]]
    return found, rest
