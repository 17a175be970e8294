"""What it costs to keep the changes of a view and to follow them: epochs that replace 10,000 of 200,000 rows.

The same epochs go, one after the other, to three warehouses on disk: one in which nobody follows the view, one in which
its changes are kept (RETAIN CHANGES ALL), and one in which a subscriber follows it in memory and fetches the changes of
each epoch after it, outside of what is measured. Then all kept changes are read, as tables and as dicts.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw

ROWS = 200_000
CHANGED = 10_000
GROUPS = 50_000
EPOCHS = 40
WARM_UP = 5

TABLE = "CREATE TABLE t (k BIGINT PRIMARY KEY, g BIGINT, x BIGINT, s STRING)"
VIEWS = {
    "rows by key": "SELECT k, g, x * 2 AS y, s FROM t",
    "rows without key": "SELECT g, x * 2 AS y, s FROM t",
    "groups": "SELECT g, SUM(x) AS x, COUNT(*) AS n FROM t GROUP BY g",
}
WAYS = {"nobody follows": "", "kept": "RETAIN CHANGES ALL", "followed in memory": ""}


def _rows(rng: np.random.Generator, keys: np.ndarray[Any, Any]) -> pa.Table:
    n = len(keys)
    names = [f"name {key % 1000}" for key in keys]
    return pa.table({"k": keys, "g": rng.integers(0, GROUPS, n), "x": rng.integers(0, 1000, n), "s": names})


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures for each view and way."""
    for name, query in VIEWS.items():
        report(name)
        with contextlib.ExitStack() as stack:
            opened = {way: _opened(stack, option, query) for way, option in WAYS.items()}
            yield from _measure(name, opened)


def _opened(stack: contextlib.ExitStack, option: str, query: str) -> Any:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hw"))
    db = stack.enter_context(hw.connect(folder))
    db.execute(f"{TABLE}; CREATE VIEW v {option} AS {query}")
    db.insert("t", _rows(np.random.default_rng(1), np.arange(ROWS)))
    return db


def _measure(name: str, opened: dict[str, Any]) -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(2)
    seconds: dict[str, list[float]] = {way: [] for way in opened}
    follower = opened["followed in memory"].subscribe("v", from_epoch=2)
    for _ in range(EPOCHS + WARM_UP):
        rows = _rows(rng, rng.choice(ROWS, CHANGED, replace=False))
        for way, db in opened.items():
            began = time.perf_counter()
            with db.epoch() as epoch:
                epoch.upsert("t", rows)
            seconds[way].append(time.perf_counter() - began)
        follower.so_far()
    alone = statistics.median(seconds["nobody follows"][WARM_UP:])
    for way, measured in seconds.items():
        middle = statistics.median(measured[WARM_UP:])
        figures: dict[str, object] = {
            "view": name,
            "way": way,
            "epoch p50 ms": middle * 1000,
            "of alone": middle / alone,
        }
        yield figures | (_read(opened[way]) if way == "kept" else {"changes": "", "tables s": "", "dicts s": ""})


def _read(db: Any) -> dict[str, object]:
    """Read all that is kept since the first fill."""
    began = time.perf_counter()
    changes = sum(table.num_rows for table in db.subscribe("v", from_epoch=2, timeout=0).tables())
    by_table = time.perf_counter() - began
    began = time.perf_counter()
    found = sum(1 for _ in db.subscribe("v", from_epoch=2, timeout=0))
    assert found == changes
    return {"changes": changes, "tables s": by_table, "dicts s": time.perf_counter() - began}
