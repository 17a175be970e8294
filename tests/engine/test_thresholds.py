"""A comparison with one value that changes is asked anew only of the rows between the old value and the new one."""

from __future__ import annotations

import random

import pytest

import headwater as hw
from tests.engine.support import check_views, opened

COMPARED = ["x {} (SELECT SUM(y) FROM limits)", "(SELECT SUM(y) FROM limits) {} x"]


@pytest.mark.parametrize("strategy", ["first order", "tree", "viewlet"])
@pytest.mark.parametrize("function", ["<", "<=", ">", ">=", "=", "<>"])
def test_views_equal_their_queries(function: str, strategy: str) -> None:
    rng = random.Random(function + strategy)
    with opened() as db:
        db.execute("CREATE TABLE t (g INT, x INT); CREATE TABLE limits (y INT)")
        for i, condition in enumerate(COMPARED):
            query = f"SELECT g, COUNT(*) AS n, SUM(x) AS x FROM t WHERE {condition.format(function)} GROUP BY g"
            db.execute(f"CREATE VIEW v{i} STRATEGY '{strategy}' AS {query}")
        for epoch in range(25):
            if epoch % 8 == 7:  # no value at all, and then one again
                db.execute("DELETE FROM limits")
            with db.epoch() as e:
                if rng.random() < 0.7:
                    e.insert("limits", [(rng.choice([None, -2, -1, 0, 1, 2]),)])
                e.insert("t", [(rng.randrange(3), rng.choice([None, *range(-4, 5)])) for _ in range(rng.randrange(4))])
            if rng.random() < 0.3:
                db.execute(f"DELETE FROM t WHERE x = {rng.randrange(-4, 5)}")
            check_views(db)


def test_it_is_asked_so() -> None:
    with opened() as db:
        db.execute("""
            CREATE TABLE t (g INT, x INT); CREATE TABLE limits (y INT);
            CREATE VIEW v STRATEGY 'first order' AS
              SELECT g, COUNT(*) AS n FROM t WHERE x < (SELECT SUM(y) FROM limits) GROUP BY g;
            CREATE VIEW used STRATEGY 'first order' AS
              SELECT l.y, COUNT(*) AS n FROM t JOIN (SELECT SUM(y) AS y FROM limits) l ON t.x < l.y GROUP BY l.y;
            CREATE VIEW raising STRATEGY 'first order' AS
              SELECT g, COUNT(*) AS n FROM t WHERE g <> 0 AND 10 DIV g < (SELECT SUM(y) FROM limits) GROUP BY g
        """)
        assert _asked(db, "v") == 1
        assert _asked(db, "used") == 0  # the value itself is shown, so every row of it changes
        assert _asked(db, "raising") == 0  # it may only be asked of rows that another condition has let pass


def _asked(db: hw.Database, view: str) -> int:
    return str(db.explain(view)).count("THEN MIN(")
