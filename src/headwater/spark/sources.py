"""The sources of streams as streaming DataFrames, all of one shape.

A source yields the stream's columns, and beside them `#record` and `#place`: a record that does not fit the columns, as
it was, and the file it came in. Records that fit have NULL there.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as spark
from pyspark.sql.functions import coalesce, col, from_json, is_valid_utf8, lit, when
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.version import __version__ as spark_version

from headwater import types as t
from headwater.algebra.scalars import TRUE
from headwater.engine.file_streams import SomeRows
from headwater.engine.files_csv import CsvOptions, parse_options
from headwater.errors import UserError
from headwater.plan.wanted import Wanted, portable
from headwater.spark.conditions import spark_condition
from headwater.spark.types import json_schema, quoted, spark_schema, spark_type
from headwater.store.catalog import Relation, Source

RECORD, PLACE = "#record", "#place"
#: How much of a folder becomes one epoch at most, so that a large history comes in pieces.
MAX_BYTES = 128 << 20
#: What Spark calls a CSV field that is empty and not quoted, which is NULL. Were it empty text, `""` would be NULL too.
_NO_FIELD = "\ufdd0"
WRONG_SOURCE = "HW473"
FOLDERS = ("json", "csv", "parquet")
KAFKA_PACKAGE = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_version}"


def source_name(stream: Relation) -> str:
    """The name under which Spark keeps the position in a stream's source.

    A stream that is dropped and made again, or with another source, begins anew, so its name is another one.
    """
    plain = re.sub(r"\W", "_", stream.folded, flags=re.ASCII)
    identity = f"{stream.folded}\n{stream.source}\n{stream.created}"
    return f"{plain}_{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def _position_name(stream: Relation, source: Source) -> str:
    """Whose position Spark goes on from; nobody's for a socket, which counts its lines from 0 at every start."""
    name = source_name(stream)
    return f"{name}_{secrets.token_hex(4)}" if source.format == "socket" else name


def open_source(session: SparkSession, stream: Relation, base: Path, wanted: Wanted) -> DataFrame:
    """The rows of a stream as they come.

    Args:
        session: where.
        stream: which.
        base: what a folder is relative to.
        wanted: what is needed of it; other columns may be NULL, other rows may be missing, if that saves work.

    Raises:
        UserError: HW473, the source does not fit the stream or cannot be opened.
    """
    source = stream.source
    assert source is not None
    if source.format in FOLDERS and "://" not in source.location:
        source = replace(source, location=str((base / source.location).resolve()))
    reader = session.readStream.name(_position_name(stream, source))
    try:
        if source.format == "parquet":
            return only(_parquet_files(reader, stream, source, wanted.columns), stream, wanted)
        return only(_OPENERS[source.format](reader, stream, source), stream, wanted)
    except AnalysisException as error:
        raise _refused(stream, _first_line(error)) from error


def only(frame: DataFrame, stream: Relation, wanted: Wanted) -> DataFrame:
    """The rows of a source that can change something, and those that have to be rejected."""
    condition = portable(wanted.rows)
    if condition == TRUE or any(t.is_nested(f.type) for f in stream.arriving):
        return frame  # what is inside a nested value is looked at where it arrives
    rejected = [one for f in stream.arriving for one in _rejected(f)]
    return frame.where(reduce(or_, rejected, col(quoted(RECORD)).isNotNull()) | spark_condition(condition))


def _rejected(f: t.Field) -> list[Column]:
    """When a value is none of ours, although Spark has read it; never NULL."""
    value = col(quoted(f.name))
    out = [] if f.nullable else [value.isNull()]
    match f.type:
        case t.Integer(8):  # JSON is read as SMALLINT
            out.append(~value.between(-128, 127))
        case t.Date() | t.Timestamp():
            first, last = (lit(text).cast(spark_type(f.type)) for text in ("0001-01-01", "9999-12-31 23:59:59.999999"))
            out.append(~value.between(first, last))
        case t.String():
            out.append(~is_valid_utf8(value))
    return [coalesce(one, lit(False)) for one in out]


