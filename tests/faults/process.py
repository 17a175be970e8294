"""What every child has: a job, a voice, a trap that kills it, and a warehouse whose background work never rests."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from unittest import mock

import duckdb

import headwater as hw
from headwater import database
from headwater.algebra.evaluate import Bag
from headwater.engine import consolidate, faults, filling, merges, merging, moving
from headwater.engine.consolidate import Consolidator
from headwater.engine.local_tasks import LocalRunner
from tests.faults.story import moment


@dataclass(frozen=True)
class Job:
    """What a child does, and when it kills itself.

    Attributes:
        folder: the warehouse.
        seed: of the story.
        steps: after how many steps it closes the warehouse and ends by itself; none: never.
        point: the fault point at which it dies; empty: it does not.
        nth: at which time of reaching that point.
        during: counts only while this is done: the beginning of a statement's text, `EPOCH` or `OPEN`; empty: always.
        scenario: `story`, or one of the smaller ones.
        away: whether programs run in tasks, to which all sorts of things happen.
        segments: where these put what they maintain; beside the warehouse, if nothing is said.
        storage: how that is reached.
    """

    folder: str
    seed: int = 0
    steps: int | None = None
    point: str = ""
    nth: int = 1
    during: str = ""
    scenario: str = "story"
    away: bool = False
    segments: str | None = None
    storage: Mapping[str, object] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


#: Stands for a fault point before every call of the engine's `execute`, from whichever thread.
ANY_STATEMENT = "any statement"
#: DuckDB writes its log into the file when it has grown by this much: often enough for kills to fall into it.
CHECKPOINT_BYTES = 60_000


def tell(event: str, **facts: object) -> None:
    """One event in one write, so that threads and a kill cannot break it up."""
    os.write(sys.stdout.fileno(), (json.dumps({"event": event, **facts}) + "\n").encode())


class Trap:
    """Kills the process at the n-th time of reaching a point while something certain is being done."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.nth
        self._lock = threading.Lock()
        self.doing = "OPEN"

    def reach(self, point: str) -> None:
        if point != self._job.point or not self.doing.startswith(self._job.during):
            return
        with self._lock:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)

    def set(self) -> None:
        if self._job.point == ANY_STATEMENT:
            execute = duckdb.DuckDBPyConnection.execute

            def reach_and_execute(connection: duckdb.DuckDBPyConnection, *args: Any, **named: Any) -> Any:
                self.reach(ANY_STATEMENT)
                return execute(connection, *args, **named)

            mock.patch.object(duckdb.DuckDBPyConnection, "execute", reach_and_execute).start()
        elif self._job.point:
            assert self._job.point in faults.POINTS + faults.AWAY_POINTS, self._job.point
            faults.hook = self.reach


def open_warehouse(
    folder: str, away: bool = False, segments: str | None = None, storage: Mapping[str, object] | None = None
) -> hw.Database:
    """Open it with consolidation and checkpoints at work all the time, and the story's clock.

    Args:
        folder: where it is.
        away: run its programs in tasks, in this process, to which all sorts of things happen.
        segments: where these put what they maintain.
        storage: how that is reached.
    """
    opened: list[hw.Database] = []

    def clock() -> dt.datetime:
        return moment(opened[0].engine.epoch + 1)

    consolidate.LOOK_SHARE = 0.0
    consolidate.DEAD_SHARE = 0.01
    eager = partial(Consolidator, look_rows=6, look_parts=2)
    with mock.patch.object(database, "Consolidator", eager):
        if away:
            merges.MOST_SEGMENTS, merges.STAGGERED, merging.RETRY_SECONDS = 2, 1, 0.0
            moving.FEW_BYTES = 0
            filling.FEWEST_ROWS, filling.SLICE_ROWS = 0, 3
            runner = LocalRunner(2, os.getpid(), mishaps=0.2)
            place = {"placement": "tasks", "segments": segments, "storage": storage}
            db: object = hw.Database(folder, clock=clock, runner=runner, **place)  # type: ignore[arg-type]
        else:
            db = hw.connect(folder, clock=clock)
    assert isinstance(db, hw.Database)
    opened.append(db)
    if db.engine.away is not None:  # another number every time
        db.execute(f"ALTER WAREHOUSE SET PARTITIONS {db.engine.away.partitions % 3 + 1}")
    return db


def show(rows: Bag) -> list[str]:
    """A bag as text: the same for equal bags."""
    return sorted(f"{n} x {', '.join(map(str, row))}" for row, n in rows.items())
