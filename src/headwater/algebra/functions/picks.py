"""Aggregates that do not add up: from all rows of a group to one value.

A choice among equals is made total: the smallest value by the order of its type. NULLs are left out, unless it is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from headwater import types as t
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

    result: Callable[[tuple[Scalar, ...]], t.Type]
    evaluate: Callable[[tuple[Scalar, ...], Rows], object]
    empty: object = None
    weighed: bool = False


PICKS: dict[str, PickFunction] = {}


def several_rows() -> EvaluationError:
    return EvaluationError(
        SEVERAL_ROWS,
        "a query that stands for one value has more than one row",
        hint="aggregate it (MAX, MIN), or make its condition unique",
    )


def _one(args: tuple[Scalar, ...]) -> Scalar:
    if len(args) != 1:
        raise ValueError(f"takes 1 argument, not {len(args)}")
    return args[0]


def _ordered(args: tuple[Scalar, ...]) -> t.Type:
    kind = _one(args).type
    if not t.is_orderable(kind):
        raise ValueError(f"{kind} has no order")
    return kind


def _by(args: tuple[Scalar, ...]) -> t.Type:
    if len(args) != 2:
        raise ValueError(f"takes 2 arguments, not {len(args)}")
    for arg in args:
        if not t.is_orderable(arg.type):
            raise ValueError(f"{arg.type} has no order")
    return args[0].type


def _array(args: tuple[Scalar, ...]) -> t.Type:
    return t.Array(_ordered(args))


def _groupable(args: tuple[Scalar, ...]) -> None:
    for arg in args:
        if not t.is_groupable(arg.type):
            raise ValueError(f"{arg.type} has no equality")


def _count_type(args: tuple[Scalar, ...]) -> t.Type:
    if not args:
        raise ValueError("takes at least 1 argument, not 0")
    _groupable(args)
    return t.BIGINT


def _double_type(args: tuple[Scalar, ...]) -> t.Type:
    if _one(args).type != t.DOUBLE:
        raise ValueError(f"takes a DOUBLE, not {args[0].type}")
    return t.DOUBLE


def _total_type(args: tuple[Scalar, ...]) -> t.Type:
    from headwater.algebra.nodes import total_type

    return total_type(_one(args).type)


def _percentile_type(args: tuple[Scalar, ...]) -> t.Type:
    if len(args) != 2:
        raise ValueError(f"takes 2 arguments, not {len(args)}")
    share = args[1]
    if args[0].type != t.DOUBLE or not isinstance(share, Literal) or not isinstance(share.value, float):
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


def _min(args: tuple[Scalar, ...], rows: Rows) -> object:
    return min(_known(rows), key=sort_key, default=None)  # type: ignore[arg-type]


def _max(args: tuple[Scalar, ...], rows: Rows) -> object:
    return max(_known(rows), key=sort_key, default=None)  # type: ignore[arg-type]


def _min_by(args: tuple[Scalar, ...], rows: Rows) -> object:
    return _extreme(rows, min)


def _max_by(args: tuple[Scalar, ...], rows: Rows) -> object:
    return _extreme(rows, max)


def _extreme(rows: Rows, choose: Callable[..., Any]) -> object:
    """The first argument where the second is smallest or largest; of several, the smallest one, NULL before others."""
    keys = [sort_key(by) for (_, by), _ in rows if by is not None]
    if not keys:
        return None
    best = choose(keys)
    found = [value for (value, by), _ in rows if by is not None and sort_key(by) == best]
    return None if None in found else min(found, key=sort_key)  # type: ignore[arg-type]


def _count_distinct(args: tuple[Scalar, ...], rows: Rows) -> object:
    return len({tuple(sort_key(v) for v in values) for values, _ in rows if None not in values})


def _sum_distinct(args: tuple[Scalar, ...], rows: Rows) -> object:
    return sum((int(v) if isinstance(v, bool) else v for v in _distinct(rows)), Decimal(0))


def _sum_distinct_double(args: tuple[Scalar, ...], rows: Rows) -> object:
    found = _distinct(rows)
    return math.fsum(found) if all(map(math.isfinite, found)) else sum(found)


def _collect_list(args: tuple[Scalar, ...], rows: Rows) -> object:
    return tuple(sorted(_known(rows), key=sort_key))  # type: ignore[arg-type]


def _collect_set(args: tuple[Scalar, ...], rows: Rows) -> object:
    return tuple(sorted(_distinct(rows), key=sort_key))  # type: ignore[arg-type]


def _percentile(args: tuple[Scalar, ...], rows: Rows) -> object:
    found = sorted(_known(rows), key=sort_key)  # type: ignore[arg-type]
    share = args[1]
    assert isinstance(share, Literal)
    if not found:
        return None
    at = float(str(share.value)) * (len(found) - 1)
    low, high = math.floor(at), math.ceil(at)
    if low == high or found[low] == found[high]:
        return found[low]
    return found[low] * (high - at) + found[high] * (at - low)


def _moment(sample: bool, root: bool) -> Callable[[tuple[Scalar, ...], Rows], object]:
    def evaluate(args: tuple[Scalar, ...], rows: Rows) -> object:
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


def _single(args: tuple[Scalar, ...], rows: Rows) -> object:
    if sum(n for _, n in rows) > 1:
        raise several_rows()
    return rows[0][0][0] if rows else None


PICKS |= {
    "min": PickFunction(_ordered, _min),
    "max": PickFunction(_ordered, _max),
    "min_by": PickFunction(_by, _min_by),
    "max_by": PickFunction(_by, _max_by),
    "count_distinct": PickFunction(_count_type, _count_distinct, empty=0),
    "sum_distinct": PickFunction(_total_type, _sum_distinct, empty=Decimal(0)),
    "sum_distinct_double": PickFunction(_double_type, _sum_distinct_double, empty=0.0),
    "collect_list": PickFunction(_array, _collect_list, empty=(), weighed=True),
    "collect_set": PickFunction(_array, _collect_set, empty=()),
    "percentile": PickFunction(_percentile_type, _percentile, weighed=True),
    "var_pop": PickFunction(_double_type, _moment(sample=False, root=False), weighed=True),
    "var_samp": PickFunction(_double_type, _moment(sample=True, root=False), weighed=True),
    "stddev_pop": PickFunction(_double_type, _moment(sample=False, root=True), weighed=True),
    "stddev_samp": PickFunction(_double_type, _moment(sample=True, root=True), weighed=True),
    "single": PickFunction(lambda args: _one(args).type, _single, weighed=True),
}
