"""Relations as Spark DataFrames."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import types as t
from headwater.errors import NotSupported
from headwater.spark.session import start_session
from headwater.spark.types import quoted, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headwater.database import Database

TABLES = "spark/tables"


class Tables:
    """Hands relations over to Spark as Parquet files, which is many times faster than row by row or as Arrow."""

    def __init__(self, database: Database) -> None:
        folder = database.warehouse.folder
        if folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="headwater-"))
        else:
            self._folder = folder / TABLES
            shutil.rmtree(self._folder, ignore_errors=True)  # of an earlier process
            self._folder.mkdir(parents=True)

    def frame(self, database: Database, name: str) -> DataFrame:
        """A relation's rows as of the last committed epoch."""
        relation = database.find(name)
        for f in relation.fields:
            if isinstance(f.type, t.DayTimeInterval | t.YearMonthInterval):
                raise NotSupported("HW291", f"{relation.name}.{f.name} is {f.type}, which Parquet does not have")
        rows = database.query(f"SELECT * FROM {quoted(relation.name)}")
        handle, path = tempfile.mkstemp(".parquet", "rows-", self._folder)
        with open(handle, "wb") as file:
            pq.write_table(in_utc(rows), file)
        session = start_session(self._folder.parent)
        return session.read.schema(spark_schema(relation.fields)).parquet(path)

    def close(self) -> None:
        """Remove the files; DataFrames over them can no longer be read."""
        shutil.rmtree(self._folder, ignore_errors=True)


def in_utc(rows: pa.Table) -> pa.Table:
    """Timestamps with the zone that Spark wants of them."""
    for index, f in enumerate(rows.schema):
        if pa.types.is_timestamp(f.type):
            rows = rows.set_column(index, f.name, rows.column(index).cast(pa.timestamp("us", "UTC")))
    return rows
