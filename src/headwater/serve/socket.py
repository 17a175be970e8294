"""The warehouse's socket: how other processes reach a warehouse that this one has open.

A warehouse has one writer at a time. While it is open, `Server` listens on a Unix domain socket in the warehouse's
folder and answers the requests of `headwater.serve.remote`, one thread a client. Only the user who opened the
warehouse may connect.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import shutil
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from headwater.engine.engine import Engine, Epoch
from headwater.engine.operations import check_target
from headwater.errors import UserError
from headwater.plan.explain import Explanation
from headwater.plan.explain_parts import PartExplanation
from headwater.results import Result
from headwater.serve import wire
from headwater.serve.subscribe import Subscription
from headwater.serve.wire import Message
from headwater.store.budget import Budget, spending, took_too_long
from headwater.version import VERSION

if TYPE_CHECKING:
    from headwater.builder import EpochBuilder
    from headwater.points import Getting

SOCKET_FILE = "headwater.sock"
POINTER_FILE = "headwater.sock.path"
#: The shortest limit among the systems Python runs on (macOS: 104 bytes with the closing zero).
MAX_PATH_BYTES = 103
_CLOSE_SECONDS = 5.0
#: How often a client that waits for changes is looked after.
_PEEK_SECONDS = 0.5
#: How often a request with limits is looked after.
_WATCH_SECONDS = 0.1


class Served(Protocol):
    """What a server needs of a database. Its methods are called from several threads at once."""

    @property
    def engine(self) -> Engine: ...
    @property
    def getting(self) -> Getting: ...
    def execute(self, sql: str, *, name: str = "<sql>") -> list[Result]: ...
    def query(
        self, sql: str, *, as_of: int | dt.datetime | None = None, engine: str | None = None, views: bool = True
    ) -> pa.Table: ...
    def epoch(self) -> contextlib.AbstractContextManager[EpochBuilder]: ...
    def explain(self, view_or_query: str, format: str | None = None) -> Explanation | PartExplanation: ...
    def subscribe(
        self, view: str, from_epoch: int | None = None, *, timeout: float | None = None, buffer_rows: int = ...
    ) -> Subscription: ...
    def status(self) -> dict[str, object]: ...
    def relations(self) -> list[dict[str, object]]: ...
    def advance_clock(self, moment: dt.datetime | None) -> Epoch: ...


def find_socket(folder: Path) -> Path | None:
    """Where the warehouse's socket is, whether or not anybody listens there."""
    direct = folder / SOCKET_FILE
    if direct.exists():
        return direct
    try:
        elsewhere = Path((folder / POINTER_FILE).read_text(encoding="utf-8").strip())
        owner = elsewhere.stat().st_uid
    except OSError:
        return None
    # The temporary folder is everybody's: a stale pointer must not lead to what another user has put there since.
    return elsewhere if owner in (os.getuid(), folder.stat().st_uid) else None


