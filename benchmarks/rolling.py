"""Rolling up: what a query over a day of small parts costs before and after, in a stream and in a view of parts.

A stream with parts of a minute gets a day of rows in the order of time. A view of parts over it has the sums of each
group and minute. Then the stream is told that the next day is over, too: the day is rolled up into parts of an hour.
"""

from __future__ import annotations

import datetime as dt
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.disk import scratch
from benchmarks.options import option

START = dt.datetime(2024, 1, 1)
HOURS = 24
#: How often a query is asked.
TIMES = 9
QUERIES = {
    ("stream", "selective"): "SELECT count(*) AS n, sum(loss) AS loss FROM m WHERE src = 137",
    ("stream", "group by"): "SELECT src, sum(loss) AS loss FROM m GROUP BY src",
    ("view", "selective"): "SELECT sum(n) AS n, sum(loss) AS loss FROM v WHERE src = 137",
    ("view", "group by"): "SELECT src, sum(n) AS n, sum(loss) AS loss FROM v GROUP BY src",
}


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    rows: tuple[int, ...] = option((5_000,), "rows in a part of a minute")
    sources: int = option(2_000, "values by which rows are told apart, and groups of the view")


def run(report: Callable[[str], None], options: Options) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per number of rows in a part and query."""
    for rows in options.rows:
        report(f"a day of parts of {rows:,} rows")
        with scratch() as folder:
            yield from _measure(folder / "warehouse", rows, options.sources, report)


def _measure(folder: Path, rows: int, sources: int, report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    db = hw.connect(str(folder), clock=lambda: START + dt.timedelta(days=3), cache_bytes=0)
    assert isinstance(db, hw.Database)
    try:
        db.execute(
            """
            CREATE STREAM m (ts TIMESTAMP, src INT, dest INT, loss INT) TIMESTAMP BY ts PARTITION LENGTH 60
            RETAIN ALL ROLL UP AFTER INTERVAL 1 DAY INTO 3600;
            CREATE VIEW v AS
            INITIALIZE v[i] AS SELECT src, count(*) AS n, sum(loss) AS loss FROM m[i] GROUP BY src
            UPDATE v[j] AS SELECT src, count(*) AS n, sum(loss) AS loss FROM m[j] GROUP BY src
            PARTITION LENGTH 60 BACKFILL ROLL UP AFTER INTERVAL 1 DAY INTO 3600
            """
        )
        for hour in range(HOURS):
            db.insert("m", _hour(hour, rows, sources))
        _advance(db, 1)
        db.consolidator.wait(600)
        before = {one: _ask(db, query) for one, query in QUERIES.items()}
        report("rolling up")
        began = time.perf_counter()
        _advance(db, 2)
        assert db.consolidator.wait(600)
        took = time.perf_counter() - began
        after = {one: _ask(db, query) for one, query in QUERIES.items()}
        lines = {"stream": _parts(db, "m"), "view": _parts(db, "v")}
    finally:
        db.close()
    for (relation, query), (answer, ms) in before.items():
        then, less = after[relation, query]
        assert then == answer, f"{relation}, {query}: another answer"
        yield {
            "rows": rows * 60 * HOURS,
            "relation": relation,
            "query": query,
            "before ms": round(ms, 2),
            "after ms": round(less, 2),
            "parts": lines[relation],
            "both rolled up in s": round(took, 2),
        }


def _advance(db: hw.Database, days: int) -> None:
    """So many days are over."""
    db.execute(f"ADVANCE STREAM m TO TIMESTAMP '{START + dt.timedelta(days=days)}'")


def _hour(hour: int, rows: int, sources: int) -> pa.Table:
    """The rows of an hour, in the order of time."""
    rng = np.random.default_rng(hour)
    size = rows * 60
    moments = np.datetime64(START, "us") + np.timedelta64(hour, "h")
    columns = {
        "ts": moments + (np.arange(size) * (3_600_000_000 // size)).astype("timedelta64[us]"),
        "src": rng.integers(0, sources, size, dtype=np.int32),
        "dest": rng.integers(0, sources, size, dtype=np.int32),
        "loss": rng.integers(0, 100, size, dtype=np.int32),
    }
    return pa.table(columns)


def _ask(db: hw.Database, query: str) -> tuple[list[tuple[object, ...]], float]:
    """The answer, sorted, and how many milliseconds it takes."""
    took: list[float] = []
    answer = db.query(query)
    for _ in range(TIMES):
        began = time.perf_counter()
        answer = db.query(query)
        took.append(time.perf_counter() - began)
    return sorted(tuple(row.values()) for row in answer.to_pylist()), 1000 * statistics.median(took)


def _parts(db: hw.Database, relation: str) -> int:
    """How many parts there are, larger ones among them."""
    [shown] = db.execute(f"SHOW PARTS {relation}")
    assert shown.table is not None
    return int(shown.table.num_rows)
