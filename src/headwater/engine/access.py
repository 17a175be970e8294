"""Index or scan: how the rows of a store that a statement needs are found, decided in every epoch.

A scan costs what the store is large, a look-up what the change is large. Which is cheaper is known before a statement
runs: how many rows have changed, and how many are stored (`looks_up`). A sorted copy (`headwater.engine.sorted_copies`)
is made, in the background, when some epochs would have used one, and goes when none has for long.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from headwater.emit.layout import EPOCH, column, name, number, sql, store_table
from headwater.emit.probes import Path, Probe
from headwater.engine.parsed import Parsed
from headwater.engine.sorted_copies import Hashes, SortedCopy
from headwater.engine.sources import Sources
from headwater.plan.cost import PRICES, VECTOR

log = logging.getLogger("headwater")

#: A copy is made when so many epochs would have used it.
WISHES = 3
#: It goes when so many epochs have not.
IDLE_EPOCHS = 2_000
#: If it cannot be made, it is tried again after so many.
REFUSED_EPOCHS = 200
#: An index is brought up to date when so many rows are not in it.
INDEX_TAIL_ROWS = 10_000
#: Another copy is, when so many rows are not in it, which are scanned, and one of the last epochs has used it.
TAIL_ROWS = 130_000
LAST_EPOCHS = 5


def looks_up(stored: int, keys: int) -> bool:
    """Whether looking up some keys costs less than scanning a store of so many rows."""
    scan = stored * PRICES.scan * 2 + min(keys, stored / VECTOR) * PRICES.hit
    return PRICES.probe + keys * PRICES.key < scan


class Access:
    """The ways into the stores of a warehouse. Callers hold the engine's lock."""

    def __init__(self) -> None:
        self.copies: dict[Path, SortedCopy] = {}
        #: Whether to look up, given how many rows are stored and how many keys are wanted.
        self.decide = looks_up
        #: How many epochs would have used a copy that is not there.
        self.wishes: dict[Path, int] = {}
        #: Paths of which no copy could be made, and the epoch until which it is not tried again.
        self.refused: dict[Path, int] = {}
        #: Paths of indexes: their copies are always kept.
        self.pinned: frozenset[Path] = frozenset()
        #: How often each store was rewritten: what was read of it is as it is when this has not changed.
        self.rewrites: Counter[str] = Counter()
        self._numbers: dict[Path, int] = {}
        self._sizes: dict[str, int] = {}
        self._hits = Sources()
        self._views: dict[str, int] = {}

    # -- what the engine tells ----------------------------------------------------------------------------------------

    def appended(self, store: str, rows: int, epoch: int) -> None:
        """Rows were added to a store; a copy that ends later than that has missed them."""
        if store in self._sizes:
            self._sizes[store] += rows
        for copy in self.copies_of(store):
            copy.behind += rows
        self._drop([copy for copy in self.copies_of(store) if copy.upto >= epoch])

    def forget(self, store: str) -> None:
        """A store is gone, or another one has its name, and perhaps other columns."""
        self._sizes.pop(store, None)
        self._hits.forget()
        self._views.clear()
        for known in (self.copies, self.wishes, self.refused):
            for path in [one for one in known if one.store == store]:
                del known[path]

    def undone(self) -> None:
        """A transaction was undone, and with it what it made for itself; sizes are counted again."""
        self._sizes.clear()
        self._hits.forget()
        self._views.clear()

    def install(self, copy: SortedCopy) -> None:
        self.copies[copy.path] = copy
        self.wishes.pop(copy.path, None)

    def refuse(self, path: Path, epoch: int) -> None:
        """It cannot be had now."""
        self.refused[path] = epoch + REFUSED_EPOCHS
        self.wishes.pop(path, None)

    def release(self) -> None:
        """An epoch is over: what was found is not needed any more."""
        self._hits.release_all()

    def rewritten(self, store: str, copies: Sequence[SortedCopy] = ()) -> None:
        """A store holds the same in fewer rows: its size, and in which epochs rows came, are not what they were."""
        self._sizes.pop(store, None)
        self.rewrites[store] += 1
        self._drop(self.copies_of(store))
        for one in copies:
            self.install(one)

    def put_together(self, store: str, first: int, last: int) -> bool:
        """Rows of a store that came in some epochs will seem to have come in the last of these.

        Returns:
            Whether a copy is of no use now: one that has some of these rows, and not all.
        """
        self._sizes.pop(store, None)
        self.rewrites[store] += 1
        torn = [copy for copy in self.copies_of(store) if any(first <= run.upto < last for run in copy.runs)]
        self._drop(torn)
        return bool(torn)

    def _drop(self, copies: Sequence[SortedCopy]) -> None:
        for one in copies:
            del self.copies[one.path]

    # -- what is to be done in the background -------------------------------------------------------------------------

    def copies_of(self, store: str) -> list[SortedCopy]:
        return [copy for path, copy in list(self.copies.items()) if path.store == store]

    def in_use(self, copy: SortedCopy, epoch: int) -> bool:
        return copy.path in self.pinned or copy.used >= epoch - IDLE_EPOCHS

    def _is_late(self, copy: SortedCopy, epoch: int) -> bool:
        """Whether something is to be done about a copy."""
        if self.refused.get(copy.path, 0) > epoch:
            return False
        if copy.path in self.pinned and copy.behind > INDEX_TAIL_ROWS:
            return True
        return (copy.behind > TAIL_ROWS and copy.used >= epoch - LAST_EPOCHS) or not self.in_use(copy, epoch)

    def due(self, epoch: int) -> list[Path]:
        """Paths whose copy is to be made, brought up to date, or dropped; safe to ask from any thread."""
        wished = [path for path, epochs in list(self.wishes.items()) if epochs >= WISHES]
        wished += [
            path
            for path in self.pinned
            if path not in self.copies and path not in wished and self.refused.get(path, 0) <= epoch
        ]
        late = [copy.path for copy in list(self.copies.values()) if self._is_late(copy, epoch)]
        return wished + late

    # -- what statements ask ------------------------------------------------------------------------------------------

    def find(
        self,
        connection: duckdb.DuckDBPyConnection,
        parsed: Parsed,
        probes: Sequence[Probe],
        rows: Callable[[str], int],
        epoch: int,
    ) -> dict[str, str]:
        """Look up what is cheaper to look up; returns what stands for the scans of the statement, by their aliases.

        Args:
            connection: the writer's.
            parsed: its statements.
            probes: of the statement, in order.
            rows: how many rows a temporary table has.
            epoch: the one under way.
        """
        found: dict[str, str] = {}
        scanned: set[str] = set()  # large stores that have to be scanned: nothing is looked up by their rows
        for probe in probes:
            keys = rows(probe.source)
            if not keys or not self.decide(self._size(connection, probe.path.store), keys):
                continue
            copy = self.copies.get(probe.path)
            if copy is None or probe.needs & scanned:
                scanned.add(probe.alias)
                if copy is None and self.refused.get(probe.path, 0) <= epoch:
                    self.wishes[probe.path] = self.wishes.get(probe.path, 0) + 1
                continue
            wanted = parsed.execute(connection, probe.keys(found)).fetchnumpy()
            stored = self._size(connection, probe.path.store)
            hits = self._hits_of(copy, np.ma.getdata(next(iter(wanted.values()))), stored, epoch)
            if hits is None:  # a few keys may have many rows
                scanned.add(probe.alias)
                continue
            copy.used = epoch
            slot = sum(one.path == probe.path and one.alias in found for one in probes)
            found[probe.alias] = self._show(connection, copy, hits, slot)
        return found

    def _hits_of(self, copy: SortedCopy, wanted: Hashes, stored: int, epoch: int) -> pa.Table | None:
        """What a copy has of some keys; None if a scan is better, or the copy is of no use."""
        try:
            return copy.find(wanted, partial(self.decide, stored))
        except (pa.ArrowException, OSError, MemoryError) as error:  # it is only a copy: the store has it all
            log.warning("the sorted copy of %s is of no use: %s", copy.path, error)
            self._drop([copy])
            self.refuse(copy.path, epoch)
            return None

    def _size(self, connection: duckdb.DuckDBPyConnection, store: str) -> int:
        if store not in self._sizes:
            counted = connection.execute(f"SELECT count(*) FROM {sql(store_table(store))}").fetchone()
            self._sizes[store] = int(counted[0]) if counted else 0
        return self._sizes[store]

    def _show(self, connection: duckdb.DuckDBPyConnection, copy: SortedCopy, hits: pa.Table, slot: int) -> str:
        """A view of what was found and of what came after the copy's last run."""
        number = self._numbers.setdefault(copy.path, len(self._numbers) + 1)
        view, source = f"found {number}.{slot}", f"#hits {number}.{slot}"
        self._hits.put(connection, source, hits)
        if self._views.get(view) != copy.upto:
            connection.execute(sql(_view(view, source, copy)))
            self._views[view] = copy.upto
        return view


def _view(view: str, source: str, copy: SortedCopy) -> exp.Create:
    items = [column(text) for text in copy.columns]
    known = exp.Select(expressions=list(items)).from_(exp.Table(this=name(source)), copy=False)
    tail = exp.Select(expressions=[one.copy() for one in items]).from_(store_table(copy.path.store), copy=False)
    tail = tail.where(exp.GT(this=column(EPOCH), expression=number(copy.upto)), copy=False)
    rows = exp.Union(this=known, expression=tail, distinct=False)
    return exp.Create(
        this=exp.Table(this=name(view), db=name("temp")), kind="VIEW", replace=True, expression=rows,
        properties=exp.Properties(expressions=[exp.TemporaryProperty()]),
    )  # fmt: skip
