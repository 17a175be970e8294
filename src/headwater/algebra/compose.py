"""What SQL has and the algebra has not, as compositions of what it has: DISTINCT, and joins other than inner ones.

Each is a sum of terms that follow from deltas, over maps of distinct keys, which are small. So they need no way of
maintenance of their own:

    semi(L, R)  =  L join distinct(keys of R)              where they meet by equality
                =  L join distinct(L join R)               otherwise, on all columns of L
    anti(L, R)  =  L - semi(L, R)
    left(L, R)  =  L join R  +  anti(L, R) with NULLs
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import (
    COUNT,
    Filter,
    Join,
    Keep,
    Named,
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
)
from headwater.algebra.scalars import FALSE, TRUE, Call, Column, Literal, Scalar, call, conjunction, conjuncts

#: Gives names that nothing else has, for columns and prefixes of columns.
Fresh = Callable[[], str]

NO_ROWS = Literal(0, t.BIGINT)


def columns_of(node: Node) -> tuple[Named, ...]:
    """A node's columns as they are."""
    return tuple((f.name, Column(f.name, f.type)) for f in node.schema)


def bare(scan: Scan) -> Project:
    """A relation's rows under its columns' own names, without the alias."""
    return Project(scan, tuple((f.name, scan.column(f"{scan.alias}.{f.name}")) for f in scan.fields))


def shared(node: Node) -> Node:
    """The node, stored if it is more than a view of one relation: for what is read several times."""
    below = node
    while isinstance(below, Filter | Project):
        below = below.input
    return node if isinstance(below, Scan | Values | Present | Over | Keep) else Keep(node)


class NoEquality(Exception):
    """Rows would have to be told apart by a value that has no equality."""

    def __init__(self, kind: t.Type) -> None:
        super().__init__(f"{kind} has no equality")
        self.kind = kind


def _check_equality(keys: tuple[Named, ...]) -> None:
    for _, key in keys:
        if not t.is_groupable(key.type):
            raise NoEquality(key.type)


def distinct(node: Node) -> Node:
    """Every row once."""
    columns = columns_of(node)
    _check_equality(columns)
    return Present(Sum(node, columns, ()), columns, TRUE)


def distinct_keys(node: Node, keys: tuple[Named, ...], mark: str | None = None) -> Node:
    """The values that some scalars have, each once; with a column `mark`, which is TRUE, so that there is a column."""
    _check_equality(keys)
    sums = Sum(node, keys, ())
    outputs = tuple((name, Column(name, key.type)) for name, key in keys)
    marked = ((mark, TRUE),) if mark is not None else ()
    having = TRUE if keys else call(">", Column(COUNT, t.BIGINT), NO_ROWS)
    return Present(sums, (*outputs, *marked), having)


@dataclass(frozen=True)
class _Condition:
    """A join's condition taken apart: pairs that must be equal (by `=` or `<=>`), parts about one side, the rest."""

    pairs: tuple[tuple[str, Scalar, Scalar], ...]
    left: tuple[Scalar, ...]
    right: tuple[Scalar, ...]
    rest: tuple[Scalar, ...]


def _take_apart(condition: Scalar, left: Node, right: Node) -> _Condition:
    mine, theirs = frozenset(left.column_names), frozenset(right.column_names)
    pairs: list[tuple[str, Scalar, Scalar]] = []
    about_left: list[Scalar] = []
    about_right: list[Scalar] = []
    rest: list[Scalar] = []
    for part in conjuncts(condition):
        if may_raise(part):
            rest.append(part)
        elif (pair := _pair(part, mine, theirs)) is not None:
            pairs.append(pair)
        elif part.columns <= theirs and part.columns:
            about_right.append(part)
        elif part.columns <= mine:
            about_left.append(part)
        else:
            rest.append(part)
    return _Condition(tuple(pairs), tuple(about_left), tuple(about_right), tuple(rest))


def _pair(part: Scalar, mine: frozenset[str], theirs: frozenset[str]) -> tuple[str, Scalar, Scalar] | None:
    if not isinstance(part, Call) or part.function not in ("=", "<=>"):
        return None
    for one, other in (part.args, part.args[::-1]):
        if one.columns <= mine and other.columns and other.columns <= theirs:
            return part.function, one, other
    return None


