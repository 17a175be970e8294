"""A window by the clock: what an epoch costs in which some rows leave it, by how many are in it.

A stream of one row a millisecond, a view of its last so many seconds, and a view with sums over that. In each epoch the
clock advances by as many milliseconds as rows are to leave; no row comes. Beside it, DuckDB evaluates the window anew.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.disk import scratch
from benchmarks.options import option

START = dt.datetime(2024, 1, 1)
WARM_UP = 5


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    rows: tuple[int, ...] = option((50_000, 500_000, 5_000_000), "rows in the window")
    leaving: tuple[int, ...] = option((10, 1_000), "rows that leave in an epoch")
    epochs: int = option(40, "epochs of each kind")


def run(report: Callable[[str], None], options: Options) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per size of the window and number of rows that leave."""
    for rows in options.rows:
        report(f"a window of {rows:,} rows")
        with scratch() as folder:
            window = Window(folder / "warehouse", rows)
            try:
                for leaving in options.leaving:
                    yield window.measure(leaving, options.epochs)
            finally:
                window.db.close()


class Window:
    """A warehouse with a full window."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._rows = rows
        self._now = START + dt.timedelta(milliseconds=rows - 1)
        db = hw.connect(str(folder), clock=lambda: self._now)
        assert isinstance(db, hw.Database)
        self.db = db
        db.execute(
            f"""
            CREATE STREAM s (id BIGINT, k INT, x DOUBLE, ts TIMESTAMP);
            CREATE VIEW w AS SELECT id, k, x, ts FROM s
            WHERE now() - INTERVAL {rows} MILLISECONDS < ts AND ts <= now();
            CREATE VIEW sums AS SELECT k, count(*) AS n, sum(id) AS ids FROM w GROUP BY k
            """
        )
        numbers = np.arange(rows)
        columns = {
            "id": numbers,
            "k": (numbers % 100).astype("int32"),
            "x": numbers * 0.5,
            "ts": np.datetime64(START, "us") + numbers.astype("timedelta64[ms]"),
        }
        db.insert("s", pa.table(columns))
        db.consolidator.wait(600)

    def measure(self, leaving: int, epochs: int) -> dict[str, object]:
        seconds: list[float] = []
        for _ in range(WARM_UP + epochs):
            self._now += dt.timedelta(milliseconds=leaving)
            began = time.perf_counter()
            self.db.submit([])
            seconds.append(time.perf_counter() - began)
        left = self._check()
        return {
            "rows": self._rows,
            "leaving": leaving,
            "p50 ms": round(1000 * statistics.median(seconds[WARM_UP:]), 2),
            "worst ms": round(1000 * max(seconds[WARM_UP:]), 2),
            "left": left,
            "recompute ms": round(self._recompute(), 2),
        }

    def _check(self) -> int:
        """The window has what it must have, and so have the sums over it."""
        age = (self._now - START) // dt.timedelta(milliseconds=1) - (self._rows - 1)
        [row] = self.db.query("SELECT count(*) AS n, min(id) AS first FROM w").to_pylist()
        [total] = self.db.query("SELECT sum(n) AS n FROM sums").to_pylist()
        assert row == {"n": self._rows - age, "first": age}, row
        assert total == {"n": self._rows - age}, total
        return self._rows - age

    def _recompute(self) -> float:
        """Milliseconds that DuckDB takes for the sums over the window, from all rows."""
        reader: duckdb.DuckDBPyConnection = self.db.warehouse.reader()
        try:
            query = """SELECT k, sum("#n") AS n, sum(id * "#n") AS ids FROM data."w" GROUP BY k"""
            took: list[float] = []
            for _ in range(3):
                began = time.perf_counter()
                reader.execute(query).fetchall()
                took.append(time.perf_counter() - began)
            return 1000 * statistics.median(took)
        finally:
            reader.close()
