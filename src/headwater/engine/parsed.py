"""Statements that are parsed once: DuckDB takes as long to parse a long one as to run it over a few rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import duckdb

#: So many statements stay parsed; the least recently used one goes first.
MOST = 5_000


class Parsed:
    """The parsed statements of a connection. They hold no plan, so what they read may change between two runs."""

    def __init__(self) -> None:
        self._statements: OrderedDict[str, Any] = OrderedDict()

    def execute(
        self, connection: duckdb.DuckDBPyConnection, text: str, values: Mapping[str, object] | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Run a statement."""
        if text in self._statements:
            self._statements.move_to_end(text)
        else:
            [self._statements[text]] = connection.extract_statements(text)
            if len(self._statements) > MOST:
                self._statements.popitem(last=False)
        statement = self._statements[text]
        return connection.execute(statement, values) if values is not None else connection.execute(statement)
