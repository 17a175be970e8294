"""What is known of parts: which of them are complete, how many rows they have, and what is read row by row.

It is the paper's catalogue of parts (Yang, Golab and Ozsu, "ViewDF", section 4.1). On disk it is two tables: `hw.parts`
has a line for every part that an epoch changed, and `hw.frontiers` one for every relation with parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace

import duckdb
import pyarrow as pa

from headwater.algebra.parts import PART
from headwater.emit.layout import MULTIPLICITY, sql, store_table
from headwater.engine.ticks import SECOND
from headwater.store.catalog import Catalog, Relation

#: More lines than these are written as a table.
_FEW_LINES = 500
_COLUMNS = "relation", "part", "rows", "epoch", "single"


@dataclass(frozen=True)
class Frontier:
    """How far a relation with parts is.

    Attributes:
        first: its oldest part; None as long as it has none.
        next: the first part that is not complete: of a stream, where the watermark lies; of a view, the next to build.
        watermark: of a stream: the latest time that was told, in microseconds since 1970.
        kept: the oldest part that is stored, once older ones were deleted.
        rolled: the first part that is not rolled up, once others are.
    """

    first: int | None = None
    next: int | None = None
    watermark: int | None = None
    kept: int | None = None
    rolled: int | None = None

    @property
    def oldest(self) -> int | None:
        """The oldest part that is stored."""
        return self.first if self.first is None or self.kept is None else max(self.first, self.kept)

    def has_lost(self, parts: range) -> bool:
        """Whether some of these parts were deleted."""
        gone = range(self.first or 0, self.oldest or 0)
        return bool(parts) and bool(gone) and parts.start < gone.stop and parts.stop > gone.start

    def advanced(self, moment: int, length: int | None) -> Frontier:
        """The same after a stream was told a time."""
        watermark = moment if self.watermark is None else max(moment, self.watermark)
        return replace(self, watermark=watermark, next=watermark // (length * SECOND) if length is not None else None)


@dataclass(frozen=True)
class Change:
    """What an epoch did to one part: so many rows more or less; `single` if each came once, and none went."""

    relation: str
    part: int
    rows: int
    single: bool


@dataclass
class Book:
    """The parts of all relations, as of the last epoch, or as of an epoch under way.

    Attributes:
        frontiers: by relation.
        rows: by relation and part; parts without rows are left out.
        multiple: parts with rows that are not stored once each, by relation.
        lines: about how many lines there are in `hw.parts`.
        settled: how many there were when they were last put together.
    """

    frontiers: dict[str, Frontier] = field(default_factory=dict)
    rows: dict[str, dict[int, int]] = field(default_factory=dict)
    multiple: dict[str, set[int]] = field(default_factory=dict)
    lines: int = 0
    settled: int = 0

    def frontier(self, relation: str) -> Frontier:
        return self.frontiers.get(relation, Frontier())

    def has_rows(self, relation: str, parts: range) -> bool:
        """Whether any of some parts has rows."""
        held = self.rows.get(relation, {})
        return any(part in held for part in parts) if len(parts) < len(held) else any(part in parts for part in held)

    def rows_in(self, relation: str, parts: range) -> int:
        """How many rows some parts have."""
        held = self.rows.get(relation, {})
        if len(parts) < len(held):
            return sum(held.get(part, 0) for part in parts)
        return sum(rows for part, rows in held.items() if part in parts)

    def is_single(self, relation: str, parts: range) -> bool:
        """Whether all rows of some parts are stored once each."""
        mixed = self.multiple.get(relation, set())
        fewer = parts if len(parts) < len(mixed) else mixed
        return not any(part in mixed and part in parts for part in fewer)

    def apply(self, changes: Iterable[Change]) -> list[Change]:
        """Take in what an epoch did; returns what has made rows of a part be stored more than once, or with a sign."""
        mixed: list[Change] = []
        for one in changes:
            held = self.rows.setdefault(one.relation, {})
            held[one.part] = held.get(one.part, 0) + one.rows
            if not held[one.part]:
                del held[one.part]
            parts = self.multiple.setdefault(one.relation, set())
            if not one.single and one.part not in parts:
                parts.add(one.part)
                mixed.append(one)
        return mixed

    def take_back(self, changes: Iterable[Change], mixed: Iterable[Change], frontiers: Mapping[str, Frontier]) -> None:
        """Forget what an epoch did that has not come to be; `mixed` is what `apply` has returned."""
        for one in mixed:
            self.multiple[one.relation].discard(one.part)
        self.apply(Change(one.relation, one.part, -one.rows, True) for one in changes)
        self.frontiers = dict(frontiers)

    def forget(self, relation: str) -> None:
        """A relation is gone."""
        for each in (self.frontiers, self.rows, self.multiple):
            each.pop(relation, None)

    def forget_parts(self, relation: str, limit: int) -> None:
        """The parts of a relation before one are deleted."""
        held, multiple = self.rows.get(relation, {}), self.multiple.get(relation, set())
        self.rows[relation] = {part: rows for part, rows in held.items() if part >= limit}
        self.multiple[relation] = {part for part in multiple if part >= limit}
        self.frontiers[relation] = replace(self.frontier(relation), kept=limit)

    @property
    def watermarks(self) -> Mapping[str, int]:
        return {name: one.watermark for name, one in self.frontiers.items() if one.watermark is not None}


def load(connection: duckdb.DuckDBPyConnection) -> Book:
    """Read what is known of parts."""
    book = Book()
    for name, *found in connection.execute("SELECT * FROM hw.frontiers").fetchall():
        book.frontiers[name] = Frontier(*found)
    [(book.lines,)] = connection.execute("SELECT count(*) FROM hw.parts").fetchall()
    query = "SELECT relation, part, sum(rows)::BIGINT, bool_and(single) FROM hw.parts GROUP BY ALL"
    book.apply(Change(*found) for found in connection.execute(query).fetchall())
    return book


def save(
    connection: duckdb.DuckDBPyConnection,
    before: Mapping[str, Frontier],
    after: Mapping[str, Frontier],
    changes: Iterable[Change],
    epoch: int,
) -> None:
    """Write what an epoch did, inside the caller's transaction."""
    moved = [name for name, one in after.items() if before.get(name) != one]
    for name in moved:
        save_frontier(connection, name, after[name])
    lines = [(one.relation, one.part, one.rows, epoch, one.single) for one in changes]
    if len(lines) > _FEW_LINES:
        columns = zip(*lines, strict=True)
        table = pa.table([pa.array(values) for values in columns], list(_COLUMNS))
        connection.register("#lines", table)
        connection.execute('INSERT INTO hw.parts FROM "#lines"')
        connection.unregister("#lines")
    elif lines:
        places = ", ".join(["(?, ?, ?, ?, ?)"] * len(lines))
        connection.execute(f"INSERT INTO hw.parts VALUES {places}", [value for line in lines for value in line])


