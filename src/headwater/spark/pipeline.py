"""The pipeline: all sources of a warehouse's streams in one streaming query."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.errors import UserError
from headwater.plan.wanted import Wanted, everything
from headwater.spark.intake import SPARK, Intake, Progress, Report, Streams, folder_of
from headwater.spark.session import start_session
from headwater.spark.sources import check_new_files, open_source, source_name
from headwater.store.catalog import Catalog, Relation
from headwater.store.streams import refuse_without_order

if TYPE_CHECKING:
    from headwater.database import Database

__all__ = ["Pipeline", "Progress"]

PIPELINE = "main"
CHECKPOINT = "spark/checkpoint"
_LOOK_SECONDS = 0.1


class Pipeline:
    """Runs the sources of a warehouse's streams."""

    def __init__(
        self,
        database: Database,
        settings: Mapping[str, object] | None = None,
        report: Report = lambda progress: None,
        base: Path | None = None,
    ) -> None:
        """Prepare; `run` starts it.

        Args:
            database: whose streams to follow.
            settings: Spark's own; see `start_session`.
            report: told of every micro-batch, from the thread that commits it.
            base: what the folders of sources are relative to; the current folder by default.
        """
        self._database = database
        self._settings = dict(settings or {})
        self._base = base or Path()
        self._folder = folder_of(database)
        self._stop = threading.Event()
        self._query: StreamingQuery | None = None
        self._over = False
        self._seen: set[str] = set()
        self._intake = Intake(database, PIPELINE, self._streams, report, self._check_files)

    def run(self, once: bool = False) -> None:
        """Follow the sources until `stop`; with `once`, until all that is there has been taken in.

        Raises:
            UserError: HW473 a source cannot be read; HW475 there is none.
            HeadwaterError: an epoch could not be committed.
        """
        if not self._database.following.acquire(blocking=False):
            raise UserError("HW476", "a pipeline of this warehouse runs already", hint="stop it first")
        self._over = False
        try:
            self._run(start_session(self._folder / SPARK, self._settings), once)
        finally:
            self._over, self._query = True, None
            self._database.following.release()

    def _run(self, session: SparkSession, once: bool) -> None:
        while not self._stop.is_set():
            streams = self._streams()
            if not streams:
                raise UserError(
                    "HW475", "no stream has a source", hint="CREATE STREAM s (...) FROM json 'folder', for example"
                )
            query = self._query = self._start(session, streams, once)
            try:
                changed = self._follow(query, streams)
            finally:
                self._intake.end(query)
            if once and not changed and not self._intake.outdated:
                return

    def stop(self) -> None:
        """End after the epoch that is under way; safe to call from a signal handler."""
        self._stop.set()

    def process_all(self) -> None:
        """Wait until all that is there now has been taken in; `run` runs in another thread. Returns when that ends."""
        while not self._stop.is_set() and not self._over:
            query = self._query
            if query is None:
                time.sleep(_LOOK_SECONDS)
                continue
            with contextlib.suppress(PySparkException):  # it was started anew, or has failed, which `run` raises
                query.processAllAvailable()
                if query.isActive and query is self._query:
                    return

    def _streams(self) -> Streams:
        catalog = self._database.engine.catalog
        return [(one, _read_of(one, catalog)) for one in catalog if one.has_feed]

    def _check_files(self) -> None:
        check_new_files((stream for stream, _ in self._streams()), self._base, self._seen)

    def _start(self, session: SparkSession, streams: Streams, once: bool) -> StreamingQuery:
        for stream, _ in streams:
            for tagged in self._database.engine.catalog.tagged_over(stream):
                refuse_without_order(tagged)
        sources = [(one, wanted, open_source(session, one, self._base, wanted)) for one, wanted in streams]
        writer = self._intake.writer(sources, self._folder / CHECKPOINT)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def _follow(self, query: StreamingQuery, streams: Streams) -> bool:
        """Wait for the query's end; True if it must be started anew because streams came or went, or need more."""
        while query.isActive and not self._stop.is_set():
            self._stop.wait(_LOOK_SECONDS)
            if query.isActive and not _is_read(self._streams(), streams):
                return True
        return False


def _read_of(stream: Relation, catalog: Catalog) -> Wanted:
    """What is read of a stream: what is wanted, but for columns of text, which is looked at whole in any case.

    A socket is read whole: to begin anew because more is wanted would lose lines.
    """
    assert stream.source is not None
    whole, wanted = everything(stream.arriving), catalog.wanted(stream)
    if stream.source.format == "socket":
        return whole
    return wanted if stream.source.format == "parquet" else Wanted(whole.columns, wanted.rows)


def _is_read(wanted: Streams, read: Streams) -> bool:
    """Whether exactly the streams that are wanted are read, with all that is wanted of them."""
    return [source_name(stream) for stream, _ in wanted] == [source_name(stream) for stream, _ in read] and all(
        there.covers(needed) for (_, needed), (_, there) in zip(wanted, read, strict=True)
    )
