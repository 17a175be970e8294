"""Inline epochs on a view that joins and aggregates three relations of a million rows each.

Headwater against a hand-written DuckDB transaction that maintains the same view in the same way (deltas joined with the
stored inputs, added into a table of sums), and against DuckDB evaluating the view anew. All commit durably, to files of
their own on the same disk, and take turns batch by batch, so that whatever the machine does happens to all of them.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import headwater as hw

ROWS = 1_000_000
CITIES = 10_000
#: Changes per epoch, with how many epochs are measured of each size.
SIZES = {10: 60, 1_000: 60, 10_000: 40, 100_000: 16}
#: Of a batch: new customers, new orders, new lines; the rest are lines that go.
SHARES = (0.05, 0.15, 0.70)

SCHEMA = """
CREATE TABLE customer (ck INT PRIMARY KEY, city INT NOT NULL);
CREATE TABLE orders (ok INT PRIMARY KEY, ck INT NOT NULL);
CREATE TABLE line (lk INT PRIMARY KEY, ok INT NOT NULL, price DECIMAL(12,2) NOT NULL, qty INT NOT NULL);
"""
VIEW = """
SELECT c.city, SUM(l.price * l.qty) AS revenue, COUNT(*) AS lines
FROM customer c JOIN orders o ON c.ck = o.ck JOIN line l ON l.ok = o.ok
GROUP BY c.city
"""


@dataclass
class Batch:
    """The changes of one epoch."""

    customers: pa.Table
    orders: pa.Table
    lines: pa.Table
    gone: pa.Table

    @property
    def rows(self) -> int:
        return int(self.customers.num_rows + self.orders.num_rows + self.lines.num_rows + self.gone.num_rows)


class Workload:
    """Seeded rows; remembers which lines are there, so that some can go."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._next = [0, 0, 0]
        self._living: list[pa.Table] = []

    def first(self) -> Batch:
        lines = self._lines(ROWS, ROWS)
        return Batch(self._customers(ROWS), self._orders(ROWS, ROWS), lines, lines.slice(0, 0))

    def batch(self, size: int) -> Batch:
        customers, orders, lines = (max(1, int(size * share)) for share in SHARES)
        gone = max(1, size - customers - orders - lines)
        new_customers = self._customers(customers)
        new_orders = self._orders(orders, self._next[0])
        old = self._take(gone)
        return Batch(new_customers, new_orders, self._lines(lines, self._next[1]), old)

    def _ids(self, which: int, n: int) -> np.ndarray:
        first = self._next[which]
        self._next[which] += n
        return np.arange(first, first + n, dtype=np.int32)

    def _customers(self, n: int) -> pa.Table:
        ids = self._ids(0, n)
        return pa.table({"ck": ids, "city": self._random.integers(0, CITIES, n).astype(np.int32)})

    def _orders(self, n: int, customers: int) -> pa.Table:
        ids = self._ids(1, n)
        return pa.table({"ok": ids, "ck": self._random.integers(0, customers, n).astype(np.int32)})

    def _lines(self, n: int, orders: int) -> pa.Table:
        ids = self._ids(2, n)
        cents = pa.array(self._random.integers(100, 10_000_000, n))
        price = cents.cast(pa.decimal128(38, 0)).cast(pa.decimal128(38, 2))
        table = pa.table(
            {
                "lk": ids,
                "ok": self._random.integers(0, orders, n).astype(np.int32),
                "price": price.cast(pa.decimal128(12, 2), safe=False),
                "qty": self._random.integers(1, 50, n).astype(np.int32),
            }
        )
        self._living.append(table)
        return table

    def _take(self, n: int) -> pa.Table:
        """Lines that are there, oldest first."""
        taken: list[pa.Table] = []
        while n > 0:
            head = self._living[0]
            taken.append(head.slice(0, n))
            if head.num_rows <= n:
                self._living.pop(0)
            else:
                self._living[0] = head.slice(n)
            n -= taken[-1].num_rows
        return pa.concat_tables(taken).combine_chunks()


class Headwater:
    """The system under test."""

    name = "headwater"

    def __init__(self, folder: Path) -> None:
        self.db = hw.connect(folder / "headwater")
        self.db.execute(SCHEMA)
        self.db.execute(f"CREATE VIEW revenue AS {VIEW}")

    def apply(self, batch: Batch) -> None:
        with self.db.epoch() as epoch:
            epoch.insert("customer", batch.customers)
            epoch.insert("orders", batch.orders)
            epoch.insert("line", batch.lines)
            if batch.gone.num_rows:
                epoch.delete("line", batch.gone)

    def view(self) -> list[tuple[object, ...]]:
        table = self.db.query("SELECT city, revenue, lines FROM revenue ORDER BY city")
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def close(self) -> None:
        self.db.close()


