"""The reference meaning of scalar expressions: plain Python, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.algebra.functions.casts import cast_value
from headwater.algebra.functions.registry import REGISTRY
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar


def evaluate_scalar(scalar: Scalar, row: Mapping[str, object]) -> object:
    """The value of an expression for one row, a Python value of its type (see `headwater.types`).

    Raises:
        EvaluationError: the expression has no value for this row.
    """
    match scalar:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Cast(arg=arg, type=target, safe=safe):
            return cast_value(evaluate_scalar(arg, row), arg.type, target, safe)
        case Call():
            return _call(scalar, row)
    raise AssertionError(f"{type(scalar).__name__} is not a scalar")


def _call(call: Call, row: Mapping[str, object]) -> object:
    function = REGISTRY[call.function]
    if function.lazy:
        return function.evaluate(call, *(_thunk(arg, row) for arg in call.args))
    values = [evaluate_scalar(arg, row) for arg in call.args]
    if function.strict and any(value is None for value in values):
        return None
    return function.evaluate(call, *values)


def _thunk(scalar: Scalar, row: Mapping[str, object]) -> Callable[[], object]:
    return lambda: evaluate_scalar(scalar, row)
