"""The reference meaning of scalar expressions: plain Python, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.algebra.functions.casts import cast_value
from headwater.algebra.functions.errors import INVALID_VALUE, EvaluationError
from headwater.algebra.functions.registry import REGISTRY
from headwater.algebra.scalars import Call, Cast, Column, Given, Lambda, Literal, Parameter, Scalar

#: Values of parameters, by number.
Values = Mapping[int, object]
_NONE: Values = {}


def evaluate_scalar(scalar: Scalar, row: Mapping[str, object], given: Values = _NONE) -> object:
    """The value of an expression for one row, a Python value of its type (see `headwater.types`).

    A lambda's value is a Python function. `given` are the parameters of the lambdas that are being called.

    Raises:
        EvaluationError: the expression has no value for this row.
    """
    match scalar:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Cast(arg=arg, type=target, safe=safe):
            return cast_value(evaluate_scalar(arg, row, given), arg.type, target, safe)
        case Call():
            return _call(scalar, row, given)
        case Parameter(number=number):
            return given[number]
        case Lambda():
            return _function(scalar, row, given)
        case Given(number=number):
            raise EvaluationError(INVALID_VALUE, f"constant {number} is not given yet")
    raise AssertionError(f"{type(scalar).__name__} is not a scalar")


def _call(call: Call, row: Mapping[str, object], given: Values) -> object:
    function = REGISTRY[call.function]
    if function.lazy:
        return function.evaluate(call, *(_thunk(arg, row, given) for arg in call.args))
    values = [evaluate_scalar(arg, row, given) for arg in call.args]
    if function.strict and any(value is None for value in values):
        return None
    return function.evaluate(call, *values)


def _thunk(scalar: Scalar, row: Mapping[str, object], given: Values) -> Callable[[], object]:
    return lambda: evaluate_scalar(scalar, row, given)


def _function(scalar: Lambda, row: Mapping[str, object], given: Values) -> Callable[..., object]:
    numbers = [one.number for one in scalar.parameters]
    return lambda *values: evaluate_scalar(scalar.body, row, {**given, **dict(zip(numbers, values, strict=True))})
