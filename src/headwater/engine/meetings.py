"""What the change of a relation meets of the stores of a room, for the statements that follow from it.

Whether a table of it is made (`headwater.emit.narrowing`) is decided in every epoch, by how many rows have changed and
how many are stored; it is made when the first statement needs it, and goes when the last has run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import duckdb

from headwater.engine.tasks import Met, Narrow

#: A scan of fewer rows costs next to nothing.
FEW_STORED = 20_000
#: So many scanned rows cost what it costs to look for a row and put it into a table.
WRITING = 8


def pays(stored: int, changed: int, readers: int) -> bool:
    """Whether what a change meets of a store is looked for once, instead of by each of the statements that need it."""
    return stored >= FEW_STORED and 2 * changed <= stored and WRITING * changed <= (readers - 1) * stored


class Meetings:
    """The tables for one relation's change."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        met: Sequence[Met],
        changed: int,
        stored: Callable[[str], int],
    ) -> None:
        """Decide which tables are worth it.

        Args:
            connection: of the room.
            met: those that statements could read.
            changed: how many rows have changed.
            stored: how many rows a relation's store has.
        """
        self._connection = connection
        self._tables = {one.table: one for one in met}
        self._worth = {one.table for one in met if pays(stored(one.store), changed, one.readers)}
        self._made: set[str] = set()

    def meet(self, narrow: Narrow | None) -> bool:
        """Make the tables that a statement could read, if one of them is worth it; else it reads stores."""
        if narrow is None or self._worth.isdisjoint(narrow.met):
            return False
        for table in narrow.met:
            if table not in self._made:
                self._connection.execute(self._tables[table].fill)
                self._made.add(table)
        return True

    def close(self) -> None:
        """What was met is of no use any more."""
        for table in self._made:
            self._connection.execute(f"DROP TABLE {table}")
