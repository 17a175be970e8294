"""What a relation holds is written as the segments of a copy, each sorted by its key.

What has to be added up is added up once: its rows are first divided into files as they come, which takes little memory,
and then each partition is sorted. Where nothing is to be added up, and partitions are few, it is faster to look for the
rows of each of them in the source: reading costs less than writing.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb

from headwater.emit.layout import sql, store_table
from headwater.engine.segment_files import WRITTEN, copy_to, in_quotes, order_by, segment_path
from headwater.engine.tasks import PARTITIONS, CopyPlan
from headwater.store.segments import ALL, Segment
from headwater.store.storage import ON_THE_WAY, storage_of

#: The folder of rows on their way.
SENDING = ON_THE_WAY
#: So many partitions are few.
FEW_PARTITIONS = 16
#: More than so many are many: DuckDB keeps a hundred files open.
MANY_PARTITIONS = 64
_TO = "#to"


def written(
    connection: duckdb.DuckDBPyConnection,
    copy: CopyPlan,
    partitions: int,
    folder: str,
    epoch: int,
    attempt: str,
    generation: int,
) -> Iterator[tuple[int, Segment]]:
    """Write a copy of what a relation holds; gives the partitions that have rows, and their segments.

    Args:
        connection: of the warehouse.
        copy: how the copy is written.
        partitions: how many there are.
        folder: where segments lie.
        epoch: the last one.
        attempt: a name that no other attempt has.
        generation: of the segments.
    """
    source = copy.net or f"SELECT * FROM {sql(store_table(copy.relation))}"
    storage = storage_of(folder)
    on_the_way = Path(storage.scratch(folder)) / SENDING / f"{attempt}-{copy.name}"
    try:
        for partition, query in _queries(connection, copy, source, partitions, on_the_way):
            path = segment_path(folder, copy.name, partition, epoch, attempt)
            rows = copy_to(connection, f"{query}{order_by(copy)}", path)
            if rows:
                yield partition, Segment(path, 0, epoch, rows, storage.size_written(path), generation)
            else:
                storage.settle()
                storage.remove([path])
        storage.settle()
    except BaseException:
        with contextlib.suppress(Exception):  # who removes what was written must find all of it
            storage.settle()
        raise
    finally:
        shutil.rmtree(on_the_way, ignore_errors=True)


def _queries(
    connection: duckdb.DuckDBPyConnection, copy: CopyPlan, source: str, partitions: int, folder: Path
) -> Iterator[tuple[int, str]]:
    """A query for the rows of each partition, in no order."""
    if copy.partition is None:
        yield ALL, f"SELECT * FROM ({source}) AS source"
        return
    if partitions == 1 or (not copy.net and partitions <= FEW_PARTITIONS):
        expression = _expression(copy, partitions)
        for partition in range(partitions):
            yield partition, f"SELECT * FROM ({source}) AS source WHERE {expression} = {partition}"
        return
    _, found = divide(connection, copy, source, partitions, folder)
    for partition, there in sorted(found.items()):
        files = ", ".join(f"'{in_quotes(one)}'" for one in there)
        yield partition, f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)"
        shutil.rmtree(Path(there[0]).parent)


def divide(
    connection: duckdb.DuckDBPyConnection, copy: CopyPlan, source: str, partitions: int, folder: Path
) -> tuple[int, dict[int, list[str]]]:
    """Write the rows of a query into files, by the partition of a copy that they go to.

    DuckDB keeps some files open, and closes one for each that it opens beyond these. So where partitions are many, rows
    are first put in the order of partitions: else it would write a small file whenever another partition's turn comes.

    Returns:
        How many rows there are, and the files of each partition.
    """
    order = f' ORDER BY "{_TO}"' if partitions > MANY_PARTITIONS else ""
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = connection.execute(
        f'COPY (SELECT *, {_expression(copy, partitions)} AS "{_TO}" FROM ({source}) AS source{order}) '
        f"TO '{in_quotes(str(folder))}' ({WRITTEN}, PARTITION_BY (\"{_TO}\"), WRITE_PARTITION_COLUMNS false)"
    ).fetchone()
    found = {int(one.name.rpartition("=")[2]): one for one in folder.iterdir()} if folder.exists() else {}
    return int(done[0]) if done else 0, {to: sorted(map(str, one.iterdir())) for to, one in found.items()}


def _expression(copy: CopyPlan, partitions: int) -> str:
    """Says which partition of a copy a row goes to."""
    if copy.partition is None:
        return f"CAST({ALL} AS INTEGER)"
    return f"CAST({copy.partition.replace(f'${PARTITIONS}', str(partitions))} AS INTEGER)"
