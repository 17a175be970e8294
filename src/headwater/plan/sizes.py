"""How many rows a tree has: the textbook's estimates, over what has been observed of its relations.

Equality of two columns keeps one pair in as many as the column with more values has; groups are at most as many as the
values of their keys together, and at most as many as rows (the "size of the domain" of Ahmad et al., "DBToaster",
section 5.1).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from headwater.algebra.joins import TURNED, FlatJoin, equates, flatten
from headwater.algebra.nodes import (
    During,
    Explode,
    Filter,
    Join,
    Keep,
    Negate,
    Node,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    Values,
    Version,
)
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar, conjuncts
from headwater.plan.statistics import SAME, Extent, Observed, unknown

#: Shares of rows that meet a condition of which nothing else is known.
_RANGE, _EQUAL, _OTHER = 1 / 3, 0.1, 0.5
_ELEMENTS = 4.0  #: of a collection that is exploded
#: Of so many joined relations the best order is looked for.
_FEW = 8
_Conditions = list[tuple[frozenset[str], Scalar]]


@dataclass(frozen=True)
class Size:
    """Rows of a tree, and what is known of its columns."""

    rows: float
    columns: Mapping[str, Extent]

    def distinct(self, name: str) -> float:
        """Different values of a column among these rows."""
        known = self.columns.get(name)
        most = known.distinct if known is not None else max(self.rows / SAME, 1.0)
        return max(1.0, min(most, self.rows))

    def partners(self, name: str) -> float:
        """The same for a column that is joined: one of which nothing is known is taken for a key."""
        return self.distinct(name) if name in self.columns else max(self.rows, 1.0)


class Sizes:
    """Estimates over some relations."""

    def __init__(self, observed: Mapping[str, Observed]) -> None:
        self.observed = dict(observed)
        self._known: dict[int, tuple[Node, Size]] = {}  # the node too, so that its id stays its own

    def relation(self, name: str) -> Observed:
        return self.observed.get(name) or unknown()

    def forget(self) -> None:
        """What is known of relations has changed."""
        self._known.clear()

    def of(self, node: Node) -> Size:
        """The size of a tree."""
        if id(node) not in self._known:
            self._known[id(node)] = node, self._estimate(node)
        return self._known[id(node)][1]

    def _estimate(self, node: Node) -> Size:
        match node:
            case Scan():
                return self._scan(node)
            case Values(rows=rows):
                return Size(float(len(rows)), {})
            case Filter(input=source, predicate=predicate):
                return self._filtered(self.of(source), conjuncts(predicate))
            case During(input=source, starts=starts, ends=ends):
                return self._filtered(self.of(source), [*conjuncts(starts), *conjuncts(ends)])
            case Join():
                flat = flatten(node)
                joined = self.joins(flat)[-1]
                return Size(joined.rows, _through(joined, tuple(flat.columns.items())))
            case Project(input=source, columns=columns):
                inner = self.of(source)
                return Size(inner.rows, _through(inner, columns))
            case Union(inputs=inputs):
                return self._union([self.of(one) for one in inputs], node)
            case Explode(input=source):
                inner = self.of(source)
                return Size(inner.rows * _ELEMENTS, inner.columns)
            case Sum(input=source, keys=keys):
                return _groups(self.of(source), keys)
            case Present(outputs=outputs):
                groups = self.of(node.sums)
                shown = self._filtered(groups, conjuncts(node.having))
                return Size(shown.rows, _through(shown, outputs))
            case Over(input=source, outputs=outputs):
                inner = self.of(source)
                return Size(inner.rows, _through(inner, outputs))
            case Negate(input=source) | Repeat(input=source) | Keep(input=source):
                return self.of(source)
        return Size(1.0, {})

    def _scan(self, node: Scan) -> Size:
        known = self.relation(node.relation)
        rows = known.rate if node.version is Version.DELTA else known.rows
        return Size(max(rows, 1.0), {f"{node.alias}.{name}": one for name, one in known.columns.items()})

    @staticmethod
    def _union(sizes: list[Size], node: Union) -> Size:
        columns = {}
        for position, name in enumerate(node.column_names):
            found = [size.columns.get(one.column_names[position]) for size, one in zip(sizes, node.inputs, strict=True)]
            if all(found):
                columns[name] = Extent(sum(one.distinct for one in found if one is not None))
        return Size(sum(one.rows for one in sizes), columns)

    def _filtered(self, size: Size, parts: list[Scalar]) -> Size:
        share = 1.0
        for part in parts:
            share *= selectivity(part, size)
        return Size(max(size.rows * share, 1.0), size.columns)

    def joins(self, flat: FlatJoin) -> list[Size]:
        """The sizes on the way, if the smallest is joined first, and then always what leaves the fewest rows.

        Of many, the next is any that is connected: to look at all pairs would take longer than it is worth.
        """
        left = [(self.of(one), frozenset(one.column_names)) for one in flat.leaves]
        conditions = [(one.columns, one) for one in flat.conditions]
        now, known = left.pop(min(range(len(left)), key=lambda i: left[i][0].rows))
        now, conditions = self._asked(now, known, conditions)
        out = [now]
        while left:
            choice = _linked(known, left, conditions) if len(left) <= _FEW else [_connected(known, left, conditions)]
            ways = {i: self._met(now, known, *left[i], conditions) for i in choice}
            best = min(ways, key=lambda i: ways[i][0].rows)
            now, conditions = ways[best]
            known |= left.pop(best)[1]
            out.append(now)
        return out

    def _asked(self, size: Size, known: frozenset[str], conditions: _Conditions) -> tuple[Size, _Conditions]:
        mine = [part for columns, part in conditions if columns <= known]
        return self._filtered(size, mine), [one for one in conditions if not one[0] <= known]

    @staticmethod
    def _met(
        a: Size, known: frozenset[str], b: Size, others: frozenset[str], conditions: _Conditions
    ) -> tuple[Size, _Conditions]:
        """Two joined, and the conditions that are left."""
        there = known | others
        rows = a.rows * b.rows
        both = Size(rows, {**a.columns, **b.columns})
        for columns, part in conditions:
            if not columns <= there:
                continue
            sides = equates(part)
            if sides is not None and all(isinstance(side, Column) for side in sides):
                values = [
                    (a if side.name in known else b).partners(side.name) for side in sides if isinstance(side, Column)
                ]
                rows /= max(values)
            else:
                rows *= selectivity(part, both)
        return Size(max(rows, 1.0), both.columns), [one for one in conditions if not one[0] <= there]


def _linked(known: frozenset[str], left: list[tuple[Size, frozenset[str]]], conditions: _Conditions) -> list[int]:
    """Those that a condition connects with what is known; all, if there is none."""
    found = [i for i, (_, names) in enumerate(left) if any(one & known and one & names for one, _ in conditions)]
    return found or list(range(len(left)))


def _connected(known: frozenset[str], left: list[tuple[Size, frozenset[str]]], conditions: _Conditions) -> int:
    """One that a condition connects with what is known."""
    for columns, _ in conditions:
        if columns & known:
            for i, (_, names) in enumerate(left):
                if columns & names and columns <= known | names:
                    return i
    return 0


def _through(size: Size, columns: tuple[tuple[str, Scalar], ...]) -> dict[str, Extent]:
    out = {}
    for name, scalar in columns:
        found = size.columns.get(scalar.name) if isinstance(scalar, Column) else None
        if found is not None:
            out[name] = found
        elif scalar.columns:
            values = 1.0
            for one in scalar.columns:
                values *= size.distinct(one)
            out[name] = Extent(min(values, size.rows))
    return out


def _groups(size: Size, keys: tuple[tuple[str, Scalar], ...]) -> Size:
    columns = _through(size, keys)
    groups = 1.0
    for name, _ in keys:
        groups *= columns[name].distinct if name in columns else 1.0
    return Size(max(min(groups, size.rows), 1.0), columns)


def selectivity(condition: Scalar, size: Size) -> float:
    """Which share of rows meets a condition."""
    if isinstance(condition, Literal):
        return 1.0 if condition.value is True else 0.0
    if not isinstance(condition, Call):
        return _OTHER
    match condition.function, condition.args:
        case "and", (a, b):
            return selectivity(a, size) * selectivity(b, size)
        case "or", (a, b):
            x, y = selectivity(a, size), selectivity(b, size)
            return x + y - x * y
        case "not", (a,):
            return 1.0 - selectivity(a, size)
        case "is not null", _:
            return 1.0
        case (("=" | "<=>"), (a, b)):
            values = [size.distinct(one.name) for one in (a, b) if isinstance(one, Column)]
            return 1.0 / max(values) if values else _EQUAL
        case (("<" | "<=" | ">" | ">="), (a, b)):
            return _range(condition.function, a, b, size)
    return _OTHER


def _range(function: str, a: Scalar, b: Scalar, size: Size) -> float:
    """The share of a column's range that a comparison with a constant leaves."""
    if isinstance(b, Column | Cast) and isinstance(a, Literal):
        return _range(TURNED[function], b, a, size)
    column = a.arg if isinstance(a, Cast) else a
    if not isinstance(column, Column) or not isinstance(b, Literal):
        return _RANGE
    known, value = size.columns.get(column.name), as_number(b.value)
    if known is None or known.low is None or known.high is None or value is None or known.high <= known.low:
        return _RANGE
    below = min(max((value - known.low) / (known.high - known.low), 0.0), 1.0)
    return max(below if function.startswith("<") else 1.0 - below, 0.001)


def as_number(value: object) -> float | None:
    """A value on a line: numbers, days and moments."""
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            return float(value)
        case dt.datetime():
            return value.replace(tzinfo=dt.UTC).timestamp()
        case dt.date():
            return float(value.toordinal())
    return None
