"""Subscriptions: following the changes of a view from the process that has the warehouse open.

Where the view keeps its changes, a subscription reads them from their store, on connections of its own, whenever it is
asked: it holds nothing in memory and nobody up, and can begin anywhere in what is kept. For any other view the writer
leaves the changes in memory (`headwater.engine.subscribers`), from the moment of the subscription on.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections import deque
from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, changes_of, sql, store_table
from headwater.emit.tags import CHANGED, TAG_EPOCH, TAG_OP, TAGS, tagged
from headwater.engine.arrow_types import from_storage
from headwater.engine.changelogs import contents_query, in_epoch, kept_query
from headwater.engine.engine import Engine
from headwater.engine.failures import Disturbed, translate
from headwater.errors import UserError
from headwater.serve.changes import Changes, changes_schema
from headwater.sql.names import fold
from headwater.store.catalog import Kind, Relation, stored_version

#: So many rows wait in memory for a subscriber of a view that does not keep its changes.
BUFFER_ROWS = 1_000_000
#: So many kept rows are read at a time, or those of one epoch.
BATCH_ROWS = 100_000
_BATCH = "#batch"


class Subscription(Changes):
    """The changes of a view; see `Changes`."""

    def __init__(
        self,
        engine: Engine,
        view: str,
        from_epoch: int | None = None,
        timeout: float | None = None,
        buffer_rows: int = BUFFER_ROWS,
    ) -> None:
        """Begin with the contents of the view, or with an epoch.

        Raises:
            UserError: HW102, HW104 there is no such view; HW520, HW522 changes from that epoch on are not kept; HW524
                the view has a column that a change has, too; HW525 that is not an epoch.
        """
        #: Keeps the database open as long as somebody follows it.
        self.owner: object = None
        self._engine = engine
        self._ready: deque[pa.Table] = deque()
        #: Epochs of which changes are kept and not read yet, with how many rows there are.
        self._kept: deque[tuple[int, int]] = deque()
        with engine.lock:  # every epoch counts: it is in the contents, or comes after and is told of
            self._relation = relation = _subscribable(engine, view)
            first = engine.epoch if from_epoch is None else _checked(from_epoch, relation, engine.epoch)
            #: The last epoch of which everything is delivered, or ready, or known to be kept.
            self._seen = first - 1
            super().__init__(relation.name, changes_schema(relation.fields), first - 1, timeout)
            self._feed = engine.hub.enter(relation.name, buffer_rows if relation.changes is None else None)
            self._leave = weakref.finalize(self, engine.hub.leave, self._feed)
            self._leave.atexit = False
            if from_epoch is not None:
                return
            contents = contents_query(relation, Emitter(engine.catalog.grouped), engine.epoch)
            reader = engine.warehouse.reader()
            reader.execute("BEGIN")
            stored_version(reader)  # from here on it sees the warehouse as it is now
        with self._reading(reader):
            self._ready += self._tagged(reader, contents)
        self._reach(first)

    @property
    def ended(self) -> bool:
        """Whether it was closed, or the database."""
        return self._feed.left or self._engine.hub.closed

    def close(self) -> None:
        self._leave()
        self.owner = None

    def _take(self, seconds: float | None) -> pa.Table | None:
        end = None if seconds is None else time.monotonic() + seconds
        while not self._ready:
            if self.ended:
                return None
            if self._look():
                continue
            left = None if end is None else max(0.0, end - time.monotonic())
            if not self._engine.hub.wait(self._feed, self._seen, left):
                return None
        return self._ready.popleft()

    def _look(self) -> bool:
        """Get more ready, if there is more."""
        if self._relation.changes is None:
            self._look_in_memory()
        else:
            self._look_at_store()
        return bool(self._ready)

    def _reach(self, epoch: int) -> None:
        """All up to an epoch is ready, or there is nothing in it."""
        self._seen = max(self._seen, epoch)
        if not self._ready and not self._kept:
            self.epoch = max(self.epoch, self._seen)

    # -- views that do not keep their changes ------------------------------------------------------------------------

    def _look_in_memory(self) -> None:
        found = self._engine.hub.take(self._feed)
        if isinstance(found, int):
            if self._feed.lost:
                raise _fallen_behind(self.view)
            if self._feed.dropped:
                raise _dropped(self.view)
            self._reach(found)
            return
        epoch, change = found
        if epoch > self._seen:
            try:
                reader = self._engine.warehouse.reader()
                with self._reading(reader):
                    reader.register(_BATCH, change)
                    self._ready += list(self._tagged(reader, in_epoch(_BATCH, epoch)))
            except BaseException:
                self._feed.lose()  # nobody has this change any more, and whoever goes on must know
                raise
        self._reach(epoch)

    # -- views that do -----------------------------------------------------------------------------------------------

    def _look_at_store(self) -> None:
        try:
            self._read_store()
        except Disturbed:
            with self._engine.lock:  # the catalogue was being changed, or the file was opened again
                if self._feed.dropped:
                    raise _dropped(self.view) from None
                if not self.ended:
                    self._read_store()

    def _read_store(self) -> None:
        """Read the changes of the next epochs, on a snapshot in which they are all there."""
        if self._feed.dropped:
            raise _dropped(self.view)
        catalog = self._engine.catalog
        reader = self._engine.warehouse.reader()
        with self._reading(reader):
            reader.execute("BEGIN")
            if stored_version(reader) != catalog.version:
                raise Disturbed("HW902", "the catalogue has changed")
            relation = catalog.find(self.view)
            if relation is None:
                raise _dropped(self.view)
            _check_kept(self._kept[0][0] if self._kept else self._seen + 1, relation)
            if not self._kept:
                self._count(reader)
            if self._kept:
                batch = self._next_epochs()
                found = list(self._tagged(reader, kept_query(relation, batch[0], batch[-1])))
                for _ in batch:  # only now: whoever is disturbed reads them once more
                    self._kept.popleft()
                self._ready += found
        self._reach(self._seen)

    def _next_epochs(self) -> list[int]:
        """The next epochs with changes, as many as make a batch."""
        epochs: list[int] = []
        rows = 0
        for epoch, more in self._kept:
            rows += more
            if epochs and rows > BATCH_ROWS:
                break
            epochs.append(epoch)
        return epochs

    def _count(self, reader: duckdb.DuckDBPyConnection) -> None:
        """Find out in which epochs up to the last one there are changes."""
        [(head,)] = reader.execute("SELECT coalesce(max(number), 0) FROM hw.epochs").fetchall()
        if head <= self._seen:
            return
        store = sql(store_table(changes_of(self.view)))
        query = f'SELECT "{EPOCH}", count(*) FROM {store} WHERE "{EPOCH}" > ? GROUP BY 1 ORDER BY 1'
        self._kept.extend(reader.execute(query, [self._seen]).fetchall())
        self._seen = max(self._seen, head)

    # -- reading -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self, reader: duckdb.DuckDBPyConnection) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise translate(error) from error
        finally:
            reader.close()

    def _tagged(self, reader: duckdb.DuckDBPyConnection, rows: exp.Query) -> Iterator[pa.Table]:
        """Rows with `#n` and `#e` as tables of changes, one for each epoch."""
        relation = self._relation
        found = reader.sql(sql(tagged(rows, relation.fields, relation.identity))).to_arrow_table().combine_chunks()
        table = self._shown(found)
        epochs = found[TAG_EPOCH].to_numpy()
        ends = [*(np.flatnonzero(np.diff(epochs)) + 1), len(epochs)] if len(epochs) else []
        start = 0
        for end in ends:
            yield table.slice(start, end - start)
            start = int(end)

    def _shown(self, found: pa.Table) -> pa.Table:
        """Changes as people get them: with `_old` as one value."""
        fields = self._relation.fields
        own = from_storage(found.select(range(2, 2 + len(fields))), fields)
        of_old = self.schema.field(len(self.schema) - 1).type
        old: pa.Array = pa.nulls(found.num_rows, of_old)
        if self._relation.identity is not None and found.num_rows:
            before = from_storage(found.select(range(2 + len(fields), found.num_columns)), fields)
            unchanged = pc.not_equal(found[TAG_OP], CHANGED)
            parts = [_one_array(column) for column in before.columns]
            old = pa.StructArray.from_arrays(parts, fields=list(of_old), mask=_one_array(unchanged))
        return pa.Table.from_arrays([found[TAG_EPOCH], found[TAG_OP], *own.columns, old], schema=self.schema)


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _subscribable(engine: Engine, name: str) -> Relation:
    relation = engine.catalog.find(name)
    if relation is None:
        raise UserError("HW102", f"there is no relation named {name!r}", hint="SHOW RELATIONS lists what exists")
    if relation.kind is not Kind.VIEW:
        raise UserError(
            "HW104",
            f"{relation.name} is a {relation.kind.value}, not a view",
            hint=f"subscribe to a view over it: CREATE VIEW v AS SELECT * FROM {relation.name}",
        )
    taken = [f.name for f in relation.fields if fold(f.name) in TAGS]
    if taken:
        raise UserError(
            "HW524",
            f"view {relation.name} has a column {taken[0]}, which every change has, too",
            hint=f"make a view over it in which {taken[0]} has another name, and subscribe to that",
        )
    return relation


def _checked(epoch: object, relation: Relation, last: int) -> int:
    """The epoch to begin with, if everything since then can be told."""
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
        raise UserError("HW525", f"{epoch!r} is not the number of an epoch", hint="epochs are counted from 1")
    if relation.changes is not None:
        _check_kept(epoch, relation)
    elif epoch <= last:
        raise UserError(
            "HW522",
            f"view {relation.name} does not keep its changes, and epoch {epoch} has passed",
            hint="leave out from_epoch to begin with what the view holds now, or create the view with RETAIN CHANGES",
        )
    return epoch


def _check_kept(epoch: int, relation: Relation) -> None:
    if epoch <= relation.begins and relation.begins >= relation.created:
        raise UserError(
            "HW520",
            f"changes of view {relation.name} from epoch {epoch} on are no longer kept: the first that are kept are "
            f"those of epoch {relation.begins + 1}",
            hint="begin again with what the view holds now, without from_epoch",
        )


def _fallen_behind(view: str) -> UserError:
    return UserError(
        "HW521",
        f"the subscriber of view {view} has fallen behind: changes that it has not fetched are gone",
        hint="subscribe again, which begins with what the view holds; a view with RETAIN CHANGES keeps them on disk",
    )


def _dropped(view: str) -> UserError:
    return UserError("HW523", f"view {view} was dropped", hint="there are no more changes of it")
