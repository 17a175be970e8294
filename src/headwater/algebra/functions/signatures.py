"""Building blocks of resolvers: from argument expressions to a signature, or a ValueError that says what is wrong."""

from __future__ import annotations

from functools import reduce

from headwater import types as t
from headwater.algebra.functions.registry import Resolver, Signature
from headwater.algebra.scalars import Cast, Literal, Scalar

MORE_THAN_38 = "needs more than 38 digits; cast an operand to a narrower DECIMAL"


def count_args(args: tuple[Scalar, ...], low: int, high: int | None = None) -> None:
    """Refuse a wrong number of arguments."""
    high = low if high is None else high
    if not low <= len(args) <= high:
        wanted = str(low) if low == high else f"{low} to {high}" if high < 1000 else f"at least {low}"
        raise ValueError(f"takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(args)}")


def literal_decimal(value: int) -> t.Decimal:
    """The narrowest decimal of an integer literal, as Spark takes it beside a DECIMAL."""
    return t.Decimal(max(1, len(str(abs(value)))), 0)


def decimal_of(arg: Scalar) -> t.Decimal | None:
    """The decimal type an exact argument takes part as; literals are as narrow as their value."""
    if isinstance(arg, Literal) and isinstance(arg.type, t.Integer) and isinstance(arg.value, int):
        return literal_decimal(arg.value)
    return t.as_decimal(arg.type)


def describe(args: tuple[Scalar, ...]) -> str:
    """The types of arguments, for a message."""
    return ", ".join(str(arg.type) for arg in args)


def common(args: tuple[Scalar, ...]) -> t.Type:
    """The type all arguments meet at.

    Raises:
        ValueError: they do not.
    """

    def meet(a: t.Type, b: t.Type) -> t.Type:
        found = t.common_type(a, b)
        if found is None:
            raise ValueError(f"{a} and {b} do not meet at a common type")
        return found

    # Strings last: they take the type of what they meet, and two numbers must have met before.
    kinds = sorted((arg.type for arg in args), key=lambda kind: isinstance(kind, t.String))
    return reduce(meet, kinds)


def common_operand(args: tuple[Scalar, ...]) -> t.Type:
    """The type both operands of a comparison meet at; beside a DECIMAL an integer literal is as narrow as its value."""
    if any(isinstance(arg.type, t.Decimal) for arg in args):
        left, right = (decimal_of(arg) for arg in args)
        if left and right:
            return t.decimal_union(left, right)
    return common(args)


def accepts(given: Scalar, wanted: t.Type) -> bool:
    """Whether Spark's ANSI mode converts an argument to a parameter's type by itself."""
    have = given.type
    if have == wanted or isinstance(have, t.Null):
        return True
    match have, wanted:
        case t.Integer(), t.Integer():
            return True
        case ((t.Integer() | t.Decimal() | t.Float()), (t.Float() | t.Double())):
            return True
        case (t.Date(), t.Timestamp()) | (t.Timestamp(), t.Date()):
            return True
        case (t.Integer() | t.Decimal() | t.Boolean() | t.Date() | t.Timestamp(), t.String()):
            return True
        # ANSI: a string literal or column becomes what the function asks for, at run time, or fails.
        case t.String(), (t.Integer() | t.Double() | t.Float() | t.Date() | t.Timestamp() | t.Boolean() | t.Binary()):
            return True
    return False


def takes(*params: t.Type, result: t.Type, least: int | None = None) -> Resolver:
    """A fixed list of parameter types; those past `least` may be left out."""

    def resolve(args: tuple[Scalar, ...]) -> Signature:
        count_args(args, len(params) if least is None else least, len(params))
        for arg, wanted in zip(args, params, strict=False):
            if not accepts(arg, wanted):
                raise ValueError(f"takes ({', '.join(map(str, params))}), not ({describe(args)})")
        return Signature(params[: len(args)], result)

    return resolve


def first_of(*resolvers: Resolver) -> Resolver:
    """The first signature that fits; exact types are tried before conversions by the order given."""

    def resolve(args: tuple[Scalar, ...]) -> Signature:
        reasons = []
        for attempt in resolvers:
            try:
                return attempt(args)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError("; or ".join(dict.fromkeys(reasons)))

    return resolve


def literal_value(arg: Scalar) -> object:
    """The value of a constant argument, through casts that only change its type.

    Raises:
        ValueError: it is not a constant.
    """
    if isinstance(arg, Cast):
        return literal_value(arg.arg)
    if not isinstance(arg, Literal):
        raise ValueError("this argument must be a literal")
    return arg.value