def save_frontier(connection: duckdb.DuckDBPyConnection, relation: str, frontier: Frontier) -> None:
    """Write how far a relation is, inside the caller's transaction."""
    connection.execute("DELETE FROM hw.frontiers WHERE relation = ?", [relation])
    connection.execute("INSERT INTO hw.frontiers VALUES (?, ?, ?, ?, ?, ?)", [relation, *astuple(frontier)])


def put_together(connection: duckdb.DuckDBPyConnection) -> int:
    """Make one line of all that there are for a part, inside the caller's transaction; returns how many are left."""
    connection.execute(f"CREATE OR REPLACE TEMPORARY TABLE together AS {_together('bool_and(single)')} GROUP BY ALL")
    connection.execute("DELETE FROM hw.parts")
    return _put_back(connection)


def note_multiple(connection: duckdb.DuckDBPyConnection, relation: str) -> set[int]:
    """Find anew which parts have rows that are not stored once each, after a store was rewritten.

    That is inside the caller's transaction. The lines for a part become one.
    """
    multiple = f'SELECT "{PART}" FROM {sql(store_table(relation))} WHERE "{MULTIPLICITY}" <> 1'
    query = f"{_together(f'part NOT IN ({multiple})')} WHERE relation = ? GROUP BY relation, part"
    connection.execute(f"CREATE OR REPLACE TEMPORARY TABLE together AS {query}", [relation])
    found = {part for (part,) in connection.execute("SELECT part FROM together WHERE NOT single").fetchall()}
    erase_parts(connection, relation)
    _put_back(connection)
    return found


def _together(single: str) -> str:
    return f"SELECT relation, part, sum(rows)::BIGINT AS rows, max(epoch) AS epoch, {single} AS single FROM hw.parts"


def _put_back(connection: duckdb.DuckDBPyConnection) -> int:
    connection.execute("INSERT INTO hw.parts FROM together")
    [(lines,)] = connection.execute("SELECT count(*) FROM together").fetchall()
    connection.execute("DROP TABLE together")
    return int(lines)


def erase_parts(connection: duckdb.DuckDBPyConnection, relation: str, limit: int | None = None) -> None:
    """Forget the parts of a relation, or those before one, inside the caller's transaction."""
    if limit is None:
        connection.execute("DELETE FROM hw.parts WHERE relation = ?", [relation])
    else:
        connection.execute("DELETE FROM hw.parts WHERE relation = ? AND part < ?", [relation, limit])


def erase(connection: duckdb.DuckDBPyConnection, relation: str) -> None:
    """Forget a relation, inside the caller's transaction."""
    erase_parts(connection, relation)
    connection.execute("DELETE FROM hw.frontiers WHERE relation = ?", [relation])


def parted(catalog: Catalog) -> Iterable[Relation]:
    """The relations with event time: streams, and views of parts."""
    return (one for one in catalog if one.time is not None or one.length is not None)
