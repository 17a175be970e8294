"""Trees under other names: what a column is called makes no difference, and this is how that is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

from headwater.algebra.nodes import (
    During,
    Explode,
    Filter,
    Join,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    rebuild,
    transform,
)
from headwater.algebra.scalars import Column, Scalar, substitute


def canonical(node: Node) -> str:
    """The text of a tree in which every name that a query or a compiler has chosen is numbered instead.

    Trees with the same text have the same columns in the same order, though under other names.
    """
    numbers = count(1)
    numbered = _Renaming(lambda scan: replace(scan, alias=f"r{next(numbers)}"), lambda _: f"c{next(numbers)}")
    return str(numbered.node(node))


def reread(node: Node, scan: Callable[[Scan], Scan]) -> Node:
    """The tree over other scans, whose columns stand for the old ones in order; names that the tree gives stay."""
    return _Renaming(scan, None).node(node)


def with_definitions(node: Node, definitions: Mapping[str, Node]) -> Node:
    """The tree with trees in place of the scans of some relations, and so in these.

    What stands in place of a scan is known by the names of both, so that it can stand in several places.
    """

    def replaced(one: Node) -> Node:
        if not isinstance(one, Scan) or one.relation not in definitions:
            return one
        outer = one.alias.lstrip("#")
        rows = with_definitions(definitions[one.relation], definitions)

        def both(name: str) -> str:
            return f"#{outer}_{name.lstrip('#')}"

        rows = _Renaming(lambda scan: replace(scan, alias=both(scan.alias)), both).node(rows)
        names = zip(one.column_names, rows.schema, strict=True)
        return Project(rows, tuple((name, rows.column(f.name)) for name, f in names))

    return transform(node, replaced)


class _Renaming:
    def __init__(self, scan: Callable[[Scan], Scan], fresh: Callable[[str], str] | None) -> None:
        self._scan = scan
        self._fresh = fresh
        self._done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        if id(node) not in self._done:
            self._done[id(node)] = self._renamed(node)
        return self._done[id(node)]

    def _renamed(self, node: Node) -> Node:
        if isinstance(node, Scan):
            return self._scan(node)
        children = tuple(self.node(child) for child in node.children)
        names: dict[str, Scalar] = {}
        for old, new in zip(node.children, children, strict=True):
            for a, b in zip(old.schema, new.schema, strict=True):
                names[a.name] = Column(b.name, a.type)
        if isinstance(node, Union):
            return Union(tuple(_under(one, children[0].column_names) for one in children))
        if isinstance(node, Repeat):
            times = names[node.times]
            assert isinstance(times, Column)
            return Repeat(children[0], times.name)
        return self._own_names(self._over(node, children, names))

    @staticmethod
    def _over(node: Node, children: tuple[Node, ...], names: dict[str, Scalar]) -> Node:
        """The node over its new children. Its scalars have other names first, so it is built in one go."""

        def rewrite(scalar: Scalar) -> Scalar:
            return substitute(scalar, names)

        match node:
            case Filter(predicate=predicate):
                return Filter(children[0], rewrite(predicate))
            case Join(condition=condition):
                return Join(children[0], children[1], rewrite(condition))
            case Outer(condition=condition):
                return replace(node, left=children[0], right=children[1], condition=rewrite(condition))
            case During(starts=starts, ends=ends):
                return During(children[0], rewrite(starts), rewrite(ends))
            case Explode(source=source):
                return replace(node, input=children[0], source=rewrite(source))
            case Project(columns=columns):
                return Project(children[0], tuple((name, rewrite(scalar)) for name, scalar in columns))
            case Sum(keys=keys, terms=terms, picks=picks, count=counted):
                return Sum(
                    children[0],
                    tuple((name, rewrite(scalar)) for name, scalar in keys),
                    tuple((name, rewrite(scalar)) for name, scalar in terms),
                    tuple((name, one.map(rewrite)) for name, one in picks),
                    rewrite(counted),
                )
            case Present(outputs=outputs, having=having):
                return Present(children[0], tuple((name, rewrite(scalar)) for name, scalar in outputs), rewrite(having))
            case Over(keys=keys, calls=calls, outputs=outputs, having=having):
                return Over(
                    children[0],
                    tuple((name, rewrite(scalar)) for name, scalar in keys),
                    tuple((name, one.map(rewrite)) for name, one in calls),
                    tuple((name, rewrite(scalar)) for name, scalar in outputs),
                    rewrite(having),
                )
        return rebuild(node, children)

    def _own_names(self, node: Node) -> Node:
        if self._fresh is None:
            return node
        fresh = self._fresh
        match node:
            case Project(columns=columns):
                return replace(node, columns=tuple((fresh(name), scalar) for name, scalar in columns))
            case Sum(keys=keys, terms=terms, picks=picks):
                return replace(
                    node,
                    keys=tuple((fresh(name), scalar) for name, scalar in keys),
                    terms=tuple((fresh(name), scalar) for name, scalar in terms),
                    picks=tuple((fresh(name), one) for name, one in picks),
                )
            case Present(outputs=outputs):
                return replace(node, outputs=tuple((fresh(name), scalar) for name, scalar in outputs))
            case Over(outputs=outputs):
                return replace(node, outputs=tuple((fresh(name), scalar) for name, scalar in outputs))
        return node


def _under(node: Node, names: tuple[str, ...]) -> Node:
    if node.column_names == names:
        return node
    return Project(node, tuple((name, Column(f.name, f.type)) for name, f in zip(names, node.schema, strict=True)))
