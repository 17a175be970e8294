"""What a worker's process keeps from task to task: an engine, and the databases of rooms."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import pickle
import resource
import shutil
import sys
import tempfile
import uuid
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path

import duckdb
import pyarrow as pa

from headwater.engine.tasks import TaskPlan
from headwater.store.segments import Segment
from headwater.store.storage import storage_of

#: The folders in which workers put what does not fit into memory, and the file in each that its worker has locked.
_SCRATCH, _LOCK = "headwater-task-", "lock"
#: What the engine takes of the memory that is left in a process with a limit; and bytes that it cannot do without.
ENGINES_SHARE, LEAST_MEMORY = 0.5, 64 << 20
#: What stores take of the engine's memory at most; the rest is for statements, which can do with little: they spill.
STORES_SHARE = 0.75
#: What comes between the name of a warehouse's opening and that of a filling of new maps.
FILLING = "+"
_versions = itertools.count(1)

#: Steps of DuckDB's optimiser that statements of an epoch are planned without. The first adds large stores up before
#: they are joined with a small change; the others take longer than they save (see `Warehouse.plan_quickly`).
_UNHELPFUL_STEPS = (
    "partial_aggregate_pushdown",
    "statistics_propagation",
    "common_subexpressions",
    "common_subplan",
    "projection_pullup",
)


class Lying:
    """What is in the worker's table of a store."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        #: What this process appended itself, until it is seen among what is committed.
        self.own: Segment | None = None
        #: The run of a task that did so.
        self.run = ""
        self.table: str | None = None
        self.rows = 0
        #: It is no table but a view over the segments, beside a table with what comes in an epoch.
        self.left = False
        #: The oldest part that is kept, if others were deleted.
        self.floor: int | None = None
        #: Another one whenever the table has changed.
        self.version = 0

    def changed(self) -> None:
        self.version = next(_versions)


class Cached:
    """A room's database in this process."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        self.connection = connection
        self.name = name
        self.stores: dict[str, Lying] = {}
        #: The temporary tables that have rows; None before they are made.
        self.filled: set[str] | None = None
        self.size = 0
        #: Of relations with parts: how many rows each part has, and which have rows that are not stored once each, as
        #: of a version of the table.
        self.parts: dict[str, tuple[int, dict[int, int], set[int]]] = {}


class Worker:
    """What a worker's process keeps from task to task."""

    def __init__(self, memory: int | None = None) -> None:
        remove_orphans()
        self.folder = tempfile.mkdtemp(prefix=_SCRATCH)
        self._lock = (Path(self.folder) / _LOCK).open("ab")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.instance = duckdb.connect(":memory:", config={"threads": 1})
        self.instance.execute("SET preserve_insertion_order = false")
        self.instance.execute(f"SET GLOBAL disabled_optimizers = '{','.join(_UNHELPFUL_STEPS)}'")
        self.instance.execute(f"SET temp_directory = '{self.folder}'")
        self.memory = _fitting(memory or 4 << 30)
        self.instance.execute(f"SET memory_limit = '{self.memory}B'")
        self.rooms: OrderedDict[tuple[object, ...], Cached] = OrderedDict()
        self.plans: dict[str, TaskPlan] = {}

    def close(self) -> None:
        self.instance.close()
        self._lock.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def room(self, key: tuple[object, ...]) -> Cached:
        """The database of a room; those that were not used for long make room for it."""
        if key in self.rooms:
            self.rooms.move_to_end(key)
            return self.rooms[key]
        for other in [one for one in self.rooms if _was_filling(one, key)]:
            self.forget(other)
        name = f"room{uuid.uuid4().hex}"
        connection = self.instance.cursor()
        connection.execute(f"ATTACH ':memory:' AS {name}")
        connection.execute(f"USE {name}")
        connection.execute("CREATE SCHEMA data")
        self.rooms[key] = Cached(connection, name)
        return self.rooms[key]

    def forget(self, key: tuple[object, ...]) -> None:
        """A room is in no known state any more."""
        found = self.rooms.pop(key, None)
        if found is not None:
            found.connection.close()
            self.instance.execute(f"DETACH {found.name}")

    def make_room(self, but: Collection[tuple[object, ...]]) -> None:
        """Give up rooms until the rest leaves enough memory for statements.

        Args:
            but: those in which somebody is at work.
        """
        for key in list(self.rooms):
            if sum(one.size for one in self.rooms.values()) <= self.memory * STORES_SHARE:
                return
            if key not in but:
                self.forget(key)


def _was_filling(room: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Whether a room belongs to a filling that is over, as epochs of its warehouse make new ones."""
    (folder, opening), (its_folder, its_opening) = new[:2], room[:2]
    return folder == its_folder and str(its_opening).startswith(f"{opening}{FILLING}")


def _fitting(memory: int) -> int:
    """So many bytes, or what a limit of the process leaves for the engine: Spark may have set one for Python."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return memory
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return min(memory, max(LEAST_MEMORY, int((limit - taken) * ENGINES_SHARE)))


def remove_orphans() -> None:
    """Remove what workers have left that were killed: nobody holds the lock in their folders."""
    for path in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*/{_LOCK}"):
        with contextlib.suppress(OSError), path.open("rb") as lock:  # it is held, or somebody else was faster
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path.parent, ignore_errors=True)


_worker: Worker | None = None


def worker(memory: int | None = None) -> Worker:
    """The one of this process."""
    global _worker  # a process that Spark reuses has nothing else that lasts
    if _worker is None:
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        _worker = Worker(memory)
    return _worker


def load_plan(path: str, mine: Worker) -> TaskPlan:
    """A plan that was written to a file; read once."""
    if path not in mine.plans:
        mine.plans.clear()
        mine.plans[path] = pickle.loads(storage_of(path).read(path))
    return mine.plans[path]


_lasting: tuple[int, tuple[str, ...]] | None = None


def let_it_last() -> None:
    """Have Python's collector leave alone what lasts: modules, and the plan.

    Spark's daemon collects garbage after every task, and a worker takes the next one only then. To look at all that
    these modules are made of takes 50 ms, which is more than most tasks do. Called at the end of a task; looks at
    everything once more only if something was loaded since.
    """
    global _lasting
    there = len(sys.modules), tuple(_worker.plans) if _worker is not None else ()
    if there != _lasting:
        gc.collect()
        gc.freeze()
        _lasting = there
