"""`window` and `session_window`: rows and the windows of time that they are in.

A query has one window at most, and it is a column of its rows, called `window` or `session_window`: a STRUCT of its
start and end. `window` adds it below everything else: where windows do not overlap the start is computed of the row's
time; where they do, a row is there once for each window that it is in (`Explode`). A session is not known of a row
alone, but of all rows with the same other keys of GROUP BY: window functions find where one begins and where it ends.

Rows without a time are in no window, and go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import columns_of
from headwater.algebra.nodes import Explode, Filter, Node, Project
from headwater.algebra.scalars import Column, Literal, Scalar, call
from headwater.sql import literals
from headwater.sql.bind import Binder
from headwater.sql.calls import WINDOW, function_name, window_time
from headwater.sql.function_names import TIME_WINDOWS
from headwater.sql.scope import Scope, Visible

#: What the column of a window is called in a tree where a call stood; no query can write this.
_MARK = "#window"
_CLAUSES = ("expressions", "group", "having", "qualify", "order", "windows")
#: A row may be in so many windows.
_MOST_WINDOWS = 100_000


def take_calls(select: exp.Select) -> tuple[exp.Select, list[exp.Anonymous]]:
    """The calls of `window` and `session_window` in a SELECT, and the SELECT with columns in their place.

    Those of inner queries stay, and so do those where no window can stand, which the binder refuses.
    """
    if not any(True for _ in _calls(select)):
        return select, []
    after = select.copy()
    calls = list(_calls(after))
    for one in calls:
        marked = exp.column(exp.to_identifier(function_name(one)), exp.to_identifier(_MARK))
        marked.update_positions(one)
        one.replace(marked)
    return after, calls


def _calls(select: exp.Select) -> Iterator[exp.Anonymous]:
    for clause in _CLAUSES:
        given = select.args.get(clause)
        for node in given if isinstance(given, list) else filter(None, [given]):
            for part in node.walk(prune=_ends_here):
                if _is_call(part):
                    yield part


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and function_name(node) in TIME_WINDOWS


def _ends_here(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Subquery) or _is_call(node)


def plain_text(node: exp.Expr) -> exp.Expr:
    """An expression as Spark names it: a call of `window` is `window`."""
    if not any(one.table == _MARK for one in node.find_all(exp.Column)):
        return node
    after = node.copy()
    for one in list(after.find_all(exp.Column)):
        if one.table == _MARK:
            one.set("table", None)
    return after


def window_ends(window: Scalar) -> tuple[Scalar, Scalar]:
    """The start and the end of a window, by which windows are put in order."""
    start, end = (call("field", window, Literal(name, t.STRING)) for name in ("start", "end"))
    return start, end


@dataclass(frozen=True)
class TimeWindow:
    """The window of a query.

    Attributes:
        function: `window` or `session_window`.
        time: of a row.
        length: of the windows, or the gap that ends a session, in microseconds.
        slide: how long after one window the next one begins; of no meaning for sessions.
        start: when one of the windows begins, in microseconds since 1970, less than `slide`.
        prefix: what the names of its columns begin with.
    """

    function: str
    time: Scalar
    length: int
    slide: int
    start: int
    prefix: str

    @property
    def is_session(self) -> bool:
        return self.function == "session_window"

    @property
    def column(self) -> Column:
        """The window itself."""
        return Column(f"{self.prefix}.{self.function}", WINDOW)

    @property
    def first(self) -> Column:
        """When it begins."""
        return Column(f"{self.prefix}.start", t.TIMESTAMP)

    @property
    def last(self) -> Column:
        """When it ends; a column of sessions only."""
        return Column(f"{self.prefix}.end", t.TIMESTAMP)

    @property
    def keys(self) -> tuple[Column, ...]:
        """What tells windows apart."""
        return (self.first, self.last) if self.is_session else (self.first,)

    @property
    def value(self) -> Scalar:
        """The window, made of its keys."""
        end = self.last if self.is_session else call("+", self.first, Literal(self.length, t.DAY_TIME_INTERVAL))
        return call("named_struct", Literal("start", t.STRING), self.first, Literal("end", t.STRING), end)

    @property
    def scope(self) -> Scope:
        """The names by which the window is known."""
        return Scope((Visible(_MARK, ((self.function, self.column),)),))

    def rows(self, node: Node) -> Node:
        """The rows that are in windows, each with its window; a row of a session does not know it yet."""
        if not self.is_session and self.length > self.slide:
            numbers = (Literal(n, t.BIGINT) for n in (self.length, self.slide, self.start))
            node = Explode(node, call("window_starts", self.time, *numbers), (self.first.name,))
            return Project(node, (*columns_of(node), (self.column.name, self.value)))
        node = Filter(node, call("is not null", self.time))
        if self.is_session:
            return node
        begins = call("window_start", self.time, *(Literal(n, t.BIGINT) for n in (self.slide, self.start)))
        node = Project(node, (*columns_of(node), (self.first.name, begins)))
        return Project(node, (*columns_of(node), (self.column.name, self.value)))


def bound_window(calls: Sequence[exp.Anonymous], binder: Binder, prefix: str) -> TimeWindow:
    """The window that the calls in a SELECT mean: all the same."""
    first = _bound(calls[0], binder, prefix)
    for one in calls[1:]:
        if _bound(one, binder, prefix) != first:
            raise binder.place.mistake(
                "HW146",
                "a query has one window; with two, every row would be there for each pair of them",
                one,
                "make the first a derived table or a view",
            )
    return first


def _bound(node: exp.Anonymous, binder: Binder, prefix: str) -> TimeWindow:
    function = function_name(node)
    shown, args = function.upper(), node.expressions
    most = 2 if function == "session_window" else 4
    if not 2 <= len(args) <= most:
        takes = "2" if most == 2 else "2 to 4"
        raise binder.place.mistake("HW122", f"{shown}: takes {takes} arguments, not {len(args)}", node)
    time = _time(args[0], binder, shown)
    if function == "session_window":
        return TimeWindow(function, time, _gap(args[1], binder), 0, 0, prefix)
    length = _duration(args[1], binder, shown)
    slide = _duration(args[2], binder, shown) if len(args) > 2 else length
    start = _duration(args[3], binder, shown) if len(args) > 3 else 0
    if length <= 0:
        raise _wrong(binder, "a window is longer than nothing", args[1])
    if not 0 < slide <= length:
        raise _wrong(binder, "windows begin at least as often as they are long, or rows would be in none", args[2])
    if abs(start) >= slide:
        raise _wrong(binder, "the start is less than what lies between two windows", args[3])
    if length // slide > _MOST_WINDOWS:
        raise binder.place.unsupported(
            "HW226", f"a row would be in {-(-length // slide)} windows; {_MOST_WINDOWS} is the most", node
        )
    return TimeWindow(function, time, length, slide, start % slide, prefix)


def _time(node: exp.Expr, binder: Binder, shown: str) -> Scalar:
    bound = binder.bind(node)
    if bound.type == WINDOW:
        return window_time(bound)
    if not isinstance(bound.type, t.Timestamp | t.Date | t.String | t.Null):
        raise binder.place.mistake("HW122", f"{shown}: takes a TIMESTAMP or a window, not {bound.type}", node)
    return binder.convert(bound, t.TIMESTAMP, node)


def _duration(node: exp.Expr, binder: Binder, shown: str) -> int:
    """A length of time, in microseconds."""
    given = binder.bind(node)
    if isinstance(given, Literal) and isinstance(given.type, t.Integer) and isinstance(given.value, int):
        return given.value
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        raise _wrong(binder, f"a duration of {shown} is a text, or a number of microseconds, that stands there", node)
    length = _interval(given.value, node, binder)
    if length.type != t.DAY_TIME_INTERVAL:
        raise _wrong(binder, "months differ in length; a window's duration is weeks, days or less", node)
    assert isinstance(length.value, int)
    return length.value


def _gap(node: exp.Expr, binder: Binder) -> int:
    """The gap that ends a session, in microseconds."""
    given = binder.bind(node)
    if not isinstance(given, Literal):
        raise binder.place.unsupported("HW226", "a gap that differs from row to row is not supported", node)
    if not isinstance(given.value, str):
        raise _wrong(binder, "the gap of SESSION_WINDOW is a text that stands there", node)
    gap = _interval(given.value, node, binder)
    if gap.type != t.DAY_TIME_INTERVAL:
        raise binder.place.unsupported("HW226", "a gap of months or years is not supported", node, "use days")
    assert isinstance(gap.value, int)
    if gap.value <= 0:
        raise _wrong(binder, "a gap is longer than nothing, or no row would be in a session", node)
    return gap.value


def _interval(text: str, node: exp.Expr, binder: Binder) -> Literal:
    try:
        return literals.interval_text(text)
    except ValueError as error:
        raise _wrong(binder, str(error), node) from None


def _wrong(binder: Binder, reason: str, node: exp.Expr) -> Exception:
    return binder.place.mistake("HW147", reason, node, "write it as '10 minutes' or '1 day 12 hours'")
