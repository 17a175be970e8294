"""Plain copies of small relations in a DuckDB of their own, in memory, while these do not change.

A store is a signed multiset with a layout of its own; a view that is evaluated when it is read is not stored at all. To
show their rows takes longer than most of what is asked of them. So a relation that some have asked for since it changed
is copied: each row once, columns by their names. A query over copies alone is a statement over plain tables.

A copy is of certain stamps (`headwater.engine.stamps`), and is used like a result that is kept: only while these are
the same and steady, before the statement and after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import duckdb
import pyarrow as pa
from sqlglot import exp

from headwater import types as t
from headwater.emit.layout import MULTIPLICITY, STORE, name, sql, store_table
from headwater.engine.arrow_types import to_storage
from headwater.engine.stamps import Stamps
from headwater.serve.query import Prepared, in_row_form
from headwater.store import budget
from headwater.store.catalog import Catalog

#: When so many have asked for a relation since it changed, it is copied.
ENOUGH = 3
#: A copy has at most so many rows, and all together so many bytes.
MOST_ROWS, MOST_BYTES = 50_000, 64 * 1024 * 1024
_SETTINGS = ("memory_limit = '512MB'", "temp_directory = ''", "preserve_insertion_order = false")


class Source(NamedTuple):
    """What a relation follows from.

    Attributes:
        stores: the stores.
        stamps: of these.
        holds: whether the clock still says the same; None if nobody asks it.
    """

    stores: tuple[str, ...]
    stamps: tuple[int, ...]
    holds: Callable[[], bool] | None = None


class _Copy(NamedTuple):
    source: Source
    size: int


class Settled:
    """The copies of a database, for one catalogue. Safe to use from many threads."""

    def __init__(self, stamps: Stamps) -> None:
        self._stamps = stamps
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._catalog: Catalog | None = None
        self._copies: dict[str, _Copy] = {}
        self._asked: dict[str, tuple[tuple[int, ...], int]] = {}
        self.hits = 0

    def source(self, relations: Collection[str], catalog: Catalog) -> Source | None:
        """What copies of some relations follow from, if there are such, and they are what the relations hold now."""
        if self._catalog is not catalog:
            return None
        found = [self._copies.get(one) for one in relations]
        sources = [one.source for one in found if one is not None]
        if not sources or len(sources) < len(found) or not all(map(self._is_current, sources)):
            return None
        if len(sources) == 1:
            return sources[0]
        stores = tuple(sorted({store for one in sources for store in one.stores}))
        clocks = [one.holds for one in sources if one.holds is not None]
        holds = (lambda: all(one() for one in clocks)) if clocks else None
        return Source(stores, self._stamps.take(stores), holds)

    def _is_current(self, source: Source) -> bool:
        same = self._stamps.take(source.stores) == source.stamps and self._stamps.steady(source.stores)
        return same and (source.holds is None or source.holds())

    def run(self, query: Prepared, source: Source) -> pa.Table | None:
        """Answer a query over copies; None if they are not what the relations hold by now, or if it fails."""
        reader = self._reader()
        if reader is None:
            return None
        try:
            relation = reader.sql(query.text_over_copies(), params=dict(query.given or {}))
            table = relation.to_arrow_table()
        except duckdb.Error:  # with all its care it may work, and else it says what is wrong
            return None
        finally:
            reader.close()
        if not self._is_current(source):
            return None
        self.hits += 1
        return in_row_form(table, query.answer)

    def _reader(self) -> duckdb.DuckDBPyConnection | None:
        with self._lock:
            reader = self._connection.cursor() if self._connection is not None else None
        spent = budget.current()
        if reader is not None and spent is not None:
            try:
                spent.lend(reader)
            except BaseException:
                reader.close()
                raise
        return reader

    def wanted(self, sources: Mapping[str, Source], catalog: Catalog) -> list[str]:
        """Note that relations were asked for, and say which of them to copy."""
        with self._lock:
            if self._catalog is not catalog:
                self._forget(catalog)
            out = []
            for relation, source in sources.items():
                seen, times = self._asked.get(relation, (source.stamps, 0))
                times = times + 1 if seen == source.stamps else 1
                self._asked[relation] = source.stamps, times
                copy = self._copies.get(relation)
                if times >= ENOUGH and (copy is None or not self._is_current(copy.source)):
                    self._asked[relation] = source.stamps, 0  # who reads it to copy it asks, too
                    out.append(relation)
            return out

    def copy(self, relation: str, rows: pa.Table, fields: t.Schema, source: Source, catalog: Catalog) -> None:
        """Keep a copy of a relation.

        Args:
            relation: its name.
            rows: all of them, in row form, read while the stamps were those of the source.
            fields: its columns.
            source: what it follows from.
            catalog: that it is of.
        """
        if rows.num_rows > MOST_ROWS or any(t.is_nested(f.type) for f in fields):
            return
        stored = to_storage(rows, fields)
        ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
        stored = stored.append_column(MULTIPLICITY, ones)
        with self._lock:
            if self._catalog is not catalog:
                return
            left = sum(one.size for text, one in self._copies.items() if text != relation)
            if left + stored.nbytes > MOST_BYTES:
                self._forget(catalog)
            if self._connection is None:
                self._connection = duckdb.connect()
                for setting in _SETTINGS:
                    self._connection.execute(f"SET {setting}")
                self._connection.execute(sql(exp.Create(this=name(STORE), kind="SCHEMA")))
            self._copies.pop(relation, None)
            self._connection.register("#rows", stored)
            made = exp.Create(
                this=store_table(relation),
                kind="TABLE",
                replace=True,
                expression=exp.Select(expressions=[exp.Star()]).from_(exp.Table(this=name("#rows"))),
            )
            self._connection.execute(sql(made))
            self._connection.unregister("#rows")
            self._copies[relation] = _Copy(source, stored.nbytes)

    def _forget(self, catalog: Catalog | None) -> None:
        self._copies.clear()
        self._asked.clear()
        self._catalog = catalog
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Let go of all copies."""
        with self._lock:
            self._forget(None)
