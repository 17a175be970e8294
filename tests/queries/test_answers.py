"""Queries that were once answered wrongly, with Spark's answers; asked at once, and as views that follow changes."""

from __future__ import annotations

import time
from collections import Counter

import pytest

import headwater as hw
from headwater.errors import HeadwaterError

TABLES = """
    CREATE TABLE t (id INT, k INT, n INT NOT NULL, arr ARRAY<INT>);
    CREATE TABLE u (k INT, b INT);
    CREATE TABLE m (id INT, mp MAP<STRING, INT>)
"""
ROWS = (
    "INSERT INTO t VALUES (1, 1, 3, array(10, 20)), (2, 1, 4, array(30)), (3, 2, 0, NULL)",
    "INSERT INTO u VALUES (1, 5), (1, 6), (7, 8)",
    "INSERT INTO m VALUES (1, map('a', 1)), (9, NULL)",
)
CHANGES = (
    "DELETE FROM u WHERE b = 6",
    "INSERT INTO u VALUES (2, 0), (NULL, 4)",
    "UPDATE t SET k = 7 WHERE id = 2",
    "UPDATE t SET k = NULL WHERE id = 3",
    "DELETE FROM u WHERE k = 1",
    "DELETE FROM t WHERE id = 1",
    "DELETE FROM u WHERE k IS NULL OR k > 0",
)
COUNTED = "SELECT count(*) FROM u WHERE u.k = t.k"
ANSWERS: dict[str, list[tuple[object, ...]]] = {
    # aggregates without GROUP BY have a row over no rows, unless HAVING hides it
    "SELECT id FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) > 5)": [],
    "SELECT id FROM t WHERE NOT EXISTS (SELECT max(b) FROM u HAVING count(*) > 5)": [(1,), (2,), (3,)],
    "SELECT id FROM t WHERE EXISTS (SELECT max(b) FROM u WHERE u.k = t.k)": [(1,), (2,), (3,)],
    f"SELECT id FROM t WHERE 0 IN ({COUNTED})": [(3,)],
    f"SELECT id FROM t WHERE 0 NOT IN ({COUNTED})": [(1,), (2,)],
    "SELECT id FROM t WHERE n >= ALL (SELECT count(*) + 1 FROM u WHERE u.k = t.k)": [(1,), (2,)],
    "SELECT id FROM t WHERE n < ANY (SELECT count(*) + 1 FROM u WHERE u.k = t.k)": [(3,)],
    f"SELECT id, ({COUNTED} LIMIT 1) AS c FROM t": [(1, 2), (2, 2), (3, 0)],
    f"SELECT id, ({COUNTED} UNION {COUNTED}) AS c FROM t": [(1, 2), (2, 2), (3, 0)],
    "SELECT t.id, l.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k LIMIT 1) l": [
        (1, 2),
        (2, 2),
        (3, 0),
    ],
    "SELECT t.id, l.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k UNION ALL SELECT 7) l": [
        *((1, 2), (1, 7), (2, 2), (2, 7), (3, 0), (3, 7))
    ],
    "SELECT t.id, l.c FROM t, LATERAL (SELECT count(*) AS c FROM u WHERE u.k = t.k HAVING count(*) > 1) l": [
        *((1, 2), (2, 2))
    ],
    "SELECT id FROM t WHERE n NOT IN (SELECT max(b) FROM u HAVING count(*) > 4)": [(1,), (2,), (3,)],
    "SELECT id FROM t WHERE n NOT IN (SELECT max(b) FROM u WHERE u.k = t.k HAVING count(*) > 4)": [(1,), (2,), (3,)],
    "SELECT id, (SELECT max(b) FROM u WHERE u.k = t.k HAVING count(*) > 1) AS c FROM t": [(1, 6), (2, 6), (3, None)],
    "SELECT id, (SELECT count(*) + (SELECT count(*) FROM u) FROM u WHERE u.k = t.k) AS c FROM t": [
        *((1, 5), (2, 5), (3, 3))
    ],
    "SELECT id, (SELECT count(*) + row_number() OVER (ORDER BY 1) FROM u WHERE u.k = t.k) AS c FROM t": [
        *((1, 3), (2, 3), (3, 1))
    ],
    "SELECT k + 1 AS g FROM t GROUP BY k + 1 HAVING k + 1 > ALL (SELECT b - 6 FROM u)": [(3,)],
    "SELECT t.id, l.x FROM t, LATERAL (SELECT max(b) AS x FROM u WHERE u.k = nullif(t.k, 1) LIMIT 1) l": [
        *((1, None), (2, None), (3, None))
    ],
    # frames that may be empty, and keys that may fail or are constant
    "SELECT id, sum(n) OVER (ORDER BY id RANGE BETWEEN 5 FOLLOWING AND 6 FOLLOWING) AS z FROM t": [
        *((1, None), (2, None), (3, None))
    ],
    "SELECT id, rank() OVER (ORDER BY n / k) AS r FROM t": [(1, 2), (2, 3), (3, 1)],
    "SELECT id FROM t QUALIFY row_number() OVER (ORDER BY n / k, id) = 1": [(3,)],
    "SELECT id, count(*) OVER (ORDER BY 1 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM t": [
        *((1, 3), (2, 3), (3, 3))
    ],
    # rows are made before windows look at them
    "SELECT id, explode(arr) AS e, row_number() OVER (ORDER BY id) AS r FROM t": [(1, 10, 1), (1, 20, 2), (2, 30, 3)],
    "SELECT id, explode(arr) AS e, sum(id) OVER () AS r FROM t": [(1, 10, 4), (1, 20, 4), (2, 30, 4)],
    "SELECT id, explode(arr) AS e FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1": [(1, 10)],
    # groups by what holds a query
    "SELECT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS g, count(*) AS c FROM t GROUP BY g": [(False, 1), (True, 2)],
    "SELECT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS g, count(*) AS c FROM t GROUP BY 1": [(False, 1), (True, 2)],
    "SELECT (SELECT max(b) FROM u) AS g, count(*) AS c FROM t GROUP BY ALL": [(8, 3)],
    "SELECT k, k IN (SELECT b FROM u) AS g, count(*) AS c FROM t GROUP BY 1, 2": [(1, False, 2), (2, False, 1)],
    "SELECT (SELECT max(b) FROM u WHERE u.k = t.k) AS g, count(*) AS c FROM t "
    "GROUP BY (SELECT max(b) FROM u WHERE u.k = t.k)": [(6, 2), (None, 1)],
    # columns without equality that a condition does not read
    "SELECT m.id, u.b FROM m LEFT JOIN u ON m.id < u.k": [(1, 8), (9, None)],
    "SELECT m.id FROM m LEFT ANTI JOIN u ON m.id < u.k": [(9,)],
    "SELECT a.id FROM m a LEFT JOIN m b ON a.id = b.id + 1": [(1,), (9,)],
    "SELECT any(n > 3) AS a, last(k IGNORE NULLS) WITHIN GROUP (ORDER BY id) AS l FROM t": [(True, 2)],
}


