"""Rows that lie away go to other partitions: what tasks do for that.

It takes two steps. In the first, each piece of work reads the segments of some partitions of a copy, adds them up, and
writes their rows into a file for each partition that they go to. In the second, what has come to a partition from all
of these is put together as one segment, sorted by its key. Files have names that no other attempt uses, and what is
written counts when the process that owns the warehouse has listed it: work may be done twice, or be lost halfway.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb

from headwater.engine.failures import is_full
from headwater.engine.segment_files import (
    added_up,
    broken_one,
    copy_to,
    in_quotes,
    order_by,
    other_than_listed,
    segment_path,
)
from headwater.engine.sending import divide
from headwater.engine.tasks import CopyPlan
from headwater.errors import UserError
from headwater.store.segments import Segment
from headwater.store.storage import said, storage_of

Work = TypeVar("Work")

#: A piece of work reads partitions of so many bytes together at most, unless one has more.
MOST_BYTES = 256 << 20
#: Work that is done in the process that owns the warehouse takes so much memory at most.
HERE_BYTES = 1 << 30


@dataclass(frozen=True)
class Division:
    """Segments whose rows are to be divided among the partitions of a copy.

    Attributes:
        number: of the piece of work.
        copy: the copy that they go to, of the same relation.
        segments: all of some partitions, of this copy or of another one.
        partitions: how many the rows are divided among.
        folder: where they are put on their way.
        memory: how many bytes the engine may take in a task's process; None for its own default.
        floor: parts before this one were deleted, of a relation with parts.
    """

    number: int
    copy: CopyPlan
    segments: tuple[Segment, ...]
    partitions: int
    folder: str
    memory: int | None = None
    floor: int | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(one.size for one in self.segments)


@dataclass(frozen=True)
class Gathering:
    """Files with all that has come to a partition of a copy, which are to be one segment.

    Attributes:
        number: of the piece of work.
        copy: which copy.
        partition: which partition.
        files: the files.
        size: of all of them, in bytes.
        folder: where segments lie.
        epoch: the last one whose rows are among them.
        attempt: a name that no other attempt has.
        generation: of the segment.
        memory: how many bytes the engine may take in a task's process; None for its own default.
    """

    number: int
    copy: CopyPlan
    partition: int
    files: tuple[str, ...]
    size: int
    folder: str
    epoch: int
    attempt: str
    generation: int
    memory: int | None = None


#: A piece of work.
Move = Division | Gathering


@dataclass(frozen=True)
class Moved:
    """What became of a piece of work.

    Attributes:
        number: its number.
        rows: how many rows were written.
        files: of a division, the files of each partition, with their bytes.
        segment: of a gathering, the segment.
        broken: the segment that could not be read, and why.
        unwritten: why something could not be written, if the disk is full.
        problem: what else came in the way.
    """

    number: int
    rows: int = 0
    files: tuple[tuple[int, str, int], ...] = ()
    segment: Segment | None = None
    broken: tuple[str, str] | None = None
    unwritten: str | None = None
    problem: str | None = None


def carry_out(instance: duckdb.DuckDBPyConnection, move: Move) -> Moved:
    """Do a piece of work; whatever comes in the way is reported, so that Spark need not try again."""
    try:
        storage_of(move.folder).lend(instance)
        with instance.cursor() as connection:
            return _divide(connection, move) if isinstance(move, Division) else _gather(connection, move)
    except (duckdb.Error, OSError, UserError) as error:
        reason = said(error)
        if is_full(error):
            return Moved(move.number, unwritten=reason)
        if isinstance(error, duckdb.Error) and isinstance(move, Division):
            return Moved(move.number, broken=broken_one(move.segments, error), problem=reason)
        return Moved(move.number, problem=reason)


def _divide(connection: duckdb.DuckDBPyConnection, move: Division) -> Moved:
    other = other_than_listed(connection, move.segments)  # else what was lost would not be missed any more
    if other is not None:
        return Moved(move.number, broken=other)
    folder = f"{move.folder}/{move.number}-{uuid.uuid4().hex[:8]}"
    with (
        added_up(connection, move.copy, move.segments, move.floor) as query,
        storage_of(folder).filling(folder) as here,
    ):
        rows, found = divide(connection, move.copy, query, move.partitions, Path(here))
        files = [
            (partition, f"{folder}{path[len(here) :]}", os.stat(path).st_size)
            for partition, paths in found.items()
            for path in paths
        ]
    return Moved(move.number, rows, tuple(files))


def _gather(connection: duckdb.DuckDBPyConnection, move: Gathering) -> Moved:
    path = segment_path(move.folder, move.copy.name, move.partition, move.epoch, move.attempt)
    files = ", ".join(f"'{in_quotes(one)}'" for one in move.files)
    query = f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)"
    rows = copy_to(connection, f"{query}{order_by(move.copy)}", path)
    storage = storage_of(path)
    size = storage.size_written(path)
    storage.settle()
    return Moved(move.number, rows, segment=Segment(path, 0, move.epoch, rows, size, move.generation))


def grouped(partitions: Mapping[int, Sequence[Segment]], places: int) -> list[tuple[Segment, ...]]:
    """The segments of a copy in pieces that are worked on separately, each with whole partitions.

    There are as many as are worked on at a time, and more where these would be large: each writes a file for every
    partition that its rows go to.
    """
    sizes = {one: sum(each.size for each in there) for one, there in partitions.items()}
    wanted = max(places, -(-sum(sizes.values()) // MOST_BYTES))
    return [
        tuple(segment for one in share for segment in partitions[one])
        for share in shared_out([one for one in partitions if partitions[one]], sizes.__getitem__, wanted)
    ]


def shared_out(work: Sequence[Work], size: Callable[[Work], int], shares: int) -> list[list[Work]]:
    """Work in some shares, each about as much as any other."""
    found: list[list[Work]] = [[] for _ in range(min(shares, len(work)))]
    sizes = [0] * len(found)
    for one in sorted(work, key=size, reverse=True):
        least = min(range(len(found)), key=lambda i: (sizes[i], len(found[i])))
        found[least].append(one)
        sizes[least] += size(one)
    return found


def carry_out_here(shares: Sequence[Sequence[Move]], folder: str) -> list[Moved]:
    """Do little work in this process, with an engine of its own; what does not fit into memory goes to a folder."""
    with duckdb.connect(":memory:", config={"threads": min(2, os.cpu_count() or 1)}) as instance:
        instance.execute("SET preserve_insertion_order = false")
        instance.execute(f"SET temp_directory = '{in_quotes(folder)}'")
        instance.execute(f"SET memory_limit = '{HERE_BYTES}B'")
        return [carry_out(instance, one) for share in shares for one in share]
