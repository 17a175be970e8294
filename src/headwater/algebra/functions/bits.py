"""Bits of integers, and integers written in other bases."""

from __future__ import annotations

import operator
from collections.abc import Callable

from headwater import types as t
from headwater.algebra.functions.errors import invalid_value
from headwater.algebra.functions.registry import Function, Signature, define, register
from headwater.algebra.functions.signatures import accepts, common, count_args, describe, first_of, takes
from headwater.algebra.scalars import Call, Scalar


def _integers(args: tuple[Scalar, ...]) -> Signature:
    kind = common(args)
    if not isinstance(kind, t.Integer):
        raise ValueError(f"takes integers, not ({describe(args)})")
    return Signature((kind,) * len(args), kind)


def _two(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    return _integers(args)


def _one(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    return _integers(args)


def _bitwise(function: Callable[[int, int], int]) -> Callable[..., object]:
    return lambda call, a, b: function(a, b)


register(Function("&", _two, _bitwise(operator.and_), summary="Bits set in both."))
register(Function("|", _two, _bitwise(operator.or_), summary="Bits set in one or both."))
register(Function("^", _two, _bitwise(operator.xor), summary="Bits set in exactly one."))


@define("~", _one)
def inverted(call: Call, a: int) -> object:
    """Every bit the other way."""
    return ~a


def _shift_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    kind = args[0].type
    if not isinstance(kind, t.Integer | t.Null) or not accepts(args[1], t.INT):
        raise ValueError(f"takes an integer and an INT, not ({describe(args)})")
    kind = t.BIGINT if kind == t.BIGINT else t.INT
    return Signature((kind, t.INT), kind)


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


@define("shiftleft", _shift_signature)
def shiftleft(call: Call, a: int, n: int) -> object:
    """Bits moved left; those that fall out are lost. The distance counts modulo the width."""
    bits = 64 if call.type == t.BIGINT else 32
    return _wrapped(a << (n % bits), bits)


@define("shiftright", _shift_signature)
def shiftright(call: Call, a: int, n: int) -> object:
    """Bits moved right; the sign stays."""
    return a >> (n % (64 if call.type == t.BIGINT else 32))


@define("shiftrightunsigned", _shift_signature)
def shiftrightunsigned(call: Call, a: int, n: int) -> object:
    """Bits moved right, zeros following."""
    bits = 64 if call.type == t.BIGINT else 32
    return _wrapped((a % (1 << bits)) >> (n % bits), bits)


def _bit_get_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 2)
    if not isinstance(args[0].type, t.Integer) or not accepts(args[1], t.INT):
        raise ValueError(f"takes an integer and an INT, not ({describe(args)})")
    return Signature((args[0].type, t.INT), t.TINYINT)


@define(("bit_get", "getbit"), _bit_get_signature, raises=True)
def bit_get(call: Call, a: int, place: int) -> object:
    """The bit at a place, the lowest being at 0; an error outside the width of the integer."""
    kind = call.args[0].type
    assert isinstance(kind, t.Integer)
    if not 0 <= place < kind.bits:
        raise invalid_value(f"{kind} has no bit {place}")
    return (a >> place) & 1


def _bit_count_signature(args: tuple[Scalar, ...]) -> Signature:
    count_args(args, 1)
    kind = args[0].type
    if isinstance(kind, t.Boolean):
        return Signature((kind,), t.INT)
    if isinstance(kind, t.Integer | t.Null):
        return Signature((t.BIGINT,), t.INT)
    raise ValueError(f"takes an integer or a BOOLEAN, not {kind}")


@define("bit_count", _bit_count_signature)
def bit_count(call: Call, a: int | bool) -> object:
    """How many bits are set, in 64."""
    return (int(a) % (1 << 64)).bit_count()


@define("bin", takes(t.BIGINT, result=t.STRING))
def binary_digits(call: Call, a: int) -> object:
    """The number in binary, in two's complement of 64 bits."""
    return format(a % (1 << 64), "b")


@define(
    "hex",
    first_of(takes(t.BINARY, result=t.STRING), takes(t.BIGINT, result=t.STRING)),
)
def hexadecimal(call: Call, a: int | bytes) -> object:
    """The number, or the bytes of the text, in hexadecimal."""
    return a.hex().upper() if isinstance(a, bytes) else format(a % (1 << 64), "X")


@define("unhex", takes(t.STRING, result=t.BINARY))
def unhex(call: Call, text: str) -> object:
    """The bytes that hexadecimal digits stand for; NULL if they are none."""
    padded = text if len(text) % 2 == 0 else "0" + text
    if not all(c in "0123456789abcdefABCDEF" for c in padded):
        return None
    return bytes.fromhex(padded)
