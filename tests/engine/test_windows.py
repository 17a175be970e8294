"""Views that follow the clock: rows come and go as time passes, and every case of what may change at the same time."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine import windows
from headwater.engine.consolidate import Consolidator
from tests.engine.support import Changes, SetClock, bag, check_views, opened, refused, rows, store_rows, stores

WINDOW = "now() - INTERVAL 5 MINUTES < ts AND ts <= now()"


def minute(number: float) -> dt.datetime:
    return dt.datetime(2024, 1, 1) + dt.timedelta(minutes=number)


class Timed:
    """A warehouse whose clock stands where a test puts it."""

    def __init__(self, path: object = ":memory:") -> None:
        self.clock = SetClock(minute(0))
        self.db = opened(path, self.clock)

    def at(self, number: float) -> hw.Database:
        """Set the clock without an epoch."""
        self.clock.now = minute(number)
        return self.db

    def advance(self, number: float) -> None:
        """An epoch in which nothing but the clock changes."""
        self.at(number).submit([])
        check_views(self.db)


@pytest.fixture
def timed() -> Iterator[Timed]:
    made = Timed()
    yield made
    made.db.close()


@pytest.fixture
def window(timed: Timed) -> Timed:
    timed.db.execute(f"CREATE TABLE t (id INT, ts TIMESTAMP); CREATE VIEW w AS SELECT id, ts FROM t WHERE {WINDOW}")
    return timed


def ids(db: hw.Database, view: str = "w") -> list[object]:
    return [row[0] for row in rows(db, f"SELECT id FROM {view}")]


# -- rows come and go --------------------------------------------------------------------------------------------------


def test_the_window_of_the_paper(timed: Timed) -> None:
    """Example 4: vehicles that came to the parking lot in the last 5 time units; a stream that only grows."""
    timed.db.execute(
        """
        CREATE STREAM s1 (vid STRING, ts BIGINT);
        CREATE VIEW FiveUnitsWindow AS SELECT * FROM s1 R WHERE Now - 5 < R.TS AND R.TS <= Now
        """
    )
    changes = Changes(timed.db)
    zero = int((minute(0) - dt.datetime(1970, 1, 1)).total_seconds())
    for second, vehicle in ((0, "a"), (2, "b"), (4, None), (5, "c"), (7, None), (30, None)):
        timed.at(second / 60)
        if vehicle is not None:
            timed.db.insert("s1", [(vehicle, zero + second)])
        else:
            timed.db.submit([])
    seen = [log.get("FiveUnitsWindow", Counter()) for _, log in changes.epochs]
    a, b, c = ("a", zero), ("b", zero + 2), ("c", zero + 5)
    assert seen == [{a: 1}, {b: 1}, {}, {c: 1, a: -1}, {b: -1}, {c: -1}]


def test_rows_leave_as_the_clock_advances(window: Timed) -> None:
    changes = Changes(window.db)
    window.at(10).insert("t", [(1, minute(6)), (2, minute(9)), (3, None)])
    assert ids(window.db) == [1, 2]
    window.advance(11)
    assert changes.last == {"w": {(1, minute(6)): -1}}
    window.advance(12)
    assert changes.last == {}
    window.advance(14)
    assert changes.last == {"w": {(2, minute(9)): -1}}
    assert ids(window.db) == []


def test_rows_enter_when_their_time_comes(window: Timed) -> None:
    window.db.insert("t", [(1, minute(2)), (2, minute(3)), (2, minute(3))])
    assert ids(window.db) == []
    window.advance(2)
    assert ids(window.db) == [1]
    window.advance(3)
    assert ids(window.db) == [1, 2, 2]
    window.advance(7.5)
    assert ids(window.db) == [2, 2]


def test_a_clock_that_jumps_over_a_row_shows_nothing_of_it(window: Timed) -> None:
    changes = Changes(window.db)
    window.db.insert("t", [(1, minute(2)), (2, minute(58))])
    window.advance(60)
    assert changes.last == {"w": {(2, minute(58)): 1}}
    window.advance(200)
    assert ids(window.db) == []


def test_rows_that_arrive_too_late_change_nothing(window: Timed) -> None:
    changes = Changes(window.db)
    window.at(10).insert("t", [(1, minute(1)), (2, minute(5))])
    assert changes.last == {}
    window.advance(11)
    assert changes.last == {}


def test_an_expired_row_may_be_deleted_or_come_again(window: Timed) -> None:
    changes = Changes(window.db)
    window.at(10).insert("t", [(1, minute(9))])
    window.advance(20)
    with window.db.epoch() as e:
        e.delete("t", [(1, minute(9))])
    assert changes.last == {}
    window.db.insert("t", [(1, minute(9))])
    assert changes.last == {}
    check_views(window.db)


def test_a_row_that_is_deleted_before_its_time_never_comes(window: Timed) -> None:
    window.db.insert("t", [(1, minute(2)), (1, minute(2)), (2, minute(2))])
    window.db.execute("DELETE FROM t WHERE id = 2")
    with window.db.epoch() as e:
        e.delete("t", [(1, minute(2))])
    window.advance(3)
    assert ids(window.db) == [1]


@pytest.mark.parametrize(("before", "now"), [(0, 3), (3, 9), (0, 9), (3, 4)])
def test_a_row_that_is_deleted_when_its_time_comes_or_ends(window: Timed, before: float, now: float) -> None:
    window.at(before).insert("t", [(1, minute(2)), (2, minute(2))])
    changes = Changes(window.db)
    with window.at(now).epoch() as e:
        e.delete("t", [(1, minute(2))])
    check_views(window.db)
    alive = {minute: 2 <= minute < 7 for minute in (before, now)}
    expected = Counter({(1, minute(2)): -alive[before], (2, minute(2)): alive[now] - alive[before]})
    assert changes.last.get("w", Counter()) == Counter({row: n for row, n in expected.items() if n})


def test_a_row_that_comes_in_the_epoch_in_which_others_leave(window: Timed) -> None:
    window.at(10).insert("t", [(1, minute(6))])
    window.at(12).insert("t", [(1, minute(6)), (2, minute(11)), (3, minute(13))])
    assert ids(window.db) == [2]
    window.advance(13)
    assert ids(window.db) == [2, 3]


def test_an_upsert_whose_old_row_has_left(timed: Timed) -> None:
    timed.db.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP); CREATE VIEW w AS SELECT id, ts FROM t WHERE {WINDOW}"
    )
    timed.at(1).insert("t", [(1, minute(1)), (2, minute(8))])
    timed.advance(7)
    changes = Changes(timed.db)
    with timed.at(9).epoch() as e:
        e.upsert("t", [(1, minute(9)), (2, minute(2))])
    assert changes.last == {"w": {(1, minute(9)): 1}}
    check_views(timed.db)


def test_an_update_by_the_clock(window: Timed) -> None:
    window.at(10).insert("t", [(1, minute(1)), (2, minute(9))])
    window.at(11).execute("UPDATE t SET ts = now() WHERE ts < now() - INTERVAL 5 MINUTES")
    assert rows(window.db, "w") == [(1, minute(11)), (2, minute(9))]
    window.at(12).execute("INSERT INTO t SELECT 3, current_timestamp(); INSERT INTO t VALUES (4, now())")
    window.at(13).execute("DELETE FROM t WHERE ts >= now() - INTERVAL 1 MINUTE AND id > 3")
    assert rows(window.db, "t") == [(1, minute(11)), (2, minute(9)), (3, minute(12))]
    check_views(window.db)


def test_a_statement_means_the_clock_of_its_epoch(timed: Timed) -> None:
    """Also if time passes while it is carried out."""
    readings = iter(minute(number) for number in range(100))
    timed.db.engine.clock = lambda: next(readings)
    timed.db.execute("CREATE TABLE t (ts TIMESTAMP); INSERT INTO t VALUES (now()); INSERT INTO t SELECT now()")
    found = timed.db.warehouse.connection.execute("SELECT clock FROM hw.epochs ORDER BY number").fetchall()
    assert rows(timed.db, "t") == found


def test_a_clock_that_runs_backwards_stands_still(window: Timed) -> None:
    window.at(10).insert("t", [(1, minute(6))])
    window.advance(12)
    window.at(7).insert("t", [(2, minute(6)), (3, minute(11))])
    assert ids(window.db) == [3]
    assert rows(window.db, "SELECT now() AS n") == [(minute(12),)]


# -- views of all kinds ------------------------------------------------------------------------------------------------

VIEWS = {
    "sums": f"SELECT k, count(*) AS n, sum(x) AS x FROM s WHERE {WINDOW} GROUP BY k",
    "largest": f"SELECT k, max(x) AS x, min(ts) AS since FROM s WHERE {WINDOW} GROUP BY k",
    "single": f"SELECT count(*) AS n FROM s WHERE {WINDOW}",
    "first_rows": f"SELECT k, x, ts FROM s WHERE {WINDOW} ORDER BY x LIMIT 2",
    "ranked": f"SELECT x, row_number() OVER (PARTITION BY k ORDER BY x) AS n FROM s WHERE {WINDOW}",
    "pairs": f"""SELECT a.x, b.x AS y FROM (SELECT * FROM s WHERE {WINDOW}) a
                 JOIN (SELECT * FROM s WHERE {WINDOW}) b ON a.k = b.k AND a.ts - INTERVAL 1 MINUTE < b.ts
                 AND b.ts < a.ts + INTERVAL 1 MINUTE""",
    "beside": f"SELECT x, name FROM s LEFT JOIN names ON names.k = s.k WHERE {WINDOW}",
    "without": f"SELECT name FROM names WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.k = names.k AND {WINDOW})",
    "either": f"SELECT k FROM s WHERE {WINDOW} UNION SELECT k FROM names",
    "active": "SELECT k, max(ts) AS last FROM s GROUP BY k HAVING max(ts) > now() - INTERVAL 5 MINUTES",
    "today": "SELECT k, x FROM s WHERE CAST(ts AS DATE) = current_date()",
    "joined": f"SELECT x, name FROM s JOIN names ON names.k = s.k AND {WINDOW}",
    "common": f"WITH w AS (SELECT * FROM s WHERE {WINDOW}) SELECT w.k, v.x FROM w, w v WHERE w.x < v.x",
}


@pytest.mark.parametrize("strategy", ["", *(f" STRATEGY '{one}'" for one in ("viewlet", "re-evaluate", "recompute"))])
@pytest.mark.parametrize("name", VIEWS)
def test_windows_below_everything_else(timed: Timed, name: str, strategy: str) -> None:
    db = timed.db
    db.execute(
        f"""
        CREATE STREAM s (k INT, x INT, ts TIMESTAMP) RETAIN ALL;
        CREATE TABLE names (k INT, name STRING);
        INSERT INTO names VALUES (1, 'one'), (2, 'two'), (3, NULL);
        CREATE VIEW v{strategy} AS {VIEWS[name]}
        """
    )
    for number in range(12):
        timed.at(number).insert(
            "s", [(number % 3, number, minute(number)), (1, -number, minute(number + 2.5)), (2, 0, minute(number - 6))]
        )
        check_views(db)
        if number == 6:
            db.execute("DELETE FROM names WHERE k = 1; INSERT INTO names VALUES (0, 'none')")
            check_views(db)
    assert rows(db, "v")
    timed.advance(12.5)
    timed.advance(40)
    timed.advance(60 * 30)


def test_views_over_windows_and_windows_over_views(window: Timed) -> None:
    window.db.execute(
        """
        CREATE VIEW n AS SELECT count(*) AS n FROM w;
        CREATE VIEW recent AS SELECT id FROM w WHERE ts > now() - INTERVAL 1 MINUTE;
        CREATE VIEW last_minute AS SELECT max(ts) AS ts FROM t;
        CREATE VIEW quiet AS SELECT ts FROM last_minute WHERE ts < now() - INTERVAL 3 MINUTES
        """
    )
    window.at(10).insert("t", [(1, minute(6)), (2, minute(9.5))])
    check_views(window.db)
    for number in (11, 12, 13, 13.5, 15):
        window.advance(number)
    assert rows(window.db, "quiet") == [(minute(9.5),)]
    assert rows(window.db, "n") == [(0,)]


def test_a_condition_that_the_clock_alone_decides(timed: Timed) -> None:
    timed.db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t WHERE now() >= '2024-01-01 00:05:00'")
    timed.db.insert("t", [(1,)])
    assert rows(timed.db, "v") == []
    timed.advance(5)
    assert rows(timed.db, "v") == [(1,)]
    timed.db.insert("t", [(2,)])
    assert rows(timed.db, "v") == [(1,), (2,)]


def test_constants_have_their_time_too(timed: Timed) -> None:
    timed.db.execute(
        "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT * FROM VALUES (1, TIMESTAMP '2024-01-01 00:03:00') AS c(a, ts)"
        " WHERE ts <= now() AND ts > now() - INTERVAL 2 MINUTES"
    )
    assert [len(rows(timed.db, "v")), timed.advance(3), len(rows(timed.db, "v"))] == [0, None, 1]
    timed.advance(5)
    assert rows(timed.db, "v") == []


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_a_stream_below_a_window_is_not_stored(timed: Timed) -> None:
    timed.db.execute(f"CREATE STREAM s (id INT, ts TIMESTAMP); CREATE VIEW w AS SELECT id, ts FROM s WHERE {WINDOW}")
    timed.at(1).insert("s", [(1, minute(1)), (2, minute(4))])
    assert stores(timed.db) == {"w", "w$1"}
    assert [store_rows(timed.db, one) for one in ("w", "w$1")] == [1, 1]
    timed.at(5).submit([])
    assert ids(timed.db) == [1, 2]


def test_equal_windows_of_several_views_are_one(timed: Timed) -> None:
    timed.db.execute(
        f"""
        CREATE STREAM s (k INT, x INT, other STRING, ts TIMESTAMP);
        CREATE VIEW a AS SELECT k, sum(x) AS x FROM s WHERE {WINDOW} GROUP BY k;
        CREATE VIEW b AS SELECT k, max(x) AS x FROM s r WHERE {WINDOW.replace("ts", "r.ts")} GROUP BY k
        """
    )
    assert stores(timed.db) == {"a", "a$1", "a$2", "b"}
    timed.at(1).insert("s", [(1, 5, "", minute(1)), (1, 7, "", minute(2))])
    timed.at(2).submit([])
    assert rows(timed.db, "a") == [(1, 12)]
    assert rows(timed.db, "b") == [(1, 7)]
    timed.db.execute("DROP VIEW a")
    timed.at(6.5).submit([])
    assert rows(timed.db, "b") == [(1, 7)]
    timed.at(8).submit([])
    assert rows(timed.db, "b") == []
    timed.db.execute("DROP VIEW b")
    assert stores(timed.db) == set()


def test_rows_that_have_left_are_removed_from_the_store(timed: Timed) -> None:
    timed.db.execute(f"CREATE STREAM s (id INT, ts TIMESTAMP); CREATE VIEW w AS SELECT id, ts FROM s WHERE {WINDOW}")
    timed.db.consolidator.close()
    timed.db.consolidator = Consolidator(timed.db.engine, look_rows=100)
    for number in range(60):
        timed.at(number).insert(
            "s", [(number * 100 + i, minute(number) - dt.timedelta(seconds=i % 60)) for i in range(100)]
        )
        assert timed.db.consolidator.wait(30)
    assert store_rows(timed.db, "w") < 3 * len(ids(timed.db))
    connection = timed.db.warehouse.connection
    timed.db.engine.urgent.add("w")
    assert timed.db.consolidator.wait(30)
    kept = [ts for (ts,) in connection.execute('SELECT ts FROM data."w" WHERE "#e" < 60').fetchall()]
    assert kept == sorted(kept)  # in the order in which they leave


def test_a_window_survives_the_process(tmp_path: Path) -> None:
    timed = Timed(tmp_path / "w")
    timed.db.execute(f"CREATE STREAM s (id INT, ts TIMESTAMP); CREATE VIEW w AS SELECT id, ts FROM s WHERE {WINDOW}")
    timed.at(1).insert("s", [(1, minute(1)), (2, minute(4))])
    timed.db.close()
    timed = Timed(tmp_path / "w")
    assert ids(timed.db) == [1]
    timed.at(5).submit([])
    assert ids(timed.db) == [1, 2]
    timed.db.close()
    timed = Timed(tmp_path / "w")
    timed.at(8).submit([])
    assert ids(timed.db) == [2]
    timed.db.close()


# -- making, refreshing, planning anew ---------------------------------------------------------------------------------


def test_a_new_view_shows_the_window_of_the_last_epoch(window: Timed) -> None:
    window.at(10).insert("t", [(1, minute(6)), (2, minute(9)), (3, minute(12))])
    window.at(13).execute(f"CREATE VIEW late AS SELECT id FROM t WHERE {WINDOW}")
    assert ids(window.db, "late") == ids(window.db) == [1, 2]
    window.advance(13)
    assert ids(window.db, "late") == ids(window.db) == [2, 3]


def test_refresh_moves_the_clock_and_nothing_else(window: Timed) -> None:
    changes = Changes(window.db)
    window.at(10).insert("t", [(1, minute(6)), (2, minute(9)), (3, minute(12))])
    window.at(13).execute("REFRESH w")
    assert changes.last == {"w": {(1, minute(6)): -1, (3, minute(12)): 1}}
    check_views(window.db)


@pytest.mark.parametrize("strategy", ["recompute", "re-evaluate", "tree"])
def test_another_plan_shows_the_same(window: Timed, strategy: str) -> None:
    window.db.execute(
        "CREATE VIEW n AS SELECT id, count(*) AS n FROM t WHERE ts > now() - INTERVAL 5 MINUTES GROUP BY id"
    )
    window.at(10).insert("t", [(1, minute(6)), (2, minute(9)), (3, minute(12))])
    window.at(12).execute(f"ALTER VIEW n REPLAN STRATEGY '{strategy}'; ALTER VIEW w REPLAN STRATEGY '{strategy}'")
    check_views(window.db)
    for number in (12, 14, 20):
        window.advance(number)


def test_a_suspended_window_starts_again_where_the_clock_is(timed: Timed) -> None:
    timed.db.execute(
        f"CREATE TABLE t (id INT, x INT, ts TIMESTAMP); CREATE VIEW w AS SELECT 6 / x AS y FROM t WHERE {WINDOW};"
        f"CREATE VIEW other AS SELECT count(*) AS n FROM t WHERE {WINDOW}"
    )
    timed.at(1).insert("t", [(1, 2, minute(1)), (2, 3, minute(4))])
    epoch = timed.at(2).insert("t", [(3, 0, minute(2))])
    assert list(epoch.suspended) == ["w"]
    timed.at(5).submit([])
    assert rows(timed.db, "w") == [(3.0,)]
    assert rows(timed.db, "other") == [(3,)]
    with refused(timed.db, "HW501"):
        timed.db.execute("REFRESH w")
    timed.at(8).execute("REFRESH w")  # what could not be computed has left
    assert rows(timed.db, "w") == [(2.0,)]
    timed.advance(8.5)
    timed.advance(9)
    assert rows(timed.db, "w") == []


def test_a_row_that_cannot_be_computed_when_its_time_comes_suspends_the_view(timed: Timed) -> None:
    timed.db.execute(
        "CREATE TABLE t (x INT, ts TIMESTAMP); CREATE VIEW v AS SELECT 6 / x AS y FROM t WHERE ts <= now()"
    )
    timed.db.insert("t", [(0, minute(3)), (2, minute(2))])
    assert timed.at(2).submit([]).suspended == {}
    assert list(timed.at(3).submit([]).suspended) == ["v"]
    assert rows(timed.db, "v") == [(3.0,)]


def test_a_strict_view_may_have_a_window(timed: Timed) -> None:
    timed.db.execute(
        f"CREATE TABLE t (id INT, ts TIMESTAMP); CREATE VIEW w STRICT AS SELECT id, ts FROM t WHERE {WINDOW}"
    )
    timed.at(1).insert("t", [(1, minute(1))])
    timed.advance(6)
    assert ids(timed.db) == []


# -- the clock in queries, and when an epoch is due --------------------------------------------------------------------


def test_a_query_takes_the_clock_anywhere(timed: Timed) -> None:
    db = timed.at(7.5)
    assert rows(
        db, "SELECT now() AS a, current_timestamp AS b, current_date() AS c, Now AS d, unix_timestamp() AS e"
    ) == [(minute(7.5), minute(7.5), dt.date(2024, 1, 1), 1704067650, 1704067650)]
    db.execute("CREATE TABLE t (now INT, ts TIMESTAMP); INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:05:00')")
    assert rows(db, "SELECT Now AS n, now() - ts AS age FROM t WHERE ts > now() OR month(now()) = 1") == [
        (1, 150_000_000)
    ]


def test_when_an_epoch_is_due(window: Timed) -> None:
    engine = window.db.engine
    assert engine.schedule.follows_clock
    assert not windows.is_due(engine, minute(5))
    window.at(10).insert("t", [(1, minute(6)), (2, minute(12))])
    assert [windows.is_due(engine, minute(number)) for number in (9, 10, 10.9, 11, 13)] == [False] * 3 + [True] * 2
    window.advance(11)
    assert [windows.is_due(engine, minute(number)) for number in (11.5, 12)] == [False, True]
    window.advance(30)
    assert not windows.is_due(engine, minute(50))
    window.db.execute("DROP VIEW w")
    assert not engine.schedule.follows_clock
    assert not windows.is_due(engine, minute(60))


def test_explain_says_that_rows_leave(window: Timed) -> None:
    text = str(window.db.explain("w"))
    assert "-- w$1: rows to come" in text
    assert "as the clock advances\n" in text
    assert "and leave for w as the clock advances to their time" in text
    assert "w: rows come and go with the changes of t," in text
    assert "#clock((" not in text
    for form in ("tree", "mermaid", "json"):
        assert "clock" in str(window.db.explain("w", form))


def test_bags_of_equal_rows(window: Timed) -> None:
    window.at(1).insert("t", [(1, minute(1))] * 3)
    with window.at(2).epoch() as e:
        e.delete("t", [(1, minute(1))])
    assert bag(window.db, "w") == {(1, minute(1)): 2}
    window.advance(6)
    assert bag(window.db, "w") == {}


def test_what_waits_for_one_window_may_be_another(timed: Timed) -> None:
    timed.db.execute(
        """
        CREATE TABLE t (a INT, ts TIMESTAMP);
        CREATE VIEW both AS SELECT x.a, y.a AS b FROM t x JOIN t y ON x.ts >= now() AND y.ts < now();
        CREATE VIEW past AS SELECT count(*) AS n FROM t WHERE ts < now();
        CREATE VIEW to_come AS SELECT a, ts FROM t WHERE ts >= now()
        """
    )
    timed.at(1).insert("t", [(1, minute(0)), (2, minute(1)), (3, minute(5))])
    for number in (1, 1.5, 4, 5, 6):
        timed.advance(number)
    timed.db.execute("DROP VIEW both; DELETE FROM t WHERE a = 1")
    timed.at(7).insert("t", [(4, minute(8)), (5, minute(2))])
    for number in (8, 9):
        timed.advance(number)