def semi(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """The rows of the left side that meet some row of the right side. Give `shared` sides."""
    parts = _take_apart(condition, left, right)
    prefix = fresh()
    if not parts.rest:
        source = Filter(right, conjunction(list(parts.right))) if parts.right else right
        keys = tuple((f"{prefix}.{i}", theirs) for i, (_, _, theirs) in enumerate(parts.pairs))
        met = distinct_keys(source, keys, None if keys else f"{prefix}.m")
        named = [Column(name, key.type) for name, key in keys]
        equal = [call(test, mine, key) for (test, mine, _), key in zip(parts.pairs, named, strict=True)]
        joined: Node = Join(left, met, conjunction([*parts.left, *equal]))
    else:
        # Whether a row meets one depends on what the condition reads of it.
        asked = tuple(f for f in left.schema if f.name in condition.columns)
        keys = tuple((f"{prefix}.{i}", Column(f.name, f.type)) for i, f in enumerate(asked))
        met = distinct_keys(Join(left, right, condition), keys, None if keys else f"{prefix}.m")
        joined = Join(left, met, same(asked, keys))
    return Project(joined, columns_of(left))


def same(fields: t.Schema, keys: tuple[Named, ...]) -> Scalar:
    """That columns equal others, NULLs included."""
    equal: list[Scalar] = []
    for f, (name, key) in zip(fields, keys, strict=True):
        equal.append(call("<=>" if f.nullable else "=", Column(f.name, f.type), Column(name, key.type)))
    return conjunction(equal)


def anti(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """The rows of the left side that meet no row of the right side. Give `shared` sides."""
    return Union((left, Negate(semi(left, right, condition, fresh))))


def _nulls(node: Node) -> tuple[Named, ...]:
    return tuple((f.name, Literal(None, f.type)) for f in node.schema)


def left_join(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """LEFT JOIN; columns of the left side, then those of the right."""
    left, right = shared(left), shared(right)
    lonely = Project(anti(left, right, condition, fresh), (*columns_of(left), *_nulls(right)))
    return Union((Join(left, right, condition), lonely))


def right_join(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """RIGHT JOIN; columns of the left side, then those of the right."""
    left, right = shared(left), shared(right)
    lonely = Project(anti(right, left, condition, fresh), (*_nulls(left), *columns_of(right)))
    return Union((Join(left, right, condition), lonely))


def full_join(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """FULL JOIN; columns of the left side, then those of the right."""
    left, right = shared(left), shared(right)
    mine = Project(anti(left, right, condition, fresh), (*columns_of(left), *_nulls(right)))
    theirs = Project(anti(right, left, condition, fresh), (*_nulls(left), *columns_of(right)))
    return Union((Join(left, right, condition), mine, theirs))


def semi_join(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """LEFT SEMI JOIN."""
    return semi(shared(left), shared(right), condition, fresh)


def anti_join(left: Node, right: Node, condition: Scalar, fresh: Fresh) -> Node:
    """LEFT ANTI JOIN."""
    return anti(shared(left), shared(right), condition, fresh)


def marked(left: Node, right: Node, condition: Scalar, mark: str, fresh: Fresh) -> Node:
    """Every row of the left side, with a column that says whether it meets some row of the right side."""
    left = shared(left)
    met = semi(left, right, condition, fresh)
    with_match = Project(met, (*columns_of(left), (mark, TRUE)))
    without = Project(Union((left, Negate(met))), (*columns_of(left), (mark, FALSE)))
    return Union((with_match, without))


def looked_up(
    left: Node, right: Node, condition: Scalar, values: tuple[Named, ...], empty: tuple[Scalar, ...], fresh: Fresh
) -> Node:
    """Every row of the left side, with values of the one row of the right side that it meets, or others if none."""
    left = shared(left)
    found = Project(Join(left, right, condition), (*columns_of(left), *values))
    missing = tuple((name, other) for (name, _), other in zip(values, empty, strict=True))
    lonely = Project(anti(left, right, condition, fresh), (*columns_of(left), *missing))
    return Union((found, lonely))


# -- set operations ----------------------------------------------------------------------------------------------------


def intersect(left: Node, right: Node, every: bool, fresh: Fresh) -> Node:
    """INTERSECT, or INTERSECT ALL."""
    return _compare(left, right, every, fresh, lambda a, b: call("if", call("<", a, b), a, b))


def subtract(left: Node, right: Node, every: bool, fresh: Fresh) -> Node:
    """EXCEPT, or EXCEPT ALL."""
    if every:
        return _compare(left, right, True, fresh, lambda a, b: call("-", a, b))
    none = Literal(0, t.BIGINT)
    return _compare(left, right, False, fresh, lambda a, b: call("if", call("=", b, none), a, none))


def _compare(left: Node, right: Node, every: bool, fresh: Fresh, times: Callable[[Scalar, Scalar], Scalar]) -> Node:
    """Rows by how often they are on the one side and on the other."""
    mine, theirs, again = fresh(), fresh(), fresh()
    columns = columns_of(left)
    both = Union(
        (
            Project(left, (*columns, (mine, TRUE), (theirs, FALSE))),
            Project(right, (*columns_of(right), (mine, FALSE), (theirs, TRUE))),
        )
    )
    sums = Sum(both, columns, ((mine, Column(mine, t.BOOLEAN)), (theirs, Column(theirs, t.BOOLEAN))))
    count = times(Column(mine, t.BIGINT), Column(theirs, t.BIGINT))
    shown = call(">", count, Literal(0, t.BIGINT))
    if not every:
        return Present(sums, columns, shown)
    return Repeat(Present(sums, (*columns, (again, count)), shown), again)
