"""Sum and count by key: Headwater's pipeline beside Spark's stateful operators, on the same files in the same run.

| system | what it does |
|---|---|
| driver | Headwater's pipeline on Spark |
| transformWithState, rows | a StatefulProcessor in Python that is given rows |
| transformWithState, pandas | a StatefulProcessor in Python that is given pandas DataFrames |
| Spark aggregate | Spark's own streaming aggregation, in the JVM |

Spark keeps its state in RocksDB and hands over the changed sums as Arrow. The systems run one after the other, and
must agree with the sums of all rows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.functions import sum as sum_of

import headwater as hw
from benchmarks.disk import usage
from benchmarks.following import PATIENCE, Following
from benchmarks.processors import OUTPUT, PandasSums, RowSums
from headwater.spark.session import start_session

KEYS = 10_000
FIRST = 100_000
#: Rows in a batch, with how many batches warm up and how many are measured.
SIZES = {100: (40, 60), 100_000: (3, 6)}
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": STORE,
    # Write what changed instead of a whole snapshot: what small batches want.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
VIEW = "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM event GROUP BY k"

Sums = dict[int, tuple[int, int]]


class Workload:
    """Batches as Parquet files, and what their sums are."""

    def __init__(self, folder: Path, size: int, batches: int) -> None:
        folder.mkdir(parents=True)
        random = np.random.default_rng(1)
        sums, counts = np.zeros(KEYS, dtype=np.int64), np.zeros(KEYS, dtype=np.int64)
        self.files: list[Path] = []
        self.rows: list[int] = []
        for number in range(batches + 1):
            rows = size if number else FIRST  # the first fills the state
            keys, values = random.integers(0, KEYS, rows), random.integers(0, 1_000_000, rows)
            np.add.at(sums, keys, values)
            np.add.at(counts, keys, 1)
            self.files.append(folder / f"{number}.parquet")
            self.rows.append(rows)
            pq.write_table(pa.table({"k": keys, "v": values}), self.files[-1])
        there = np.flatnonzero(counts)
        self.expected: Sums = {int(k): (int(sums[k]), int(counts[k])) for k in there}


class Driver:
    """Headwater."""

    name = "driver"

    def __init__(self, folder: Path) -> None:
        self._folder, self._arrivals = folder, folder / "arrivals"
        self._arrivals.mkdir()
        db = hw.connect(folder / "warehouse", placement="driver")
        assert isinstance(db, hw.Database)
        self._db = db
        db.execute(f"CREATE STREAM event (k BIGINT NOT NULL, v BIGINT) FROM parquet '{self._arrivals}'")
        db.execute(f"CREATE VIEW totals AS {VIEW}")
        self._following = Following(db)

    def apply(self, file: Path, rows: int) -> None:
        self._following.take(rows, lambda: (self._arrivals / file.name).hardlink_to(file))

    def sums(self) -> Sums:
        columns = [column.to_pylist() for column in self._db.query("SELECT k, v, n FROM totals").columns]
        return {k: (v, n) for k, v, n in zip(*columns, strict=True)}

    def state_bytes(self) -> int:
        return usage(self._folder / "warehouse", without=("spark",)).bytes

    def close(self) -> None:
        self._following.close()
        self._db.close()


class Stateful:
    """A streaming query of Spark's with state of its own; every batch hands over the sums that changed."""

    def __init__(self, name: str, keep: Callable[[DataFrame], DataFrame], folder: Path, session: SparkSession) -> None:
        self.name = name
        self._folder, self._arrivals = folder, folder / "arrivals"
        self._arrivals.mkdir()
        self._sums: Sums = {}
        self._arrived, self._expected = 0, 0
        self._changed = threading.Condition()
        rows = session.readStream.name("event").schema("k BIGINT, v BIGINT").parquet(str(self._arrivals))
        writer = keep(rows).writeStream.outputMode("update").foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        self._query = writer.trigger(processingTime="0 seconds").start()

    def _take(self, batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        with self._changed:
            self._arrived += 1
            self._last = table
            self._changed.notify_all()

    def apply(self, file: Path, rows: int) -> None:
        self._expected += 1
        (self._arrivals / file.name).hardlink_to(file)
        began = time.monotonic()
        with self._changed:
            while self._arrived < self._expected:
                self._changed.wait(1.0)
                if not self._query.isActive:
                    raise RuntimeError(f"{self.name} ended: {self._query.exception()}")
                if time.monotonic() - began > PATIENCE:
                    raise TimeoutError(f"{self.name}: no batch came")

    def note(self) -> None:
        """Keep what the last batch handed over; not measured."""
        columns = [self._last.column(name).to_pylist() for name in ("k", "v", "n")]
        self._sums |= {k: (v, n) for k, v, n in zip(*columns, strict=True)}

    def sums(self) -> Sums:
        return self._sums

    def state_bytes(self) -> int:
        return usage(self._folder / "checkpoint" / "state").bytes

    def close(self) -> None:
        self._query.stop()


def _row_sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithState(RowSums(), OUTPUT, "Update", "None")


def _pandas_sums(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithStateInPandas(PandasSums(), OUTPUT, "Update", "None")


def _aggregate(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").agg(sum_of("v").alias("v"), count(lit(1)).alias("n"))


KEEPERS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "transformWithState, rows": _row_sums,
    "transformWithState, pandas": _pandas_sums,
    "Spark aggregate": _aggregate,
}


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per size and system."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else Spark's workers are the first python3 on the path
    session = start_session(folder / "spark", {"spark.driver.memory": "3g", **SETTINGS})
    try:
        for size, (warm_up, batches) in SIZES.items():
            workload = Workload(folder / f"files-{size}", size, warm_up + batches)
            for name in ("driver", *KEEPERS):
                report(f"{name}: {batches} batches of {size:,} rows")
                place = folder / f"{name}-{size}".replace(" ", "-")
                place.mkdir()
                system: Any = Driver(place) if name == "driver" else Stateful(name, KEEPERS[name], place, session)
                yield _measure(system, workload, size, batches)
                shutil.rmtree(place, ignore_errors=True)
        session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(system: Any, workload: Workload, size: int, batches: int) -> dict[str, object]:
    seconds: list[float] = []
    try:
        for file, rows in zip(workload.files, workload.rows, strict=True):
            began = time.perf_counter()
            system.apply(file, rows)
            seconds.append(time.perf_counter() - began)
            if isinstance(system, Stateful):
                system.note()
        if system.sums() != workload.expected:
            raise AssertionError(f"{system.name}: the sums are wrong")
    finally:
        system.close()
    seconds = seconds[-batches:]
    middle = statistics.median(seconds)
    return {
        "rows": size,
        "system": system.name,
        "p50 ms": middle * 1000,
        "worst ms": max(seconds) * 1000,
        "rows/s": round(size / middle),
        "state KiB": system.state_bytes() // 1024,
    }
