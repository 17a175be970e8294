"""A view that cannot take a row stops at its last good epoch; everything else goes on."""

from __future__ import annotations

import pytest

import headwater as hw
from tests.engine.support import Changes, bag, check_views, refused, rows


@pytest.fixture
def ratios(db: hw.Database) -> hw.Database:
    db.execute(
        """
        CREATE TABLE t (k INT, a INT, b INT);
        CREATE VIEW ratio AS SELECT k, a / b AS r FROM t;
        CREATE VIEW plain AS SELECT k, a FROM t;
        CREATE VIEW over_ratio AS SELECT r, count(*) AS n FROM ratio GROUP BY r;
        CREATE VIEW mixed AS SELECT p.k, r.r FROM plain p JOIN ratio r ON p.k = r.k;
        INSERT INTO t VALUES (1, 6, 3)
        """
    )
    return db


def facts(db: hw.Database, view: str) -> dict[str, object]:
    relations = db.status()["relations"]
    assert isinstance(relations, list)
    return next(one for one in relations if one["name"] == view)


def test_only_the_view_that_fails_stops(ratios: hw.Database) -> None:
    changes = Changes(ratios)
    epoch = ratios.insert("t", [(2, 1, 0), (3, 8, 2)])
    assert list(epoch.suspended) == ["ratio"]
    assert "division by zero" in epoch.suspended["ratio"]
    assert "HW501" in epoch.suspended["ratio"]
    assert rows(ratios, "plain") == [(1, 6), (2, 1), (3, 8)]
    assert rows(ratios, "ratio") == [(1, 2.0)]
    assert list(changes.last) == ["plain"]
    assert facts(ratios, "ratio")["state"] == "suspended"
    assert facts(ratios, "ratio")["epoch"] == epoch.number - 1
    assert facts(ratios, "plain")["state"] == "current"


def test_views_over_it_stay_consistent_with_what_it_shows(ratios: hw.Database) -> None:
    ratios.insert("t", [(2, 1, 0)])
    ratios.insert("t", [(1, 7, 7)])
    assert rows(ratios, "over_ratio") == [(2.0, 1)]
    assert rows(ratios, "mixed") == [(1, 2.0), (1, 2.0)]  # plain has k = 1 twice by now, ratio once
    check_views(ratios)


def test_a_suspended_view_stays_so_until_it_is_refreshed(ratios: hw.Database) -> None:
    ratios.insert("t", [(2, 1, 0)])
    ratios.execute("DELETE FROM t WHERE k = 2")
    ratios.insert("t", [(4, 4, 1)])
    assert rows(ratios, "ratio") == [(1, 2.0)]
    changes = Changes(ratios)
    result = ratios.execute("REFRESH ratio")[0]
    assert result.epoch == ratios.engine.epoch
    assert rows(ratios, "ratio") == [(1, 2.0), (4, 4.0)]
    assert changes.last == {
        "ratio": {(4, 4.0): 1},
        "over_ratio": {(4.0, 1): 1},
        "mixed": {(4, 4.0): 1},
    }
    assert facts(ratios, "ratio")["state"] == "current"
    ratios.insert("t", [(5, 5, 1)])
    check_views(ratios)


def test_refresh_fails_while_the_row_is_there(ratios: hw.Database) -> None:
    ratios.insert("t", [(2, 1, 0)])
    with refused(ratios, "HW501", "view ratio: division by zero"):
        ratios.execute("REFRESH ratio")


def test_several_views_fail_in_one_epoch(db: hw.Database) -> None:
    db.execute(
        """
        CREATE TABLE t (a INT);
        CREATE VIEW divides AS SELECT 1 / a AS x FROM t;
        CREATE VIEW overflows AS SELECT a * 2000000000 AS x FROM t;
        CREATE VIEW fine AS SELECT a FROM t
        """
    )
    assert set(db.insert("t", [(0,), (5,)]).suspended) == {"divides", "overflows"}
    assert rows(db, "fine") == [(0,), (5,)]
    assert db.insert("t", [(0,)]).suspended == {}


