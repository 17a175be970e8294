"""TPC-H as streams: customer, orders and lineitem arrive in random order, and a view is kept over what has come so far.

| system | what it does |
|---|---|
| inline | Headwater through its Python API |
| driver | Headwater's pipeline on Spark: the epoch's rows arrive as Parquet files in three folders |
| hard-coded | the DuckDB transaction that an engineer would write for this one view |
| DuckDB recompute | DuckDB evaluates the query over all rows so far |
| Spark recompute | Spark evaluates the query over all files so far |
| Spark floor | Spark reads the epoch's files and hands the rows over as Arrow: what `driver` cannot be faster than |

All take the same epochs, one after the other, and must agree at the end.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql.functions import col, lit

import headwater as hw
from benchmarks.disk import usage
from benchmarks.following import Following
from headwater.plan.wanted import Wanted
from headwater.spark.batches import unite
from headwater.spark.session import start_session
from headwater.spark.sources import PLACE, RECORD, only
from headwater.spark.types import spark_schema, spark_type
from headwater.store.catalog import Relation
from headwater.types import Field

SCALE = 1
#: Changes in an epoch, with how many epochs are measured.
SIZES = {100_000: 8, 1_000_000: 2}
TABLES: dict[str, dict[str, str]] = {
    "customer": {"c_custkey": "BIGINT NOT NULL", "c_mktsegment": "STRING"},
    "orders": {
        "o_orderkey": "BIGINT NOT NULL",
        "o_custkey": "BIGINT NOT NULL",
        "o_orderdate": "DATE",
        "o_shippriority": "INT",
    },
    "lineitem": {
        "l_orderkey": "BIGINT NOT NULL",
        "l_quantity": "DECIMAL(15,2)",
        "l_extendedprice": "DECIMAL(15,2)",
        "l_discount": "DECIMAL(15,2)",
        "l_tax": "DECIMAL(15,2)",
        "l_returnflag": "STRING",
        "l_linestatus": "STRING",
        "l_shipdate": "DATE",
    },
}
VIEWS = {
    "q3": """
        SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
    """,
    "q1": """
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
          SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, AVG(l_quantity) AS avg_qty,
          AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus
    """,
    "q6": """
        SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
          AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
    """,
}
#: The rows of each table that a view can use, which Spark hands over; of others, none.
WANTED = {
    "q3": {
        "customer": "c_mktsegment = 'BUILDING'",
        "orders": "o_orderdate < DATE '1995-03-15'",
        "lineitem": "l_shipdate > DATE '1995-03-15'",
    },
    "q1": {"lineitem": "l_shipdate <= DATE '1998-09-02'"},
    "q6": {
        "lineitem": "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
        "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
    },
}
Batch = dict[str, pa.Table]


class Workload:
    """The rows of the three tables in random order."""

    def __init__(self, folder: Path) -> None:
        command = [str(Path(sys.executable).parent / "tpchgen-cli"), "parquet", "-s", str(SCALE)]
        command += ["--tables", ",".join(TABLES), "--output-dir", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        rng = np.random.default_rng(1)
        self._rows: Batch = {}
        for name, columns in TABLES.items():
            table = pq.read_table(folder / f"{name}.parquet", columns=list(columns))
            self._rows[name] = _plain(table).take(pa.array(rng.permutation(table.num_rows)))
        self.total = sum(table.num_rows for table in self._rows.values())

    def epochs(self, sizes: list[int]) -> list[Batch]:
        """All rows: the last epochs of these sizes, and before them one with the rest."""
        sizes = [self.total - sum(sizes), *sizes]
        done = dict.fromkeys(TABLES, 0)
        out: list[Batch] = []
        so_far = 0
        for size in sizes:
            so_far += size
            batch: Batch = {}
            for name, table in self._rows.items():
                end = table.num_rows * so_far // self.total
                batch[name] = table.slice(done[name], end - done[name]).combine_chunks()
                done[name] = end
            out.append(batch)
        return out


def _plain(table: pa.Table) -> pa.Table:
    """Strings and decimals in the forms that all systems share."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) or "view" in str(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(pa.string()))
    return table


def _count(rows: pa.Table, condition: str) -> int:
    [(found,)] = duckdb.sql(f"SELECT count(*) FROM rows WHERE {condition}").fetchall()
    return int(found)


def _rows_of(batch: Batch) -> int:
    return sum(table.num_rows for table in batch.values())


class Inline:
    """Headwater in this process."""

    name = "inline"

    def __init__(self, folder: Path, view: str) -> None:
        self._warehouse = folder / "inline"
        self._db = hw.connect(self._warehouse)
        for name, columns in TABLES.items():
            self._db.execute(f"CREATE STREAM {name} ({', '.join(f'{c} {of}' for c, of in columns.items())})")
        self._db.execute(f"CREATE VIEW {view} AS {VIEWS[view]}")
        self._view = view

    def apply(self, batch: Batch) -> None:
        with self._db.epoch() as epoch:
            for name, table in batch.items():
                epoch.insert(name, table)

    def rows(self) -> list[tuple[object, ...]]:
        return _sorted(self._db.query(f"SELECT * FROM {self._view}"))

    def state_bytes(self) -> int:
        return usage(self._warehouse, without=("spark",)).bytes

    def close(self) -> None:
        self._db.close()


