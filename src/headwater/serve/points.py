"""Point reads: the rows of one key, or of some, as of the last committed epoch.

An index is a sorted copy of a relation's store that is always kept (`headwater.engine.sorted_copies`): the entries of a
key are found in it by binary search. What came after its last run is read from the store. Both together are what the
store held in the reader's snapshot, unless the store was rewritten or the catalogue changed in between; then the
stamps have moved (`headwater.engine.stamps`), and this reads again, by a scan. Readers take no lock of the writer's.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from headwater import types as t
from headwater.emit import points as emit
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import MULTIPLICITY, SHOWN, key_column, sql, store_table
from headwater.emit.probes import Path, hashed
from headwater.engine.arrow_types import from_storage, storage_arrow_schema
from headwater.engine.engine import Engine
from headwater.engine.failures import Disturbed, translate
from headwater.engine.parsed import Parsed
from headwater.engine.sorted_copies import Chunk, SortedCopy, build
from headwater.store.catalog import Catalog, Relation, stored_version

#: So many hashes of keys are remembered.
_MOST_HASHES = 50_000
#: When so many have asked for what came after a copy, it is sorted, too.
_ASKED = 3
#: Later than any epoch.
_LAST = 2**62

Row = tuple[Any, ...]
Reader = tuple[duckdb.DuckDBPyConnection, Parsed]


@dataclass(frozen=True)
class Access:
    """How the rows of a relation are read by some columns, under a catalogue.

    Attributes:
        catalog: which.
        relation: of it.
        keys: the columns, in the order in which values are given.
    """

    catalog: Catalog
    relation: Relation
    keys: t.Schema

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.keys)

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Under which names all columns are stored."""
        return self.catalog.stored_columns(self.relation, (f.name for f in self.relation.fields))

    @cached_property
    def stored_keys(self) -> tuple[str, ...]:
        return self.catalog.stored_columns(self.relation, self.names)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The positions of the key's columns in the order of the path."""
        return tuple(sorted(range(len(self.keys)), key=lambda i: self.stored_keys[i]))

    @cached_property
    def path(self) -> Path:
        return Path(self.relation.name, tuple(self.stored_keys[i] for i in self.order))

    @cached_property
    def findable(self) -> bool:
        """Whether a copy can find rows by these columns."""
        return bool(self.keys) and all(hashed(f.type) for f in self.keys)

    @cached_property
    def emitter(self) -> Emitter:
        return Emitter(self.catalog.grouped)

    @cached_property
    def grouped(self) -> bool:
        return self.relation.name in self.catalog.grouped

    @cached_property
    def hash_text(self) -> str:
        return emit.hash_query([self.keys[i] for i in self.order])

    @cached_property
    def row_text(self) -> str:
        return emit.row_query(self.relation.name, self.relation.fields, self.keys, self.emitter)

    @cached_property
    def entry_columns(self) -> tuple[str, ...]:
        """What is read of an entry: the columns, how often it counts, and whether it is shown."""
        return (*self.stored, MULTIPLICITY, *((SHOWN,) if self.grouped else ()))

    @cached_property
    def key_positions(self) -> tuple[int, ...]:
        names = [f.name for f in self.relation.fields]
        return tuple(names.index(one) for one in self.names)

    @cached_property
    def nested(self) -> bool:
        """Whether rows have values that Python cannot compare as they are."""
        return any(t.is_nested(f.type) or isinstance(f.type, t.Float | t.Double) for f in self.relation.fields)

    @cached_property
    def converted(self) -> bool:
        """Whether rows look different outside."""
        return any(isinstance(f.type, t.DayTimeInterval) for f in self.relation.fields)

    @cached_property
    def tail_text(self) -> str:
        return emit.tail_query(self.relation.name, self.entry_columns, self.stored_keys, self.keys)


@dataclass
class Recent:
    """What came after a copy, as of some stamps."""

    copy: SortedCopy
    stamps: tuple[int, ...]
    asked: int = 0
    chunk: Chunk | None = None


