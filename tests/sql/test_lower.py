"""Queries and the trees they become."""

from __future__ import annotations

import pytest

from headwater import types as t
from headwater.errors import Source, Span
from headwater.sql.lower import OrderKey, lower_view
from headwater.sql.statements import Name
from tests.sql.shop import SHOP, answer, lines, parse, refused, tree, view


def test_a_projection_over_a_filter() -> None:
    assert tree("SELECT id, price * 2 AS twice FROM orders WHERE cust IS NOT NULL AND qty > 3") == lines("""
        project[id := orders.id, twice := orders.price * {DECIMAL(1,0) '2'}](
          filter[orders.cust is not null and orders.qty > 3L](
            orders as orders))
    """)


def test_conditions_of_where_go_to_the_side_of_a_join_they_are_about() -> None:
    text = """
        SELECT o.id, c.name FROM orders o, customers c
        WHERE o.cust = c.id AND c.nation = 'x' AND o.id > 1 AND (o.id > 5 OR c.id > 5)
    """
    assert tree(text) == lines("""
        project[id := o.id, name := c.name](
          join[o.cust = c.id and (o.id > 5 or c.id > 5)](
            filter[o.id > 1](
              orders as o),
            filter[c.nation = 'x'](
              Customers as c since 3)))
    """)


def test_a_condition_that_can_fail_stays_above_the_join() -> None:
    assert tree("SELECT o.id FROM orders o JOIN customers c ON o.cust = c.id WHERE 10 DIV o.qty > 1") == lines("""
        project[id := o.id](
          join[o.cust = c.id and div(10L, o.qty) > 1L](
            orders as o,
            Customers as c since 3))
    """)


def test_a_self_join_gets_two_aliases() -> None:
    assert tree("SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.id = b.cust") == lines("""
        project[x := a.id, y := b.id](
          join[a.id = b.cust](
            orders as a,
            orders as b))
    """)


def test_aliases_that_repeat_in_other_queries_are_numbered() -> None:
    text = "SELECT o.id AS x, p.id AS y FROM orders o, (SELECT o.id FROM orders o) p"
    assert tree(text) == lines("""
        project[x := o.id, y := p.id](
          join(
            orders as o,
            project[p.id := o_2.id](
              orders as o_2)))
    """)


def test_joins_nest_as_written() -> None:
    text = "SELECT a.id FROM orders a JOIN (customers b JOIN customers c ON b.id = c.id) ON a.id = c.id"
    assert tree(text) == lines("""
        project[id := a.id](
          join[a.id = c.id](
            orders as a,
            join[b.id = c.id](
              Customers as b since 3,
              Customers as c since 3)))
    """)


def test_using_makes_one_column_of_two() -> None:
    text = "SELECT *, c.id AS theirs FROM customers o JOIN customers c USING (ID) JOIN customers d USING (id, name)"
    # the name of the two first is ambiguous, unlike their id
    assert refused(text)[:2] == ("HW120", "name")
    assert tree("SELECT *, c.id AS x FROM (SELECT qty, id FROM orders) o JOIN customers c USING (ID)") == lines("""
        project[id := o.id, qty := o.qty, name := c.name, nation := c.nation, x := c.id](
          join[o.id = c.id](
            project[o.qty := orders.qty, o.id := orders.id](orders as orders),
            Customers as c since 3))
    """)


def test_using_again_puts_its_own_columns_first() -> None:
    text = """
        SELECT * FROM VALUES (1, 2) AS a(x, y) JOIN VALUES (1, 3) AS b(x, z) USING (x)
        JOIN VALUES (2, 4L) AS c(y, x) USING (y)
    """
    assert answer(text).names == ("y", "x", "z", "x")


def test_a_natural_join_uses_all_names_both_sides_have() -> None:
    assert tree("SELECT name, o.price FROM orders o NATURAL JOIN customers c") == lines("""
        project[name := c.name, price := o.price](
          join[o.id = c.id](orders as o, Customers as c since 3))
    """)


def test_a_derived_table_is_one_projection_and_melts_into_the_next() -> None:
    text = "SELECT y + 1 AS z FROM (SELECT id * 2 AS y FROM orders WHERE id > 3) d WHERE y < 9"
    assert tree(text) == lines("""
        project[z := orders.id * 2 + 1](
          filter[orders.id > 3 and orders.id * 2 < 9](
            orders as orders))
    """)


def test_a_common_table_expression_is_lowered_where_it_is_used() -> None:
    text = """
        WITH a AS (SELECT id, cust FROM orders), b (k) AS (SELECT cust FROM a)
        SELECT x.k AS p, y.k AS q FROM b x JOIN b y ON x.k = y.k
    """
    assert tree(text) == lines("""
        project[p := x.k, q := y.k](
          join[x.k = y.k](
            project[x.k := orders.cust](
              orders as orders),
            project[y.k := orders_2.cust](
              orders as orders_2)))
    """)


