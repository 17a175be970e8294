"""A streaming DataFrame of the user's own as the source of a stream."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.functions import col, lit
from pyspark.sql.streaming.query import StreamingQuery

from headwater.errors import HeadwaterError, UserError
from headwater.plan.wanted import everything
from headwater.spark.failures import reason_of
from headwater.spark.intake import SPARK, Intake, Report, Streams, folder_of
from headwater.spark.sources import PLACE, RECORD, WRONG_SOURCE, source_name
from headwater.spark.types import quoted, spark_type
from headwater.store.catalog import Kind, Relation
from headwater.store.streams import refuse_without_order

if TYPE_CHECKING:
    from headwater.database import Database

log = logging.getLogger("headwater")

ATTACHED = "attached"


class Attachment:
    """A streaming DataFrame that is being followed; `Database.attach` makes one.

    It is a query of its own: the DataFrame belongs to the user's session, with that session's settings, and its sources
    need not have names. Its position is kept with the warehouse under the stream's name.
    """

    def __init__(self, database: Database, name: str, frame: DataFrame, report: Report) -> None:
        self._database = database
        self._stream = _target(database.find(name))
        for stream in (self._stream, *database.engine.catalog.tagged_over(self._stream)):
            refuse_without_order(stream)
        there = database.attached.get(self._stream.folded)
        if there is not None and there.is_active:
            raise UserError(
                WRONG_SOURCE,
                f"a DataFrame is attached to stream {self._stream.name} already",
                hint="stop it first, or unite the two DataFrames",
            )
        rows = _rows(frame, self._stream)
        self.name = f"{ATTACHED}-{source_name(self._stream)}"
        self._intake = Intake(database, self.name, self._wanted, report)
        checkpoint = folder_of(database) / SPARK / ATTACHED / source_name(self._stream)
        [(_, wanted)] = self._wanted()
        try:
            self._query: StreamingQuery = self._intake.writer([(self._stream, wanted, rows)], checkpoint).start()
        except PySparkException as error:
            raise _refused(self._stream, reason_of(str(error))) from error
        database.attached[self._stream.folded] = self

    @property
    def is_active(self) -> bool:
        """Whether it follows its DataFrame."""
        return bool(self._query.isActive)

    def process_all(self) -> None:
        """Wait until all that is there now has been taken in."""
        try:
            self._query.processAllAvailable()
        except PySparkException:
            self.stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it ends by itself, which it does when something goes wrong; whether it has ended."""
        if seconds is not None and seconds <= 0:
            ended = not self.is_active
            if ended:
                self.stop()
            return ended
        try:
            ended = self._query.awaitTermination(None if seconds is None else math.ceil(seconds)) is not False
        except PySparkException:
            ended = True
        if ended:
            self.stop()
        return ended

    def stop(self) -> None:
        """End after the epoch that is under way. Stopping twice does nothing.

        Raises:
            HeadwaterError: it had ended before, for this reason.
        """
        self._intake.end(self._query)

    def close(self) -> None:
        """Stop; what had gone wrong before and nobody asked for is logged."""
        try:
            self.stop()
        except HeadwaterError as error:
            log.warning("the DataFrame attached to %s had ended: %s", self._stream.name, error)

    def _wanted(self) -> Streams:
        there = self._database.engine.catalog.find(self._stream.name)
        if there is None or source_name(there) != source_name(self._stream):
            raise UserError("HW102", f"stream {self._stream.name} was dropped", hint="attach another stream")
        return [(there, everything(there.arriving))]


def _target(stream: Relation) -> Relation:
    if stream.kind is not Kind.STREAM:
        raise UserError(
            WRONG_SOURCE,
            f"{stream.name} is a {stream.kind.value}: only a stream can be attached to",
            hint="CREATE STREAM s (...)",
        )
    if stream.source is not None:
        raise UserError(
            WRONG_SOURCE,
            f"stream {stream.name} has a source already: {stream.source}",
            hint="create a stream without FROM",
        )
    return stream


def _refused(stream: Relation, reason: str, hint: str = "change the DataFrame") -> UserError:
    return UserError(WRONG_SOURCE, f"the DataFrame for stream {stream.name}: {reason}", hint=hint)


def _rows(frame: DataFrame, stream: Relation) -> DataFrame:
    if not isinstance(frame, DataFrame):
        raise _refused(stream, f"it is a {type(frame).__name__}", "db.attach takes a streaming DataFrame of Spark")
    if not frame.isStreaming:
        raise _refused(stream, "it is not a streaming one", "db.insert takes rows that are all there")
    there = {f.name: f.dataType for f in frame.schema.fields}
    unknown = [name for name in there if name not in {f.name for f in stream.arriving}]
    if unknown:
        raise _refused(stream, f"the stream has no column {unknown[0]}")
    for f in stream.arriving:
        if f.name not in there:
            raise _refused(stream, f"it has no column {f.name}")
        if not _fits(there[f.name], spark_type(f.type)):
            raise _refused(
                stream,
                f"column {f.name} is {there[f.name].simpleString().upper()}, not {f.type}",
                f"cast it: frame.withColumn({f.name!r}, col({f.name!r}).cast({spark_type(f.type).simpleString()!r}))",
            )
    nothing = lit(None).cast("string")
    columns = [col(quoted(f.name)) for f in stream.arriving]
    try:
        return frame.select(*columns, nothing.alias(RECORD), nothing.alias(PLACE))
    except PySparkException as error:
        raise _refused(stream, reason_of(str(error))) from error


def _fits(given: spark.DataType, wanted: spark.DataType) -> bool:
    if isinstance(wanted, spark.TimestampType) and isinstance(given, spark.TimestampNTZType):
        return True
    return given.simpleString() == wanted.simpleString()
