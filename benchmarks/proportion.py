"""Whether an epoch's time follows its changes and not what is stored: small epochs over large maps.

| view | what is stored |
|---|---|
| sums | sum and count by key, over a stream that is not retained: as many groups as told |
| join | two tables of as many rows as told, joined by a key and added up in a tenth as many groups |

Half of an epoch's changes concern keys that are there, half bring new ones. `first ms` is the median of the first four
epochs of a size, before the background has made sorted copies of what they look into, or while it does. `recompute ms`
is DuckDB's time for the same query over plain tables in memory, after all epochs of a size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.disk import scratch, usage
from benchmarks.options import option

EPOCHS = 20
#: Epochs before the background has made its copies, and others before anything is measured.
SCANNED, WARM_UP = 4, 4
#: Rows are loaded in parts of this many.
PART = 5_000_000

SUMS = """
    CREATE STREAM t (k BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE VIEW answer AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY k;
"""
JOIN = """
    CREATE TABLE a (k BIGINT NOT NULL, g BIGINT NOT NULL, v BIGINT NOT NULL);
    CREATE TABLE b (k BIGINT NOT NULL, w BIGINT NOT NULL);
    CREATE VIEW answer AS SELECT g, SUM(v * w) AS total, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY g;
"""
Batch = dict[str, pa.Table]


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    rows: tuple[int, ...] = option((200_000, 2_000_000, 20_000_000), "rows of the largest map or tables")
    changes: tuple[int, ...] = option((10, 1_000), "changes in an epoch")
    views: tuple[str, ...] = option(("sums", "join"), "views")


class Keys:
    """Rows with the keys that come next, and rows with keys that are there."""

    def __init__(self, view: str, rows: int) -> None:
        self._view, self._rows = view, rows
        self._rng = np.random.default_rng(1)

    def load(self) -> Iterator[Batch]:
        for start in range(0, self._rows, PART):
            yield self._batch(np.arange(start, min(self._rows, start + PART)))

    def epoch(self, changes: int) -> Batch:
        """As many rows in all; of two tables half each."""
        rows = changes if self._view == "sums" else changes // 2
        old = self._rng.integers(0, self._rows, rows // 2)
        new = np.arange(self._rows, self._rows + rows - rows // 2)
        self._rows += len(new)
        return self._batch(np.concatenate([old, new]))

    def _batch(self, keys: np.ndarray) -> Batch:
        values = self._rng.integers(0, 1_000, len(keys))
        if self._view == "sums":
            return {"t": pa.table({"k": _scattered(keys), "v": values})}
        a = pa.table({"k": _scattered(keys), "g": _scattered(keys // 10), "v": values})
        return {"a": a, "b": pa.table({"k": _scattered(keys), "w": values})}


def _scattered(numbers: np.ndarray) -> np.ndarray:
    """Another number for each, without order: were keys stored in order, what is looked for would lie in few places."""
    return (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def run(report: Callable[[str], None], options: Options) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per view, rows and size."""
    for view in options.views:
        for rows in options.rows:
            report(f"{view} over {rows:,} rows")
            yield from _measure(view, rows, options.changes)


def _measure(view: str, rows: int, sizes: tuple[int, ...]) -> Iterator[dict[str, object]]:
    keys, plain = Keys(view, rows), duckdb.connect()
    with scratch() as folder, hw.connect(folder / "warehouse") as db:
        assert isinstance(db, hw.Database)
        db.execute(SUMS if view == "sums" else JOIN)
        for batch in keys.load():
            _insert(db, batch)
            _keep(plain, batch)
        for changes in sizes:
            seconds = []
            for number in range(SCANNED + WARM_UP + EPOCHS):
                batch = keys.epoch(changes)
                if number == SCANNED:
                    db.consolidator.wait(120)
                began = time.perf_counter()
                _insert(db, batch)
                seconds.append(time.perf_counter() - began)
                _keep(plain, batch)
            began = time.perf_counter()
            expected = _recomputed(plain, view)
            whole = time.perf_counter() - began
            held = db.query("SELECT COUNT(*) AS rows, SUM(total) AS total, SUM(n) AS n FROM answer").to_pylist()[0]
            assert tuple(held.values()) == expected, f"{view}: {held}, and DuckDB has {expected}"
            yield {
                "view": view,
                "rows": rows,
                "changes": changes,
                "first ms": statistics.median(seconds[:SCANNED]) * 1000,
                "p50 ms": statistics.median(seconds[SCANNED + WARM_UP :]) * 1000,
                "worst ms": max(seconds[SCANNED + WARM_UP :]) * 1000,
                "recompute ms": whole * 1000,
                "state MiB": usage(folder).bytes / 2**20,
            }
    plain.close()


def _insert(db: hw.Database, batch: Mapping[str, pa.Table]) -> None:
    with db.epoch() as epoch:
        for name, table in batch.items():
            epoch.insert(name, table)


def _keep(plain: duckdb.DuckDBPyConnection, batch: Mapping[str, pa.Table]) -> None:
    for name, table in batch.items():
        plain.register("given", table)
        plain.execute(f"CREATE TABLE IF NOT EXISTS {name} AS FROM given LIMIT 0")
        plain.execute(f"INSERT INTO {name} FROM given")


def _recomputed(plain: duckdb.DuckDBPyConnection, view: str) -> tuple[int, ...]:
    query = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM t GROUP BY k"
    if view == "join":
        query = "SELECT g, SUM(v * w) AS total, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY g"
    plain.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {query}")
    [row] = plain.execute("SELECT COUNT(*), SUM(total)::BIGINT, SUM(n)::BIGINT FROM answer").fetchall()
    return tuple(row)
