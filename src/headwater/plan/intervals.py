"""Sets of values of one ordered type: what a condition on one expression lets it be.

A set is intervals, and whether NULL belongs to it. `x > 5`, `x IN (1, 2)`, `x IS NOT NULL`, and AND and OR of such are
sets, so that one condition follows from another exactly when its set holds the other's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from headwater import types as t
from headwater.algebra.functions.comparison import sort_key


@dataclass(frozen=True)
class Edge:
    """Where an interval begins: right before a value, or right after it. An interval ends where another would begin."""

    value: object
    after: bool = False

    @property
    def order(self) -> tuple[Any, bool]:
        return sort_key(self.value), self.after


#: From an edge to an edge; None is without end on that side.
Interval = tuple[Edge | None, Edge | None]


@dataclass(frozen=True)
class Values:
    """A set of values.

    Attributes:
        intervals: apart from each other, in order.
        null: whether NULL is among them.
    """

    intervals: tuple[Interval, ...]
    null: bool = False

    def __and__(self, other: Values) -> Values:
        met = (_meet(a, b) for a in self.intervals for b in other.intervals)
        return Values(_apart(one for one in met if one is not None), self.null and other.null)

    def __or__(self, other: Values) -> Values:
        return Values(_apart((*self.intervals, *other.intervals)), self.null or other.null)

    def __le__(self, other: Values) -> bool:
        """Whether the other set holds this one."""
        return self & other == self

    @property
    def point(self) -> object | None:
        """The one value, if there is only one; never NULL."""
        if self.null or len(self.intervals) != 1:
            return None
        low, high = self.intervals[0]
        if low is None or high is None or low.after:
            return None
        ends = low.value if high.after else _following(low.value)
        return low.value if ends == high.value else None


#: Anything but NULL, and NULL alone.
KNOWN = Values(((None, None),))
NULL = Values((), null=True)
NOTHING = Values(())


def compared(function: str, value: object, kind: t.Type) -> Values:
    """What `x function value` lets x be. Of whole numbers and days, `x > 4` is `x >= 5`."""
    following = _next(value, kind)
    after = Edge(value, True) if following is None else Edge(following)
    before = Edge(value)
    match function:
        case "=":
            return Values(((before, Edge(value, True)),)) if following is None else Values(((before, after),))
        case "<>":
            return Values(((None, before), (after, None)))
        case "<":
            return Values(((None, before),))
        case "<=":
            return Values(((None, after),))
        case ">":
            return Values(((after, None),))
        case ">=":
            return Values(((before, None),))
    raise ValueError(f"{function} is no comparison")


def among(values: Iterable[object], kind: t.Type) -> Values:
    """What `x IN (...)` lets x be; NULL in the list makes no difference to which rows are let through."""
    return reduce(Values.__or__, (compared("=", one, kind) for one in values if one is not None), NOTHING)


def _next(value: object, kind: t.Type) -> object | None:
    """The value after one, of a type in which every value has a next one."""
    return _following(value) if isinstance(kind, t.Integer | t.Date) else None


def _following(value: object) -> object | None:
    match value:
        case bool() | dt.datetime():
            return None
        case int():
            return value + 1
        case dt.date() if value < dt.date.max:
            return value + dt.timedelta(days=1)
    return None


def _meet(a: Interval, b: Interval) -> Interval | None:
    lows = [one for one in (a[0], b[0]) if one is not None]
    highs = [one for one in (a[1], b[1]) if one is not None]
    low = max(lows, key=lambda one: one.order, default=None)
    high = min(highs, key=lambda one: one.order, default=None)
    return None if low is not None and high is not None and low.order >= high.order else (low, high)


def _apart(given: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same values as intervals that do not touch, in order."""
    intervals = list(given)
    first = [one for one in intervals if one[0] is None]
    later = sorted((one for one in intervals if one[0] is not None), key=lambda one: one[0].order)  # type: ignore[union-attr]
    out: list[Interval] = []
    for low, high in (*first, *later):
        last = out[-1] if out else None
        if last is not None and (last[1] is None or low is None or low.order <= last[1].order):
            reach = None if high is None or last[1] is None else max(high, last[1], key=lambda one: one.order)
            out[-1] = (last[0], reach)
        else:
            out.append((low, high))
    return tuple(out)
