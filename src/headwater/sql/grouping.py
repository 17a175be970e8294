"""GROUP BY with several groupings: ROLLUP, CUBE and GROUPING SETS.

Every row is taken once for each grouping set, with the keys that are not in the set as NULL and the number of the set
as one more key. So it is one map, and the sets share everything below it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import columns_of
from headwater.algebra.nodes import Join, Named, Node, Project, Values
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call
from headwater.sql.place import Place

_MOST_SETS = 256


def grouping_sets(group: exp.Group, place: Place) -> list[list[exp.Expr]]:
    """The sets of keys that a GROUP BY groups by."""
    plain: list[exp.Expr] = []
    several: list[list[list[exp.Expr]]] = []
    for node in group.expressions:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            several.append(_sets(node))
        elif isinstance(node, exp.Tuple):
            plain += node.expressions
        else:
            plain.append(node)
    for key in ("rollup", "cube", "grouping_sets"):
        for node in group.args.get(key) or ():
            if node.expressions:
                several.append(_sets(node))
            else:  # GROUP BY a, b WITH ROLLUP
                several.append(_sets(type(node)(expressions=plain)))
                plain = []
    out = [plain]
    for sets in several:
        out = [[*one, *more] for one in out for more in sets]
        if len(out) > _MOST_SETS:
            raise place.unsupported("HW201", f"more than {_MOST_SETS} grouping sets", group)
    return out


def _sets(node: exp.Expr) -> list[list[exp.Expr]]:
    parts = [_members(one) for one in node.expressions]
    match node:
        case exp.Rollup():
            return [[one for part in parts[:n] for one in part] for n in range(len(parts), -1, -1)]
        case exp.Cube():
            chosen = [c for n in range(len(parts), -1, -1) for c in combinations(parts, n)]
            return [[one for part in some for one in part] for some in chosen]
    return parts


def _members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this] if isinstance(node, exp.Paren) else [node]


class Groupings:
    """Grouping sets that are known."""

    def __init__(self, sets: list[list[Scalar]]) -> None:
        self._sets = sets
        self._number = Column("#set", t.INT)

    def expand(self, node: Node, keys: tuple[Named, ...], fresh: Callable[[], str]) -> tuple[Node, tuple[Named, ...]]:
        """Every row once for each set, and the keys to group by then."""
        name = fresh()
        self._number = Column(name, t.INT)
        numbers = Values((t.Field(name, t.INT, False),), tuple((n,) for n in range(len(self._sets))))
        made: list[Named] = []
        after: list[Named] = []
        for key, scalar in keys:
            inside = [n for n, one in enumerate(self._sets) if scalar in one]
            column = Column(fresh(), scalar.type)
            grouped = any(scalar in one for one in self._sets)
            value = self._only(inside, scalar) if grouped and len(inside) < len(self._sets) else scalar
            made.append((column.name, value))
            after.append((key, column))
        whole = Project(Join(node, numbers, TRUE), (*columns_of(node), *made, (name, self._number)))
        return whole, (*after, (name, self._number))

    def _only(self, sets: list[int], scalar: Scalar) -> Scalar:
        inside = call("in", self._number, *(Literal(n, t.INT) for n in sets))
        return call("if", inside, scalar, Literal(None, scalar.type))

    def knows(self, keys: tuple[Scalar, ...]) -> bool:
        """Whether all of these are grouped by in some set."""
        return all(any(key in one for one in self._sets) for key in keys)

    def value(self, args: tuple[Scalar, ...], into: t.Type) -> Scalar:
        """GROUPING or GROUPING_ID of some keys: a bit for each, 1 where the row is not grouped by it."""
        keys = args or tuple(dict.fromkeys(scalar for one in self._sets for scalar in one))
        parts: list[Scalar] = []
        for n, one in enumerate(self._sets):
            bits = sum(1 << at for at, key in enumerate(reversed(keys)) if key not in one)
            parts += [call("=", self._number, Literal(n, t.INT)), Literal(bits, into)]
        return call("case", *parts, Literal(None, into))