def bag(db: hw.Database, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in db.query(query).to_pylist())


@pytest.mark.parametrize("query", ANSWERS)
def test_answer(query: str) -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute(TABLES)
        db.execute(f"CREATE VIEW v AS {query}")
        for statement in ROWS:
            db.execute(statement)
        assert bag(db, query) == Counter(ANSWERS[query])
        assert bag(db, "SELECT * FROM v") == Counter(ANSWERS[query])
        for statement in CHANGES:
            db.execute(statement)
            assert bag(db, "SELECT * FROM v") == bag(db, query), statement


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT first_value(n) FILTER (WHERE n > 3) OVER (ORDER BY id) FROM t", "HW205"),
        ("SELECT row_number() FILTER (WHERE n > 3) OVER (ORDER BY id) FROM t", "HW205"),
        ("SELECT first(n ORDER BY id) OVER () FROM t", "HW205"),
        ("SELECT count(*) OVER (ORDER BY 1 RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t", "HW205"),
        ("SELECT count(*) WITHIN GROUP (ORDER BY n) FROM t", "HW203"),
        ("SELECT min_by(n, id) IGNORE NULLS FROM t", "HW203"),
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM t", "HW203"),
        ("SELECT count(*) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t", "HW132"),
        ("SELECT count(*) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING) FROM t", "HW132"),
        ("SELECT sum(n) OVER (ORDER BY id, k RANGE INTERVAL 1 DAY PRECEDING) FROM t", "HW132"),
        ("SELECT grouping(n) FROM t", "HW124"),
        ("SELECT m.id FROM m LEFT JOIN u ON m.mp['a'] < u.k", "HW216"),
        ("SELECT m.id, (SELECT max(b) FROM u WHERE u.k > m.mp['a']) AS x FROM m", "HW216"),
        ("SELECT m.id, l.x FROM m, LATERAL (SELECT b + m.mp['a'] AS x FROM u) l", "HW216"),
        ("SELECT grouping(id), n FROM t GROUP BY ROLLUP (n)", "HW124"),
        ("SELECT explode(arr) AS e, count(*) FROM t GROUP BY e", "HW123"),
    ],
)
def test_nothing_that_is_written_is_ignored(query: str, code: str) -> None:
    with hw.connect() as db:
        db.execute(TABLES)
        with pytest.raises(HeadwaterError, match=code):
            db.query(query)


def test_what_is_shared_is_computed_once() -> None:
    """Each NOT IN reads what is before it several times."""
    with hw.connect() as db:
        for i in range(9):
            db.execute(f"CREATE TABLE t{i} (id INT, k INT)")
        parts = [f"t0.k NOT IN (SELECT t{i}.k FROM t{i} WHERE t{i}.id = t0.id)" for i in range(1, 9)]
        query = f"SELECT t0.id FROM t0 WHERE {' AND '.join(parts)}"
        began = time.process_time()
        db.query(query)
        for strategy in ("first order", "tree", "recompute"):
            name = strategy.replace(" ", "_")
            db.execute(f"CREATE VIEW {name} STRATEGY '{strategy}' AS {query}")
        assert time.process_time() - began < 15
