"""Trees print as text that reads back as the same tree."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal

import pytest

from headwater import types as t
from headwater.algebra.nodes import Filter, Join, Negate, Node, Present, Project, Scan, Sum, Union, Version
from headwater.algebra.read import TextError, read_node, read_scalar, read_type
from headwater.algebra.scalars import TRUE, Cast, Column, Literal, Scalar, call
from headwater.algebra.text import name_text, node_text, scalar_text
from tests.algebra.random_trees import SCHEMAS, VALUES, TreeMaker, random_tree

R = Scan("r", "r", SCHEMAS["r"])
COLUMNS: Mapping[str, t.Type] = {"r.a": t.INT, "r.b": t.INT, "p": t.BOOLEAN, "q": t.BOOLEAN, "d": t.STRING}


def test_a_tree_prints_one_node_a_line() -> None:
    joined = Join(R, Scan("s", "s", SCHEMAS["s"], Version.DELTA), call("=", R.column("r.a"), Column("s.a", t.INT)))
    sums = Sum(joined, (("g", Column("s.d", t.STRING)),), (("total", R.column("r.a")),))
    shown = Present(
        sums, (("d", sums.column("g")),), call(">", sums.column("total"), Literal(Decimal(0), t.Decimal(38, 0)))
    )
    assert str(shown) == (
        "present[d := g; total > {DECIMAL(38,0) '0'}](\n"
        "  sum[g := s.d; total := r.a](\n"
        "    join[r.a = s.a](\n"
        "      r as r,\n"
        "      delta s as s)))"
    )
    assert read_node(str(shown), SCHEMAS) == shown


@pytest.mark.parametrize("seed", range(80))
def test_random_trees_read_back(seed: int) -> None:
    tree = random_tree(seed)
    assert repr(read_node(node_text(tree), SCHEMAS)) == repr(tree)  # repr, because a NaN is not equal to another


def test_random_trees_cover_every_node() -> None:
    kinds = {type(node).__name__ for seed in range(150) for node in random_tree(seed).walk()}
    assert kinds == {"Scan", "Values", "Filter", "Project", "Join", "Union", "Negate", "Sum", "Present"}


def test_a_map_and_a_union_of_maps_read_back() -> None:
    sums = Sum(R, (("k", R.column("r.a")),), ())
    both = Union((sums, Sum(R, (("k", R.column("r.b")),), ())))
    assert read_node(str(both), SCHEMAS) == both


@pytest.mark.parametrize(
    "scan",
    [
        Scan("r", "r", SCHEMAS["r"], Version.DELTA),
        Scan("r", "r", SCHEMAS["r"], Version.NEW),
        Scan("r", "since", SCHEMAS["r"], since=7),
        Scan("delta", "new", SCHEMAS["r"]),
        Scan("new", "delta", SCHEMAS["r"], Version.DELTA),
        Scan("filter", "sum", SCHEMAS["r"]),
        Scan("view$1", "b1", SCHEMAS["r"]),
        Scan("odd name", "a.b", SCHEMAS["odd name"]),
        Scan("ünï", "日本", SCHEMAS["r"]),
    ],
    ids=str,
)
def test_scans_read_back(scan: Scan) -> None:
    assert read_node(str(scan), {scan.relation: scan.fields}) == scan


@pytest.mark.parametrize("of", VALUES, ids=str)
def test_literals_of_every_type_read_back(of: t.Type) -> None:
    for value in VALUES[of]:
        again = read_scalar(scalar_text(Literal(value, of)), {})
        assert again.type == of
        assert repr(again) == repr(Literal(value, of))  # repr, because NaN is not equal to itself and -0.0 is to 0.0


@pytest.mark.parametrize(
    ("value", "of"),
    [
        (-1, t.INT),
        (-(2**63), t.BIGINT),
        (127, t.TINYINT),
        (1e308, t.DOUBLE),
        (5e-324, t.DOUBLE),
        (math.inf, t.DOUBLE),
        (Decimal("9" * 38), t.Decimal(38, 0)),
        (Decimal("1E-38"), t.Decimal(38, 38)),
        ("quote ' backslash \\ newline \n return \r tab \t nul \0 \\n", t.STRING),
        ("😀 '} ] ) ;", t.STRING),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), t.TIMESTAMP),
        ((("it's", ("a\\", None)),), t.Map(t.STRING, t.Array(t.STRING))),
        (None, t.NULL),
    ],
    ids=lambda part: str(part)[:20],
)
def test_odd_literals_read_back(value: object, of: t.Type) -> None:
    assert read_scalar(scalar_text(Literal(value, of)), {}) == Literal(value, of)


@pytest.mark.parametrize("of", [*VALUES, t.Array(t.Map(t.INT, t.Array(t.Struct((("z", t.Decimal(3, 1)),)))))], ids=str)
def test_types_read_back(of: t.Type) -> None:
    assert read_type(str(of)) == of


@pytest.mark.parametrize("name", ["my field", "é", "a`b", "it's", "select", "a-b", "1st"])
def test_types_with_odd_field_names_read_back(name: str) -> None:
    of = t.Struct(((name, t.INT), ("plain", t.Array(t.STRING))))
    assert read_type(str(of)) == of


@pytest.mark.parametrize(
    "text",
    [
        "r.a + 1 = 2 and not p or q",
        "(p or q) and not (p and q)",
        "not (p or q)",
        "(r.a = r.b) = p",
        "p = (r.a < r.b)",
        "r.a - (r.b - 1)",
        "(r.a - r.b) - 1",
        "r.a * (r.b + 1)",
        "(r.a + 1) is null",
        "(r.a = r.b) is not null",
        "not r.a is null",
        "(not p) is null",
        "(p and q) is null = p",
        "cast(r.a + 1 as DECIMAL(10,2))",
        "try_cast(d as DATE)",
        "case(p, r.a, q, r.b, 0)",
        "coalesce(r.a, {INT null})",
        "r.a <=> {INT '-1'}",
    ],
)
def test_scalars_keep_their_structure(text: str) -> None:
    scalar = read_scalar(text, COLUMNS)
    assert read_scalar(scalar_text(scalar), COLUMNS) == scalar


def test_parentheses_are_printed_only_where_they_count() -> None:
    assert scalar_text(read_scalar("((r.a + (1)) * 2) > (r.b)", COLUMNS)) == "(r.a + 1) * 2 > r.b"
    assert scalar_text(read_scalar("(r.a * 2) + 1", COLUMNS)) == "r.a * 2 + 1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a", "a"),
        ("t.a", "t.a"),
        ("#count", "#count"),
        ("v$1", "v$1"),
        ("null", "`null`"),
        ("t.NOT", "`t.NOT`"),
        ("a b", "`a b`"),
        ("a`b", "`a``b`"),
        ("é", "`é`"),
        ("1a", "`1a`"),
        ("a..b", "`a..b`"),
        ("", "``"),
    ],
)
def test_names_are_quoted_when_needed(name: str, text: str) -> None:
    assert name_text(name) == text
    assert read_scalar(text, {name: t.INT}) == Column(name, t.INT)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a name"),
        ("r", "expected 'as'"),
        ("nobody as n", "no schema for relation 'nobody'"),
        ("filter[r.a > 1](r as r", "expected ','"),
        ("filter[r.a > 1(r as r)", "never closed"),
        ("filter[r.x > 1](r as r)", "no column 'r.x'"),
        ("negate(r as r, r as q)", "no node 'negate' with 2 inputs"),
        ("frobnicate(r as r)", "no node 'frobnicate'"),
        ("r as r r", "unexpected 'r'"),
        ("project[x := 'open](r as r)", "cannot read"),
        ("project[x := {INT 5}](r as r)", "expected a quoted literal"),
    ],
)
def test_text_that_is_not_algebra_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TextError, match=reason.replace("'", ".")):
        read_node(text, SCHEMAS)


def test_a_cast_to_the_same_type_is_kept() -> None:
    kept: Scalar = Cast(Column("r.a", t.INT), t.INT, safe=True)
    assert read_scalar(scalar_text(kept), COLUMNS) == kept


def test_conditions_that_are_always_true_are_left_out() -> None:
    assert str(Join(R, Scan("s", "s", SCHEMAS["s"]), TRUE)).startswith("join(\n")
    assert str(Filter(R, TRUE)) == "filter[true](\n  r as r)"


def test_random_scalars_read_back() -> None:
    import random

    maker = TreeMaker(random.Random(5))
    wide: Node = Scan("wide", "w", SCHEMAS["wide"])
    columns = {f.name: f.type for f in wide.schema}
    for _ in range(300):
        scalar = maker.scalar(wide)
        assert repr(read_scalar(scalar_text(scalar), columns)) == repr(scalar)
        condition = maker.condition(wide)
        assert repr(Project(wide, (("c", condition),))) == repr(
            Project(wide, (("c", read_scalar(scalar_text(condition), columns)),))
        )


def test_what_stands_in_several_places_is_written_once() -> None:
    node: Node = read_node("r as r", SCHEMAS)
    for _ in range(40):
        node = Union((node, Negate(node)))
    text = node_text(node)
    assert len(text.splitlines()) < 200
    assert str(read_node(text, SCHEMAS)) == text
    assert sum(1 for _ in node.walk()) == 81


def test_what_is_seen_must_have_been_said() -> None:
    with pytest.raises(TextError, match="comes before"):
        read_node("negate(see(1))", SCHEMAS)
