"""Views: created midway, over each other, dropped; and which rows of a stream a new view sees."""

from __future__ import annotations

import datetime as dt
import random

import pytest

import headwater as hw
from tests.engine.support import Changes, SetClock, bag, check_views, opened, refused, rows, store_rows, stores

# -- created midway ---

VIEWS = {
    "plain": "SELECT a, b FROM t WHERE b > 2",
    "grouped": "SELECT a, count(*) AS n, sum(b) AS s, avg(b) AS m FROM t GROUP BY a",
    "total": "SELECT count(*) AS n, sum(b) AS s FROM t",
    "joined": "SELECT t.a, u.c FROM t JOIN u ON t.a = u.a",
    "itself": "SELECT x.a, y.b FROM t x JOIN t y ON x.b = y.a",
    "nested": "SELECT n, count(*) AS times FROM (SELECT a, count(*) AS n FROM t GROUP BY a) AS g GROUP BY n",
    "filtered": "SELECT a, sum(b) AS s FROM t GROUP BY a HAVING sum(b) > 3",
    "both": "SELECT a FROM t UNION ALL SELECT a FROM u UNION ALL SELECT b FROM t",
    "over": "SELECT g.a, g.n, u.c FROM grouped g JOIN u ON g.a = u.a",
    "slow": "SELECT a, count(*) AS n FROM t GROUP BY a",
}


def test_views_created_at_any_time_equal_their_query(db: hw.Database) -> None:
    rng = random.Random(2)
    db.execute("CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT PRIMARY KEY, c STRING)")
    waiting = list(VIEWS)
    for _ in range(11):
        with db.epoch() as e:
            e.insert(
                "t", [(rng.choice([None, 0, 1, 2]), rng.choice([None, 0, 1, 5])) for _ in range(rng.randint(0, 4))]
            )
            e.upsert("u", [(rng.randint(0, 2), rng.choice(["x", "y", None]))])
            there = list(bag(db, "t").elements())
            e.delete("t", rng.sample(there, min(len(there), rng.randint(0, 3))))
        if waiting:
            name = waiting.pop(0)
            how = " STRATEGY 'recompute'" if name == "slow" else ""
            db.execute(f"CREATE VIEW {name}{how} AS {VIEWS[name]}")
        check_views(db)
    assert not waiting