def test_a_common_table_expression_hides_a_relation_and_still_reads_it() -> None:
    text = "WITH orders AS (SELECT id AS k FROM orders) SELECT k FROM orders"
    assert tree(text) == lines("""
        project[k := orders_2.id](
          orders as orders_2)
    """)


def test_union_all_meets_at_common_types_under_the_first_names() -> None:
    assert tree("SELECT id AS a FROM orders UNION ALL SELECT price FROM orders UNION ALL SELECT 1") == lines("""
        union(
          project[a := cast(orders.id as DECIMAL(12,2))](
            orders as orders),
          project[a := cast(orders_2.price as DECIMAL(12,2))](
            orders as orders_2),
          values[a DECIMAL(12,2)](({DECIMAL(12,2) '1.00'})))
    """)


def test_a_query_without_from_is_computed() -> None:
    assert tree("SELECT 1 + 1 AS a, 'x' AS b") == lines("values[a INT, b STRING]((2, 'x'))")
    assert tree("SELECT 1 AS a WHERE 1 > 2") == lines("values[a INT]()")


def test_values_meet_at_common_types() -> None:
    assert tree("SELECT x, y FROM VALUES (1, 'a'), (2L, NULL) AS v(x, y)") == lines("""
        values[x BIGINT, y STRING]((1L, 'a'), (2L, {STRING null}))
    """)
    assert tree("VALUES (1, 2)") == lines("values[col1 INT, col2 INT]((1, 2))")


def test_select_items_see_the_aliases_before_them() -> None:
    assert tree("SELECT id AS a, a + 1 AS b FROM orders") == lines("""
        project[a := orders.id, b := orders.id + 1](
          orders as orders)
    """)


def test_stars() -> None:
    assert view("SELECT c.*, o.qty FROM orders o, customers c").column_names == ("id", "name", "nation", "qty")
    assert len(view("SELECT * FROM orders").schema) == 8


def test_columns_without_an_alias_are_named_by_what_they_are() -> None:
    assert view("SELECT ID, orders.qty, cust::bigint, count(*) FROM orders GROUP BY 1, 2, 3").column_names == (
        "ID",
        "qty",
        "cust",
        "count(*)",
    )


def test_names_that_create_view_gives() -> None:
    text = "SELECT id, qty FROM orders"
    names = (Name("a", Span(0, 0)), Name("b", Span(0, 0)))
    assert lower_view(parse(text), SHOP, Source(text), 0, names).column_names == ("a", "b")


def test_errors_point_into_the_whole_text_when_the_query_is_a_part_of_it() -> None:
    whole, query = "CREATE VIEW v AS SELECT idd FROM orders", "SELECT idd FROM orders"
    with pytest.raises(Exception, match="idd") as caught:
        lower_view(parse(query), SHOP, Source(whole), whole.index(query))
    span = caught.value.span  # type: ignore[attr-defined]
    assert whole[span.start : span.end] == "idd"


# -- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_has_an_order_and_a_limit() -> None:
    found = answer("SELECT id, qty AS q FROM orders ORDER BY q DESC, 1 LIMIT 2 + 1 OFFSET 4")
    assert found.order == (OrderKey("q", True, False), OrderKey("id", False, True))
    assert (found.limit, found.offset) == (3, 4)


def test_an_answer_may_be_ordered_by_what_it_does_not_show() -> None:
    found = answer("SELECT id FROM orders ORDER BY price NULLS LAST")
    assert found.names == ("id",)
    assert found.node.column_names == ("id", "#order1")
    assert found.order == (OrderKey("#order1", False, False),)


def test_an_answer_may_be_ordered_by_an_aggregate() -> None:
    found = answer("SELECT cust FROM orders GROUP BY cust ORDER BY sum(id) DESC")
    assert found.node.column_names == ("cust", "#order1")
    assert found.node.schema[1].type == t.BIGINT


def test_an_answer_may_repeat_names() -> None:
    found = answer("SELECT o.id, c.id FROM orders o, customers c")
    assert found.names == ("id", "id")
    assert found.node.column_names == ("id", "id_2")


def test_an_answer_of_a_union_is_ordered_by_its_columns() -> None:
    found = answer("SELECT id FROM orders UNION ALL SELECT id FROM customers ORDER BY id LIMIT ALL")
    assert found.order == (OrderKey("id", False, True),)
    assert found.limit is None


def test_a_condition_on_the_clock_is_a_window_at_the_rows_it_is_about() -> None:
    text = "SELECT c.name FROM orders o JOIN customers c ON c.id = o.cust WHERE o.day >= current_date() AND o.qty > 1"
    assert tree(text) == lines(
        """
        project[name := c.name](join[c.id = o.cust](
            during[true; o.day >= cast(now() as DATE)](
                project[o.cust := o.cust, o.day := o.day](filter[o.qty > 1L](orders as o))),
            Customers as c since 3))
        """
    )


def test_now_is_a_column_if_there_is_one() -> None:
    text = "SELECT x FROM (SELECT id AS now, qty AS x FROM orders) q WHERE x > Now"
    assert "during" not in tree(text)
    assert "unix_seconds(now())" in tree("SELECT id FROM orders WHERE qty > Now")
