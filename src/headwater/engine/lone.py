"""Whether no two rows of a part agree in some columns: then every row is alone in its group."""

from __future__ import annotations

from dataclasses import dataclass, field

import duckdb

from headwater.emit.parts import HASHES, hashes_of_part
from headwater.engine.differing import Hashes, all_differ, are_pieces_of

#: Hashes that were seen to differ are kept if there are so many: fewer are soon seen to, more take too much room.
KNOWN_ROWS = range(100_000, 4_000_001)


@dataclass(frozen=True)
class LoneRows:
    """Looks for it, and remembers of relations and columns what it has seen to differ."""

    known: dict[tuple[str, tuple[str, ...]], Hashes] = field(default_factory=dict)

    def are(
        self, connection: duckdb.DuckDBPyConnection, relation: str, part: int, columns: tuple[str, ...], rows: int
    ) -> bool:
        """Whether the rows of a part, all stored once, are alone; True only if that is certain. `rows` is their number.

        64-bit hashes tell: no two equal hashes, no two equal groups.
        """
        if rows < 2:
            return True
        keep = rows in KNOWN_ROWS
        hashes = _hashes(connection, relation, part, columns, in_order=keep)
        known = self.known.get((relation, columns))
        if known is not None and are_pieces_of(hashes, known):
            return True
        if not all_differ(hashes):
            return False
        if keep:
            self.known[relation, columns] = hashes
        return True


def _hashes(
    connection: duckdb.DuckDBPyConnection, relation: str, part: int, columns: tuple[str, ...], in_order: bool
) -> Hashes:
    """The hashes of some columns of the rows of a part, perhaps in the order in which they are stored."""
    if in_order:
        connection.execute("SET preserve_insertion_order = true")
    try:
        query = hashes_of_part(relation, columns)
        found: Hashes = connection.execute(query, {"part": part}).fetchnumpy()[HASHES]
    finally:
        if in_order:
            connection.execute("SET preserve_insertion_order = false")
    return found
