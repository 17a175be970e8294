"""Tasks that are run twice, die halfway, or whose output is taken from different runs: nothing of that shows."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine import away, faults, merges, room, spent_files
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.merges import Merge, Merged
from headwater.engine.parcels import Parcel, Report
from headwater.engine.tasks import RoomPlan
from headwater.engine.workers import Worker
from headwater.spark.stages import _missing
from headwater.store.segments import Segment
from tests.faults.child import leftovers
from tests.spark.skewed import Skewed
from tests.spark.twins import Twins, clock_of

TWO_LEVELS = """
    CREATE TABLE t (a INT, b INT);
    CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;
    CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s
"""


def opened(folder: Path, runner: away.Runner) -> hw.Database:
    return hw.Database(folder, placement="tasks", runner=runner, partitions=2)


def test_mishaps_do_not_show(tmp_path: Path) -> None:
    found: list[hw.Database] = []
    runner = LocalRunner(2, 5, mishaps=0.4)
    clock = partial(clock_of, found)
    db = hw.Database(tmp_path / "w", clock=clock, placement="tasks", runner=runner, partitions=2)
    found.append(db)
    twins = Twins(db, 5)
    twins.define()
    for _ in range(6):
        twins.step()
    twins.close()
    db.close()
    runner.close()


def test_a_key_with_half_of_the_rows(tmp_path: Path) -> None:
    runner = LocalRunner(2, 5)
    with opened(tmp_path / "w", runner) as db, hw.Database() as home:
        Skewed(db, home, 20_000).tell()
    runner.close()


def test_what_workers_keep_of_an_epoch_that_is_undone(tmp_path: Path) -> None:
    """Another epoch has its number then, and other rows."""
    runner = LocalRunner(2, 7)
    with opened(tmp_path / "w", runner) as db, hw.Database() as home:
        for one in (db, home):
            one.execute(TWO_LEVELS)
        for number in range(12):
            if number % 3 != 2:
                faults.hook = _fail
                try:
                    with pytest.raises(ZeroDivisionError):
                        db.insert("t", [(one, 1000 + number) for one in range(6)])
                finally:
                    faults.hook = None
            for one in (db, home):
                one.insert("t", [(key, number) for key in range(6)])
            for view in ("v", "w"):
                found, wanted = (sorted(one.query(f"SELECT * FROM {view}").to_pylist(), key=str) for one in (db, home))
                assert found == wanted, number
    runner.close()


def _fail(point: str) -> None:
    if point == "tasks done":
        raise ZeroDivisionError


def test_what_workers_keep_does_not_grow_with_what_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment has each row once after others were put into it, and so has the table of a worker, sooner or later."""
    monkeypatch.setattr(room, "FEW_ROWS", 100)
    monkeypatch.setattr(merges, "FEW_ENTRIES", 100)
    monkeypatch.setattr(merges, "BEHIND", 1)  # epochs put them together themselves
    runner = LocalRunner(1, 1)
    with opened(tmp_path / "w", runner) as db, hw.Database() as home:
        for one in (db, home):
            one.execute(TWO_LEVELS)
        for number in range(80):
            for one in (db, home):
                one.insert("t", [(key, number) for key in range(20)])
        assert db.query("SELECT * FROM v ORDER BY a").equals(home.query("SELECT * FROM v ORDER BY a"))
    [worker] = runner._workers
    rows = [lying.rows for cached in worker.rooms.values() for lying in cached.stores.values()]
    held = [
        cached.connection.execute(f"SELECT count(*) FROM {lying.table}").fetchone()
        for cached in worker.rooms.values()
        for lying in cached.stores.values()
    ]
    assert [(one,) for one in rows] == held
    assert max(rows) < 1000, rows  # and 3,200 came to it
    runner.close()


