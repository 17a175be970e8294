"""Segments as files: written, put together, named, and looked at when one cannot be read."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Sequence

import duckdb

from headwater.algebra.parts import PART
from headwater.emit.layout import EPOCH, sql, store_table
from headwater.engine.tasks import CopyPlan
from headwater.store.segments import ALL, Segment
from headwater.store.storage import SEGMENTS, said, storage_of

#: What a byte of a segment takes in memory, about.
_UNPACKED = 5
#: How a segment is written. Whoever reads one holds a row group of each file in memory, and so does whoever writes one;
#: a hundred thousand rows of half a kilobyte, which DuckDB takes by itself, are more than a task may have.
WRITTEN = "FORMAT parquet, ROW_GROUP_SIZE_BYTES '8MB'"


def put_together(
    connection: duckdb.DuckDBPyConnection,
    copy: CopyPlan,
    files: Iterable[Segment],
    path: str,
    floor: int | None = None,
    epoch: int | None = None,
) -> int:
    """Write what some segments of a copy add up to as one; returns its rows.

    Args:
        connection: to read and write with.
        copy: of which copy.
        files: which segments.
        path: of the new one.
        floor: parts before this one are left out.
        epoch: in which all rows count as having come; None for those in which they did.
    """
    with added_up(connection, copy, files, floor) as query:
        if epoch is not None:
            query = f'SELECT * REPLACE (CAST({epoch} AS BIGINT) AS "{EPOCH}") FROM ({query}) AS anew'
        return copy_to(connection, f"{query}{order_by(copy)}", path)


@contextlib.contextmanager
def added_up(
    connection: duckdb.DuckDBPyConnection, copy: CopyPlan, files: Iterable[Segment], floor: int | None = None
) -> Iterator[str]:
    """A query for what some segments of a copy's relation add up to. Parts before `floor` are left out."""
    name = f"merging{uuid.uuid4().hex}"
    connection.execute(f"ATTACH ':memory:' AS {name}")
    try:
        connection.execute(f"USE {name}")
        connection.execute("CREATE SCHEMA data")
        view = sql(store_table(copy.relation))
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet({path_list(files)}){above(floor)}")
        yield f"SELECT * FROM ({copy.net}) AS net" if copy.net else f"SELECT * FROM {view}"
    finally:
        connection.execute("USE memory")
        connection.execute(f"DETACH {name}")


def broken_one(
    segments: Iterable[Segment], error: duckdb.Error | None = None, deep: bool = False
) -> tuple[str, str] | None:
    """Which of some segments cannot be read, and why; None if all can, or if there was too little memory to read them.

    Args:
        segments: which.
        error: what happened when they were read, if that is known.
        deep: read all that is in them, not only what says what is.
    """
    if isinstance(error, duckdb.OutOfMemoryException):
        return None
    read = "max(hash(segment))" if deep or error is not None else f'max("{EPOCH}")'
    with duckdb.connect(":memory:") as connection:
        for one in segments:
            storage = storage_of(one.path)
            storage.forget()
            storage.lend(connection)
            other = of_other_size([one])
            if other is not None:
                return other
            try:
                found = connection.execute(f"SELECT {read}, count(*) FROM read_parquet({path_list([one])}) AS segment")
                [(_, rows)] = found.fetchall()
            except duckdb.OutOfMemoryException:
                raise
            except duckdb.Error as problem:
                return one.path, said(problem)
            if rows != one.rows:
                return one.path, f"it has {rows:,} rows, and should have {one.rows:,}"
    return None


def of_other_size(segments: Iterable[Segment], reading: bool = False) -> tuple[str, str] | None:
    """Which of some segments is not as large as it should be, or not there at all, and why that is so.

    Args:
        segments: which, of one copy.
        reading: they are about to be read.
    """
    there = list(segments)
    if not there:
        return None
    expected = [one.size for one in there] if reading else None
    sizes = storage_of(there[0].path).sizes([one.path for one in there], expected)
    for one, size in zip(there, sizes, strict=True):
        if size is None:
            return one.path, "it is gone"
        if size != one.size:
            return one.path, f"it has {size:,} bytes, and should have {one.size:,}"
    return None


def other_than_listed(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> tuple[str, str] | None:
    """Which of some segments is not the file that was listed, by its size and what it says of its rows, and why."""
    found = _other(connection, segments)
    if found is not None:
        storage_of(found[0]).forget()
    return found


def _other(connection: duckdb.DuckDBPyConnection, segments: Sequence[Segment]) -> tuple[str, str] | None:
    other = of_other_size(segments, reading=True)
    if other is not None:
        return other
    if not segments:
        return None
    try:
        query = f"SELECT file_name, num_rows FROM parquet_file_metadata({path_list(segments)})"
        rows = dict(connection.execute(query).fetchall())
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        return broken_one(segments) or (segments[0].path, said(error))
    for one in segments:
        if rows.get(one.path) != one.rows:
            return one.path, f"it has {rows.get(one.path, 0):,} rows, and should have {one.rows:,}"
    return None


def segment_path(folder: str, copy: str, partition: int, epoch: int, attempt: str) -> str:
    """A new name for a segment, which nobody else has."""
    where = f"{folder}/{SEGMENTS}/{copy}/{'all' if partition == ALL else partition}"
    storage_of(folder).make_folder(where)
    return f"{where}/{epoch:012d}-{attempt}-{uuid.uuid4().hex[:8]}.parquet"


def attempt_of(path: str) -> str:
    """The attempt by which a segment was written."""
    name = path.rpartition("/")[2]
    return name.split("-")[1] if name.count("-") == 2 else ""


def copy_to(connection: duckdb.DuckDBPyConnection, query: str, path: str) -> int:
    """Write a query's rows to a Parquet file."""
    with storage_of(path).writing(path) as file:
        found = connection.execute(f"COPY ({query}) TO '{in_quotes(file)}' ({WRITTEN})").fetchone()
    return int(found[0]) if found else 0


def order_by(copy: CopyPlan) -> str:
    return " ORDER BY " + ", ".join(map(quoted, copy.order)) if copy.order else ""


def quoted(text: str) -> str:
    """A name in SQL."""
    return '"' + text.replace('"', '""') + '"'


def unpacked(segments: Iterable[Segment]) -> int:
    """What segments take in memory, about."""
    return sum(one.size for one in segments) * _UNPACKED


def path_list(segments: Iterable[Segment]) -> str:
    return "[" + ", ".join(f"'{in_quotes(one.path)}'" for one in segments) + "]"


def above(floor: int | None) -> str:
    """The condition for rows of parts that are kept, in SQL; none if nothing was deleted."""
    return f' WHERE "{PART}" >= {int(floor)}' if floor is not None else ""


def in_quotes(path: str) -> str:
    return path.replace("'", "''")
