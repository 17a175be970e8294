"""What each node means, by small examples."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import pytest

from headwater import types as t
from headwater.algebra.evaluate import NAN, Bag, canonical, evaluate, evaluate_map
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import IllFormed, Node, Scan, Sum
from headwater.algebra.read import read_node

SCHEMAS = {
    "r": (t.Field("a", t.INT), t.Field("b", t.INT)),
    "s": (t.Field("a", t.INT), t.Field("c", t.STRING)),
    "f": (t.Field("x", t.DOUBLE),),
    "d": (t.Field("x", t.Decimal(38, 0)),),
    "l": (t.Field("x", t.Array(t.INT)),),
    "s2": (t.Field("a", t.INT), t.Field("b", t.INT)),
    "nothing": (t.Field("a", t.INT),),
}
BAGS: dict[str, Bag] = {
    "r": Counter({(1, 10): 2, (2, None): 1, (None, 30): 1, (3, 10): -1}),
    "s": Counter({(1, "x"): 3, (None, "n"): 1, (3, "y"): 2}),
    "f": Counter({(NAN,): 2, (0.0,): 3, (math.inf,): 1, (None,): 1}),
    "d": Counter({(Decimal("9" * 38),): 2, (Decimal(1),): -2}),
    "l": Counter({((1, None),): 2, ((),): 1, (None,): 1}),
    "s2": Counter({(1, 10): 1}),
    "nothing": Counter(),
}


def tree(text: str) -> Node:
    return read_node(text, SCHEMAS)


def contents(scan: Scan) -> Bag:
    return BAGS[scan.relation]


def rows(text: str) -> Bag:
    return evaluate(tree(text), contents)


def entries(text: str) -> dict[tuple[object, ...], tuple[object, ...]]:
    node = tree(text)
    assert isinstance(node, Sum)
    return evaluate_map(node, contents)


def test_scan() -> None:
    assert rows("r as q") == BAGS["r"]


def test_values_count_equal_rows() -> None:
    assert rows("values[x INT]((1), (1), ({INT null}))") == {(1,): 2, (None,): 1}
    assert rows("values[x INT]()") == {}
    assert rows("values[]((), ())") == {(): 2}


def test_values_know_one_nan_and_one_zero() -> None:
    bag = rows("""values[x DOUBLE](({DOUBLE 'nan'}), ({DOUBLE 'nan'}), ({DOUBLE '-0.0'}))""")
    assert bag == {(NAN,): 2, (0.0,): 1}
    assert str(next(x for (x,) in bag if x == 0)) == "0.0"


def test_filter_keeps_rows_for_which_the_predicate_is_true_not_null() -> None:
    assert rows("filter[q.b = 10](r as q)") == {(1, 10): 2, (3, 10): -1}
    assert rows("filter[not q.b = 10](r as q)") == {(None, 30): 1}
    assert rows("filter[q.b is null](r as q)") == {(2, None): 1}


def test_filter_finds_nan_equal_to_nan_and_larger_than_infinity() -> None:
    assert rows("""filter[q.x = {DOUBLE 'nan'}](f as q)""") == {(NAN,): 2}
    assert rows("""filter[q.x > {DOUBLE 'inf'}](f as q)""") == {(NAN,): 2}


def test_project_adds_up_rows_that_become_equal() -> None:
    assert rows("project[b := q.b](r as q)") == {(10,): 1, (None,): 1, (30,): 1}
    assert rows("project[one := 1](r as q)") == {(1,): 3}
    assert rows("project[](r as q)") == {(): 3}


def test_project_drops_rows_that_cancel() -> None:
    assert rows("project[low := q.a < 3](filter[q.a <> 2](union(r as q, negate(s2 as q))))") == {
        (True,): 1,
        (False,): -1,
    }
    assert rows("project[b := q.b](filter[q.a <> 2](union(r as q, negate(s2 as q))))") == {}


def test_join_multiplies_multiplicities_and_null_meets_nothing() -> None:
    assert rows("join[q.a = p.a](r as q, s as p)") == {(1, 10, 1, "x"): 6, (3, 10, 3, "y"): -2}


def test_join_null_safe() -> None:
    assert rows("filter[q.a is null](join[q.a <=> p.a](r as q, s as p))") == {(None, 30, None, "n"): 1}


def test_join_without_a_condition_takes_all_pairs() -> None:
    everything = rows("join(r as q, s as p)")
    assert sum(everything.values()) == 3 * 6
    assert rows("join(r as q, nothing as p)") == {}


def test_join_of_a_relation_with_itself() -> None:
    pairs = rows("join[q.b = p.b](r as q, r as p)")
    assert pairs == {
        (1, 10, 1, 10): 4,
        (1, 10, 3, 10): -2,
        (3, 10, 1, 10): -2,
        (3, 10, 3, 10): 1,
        (None, 30, None, 30): 1,
    }


def test_union_adds_and_negate_takes_away() -> None:
    assert rows("union(r as q, r as q)") == {row: 2 * n for row, n in BAGS["r"].items()}
    assert rows("negate(r as q)") == {row: -n for row, n in BAGS["r"].items()}
    assert rows("union(r as q, negate(r as q))") == {}


def test_sum_counts_and_adds_by_key() -> None:
    found = entries("sum[k := q.b; total := coalesce(q.a, 0), nulls := q.a is null](r as q)")
    assert found == {
        (10,): (1, Decimal(2 * 1 - 3), 0),
        (None,): (1, Decimal(2), 0),
        (30,): (1, Decimal(0), 1),
    }


def test_sum_keeps_keys_whose_count_is_zero_because_payload_may_be_left() -> None:
    found = entries("sum[; total := p.x](filter[p.x is not null](d as p))")
    assert found == {(): (0, Decimal("1" + "9" * 37 + "6"))}  # 39 digits: exact beyond the type


def test_sum_over_nothing_has_an_entry_only_without_keys() -> None:
    assert entries("sum[; total := q.a](nothing as q)") == {(): (0, Decimal(0))}
    assert entries("sum[k := q.a; total := q.a](nothing as q)") == {}


def test_sum_groups_nan_and_null_and_arrays() -> None:
    assert entries("sum[k := q.x; ](f as q)") == {(NAN,): (2,), (0.0,): (3,), (math.inf,): (1,), (None,): (1,)}
    assert entries("sum[k := q.x; ](l as q)") == {((1, None),): (2,), ((),): (1,), (None,): (1,)}


def test_a_term_that_is_null_is_a_defect() -> None:
    with pytest.raises(IllFormed, match="a term of a sum is None"):
        entries("sum[; total := q.a](r as q)")


def test_present_shows_groups_with_a_positive_count() -> None:
    assert rows("present[k := k, n := #count](sum[k := q.a; ](r as q))") == {(1, 2): 1, (2, 1): 1, (None, 1): 1}
    assert rows("present[n := #count](sum[k := q.a; ](negate(r as q)))") == {(1,): 1}


def test_present_shows_equal_rows_of_different_groups_as_often_as_they_come() -> None:
    assert rows("present[n := #count](sum[k := q.a; ](r as q))") == {(2,): 1, (1,): 2}


def test_present_having_must_be_true() -> None:
    assert rows("present[k := k; k > 1](sum[k := q.a; ](r as q))") == {(2,): 1}


def test_present_without_keys_has_one_row_also_over_nothing() -> None:
    assert rows("present[n := #count](sum[; ](nothing as q))") == {(0,): 1}
    assert rows("present[n := #count](sum[; ](negate(s as q)))") == {(-6,): 1}
    assert rows("present[n := #count; #count > 0L](sum[; ](nothing as q))") == {}


def test_a_map_is_not_rows() -> None:
    with pytest.raises(IllFormed, match="does not yield rows"):
        rows("sum[k := q.a; ](r as q)")


def test_what_has_no_value_raises_when_a_row_asks_for_it() -> None:
    with pytest.raises(EvaluationError, match="division by zero"):
        rows("project[x := cast(1 as DOUBLE) / cast(q.a - q.a as DOUBLE)](r as q)")
    assert rows("project[x := cast(1 as DOUBLE) / cast(q.a - q.a as DOUBLE)](nothing as q)") == {}


def test_canonical_values() -> None:
    assert canonical(float("nan")) is NAN
    assert str(canonical(-0.0)) == "0.0"
    assert canonical([1, [float("nan"), None]]) == (1, (NAN, None))
    assert canonical("x") == "x"
