"""Tasks on Spark: one job an epoch, one stage a level, what goes between levels as bytes through a shuffle.

What goes between them is messages: to which level, partition and room, for which table, and rows as an Arrow stream.
Spark moves them as they are. Rows as columns of Spark's own would be taken apart and put together again on both sides
of each exchange. A DataFrame of messages would have to be planned in every epoch, which takes about as long as all else
that Spark does for a job without rows (measured: two levels on two executors, 0.38 s against 0.22 s for this).
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.engine import moves
from headwater.engine.merges import Merge, Merged, carry_out
from headwater.engine.moves import Move, Moved
from headwater.engine.parcels import Order
from headwater.engine.room import run_task
from headwater.engine.workers import Worker, let_it_last, load_plan, worker
from headwater.errors import UserError
from headwater.spark.exchange import Exchange, Going, unpacked
from headwater.spark.failures import reason_of
from headwater.spark.seats import Seats, executors_of
from headwater.store.storage import Means, means_of, mount, storage_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger("headwater")

Result = TypeVar("Result")

#: So many jobs are begun for the tasks of an epoch before it fails.
MOST_JOBS = 3

#: Without these, a process with Arrow and DuckDB reserves a gigabyte of addresses before it has done anything, and
#: DuckDB's allocator never gives any back.
_SPARING = {
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "DUCKDB_JE_MALLOC_CONF": "retain:false,dirty_decay_ms:200",
}

#: A process has one context, whose settings are changed for a moment by whoever makes stages.
_CHANGING = threading.Lock()


class SparkRunner:
    """Runs the tasks of an epoch as one job."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        """Make it; Spark is started with the first job, and again if somebody has stopped it.

        Args:
            start: starts it, or finds it running.
        """
        self._start = start
        self._session: SparkSession | None = None
        self._lock = threading.Lock()
        self._seats = Seats()
        self._exchange: Exchange | None = None
        #: The name under which Spark knows what puts segments together.
        self._merges = f"headwater-merges-{uuid.uuid4().hex[:12]}"

    @property
    def session(self) -> SparkSession:
        with self._lock:
            if self._session is None or self._session.sparkContext._jsc is None:
                self._session = self._start()
            return self._session

    @property
    def places(self) -> int:
        return int(self.session.sparkContext.defaultParallelism)

    def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        """See `headwater.engine.away.Runner`.

        Spark runs a task again that has died, but for those of a local master; and not more than some times. What a job
        did that failed does not count, so there can be another one.
        """
        return self._tried(lambda: self._job(plan, order, levels, partitions), "the tasks of an epoch")

    def _tried(self, job: Callable[[], list[Result]], what: str) -> list[Result]:
        """What a job gives, or another one after it if it fails."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        for left in reversed(range(MOST_JOBS)):
            try:
                return job()
            except (PySparkException, Py4JError) as error:
                missing = _missing(str(error))
                if not left or missing is not None:
                    raise _failed(error, missing, what) from error
                log.warning("%s failed, and are run again: %s", what, reason_of(str(error)))
        raise AssertionError("the last job either ends or fails")

    @property
    def ready(self) -> bool:
        session = self._session
        return session is not None and session.sparkContext._jsc is not None

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        """See `headwater.engine.away.Runner`. It is a job of its own, which Spark runs beside those of epochs.

        Raises:
            UserError: HW479, the job has failed, or was given up.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            context = self.session.sparkContext
            context.setJobGroup(self._merges, "Headwater puts segments together")  # of this thread
            with workers_like_us(context):
                means = means_of(shares[0][0].folder)
                tasks = context.parallelize(shares, len(shares)).mapPartitions(_put_together(means))
                tasks._jrdd  # noqa: B018  see `_job`
            return list(tasks.collect())
        except (PySparkException, Py4JError) as error:
            raise _failed(error, _missing(str(error)), "a job that puts segments together") from error

    def stop_merges(self) -> None:
        with suppress(Exception):  # whatever it is, Spark is not there any more
            if self.ready:
                self.session.sparkContext.cancelJobGroup(self._merges)

    def run_moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        """See `headwater.engine.away.Runner`."""
        return self._tried(lambda: self._moves(shares), "tasks that divide segments anew")

    def _moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        context = self.session.sparkContext
        with workers_like_us(context):
            means = means_of(shares[0][0].folder)
            tasks = context.parallelize(shares, len(shares)).mapPartitions(_move(means))
            tasks._jrdd  # noqa: B018  see `_job`
        return list(tasks.collect())

    def _job(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        context = self.session.sparkContext
        with workers_like_us(context):
            exchange, means = self._exchange_on(context, partitions), means_of(order)
            sent = exchange.begin(_stage(plan, order, 1, means))
            for level in range(2, levels + 1):
                sent = exchange.then(sent, _stage(plan, order, level, means), order.rpartition("/")[0])
            sent._jrdd  # noqa: B018  the last stage, too, takes Python's program from the context now
        return [parcel.data for parcel in sent.collect()]

    def _exchange_on(self, context: SparkContext, partitions: int) -> Exchange:
        """The stages of a job; the same as for the last one, unless executors have come or gone."""
        seats = self._seats.of(executors_of(context), partitions)
        if self._exchange is None or not self._exchange.fits(context, partitions, seats):
            self._exchange = Exchange(context, partitions, seats)
        return self._exchange


@contextmanager
def workers_like_us(context: SparkContext) -> Iterator[None]:
    """Have stages that are made meanwhile run in this process's Python, if they run on its machine.

    A session that somebody else has started takes the first `python3` of the path, which may know nothing of Headwater.
    Where PYSPARK_PYTHON is set somebody has chosen, and on other machines paths are others. Everywhere, workers reserve
    no more addresses than they use: these are what Spark limits.
    """
    with _CHANGING:
        theirs, environment = context.pythonExec, dict(context.environment)
        context.environment.update({**_SPARING, **environment})
        if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        try:
            yield
        finally:
            context.pythonExec = theirs
            context.environment.clear()
            context.environment.update(environment)


def _missing(text: str) -> str | None:
    """What Python's workers lack, if that is why they failed."""
    module = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
    if module is not None:
        return f"Python's workers on Spark have no module {module[1]}"
    if "PYTHON_VERSION_MISMATCH" in text:
        return "Python's workers on Spark are of another version than this process"
    if "Cannot run program" in text:
        program = re.search(r'Cannot run program "([^"]*)"', text)
        return f"Spark's executors have no program {program[1] if program else 'for Python'}"
    return None


