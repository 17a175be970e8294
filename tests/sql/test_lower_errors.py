"""Queries that are wrong, and queries that are right and not supported: the code, and what is underlined."""

from __future__ import annotations

import pytest

from headwater.errors import NotSupported, UserError
from tests.sql.shop import answer, refused, view


@pytest.mark.parametrize(
    ("text", "code", "underlined"),
    [
        ("SELECT idd FROM orders", "HW101", "idd"),
        ("SELECT o.idd FROM orders o", "HW101", "o.idd"),
        ("SELECT *", "HW101", "*"),
        ("SELECT id FROM orders o, customers c", "HW120", "id"),
        ("SELECT o.id FROM orders o, orders o", "HW120", "o.id"),
        ("SELECT q.id FROM (SELECT id, cust AS id FROM orders) q", "HW120", "q.id"),
        ("SELECT id AS a, cust AS a, a + 1 AS b FROM orders", "HW120", "a"),
        ("SELECT o.id FROM orders o JOIN customers c USING (cust)", "HW101", "cust"),
        ("SELECT o.qty FROM orders o JOIN orders p USING (tags)", "HW122", "JOIN orders p USING (tags)"),
        ("SELECT qty FROM orders o JOIN orders p USING (id)", "HW120", "qty"),
        ("SELECT id FROM ordrs", "HW102", "ordrs"),
        ("SELECT c.id FROM customers", "HW102", "c"),
        ("SELECT c.* FROM customers", "HW102", "c"),
        ("SELECT id FROM sales.orders", "HW102", "sales.orders"),
        ("SELECT abss(id) AS x FROM orders", "HW121", "abss(id)"),
        ("SELECT sum(id, qty) AS s FROM orders", "HW122", "sum(id, qty)"),
        ("SELECT sum(TRUE) AS s FROM orders", "HW122", "sum(TRUE)"),
        ("SELECT count() AS s FROM orders", "HW122", "count()"),
        ("SELECT id FROM orders WHERE qty", "HW112", "qty"),
        ("SELECT o.id FROM orders o JOIN customers c ON c.name", "HW112", "c.name"),
        ("SELECT cust FROM orders GROUP BY cust HAVING count(*)", "HW112", "count(*)"),
        ("SELECT id FROM orders WHERE sum(qty) > 1", "HW123", "sum(qty)"),
        ("SELECT o.id FROM orders o JOIN customers c ON count(*) > 1", "HW123", "count(*)"),
        ("SELECT count(*) AS n FROM orders GROUP BY sum(id)", "HW123", "sum(id)"),
        ("SELECT sum(id) AS s FROM orders GROUP BY s", "HW123", "s"),
        ("SELECT sum(id) AS s FROM orders GROUP BY 1", "HW123", "1"),
        ("SELECT sum(1 + sum(id)) AS s FROM orders", "HW123", "sum(id)"),
        ("SELECT id, count(*) AS n FROM orders", "HW124", "id"),
        ("SELECT cust, 1 + qty AS q FROM orders GROUP BY cust", "HW124", "qty"),
        ("SELECT id + 1 AS a, id + 2 AS b FROM orders GROUP BY id + 1", "HW124", "id"),
        ("SELECT cust FROM orders GROUP BY cust HAVING qty > 1", "HW124", "qty"),
        ("SELECT * FROM orders GROUP BY id", "HW124", "SELECT * FROM orders GROUP BY id"),
        ("SELECT count(*) AS n FROM orders GROUP BY tags", "HW125", "tags"),
        ("SELECT o.id FROM orders o JOIN orders p ON o.tags = p.tags", "HW122", "o.tags = p.tags"),
        ("SELECT id FROM orders UNION ALL SELECT id, cust FROM orders", "HW126", "SELECT id, cust FROM orders"),
        (
            "SELECT tags FROM orders UNION ALL SELECT id FROM orders",
            "HW126",
            "SELECT id FROM orders",
        ),
        ("SELECT id, ID FROM orders", "HW127", "ID"),
        ("SELECT o.id, c.* FROM orders o, customers c", "HW127", "c.*"),
        ("SELECT id AS `#x` FROM orders", "HW127", "id AS `#x`"),
        ("SELECT a FROM (SELECT id, cust FROM orders) q(a)", "HW128", "SELECT id, cust FROM orders"),
        ("WITH q(a) AS (SELECT id, cust FROM orders) SELECT a FROM q", "HW128", "SELECT id, cust FROM orders"),
        ("SELECT * FROM VALUES (1, 2), (3) AS v(a, b)", "HW128", "3"),
        ("SELECT id FROM orders WHERE day > DATE 'soon'", "HW129", "DATE 'soon'"),
        ("SELECT count(*) AS n FROM orders GROUP BY 2", "HW131", "2"),
        ("SELECT NULL AS x", "HW133", "NULL AS x"),
        ("WITH a AS (SELECT 1), A AS (SELECT 2) SELECT * FROM a", "HW134", "A"),
        ("WITH a AS (SELECT idd FROM orders) SELECT 1 AS x", "HW101", "idd"),
        ("SELECT 1 DIV 0 AS x", "HW501", "1 DIV 0"),
        ("SELECT DISTINCT tags FROM orders", "HW125", "SELECT DISTINCT tags FROM orders"),
        (
            "SELECT tags FROM orders EXCEPT SELECT tags FROM orders",
            "HW125",
            "SELECT tags FROM orders EXCEPT SELECT tags FROM orders",
        ),
        (
            "SELECT id FROM orders WHERE id IN (SELECT id, name FROM customers)",
            "HW135",
            "SELECT id, name FROM customers",
        ),
        ("SELECT (SELECT id, name FROM customers) AS x FROM orders", "HW135", "SELECT id, name FROM customers"),
        ("SELECT id FROM orders WHERE (id, cust) IN (SELECT id FROM customers)", "HW135", "SELECT id FROM customers"),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers c WHERE c.idd = id)", "HW101", "c.idd"),
        ("SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers WHERE idd = 1)", "HW101", "idd"),
        (
            "SELECT cust, (SELECT max(c.id) FROM customers c WHERE c.id = o.qty) AS m FROM orders o GROUP BY cust",
            "HW124",
            "SELECT cust, (SELECT max(c.id) FROM customers c WHERE c.id = o.qty) AS m FROM orders o GROUP BY cust",
        ),
        ("SELECT id FROM orders QUALIFY id = 1", "HW137", "QUALIFY id = 1"),
        ("SELECT id FROM orders WHERE rank() OVER (ORDER BY id) = 1", "HW137", "rank() OVER (ORDER BY id)"),
        ("SELECT row_number() AS n FROM orders", "HW138", "row_number()"),
        ("SELECT abs(id) OVER (ORDER BY id) AS n FROM orders", "HW138", "abs(id) OVER (ORDER BY id)"),
        (
            "SELECT row_number() OVER (PARTITION BY cust) AS n FROM orders",
            "HW139",
            "row_number() OVER (PARTITION BY cust)",
        ),
        ("SELECT sum(id) OVER w AS n FROM orders", "HW101", "sum(id) OVER w"),
        ("SELECT ntile(0) OVER (ORDER BY id) AS n FROM orders", "HW132", "0"),
        ("SELECT min(tags) AS m FROM orders", "HW122", "min(tags)"),
        ("SELECT percentile(id, 2) AS m FROM orders", "HW122", "percentile(id, 2)"),
        ("SELECT min(max(id)) AS m FROM orders", "HW123", "max(id)"),
    ],
)
def test_a_mistake(text: str, code: str, underlined: str) -> None:
    assert refused(text)[:2] == (code, underlined)
    with pytest.raises(UserError):
        view(text)


