"""Partitions keep their executors, and tasks run there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.engine.parcels import Parcel
from headwater.spark import exchange
from headwater.spark.exchange import Exchange, unpacked
from headwater.spark.seats import Seats, executors_of
from headwater.spark.stages import workers_like_us


def test_partitions_stay_where_they_are() -> None:
    seats = Seats()
    first = seats.of(("a", "b"), 4)
    assert first == ("a", "b", "a", "b")
    assert seats.of(("b", "a"), 4) == first
    assert seats.of(("a", "b", "c"), 4) == first  # nobody has more than its share
    assert seats.of(("a", "b", "c", "d"), 4) == ("a", "b", "c", "d")


def test_only_partitions_of_an_executor_that_is_gone_move() -> None:
    seats = Seats()
    assert seats.of(("a", "b", "c"), 6) == ("a", "b", "c", "a", "b", "c")
    assert seats.of(("a", "c"), 6) == ("a", "a", "c", "a", "c", "c")
    assert seats.of((), 6) == ()
    assert seats.of(("a", "c"), 2) == ("a", "c")


def test_more_partitions_are_shared_out() -> None:
    seats = Seats()
    assert seats.of(("a", "b"), 1) == ("a",)
    assert seats.of(("a", "b"), 5) == ("a", "b", "a", "b", "a")


@pytest.mark.spark
@pytest.mark.parametrize("most", [exchange.MOST_BYTES, 1])
def test_every_task_is_told_by_every_other(spark: SparkSession, most: int, tmp_path: Path) -> None:
    def begin(nothing: object) -> object:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for to in (0, 2, 2):  # nothing goes to partition 1
            yield Parcel(2, to, 0, "t", b"%d" % context.partitionId(), "run")

    def end(came: object) -> object:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield context.partitionId(), sorted(parcel.data for parcel in unpacked(came))  # type: ignore[arg-type]

    for seats in ((), ("executor_nowhere_7",) * 3):  # who cannot have a seat goes elsewhere
        made = Exchange(spark.sparkContext, 3, seats, most)
        with workers_like_us(spark.sparkContext):
            found = dict(made.then(made.begin(begin), end, str(tmp_path)).collect())  # type: ignore[arg-type]
        once = [b"0", b"1", b"2"]
        assert found == {0: once, 1: [], 2: sorted(once * 2)}
    assert bool(list(tmp_path.iterdir())) is (most == 1)  # through files, if a task sends much
    assert executors_of(spark.sparkContext) == ()  # there is only the driver


_LASTS = """
import gc
from headwater.engine import room, workers
workers.let_it_last()
frozen = gc.get_freeze_count()
assert frozen > 50_000, frozen
kept = [[] for _ in range(1000)]
workers.let_it_last()
assert gc.get_freeze_count() <= frozen, "nothing was loaded since"
import wave
workers.let_it_last()
assert gc.get_freeze_count() > frozen
"""


def test_what_lasts_is_left_alone_by_the_collector() -> None:
    subprocess.run([sys.executable, "-c", _LASTS], check=True)