def _failed(error: Exception, missing: str | None, what: str = "the tasks of an epoch") -> UserError:
    if missing is None and re.search(r"MemoryError|Out of Memory|OutOfMemory", str(error)):
        return UserError(
            "HW479",
            f"{what} failed: {reason_of(str(error))}",
            hint="nothing changed; raise spark.executor.pyspark.memory, or ALTER WAREHOUSE SET PARTITIONS to more",
        )
    if missing is None:
        return UserError(
            "HW479",
            f"{what} failed: {reason_of(str(error))}",
            hint="nothing changed; Spark's log says more",
        )
    return UserError(
        "HW479",
        f"{what} failed: {missing}",
        hint="nothing changed; install headwater, of this version, for the Python that PYSPARK_PYTHON names on every "
        "machine, or let spark.executorEnv.PYTHONPATH lead to it",
    )


def _stage(plan: str, order: str, level: int, means: Means | None) -> Callable[[Iterable[Any]], Going]:
    """What a task of a level does with what comes to it."""

    def run(came: Iterable[Any]) -> Going:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mount(means)
        told: Order = pickle.loads(storage_of(order).read(order))
        mine = worker(told.memory or memory_of_task())
        mount(means, mine.folder)
        parcels = unpacked(came) if level > 1 else ()
        yield from run_task(mine, load_plan(plan, mine), told, level, context.partitionId(), parcels)
        for _ in came:
            pass  # Spark wants to be read to the end
        let_it_last()

    return run


def _shares(
    means: Means | None, carry: Callable[[Worker, Any], Any]
) -> Callable[[Iterable[Sequence[Any]]], Iterator[Any]]:
    """What a task does with its shares of work that is no epoch's."""

    def run(shares: Iterable[Sequence[Any]]) -> Iterator[Any]:
        for share in shares:
            for one in share:
                mine = worker(one.memory or memory_of_task())
                mount(means, mine.folder)
                yield carry(mine, one)
        let_it_last()

    return run


def _put_together(means: Means | None) -> Callable[[Iterable[Sequence[Merge]]], Iterator[Merged]]:
    return _shares(means, carry_out)


def _move(means: Means | None) -> Callable[[Iterable[Sequence[Move]]], Iterator[Moved]]:
    return _shares(means, lambda mine, one: moves.carry_out(mine.instance, one))


def memory_of_task() -> int:
    """How much memory a task's engine takes if Spark sets no limit: its share of half of the machine's."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return whole // 2 // max(1, os.cpu_count() or 1)


def memory_setting(session: SparkSession) -> int | None:
    """What Spark's setting for the memory of Python in an executor leaves the engine of each task, in bytes."""
    text = session.sparkContext.getConf().get("spark.executor.pyspark.memory")
    if not text:
        return None
    unit = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    text = text.strip().lower()
    number = "".join(one for one in text if one.isdigit())
    size = int(number) * unit.get(text[len(number) : len(number) + 1] or "m", 1 << 20)
    cores = int(session.sparkContext.getConf().get("spark.executor.cores") or "1")
    return int(size * 0.6) // max(1, cores)
