"""Programs in Spark tasks: TPC-H Q3 and Q18 while all their relations change, on one and on two executors.

| system | what it does |
|---|---|
| tasks | Headwater with placement `tasks` on a cluster of executors of one core each, in processes of their own |
| Spark recompute | Spark evaluates the query over Parquet files on the same executors, with adaptive execution |
| inline | Headwater in this process |

All data but the last epochs is loaded first. Orders go as often as they come. What is measured is an epoch of many
changes, from the call to the commit, by the clock and by the processors of all processes together. The systems run one
after the other, each on executors of two GiB: in `tasks` a third of that is Java's and the rest Python's, and all is
Java's where Spark recomputes. Spark evaluates the query some times over files with the rows of the end, which are
written beforehand; nobody keeps its result. The machine's load is told with each figure: on one that does other work
too, the clock says more of that than of this.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.equivalence.bags import Bag
from tests.queries.harness import unmatched

from benchmarks.changes import Changes, Plan
from benchmarks.contest import Row
from benchmarks.disk import processor_seconds_by_kind, resident_below, scratch, usage
from benchmarks.options import option
from benchmarks.systems import LIMITS, SPARK, Headwater, System, bag
from benchmarks.tpch import QUERIES, SPARK_QUERIES, schema_of
from benchmarks.workloads.tpch import BARE, Data, Stream
from headwater.database import Database
from headwater.engine.away import Away
from headwater.spark.session import start_session

TASKS, INLINE = "tasks", "inline"
#: Of the orders, so many are there at a time: the others come later, each in place of one that goes.
ACTIVE = 0.8
#: Memory of an executor, in MiB, and what Java takes of it where Python works.
MEMORY, HEAP = 2048, 640
#: Rows of an epoch while data is loaded.
PIECE = 1_000_000
SEGMENTS = ("BUILDING", "AUTOMOBILE", "MACHINERY", "HOUSEHOLD", "FURNITURE")
TABLES = ["customer", "orders", "lineitem"]
ALL = "both"
#: What the first view of a case holds at the end, by scale, case and changes in an epoch.
Expected = dict[tuple[float, str, int], Bag]
#: How many epochs are measured of Spark, which evaluates the query anew: they differ little.
RECOMPUTED = 3


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    scale: tuple[float, ...] = option((1.0,), "scale factors")
    queries: tuple[str, ...] = option(("q03", "q18"), "queries, of q03 and q18")
    changes: tuple[int, ...] = option((100_000,), "changes in an epoch")
    executors: tuple[int, ...] = option((1, 2), "executors, of one core and 2 GiB each")
    systems: tuple[str, ...] = option((TASKS, SPARK, INLINE), "systems")
    views: int = option(20, "views over the same streams at once, of both queries; 0 for none")
    warm_up: int = option(2, "epochs that are not counted")
    measured: int = option(5, "epochs that are")
    partitions: tuple[int, ...] = option((0,), "partitions of what lies away; 0 for one an executor")


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures per case, number of executors and system."""
    with scratch() as folder:
        expected: Expected = {}
        for scale in options.scale:
            report(f"making TPC-H data at scale {scale}")
            data = Data(folder / f"data-{scale}", scale, only=TABLES)
            if INLINE in options.systems:
                yield from _measured(report, folder, options, data, INLINE, 0, None, expected)
            for executors in options.executors:
                for system in (one for one in (TASKS, SPARK) if one in options.systems):
                    session = start_session(folder / f"spark-{time.monotonic_ns()}", cluster(executors, system))
                    try:
                        yield from _measured(report, folder, options, data, system, executors, session, expected)
                    finally:
                        session.stop()


@dataclass(frozen=True)
class Case:
    """Views that are kept at once, by name."""

    name: str
    views: dict[str, str] = field(default_factory=dict)


def cases(options: Options) -> list[Case]:
    """Each query alone, and many variants of both."""
    found = [Case(name, {"answer": QUERIES[name].text}) for name in options.queries]
    if options.views:
        found.append(Case(ALL, variants(options.views)))
    return found


def variants(number: int) -> dict[str, str]:
    """Views like Q3 and Q18 with other constants, in turn."""
    out: dict[str, str] = {}
    for each in range(number):
        half, odd = divmod(each, 2)
        if odd:
            out[f"answer{each}"] = QUERIES["q18"].text.replace("100 <", f"{100 + 20 * half} <")
        else:
            segment, month = SEGMENTS[half % len(SEGMENTS)], 3 + half // len(SEGMENTS)
            text = QUERIES["q03"].text.replace("BUILDING", segment)
            out[f"answer{each}"] = re.sub(r"1995-03-15", f"1995-{month:02d}-15", text)
    return out


