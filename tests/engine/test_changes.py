"""Views as streams of changes: what is kept, what subscribers are told, and what becomes of those who do not listen."""

from __future__ import annotations

import datetime as dt
import gc
import threading
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine import consolidate
from headwater.engine.consolidate import trim_changes
from headwater.engine.failures import Disturbed
from headwater.serve.changes import Changes
from headwater.serve.subscribe import Subscription
from headwater.store.catalog import Relation
from tests.engine.support import bag, opened
from tests.equivalence.followers import Follower, changes_of

TABLES = """
CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT);
CREATE VIEW sums RETAIN CHANGES ALL AS SELECT g, SUM(x) AS total FROM t GROUP BY g;
CREATE VIEW loose AS SELECT g, x FROM t
"""
DAY = 86_400_000_000


@pytest.fixture
def shop(db: hw.Database) -> hw.Database:
    db.execute(TABLES)
    return db


def told(changes: Changes) -> list[tuple[object, ...]]:
    """What there is, as short as can be: epoch, op, the row, and what it was."""
    out: list[tuple[object, ...]] = []
    for one in changes.so_far().to_pylist():
        epoch, op, *row = list(one.values())[:-1]
        out.append((epoch, op, tuple(row), *([tuple(one["_old"].values())] if one["_old"] else [])))
    return out


def raised(code: str, changes: Changes) -> hw.UserError:
    with pytest.raises(hw.UserError) as caught:
        changes.poll()
    assert caught.value.code == code
    return caught.value


def kept_rows(db: hw.Database, view: str) -> list[tuple[object, ...]]:
    reader = db.warehouse.reader()
    try:
        return reader.execute(f'SELECT * FROM data."{view}#changes" ORDER BY ALL').fetchall()
    finally:
        reader.close()


def stores(db: hw.Database) -> set[str]:
    reader = db.warehouse.reader()
    try:
        found = reader.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data'").fetchall()
    finally:
        reader.close()
    return {name for (name,) in found}


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_changes_are_kept_beside_the_view_with_their_epoch(shop: hw.Database) -> None:
    shop.insert("t", [(1, "a", 1), (2, "a", 2), (3, None, 5)])
    shop.execute("UPDATE t SET x = 7 WHERE k = 1; UPDATE t SET x = x; DELETE FROM t WHERE k = 3")
    assert kept_rows(shop, "sums") == [
        ("a", 3, -1, 2),
        ("a", 3, 1, 1),
        ("a", 9, 1, 2),
        (None, 5, -1, 4),
        (None, 5, 1, 1),
    ]


def test_the_first_fill_is_a_change_of_the_epoch_before(shop: hw.Database) -> None:
    shop.insert("t", [(1, "a", 1), (2, "b", 2)])
    shop.execute("CREATE STREAMED VIEW late AS SELECT g FROM t")
    assert kept_rows(shop, "late") == [("a", 1, 1), ("b", 1, 1)]
    assert told(shop.subscribe("late", from_epoch=0)) == [(1, "+", ("a",)), (1, "+", ("b",))]
    assert told(shop.subscribe("late", from_epoch=2)) == []


