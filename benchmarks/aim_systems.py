"""The ways to the six views of AIM that are measured beside each other, each with a file of its own on disk.

One thread inserts and another one reads. A batch is committed, and on disk, when `insert` returns; a read that begins
after that has it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.disk import usage
from benchmarks.refreshing import MANUAL, Refreshed
from benchmarks.systems import DUCKDB, HARD_CODED, LIMITS, in_duckdb
from benchmarks.workloads import aim


class AimSystem(ABC):
    """One way to the views."""

    name: str

    @abstractmethod
    def insert(self, batch: pa.Table) -> None:
        """Take a batch of events; in the thread that inserts."""

    @abstractmethod
    def read(self, view: str) -> pa.Table:
        """All rows of a view; in the thread that reads."""

    @abstractmethod
    def rest(self) -> None:
        """Come to rest, before something is measured."""

    @abstractmethod
    def state_bytes(self) -> int:
        """What is on disk."""

    @abstractmethod
    def close(self) -> None: ...


class Headwater(AimSystem):
    """Headwater, with all views refreshed in one way."""

    def __init__(self, folder: Path, customers: pa.Table, mode: str) -> None:
        self.name = mode
        self._inner = Refreshed(folder, mode)
        self.db = self._inner.db
        try:
            self.db.advance_clock(aim.NOW)
            self.db.execute(f"CREATE STREAM events ({aim.EVENTS}); CREATE STATIC TABLE customers ({aim.CUSTOMERS})")
            self.db.insert("customers", customers)
            # A view that follows the clock takes no policy: with one it names the week.
            self._inner.create(aim.views(str(aim.WEEK)) if mode == MANUAL else aim.views())
        except BaseException:
            self.db.close()
            raise

    def insert(self, batch: pa.Table) -> None:
        epoch = self.db.insert("events", batch)
        if epoch.suspended:
            raise AssertionError(f"{self.name} could not take a batch: {epoch}")

    def read(self, view: str) -> pa.Table:
        return self._inner.read(view)

    def rest(self) -> None:
        self._inner.rest()

    def state_bytes(self) -> int:
        return self._inner.state_bytes()

    def close(self) -> None:
        self._inner.close()


class _Duck(AimSystem):
    """DuckDB alone."""

    def __init__(self, folder: Path, customers: pa.Table) -> None:
        self._file = folder / f"{self.name}.duckdb"
        self._writer = duckdb.connect(str(self._file))
        for setting in (*LIMITS, "SET threads = 2", "SET preserve_insertion_order = false"):
            self._writer.execute(setting)
        self._writer.execute(in_duckdb(f"CREATE TABLE customers ({aim.CUSTOMERS})"))
        self._writer.register("given", customers)
        self._writer.execute("INSERT INTO customers FROM given")
        self._writer.unregister("given")
        self._reader = self._writer.cursor()

    def rest(self) -> None:
        self._writer.execute("CHECKPOINT")

    def state_bytes(self) -> int:
        self.rest()
        return usage(self._file).bytes + usage(self._file.with_name(f"{self._file.name}.wal")).bytes

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class DuckRecompute(_Duck):
    """Stores the events, and evaluates a view's query when it is read."""

    name = DUCKDB

    def __init__(self, folder: Path, customers: pa.Table) -> None:
        super().__init__(folder, customers)
        self._writer.execute(in_duckdb(f"CREATE TABLE events ({aim.EVENTS})"))
        self._queries = aim.queries()

    def insert(self, batch: pa.Table) -> None:
        self._writer.register("batch", batch)
        self._writer.execute("INSERT INTO events FROM batch")

    def read(self, view: str) -> pa.Table:
        return self._reader.sql(self._queries[view]).to_arrow_table()


#: What is kept of each entity and week, from events and from what was kept of them.
_FROM_EVENTS = """
    SELECT week, entity_id, count(*) AS calls, count(local_calls) AS local_calls, sum(duration)::BIGINT AS duration,
        sum(cost)::BIGINT AS cost, max(cost) AS max_cost, count(*) FILTER (NOT long_distance) AS near,
        coalesce(sum(duration) FILTER (NOT long_distance), 0)::BIGINT AS near_duration,
        sum(long_distance_cost)::BIGINT AS long_distance_cost, sum(local_cost)::BIGINT AS local_cost
    FROM batch GROUP BY week, entity_id"""
_FROM_PARTIAL = """
    SELECT week, entity_id, sum(calls)::BIGINT AS calls, sum(local_calls)::BIGINT AS local_calls,
        sum(duration)::BIGINT AS duration, sum(cost)::BIGINT AS cost, max(max_cost) AS max_cost,
        sum(near)::BIGINT AS near, sum(near_duration)::BIGINT AS near_duration,
        sum(long_distance_cost)::BIGINT AS long_distance_cost, sum(local_cost)::BIGINT AS local_cost
    FROM partial GROUP BY week, entity_id"""
