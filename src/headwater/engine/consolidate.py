"""Work in the background: stores are rewritten so that each row stands in them once; what is past its time is deleted.

Stores are append-only, because an append costs a millisecond and an update of a large table a hundred. What has been
retracted is dead weight until this thread rewrites the store (`headwater.engine.rewriting`). Sorted copies follow in
the same thread (`headwater.engine.copying`), and so does what is done for parts (`headwater.engine.part_upkeep`). For
what lies away there is another thread (`headwater.engine.merging`).

Rows of a stream past its RETAIN, and changes of a view past its RETAIN CHANGES, are deleted by the same thread.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import threading
import time
from dataclasses import replace

import duckdb

from headwater.emit.layout import CHANGES, EPOCH, MULTIPLICITY, changes_of, sql, store_table
from headwater.engine.copying import bring_up_to_date
from headwater.engine.definitions import first_epoch_seen, last_epoch_before
from headwater.engine.engine import Engine
from headwater.engine.failures import is_fatal, translate
from headwater.engine.merging import Merger
from headwater.engine.part_upkeep import (
    advanced,
    delete_parts,
    has_spare_lines,
    note_rolled_up,
    put_lines_together,
    rewrite_parts,
    to_roll_up,
)
from headwater.engine.rewriting import consolidate, remove_leftovers
from headwater.engine.shapes import shape_of
from headwater.errors import HeadwaterError
from headwater.store.catalog import RETAIN_ALL, Relation

log = logging.getLogger("headwater")

#: A store is looked at again when it has grown by this many rows, and by as many as it had, or, beyond that, by this
#: share of itself.
LOOK_ROWS = 8_192
LOOK_DOUBLED = 250_000
LOOK_SHARE = 0.25
#: A relation with parts is looked at again when it has so many more, too.
LOOK_PARTS = 64
#: A store is rewritten when at least this share of it is dead.
DEAD_SHARE = 0.3
#: Changes of a view that are past their time are deleted when they are at least this share of all that are kept.
EXPIRED_SHARE = 0.25


class Consolidator:
    """The background thread of a warehouse."""

    def __init__(self, engine: Engine, look_rows: int = LOOK_ROWS, look_parts: int = LOOK_PARTS) -> None:
        self._engine = engine
        self._look_rows = look_rows
        self._look_parts = look_parts
        self._sizes: dict[str, int] = {}
        #: The next part of each relation when it was last looked at.
        self._parts: dict[str, int] = {}
        self._wake = threading.Event()
        self._stop = self._busy = False
        #: Does the same for what lies away.
        self.merger = Merger(engine, engine.away) if engine.away is not None else None
        self._thread = threading.Thread(target=self._work, name="headwater-consolidate", daemon=True)
        try:
            remove_leftovers(engine.connection)
        except duckdb.Error as error:
            raise translate(error) from error
        self._thread.start()

    def nudge(self) -> None:
        """Called after an epoch: start working if a store has grown enough."""
        if self._due() or self._engine.access.due(self._engine.epoch) or has_spare_lines(self._engine.book):
            self._wake.set()
        if self.merger is not None:
            self.merger.nudge()

    def wait(self, seconds: float) -> bool:
        """Wait until there is nothing to do in the background; whether that was so in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.nudge()
            if not self._wake.is_set() and not self._busy and (self.merger is None or self.merger.idle):
                return True
            time.sleep(0.01)
        return False

    def close(self) -> None:
        self._stop = True
        self._wake.set()
        if (sorting := self._engine.sorting) is not None:
            with contextlib.suppress(duckdb.Error):
                sorting.interrupt()
        if self.merger is not None:
            self.merger.close()
        self._thread.join()

    def _forget_dropped(self) -> None:
        """A store that was dropped may have a successor of the same name, which is smaller."""
        with contextlib.suppress(KeyError):  # there is none, or another thread was faster
            while self._engine.dropped:
                store = self._engine.dropped.pop()
                self._sizes.pop(store, None)
                self._parts.pop(store, None)

    def _due(self) -> list[str]:
        self._forget_dropped()
        appended = dict(self._engine.appended)
        grown = {n for n, rows in appended.items() if rows > self._room(self._sizes.get(n, 0))}
        frontiers = dict(self._engine.book.frontiers)
        longer = {n for n, one in frontiers.items() if advanced(one, self._parts.get(n)) >= self._look_parts}
        return sorted(grown | longer | self._engine.urgent)

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
            if has_spare_lines(self._engine.book):
                try:
                    put_lines_together(self._engine)
                except (duckdb.Error, HeadwaterError) as error:
                    log.warning("the lines about parts were not put together: %s", error)
                    self._engine.book.settled = self._engine.book.lines
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
        if engine.away is not None and engine.away.holds(store):
            trim(engine, store)
            found = engine.catalog.find(store)
            if found is not None and found.length is not None:
                self._parts[store] = engine.book.frontier(store).next or 0
                delete_parts(engine, store)
                note_rolled_up(engine, found)
            return  # its segments are put together by tasks
        if store.endswith(CHANGES):
            self._sizes[store] = trim_changes(engine, store.removesuffix(CHANGES))
            return
        relation = engine.catalog.find(store)
        if relation is not None and relation.length is not None:
            self._look_at_parts(relation, urgent)
            return
        shape = shape_of(engine.catalog, store)
        if shape is None:
            trim(engine, store)
            return
        reader = engine.warehouse.reader()
        try:
            before = self._sizes.get(store, 0)
            rows, dead = self._count(reader, store, urgent)
            if dead or (shape.totals and rows - before > LOOK_SHARE * before):
                self._sizes[store] = consolidate(engine, reader, store, shape)
        finally:
            reader.close()

    def _look_at_parts(self, relation: Relation, urgent: bool) -> None:
        engine = self._engine
        self._parts[relation.name] = engine.book.frontier(relation.name).next or 0
        delete_parts(engine, relation.name)
        if not engine.catalog.keeps(relation):
            return
        rolled = to_roll_up(relation, engine.book)
        reader = engine.warehouse.reader()
        try:
            _, dead = self._count(reader, relation.name, urgent)
            if dead or rolled is not None:
                rolled = rolled if rolled is not None else engine.book.frontier(relation.name).rolled
                self._sizes[relation.name] = rewrite_parts(engine, reader, relation, rolled)
        finally:
            reader.close()

    def _count(self, reader: duckdb.DuckDBPyConnection, store: str, urgent: bool) -> tuple[int, bool]:
        """How many rows a store has, and whether so many of them are dead that it is to be rewritten."""
        query = f'SELECT count(*), count(*) FILTER (WHERE "{MULTIPLICITY}" < 0) FROM {sql(store_table(store))}'
        rows, negative = reader.execute(query).fetchone() or (0, 0)
        self._sizes[store] = rows
        return rows, bool(negative and (urgent or 2 * negative >= DEAD_SHARE * rows))


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
        engine.access.rewritten(relation.name)
        with engine.transaction():
            if engine.away is not None and engine.away.holds(relation.name):
                engine.away.bring_home({relation.name})
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