@pytest.mark.parametrize(
    ("made", "changes"),
    [
        ("CREATE VIEW v AS", None),
        ("CREATE COMPLETE VIEW v AS", None),
        ("CREATE STREAMED VIEW v AS", DAY),
        ("CREATE STREAMED VIEW v RETAIN CHANGES 2 HOURS AS", DAY // 12),
        ("CREATE VIEW v RETAIN CHANGES 1 DAY AS", DAY),
        ("CREATE STREAMED VIEW v RETAIN CHANGES ALL AS", "ALL"),
    ],
)
def test_which_views_keep_changes(shop: hw.Database, made: str, changes: object) -> None:
    shop.execute(f"{made} SELECT k, x FROM t")
    assert shop.find("v").changes == changes
    assert ("v#changes" in stores(shop)) == (changes is not None)
    subscription = shop.subscribe("v")
    shop.insert("t", [(1, "a", 1)])
    assert told(subscription) == [(1, "+", (1, 1))]
    assert bag(shop, "v") == Counter([(1, 1)])


@pytest.mark.parametrize("explain", ["", "EXPLAIN "])
def test_a_complete_view_keeps_none(shop: hw.Database, explain: str) -> None:
    with pytest.raises(hw.UserError) as caught:
        shop.execute(f"{explain}CREATE COMPLETE VIEW v RETAIN CHANGES ALL AS SELECT x FROM t")
    assert caught.value.code == "HW150"
    assert caught.value.source is not None
    assert caught.value.span is not None
    assert caught.value.source.text[caught.value.span.start :].startswith("RETAIN CHANGES ALL")


def test_dropping_a_view_drops_its_changes(shop: hw.Database) -> None:
    shop.execute("CREATE VIEW top RETAIN CHANGES ALL AS SELECT MAX(total) AS most FROM sums; DROP VIEW sums CASCADE")
    assert stores(shop) == {"t", "loose"}


def test_kept_changes_outlive_the_process(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TABLES)
        db.insert("t", [(1, "a", 1)])
        subscription = db.subscribe("sums", timeout=0)
        seen = list(subscription)
        db.insert("t", [(2, "a", 2)])
    with opened(tmp_path / "w") as db:
        assert db.find("sums").identity == ("g",)
        db.execute("DELETE FROM t")
        seen += list(db.subscribe("sums", from_epoch=subscription.epoch + 1, timeout=0))
        assert [(one["_epoch"], one["_op"], one["total"]) for one in seen] == [(1, "+", 1), (2, "u", 3), (3, "-", 3)]


def test_another_plan_is_no_change(shop: hw.Database) -> None:
    shop.insert("t", [(1, "a", 1)])
    followed = {view: shop.subscribe(view) for view in ("sums", "loose")}
    for one in followed.values():
        one.so_far()
    for strategy in ("recompute", "tree", "first order"):
        shop.execute(f"ALTER VIEW sums REPLAN STRATEGY '{strategy}'; ALTER VIEW loose REPLAN STRATEGY '{strategy}'")
        assert all(told(one) == [] for one in followed.values())
    shop.insert("t", [(2, "a", 2)])
    assert told(followed["sums"]) == [(2, "u", ("a", 3), ("a", 1))]
    assert told(followed["loose"]) == [(2, "+", ("a", 2))]
    assert len(kept_rows(shop, "sums")) == 3


# -- tags -------------------------------------------------------------------------------------------------------------


def test_one_change_a_key(shop: hw.Database) -> None:
    subscription = shop.subscribe("sums")
    with shop.epoch() as e:
        e.insert("t", [(1, "a", 1), (2, None, 2), (3, "b", 3)])
        e.delete("t", [(3, "b", 3)])
    with shop.epoch() as e:  # a chain of updates is one, and one that leads back is none
        e.upsert("t", [(1, "a", 5)])
        e.upsert("t", [(1, "a", 6)])
        e.upsert("t", [(2, None, 9)])
        e.upsert("t", [(2, None, 2)])
        e.insert("t", [(4, "c", None)])
    shop.execute("UPDATE t SET g = 'd' WHERE k = 2")
    assert told(subscription) == [
        (1, "+", ("a", 1)),
        (1, "+", (None, 2)),
        (2, "u", ("a", 6), ("a", 1)),
        (2, "+", ("c", None)),
        (3, "-", (None, 2)),
        (3, "+", ("d", 2)),
    ]


def test_copies_without_a_key(shop: hw.Database) -> None:
    subscription = shop.subscribe("loose")
    shop.insert("t", [(1, "a", 1), (2, "a", 1), (3, "a", 2)])
    shop.execute("UPDATE t SET x = 2 WHERE k < 3")
    assert told(subscription) == [
        (1, "+", ("a", 1)),
        (1, "+", ("a", 1)),
        (1, "+", ("a", 2)),
        (2, "-", ("a", 1)),
        (2, "-", ("a", 1)),
        (2, "+", ("a", 2)),
        (2, "+", ("a", 2)),
    ]


def test_a_single_row_changes(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x INT); CREATE STREAMED VIEW n AS SELECT COUNT(*) AS n FROM t")
    subscription = db.subscribe("n")
    db.insert("t", [(1,), (2,)])
    db.execute("DELETE FROM t")
    assert told(subscription) == [(0, "+", (0,)), (1, "u", (2,), (0,)), (2, "u", (0,), (2,))]


def test_what_only_moves_between_hidden_groups_has_not_changed(db: hw.Database) -> None:
    """The row leaves one partition and comes to another; neither is shown."""
    for made in ("CREATE VIEW v AS", "CREATE STREAMED VIEW w AS"):
        db.execute("CREATE TABLE IF NOT EXISTS t (g INT, x INT)")
        db.execute(f"{made} SELECT x, COUNT(*) OVER (PARTITION BY g) AS n FROM t")
    db.insert("t", [(1, 5)])
    followed = [db.subscribe("v"), db.subscribe("w"), db.subscribe("w", from_epoch=0)]
    db.execute("UPDATE t SET g = 2")
    for one in (*followed, db.subscribe("v"), db.subscribe("w")):
        assert [(op, row) for _, op, row in told(one)] == [("+", (5, 1))]


def test_goes_before_changes_before_comes_and_then_by_columns(shop: hw.Database) -> None:
    shop.insert("t", [(k, g, k) for k, g in enumerate("fbdhac")])
    subscription = shop.subscribe("sums", from_epoch=2)
    with shop.epoch() as e:
        e.delete_keys("t", [0, 3])
        e.upsert("t", [(2, "d", 20), (4, "a", 40), (10, "z", 1), (11, None, 1), (12, "e", 1)])
    assert [(op, row[0]) for _, op, row, *_ in told(subscription)] == [
        ("-", "f"),
        ("-", "h"),
        ("u", "a"),
        ("u", "d"),
        ("+", "e"),
        ("+", "z"),
        ("+", None),
    ]


def test_every_type_comes_out_as_a_query_gives_it(db: hw.Database) -> None:
    columns = (
        "k INT PRIMARY KEY, b BOOLEAN, l BIGINT, d DECIMAL(20,3), f FLOAT, s STRING, y BINARY, a DATE, "
        "c TIMESTAMP, i INTERVAL DAY TO SECOND, m INTERVAL YEAR TO MONTH, r ARRAY<INT>, p MAP<STRING, INT>, "
        "q STRUCT<u: INT, v: INTERVAL DAY TO SECOND>"
    )
    db.execute(f"CREATE TABLE t ({columns}); CREATE VIEW v AS SELECT *, CAST(NULL AS INT) AS nothing FROM t")
    db.execute("CREATE STREAMED VIEW w AS SELECT * FROM v")
    hour = dt.timedelta(hours=1)
    first = (1, True, 2, Decimal("1.5"), 0.5, "é", b"\0", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2), hour, 3)
    first += ([1, None], {"a": 1}, {"u": 1, "v": hour})
    second = (1, *(None for _ in first[1:]))
    follow = [db.subscribe("v"), db.subscribe("w")]
    db.insert("t", [first])
    here = db.query("SELECT * FROM v")
    with db.epoch() as e:
        e.upsert("t", [second])
    for one in follow:
        table = one.so_far()
        names = here.column_names
        assert table.select(names).slice(0, 1).to_pylist() == here.to_pylist()
        assert table.select(names).schema == here.schema
        assert table["_old"].type == pa.struct(list(here.schema))
        assert table["_op"].to_pylist() == ["+", "u"]
        assert table["_old"].to_pylist() == [None, here.to_pylist()[0]]
        assert table.select(names).slice(1).to_pylist() == db.query("SELECT * FROM v").to_pylist()


