"""The pipeline: all sources in one streaming query, whose micro-batches are epochs.

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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.engine.engine import Mark
from headwater.engine.operations import InsertRows
from headwater.errors import UserError
from headwater.spark.batches import Arrived, take_apart, unite, write_rejects
from headwater.spark.failures import unreadable
from headwater.spark.session import LOG, start_session
from headwater.spark.sources import check_new_files, open_source, source_name
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: The streams that are followed, each with the columns that are read of it.
Streams = list[tuple[Relation, frozenset[str]]]

PIPELINE = "main"
CHECKPOINT, REJECTS, SPARK = "spark/checkpoint", "rejects", "spark"
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Progress:
    """What an epoch of the pipeline did.

    Attributes:
        batch: Spark's number of the micro-batch.
        epoch: its epoch; None if it had been committed before and was skipped.
        rows: by stream.
        rejects: by stream.
        seconds: until it was committed, from the moment Spark handed it over.
        suspended: views that could not take it, with the reason.
    """

    batch: int
    epoch: int | None
    rows: Mapping[str, int]
    rejects: Mapping[str, int]
    seconds: float
    suspended: Mapping[str, str] = field(default_factory=dict)


class Pipeline:
    """Runs the sources of a warehouse's streams."""

    def __init__(
        self,
        database: Database,
        settings: Mapping[str, object] | None = None,
        report: Callable[[Progress], None] = lambda progress: None,
        base: Path | None = None,
    ) -> None:
        """Prepare; `run` starts it.

        Args:
            database: whose streams to follow.
            settings: Spark's own; see `start_session`.
            report: told of every micro-batch, from the thread that commits it.
            base: what the folders of sources are relative to; the current folder by default.
        """
        if database.warehouse.folder is None:
            raise UserError("HW474", "a pipeline needs a warehouse on disk", hint="connect to a folder")
        self._database = database
        self._settings = dict(settings or {})
        self._report = report
        self._base = base or Path()
        self._folder: Path = database.warehouse.folder
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._outdated = self._closing = False
        self._taking = threading.Lock()
        self._seen: set[str] = set()

    @property
    def _log(self) -> Path:
        return self._folder / SPARK / LOG

    def run(self, once: bool = False) -> None:
        """Follow the sources until `stop`; with `once`, until all that is there has been taken in.

        Raises:
            UserError: HW473 a source cannot be read; HW475 there is none.
            HeadwaterError: an epoch could not be committed.
        """
        session = start_session(self._folder / SPARK, self._settings)
        while not self._stop.is_set():
            streams = self._streams()
            if not streams:
                raise UserError(
                    "HW475", "no stream has a source", hint="CREATE STREAM s (...) FROM json 'folder', for example"
                )
            query = self._start(session, streams, once)
            try:
                changed = self._follow(query, streams)
            finally:
                ended = not query.isActive
                with self._taking:  # an epoch that is under way is finished first: stopping would interrupt it
                    self._closing = True
                query.stop()
            changed = changed or self._outdated
            if not self._outdated:
                self._check(query if ended else None)
            if once and not changed:
                return

    def stop(self) -> None:
        """End after the epoch that is under way; safe to call from a signal handler."""
        self._stop.set()

    def _streams(self) -> Streams:
        catalog = self._database.engine.catalog
        return [(one, catalog.needed_columns(one)) for one in catalog if one.source is not None]

    def _start(self, session: SparkSession, streams: Streams, once: bool) -> StreamingQuery:
        self._outdated = self._closing = False
        frame = unite([(stream, open_source(session, stream, self._base, needed)) for stream, needed in streams])

        # Spark never forgets the function it is given, nor an error from it with all that its traceback holds.
        me = weakref.ref(self)

        def take(batch: DataFrame, number: int) -> None:
            pipeline = me()
            taken = False
            if pipeline is not None:
                with pipeline._taking:
                    taken = not pipeline._closing and pipeline._take(batch, number, streams)
            del pipeline
            if not taken:
                raise RuntimeError("the batch was not committed")

        writer = frame.writeStream.foreachBatch(take).queryName("headwater")
        writer = writer.option("checkpointLocation", str((self._folder / CHECKPOINT).resolve()))
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")
        return writer.start()

    def _follow(self, query: StreamingQuery, streams: Streams) -> bool:
        """Wait for the query's end; True if it must be started anew because streams came or went, or need more."""
        while query.isActive and not self._stop.is_set():
            self._stop.wait(_LOOK_SECONDS)
            if query.isActive and not _is_read(self._streams(), streams):
                return True
        return False

    def _check(self, query: StreamingQuery | None) -> None:
        """Raise what went wrong in an epoch, or in a query that ended by itself."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        error = query.exception() if query is not None else None
        if error is not None:
            raise unreadable(error, self._log) from error

    # -- a micro-batch -----------------------------------------------------------------------------------------------

    def _take(self, batch: DataFrame, number: int, streams: Streams) -> bool:
        """Make an epoch of a micro-batch; False, with the reason in `_failure`, if it could not be."""
        try:
            began = time.perf_counter()
            engine = self._database.engine
            with engine.lock:
                last = engine.last_batch(PIPELINE)
            if last is not None and number <= last:
                self._report(Progress(number, None, {}, {}, 0.0))
                return True
            check_new_files((stream for stream, _ in streams), self._base, self._seen)
            try:
                table = batch.toArrow()
            except (PySparkException, Py4JError) as error:
                raise unreadable(error, self._log) from error
            return self._apply(take_apart(table, [stream for stream, _ in streams]), number, began, streams)
        except BaseException as error:
            self._failure = error
            return False

    def _apply(self, arrived: list[Arrived], number: int, began: float, streams: Streams) -> bool:
        """Commit a batch; False if a view needs more columns since, so that the batch must be read again."""
        rejects = {one.stream.name: len(one.rejects) for one in arrived if one.rejects}
        for one in arrived:
            if one.rejects:
                write_rejects(self._folder / REJECTS, number, one)
        database = self._database
        with database.engine.lock:
            there = {source_name(stream): needed for stream, needed in self._streams()}
            if any(there.get(source_name(stream), columns) - columns for stream, columns in streams):
                self._outdated = True
                return False
            operations = [
                InsertRows(one.stream.name, one.rows)
                for one in arrived
                if one.rows.num_rows and source_name(one.stream) in there
            ]
            epoch = database.engine.run(operations, mark=Mark(PIPELINE, number, rejects))
        database.consolidator.nudge()
        rows = {one.stream.name: one.rows.num_rows for one in arrived}
        self._report(Progress(number, epoch.number, rows, rejects, time.perf_counter() - began, dict(epoch.suspended)))
        return True


def _is_read(wanted: Streams, read: Streams) -> bool:
    """Whether exactly the streams that are wanted are read, with all columns that are wanted of them."""
    return [source_name(stream) for stream, _ in wanted] == [source_name(stream) for stream, _ in read] and all(
        needed <= columns for (_, needed), (_, columns) in zip(wanted, read, strict=True)
    )
