"""Lambdas bind parameters, and whatever reads, rewrites, folds, prints or evaluates scalars keeps that right."""

from __future__ import annotations

import pytest

from headwater import types as t
from headwater.algebra.clock import is_moment, now
from headwater.algebra.functions import may_raise
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import Filter, IllFormed, Project, Scan
from headwater.algebra.read import TextError, read_scalar
from headwater.algebra.scalars import (
    Call,
    Column,
    Lambda,
    Literal,
    Parameter,
    Scalar,
    call,
    cast,
    substitute,
    transform,
)
from headwater.algebra.simplify.fold_constants import fold

A = t.Array(t.INT)
COLUMNS: dict[str, t.Type] = {"r.a": A, "r.b": t.INT, "$1": t.INT, "lambda": t.INT}
X, Y = Parameter(1, t.INT), Parameter(2, t.INT)
B = Column("r.b", t.INT)


def read(text: str) -> Scalar:
    return read_scalar(text, COLUMNS)


def over(body: Scalar, *parameters: Parameter) -> Call:
    return call("transform", Column("r.a", A), Lambda(parameters or (X,), body))


@pytest.mark.parametrize(
    "text",
    [
        "aggregate(r.a, 0, lambda[$1 INT, $2 INT]($1 + $2 * r.b))",
        "aggregate(r.a, 0, lambda[$1 INT, $2 INT]($1 + $2), lambda[$1 INT]($1 + 1))",
        "transform(r.a, lambda[$1 INT](transform(r.a, lambda[$2 INT]($1 - ($2 - `$1`)))))",
        "transform(r.a, lambda[$1 INT](transform(r.a, lambda[$1 INT]($1))))",
        "transform(r.a, lambda[$1 INT](named_struct('x', $1)))",
        "exists(r.a, lambda[$1 INT]($1 is null or $1 > lambda))",
        "filter(r.a, lambda[$1 INT, $2 INT](not $2 > $1))",
    ],
)
def test_text_reads_back(text: str) -> None:
    assert str(read(text)) == text
    assert read(str(read(text))) == read(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$1", "no lambda around"),
        ("transform(r.a, lambda[$1 INT]($2))", "no lambda around"),
        ("aggregate(transform(r.a, lambda[$1 INT]($1)), $1, lambda[$1 INT, $2 INT]($1))", "no lambda around"),
    ],
)
def test_a_parameter_is_read_inside_its_lambda_only(text: str, reason: str) -> None:
    with pytest.raises(TextError, match=reason):
        read(text)


def test_parameters_are_no_columns() -> None:
    scalar = over(call("+", X, B))
    assert scalar.columns == {"r.a", "r.b"}
    assert scalar.free == frozenset()


def test_a_parameter_is_free_outside_of_its_lambda() -> None:
    inner = over(call("+", X, Y), Y)
    assert inner.free == {X}
    assert over(inner).free == frozenset()
    assert over(X, X).free == frozenset()


def test_no_node_has_a_free_parameter() -> None:
    rows = Scan("r", "r", (t.Field("a", A), t.Field("b", t.INT)))
    with pytest.raises(IllFormed, match="outside of its lambda"):
        Project(rows, (("x", call("+", X, B)),))
    with pytest.raises(IllFormed, match="outside of its lambda"):
        Filter(rows, call(">", X, B))


def test_columns_are_substituted_inside_and_nothing_is_captured() -> None:
    # What takes the place of a column may itself have a lambda with the same number.
    value = call("element_at", over(call("*", X, Literal(2, t.INT))), Literal(1, t.INT))
    scalar = substitute(over(call("+", X, B)), {"r.b": value})
    assert evaluate_scalar(scalar, {"r.a": (1, 10)}) == (3, 12)


def test_rewriting_nothing_gives_the_same_object() -> None:
    scalar = over(call("+", X, B))
    assert transform(scalar, lambda part: None) is scalar
    assert fold(scalar) is scalar


def test_constants_inside_are_folded_and_what_reads_parameters_is_not() -> None:
    assert str(fold(read("transform(r.a, lambda[$1 INT]($1 + (1 + 2)))"))) == "transform(r.a, lambda[$1 INT]($1 + 3))"
    assert str(fold(read("transform(r.a, lambda[$1 INT](1 + 2))"))) == "transform(r.a, lambda[$1 INT](3))"


def test_a_cast_goes_inside() -> None:
    assert cast(Lambda((X,), X), t.BIGINT) == Lambda((X,), cast(X, t.BIGINT))
    merge = Lambda((Parameter(1, t.INT), Y), Literal(None, t.NULL))
    made = call("aggregate", Column("r.a", A), Literal(0, t.INT), merge)
    assert made.args[2].type == t.INT


def test_what_a_lambda_does_may_fail() -> None:
    assert may_raise(read("transform(r.a, lambda[$1 INT]($1 + 1))"))
    assert not may_raise(read("transform(r.a, lambda[$1 INT]($1 is null))"))


def test_what_reads_a_parameter_is_no_moment() -> None:
    ahead = call("unix_seconds", now())
    assert is_moment(ahead)
    assert not is_moment(call("+", ahead, Parameter(1, t.BIGINT)))


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        ("transform", (Column("r.a", A), B), "a lambda"),
        ("transform", (Column("r.a", A), Lambda((X, Y, Parameter(3, t.INT)), X)), "1 or 2 parameters, not 3"),
        ("transform", (Column("r.a", A), Lambda((Parameter(1, t.BIGINT),), B)), "lambda of INT"),
        ("transform", (B, Lambda((X,), X)), "ARRAY"),
        ("exists", (Column("r.a", A), Lambda((X, Y), Literal(True, t.BOOLEAN))), "1 parameter, not 2"),
        ("forall", (Column("r.a", A), Lambda((X,), X)), "condition"),
        ("aggregate", (Column("r.a", A), Literal(0, t.INT), Lambda((X,), X)), "2 parameters, not 1"),
        ("aggregate", (Column("r.a", A), Literal(None, t.NULL), Lambda((X, Y), X)), "NULL"),
        ("aggregate", (Column("r.a", A), B, Lambda((X, Y), cast(X, t.BIGINT))), "starts with INT"),
        ("aggregate", (Column("r.a", A), B, Lambda((X, Y), X), Lambda((X, Y), X)), "1 parameter, not 2"),
    ],
)
def test_calls_that_do_not_fit_are_refused(function: str, args: tuple[Scalar, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call(function, *args)


def test_two_parameters_of_one_number_are_refused() -> None:
    with pytest.raises(TypeError):
        Lambda((X, X), X)