# -- subscriptions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["sums", "loose"])
def test_a_subscription_begins_with_what_there_is(shop: hw.Database, view: str) -> None:
    shop.insert("t", [(1, "a", 1)])
    shop.insert("t", [(2, "b", 2)])
    subscription = shop.subscribe(view)
    assert subscription.epoch == 1
    shop.insert("t", [(3, "c", 3)])
    assert [(epoch, op) for epoch, op, *_ in told(subscription)] == [(2, "+"), (2, "+"), (3, "+")]
    assert subscription.epoch == 3


@pytest.mark.parametrize("view", ["sums", "loose"])
def test_an_epoch_without_changes_passes(shop: hw.Database, view: str) -> None:
    subscription = shop.subscribe(view)
    assert (subscription.poll(), subscription.epoch) == (None, 0)
    with shop.epoch():
        pass
    assert (subscription.poll(), subscription.epoch) == (None, 1)
    later = shop.subscribe(view, from_epoch=4)
    for k in (1, 2, 3):
        shop.insert("t", [(k, "a", k)])
    assert (later.epoch, [epoch for epoch, *_ in told(later)]) == (3, [4])


def test_epochs_in_the_past(shop: hw.Database) -> None:
    for k in (1, 2, 3):
        shop.insert("t", [(k, "a", k)])
    assert [epoch for epoch, *_ in told(shop.subscribe("sums", from_epoch=2))] == [2, 3]
    assert told(shop.subscribe("sums", from_epoch=4)) == told(shop.subscribe("loose", from_epoch=4)) == []
    with pytest.raises(hw.UserError) as caught:
        shop.subscribe("loose", from_epoch=3)
    assert caught.value.code == "HW522"
    assert "RETAIN CHANGES" in (caught.value.hint or "")


