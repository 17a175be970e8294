"""Functions of numbers in DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.errors import INVALID_VALUE
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
    failure,
    fn,
    infix,
    is_null,
    let,
    mod,
    mul,
    null,
    number,
    renamed,
    sub,
    text,
    whole_div,
    wrap,
)
from headwater.emit.functions.decimals import power_of_ten, rescaled, unscaled
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


def _one() -> exp.Expr:
    return exp.Literal.number("1e0")


@emits("hypot")
def _hypot(call: Call, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    """Through the share of the smaller in the larger, whose square cannot overflow."""

    def body(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        infinite = either(fn("isinf", a.copy()), fn("isinf", b.copy()))
        share = infix(exp.Div, b.copy(), a.copy())
        distance = mul(a.copy(), fn("sqrt", add(_one(), mul(share, share.copy()))))
        nothing = exp.EQ(this=a.copy(), expression=number(0))
        return case(infinite, cast(text("Infinity"), "DOUBLE"), nothing, a.copy(), distance)

    def sizes(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        unknown = either(is_null(a.copy()), is_null(b.copy()))
        ordered = {"a": fn("greatest", a.copy(), b.copy()), "b": fn("least", a.copy(), b.copy())}
        return case(unknown, null(t.DOUBLE), let(ordered, body))

    return let({"a": fn("abs", a), "b": fn("abs", b)}, sizes)


@emits("log1p")
def _log1p(call: Call, x: exp.Expr) -> exp.Expr:
    """Kahan's formula: the error of ln(1 + x) is that of 1 + x, which is known."""

    def body(x: exp.Expr, u: exp.Expr) -> exp.Expr:
        exact = infix(exp.Div, mul(fn("ln", u.copy()), x.copy()), sub(u.copy(), _one()))
        plain = either(exp.EQ(this=u.copy(), expression=number(1)), fn("isinf", u.copy()))
        return case(exp.LTE(this=x.copy(), expression=number(-1)), null(t.DOUBLE), plain, x.copy(), exact)

    return let({"x": x, "u": add(x, _one())}, body)


@emits("expm1")
def _expm1(call: Call, x: exp.Expr) -> exp.Expr:
    """Kahan's formula, for small numbers only."""

    def body(x: exp.Expr, u: exp.Expr) -> exp.Expr:
        less = sub(u.copy(), _one())
        large = exp.GT(this=fn("abs", x.copy()), expression=number(1))
        nothing = exp.EQ(this=u.copy(), expression=number(1))
        exact = infix(exp.Div, mul(less.copy(), x.copy()), fn("ln", u.copy()))
        return case(large, less, nothing, x.copy(), exact)

    return let({"x": x, "u": fn("exp", x)}, body)


@emits("width_bucket")
def _width_bucket(call: Call, value: exp.Expr, low: exp.Expr, high: exp.Expr, count: exp.Expr) -> exp.Expr:
    def body(v: exp.Expr, a: exp.Expr, b: exp.Expr, n: exp.Expr) -> exp.Expr:
        none = either(infix(exp.LTE, n.copy(), number(0)), infix(exp.EQ, n.copy(), number(t.BIGINT.high)))
        none = either(either(none, fn("isnan", v.copy())), infix(exp.EQ, a.copy(), b.copy()))
        for end in (a, b):
            none = either(none, exp.Not(this=fn("isfinite", end.copy())))
        up = infix(exp.LT, a.copy(), b.copy())
        before = case(up, infix(exp.LT, v.copy(), a.copy()), infix(exp.GT, v.copy(), a.copy()))
        behind = case(up.copy(), infix(exp.GTE, v.copy(), b.copy()), infix(exp.LTE, v.copy(), b.copy()))
        rising = infix(exp.Div, mul(n.copy(), sub(v.copy(), a.copy())), sub(b.copy(), a.copy()))
        falling = infix(exp.Div, mul(n.copy(), sub(a.copy(), v.copy())), sub(a.copy(), b.copy()))
        place = cast(fn("trunc", case(up.copy(), rising, falling)), "BIGINT")
        unknown = either(either(is_null(v.copy()), is_null(n.copy())), either(is_null(a.copy()), is_null(b.copy())))
        found = case(before, number(0), behind, add(n.copy(), number(1)), add(place, number(1)))
        return cast(case(unknown, exp.Null(), none, exp.Null(), found), "BIGINT")

    return let({"v": value, "a": low, "b": high, "n": count}, body)


