"""Making sorted copies and bringing them up to date, beside running epochs."""

from __future__ import annotations

import logging
from dataclasses import replace

import duckdb
import pyarrow as pa

from headwater.emit.layout import EPOCH, sql, store_table
from headwater.emit.probes import Path
from headwater.engine.engine import Engine
from headwater.engine.failures import is_fatal
from headwater.engine.sorted_copies import BEGINNING, Run, SortedCopy, build, epoch_of
from headwater.errors import HeadwaterError

log = logging.getLogger("headwater")


def bring_up_to_date(engine: Engine, path: Path) -> None:
    """Make the copy that some epochs wished for, give one the rows that came since, or drop one that nobody uses."""
    with engine.lock:
        copy = engine.access.copies.get(path)
        before = engine.redefined, engine.access.rewrites[path.store]
        if copy is not None and not engine.access.in_use(copy, engine.epoch):
            engine.access.copies.pop(path)
            return
    made, failed = None, None
    try:
        made = _continued(engine, path, copy)
    except (duckdb.Error, HeadwaterError, pa.ArrowException, OSError) as error:
        failed = error
    with engine.lock:
        now = engine.redefined, engine.access.rewrites[path.store]
        if now != before or engine.access.copies.get(path) is not copy:
            return  # perhaps the store is another one now: if it is still wished for, the next one will do
        if isinstance(failed, duckdb.Error) and is_fatal(failed):
            engine.recover(failed)
            return
        if failed is not None and not isinstance(failed, duckdb.InterruptException):
            log.warning("no sorted copy of %s was made: %s", path, failed)
        if made is None:
            engine.access.refuse(path, engine.epoch)
        else:
            engine.access.install(made)


def made_anew(
    engine: Engine, reader: duckdb.DuckDBPyConnection, copy: SortedCopy, table: str, epoch: int
) -> SortedCopy | None:
    """A copy of a store that is about to be replaced by a table, which holds what there was up to an epoch."""
    [(rows,)] = reader.execute(f"SELECT count(*) FROM {table}").fetchall()
    try:
        if not engine.shelf.has_room(rows):
            return None
        run, _ = build(reader, table, copy.path, BEGINNING, epoch, engine.shelf)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        log.warning("no sorted copy of %s was made: %s", copy.path, error)
        return None
    return replace(copy, runs=[run], behind=0)


def _continued(engine: Engine, path: Path, copy: SortedCopy | None) -> SortedCopy | None:
    """A copy with all that is committed; None if there is no room for it, or a type is not the same in Arrow."""
    table = sql(store_table(path.store))
    kept: list[Run] = copy.settled() if copy is not None else []
    after = kept[-1].upto if kept else BEGINNING
    reader = engine.sorting = engine.warehouse.reader()
    try:
        reader.execute("BEGIN")
        [(rows,)] = reader.execute(f'SELECT count(*) FROM {table} WHERE "{EPOCH}" > {after}').fetchall()
        if not engine.shelf.has_room(rows) or not _same_types(reader, table):
            return None
        run, columns = build(reader, table, path, after, epoch_of(reader), engine.shelf)
    finally:
        engine.sorting = None
        reader.close()
    return SortedCopy(path, columns, [*kept, run], copy.used if copy is not None else engine.epoch)


def _same_types(reader: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether rows come back from Arrow with the types that they had."""
    query = f"FROM {table} LIMIT 0"
    rows = reader.sql(query).to_arrow_table()
    reader.register("#rows", rows)
    try:
        there, back = (reader.execute(f"DESCRIBE {text}").fetchall() for text in (query, 'FROM "#rows"'))
    finally:
        reader.unregister("#rows")
    return [one[:2] for one in there] == [one[:2] for one in back]