def test_a_view_over_empty_tables_starts_right(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    for name, query in {
        "n": "SELECT count(*) AS n, sum(a) AS s FROM t",
        "g": "SELECT a, count(*) AS n FROM t GROUP BY a",
        "h": "SELECT count(*) AS n FROM t HAVING count(*) > 0",
    }.items():
        db.execute(f"CREATE VIEW {name} AS {query}")
    assert rows(db, "n") == [(0, None)]
    assert rows(db, "g") == rows(db, "h") == []
    db.insert("t", [(None,)])
    assert rows(db, "n") == [(1, None)]
    assert rows(db, "g") == [(None, 1)]
    assert rows(db, "h") == [(1,)]
    db.execute("DELETE FROM t")
    assert rows(db, "n") == [(0, None)]
    assert rows(db, "g") == rows(db, "h") == []


def test_a_view_that_cannot_be_computed_is_not_created(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (0)")
    with refused(db, "HW501", "v cannot be computed"):
        db.execute("CREATE VIEW v AS SELECT 1 / a AS x FROM t")
    assert stores(db) == {"t"}
    db.execute("UPDATE t SET a = 2; CREATE VIEW v AS SELECT 1 / a AS x FROM t")
    assert rows(db, "v") == [(0.5,)]


def test_creating_twice(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
    for text in ("CREATE VIEW v AS SELECT 1 AS x", "CREATE TABLE V (x INT)", "CREATE STREAM t (x INT)"):
        with refused(db, "HW103"):
            db.execute(text)
    assert "exists already" in db.execute("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS x")[0].message
    assert "exists already" in db.execute("CREATE TABLE IF NOT EXISTS t (z INT)")[0].message
    assert [f.name for f in db.find("t").fields] == ["a"]


# -- dropped ---


@pytest.fixture
def tower(db: hw.Database) -> hw.Database:
    db.execute(
        """
        CREATE TABLE t (a INT);
        CREATE VIEW v AS SELECT a FROM t;
        CREATE VIEW w AS SELECT a, count(*) AS n FROM v GROUP BY a;
        CREATE VIEW x AS SELECT n FROM w;
        CREATE VIEW other AS SELECT a FROM t;
        INSERT INTO t VALUES (1), (1), (2)
        """
    )
    return db


def test_drop_is_refused_while_something_reads_it(tower: hw.Database) -> None:
    with refused(tower, "HW105", "t is read by v, w, x, other"):
        tower.execute("DROP TABLE t")
    with refused(tower, "HW105", "v is read by w, x"):
        tower.execute("DROP VIEW v")
    tower.execute("DROP VIEW x")
    tower.execute("DROP VIEW w; DROP VIEW v")
    tower.insert("t", [(5,)])
    assert len(rows(tower, "other")) == 4


def test_drop_cascade_takes_what_reads_it(tower: hw.Database) -> None:
    assert tower.execute("DROP VIEW v CASCADE")[0].message == "dropped v, w, x"
    assert stores(tower) == {"t", "other"}
    tower.insert("t", [(5,)])
    assert len(rows(tower, "other")) == 4
    assert tower.execute("DROP TABLE t CASCADE")[0].message == "dropped t, other"
    assert stores(tower) == set()


def test_drop_names_what_the_relation_is(tower: hw.Database) -> None:
    with refused(tower, "HW104", "x is a view"):
        tower.execute("DROP TABLE x")
    with refused(tower, "HW102"):
        tower.execute("DROP VIEW nobody")
    assert "does not exist" in tower.execute("DROP VIEW IF EXISTS nobody")[0].message


def test_a_dropped_name_can_be_taken_again(tower: hw.Database) -> None:
    tower.execute("DROP TABLE t CASCADE; CREATE STREAM t (b STRING) RETAIN ALL; CREATE VIEW v AS SELECT b FROM t")
    tower.insert("t", [("x",)])
    assert rows(tower, "v") == [("x",)]


def test_rows_for_a_table_that_was_replaced_meanwhile_are_refused(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")

    def insert() -> None:
        with db.epoch() as e:
            e.insert("t", [(1,)])
            db.execute("DROP TABLE t; CREATE TABLE t (b STRING)")

    with pytest.raises(hw.UserError):
        insert()
    assert rows(db, "t") == []


# -- what a new view sees of a stream ---


def test_retain_all_shows_a_new_view_everything(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (x INT) RETAIN ALL")
    db.insert("s", [(1,), (1,)])
    db.insert("s", [(2,)])
    db.execute("CREATE VIEW v AS SELECT x, count(*) AS n FROM s GROUP BY x")
    assert rows(db, "v") == [(1, 2), (2, 1)]
    assert rows(db, "s") == [(1,), (1,), (2,)]


def test_without_retain_a_view_begins_when_it_is_created(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (x INT)")
    db.insert("s", [(1,)])
    db.execute("CREATE VIEW early AS SELECT x FROM s")
    db.insert("s", [(2,)])
    db.execute("CREATE VIEW late AS SELECT x FROM s; CREATE VIEW n AS SELECT count(*) AS n FROM s")
    assert rows(db, "late") == []
    assert rows(db, "n") == [(0,)]
    db.insert("s", [(3,)])
    assert rows(db, "early") == [(2,), (3,)]
    assert rows(db, "late") == [(3,)]
    assert rows(db, "n") == [(1,)]
    with refused(db, "HW107"):
        db.query("SELECT * FROM s")


def test_retain_for_a_time(db: hw.Database) -> None:
    clock = SetClock()
    with opened(clock=clock) as warehouse:
        warehouse.execute("CREATE STREAM s (x INT) RETAIN 10 MINUTES; CREATE VIEW first AS SELECT x FROM s")
        for x in range(4):
            warehouse.insert("s", [(x,)])
            clock.advance(minutes=4)
        # It is 00:16 now; rows came at 00:00, 00:04, 00:08 and 00:12.
        warehouse.execute("CREATE VIEW later AS SELECT x FROM s")
        assert rows(warehouse, "later") == rows(warehouse, "s") == [(2,), (3,)]
        clock.advance(hours=1)
        warehouse.insert("s", [(9,)])
        assert rows(warehouse, "first") == [(0,), (1,), (2,), (3,), (9,)]
        assert rows(warehouse, "later") == [(2,), (3,), (9,)]
        warehouse.execute("CREATE VIEW last AS SELECT count(*) AS n FROM s")
        assert rows(warehouse, "last") == [(1,)]


def test_a_row_exactly_at_the_end_of_its_time_is_still_there() -> None:
    clock = SetClock()
    with opened(clock=clock) as db:
        db.execute("CREATE STREAM s (x INT) RETAIN 10 MINUTES")
        db.insert("s", [(1,)])
        clock.advance(minutes=10)
        assert rows(db, "s") == [(1,)]
        clock.advance(microseconds=1)
        assert rows(db, "s") == []


def test_epochs_carry_the_clock() -> None:
    clock = SetClock(dt.datetime(2020, 2, 29, 12))
    with opened(clock=clock) as db:
        db.execute("CREATE TABLE t (a INT)")
        assert db.insert("t", [(1,)]).clock == dt.datetime(2020, 2, 29, 12)
        table = db.execute("SHOW EPOCHS")[0].table
        assert table is not None
        assert table["clock"].to_pylist() == [dt.datetime(2020, 2, 29, 12)]


def test_the_store_of_a_stream_appears_and_vanishes_with_need(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x INT); CREATE TABLE t (k INT, y INT)")
    db.execute("CREATE VIEW sums AS SELECT k, sum(x) AS s FROM s GROUP BY k")
    db.insert("s", [(1, 1)])
    assert stores(db) == {"t", "sums"}
    db.execute("CREATE VIEW j AS SELECT s.x, t.y FROM s JOIN t ON s.k = t.k")
    assert stores(db) == {"t", "sums", "j", "s"}
    with db.epoch() as e:
        e.insert("s", [(1, 5)])
        e.insert("t", [(1, 7)])
    db.insert("t", [(1, 8)])
    assert rows(db, "j") == [(5, 7), (5, 8)]  # not (1, ...): the join began after that row
    db.execute("CREATE VIEW j2 AS SELECT s.x, t.y FROM s JOIN t ON s.k = t.k")
    assert rows(db, "j2") == []
    db.insert("s", [(1, 6)])
    assert rows(db, "j2") == [(6, 7), (6, 8)]
    db.execute("DROP VIEW j")
    assert "s" in stores(db)
    db.execute("DROP VIEW j2")
    assert stores(db) == {"t", "sums"}
    db.insert("s", [(1, 1)])
    assert rows(db, "sums") == [(1, 13)]


def test_a_retained_stream_keeps_its_store_without_views(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT) RETAIN ALL; CREATE TABLE t (k INT)")
    db.insert("s", [(1,)])
    db.execute("CREATE VIEW v AS SELECT s.k FROM s JOIN t ON s.k = t.k; DROP VIEW v")
    assert store_rows(db, "s") == 1


def test_a_stream_joined_with_itself(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (a INT, b INT); CREATE VIEW v AS SELECT x.a, y.b FROM s x JOIN s y ON x.b = y.a")
    changes = Changes(db)
    db.insert("s", [(1, 2), (2, 1)])
    db.insert("s", [(2, 2)])
    expected = {(1, 1): 1, (2, 2): 2, (1, 2): 1, (2, 1): 1}
    assert bag(db, "v") == expected
    assert changes.epochs[1][1]["v"] == {(1, 2): 1, (2, 1): 1, (2, 2): 1}


# -- REFRESH ---


def test_refresh_of_a_healthy_view_changes_nothing(tower: hw.Database) -> None:
    before = {name: bag(tower, name) for name in ("v", "w", "x")}
    changes = Changes(tower)
    tower.execute("REFRESH v; REFRESH VIEW w; REFRESH x")
    assert {name: bag(tower, name) for name in before} == before
    assert [change for _, change in changes.epochs] == [{}, {}, {}]


def test_refresh_needs_the_past_of_its_streams(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (x INT); CREATE VIEW v AS SELECT sum(x) AS s FROM s")
    db.insert("s", [(1,)])
    with refused(db, "HW505", "rows that it has seen of stream s are not kept"):
        db.execute("REFRESH v")
    with refused(db, "HW104"):
        db.execute("REFRESH s")


def test_refresh_is_refused_when_a_stream_was_kept_too_late(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x INT); CREATE TABLE t (k INT); CREATE VIEW v AS SELECT sum(x) AS s FROM s")
    db.insert("s", [(1, 2)])
    db.execute("CREATE VIEW keeps_from_now AS SELECT s.x FROM s JOIN t ON s.k = t.k")
    db.insert("s", [(1, 3)])
    assert rows(db, "v") == [(5,)]
    with refused(db, "HW505"):
        db.execute("REFRESH v")
