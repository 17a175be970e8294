"""The temporary tables of one epoch."""

from __future__ import annotations

import functools

import duckdb

from headwater.emit.layout import Fill, delta_table, pending_table, sql

#: A temporary table with more rows than this is dropped after the epoch; a smaller one waits to be replaced.
KEEP_ROWS = 100_000


@functools.cache
def delta_of(relation: str) -> str:
    return sql(delta_table(relation))


@functools.cache
def pending_of(map_name: str) -> str:
    return sql(pending_table(map_name))


class Workspace:
    """Knows which temporary tables the epoch has filled so far.

    The first statement that fills a table makes it, so that whatever an earlier epoch left in it is gone.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._rows: dict[str, int] = {}

    def fill(self, statement: Fill) -> int:
        """Add a query's rows to its table; returns how many."""
        table = statement.table
        text = statement.more if table in self._rows else statement.first
        found = self._connection.execute(text).fetchone()
        added = int(found[0]) if found else 0
        self._rows[table] = self._rows.get(table, 0) + added
        return added

    def rows(self, table: str) -> int:
        return self._rows.get(table, 0)

    def filled(self, table: str) -> bool:
        """Whether the table exists in this epoch; it may be empty."""
        return table in self._rows

    @property
    def large(self) -> list[str]:
        return [table for table, rows in self._rows.items() if rows > KEEP_ROWS]
