"""Many threads: inserts share epochs, nothing is lost or doubled, readers see whole epochs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import headwater as hw
from headwater import reading
from headwater.engine.operations import InsertRows
from headwater.engine.writer import Writer
from tests.engine.support import SetClock, bag, check_views, opened, rows


def run_threads(work: Callable[[int], None], count: int) -> list[BaseException]:
    """Run the same work in several threads at once; the errors they died of."""
    errors: list[BaseException] = []
    ready = threading.Barrier(count)

    def one(number: int) -> None:
        ready.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return errors


def queued(db: hw.Database, requests: int) -> None:
    end = time.monotonic() + 10
    while db.writer.waiting[0] < requests:
        assert time.monotonic() < end
        time.sleep(0.005)


# -- grouping ---


def test_everything_arrives_exactly_once_in_fewer_epochs(db: hw.Database) -> None:
    db.execute(
        "CREATE TABLE t (thread INT, i INT); CREATE VIEW v AS SELECT thread, count(*) AS n FROM t GROUP BY thread"
    )
    epochs: list[hw.Epoch] = []

    def insert(thread: int) -> None:
        epochs.extend(db.insert("t", [(thread, i)]) for i in range(12))

    assert run_threads(insert, 8) == []
    assert bag(db, "t") == {(thread, i): 1 for thread in range(8) for i in range(12)}
    assert rows(db, "v") == [(thread, 12) for thread in range(8)]
    assert db.engine.epoch < 8 * 12
    assert {one.number for one in epochs} == set(range(1, db.engine.epoch + 1))
    # An insert is visible in the epoch it was told, so what each thread was told never goes back.
    table = db.execute("SHOW EPOCHS")[0].table
    assert table is not None
    assert sum(table["changes"].to_pylist()) == 8 * 12


def test_inserts_that_wait_together_become_one_epoch(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); CREATE TABLE u (a INT)")
    told: list[int] = []

    def insert(number: int) -> None:
        told.append(db.insert("t" if number % 2 else "u", [(number,)]).number)

    with db.engine.lock:
        threads = [threading.Thread(target=insert, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        queued(db, 10)
    for thread in threads:
        thread.join()
    assert told == [1] * 10
    assert db.engine.epoch == 1
    assert len(rows(db, "t")) == len(rows(db, "u")) == 5


def test_one_bad_request_in_a_group_fails_alone(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (3)")
    failed: list[tuple[int, str]] = []

    def insert(number: int) -> None:
        try:
            db.insert("t", [(number,)])
        except hw.UserError as error:
            failed.append((number, error.code))

    with db.engine.lock:
        threads = [threading.Thread(target=insert, args=(number,)) for number in (1, 2, 3, 4, 5, 5)]
        for thread in threads:
            thread.start()
        queued(db, 6)
    for thread in threads:
        thread.join()
    assert sorted(failed) == [(3, "HW305"), (5, "HW305")]
    assert rows(db, "t") == [(1,), (2,), (3,), (4,), (5,)]
    assert db.engine.epoch == 1 + 4


def test_other_operations_are_epochs_of_their_own_and_keep_their_turn(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT); INSERT INTO t VALUES (0, 0)")

    def bump(_: int) -> None:
        for _ in range(5):
            db.execute("UPDATE t SET x = x + 1")

    assert run_threads(bump, 4) == []
    assert rows(db, "t") == [(0, 20)]
    assert db.engine.epoch == 21


def test_writers_of_all_kinds_at_once(db: hw.Database) -> None:
    db.execute(
        """
        CREATE TABLE t (id INT PRIMARY KEY, owner INT); CREATE STREAM s (x INT) RETAIN ALL;
        CREATE VIEW v AS SELECT owner, count(*) AS n FROM t GROUP BY owner;
        CREATE VIEW j AS SELECT t.owner, s.x FROM t JOIN s ON t.id = s.x
        """
    )

    def work(thread: int) -> None:
        for i in range(4):
            key = thread * 100 + i
            db.insert("t", [(key, thread)])
            db.insert("s", [(key,), (key,)])
            with db.epoch() as e:
                e.upsert("t", [(key, thread + 10)])
            if i % 2:
                db.execute(f"DELETE FROM t WHERE id = {key}")

    assert run_threads(work, 4) == []
    assert rows(db, "v") == [(thread + 10, 2) for thread in range(4)]
    check_views(db)


# -- the queue ---


def test_a_full_queue_makes_writers_wait(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    db.writer = Writer(db.engine, queue_rows=25)
    done: list[float] = []

    def insert(_: int) -> None:
        db.insert("t", [(i,) for i in range(10)])
        done.append(time.monotonic())

    with db.engine.lock:
        threads = [threading.Thread(target=insert, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        queued(db, 2)
        time.sleep(0.2)
        assert db.writer.waiting == (2, 20)  # a third would make thirty rows: four threads wait outside
        assert done == []
    for thread in threads:
        thread.join(20)
    assert len(rows(db, "t")) == 60
    assert db.writer.waiting == (0, 0)


def test_the_queue_is_bounded_in_requests_too(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    db.writer = Writer(db.engine, queue_requests=3)
    with db.engine.lock:
        threads = [threading.Thread(target=db.insert, args=("t", [(number,)])) for number in range(8)]
        for thread in threads:
            thread.start()
        queued(db, 3)
        time.sleep(0.1)
        assert db.writer.waiting == (3, 3)
    for thread in threads:
        thread.join(20)
    assert len(rows(db, "t")) == 8


def test_a_request_larger_than_the_queue_is_taken_when_it_is_alone(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    db.writer = Writer(db.engine, queue_rows=5)
    db.insert("t", [(i,) for i in range(50)])
    assert len(rows(db, "t")) == 50


def test_large_batches_are_not_piled_into_one_epoch(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    batch = [(i,) for i in range(60_000)]
    with db.epoch() as e:
        e.insert("t", batch)
    ready = e.operations
    assert isinstance(ready[0], InsertRows)
    with db.engine.lock:
        threads = [threading.Thread(target=db.submit, args=(ready,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        queued(db, 2)
    for thread in threads:
        thread.join()
    assert db.engine.epoch == 3
    assert rows(db, "SELECT count(*) AS n FROM t") == [(180_000,)]


# -- closing ---


def test_closing_while_writers_wait_keeps_every_promise(tmp_path: Path) -> None:
    db = opened(tmp_path / "w")
    db.execute("CREATE TABLE t (a INT)")
    promised: list[int] = []
    refusals: list[str] = []

    def insert(number: int) -> None:
        for i in range(20):
            try:
                db.insert("t", [(number * 100 + i,)])
                promised.append(number * 100 + i)
            except hw.HeadwaterError as error:
                refusals.append(error.code)
                return

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while db.engine.epoch < 3:
        time.sleep(0.005)
    db.close()
    for thread in threads:
        thread.join(20)
    assert set(refusals) <= {"HW408"}
    with opened(tmp_path / "w") as again:
        assert Counter(a for (a,) in rows(again, "t")) == Counter(promised)


def test_a_closed_warehouse_says_so(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT)")
    db.close()
    db.close()
    for use in (
        lambda: db.insert("t", [(1,)]),
        lambda: db.query("SELECT * FROM t"),
        lambda: db.execute("SHOW TABLES"),
        lambda: db.status(),
        lambda: db.explain("SELECT 1 AS x"),
    ):
        with pytest.raises(hw.UserError, match="closed") as caught:
            use()
        assert caught.value.code == "HW408"


# -- readers ---


def test_readers_see_whole_epochs(db: hw.Database) -> None:
    """Two tables always get the same rows; a reader never sees one ahead of the other, nor time go back."""
    db.execute(
        """
        CREATE TABLE a (x INT); CREATE TABLE b (x INT);
        CREATE VIEW na AS SELECT count(*) AS n, sum(x) AS s FROM a;
        CREATE VIEW nb AS SELECT count(*) AS n, sum(x) AS s FROM b;
        CREATE VIEW both AS SELECT a.x FROM a JOIN b ON a.x = b.x
        """
    )
    queries = (
        "SELECT na.n AS n, nb.n AS m, na.s AS s, nb.s AS r FROM na CROSS JOIN nb",
        "SELECT p.n AS n, q.n AS m, p.n AS s, q.n AS r FROM na p CROSS JOIN (SELECT count(*) AS n FROM both) q",
    )
    stop = threading.Event()
    problems: list[str] = []
    reads = [0, 0]

    def read(number: int) -> None:
        last = 0
        while not stop.is_set():
            ((n, m, s, r),) = rows(db, queries[number])
            if (n, s) != (m, r):
                problems.append(f"torn: {(n, m, s, r)}")
            assert isinstance(n, int)
            if n < last:
                problems.append(f"back from {last} to {n}")
            last = n
            reads[number] += 1

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()

    def write(thread: int) -> None:
        for i in range(6):
            with db.epoch() as e:
                e.insert("a", [(thread * 100 + i,)])
                e.insert("b", [(thread * 100 + i,)])

    try:
        assert run_threads(write, 3) == []
    finally:
        stop.set()
        for reader in readers:
            reader.join(20)
    assert problems == []
    assert min(reads) > 0


def test_reading_a_stream_kept_for_a_time_does_not_disturb_writers() -> None:
    with opened(clock=SetClock()) as db:
        db.execute("CREATE STREAM s (x INT) RETAIN 1 HOUR; CREATE TABLE t (id INT PRIMARY KEY)")
        stop = threading.Event()
        problems: list[BaseException] = []

        def read() -> None:
            while not stop.is_set():
                try:
                    db.query("SELECT count(*) AS n FROM s")
                    db.explain("SELECT x FROM s")
                except BaseException as error:
                    problems.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for i in range(40):
                db.insert("s", [(i,)])
                db.insert("t", [(i,)])
        finally:
            stop.set()
            reader.join()
        assert problems == []
        assert len(rows(db, "s")) == len(rows(db, "t")) == 40


def test_readers_while_views_come_and_go(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    stop = threading.Event()
    problems: list[str] = []

    def read() -> None:
        while not stop.is_set():
            for use in (lambda: db.query("SELECT * FROM v"), db.status, lambda: db.execute("SHOW RELATIONS")):
                try:
                    use()
                except hw.UserError:
                    pass  # it is gone just now
                except BaseException as error:
                    problems.append(repr(error)[:200])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(25):
            db.execute("CREATE VIEW v AS SELECT a FROM t; DROP VIEW v")
    finally:
        stop.set()
        reader.join()
    assert problems == []


def test_statements_do_not_wait_for_a_full_queue(db: hw.Database) -> None:
    """A statement holds the engine's lock, and whoever makes room in the queue waits for it."""
    db.execute("CREATE TABLE t (x INT)")
    db.writer = Writer(db.engine, queue_rows=2, queue_requests=2)

    def work(number: int) -> None:
        for x in range(10):
            if number % 2:
                db.execute(f"INSERT INTO t VALUES ({x})")
            else:
                db.insert("t", [(x,)])

    assert run_threads(work, 8) == []
    assert bag(db, "t") == {(x,): 8 for x in range(10)}


