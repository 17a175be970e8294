"""Reading a warehouse the way the engine tests compare it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra.during import at
from headwater.algebra.evaluate import NAN, Bag, Row, evaluate
from headwater.algebra.nodes import Scan
from headwater.store.catalog import Kind


def opened(path: object = ":memory:", clock: Callable[[], dt.datetime] | None = None) -> hw.Database:
    """A warehouse of this process's own."""
    database = hw.connect(str(path), clock=clock)
    assert isinstance(database, hw.Database)
    return database


def ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def rows(db: hw.Database, query: str) -> list[Row]:
    """The answer to a query, sorted; a bare name is a query for all of that relation."""
    text = query if query.startswith("SELECT ") else f"SELECT * FROM {ticked(query)}"
    return sorted(table_rows(db.query(text)), key=repr)


def table_rows(table: pa.Table) -> list[Row]:
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else []


def plain(value: object) -> object:
    """A value as the reference evaluator has it: nested values as tuples, one NaN, no negative zero."""
    match value:
        case float():
            return NAN if value != value else value + 0.0
        case list() | tuple():
            return tuple(plain(item) for item in value)
        case dict():
            return tuple(plain(item) for item in value.values())
        case dt.timedelta():
            return value // dt.timedelta(microseconds=1)
    return value


def bag(db: hw.Database, relation: str) -> Bag:
    return Counter(rows(db, relation))


def change_bag(table: pa.Table) -> Bag:
    """A changelog: rows with their `#n`."""
    out: Bag = Counter()
    for *row, n in table_rows(table):
        assert isinstance(n, int)
        out[tuple(row)] += n
    return out


QUOTE = '"'
State = tuple[int, dict[str, tuple[str, str | None, Bag | None]]]


def state(db: hw.Database) -> State:
    """Where a warehouse stands: the epoch, what exists, and what it holds."""
    out: dict[str, tuple[str, str | None, Bag | None]] = {}
    for one in db.engine.catalog:
        readable = one.kind is not Kind.STREAM or one.retain is not None
        out[one.name] = (one.kind.value, one.suspended, bag(db, one.name) if readable else None)
    return db.engine.epoch, out


def raw(db: hw.Database) -> tuple[object, ...]:
    """The same to the last row of every store, which is also quicker to read."""
    reader = db.warehouse.reader()
    try:
        tables = {
            name: Counter(
                map(repr, reader.execute(f'SELECT * FROM data."{name.replace(QUOTE, 2 * QUOTE)}"').fetchall())
            )
            for name in sorted(stores(db))
        }
        epochs = reader.execute("SELECT count(*), max(number) FROM hw.epochs").fetchall()
    finally:
        reader.close()
    return db.engine.epoch, epochs, db.engine.catalog.relations, tables


@contextmanager
def refused(db: hw.Database, code: str, match: str | None = None) -> Iterator[None]:
    """What stands inside raises an error of ours with this code, and changes nothing."""
    before = raw(db)
    with pytest.raises(hw.HeadwaterError, match=match) as caught:
        yield
    assert not isinstance(caught.value, hw.InternalError), str(caught.value)
    assert caught.value.code == code, str(caught.value)
    assert caught.value.message
    assert raw(db) == before


def stored(db: hw.Database, scan: Scan) -> Bag:
    """What a scan reads, straight from the store of a table or stream."""
    reader = db.warehouse.reader()
    try:
        columns = ", ".join('"' + f.name.replace('"', '""') + '"' for f in scan.fields)
        found = reader.sql(f'SELECT {columns}, "#n" FROM data."{scan.relation}" WHERE "#e" > {scan.since}')
        return Counter({row: n for row, n in change_bag(found.to_arrow_table()).items() if n})
    finally:
        reader.close()


def recomputed(db: hw.Database, view: str) -> Bag:
    """A view's query evaluated from scratch over what its inputs hold now, in plain Python."""

    def contents(scan: Scan) -> Bag:
        return bag(db, scan.relation) if db.find(scan.relation).program else stored(db, scan)

    clock = db.engine.last_clock or db.engine.present()
    return Counter({row: n for row, n in evaluate(at(db.algebra(view), clock), contents).items() if n})


def check_views(db: hw.Database) -> None:
    """Every view equals its query evaluated from scratch."""
    for one in db.engine.catalog:
        if one.program is not None and one.suspended is None:
            assert bag(db, one.name) == recomputed(db, one.name), one.name


def store_rows(db: hw.Database, store: str) -> int:
    """How many rows a store has, dead ones included."""
    reader = db.warehouse.reader()
    try:
        found = reader.execute(f'SELECT count(*) FROM data."{store}"').fetchone()
    finally:
        reader.close()
    assert found is not None
    return int(found[0])


def stores(db: hw.Database) -> set[str]:
    reader = db.warehouse.reader()
    try:
        found = reader.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data'").fetchall()
    finally:
        reader.close()
    return {name for (name,) in found}


class Changes:
    """An observer that keeps every changelog."""

    def __init__(self, db: hw.Database) -> None:
        self.epochs: list[tuple[int, dict[str, Bag]]] = []
        db.observe(self._take)

    def _take(self, epoch: int, changes: Mapping[str, pa.Table]) -> None:
        self.epochs.append((epoch, {name: change_bag(table) for name, table in changes.items()}))

    @property
    def last(self) -> dict[str, Bag]:
        return self.epochs[-1][1]


class SetClock:
    """A clock that stands where a test puts it."""

    def __init__(self, at: dt.datetime = dt.datetime(2024, 1, 1)) -> None:
        self.now = at

    def __call__(self) -> dt.datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += dt.timedelta(**by)