def test_a_reader_that_is_disturbed_loses_nothing(shop: hw.Database) -> None:
    shop.execute("CREATE TABLE fresh (a INT); CREATE STREAMED VIEW told AS SELECT a FROM fresh")
    subscription = shop.subscribe("told")
    for a in range(4):
        shop.insert("fresh", [(a,)])
    real, often = Subscription._tagged, iter([True, False])

    def tagged(self: Subscription, *args: Any) -> Iterator[pa.Table]:
        if next(often, False):
            raise Disturbed("HW902", "the file was opened again")
        return real(self, *args)

    with mock.patch.object(Subscription, "_tagged", tagged):
        assert [one["a"] for one in subscription.so_far().to_pylist()] == [0, 1, 2, 3]


def test_a_reader_in_memory_that_fails_knows_that_it_has_missed_something(shop: hw.Database) -> None:
    shop.execute("CREATE TABLE fresh (a INT); CREATE VIEW told AS SELECT a FROM fresh")
    subscription = shop.subscribe("told", timeout=0)
    list(subscription)
    shop.insert("fresh", [(1,)])
    with mock.patch.object(Subscription, "_tagged", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        subscription.so_far()
    shop.insert("fresh", [(2,)])
    with pytest.raises(hw.UserError, match="HW521"):
        subscription.so_far()


@pytest.mark.parametrize("epoch", [-1, True, "1", 1.0])
def test_what_is_no_epoch(shop: hw.Database, epoch: Any) -> None:
    with pytest.raises(hw.UserError) as caught:
        shop.subscribe("sums", from_epoch=epoch)
    assert caught.value.code == "HW525"


@pytest.mark.parametrize(("name", "code"), [("t", "HW104"), ("nobody", "HW102")])
def test_only_views(shop: hw.Database, name: str, code: str) -> None:
    with pytest.raises(hw.UserError) as caught:
        shop.subscribe(name)
    assert caught.value.code == code


def test_columns_that_every_change_has(shop: hw.Database) -> None:
    shop.execute("CREATE VIEW v AS SELECT k, x AS _OP FROM t")
    with pytest.raises(hw.UserError) as caught:
        shop.subscribe("v")
    assert caught.value.code == "HW524"


def test_an_epoch_is_delivered_when_its_last_change_is(shop: hw.Database) -> None:
    shop.insert("t", [(k, str(k), k) for k in range(3)])
    shop.insert("t", [(9, "z", 9)])
    subscription = shop.subscribe("sums", from_epoch=1, timeout=0)
    assert [(one["g"], subscription.epoch) for one in (next(subscription), next(subscription))] == [("0", 0), ("1", 0)]
    rest = subscription.poll()
    assert rest is not None
    assert (rest["g"].to_pylist(), subscription.epoch) == (["2"], 1)
    assert [(one["g"], subscription.epoch) for one in subscription] == [("z", 2)]
    assert [table.num_rows for table in shop.subscribe("sums", from_epoch=0, timeout=0).tables()] == [3, 1]


def test_many_rows_come_one_by_one(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x INT); CREATE STREAMED VIEW v AS SELECT x FROM t")
    db.insert("t", pa.table({"x": list(range(25_001))}))
    subscription = db.subscribe("v", timeout=0)
    assert [one["x"] for one in subscription] == list(range(25_001))
    assert subscription.epoch == 1


def test_many_epochs_are_read_in_batches(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x INT); CREATE STREAMED VIEW v AS SELECT x FROM t")
    for n in range(1, 8):
        db.insert("t", [(n,)] * n)
    with mock.patch("headwater.serve.subscribe.BATCH_ROWS", 6):
        tables = list(db.subscribe("v", from_epoch=0, timeout=0).tables())
    assert [(set(one["_epoch"].to_pylist()), one.num_rows) for one in tables] == [({n}, n) for n in range(1, 8)]


def test_the_statement_says_what_there_is(shop: hw.Database) -> None:
    shop.insert("t", [(1, "a", 1)])
    shop.insert("t", [(2, "a", 2)])
    [result] = shop.execute("SUBSCRIBE sums FROM EPOCH 1")
    assert (result.statement, result.message) == ("SUBSCRIBE", "2 changes")
    assert result.table is not None
    assert result.table.column_names == ["_epoch", "_op", "g", "total", "_old"]
    assert result.table["_op"].to_pylist() == ["+", "u"]
    [result] = shop.execute("SUBSCRIBE TO loose")
    assert result.message == "2 changes"
    [result] = shop.execute("SUBSCRIBE sums FROM EPOCH 3")
    assert result.table is not None
    assert (result.message, result.table.num_rows) == ("0 changes", 0)
    assert shop.engine.hub.wanted == frozenset()


# -- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["sums", "loose"])
def test_a_view_that_is_dropped(shop: hw.Database, view: str) -> None:
    subscription = shop.subscribe(view)
    shop.execute(f"DROP VIEW {view}")
    assert "dropped" in raised("HW523", subscription).message
    shop.execute(f"CREATE VIEW {view} AS SELECT k FROM t")
    raised("HW523", subscription)


def test_a_waiting_subscriber_is_told_that_the_view_is_dropped(shop: hw.Database) -> None:
    subscription = shop.subscribe("sums")
    found: list[str] = []

    def wait() -> None:
        try:
            next(subscription)
        except hw.UserError as error:
            found.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    shop.execute("DROP VIEW sums")
    thread.join(10)
    assert found == ["HW523"]


@pytest.mark.parametrize("view", ["sums", "loose"])
@pytest.mark.parametrize("end", ["close", "database"])
def test_who_waits_is_woken_at_the_end(view: str, end: str) -> None:
    db = opened()
    db.execute(TABLES)
    subscription = db.subscribe(view)
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.extend([*subscription, "end"]))
    thread.start()
    db.insert("t", [(1, "a", 1)])
    time.sleep(0.05)
    (subscription if end == "close" else db).close()
    thread.join(10)
    assert len(seen) == 2
    assert seen[1] == "end"
    assert subscription.poll(None) is None
    assert list(subscription) == []
    db.close()