class Driver:
    """Headwater's pipeline on Spark."""

    name = "driver"

    def __init__(self, folder: Path, view: str) -> None:
        self._warehouse = folder / "driver"
        db = hw.connect(self._warehouse, placement="driver")
        assert isinstance(db, hw.Database)
        self._db, self._view, self._folder = db, view, folder / "arrivals"
        for name, columns in TABLES.items():
            (self._folder / name).mkdir(parents=True)
            fields = ", ".join(f"{c} {of}" for c, of in columns.items())
            db.execute(f"CREATE STREAM {name} ({fields}) FROM parquet '{self._folder / name}'")
        db.execute(f"CREATE VIEW {view} AS {VIEWS[view]}")
        self._number = self._handed_over = 0
        self._following = Following(db)

    def prepare(self, batch: Batch) -> None:
        """Write the files where Spark does not look; only their arrival is measured."""
        self._number += 1
        self._handed_over = 0
        for name, table in batch.items():
            pq.write_table(table, self._folder / name / f".{self._number}.parquet")
            self._handed_over += _count(table, WANTED[self._view].get(name, "false"))

    def apply(self, batch: Batch) -> None:
        self._following.take(self._handed_over, lambda: self._arrive(batch))

    def _arrive(self, batch: Batch) -> None:
        for name in batch:
            hidden = self._folder / name / f".{self._number}.parquet"
            hidden.rename(self._folder / name / f"{self._number}.parquet")

    def stream(self, name: str) -> Relation:
        return self._db.find(name)

    def wanted(self, name: str) -> Wanted:
        return self._db.engine.catalog.wanted(self.stream(name))

    def files(self, name: str) -> list[str]:
        return [str(file) for file in (self._folder / name).glob("[0-9]*.parquet")]

    def last_files(self, name: str) -> list[str]:
        return [str(self._folder / name / f"{self._number}.parquet")]

    def rows(self) -> list[tuple[object, ...]]:
        return _sorted(self._db.query(f"SELECT * FROM {self._view}"))

    def state_bytes(self) -> int:
        return usage(self._warehouse, without=("spark",)).bytes

    def close(self) -> None:
        self._following.close()
        self._db.close()


class HardCoded:
    """What an engineer would write for Q3: the filtered inputs, and a table of sums."""

    name = "hard-coded"

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hand.duckdb"
        self._con = duckdb.connect(str(self._file))
        self._con.execute("SET preserve_insertion_order = false")
        self._con.execute("CREATE TABLE c (k BIGINT)")
        self._con.execute("CREATE TABLE o (k BIGINT, c BIGINT, d DATE, p INT)")
        self._con.execute("CREATE TABLE l (k BIGINT, r DECIMAL(38,4))")
        self._con.execute("CREATE TABLE sums (k BIGINT, d DATE, p INT, r DECIMAL(38,4))")

    def apply(self, batch: Batch) -> None:
        run = self._con.execute
        for name, table in batch.items():
            self._con.register(f"new_{name}", table)
        run("BEGIN")
        run("CREATE OR REPLACE TEMP TABLE dc AS SELECT c_custkey k FROM new_customer WHERE c_mktsegment = 'BUILDING'")
        run(
            "CREATE OR REPLACE TEMP TABLE dor AS SELECT o_orderkey k, o_custkey c, o_orderdate d, o_shippriority p "
            "FROM new_orders WHERE o_orderdate < DATE '1995-03-15'"
        )
        run(
            "CREATE OR REPLACE TEMP TABLE dl AS SELECT l_orderkey k, SUM(l_extendedprice * (1 - l_discount)) r "
            "FROM new_lineitem WHERE l_shipdate > DATE '1995-03-15' GROUP BY 1"
        )
        sums = "INSERT INTO sums SELECT o.k, o.d, o.p, SUM(l.r) FROM"
        run(f"{sums} dc c JOIN o ON o.c = c.k JOIN l ON l.k = o.k GROUP BY ALL")
        run("INSERT INTO c SELECT * FROM dc")
        run(f"{sums} c JOIN dor o ON o.c = c.k JOIN l ON l.k = o.k GROUP BY ALL")
        run("INSERT INTO o SELECT * FROM dor")
        run(f"{sums} c JOIN o ON o.c = c.k JOIN dl l ON l.k = o.k GROUP BY ALL")
        run("INSERT INTO l SELECT * FROM dl")
        run("COMMIT")

    def rows(self) -> list[tuple[object, ...]]:
        query = "SELECT k, SUM(r) AS r, d, p FROM sums GROUP BY k, d, p"
        return _sorted(self._con.sql(query).to_arrow_table())

    def state_bytes(self) -> int:
        return usage(self._file).bytes + usage(self._file.with_name(f"{self._file.name}.wal")).bytes

    def close(self) -> None:
        self._con.close()


