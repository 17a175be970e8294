"""Three-valued logic; AND and OR look at their right side only when the left does not decide."""

from __future__ import annotations

from collections.abc import Callable

from headwater import types as t
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import count_args, takes
from headwater.algebra.scalars import Call, Scalar

Thunk = Callable[[], object]

_two = takes(t.BOOLEAN, t.BOOLEAN, result=t.BOOLEAN)
_one = takes(t.BOOLEAN, result=t.BOOLEAN)


@define("and", _two, strict=False, lazy=True)
def conjunction(call: Call, a: Thunk, b: Thunk) -> object:
    """FALSE if one side is, else NULL if one side is, else TRUE."""
    left = a()
    if left is False:
        return False
    right = b()
    if right is False:
        return False
    return None if left is None or right is None else True


@define("or", _two, strict=False, lazy=True)
def disjunction(call: Call, a: Thunk, b: Thunk) -> object:
    """TRUE if one side is, else NULL if one side is, else FALSE."""
    left = a()
    if left is True:
        return True
    right = b()
    if right is True:
        return True
    return None if left is None or right is None else False


@define("not", _one)
def negation(call: Call, a: bool) -> object:
    """The opposite; NULL of NULL."""
    return not a


def _any_one(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    return Signature((args[0].type,), t.BOOLEAN)


@define(("is null", "isnull"), _any_one, strict=False)
def is_null(call: Call, a: object) -> object:
    """Whether the value is NULL."""
    return a is None


@define(("is not null", "isnotnull"), _any_one, strict=False)
def is_not_null(call: Call, a: object) -> object:
    """Whether the value is not NULL."""
    return a is not None


@define("is true", _one, strict=False)
def is_true(call: Call, a: object) -> object:
    """TRUE for TRUE only."""
    return a is True


@define("is not true", _one, strict=False)
def is_not_true(call: Call, a: object) -> object:
    """TRUE for FALSE and NULL."""
    return a is not True


@define("is false", _one, strict=False)
def is_false(call: Call, a: object) -> object:
    """TRUE for FALSE only."""
    return a is False


@define("is not false", _one, strict=False)
def is_not_false(call: Call, a: object) -> object:
    """TRUE for TRUE and NULL."""
    return a is not False