def _refused(stream: Relation, reason: str, hint: str = "look at the FROM of the stream") -> UserError:
    return UserError(WRONG_SOURCE, f"the source of stream {stream.name} ({stream.source}): {reason}", hint=hint)


def _first_line(error: PySparkException) -> str:
    return str(error).strip().split("\n")[0]


# -- files -----------------------------------------------------------------------------------------------------------


def _json_files(reader: DataStreamReader, stream: Relation, source: Source) -> DataFrame:
    _settings(source, stream, {})
    return _records(_files(reader.format("json"), stream, source, json_schema(stream.arriving)), stream)


def _csv_files(reader: DataStreamReader, stream: Relation, source: Source) -> DataFrame:
    try:
        settings: CsvOptions = parse_options(source.options, SomeRows(stream.arriving, stream.arriving, stream.name))
    except UserError as error:
        raise _refused(stream, error.message) from error
    reader = reader.format("csv").options(
        header=settings.header,
        sep=settings.delimiter,
        quote=settings.quote,
        escape=settings.escape or settings.quote,
        nullValue=settings.null or _NO_FIELD,
        emptyValue="",
        # The names in the header are compared with the columns; without this Spark takes columns by position.
        enforceSchema=not settings.header,
        # Of lines, Spark drops blank ones without a word. Where a record can be blank, its parser must find the ends.
        multiLine=settings.delimiter.isspace() or len(stream.arriving) == 1,
    )
    return _records(_files(reader, stream, source, spark_schema(stream.arriving)), stream)


def _parquet_files(reader: DataStreamReader, stream: Relation, source: Source, wanted: frozenset[str]) -> DataFrame:
    """Parquet alone can leave columns unread: of text, every record must be looked at whole to know that it fits."""
    needed = wanted | {f.name for f in stream.arriving if not f.nullable}
    _settings(source, stream, {})
    folder = _folder(stream, source)
    frame = reader.format("parquet").schema(spark_schema(stream.arriving)).option("maxBytesPerTrigger", MAX_BYTES)
    nothing = lit(None).cast("string")
    columns = [
        col(quoted(f.name)) if f.name in needed else lit(None).cast(spark_type(f.type)).alias(f.name)
        for f in stream.arriving
    ]
    return frame.load(folder).select(*columns, nothing.alias(RECORD), nothing.alias(PLACE))


def check_new_files(streams: Iterable[Relation], base: Path, seen: set[str]) -> None:
    """See that the Parquet files of local folders have all columns; Spark would read NULL for one that is missing.

    Args:
        streams: whose sources to look at.
        base: what folders are relative to.
        seen: files that were looked at before; new ones are added.

    Raises:
        UserError: HW473, with the file and the column.
    """
    for stream in streams:
        source = stream.source
        if source is None or source.format != "parquet" or "://" in source.location:
            continue
        for entry in os.scandir(base / source.location):
            if entry.path in seen or entry.name.startswith((".", "_")) or not entry.is_file():
                continue
            try:
                there = pq.read_schema(entry.path).names
            except (OSError, pa.ArrowException) as error:
                raise _refused(stream, f"file {entry.path}: {error}", "remove or repair the file") from error
            missing = [f.name for f in stream.arriving if f.name not in there]
            if missing:
                raise _refused(stream, f"file {entry.path} has no column {missing[0]}", "remove or repair the file")
            seen.add(entry.path)


def _files(reader: DataStreamReader, stream: Relation, source: Source, columns: spark.StructType) -> DataFrame:
    reader = (
        reader.schema(_with_record(columns)).option("columnNameOfCorruptRecord", RECORD).option("mode", "PERMISSIVE")
    )
    return reader.option("maxBytesPerTrigger", MAX_BYTES).load(_folder(stream, source))


def _with_record(columns: spark.StructType) -> spark.StructType:
    return spark.StructType([*columns.fields, spark.StructField(RECORD, spark.StringType())])