class HandWritten:
    """The program an engineer would write for this one view.

    It keeps sums per city and no changelog, checks nothing but the primary keys, and knows what Headwater must find
    out: that no column is NULL, that prices cannot overflow, and that only lines are ever deleted.
    """

    name = "hand-written"

    def __init__(self, folder: Path) -> None:
        self._con = duckdb.connect(str(folder / "hand.duckdb"))
        self._con.execute("SET preserve_insertion_order = false")
        self._con.execute(SCHEMA)
        self._con.execute("CREATE TABLE revenue (city INT PRIMARY KEY, revenue DECIMAL(38,2), lines BIGINT)")
        self._con.execute("CREATE TEMP TABLE change (city INT, revenue DECIMAL(38,2), lines BIGINT)")

    def apply(self, batch: Batch) -> None:
        run = self._con.execute
        for name, table in (("dc", batch.customers), ("dor", batch.orders), ("dl", batch.lines), ("gone", batch.gone)):
            self._con.register(name, table)
        run("BEGIN")
        run("TRUNCATE change")
        sums = "SELECT c.city, SUM(l.price * l.qty), COUNT(*)"
        minus = "SELECT c.city, -SUM(l.price * l.qty), -COUNT(*)"
        run(f"INSERT INTO change {sums} FROM dc c JOIN orders o ON c.ck = o.ck JOIN line l ON l.ok = o.ok GROUP BY 1")
        run("INSERT INTO customer SELECT * FROM dc")
        run(
            f"INSERT INTO change {sums} FROM customer c JOIN dor o ON c.ck = o.ck JOIN line l ON l.ok = o.ok GROUP BY 1"
        )
        run("INSERT INTO orders SELECT * FROM dor")
        run(
            f"INSERT INTO change {sums} FROM customer c JOIN orders o ON c.ck = o.ck JOIN dl l ON l.ok = o.ok "
            "GROUP BY 1"
        )
        run("INSERT INTO line SELECT * FROM dl")
        if batch.gone.num_rows:
            joined = "FROM customer c JOIN orders o ON c.ck = o.ck JOIN gone l ON l.ok = o.ok GROUP BY 1"
            run(f"INSERT INTO change {minus} {joined}")
            run("DELETE FROM line USING gone WHERE line.lk = gone.lk")
        run(
            "INSERT INTO revenue SELECT city, SUM(revenue), SUM(lines) FROM change GROUP BY city "
            "ON CONFLICT (city) DO UPDATE SET revenue = revenue.revenue + excluded.revenue, "
            "lines = revenue.lines + excluded.lines"
        )
        run("DELETE FROM revenue WHERE lines = 0")
        run("COMMIT")

    def view(self) -> list[tuple[object, ...]]:
        return self._con.execute("SELECT city, revenue, lines FROM revenue ORDER BY city").fetchall()

    def recompute(self) -> None:
        self._con.execute(f"CREATE OR REPLACE TEMP TABLE anew AS {VIEW}")

    def recomputed(self) -> list[tuple[object, ...]]:
        self.recompute()
        return self._con.execute("SELECT city, revenue, lines FROM anew ORDER BY city").fetchall()

    def close(self) -> None:
        self._con.close()


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per size."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    workload = Workload()
    ours, hand = Headwater(folder), HandWritten(folder)
    try:
        first = workload.first()
        report(f"loading {first.rows:,} rows")
        ours.apply(first)
        hand.apply(first)
        for size, epochs in SIZES.items():
            report(f"{epochs} epochs of {size:,} changes")
            times: dict[str, list[float]] = {"ours": [], "hand": [], "anew": []}
            for number in range(epochs + 3):
                batch = workload.batch(size)
                # Both take their turn first and second, so that neither always finds the caches warm.
                turns: list[tuple[str, Callable[[], None]]] = [
                    ("ours", lambda b=batch: ours.apply(b)),  # type: ignore[misc]
                    ("hand", lambda b=batch: hand.apply(b)),  # type: ignore[misc]
                ]
                for name, work in turns if number % 2 else reversed(turns):
                    spent = timed(work)
                    if number >= 3:  # the first ones compile and warm up
                        times[name].append(spent)
                if number % 8 == 3:
                    times["anew"].append(timed(hand.recompute))
            if not ours.view() == hand.view() == hand.recomputed():
                raise AssertionError(f"the systems disagree after epochs of {size}")
            yield _figures(size, times)
    finally:
        ours.close()
        hand.close()
        shutil.rmtree(folder, ignore_errors=True)


def _figures(size: int, times: dict[str, list[float]]) -> dict[str, object]:
    ours, hand, anew = (statistics.median(times[name]) for name in ("ours", "hand", "anew"))
    return {
        "changes": size,
        "headwater p50 ms": ours,
        "p99 ms": _high(times["ours"]),
        "hand-written p50 ms": hand,
        "hand p99 ms": _high(times["hand"]),
        "ratio": ours / hand,
        "recompute ms": anew,
        "speed-up": anew / ours,
        "changes/s": round(size / ours * 1000),
    }


def _high(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]
