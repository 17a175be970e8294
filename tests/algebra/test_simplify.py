"""Each rewrite as a tree before and after; both mean the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from headwater import types as t
from headwater.algebra.evaluate import Bag, evaluate
from headwater.algebra.nodes import Node, Scan
from headwater.algebra.read import read_node
from headwater.algebra.simplify import simplify
from headwater.algebra.simplify.evaluate_values import evaluate_values
from headwater.algebra.simplify.fold_constants import fold_constants
from headwater.algebra.simplify.merge_filters import merge_filters
from headwater.algebra.simplify.merge_projects import merge_projects
from headwater.algebra.simplify.pushdown_predicates import pushdown_predicates

SCHEMAS = {name: (t.Field("a", t.INT), t.Field("b", t.INT)) for name in ("r", "s")}
CONTENTS: dict[str, Bag] = {
    "r": Counter({(1, 1): 2, (2, 5): 1, (0, 3): 1, (4, None): 1}),
    "s": Counter({(1, 7): 1, (2, 2): 3, (None, 1): 1}),
}


def tidy(text: str) -> str:
    return str(read_node(text, SCHEMAS))


def rows(node: Node) -> Bag:
    def contents(scan: Scan) -> Bag:
        return CONTENTS[scan.relation]

    return evaluate(node, contents)


CASES: list[tuple[Callable[[Node], Node], str, str]] = [
    (fold_constants, "filter[r.a > 1 + 1](r as r)", "filter[r.a > 2](r as r)"),
    (fold_constants, "project[x := cast(1 as BIGINT)](r as r)", "project[x := 1L](r as r)"),
    # what would fail stays, and fails when a row asks for it
    (
        fold_constants,
        "filter[r.a < r.a and div(1L, 0L) > 1L](r as r)",
        "filter[r.a < r.a and div(1L, 0L) > 1L](r as r)",
    ),
    (merge_filters, "filter[r.a > 1](filter[r.b > 2](r as r))", "filter[r.b > 2 and r.a > 1](r as r)"),
    (merge_filters, "filter[true](r as r)", "r as r"),
    (
        merge_projects,
        "project[y := x + x](project[x := r.a + 1](r as r))",
        "project[y := (r.a + 1) + (r.a + 1)](r as r)",
    ),
    (merge_projects, "project[r.a := r.a, r.b := r.b](r as r)", "r as r"),
    (
        merge_projects,
        "project[r.b := r.b, r.a := r.a](r as r)",
        "project[r.b := r.b, r.a := r.a](r as r)",
    ),
    (
        merge_projects,
        "project[y := n + 1L](present[n := #count](sum[r.a := r.a; ](r as r)))",
        "present[y := #count + 1L](sum[r.a := r.a; ](r as r))",
    ),
    (
        merge_projects,
        "present[n := #count, k := k](sum[k := x; t1 := x is null](project[x := r.a + 1](r as r)))",
        "present[n := #count, k := k](sum[k := r.a + 1; t1 := r.a + 1 is null](r as r))",
    ),
    (
        pushdown_predicates,
        "filter[r.a = s.a and r.b > 1 and s.b > 1](join(r as r, s as s))",
        "join[r.a = s.a](filter[r.b > 1](r as r), filter[s.b > 1](s as s))",
    ),
    (
        pushdown_predicates,
        "join[r.a = s.a and r.b > 1](r as r, s as s)",
        "join[r.a = s.a](filter[r.b > 1](r as r), s as s)",
    ),
    # a condition that can fail is asked only of pairs that join
    (
        pushdown_predicates,
        "filter[r.a + 1 > 1](join[r.a = s.a](r as r, s as s))",
        "join[r.a = s.a and r.a + 1 > 1](r as r, s as s)",
    ),
    (
        pushdown_predicates,
        "filter[x > 1](project[x := r.b](r as r))",
        "project[x := r.b](filter[r.b > 1](r as r))",
    ),
    (
        pushdown_predicates,
        "filter[x > 1](union(project[x := r.b](r as r), project[x := s.b](s as s)))",
        "union(project[x := r.b](filter[r.b > 1](r as r)), project[x := s.b](filter[s.b > 1](s as s)))",
    ),
    (
        pushdown_predicates,
        "filter[x > 1](negate(project[x := r.b](r as r)))",
        "negate(project[x := r.b](filter[r.b > 1](r as r)))",
    ),
    # conditions on keys go below the map, conditions on counts into having
    (
        pushdown_predicates,
        "filter[k > 1 and n > 0L](present[k := g, n := #count](sum[g := r.a; ](r as r)))",
        "present[k := g, n := #count; #count > 0L](sum[g := r.a; ](filter[r.a > 1](r as r)))",
    ),
    # a map without keys has a row even over nothing, so its condition cannot go below
    (
        pushdown_predicates,
        "filter[n > 100L](present[n := #count](sum[; ](r as r)))",
        "present[n := #count; #count > 100L](sum[; ](r as r))",
    ),
    (
        pushdown_predicates,
        "filter[false](present[n := #count](sum[; ](r as r)))",
        "present[n := #count; false](sum[; ](r as r))",
    ),
    (
        evaluate_values,
        "project[y := x + 1](values[x INT]((1), (1)))",
        "values[y INT]((2), (2))",
    ),
]


@pytest.mark.parametrize(("rewrite", "before", "after"), CASES)
def test_rewrite(rewrite: Callable[[Node], Node], before: str, after: str) -> None:
    node = read_node(before, SCHEMAS)
    assert str(rewrite(node)) == tidy(after)
    assert rows(rewrite(node)) == rows(node)


@pytest.mark.parametrize(("rewrite", "before", "after"), CASES)
def test_a_second_time_changes_nothing(rewrite: Callable[[Node], Node], before: str, after: str) -> None:
    once = rewrite(read_node(before, SCHEMAS))
    assert rewrite(once) == once


def test_projections_that_would_grow_without_end_are_left_alone() -> None:
    text = "r as r"
    for level in range(20):
        source = "r.a" if level == 0 else f"x{level - 1}"
        text = f"project[x{level} := {source} + {source}]({text})"
    merged = simplify(read_node(text, SCHEMAS))
    assert sum(1 for node in merged.walk()) > 2
    assert len(str(merged)) < 50_000


def test_the_pipeline_brings_a_query_to_one_block() -> None:
    before = """
        project[k := d.k](filter[d.n > 1L](
          present[d.k := q.x, d.n := #count](sum[q.x := q.x; ](
            project[q.x := r.a](filter[r.b > 0 + 1](r as r))))))
    """
    assert str(simplify(read_node(before, SCHEMAS))) == tidy(
        "present[k := q.x; #count > 1L](sum[q.x := r.a; ](filter[r.b > 1](r as r)))"
    )
