"""CASE and its relatives; only the chosen branch is evaluated."""

from __future__ import annotations

from collections.abc import Callable

from headwater import types as t
from headwater.algebra.functions.casts import cast_value
from headwater.algebra.functions.comparison import compared, sort_key
from headwater.algebra.functions.registry import Signature, define
from headwater.algebra.functions.signatures import common, count_args, describe
from headwater.algebra.scalars import Call, Scalar

Thunk = Callable[[], object]


def _condition(arg: Scalar) -> t.Type:
    if not isinstance(arg.type, t.Boolean | t.Null):
        raise ValueError(f"a condition is BOOLEAN, not {arg.type}")
    return t.BOOLEAN


def _case_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3, 1_000_000)
    if len(args) % 2 == 0:
        raise ValueError("takes condition, value pairs and an ELSE value")
    values = (*args[1:-1:2], args[-1])
    kind = common(values)
    params = [kind if position % 2 else _condition(arg) for position, arg in enumerate(args[:-1])]
    return Signature((*params, kind), kind)


@define("case", _case_signature, strict=False, lazy=True)
def case(call: Call, *args: Thunk) -> object:
    """The value after the first condition that is TRUE, else the last argument."""
    for position in range(0, len(args) - 1, 2):
        if args[position]() is True:
            return args[position + 1]()
    return args[-1]()


def _if_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    kind = common(args[1:])
    return Signature((_condition(args[0]), kind, kind), kind)


@define("if", _if_signature, strict=False, lazy=True)
def choose(call: Call, condition: Thunk, then: Thunk, otherwise: Thunk) -> object:
    """The second argument if the first is TRUE, else the third."""
    return then() if condition() is True else otherwise()


def _coalesce_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1, 1_000_000)
    kind = common(args)
    return Signature((kind,) * len(args), kind)


def _two_alike(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    return _coalesce_signature(args)


@define("coalesce", _coalesce_signature, strict=False, lazy=True)
def coalesce(call: Call, *args: Thunk) -> object:
    """The first argument that is not NULL."""
    for arg in args:
        value = arg()
        if value is not None:
            return value
    return None


define(("nvl", "ifnull"), _two_alike, strict=False, lazy=True)(coalesce)


def _nvl2_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3)
    kind = common(args[1:])
    return Signature((args[0].type, kind, kind), kind)


@define("nvl2", _nvl2_signature, strict=False, lazy=True)
def nvl2(call: Call, a: Thunk, then: Thunk, otherwise: Thunk) -> object:
    """The second argument if the first is not NULL, else the third."""
    return then() if a() is not None else otherwise()


def _nullif_signature(args: tuple[Scalar, ...]) -> Signature:
    kind = compared(False)(args).params[0]
    left, right = args[0].type, args[1].type
    if t.is_numeric(left) and t.is_numeric(right):
        return Signature((left, right), left)  # numbers compare across types, and the first one keeps its own
    if isinstance(left, t.Null) or kind == left:
        return Signature((kind, kind), kind)
    raise ValueError(f"takes two arguments of one type, not ({describe(args)}); cast one of them")


@define("nullif", _nullif_signature, strict=False)
def nullif(call: Call, a: object, b: object) -> object:
    """NULL if both are equal, else the first."""
    if a is None or b is None:
        return a
    kind = t.common_type(call.args[0].type, call.args[1].type)
    assert kind is not None
    left, right = (cast_value(v, arg.type, kind) for v, arg in zip((a, b), call.args, strict=True))
    return None if sort_key(left) == sort_key(right) else a


def _number_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = args[0].type
    if isinstance(kind, t.Null):
        kind = t.INT
    if not t.is_numeric(kind):
        raise ValueError(f"takes a number, not {kind}")
    return Signature((kind,), kind)


def _zeroifnull_signature(args: tuple[Scalar, ...]) -> Signature:
    kind = t.common_type(_number_signature(args).result, t.INT)  # the zero is an INT
    assert kind is not None
    return Signature((kind,), kind)


@define("zeroifnull", _zeroifnull_signature, strict=False)
def zeroifnull(call: Call, a: object) -> object:
    """The number, or 0 for NULL."""
    return cast_value(0, t.INT, call.type) if a is None else a


@define("nullifzero", _number_signature)
def nullifzero(call: Call, a: object) -> object:
    """The number, or NULL for 0."""
    return None if a == 0 else a
