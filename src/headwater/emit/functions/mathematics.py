"""Functions of numbers in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.rounding import round_digits
from headwater.algebra.scalars import Call
from headwater.emit.functions.arithmetic import guard_zero, relaxed, widened
from headwater.emit.functions.build import (
    EMITTERS,
    add,
    both,
    case,
    cast,
    duckdb_type,
    either,
    emits,
    fn,
    infix,
    let,
    mod,
    mul,
    null,
    number,
    renamed,
    sub,
    text,
    wrap,
)
from headwater.emit.functions.literals import known

for _name in (
    *("cbrt", "exp", "sin", "cos", "tan", "cot", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "degrees", "radians", "greatest", "least", "bin", "pi"),
):
    EMITTERS[_name] = renamed(_name)


def _nan() -> exp.Expr:
    return cast(text("NaN"), "DOUBLE")


def _below_zero(x: exp.Expr) -> exp.Expr:
    return exp.LT(this=wrap(x.copy()), expression=number(0))


def _not_positive(x: exp.Expr) -> exp.Expr:
    return exp.LTE(this=wrap(x.copy()), expression=number(0))


@emits("e")
def _e(call: Call) -> exp.Expr:
    return fn("exp", exp.Literal.number("1e0"))


@emits("sec")
def _sec(call: Call, x: exp.Expr) -> exp.Expr:
    return infix(exp.Div, exp.Literal.number("1e0"), fn("cos", x))


@emits("csc")
def _csc(call: Call, x: exp.Expr) -> exp.Expr:
    return infix(exp.Div, exp.Literal.number("1e0"), fn("sin", x))


@emits("rint")
def _rint(call: Call, x: exp.Expr) -> exp.Expr:
    return fn("round_even", x, number(0))


@emits("sqrt")
def _sqrt(call: Call, x: exp.Expr) -> exp.Expr:
    return case(_below_zero(x), _nan(), fn("sqrt", x))


@emits("ln", "log10", "log2")
def _logarithm(call: Call, x: exp.Expr) -> exp.Expr:
    return case(_not_positive(x), null(t.DOUBLE), fn(call.function, x))


@emits("log")
def _log(call: Call, a: exp.Expr, b: exp.Expr | None = None) -> exp.Expr:
    if b is None:
        return case(_not_positive(a), null(t.DOUBLE), fn("ln", a))
    outside = either(_not_positive(a), _not_positive(b))
    return case(outside, null(t.DOUBLE), infix(exp.Div, fn("ln", b), fn("ln", a)))


@emits("pow", "power")
def _power(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    plain = fn("pow", a, b)
    if known(call.args[1]) is not None:
        return plain
    # Java and C differ in what 1 to the power of NaN or infinity is.
    unit = exp.EQ(this=fn("abs", a.copy()), expression=number(1))
    return case(either(fn("isnan", b.copy()), both(unit, fn("isinf", b.copy()))), _nan(), plain)


@emits("sign", "signum")
def _sign(call: Call, x: exp.Expr) -> exp.Expr:
    return case(fn("isnan", x), x.copy(), cast(fn("sign", x.copy()), "DOUBLE"))


@emits("isnan")
def _isnan(call: Call, x: exp.Expr) -> exp.Expr:
    return fn("coalesce", fn("isnan", x), exp.false())


@emits("nanvl")
def _nanvl(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    return case(fn("isnan", a), b, a.copy())


@emits("pmod")
def _pmod(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    if isinstance(call.type, t.Integer):
        a, b = widened(a, call.type), widened(b, call.type)

    def positive(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        rest = mod(a, b)
        return case(_below_zero(rest), mod(add(rest.copy(), b.copy()), b.copy()), rest.copy())

    result = let({"a": a, "b": b}, positive)
    if isinstance(call.type, t.Double | t.Float):
        return guard_zero(call, a, b, result)
    return cast(result, duckdb_type(call.type))


@emits("factorial")
def _factorial(call: Call, n: exp.Expr) -> exp.Expr:
    inside = exp.Between(this=wrap(n.copy()), low=number(0), high=number(20))
    return case(inside, cast(fn("factorial", n), "BIGINT"), null(t.BIGINT))


@emits("ceil", "ceiling", "floor")
def _whole(call: Call, x: exp.Expr) -> exp.Expr:
    if isinstance(call.args[0].type, t.Integer):
        return x
    whole = cast(fn("floor" if call.function == "floor" else "ceil", x), duckdb_type(call.type))
    if isinstance(call.args[0].type, t.Decimal):
        return whole
    return case(fn("isnan", x.copy()), cast(number(0), "BIGINT"), whole)  # Java's answer


@emits("round")
def _round(call: Call, x: exp.Expr, _digits: exp.Expr | None = None) -> exp.Expr:
    digits = round_digits(call.args)
    kind = call.args[0].type
    match kind:
        case t.Integer():
            return x if digits >= 0 else _round_integer(x, -digits, call.type)
        case t.Decimal(_, scale):
            if digits >= 0:
                return cast(x, duckdb_type(call.type)) if kind != call.type else x
            if -digits > kind.precision - scale:
                return _zero_unless_null(x, call.type)
            # Truncation first is harmless: what it cuts off cannot reach half a unit by itself.
            return _round_integer(fn("trunc", x), -digits, call.type)
    exact = f"DECIMAL(38, {digits})"
    rounded = cast(cast(cast(cast(x.copy(), "TEXT"), exact), "TEXT"), "DOUBLE")
    # From 2^52 on a double has no fraction.
    return case(exp.LT(this=fn("abs", x.copy()), expression=number(2**52)), rounded, x)


def _zero_unless_null(x: exp.Expr, kind: t.Type) -> exp.Expr:
    return case(exp.Is(this=wrap(x), expression=exp.Null()), null(kind), cast(number(0), duckdb_type(kind)))


def _round_integer(x: exp.Expr, places: int, kind: t.Type) -> exp.Expr:
    """A whole number rounded half up before the point."""
    unit = cast(number(10**places), "HUGEINT")
    half = cast(case(_below_zero(x), number(-(10**places) // 2), number(10**places // 2)), "HUGEINT")
    moved = add(cast(x.copy(), "HUGEINT"), half)
    return cast(sub(moved, mod(moved.copy(), unit)), duckdb_type(kind))


@emits("&", "|", "^")
def _bitwise(call: Call, *args: exp.Expr) -> exp.Expr:
    a, b = relaxed(call, args)
    match call.function:
        case "&":
            return infix(exp.BitwiseAnd, a, b)
        case "|":
            return infix(exp.BitwiseOr, a, b)
    return fn("xor", *args)


@emits("~")
def _inverted(call: Call, a: exp.Expr) -> exp.Expr:
    return exp.BitwiseNot(this=wrap(a))


@emits("bit_count")
def _bit_count(call: Call, a: exp.Expr) -> exp.Expr:
    if isinstance(call.args[0].type, t.Boolean):
        return cast(a, "INTEGER")
    return cast(fn("bit_count", a), "INTEGER")


@emits("hex")
def _hex(call: Call, a: exp.Expr) -> exp.Expr:
    return fn("hex", a)


@emits("unhex")
def _unhex(call: Call, a: exp.Expr) -> exp.Expr:
    good = fn("regexp_full_match", a.copy(), text("[0-9a-fA-F]*"))
    return case(good, fn("unhex", a), null(t.BINARY))


def _bits(call: Call) -> int:
    return 64 if call.type == t.BIGINT else 32


def _distance(call: Call, n: exp.Expr) -> exp.Expr:
    return infix(exp.BitwiseAnd, n, number(_bits(call) - 1))


def _power_of_two(distance: exp.Expr) -> exp.Expr:
    return infix(exp.BitwiseLeftShift, cast(number(1), "HUGEINT"), cast(distance, "HUGEINT"))


def _wrapped(call: Call, value: exp.Expr) -> exp.Expr:
    """A HUGEINT cut to the width of the call's type, as a signed number."""
    bits = _bits(call)
    low = infix(exp.BitwiseAnd, value, cast(number(2**bits - 1), "HUGEINT"))
    half = cast(number(2 ** (bits - 1)), "HUGEINT")
    return cast(sub(fn("xor", low, half), half.copy()), duckdb_type(call.type))


@emits("shiftleft")
def _shiftleft(call: Call, a: exp.Expr, n: exp.Expr) -> exp.Expr:
    return _wrapped(call, mul(cast(a, "HUGEINT"), _power_of_two(_distance(call, n))))


@emits("shiftright")
def _shiftright(call: Call, a: exp.Expr, n: exp.Expr) -> exp.Expr:
    distance = _distance(call, n)
    return infix(exp.BitwiseRightShift, a, cast(distance, duckdb_type(call.type)) if _bits(call) == 64 else distance)


@emits("shiftrightunsigned")
def _shiftrightunsigned(call: Call, a: exp.Expr, n: exp.Expr) -> exp.Expr:
    low = infix(exp.BitwiseAnd, cast(a, "HUGEINT"), cast(number(2 ** _bits(call) - 1), "HUGEINT"))
    return _wrapped(call, infix(exp.IntDiv, low, _power_of_two(_distance(call, n))))