class Points:
    """Point reads of a warehouse. Safe to use from many threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers: deque[Reader] = deque()
        self._hashes: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._recent: dict[Path, Recent] = {}
        #: How many reads found their rows in an index, and how many scanned.
        self.found = 0
        self.scanned = 0

    @contextmanager
    def _reader(self) -> Iterator[Reader]:
        """A connection that is used again, with statements that it has parsed."""
        try:
            one = self._readers.pop()
        except IndexError:
            one = (self._engine.warehouse.reader(), Parsed())
        try:
            yield one
        except duckdb.Error as error:
            one[0].close()
            self._readers.clear()  # if the file was opened again, the others are of no use, either
            raise translate(error) from error
        except BaseException:
            one[0].close()
            raise
        self._readers.append(one)

    # -- one key -----------------------------------------------------------------------------------------------------

    def row(self, access: Access, values: Sequence[object]) -> list[Row]:
        """The rows of one key; `values` and rows are in storage form, and none of the values is NULL."""
        stamps = self._engine.stamps
        before = stamps.all
        copy = self._copy(access)
        if copy is not None and not stamps.redefining and self._engine.catalog is access.catalog:
            with self._reader() as reader:
                rows = self._found(reader, access, copy, values)
            if stamps.all == before and not stamps.redefining:
                self.found += 1
                return rows
        self.scanned += 1
        given = {emit.parameter(i): value for i, value in enumerate(values)}
        with self._reader() as (connection, _), _snapshot(connection, access.catalog):
            found = connection.sql(access.row_text, params=given).to_arrow_table()
        rows = []
        for *row, count in _tuples(found):
            rows += [tuple(row)] * count
        return rows

    def _copy(self, access: Access) -> SortedCopy | None:
        return self._engine.access.copies.get(access.path) if access.findable else None

    def _found(self, reader: Reader, access: Access, copy: SortedCopy, values: Sequence[object]) -> list[Row]:
        wanted = self._hash(reader, access, values)
        names = access.entry_columns
        entries = [entry for piece in copy.find_one(wanted) for entry in _tuples(piece, names)]
        if copy.behind:  # rows of an epoch under way count, so that none is missed
            recent = self._recent_of(reader, access, copy)
            if recent is not None:
                entries += [entry for piece in recent.with_hash(wanted) for entry in _tuples(piece, names)]
            else:
                entries += _tail(reader, access, copy, values)
        return _net(entries, access, values)

    def _recent_of(self, reader: Reader, access: Access, copy: SortedCopy) -> Chunk | None:
        """What came after a copy, sorted, too, once some have asked for it since it changed; None until then."""
        stamps = self._engine.stamps
        store = (access.relation.name,)
        now = stamps.take(store)
        known = self._recent.get(access.path)
        if known is None or known.copy is not copy or known.stamps != now:
            known = self._recent[access.path] = Recent(copy, now)
        if not stamps.steady(store):
            return None
        known.asked += 1
        if known.chunk is None and known.asked > _ASKED:
            run, _ = build(reader[0], sql(store_table(store[0])), access.path, copy.upto, _LAST, self._engine.shelf)
            known.chunk = run.chunks[0] if len(run.chunks) == 1 else None
        return known.chunk

    def _hash(self, reader: Reader, access: Access, values: Sequence[object]) -> int:
        ordered = [values[i] for i in access.order]
        key = (access.hash_text, *ordered)
        found = self._hashes.get(key)
        if found is None:
            given = {emit.parameter(n): value for n, value in enumerate(ordered)}
            [(found,)] = reader[1].execute(reader[0], access.hash_text, given).fetchall()
            self._hashes[key] = int(found)
            if len(self._hashes) > _MOST_HASHES:
                with suppress(KeyError):  # another thread has done it
                    self._hashes.popitem(last=False)
        return int(found)

    # -- many keys ---------------------------------------------------------------------------------------------------

    def rows(self, access: Access, keys: pa.Table) -> pa.Table:
        """The rows of some keys, in row form, in no order; `keys` are in storage form, in the key's order."""
        stamps = self._engine.stamps
        keys = keys.rename_columns([key_column(i) for i in range(len(access.keys))])
        before = stamps.all
        copy = self._copy(access)
        with self._reader() as (reader, _):
            reader.register(emit.KEYS, keys)
            try:
                if copy is not None and not stamps.redefining and self._engine.catalog is access.catalog:
                    rows = _found_of_keys(reader, access, copy)
                    if stamps.all == before and not stamps.redefining:
                        self.found += keys.num_rows
                        return _shown(rows, access)
                self.scanned += keys.num_rows
                with _snapshot(reader, access.catalog):
                    text = emit.scan_query(access.relation.name, access.relation.fields, access.names, access.emitter)
                    return _shown(reader.sql(text).to_arrow_table(), access)
            finally:
                reader.unregister(emit.KEYS)


