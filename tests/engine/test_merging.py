"""Segments are put together beside the epochs: nobody waits for that, and nobody can tell by the rows."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import headwater as hw
from headwater.emit.probes import Path as Way
from headwater.engine import away, copying, faults, merges, merging, room, spent_files
from headwater.engine.engine import Engine
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.merges import Merge, Merged
from headwater.engine.merging import Merger
from headwater.engine.sorted_copies import SortedCopy
from tests.faults.child import leftovers

TWO_LEVELS = """
    CREATE TABLE t (a INT, b INT);
    CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;
    CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s
"""
VIEWS = ("v", "w")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(merges, "STAGGERED", 1)


@contextmanager
def opened(folder: Path, runner: LocalRunner | None = None) -> Iterator[hw.Database]:
    mine = runner or LocalRunner(2, 3)
    with hw.Database(folder, placement="tasks", runner=mine, partitions=2) as db:
        yield db
    mine.close()


def merger_of(db: hw.Database) -> Merger:
    assert db.consolidator.merger is not None
    return db.consolidator.merger


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is put together unless a test says so."""
    monkeypatch.setattr(Merger, "nudge", lambda self: None)


def fill(db: hw.Database, first: int, epochs: int) -> None:
    for number in range(first, first + epochs):
        db.insert("t", [(key, number) for key in range(10)])


def check(db: hw.Database, epochs: int) -> None:
    """The rows are those of a warehouse at home."""
    with hw.Database() as home:
        home.execute(TWO_LEVELS)
        fill(home, 0, epochs)
        for view in VIEWS:
            found, wanted = (sorted(one.query(f"SELECT * FROM {view}").to_pylist(), key=str) for one in (db, home))
            assert found == wanted, view


def counts(db: hw.Database, relation: str | None = None) -> list[int]:
    """How many segments lie beside each other, of one relation or of all."""
    assert db.engine.away is not None
    segments = db.engine.away.segments
    copies = segments.relations if relation is None else segments.copies_of(relation)
    return [len(there) for copy in copies for there in segments.standing[copy].values()]


def strays(db: hw.Database) -> list[str]:
    """Segments that count nowhere, and such as count and are not there."""
    return [path for path in leftovers(db) if path.endswith(".parquet")]


def test_epochs_do_not_put_segments_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("an epoch has done it")

    monkeypatch.setattr(room._Task, "_merge", never)
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        for number in range(10):
            fill(db, number, 1)
            assert db.consolidator.wait(20)
        assert max(counts(db)) <= 3
        check(db, 10)
    with opened(tmp_path / "w") as db:
        assert strays(db) == []
        check(db, 10)
        fill(db, 10, 1)
        check(db, 11)


def test_the_number_of_files_is_bounded_whatever_happens(tmp_path: Path, by_hand: None) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        for number in range(30):
            fill(db, number, 1)
            assert max(counts(db)) <= merges.BEHIND * 3
        assert max(counts(db)) > 3
        check(db, 30)


def test_epochs_go_on_meanwhile(tmp_path: Path, by_hand: None) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        made = merger.put_together(merger.due())
        assert made.pairs
        fill(db, 5, 2)
        assert merger.list(made) == len(made.pairs)
        assert max(counts(db, "v")) == 3  # what was, and two that came
        check(db, 7)
        fill(db, 7, 2)
        check(db, 9)
        assert strays(db) == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER WAREHOUSE SET PARTITIONS 3",
        "REFRESH v",
        "DROP VIEW w; DROP VIEW v; CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a;"
        "CREATE VIEW w AS SELECT s, count(*) AS n FROM v GROUP BY s",
    ],
)
def test_what_came_too_late_is_thrown_away(tmp_path: Path, by_hand: None, statement: str) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        made = merger.put_together([one for one in merger.due() if one.copy.relation == "v"])
        db.execute(statement)
        assert merger.list(made) == 0
        assert made.pairs
        assert not any(Path(new.path).exists() for _, new in made.pairs)
        check(db, 5)
        fill(db, 5, 1)
        check(db, 6)


def test_a_copy_that_is_written_otherwise_now(tmp_path: Path, by_hand: None) -> None:
    """What was added up as it is not any more does not count, even if the files are the same."""
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        made = merger.put_together(merger.due())
        made.pairs = [(_otherwise(merge), new) for merge, new in made.pairs]
        assert merger.list(made) == 0
        assert not any(Path(new.path).exists() for _, new in made.pairs)


def _otherwise(merge: Merge) -> Merge:
    return replace(merge, copy=replace(merge.copy, net=merge.copy.net + " "))


