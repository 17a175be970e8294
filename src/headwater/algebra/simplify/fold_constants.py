"""Compute what is constant: `DATE '1998-12-01' - INTERVAL 90 DAYS`, and the casts of literals."""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.functions import REGISTRY, may_raise
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import Node, transform
from headwater.algebra.scalars import Call, Cast, Lambda, Literal, Scalar
from headwater.algebra.simplify.scalars_of import map_scalars

#: Functions whose values grow with a number that they are given, and how large that may be.
_GROWING = ("repeat", "space", "lpad", "rpad", "sequence", "array_repeat")
_MANY = 10_000


def fold_constants(node: Node) -> Node:
    """The tree with constant scalars computed."""
    return transform(node, lambda one: map_scalars(one, fold))


def fold(scalar: Scalar) -> Scalar:
    """The scalar with its constant parts computed; what would raise stays, to raise when a row asks for it."""
    match scalar:
        case Cast(arg=arg, type=to, safe=safe):
            inner = fold(arg)
            after: Scalar = scalar if inner is arg else Cast(inner, to, safe)
        case Call(function=function, args=args):
            after = _rebuilt(scalar, function, tuple(fold(arg) for arg in args))
        case Lambda(body=body):
            inner = fold(body)
            return scalar if inner is body else replace(scalar, body=inner)
        case _:
            return scalar
    if isinstance(after, Call) and after.function == "if" and isinstance(after.args[0], Literal):
        chosen = after.args[1 if after.args[0].value is True else 2]
        return chosen if chosen.type == after.type else after
    if _is_null(after):
        return Literal(None, after.type)
    if isinstance(after, Call) and (after.function == "bound" or _is_large(after)):  # a bound differs from part to part
        return after
    if not after.children or not all(isinstance(child, Literal) for child in after.children):
        return after
    try:
        return Literal(evaluate_scalar(after, {}), after.type)
    except EvaluationError:
        return after


def _is_large(call: Call) -> bool:
    """Whether the value of a call may be so large that nobody should compute it who was not asked for it."""
    counts = [arg.value for arg in call.args if isinstance(arg, Literal) and isinstance(arg.value, int)]
    return call.function in _GROWING and any(abs(one) > _MANY for one in counts)


def _is_null(scalar: Scalar) -> bool:
    """Whether a call is NULL because an argument is; the others must not have something to say first."""
    if not isinstance(scalar, Call) or not REGISTRY[scalar.function].strict:
        return False
    nulls = [isinstance(arg, Literal) and arg.value is None for arg in scalar.args]
    return any(nulls) and not any(may_raise(arg) for arg in scalar.args)


def _rebuilt(call: Call, function: str, args: tuple[Scalar, ...]) -> Call:
    if all(new is old for new, old in zip(args, call.args, strict=True)):
        return call
    # Some functions look at whether an argument is a literal; folding must not change what they return.
    try:
        after = Call(function, args)
    except (TypeError, ValueError):
        return call
    return after if after.type == call.type else call