def test_changes_that_cannot_be_written_for_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of them is let go, so that the epoch can be undone."""
    runner = LocalRunner(1, 1)
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        db.insert("t", [(1, 1), (2, 2)])

        def full(path: str, pieces: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", path)

        monkeypatch.setattr(away, "_write", full)
        with pytest.raises(hw.UserError, match="HW406"):
            db.insert("t", [(key, 5) for key in range(50)])
        monkeypatch.undo()
        assert db.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]
        db.insert("t", [(1, 1)])
        assert sorted(row["s"] for row in db.query("SELECT s FROM v").to_pylist()) == [2, 2]
    runner.close()


class Mixing:
    """What a reader took of a task, and what that task reports in the end, are of different runs, some times."""

    places, ready = 1, True

    def __init__(self, times: int) -> None:
        self.left = times
        self.runs = 0
        self._inner = LocalRunner(1)

    def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        self.runs += 1
        found = self._inner.run(plan, order, levels, partitions)
        taken = {run for one in found for run in Report.unpack(one).took}
        if not taken or not self.left:
            return found
        self.left -= 1
        reports = [Report.unpack(one) for one in found]
        for one in reports:
            one.run = "of another run" if one.run in taken else one.run
        return [one.pack() for one in reports]

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        return self._inner.run_merges(shares)

    def stop_merges(self) -> None:
        self._inner.stop_merges()


def test_what_does_not_go_together_is_run_again(tmp_path: Path) -> None:
    runner = Mixing(times=away.MOST_RUNS - 1)
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        db.insert("t", [(1, 1), (2, 1), (3, 5)])
        assert runner.runs == away.MOST_RUNS
        found = db.query("SELECT s, n FROM w ORDER BY s").to_pylist()
        assert found == [{"s": 1, "n": 2}, {"s": 5, "n": 1}]


def test_an_epoch_that_never_goes_together_changes_nothing(tmp_path: Path) -> None:
    runner = Mixing(times=away.MOST_RUNS)
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        with pytest.raises(hw.UserError, match="HW479"):
            db.insert("t", [(1, 1)])
        assert db.query("SELECT * FROM t").num_rows == 0
        db.insert("t", [(1, 2)])
        assert db.query("SELECT s, n FROM w").to_pylist() == [{"s": 2, "n": 1}]


def test_a_lost_report_is_noticed(tmp_path: Path) -> None:
    class Losing(LocalRunner):
        lost = 0

        def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
            found = super().run(plan, order, levels, partitions)
            self.lost += 1
            return found if self.lost > 1 else found[1:]

    runner = Losing(1)
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        db.insert("t", [(one, one) for one in range(8)])
        assert runner.lost == 2
        assert db.query("SELECT * FROM w").num_rows == 8


def test_what_dead_tasks_leave_is_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the epochs, once it is old; at once when the warehouse is opened."""
    runner = LocalRunner(1)
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        db.insert("t", [(1, 1)])
        there = next((tmp_path / "w" / "away" / "segments").rglob("*.parquet"))
        old, new = there.with_name("old.parquet"), there.with_name("new.parquet")
        for one in (old, new):
            one.write_bytes(b"")
        past = time.time() - 2 * spent_files.SWEEP_SECONDS
        os.utime(old, (past, past))
        for one in there.parent.iterdir():  # what counts is no younger
            if one != new:
                os.utime(one, (past, past))
        db.insert("t", [(1, 1)])
        assert old.exists()
        monkeypatch.setattr(time, "monotonic", partial(_later, time.monotonic))
        db.insert("t", [(1, 1)])
        assert (old.exists(), new.exists(), there.exists()) == (False, True, True)
        monkeypatch.undo()
        assert db.query("SELECT s FROM v").to_pylist() == [{"s": 3}]
    with opened(tmp_path / "w", runner) as db:
        assert leftovers(db) == []
        assert db.query("SELECT s FROM v").to_pylist() == [{"s": 3}]


def _later(clock: object) -> float:
    return clock() + spent_files.SWEEP_SECONDS + 1  # type: ignore[operator,no-any-return]


