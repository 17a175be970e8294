"""A pipeline that is stopped or starts anew while a micro-batch is under way: nothing is lost, doubled or raised."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.engine.engine import Engine
from headwater.spark.batches import take_apart
from headwater.spark.pipeline import Pipeline
from tests.spark.support import MEASURED, VIEWS, Following, bag, check, drain, measured, opened, put, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

PLACES = ["take_apart", "Engine.run"]


class Slowed:
    """A function that takes a second longer, and tells when it has begun."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.begun = threading.Event()

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.begun.set()
        time.sleep(1.0)
        return self._function(*args, **named)


def slow_down(patch: pytest.MonkeyPatch, place: str) -> threading.Event:
    """Slow down a part of a batch; set when it is reached."""
    if place == "take_apart":
        slowed = Slowed(take_apart)
        patch.setattr("headwater.spark.intake.take_apart", slowed)
    else:
        slowed = Slowed(Engine.run)
        patch.setattr(Engine, "run", lambda *args, **named: slowed(*args, **named))
    return slowed.begun


def nothing_new(db: hw.Database) -> bool:
    """Whether all was taken in. A batch that was stopped between our commit and Spark's note of it is skipped."""
    return all(one.epoch is None for one in drain(db))


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("place", PLACES)
def test_stopped_in_a_batch(tmp_path: Path, inbox: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    records = measured(0, 40)
    with opened(tmp_path / "w") as db:
        db.execute(MEASURED.format(options="", folder=inbox) + ";" + VIEWS)
        with monkeypatch.context() as patch:
            begun = slow_down(patch, place)
            with Following(db):
                put(inbox, "a.json", records[:20])
                assert begun.wait(60)
        check(db, records[:20])  # the epoch that was under way is finished
        put(inbox, "b.json", records[20:])
        drain(db)
        check(db, records)


@pytest.mark.parametrize("place", PLACES)
def test_a_stream_made_in_a_batch(tmp_path: Path, inbox: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    records, more = measured(0, 40), tmp_path / "more"
    put(more, "a.json", [{"x": 1}, {"x": 2}])
    with opened(tmp_path / "w") as db:
        db.execute(MEASURED.format(options="", folder=inbox) + ";" + VIEWS)
        with monkeypatch.context() as patch:
            begun = slow_down(patch, place)
            with Following(db) as following:
                put(inbox, "a.json", records[:20])
                assert begun.wait(60)
                db.execute(f"CREATE STREAM q (x INT) RETAIN ALL FROM json '{more}'")
                put(inbox, "b.json", records[20:])
                wait_until(lambda: bag(db, "SELECT x FROM q").total() == 2 and following.is_running())
                wait_until(lambda: bag(db, "SELECT sum(n) AS n FROM by_source") == {(40,): 1})
        check(db, records)
        assert nothing_new(db)
        check(db, records)
        assert bag(db, "SELECT x FROM q") == {(1,): 1, (2,): 1}


def test_a_view_made_in_a_batch_needs_more(tmp_path: Path, inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch was read without a column that the view uses; it is read again, and taken once."""

    def arrive(name: str, first: int) -> None:
        numbers = range(first, first + 10)
        pq.write_table(pa.table({"a": list(numbers), "b": [str(n) for n in numbers]}), inbox / f".{name}")
        (inbox / f".{name}").rename(inbox / name)

    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (a BIGINT, b STRING) FROM parquet '{inbox}'")
        db.execute("CREATE VIEW sums AS SELECT count(*) AS n, sum(a) AS a FROM s")
        with monkeypatch.context() as patch:
            begun = slow_down(patch, "take_apart")
            with Following(db):
                arrive("1.parquet", 0)
                assert begun.wait(60)
                db.execute("CREATE VIEW texts AS SELECT b FROM s")
                arrive("2.parquet", 10)
                wait_until(lambda: bag(db, "SELECT n, a FROM sums") == {(20, sum(range(20))): 1})
        assert bag(db, "SELECT b FROM texts") == {(str(n),): 1 for n in range(20)}
        assert nothing_new(db)


@pytest.mark.slow
def test_stopped_at_any_moment(tmp_path: Path, inbox: Path) -> None:
    rng, records = random.Random(3), measured(0, 120)
    with opened(tmp_path / "w") as db:
        db.execute(MEASURED.format(options="", folder=inbox) + ";" + VIEWS)
        for n in range(6):
            with Following(db):
                time.sleep(rng.uniform(0.0, 1.5))
                put(inbox, f"{n}.json", records[20 * n : 20 * n + 20])
                time.sleep(rng.uniform(0.0, 0.6))
        drain(db)
        check(db, records)


def test_stopped_before_it_runs(tmp_path: Path, inbox: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(MEASURED.format(options="", folder=inbox))
        pipeline = Pipeline(db)
        pipeline.stop()
        pipeline.run()
        assert db.status()["epoch"] == 0


def test_only_one_runs_at_a_time(tmp_path: Path, inbox: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute(MEASURED.format(options="", folder=inbox) + ";" + VIEWS)
        with Following(db) as following:
            following.process_all()
            with pytest.raises(hw.UserError) as caught:
                Pipeline(db).run(once=True)
            assert caught.value.code == "HW476"
            put(inbox, "a.json", measured(0, 20))
            following.process_all()
        check(db, measured(0, 20))
