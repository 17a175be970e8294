"""What a user may ask of base relations in an epoch, and how it becomes deltas.

Operations apply in order, each on what the ones before it left. Any that breaks a rule fails the whole epoch.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.algebra.nodes import Filter, Node
from headwater.algebra.scalars import TRUE, Scalar
from headwater.emit import changes
from headwater.emit.layout import sql
from headwater.engine.dating import Dater
from headwater.engine.ground import NOTHING_DONE, numbered, shown
from headwater.engine.workspace import delta_of
from headwater.errors import UserError
from headwater.store.catalog import CLOCK_FORMAT, Catalog, Kind, Relation

_CLOCK_HINT = "ADVANCE CLOCK TO sets it by hand"
#: A batch is read as it came if no more statements than this read it; else it is copied into a table first.
_FEW_READERS = 3


@dataclass(frozen=True)
class Operation:
    """Base of all operations."""

    relation: str


@dataclass(frozen=True)
class InsertRows(Operation):
    """Rows to add, in the relation's exact schema."""

    rows: pa.Table


@dataclass(frozen=True)
class TimePoints(InsertRows):
    """Rows of the clock stream, which only the engine itself adds."""


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


@dataclass(frozen=True)
class Advance(Operation):
    """Whatever happened to a stream before a moment has come."""

    moment: dt.datetime


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
    if relation.source is not None and relation.source.format == CLOCK_FORMAT:
        raise UserError("HW301", f"{relation.name} is the clock: its rows are the seconds that pass", hint=_CLOCK_HINT)
    if relation.kind is Kind.SYNCHRONISED:
        raise UserError(
            "HW301", f"{relation.name} stands for {relation.of}: it changes when its policy ticks", hint="change that"
        )
    if relation.kind is Kind.VIEW:
        raise UserError(
            "HW301", f"{relation.name} is a view: it changes only with its inputs", hint="change the tables below it"
        )
    if relation.kind is Kind.STREAM and not relation.key and operation != "insert":
        raise UserError(
            "HW302",
            f"{relation.name} is a stream without a key: it only grows, {operation} is refused",
            hint="use a table, or a stream with a KEY, if rows must be deleted or updated",
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


class Resolver(Dater):
    """Applies operations to the delta tables of a connection."""

    def apply(self, operation: Operation) -> None:
        """Resolve one operation."""
        if not isinstance(operation, InsertRows | DeleteRows | Advance):  # it may look at any relation
            self._copy(list(self._whole))
        match operation:
            case TimePoints(name, rows):
                relation = self._catalog.find(name)
                assert relation is not None
                self._add(relation, self._register(rows, relation, relation.fields), 1)
            case InsertRows(name, rows):
                for relation in self._taking(name):
                    self._insert(relation, rows)
            case Advance(name, moment):
                self._advance(check_target(self._catalog, name, "insert"), moment)
            case InsertChunks(name, chunks):
                self._insert_chunks(self._taking(name), chunks())
            case InsertQuery(name, node):
                self._insert_query(self._taking(name), node)
            case DeleteRows(name, rows):
                relation = check_target(self._catalog, name, "delete")
                self._copy([relation.name])
                source = self._register(rows, relation, relation.fields)
                self._check_there(relation, source)
                self._bury(relation, source)
                self._add(relation, source, -1)
            case UpsertRows(name, rows):
                relation = check_target(self._catalog, name, "upsert", needs_key=True)
                if relation.is_keyed_stream:
                    self._tag(relation, rows)
                    return
                source = self._register(numbered(rows), relation, relation.fields)
                self._retire(relation, source)
                latest = self._emit(changes.insert_latest, relation.name, relation.fields, relation.key_fields, source)
                self._run(relation, latest)
            case DeleteKeys(name, keys):
                relation = check_target(self._catalog, name, "delete by key", needs_key=True)
                if relation.is_keyed_stream:
                    self._drop_keys(relation, keys)
                    return
                source = self._register(keys, relation, relation.key_fields)
                self._check_keys_there(relation, source)
                self._retire(relation, source)
            case DeleteWhere(name, alias, predicate):
                relation = check_target(self._catalog, name, "delete")
                rows_found = self._matching(relation, alias, predicate)
                if relation.sequence is not None:
                    gone = changes.rows_of(relation.fields, rows_found, relation.buried_fields, self._emitter)
                    self._bury_found(relation, sql(gone))
                self._run_query(
                    relation, changes.delete_where(relation.name, relation.fields, rows_found, self._emitter)
                )
            case UpdateWhere(name, alias, predicate, values):
                relation = check_target(self._catalog, name, "update")
                rows_found = self._matching(relation, alias, predicate)
                if relation.is_keyed_stream:
                    self._refuse_partial(relation)
                if relation.sequence is not None:
                    self._move(relation, sql(changes.moved_rows(relation.fields, rows_found, values, self._emitter)))
                moved = changes.update_where(relation.name, relation.fields, rows_found, values, self._emitter)
                self._run_query(relation, moved)
                self._check_nulls(relation)
                self._check_keys(relation)
            case _:
                raise TypeError(f"unknown operation {operation!r}")

    # -- inserts -------------------------------------------------------------------------------------------------------

    def _taking(self, name: str) -> list[Relation]:
        """The relations that take rows given to one: itself, and the tagged streams over it."""
        relation = check_target(self._catalog, name, "insert")
        return [relation, *self._catalog.tagged_over(relation)]

    def _insert(self, relation: Relation, rows: pa.Table) -> None:
        if relation.is_keyed_stream:
            self._tag(relation, rows)
            return
        rows = self._stamped(relation, rows)
        if self._put_off(relation, rows):
            return
        self._copy([relation.name])
        self._add(relation, self._register(rows, relation, relation.fields), 1)
        self._check_keys(relation)

    def _insert_chunks(self, relations: list[Relation], chunks: Iterable[pa.Table]) -> None:
        before = 0
        for rows in chunks:
            for relation in relations:
                if relation.is_keyed_stream:
                    self._tag(relation, rows, before)
                    continue
                source = self._register(self._stamped(relation, rows), relation, relation.fields)
                self._add(relation, source, 1)
                self._forget(source)
            before += rows.num_rows
        for relation in relations:
            if not relation.is_keyed_stream:
                self._check_keys(relation)

    def _insert_query(self, relations: list[Relation], node: Node) -> None:
        relation = relations[0]
        if len(relations) > 1 or relation.is_keyed_stream or relation.time is not None:
            rows = self._queried(relation, sql(self._emitter.net_rows(node)))
            for one in relations:
                if one.is_keyed_stream and one.sequence is None:
                    self._refuse_ties(one, rows)
                self._insert(one, rows)
            return
        self._run_query(relation, changes.insert_query(relation.name, node, self._emitter))
        self._check_nulls(relation)
        self._check_keys(relation)

    def _refuse_ties(self, relation: Relation, rows: pa.Table) -> None:
        """The rows of a query have no order, so that none of a key is the last one."""
        if rows.num_rows and self._last(relation, self._stamped(relation, rows))[0].num_rows < rows.num_rows:
            raise UserError(
                "HW305",
                f"the query yields two rows for a key of {relation.name}, and they have no order",
                hint=f"{NOTHING_DONE}; let the query yield one row for each key, or create the stream with SEQUENCE BY",
            )

    def _refuse_partial(self, relation: Relation) -> None:
        kept = self._catalog.kept_rows(relation)
        if kept != TRUE:
            raise UserError(
                "HW107",
                f"stream {relation.name} keeps only rows where {kept}: UPDATE would not see the others",
                hint="insert the new rows, or create the stream with RETAIN ALL",
            )

    def finish(self) -> None:
        """All operations have come: what is a relation's whole delta is read as it came, unless many read it."""
        for name in list(self._whole):
            relation, rows = self._whole[name]
            if self._readers.get(name, 0) > _FEW_READERS:
                self._copy([name])
                self._workspace.note_batch(delta_of(name))
                continue
            source = self._register(rows, relation, relation.fields, f"#in {name}")
            query = self._emit(changes.batch_rows, relation.name, relation.fields, source)
            self._workspace.show(delta_of(name), query, rows.num_rows)
        self._whole.clear()

    def _put_off(self, relation: Relation, rows: pa.Table) -> bool:
        """Whether a batch can wait to be a relation's whole delta: the first, of rows without a key."""
        if relation.key or self._changed(relation) or relation.name in self._whole:
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

    def _matching(self, relation: Relation, alias: str, predicate: Scalar) -> Filter:
        return changes.matching(relation.name, relation.fields, alias, predicate, self._changed(relation))

    def _add(self, relation: Relation, source: str, sign: int) -> None:
        self._run(relation, self._emit(changes.insert_rows, relation.name, relation.fields, source, sign))

    def _retire(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        found = self._found(relation.name, relation.key_fields, source)
        args = relation.name, relation.fields, relation.key_fields, source, changed, found
        self._run(relation, self._emit(changes.retire_keys, *args))

    def _check_keys(self, relation: Relation) -> None:
        if not relation.key:
            return
        if not self._changed(relation):  # nothing came at all
            return
        there = self._found(relation.name, relation.key_fields)
        found = self._first(self._emit(changes.duplicate_keys, relation.name, relation.key_fields, there))
        if found is not None:
            raise UserError(
                "HW305",
                f"{relation.name} would have two rows with key {shown(relation.key, found)}",
                hint=f"{NOTHING_DONE}; to replace rows, use upsert of the Python API or delete them first",
            )

    def _check_keys_there(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        there = self._found(relation.name, relation.key_fields, source)
        query = self._emit(changes.missing_keys, relation.name, relation.key_fields, source, changed, there)
        found = self._first(query)
        if found is not None:
            key = shown(relation.key, found)
            raise UserError("HW306", f"{relation.name} has no row with key {key}", hint=NOTHING_DONE)

    def _check_there(self, relation: Relation, source: str) -> None:
        changed = self._changed(relation)
        there = self._found(relation.name, relation.key_fields or relation.fields, source)
        args = relation.name, relation.fields, relation.key_fields, source, changed, there
        found = self._first(self._emit(changes.missing_rows, *args))
        if found is not None:
            names = tuple(f.name for f in relation.fields)
            raise UserError(
                "HW306",
                f"{relation.name} does not have the row {shown(names, found)}, or not that often",
                hint=NOTHING_DONE,
            )

    def _check_nulls(self, relation: Relation) -> None:
        required = tuple(f.name for f in relation.fields if not f.nullable)
        if not required:
            return
        flags = self._first(changes.null_in(relation.name, required)) or ()
        for text, found in zip(required, flags, strict=False):
            if found:
                raise UserError("HW327", f"{relation.name}.{text} cannot be NULL", hint=NOTHING_DONE)