_ANSWERS = {
    "q1": """
        SELECT avg(duration) FROM (SELECT sum(duration) AS duration FROM now GROUP BY entity_id
            HAVING sum(local_calls) > 2)""",
    "q2": "SELECT max(cost) FROM (SELECT max(max_cost) AS cost FROM now GROUP BY entity_id HAVING sum(calls) > 2)",
    "q3": """
        SELECT sum(cost) / sum(duration) AS ratio
        FROM (SELECT sum(cost) AS cost, sum(duration) AS duration, sum(calls) AS calls FROM now GROUP BY entity_id)
        GROUP BY calls ORDER BY ratio LIMIT 100""",
    "q4": """
        SELECT city_zip, avg(near), sum(duration)
        FROM (SELECT entity_id, sum(near) AS near, sum(near_duration) AS duration FROM now GROUP BY entity_id
            HAVING sum(near) > 4 AND sum(near_duration) > 25) JOIN customers ON entity_id = id GROUP BY city_zip""",
    "q5": """
        SELECT region_id, sum(long_distance_cost), sum(local_cost) FROM now JOIN customers ON entity_id = id
        WHERE type = 2 AND category = 1 GROUP BY region_id""",
    "q7": """
        SELECT sum(cost) / sum(duration) FROM now JOIN customers ON entity_id = id WHERE cell_value_type = 2""",
}


class HardCoded(_Duck):
    """What an engineer would write for these six views: one table with partial sums by entity and week.

    Each batch's sums are appended; when the table has become twice as long as after the last time, rows of the same
    entity and week are added up. (In a trial, a key and an upsert took a fifth longer for a batch at 10,000 entities,
    and twenty times as long at a million.) A view is computed when it is read, and its rows are kept until the next
    batch. It checks nothing.
    """

    name = HARD_CODED
    #: Below this it is not worth the while to add up.
    LEAST = 100_000

    def __init__(self, folder: Path, customers: pa.Table) -> None:
        super().__init__(folder, customers)
        self._writer.execute(in_duckdb(f"CREATE TEMP TABLE batch ({aim.EVENTS})"))
        self._writer.execute(f"CREATE TABLE partial AS {_FROM_EVENTS}")
        self._writer.execute("DROP TABLE batch")
        self._rows, self._limit = 0, self.LEAST
        #: How many batches there were, and the rows of each view with the number that they were computed after.
        self._batches = 0
        self._kept: dict[str, tuple[int, pa.Table]] = {}
        self._lock = threading.Lock()

    def insert(self, batch: pa.Table) -> None:
        run = self._writer.execute
        self._writer.register("batch", batch)
        run("BEGIN")
        [(added,)] = run(f"INSERT INTO partial {_FROM_EVENTS}").fetchall()
        self._rows += added
        if self._rows > self._limit:
            run(f"CREATE OR REPLACE TABLE partial AS {_FROM_PARTIAL}")
            [(self._rows,)] = run("SELECT count(*) FROM partial").fetchall()
            self._limit = max(self.LEAST, 2 * self._rows)
        run("COMMIT")
        with self._lock:
            self._batches += 1

    def read(self, view: str) -> pa.Table:
        with self._lock:
            batches, kept = self._batches, self._kept.get(view)
        if kept is not None and kept[0] == batches:
            return kept[1]
        week = f"WITH now AS (SELECT * FROM partial WHERE week = {aim.WEEK})"
        rows = self._reader.sql(f"{week} {_ANSWERS[view]}").to_arrow_table()
        self._kept[view] = (batches, rows)
        return rows


class Reference:
    """What the views hold after any number of batches, by recomputation over all events."""

    def __init__(self, calls: aim.Calls) -> None:
        self._calls, self._batches = calls, 0
        self._con = duckdb.connect()
        self._con.execute(LIMITS[0])
        self._con.execute(in_duckdb(f"CREATE TABLE customers ({aim.CUSTOMERS})"))
        self._con.execute(in_duckdb(f"CREATE TABLE stored ({aim.EVENTS}, batch INT)"))
        self._con.register("given", calls.customers())
        self._con.execute("INSERT INTO customers FROM given")

    def answer(self, view: str, batches: int) -> pa.Table:
        """A view's rows after so many batches."""
        while self._batches < batches:
            self._con.register("given", self._calls.batch(self._batches))
            self._batches += 1
            self._con.execute("INSERT INTO stored SELECT *, ? FROM given", [self._batches])
        events = f"(SELECT * FROM stored WHERE batch <= {batches})"
        return self._con.sql(aim.queries(events)[view]).to_arrow_table()

    def close(self) -> None:
        self._con.close()


class PlainTables:
    """The contents of views as plain tables of a DuckDB in memory: as fast as a query over them can be."""

    name = "DuckDB, plain tables"

    def __init__(self, views: Iterable[tuple[str, pa.Table]]) -> None:
        self._con = duckdb.connect()
        self._con.execute("SET threads = 2")
        for name, rows in views:
            self._con.register("given", rows)
            self._con.execute(f"CREATE TABLE {name} AS FROM given")

    def ask(self, query: str) -> pa.Table:
        return self._con.sql(query).to_arrow_table()

    def close(self) -> None:
        self._con.close()
