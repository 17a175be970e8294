"""State that is larger than memory: a view whose rows lie in Parquet files, on executors that could not hold them.

A stream of events fills a view with wide groups, a few hundred thousand new ones an epoch, until its files have the
size that was asked for. Then epochs are measured that touch old groups, anywhere among all of them, and add new ones.
The tasks' engine may take what Spark leaves Python in an executor; the memory of processes is looked at all the time.

At the end the view's groups, counts and sums must be those of all events.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.contest import Row
from benchmarks.disk import processor_seconds, resident, resident_below, scratch
from benchmarks.options import option
from benchmarks.tasks import MEMORY, cluster
from headwater.database import Database

SCHEMA = "CREATE STREAM event (k BIGINT NOT NULL, note STRING NOT NULL, v BIGINT NOT NULL)"
VIEW = "CREATE VIEW notes AS SELECT k, note, count(*) AS n, sum(v) AS v FROM event GROUP BY k, note"
#: Bytes of a group's text, which cannot be packed.
WIDTH = 500


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    gib: float = option(10.0, "size of the view's files, in GiB")
    step: int = option(500_000, "new groups in an epoch while it grows")
    changes: tuple[int, ...] = option(
        (10_000, 100_000), "events in an epoch that is measured, nine of ten of old groups"
    )
    measured: int = option(5, "epochs that are measured of each")
    executors: int = option(2, "executors, of one core and 2 GiB each")
    partitions: int = option(8, "partitions of the view")


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields a row of figures for each stretch of epochs."""
    settings = cluster(options.executors)
    with scratch() as folder, Memory() as memory, _opened(folder / "w", options, settings) as db:
        db.execute(f"{SCHEMA}; {VIEW}")
        events = Events(db, folder)
        until = 0.0
        while events.gib < options.gib:
            until += options.gib / 4
            epochs = [events.take(events.new(options.step))]
            while events.gib < until:
                epochs.append(events.take(events.new(options.step)))
            report(f"{events.groups:,} groups, {events.gib:.1f} GiB")
            yield {"epochs of": f"{options.step:,} new", **events.figures(epochs, memory)}
        for changes in options.changes:
            epochs = [events.take(events.mixed(changes)) for _ in range(options.measured + 1)][1:]
            yield {"epochs of": f"{changes:,} mixed", **events.figures(epochs, memory)}
        report("checking")
        [found] = db.query("SELECT count(*), sum(n), sum(v) FROM notes").to_pylist()
        assert tuple(found.values()) == (events.groups, events.rows, events.total), found


def _opened(folder: Path, options: Options, settings: dict[str, object]) -> Database:
    return Database(folder, placement="tasks", partitions=options.partitions, spark=settings, memory="2GB")


class Memory:
    """Looks at the memory of processes all the time, and keeps the most that there was since it was asked."""

    def __init__(self) -> None:
        self._most: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            for name, size in (("driver", resident()), ("workers", resident_below("python"))):
                self._most[name] = max(self._most.get(name, 0), size)

    def most(self) -> dict[str, float]:
        """In MiB, of this process and of the largest of Python's workers."""
        found, self._most = self._most, {}
        return {f"{name} MiB": round(size / 2**20) for name, size in found.items()}


@dataclass(frozen=True)
class Took:
    """What an epoch took, in seconds."""

    wall: float
    processor: float


class Events:
    """Makes events, inserts them, and knows what must come of them."""

    def __init__(self, db: Database, folder: Path) -> None:
        self._db, self._folder = db, folder
        self._random = np.random.default_rng(1)
        self.groups = self.rows = self.total = 0

    @property
    def gib(self) -> float:
        away = self._db.engine.away
        assert away is not None
        sizes = [one.size for parts in away.segments.listed.values() for found in parts.values() for one in found]
        return sum(sizes) / 2**30

    def new(self, number: int) -> Sequence[int]:
        self.groups += number
        return range(self.groups - number, self.groups)

    def mixed(self, number: int) -> Sequence[int]:
        old = self._random.integers(0, self.groups, number * 9 // 10)
        return [*old.tolist(), *self.new(number - len(old))]

    def take(self, keys: Sequence[int]) -> Took:
        values = self._random.integers(0, 1000, len(keys))
        self.rows += len(keys)
        self.total += int(values.sum())
        notes = pa.array([hashlib.shake_128(key.to_bytes(8, "little")).hexdigest(WIDTH // 2) for key in keys])
        rows = pa.table({"k": pa.array(keys, pa.int64()), "note": notes, "v": pa.array(values)})
        used, began = processor_seconds(), time.perf_counter()
        self._db.insert("event", rows)
        return Took(time.perf_counter() - began, processor_seconds() - used)

    def figures(self, epochs: Sequence[Took], memory: Memory) -> Row:
        away = self._db.engine.away
        assert away is not None
        return {
            "groups": self.groups,
            "state GiB": round(self.gib, 2),
            "executor MiB": MEMORY,
            "epochs": len(epochs),
            "p50 s": round(statistics.median(one.wall for one in epochs), 2),
            "worst s": round(max(one.wall for one in epochs), 2),
            "processor p50 s": round(statistics.median(one.processor for one in epochs), 2),
            "parts ms": {name: round(1000 * one) for name, one in away.spending.home.seconds.items()},
            **memory.most(),
            "machine load": round(os.getloadavg()[0], 1),
        }
