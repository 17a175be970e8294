"""How large stores are, measured cheaply: nothing that grows with the number of rows is looked at.

Rows are the entries of a store as DuckDB's catalogue counts them. Stores are append-only, so an entry that was
retracted counts, and its retraction, until the store is consolidated. Bytes are rows times the width of an entry,
uncompressed: a column of numbers or times has the width of its type; one of texts or collections the mean length among
the first entries, and four bytes that say where a value ends. (Blocks of the file would tell more of a large store, and
nothing of a small one, of one in memory, or of what is still in the log.) What lies away has its own books: bytes are
those of its files.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Mapping

import duckdb
from sqlglot import exp

from headwater.emit.functions.build import fn, recast
from headwater.emit.layout import STORE, column, name, number, sql, store_table
from headwater.engine.failures import translate
from headwater.plan.dag import Size
from headwater.store.warehouse import Warehouse

#: Entries that are looked at to learn how long texts are.
SAMPLE_ROWS = 1_000
_END_BYTES = 4
_ROWS = "SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = ?"
#: Of what lies away, one of its copies.
_AWAY = """
    SELECT relation, max(rows)::BIGINT, max(size)::BIGINT FROM (
        SELECT relation, coalesce(sum(rows), 0) AS rows, coalesce(sum(size), 0) AS size FROM hw.segments
        GROUP BY relation, copy
    ) GROUP BY relation
"""
_WIDTHS = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INTEGER": 4,
    "BIGINT": 8,
    "HUGEINT": 16,
    "FLOAT": 4,
    "DOUBLE": 8,
    "DATE": 4,
    "TIMESTAMP": 8,
    "INTERVAL": 16,
}
_DIGITS = re.compile(r"DECIMAL\((\d+),\s*\d+\)")


def width_of(type_name: str) -> int | None:
    """The bytes of a value of one of DuckDB's types; None if that depends on the value.

    >>> width_of("BIGINT"), width_of("DECIMAL(12,2)"), width_of("VARCHAR")
    (8, 8, None)
    """
    if digits := _DIGITS.fullmatch(type_name):
        precision = int(digits[1])
        return next(width for most, width in ((4, 2), (9, 4), (18, 8), (38, 16)) if precision <= most)
    return _WIDTHS.get(type_name)


def store_sizes(warehouse: Warehouse, names: Collection[str]) -> dict[str, Size]:
    """The sizes of relations and maps; those that are not stored are left out."""
    reader = warehouse.reader()
    try:
        reader.execute("BEGIN")  # what is dropped meanwhile is still there
        return _sizes(reader, names)
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()


def stored_rows(warehouse: Warehouse) -> dict[str, float]:
    """How many entries each store has, by its name."""
    reader = warehouse.reader()
    try:
        return {store: float(count) for store, count in reader.execute(_ROWS, [STORE]).fetchall()}
    except duckdb.Error as error:
        raise translate(error) from error
    finally:
        reader.close()


def _sizes(reader: duckdb.DuckDBPyConnection, names: Collection[str]) -> dict[str, Size]:
    wanted = set(names)
    rows: dict[str, int] = {
        store: count for store, count in reader.execute(_ROWS, [STORE]).fetchall() if store in wanted
    }
    widths = dict.fromkeys(rows, 0.0)
    unknown: dict[str, dict[str, str]] = {}
    for store, text, kind in reader.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = ?", [STORE]
    ).fetchall():
        if store not in rows:
            continue
        width = width_of(kind)
        if width is not None:
            widths[store] += width
        elif rows[store]:
            unknown.setdefault(store, {})[text] = kind
    for store, columns in unknown.items():
        found = reader.execute(sql(_mean_length(store, columns))).fetchone()
        widths[store] += float(found[0] or 0) if found else 0
    sizes = {store: Size(rows[store], round(rows[store] * widths[store])) for store in rows}
    away = reader.execute(_AWAY).fetchall()
    return sizes | {store: Size(count, size) for store, count, size in away if store in wanted - rows.keys()}


def _mean_length(store: str, columns: Mapping[str, str]) -> exp.Select:
    """What the values of columns take, on average of the first entries."""
    first = exp.Select(expressions=[column(text) for text in columns]).from_(store_table(store), copy=False)
    first = first.limit(SAMPLE_ROWS, copy=False)
    each: exp.Expr = number(_END_BYTES * len(columns))
    for text, kind in columns.items():
        each = exp.Add(this=each, expression=exp.func("COALESCE", _length(text, kind), number(0)))
    query = exp.Select(expressions=[exp.func("AVG", each)])
    return query.from_(exp.Subquery(this=first, alias=exp.TableAlias(this=name("first"))), copy=False)


def _length(text: str, kind: str) -> exp.Expr:
    """The bytes of a value; of an array, a map or a struct, those of its text."""
    if kind == "BLOB":
        return fn("octet_length", column(text))
    return fn("strlen", column(text) if kind == "VARCHAR" else recast(column(text), "VARCHAR"))


#: For how many seconds what was seen of all stores is good enough to plan by.
_GOOD_SECONDS = 2.0


class StoreSizes:
    """About how many entries the stores of a warehouse have, looked up now and then."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._rows: dict[str, int] = {}
        self._until = 0.0

    def rows(self, stores: Collection[str]) -> int:
        """How many entries some stores have together."""
        if time.monotonic() > self._until:
            self._until = time.monotonic() + _GOOD_SECONDS
            self._look()
        return sum(self._rows.get(one, 0) for one in stores)

    def _look(self) -> None:
        query = "SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = ?"
        reader = self._warehouse.reader()
        try:
            with contextlib.suppress(duckdb.Error):  # whoever reads next will be told
                self._rows = {text: int(rows or 0) for text, rows in reader.execute(query, [STORE]).fetchall()}
        finally:
            reader.close()
