"""What window functions mean, in plain Python.

Rows that are equal in the order are put in the order of all their columns, so that a function that tells them apart
(ROW_NUMBER, LAG, a frame of ROWS) has one answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from headwater import types as t
from headwater.algebra.folds import Frame, Pick, Sorting, WindowCall
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.functions.picks import PICKS, compare_cells
from headwater.algebra.scalars import Column, Literal, Scalar

RANKS = frozenset({"row_number", "rank", "dense_rank"})
SHARES = frozenset({"percent_rank", "cume_dist"})
#: Functions that see the whole partition whatever their frame.
UNFRAMED = RANKS | SHARES | {"ntile", "lag", "lead"}
VALUES = frozenset({"first_value", "last_value", "nth_value"})
#: Functions that tell rows apart which are equal in the order.
TOTAL = frozenset({"row_number", "ntile", "lag", "lead"}) | VALUES

Env = Mapping[str, object]


def result_type(function: str, args: tuple[Scalar, ...]) -> t.Type:
    """The type of a window function's value."""
    from headwater.algebra.nodes import total_type

    if function in RANKS or function == "ntile":
        return t.INT
    if function in SHARES:
        return t.DOUBLE
    if function == "count":
        return t.BIGINT
    if function == "total":
        return total_type(args[0].type)
    if function in VALUES or function in ("lag", "lead"):
        return args[0].type
    return Pick(function, args).type


def compare(order: Sequence[Sorting], names: Sequence[str]) -> Any:
    """A key for sorting rows, given as environments, by an order and then by all columns."""

    plain = [Sorting(Column(name, t.NULL)) for name in names]

    def cmp(a: Env, b: Env) -> int:
        return compare_in([*order, *plain], a, b)

    return cmp_to_key(cmp)


def compare_in(order: Sequence[Sorting], a: Env, b: Env) -> int:
    """-1, 0 or 1: which of two rows comes first in an order."""
    for one in order:
        found = compare_cells(one, evaluate_scalar(one.scalar, a), evaluate_scalar(one.scalar, b))
        if found:
            return found
    return 0


def evaluate_window(call: WindowCall, rows: Sequence[Env], names: Sequence[str]) -> list[object]:
    """The value of a window function for each row of a partition, in the order the rows are given."""
    order = sorted(range(len(rows)), key=lambda i: compare(call.order, names)(rows[i]))
    ordered = [rows[i] for i in order]
    out: list[object] = [None] * len(rows)
    for at, i in enumerate(order):
        out[i] = _value(call, ordered, at)
    return out


def _peers(call: WindowCall, rows: Sequence[Env], at: int) -> tuple[int, int]:
    """The first row that is equal in the order, and the one after the last."""
    first = last = at
    while first > 0 and compare_in(call.order, rows[first - 1], rows[at]) == 0:
        first -= 1
    while last + 1 < len(rows) and compare_in(call.order, rows[last + 1], rows[at]) == 0:
        last += 1
    return first, last + 1


def _value(call: WindowCall, rows: Sequence[Env], at: int) -> object:
    first, after = _peers(call, rows, at)
    match call.function:
        case "row_number":
            return at + 1
        case "rank":
            return first + 1
        case "dense_rank":
            return 1 + sum(1 for i in range(1, at + 1) if compare_in(call.order, rows[i - 1], rows[i]))
        case "percent_rank":
            return 0.0 if len(rows) == 1 else first / (len(rows) - 1)
        case "cume_dist":
            return after / len(rows)
        case "ntile":
            return _ntile(_constant(call, 0), len(rows), at)
        case "lag" | "lead":
            shift = _constant(call, 1) if len(call.args) > 1 else 1
            other = at - shift if call.function == "lag" else at + shift
            if 0 <= other < len(rows):
                return evaluate_scalar(call.args[0], rows[other])
            return evaluate_scalar(call.args[2], rows[at]) if len(call.args) > 2 else None
    seen = rows[slice(*_frame(call, rows, at))]
    match call.function:
        case "count":
            return len(seen)
        case "total":
            return _total(call, seen)
        case "first_value":
            return evaluate_scalar(call.args[0], seen[0]) if seen else None
        case "last_value":
            return evaluate_scalar(call.args[0], seen[-1]) if seen else None
        case "nth_value":
            n = _constant(call, 1)
            return evaluate_scalar(call.args[0], seen[n - 1]) if len(seen) >= n else None
    function = PICKS[call.function]
    if not seen:
        return function.empty
    pick = Pick(call.function, call.args)
    return function.evaluate(pick, [(tuple(evaluate_scalar(arg, row) for arg in call.args), 1) for row in seen])


def _constant(call: WindowCall, position: int) -> int:
    arg = call.args[position]
    assert isinstance(arg, Literal) and isinstance(arg.value, int)
    return arg.value


def _ntile(buckets: int, rows: int, at: int) -> int:
    size, more = divmod(rows, buckets)
    large = more * (size + 1)
    return at // (size + 1) + 1 if at < large else more + (at - large) // max(size, 1) + 1


def _total(call: WindowCall, rows: Sequence[Env]) -> object:
    values: list[Any] = [evaluate_scalar(call.args[0], row) for row in rows]
    if isinstance(call.type, t.Decimal):
        return sum((Decimal(value) for value in values), Decimal(0).scaleb(-call.type.scale))
    return sum((int(v) if isinstance(v, bool) else v for v in values), 0.0 if call.type == t.DOUBLE else 0)


def _frame(call: WindowCall, rows: Sequence[Env], at: int) -> tuple[int, int]:
    """The first row of the frame, and the one after the last."""
    frame = call.frame
    if frame.unit == "rows":
        low = 0 if frame.low is None else max(0, at + frame.low)
        high = len(rows) if frame.high is None else max(0, at + frame.high + 1)
        return low, max(low, high)
    first, after = _peers(call, rows, at)
    return _bound(call, rows, at, frame.low, 0, first, True), _bound(
        call, rows, at, frame.high, len(rows), after, False
    )


def _bound(call: WindowCall, rows: Sequence[Env], at: int, by: int | None, end: int, peers: int, low: bool) -> int:
    """Where a frame of RANGE begins or ends."""
    if by is None:
        return end
    if by == 0:
        return peers
    [key] = call.order
    here: Any = evaluate_scalar(key.scalar, rows[at])
    if here is None:
        return peers
    limit = here - by if key.descending else here + by
    known = [evaluate_scalar(key.scalar, row) for row in rows]

    def inside(value: Any) -> bool:
        if value is None:
            return False
        return bool(value <= limit) if key.descending == low else bool(value >= limit)

    found = [i for i, value in enumerate(known) if inside(value)]
    if low:
        return min(found, default=len(rows))
    return max(found, default=-1) + 1


def is_total(call: WindowCall) -> bool:
    """Whether the function tells rows apart that are equal in the order."""
    frame: Frame = call.frame
    partial = frame.unit == "rows" and (frame.low, frame.high) != (None, None)
    return call.function in TOTAL or (call.function not in UNFRAMED and partial)
