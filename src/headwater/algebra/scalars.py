"""Scalar expressions: immutable, typed, and already free of implicit conversions.

There are seven nodes. Everything that computes is a `Call` of a function in `headwater.algebra.functions`, operators
and CASE included; what a function means, which arguments it takes and which type it returns is said there, once.
A `Lambda` stands only as the argument of a function that takes one, and a `Parameter` only inside the lambda that
binds it. Parameters are no columns, so what substitutes or counts columns leaves them alone. A `Given` stands only in
queries that are answered once: a constant of which no more than its type is known while the query is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headwater import types as t


@dataclass(frozen=True)
class Scalar:
    """Base of all scalar expressions; every node has a `type`."""

    if TYPE_CHECKING:

        @property
        def type(self) -> t.Type: ...

    @property
    def children(self) -> tuple[Scalar, ...]:
        return ()

    def walk(self) -> Iterator[Scalar]:
        """This node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns it reads."""
        return frozenset(node.name for node in self.walk() if isinstance(node, Column))

    @property
    def free(self) -> frozenset[Parameter]:
        """Parameters that it reads of lambdas around it; with any, it has no value of its own."""
        return frozenset[Parameter]().union(*(child.free for child in self.children))

    def __str__(self) -> str:
        from headwater.algebra.text import scalar_text

        return scalar_text(self)


@dataclass(frozen=True)
class Column(Scalar):
    """A column of the input."""

    name: str
    type: t.Type


@dataclass(frozen=True)
class Literal(Scalar):
    """A constant; `value` is None for NULL, else a Python value of the type (see `headwater.types`)."""

    value: object
    type: t.Type


@dataclass(frozen=True)
class Given(Scalar):
    """A constant that is given, by number, when the query is run; never NULL. No two are known to be equal.

    It is no `Literal`, so nothing that looks at the value of a constant takes it for one: what is planned with it is
    right for every value of its type.
    """

    number: int
    type: t.Type


@dataclass(frozen=True)
class Parameter(Scalar):
    """What a lambda is called with, by number; of several lambdas around with that number, the innermost binds it."""

    number: int
    type: t.Type

    @property
    def free(self) -> frozenset[Parameter]:
        return frozenset((self,))


@dataclass(frozen=True)
class Lambda(Scalar):
    """`(x, y) -> body`: a function as an argument. Its type is that of what it returns."""

    parameters: tuple[Parameter, ...]
    body: Scalar

    def __post_init__(self) -> None:
        if len({one.number for one in self.parameters}) != len(self.parameters):
            raise TypeError("two parameters of a lambda have the same number")

    @property
    def type(self) -> t.Type:
        return self.body.type

    @property
    def children(self) -> tuple[Scalar, ...]:
        return (self.body,)

    @property
    def free(self) -> frozenset[Parameter]:
        own = {one.number for one in self.parameters}
        return frozenset(one for one in self.body.free if one.number not in own)


@dataclass(frozen=True)
class Cast(Scalar):
    """CAST, or TRY_CAST when `safe`."""

    arg: Scalar
    type: t.Type
    safe: bool = False

    @property
    def children(self) -> tuple[Scalar, ...]:
        return (self.arg,)


@dataclass(frozen=True)
class Call(Scalar):
    """A function applied to arguments of exactly the types its signature asks for.

    Use `call` to build one: it inserts the casts. The constructor refuses a call that does not fit.
    """

    function: str
    args: tuple[Scalar, ...]
    type: t.Type = field(init=False)

    def __post_init__(self) -> None:
        from headwater.algebra.functions import resolve

        signature = resolve(self.function, self.args)
        given = tuple(arg.type for arg in self.args)
        if given != signature.params:
            raise TypeError(
                f"{self.function} takes ({', '.join(map(str, signature.params))}), not ({', '.join(map(str, given))})"
            )
        object.__setattr__(self, "type", signature.result)

    @property
    def children(self) -> tuple[Scalar, ...]:
        return self.args


def call(function: str, *args: Scalar) -> Call:
    """A call with the implicit casts of Spark's ANSI mode made explicit.

    Raises:
        ValueError: no signature of the function accepts these arguments; the text says why.
    """
    from headwater.algebra.functions import resolve

    signature = resolve(function, args)
    return Call(function, tuple(cast(arg, to) for arg, to in zip(args, signature.params, strict=True)))


def cast(arg: Scalar, to: t.Type) -> Scalar:
    """The argument in another type; itself where nothing changes, a literal where NULL is recast."""
    if arg.type == to:
        return arg
    if isinstance(arg, Lambda):
        return replace(arg, body=cast(arg.body, to))
    if isinstance(arg, Literal) and arg.value is None:
        return Literal(None, to)
    return Cast(arg, to)


TRUE = Literal(True, t.BOOLEAN)
FALSE = Literal(False, t.BOOLEAN)


def conjunction(parts: list[Scalar]) -> Scalar:
    """AND of all parts; TRUE of none."""
    kept = [part for part in parts if part != TRUE]
    if not kept:
        return TRUE
    out = kept[0]
    for part in kept[1:]:
        out = call("and", out, part)
    return out


def conjuncts(scalar: Scalar) -> list[Scalar]:
    """The parts of a conjunction, TRUE left out."""
    if isinstance(scalar, Call) and scalar.function == "and":
        return [part for arg in scalar.args for part in conjuncts(arg)]
    return [] if scalar == TRUE else [scalar]


def transform(scalar: Scalar, rewrite: Callable[[Scalar], Scalar | None]) -> Scalar:
    """Replace top-down: where `rewrite` returns a node it stands, else the children are visited.

    The same object comes back when nothing changed.
    """
    found = rewrite(scalar)
    if found is not None:
        return found
    match scalar:
        case Cast(arg=arg):
            inner = transform(arg, rewrite)
            return scalar if inner is arg else replace(scalar, arg=inner)
        case Lambda(body=body):
            inner = transform(body, rewrite)
            return scalar if inner is body else replace(scalar, body=inner)
        case Call(function=function, args=args):
            inner_args = tuple(transform(arg, rewrite) for arg in args)
            same = all(new is old for new, old in zip(inner_args, args, strict=True))
            return scalar if same else Call(function, inner_args)
    return scalar


def substitute(scalar: Scalar, values: Mapping[str, Scalar]) -> Scalar:
    """Columns replaced by expressions; columns not named stay.

    The expressions are over rows, so they have no parameters that a lambda around a column could capture.
    """
    return transform(scalar, lambda node: values.get(node.name) if isinstance(node, Column) else None)
