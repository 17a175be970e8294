"""Arithmetic that gives NULL where it has no value."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.registry import REGISTRY, Function, Resolver, Signature, register
from headwater.algebra.functions.signatures import describe
from headwater.algebra.scalars import Call, Scalar

#: The operator behind each of them.
TRIED = {"try_add": "+", "try_subtract": "-", "try_multiply": "*", "try_divide": "/", "try_mod": "%"}


def _resolver(operator: str) -> Resolver:
    def resolve(args: tuple[Scalar, ...]) -> Signature:
        signature = REGISTRY[operator].resolve(args)
        if not all(t.is_numeric(kind) for kind in signature.params):
            raise ValueError(f"takes numbers, not ({describe(args)})")
        return signature

    return resolve


def operation(call: Call) -> Call:
    """The operation that is tried."""
    return Call(TRIED[call.function], call.args)


def _attempt(call: Call, a: object, b: object) -> object:
    plain = operation(call)
    try:
        return REGISTRY[plain.function].evaluate(plain, a, b)
    except EvaluationError:
        return None


for _name, _operator, _summary in (
    ("try_add", "+", "The sum of two numbers, or NULL where it does not fit its type."),
    ("try_subtract", "-", "The difference of two numbers, or NULL where it does not fit its type."),
    ("try_multiply", "*", "The product of two numbers, or NULL where it does not fit its type."),
    ("try_divide", "/", "The quotient of two numbers, or NULL for a zero divisor."),
    ("try_mod", "%", "The remainder of two numbers, or NULL for a zero divisor."),
):
    register(Function(_name, _resolver(_operator), _attempt, summary=_summary))
