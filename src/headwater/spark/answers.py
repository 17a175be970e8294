"""Answering a query on Spark: for one that reads more than one machine's DuckDB should."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import types as t
from headwater.engine.arrow_types import arrow_schema
from headwater.errors import NotSupported, UserError
from headwater.serve.export import export
from headwater.serve.lying import Lying
from headwater.serve.query import Prepared
from headwater.spark.failures import reason_of
from headwater.spark.session import start_session
from headwater.spark.stages import memory_of_task, memory_setting, workers_like_us
from headwater.spark.tables import in_utc
from headwater.spark.types import quoted, spark_schema
from headwater.store.storage import means_of, mount

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from headwater.engine.engine import Engine

FOLDER = "spark/answers"


class Answers:
    """Runs queries on Spark, one after the other, over files of what their relations hold.

    The text of a query is Spark SQL, so it is Spark's to evaluate; relations are temporary views there. The files are
    all of one epoch, and are used again as long as none of the relations has changed. What lies away is not written
    again: tasks evaluate it from its segments, which stay as long as they may be needed here.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        folder = engine.warehouse.folder
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-")) if folder is None else folder / FOLDER
        shutil.rmtree(self._folder, ignore_errors=True)  # of an earlier process
        self._folder.mkdir(parents=True)
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._kept: tuple[tuple[str, ...], tuple[int, ...]] | None = None
        self._lying: dict[str, Lying] = {}

    def run(self, text: str, query: Prepared, relations: Mapping[str, Prepared]) -> pa.Table:
        """The rows of a query.

        Args:
            text: as it was written.
            query: as it was bound, whose columns the answer has.
            relations: queries for all of each relation that it reads, by name.

        Raises:
            NotSupported: HW284, a relation has a type that files do not have.
            UserError: HW347, Spark has failed.
        """
        for name, one in relations.items():
            for f in one.answer.node.schema:
                if isinstance(f.type, t.DayTimeInterval | t.YearMonthInterval):
                    raise NotSupported(
                        "HW284", f"{name} has a column of type {f.type}, which Spark cannot be given", hint="use DuckDB"
                    )
        with self._lock:
            if self._session is None:
                self._session = start_session(self._folder.parent)
            self._export(relations, query)
            for name, one in relations.items():
                self._frame(self._session, name, one).createOrReplaceTempView(quoted(name))
            try:
                found = self._session.sql(text).toArrow()
            except Exception as error:
                hint = "engine='duckdb' answers it here"
                raise UserError("HW347", f"Spark cannot answer this: {reason_of(str(error))}", hint=hint) from error
            finally:
                for name in relations:
                    self._session.catalog.dropTempView(name)
        return _in_our_types(found, query)

    def _frame(self, session: SparkSession, name: str, query: Prepared) -> DataFrame:
        answer = query.answer
        fields = tuple(t.Field(shown, f.type) for shown, f in zip(answer.names, answer.node.schema, strict=False))
        if name in self._lying:
            return evaluated(session, self._lying[name], spark_schema(fields))
        return session.read.schema(spark_schema(fields)).parquet(str(self._file(name)))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name.encode().hex()}.parquet"

    def _export(self, relations: Mapping[str, Prepared], query: Prepared) -> None:
        """Write what relations hold, unless what was written last still holds."""
        stamps = self._engine.stamps
        stores = tuple(sorted({store for one in relations.values() for store in one.stores}))
        now = stamps.take(stores)  # before the snapshot is
        held = (tuple(sorted(relations)), now)
        if self._kept == held and stamps.steady(stores):
            return
        self._kept = None
        self._release()

        away = self._engine.away

        def lies(name: str, found: Lying) -> None:
            assert away is not None
            self._lying[name] = found
            away.files.hold(found.paths)

        def write(name: str, schema: pa.Schema, rows: Iterator[pa.Table]) -> None:
            with pq.ParquetWriter(self._file(name), in_utc(schema.empty_table()).schema) as file:
                for one in rows:
                    file.write_table(in_utc(one))

        export(self._engine.warehouse, relations, query.catalog, write, None if away is None else lies)
        self._kept = held

    def _release(self) -> None:
        for one in self._lying.values():
            assert self._engine.away is not None
            self._engine.away.files.release(one.paths)
        self._lying.clear()

    def close(self) -> None:
        """Remove the files."""
        self._release()
        shutil.rmtree(self._folder, ignore_errors=True)


def evaluated(session: SparkSession, one: Lying, schema: StructType) -> DataFrame:
    """What lies away, each partition evaluated in a task."""
    memory = memory_setting(session) or memory_of_task()
    count, means = len(one.partitions), means_of(one.paths[0])

    def evaluate(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mount(means)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in one.rows(number, memory):
                    yield from in_utc(rows).to_batches()

    with workers_like_us(session.sparkContext):
        return session.range(0, count, 1, count).mapInArrow(evaluate, schema)


def _in_our_types(found: pa.Table, query: Prepared) -> pa.Table:
    """Spark's answer in the types that DuckDB's has."""
    answer = query.answer
    schema = arrow_schema(answer.node.schema[: len(answer.names)])
    columns = [_without_zone(column).cast(f.type) for column, f in zip(found.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema).rename_columns(list(answer.names))


def _without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
