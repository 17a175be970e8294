"""Functions of functions: an array, and a lambda that is called with its elements.

None of them is strict: a NULL array makes them NULL, and a lambda is no value that could be NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from headwater import types as t
from headwater.algebra.functions.arrays import Items, element_of
from headwater.algebra.functions.registry import Resolver, Signature, define
from headwater.algebra.functions.signatures import count_args
from headwater.algebra.scalars import Call, Lambda, Scalar

#: What a lambda is while it is evaluated.
Function = Callable[..., object]


@dataclass(frozen=True)
class Wanted:
    """The lambda that an argument has to be.

    Attributes:
        types: of what it is called with.
        least: how many parameters it must have; the others may be left out.
    """

    types: tuple[t.Type, ...]
    least: int

    def check(self, arg: Scalar) -> None:
        """Refuse what is not such a lambda."""
        if not isinstance(arg, Lambda):
            raise ValueError("takes a lambda: x -> ...")
        self.check_count(len(arg.parameters))
        if tuple(one.type for one in arg.parameters) != self.types[: len(arg.parameters)]:
            raise ValueError(f"takes a lambda of {', '.join(map(str, self.types))}")

    def check_count(self, given: int) -> None:
        """Refuse a lambda of another number of parameters."""
        most = len(self.types)
        if not self.least <= given <= most:
            wanted = str(most) if most == self.least else f"{self.least} or {most}"
            raise ValueError(f"takes a lambda of {wanted} parameter{'' if wanted == '1' else 's'}, not {given}")


def wanted_lambda(function: str, args: tuple[Scalar, ...]) -> Wanted | None:
    """The lambda that comes next, behind the arguments given; None where a plain argument does.

    Raises:
        ValueError: the arguments so far do not fit.
    """
    place = len(args)
    if function in ("aggregate", "reduce"):
        if place == 2:
            return Wanted((_start(args), element_of(args[0])), 2)
        return Wanted((_start(args),), 1) if place == 3 else None
    if place != 1 or function not in ("transform", "filter", "exists", "forall"):
        return None
    element = element_of(args[0])
    return Wanted((element, t.INT), 1) if function in ("transform", "filter") else Wanted((element,), 1)


def _start(args: tuple[Scalar, ...]) -> t.Type:
    if isinstance(args[1].type, t.Null):
        raise ValueError("starts with NULL; cast it to say of which type")
    return args[1].type


def _check_lambdas(function: str, args: tuple[Scalar, ...]) -> None:
    for place, arg in enumerate(args):
        wanted = wanted_lambda(function, args[:place])
        if wanted is not None:
            wanted.check(arg)


def _aggregate_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 3, 4)
    _check_lambdas("aggregate", args)
    start, merged = args[1].type, args[2].type
    if merged != start and not isinstance(merged, t.Null):
        # Spark does not convert either. It does not look at the names of fields, though; here they are of the type.
        raise ValueError(f"starts with {start}, so the lambda has to return that and not {merged}; cast one of them")
    result = args[3].type if len(args) == 4 else start
    if isinstance(result, t.Null):
        raise ValueError("the last lambda returns NULL only; cast it to say of which type")
    return Signature((args[0].type, start, start, result)[: len(args)], result)


@define(("aggregate", "reduce"), _aggregate_signature, strict=False)
def aggregate(
    call: Call, items: Items | None, start: object, merge: Function, finish: Function | None = None
) -> object:
    """What comes of a start when a lambda merges one element after the other into it; a second one finishes it."""
    if items is None:
        return None
    merged = reduce(merge, items, start)
    return merged if finish is None else finish(merged)


def _one_lambda(function: str, result: Callable[[t.Type, t.Type], tuple[t.Type, t.Type]]) -> Resolver:
    """An array and a lambda; `result` makes the lambda's type and the call's of the array's type and the lambda's."""

    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, 2)
        _check_lambdas(function, args)
        returned, made = result(args[0].type, args[1].type)
        return Signature((args[0].type, returned), made)

    return resolve


def _mapped(_array: t.Type, returned: t.Type) -> tuple[t.Type, t.Type]:
    if isinstance(returned, t.Null):
        raise ValueError("the lambda returns NULL only; cast it to say of which type")
    return returned, t.Array(returned)


def _condition(returned: t.Type) -> t.Type:
    if not isinstance(returned, t.Boolean | t.Null):
        raise ValueError(f"the lambda has to be a condition, and this is {returned}")
    return t.BOOLEAN


def _called(items: Items, function: Function, counted: bool) -> list[object]:
    """What a lambda says of each element, and of its place from 0 if it asks for it."""
    return [function(item, place) if counted else function(item) for place, item in enumerate(items)]


def is_counted(call: Call) -> bool:
    """Whether the lambda of a call also takes the place of an element."""
    function = call.args[1]
    assert isinstance(function, Lambda)
    return len(function.parameters) == 2


@define("transform", _one_lambda("transform", _mapped), strict=False)
def transform(call: Call, items: Items | None, function: Function) -> object:
    """What a lambda makes of each element, or of it and its place from 0."""
    return None if items is None else tuple(_called(items, function, is_counted(call)))


@define("filter", _one_lambda("filter", lambda array, returned: (_condition(returned), array)), strict=False)
def kept(call: Call, items: Items | None, function: Function) -> object:
    """The elements for which a lambda is TRUE; it may also ask for their place from 0."""
    if items is None:
        return None
    found = _called(items, function, is_counted(call))
    return tuple(item for item, test in zip(items, found, strict=True) if test is True)


@define("exists", _one_lambda("exists", lambda array, returned: (_condition(returned), t.BOOLEAN)), strict=False)
def exists(call: Call, items: Items | None, function: Function) -> object:
    """Whether a lambda is TRUE for an element; NULL if it is for none and NULL for some. It asks until one is found."""
    return _decided(items, function, True)


@define("forall", _one_lambda("forall", lambda array, returned: (_condition(returned), t.BOOLEAN)), strict=False)
def forall(call: Call, items: Items | None, function: Function) -> object:
    """Whether a lambda is TRUE for all elements; NULL if it is FALSE for none and NULL for some."""
    return _decided(items, function, False)


def _decided(items: Items | None, function: Function, by: bool) -> bool | None:
    """The truth value that decides as soon as an element has it; else NULL if an element has that, else the other."""
    if items is None:
        return None
    unknown = False
    for item in items:
        found = function(item)
        if found is by:
            return by
        unknown = unknown or found is None
    return None if unknown else not by
