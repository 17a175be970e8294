"""A warehouse that another process has open, reached through its socket: the same methods as a local one."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater import types as t
from headwater.engine.engine import Epoch
from headwater.engine.ingest import rows_to_arrow
from headwater.errors import UserError
from headwater.results import Result
from headwater.serve import wire
from headwater.serve.changes import Changes
from headwater.serve.socket import find_socket
from headwater.serve.subscribe import BUFFER_ROWS
from headwater.serve.wire import Message
from headwater.store import budget
from headwater.store.warehouse import LOCK
from headwater.version import VERSION

_HELLO_SECONDS = 10.0


@dataclass(frozen=True)
class RemoteExplanation:
    """An explanation made by the process that holds the warehouse."""

    text: str
    data: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.data

    def __str__(self) -> str:
        return self.text


class RemoteEpochBuilder:
    """Operations on one or more relations that take effect together; see `RemoteDatabase.epoch`.

    Rows are converted here, by the same rules as in the process that holds the warehouse, so that a value that does
    not fit is refused before anything is sent.
    """

    def __init__(self, database: RemoteDatabase) -> None:
        self._database = database
        self.operations: list[dict[str, str]] = []
        self.tables: list[pa.Table] = []
        self.moment: dt.datetime | None = None
        self.committed: Epoch | None = None

    def insert(self, relation: str, rows: object) -> None:
        """Add rows; those of a keyed stream replace the last ones of their keys."""
        target = self._database.target(relation, "insert")
        self._add("insert", target, rows, target.arriving)

    def delete(self, relation: str, rows: object) -> None:
        """Take rows away; each must be there as often as it is named."""
        target = self._database.target(relation, "delete")
        self._add("delete", target, rows, target.fields)

    def upsert(self, relation: str, rows: object) -> None:
        """Add rows of a keyed table or stream, in place of those with the same key."""
        target = self._database.target(relation, "upsert", needs_key=True)
        self._add("upsert", target, rows, target.arriving)

    def delete_keys(self, relation: str, keys: object) -> None:
        """Take away the rows with these keys: dicts or tuples of the key columns, or bare values of a single one."""
        target = self._database.target(relation, "delete by key", needs_key=True)
        if isinstance(keys, list | tuple) and len(target.key) == 1:
            keys = [key if isinstance(key, dict | tuple | list) else (key,) for key in keys]
        self._add("delete_keys", target, keys, target.key)

    def advance_clock(self, moment: dt.datetime) -> None:
        """Set the clock by hand, for this epoch and all until it is set again."""
        self.moment = moment

    def advance_stream(self, stream: str, moment: dt.datetime) -> None:
        """Say that whatever happened to a stream before a moment has come."""
        if not isinstance(moment, dt.datetime):
            shown = type(moment).__name__
            raise UserError("HW334", f"a moment is a datetime, not {shown}", hint="in UTC, or with a zone")
        self.operations.append({"op": "advance", "relation": stream, "moment": moment.isoformat()})

    def _add(self, operation: str, target: wire.Target, rows: object, fields: t.Schema) -> None:
        self.tables.append(rows_to_arrow(rows, fields, relation=target.name))
        self.operations.append({"op": operation, "relation": target.name})


class RemoteDatabase:
    """The client's end of a warehouse's socket.

    Requests of several threads are sent one after the other. Ctrl-C gives up waiting for an answer; the process that
    holds the warehouse still finishes the request.
    """

    def __init__(self, folder: str | Path) -> None:
        """Connect.

        Raises:
            UserError: HW450, nobody answers on the socket; HW451, the other side has another protocol.
        """
        self.folder = Path(folder).resolve()
        self._lock = threading.Lock()
        self._limit = wire.MAX_REQUEST_BYTES
        self._holder: int | None = None
        self._socket: socket.socket | None = None
        self._met = False
        self._closed = False
        with self._lock:
            self._connected()

    @property
    def pid(self) -> int | None:
        """The process that holds the warehouse."""
        return self._holder

    def execute(self, sql: str, *, name: str = "<sql>") -> list[Result]:
        return wire.load_results(self._call({"op": "execute", "sql": sql, "name": name, **_limits()}))

    def query(
        self, sql: str, *, as_of: int | dt.datetime | None = None, engine: str | None = None, views: bool = True
    ) -> pa.Table:
        request = {"op": "query", "sql": sql, "as_of": wire.dump_point(as_of), "engine": engine, "views": views}
        return self._call({**request, **_limits()}).tables[0]

    def get(self, relation: str, key: object, columns: Sequence[str] | None = None) -> dict[str, Any] | None:
        """The row of a key as of the last committed epoch, or None; see `Database.get`."""
        rows = self._read("get", relation, [key], columns)
        return next(iter(rows.to_pylist()), None)

    def get_many(self, relation: str, keys: object, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of some keys; see `Database.get_many`."""
        return self._read("get_many", relation, keys, columns)

    def _read(self, op: str, relation: str, keys: object, columns: Sequence[str] | None) -> pa.Table:
        about, table = wire.dump_keys(keys)
        listed = list(columns) if columns is not None else None
        return self._call({"op": op, "relation": relation, "columns": listed, **about}, table).tables[0]

    @contextlib.contextmanager
    def epoch(self) -> Iterator[RemoteEpochBuilder]:
        """Collect operations and apply them as one epoch when the block ends; an exception inside drops them."""
        builder = RemoteEpochBuilder(self)
        yield builder
        builder.committed = self._submit(builder)

    def insert(self, relation: str, rows: object) -> Epoch:
        """Add rows to a stream or table: Arrow, pandas, Polars, dicts or tuples. Lies wholly in one epoch."""
        builder = RemoteEpochBuilder(self)
        builder.insert(relation, rows)
        return self._submit(builder)

    def upsert(self, relation: str, rows: object) -> Epoch:
        """Add rows of a keyed table or stream, in place of those with the same key, as one epoch."""
        builder = RemoteEpochBuilder(self)
        builder.upsert(relation, rows)
        return self._submit(builder)

    def delete_keys(self, relation: str, keys: object) -> Epoch:
        """Take away the rows of a keyed table or stream with these keys, as one epoch."""
        builder = RemoteEpochBuilder(self)
        builder.delete_keys(relation, keys)
        return self._submit(builder)

    def advance_clock(self, moment: dt.datetime | None) -> Epoch:
        """Set the clock by hand, as an epoch; None lets it go again."""
        if moment is not None and not isinstance(moment, dt.datetime):
            shown = type(moment).__name__
            raise UserError("HW334", f"a moment is a datetime, not {shown}", hint="in UTC, or with a zone")
        told = moment.isoformat() if moment is not None else None
        return wire.load_epoch(self._call({"op": "clock", "moment": told}).header["ok"])

    def advance_stream(self, stream: str, moment: dt.datetime) -> Epoch:
        """Say that whatever happened to a stream before a moment has come, as an epoch."""
        builder = RemoteEpochBuilder(self)
        builder.advance_stream(stream, moment)
        return self._submit(builder)

    def target(self, relation: str, operation: str, needs_key: bool = False) -> wire.Target:
        """What rows for an operation on a relation must look like, or why the relation does not take it."""
        request = {"op": "target", "relation": relation, "operation": operation, "needs_key": needs_key}
        return wire.load_target(self._call(request).header["ok"])

    def explain(self, view_or_query: str, format: str | None = None) -> RemoteExplanation:
        request = {"op": "explain", "sql": view_or_query, "format": format}
        return RemoteExplanation(**self._call(request).header["ok"])

    def subscribe(
        self,
        view: str,
        from_epoch: int | None = None,
        *,
        timeout: float | None = None,
        buffer_rows: int = BUFFER_ROWS,
    ) -> RemoteSubscription:
        """Follow the changes of a view, on a connection of its own; see `Database.subscribe`."""
        channel = _Channel(self.folder)
        try:
            request = {"op": "subscribe", "view": view, "from_epoch": from_epoch, "buffer_rows": buffer_rows}
            answer = channel.asked(request)
        except BaseException:
            channel.close()
            raise
        return RemoteSubscription(channel, answer, timeout)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self._call({"op": "status"}).header["ok"]
        return status

    def relations(self) -> list[dict[str, Any]]:
        relations: list[dict[str, Any]] = self._call({"op": "relations"}).header["ok"]
        return relations

    def close(self) -> None:
        self._closed = True
        self._disconnect()

    def __enter__(self) -> RemoteDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, builder: RemoteEpochBuilder) -> Epoch:
        moment = builder.moment.isoformat() if builder.moment is not None else None
        header = {"op": "epoch", "operations": builder.operations, "moment": moment}
        return wire.load_epoch(self._call(header, *builder.tables).header["ok"])

    def _call(self, header: dict[str, Any], *tables: pa.Table) -> Message:
        """Send a request and wait for its answer.

        Raises:
            HeadwaterError: what the request raised on the other side; HW452 a request too large; HW453 the connection
                broke.
        """
        pieces = wire.pack(Message(header, tables))
        size = sum(map(len, pieces))
        with self._lock:
            if self._closed:
                raise UserError(wire.CLOSED, "the warehouse is closed", hint="connect again")
            channel = self._connected()
            if size > self._limit:
                raise wire.too_large(size, self._limit)
            spent = budget.current()
            # Whoever stops the request ends the connection, and the process at its other end stops, too.
            waiting = spent.calling(self._disconnect) if spent is not None else contextlib.nullcontext()
            with waiting, self._broken_off():
                answer = _exchange(channel, pieces)
            if "error" not in answer.header:
                return answer
            error = wire.load_error(answer.header["error"])
            if error.code in (wire.TOO_LARGE, wire.CLOSED):
                self._disconnect()  # the server reads no further request on this connection
        raise error

    @contextlib.contextmanager
    def _broken_off(self) -> Iterator[None]:
        """Whatever interrupts a call leaves half a message behind, so the connection ends; the next call makes one."""
        try:
            yield
        except (OSError, wire.ClosedError, wire.GarbledError) as error:
            self._disconnect()
            raise UserError(
                wire.CONNECTION_LOST,
                f"{self._who()} closed the connection before it answered",
                hint="whether the last statement was carried out is not known: connect again and look",
            ) from error
        except BaseException:
            self._disconnect()
            raise

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = self._connect()
        return self._socket

    def _connect(self) -> socket.socket:
        if not self._met:
            self._holder = holder(self.folder)
        path = find_socket(self.folder)
        if path is None:
            raise self._unreachable("it has no socket there")
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            channel.settimeout(_HELLO_SECONDS)
            channel.connect(os.fspath(path))
            answer = _exchange(channel, wire.pack(Message({"op": "hello", **self._speaks()}))).header
        except ConnectionRefusedError as error:
            channel.close()
            raise self._unreachable(f"{path} was left behind by a process that has ended") from error
        except PermissionError as error:
            channel.close()
            raise self._unreachable(f"{path} belongs to another user") from error
        except (OSError, wire.ClosedError, wire.GarbledError) as error:
            channel.close()
            raise self._unreachable(f"it does not answer on {path} ({error or type(error).__name__})") from error
        if "error" in answer:
            channel.close()
            refusal = wire.load_error(answer["error"])
            raise self._unreachable("it is closing the warehouse") if refusal.code == wire.CLOSED else refusal
        channel.settimeout(None)  # a query takes as long as it takes
        self._limit = answer["ok"]["max_request_bytes"]
        self._holder = answer["ok"]["pid"]
        self._met = True
        return channel

    def _speaks(self) -> dict[str, Any]:
        return {"protocol": wire.PROTOCOL, "version": VERSION}

    def _disconnect(self) -> None:
        channel, self._socket = self._socket, None
        if channel is not None:
            with contextlib.suppress(OSError):
                channel.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for an answer
            channel.close()

    def _who(self) -> str:
        return "the process that holds the warehouse" if self._holder is None else f"process {self._holder}"

    def _unreachable(self, reason: str) -> UserError:
        if self._met:
            message = f"{self._who()} no longer answers for the warehouse {self.folder}: {reason}"
            hint = "connect again: the warehouse opens when no other process has it open"
        elif self._holder is not None and _is_alive(self._holder):
            message = f"process {self._holder} has the warehouse {self.folder} open and cannot be reached: {reason}"
            hint = f"wait until process {self._holder} is done, or end it, and try again"
        else:
            message = f"the warehouse {self.folder} cannot be reached through another process: {reason}"
            hint = "try again: the warehouse opens when no other process has it open"
        return UserError(wire.UNREACHABLE, message, hint=hint)