class Slow(LocalRunner):
    """Puts nothing together before somebody says so; whether it was told to give up."""

    def __init__(self) -> None:
        super().__init__(2, 3)
        self.began, self.go, self.stopped = threading.Event(), threading.Event(), threading.Event()

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        self.began.set()
        self.go.wait(30)
        if self.stopped.is_set():
            raise hw.UserError("HW479", "the job was given up")
        return super().run_merges(shares)

    def stop_merges(self) -> None:
        self.stopped.set()
        self.go.set()


def test_nobody_waits_for_the_tasks(tmp_path: Path) -> None:
    runner = Slow()
    with opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        assert runner.began.wait(10)
        fill(db, 5, 3)  # while it is at work
        check(db, 8)
        assert not runner.go.is_set()
        runner.go.set()
        assert db.consolidator.wait(20)
        assert max(counts(db)) <= 4
        check(db, 8)


def test_closing_gives_up_what_is_being_done(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = Slow()
    with caplog.at_level(logging.WARNING), opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        assert runner.began.wait(10)
        began = time.monotonic()
        db.close()
        assert time.monotonic() - began < 10
        assert runner.stopped.is_set()
    assert not caplog.records
    with opened(tmp_path / "w") as db:
        assert strays(db) == []
        check(db, 5)


class Failing(LocalRunner):
    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        raise hw.UserError("HW479", "no executors")


def test_what_fails_is_said_once_and_tried_again(
    tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner = Failing(1)
    with caplog.at_level(logging.WARNING), opened(tmp_path / "w", runner) as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        assert merger.due()
        assert merger.work() == 0
        assert not merger.due()  # not at once
        monkeypatch.setattr(merging, "RETRY_SECONDS", 0.0)
        merger._refused = dict.fromkeys(merger._refused, 0.0)
        assert merger.due()
        assert merger.work() == 0
        assert len(caplog.records) == 1
        assert "no executors" in caplog.text
        fill(db, 5, 2)
        monkeypatch.setattr(Failing, "run_merges", LocalRunner.run_merges)
        assert merger.work() > 0
        assert max(counts(db)) <= 3
        check(db, 7)


@pytest.mark.parametrize("damage", ["gone", "cut", "other rows"])
def test_a_damaged_file_is_not_put_together(
    tmp_path: Path, by_hand: None, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    """Else nobody would notice any more. Epochs do not need it: workers have its rows."""
    with caplog.at_level(logging.WARNING), opened(tmp_path / "w", LocalRunner(1)) as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        one = next(one for one in merger.due() if one.copy.relation == "v")
        path = Path(one.segments[-2].path)
        if damage == "gone":
            path.unlink()
        elif damage == "cut":
            os.truncate(path, path.stat().st_size // 2)
        else:
            path.write_bytes(Path(one.segments[0].path).read_bytes())
        listed = merger.work()
        assert 0 < listed < len(counts(db))
        assert path.name in caplog.text
        assert len(caplog.records) == 1
        assert max(counts(db)) == 5
        fill(db, 5, 1)  # epochs go on


def test_a_file_that_is_not_there_any_more_is_not_listed(tmp_path: Path, by_hand: None) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        made = merger.put_together(merger.due())
        Path(made.pairs[0][1].path).unlink()
        assert merger.list(made) == len(made.pairs) - 1
        check(db, 5)


def test_a_list_that_cannot_be_written(tmp_path: Path, by_hand: None, caplog: pytest.LogCaptureFixture) -> None:
    def fail(point: str) -> None:
        if point == "merge listed":
            raise OSError("no space left on device")

    with caplog.at_level(logging.WARNING), opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        faults.hook = fail
        try:
            assert merger.work() == 0
        finally:
            faults.hook = None
        assert "no space left" in caplog.text
        assert max(counts(db)) == 5
        assert strays(db) == []
        check(db, 5)
        fill(db, 5, 1)
        check(db, 6)


def test_a_list_that_was_written_all_the_same(
    tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong after the commit: what is listed stays."""
    with caplog.at_level(logging.WARNING), opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        plain = away.Away.committed

        def failing(self: away.Away) -> None:
            monkeypatch.setattr(away.Away, "committed", plain)
            raise OSError("a file cannot be removed")

        monkeypatch.setattr(away.Away, "committed", failing)
        assert merger_of(db).work() > 0
        check(db, 5)
        fill(db, 5, 1)
        check(db, 6)
    with opened(tmp_path / "w") as db:
        check(db, 6)


def test_what_is_being_put_together_is_not_swept_up(
    tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger = merger_of(db)
        made = merger.put_together(merger.due())
        past = time.time() - 10_000
        for _, new in made.pairs:
            os.utime(new.path, (past, past))
        monkeypatch.setattr(spent_files, "SWEEP_SECONDS", -1.0)
        fill(db, 5, 1)
        assert merger.list(made) == len(made.pairs)
        check(db, 6)


def test_nothing_is_started_only_for_this(tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        assert merger_of(db).due()
        monkeypatch.setattr(LocalRunner, "ready", False)
        assert not merger_of(db).due()


def test_readers_keep_the_files_that_they_read(tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 5)
        merger, lying = merger_of(db), db.engine.away
        assert lying is not None
        paths = [one.path for merge in merger.due() for one in merge.segments]
        lying.files.hold(paths[:1])
        assert merger.work() > 0
        assert all(Path(path).exists() for path in paths)
        monkeypatch.setattr(spent_files, "GRACE_SECONDS", -1.0)
        fill(db, 5, 1)
        assert [Path(path).exists() for path in paths] == [True] + [False] * (len(paths) - 1)
        lying.files.release(paths[:1])
        fill(db, 6, 1)
        assert not Path(paths[0]).exists()
        check(db, 7)


def test_rows_that_come_to_lie_in_one_entry_are_counted(tmp_path: Path, by_hand: None) -> None:
    """Who has seen that all rows are stored once each must look again when they are added up."""
    with opened(tmp_path / "w") as db:
        db.execute("CREATE TABLE t (a INT, b INT); CREATE VIEW rows AS SELECT a FROM t WHERE b >= 0")
        fill(db, 0, 5)
        queries = [f"SELECT a, count(*) AS n FROM rows WHERE a >= {least} GROUP BY a" for least in (0, 3)]
        for query in queries:
            assert {row["n"] for row in db.query(query).to_pylist()} == {5}
        merger = merger_of(db)
        assert merger.list(merger.put_together(merger.due())) > 0
        for query in [*queries, queries[0].replace(">=", ">")]:
            assert {row["n"] for row in db.query(query).to_pylist()} == {5}


@pytest.mark.parametrize("meanwhile", [False, True])
def test_indexes_of_views_that_lie_away(
    tmp_path: Path, by_hand: None, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    """A copy that has some of the rows that are put together, and not all, is of no use any more."""
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS + "; CREATE INDEX i ON v (a)")
        assert db.consolidator.wait(10)
        db.engine.nudge = lambda: None
        db.engine.access.copies.clear()
        fill(db, 0, 3)
        [way] = db.engine.access.pinned
        plain = copying._continued

        def late(engine: Engine, path: Way, copy: SortedCopy | None) -> SortedCopy | None:
            made = plain(engine, path, copy)
            if meanwhile:
                fill(db, 3, 2)
                assert merger_of(db).work() > 0
            return made

        monkeypatch.setattr(copying, "_continued", late)
        copying.bring_up_to_date(db.engine, way)
        if not meanwhile:
            assert way in db.engine.access.copies
            fill(db, 3, 2)
            assert merger_of(db).work() > 0
        assert way not in db.engine.access.copies
        assert [db.get("v", {"a": key}) for key in range(10)] == [{"a": key, "s": 10} for key in range(10)]


def test_indexes_that_have_all_of_it_stay(tmp_path: Path, by_hand: None) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS + "; CREATE INDEX i ON v (a)")
        assert db.consolidator.wait(10)
        db.engine.nudge = lambda: None
        fill(db, 0, 5)
        [way] = db.engine.access.pinned
        copying.bring_up_to_date(db.engine, way)
        fill(db, 5, 1)
        merger = merger_of(db)
        [before] = db.engine.access.copies.values()
        older = [replace(one, segments=one.segments[:-1]) for one in merger.due() if one.copy.relation == "v"]
        assert merger.list(merger.put_together(older)) == 2
        assert list(db.engine.access.copies.values()) == [before]
        assert [db.get("v", {"a": key}) for key in range(10)] == [{"a": key, "s": 15} for key in range(10)]


def test_an_epoch_that_is_interrupted_when_it_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is listed counts, whatever was thought, and its files stay."""
    with opened(tmp_path / "w") as db:
        db.execute(TWO_LEVELS)
        fill(db, 0, 1)
        plain = away.Away.committed

        def interrupted(self: away.Away) -> None:
            monkeypatch.setattr(away.Away, "committed", plain)
            raise KeyboardInterrupt

        monkeypatch.setattr(away.Away, "committed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fill(db, 1, 1)
        check(db, 2)
        fill(db, 2, 1)
        check(db, 3)
        assert strays(db) == []
