"""Aggregates that do not add up: from all rows of a group to one value.

A choice among equals is made total: the smallest value by the order of its type. NULLs are left out, unless it is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from headwater import types as t
from headwater.algebra.folds import Pick, Sorting
from headwater.algebra.functions.comparison import sort_key
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.scalars import Literal, Scalar

#: A row's arguments, and how often the row is there.
Rows = list[tuple[tuple[Any, ...], int]]

SEVERAL_ROWS = "HW504"


@dataclass(frozen=True)
class PickFunction:
    """An aggregate.

    Attributes:
        result: the type of its value; raises ValueError with a reason a user understands.
        evaluate: its value for a group's rows.
        empty: its value for a group of no rows.
        weighed: how often a row is there makes a difference.
    """

    result: Callable[[Pick], t.Type]
    evaluate: Callable[[Pick, Rows], object]
    empty: object = None
    weighed: bool = False


PICKS: dict[str, PickFunction] = {}


def several_rows() -> EvaluationError:
    return EvaluationError(
        SEVERAL_ROWS,
        "a query that stands for one value has more than one row",
        hint="aggregate it (MAX, MIN), or make its condition unique",
    )


def _one(pick: Pick) -> Scalar:
    if len(pick.args) != 1:
        raise ValueError(f"takes 1 argument, not {len(pick.args)}")
    return pick.args[0]


def _ordered(pick: Pick) -> t.Type:
    kind = _one(pick).type
    if not t.is_orderable(kind):
        raise ValueError(f"{kind} has no order")
    return kind


def _in_order(pick: Pick) -> t.Type:
    for scalar in pick.scalars:
        if not t.is_orderable(scalar.type):
            raise ValueError(f"{scalar.type} has no order")
    return _one(pick).type


def _array(pick: Pick) -> t.Type:
    return t.Array(_ordered(pick))


def _sorted_array(pick: Pick) -> t.Type:
    kind = _one(pick).type
    if not t.is_sortable(kind):
        raise ValueError(f"{kind} has no order")
    return t.Array(kind)


def _groupable(pick: Pick) -> None:
    for arg in pick.args:
        if not t.is_groupable(arg.type):
            raise ValueError(f"{arg.type} has no equality")


def _count_type(pick: Pick) -> t.Type:
    if not pick.args:
        raise ValueError("takes at least 1 argument, not 0")
    _groupable(pick)
    return t.BIGINT


def _double_type(pick: Pick) -> t.Type:
    if _one(pick).type != t.DOUBLE:
        raise ValueError(f"takes a DOUBLE, not {pick.args[0].type}")
    return t.DOUBLE


def _total_type(pick: Pick) -> t.Type:
    from headwater.algebra.nodes import total_type

    return total_type(_one(pick).type)


def _percentile_type(pick: Pick) -> t.Type:
    if len(pick.args) != 2:
        raise ValueError(f"takes 2 arguments, not {len(pick.args)}")
    value, share = pick.args
    if value.type != t.DOUBLE or not isinstance(share, Literal) or not isinstance(share.value, float):
        raise ValueError("takes a number and a constant share between 0 and 1")
    if not 0 <= share.value <= 1:
        raise ValueError("takes a share between 0 and 1")
    return t.DOUBLE


def _known(rows: Rows) -> list[Any]:
    """The first arguments that are not NULL, each as often as it is there."""
    return [values[0] for values, n in rows if values[0] is not None for _ in range(n)]


def _distinct(rows: Rows) -> list[Any]:
    found: dict[object, Any] = {}
    for values, _ in rows:
        if values[0] is not None:
            found.setdefault(sort_key(values[0]), values[0])
    return list(found.values())


def _min(pick: Pick, rows: Rows) -> object:
    return min(_known(rows), key=sort_key, default=None)  # type: ignore[arg-type]


def _max(pick: Pick, rows: Rows) -> object:
    return max(_known(rows), key=sort_key, default=None)  # type: ignore[arg-type]


def compare_cells(by: Sorting, a: object, b: object) -> int:
    """-1, 0 or 1: which of two values comes first."""
    if a is None or b is None:
        return 0 if a is b else -1 if (a is None) == by.nulls_first else 1
    x: Any = sort_key(a)
    y: Any = sort_key(b)
    found = int(x > y) - int(x < y)
    return -found if by.descending else found


def _first(pick: Pick, rows: Rows) -> object:
    """The first argument of the row that comes first; of several, the smallest one, NULL before others."""
    order = (*pick.order, Sorting(pick.args[0]))

    def compare(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        keys = zip(order, (*a[1:], a[0]), (*b[1:], b[0]), strict=True)
        return next(filter(None, (compare_cells(by, x, y) for by, x, y in keys)), 0)

    return min((values for values, _ in rows), key=cmp_to_key(compare))[0]


def _count_distinct(pick: Pick, rows: Rows) -> object:
    return len({tuple(sort_key(v) for v in values) for values, _ in rows if None not in values})


def _sum_distinct(pick: Pick, rows: Rows) -> object:
    return sum((int(v) if isinstance(v, bool) else v for v in _distinct(rows)), Decimal(0))


def _sum_distinct_double(pick: Pick, rows: Rows) -> object:
    found = _distinct(rows)
    return math.fsum(found) if all(map(math.isfinite, found)) else sum(found)


def _collect_list(pick: Pick, rows: Rows) -> object:
    return tuple(sorted(_known(rows), key=sort_key))  # type: ignore[arg-type]


def _collect_set(pick: Pick, rows: Rows) -> object:
    return tuple(sorted(_distinct(rows), key=sort_key))  # type: ignore[arg-type]


def _percentile(pick: Pick, rows: Rows) -> object:
    found = sorted(_known(rows), key=sort_key)  # type: ignore[arg-type]
    share = pick.args[1]
    assert isinstance(share, Literal)
    if not found:
        return None
    at = float(str(share.value)) * (len(found) - 1)
    low, high = math.floor(at), math.ceil(at)
    if low == high or found[low] == found[high]:
        return found[low]
    return found[low] * (high - at) + found[high] * (at - low)


def _moment(sample: bool, root: bool) -> Callable[[Pick, Rows], object]:
    def evaluate(pick: Pick, rows: Rows) -> object:
        found = _known(rows)
        n = len(found) - (1 if sample else 0)
        if not found or n == 0:
            return None
        if not all(map(math.isfinite, found)):
            return math.nan
        mean = math.fsum(found) / len(found)
        value = math.fsum((one - mean) ** 2 for one in found) / n
        return math.sqrt(value) if root else value

    return evaluate


def _single(pick: Pick, rows: Rows) -> object:
    if sum(n for _, n in rows) > 1:
        raise several_rows()
    return rows[0][0][0] if rows else None


PICKS |= {
    "min": PickFunction(_ordered, _min),
    "max": PickFunction(_ordered, _max),
    "first": PickFunction(_in_order, _first),
    "count_distinct": PickFunction(_count_type, _count_distinct, empty=0),
    "sum_distinct": PickFunction(_total_type, _sum_distinct, empty=Decimal(0)),
    "sum_distinct_double": PickFunction(_double_type, _sum_distinct_double, empty=0.0),
    "collect_list": PickFunction(_sorted_array, _collect_list, empty=(), weighed=True),
    "collect_set": PickFunction(_array, _collect_set, empty=()),
    "percentile": PickFunction(_percentile_type, _percentile, weighed=True),
    "var_pop": PickFunction(_double_type, _moment(sample=False, root=False), weighed=True),
    "var_samp": PickFunction(_double_type, _moment(sample=True, root=False), weighed=True),
    "stddev_pop": PickFunction(_double_type, _moment(sample=False, root=True), weighed=True),
    "stddev_samp": PickFunction(_double_type, _moment(sample=True, root=True), weighed=True),
    "single": PickFunction(lambda pick: _one(pick).type, _single, weighed=True),
}
