"""The Tagger: rows that arrive at a keyed stream become changes of the relation that it stands for.

(Ghanem, Elmagarmid, Larson and Aref, "Supporting Views in Data Stream Management Systems", sections 4.1, 8 and 10.3.)
A row inserts, or replaces the last row of its key, or deletes it; the stream's store is what the Tagger remembers.
A batch is first reduced to the last row of each key. `docs/design/tagger.md` has the algorithm.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.algebra.scalars import TRUE
from headwater.emit import changes, tagging
from headwater.emit.changes import ORDINAL
from headwater.emit.layout import delta_table, fill
from headwater.engine.arrow_types import to_storage
from headwater.engine.ground import NOTHING_DONE, Ground, numbered, shown
from headwater.engine.ingest import row_number
from headwater.engine.ingest_values import show
from headwater.engine.ticks import whole_seconds
from headwater.engine.workspace import delta_of
from headwater.errors import UserError
from headwater.store.catalog import Codes, Relation

#: Why an arriving row changed nothing.
LATE, UNKNOWN_KEY = "late", "unknown key"
UNKNOWN_CODE = "HW331"


class Tagger(Ground):
    """The part of a resolver that knows of keyed streams, and of columns that are filled on arrival.

    Attributes:
        ignored: how many arriving rows changed nothing, by stream and reason.
    """

    def _tag(self, relation: Relation, rows: pa.Table, before: int = 0) -> None:
        """Rows arrive at a keyed stream, in the order given.

        Args:
            relation: the stream.
            rows: in the columns that rows arrive with.
            before: how many rows came before them in the same call, for messages.
        """
        self._check_batch(rows, relation, relation.arriving)
        batch = self._stamped(relation, _decoded(rows, relation, before))
        if batch.num_rows:
            self._judge(relation, *self._last(relation, batch))

    def _stamped(self, relation: Relation, rows: pa.Table) -> pa.Table:
        """Rows with the column that is filled on arrival, if there is one."""
        if relation.stamp is None:
            return rows
        place = next(i for i, f in enumerate(relation.fields) if f.name == relation.stamp)
        stamps = np.full(rows.num_rows, whole_seconds(self._clock), dtype=np.int64)
        return rows.add_column(place, relation.stamp, pa.array(stamps))

    def _last(self, relation: Relation, batch: pa.Table) -> tuple[pa.Table, dict[str, np.ndarray]]:
        """The last row of each key of a batch, and what is known of its other rows."""
        if batch.num_rows == 1:
            return batch, {tagging.ROWS: np.ones(1, np.int64), tagging.BROUGHT: np.zeros(1, bool)}
        deletes = tagging.DELETES in batch.column_names
        source = self._register(numbered(batch), relation, relation.fields[:0])
        in_order = relation.sequence is None or _is_in_order(batch.column(relation.sequence))
        args = relation.key_fields, relation.sequence, in_order, deletes, source
        query = self._emit(tagging.last_rows, *args)
        found = {name: np.ma.getdata(one) for name, one in self._workspace.columns(query).items()}
        self._forget(source)
        order = np.argsort(found[ORDINAL])
        places = found.pop(ORDINAL)[order]
        told = {name: one[order] for name, one in found.items()}
        return (batch if len(places) == batch.num_rows else batch.take(pa.array(places))), told

    def _judge(self, relation: Relation, rows: pa.Table, told: dict[str, np.ndarray]) -> None:
        """Sort out rows that come too late, and deletes of what is not there; the others take effect."""
        deletes = tagging.DELETES in rows.column_names
        deleting = np.asarray(rows.column(tagging.DELETES)) if deletes else np.zeros(rows.num_rows, bool)
        deletes = bool(deleting.any())
        buried = False
        if relation.sequence is not None or deletes:
            found = self._verdicts(relation, rows)
            gone = found.get(tagging.GONE, np.zeros(rows.num_rows, bool))
            late = found.get(tagging.LATE, np.zeros(rows.num_rows, bool))
            if deletes:
                missing = deleting & ~found[tagging.THERE] & ~gone & ~late & ~told[tagging.BROUGHT]
                self._miss(relation, rows, missing)
            if late.any():
                self._ignore(relation, LATE, int(told[tagging.ROWS][late].sum()))
                rows, gone = rows.filter(pa.array(~late)), gone[~late]
            buried = bool(gone.any())
        if not rows.num_rows:
            return
        condition = self._catalog.kept_rows(relation)
        source = self._register(rows, relation, relation.fields[:0])
        found_rows = self._found(relation.name, relation.key_fields, source)
        args = relation.fields, relation.key_fields, source, self._changed(relation), found_rows, deletes, condition
        self._run(relation, self._emit(tagging.put_rows, relation.name, *args))
        if relation.sequence is not None and (deletes or buried or condition != TRUE):
            found_gone = self._found(relation.buried, relation.key_fields, source)
            changed = self._workspace.filled(delta_of(relation.buried))
            args = relation.buried_fields, relation.key_fields, source, changed, found_gone, deletes, condition
            self._workspace.fill(self._emit(tagging.bury_rows, relation.buried, *args))
        self._forget(source)

    def _verdicts(self, relation: Relation, rows: pa.Table) -> dict[str, np.ndarray]:
        """What is known of the key of each row, in the order of the rows."""
        source = self._register(numbered(rows), relation, relation.fields[:0])
        found = self._found(relation.name, relation.key_fields, source)
        args: tuple[object, ...] = relation.name, relation.key_fields, source, self._changed(relation), found
        if relation.sequence is not None:
            changed = self._workspace.filled(delta_of(relation.buried))
            gone = self._found(relation.buried, relation.key_fields, source)
            ordered = relation.sequence in rows.column_names
            args = *args, relation.sequence, ordered, relation.buried, changed, gone
        columns = self._workspace.columns(self._emit(tagging.verdicts, *args))
        self._forget(source)
        order = np.argsort(columns[ORDINAL])
        return {name: np.ma.getdata(one)[order] for name, one in columns.items()}

    def _miss(self, relation: Relation, rows: pa.Table, missing: np.ndarray) -> None:
        """Keys were to be deleted that are not there."""
        if not missing.any():
            return
        if relation.strict:
            [first] = rows.filter(pa.array(missing)).select(list(relation.key)).slice(0, 1).to_pylist()
            key = shown(relation.key, tuple(first.values()))
            raise UserError("HW306", f"{relation.name} has no row with key {key}", hint=NOTHING_DONE)
        # Where rows are left out, nobody knows whether the key was among them; a sequence remembers even these.
        if relation.sequence is not None or self._catalog.kept_rows(relation) == TRUE:
            self._ignore(relation, UNKNOWN_KEY, int(missing.sum()))

    def _ignore(self, relation: Relation, reason: str, rows: int) -> None:
        self.ignored[relation.name, reason] = self.ignored.get((relation.name, reason), 0) + rows

    # -- statements and keys -------------------------------------------------------------------------------------------

    def _drop_keys(self, relation: Relation, keys: pa.Table) -> None:
        """Keys of a keyed stream go, each with the sequence of its row."""
        source = self._register(keys, relation, relation.key_fields)
        known = self._verdicts(relation, keys)
        self._miss(relation, keys, ~(known[tagging.THERE] | known.get(tagging.GONE, np.zeros(keys.num_rows, bool))))
        found = self._found(relation.name, relation.key_fields, source)
        if relation.sequence is not None:
            args = relation.buried_fields, relation.key_fields, source, self._changed(relation), found
            self._workspace.fill(self._emit(tagging.bury_present, relation.name, relation.buried, *args))
        args = relation.fields, relation.key_fields, source, self._changed(relation), found
        self._run(relation, self._emit(changes.retire_keys, relation.name, *args))
        self._forget(source)

    def _bury(self, relation: Relation, source: str) -> None:
        """The keys of a batch of whole rows are gone, each with the sequence of its row."""
        if relation.sequence is not None:
            fields = relation.buried_fields
            self._workspace.fill(self._emit(changes.insert_rows, relation.buried, fields, source, 1))

    def _bury_found(self, relation: Relation, query: str) -> None:
        """The same for the keys and sequences that a query yields."""
        self._workspace.fill(fill(delta_table(relation.buried), query))

    def _move(self, relation: Relation, moved: str) -> None:
        """Rows change by a statement: keys that are no longer there are gone, those that are there now are not."""
        rows = self._connection.sql(moved).to_arrow_table()
        coming = pc.greater(rows.column(rows.num_columns - 1), 0)
        rows = to_storage(rows.select(range(rows.num_columns - 1)), relation.fields)
        source = self._register(rows.filter(pc.invert(coming)), relation, relation.fields)
        self._bury(relation, source)
        self._forget(source)
        source = self._register(rows.filter(coming), relation, relation.fields)
        found = self._found(relation.buried, relation.key_fields, source)
        args = relation.buried_fields, relation.key_fields, source, True, found
        self._workspace.fill(self._emit(changes.retire_keys, relation.buried, *args))
        self._forget(source)

    def _queried(self, relation: Relation, node_query: str) -> pa.Table:
        """The result of a query, each row as often as it counts, as rows that arrive."""
        found = self._connection.sql(node_query).to_arrow_table()
        copies = np.asarray(found.column(found.num_columns - 1))
        rows = found.select(range(found.num_columns - 1))
        rows = rows.rename_columns([f.name for f in relation.arriving])
        if len(copies) and copies.max() > 1:
            rows = rows.take(pa.array(np.repeat(np.arange(len(copies)), copies)))
        return to_storage(rows, relation.arriving)


def _is_in_order(sequence: pa.ChunkedArray) -> bool:
    """Whether no value is lower than the one before; NaN is not looked at closely."""
    return bool(pc.all(pc.greater_equal(sequence.slice(1), sequence.slice(0, len(sequence) - 1))).as_py())


def _decoded(rows: pa.Table, relation: Relation, before: int) -> pa.Table:
    """Rows without the column that says what they do, and with `#d` if there is one; those that do nothing go.

    Raises:
        UserError: HW331, a value that says nothing; HW327, NULL where a row that comes must have a value.
    """
    codes = relation.codes
    if codes is None:
        return rows
    values = rows.column(codes.column)
    refuse_unknown(values, codes, relation, before)
    deleting = pc.is_in(values, pa.array(codes.deletes, values.type))
    if codes.ignores:
        kept = pc.invert(pc.is_in(values, pa.array(codes.ignores, values.type)))
        rows, deleting = rows.filter(kept), deleting.filter(kept)
    rows = rows.drop_columns([codes.column])
    for f in relation.fields:
        if not f.nullable and f.name != relation.stamp and rows.column(f.name).null_count:
            missing = pc.and_(pc.is_null(rows.column(f.name)), pc.invert(deleting))
            if pc.any(missing).as_py():
                raise UserError(
                    "HW327", f"{relation.name}.{f.name} cannot be NULL in a row that is not deleted", hint=NOTHING_DONE
                )
    return rows.append_column(tagging.DELETES, deleting)


def known_codes(values: pa.ChunkedArray, codes: Codes) -> pa.ChunkedArray:
    """Which values say what to do."""
    every = (*codes.upserts, *codes.deletes, *codes.ignores)
    return pc.is_in(values, pa.array(every, values.type))


def code_refusal(value: object, codes: Codes) -> str:
    """Why a row whose code means nothing is refused."""
    given = "NULL" if value is None else show(value)
    return f"{given} in column {codes.column} does not say what to do with the row"


def refuse_unknown(values: pa.ChunkedArray, codes: Codes, relation: Relation, before: int) -> None:
    known = known_codes(values, codes)
    if pc.all(known).as_py() is not False:
        return
    first = pc.index(known, False).as_py()
    meanings = [
        f"{word} {', '.join(map(repr, listed))}"
        for word, listed in (("UPSERT", codes.upserts), ("DELETE", codes.deletes), ("IGNORE", codes.ignores))
        if listed
    ]
    raise UserError(
        UNKNOWN_CODE,
        f"{relation.name}, {row_number(before + first)}: {code_refusal(values[first].as_py(), codes)}",
        hint=f"{NOTHING_DONE}; OP BY knows {'; '.join(meanings)}",
    )
