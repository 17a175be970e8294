"""Window functions: calls of the algebra's `Over`, and the values computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import columns_of
from headwater.algebra.folds import RUNNING, WHOLE, Frame, Pick, Sorting, WindowCall
from headwater.algebra.nodes import Node, Over
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call
from headwater.algebra.windows import SHARES, UNFRAMED
from headwater.sql.aggregate_call import AggregateCall
from headwater.sql.bind import Binder
from headwater.sql.calls import function_name
from headwater.sql.function_names import AGGREGATES
from headwater.sql.lower_aggregates import Aggregator
from headwater.sql.names import fold
from headwater.sql.place import Place

_RANKS = frozenset({"row_number", "rank", "dense_rank"})
_VALUES = {"first_value": "first_value", "first": "first_value", "last_value": "last_value", "last": "last_value"}
_PICKS = frozenset({"min", "max", "var_pop", "var_samp", "stddev_pop", "stddev_samp"})

_DAY = 86_400_000_000

Partition = tuple[Scalar, ...]


class WindowBuilder:
    """Collects the window functions of one SELECT."""

    def __init__(self, place: Place, named: Sequence[exp.Window], not_null: frozenset[str]) -> None:
        """Start with none.

        Args:
            place: where the query stands in the text.
            named: the WINDOW clause.
            not_null: columns that are never NULL.
        """
        self._place = place
        self._named = {fold(one.name): one for one in named}
        self._not_null = not_null
        self._calls: dict[tuple[Partition, WindowCall], Column] = {}

    @property
    def names(self) -> frozenset[str]:
        """Names of all columns that window functions make."""
        return frozenset(column.name for column in self._calls.values())

    def calls(self) -> dict[Partition, list[tuple[str, WindowCall]]]:
        """The calls, by what they are partitioned by."""
        out: dict[Partition, list[tuple[str, WindowCall]]] = {}
        for (partition, one), column in self._calls.items():
            out.setdefault(partition, []).append((column.name, one))
        return out

    def add(self, binder: Binder, node: exp.Window) -> Scalar:
        """The value of a window function."""
        whole = self._definition(node)
        if node.args.get("over") not in (None, "OVER"):
            raise self._place.unsupported("HW205", f"{node.args['over']} is not supported", node)
        partition = tuple(dict.fromkeys(self._key(binder, one) for one in whole.args.get("partition_by") or ()))
        order = self._order(binder, whole.args.get("order"))
        return self._function(binder, node, partition, order, whole.args.get("spec"))

    def _definition(self, node: exp.Window) -> exp.Window:
        """The window itself, or the one of the WINDOW clause that it names."""
        alias = node.args.get("alias")
        if alias is None:
            return node
        found = self._named.get(fold(alias.name))
        if found is None:
            raise self._place.mistake("HW101", f"there is no window {alias.name}", node, "WINDOW defines them")
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise self._place.unsupported("HW205", "a window that refines another is not supported", node)
        return found

    def _key(self, binder: Binder, node: exp.Expr) -> Scalar:
        scalar = binder.bind(node)
        if not t.is_groupable(scalar.type):
            raise self._place.mistake("HW125", f"{scalar.type} has no equality", node)
        return scalar

    def _order(self, binder: Binder, clause: exp.Order | None) -> tuple[Sorting, ...]:
        out = []
        for one in clause.expressions if clause is not None else ():
            scalar = binder.bind(one.this)
            if not t.is_orderable(scalar.type):
                raise self._place.mistake("HW125", f"{scalar.type} has no order", one)
            out.append(Sorting(scalar, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
        return tuple(out)

    def _function(
        self, binder: Binder, node: exp.Window, partition: Partition, order: tuple[Sorting, ...], spec: exp.Expr | None
    ) -> Scalar:
        call = node.this
        where: exp.Expr | None = None
        ignoring = False
        while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            if isinstance(call, exp.Filter):
                where = call.expression.this
            ignoring = ignoring or isinstance(call, exp.IgnoreNulls)
            call = call.this
        if not isinstance(call, exp.Anonymous):
            raise self._place.unsupported("HW205", f"{self._place.text(call)} is not supported over a window", node)
        name = function_name(call)
        shown = name.upper()
        if ignoring:
            raise self._place.unsupported("HW205", f"{shown} IGNORE NULLS is not supported", node)
        if where is not None and (name not in AGGREGATES or name in _VALUES):
            raise self._place.unsupported("HW205", f"{shown} over a window takes no FILTER", node)
        if any(isinstance(one, exp.Order) for one in call.expressions):
            raise self._place.unsupported("HW205", "an order inside a window function is not supported", node)
        if (name in UNFRAMED) and not order:
            raise self._place.mistake("HW139", f"{shown} needs an order", node, f"{shown}(...) OVER (ORDER BY ...)")
        if name in _RANKS or name in SHARES:
            self._count_args(call, 0, 0, node)
            return self._call(partition, WindowCall(name, (), order))
        if name == "ntile":
            self._count_args(call, 1, 1, node)
            return self._call(partition, WindowCall(name, (self._number(binder, call, 0, 1),), order))
        if name in ("lag", "lead"):
            return self._call(partition, WindowCall(name, self._shifted(binder, call, node), order))
        frame, order = self._frame(binder, spec, order, node)
        if name in _VALUES:
            self._count_args(call, 1, 1, node)
            return self._call(partition, WindowCall(_VALUES[name], (binder.bind(call.expressions[0]),), order, frame))
        if name == "nth_value":
            self._count_args(call, 2, 2, node)
            args = (binder.bind(call.expressions[0]), self._number(binder, call, 1, 1))
            return self._call(partition, WindowCall(name, args, order, frame))
        if name not in AGGREGATES:
            raise self._place.mistake("HW138", f"{shown} is no window function", node)
        return self._aggregate(binder, call, where, partition, order, frame, node)

    def _aggregate(
        self,
        binder: Binder,
        call: exp.Anonymous,
        where: exp.Expr | None,
        partition: Partition,
        order: tuple[Sorting, ...],
        frame: Frame,
        node: exp.Window,
    ) -> Scalar:
        args = call.expressions
        if len(args) == 1 and isinstance(args[0], exp.Distinct):
            raise self._place.unsupported("HW205", "DISTINCT is not supported over a window", node)
        star = len(args) == 1 and isinstance(args[0], exp.Star)
        bound = [] if star else [binder.bind(arg) for arg in args]
        condition = binder.condition(where) if where is not None else None
        kept = _Framed(self, partition, order, frame, node)
        seen = (frame.low or 0) <= 0 <= (frame.high or 0)
        aggregator = Aggregator(self._place, kept, binder, self._not_null, grouped=seen)
        return aggregator.value(AggregateCall(AGGREGATES[function_name(call)], node, tuple(bound), where=condition))

    def _count_args(self, call: exp.Anonymous, low: int, high: int, node: exp.Expr) -> None:
        if not low <= len(call.expressions) <= high:
            name = function_name(call).upper()
            raise self._place.mistake("HW122", f"{name}: takes {low} arguments, not {len(call.expressions)}", node)

    def _number(self, binder: Binder, call: exp.Anonymous, position: int, least: int) -> Literal:
        node = call.expressions[position]
        value = binder.constant(node)
        if not isinstance(value.type, t.Integer) or not isinstance(value.value, int) or value.value < least:
            raise self._place.mistake("HW132", f"a whole number of at least {least} is needed", node)
        return Literal(value.value, t.INT)

    def _shifted(self, binder: Binder, call: exp.Anonymous, node: exp.Window) -> tuple[Scalar, ...]:
        self._count_args(call, 1, 3, node)
        value = binder.bind(call.expressions[0])
        args: list[Scalar] = [value]
        if len(call.expressions) > 1:
            args.append(self._number(binder, call, 1, 0))
        if len(call.expressions) > 2:
            args.append(binder.convert(binder.bind(call.expressions[2]), value.type, node))
        return tuple(args)

    def _frame(
        self, binder: Binder, spec: exp.Expr | None, order: tuple[Sorting, ...], node: exp.Window
    ) -> tuple[Frame, tuple[Sorting, ...]]:
        """The frame, and the order in which its distances are whole numbers."""
        if spec is None:
            return (RUNNING if order else WHOLE), order
        unit = str(spec.args.get("kind") or "").lower()
        if unit not in ("rows", "range") or spec.args.get("exclude"):
            raise self._place.unsupported("HW205", "only frames of ROWS and RANGE are supported", node)
        if not order and unit == "range":
            raise self._place.mistake("HW139", "a frame of RANGE needs an order", node)
        kind = order[0].scalar.type if unit == "range" and len(order) == 1 else None
        low = self._end(binder, spec.args.get("start"), spec.args.get("start_side"), kind, node, first=True)
        end = spec.args.get("end") or "CURRENT ROW"
        high = self._end(binder, end, spec.args.get("end_side"), kind, node, first=False)
        if low is not None and high is not None and low > high:
            raise self._place.mistake("HW132", "the frame ends before it begins", node)
        if unit == "range" and (low or high) and isinstance(order[0].scalar, Literal):
            if not (low or 0) <= 0 <= (high or 0):
                raise self._place.unsupported("HW205", "a frame beside a constant is not supported", node)
            return WHOLE, order  # all rows are equal in it
        if unit == "range" and (low or high):
            if not isinstance(kind, t.Integer | t.Date | t.Timestamp):
                raise self._place.unsupported(
                    "HW205",
                    "a frame of RANGE by a distance needs one whole number, DATE or TIMESTAMP as order",
                    node,
                )
            order = (replace(order[0], scalar=_counted(order[0].scalar)),)
        return Frame(unit, low, high), order

    def _end(
        self, binder: Binder, end: object, side: object, kind: t.Type | None, node: exp.Window, first: bool
    ) -> int | None:
        if isinstance(end, str):
            if end.upper() == "UNBOUNDED" and str(side).upper() != ("PRECEDING" if first else "FOLLOWING"):
                raise self._place.mistake("HW132", f"a frame cannot {'begin' if first else 'end'} there", node)
            return None if end.upper() == "UNBOUNDED" else 0
        if not isinstance(end, exp.Expr):
            raise self._place.unsupported("HW205", "such a frame is not supported", node)
        value = binder.constant(end)
        distance = value.value
        if isinstance(value.type, t.DayTimeInterval) and isinstance(distance, int):  # microseconds
            if kind is None:
                raise self._place.mistake("HW132", "an interval is a distance in RANGE over one key", node)
            if kind not in (t.DATE, t.TIMESTAMP) or (kind == t.DATE and distance % _DAY):
                raise self._place.mistake("HW132", "the interval is no distance in what the frame is ordered by", node)
            distance = distance // _DAY if kind == t.DATE else distance
        elif isinstance(value.type, t.YearMonthInterval):
            raise self._place.unsupported("HW205", "a frame by months or years is not supported", node, "use days")
        elif kind == t.TIMESTAMP:
            raise self._place.mistake("HW132", "a distance of TIMESTAMPs is an interval", node, "INTERVAL 1 HOUR")
        if not isinstance(distance, int) or isinstance(distance, bool) or distance < 0:
            raise self._place.mistake("HW132", "a frame's distance is a whole number that is not negative", node)
        return -distance if str(side).upper() == "PRECEDING" else distance

    def _call(self, partition: Partition, call: WindowCall) -> Scalar:
        key = (partition, call)
        if key not in self._calls:
            self._calls[key] = Column(f"w{len(self._calls) + 1}", call.type)
        return self._calls[key]


def _counted(scalar: Scalar) -> Scalar:
    """A key of an order as a whole number: days of a DATE, microseconds of a TIMESTAMP."""
    match scalar.type:
        case t.Date():
            return call("unix_date", scalar)
        case t.Timestamp():
            return call("unix_micros", scalar)
    return scalar


class _Framed:
    """Totals and picks over the frame of a window."""

    def __init__(
        self, builder: WindowBuilder, partition: Partition, order: tuple[Sorting, ...], frame: Frame, node: exp.Window
    ) -> None:
        self._builder = builder
        self._partition = partition
        self._order = order
        self._frame = frame
        self._node = node

    def rows(self) -> Scalar:
        return self._add("count", ())

    def term(self, term: Scalar) -> Scalar:
        return self._add("total", (term,))

    def pick(self, pick: Pick) -> Scalar:
        if pick.function not in _PICKS:
            raise self._builder._place.unsupported("HW205", "this aggregate is not supported over a window", self._node)
        return self._add(pick.function, pick.args)

    def _add(self, function: str, args: tuple[Scalar, ...]) -> Scalar:
        return self._builder._call(self._partition, WindowCall(function, args, self._order, self._frame))


def over(node: Node, partition: Partition, calls: tuple[tuple[str, WindowCall], ...], keys: tuple[str, ...]) -> Node:
    """The node with a column for each call."""
    outputs = columns_of(node) + tuple((name, Column(name, call.type)) for name, call in calls)
    return Over(node, tuple(zip(keys, partition, strict=True)), calls, outputs, TRUE)
