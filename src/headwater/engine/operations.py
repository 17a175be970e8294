"""What a user may ask of base relations in an epoch, and how it becomes deltas.

Operations apply in order, each on what the ones before it left. Any that breaks a rule fails the whole epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import duckdb
import pyarrow as pa

from headwater import types as t
from headwater.algebra.nodes import Filter, Node
from headwater.algebra.scalars import Scalar
from headwater.emit import changes
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill, delta_table
from headwater.emit.probes import Probe, probe_of_batch
from headwater.engine.arrow_types import storage_arrow_schema
from headwater.engine.sources import Sources
from headwater.engine.workspace import Workspace, delta_of
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Kind, Relation

T = TypeVar("T")


@dataclass(frozen=True)
class Operation:
    """Base of all operations."""

    relation: str


@dataclass(frozen=True)
class InsertRows(Operation):
    """Rows to add, in the relation's exact schema."""

    rows: pa.Table


@dataclass(frozen=True)
class InsertChunks(Operation):
    """Rows to add that come piece by piece, as from a file larger than memory.

    `chunks` begins anew at each call: an epoch that is run again without a suspended view reads them again.
    """

    chunks: Callable[[], Iterable[pa.Table]]


@dataclass(frozen=True)
class InsertQuery(Operation):
    """The result of a query to add; its columns stand for the relation's in order."""

    node: Node


@dataclass(frozen=True)
class DeleteRows(Operation):
    """Rows to take away; each must be there as often as it is named."""

    rows: pa.Table


@dataclass(frozen=True)
class UpsertRows(Operation):
    """Rows that replace the ones of the same key; the last row of a key counts."""

    rows: pa.Table


@dataclass(frozen=True)
class DeleteKeys(Operation):
    """Keys whose rows to take away; each must be there."""

    keys: pa.Table


@dataclass(frozen=True)
class DeleteWhere(Operation):
    """Rows to take away by a condition over columns `alias.column`."""

    alias: str
    predicate: Scalar


@dataclass(frozen=True)
class UpdateWhere(Operation):
    """Rows to change by a condition, with the new value of each assigned column."""

    alias: str
    predicate: Scalar
    values: Mapping[str, Scalar]


def size(operation: Operation) -> int:
    """Rows that wait in memory on behalf of an operation."""
    match operation:
        case InsertRows(rows=rows) | DeleteRows(rows=rows) | UpsertRows(rows=rows) | DeleteKeys(keys=rows):
            return int(rows.num_rows)
    return 1


def check_target(catalog: Catalog, name: str, operation: str, needs_key: bool = False) -> Relation:
    """The relation an operation may change, or a clear error."""
    relation = catalog.find(name) if isinstance(name, str) else None
    if relation is None:
        raise UserError("HW102", f"there is no stream or table named {name!r}", hint="SHOW RELATIONS lists what exists")
    if relation.kind is Kind.VIEW:
        raise UserError(
            "HW301", f"{relation.name} is a view: it changes only with its inputs", hint="change the tables below it"
        )
    if relation.kind is Kind.STREAM and operation != "insert":
        raise UserError(
            "HW302",
            f"{relation.name} is a stream without a key: it only grows, {operation} is refused",
            hint="use a table, if rows must be deleted or updated",
        )
    if needs_key and not relation.key:
        raise UserError(
            "HW303", f"{relation.name} has no primary key, so {operation} has nothing to go by", hint="declare one"
        )
    if relation.static and catalog.dependents(relation.name):
        raise UserError(
            "HW304",
            f"{relation.name} is a STATIC table that views already use: it cannot change",
            hint="drop the views first, or create the table without STATIC",
        )
    return relation