def test_an_observer_may_write(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x INT); CREATE TABLE log (epoch INT); CREATE VIEW v AS SELECT x FROM t")
    db.writer = Writer(db.engine, queue_rows=1, queue_requests=1)

    def note(epoch: int, changes: object) -> None:
        if "v" in dict(changes):  # type: ignore[call-overload]
            db.insert("log", [(epoch,)])

    db.observe(note)
    assert run_threads(lambda number: [db.insert("t", [(number,)]) for _ in range(5)] and None, 4) == []
    assert sum(bag(db, "log").values()) > 0
    assert sum(bag(db, "t").values()) == 20


def test_an_interrupted_writer_leaves_nothing_behind(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("CREATE TABLE t (x INT)")
    run = db.engine.run

    def interrupted(*args: object, **others: object) -> hw.Epoch:
        monkeypatch.setattr(db.engine, "run", run)
        raise KeyboardInterrupt

    # One thread waits in the queue while the one that serves both is interrupted.
    db.engine.lock.acquire()
    outcome: list[object] = []

    def insert(x: int) -> None:
        try:
            outcome.append(db.insert("t", [(x,)]).number)
        except KeyboardInterrupt:
            outcome.append("interrupted")

    threads = [threading.Thread(target=insert, args=(x,)) for x in (1, 2)]
    for thread in threads:
        thread.start()
    queued(db, 2)
    monkeypatch.setattr(db.engine, "run", interrupted)
    db.engine.lock.release()
    for thread in threads:
        thread.join(30)
    assert sorted(map(str, outcome)) == ["1", "interrupted"]
    db.insert("t", [(3,)])
    assert len(rows(db, "t")) == 2, "the interrupted row came later"


def test_a_query_never_mixes_two_catalogues(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its binding and its snapshot a view is replaced by one that is stored otherwise."""
    db.execute("CREATE TABLE t (g INT, x INT); INSERT INTO t VALUES (1, 1), (2, 5)")
    plain = "CREATE VIEW v AS SELECT g, x FROM t"
    grouped = "CREATE VIEW v AS SELECT g, sum(x) AS x FROM t GROUP BY g HAVING sum(x) > 2"
    for before, after in ((plain, grouped), (grouped, plain)):
        db.execute(before)
        original = reading.run_query

        def replaced(*args: object, after: str = after, original: Callable[..., object] = original) -> object:
            monkeypatch.setattr(reading, "run_query", original)
            db.execute("DROP VIEW v")
            db.execute(after)
            return original(*args)

        monkeypatch.setattr(reading, "run_query", replaced)
        assert rows(db, "SELECT g, x FROM v") == ([(2, 5)] if after == grouped else [(1, 1), (2, 5)])
        db.execute("DROP VIEW v")


def test_an_epoch_that_is_over_takes_nothing(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x INT)")
    with db.epoch() as e:
        e.insert("t", [(1,)])
    with pytest.raises(hw.UserError) as caught:
        e.insert("t", [(2,)])
    assert caught.value.code == "HW309"
