"""Several parts in one go: a query that says what one part holds, as a query for a range of parts.

Every row below a reference belongs to one part of the view: a row of `m[j - 1]` to part PART + 1, one of `m[60 * j ..
60 * j + 59]` to part PART / 60. That part becomes a column of the row and goes up through the tree: joins meet by it,
groups and windows are told apart by it. What cannot be done so is evaluated part by part: a row that belongs to several
parts (a sliding window), an aggregate without GROUP BY, which has a row over nothing, and whatever refers to the view
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from headwater import types as t
from headwater.algebra.compose import columns_of
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
    Sum,
    Union,
)
from headwater.algebra.parts import PART, PartQuery, Reference, bound
from headwater.algebra.scalars import Call, Column, Literal, Scalar, call, conjunction, conjuncts


class NotLifted(Exception):
    """The query must be evaluated part by part."""


@dataclass(frozen=True)
class Lifted:
    """A query for a range of parts.

    Attributes:
        query: the view's columns and PART; the bounds of the n-th reference have the numbers 2n and 2n + 1.
        references: as they are for one part.
    """

    query: Node
    references: tuple[Reference, ...]

    def bounds(self, first: int, last: int) -> list[int]:
        """The bounds for the parts from one to another."""
        return [one for each in self.references for one in (each.first.at(first), each.last.at(last))]


def lifted(query: PartQuery, view: str) -> Lifted | None:
    """The query for a range of parts; None if it must be evaluated part by part."""
    if any(one.relation == view for one in query.references):
        return None
    try:
        node, part = _Lifting(query.references).lift(query.query)
    except NotLifted:
        return None
    if part is None:
        return None
    columns = tuple((name, node.column(name)) for name in query.query.column_names)
    return Lifted(Project(node, (*columns, (PART, part))), query.references)


class _Lifting:
    """Gives every node that reads parts a column that says which part of the view a row belongs to."""

    def __init__(self, references: tuple[Reference, ...]) -> None:
        self._references = references
        self._names: Iterator[str] = (f"#part{n}" for n in count(1))
        self._done: dict[int, tuple[Node, Node, Column | None]] = {}

    def lift(self, node: Node) -> tuple[Node, Column | None]:
        """The node with such a column, last or not, and which one that is; None for one that reads no parts."""
        if id(node) not in self._done:
            self._done[id(node)] = (node, *self._lift(node))
        _, after, part = self._done[id(node)]
        return after, part

    def _lift(self, node: Node) -> tuple[Node, Column | None]:
        if not any(_bounds(one) for one in node.walk()):
            return node, None
        match node:
            case Filter(input=Scan() as scan) if _bounds(node):
                return self._reference(node, scan)
            case Filter() | Negate() | Keep() | Explode() | Repeat():
                source, part = self.lift(node.input)
                return replace(node, input=source), part
            case Project(input=below, columns=columns):
                source, part = self.lift(below)
                name, part = self._named(part)
                return Project(source, (*columns, (name, part))), Column(name, t.BIGINT)
            case Join(left=left, right=right, condition=condition):
                (a, mine), (b, theirs) = self.lift(left), self.lift(right)
                met = [call("=", mine, theirs)] if mine is not None and theirs is not None else []
                return Join(a, b, conjunction([condition, *met])), mine or theirs
            case Outer():
                return self._outer(node)
            case Union(inputs=inputs):
                return self._union(node, inputs)
            case Present():
                return self._groups(node)
            case Over():
                return self._windows(node)
        raise NotLifted

    def _named(self, part: Column | None) -> tuple[str, Column]:
        if part is None:
            raise NotLifted
        return next(self._names), part

    def _reference(self, node: Filter, scan: Scan) -> tuple[Node, Column]:
        """Rows of the parts that a range of parts reads, each with the one that it belongs to."""
        others = [one for one in conjuncts(node.predicate) if not _is_bound(one)]
        place = min(_bounds(node)) // 2
        reference = self._references[place]
        part = scan.column(f"{scan.alias}.{PART}")
        read = [call(">=", part, bound(2 * place)), call("<=", part, bound(2 * place + 1))]
        owner, owned = _owner(reference, part)
        rows = Filter(scan, conjunction([*read, *owned, *others]))
        name = next(self._names)
        return Project(rows, (*columns_of(rows), (name, owner))), Column(name, t.BIGINT)

    def _outer(self, node: Outer) -> tuple[Node, Column]:
        (a, mine), (b, theirs) = self.lift(node.left), self.lift(node.right)
        if mine is not None and theirs is not None:
            joined: Node = replace(
                node, left=a, right=b, condition=conjunction([node.condition, call("=", mine, theirs)])
            )
            name = next(self._names)
            whole = Project(joined, (*columns_of(joined), (name, call("coalesce", mine, theirs))))
            return whole, Column(name, t.BIGINT)
        # Rows of the side that reads no parts would come once for every part.
        if (mine is not None and not node.keeps_right) or (theirs is not None and not node.keeps_left):
            kept = mine or theirs
            assert kept is not None
            return replace(node, left=a, right=b), kept
        raise NotLifted

    def _union(self, node: Union, inputs: tuple[Node, ...]) -> tuple[Node, Column]:
        name = next(self._names)
        made: list[Node] = []
        for one in inputs:
            source, part = self.lift(one)
            if part is None:
                raise NotLifted
            columns = tuple((text, source.column(text)) for text in node.column_names)
            made.append(Project(source, (*columns, (name, part))))
        return Union(tuple(made)), Column(name, t.BIGINT)

    def _groups(self, node: Present) -> tuple[Node, Column]:
        sums = node.sums
        source, part = self.lift(sums.input)
        name, part = self._named(part)
        if not sums.keys:
            raise NotLifted
        groups = Sum(source, (*sums.keys, (name, part)), sums.terms, sums.picks, sums.count)
        shown = next(self._names)
        outputs = (*node.outputs, (shown, Column(name, t.BIGINT)))
        return Present(groups, outputs, node.having), Column(shown, t.BIGINT)

    def _windows(self, node: Over) -> tuple[Node, Column]:
        source, part = self.lift(node.input)
        name, part = self._named(part)
        shown = next(self._names)
        keys, outputs = (*node.keys, (name, part)), (*node.outputs, (shown, part))
        return Over(source, keys, node.calls, outputs, node.having), Column(shown, t.BIGINT)


def _owner(reference: Reference, part: Column) -> tuple[Scalar, list[Scalar]]:
    """The one part of the view that reads a part of another relation; and when there is one.

    `m[6 * j .. 6 * j + 3]` leaves parts out.
    """
    first, last = reference.first, reference.last
    step = first.slope
    if step != last.slope or step.denominator != 1 or step < 1 or not (first.rises and last.rises):
        raise NotLifted
    if first.period != 1 or last.period != 1 or last.at(0) - first.at(0) + 1 > step:
        raise NotLifted  # a part may be read by several
    width = last.at(0) - first.at(0) + 1
    moved = call("-", part, Literal(first.at(0), t.BIGINT))
    if step == 1 and width == 1:
        return moved, []
    each = Literal(int(step), t.BIGINT)
    owned: list[Scalar] = [call("<", call("%", moved, each), Literal(width, t.BIGINT))] if width < step else []
    return call("div", moved, each), owned


def _bounds(node: Node) -> set[int]:
    """The numbers of the bounds that a filter has."""
    found: set[int] = set()
    if isinstance(node, Filter):
        for scalar in node.predicate.walk():
            match scalar:
                case Call(function="bound", args=(Literal(value=int(place)),)):
                    found.add(place)
    return found


def _is_bound(part: Scalar) -> bool:
    return any(isinstance(one, Call) and one.function == "bound" for one in part.walk())
