"""Rewriting a store beside running epochs.

1. copy: what is to be left of a snapshot, taken after epoch E, into `data."r#new"`;
2. swap, between two epochs: append what came after E, drop the old table, rename the new one.

A kill between the two leaves a table that nobody reads; the next start removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
from sqlglot import exp

from headwater.emit.layout import (
    EPOCH,
    column,
    name,
    sql,
    store_table,
)
from headwater.engine import faults, part_book
from headwater.engine.copying import made_anew
from headwater.engine.engine import Engine
from headwater.engine.shapes import Shape, living
from headwater.store.catalog import Relation

SUFFIX = "#new"


def consolidate(engine: Engine, reader: duckdb.DuckDBPyConnection, store: str, shape: Shape) -> int:
    """Rewrite one store so that each row stands in it once; returns its rows."""
    order = [column(text) for text in shape.order]
    return rewrite(engine, reader, store, [living(store, shape, order)])


def rewrite(
    engine: Engine,
    reader: duckdb.DuckDBPyConnection,
    store: str,
    queries: Sequence[exp.Select],
    rolled: int | None = None,
) -> int:
    """Rewrite one store; returns its rows.

    Args:
        engine: whose.
        reader: a connection of the caller's own.
        store: its name.
        queries: what it is to hold of what it holds, in order.
        rolled: of a relation with parts: the first part that is not rolled up then, if that changes.
    """
    old, new = sql(store_table(store)), sql(store_table(store + SUFFIX))
    drops = engine.drops
    reader.execute(f"DROP TABLE IF EXISTS {new}")
    reader.execute("BEGIN")
    found = reader.execute("SELECT coalesce(max(number), 0) FROM hw.epochs").fetchone()
    epoch = found[0] if found else 0
    first, *more = map(sql, queries)
    reader.execute(f"CREATE TABLE {new} AS {first}")
    for query in more:
        reader.execute(f"INSERT INTO {new} {query}")
    reader.execute("COMMIT")
    faults.reach("consolidation copied")
    copies = [made_anew(engine, reader, copy, new, epoch) for copy in engine.access.copies_of(store)]
    with engine.lock:
        if engine.drops != drops:  # perhaps of this store, which may have a successor of the same name
            engine.connection.execute(f"DROP TABLE IF EXISTS {new}")
            return 0
        relation = engine.catalog.find(store)
        engine.access.rewritten(store)  # before: who looks into a copy meanwhile finds none, and scans
        with engine.transaction():
            engine.connection.execute(f'INSERT INTO {new} SELECT * FROM {old} WHERE "{EPOCH}" > {int(epoch)}')
            engine.connection.execute(f"DROP TABLE {old}")
            engine.connection.execute(f"ALTER TABLE {new} RENAME TO {sql(name(store))}")
            noted = _note_parts(engine, relation, rolled)
            faults.reach("consolidation swapped")
        if relation is not None and noted is not None:
            engine.book.frontiers[relation.name], engine.book.multiple[relation.name] = noted
        engine.access.rewritten(store, [one for one in copies if one is not None])
    faults.reach("consolidation committed")
    left = reader.execute(f"SELECT count(*) FROM {old}").fetchone()
    return int(left[0]) if left else 0


def _note_parts(
    engine: Engine, relation: Relation | None, rolled: int | None
) -> tuple[part_book.Frontier, set[int]] | None:
    """Write what a rewritten store of parts is like, inside the caller's transaction, and return it."""
    if relation is None or relation.length is None:
        return None
    frontier = engine.book.frontier(relation.name)
    if rolled is not None:
        frontier = replace(frontier, rolled=rolled)
        part_book.save_frontier(engine.connection, relation.name, frontier)
    return frontier, part_book.note_multiple(engine.connection, relation.name)


def remove_leftovers(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop tables that an interrupted rewriting left."""
    left = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data' AND database_name = current_database() "
        "AND ends_with(table_name, ?)",
        [SUFFIX],
    ).fetchall()
    for (text,) in left:
        connection.execute(f"DROP TABLE {sql(store_table(text))}")