# -- systems -----------------------------------------------------------------------------------------------------------


class Kept(Headwater):
    """Headwater with the views of a case."""

    def __init__(self, folder: Path, case: Case, name: str, **placement: Any) -> None:
        self.name = name
        self._folder = folder / f"headwater {name}"
        self.db = Database(self._folder, **placement)
        try:
            with self.db.engine.lock:
                for setting in LIMITS:
                    self.db.engine.connection.execute(setting)
            self.db.execute(schema_of(TABLES, BARE))
            for view, text in case.views.items():
                self.db.execute(f"CREATE VIEW {view} AS {text}")
        except BaseException:
            self.db.close()
            raise
        self._first = next(iter(case.views))

    @property
    def away(self) -> Away | None:
        return self.db.engine.away

    def contents(self) -> Any:
        return bag(self.db.query(f"SELECT * FROM {self._first}"))

    def state_bytes(self) -> int:
        return usage(self._folder).bytes


class Recomputed(System):
    """Spark on the executors, over files that several tasks can read; nobody keeps the result."""

    name = SPARK
    recomputes = True

    def __init__(self, folder: Path, query: str, session: Any) -> None:
        self._folder, self._query, self._session = folder / "recomputed", query, session
        self._folder.mkdir(parents=True)
        self._came: dict[str, list[pa.Table]] = {}
        self._gone: list[pa.Array] = []

    def follow(self, epoch: Changes) -> None:
        for name, rows in epoch.insert.items():
            self._came.setdefault(name, []).append(rows)
        self._gone += [rows.column("orderkey").combine_chunks() for rows in epoch.delete.values()]

    def lay_out(self) -> None:
        for name, tables in self._came.items():
            file = self._folder / f"{name}.parquet"
            with pq.ParquetWriter(file, tables[0].schema) as writer:
                for rows in tables:
                    if name == "orders" and self._gone:
                        rows = rows.filter(pc.invert(pc.is_in(rows.column("orderkey"), pa.concat_arrays(self._gone))))
                    writer.write_table(rows, row_group_size=250_000)
            self._session.read.parquet(str(file)).createOrReplaceTempView(name)

    def apply(self, epoch: Changes) -> None:
        self._session.sql(self._query).write.format("noop").mode("overwrite").save()

    def contents(self) -> Bag:
        return bag(self._session.sql(self._query).toArrow())

    def interrupt(self) -> None:
        self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        self._came.clear()