def test_iteration_ends_when_nothing_comes_in_time(shop: hw.Database) -> None:
    began = time.monotonic()
    assert list(shop.subscribe("loose", timeout=0.1)) == []
    assert 0.1 <= time.monotonic() - began < 5


@pytest.mark.parametrize("view", ["level", "level_kept"])
def test_a_suspended_view_has_no_changes(db: hw.Database, view: str) -> None:
    query = "SELECT g, CAST(SUM(x) AS TINYINT) AS x FROM t GROUP BY g"
    db.execute(f"""CREATE TABLE t (g INT, x INT); CREATE VIEW level AS {query};
                   CREATE STREAMED VIEW level_kept AS {query}""")
    subscription = db.subscribe(view)
    db.insert("t", [(1, 1), (2, 2)])
    db.insert("t", [(1, 1000)])
    db.insert("t", [(2, 1)])
    assert told(subscription) == [(1, "+", (1, 1)), (1, "+", (2, 2))]
    assert subscription.epoch == 3
    db.execute("DELETE FROM t WHERE x = 1000")
    db.execute("REFRESH level; REFRESH level_kept")
    assert [(op, row) for _, op, row, *_ in told(subscription)] == [("u", (2, 3))]


# -- in memory --------------------------------------------------------------------------------------------------------


def test_a_subscriber_that_falls_behind_is_told_so(shop: hw.Database) -> None:
    slow, quick = shop.subscribe("loose", buffer_rows=5), shop.subscribe("loose", buffer_rows=5)
    shop.insert("t", [(k, "a", k) for k in range(20)])  # one epoch is never too much
    assert len(told(quick)) == 20
    shop.insert("t", [(20, "a", 0)])
    assert len(told(quick)) == 1
    raised("HW521", slow)
    raised("HW521", slow)
    assert shop.engine.hub.wanted == {"loose"}
    quick.close()
    assert shop.engine.hub.wanted == frozenset()
    assert len(told(shop.subscribe("loose"))) == 21


