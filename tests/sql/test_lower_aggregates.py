"""Aggregates: the maps they need, and the values that come out."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from headwater import types as t
from tests.sql.shop import lines, rows, tree, view


def test_count_and_sum_of_what_is_never_null_need_no_count_of_their_own() -> None:
    assert tree("SELECT cust, count(*) AS n, count(id) AS m, sum(id) AS s FROM orders GROUP BY cust") == lines("""
        present[cust := orders.cust, n := #count, m := #count, s := cast(t1 as BIGINT)](
          sum[orders.cust := orders.cust; t1 := orders.id](
            orders as orders))
    """)


def test_a_sum_over_nothing_is_null() -> None:
    assert tree("SELECT sum(id) AS s FROM orders") == lines("""
        present[s := if(#count > 0L, cast(t1 as BIGINT), {BIGINT null})](
          sum[; t1 := orders.id](
            orders as orders))
    """)


def test_terms_are_shared() -> None:
    text = "SELECT sum(qty) AS s, avg(qty) AS a, count(qty) AS n, sum(qty) + 1 AS s1 FROM orders"
    assert tree(text) == lines("""
        present[s := if(t2 > 0L, cast(t1 as BIGINT), {BIGINT null}), a := avg_double(cast(t1 as DOUBLE), t2),
                n := t2, s1 := if(t2 > 0L, cast(t1 as BIGINT), {BIGINT null}) + 1L](
          sum[; t1 := coalesce(orders.qty, 0L), t2 := orders.qty is not null](
            orders as orders))
    """)


def test_doubles_count_what_is_not_finite() -> None:
    terms = dict(view("SELECT sum(weight) AS s FROM orders").children[0].terms)  # type: ignore[attr-defined]
    assert [str(term) for term in terms.values()] == [
        "orders.weight is not null",
        "if(is_finite(orders.weight), orders.weight, {DOUBLE '0.0'})",
        "is_nan(orders.weight)",
        "is_positive_infinity(orders.weight)",
        "is_negative_infinity(orders.weight)",
    ]


def test_the_first_and_the_last_by_an_order() -> None:
    text = "SELECT first(qty ORDER BY id) AS a, last(note ORDER BY price, id DESC) AS b FROM orders"
    assert rows(view(text)) == {(5, "a"): 1}
    assert rows(view("SELECT first(qty) WITHIN GROUP (ORDER BY id DESC) AS a FROM orders")) == {(-3,): 1}
    assert rows(view("SELECT first(qty ORDER BY price) AS a FROM orders WHERE id < 4")) == {(7,): 1}
    assert rows(view("SELECT last(qty ORDER BY price) AS a FROM orders WHERE id < 4")) == {(None,): 1}
    assert rows(view("SELECT last(qty ORDER BY price) IGNORE NULLS AS a FROM orders WHERE id < 4")) == {(5,): 1}
    assert rows(view("SELECT first(id ORDER BY id) FILTER (WHERE qty > 5) AS a FROM orders")) == {(3,): 1}
    assert rows(view("SELECT first(id ORDER BY id) FILTER (WHERE qty > 50) AS a FROM orders")) == {(None,): 1}
    assert rows(view("SELECT first(id ORDER BY 1) AS a FROM orders WHERE id > 9")) == {(None,): 1}


def test_moments_of_short_numbers_add_up() -> None:
    assert tree("SELECT stddev(cust) AS s, var_pop(price) AS v FROM orders") == lines("""
        present[
            s := sqrt(variance_of(t1, t2, t3, true, 0)),
            v := variance_of(t4, t5, t6, false, 2)](
          sum[;
              t1 := orders.cust is not null,
              t2 := coalesce(cast(orders.cust as BIGINT), 0L),
              t3 := square(coalesce(cast(orders.cust as BIGINT), 0L)),
              t4 := orders.price is not null,
              t5 := coalesce(unscaled(orders.price), 0L),
              t6 := square(coalesce(unscaled(orders.price), 0L))](
            orders as orders))
    """)
    assert "p1 := var_pop" in tree("SELECT var_pop(qty) AS s FROM orders")


def test_elements_as_rows() -> None:
    assert rows(view("SELECT explode(array(id, 10)) AS e FROM orders WHERE id < 3")) == {(1,): 1, (2,): 1, (10,): 2}
    text = "SELECT cust, posexplode(collect_list(id)) AS (p, e) FROM orders GROUP BY cust HAVING cust < 2"
    assert rows(view(text)) == {(1, 0, 1): 1, (1, 1, 2): 1}
    assert rows(view("SELECT explode_outer(tags), id + value AS n FROM orders WHERE id = 1")) == {(None, None, None): 1}


def test_frames_by_an_interval() -> None:
    text = "SELECT count(*) OVER (ORDER BY day RANGE BETWEEN {} PRECEDING AND CURRENT ROW) AS n FROM orders"
    assert rows(view(text.format("INTERVAL 2 DAYS"))) == {(1,): 1, (4,): 4}
    assert "unix_date(orders.day) asc nulls_first) range(-2, 0)" in tree(text.format("INTERVAL 2 DAYS"))


def test_groups_by_expression_ordinal_and_alias_are_the_same() -> None:
    by_expression = tree("SELECT id % 2 AS k, count(*) AS n FROM orders GROUP BY id % 2")
    assert tree("SELECT id % 2 AS k, count(*) AS n FROM orders GROUP BY 1") == by_expression
    assert tree("SELECT id % 2 AS k, count(*) AS n FROM orders GROUP BY k") == by_expression
    assert tree("SELECT id % 2 AS k, count(*) AS n FROM orders GROUP BY ALL") == by_expression
    assert by_expression == lines("""
        present[k := g1, n := #count](
          sum[g1 := orders.id % 2; ](
            orders as orders))
    """)


def test_group_by_prefers_a_column_to_an_alias() -> None:
    assert "sum[orders.cust := orders.cust; ]" in tree(
        "SELECT cust + 1 AS cust, count(*) AS n FROM orders GROUP BY cust"
    )


def test_having_prefers_a_grouped_column_then_an_alias() -> None:
    assert rows(view("SELECT sum(qty) AS cust FROM orders GROUP BY cust HAVING cust = 1")) == {(5,): 1}
    assert rows(view("SELECT cust, sum(id) AS qty FROM orders GROUP BY cust HAVING qty = 8")) == {(None, 8): 1}


def test_having_on_keys_filters_before_and_on_aggregates_after() -> None:
    assert tree("SELECT cust FROM orders GROUP BY cust HAVING cust > 1 AND count(*) > 2") == lines("""
        present[cust := orders.cust; #count > 2L](
          sum[orders.cust := orders.cust; ](
            filter[orders.cust > 1](
              orders as orders)))
    """)


def test_a_filter_over_a_derived_aggregate_becomes_having() -> None:
    text = "SELECT k FROM (SELECT cust AS k, count(*) AS n FROM orders GROUP BY cust) WHERE n > 1"
    assert tree(text) == lines("""
        present[k := orders.cust; #count > 1L](
          sum[orders.cust := orders.cust; ](
            orders as orders))
    """)


def test_an_aggregate_of_an_aggregate() -> None:
    text = "SELECT n, count(*) AS groups FROM (SELECT cust, count(*) AS n FROM orders GROUP BY cust) q GROUP BY n"
    assert rows(view(text)) == {(2, 2): 1, (1, 1): 1}


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("count(*)", t.BIGINT, 5),
        ("count(qty, price)", t.BIGINT, 3),
        ("count(NULL)", t.BIGINT, 0),
        ("sum(qty)", t.BIGINT, 6),
        ("sum(price)", t.Decimal(20, 2), Decimal("23.73")),
        ("sum(price * qty)", t.Decimal(38, 2), Decimal("-52.44")),
        ("sum(price + qty)", t.Decimal(33, 2), Decimal("20.48")),
        ("avg(qty)", t.DOUBLE, 1.5),
        ("avg(price)", t.Decimal(14, 6), Decimal("5.932500")),
        ("avg(id) * 2", t.DOUBLE, 5.6),
        ("sum(CASE WHEN id < 3 THEN weight END)", t.DOUBLE, math.nan),
        ("sum(CASE WHEN id = 3 THEN weight END)", t.DOUBLE, math.inf),
        ("avg(CASE WHEN id = 1 THEN weight END)", t.DOUBLE, 1.5),
        ("sum(CASE WHEN id > 3 THEN weight END)", t.DOUBLE, None),
        ("sum(NULL)", t.DOUBLE, None),
        ("mean(id)", t.DOUBLE, 2.8),
    ],
)
def test_the_value_of_an_aggregate(text: str, kind: t.Type, value: object) -> None:
    node = view(f"SELECT {text} AS x FROM orders")
    assert node.schema[0].type == kind
    ((found,),) = rows(node)
    if isinstance(value, float):
        assert isinstance(found, float)
        assert found == pytest.approx(value, nan_ok=True)
    else:
        assert found == value


def test_a_global_aggregate_over_nothing_has_one_row_unless_having_says_no() -> None:
    assert rows(view("SELECT count(*) AS n, sum(id) AS s FROM orders WHERE id > 99")) == {(0, None): 1}
    assert rows(view("SELECT count(*) AS n FROM orders WHERE id > 99 HAVING count(*) > 0")) == {}
    assert rows(view("SELECT cust, count(*) AS n FROM orders WHERE id > 99 GROUP BY cust")) == {}
    assert rows(view("SELECT 1 AS one FROM orders HAVING 1 = 1")) == {(1,): 1}
