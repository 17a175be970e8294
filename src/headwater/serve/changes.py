"""What a subscriber sees: the changes of a view, epoch by epoch."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import pyarrow as pa

from headwater import types as t
from headwater.emit.tags import TAG_EPOCH, TAG_OLD, TAG_OP
from headwater.engine.arrow_types import arrow_schema

#: So many rows of a table become objects of Python at a time.
_SLICE_ROWS = 10_000


def changes_schema(fields: t.Schema) -> pa.Schema:
    """The columns of tagged changes: `_epoch`, `_op`, the view's own, `_old`."""
    own = arrow_schema(fields)
    return pa.schema([(TAG_EPOCH, pa.int64()), (TAG_OP, pa.string()), *own, (TAG_OLD, pa.struct(list(own)))])


class Changes(abc.ABC):
    """An iterator of a view's changes, each a dict: `_epoch`, `_op`, the view's columns, `_old`.

    `_op` is `+` for a row that has come, `-` for one that has gone, and `u` for one that has become another one: `_old`
    is then what it was, else None. All changes of an epoch come one after the other, and only when it is committed.
    For one thread; `close` may be called by another.

    Attributes:
        view: its name.
        epoch: the last epoch that was delivered whole. Whoever subscribes `from_epoch=epoch + 1` goes on after it.
    """

    def __init__(self, view: str, schema: pa.Schema, epoch: int, timeout: float | None) -> None:
        self.view = view
        self.schema = schema
        self.epoch = epoch
        self._timeout = timeout
        self._current: pa.Table | None = None
        self._at = 0
        self._rows: list[dict[str, Any]] = []

    # -- for subclasses ----------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _take(self, seconds: float | None) -> pa.Table | None:
        """The changes of the next epoch that has any; None if none came in time, or none will.

        Where it finds nothing, `epoch` is the last one there was.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Give the subscription up. Whoever waits for it is told that there is no more."""

    # -- epoch by epoch ----------------------------------------------------------------------------------------------

    def poll(self, timeout: float | None = 0.0) -> pa.Table | None:
        """The changes of the next epoch that has any, as a table.

        Args:
            timeout: how many seconds to wait for one; None waits as long as it takes.

        Returns:
            None if none came in time, or if the subscription or the database was closed.
        """
        if self._current is not None:  # the rest of an epoch that was looked at change by change
            table = self._current.slice(self._at)
            self._current = None
        else:
            found = self._take(timeout)
            if found is None:
                return None
            table = found
        self.epoch = table[TAG_EPOCH][0].as_py()
        return table

    def tables(self) -> Iterator[pa.Table]:
        """A table for every epoch with changes; waits for more as the iteration does."""
        while (table := self.poll(self._timeout)) is not None:
            yield table

    def so_far(self) -> pa.Table:
        """All changes that there are by now, in one table."""
        tables = []
        while (table := self.poll()) is not None:
            tables.append(table)
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    # -- change by change --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        if self._current is None:
            self._current, self._at = self._take(self._timeout), 0
            if self._current is None:
                raise StopIteration
        offset = self._at % _SLICE_ROWS
        if not offset:
            self._rows = self._current.slice(self._at, _SLICE_ROWS).to_pylist()
        row = self._rows[offset]
        self._at += 1
        if self._at == self._current.num_rows:
            self._current, self._rows = None, []
            self.epoch = row[TAG_EPOCH]
        return row

    # -- closing -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Changes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
