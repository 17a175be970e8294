"""A thousand small epochs in a row: does one cost the same at the end as at the beginning?

| scenario | what happens |
|---|---|
| sums | the pipeline on Spark: a file of JSON rows an epoch, a stream without RETAIN, sums by key |
| join | the pipeline on Spark: the same files, a stream that is retained, joined with a table |
| inline | the same rows and sums through the Python API, without Spark, and ten times as many epochs |

A scenario runs in a process of its own, so that the memory of one is not that of another.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.disk import java_below, resident, usage
from benchmarks.following import Following

ROWS = 100
KEYS = 1_000
GROUPS = 20
#: Epochs of each scenario. A row of figures is made of a tenth of them.
EPOCHS = {"sums": 1_000, "join": 1_000, "inline": 10_000}
WARM_UP = 10
MIB = 2**20

STREAM = "CREATE STREAM event (k INT NOT NULL, v BIGINT)"
SUMS = "CREATE VIEW totals AS SELECT k, SUM(v) AS v, COUNT(*) AS n FROM event GROUP BY k"
TABLE = "CREATE TABLE item (k INT PRIMARY KEY, g INT NOT NULL)"
JOIN = (
    "CREATE VIEW totals AS SELECT i.g AS k, SUM(e.v) AS v, COUNT(*) AS n "
    "FROM event e JOIN item i ON e.k = i.k GROUP BY i.g"
)


class Workload:
    """Seeded rows, and what their sums must be."""

    def __init__(self, groups: int, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._groups = groups
        self._sums = np.zeros(groups, dtype=np.int64)
        self._counts = np.zeros(groups, dtype=np.int64)

    def batch(self) -> pa.Table:
        keys = self._random.integers(0, KEYS, ROWS).astype(np.int32)
        values = self._random.integers(0, 1_000_000, ROWS)
        np.add.at(self._sums, keys % self._groups, values)
        np.add.at(self._counts, keys % self._groups, 1)
        return pa.table({"k": keys, "v": values})

    def expected(self) -> list[tuple[int, int, int]]:
        rows = zip(range(self._groups), self._sums.tolist(), self._counts.tolist(), strict=True)
        return [row for row in rows if row[2]]


class Inline:
    """Epochs through the Python API."""

    def __init__(self, folder: Path) -> None:
        self.workload = Workload(KEYS)
        self.warehouse = folder / "warehouse"
        self._db = hw.connect(self.warehouse)
        self._db.execute(f"{STREAM}; {SUMS}")

    def prepare(self) -> None:
        self._batch = self.workload.batch()

    def apply(self) -> None:
        self._db.insert("event", self._batch)

    def handed_over(self) -> float | None:
        return None

    def rows(self) -> list[tuple[int, ...]]:
        return _rows(self._db.query("SELECT k, v, n FROM totals ORDER BY k"))

    def close(self) -> None:
        self._db.close()


class Driver:
    """Epochs through the pipeline on Spark."""

    def __init__(self, folder: Path, join: bool) -> None:
        self.workload = Workload(GROUPS if join else KEYS)
        self.warehouse, self._arrivals = folder / "warehouse", folder / "arrivals"
        self._arrivals.mkdir()
        db = hw.connect(self.warehouse, placement="driver")
        assert isinstance(db, hw.Database)
        self._db, self._number = db, 0
        retain = " RETAIN ALL" if join else ""
        db.execute(f"{STREAM}{retain} FROM json '{self._arrivals}'")
        if join:
            db.execute(TABLE)
            db.insert("item", [(k, k % GROUPS) for k in range(KEYS)])
        db.execute(JOIN if join else SUMS)
        self._following = Following(db)

    def prepare(self) -> None:
        """Write the file where Spark does not look."""
        self._number += 1
        lines = (json.dumps(row) + "\n" for row in self.workload.batch().to_pylist())
        self._hidden = self._arrivals / f".{self._number}.json"
        self._hidden.write_text("".join(lines))

    def apply(self) -> None:
        target = self._arrivals / f"{self._number}.json"
        self._following.take(ROWS, lambda: self._hidden.rename(target))

    def handed_over(self) -> float | None:
        """Seconds of the last epoch, from the moment Spark handed it over."""
        last = self._following.last
        return last.seconds if last is not None else None

    def rows(self) -> list[tuple[int, ...]]:
        return _rows(self._db.query("SELECT k, v, n FROM totals ORDER BY k"))

    def close(self) -> None:
        self._following.close()
        self._db.close()


def _rows(table: pa.Table) -> list[tuple[int, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@dataclass
class Times:
    """Seconds of each epoch: all, and those before Spark handed the rows over."""

    all: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)


def scenario(name: str, folder: Path, epochs: int) -> Iterator[dict[str, object]]:
    """Run one scenario in this process; yields one row of figures per tenth."""
    system: Inline | Driver = Inline(folder) if name == "inline" else Driver(folder, name == "join")
    try:
        times, share = Times(), max(1, epochs // 10)
        for number in range(-WARM_UP + 1, epochs + 1):
            system.prepare()
            began = time.perf_counter()
            system.apply()
            spent = time.perf_counter() - began
            if number <= 0:
                continue
            times.all.append(spent)
            if (after := system.handed_over()) is not None:
                times.before.append(spent - after)
            if number % share == 0:
                yield _figures(name, number, times, system.warehouse)
                times = Times()
        if system.rows() != system.workload.expected():
            raise AssertionError(f"{name}: the view is not the sum of what came")
    finally:
        system.close()


def _figures(name: str, number: int, times: Times, warehouse: Path) -> dict[str, object]:
    ours, spark = usage(warehouse, without=("spark",)), usage(warehouse / "spark")
    java = java_below()
    return {
        "scenario": name,
        "epochs": number,
        "p50 ms": statistics.median(times.all) * 1000,
        "worst ms": max(times.all) * 1000,
        "before hand-over p50 ms": statistics.median(times.before) * 1000 if times.before else None,
        "files": ours.files,
        "KiB": ours.bytes // 1024,
        "Spark files": spark.files,
        "Spark KiB": spark.bytes // 1024,
        "Python MiB": resident() // MIB,
        "JVM MiB": resident(java) // MIB if java is not None else None,
    }


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure all scenarios, each in a process of its own."""
    for name, epochs in EPOCHS.items():
        report(f"{name}: {epochs:,} epochs of {ROWS} rows")
        command = [sys.executable, "-m", "benchmarks.epochs", name, str(epochs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                yield json.loads(line)
        if child.returncode:
            raise RuntimeError(f"the scenario {name} failed")


def main(name: str, epochs: int) -> None:
    """Run a scenario; one JSON object a line."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        for row in scenario(name, folder, epochs):
            print(json.dumps(row), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
