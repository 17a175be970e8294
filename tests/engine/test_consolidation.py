"""Consolidation rewrites stores beside running epochs and changes nothing that can be seen."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater import database
from headwater.engine import faults
from headwater.engine.consolidate import Consolidator
from headwater.engine.rewriting import SUFFIX, consolidate
from headwater.engine.shapes import Shape, shape_of
from tests.engine.support import SetClock, bag, check_views, opened, rows, state, store_rows, stores


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[hw.Database]:
    """A warehouse that looks at a store after every few rows."""
    monkeypatch.setattr(database, "Consolidator", functools.partial(Consolidator, look_rows=4))
    with opened() as db:
        yield db


@pytest.fixture
def hook() -> Iterator[Callable[[Callable[[str], None]], None]]:
    """Sets what is called at each named point; taken away afterwards."""

    def install(call: Callable[[str], None]) -> None:
        faults.hook = call

    yield install
    faults.hook = None


def wait_until(true: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def churn(db: hw.Database, epochs: int, seed: int = 0) -> None:
    rng = random.Random(seed)
    for _ in range(epochs):
        with db.epoch() as e:
            e.upsert(
                "t", [(rng.randint(0, 5), rng.choice([None, 1, 2]), rng.choice([0.0, 0.5, None])) for _ in range(3)]
            )


SQL = """
CREATE TABLE t (id INT PRIMARY KEY, g INT, x DOUBLE);
CREATE VIEW rows_of AS SELECT g, x FROM t;
CREATE VIEW groups AS SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g;
CREATE VIEW hidden AS SELECT g, count(*) AS n FROM t GROUP BY g HAVING count(*) > 2;
CREATE VIEW total AS SELECT count(*) AS n, sum(x) AS s FROM t;
CREATE VIEW nested AS SELECT n, count(*) AS times FROM groups GROUP BY n
"""


def test_dead_rows_go_by_themselves(eager: hw.Database) -> None:
    eager.execute(SQL)
    churn(eager, 15)
    wait_until(lambda: store_rows(eager, "t") < 40)  # of some 75 that were appended; six live
    check_views(eager)


def test_contents_stay_and_only_what_lives_is_left(db: hw.Database) -> None:
    db.execute(SQL)
    churn(db, 6)
    before = state(db)
    for name in ("t", "rows_of", "groups", "hidden", "total", "nested"):
        had = store_rows(db, name)
        shape = shape_of(db.engine.catalog, name)
        assert shape is not None
        left = consolidate(db.engine, db.warehouse.reader(), name, shape)
        assert left == store_rows(db, name) < had
        assert left <= 6
    assert state(db) == before
    churn(db, 2, seed=1)
    check_views(db)


def test_partial_sums_are_added_up(eager: hw.Database) -> None:
    eager.execute("CREATE TABLE a (k INT, x INT); CREATE TABLE b (k INT, y INT)")
    eager.execute(
        "CREATE VIEW v STRATEGY 'tree' AS SELECT a.k, sum(x) AS s, sum(y) AS t FROM a JOIN b ON a.k = b.k GROUP BY a.k"
    )
    maps = [one.name for one in eager.find("v").program.maps if one.sums is not None]
    assert len(maps) == 2
    eager.insert("b", [(k % 3, k) for k in range(9)])
    for i in range(40):
        eager.insert("a", [(i % 3, i)])
    wait_until(lambda: all(store_rows(eager, name) < 15 for name in maps))
    check_views(eager)
    eager.execute("DELETE FROM a WHERE k = 1")
    check_views(eager)


def test_a_store_that_only_grows_is_left_alone(eager: hw.Database) -> None:
    eager.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
    for i in range(30):
        eager.insert("t", [(1,), (i,)])
    time.sleep(0.1)
    assert store_rows(eager, "t") == 60
    assert store_rows(eager, "v") == 59  # equal rows of one epoch are one entry here
    assert len(rows(eager, "v")) == 60


def test_epochs_and_readers_go_on_meanwhile(eager: hw.Database) -> None:
    eager.execute(
        """
        CREATE TABLE a (id INT PRIMARY KEY, x INT); CREATE TABLE b (id INT PRIMARY KEY, x INT);
        CREATE VIEW diff AS SELECT a.id, a.x - b.x AS d FROM a JOIN b ON a.id = b.id;
        CREATE VIEW wrong AS SELECT count(*) AS n, sum(d) AS d FROM diff
        """
    )
    stop, seen, problems = threading.Event(), [0], []

    def read() -> None:
        while not stop.is_set():
            try:
                ((n, d),) = rows(eager, "wrong")
                if n not in (0, 6) or (d or 0) != 0:
                    problems.append(f"n = {n}, d = {d}")
                seen[0] += 1
            except Exception as error:
                problems.append(repr(error))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        rng = random.Random(3)
        for _ in range(15):
            values = [(i, rng.randint(0, 99)) for i in range(6)]
            with eager.epoch() as e:
                e.upsert("a", values)
                e.upsert("b", values)
    finally:
        stop.set()
        reader.join()
    assert problems == []
    assert seen[0] > 0
    wait_until(lambda: store_rows(eager, "a") < 90)  # of some 180 that were appended
    check_views(eager)


def test_an_epoch_between_copy_and_swap_is_not_lost(
    db: hw.Database, hook: Callable[[Callable[[str], None]], None]
) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1")

    def insert(point: str) -> None:
        if point == "consolidation copied":
            faults.hook = None
            db.insert("t", [(3,)])
            db.execute("DELETE FROM t WHERE a = 2")

    hook(insert)
    consolidate(db.engine, db.warehouse.reader(), "t", Shape(("a",)))
    assert rows(db, "t") == [(3,)]


def test_a_store_dropped_between_copy_and_swap_stays_dropped(
    db: hw.Database, hook: Callable[[Callable[[str], None]], None]
) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")

    def drop(point: str) -> None:
        if point == "consolidation copied":
            faults.hook = None
            db.execute("DROP TABLE t")

    hook(drop)
    consolidate(db.engine, db.warehouse.reader(), "t", Shape(("a",)))
    assert stores(db) == set()


def test_a_store_replaced_between_copy_and_swap_keeps_its_own_rows(
    db: hw.Database, hook: Callable[[Callable[[str], None]], None]
) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")

    def replace(point: str) -> None:
        if point == "consolidation copied":
            faults.hook = None
            db.execute("DROP TABLE t; CREATE TABLE t (a INT); INSERT INTO t VALUES (7)")

    hook(replace)
    consolidate(db.engine, db.warehouse.reader(), "t", Shape(("a",)))
    assert rows(db, "t") == [(7,)]


def test_a_failure_between_copy_and_swap_leaves_the_store_as_it_was(
    db: hw.Database, hook: Callable[[Callable[[str], None]], None]
) -> None:
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); DELETE FROM t WHERE a = 1")

    def fail(point: str) -> None:
        if point == "consolidation swapped":
            raise RuntimeError("here")

    hook(fail)
    with pytest.raises(RuntimeError):
        consolidate(db.engine, db.warehouse.reader(), "t", Shape(("a",)))
    faults.hook = None
    assert rows(db, "t") == [(2,)]
    consolidate(db.engine, db.warehouse.reader(), "t", Shape(("a",)))
    assert rows(db, "t") == [(2,)]
    assert stores(db) == {"t"}


def test_leftovers_are_removed_at_the_next_start(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
        db.engine.connection.execute(f'CREATE TABLE data."t{SUFFIX}" AS SELECT * FROM data."t"')
        assert stores(db) == {"t", f"t{SUFFIX}"}
    with opened(tmp_path / "w") as db:
        assert stores(db) == {"t"}
        assert bag(db, "t") == {(1,): 1}


def test_streams_keep_the_epochs_their_rows_came_in(eager: hw.Database) -> None:
    eager.execute("CREATE STREAM s (x INT) RETAIN ALL; CREATE TABLE t (x INT)")
    for x in range(20):
        eager.insert("s", [(x,)])
    eager.execute("CREATE VIEW v AS SELECT s.x FROM s JOIN t ON s.x = t.x")
    eager.insert("t", [(3,)])
    assert rows(eager, "v") == [(3,)]
    reader = eager.warehouse.reader()
    assert reader.execute('SELECT count(DISTINCT "#e") FROM data."s"').fetchone() == (20,)
    reader.close()


def test_rows_past_their_time_go_unless_a_view_looks_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "Consolidator", functools.partial(Consolidator, look_rows=4))
    clock = SetClock()
    with opened(clock=clock) as db:
        db.execute(
            """
            CREATE STREAM short (x INT) RETAIN 1 HOUR;
            CREATE STREAM joined (x INT) RETAIN 1 HOUR;
            CREATE TABLE t (x INT);
            CREATE VIEW sums AS SELECT count(*) AS n FROM short;
            CREATE VIEW pairs AS SELECT t.x FROM joined JOIN t ON joined.x = t.x
            """
        )
        for x in range(12):
            with db.epoch() as e:
                e.insert("short", [(x,)])
                e.insert("joined", [(x,)])
            clock.advance(minutes=30)
        wait_until(lambda: store_rows(db, "short") < 12)
        assert store_rows(db, "joined") == 12
        db.insert("t", [(0,), (11,)])
        assert rows(db, "pairs") == [(0,), (11,)]
        assert rows(db, "sums") == [(12,)]
        assert rows(db, "short") == rows(db, "joined") == [(10,), (11,)]
        with pytest.raises(hw.UserError) as caught:
            db.execute("REFRESH sums")
        assert caught.value.code == "HW505"
        db.execute("REFRESH pairs")
        assert rows(db, "pairs") == [(0,), (11,)]