@pytest.mark.parametrize(
    ("text", "code", "underlined"),
    [
        ("SELECT id FROM orders SORT BY id", "HW201", "SORT BY id"),
        ("SELECT id FROM orders CLUSTER BY id", "HW201", "CLUSTER BY id"),
        ("SELECT id FROM orders DISTRIBUTE BY id", "HW201", "DISTRIBUTE BY id"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "HW201", "10"),
        ("SELECT * FROM orders PIVOT (sum(qty) FOR cust IN (1, 2))", "HW201", "sum(qty) FOR cust IN (1, 2)"),
        ("SELECT * EXCEPT (tags) FROM orders", "HW201", "tags"),
        ("SELECT id FROM orders FOR UPDATE", "HW201", "SELECT id FROM orders FOR UPDATE"),
        ("SELECT id FROM orders FETCH FIRST 3 ROWS ONLY", "HW201", "FETCH FIRST 3 ROWS ONLY"),
        ("SELECT tags FROM orders LIMIT 3", "HW201", "SELECT tags FROM orders LIMIT 3"),
        (
            "SELECT o.id FROM orders o ASOF JOIN customers c ON o.id = c.id",
            "HW202",
            "ASOF JOIN customers c ON o.id = c.id",
        ),
        ("SELECT sum(INTERVAL 1 DAY) AS m FROM orders", "HW203", "sum(INTERVAL 1 DAY)"),
        ("SELECT kurtosis(id) AS m FROM orders", "HW203", "kurtosis(id)"),
        ("SELECT sum(qty ORDER BY id) AS m FROM orders", "HW203", "sum(qty ORDER BY id)"),
        ("SELECT explode(tags) || 'x' AS m FROM orders", "HW207", "explode(tags)"),
        (
            "SELECT count(*) OVER (ORDER BY day RANGE INTERVAL 1 MONTH PRECEDING) AS m FROM orders",
            "HW205",
            "count(*) OVER (ORDER BY day RANGE INTERVAL 1 MONTH PRECEDING)",
        ),
        ("SELECT median(DISTINCT id) AS m FROM orders", "HW203", "median(DISTINCT id)"),
        ("SELECT o.id FROM orders o JOIN customers c ON EXISTS (SELECT 1)", "HW204", "EXISTS (SELECT 1)"),
        ("SELECT count(DISTINCT id) OVER () AS m FROM orders", "HW205", "count(DISTINCT id) OVER ()"),
        ("SELECT rand() AS t FROM orders", "HW206", "rand()"),
        ("SELECT now() AS t FROM orders", "HW217", "now()"),
        ("SELECT id FROM orders LATERAL VIEW inline(tags) t AS k, v", "HW207", "inline(tags) t AS k, v"),
        ("SELECT * FROM range(10)", "HW207", "range(10)"),
        ("SELECT stack(2, 1, 2) AS (a, b)", "HW207", "stack(2, 1, 2)"),
        (
            "SELECT id FROM orders UNION ALL BY NAME SELECT 1 AS id",
            "HW208",
            "SELECT id FROM orders UNION ALL BY NAME SELECT 1 AS id",
        ),
        ("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM a", "HW213", "a AS (SELECT 1)"),
    ],
)
def test_not_supported(text: str, code: str, underlined: str) -> None:
    assert refused(text)[:2] == (code, underlined)
    with pytest.raises(NotSupported):
        view(text)


