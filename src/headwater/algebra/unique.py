"""Which columns tell the rows of a tree apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headwater.algebra.joins import equates
from headwater.algebra.nodes import Filter, Join, Keep, Node, Present, Project, Values
from headwater.algebra.scalars import Call, Column, Scalar, conjuncts

#: So many sets of columns are looked at and not more; a join may have the product of its inputs'.
_MOST = 8


Sets = list[frozenset[str]]


def unique_sets(node: Node) -> Sets:
    """Sets of columns in which no two rows agree (NULL agrees with NULL), and no row is there twice."""
    return Unique().sets(node)


class Unique:
    """Looks for such sets, of each node once: a tree may hold the same one in many places."""

    def __init__(self) -> None:
        self._known: dict[int, Sets] = {}

    def sets(self, node: Node) -> Sets:
        """Those of a node, the first few that are found."""
        if id(node) not in self._known:
            self._known[id(node)] = list(dict.fromkeys(self.find(node)))[:_MOST]
        return self._known[id(node)]

    def find(self, node: Node) -> Iterator[frozenset[str]]:
        """All of them, perhaps several times."""
        match node:
            case Values(rows=rows) if len(rows) <= 1:
                yield frozenset()
            case Present(outputs=outputs):
                yield from renamed([frozenset(name for name, _ in node.sums.keys)], outputs)
            case Filter(input=source) | Keep(input=source):
                yield from self.sets(source)
            case Project(input=source, columns=columns):
                yield from renamed(self.sets(source), columns)
            case Join(left=left, right=right, condition=condition):
                of_left, of_right = self.sets(left), self.sets(right)
                yield from _pairs(of_left, of_right, bound(condition, left, right))
                yield from _pairs(of_right, of_left, bound(condition, right, left))


def renamed(sets: Iterable[frozenset[str]], columns: tuple[tuple[str, Scalar], ...]) -> Iterator[frozenset[str]]:
    """Of some sets of columns those that go on whole, under the names under which they do; structs hold fields."""
    names = dict(_fields(columns))
    names |= {scalar.name: name for name, scalar in reversed(columns) if isinstance(scalar, Column)}
    for one in sets:
        if one <= names.keys():
            yield frozenset(names[name] for name in one)


def _fields(columns: tuple[tuple[str, Scalar], ...]) -> Iterator[tuple[str, str]]:
    """Columns that are fields of structs, and the names of the structs."""
    for name, scalar in columns:
        if isinstance(scalar, Call) and scalar.function == "named_struct":
            yield from ((part.name, name) for part in scalar.args if isinstance(part, Column))


def _pairs(mine: Sets, others: Sets, bound: frozenset[str]) -> Iterator[frozenset[str]]:
    """What tells pairs apart: one side is enough where it says which row of the other it meets."""
    for one in mine:
        for other in others:
            yield one if other <= bound else one | other


def bound(condition: Scalar, a: Node, b: Node) -> frozenset[str]:
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