class Resolver:
    """Applies operations to the delta tables of a connection."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        workspace: Workspace,
        statements: dict[tuple[str, ...], object],
        readers: Mapping[str, int],
        look_up: Callable[[Probe, int], str],
        sources: Sources,
    ) -> None:
        """Make a resolver for one epoch.

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
        """
        self._sources = sources
        self._look_up = look_up
        self._readers = readers
        #: Batches that are the whole delta of a relation so far, and need not be copied into a table.
        self._whole: dict[str, tuple[Relation, pa.Table]] = {}
        self._connection = connection
        self._catalog = catalog
        self._workspace = workspace
        self._statements = statements
        self._emitter = Emitter(catalog.grouped, net=True)  # no second chance here, so carefully at once
        self._batches: dict[str, int] = {}
        #: Rows that have come and gone so far, by relation.
        self.counts: dict[str, int] = {}

    def apply(self, operation: Operation) -> None:
        """Resolve one operation."""
        if not isinstance(operation, InsertRows | DeleteRows):  # it may look at any relation
            self._copy(list(self._whole))
        match operation:
            case InsertRows(name, rows):
                relation = check_target(self._catalog, name, "insert")
                if self._put_off(relation, rows):
                    return
                self._copy([relation.name])
                self._add(relation, self._register(rows, relation, relation.fields), 1)
                self._check_keys(relation)
            case InsertChunks(name, chunks):
                relation = check_target(self._catalog, name, "insert")
                for rows in chunks():
                    source = self._register(rows, relation, relation.fields)
                    self._add(relation, source, 1)
                    self._forget(source)
                self._check_keys(relation)
            case InsertQuery(name, node):
                relation = check_target(self._catalog, name, "insert")
                self._run_query(relation, changes.insert_query(relation.name, node, self._emitter))
                self._check_nulls(relation)
                self._check_keys(relation)
            case DeleteRows(name, rows):
                relation = check_target(self._catalog, name, "delete")
                self._copy([relation.name])
                source = self._register(rows, relation, relation.fields)
                self._check_there(relation, source)
                self._add(relation, source, -1)
            case UpsertRows(name, rows):
                relation = check_target(self._catalog, name, "upsert", needs_key=True)
                ordinals = pa.array(range(rows.num_rows), pa.int64())
                source = self._register(rows.append_column(changes.ORDINAL, ordinals), relation, relation.fields)
                self._retire(relation, source)
                latest = self._emit(changes.insert_latest, relation.name, relation.fields, relation.key_fields, source)
                self._run(relation, latest)
            case DeleteKeys(name, keys):
                relation = check_target(self._catalog, name, "delete by key", needs_key=True)
                source = self._register(keys, relation, relation.key_fields)
                self._check_keys_there(relation, source)
                self._retire(relation, source)
            case DeleteWhere(name, alias, predicate):
                relation = check_target(self._catalog, name, "delete")
                rows_found = self._matching(relation, alias, predicate)
                gone = changes.delete_where(relation.name, relation.fields, rows_found, self._emitter)
                self._run_query(relation, gone)
            case UpdateWhere(name, alias, predicate, values):
                relation = check_target(self._catalog, name, "update")
                rows_found = self._matching(relation, alias, predicate)
                moved = changes.update_where(relation.name, relation.fields, rows_found, values, self._emitter)
                self._run_query(relation, moved)
                self._check_nulls(relation)
                self._check_keys(relation)
            case _:
                raise TypeError(f"unknown operation {operation!r}")

    def finish(self) -> None:
        """All operations have come: what is a relation's whole delta is read as it came."""
        for name, (relation, rows) in self._whole.items():
            source = self._register(rows, relation, relation.fields, f"#in {name}")
            query = self._emit(changes.batch_rows, relation.name, relation.fields, source)
            self._workspace.show(delta_of(name), query, rows.num_rows)
        self._whole.clear()

    def _put_off(self, relation: Relation, rows: pa.Table) -> bool:
        """Whether a batch can wait to be a relation's whole delta: the first, of rows without a key, read by few."""
        if relation.key or self._changed(relation) or relation.name in self._whole:
            return False
        if self._readers.get(relation.name, 0) > _FEW_READERS:
            return False
        self._check_batch(rows, relation, relation.fields)
        self._whole[relation.name] = relation, rows
        self.counts[relation.name] = self.counts.get(relation.name, 0) + rows.num_rows
        return True

    def _copy(self, names: list[str]) -> None:
        """Batches that were put off become tables after all: there is more to come."""
        for name in names:
            if name in self._whole:
                relation, rows = self._whole.pop(name)
                self.counts[name] -= rows.num_rows
                self._add(relation, self._register(rows, relation, relation.fields), 1)

    def __enter__(self) -> Resolver:
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

    def _matching(self, relation: Relation, alias: str, predicate: Scalar) -> Filter:
        return changes.matching(relation.name, relation.fields, alias, predicate, self._changed(relation))

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
                hint=f"{_NOTHING_DONE}; send them again",
            )
        for f in fields:
            if not f.nullable and rows.column(f.name).null_count:
                raise UserError("HW327", f"{relation.name}.{f.name} cannot be NULL", hint=_NOTHING_DONE)

    def _add(self, relation: Relation, source: str, sign: int) -> None:
        self._run(relation, self._emit(changes.insert_rows, relation.name, relation.fields, source, sign))

    def _retire(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        found = self._found(relation, relation.key_fields, source)
        args = relation.name, relation.fields, relation.key_fields, source, changed, found
        self._run(relation, self._emit(changes.retire_keys, *args))

    def _found(self, relation: Relation, fields: t.Schema, source: str | None = None) -> str:
        """Where to look for rows that agree with a batch, or else with what has changed so far, in some columns."""
        rows = self._batches[source] if source is not None else self._workspace.rows(delta_of(relation.name))
        key = ("probe", relation.name, source or "", *(f.name for f in fields))
        if key not in self._statements:
            table = changes.incoming(source) if source is not None else delta_table(relation.name)
            self._statements[key] = probe_of_batch(relation.name, fields, table)
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

    def _check_keys(self, relation: Relation) -> None:
        if not relation.key:
            return
        if not self._changed(relation):  # nothing came at all
            return
        there = self._found(relation, relation.key_fields)
        found = self._first(self._emit(changes.duplicate_keys, relation.name, relation.key_fields, there))
        if found is not None:
            raise UserError(
                "HW305",
                f"{relation.name} would have two rows with key {_show(relation.key, found)}",
                hint=f"{_NOTHING_DONE}; to replace rows, use upsert of the Python API or delete them first",
            )

    def _check_keys_there(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        there = self._found(relation, relation.key_fields, source)
        query = self._emit(changes.missing_keys, relation.name, relation.key_fields, source, changed, there)
        found = self._first(query)
        if found is not None:
            key = _show(relation.key, found)
            raise UserError("HW306", f"{relation.name} has no row with key {key}", hint=_NOTHING_DONE)

    def _check_there(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        there = self._found(relation, relation.key_fields or relation.fields, source)
        args = relation.name, relation.fields, relation.key_fields, source, changed, there
        found = self._first(self._emit(changes.missing_rows, *args))
        if found is not None:
            names = tuple(f.name for f in relation.fields)
            raise UserError(
                "HW306",
                f"{relation.name} does not have the row {_show(names, found)}, or not that often",
                hint=_NOTHING_DONE,
            )

    def _check_nulls(self, relation: Relation) -> None:
        required = tuple(f.name for f in relation.fields if not f.nullable)
        if not required:
            return
        flags = self._first(changes.null_in(relation.name, required)) or ()
        for text, found in zip(required, flags, strict=False):
            if found:
                raise UserError("HW327", f"{relation.name}.{text} cannot be NULL", hint=_NOTHING_DONE)


#: A batch is read as it came if no more statements than this read it; else it is copied into a table first.
_FEW_READERS = 3
_NOTHING_DONE = "the whole epoch was refused; nothing changed"


def _show(names: tuple[str, ...], values: tuple[object, ...]) -> str:
    text = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values, strict=False))
    return f"({text if len(text) <= 200 else text[:199] + '…'})"