def test_the_sum_of_a_group_overflows(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (g INT, x BIGINT); CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
    largest = 2**63 - 1
    db.insert("t", [(1, largest), (2, 1)])
    assert list(db.insert("t", [(1, 1)]).suspended) == ["v"]
    assert rows(db, "v") == [(1, largest), (2, 1)]
    db.execute("DELETE FROM t WHERE g = 1 AND x = 1")
    db.execute("REFRESH v")
    assert rows(db, "v") == [(1, largest), (2, 1)]
    check_views(db)


def test_a_sum_may_pass_the_limit_within_an_epoch(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x BIGINT); CREATE VIEW v AS SELECT sum(x) AS s FROM t")
    largest = 2**63 - 1
    db.insert("t", [(largest,), (largest,), (-largest,)])
    assert rows(db, "v") == [(largest,)]
    check_views(db)


def test_refresh_after_the_largest_decimals_are_gone(db: hw.Database) -> None:
    largest = "9" * 38
    db.execute("CREATE TABLE t (x DECIMAL(38,0)); CREATE VIEW v AS SELECT sum(x) AS s FROM t")
    db.execute(f"INSERT INTO t VALUES ({largest})")
    assert list(db.insert("t", [(int(largest),)]).suspended) == ["v"]
    with db.epoch() as e:
        e.delete("t", [(int(largest),)])
    db.execute("REFRESH v")
    assert [str(s) for (s,) in rows(db, "v")] == [largest]


def test_a_group_that_having_hides_may_have_no_value(db: hw.Database) -> None:
    db.execute(
        """
        CREATE TABLE t (g INT, x INT);
        CREATE VIEW v AS SELECT g, 10 / sum(x) AS r FROM t GROUP BY g HAVING sum(x) <> 0;
        CREATE VIEW w AS SELECT g, 10 / s AS r FROM (SELECT g, sum(x) AS s FROM t GROUP BY g) AS q WHERE s <> 0;
        CREATE VIEW u AS SELECT g, 10 / x AS r FROM t WHERE x <> 0 AND 10 / x > 1
        """
    )
    assert db.insert("t", [(1, 5), (2, 0), (3, 1)]).suspended == {}
    assert db.insert("t", [(1, -5), (3, 1)]).suspended == {}
    assert rows(db, "v") == rows(db, "w") == [(3, 5.0)]
    check_views(db)


def test_recompute_views_are_suspended_too(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); CREATE VIEW v STRATEGY 'recompute' AS SELECT 1 / a AS x FROM t")
    assert list(db.insert("t", [(0,)]).suspended) == ["v"]
    db.execute("UPDATE t SET a = 4; REFRESH v")
    assert rows(db, "v") == [(0.25,)]


def test_a_view_created_over_a_suspended_one_reads_what_it_shows(ratios: hw.Database) -> None:
    ratios.insert("t", [(2, 1, 0)])
    ratios.execute("CREATE VIEW later AS SELECT k FROM ratio")
    assert rows(ratios, "later") == [(1,)]
    ratios.execute("DELETE FROM t WHERE b = 0; INSERT INTO t VALUES (9, 9, 9); REFRESH ratio")
    assert rows(ratios, "later") == [(1,), (9,)]


def test_a_suspended_view_can_be_dropped_and_described(ratios: hw.Database) -> None:
    ratios.insert("t", [(2, 1, 0)])
    assert "suspended after epoch 1: division by zero" in ratios.execute("DESCRIBE ratio")[0].message
    states = ratios.execute("SHOW VIEWS")[0].table
    assert states is not None
    assert dict(zip(states["name"].to_pylist(), states["state"].to_pylist(), strict=True))["ratio"] == "suspended"
    ratios.execute("DROP VIEW ratio CASCADE")
    assert ratios.insert("t", [(3, 1, 0)]).suspended == {}


def test_a_suspended_view_over_a_stream_that_keeps_nothing_cannot_come_back(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (a INT); CREATE VIEW v AS SELECT 1 / a AS x FROM s")
    db.insert("s", [(2,)])
    db.insert("s", [(0,)])
    with refused(db, "HW505"):
        db.execute("REFRESH v")
    assert bag(db, "v") == {(0.5,): 1}


def test_an_error_in_the_change_itself_refuses_the_epoch(ratios: hw.Database) -> None:
    with refused(ratios, "HW501"):
        ratios.execute("UPDATE t SET a = a / 0")
    with refused(ratios, "HW502"):
        ratios.execute("INSERT INTO t SELECT k, a * 2000000000, b FROM t")


# -- rows that are gone cannot fail ---


@pytest.fixture
def gone(db: hw.Database) -> hw.Database:
    """A table whose store still holds a row with 0 and its retraction."""
    db.execute("CREATE TABLE t (k INT, a INT); CREATE TABLE u (k INT, b INT)")
    db.execute("INSERT INTO u VALUES (1, 0), (1, 2); DELETE FROM u WHERE b = 0")
    return db


def test_a_query_does_not_ask_rows_that_are_gone(gone: hw.Database) -> None:
    assert rows(gone, "SELECT 1 / b AS x FROM u") == [(0.5,)]
    assert rows(gone, "SELECT sum(1 / b) AS x FROM u") == [(0.5,)]
    assert rows(gone, "SELECT b FROM u WHERE 1 / b > 0") == [(2,)]


def test_a_new_view_does_not_ask_rows_that_are_gone(gone: hw.Database) -> None:
    gone.execute("CREATE VIEW v AS SELECT 1 / b AS x FROM u; CREATE VIEW w AS SELECT sum(1 / b) AS x FROM u")
    assert rows(gone, "v") == rows(gone, "w") == [(0.5,)]


def test_maintenance_does_not_ask_rows_that_are_gone(gone: hw.Database) -> None:
    gone.execute("CREATE VIEW v AS SELECT t.a / u.b AS r FROM t JOIN u ON t.k = u.k")
    assert gone.insert("t", [(1, 5)]).suspended == {}
    assert rows(gone, "v") == [(2.5,)]


def test_a_row_that_comes_and_goes_within_an_epoch_is_not_asked(gone: hw.Database) -> None:
    gone.execute("CREATE VIEW v AS SELECT 1 / b AS x FROM u WHERE k = 2")
    with gone.epoch() as e:
        e.insert("u", [(2, 0)])
        e.delete("u", [(2, 0)])
    assert e.committed is not None
    assert e.committed.suspended == {}


@pytest.mark.parametrize("order", ["t first", "u first"])
def test_pairs_that_never_met_are_not_asked(db: hw.Database, order: str) -> None:
    """An epoch takes the relations one by one; what it passes on the way is neither the old nor the new state."""
    tables = ["CREATE TABLE t (k INT, a INT)", "CREATE TABLE u (k INT PRIMARY KEY, b INT)"]
    db.execute(";".join(tables if order == "t first" else tables[::-1]))
    db.execute("CREATE VIEW v AS SELECT t.a / u.b AS r FROM t JOIN u ON t.k = u.k; INSERT INTO u VALUES (1, 0)")
    with db.epoch() as e:
        e.insert("t", [(1, 5)])
        e.upsert("u", [(1, 2)])
    assert rows(db, "v") == [(2.5,)]
    with db.epoch() as e:
        e.delete("t", [(1, 5)])
        e.upsert("u", [(1, 0)])
    assert rows(db, "v") == []
    check_views(db)