def _folder(stream: Relation, source: Source) -> str:
    path = Path(source.location)
    if "://" not in source.location:
        if not path.exists():
            raise _refused(stream, "there is no such folder", f"make it: mkdir -p {path}")
        if not path.is_dir():
            raise _refused(stream, "it is a file, not a folder", "name the folder that new files arrive in")
    return source.location


def _records(frame: DataFrame, stream: Relation) -> DataFrame:
    broken = col(quoted(RECORD)).isNotNull()
    place = when(broken, col("_metadata.file_path"))
    return frame.select(*_columns(stream), col(quoted(RECORD)), place.alias(PLACE))


def _columns(stream: Relation) -> list[Column]:
    return [col(quoted(f.name)) for f in stream.arriving]


# -- lines of JSON -----------------------------------------------------------------------------------------------------


def _socket(reader: DataStreamReader, stream: Relation, source: Source) -> DataFrame:
    _settings(source, stream, {})
    host, _, port = source.location.rpartition(":")
    if not host or not port.isdigit():
        raise _refused(stream, "it must be 'host:port'")
    return _lines(reader.format("socket").option("host", host).option("port", port).load(), "value", stream)


def _kafka(reader: DataStreamReader, stream: Relation, source: Source) -> DataFrame:
    given = _settings(source, stream, {"servers": str, "starting": str})
    if "servers" not in given:
        raise _refused(stream, "kafka needs its servers", "FROM kafka 'topic' (servers 'host:9092')")
    reader = reader.format("kafka").option("kafka.bootstrap.servers", str(given["servers"]))
    reader = reader.option("subscribe", source.location).option(
        "startingOffsets", str(given.get("starting", "earliest"))
    )
    try:
        return _lines(reader.load(), "value", stream)
    except AnalysisException as error:
        if "find data source" not in str(error).lower() and "kafka" not in str(error).lower():
            raise
        hint = f'add it in headwater.toml: [spark] "spark.jars.packages" = "{KAFKA_PACKAGE}"'
        raise _refused(stream, "Spark's connector for Kafka is not there", hint) from error


def _lines(frame: DataFrame, column: str, stream: Relation) -> DataFrame:
    """Rows out of a column of JSON texts."""
    schema = _with_record(json_schema(stream.arriving))
    text = col(column).cast("string")
    settings = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RECORD}
    parsed = frame.select(from_json(text, schema, settings).alias("row"), text.alias("text"))
    whole = col("row").isNull()
    columns = [col(f"row.{quoted(f.name)}").alias(f.name) for f in stream.arriving]
    record = when(whole, col("text")).otherwise(col(f"row.{quoted(RECORD)}"))
    return parsed.select(*columns, record.alias(RECORD), lit(None).cast("string").alias(PLACE))


# -- made rows ---------------------------------------------------------------------------------------------------------


def _rate(reader: DataStreamReader, stream: Relation, source: Source) -> DataFrame:
    if [f.type for f in stream.arriving] != [t.TIMESTAMP, t.BIGINT]:
        raise _refused(stream, "rate makes two columns, a TIMESTAMP and a BIGINT", "declare the stream with these")
    frame = reader.format("rate").option("rowsPerSecond", source.location).load()
    at, value = (f.name for f in stream.arriving)
    nothing = lit(None).cast("string")
    return frame.select(
        col("timestamp").alias(at), col("value").alias(value), nothing.alias(RECORD), nothing.alias(PLACE)
    )


def _settings(source: Source, stream: Relation, known: Mapping[str, type]) -> dict[str, object]:
    for name, value in source.options.items():
        if name.lower() not in known or not isinstance(value, known[name.lower()]):
            there = f"there are {', '.join(known)}" if known else "it has none"
            raise _refused(stream, f"there is no option {name} = {value!r} of FROM {source.format}", there)
    return {name.lower(): value for name, value in source.options.items()}


_OPENERS: dict[str, Callable[[DataStreamReader, Relation, Source], DataFrame]] = {
    "json": _json_files,
    "csv": _csv_files,
    "socket": _socket,
    "kafka": _kafka,
    "rate": _rate,
}
