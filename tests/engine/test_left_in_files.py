"""What is too large for a worker's memory is read from its files, and nobody can tell by the rows."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import headwater as hw
from headwater.database import Database
from headwater.engine import merges, room, segment_files
from headwater.engine.local_tasks import LocalRunner
from headwater.store.segments import Segment

SCHEMA = """
CREATE TABLE customer (ck INT NOT NULL, city INT NOT NULL);
CREATE TABLE orders (ok INT NOT NULL, ck INT NOT NULL, euros INT NOT NULL);
CREATE VIEW spent AS SELECT c.city, SUM(o.euros) AS euros, COUNT(*) AS n
FROM customer c JOIN orders o ON c.ck = o.ck GROUP BY c.city;
CREATE VIEW most AS SELECT ck, MAX(euros) AS euros FROM orders GROUP BY ck;
"""
MEMORY = 256 << 20
VIEWS = ("spent", "most")


def contents(db: Database, view: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(f"SELECT * FROM {view}").to_pylist())


def epoch(rng: random.Random, db: Database, other: Database, living: list[tuple[int, int, int]], number: int) -> None:
    customers = [(number * 20 + i, rng.randrange(5)) for i in range(20)]
    coming = [(number * 50 + i, rng.randrange((number + 1) * 20), rng.randrange(1000)) for i in range(50)]
    going = [living.pop(rng.randrange(len(living))) for _ in range(min(20, len(living)))]
    living += coming
    for one in (db, other):
        with one.epoch() as operations:
            operations.insert("customer", [dict(zip(("ck", "city"), row, strict=True)) for row in customers])
            operations.insert("orders", [dict(zip(("ok", "ck", "euros"), row, strict=True)) for row in coming])
            if going:
                operations.delete("orders", [dict(zip(("ok", "ck", "euros"), row, strict=True)) for row in going])


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_the_same_wherever_a_store_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 3)
    looked: list[str] = []
    plain = room._Task._look_at

    def look_at(self: room._Task, cached: room.Cached, store: room.Store) -> None:
        looked.append(store.relation)
        plain(self, cached, store)

    monkeypatch.setattr(room._Task, "_look_at", look_at)
    rng, living = random.Random(workers), list[tuple[int, int, int]]()
    runner = LocalRunner(workers, 1, memory=MEMORY)
    with (
        Database(tmp_path / "inline") as inline,
        Database(tmp_path / "tasks", placement="tasks", runner=runner, partitions=2) as tasks,
    ):
        for db in (inline, tasks):
            db.execute(SCHEMA)
        for number in range(12):
            # Stores are left in files, come into memory, and are left again.
            monkeypatch.setattr(segment_files, "_UNPACKED", 1_000_000 if number // 3 % 2 else 5)
            before = len(looked)
            epoch(rng, tasks, inline, living, number)
            assert (len(looked) > before) == bool(number // 3 % 2)
            for view in VIEWS:
                assert contents(tasks, view) == contents(inline, view), (number, view)
    runner.close()


def test_the_largest_are_left_until_the_others_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = LocalRunner(1, 1, memory=MEMORY)
    left: list[set[str]] = []
    plain = room._Task._left_in_files

    def noting(self: room._Task) -> set[str]:
        left.append(plain(self))
        return left[-1]

    monkeypatch.setattr(room._Task, "_left_in_files", noting)
    with Database(tmp_path / "tasks", placement="tasks", runner=runner, partitions=1) as db:
        db.execute(SCHEMA)
        rows = [{"ok": i, "ck": i % 1000, "euros": i * 7919 % 100_003} for i in range(20_000)]
        db.insert("orders", rows)
        db.insert("customer", [{"ck": i, "city": i % 5} for i in range(10)])
        assert left[-1] == set()
        size = sum(one.size for each in db.engine.away.segments.listed.values() for p in each.values() for one in p)
        monkeypatch.setattr(segment_files, "_UNPACKED", MEMORY // size)  # type: ignore[attr-defined]
        db.insert("customer", [{"ck": 10, "city": 1}])
        assert left[-1]
        assert all(one.startswith(("orders", "most")) for one in left[-1])
    runner.close()


def test_a_file_that_is_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_files, "_UNPACKED", 1 << 40)
    runner = LocalRunner(1, 1, memory=MEMORY)
    with Database(tmp_path / "tasks", placement="tasks", runner=runner, partitions=1) as db:
        db.execute("CREATE TABLE t (g INT, x INT); CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
        db.insert("t", [(1, 1), (2, 2)])
        db.insert("t", [(1, 5)])
        plain = room._Task._look_at

        def look_at(self: room._Task, cached: room.Cached, store: room.Store) -> None:
            plain(self, cached, store)
            for one in self._wanted(store):
                Path(one.path).write_bytes(b"no longer what it was")

        monkeypatch.setattr(room._Task, "_look_at", look_at)
        with pytest.raises(hw.UserError, match="HW409") as told:
            db.insert("t", [(1, 7)])
        assert ".parquet" in told.value.message
        assert told.value.__cause__ is None  # the task has said so; on Spark an exception would be lost
    runner.close()


def test_too_little_memory_is_no_damage(tmp_path: Path) -> None:
    gone = Segment(str(tmp_path / "gone.parquet"), 1, 1, 1, 1, 0)
    assert segment_files.broken_one([gone], duckdb.IOException("what is this?")) == (gone.path, "it is gone")
    assert segment_files.broken_one([gone], duckdb.OutOfMemoryException("there is none")) is None
