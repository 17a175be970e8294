"""Sessions: rows of one key, each no later than a gap after the one before."""

from __future__ import annotations

from collections.abc import Callable

from headwater import types as t
from headwater.algebra.compose import columns_of
from headwater.algebra.folds import RUNNING, Frame, Sorting, WindowCall
from headwater.algebra.nodes import Named, Node, Over, Project
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call
from headwater.sql.time_windows import TimeWindow

#: The rows from this one on, and those that are equal to it in the order.
_REMAINING = Frame("range", 0, None)
_NOTHING = Literal(None, t.TIMESTAMP)


def with_sessions(
    node: Node, window: TimeWindow, keys: tuple[Named, ...], used: frozenset[str], fresh: Callable[[], str]
) -> tuple[Node, tuple[Named, ...]]:
    """The rows, each with the start and end of its session among the rows of equal keys; and the keys over them.

    A row begins a session if none of its key is within the gap before it, and ends one if none is within the gap after
    it. So a row's session began at the last beginning up to it, and ends at the next end from it on. That is one `Over`
    upon another: what is changed is the rows of a key of which one came or went, and of these only what then differs.

    Args:
        node: the rows, all of which have a time.
        window: the sessions.
        keys: the other keys of GROUP BY.
        used: columns that aggregates read.
        fresh: makes names.
    """
    time = Column(fresh(), t.TIMESTAMP)
    named: tuple[Named, ...] = tuple((fresh(), scalar) for _, scalar in keys)
    kept = tuple((name, scalar) for name, scalar in columns_of(node) if name in used)
    node = Project(node, (*kept, *named, (time.name, window.time)))
    columns = tuple(Column(name, scalar.type) for name, scalar in named)
    order = (Sorting(time),)

    def over(source: Node, calls: dict[Column, WindowCall], outputs: tuple[Named, ...]) -> Node:
        parts = tuple((fresh(), one) for one in columns)
        return Over(source, parts, tuple((one.name, made) for one, made in calls.items()), outputs, TRUE)

    before, after = Column(fresh(), t.TIMESTAMP), Column(fresh(), t.TIMESTAMP)
    begins, ends = Column(fresh(), t.TIMESTAMP), Column(fresh(), t.TIMESTAMP)
    gap = Literal(window.length, t.DAY_TIME_INTERVAL)
    edges = (
        (begins.name, call("if", _within(before, time, gap), _NOTHING, time)),
        (ends.name, call("if", _within(time, after, gap), _NOTHING, call("+", time, gap))),
    )
    neighbours = {before: WindowCall("lag", (time,), order), after: WindowCall("lead", (time,), order)}
    node = over(node, neighbours, (*columns_of(node), *edges))
    spans = {
        window.first: WindowCall("max", (begins,), order, RUNNING),
        window.last: WindowCall("min", (ends,), order, _REMAINING),
    }
    shown = (*kept, *((one.name, one) for one in (*columns, window.first, window.last)))
    node = over(node, spans, shown)
    return node, tuple((name, column) for (name, _), column in zip(keys, columns, strict=True))


def _within(earlier: Scalar, later: Scalar, gap: Scalar) -> Scalar:
    """Whether a moment is at most a gap after another; not if there is no other."""
    return call("<=", call("-", later, earlier), gap)
