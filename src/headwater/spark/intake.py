"""The micro-batches of a streaming query become epochs.

Exactly once. Spark notes in its checkpoint which part of the sources a micro-batch is before it hands it over, and that
it is done afterwards; a batch that was under way is handed over again with the same number. Headwater commits that
number with the epoch. So a batch that comes again is either not committed, and is applied, or is, and is skipped.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headwater.engine.engine import Mark
from headwater.engine.operations import InsertRows
from headwater.errors import UserError
from headwater.plan.wanted import Wanted
from headwater.spark.batches import Arrived, needed_over, take_apart, unite, write_rejects
from headwater.spark.failures import unreadable
from headwater.spark.session import LOG
from headwater.spark.sources import source_name
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: The streams that are followed, each with the part of it that is read.
Streams = list[tuple[Relation, Wanted]]

REJECTS, SPARK = "rejects", "spark"


@dataclass(frozen=True)
class Progress:
    """What a micro-batch did.

    Attributes:
        batch: Spark's number of it.
        epoch: its epoch; None if it had been committed before and was skipped.
        rows: by stream.
        rejects: by stream.
        seconds: until it was committed, from the moment Spark handed it over.
        suspended: views that could not take it, with the reason.
        behind: by view, how many epochs it has not seen: none, unless it is suspended.
    """

    batch: int
    epoch: int | None
    rows: Mapping[str, int]
    rejects: Mapping[str, int]
    seconds: float
    suspended: Mapping[str, str] = field(default_factory=dict)
    behind: Mapping[str, int] = field(default_factory=dict)


Report = Callable[[Progress], None]


def folder_of(database: Database) -> Path:
    """The warehouse's folder."""
    if database.warehouse.folder is None:
        raise UserError("HW474", "a pipeline needs a warehouse on disk", hint="connect to a folder")
    return database.warehouse.folder


class Intake:
    """Takes in what a streaming query brings.

    Attributes:
        outdated: a batch was not taken because more of a stream is wanted now than was read.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        wanted: Callable[[], Streams],
        report: Report = lambda progress: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare.

        Args:
            database: where the rows go.
            name: under which the number of the last batch is kept.
            wanted: what is wanted now; asked with the writer held.
            report: told of every micro-batch, from the thread that commits it.
            check: called before a batch is read.
        """
        self._database = database
        self._name = name
        self._wanted = wanted
        self._report = report
        self._check = check
        self._folder = folder_of(database)
        self._failure: BaseException | None = None
        self._closing = self.outdated = False
        self._taking = threading.Lock()
        self._taker: int | None = None
        self._told = False

    @property
    def _log(self) -> Path:
        return self._folder / SPARK / LOG

    def writer(self, sources: list[tuple[Relation, Wanted, DataFrame]], checkpoint: Path) -> DataStreamWriter:
        """The query that hands the rows of sources over, ready to be started."""
        self.outdated = self._closing = self._told = False
        streams = [(stream, wanted) for stream, wanted, _ in sources]
        frame = unite([(stream, source) for stream, _, source in sources])

        # Spark never forgets the function it is given, nor an error from it with all that its traceback holds.
        me = weakref.ref(self)

        def take(batch: DataFrame, number: int) -> None:
            intake = me()
            taken = False
            if intake is not None:
                with intake._taking:
                    intake._taker = threading.get_ident()
                    taken = not intake._closing and intake._take(batch, number, streams)
                    intake._taker = None
            del intake
            if not taken:
                raise RuntimeError("the batch was not committed")

        writer = frame.writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", str(checkpoint.resolve()))

    def end(self, query: StreamingQuery) -> None:
        """Stop a query after the epoch that is under way, and raise what went wrong with it, once, if anything did.

        Whoever is told of a batch may ask for it, too: then it ends once the batch is over.
        """
        if self._taker == threading.get_ident():
            threading.Thread(target=self._end_later, args=(query,), daemon=True).start()
            return
        ended = not query.isActive
        with self._taking:  # stopping would interrupt an epoch
            self._closing = True
        query.stop()
        if self.outdated or self._told:
            return
        self._told = True
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        error = query.exception() if ended else None
        if error is not None:
            raise unreadable(error, self._log) from error

    def _end_later(self, query: StreamingQuery) -> None:
        with self._taking:
            self._closing = True
        query.stop()

    # -- a micro-batch -----------------------------------------------------------------------------------------------

    def _take(self, batch: DataFrame, number: int, streams: Streams) -> bool:
        """Make an epoch of a micro-batch; False, with the reason in `_failure`, if it could not be."""
        try:
            began = time.perf_counter()
            engine = self._database.engine
            with engine.lock:
                last = engine.last_batch(self._name)
            if last is not None and number <= last:
                self._report(Progress(number, None, {}, {}, 0.0))
                return True
            self._check()
            try:
                table = batch.toArrow()
            except (PySparkException, Py4JError) as error:
                raise unreadable(error, self._log) from error
            followed = [stream for stream, _ in streams]
            arrived = take_apart(table, followed, needed_over(engine.catalog, followed))
            return self._apply(arrived, number, began, streams)
        except BaseException as error:
            self._failure = error
            return False

    def _apply(self, arrived: list[Arrived], number: int, began: float, streams: Streams) -> bool:
        """Commit a batch; False if more is wanted since, so that the batch must be read again."""
        rejects = {one.stream.name: len(one.rejects) for one in arrived if one.rejects}
        for one in arrived:
            if one.rejects:
                write_rejects(self._folder / REJECTS, f"{self._name}-{number:09d}", one)
        database = self._database
        with database.engine.lock:
            now = {source_name(stream): wanted for stream, wanted in self._wanted()}
            if not all(read.covers(now.get(source_name(stream), read)) for stream, read in streams):
                self.outdated = True
                return False
            operations = [
                InsertRows(one.stream.name, one.rows)
                for one in arrived
                if one.rows.num_rows and source_name(one.stream) in now
            ]
            epoch = database.engine.run(operations, mark=Mark(self._name, number, rejects))
        rows = {one.stream.name: one.rows.num_rows for one in arrived}
        behind = {
            one.name: epoch.number - (epoch.number if one.stopped is None else one.stopped)
            for one in database.engine.catalog
            if one.program
        }
        seconds = time.perf_counter() - began
        self._report(Progress(number, epoch.number, rows, rejects, seconds, dict(epoch.suspended), behind))
        return True
