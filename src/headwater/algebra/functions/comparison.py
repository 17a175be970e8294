"""Comparisons. NaN equals NaN and is the largest number; strings compare by their UTF-8 bytes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from headwater import types as t
from headwater.algebra.functions.registry import Function, Resolver, Signature, define, register
from headwater.algebra.functions.signatures import common, common_operand, count_args, describe
from headwater.algebra.scalars import Call, Scalar


def sort_key(value: object) -> object:
    """A key under which Python orders values of one type as Spark does (NULL apart)."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, tuple):
        return tuple((item is not None, sort_key(item)) for item in value)
    return value


def compared(ordered: bool) -> Resolver:
    """Two arguments that meet at a type with equality, or with an order."""

    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 2)
        kind = common_operand(args)
        good = t.is_orderable(kind) if ordered else t.is_groupable(kind)
        if not good:
            raise ValueError(f"values of type {kind} cannot be compared ({describe(args)})")
        return Signature((kind, kind), t.BOOLEAN)

    return resolve


def _comparison(test: Callable[[Any, Any], bool]) -> Callable[..., object]:
    return lambda call, a, b: test(sort_key(a), sort_key(b))


for _name, _test, _summary in (
    ("=", operator.eq, "Equal."),
    ("<>", operator.ne, "Not equal."),
    ("<", operator.lt, "Less."),
    ("<=", operator.le, "Less or equal."),
    (">", operator.gt, "Greater."),
    (">=", operator.ge, "Greater or equal."),
):
    register(Function(_name, compared(_name not in ("=", "<>")), _comparison(_test), summary=_summary))


@define(("<=>", "equal_null"), compared(False), strict=False)
def null_safe_equal(call: Call, a: object, b: object) -> object:
    """Equal, where NULL equals NULL; never NULL."""
    if a is None or b is None:
        return a is b
    return bool(sort_key(a) == sort_key(b))


def _in_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2, 1_000_000)
    kind = common(args)
    if not t.is_groupable(kind):
        raise ValueError(f"values of type {kind} cannot be compared")
    return Signature((kind,) * len(args), t.BOOLEAN)


@define("in", _in_signature, strict=False, lazy=True)
def is_in(call: Call, x: Callable[[], object], *items: Callable[[], object]) -> object:
    """Whether the first argument equals one of the others; NULL if only a NULL could have been it."""
    value = x()
    if value is None:
        return None
    unknown = False
    for item in items:
        other = item()
        if other is None:
            unknown = True
        elif sort_key(other) == sort_key(value):
            return True
    return None if unknown else False
