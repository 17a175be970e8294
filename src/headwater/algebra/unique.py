"""Which columns tell the rows of a tree apart."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.algebra.joins import equates
from headwater.algebra.nodes import Filter, Join, Keep, Node, Present, Project, Values
from headwater.algebra.scalars import Column, Scalar, conjuncts

#: So many sets of columns are looked at and not more; a join may have the product of its inputs'.
_MOST = 8


Sets = list[frozenset[str]]


def unique_sets(node: Node, known: dict[int, Sets] | None = None) -> Sets:
    """Sets of columns in which no two rows agree (NULL agrees with NULL), and no row is there twice.

    Args:
        node: the tree.
        known: what was found before, by the id of a node; a tree may hold the same node in many places.
    """
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = list(dict.fromkeys(_sets(node, known)))[:_MOST]
    return known[id(node)]


def _sets(node: Node, known: dict[int, Sets]) -> Iterator[frozenset[str]]:
    match node:
        case Values(rows=rows) if len(rows) <= 1:
            yield frozenset()
        case Present(outputs=outputs):
            shown = _names(outputs)
            if all(name in shown for name, _ in node.sums.keys):
                yield frozenset(shown[name] for name, _ in node.sums.keys)
        case Filter(input=source) | Keep(input=source):
            yield from unique_sets(source, known)
        case Project(input=source, columns=columns):
            kept = _names(columns)
            for one in unique_sets(source, known):
                if one <= kept.keys():
                    yield frozenset(kept[name] for name in one)
        case Join(left=left, right=right, condition=condition):
            of_left, of_right = unique_sets(left, known), unique_sets(right, known)
            yield from _pairs(of_left, of_right, _bound(condition, left, right))
            yield from _pairs(of_right, of_left, _bound(condition, right, left))


def _pairs(mine: Sets, others: Sets, bound: frozenset[str]) -> Iterator[frozenset[str]]:
    """What tells pairs apart: one side is enough where it says which row of the other it meets."""
    for one in mine:
        for other in others:
            yield one if other <= bound else one | other


def _names(columns: tuple[tuple[str, Scalar], ...]) -> dict[str, str]:
    """Under which name a column goes on."""
    return {scalar.name: name for name, scalar in reversed(columns) if isinstance(scalar, Column)}


def _bound(condition: Scalar, a: Node, b: Node) -> frozenset[str]:
    """Columns of b that equal something of a row of a."""
    found = set()
    for part in conjuncts(condition):
        for mine, other in _both_ways(part):
            if isinstance(other, Column) and other.name in b.column_types and mine.columns <= a.column_types.keys():
                found.add(other.name)
    return frozenset(found)


def _both_ways(part: Scalar) -> Iterator[tuple[Scalar, Scalar]]:
    sides = equates(part)
    if sides is not None:
        yield sides
        yield sides[1], sides[0]
