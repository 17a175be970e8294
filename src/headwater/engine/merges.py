"""Which segments of a copy are put together, and how a task does that.

Epochs add small segments. Beside them (`headwater.engine.merging`) the youngest of a partition are put together when
there are many, and all of them when most may have cancelled each other. An epoch does it itself only where the
background has fallen far behind, so that the number of files is bounded whatever happens.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from headwater.engine.segment_files import other_than_listed, put_together, segment_path
from headwater.engine.tasks import CopyPlan
from headwater.engine.workers import Worker
from headwater.errors import UserError
from headwater.store.segments import Segment
from headwater.store.storage import said, storage_of

#: So many segments of a copy lie beside each other in a partition, and a few more, not as many everywhere, so that not
#: all are put together at the same time; then the youngest are.
MOST_SEGMENTS, STAGGERED = 12, 8
#: Segments are put together with those before them that are at most so many times as large.
GROWTH = 4
#: So many entries may have cancelled each other, and nobody minds.
FEW_ENTRIES = 10_000
#: The background is behind when there is so many times as much to do as there should be.
BEHIND = 4


@dataclass(frozen=True)
class Merge:
    """Segments that are to be put together.

    Attributes:
        copy: of which copy.
        partition: in which partition.
        segments: which, one after the other.
        folder: where segments lie.
        attempt: a name that no other attempt has.
        memory: how many bytes the engine may take in a task's process; None for its own default.
        floor: parts before this one were deleted, of a relation with parts.
        anew: the epoch and the generation of a copy that begins with these rows, whenever they were written.
    """

    copy: CopyPlan
    partition: int
    segments: tuple[Segment, ...]
    folder: str
    attempt: str = ""
    memory: int | None = None
    floor: int | None = None
    anew: tuple[int, int] | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.copy.name, self.partition

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(one.size for one in self.segments)


@dataclass(frozen=True)
class Merged:
    """What became of them.

    Attributes:
        key: of which copy and partition.
        segment: the new one.
        problem: why there is none.
    """

    key: tuple[str, int]
    segment: Segment | None = None
    problem: str = ""


def first_due(copy: CopyPlan, partition: int, there: Sequence[Segment], times: int = 1) -> int | None:
    """From which one on the segments of a partition are to be put together; None if they may stay as they are.

    Args:
        copy: of which copy.
        partition: in which partition.
        there: its segments, oldest first.
        times: so many times as much as usual is left as it is.
    """
    if len(there) < 2:
        return None
    if copy.net and sum(one.rows for one in there[1:]) > times * max(FEW_ENTRIES, there[0].rows):
        return 0  # perhaps most of it is gone
    if len(there) <= times * MOST_SEGMENTS + zlib.crc32(f"{copy.name} {partition}".encode()) % STAGGERED:
        return None
    first = len(there) - 1
    rows = there[first].rows
    while first > 0 and (
        there[first - 1].rows <= GROWTH * rows or len(there) - first <= max(1, times * MOST_SEGMENTS // 2)
    ):
        first -= 1
        rows += there[first].rows
    return first


def first_behind(copy: CopyPlan, partition: int, there: Sequence[Segment]) -> int | None:
    """The same for an epoch, which does it only if nobody else has for long."""
    return first_due(copy, partition, there, BEHIND)


def carry_out(mine: Worker, merge: Merge) -> Merged:
    """Put segments together; whatever comes in the way is reported, so that Spark need not try again."""
    copy, files = merge.copy, merge.segments
    try:
        storage = storage_of(merge.folder)
        storage.lend(mine.instance)
        path = segment_path(merge.folder, copy.name, merge.partition, files[-1].last, merge.attempt)
        with mine.instance.cursor() as connection:
            other = other_than_listed(connection, files)  # else what was lost would not be missed any more
            if other is not None:
                return Merged(merge.key, problem=f"{other[0]}: {other[1]}")
            epoch = merge.anew[0] if merge.anew is not None else None
            written = put_together(connection, copy, files, path, merge.floor, epoch)
        size = storage.size_written(path)
        storage.settle()
    except (duckdb.Error, OSError, UserError) as error:
        return Merged(merge.key, problem=said(error))
    new = Segment(path, files[0].first, files[-1].last, written, size, files[-1].generation)
    if merge.anew is not None:
        new = Segment(path, 0, merge.anew[0], written, size, merge.anew[1])
    return Merged(merge.key, new)
