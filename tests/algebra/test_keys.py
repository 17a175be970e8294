"""What tells the rows of a view apart, and that it does."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.algebra.keys import row_key

RELATIONS = """
CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT);
CREATE TABLE u (id INT PRIMARY KEY, w STRING);
CREATE TABLE pair (a INT, b INT, y INT, PRIMARY KEY (a, b));
CREATE TABLE bag (g STRING, x INT);
CREATE STREAM s (k INT, x INT);
CREATE TABLE seen (k INT, x INT, at TIMESTAMP);
CREATE VIEW sums AS SELECT g, SUM(x) AS total FROM t GROUP BY g;
CREATE VIEW one AS SELECT COUNT(*) AS n FROM bag;
CREATE VIEW loose AS SELECT x FROM bag
"""

CASES = [
    # relations with a key, filtered, renamed, computed upon
    ("SELECT * FROM t", ("k",)),
    ("SELECT x, k AS id FROM t WHERE x > 1", ("id",)),
    ("SELECT b, a, y + 1 AS z FROM pair", ("b", "a")),
    ("SELECT a, y FROM pair", None),
    ("SELECT k + 1 AS k FROM t", None),
    ("SELECT * FROM bag", None),
    ("SELECT * FROM s", None),
    # groups
    ("SELECT g, SUM(x) AS total FROM bag GROUP BY g", ("g",)),
    ("SELECT SUM(x) AS total, g, x % 2 AS odd FROM bag GROUP BY g, x % 2", ("g", "odd")),
    ("SELECT SUM(x) AS total FROM bag GROUP BY g", None),
    ("SELECT g, COUNT(*) AS n FROM bag GROUP BY g HAVING COUNT(*) > 1", ("g",)),
    ("SELECT g, COUNT(*) AS n FROM bag GROUP BY ROLLUP (g)", None),
    ("SELECT COUNT(*) AS n FROM bag", ()),
    ("SELECT MAX(x) AS most FROM bag HAVING MAX(x) > 1", ()),
    ("SELECT DISTINCT x, g FROM bag", ("x", "g")),
    # windows of time: the start says which one it is
    ("SELECT window, k, SUM(x) AS total FROM seen GROUP BY window(at, '1 hour', '10 minutes'), k", ("window", "k")),
    ("SELECT window.start AS at, SUM(x) AS total FROM seen GROUP BY window(at, '1 hour')", ("at",)),
    ("SELECT window.end AS at, SUM(x) AS total FROM seen GROUP BY window(at, '1 hour')", None),
    ("SELECT k, session_window AS s, SUM(x) AS total FROM seen GROUP BY k, session_window(at, '1 hour')", ("k", "s")),
    ("SELECT named_struct('a', g, 'b', 1) AS s, SUM(x) AS total FROM bag GROUP BY g", ("s",)),
    ("SELECT named_struct('a', g) AS s, SUM(x) AS total FROM bag GROUP BY g, x", None),
    # joins
    ("SELECT t.k, u.id, u.w FROM t CROSS JOIN u", ("k", "id")),
    ("SELECT t.k, t.g, u.w FROM t JOIN u ON t.x = u.id", ("k",)),
    ("SELECT t.k, u.id FROM t JOIN u ON t.k = u.id", ("k",)),
    ("SELECT t.k, p.a, p.b FROM t JOIN pair p ON t.x = p.a", ("k", "a", "b")),
    ("SELECT t.k, p.y FROM t JOIN pair p ON t.x = p.a AND t.k = p.b", ("k",)),
    ("SELECT t.k, bag.x FROM t JOIN bag ON t.g = bag.g", None),
    ("SELECT t.k, u.w FROM t LEFT JOIN u ON t.x = u.id", ("k",)),
    ("SELECT t.k, p.y FROM t LEFT JOIN pair p ON t.x = p.a", None),
    ("SELECT t.k, bag.x FROM t LEFT JOIN bag ON t.g = bag.g", None),
    ("SELECT t.k, u.w FROM t FULL JOIN u ON t.x = u.id", None),
    ("SELECT k, x FROM t WHERE x IN (SELECT id FROM u)", ("k",)),
    ("SELECT t.k, n FROM t CROSS JOIN one", ("k",)),
    # set operations
    ("SELECT g FROM t UNION SELECT w FROM u", ("g",)),
    ("SELECT g FROM t EXCEPT SELECT w FROM u", ("g",)),
    ("SELECT k FROM t UNION ALL SELECT id FROM u", None),
    # numbered rows
    ("SELECT k, x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) AS r FROM t", ("k",)),
    ("SELECT g, x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) AS r FROM bag", ("g", "r")),
    ("SELECT g, x FROM (SELECT g, x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) AS r FROM bag) WHERE r = 1", ("g",)),
    ("SELECT g, x FROM (SELECT g, x, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x) AS r FROM bag) WHERE r < 3", None),
    ("SELECT g, x FROM bag ORDER BY x LIMIT 1", ()),
    ("SELECT g, x, RANK() OVER (PARTITION BY g ORDER BY x) AS r FROM bag", None),
    # views over views
    ("SELECT total, g AS shop FROM sums WHERE total > 1", ("shop",)),
    ("SELECT n + 1 AS m FROM one", ()),
    ("SELECT x FROM loose", None),
    ("SELECT t.k, sums.total FROM t JOIN sums ON t.g = sums.g", ("k",)),
]


@pytest.mark.parametrize(("query", "key"), CASES)
def test_the_key_of_a_query(query: str, key: tuple[str, ...] | None) -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute(RELATIONS)
        db.execute(f"CREATE VIEW v AS {query}")
        assert row_key(db.algebra("v"), db.engine.catalog.keys) == key
        assert db.find("v").identity == key


def test_a_left_join_over_another_condition_is_none() -> None:
    """The rows without a partner must be those that the pairs leave out; else a key may come twice."""
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute(RELATIONS)
        db.execute("CREATE VIEW v AS SELECT t.k, u.w FROM t LEFT JOIN u ON t.x = u.id")
        tree = str(db.algebra("v"))
        assert row_key(db.algebra("v"), db.engine.catalog.keys) == ("k",)
        from headwater.algebra.read import read_node

        schemas = {one.name: one.fields for one in db.engine.catalog}
        assert row_key(read_node(tree, schemas), db.engine.catalog.keys) == ("k",)
        other = tree.replace("join[t.x = u.id]", "join[t.k = u.id]")
        assert other != tree
        assert row_key(read_node(other, schemas), db.engine.catalog.keys) is None
