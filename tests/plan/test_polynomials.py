"""Terms multiplied out."""

from __future__ import annotations

import pytest

from headwater import types as t
from headwater.algebra.scalars import Column, Scalar, call
from headwater.plan.polynomials import Monomial, polynomial

D = t.Decimal(6, 2)
X, Y, Z = (Column(name, D) for name in ("a.x", "b.y", "a.z"))
ZERO_LIKE = {"a": 0, "b": 1}


def leaves_of(scalar: Scalar) -> frozenset[int]:
    return frozenset(ZERO_LIKE[name.partition(".")[0]] for name in scalar.columns)


def shown(term: Scalar) -> list[str] | None:
    found = polynomial(term, leaves_of)
    if found is None:
        return None
    return [
        ("-" if one.sign < 0 else "+") + " * ".join(f"[{leaf}] {factor}" for leaf, factor in one.factors)
        for one in found
    ]


def test_a_product_of_two_relations() -> None:
    assert shown(call("*", X, Y)) == ["+[0] a.x * [1] b.y"]


def test_a_difference() -> None:
    assert shown(call("-", X, Y)) == ["+[0] a.x", "-[1] b.y"]


def test_a_product_of_sums_is_multiplied_out() -> None:
    assert shown(call("*", call("+", X, Y), Z)) == ["+[0] a.x * a.z", "+[0] a.z * [1] b.y"]


def test_what_is_of_one_relation_stays_whole() -> None:
    assert shown(call("*", X, Z)) == ["+[0] a.x * a.z"]


def test_every_monomial_knows_whether_the_whole_term_is_null() -> None:
    from decimal import Decimal

    from headwater.algebra.scalars import Literal

    whole = call("*", X, Y)
    assert isinstance(whole.type, t.Decimal)
    term = call("coalesce", call("-", X, Y), Literal(Decimal("0.00"), t.Decimal(7, 2)))
    assert shown(term) == [
        "+[0] coalesce(a.x, {DECIMAL(6,2) '0.00'}) * [1] b.y is not null",
        "-[0] a.x is not null * [1] coalesce(b.y, {DECIMAL(6,2) '0.00'})",
    ]
    assert shown(call("is not null", call("-", X, Y))) == ["+[0] a.x is not null * [1] b.y is not null"]


@pytest.mark.parametrize("kind", [t.INT, t.BIGINT, t.DOUBLE, t.Decimal(38, 10)])
def test_what_may_overflow_or_has_infinities_is_not_multiplied_out(kind: t.Type) -> None:
    assert polynomial(call("*", Column("a.x", kind), Column("b.y", kind)), leaves_of) is None


def test_a_division_is_not_multiplied_out() -> None:
    assert polynomial(call("/", X, Y), leaves_of) is None


def test_within() -> None:
    one = Monomial(1, ((0, X), (1, Y)))
    assert one.within({1}) == ((1, Y),)
    assert one.within({2}) == ()