def is_answered(path: Path) -> bool:
    """Whether a process listens there. A socket file outlives a process that was killed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # a full backlog or a timeout: someone is there, but busy
            return True
    return True


class Server:
    """Answers for a database on the socket of its warehouse, from construction until `close`."""

    def __init__(
        self, database: Served, folder: str | Path, *, max_request_bytes: int = wire.MAX_REQUEST_BYTES
    ) -> None:
        """Start listening.

        Args:
            database: what requests are put to.
            folder: the warehouse; whoever starts a server holds its lock.
            max_request_bytes: larger requests are refused.

        Raises:
            UserError: HW455, a process answers on this socket already; HW456, the socket cannot be made.
        """
        # Weak, so that the threads of a server do not keep alive a database that everybody else has forgotten.
        self._served = weakref.ref(database)
        self._folder = Path(folder).resolve()
        self._max_request_bytes = max_request_bytes
        self._own_folder: Path | None = None
        self._lock = threading.Lock()
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._closed = False
        self._listener = self._listen()
        self._acceptor = threading.Thread(target=self._accept, name="headwater-socket", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        """Stop listening, let running requests answer for a few seconds, remove the socket.

        The caller must not hold a lock that a running request waits for.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            clients = dict(self._clients)
        self._remove_files()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread; close alone does not
        self._listener.close()
        for client in clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RD)  # no further request; the answer under way still goes out
        for thread in (self._acceptor, *clients.values()):
            if thread is not threading.current_thread():
                thread.join(_CLOSE_SECONDS)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> socket.socket:
        left = find_socket(self._folder)
        if left and is_answered(left):
            raise UserError(
                "HW455",
                f"another process already answers for the warehouse {self._folder}",
                hint="close it, or connect to the warehouse through it",
            )
        self._remove_files()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path = self._choose_path()
            listener.bind(os.fspath(self.path))
            os.chmod(self.path, 0o600)  # before listen: until then nobody can connect
            listener.listen()
        except OSError as error:
            listener.close()
            self._remove_files()
            raise UserError(
                "HW456",
                f"the warehouse's socket cannot be made in {self._folder}: {error.strerror or error}",
                hint="the warehouse must be on a file system that allows writing and Unix sockets",
            ) from error
        return listener

    def _choose_path(self) -> Path:
        direct = self._folder / SOCKET_FILE
        if len(os.fsencode(direct)) <= MAX_PATH_BYTES:
            return direct
        self._own_folder = Path(tempfile.mkdtemp(prefix="headwater-"))
        path = self._own_folder / SOCKET_FILE
        pointer = self._folder / POINTER_FILE
        partial = pointer.with_suffix(".new")
        partial.write_text(f"{path}\n", encoding="utf-8")
        partial.replace(pointer)
        return path

    def _remove_files(self) -> None:
        for name in (SOCKET_FILE, POINTER_FILE):
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        if self._own_folder:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.05)  # the client left before it was accepted, or there are too many open files
                continue
            thread = threading.Thread(target=self._serve, args=(client,), name="headwater-client", daemon=True)
            with self._lock:
                if self._closed:
                    client.close()
                    return
                self._clients[client] = thread
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Answer one client until it leaves."""
        # What the client follows lives here, and ends with its connection.
        with client, contextlib.ExitStack() as followed:
            try:
                if self._greet(client):
                    while self._answer(client, followed):
                        pass
            except (wire.ClosedError, wire.GarbledError, OSError):
                # Either the client is gone, or `close` stopped the reading. A client that sends something after that
                # finds this answer, and knows that its request was not carried out.
                with contextlib.suppress(OSError):
                    _send(client, wire.pack_error(wire.closed()))
            finally:
                with self._lock:
                    self._clients.pop(client, None)

    def _greet(self, client: socket.socket) -> bool:
        """Check that both sides speak the same protocol; the client says which one it speaks first."""
        try:
            hello = wire.unpack(client.recv, wire.MAX_HELLO_BYTES).header
        except UserError as error:
            _send(client, wire.pack_error(error))
            return False
        if hello.get("op") != "hello" or hello.get("protocol") != wire.PROTOCOL:
            mismatch = UserError(
                "HW451",
                f"process {os.getpid()} holds the warehouse with Headwater {VERSION} "
                f"(protocol {wire.PROTOCOL}), and this is Headwater {hello.get('version')} "
                f"(protocol {hello.get('protocol')})",
                hint="use the same version of Headwater on both sides",
            )
            _send(client, wire.pack_error(mismatch))
            return False
        about = {"pid": os.getpid(), "version": VERSION, "max_request_bytes": self._max_request_bytes}
        _send(client, wire.pack(Message({"ok": about})))
        return True

    def _answer(self, client: socket.socket, followed: contextlib.ExitStack) -> bool:
        """Answer one request; False when the connection is of no more use."""
        try:
            request = wire.unpack(client.recv, self._max_request_bytes)
        except UserError as error:  # too large: the rest of it is still in the pipe, so this connection ends
            _send(client, wire.pack_error(error))
            return False
        if request.header.get("op") == "subscribe":
            return self._follow(client, request.header, followed)
        try:
            limits = request.header.pop("limits", None)
            if limits is None:
                reply = wire.pack(self._carry_out(request))
            else:
                with self._limited(client, Budget(**limits)):
                    reply = wire.pack(self._carry_out(request))
        except Exception as error:
            reply = wire.pack_error(error)
        _send(client, reply)
        return True

    @contextlib.contextmanager
    def _limited(self, client: socket.socket, budget: Budget) -> Iterator[None]:
        """Carry out a request of somebody who limits what it may use: it is stopped when that is spent, or nobody waits
        for it any longer."""
        over = threading.Event()
        end = None if budget.seconds is None else time.monotonic() + budget.seconds

        def watch() -> None:
            while not over.wait(_WATCH_SECONDS):
                if end is not None and budget.seconds is not None and time.monotonic() >= end:
                    budget.stop(took_too_long(budget.seconds))
                elif not self._closed and _is_gone(client):  # closing stops the reading, which looks the same
                    budget.stop(wire.closed())

        watcher = threading.Thread(target=watch, name="headwater-limits", daemon=True)
        watcher.start()
        try:
            with spending(budget):
                yield
        finally:
            over.set()
            watcher.join()

    def _follow(self, client: socket.socket, header: dict[str, Any], followed: contextlib.ExitStack) -> bool:
        """Begin a subscription: from here on the connection is for it alone."""
        try:
            database = self._served()
            if database is None:
                raise wire.closed()
            subscription = database.subscribe(header["view"], header["from_epoch"], buffer_rows=header["buffer_rows"])
            subscription.owner = None  # a client does not keep alive a database that everybody else has forgotten
            followed.enter_context(subscription)
            about = {"view": subscription.view, "epoch": subscription.epoch}
            reply = wire.pack(Message({"ok": about}, (subscription.schema.empty_table(),)))
        except Exception as error:
            _send(client, wire.pack_error(error))
            return True
        del database
        _send(client, reply)
        while True:
            try:
                asked = wire.unpack(client.recv, wire.MAX_HELLO_BYTES).header
            except UserError as error:
                _send(client, wire.pack_error(error))
                return False
            _send(client, self._poll(client, subscription, asked.get("seconds")))

    def _poll(
        self, client: socket.socket, subscription: Subscription, seconds: float | None
    ) -> list[bytes | memoryview]:
        """Wait for the changes of an epoch as long as the client wants to, and as long as it is there."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                left = _PEEK_SECONDS if end is None else min(_PEEK_SECONDS, max(0.0, end - time.monotonic()))
                table = subscription.poll(left)
                if table is not None:
                    return wire.pack(Message({"ok": {"epoch": subscription.epoch}}, (table,)))
                if subscription.ended:
                    raise wire.closed()
                if end is not None and time.monotonic() >= end:
                    return wire.pack(Message({"ok": {"epoch": subscription.epoch}}))
                if _is_gone(client):
                    raise wire.ClosedError
        except wire.ClosedError:
            raise
        except Exception as error:
            return wire.pack_error(error)

    def _carry_out(self, request: Message) -> Message:
        header = request.header
        database = self._served()
        if database is None:
            raise wire.closed()
        match header.get("op"):
            case "execute":
                return wire.dump_results(database.execute(header["sql"], name=header["name"]))
            case "query":
                as_of = wire.load_point(header["as_of"])
                engine, views = header["engine"], header["views"]
                found = database.query(header["sql"], as_of=as_of, engine=engine, views=views)
                return Message({"ok": None}, (found,))
            case "get":
                [key] = wire.load_keys(header, request.tables)
                return Message({"ok": None}, (database.getting.row(header["relation"], key, header["columns"]),))
            case "get_many":
                keys = wire.load_keys(header, request.tables)
                return Message({"ok": None}, (database.getting.rows(header["relation"], keys, header["columns"]),))
            case "epoch":
                return Message({"ok": wire.dump_epoch(_run_epoch(database, header, request.tables))})
            case "clock":
                moment = header["moment"]
                to = dt.datetime.fromisoformat(moment) if moment is not None else None
                return Message({"ok": wire.dump_epoch(database.advance_clock(to))})
            case "target":
                catalog = database.engine.catalog
                relation = check_target(catalog, header["relation"], header["operation"], header["needs_key"])
                return Message({"ok": wire.dump_target(relation)})
            case "explain":
                explanation = database.explain(header["sql"], header.get("format"))
                return Message({"ok": {"text": str(explanation), "data": explanation.to_dict()}})
            case "status":
                return Message({"ok": database.status()})
            case "relations":
                return Message({"ok": database.relations()})
            case other:
                raise UserError("HW454", f"the process that holds the warehouse knows no request {other!r}")


def _run_epoch(database: Served, header: dict[str, Any], tables: tuple[pa.Table, ...]) -> Epoch:
    operations: list[dict[str, str]] = header["operations"]
    with database.epoch() as builder:
        if header["moment"] is not None:
            builder.advance_clock(dt.datetime.fromisoformat(header["moment"]))
        methods = {
            "insert": builder.insert,
            "delete": builder.delete,
            "upsert": builder.upsert,
            "delete_keys": builder.delete_keys,
        }
        left = iter(tables)
        for operation in operations:
            if operation["op"] == "advance":
                builder.advance_stream(operation["relation"], dt.datetime.fromisoformat(operation["moment"]))
            else:
                methods[operation["op"]](operation["relation"], next(left))
    assert builder.committed is not None
    return builder.committed


def _is_gone(client: socket.socket) -> bool:
    """Whether a client that waits for an answer has left."""
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _send(client: socket.socket, pieces: list[bytes | memoryview]) -> None:
    for piece in pieces:
        client.sendall(piece)