def test_only_followed_views_pay(shop: hw.Database) -> None:
    """A view that nobody follows is settled and appended in one; its change is never a table."""
    subscription = shop.subscribe("loose")
    shop.insert("t", [(1, "a", 1)])
    assert _has_delta(shop, "loose")
    del subscription
    gc.collect()
    assert shop.engine.hub.wanted == frozenset()
    shop.execute("CREATE VIEW other AS SELECT x FROM t")
    shop.insert("t", [(2, "a", 1)])
    assert not _has_delta(shop, "other")


def _has_delta(db: hw.Database, view: str) -> bool:
    found = db.engine.connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    return (f"Δ{view}",) in found


def test_an_epoch_that_was_never_published_is_lost_to_memory_alone(shop: hw.Database) -> None:
    """The writer was interrupted between the commit and telling of it."""
    in_memory, kept = shop.subscribe("loose"), shop.subscribe("sums")
    with (
        mock.patch.object(shop.engine.hub, "publish", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        shop.insert("t", [(1, "a", 1)])
    assert told(kept) == [(1, "+", ("a", 1))]
    raised("HW521", in_memory)


def test_a_file_that_is_read_again(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TABLES)
        followed = {view: db.subscribe(view) for view in ("sums", "loose")}
        db.insert("t", [(1, "a", 1)])
        db.warehouse.reopen()
        db.engine._start()
        db.insert("t", [(2, "b", 1)])
        for one in followed.values():
            assert [(epoch, op) for epoch, op, *_ in told(one)] == [(1, "+"), (2, "+")]


# -- retention --------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = dt.datetime(2026, 1, 1)

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> Iterator[hw.Database]:
    """A view that keeps its changes for ten minutes, with changes in ten epochs, a minute apart."""
    with opened(clock=clock) as db:
        db.execute(
            """CREATE TABLE t (x INT);
               CREATE VIEW v RETAIN CHANGES 10 MINUTES AS SELECT x FROM t;
               CREATE VIEW all_of_it RETAIN CHANGES ALL AS SELECT x FROM t"""
        )
        for n in range(1, 11):
            db.insert("t", [(n,)])
            clock.now += dt.timedelta(minutes=1)
        yield db


def test_changes_go_by_the_clock_of_their_epoch(timed: hw.Database, clock: Clock) -> None:
    early = timed.subscribe("v", from_epoch=0)
    assert trim_changes(timed.engine, "v", 0.0) == 10
    assert len(kept_rows(timed, "v")) == 10
    clock.now += dt.timedelta(minutes=4)  # 14 minutes after the first epoch: four are too old
    assert trim_changes(timed.engine, "v", 0.5) == 10
    assert trim_changes(timed.engine, "v", 0.0) == 6
    assert [epoch for epoch, *_ in told(timed.subscribe("v", from_epoch=5))] == [5, 6, 7, 8, 9, 10]
    with pytest.raises(hw.UserError) as caught:
        timed.subscribe("v", from_epoch=4)
    assert caught.value.code == "HW520"
    assert "those of epoch 5" in caught.value.message
    raised("HW520", early)
    assert trim_changes(timed.engine, "all_of_it", 0.0) == 10
    assert len(told(timed.subscribe("all_of_it", from_epoch=0))) == 10
    assert bag(timed, "v") == Counter((n,) for n in range(1, 11))
    status: Any = timed.status()
    assert [one.get("changes_from") for one in status["relations"]] == [None, 5, 0]


def test_who_has_read_them_does_not_miss_them(timed: hw.Database, clock: Clock) -> None:
    subscription = timed.subscribe("v", from_epoch=0)
    assert len(told(subscription)) == 10
    clock.now += dt.timedelta(days=1)
    assert trim_changes(timed.engine, "v") == 0
    timed.insert("t", [(11,)])
    assert told(subscription) == [(11, "+", (11,))]
    assert [epoch for epoch, *_ in told(timed.subscribe("v", from_epoch=11))] == [11]


def test_the_background_removes_them(timed: hw.Database, clock: Clock) -> None:
    clock.now += dt.timedelta(days=1)
    timed.insert("t", pa.table({"x": list(range(consolidate.LOOK_ROWS + 1))}))
    timed.consolidator.wait(10)
    clock.now += dt.timedelta(days=1)
    timed.insert("t", pa.table({"x": list(range(3 * consolidate.LOOK_ROWS))}))
    assert timed.consolidator.wait(10)
    assert len(kept_rows(timed, "v")) == 3 * consolidate.LOOK_ROWS
    assert timed.find("v").begins == 11


def test_longer_than_there_have_been_years(timed: hw.Database) -> None:
    timed.execute("CREATE VIEW v2 RETAIN CHANGES 5000000 DAYS AS SELECT x FROM t")
    assert trim_changes(timed.engine, "v2", 0.0) == 10


def test_a_store_that_is_gone_is_not_trimmed(timed: hw.Database) -> None:
    timed.execute("DROP VIEW v")
    assert trim_changes(timed.engine, "v") == 0


# -- beside a writer --------------------------------------------------------------------------------------------------

CHAIN = """
CREATE TABLE t (k INT PRIMARY KEY, g INT, x INT);
CREATE STREAMED VIEW a AS SELECT g, SUM(x) AS x FROM t GROUP BY g;
CREATE VIEW b AS SELECT g % 3 AS g, SUM(x) AS x FROM a GROUP BY g % 3;
CREATE STREAMED VIEW c AS SELECT SUM(x) AS x FROM b;
CREATE VIEW d AS SELECT c.x - (SELECT SUM(x) FROM t) AS off, c.x FROM c
"""


def _write(db: hw.Database, epochs: int) -> None:
    for n in range(1, epochs + 1):
        with db.epoch() as e:
            e.upsert("t", [((n * 7 + i) % 50, i % 8, n + i) for i in range(10)])


def test_subscribers_of_views_over_views_never_see_half_an_epoch() -> None:
    """They begin at any time, beside a writer, and each has every epoch from there on, whole."""
    with opened() as db:
        db.execute(CHAIN)
        db.insert("t", [(0, 0, 0)])
        writer = threading.Thread(target=_write, args=(db, 60))
        failures: list[BaseException] = []
        ends: list[tuple[str, dict[int, int]]] = []

        def read(view: str) -> None:
            try:
                relation: Relation = db.find(view)
                places = [i for i, f in enumerate(relation.fields) if f.name in (relation.identity or ())]
                follower = Follower(tuple(places))
                states: dict[int, int] = {}
                with db.subscribe(view) as subscription:
                    while subscription.epoch < 61:
                        table = subscription.poll(5)
                        if table is None:
                            continue
                        follower.follow(changes_of(table), 61)
                        states[subscription.epoch] = sum(int(str(row[-1])) for row in follower.held.elements())
                        if view == "d":
                            assert [row[0] for row in follower.held] == [0], follower.held
                assert follower.held == bag(db, view)
                ends.append((view, states))
            except BaseException as error:
                failures.append(error)

        writer.start()
        readers = [threading.Thread(target=read, args=(view,)) for view in "abcd" * 3]
        for one in readers:
            one.start()
            time.sleep(0.02)
        writer.join()
        for one in readers:
            one.join(60)
        assert not failures, failures
        known: dict[int, int] = {}
        for _, states in ends:  # all views show the same sum in the same epoch
            for epoch, total in states.items():
                assert known.setdefault(epoch, total) == total
        assert len(ends) == 12
        assert len(known) > 20


def test_a_slow_reader_does_not_slow_a_writer() -> None:
    """Epochs take about as long with a subscriber that never fetches as without: coarsely, on a shared machine."""
    with opened() as db:
        db.execute(CHAIN)
        _write(db, 10)

        def seconds() -> float:
            began = time.perf_counter()
            _write(db, 40)
            return time.perf_counter() - began

        alone = min(seconds(), seconds())
        begins, bag_before = db.engine.epoch + 1, bag(db, "a")
        kept, in_memory = db.subscribe("a", begins), db.subscribe("b", begins, buffer_rows=100)
        beside = min(seconds(), seconds())
        assert beside < 3 * alone + 0.5
        raised("HW521", in_memory)
        follower = Follower((0,), bag_before)
        follower.follow(changes_of(kept.so_far()), db.engine.epoch)
        assert follower.held == bag(db, "a")