@pytest.mark.parametrize(
    ("text", "code", "underlined"),
    [
        ("SELECT id FROM orders LIMIT -1", "HW132", "LIMIT -1"),
        ("SELECT id FROM orders LIMIT id", "HW132", "id"),
        ("SELECT id FROM orders LIMIT 1.5", "HW132", "LIMIT 1.5"),
        ("SELECT id FROM orders ORDER BY 2", "HW131", "2"),
        ("SELECT id FROM orders ORDER BY tags", "HW125", "tags"),
        ("SELECT id FROM orders UNION ALL SELECT 1 ORDER BY qty", "HW101", "qty"),
        ("SELECT id FROM orders UNION ALL SELECT 1 ORDER BY id + 1", "HW201", "id + 1"),
        ("SELECT cust FROM orders GROUP BY cust ORDER BY qty", "HW124", "qty"),
    ],
)
def test_answers(text: str, code: str, underlined: str) -> None:
    assert refused(text, answer)[:2] == (code, underlined)


def test_a_query_that_is_nested_too_deeply() -> None:
    text = "SELECT id FROM orders WHERE " + " OR ".join(f"id = {n}" for n in range(5000))
    assert refused(text)[0] == "HW002"


@pytest.mark.parametrize(
    ("text", "underlined"),
    [
        ("SELECT id, current_date() AS today FROM orders", "current_date()"),
        ("SELECT id FROM orders WHERE day > current_date() OR id = 1", "current_date()"),
        ("SELECT id FROM orders WHERE day <> current_date()", "current_date()"),
        ("SELECT id FROM orders WHERE day > current_date() AND qty < 5 - Now", "Now"),
        ("SELECT count(*) AS n FROM orders GROUP BY day > current_date", "current_date"),
        ("SELECT sum(CASE WHEN day > current_date() THEN 1 END) AS n FROM orders", "current_date()"),
        ("SELECT now() AS t", "now()"),
        ("SELECT * FROM VALUES (now()) AS v(t)", "now()"),
        ("SELECT id FROM orders ORDER BY datediff(current_date(), day) LIMIT 1", "current_date()"),
    ],
)
def test_where_a_view_cannot_follow_the_clock(text: str, underlined: str) -> None:
    assert refused(text)[:2] == ("HW217", underlined)
    assert "now() - INTERVAL" in _hint(text)


def test_months_of_the_clock_have_a_hint_of_their_own() -> None:
    text = "SELECT id FROM orders WHERE id > 1 AND now() - INTERVAL 1 MONTH < CAST(day AS TIMESTAMP)"
    assert refused(text)[:2] == ("HW217", "now()")
    assert "whole days" in _hint(text)


def _hint(text: str) -> str:
    with pytest.raises(NotSupported) as caught:
        view(text)
    return caught.value.hint or ""


@pytest.mark.parametrize("call", ["now(1)", "current_date(1)"])
def test_the_clock_takes_no_arguments(call: str) -> None:
    assert refused(f"SELECT id FROM orders WHERE day > {call}")[:2] == ("HW122", call)