def cluster(executors: int, system: str = TASKS) -> dict[str, object]:
    """Spark's settings for executors in processes of their own, which find the same Python and the same code."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    memory: dict[str, object] = {"spark.executor.memory": f"{MEMORY}m"}
    if system == TASKS:
        memory = {"spark.executor.memory": f"{HEAP}m", "spark.executor.pyspark.memory": f"{MEMORY - HEAP}m"}
    return {
        "spark.master": f"local-cluster[{executors},1,{MEMORY}]",
        **memory,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "spark.driver.memory": "2g",
        "spark.default.parallelism": str(executors),
        "spark.sql.shuffle.partitions": str(executors),
    }


#: What makes a recomputation of whole tables fast.
RECOMPUTING = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.files.maxPartitionBytes": "32m",
}


# -- measuring ---------------------------------------------------------------------------------------------------------


@dataclass
class Lane:
    """A system, and what its epochs took."""

    system: System
    executors: int
    wall: list[float] = field(default_factory=list)
    #: The seconds of what is done at home, and of the longest task of each level.
    parts: list[dict[str, float]] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    #: Seconds of processors by kind of process; of all tasks; of the longest task of each level, added up.
    kinds: list[dict[str, float]] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    load_seconds: float = 0.0

    def take(self, epoch: Changes, counted: bool) -> None:
        before, began = processor_seconds_by_kind(), time.perf_counter()
        self.system.apply(epoch)
        wall, after = time.perf_counter() - began, processor_seconds_by_kind()
        if counted:
            self.wall.append(wall)
            self.kinds.append({kind: seconds - before[kind] for kind, seconds in after.items()})
            if isinstance(self.system, Kept) and (away := self.system.away) is not None:
                levels = {f"level {level}": seconds for level, seconds in away.spending.longest().items()}
                self.parts.append({**away.spending.home.seconds, **levels})
                self.sent.append(away.spending.sent)
                self.tasks.append(away.spending.processor)
                self.longest.append(sum(away.spending.longest(processor=True).values()))


def _measured(
    report: Callable[[str], None],
    folder: Path,
    options: Options,
    data: Data,
    system: str,
    executors: int,
    session: Any,
    expected: Expected,
) -> Iterator[Row]:
    """All cases of a system on some executors, or in this process if there are none."""
    orders = data.table("orders", ["orderkey"]).num_rows
    for changes, partitions in product(options.changes, options.partitions if system == TASKS else (0,)):
        for case in cases(options):
            if system == SPARK and len(case.views) > 1:
                continue
            stream = Stream(data, TABLES, BARE, active=int(ACTIVE * orders))
            load, rounds = stream.rounds([Plan(changes, options.warm_up, options.measured)])
            if not rounds or rounds[0].epochs[-1].size < changes // 2:
                report(f"{case.name}: fewer than {changes:,} changes at scale {data.scale:g}")
                continue
            around: Row = {"query": case.name, "views": len(case.views), "scale": data.scale, "changes": changes}
            place = _place(folder)
            with closing(_system(place, partitions, case, system, executors, session)) as one:
                lane = Lane(one, executors)
                _run(report, case, lane, load, rounds[0].epochs, rounds[0].warm_up)
                found = one.contents()
                wrong = list(unmatched(found, expected.setdefault((data.scale, case.name, changes), found)))
                assert not wrong, f"{case.name}: {one.name} is wrong: {wrong[:3]}"
                yield {**around, **_figures(lane)}
            shutil.rmtree(place, ignore_errors=True)


def _system(place: Path, partitions: int, case: Case, system: str, executors: int, session: Any) -> System:
    if system == INLINE:
        return Kept(place, case, INLINE)
    if system == TASKS:
        spark = cluster(executors)
        return Kept(place, case, TASKS, placement="tasks", partitions=partitions or executors, spark=spark)
    mine = session.newSession()
    for key, value in RECOMPUTING.items():
        mine.conf.set(key, value)
    return Recomputed(place, SPARK_QUERIES[case.name], mine)


def _place(folder: Path) -> Path:
    place = folder / f"case-{time.monotonic_ns()}"
    place.mkdir()
    return place


def _run(
    report: Callable[[str], None],
    case: Case,
    lane: Lane,
    load: Changes,
    epochs: Sequence[Changes],
    warm_up: int,
) -> None:
    system = lane.system
    report(f"{case.name}: {system.name} on {lane.executors} executors loads {load.size:,} rows")
    began = time.perf_counter()
    if isinstance(system, Recomputed):
        for epoch in (load, *epochs):
            system.follow(epoch)
        system.lay_out()
        for number in range(RECOMPUTED + 1):
            lane.take(epochs[-1], counted=number > 0)
    else:
        for piece in load.pieces(PIECE):
            system.apply(piece)
        lane.load_seconds = time.perf_counter() - began
        for number, epoch in enumerate(epochs):
            lane.take(epoch, counted=number >= warm_up)
    report(f"  {', '.join(f'{one:.2f}' for one in lane.wall)} s")


def _figures(lane: Lane) -> Row:
    system = lane.system
    middle = {
        name: statistics.median(one.get(name, 0.0) for one in lane.parts)
        for name in dict.fromkeys(name for one in lane.parts for name in one)
    }
    away = system.away if isinstance(system, Kept) else None
    segments = away.segments if away is not None else None
    return {
        "executors": lane.executors,
        "system": system.name,
        "epochs": len(lane.wall),
        "p50 ms": round(1000 * statistics.median(lane.wall), 1),
        "best ms": round(1000 * min(lane.wall), 1),
        "processor p50 ms": _ms([sum(one.values()) for one in lane.kinds]),
        "tasks processor ms": _ms(lane.tasks),
        "longest processor ms": _ms(lane.longest),
        "processors ms": {kind: _ms([one[kind] for one in lane.kinds]) for kind in lane.kinds[0]},
        "levels": sum(1 for name in middle if name.startswith("level ")) or None,
        "load s": round(lane.load_seconds, 1) if not system.recomputes else None,
        "sent MiB": round(statistics.median(lane.sent) / 2**20, 2) if lane.sent else None,
        "away MiB": _mib(sum(one.size for p in segments.listed.values() for s in p.values() for one in s))
        if segments
        else None,
        "partitions": away.partitions if away is not None else None,
        "parts ms": {name: round(1000 * seconds, 1) for name, seconds in middle.items()} or None,
        "workers MiB": _mib(resident_below("python")) if away is not None else None,
        "machine load": round(os.getloadavg()[0], 1),
    }


def _ms(seconds: Sequence[float]) -> float | None:
    return round(1000 * statistics.median(seconds), 1) if seconds else None


def _mib(size: float) -> float:
    return round(size / 2**20, 1)