class _Channel(RemoteDatabase):
    """A connection for one subscription: what was begun on it is not found on another one, so it is not made again."""

    def asked(self, header: dict[str, Any]) -> Message:
        """The answer to a request."""
        return self._call(header)

    @property
    def who(self) -> str:
        return self._who()

    def _connect(self) -> socket.socket:
        if self._met:
            raise UserError(wire.CONNECTION_LOST, "the connection has ended", hint="connect again")
        return super()._connect()


class RemoteSubscription(Changes):
    """The changes of a view, followed through the process that has the warehouse open; see `Changes`.

    The subscription lives there, on a connection of its own, and ends with it. What was not received was not delivered:
    `epoch` says from where to go on.
    """

    def __init__(self, channel: _Channel, answer: Message, timeout: float | None) -> None:
        about = answer.header["ok"]
        super().__init__(about["view"], answer.tables[0].schema, about["epoch"], timeout)
        self._channel = channel
        self._given_up = False

    def _take(self, seconds: float | None) -> pa.Table | None:
        if self._given_up:
            return None
        try:
            answer = self._channel.asked({"op": "poll", "seconds": seconds})
        except UserError as error:
            if self._given_up:
                return None
            if error.code not in (wire.CLOSED, wire.CONNECTION_LOST):
                raise
            raise UserError(
                error.code,
                f"{self._channel.who} ended the subscription to view {self.view}",
                hint=f"connect again, and subscribe with from_epoch={self.epoch + 1} if the view keeps its changes",
            ) from error
        if answer.tables:
            return answer.tables[0]
        self.epoch = answer.header["ok"]["epoch"]
        return None

    def close(self) -> None:
        self._given_up = True
        self._channel.close()


def _limits() -> dict[str, Any]:
    """What the request that this thread works on may use, for the process that carries it out."""
    spent = budget.current()
    if spent is None:
        return {}
    return {"limits": {"rows": spent.rows, "bytes": spent.bytes, "seconds": spent.seconds}}


def _exchange(channel: socket.socket, pieces: list[bytes | memoryview]) -> Message:
    """Send a request and read its answer."""
    try:
        for piece in pieces:
            channel.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass  # whoever refuses a request answers before it stops reading: the reason can still be read
    return wire.unpack(channel.recv)


def holder(folder: Path) -> int | None:
    """The process that last took the warehouse's lock, as it wrote itself down there."""
    try:
        return int((folder / LOCK).read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it lives, but is another user's
    return True
