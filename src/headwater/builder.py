"""`EpochBuilder`: what `with db.epoch() as e` gives."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.engine.arrow_types import to_storage
from headwater.engine.engine import Epoch
from headwater.engine.ingest import rows_to_arrow
from headwater.engine.operations import (
    Advance,
    DeleteKeys,
    DeleteRows,
    InsertRows,
    Operation,
    UpsertRows,
    check_target,
)
from headwater.errors import UserError
from headwater.store.catalog import Relation
from headwater.types import Schema

if TYPE_CHECKING:
    from headwater.database import Database


class EpochBuilder:
    """Operations on one or more relations that take effect together; see `Database.epoch`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.operations: list[Operation] = []
        self.moment: dt.datetime | None = None
        self.committed: Epoch | None = None
        self.over = False

    def insert(self, relation: str, rows: object) -> None:
        """Add rows; those of a keyed stream replace the last ones of their keys."""
        target = self._target(relation, "insert")
        self.operations.append(InsertRows(target.name, self._rows(target, rows, target.arriving)))

    def delete(self, relation: str, rows: object) -> None:
        """Take rows away; each must be there as often as it is named."""
        target = self._target(relation, "delete")
        self.operations.append(DeleteRows(target.name, self._rows(target, rows, target.fields)))

    def upsert(self, relation: str, rows: object) -> None:
        """Add rows of a keyed table or stream, in place of those with the same key."""
        target = self._target(relation, "upsert", needs_key=True)
        self.operations.append(UpsertRows(target.name, self._rows(target, rows, target.arriving)))

    def delete_keys(self, relation: str, keys: object) -> None:
        """Take away the rows with these keys: dicts or tuples of the key columns, or bare values of a single one."""
        target = self._target(relation, "delete by key", needs_key=True)
        fields = tuple(next(f for f in target.fields if f.name == name) for name in target.key)
        if isinstance(keys, list | tuple) and len(fields) == 1:
            keys = [key if isinstance(key, dict | tuple | list) else (key,) for key in keys]
        table = rows_to_arrow(keys, fields, relation=target.name)
        self.operations.append(DeleteKeys(target.name, to_storage(table, fields)))

    def advance_clock(self, moment: dt.datetime) -> None:
        """Set the clock by hand, for this epoch and all until it is set again; see `Database.advance_clock`."""
        self.moment = moment

    def advance_stream(self, stream: str, moment: dt.datetime) -> None:
        """Say that whatever happened to a stream before a moment has come; see `Database.advance_stream`."""
        if not isinstance(moment, dt.datetime):
            shown = type(moment).__name__
            raise UserError("HW334", f"a moment is a datetime, not {shown}", hint="in UTC, or with a zone")
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
        self.operations.append(Advance(self._target(stream, "insert").name, moment))

    def _target(self, relation: str, operation: str, needs_key: bool = False) -> Relation:
        if self.over:
            raise UserError("HW309", "the epoch is over: its block has ended", hint="begin another: with db.epoch()")
        return check_target(self._database.engine.catalog, relation, operation, needs_key)

    @staticmethod
    def _rows(target: Relation, rows: object, fields: Schema) -> pa.Table:
        return to_storage(rows_to_arrow(rows, fields, relation=target.name), fields)
