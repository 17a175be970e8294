"""The warehouse behind a server: opened here, or reached through the process that has it open."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from headwater import types as t
from headwater.database import Database
from headwater.engine.operations import check_target
from headwater.errors import HeadwaterError, UserError
from headwater.serve.remote import RemoteDatabase
from headwater.serve.wire import CLOSED, CONNECTION_LOST, UNREACHABLE, Target
from headwater.sql.names import fold
from headwater.sql.types import parse_type

T = TypeVar("T")
Warehouse = Database | RemoteDatabase

#: A request that failed so was not carried out, and can be put again.
_NOT_DONE = (CLOSED, UNREACHABLE)


@dataclass(frozen=True)
class Shape:
    """What a server must know of a relation to find a row of it.

    Attributes:
        name: as it was created.
        kind: table, stream or view.
        fields: its columns.
        key: those of them that tell its rows apart; none if nothing does.
    """

    name: str
    kind: str
    fields: t.Schema
    key: t.Schema


class Backend:
    """Lends the warehouse to the threads of a server.

    A warehouse that is open here is one for all. A connection to another process carries one request at a time, so
    each thread gets one of its own. When that process closes the warehouse, it is opened here, or reached through
    whoever has it then.
    """

    def __init__(self, opening: Callable[[], Warehouse]) -> None:
        """Open the warehouse; `opening` does so once more, when it was closed elsewhere."""
        self._opening = opening
        self._lock = threading.Lock()
        self._spare: queue.SimpleQueue[RemoteDatabase] = queue.SimpleQueue()
        self._local: Database | None = None
        self._closed = False
        self._keep(opening())

    def call(self, work: Callable[[Warehouse], T], *, again: bool = False) -> T:
        """What `work` makes of the warehouse.

        Args:
            work: is given the warehouse, and is called once more if another process has closed it meanwhile.
            again: whether it may be called once more also where nobody knows if it was carried out: it only reads.
        """
        try:
            with self._lent() as warehouse:
                return work(warehouse)
        except HeadwaterError as error:
            if self._local is not None or self._closed or error.code not in (*_NOT_DONE, *again_codes(again)):
                raise
        with self._lent(anew=True) as warehouse:
            return work(warehouse)

    @property
    def holder(self) -> int | None:
        """The process through which the warehouse is reached; None if it is open here."""
        if self._local is not None:
            return None
        with self._lent() as warehouse:
            return warehouse.pid if isinstance(warehouse, RemoteDatabase) else None

    def close(self) -> None:
        """Close the warehouse, or the connections to the process that has it open."""
        self._closed = True
        if self._local is not None:
            self._local.close()
        self._forget_spare()

    @contextlib.contextmanager
    def _lent(self, anew: bool = False) -> Iterator[Warehouse]:
        if self._local is not None:
            yield self._local
            return
        warehouse = self._take(anew)
        if isinstance(warehouse, Database):
            yield warehouse
            return
        try:
            yield warehouse
        except HeadwaterError as error:
            if error.code in (*_NOT_DONE, CONNECTION_LOST):
                warehouse.close()
            else:
                self._spare.put(warehouse)
            raise
        except BaseException:
            warehouse.close()
            raise
        self._spare.put(warehouse)

    def _take(self, anew: bool) -> Warehouse:
        if anew:
            self._forget_spare()
        with contextlib.suppress(queue.Empty):
            return self._spare.get_nowait()
        with self._lock:  # one thread opens it; the others find it open
            if self._local is not None:
                return self._local
            if self._closed:
                raise UserError(CLOSED, "the warehouse is closed", hint="connect again")
            warehouse = self._opening()
            if isinstance(warehouse, Database):
                self._local = warehouse
            return warehouse

    def _keep(self, warehouse: Warehouse) -> None:
        if isinstance(warehouse, Database):
            self._local = warehouse
        else:
            self._spare.put(warehouse)

    def _forget_spare(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._spare.get_nowait().close()


def again_codes(again: bool) -> tuple[str, ...]:
    """Codes after which a request that only reads is put again."""
    return (CONNECTION_LOST,) if again else ()


def shape_of(warehouse: Warehouse, name: str) -> Shape:
    """A relation's columns and key.

    Raises:
        UserError: HW102, there is none of that name.
    """
    if isinstance(warehouse, Database):
        relation = warehouse.find(name)
        by_name = {field.name: field for field in relation.fields}
        key_columns = relation.key or relation.identity or ()
        return Shape(relation.name, relation.kind.value, relation.fields, tuple(by_name[one] for one in key_columns))
    for one in warehouse.relations():
        if fold(str(one["name"])) == fold(name):
            columns: list[list[str]] = one["columns"]
            key: list[str] = one["key"]
            fields = {column: t.Field(column, parse_type(kind)) for column, kind in columns}
            return Shape(
                str(one["name"]), str(one["kind"]), tuple(fields.values()), tuple(fields[column] for column in key)
            )
    raise UserError("HW102", f"there is no relation named {name!r}", hint="GET /v1/relations lists what exists")


def target_of(warehouse: Warehouse, name: str, operation: str, needs_key: bool = False) -> Target:
    """What rows for an operation on a relation must look like.

    Raises:
        UserError: HW102, HW301 to HW304, the relation does not take it.
    """
    if isinstance(warehouse, RemoteDatabase):
        return warehouse.target(name, operation, needs_key)
    relation = check_target(warehouse.engine.catalog, name, operation, needs_key)
    fields = {field.name: field for field in relation.fields}
    return Target(relation.name, relation.fields, relation.arriving, tuple(fields[one] for one in relation.key))