@emits("bround")
def _bround(call: Call, x: exp.Expr, _digits: exp.Expr | None = None) -> exp.Expr:
    from headwater.emit.functions.codes import half_even

    digits = round_digits(call.args)
    kind = call.args[0].type

    def signed(units: exp.Expr, cut: int) -> Callable[[exp.Expr], exp.Expr]:
        return lambda u: mul(
            case(_below_zero(u), cast(number(-1), "HUGEINT"), cast(number(1), "HUGEINT")),
            half_even(fn("abs", u.copy()), cut),
        )

    if isinstance(kind, t.Integer):
        if digits >= 0:
            return x
        whole = let({"u": cast(x, "HUGEINT")}, lambda u: mul(signed(u, -digits)(u), power_of_ten(-digits)))
        return cast(whole, duckdb_type(call.type))
    if isinstance(kind, t.Decimal):
        assert isinstance(call.type, t.Decimal)
        if digits >= kind.scale:
            return cast(x, duckdb_type(call.type))
        if -digits > kind.precision - kind.scale:
            return _zero_unless_null(x, call.type)
        units = let({"u": unscaled(x, kind)}, lambda u: signed(u, kind.scale - digits)(u))
        if digits < 0:
            units = mul(units, power_of_ten(-digits))
        return cast(rescaled(units, max(digits, 0)), duckdb_type(call.type))

    def branch(d: exp.Expr, wide: t.Decimal) -> exp.Expr:
        exact = cast(cast(d.copy(), "TEXT"), duckdb_type(wide))
        units = let({"u": unscaled(exact, wide)}, lambda u: signed(u, wide.scale - digits)(u))
        return cast(cast(rescaled(units, digits), "TEXT"), "DOUBLE")

    def body(d: exp.Expr) -> exp.Expr:
        size = fn("abs", d.copy())
        # All 17 digits that a double has must be there; from 2^52 on it has no fraction.
        small, large = branch(d, t.Decimal(t.MAX_PRECISION, 34)), branch(d, t.Decimal(t.MAX_PRECISION, 20))
        below_one, below_all = infix(exp.LT, size, number(1)), infix(exp.LT, size.copy(), number(2**52))
        return case(below_one, small, below_all, large, d.copy())

    return let({"d": x}, body)


@emits("bit_get", "getbit")
def _bit_get(call: Call, a: exp.Expr, place: exp.Expr) -> exp.Expr:
    kind = call.args[0].type
    assert isinstance(kind, t.Integer)

    def body(a: exp.Expr, p: exp.Expr) -> exp.Expr:
        outside = either(infix(exp.LT, p.copy(), number(0)), infix(exp.GTE, p.copy(), number(kind.bits)))
        wide = infix(exp.BitwiseAnd, cast(a.copy(), "HUGEINT"), cast(number(2**64 - 1), "HUGEINT"))
        moved = whole_div(wide, _power_of_two(p.copy()))
        bit = cast(infix(exp.BitwiseAnd, moved, cast(number(1), "HUGEINT")), "TINYINT")
        return case(outside, failure(INVALID_VALUE, f"{kind} has no such bit"), bit)

    return let({"a": a, "p": place}, body)


@emits("ceil", "ceiling", "floor")
def _whole(call: Call, x: exp.Expr, _digits: exp.Expr | None = None) -> exp.Expr:
    if len(call.args) == 2:
        return _whole_to(call, x)
    if isinstance(call.args[0].type, t.Integer):
        return x
    whole = cast(fn("floor" if call.function == "floor" else "ceil", x), duckdb_type(call.type))
    if isinstance(call.args[0].type, t.Decimal):
        return whole
    return case(fn("isnan", x.copy()), cast(number(0), "BIGINT"), whole)  # Java's answer


def _whole_to(call: Call, x: exp.Expr) -> exp.Expr:
    """CEIL or FLOOR to a number of digits, of a decimal."""
    kind, digits = call.args[0].type, round_digits(call.args)
    assert isinstance(kind, t.Decimal)
    if digits >= kind.scale:
        return cast(x, duckdb_type(call.type))
    unit = power_of_ten(kind.scale - digits)
    up = call.function != "floor"

    def body(u: exp.Expr) -> exp.Expr:
        past = infix(exp.GT if up else exp.LT, mod(u.copy(), unit.copy()), number(0))
        step = case(past, number(1 if up else -1), number(0))
        return add(whole_div(u.copy(), unit.copy()), step)

    units = let({"u": unscaled(x, kind)}, body)
    if digits < 0:
        units = mul(units, power_of_ten(-digits))
    return cast(rescaled(units, max(digits, 0)), duckdb_type(call.type))


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
