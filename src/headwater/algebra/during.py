"""Conditions on the clock become windows: `Filter` by `now()` becomes `During`.

A condition has its place here if it compares something that only rises with the clock (`now() - INTERVAL 5 MINUTES`)
with something that the clock has no part in. It is then FALSE and TRUE from some moment on, or TRUE and not from some
moment on, for each row by itself; so a view need not look at a row again but at these two moments.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from headwater import types as t
from headwater.algebra.clock import at_moment, has_value, is_moment, moved_over, opposite, reads_clock, rises
from headwater.algebra.functions import may_raise
from headwater.algebra.joins import TURNED
from headwater.algebra.nodes import (
    During,
    Filter,
    Join,
    Keep,
    Negate,
    Node,
    Over,
    Project,
    Repeat,
    Union,
    rebuild,
    scalars,
    transform,
)
from headwater.algebra.renaming import canonical
from headwater.algebra.scalars import Call, Scalar, call, conjunction, conjuncts
from headwater.algebra.simplify.scalars_of import map_scalars


class NoWindow(Exception):
    """The clock decides something that no pair of moments says.

    Attributes:
        part: where it is read.
        by_months: it is moved by months, and has a time of day.
    """

    def __init__(self, part: Scalar, by_months: bool = False) -> None:
        super().__init__(f"{part} reads the clock")
        self.part = part
        self.by_months = by_months


def at(node: Node, moment: dt.datetime) -> Node:
    """The tree at a moment: `now()` is a constant, and a window a filter."""

    def fixed(one: Node) -> Node:
        if isinstance(one, During):
            one = Filter(one.input, conjunction([one.starts, one.ends]))
        return map_scalars(one, lambda scalar: at_moment(scalar, moment))

    return transform(node, fixed)


def without_windows(node: Node) -> Node:
    """The tree with filters for its windows: for whoever looks at the clock when it is evaluated."""

    def filtered(one: Node) -> Node:
        return Filter(one.input, conjunction([one.starts, one.ends])) if isinstance(one, During) else one

    return transform(node, filtered)


def follows_clock(node: Node) -> bool:
    """Whether the clock decides what a tree has."""
    return any(isinstance(one, During) or any(map(reads_clock, scalars(one))) for one in node.walk())


def with_windows(node: Node) -> Node:
    """The tree with a window wherever it reads the clock.

    Raises:
        NoWindow: it reads the clock where there can be none.
    """
    if not follows_clock(node):
        return node
    return _narrowed(transform(node, _window))


def _window(node: Node) -> Node:
    match node:
        case Filter(input=source, predicate=predicate) if reads_clock(predicate):
            return _during(source, conjuncts(predicate))
        case Join(condition=condition) if reads_clock(condition):
            parts = conjuncts(condition)
            first = next(i for i, part in enumerate(parts) if reads_clock(part))
            own = [part for i, part in enumerate(parts) if not reads_clock(part) and (i < first or not may_raise(part))]
            return _during(replace(node, condition=conjunction(own)), [part for part in parts if part not in own])
    for scalar in scalars(node):
        if reads_clock(scalar):
            raise NoWindow(_reading(scalar))
    return node


def _during(source: Node, parts: list[Scalar]) -> Node:
    """The rows that meet all parts. One that may raise stays behind the windows that were written before it."""
    below: list[Scalar] = []
    above: list[Scalar] = []
    starts: list[Scalar] = []
    ends: list[Scalar] = []
    for part in (one for whole in parts for one in _taken_apart(whole)):
        if reads_clock(part):
            _bound(part, starts, ends)
        else:
            (above if (starts or ends) and may_raise(part) else below).append(part)
    rows = Filter(source, conjunction(below)) if below else source
    window = During(rows, conjunction(list(dict.fromkeys(starts))), conjunction(list(dict.fromkeys(ends))))
    return Filter(window, conjunction(above)) if above else window


def _taken_apart(part: Scalar) -> list[Scalar]:
    """A condition on the clock as conditions that all hold, without NOT as far as that goes."""
    match part:
        case Call(function="not", args=(inner,)) if reads_clock(inner) and opposite(inner) != part:
            return _taken_apart(opposite(inner))
        case Call(function="and", args=args):
            return [found for one in args for found in _taken_apart(one)]
    return [part]


def _bound(part: Scalar, starts: list[Scalar], ends: list[Scalar]) -> None:
    """Add what a condition on the clock says about when a row's time begins, and when it ends."""
    match part:
        case Call(function=function, args=(left, right)) if function in (*TURNED, "="):
            if reads_clock(right) and not reads_clock(left):
                function, left, right = TURNED.get(function, function), right, left
            moved = moved_over(left, right) if not reads_clock(right) else None
            if moved is None or not is_moment(moved[0]) or not rises(moved[0]) or not has_value(moved[0]):
                raise NoWindow(_reading(part), any(isinstance(one.type, t.YearMonthInterval) for one in part.walk()))
            moment, value = moved
            # A value that is compared with the clock stands in front: stored rows are found by it.
            if function in (">", ">=", "="):
                starts.append(call(TURNED.get(function, "<="), value, moment))
            if function in ("<", "<=", "="):
                ends.append(call(TURNED.get(function, ">="), value, moment))
            return
    raise NoWindow(_reading(part))


def _reading(scalar: Scalar) -> Scalar:
    """Where a scalar reads the clock first."""
    return next(part for part in scalar.walk() if isinstance(part, Call) and not part.args and reads_clock(part))


def _narrowed(root: Node) -> Node:
    """The tree whose windows hold only columns that something above them, or their own end, is made of.

    Windows that differ in names only hold the same columns: they will be one.
    """
    needed: dict[str, set[int]] = {}
    alike = {id(one): canonical(one) for one in root.walk() if isinstance(one, During)}
    for one in root.walk():
        if isinstance(one, During):
            used = _used_above(root, one) | one.starts.columns | one.ends.columns
            positions = {i for i, name in enumerate(one.column_names) if name in used}
            needed.setdefault(alike[id(one)], set()).update(positions)
    done: dict[int, Node] = {}

    def narrow(one: Node) -> Node:
        if id(one) not in done:
            after = rebuild(one, tuple(map(narrow, one.children)))
            positions = sorted(needed[alike[id(one)]]) if isinstance(after, During) else []
            if isinstance(after, During) and 0 < len(positions) < len(one.column_names):
                kept = [one.column_names[i] for i in positions]
                columns = tuple((name, after.input.column(name)) for name in kept)
                after = replace(after, input=Project(after.input, columns))
            done[id(one)] = after
        return done[id(one)]

    return narrow(root)


def _used_above(root: Node, window: During) -> set[str]:
    """Names of columns that are read in a tree, but for what stands below a window."""
    used = set(root.column_names)
    seen: set[int] = set()
    left = [root]
    while left:
        one = left.pop()
        if one is window or id(one) in seen:
            continue
        seen.add(id(one))
        used.update(name for scalar in scalars(one) for name in scalar.columns)
        if isinstance(one, Union | Keep | Over | Negate | Repeat):  # they read all columns
            used.update(name for part in one.children for name in part.column_names)
        left.extend(one.children)
    return used
