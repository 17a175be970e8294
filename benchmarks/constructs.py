"""Every construct of SQL over a million groups: an epoch that touches one, beside evaluating the view anew.

Table `a` has four million rows in a million groups; `b` has as many, and every second key of `a`. An epoch replaces a
row of `a` (and, where the view is about two tables, one of `b`) by another of the same group. `refresh` is Headwater's
time to evaluate the view anew and compare it with what it holds; `recompute` is DuckDB's time for the view's query over
plain tables of the same rows, into a temporary table.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from tests.equivalence.references import transpiled

import headwater as hw

ROWS = 4_000_000
GROUPS = 1_000_000
EPOCHS = 7
WARM_UP = 2
RECOMPUTED = 3
#: What an epoch is to cost at most, in times of the evaluation.
GOAL = 1 / 20

TABLES = """
    CREATE TABLE a (k BIGINT NOT NULL, g BIGINT NOT NULL, v BIGINT NOT NULL, n BIGINT);
    CREATE TABLE b (k BIGINT NOT NULL, g BIGINT NOT NULL, v BIGINT NOT NULL, n BIGINT);
"""
VIEWS: dict[str, str] = {
    "sum": "SELECT g, SUM(v) AS s, COUNT(*) AS c FROM a GROUP BY g",
    "min, max": "SELECT g, MIN(v) AS low, MAX(v) AS high FROM a GROUP BY g",
    "count distinct": "SELECT g, COUNT(DISTINCT v) AS c FROM a GROUP BY g",
    "stddev": "SELECT g, STDDEV_SAMP(v) AS s FROM a GROUP BY g",
    "median": "SELECT g, MEDIAN(v) AS m FROM a GROUP BY g",
    "collect_list": "SELECT g, COLLECT_LIST(v) AS c FROM a GROUP BY g",
    "distinct": "SELECT DISTINCT g, v FROM a",
    "union": "SELECT k FROM a UNION SELECT k FROM b",
    "union all": "SELECT k FROM a UNION ALL SELECT k FROM b",
    "intersect": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "intersect all": "SELECT k FROM a INTERSECT ALL SELECT k FROM b",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "except all": "SELECT k FROM a EXCEPT ALL SELECT k FROM b",
    "inner join": "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k",
    "left join": "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k",
    "right join": "SELECT b.k, a.v, b.v AS w FROM a RIGHT JOIN b ON a.k = b.k",
    "full join": "SELECT a.k, b.k AS l, a.v, b.v AS w FROM a FULL JOIN b ON a.k = b.k",
    "semi join": "SELECT a.k, a.v FROM a LEFT SEMI JOIN b ON a.k = b.k",
    "anti join": "SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "in": "SELECT k, v FROM a WHERE k IN (SELECT k FROM b)",
    "not in": "SELECT k, v FROM a WHERE k NOT IN (SELECT k FROM b)",
    "exists": "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 10)",
    "not exists": "SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 10)",
    "scalar subquery": "SELECT k, (SELECT SUM(b.v) FROM b WHERE b.g = a.g) AS s FROM a",
    "any": "SELECT k, v FROM a WHERE v > ANY (SELECT b.v FROM b WHERE b.k = a.k)",
    "all": "SELECT k, v FROM a WHERE v > ALL (SELECT b.v FROM b WHERE b.k = a.k)",
    "having with subquery": "SELECT g, SUM(v) AS s FROM a GROUP BY g HAVING SUM(v) > (SELECT 4 * AVG(v) FROM b)",
    "rollup": "SELECT g % 100 AS h, g, SUM(v) AS s FROM a GROUP BY ROLLUP (g % 100, g)",
    "top-k per group": "SELECT g, k, v FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY g ORDER BY v DESC, k) <= 2",
    "global top-k": "SELECT k, v FROM a ORDER BY v DESC, k LIMIT 10",
    "window sum": "SELECT k, SUM(v) OVER (PARTITION BY g ORDER BY k) AS s FROM a",
    "window rank": "SELECT k, RANK() OVER (PARTITION BY g ORDER BY v) AS r FROM a",
    "window lag": "SELECT k, LAG(v) OVER (PARTITION BY g ORDER BY k) AS l FROM a",
}


def _table(seed: int, step: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    keys = np.arange(ROWS) * step
    nulls = rng.random(ROWS) < 0.01
    small = pa.array(rng.integers(0, 1000, ROWS), mask=nulls)
    return pa.table({"k": keys, "g": keys % GROUPS, "v": rng.integers(0, 1_000_000, ROWS), "n": small})


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per construct."""
    rows = {"a": _table(1, 1), "b": _table(2, 2)}
    plain = duckdb.connect()
    for name, table in rows.items():
        plain.register("given", table)
        plain.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    with hw.connect(":memory:") as db:
        db.execute(TABLES)
        for name, table in rows.items():
            db.insert(name, table)
        world = _World(db, plain, rows)
        for construct, query in VIEWS.items():
            report(construct)
            yield {"construct": construct, **_measure(world, construct, query)}
    plain.close()


