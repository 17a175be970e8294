"""What operations work with: batches under names, statements that are emitted once, and the deltas so far."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Self, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from headwater import types as t
from headwater.emit import changes
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill, delta_table
from headwater.emit.probes import Probe, probe_of_batch
from headwater.engine.arrow_types import storage_arrow_schema
from headwater.engine.sources import Sources
from headwater.engine.workspace import Workspace, delta_of
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Relation

T = TypeVar("T")

NOTHING_DONE = "the whole epoch was refused; nothing changed"


class Ground:
    """The part of a resolver that knows of batches and statements, and not of operations."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        workspace: Workspace,
        statements: dict[tuple[str, ...], object],
        readers: Mapping[str, int],
        look_up: Callable[[Probe, int], str],
        sources: Sources,
        clock: dt.datetime,
    ) -> None:
        """Make it for one epoch.

        Args:
            connection: the writer's.
            catalog: what exists in this epoch.
            workspace: where deltas are filled.
            statements: emitted statements by what they depend on, kept from epoch to epoch: emitting one takes
                as long as running it on a small batch.
            readers: how many statements will read each relation's delta.
            look_up: finds what so many rows of a batch need of a store; returns the view of it, or nothing if it is to
                be scanned.
            sources: under whose names statements read batches, kept from epoch to epoch.
            clock: the epoch's.
        """
        self._sources = sources
        self._look_up = look_up
        self._readers = readers
        self._connection = connection
        self._catalog = catalog
        self._workspace = workspace
        self._statements = statements
        self._clock = clock
        self._emitter = Emitter(catalog.grouped, net=True)  # no second chance here, so carefully at once
        self._batches: dict[str, int] = {}
        #: Batches that are the whole delta of a relation so far, and need not be copied into a table.
        self._whole: dict[str, tuple[Relation, pa.Table]] = {}
        #: Rows that have come and gone so far, by relation.
        self.counts: dict[str, int] = {}
        #: How many arriving rows changed nothing, by stream and reason.
        self.ignored: dict[tuple[str, str], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the batches."""
        for source in list(self._batches):
            self._forget(source)

    def _forget(self, source: str) -> None:
        self._sources.release(source)
        del self._batches[source]

    def _emit(self, emit: Callable[..., T], *args: object) -> T:
        """An emitted statement, from the cache if it was emitted before."""
        key = (emit.__name__, *(str(one) for one in args if isinstance(one, str | int)))
        if key not in self._statements:
            self._statements[key] = emit(*args)
        return self._statements[key]  # type: ignore[return-value]

    def _changed(self, relation: Relation) -> bool:
        return self._workspace.filled(delta_of(relation.name))

    def _register(self, rows: pa.Table, relation: Relation, fields: t.Schema, name: str | None = None) -> str:
        """A batch under a name that statements can read."""
        self._check_batch(rows, relation, fields)
        source = name or f"#batch{len(self._batches)} {[relation.name, *rows.column_names]}"
        self._sources.put(self._connection, source, rows)
        self._batches[source] = rows.num_rows
        return source

    @staticmethod
    def _check_batch(rows: pa.Table, relation: Relation, fields: t.Schema) -> None:
        wanted = [*storage_arrow_schema(fields)]
        if [(one.name, one.type) for one in rows.schema][: len(wanted)] != [(one.name, one.type) for one in wanted]:
            raise UserError(
                "HW308",
                f"{relation.name} was replaced by one with other columns while rows for it were under way",
                hint=f"{NOTHING_DONE}; send them again",
            )
        for f in fields:
            if not f.nullable and rows.column(f.name).null_count:
                raise UserError("HW327", f"{relation.name}.{f.name} cannot be NULL", hint=NOTHING_DONE)

    def _found(self, store: str, fields: t.Schema, source: str | None = None) -> str:
        """Where to look for rows that agree with a batch, or else with what has changed so far, in some columns."""
        rows = self._batches[source] if source is not None else self._workspace.rows(delta_of(store))
        key = ("probe", store, source or "", *(f.name for f in fields))
        if key not in self._statements:
            table = changes.incoming(source) if source is not None else delta_table(store)
            self._statements[key] = probe_of_batch(store, fields, table)
        probe = self._statements[key]
        return self._look_up(probe, rows) if isinstance(probe, Probe) else ""

    def _run(self, relation: Relation, statement: Fill) -> None:
        added = self._workspace.fill(statement)
        self.counts[relation.name] = self.counts.get(relation.name, 0) + added

    def _run_query(self, relation: Relation, statement: Fill) -> None:
        """As `_run`, for statements that yield a row with its multiplicity, however often it is there."""
        before = self._copies(relation) if self._changed(relation) else 0
        self._workspace.fill(statement)
        self.counts[relation.name] = self.counts.get(relation.name, 0) + self._copies(relation) - before

    def _copies(self, relation: Relation) -> int:
        """How many copies of rows come and go so far."""
        found = self._first(changes.copies(relation.name))
        return int(str(found[0])) if found else 0

    def _first(self, query: str) -> tuple[object, ...] | None:
        return self._workspace.first(query)


def numbered(rows: pa.Table) -> pa.Table:
    """Rows with their position."""
    return rows.append_column(changes.ORDINAL, pa.array(np.arange(rows.num_rows, dtype=np.int64)))


def shown(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    """Some values of a row, for people."""
    text = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values, strict=False))
    return f"({text if len(text) <= 200 else text[:199] + '…'})"
