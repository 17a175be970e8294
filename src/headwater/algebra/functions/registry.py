"""What a scalar function is, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.scalars import Call, Cast, Literal, Scalar


@dataclass(frozen=True)
class Signature:
    """Argument types after implicit casts, and the result's type."""

    params: tuple[t.Type, ...]
    result: t.Type


Resolver = Callable[[tuple[Scalar, ...]], Signature]


@dataclass(frozen=True)
class Function:
    """A scalar function.

    Attributes:
        name: lower case; operators are spelt as in SQL (`+`, `<=`, `and`, `is null`).
        resolve: from argument expressions to a signature; raises ValueError with a reason a user understands.
            Arguments are expressions, not types, because some results depend on literals (`round(x, 2)`).
        evaluate: `evaluate(call, *values)`; raises EvaluationError. When `lazy`, each value is a function of no
            arguments, evaluated only if needed (AND, CASE, COALESCE).
        strict: any NULL argument makes the result NULL, and `evaluate` never sees one.
        lazy: see `evaluate`.
        internal: made by the compiler only; a user cannot call it.
        raises: some arguments make it raise EvaluationError, so it must not run where SQL would not run it.
        summary: one line for the documentation, Spark's words not needed.
    """

    name: str
    resolve: Resolver
    evaluate: Callable[..., object]
    strict: bool = True
    lazy: bool = False
    internal: bool = False
    raises: bool = False
    summary: str = ""


REGISTRY: dict[str, Function] = {}


def register(function: Function) -> Function:
    """Add a function; its name must be new."""
    if function.name in REGISTRY:
        raise ValueError(f"{function.name} is registered twice")
    REGISTRY[function.name] = function
    return function


def define(
    names: str | tuple[str, ...],
    resolve: Resolver,
    *,
    strict: bool = True,
    lazy: bool = False,
    internal: bool = False,
    raises: bool = False,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Register the decorated evaluator under one name or several; its docstring's first line is the summary."""

    def decorate(evaluate: Callable[..., object]) -> Callable[..., object]:
        summary = (evaluate.__doc__ or "").strip().split("\n")[0]
        for name in (names,) if isinstance(names, str) else names:
            register(Function(name, resolve, evaluate, strict, lazy, internal, raises, summary))
        return evaluate

    return decorate


def resolve(name: str, args: tuple[Scalar, ...]) -> Signature:
    """The signature of a call.

    Raises:
        ValueError: the arguments do not fit, with the reason.
        KeyError: there is no such function.
    """
    return REGISTRY[name].resolve(args)


def evaluate(call: Call, *values: object) -> object:
    """One call over values that are already computed (or, for lazy functions, thunks of them)."""
    return REGISTRY[call.function].evaluate(call, *values)


def _has_room(call: Call) -> bool:
    """Whether a result always fits.

    Of sums and products: DOUBLE has infinity, and a DECIMAL that is not cut gets a digit more. Of quotients and
    remainders by a constant: if that is not zero, nor the one by which the least of all integers cannot be divided.
    """
    if call.function in ("/", "%", "mod", "div"):
        divisor = call.args[1]
        exact = isinstance(call.type, t.Decimal) and call.function == "/"
        return (
            isinstance(divisor, Literal)
            and divisor.value not in (None, 0, -1)
            and t.is_numeric(call.type)
            and not exact
        )
    if call.function not in ("+", "-", "*"):
        return False
    if isinstance(call.type, t.Decimal):
        return call.type.precision < t.MAX_PRECISION
    return isinstance(call.type, t.Double | t.Float)


def may_raise(scalar: Scalar) -> bool:
    """Whether some row makes the expression raise, so that it has to stay behind the conditions that guard it."""
    from headwater.algebra.functions.casts import cast_raises

    for node in _computed_of_rows(scalar):
        if isinstance(node, Call) and REGISTRY[node.function].raises and not _has_room(node):
            return True
        if isinstance(node, Cast) and not node.safe and cast_raises(node.arg.type, node.type):
            return True
    return False


def _computed_of_rows(scalar: Scalar) -> Iterator[Scalar]:
    """The parts of a scalar that rows decide: what is computed from the clock alone is the same for all of them."""
    from headwater.algebra.clock import is_moment, reads_clock

    if not reads_clock(scalar):
        yield from scalar.walk()
    elif not is_moment(scalar):
        yield scalar
        for child in scalar.children:
            yield from _computed_of_rows(child)
