"""Results that are kept: when they are used, and when not."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from tests.engine.support import opened, rows

import headwater as hw
from headwater.engine.stamps import Stamps
from headwater.serve.cache import ResultCache


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with opened() as database:
        database.execute("""
            CREATE TABLE a (x INT); CREATE TABLE b (x INT);
            CREATE VIEW v AS SELECT x, count(*) AS n FROM a GROUP BY x
        """)
        database.insert("a", [(1,), (1,), (2,)])
        yield database


def hits(db: hw.Database) -> int:
    return db.reading.results.hits


def test_a_query_over_unchanged_relations_is_not_run_again(db: hw.Database) -> None:
    first = db.query("SELECT * FROM v")
    assert db.query("SELECT * FROM v") is first
    db.insert("b", [(1,)])
    assert db.query("SELECT * FROM v") is first
    db.insert("a", [(2,)])
    again = db.query("SELECT * FROM v")
    assert sorted(map(str, again.to_pylist())) == ["{'x': 1, 'n': 2}", "{'x': 2, 'n': 2}"]
    assert hits(db) == 2
    assert db.status()["cache"]["hits"] == 2  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO a VALUES (7)",
        "DELETE FROM a WHERE x = 1",
        "UPDATE a SET x = 3 WHERE x = 2",
        "DROP VIEW v; CREATE VIEW v AS SELECT x, count(*) * 2 AS n FROM a GROUP BY x",
        "DROP VIEW v; CREATE TABLE v (x INT, n BIGINT); INSERT INTO v VALUES (5, 5)",
    ],
)
def test_whatever_changes_a_relation_is_seen(db: hw.Database, change: str) -> None:
    before = db.query("SELECT * FROM v")
    db.execute(change)
    after = db.query("SELECT * FROM v")
    assert after is not before
    assert sorted(map(str, after.to_pylist())) != sorted(map(str, before.to_pylist()))


def test_a_relation_that_is_gone_is_gone(db: hw.Database) -> None:
    db.query("SELECT * FROM v")
    db.execute("DROP VIEW v")
    with pytest.raises(hw.UserError, match="HW102"):
        db.query("SELECT * FROM v")


def test_what_reads_the_clock_is_not_kept() -> None:
    now = [dt.datetime(2026, 1, 1)]
    with opened(clock=lambda: now[0]) as db:
        db.execute("CREATE TABLE t (at TIMESTAMP); CREATE STREAM s (x INT) RETAIN 1 MINUTE")
        db.insert("t", [(now[0] + dt.timedelta(seconds=5),)])
        db.insert("s", [(1,)])
        assert rows(db, "SELECT count(*) FROM t WHERE at > now()") == [(1,)]
        assert rows(db, "SELECT x FROM s") == [(1,)]
        now[0] += dt.timedelta(minutes=2)
        assert rows(db, "SELECT count(*) FROM t WHERE at > now()") == [(0,)]
        assert rows(db, "SELECT x FROM s") == []
        assert hits(db) == 0


def test_it_is_bounded_in_bytes() -> None:
    stamps = Stamps()
    cache = ResultCache(stamps, limit=100_000)
    table = pa.table({"x": pa.array(range(1_000), pa.int64())})
    for key in range(50):
        cache.put(key, table, ("a",), stamps.take(("a",)))
        assert cache.facts()["bytes"] <= 100_000
    assert cache.get(0) is None
    assert cache.get(49) is table
    cache.put("large", pa.table({"x": pa.array(range(10_000), pa.int64())}), (), stamps.take(()))
    assert cache.get("large") is None
    cache.get(45)
    for key in range(100, 109):
        cache.put(key, table, ("a",), stamps.take(("a",)))
    assert cache.get(45) is table, "what was used last goes last"


def test_nothing_is_shown_while_it_changes() -> None:
    """A commit may be seen by others before it is over."""
    stamps = Stamps()
    cache = ResultCache(stamps)
    table = pa.table({"x": [1]})
    with stamps.committing({"a"}):
        cache.put("q", table, ("a",), stamps.take(("a",)))
        cache.put("r", table, ("b",), stamps.take(("b",)))
        assert cache.get("q") is None
        assert cache.get("r") is table
    assert cache.get("q") is None
    assert cache.get("r") is table
    with stamps.committing(None):
        assert cache.get("r") is None


def test_a_failed_commit_leaves_nothing_in_the_way(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(hw.HeadwaterError):
        db.execute("INSERT INTO a SELECT 1 div 0")
    assert db.engine.stamps.steady(("a", "v"))
    assert not db.engine.stamps.redefining
    first = db.query("SELECT * FROM v")
    assert db.query("SELECT * FROM v") is first


def test_rows_that_are_there_twice_and_rows_that_went(db: hw.Database) -> None:
    """The plain form of a query is for stores whose rows are single; it must notice when they are not any more."""
    query = "SELECT x FROM a"
    assert rows(db, query) == [(1,), (1,), (2,)]
    db.execute("DELETE FROM a WHERE x = 2")
    assert rows(db, query) == [(1,), (1,)]
    with db.epoch() as e:
        e.insert("a", [(5,), (5,), (5,)])
        e.delete("a", [(1,)])
    assert rows(db, query) == [(1,), (5,), (5,), (5,)]
    db.engine.urgent.add("a")
    assert db.consolidator.wait(30)
    assert rows(db, query) == [(1,), (5,), (5,), (5,)]
    assert rows(db, "SELECT x FROM a ORDER BY x DESC LIMIT 3") == [(5,), (5,), (5,)]
    assert rows(db, "SELECT sum(x), count(*) FROM a") == [(16, 4)]
    db.insert("a", [(9,)])
    assert rows(db, query) == [(1,), (5,), (5,), (5,), (9,)]


def test_it_is_fast() -> None:
    """The goal is 5,000 reads a second; there is room for slow machines."""
    with opened() as db:
        db.execute("CREATE TABLE a (x INT); CREATE VIEW v AS SELECT x, count(*) AS n FROM a GROUP BY x")
        db.insert("a", [(i,) for i in range(1_000)])
        db.query("SELECT * FROM v")
        began = time.process_time()
        for _ in range(5_000):
            db.query("SELECT * FROM v")
        assert time.process_time() - began < 1.0


def stress(db: hw.Database, *tasks: Callable[[], object], seconds: float) -> list[BaseException]:
    """Run tasks in threads, over and over."""
    end, errors = time.monotonic() + seconds, list[BaseException]()

    def work(task: Callable[[], object]) -> None:
        try:
            while time.monotonic() < end and not errors:
                task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in tasks]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return errors


def test_readers_and_relations_that_come_and_go(db: hw.Database) -> None:
    """A view is replaced all the time by one that is stored otherwise."""
    plain = "CREATE VIEW w AS SELECT x, x AS y FROM a"
    grouped = "CREATE VIEW w AS SELECT x, x AS y FROM a GROUP BY x HAVING count(*) > 1"
    db.execute(plain)
    turns = [grouped, plain]

    def replace() -> None:
        turns.reverse()
        with db.engine.lock:  # so that there is always one
            db.execute("DROP VIEW w")
            db.execute(turns[0])

    def read() -> None:
        try:
            found = rows(db, "SELECT x, y FROM w")
        except hw.UserError as error:
            if error.code != "HW102":
                raise
            return
        assert found in ([(1, 1)], [(1, 1), (1, 1), (2, 2)]), found

    assert stress(db, replace, read, read, seconds=2) == []


def test_views_that_are_evaluated_when_they_are_read(db: hw.Database) -> None:
    db.execute("CREATE VIEW lazy REFRESH ON QUERY AS SELECT x, count(*) AS n FROM a GROUP BY x")
    query = "SELECT l.n AS l, v.n AS v FROM lazy l JOIN v ON l.x = v.x"
    first = db.query(query)
    assert db.query(query) is first
    db.insert("a", [(1,)])
    assert rows(db, query) == [(1, 1), (3, 3)]


def test_such_views_are_of_the_same_epoch_as_others(db: hw.Database) -> None:
    db.execute("CREATE VIEW lazy REFRESH ON QUERY AS SELECT count(*) AS n FROM a")
    db.execute("CREATE VIEW kept AS SELECT count(*) AS n FROM a")
    queries = [f"SELECT l.n AS l, k.n AS k, {i} AS i FROM lazy l, kept k" for i in range(3)]

    def read(query: str) -> None:
        [row] = db.query(query).to_pylist()
        assert row["l"] == row["k"], row

    tasks = [lambda q=query: read(q) for query in queries]  # type: ignore[misc]
    assert stress(db, lambda: db.insert("a", [(1,)]), *tasks, seconds=3) == []
