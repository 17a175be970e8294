"""A copy of a store, sorted by the hash of some columns, in which the rows of a few keys are found by binary search.

Stores are append-only DuckDB tables: to find the rows of a thousand keys among twenty million, DuckDB scans. The copy
is Arrow, uncompressed and memory-mapped, so that finding a row costs what the row is large. It is a cache: the store
says what there is, and the copy is made anew whenever it is missing.

It consists of *runs*, each with the rows of some epochs, as a signed multiset like the store itself; what came after
the last run is scanned. When enough has come it becomes a run of its own, and runs of like size become one, so that
there are few, and a row is sorted again only as often as the copy grows by a factor.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as Folder

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.emit.layout import EPOCH, column, sql
from headwater.emit.probes import HASH, Path, hash_of

Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

#: Rows of a run that lie side by side in memory, so that one can be picked by its position; and their bytes, of which
#: Arrow takes two thousand million in a column of texts.
CHUNK_ROWS = 4_000_000
CHUNK_BYTES = 256_000_000
BATCH_ROWS = 100_000  #: that DuckDB hands over at a time
#: Runs with fewer rows stay in memory.
FILE_ROWS = 250_000
#: Two runs become one unless the older one has so many times the rows of the younger one.
TIERS = 4
PREFIX = "sorted-"
#: No row came in this epoch or before.
BEGINNING = -1
_WIDE = 200  #: bytes of a row, generously
_SPARE = 1_000_000_000  #: bytes


@dataclass(frozen=True)
class Chunk:
    """Rows in the order of their hashes."""

    hashes: Hashes
    rows: pa.Table

    def positions(self, wanted: Hashes) -> Positions:
        """Where rows with one of the given hashes lie; these are sorted and each there once."""
        if not len(self.hashes):
            return np.empty(0, np.int64)
        first = np.searchsorted(wanted, self.hashes[0], side="left")
        last = np.searchsorted(wanted, self.hashes[-1], side="right")
        wanted = wanted[first:last]
        low = np.searchsorted(self.hashes, wanted, side="left")
        there = self.hashes[low] == wanted
        wanted, low = wanted[there], low[there]
        counts = np.searchsorted(self.hashes, wanted, side="right") - low
        begins = np.repeat(low - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) if len(counts) else low
        return begins + np.arange(len(begins))

    def with_hash(self, wanted: int) -> Iterator[pa.Table]:
        """The rows with one hash, if there are any."""
        hashed = np.uint64(wanted)
        low = int(np.searchsorted(self.hashes, hashed, side="left"))
        if low < len(self.hashes) and self.hashes[low] == hashed:
            yield self.rows.slice(low, int(np.searchsorted(self.hashes, hashed, side="right")) - low)


@dataclass(frozen=True)
class Run:
    """The rows that came after the run before it, up to an epoch."""

    upto: int
    chunks: tuple[Chunk, ...]

    @property
    def rows(self) -> int:
        return sum(len(one.hashes) for one in self.chunks)


@dataclass
class SortedCopy:
    """A copy that is kept up to date.

    Attributes:
        path: of which store, and by which columns.
        columns: of the store, all of them.
        runs: oldest first, without gaps between their epochs.
        used: the last epoch that looked something up.
        behind: rows that came after the last run.
    """

    path: Path
    columns: tuple[str, ...]
    runs: list[Run] = field(default_factory=list)
    used: int = 0
    behind: int = 0

    @property
    def upto(self) -> int:
        """The last epoch whose rows are in it."""
        return self.runs[-1].upto

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.runs)

    def find(self, wanted: Hashes, worth: Callable[[int], bool] = lambda rows: True) -> pa.Table | None:
        """The rows with one of the given hashes, each with its sign; None if so many are not worth it."""
        wanted = np.unique(wanted)
        chunks = [one for run in self.runs for one in run.chunks]
        places = [one.positions(wanted) for one in chunks]
        if not worth(max(len(wanted), sum(map(len, places)))):
            return None
        found = [one.rows.take(pa.array(at)) for one, at in zip(chunks, places, strict=True) if len(at)]
        return pa.concat_tables(found) if found else chunks[0].rows.schema.empty_table()

    def find_one(self, wanted: int) -> Iterator[pa.Table]:
        """The rows with one hash, each with its sign, as they lie."""
        for run in self.runs:
            for chunk in run.chunks:
                yield from chunk.with_hash(wanted)

    def settled(self) -> list[Run]:
        """The runs to keep when another one is made, which takes the place of the rest."""
        kept, size = list(self.runs), self.behind
        while kept and kept[-1].rows < TIERS * size:
            size += kept.pop().rows
        return kept


class Shelf:
    """Where large runs lie: in files without a name, which are gone when nobody reads them any more."""

    def __init__(self, folder: Folder | None) -> None:
        """Use a folder inside this one; that of temporary files by default."""
        self._folder = folder / "tmp" if folder is not None else Folder(tempfile.gettempdir())
        if folder is not None:
            for left in self._folder.glob(f"{PREFIX}*"):  # of a process that was killed while it wrote
                with contextlib.suppress(OSError):
                    left.unlink()

    def has_room(self, rows: int) -> bool:
        """Whether a copy of so many rows leaves the disk room for more important things."""
        self._folder.mkdir(exist_ok=True)
        return shutil.disk_usage(self._folder).free > 2 * rows * _WIDE + _SPARE

    def put(self, rows: pa.Table) -> pa.Table:
        """Rows as they lie in a new file."""
        self._folder.mkdir(exist_ok=True)
        handle, file = tempfile.mkstemp(prefix=PREFIX, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
                writer.write_table(rows, max_chunksize=rows.num_rows)
            return pa.ipc.open_file(pa.memory_map(file)).read_all()
        finally:
            os.unlink(file)


def build(
    reader: duckdb.DuckDBPyConnection, table: str, path: Path, after: int, upto: int, shelf: Shelf
) -> tuple[Run, tuple[str, ...]]:
    """A run of the rows of some epochs of a table that is, or becomes, the path's store; and its columns."""
    hashes = sql(hash_of([column(text) for text in path.columns]))
    query = (
        f'SELECT *, {hashes} FROM {table} WHERE "{EPOCH}" > {int(after)} AND "{EPOCH}" <= {int(upto)} ORDER BY "{HASH}"'
    )
    batches = reader.sql(query).to_arrow_reader(BATCH_ROWS)
    names = tuple(text for text in batches.schema.names if text != HASH)
    chunks = tuple(_chunk(one, shelf) for one in _gathered(batches))
    if not chunks:
        empty = batches.schema.empty_table()
        chunks = (_chunk(empty, shelf),)
    return Run(upto, chunks), names


def _gathered(batches: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Batches put together up to the size of a chunk."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= CHUNK_ROWS or sum(one.nbytes for one in waiting) >= CHUNK_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _chunk(rows: pa.Table, shelf: Shelf) -> Chunk:
    rows = rows.combine_chunks()
    if rows.num_rows >= FILE_ROWS:
        rows = shelf.put(rows)
    hashes = rows.column(HASH)
    found = hashes.chunk(0).to_numpy() if hashes.num_chunks else np.empty(0, np.uint64)
    if len(found) != rows.num_rows:
        raise pa.ArrowInvalid("rows are too large to lie side by side")
    return Chunk(found, rows.drop_columns([HASH]))


def epoch_of(reader: duckdb.DuckDBPyConnection) -> int:
    """The last epoch that a connection's snapshot holds."""
    [(number,)] = reader.execute("SELECT coalesce(max(number), 0) FROM hw.epochs").fetchall()
    return int(number)
