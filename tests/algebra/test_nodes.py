"""Constructors refuse trees that mean nothing; schemas follow from the parts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater import types as t
from headwater.algebra.nodes import (
    COUNT,
    Filter,
    IllFormed,
    Join,
    Negate,
    Node,
    Present,
    Project,
    Scan,
    Sum,
    Union,
    Values,
    rebuild,
    total_type,
    transform,
)
from headwater.algebra.scalars import TRUE, Call, Column, Literal, call
from headwater.algebra.simplify.pushdown_predicates import pushdown_predicates

R = Scan("r", "r", (t.Field("a", t.INT, nullable=False), t.Field("b", t.STRING)))
S = Scan("s", "s", (t.Field("a", t.INT), t.Field("x", t.DOUBLE)))
MAP = Sum(R, (("k", R.column("r.b")),), (("total", R.column("r.a")),))
A = R.column("r.a")

ILL_FORMED: dict[str, tuple[Callable[[], object], str]] = {
    "a condition that is no truth value": (lambda: Filter(R, A), "a condition of type INT"),
    "a join condition that is no truth value": (lambda: Join(R, S, A), "a condition of type INT"),
    "a filter on a column that is not there": (lambda: Filter(R, call("=", A, S.column("s.a"))), "'s.a' .* not among"),
    "a column of another type": (lambda: Filter(R, call("is null", Column("r.a", t.STRING))), r"'r.a' \(STRING\)"),
    "a projection of a column that is not there": (lambda: Project(R, (("x", Column("y", t.INT)),)), "'y'"),
    "two columns of one name": (lambda: Project(R, (("x", A), ("x", A))), "two columns named 'x'"),
    "a join of a relation with itself under one alias": (lambda: Join(R, R, TRUE), "two columns named 'r.a'"),
    "a join condition over neither side": (lambda: Join(R, S, Column("p", t.BOOLEAN)), "'p'"),
    "a union of one": (lambda: Union((R,)), "at least two"),
    "a union of other types": (lambda: Union((R, S)), "differ in their columns"),
    "a union of maps and rows": (
        lambda: Union((MAP, Values(MAP.schema, ()))),
        "maps and rows",
    ),
    "a row of another width": (lambda: Values((t.Field("x", t.INT),), ((1, 2),)), "width"),
    "constant rows with two columns of one name": (
        lambda: Values((t.Field("x", t.INT), t.Field("x", t.INT)), ()),
        "two columns named 'x'",
    ),
    "a filter over a map": (lambda: Filter(MAP, TRUE), "put Present above Sum"),
    "a projection of a map": (lambda: Project(MAP, (("k", MAP.column("k")),)), "put Present above Sum"),
    "a join with a map": (lambda: Join(R, MAP, TRUE), "put Present above Sum"),
    "a map of a map": (lambda: Sum(MAP, (), ()), "put Present above Sum"),
    "a negated union of maps": (lambda: Negate(Union((MAP, MAP))), "put Present above Sum"),
    "rows presented": (lambda: Present(R, (("a", A),), TRUE), "only a map can be presented"),
    "a having that is no truth value": (lambda: Present(MAP, (), MAP.column("k")), "a condition of type STRING"),
    "an output of what is below the map": (lambda: Present(MAP, (("a", A),), TRUE), "'r.a'"),
    "a key and a term of one name": (lambda: Sum(R, (("x", A),), (("x", A),)), "two columns named 'x'"),
    "a key named like the count": (lambda: Sum(R, ((COUNT, A),), ()), "two columns named '#count'"),
    "a term that does not add up": (lambda: Sum(R, (), (("x", R.column("r.b")),)), "STRING do not add up"),
    "a term of FLOAT": (lambda: total_type(t.FLOAT), "FLOAT do not add up"),
    "a column nobody has": (lambda: R.column("a"), "no column 'a'"),
}


@pytest.mark.parametrize("case", ILL_FORMED)
def test_ill_formed_trees_are_refused(case: str) -> None:
    build, reason = ILL_FORMED[case]
    with pytest.raises(IllFormed, match=reason):
        build()


def test_calls_of_other_types_than_the_signature_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes \(BIGINT, BIGINT\), not \(INT, BIGINT\)"):
        Call("+", (A, Literal(1, t.BIGINT)))
    with pytest.raises(ValueError):
        call("and", A, TRUE)


def test_schemas_follow_from_the_parts() -> None:
    assert [str(f) for f in R.schema] == ["r.a INT NOT NULL", "r.b STRING"]
    assert Join(R, S, TRUE).column_names == ("r.a", "r.b", "s.a", "s.x")
    assert [str(f) for f in MAP.schema] == ["k STRING", "#count BIGINT NOT NULL", "total DECIMAL(38,0) NOT NULL"]
    shown = Present(MAP, (("n", MAP.column(COUNT)),), TRUE)
    assert [str(f) for f in shown.schema] == ["n BIGINT NOT NULL"]


def test_a_column_of_a_union_has_nulls_if_it_does_in_any_input() -> None:
    without, with_null = (Values((t.Field("x", t.INT),), ((value,),)) for value in (1, None))
    for inputs in ((without, with_null), (with_null, without)):
        assert Union(inputs).schema == (t.Field("x", t.INT, True),)
    assert Union((without, without)).schema == (t.Field("x", t.INT, False),)


def test_a_projection_keeps_not_null_for_plain_columns_only() -> None:
    schema = Project(R, (("a", A), ("one", Literal(1, t.INT)))).schema
    assert [f.nullable for f in schema] == [False, True]


@pytest.mark.parametrize(
    ("term", "total"),
    [
        (t.BOOLEAN, t.BIGINT),
        (t.TINYINT, t.Decimal(38, 0)),
        (t.BIGINT, t.Decimal(38, 0)),
        (t.Decimal(10, 2), t.Decimal(38, 2)),
        (t.DOUBLE, t.DOUBLE),
    ],
    ids=str,
)
def test_totals_are_wide_enough_to_be_exact(term: t.Type, total: t.Type) -> None:
    assert total_type(term) == total


def test_rewriting_nothing_gives_the_same_object() -> None:
    tree: Node = Filter(Union((Negate(R), R)), call("is null", A))
    assert transform(tree, lambda node: node) is tree
    assert rebuild(tree, tree.children) is tree


def test_rewriting_a_leaf_rebuilds_what_stands_above() -> None:
    other = Scan("q", "r", R.fields)
    tree = Present(Sum(Join(Filter(R, TRUE), S, TRUE), (), ()), (), TRUE)
    after = transform(tree, lambda node: other if node == R else node)
    assert after.relations == {"q", "s"}
    assert str(after) == str(tree).replace("r as r", "q as r")


def test_what_stands_in_several_places_is_rewritten_once_and_stays_one_object() -> None:
    tree: Node = R
    for _ in range(40):  # a path for each of 2^40 ways down
        tree = Union((tree, tree))
    seen: list[Node] = []

    def rewrite(node: Node) -> Node:
        seen.append(node)
        return Negate(R) if node is R else node

    after = transform(tree, rewrite)
    assert len(seen) == 41
    assert after.children[0] is after.children[1]
    assert len({hash(after), hash(tree)}) == 2
    assert pushdown_predicates(after) is after
