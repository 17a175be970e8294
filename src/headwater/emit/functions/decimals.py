"""Exact decimal products and quotients through 128-bit integers.

DuckDB divides decimals as doubles and refuses products that need rounding, so both are computed on the unscaled
integers: the value `12.30` of a DECIMAL(p, 2) is 1230.
"""

from __future__ import annotations

from sqlglot import exp

from headwater import types as t
from headwater.emit.functions.build import add, cast, duckdb_type, fn, let, mod, mul, number, text, whole_div

_HUGE = "HUGEINT"

#: Decimals of up to so many digits are 64-bit integers in DuckDB, and so is their product, which then overflows.
_SHORT = 18


def power_of_ten(exponent: int) -> exp.Expr:
    """A HUGEINT constant."""
    return cast(number(10**exponent), _HUGE)


def unscaled(value: exp.Expr, kind: t.Decimal) -> exp.Expr:
    """The value times ten to its scale, a HUGEINT."""
    if kind.scale == 0:
        return cast(value, _HUGE)
    if kind.precision + kind.scale < t.MAX_PRECISION:
        # Long enough for the product not to be a 64-bit integer.
        factor = cast(number(10**kind.scale), f"DECIMAL({max(kind.scale, _SHORT) + 1}, 0)")
        return cast(mul(value, factor), _HUGE)
    # The product would not fit; taking the point out of the text always does.
    return cast(fn("replace", cast(value, "TEXT"), text("."), text("")), _HUGE)


def rescaled(value: exp.Expr, scale: int) -> exp.Expr:
    """A HUGEINT of units of ten to the minus scale as DECIMAL(38, scale)."""
    whole = cast(value, "DECIMAL(38, 0)")
    if scale == 0:
        return whole
    unit = cast(exp.Literal.number("0." + "0" * (scale - 1) + "1"), f"DECIMAL({scale}, {scale})")
    return mul(whole, unit)


def quotient(a: exp.Expr, b: exp.Expr, left: t.Decimal, right: t.Decimal, result: t.Decimal) -> exp.Expr:
    """a / b, rounded half up to the result's scale; raises for a zero divisor.

    One digit more than asked for is computed by truncation; rounding that digit away is then exact.
    """
    shift = result.scale - left.scale + right.scale
    top, bottom = unscaled(a, left), unscaled(b, right)
    if left.precision + shift + 1 <= t.MAX_PRECISION:
        digits = whole_div(mul(top, power_of_ten(shift + 1)), bottom)
        return cast(rescaled(digits, result.scale + 1), duckdb_type(result))
    return long_quotient(top, bottom, shift, result, right.precision)


#: Digits computed at a time when no more fit for certain; then divisors up to 10^34 are safe, and larger ones raise.
_FEWEST_DIGITS = 4
_MOST_STEPS = 4


def long_quotient(
    top: exp.Expr, bottom: exp.Expr, shift: int, result: t.Decimal, bottom_digits: int = t.MAX_PRECISION
) -> exp.Expr:
    """top * 10^shift / bottom over HUGEINTs where that product may not fit: long division, some digits at a time."""
    digits_a_step = max(_FEWEST_DIGITS, t.MAX_PRECISION - bottom_digits)
    steps = min(_MOST_STEPS, -(-shift // digits_a_step))
    sizes = [shift * (i + 1) // steps - shift * i // steps for i in range(steps)]

    def divide(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        found, rest = whole_div(a, b), mod(a.copy(), b.copy())
        for size in sizes:
            carried = mul(rest, power_of_ten(size))
            found = add(mul(found, power_of_ten(size)), whole_div(carried, b.copy()))
            rest = mod(carried.copy(), b.copy())
        next_digit = whole_div(mul(rest, number(10)), b.copy())
        return add(found, whole_div(next_digit, number(5)))  # one more if the next digit is five or above

    units = let({"a": top, "b": bottom}, divide)
    return cast(rescaled(units, result.scale), duckdb_type(result))


def rounded_product(a: exp.Expr, b: exp.Expr, left: t.Decimal, right: t.Decimal, result: t.Decimal) -> exp.Expr:
    """a * b where the exact product has more than 38 digits, rounded half up to the result's scale.

    With d digits to cut, A = Ah*10^d + Al and B likewise, A*B/10^d = Ah*B + Al*Bh + Al*Bl/10^d; all three terms have
    one sign, so none overflows unless the result does.
    """
    cut = left.scale + right.scale - result.scale
    unit = power_of_ten(cut)

    def multiply(a: exp.Expr, b: exp.Expr) -> exp.Expr:
        a_high, a_low = whole_div(a, unit), mod(a.copy(), unit.copy())
        b_high, b_low = whole_div(b.copy(), unit.copy()), mod(b.copy(), unit.copy())
        tail = whole_div(mul(a_low, b_low), power_of_ten(cut - 1))  # to one digit more than asked for
        rounded = add(whole_div(tail, number(10)), whole_div(mod(tail.copy(), number(10)), number(5)))
        return add(add(mul(a_high, b), mul(a_low.copy(), b_high)), rounded)

    units = let({"a": unscaled(a, left), "b": unscaled(b, right)}, multiply)
    return cast(rescaled(units, result.scale), duckdb_type(result))


def decimal_product(a: exp.Expr, b: exp.Expr, left: t.Decimal, right: t.Decimal, result: t.Decimal) -> exp.Expr:
    """a * b where the exact product has the result's scale."""
    width, other = left.precision, right.precision
    if max(width, other) <= _SHORT < width + other:
        width = _SHORT + 1
        a = cast(a, f"DECIMAL({width}, {left.scale})")
    product = mul(a, b)
    if min(width + other, t.MAX_PRECISION) == result.precision:
        return product
    return cast(product, duckdb_type(result))
