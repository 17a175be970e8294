"""Consolidation: rewriting a store so that each row stands in it once. Sorted copies follow in the same thread.

Stores are append-only, because an append costs a millisecond and an update of a large table a hundred. What has been
retracted is dead weight until a background thread copies the living rows to a new table and swaps it in:

1. copy, beside running epochs: the net rows of a snapshot, taken after epoch E, into `data."r#new"`;
2. swap, between two epochs: append what came after E, drop the old table, rename the new one.

A kill between the two leaves a table that nobody reads; the next start removes it.

Rows of a stream past its RETAIN, and changes of a view past its RETAIN CHANGES, are deleted by the same thread.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import threading
import time
from dataclasses import dataclass, replace

import duckdb
from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import During
from headwater.emit.functions.build import duckdb_type, recast
from headwater.emit.layout import (
    CHANGES,
    EPOCH,
    MULTIPLICITY,
    as_column,
    bigint,
    changes_of,
    column,
    name,
    number,
    sql,
    store_table,
    total,
)
from headwater.emit.maintain import stored_columns
from headwater.engine import faults
from headwater.engine.copying import bring_up_to_date, made_anew
from headwater.engine.definitions import first_epoch_seen, last_epoch_before
from headwater.engine.engine import Engine
from headwater.engine.failures import is_fatal, translate
from headwater.errors import HeadwaterError
from headwater.store.catalog import RETAIN_ALL

log = logging.getLogger("headwater")

SUFFIX = "#new"
#: A store is looked at again when it has grown by this many rows, and by as many as it had, or, beyond that, by this
#: share of itself.
LOOK_ROWS = 8_192
LOOK_DOUBLED = 250_000
LOOK_SHARE = 0.25
#: It is rewritten when at least this share of it is dead.
DEAD_SHARE = 0.3
#: Changes of a view that are past their time are deleted when they are at least this share of all that are kept.
EXPIRED_SHARE = 0.25


class Consolidator:
    """The background thread of a warehouse."""

    def __init__(self, engine: Engine, look_rows: int = LOOK_ROWS) -> None:
        self._engine = engine
        self._look_rows = look_rows
        self._sizes: dict[str, int] = {}
        self._wake = threading.Event()
        self._stop = self._busy = False
        self._thread = threading.Thread(target=self._work, name="headwater-consolidate", daemon=True)
        try:
            remove_leftovers(engine.connection)
        except duckdb.Error as error:
            raise translate(error) from error
        self._thread.start()

    def nudge(self) -> None:
        """Called after an epoch: start working if a store has grown enough."""
        if self._due() or self._engine.access.due(self._engine.epoch):
            self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Wait until there is nothing to do in the background; whether that was so in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.nudge()
            if not self._wake.is_set() and not self._busy:
                return True
            time.sleep(0.01)
        return False

    def close(self) -> None:
        self._stop = True
        self._wake.set()
        if (sorting := self._engine.sorting) is not None:
            with contextlib.suppress(duckdb.Error):
                sorting.interrupt()
        self._thread.join()

    def _due(self) -> list[str]:
        appended = dict(self._engine.appended)
        grown = {n for n, rows in appended.items() if rows > self._room(self._sizes.get(n, 0))}
        return sorted(grown | self._engine.urgent)

    def _room(self, rows: int) -> float:
        """By how much a store may grow before it is looked at."""
        return max(self._look_rows, min(rows, LOOK_DOUBLED), LOOK_SHARE * rows)

    def _work(self) -> None:
        while True:
            self._busy = False
            self._wake.wait()
            self._busy = True
            self._wake.clear()
            if self._stop:
                return
            for store in self._due():
                if self._stop:
                    return
                try:
                    self._look(store)
                except (duckdb.Error, HeadwaterError) as error:
                    # The store stays as it was, and is looked at again later.
                    log.warning("consolidation of %s was put off: %s", store, error)
                    self._engine.appended[store] = 0
                    self._recover(error)
            for path in self._engine.access.due(self._engine.epoch):
                if self._stop:
                    return
                try:
                    bring_up_to_date(self._engine, path)
                except Exception:
                    log.exception("no sorted copy of %s was made", path)
                    self._engine.access.refuse(path, self._engine.epoch)

    def _recover(self, error: Exception) -> None:
        if isinstance(error, duckdb.Error) and is_fatal(error):
            with self._engine.lock, contextlib.suppress(HeadwaterError):  # else the next epoch tries
                self._engine.recover(error)

    def _look(self, store: str) -> None:
        engine = self._engine
        engine.appended[store] = 0
        urgent = store in engine.urgent
        engine.urgent.discard(store)
        if store.endswith(CHANGES):
            self._sizes[store] = trim_changes(engine, store.removesuffix(CHANGES))
            return
        shape = shape_of(engine, store)
        if shape is None:
            trim(engine, store)
            return
        reader = engine.warehouse.reader()
        try:
            table = sql(store_table(store))
            found = reader.execute(
                f'SELECT count(*), count(*) FILTER (WHERE "{MULTIPLICITY}" < 0) FROM {table}'
            ).fetchone()
            rows, negative = found or (0, 0)
            before, self._sizes[store] = self._sizes.get(store, 0), rows
            dead = negative and (urgent or 2 * negative >= DEAD_SHARE * rows)
            if dead or (shape.totals and rows - before > LOOK_SHARE * before):
                self._sizes[store] = consolidate(engine, reader, store, shape)
        finally:
            reader.close()


@dataclass(frozen=True)
class Shape:
    """The columns of a store: by these its rows are told apart, and those are added up.

    `order` are the columns by which rows leave a window. Rows that leave together then lie together, and the others are
    not read for it.
    """

    columns: tuple[str, ...]
    totals: tuple[t.Field, ...] = ()
    order: tuple[str, ...] = ()


def shape_of(engine: Engine, store: str) -> Shape | None:
    """The shape of a store that may be rewritten; None for streams without a key, whose rows keep the epoch they came
    in.

    Nothing in such a stream is ever retracted, so there is nothing to gain from rewriting it: it is trimmed instead.
    """
    for relation in engine.catalog:
        if relation.program is not None:
            for one in relation.program.maps:
                if one.name == store and one.sums is not None:
                    return Shape(tuple(text for text, _ in one.sums.keys), one.sums.payload)
                if one.name == store:
                    ends = one.definition.ends.columns if isinstance(one.definition, During) else ()
                    return Shape(tuple(text for text, _ in stored_columns(one)), order=tuple(sorted(ends)))
        elif relation.name == store:
            return None if relation.flows else Shape(tuple(f.name for f in relation.fields))
        elif relation.sequence is not None and relation.buried == store:
            return Shape(tuple(f.name for f in relation.buried_fields))
    return None


def consolidate(engine: Engine, reader: duckdb.DuckDBPyConnection, store: str, shape: Shape) -> int:
    """Rewrite one store; returns its rows."""
    old, new = sql(store_table(store)), sql(store_table(store + SUFFIX))
    drops = engine.drops
    reader.execute(f"DROP TABLE IF EXISTS {new}")
    reader.execute("BEGIN")
    found = reader.execute("SELECT coalesce(max(number), 0) FROM hw.epochs").fetchone()
    epoch = found[0] if found else 0
    reader.execute(f"CREATE TABLE {new} AS {sql(_living(store, shape))}")
    reader.execute("COMMIT")
    faults.reach("consolidation copied")
    copies = [made_anew(engine, reader, copy, new, epoch) for copy in engine.access.copies_of(store)]
    with engine.lock:
        if engine.drops != drops:  # perhaps of this store, which may have a successor of the same name
            engine.connection.execute(f"DROP TABLE IF EXISTS {new}")
            return 0
        with engine.transaction():
            engine.connection.execute(f'INSERT INTO {new} SELECT * FROM {old} WHERE "{EPOCH}" > {int(epoch)}')
            engine.connection.execute(f"DROP TABLE {old}")
            engine.connection.execute(f"ALTER TABLE {new} RENAME TO {sql(name(store))}")
            faults.reach("consolidation swapped")
        engine.access.rewritten(store, [one for one in copies if one is not None])
    faults.reach("consolidation committed")
    left = reader.execute(f"SELECT count(*) FROM {old}").fetchone()
    return int(left[0]) if left else 0


def trim(engine: Engine, stream: str) -> None:
    """Delete rows of a stream that are past its RETAIN and that no view looks back to."""
    with engine.lock:
        relation = engine.catalog.find(stream)
        if relation is None or not relation.flows or relation.retain in (None, RETAIN_ALL):
            return
        back = [one.program.looks_back_to(relation.name) for one in engine.catalog if one.program]
        limit = min([first_epoch_seen(engine, relation), *(epoch for epoch in back if epoch is not None)])
        if limit <= relation.begins:
            return
        after = engine.catalog.with_changed(replace(relation, begins=limit))
        with engine.transaction():
            engine.connection.execute(f'DELETE FROM {sql(store_table(relation.name))} WHERE "{EPOCH}" <= {int(limit)}')
            engine.change_catalog(after)
        engine.access.rewritten(relation.name)
        engine.adopt(after)


def trim_changes(engine: Engine, view: str, share: float = EXPIRED_SHARE) -> int:
    """Delete changes of a view that are past its RETAIN CHANGES, if that share of them is; returns how many it keeps.

    Changes are as old as the epoch that they came in.
    """
    relation = engine.catalog.find(view)
    if relation is None or relation.changes is None:
        return 0
    store = sql(store_table(changes_of(relation.name)))
    reader = engine.warehouse.reader()
    try:
        limit = 0
        if relation.changes != RETAIN_ALL:
            with contextlib.suppress(OverflowError):  # longer than there have been years: nothing is that old
                horizon = engine.present() - dt.timedelta(microseconds=int(relation.changes))
                limit = last_epoch_before(reader, horizon)
        query = f'SELECT count(*), count(*) FILTER (WHERE "{EPOCH}" <= {int(limit)}) FROM {store}'
        rows, expired = reader.execute(query).fetchone() or (0, 0)
    finally:
        reader.close()
    if not expired or expired < share * rows:
        return int(rows)
    with engine.lock:
        now = engine.catalog.find(view)
        if now is None or now.changes != relation.changes or now.created != relation.created or limit <= now.begins:
            return int(rows)
        after = engine.catalog.with_changed(replace(now, begins=limit))
        with engine.transaction():
            engine.connection.execute(f'DELETE FROM {store} WHERE "{EPOCH}" <= {int(limit)}')
            engine.change_catalog(after)
        engine.adopt(after)
    return int(rows - expired)


def _living(store: str, shape: Shape) -> exp.Select:
    count = total(column(MULTIPLICITY))
    totals = [total(column(f.name)) for f in shape.totals]
    items: list[exp.Expr] = [column(text) for text in shape.columns]
    items += [as_column(recast(one, duckdb_type(f.type)), f.name) for one, f in zip(totals, shape.totals, strict=True)]
    kept = [exp.NEQ(this=one.copy(), expression=number(0)) for one in totals or [count]]
    items += [as_column(bigint(number(1) if totals else count), MULTIPLICITY)]
    items += [as_column(exp.Max(this=column(EPOCH)), EPOCH)]
    query = exp.Select(expressions=items).from_(store_table(store), copy=False)
    query = query.group_by(*(column(text) for text in shape.columns), copy=False) if shape.columns else query
    query = query.order_by(*(column(text) for text in shape.order), copy=False) if shape.order else query
    return query.having(exp.or_(*kept), copy=False)


def remove_leftovers(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop tables that an interrupted consolidation left."""
    left = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data' AND database_name = current_database() "
        "AND ends_with(table_name, ?)",
        [SUFFIX],
    ).fetchall()
    for (text,) in left:
        connection.execute(f"DROP TABLE {sql(store_table(text))}")
