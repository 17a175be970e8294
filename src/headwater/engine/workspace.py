"""The temporary tables of one epoch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping

import duckdb
import numpy as np

from headwater.emit.layout import Fill, delta_table, pending_table, sql
from headwater.engine.parsed import Parsed

#: A temporary table with more rows than this is dropped after the epoch; a smaller one waits to be replaced.
KEEP_ROWS = 100_000


@functools.cache
def delta_of(relation: str) -> str:
    return sql(delta_table(relation))


@functools.cache
def pending_of(map_name: str) -> str:
    return sql(pending_table(map_name))


class Shown:
    """Deltas that are views over a batch as it came, kept from epoch to epoch: a table may have such a name too."""

    def __init__(self) -> None:
        self.views: set[str] = set()
        self.tables: set[str] = set()

    def forget(self, connection: duckdb.DuckDBPyConnection) -> None:
        """After a transaction that was undone nobody knows which is which: all go."""
        for kind, names in (("TABLE", self.tables), ("VIEW", self.views)):
            for table in names:
                with contextlib.suppress(duckdb.Error):
                    connection.execute(f"DROP {kind} IF EXISTS {table}")
                with contextlib.suppress(duckdb.Error):
                    connection.execute(f"DROP {'VIEW' if kind == 'TABLE' else 'TABLE'} IF EXISTS {table}")
            names.clear()


class Workspace:
    """Knows which temporary tables the epoch has filled so far.

    The first statement that fills a table makes it, so that whatever an earlier epoch left in it is gone.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, parsed: Parsed, shown: Shown) -> None:
        self._connection = connection
        self._parsed = parsed
        self._shown = shown
        self._rows: dict[str, int] = {}
        self._batches: set[str] = set()
        #: Relations that have changed so far.
        self.changed: set[str] = set()
        #: Maps for which something is pending, and whether it came from one statement that adds it up.
        self.alone: dict[str, bool] = {}

    def fill(self, statement: Fill, values: Mapping[str, object] | None = None) -> int:
        """Add a query's rows to its table; returns how many. `values` are what the query takes."""
        table = statement.table
        text = statement.more if table in self._rows else statement.first
        if table not in self._rows:
            if table in self._shown.views:
                self._connection.execute(f"DROP VIEW {table}")
                self._shown.views.discard(table)
            self._shown.tables.add(table)
        found = self._parsed.execute(self._connection, text, values).fetchone()
        added = int(found[0]) if found else 0
        self._rows[table] = self._rows.get(table, 0) + added
        return added

    def show(self, table: str, query: str, rows: int) -> None:
        """Let a delta be a query over a batch, which is read as it came; always the same query for a table."""
        if table not in self._shown.views:
            if table in self._shown.tables:
                self._connection.execute(f"DROP TABLE IF EXISTS {table}")
                self._shown.tables.discard(table)
            self._connection.execute(f"CREATE OR REPLACE TEMPORARY VIEW {table} AS {query}")
            self._shown.views.add(table)
        self._rows[table] = rows

    def first(self, query: str) -> tuple[object, ...] | None:
        """The first row of a query."""
        found: tuple[object, ...] | None = self._parsed.execute(self._connection, query).fetchone()
        return found

    def columns(self, query: str) -> dict[str, np.ndarray]:
        """The columns of a query's result."""
        found: dict[str, np.ndarray] = self._parsed.execute(self._connection, query).fetchnumpy()
        return found

    def rows(self, table: str) -> int:
        return self._rows.get(table, 0)

    def is_batch(self, table: str) -> bool:
        """Whether a delta is a batch as it came: rows that come, each once."""
        return table in self._rows and (table in self._shown.views or table in self._batches)

    def note_batch(self, table: str) -> None:
        """A table has been filled with a batch as it came, and nothing else."""
        self._batches.add(table)

    def filled(self, table: str) -> bool:
        """Whether the table exists in this epoch; it may be empty."""
        return table in self._rows

    @property
    def large(self) -> list[str]:
        return [t for t, rows in self._rows.items() if rows > KEEP_ROWS and t not in self._shown.views]