class DuckRecompute:
    """DuckDB over all rows so far."""

    name = "DuckDB recompute"

    def __init__(self, view: str) -> None:
        self._con = duckdb.connect()
        self._view = view
        for name, columns in TABLES.items():
            fields = ", ".join(f"{c} {of.replace('STRING', 'VARCHAR')}" for c, of in columns.items())
            self._con.execute(f"CREATE TABLE {name} ({fields})")

    def prepare(self, batch: Batch) -> None:
        for name, table in batch.items():
            self._con.register("new_rows", table)
            self._con.execute(f"INSERT INTO {name} SELECT * FROM new_rows")

    def apply(self, batch: Batch) -> None:
        self._answer = self._con.sql(VIEWS[self._view]).to_arrow_table()

    def rows(self) -> list[tuple[object, ...]]:
        return _sorted(self._answer)

    def close(self) -> None:
        self._con.close()


def _sorted(table: pa.Table) -> list[tuple[object, ...]]:
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted((tuple(_rounded(value) for value in row) for row in rows), key=str)


def _rounded(value: object) -> object:
    return round(float(value), 6) if isinstance(value, float) or hasattr(value, "as_tuple") else value  # type: ignore[arg-type]


@dataclass
class Times:
    """Seconds of each epoch, by system."""

    of: dict[str, list[float]]

    def add(self, system: str, work: Callable[[], object]) -> None:
        began = time.perf_counter()
        work()
        self.of.setdefault(system, []).append(time.perf_counter() - began)


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per view, size and system."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        report(f"making TPC-H data at scale {SCALE}")
        workload = Workload(folder / "data")
        session = start_session(folder / "spark", {"spark.driver.memory": "6g", "spark.driver.maxResultSize": "4g"})
        for view in VIEWS:
            sizes = SIZES if view == "q3" else {100_000: SIZES[100_000]}
            for size, epochs in sizes.items():
                report(f"{view}: epochs of {size:,} changes")
                place = folder / f"{view}-{size}"
                place.mkdir()
                yield from _measure(workload.epochs([size] * (epochs + 1)), view, size, place, session)
                shutil.rmtree(place, ignore_errors=True)
        session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(batches: list[Batch], view: str, size: int, folder: Path, session: Any) -> Iterator[dict[str, object]]:
    inline, driver, duck = Inline(folder, view), Driver(folder, view), DuckRecompute(view)
    hand = HardCoded(folder) if view == "q3" else None
    systems: list[Any] = [one for one in (inline, driver, hand, duck) if one is not None]
    times = Times({})
    try:
        for number, batch in enumerate(batches):
            counted = times if number > 1 else Times({})  # the first loads the rest, the second warms up
            for system in systems:
                if hasattr(system, "prepare"):
                    system.prepare(batch)
                counted.add(system.name, lambda system=system, batch=batch: system.apply(batch))  # type: ignore[misc]
            if number > 0:
                counted.add("Spark floor", lambda: _floor(session, driver))
                if number % 2 == 0 or len(batches) < 5:
                    counted.add("Spark recompute", lambda: _recompute(session, driver, view))
        expected = duck.rows()
        for system in systems:
            if system.rows() != expected:
                raise AssertionError(f"{system.name} disagrees on {view}")
    finally:
        for system in systems:
            system.close()
    state = {one.name: one.state_bytes() for one in systems if hasattr(one, "state_bytes")}  # its log merged by now
    for name, seconds in times.of.items():
        middle = statistics.median(seconds)
        yield {
            "view": view,
            "changes": size,
            "system": name,
            "p50 ms": middle * 1000,
            "worst ms": max(seconds) * 1000,
            "changes/s": round(size / middle),
            "state MiB": state[name] / 2**20 if name in state else None,
        }


def _or_null(f: Field, wanted: Wanted) -> Column:
    if f.nullable and f.name not in wanted.columns:
        return lit(None).cast(spark_type(f.type)).alias(f.name)
    return col(f.name)


def _floor(session: Any, driver: Driver) -> None:
    """Spark reads and filters the last epoch's files and hands the rows over, as one job."""
    frames = []
    for name in TABLES:
        stream = driver.stream(name)
        nothing = lit(None).cast("string")
        frame = session.read.schema(spark_schema(stream.fields)).parquet(*driver.last_files(name))
        wanted = driver.wanted(name)
        columns = [_or_null(f, wanted) for f in stream.fields]
        rows = frame.select(*columns, nothing.alias(RECORD), nothing.alias(PLACE))
        frames.append((stream, only(rows, stream, wanted)))
    unite(frames).toArrow()


def _recompute(session: Any, driver: Driver, view: str) -> None:
    for name in TABLES:
        session.read.parquet(*driver.files(name)).createOrReplaceTempView(name)
    session.sql(VIEWS[view]).toArrow()
