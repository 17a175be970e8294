"""A warehouse: a folder with one DuckDB file that holds everything, and a lock that lets one process write.

warehouse/
  warehouse.duckdb      catalogue, epochs, relations, maps
  lock                  held by the process that writes; its number stands inside
  headwater.sock        through which other processes reach that one
  tmp/                  files without names, of sorted copies
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from headwater.errors import UserError
from headwater.store import budget
from headwater.store.catalog import SCHEMA

#: Raised whenever an older Headwater could not read what this one writes.
FORMAT = 7
DATABASE = "warehouse.duckdb"
LOCK = "lock"
MEMORY = ":memory:"
DAMAGED = "the file is damaged or not a DuckDB file; restore the folder from a copy"
#: Steps of DuckDB's optimiser: see `Warehouse.cautious_planning` and `Warehouse.plan_quickly`.
_RISKY_STEPS = ("statistics_propagation",)
_SLOW_STEPS = (*_RISKY_STEPS, "common_subexpressions", "common_subplan", "projection_pullup")
#: Files that may lie in a folder that holds no warehouse yet.
_OURS = {DATABASE, f"{DATABASE}.wal", LOCK, "headwater.sock", "headwater.sock.path", "tmp", "away"}


class WarehouseInUse(UserError):
    """Another process writes to this warehouse."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        self.owner = owner
        super().__init__(
            "HW402",
            f"the warehouse {folder} is in use by process {owner or 'unknown'}",
            hint="stop that process, or connect through it: it listens on a socket in the folder while it runs",
        )