def _tail(reader: Reader, access: Access, copy: SortedCopy, values: Sequence[object]) -> list[Row]:
    """The entries of a key that came after a copy; as rows of Python, of which there are few, if these can be had."""
    connection, parsed = reader
    given = {emit.parameter(i): value for i, value in enumerate(values)} | {emit.UPTO: copy.upto}
    if access.nested:
        found = connection.sql(access.tail_text, params=given).to_arrow_table()
        return list(_tuples(found))
    return parsed.execute(connection, access.tail_text, given).fetchall()


def _tuples(rows: pa.Table, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Rows of some columns, or of all, as tuples; several columns of a relation may be stored as one."""
    columns = rows.columns if names is None else [rows.column(text) for text in names]
    return zip(*(one.to_pylist() for one in columns), strict=True)


def _found_of_keys(reader: duckdb.DuckDBPyConnection, access: Access, copy: SortedCopy) -> pa.Table:
    hashes = reader.sql(emit.hashes_query(access.keys, access.order)).to_arrow_table().column(0).to_numpy()
    reader.register(emit.HITS, copy.find(hashes.astype(np.uint64)))
    try:
        relation = access.relation
        text = emit.rows_query(
            relation.name, relation.fields, access.stored, access.names, access.emitter, access.grouped
        )
        return reader.sql(text, params={emit.UPTO: copy.upto}).to_arrow_table()
    finally:
        reader.unregister(emit.HITS)


@contextmanager
def _snapshot(reader: duckdb.DuckDBPyConnection, catalog: Catalog) -> Iterator[None]:
    """A transaction that sees a certain catalogue."""
    reader.execute("BEGIN")
    try:
        if stored_version(reader) != catalog.version:
            raise Disturbed("HW902", "the catalogue has changed")
        yield
    finally:
        reader.execute("ROLLBACK")


def _net(entries: Sequence[Row], access: Access, values: Sequence[object]) -> list[Row]:
    """The rows that entries of a store add up to: those of the key, for hashes of two keys may be equal."""
    counts: dict[Row, int] = {}
    rows: dict[Row, Row] = {}
    wanted, width = tuple(values), len(access.relation.fields)
    for entry in entries:
        row = entry[:width]
        if tuple(row[i] for i in access.key_positions) == wanted and entry[-1] is not False:
            mark = _hashable(row) if access.nested else row
            rows.setdefault(mark, row)
            counts[mark] = counts.get(mark, 0) + entry[width]
    return [rows[mark] for mark, count in counts.items() for _ in range(count)]


def _hashable(value: Any) -> Any:
    """A value that can be compared with another: nested ones as tuples, and NaN is NaN."""
    match value:
        case list() | tuple():
            return tuple(map(_hashable, value))
        case dict():
            return tuple((key, _hashable(one)) for key, one in value.items())
        case float() if value != value:
            return "NaN"
    return value


def _shown(rows: pa.Table, access: Access) -> pa.Table:
    """Net rows, each as often as it counts, in row form."""
    counts = rows.column(MULTIPLICITY).to_numpy()
    plain = rows.drop_columns([MULTIPLICITY])
    if len(counts) and counts.max() > 1:
        plain = plain.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    return from_storage(plain, access.relation.fields)


def as_table(rows: Sequence[Row], fields: t.Schema) -> pa.Table:
    """Rows of one key in row form."""
    schema = storage_arrow_schema(fields)
    cells = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(list(one), f.type) for one, f in zip(cells, schema, strict=True)]
    return from_storage(pa.Table.from_arrays(arrays, schema=schema), fields)


def facts(points: Points) -> Mapping[str, int]:
    """How point reads have done, for `status`."""
    return {"found": points.found, "scanned": points.scanned}
