"""A day of minutes is rolled up into hours, and no answer changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine import consolidate as background
from headwater.engine import faults, part_upkeep
from headwater.engine.part_upkeep import rewrite_parts, to_roll_up
from tests.engine.part_support import FIRST, START, check_book, eager, minute, settle
from tests.engine.support import bag, opened, rows, store_rows, stores

MINUTES = 1_440
SQL = """
CREATE STREAM m (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60 RETAIN ALL
  ROLL UP AFTER INTERVAL 1 HOUR INTO 3600;
CREATE VIEW sums AS
  INITIALIZE sums[i] AS SELECT g, sum(x) AS x, count(*) AS n FROM m[i] GROUP BY g
  UPDATE sums[j] AS SELECT g, sum(x) AS x, count(*) AS n FROM m[j] GROUP BY g
  PARTITION LENGTH 60 BACKFILL ROLL UP AFTER 2 HOURS INTO 7200;
"""
WINDOW = "CREATE VIEW w AS SELECT g, max(x) AS x FROM m [WINDOW 3 MINUTES] GROUP BY g"
QUERIES = (
    "SELECT * FROM m",
    "SELECT *, PART FROM sums",
    "SELECT g, sum(x) AS x FROM m GROUP BY g",
    "SELECT PART, PART_TIMESTAMP, count(*) AS n FROM sums WHERE g = 'b' GROUP BY PART, PART_TIMESTAMP",
    "SELECT max(x) AS x FROM m WHERE PART_TIMESTAMP = TIMESTAMP '2024-01-01 05:17:00'",
)


def day(rows: int = 4_320) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table(
        {
            "ts": np.datetime64(START, "us") + (numbers * (MINUTES * 60_000 // rows)).astype("timedelta64[ms]"),
            "g": pa.array([["a", "b", "c", None][n * 7 % 4] for n in range(rows)]),
            "x": (numbers * 31 % 97).astype("int32"),
        }
    )


def fill(db: hw.Database) -> None:
    """The day in five epochs."""
    table = day()
    for begin in range(0, table.num_rows, 864):
        db.insert("m", table.slice(begin, 864))


def answers(db: hw.Database, *more: str) -> list[object]:
    return [rows(db, query) for query in (*QUERIES, *more)]


def look(db: hw.Database, name: str) -> None:
    """What the background does for a relation."""
    reader = db.warehouse.reader()
    try:
        rolled = to_roll_up(db.find(name), db.engine.book)
        assert rolled is not None
        rewrite_parts(db.engine, reader, db.find(name), rolled)
    finally:
        reader.close()


def order_of(db: hw.Database, store: str, columns: str) -> list[tuple[object, ...]]:
    """Some columns of a store, as its rows lie."""
    reader = db.warehouse.reader()
    try:
        return reader.execute(f'SELECT {columns} FROM data."{store}" ORDER BY rowid').fetchall()
    finally:
        reader.close()


@pytest.fixture
def hook() -> Iterator[Callable[[Callable[[str], None]], None]]:
    def install(call: Callable[[str], None]) -> None:
        faults.hook = call

    yield install
    faults.hook = None


def test_a_day_rolled_up_answers_as_before(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db, opened() as twin:
        for one in (db, twin):
            one.consolidator._look_parts = 10**9
            one.execute(SQL + WINDOW)
            fill(one)
        before = answers(db, "SELECT *, PART FROM w")
        for name in ("m", "sums"):
            look(db, name)
        assert answers(db, "SELECT *, PART FROM w") == before
        check_book(db)
        assert stores(db) == stores(twin)
        frontiers = db.engine.book.frontiers
        assert frontiers["m"].rolled == FIRST + 22 * 60, "the last hour but one is over an hour old"
        assert frontiers["sums"].rolled == FIRST + 20 * 60
        late = [(minute(100), "b", 5), (minute(1_300.5), None, 6), (minute(1_439), "a", 7)]
        for one in (db, twin):
            one.insert("m", late)
        assert answers(db, "SELECT *, PART FROM w") == answers(twin, "SELECT *, PART FROM w")
        check_book(db)
    with opened(tmp_path / "w") as db, opened() as twin:
        assert db.engine.book.frontiers == frontiers
        twin.execute(SQL + WINDOW)
        fill(twin)
        twin.insert("m", late)
        assert answers(db, "SELECT *, PART FROM w") == answers(twin, "SELECT *, PART FROM w")
        for one in (db, twin):
            one.insert("m", [(minute(200), "c", 5), (minute(1_445), "c", 5)])
        assert answers(db, "SELECT *, PART FROM w") == answers(twin, "SELECT *, PART FROM w")


def test_rows_of_a_larger_part_lie_together_and_recent_parts_behind() -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute(SQL)
        fill(db)
        epochs = sorted(order_of(db, "m", 'ts, "#e"'))
        for name in ("m", "sums"):
            look(db, name)
        assert sorted(order_of(db, "m", 'ts, "#e"')) == epochs, "rows of streams keep the epoch that they came in"
        for name, hours, limit in (("m", 1, 22), ("sums", 2, 20)):
            found = [(part - FIRST, g, x) for part, g, x in order_of(db, name, '"PART", g, x')]
            old = [row for row in found if row[0] < limit * 60]
            assert found[: len(old)] == old
            assert old == sorted(old, key=lambda row: (row[0] // (60 * hours), row[1] is None, row[1] or "", row[2]))
            recent = [part for part, _, _ in found[len(old) :]]
            assert recent and recent == sorted(recent)


def test_show_parts_has_larger_parts() -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute(SQL)
        fill(db)
        [before] = db.execute("SHOW PARTS m")
        look(db, "m")
        [after] = db.execute("SHOW PARTS m")
        assert before.table is not None and after.table is not None
        assert before.table.num_rows == MINUTES
        found = after.table.to_pylist()
        assert len(found) == 22 + 120
        assert list(found[0]) == [
            "part",
            "part_timestamp",
            "length",
            "rows",
            "bytes",
            "stored",
            "state",
            "epoch",
            "last_updated",
        ]
        for hour, line in enumerate(found[:22]):
            assert line["part"] == FIRST // 60 + hour
            assert line["part_timestamp"] == minute(60 * hour)
            assert (line["length"], line["rows"], line["state"]) == (3600, 180, "rolled up")
        assert [line["part"] for line in found[22:]] == [FIRST + one for one in range(22 * 60, MINUTES)]
        assert {(line["length"], line["rows"]) for line in found[22:]} == {(60, 3)}
        assert [line["state"] for line in found[22:]] == ["complete"] * 119 + ["open"]
        db.insert("m", [(minute(61), "late", 1)])
        [line] = [one for one in db.execute("SHOW PARTS m")[0].table.to_pylist() if one["part"] == FIRST // 60 + 1]
        assert (line["rows"], line["epoch"]) == (181, 6)


def test_it_is_done_when_enough_waits() -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute("CREATE STREAM m (ts TIMESTAMP, x INT) TIMESTAMP BY ts PARTITION LENGTH 60 RETAIN ALL"
                   " ROLL UP AFTER INTERVAL 5 MINUTES INTO 300")  # fmt: skip
        stream = db.find("m")
        due = []
        for one in range(60):
            db.insert("m", [(minute(one), one)])
            rolled = to_roll_up(stream, db.engine.book)
            if rolled is not None:
                due.append((one, rolled - FIRST))
                look(db, "m")
        assert due == [(10, 5), (15, 10), (20, 15), (25, 20), (30, 25), (40, 35), (50, 45)]
        check_book(db)


def test_it_goes_by_itself_and_survives_what_happens_meanwhile() -> None:
    rng = random.Random(5)
    with eager() as db, opened() as twin:
        for one in (db, twin):
            one.execute(
                SQL.replace("1 HOUR INTO 3600", "3 MINUTES INTO 240").replace("2 HOURS INTO 7200", "5 MINUTES INTO 300")
            )
        for one in range(40):
            batch = [
                (minute(max(0, one - rng.choice([0, 0, 1, 9]))), rng.choice("ab"), rng.randint(0, 9)) for _ in range(4)
            ]
            for each in (db, twin):
                each.insert("m", batch)
        settle(db)
        assert answers(db) == answers(twin)
        assert (db.engine.book.frontier("m").rolled or 0) >= FIRST + 28
        check_book(db)


def test_rewriting_finds_single_rows_again() -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute(SQL)
        fill(db)
        look(db, "sums")
        db.insert("m", [(minute(30), "a", 1), (minute(1_400), "a", 1)])
        assert db.engine.book.multiple["sums"] == {FIRST + 30, FIRST + 1_400}
        before = order_of(db, "sums", '"PART"')
        reader = db.warehouse.reader()
        rewrite_parts(db.engine, reader, db.find("sums"), db.engine.book.frontier("sums").rolled)
        assert db.engine.book.multiple["sums"] == set()
        check_book(db)
        after = order_of(db, "sums", '"PART"')
        assert len(after) == len(before) - 4, (
            "two rows, each with its old form and the retraction of that, are two again"
        )
        db.insert("m", [(minute(31), "a", 1)])
        rewrite_parts(db.engine, reader, db.find("sums"), None)
        reader.close()
        assert db.engine.book.multiple["sums"] == set()
        check_book(db)


def test_dead_rows_go_and_what_is_rolled_up_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_upkeep, "ROLL_SHARE", 10**9)
    monkeypatch.setattr(background, "DEAD_SHARE", 0.0001)
    with eager() as db:
        db.execute(SQL)
        db.insert("m", day().slice(0, 900))
        settle(db)
        rolled = db.engine.book.frontier("sums").rolled
        assert rolled == FIRST + 120
        for _ in range(3):
            db.insert("m", [(minute(one), g, 1) for one in range(0, 300, 7) for g in ("a", "b", "c", None)])
            settle(db)
        found = [(part - FIRST, g) for part, g in order_of(db, "sums", '"PART", g')]
        assert len(found) == len(set(found)) == store_rows(db, "sums")
        old = [(g is None, g or "") for part, g in found if part < 120]
        assert old == sorted(old), "in the order of groups, not of minutes"
        assert db.engine.book.multiple["sums"] == set()
        check_book(db)


def test_an_epoch_between_copy_and_swap_is_not_lost(hook: Callable[[Callable[[str], None]], None]) -> None:
    with opened() as db, opened() as twin:
        for one in (db, twin):
            one.consolidator._look_parts = 10**9
            one.execute(SQL)
            fill(one)
        late = [(minute(30), "a", 1), (minute(1_450), "a", 1)]

        def insert(point: str) -> None:
            if point == "consolidation copied":
                faults.hook = None
                db.insert("m", late)

        for name in ("sums", "m"):
            hook(insert)
            look(db, name)
            twin.insert("m", late)
            check_book(db)
        assert answers(db) == answers(twin)


def test_a_relation_dropped_between_copy_and_swap_stays_dropped(
    hook: Callable[[Callable[[str], None]], None],
) -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute(SQL)
        fill(db)

        def drop(point: str) -> None:
            if point == "consolidation copied":
                faults.hook = None
                db.execute("DROP VIEW sums")

        hook(drop)
        look(db, "sums")
        assert not any(one.startswith("sums") for one in stores(db))
        assert "sums" not in db.engine.book.frontiers


def test_a_failure_leaves_the_store_as_it_was(hook: Callable[[Callable[[str], None]], None]) -> None:
    with opened() as db:
        db.consolidator._look_parts = 10**9
        db.execute(SQL)
        fill(db)
        before = bag(db, "sums")

        def fail(point: str) -> None:
            if point == "consolidation swapped":
                raise RuntimeError("here")

        hook(fail)
        with pytest.raises(RuntimeError):
            look(db, "sums")
        faults.hook = None
        assert db.engine.book.frontier("sums").rolled is None
        assert bag(db, "sums") == before
        check_book(db)
        look(db, "sums")
        assert bag(db, "sums") == before
        check_book(db)
