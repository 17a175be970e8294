"""Arrow tables that statements read under a name."""

from __future__ import annotations

import duckdb
import pyarrow as pa


class _Handed:
    """The rows of a name at the moment: DuckDB asks for them in every statement."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.rows.__arrow_c_stream__(requested_schema)


class Sources:
    """Names that stay known to DuckDB while their rows change: making a name known takes as long as a short statement.

    The rows of a name always have the same columns, until `forget`.
    """

    def __init__(self) -> None:
        self._handed: dict[str, _Handed] = {}

    def put(self, connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
        """Let a name stand for other rows."""
        if name in self._handed:
            self._handed[name].rows = rows
        else:
            self._handed[name] = _Handed(rows)
            connection.register(name, self._handed[name])

    def release(self, name: str) -> None:
        """Let go of the rows of a name."""
        handed = self._handed[name]
        handed.rows = handed.rows.schema.empty_table()

    def forget(self) -> None:
        """What was made known may not be any more, or with other columns. DuckDB may hold on to it for a while."""
        self.release_all()
        self._handed.clear()

    def release_all(self) -> None:
        """Let go of all rows."""
        for name in self._handed:
            self.release(name)