def test_workers_remove_what_killed_ones_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = Worker()
    dead = tmp_path / "headwater-task-dead"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "spilt").write_bytes(b"much")
    second = Worker()
    assert not dead.exists()
    assert Path(first.folder).exists()
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x\nModuleNotFoundError: No module named 'headwater'\ny", "no module headwater"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has ...", "another version"),
        ('java.io.IOException: Cannot run program "python7": error=2', "no program python7"),
    ],
)
def test_workers_that_cannot_work_are_told_from_those_that_died(text: str, told: str) -> None:
    assert told in str(_missing(text))
    assert _missing("Python worker exited unexpectedly (crashed)") is None


THREE_JOINED = """
    CREATE TABLE customer (ck INT, name STRING);
    CREATE TABLE orders (ok INT, ck INT);
    CREATE TABLE line (ok INT, n INT);
    CREATE VIEW v STRATEGY 'tree' AS SELECT c.ck, sum(l.n) AS n FROM customer c, orders o, line l
    WHERE c.ck = o.ck AND o.ok = l.ok GROUP BY c.ck
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_worker_has_appended_itself_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Also if another task has written it; but not if another worker did what counts."""
    looked: list[str] = []
    kept: set[str] = set()
    plain, run = room._Task._look_over, room._Task.run

    def look_over(self: room._Task, connection: object, segments: Sequence[Segment]) -> None:
        looked.extend(one.path.split("/segments/")[1].split("/")[0] for one in segments)
        plain(self, connection, segments)  # type: ignore[arg-type]

    def noting(self: room._Task, one: RoomPlan) -> Iterator[Parcel]:
        copies = {store.relation: store.copy for store in one.stores}
        kept.update(copies[step.relation] for step in one.steps if step.append and step.segment is None)
        return run(self, one)

    monkeypatch.setattr(room._Task, "_look_over", look_over)
    monkeypatch.setattr(room._Task, "run", noting)
    runner = LocalRunner(workers, 3)
    with opened(tmp_path / "w", runner) as db, hw.Database() as home:
        for one in (db, home):
            one.execute(THREE_JOINED)
        for number in range(6):
            looked.clear()
            for one in (db, home):
                with one.epoch() as epoch:
                    epoch.insert("customer", [(number, "x"), (number + 100, "y")])
                    epoch.insert("orders", [(number * 2, number), (number * 2 + 1, number // 2)])
                    epoch.insert("line", [(i, number + i) for i in range(number * 2 + 2)])
            if workers == 1:
                assert kept
                assert not kept & set(looked)
            query = "SELECT * FROM v ORDER BY ck"
            assert db.query(query).to_pylist() == home.query(query).to_pylist()
    runner.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_folder_that_was_put_back(tmp_path: Path, seed: int) -> None:
    """What happened since is forgotten, also by workers that took part: other epochs have those numbers now."""
    runner = LocalRunner(2, seed)
    with hw.Database() as home:
        with opened(tmp_path / "w", runner) as db:
            for one in (db, home):
                one.execute(TWO_LEVELS)
                one.insert("t", [(key, 1) for key in range(6)])
        shutil.copytree(tmp_path / "w", tmp_path / "copy")
        with opened(tmp_path / "w", runner) as db:
            for number in range(4):
                db.insert("t", [(key, 1000 + number) for key in range(6)])
        shutil.rmtree(tmp_path / "w")
        (tmp_path / "copy").rename(tmp_path / "w")
        with opened(tmp_path / "w", runner) as db:
            for number in range(6):
                for one in (db, home):
                    one.insert("t", [(key, number) for key in range(6)])
                for view in ("v", "w"):
                    found, wanted = (
                        sorted(one.query(f"SELECT * FROM {view}").to_pylist(), key=str) for one in (db, home)
                    )
                    assert found == wanted
    runner.close()
