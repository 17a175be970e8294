"""A view over rows that are there already: filled in tasks, and filled at home and then sent away.

The tables of TPC-H are loaded into a warehouse without views, which is copied for each way. What is measured is CREATE
VIEW on a cluster of executors of one core each: by the clock, by the processors of all processes, by those of this one,
and how much memory this process has at most, above what it had before. Both ways must show the same rows.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.equivalence.bags import Bag
from tests.queries.harness import unmatched

from benchmarks.contest import Row
from benchmarks.disk import processor_seconds, resident, resident_below, scratch
from benchmarks.options import option
from benchmarks.systems import bag
from benchmarks.tasks import PIECE, TABLES, cluster
from benchmarks.tpch import QUERIES, TABLE, schema_of
from benchmarks.workloads.tpch import BARE, Data, Stream
from headwater.database import Database
from headwater.spark.session import start_session

TASKS, HOME = "in tasks", "at home"


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    scale: float = option(1.0, "scale factor")
    queries: tuple[str, ...] = option(("q03", "q18"), "queries, of q03 and q18")
    executors: int = option(2, "executors, of one core and 2 GiB each")
    memory: str = option("", "memory of this process's engine, as DuckDB takes it; its default if not given")


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures per query and way."""
    with scratch() as folder:
        report(f"making TPC-H data at scale {options.scale:g}")
        data = Data(folder / "data", options.scale, only=TABLES)
        rows = _load(report, folder / "loaded", data)
        session = start_session(folder / "spark", cluster(options.executors))
        try:
            for query in options.queries:
                found = []
                for way in (TASKS, HOME):
                    place = folder / f"{query} {way}"
                    shutil.copytree(folder / "loaded", place)
                    figures, contents = _fill(place, query, way, options)
                    found.append(contents)
                    report(f"{query} {way}: {figures}")
                    yield {"query": query, "scale": options.scale, "rows": rows, "way": way, **figures}
                    shutil.rmtree(place)
                wrong = list(unmatched(*found))
                assert all(found) and not wrong, f"{query}: {wrong[:3]}"
        finally:
            session.stop()


def _load(report: Callable[[str], None], place: Path, data: Data) -> int:
    load, _ = Stream(data, TABLES, BARE, active=data.table("orders", ["orderkey"]).num_rows).rounds([])
    report(f"loading {load.size:,} rows")
    with Database(place) as db:
        db.execute(schema_of(TABLES, BARE, TABLE))  # a stream would keep none of its rows
        for piece in load.pieces(PIECE):
            with db.epoch() as epoch:
                for name, table in piece.insert.items():
                    epoch.insert(name, table)
    return load.size


def _fill(place: Path, query: str, way: str, options: Options) -> tuple[Row, Bag]:
    fewest = 0 if way == TASKS else 1 << 60
    settings = cluster(options.executors)
    with Database(place, placement="tasks", partitions=options.executors, spark=settings) as db:
        if options.memory:
            db.engine.connection.execute(f"SET memory_limit = '{options.memory}'")
        # Workers are there before: what is measured is not their start.
        db.execute("CREATE TABLE first (a INT PRIMARY KEY); CREATE VIEW firsts AS SELECT count(*) AS n FROM first")
        db.execute("INSERT INTO first VALUES (1)")
        Path("/proc/self/clear_refs").write_text("5")  # the most memory so far is what there is now
        used, mine, began, before = processor_seconds(), time.process_time(), time.perf_counter(), resident()
        with mock.patch("headwater.engine.filling.FEWEST_ROWS", fewest):
            db.execute(f"CREATE VIEW answer AS {QUERIES[query].text}")
        wall = time.perf_counter() - began
        figures: Row = {
            "s": round(wall, 1),
            "processor s": round(processor_seconds() - used, 1),
            "driver processor s": round(time.process_time() - mine, 1),
            "driver peak MiB": round((_peak() - before) / 2**20),
            "workers MiB": round(resident_below("python") / 2**20),
            "machine load": round(os.getloadavg()[0], 1),
        }
        return figures, bag(db.query("SELECT * FROM answer"))


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
