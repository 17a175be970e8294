"""Which segments count: the list in the warehouse's file, and the views that let its readers see what lies away.

A segment is a Parquet file with rows of a relation. Tasks write them under names of their own; one counts from the
commit that lists it. `data."r"` of a relation whose rows lie away is a view over the segments of one of its copies, so
that whoever reads it need not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import duckdb

#: The partition number of what is the same in all partitions.
ALL = -1

_READ = "SELECT copy, relation, partition, path, first, last, rows, size, generation FROM hw.segments"


class Segment(NamedTuple):
    """A file with rows of a copy that came in some epochs, in one partition.

    Attributes:
        path: where it is.
        first: the first of these epochs.
        last: the last of them.
        rows: how many.
        size: in bytes.
        generation: those of another generation have nothing to do with it.
    """

    path: str
    first: int
    last: int
    rows: int
    size: int
    generation: int


#: The segments of each copy, by partition, oldest first.
Listed = Mapping[str, Mapping[int, tuple[Segment, ...]]]


class Segments:
    """What is listed; changes are made inside the caller's transaction, and count when that has committed."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._listed: dict[str, dict[int, tuple[Segment, ...]]] = {}
        self.relations: dict[str, str] = {}
        self._before: tuple[dict[str, dict[int, tuple[Segment, ...]]], dict[str, str]] | None = None
        #: Copies whose partitions are the transaction's own.
        self._own: set[str] = set()
        #: Files that count no longer, since a commit.
        self.spent: list[str] = []
        self._spending: list[str] = []
        for copy, relation, partition, *rest in connection.execute(f"{_READ} ORDER BY first").fetchall():
            self.relations[copy] = relation
            found = self._listed.setdefault(copy, {})
            if rest[0] is not None:
                found[partition] = (*found.get(partition, ()), Segment(*rest))
        #: What is committed, for any thread: nothing in it ever changes.
        self.standing: Listed = self._listed

    @property
    def listed(self) -> Listed:
        return self._listed

    def rows(self, copy: str) -> int:
        return sum(one.rows for one in self.of(copy))

    def copies_of(self, relation: str) -> list[str]:
        return [copy for copy, whose in self.relations.items() if whose == relation]

    def of(self, copy: str) -> list[Segment]:
        """The segments of a copy."""
        return [one for each in self._listed.get(copy, {}).values() for one in each]

    def paths(self, copy: str) -> list[str]:
        return [one.path for one in self.of(copy)]

    # -- changes -------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._before is None:
            self._before = self._listed, self.relations
            self._listed, self.relations = dict(self._listed), dict(self.relations)

    def _partitions(self, copy: str) -> dict[int, tuple[Segment, ...]]:
        """The partitions of a copy, to be changed."""
        self._begin()
        if copy not in self._own:
            self._own.add(copy)
            self._listed[copy] = dict(self._listed[copy])
        return self._listed[copy]

    def committed(self) -> None:
        self._before = None
        self._own.clear()
        self.standing = self._listed
        self.spent += self._spending
        self._spending = []

    def undone(self) -> None:
        if self._before is not None:
            (self._listed, self.relations), self._before = self._before, None
        self._own.clear()
        self._spending = []

    def begin_copy(self, connection: duckdb.DuckDBPyConnection, copy: str, relation: str) -> None:
        """List a copy; one without segments is empty."""
        self._begin()
        self._listed[copy], self.relations[copy] = {}, relation
        self._own.add(copy)
        connection.execute(
            "INSERT INTO hw.segments (copy, relation, partition) VALUES (?, ?, ?)", [copy, relation, ALL]
        )

    def add(self, connection: duckdb.DuckDBPyConnection, copy: str, partition: int, segment: Segment) -> None:
        """List a segment, in place of those whose rows are in it."""
        partitions = self._partitions(copy)
        there = partitions.get(partition, ())
        replaced = [one for one in there if one.first >= segment.first]
        partitions[partition] = (*(one for one in there if one.first < segment.first), segment)
        self._write(connection, copy, partition, replaced, segment)

    def lists(self, copy: str, partition: int, segments: Sequence[Segment]) -> bool:
        """Whether some segments are listed, one after the other."""
        return self._position(copy, partition, segments) is not None

    def _position(self, copy: str, partition: int, segments: Sequence[Segment]) -> int | None:
        there = self._listed.get(copy, {}).get(partition, ())
        first = next((i for i, one in enumerate(there) if one == segments[0]), None)
        return first if first is not None and there[first : first + len(segments)] == tuple(segments) else None

    def replace(
        self,
        connection: duckdb.DuckDBPyConnection,
        copy: str,
        partition: int,
        segments: Sequence[Segment],
        new: Segment,
    ) -> None:
        """List a segment in place of some that are listed, one after the other, whose rows it has."""
        first = self._position(copy, partition, segments)
        assert first is not None
        partitions = self._partitions(copy)
        there = partitions[partition]
        partitions[partition] = (*there[:first], new, *there[first + len(segments) :])
        self._write(connection, copy, partition, segments, new)

    def _write(
        self,
        connection: duckdb.DuckDBPyConnection,
        copy: str,
        partition: int,
        replaced: Sequence[Segment],
        new: Segment,
    ) -> None:
        paths = [one.path for one in replaced]
        if paths:
            connection.execute("DELETE FROM hw.segments WHERE list_contains(?, path)", [paths])
        self._spending += paths
        values = [copy, self.relations[copy], partition, *new]
        connection.execute("INSERT INTO hw.segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def clear(self, connection: duckdb.DuckDBPyConnection, copy: str) -> None:
        """Let a copy be empty."""
        paths = self.paths(copy)
        if paths:
            self._partitions(copy).clear()
            self._spending += paths
            connection.execute("DELETE FROM hw.segments WHERE copy = ? AND path IS NOT NULL", [copy])

    def drop(self, connection: duckdb.DuckDBPyConnection, copies: Iterable[str]) -> None:
        """Strike copies off the list."""
        for copy in copies:
            self._begin()
            self._spending += self.paths(copy)
            del self._listed[copy], self.relations[copy]
            self._own.discard(copy)
            connection.execute("DELETE FROM hw.segments WHERE copy = ?", [copy])