class _World:
    """The same rows in Headwater and in a plain DuckDB, and epochs of one row each."""

    def __init__(self, db: Any, plain: duckdb.DuckDBPyConnection, rows: dict[str, pa.Table]) -> None:
        self.db, self.plain = db, plain
        self._held: dict[str, dict[int, tuple[Any, ...]]] = {name: {} for name in rows}
        self._rows = rows
        self._number = 0

    def epoch(self, tables: list[str]) -> float:
        """Replace a row of each table; the seconds it took Headwater."""
        self._number += 1
        position = 1000 * self._number % ROWS
        changes = {name: self._change(name, position) for name in tables}
        began = time.perf_counter()
        with self.db.epoch() as epoch:
            for name, (old, new) in changes.items():
                epoch.delete(name, [old])
                epoch.insert(name, [new])
        seconds = time.perf_counter() - began
        for name, (old, new) in changes.items():
            self.plain.execute(f"UPDATE {name} SET v = ? WHERE k = ?", [new[2], old[0]])
        return seconds

    def _change(self, name: str, position: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        old = self._held[name].get(position) or tuple(self._rows[name].slice(position, 1).to_pylist()[0].values())
        new = (old[0], old[1], (old[2] + 1237 * self._number) % 1_000_000, old[3])
        self._held[name][position] = new
        return old, new


def _measure(world: _World, construct: str, query: str) -> dict[str, object]:
    began = time.perf_counter()
    world.db.execute(f"CREATE VIEW view AS {query}")
    created = time.perf_counter() - began
    program = world.db.find("view").program
    tables = sorted(program.inputs)
    seconds = [world.epoch(tables) for _ in range(WARM_UP + EPOCHS)][WARM_UP:]
    text = transpiled(query).sql("duckdb")
    anew = f"CREATE OR REPLACE TEMP TABLE answer AS {text}"
    whole = [_seconds(lambda: world.plain.execute(anew)) for _ in range(RECOMPUTED)]
    refresh = _seconds(lambda: world.db.execute("REFRESH VIEW view"))
    _check(world, construct)
    world.db.execute("DROP VIEW view")
    epoch, recompute = statistics.median(seconds), statistics.median(whole)
    return {
        "maps": len(program.maps),
        "statements": len(program.statements),
        "create ms": created * 1000,
        "epoch p50 ms": epoch * 1000,
        "refresh ms": refresh * 1000,
        "recompute ms": recompute * 1000,
        "to refresh": _ratio(epoch, refresh),
        "to recompute": _ratio(epoch, recompute),
        "goal": "met" if epoch <= GOAL * refresh else "missed",
    }


def _ratio(epoch: float, whole: float) -> str:
    return f"1/{whole / epoch:.1f}" if whole > epoch else f"{epoch / whole:.1f}"


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _check(world: _World, construct: str) -> None:
    """Headwater and DuckDB agree on how many rows there are; that they are the right ones is for tests."""
    [[held]] = world.db.query("SELECT COUNT(*) AS n FROM view").to_pydict().values()
    found = world.plain.execute("SELECT count(*) FROM answer").fetchone()
    if found is None or held != found[0]:
        raise AssertionError(f"{construct}: {held} rows, and DuckDB has {found}")