class Warehouse:
    """An open warehouse: the lock, the file, and the connection that writes."""

    def __init__(self, path: str | Path, memory: str | None = None) -> None:
        """Open a warehouse, or make one.

        Args:
            path: its folder, or `:memory:`.
            memory: how much DuckDB may take, such as `8GB`; what it needs besides, it puts on disk for the time being.
        """
        if memory is not None and not is_amount(memory):
            raise UserError("HW432", f"{memory!r} is no amount of memory", hint="a number and a unit, such as '8GB'")
        self.folder = None if str(path) == MEMORY else Path(path)
        self._memory = memory
        self._lock: int | None = None
        self._owner = os.getpid()
        self._readers: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._guard = threading.Lock()
        self._cautious = 0
        self._quick = False
        self._lent: list[Callable[[duckdb.DuckDBPyConnection], None]] = []
        try:
            if self.folder is not None:
                _prepare_folder(self.folder)
                self._lock = _take_lock(self.folder)
            self.connection = self._open()
            _open_warehouses.add(self)
        except BaseException:
            self.close()
            raise

    def _open(self) -> duckdb.DuckDBPyConnection:
        file = MEMORY if self.folder is None else str(self.folder / DATABASE)
        if self.folder is not None:
            _check_log(self.folder)
        try:
            connection = duckdb.connect(file)
            for lend in self._lent:
                lend(connection)
            self._prepare(connection)
        except duckdb.Error as error:
            reason = _first_line(error)
            if "Permission denied" in reason:
                raise UserError("HW405", f"{file} cannot be written: {reason}", hint="check its permissions") from error
            if "Could not set lock" in reason:
                hint = "wait until it is closed there; a program that reads the file with DuckDB itself holds it, too"
                raise UserError("HW402", f"{file} is open in another process: {reason}", hint=hint) from error
            if "Could not write" in reason or "No space" in reason:
                raise UserError(
                    "HW406", f"{file} could not be written: {reason}", hint="make room on the disk"
                ) from error
            raise UserError("HW404", f"the warehouse file {file} cannot be opened: {reason}", hint=DAMAGED) from error
        return connection

    def let_read(self, lend: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Let all connections read what somebody lends them: now, and when the file is opened again."""
        self._lent.append(lend)
        lend(self.connection)

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Check what is there, or make it; one transaction, so that a kill leaves all or nothing."""
        connection.execute("SET preserve_insertion_order = false")
        if self._memory is not None:
            connection.execute(f"SET memory_limit = '{self._memory}'")
        tables = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = current_database()"
        ).fetchall()
        if tables and ("hw.meta",) not in tables:
            raise UserError(
                "HW401",
                f"{self.folder or MEMORY} holds a DuckDB database that is not a Headwater warehouse",
                hint="choose another folder",
            )
        if tables:
            self._check_format(connection)
            return
        connection.execute("BEGIN")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO hw.meta VALUES ('format', ?)", [str(FORMAT)])
        connection.execute("COMMIT")

    def _check_format(self, connection: duckdb.DuckDBPyConnection) -> None:
        found = connection.execute("SELECT value FROM hw.meta WHERE key = 'format'").fetchone()
        number = found[0] if found else "?"
        if number != str(FORMAT):
            raise UserError(
                "HW403",
                f"the warehouse {self.folder} has format {number}; this Headwater reads format {FORMAT}",
                hint="open it with the version of Headwater that wrote it, or a newer one",
            )

    @property
    def is_ours(self) -> bool:
        """Whether this process opened it, not one that this was forked from."""
        return self._owner == os.getpid()

    def reader(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own, which sees the last committed epoch. Whoever asks for it closes it.

        Raises:
            HeadwaterError: the warehouse is closed, or the request that this thread works on was stopped.
        """
        with self._guard:
            try:
                reader = self.connection.cursor()
            except duckdb.ConnectionException:
                raise closed() from None
            self._readers.add(reader)
        spent = budget.current()
        if spent is not None:
            try:
                spent.lend(reader)
            except BaseException:
                reader.close()
                raise
        return reader

    @contextlib.contextmanager
    def cautious_planning(self) -> Iterator[None]:
        """Let DuckDB plan without the step over which it trips at times.

        Where statistics tell it that a comparison is never true, DuckDB 2.0 replaces it, and fails if the other operand
        is a CASE that it could fold at the same time. The setting is one for all connections, so users are counted.
        """
        with self._guard:
            self._cautious += 1
            self._set_planning(self.connection.cursor())
        try:
            yield
        finally:
            with self._guard:
                self._cautious -= 1
                with contextlib.suppress(duckdb.Error):
                    self._set_planning(self.connection.cursor())

    def plan_quickly(self, quickly: bool = True) -> None:
        """Let DuckDB plan without steps that take longer than they save in statements over few rows, or with them.

        This setting is one for all connections, too, and takes a while. So it stays as it is until somebody wants it
        otherwise: who plans beside somebody who does gets plans that are right, and perhaps a bit slower.
        """
        with self._guard:
            if self._quick != quickly:
                with contextlib.suppress(duckdb.Error):  # whoever wants to plan something will be told
                    self._set_planning(self.connection.cursor(), quickly)
                    self._quick = quickly

    def _set_planning(self, connection: duckdb.DuckDBPyConnection, quickly: bool = False) -> None:
        without = _SLOW_STEPS if quickly else _RISKY_STEPS if self._cautious else ()
        connection.execute(f"SET GLOBAL disabled_optimizers = '{','.join(without)}'")

    def reopen(self) -> None:
        """Start again from the file: after an error that DuckDB does not survive, such as a full disk.

        Readers lose their connections: DuckDB lets go of a file only when nobody holds it.
        """
        if self.folder is None:
            return
        if self._lock is None:
            raise closed()
        with self._guard:
            self._close_connections()
            self.connection = self._open()
            self._quick = False
            self._set_planning(self.connection)

    def _close_connections(self) -> None:
        """Also those of readers: while one is open, DuckDB holds the file."""
        for one in (*self._readers, getattr(self, "connection", None)):
            if one is not None:
                with contextlib.suppress(duckdb.Error):
                    one.interrupt()
                    one.close()
        self._readers.clear()

    def close(self) -> None:
        """Close the file and give up the lock; in a process that was forked off, do neither."""
        if not self.is_ours:
            return
        with self._guard:
            self._close_connections()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


#: How DuckDB 2.0 begins a log: fields 100 to 103 (what it is, version, the file it belongs to, checkpoint), end.
_VARINT = b"[\x80-\xff]*[\x00-\x7f]"
_LOG = re.compile(
    b"\x64\x00" + _VARINT + b"\x65\x00" + _VARINT + b"\x66\x00\x10(?:" + _VARINT + b"){16}\x67\x00" + _VARINT
    + b"\xff\xff",
    re.DOTALL,
)  # fmt: skip
_LONGEST_LOG_HEADER = 64


def _check_log(folder: Path) -> None:
    """Refuse a log that DuckDB would leave aside without a word, with all that was committed to it.

    A log that is shorter than its own beginning was never written to: the process was killed when it made it.
    """
    file, log = folder / DATABASE, folder / f"{DATABASE}.wal"
    try:
        with log.open("rb") as stream:
            head = stream.read(_LONGEST_LOG_HEADER)
    except OSError:
        return
    if len(head) == _LONGEST_LOG_HEADER and not (file.exists() and _LOG.match(head)):
        reason = "its beginning is damaged" if file.exists() else f"{file.name} is missing beside it"
        raise UserError("HW404", f"the warehouse's log {log} cannot be used: {reason}", hint=DAMAGED)


def is_amount(text: object) -> bool:
    """Whether this is an amount of memory as DuckDB takes it, and not nothing."""
    return isinstance(text, str) and re.fullmatch(r"0*[1-9]\d{0,8}(\.\d+)? ?[KMGT]i?B", text) is not None


def closed() -> UserError:
    return UserError("HW408", "the warehouse is closed", hint="connect again")


def _leave_to_parent() -> None:
    """After a fork, in the child: the warehouses are the parent's, and must not be closed here.

    DuckDB would write its log into the file and remove it, which the parent goes on writing to. So the connections are
    given a reference that nobody gives up.
    """
    for warehouse in _open_warehouses:
        for one in (*warehouse._readers, warehouse.connection):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


_open_warehouses: weakref.WeakSet[Warehouse] = weakref.WeakSet()
os.register_at_fork(after_in_child=_leave_to_parent)


def _prepare_folder(folder: Path) -> None:
    try:
        os.fspath(folder).encode()
    except UnicodeEncodeError:
        raise UserError(
            "HW405", f"the folder's name {os.fspath(folder)!r} is not valid Unicode", hint="rename it"
        ) from None
    try:
        if folder.exists() and not folder.is_dir():
            raise UserError("HW401", f"{folder} is a file, not a warehouse folder", hint="give the path of a folder")
        folder.mkdir(parents=True, exist_ok=True)
        entries = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise UserError(
            "HW405", f"the warehouse folder {folder} cannot be used: {error.strerror}", hint="check its permissions"
        ) from error
    if DATABASE not in entries and entries - _OURS:
        raise UserError(
            "HW401",
            f"the folder {folder} holds other files and is not a Headwater warehouse",
            hint="choose an empty or a new folder",
        )


def _take_lock(folder: Path) -> int:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(
            "HW405", f"the warehouse folder {folder} cannot be written: {error.strerror}", hint="check its permissions"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(lock, 32).decode("ascii", "replace").strip()
        os.close(lock)
        raise WarehouseInUse(folder, owner) from None
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]
