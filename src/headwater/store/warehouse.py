"""A warehouse: a folder with one DuckDB file that holds everything, and a lock that lets one process write.

warehouse/
  warehouse.duckdb      catalogue, epochs, relations, maps
  lock                  held by the process that writes; its number stands inside
  headwater.sock        through which other processes reach that one
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import weakref
from pathlib import Path

import duckdb

from headwater.errors import UserError
from headwater.store.catalog import SCHEMA

#: Raised whenever an older Headwater could not read what this one writes.
FORMAT = 1
DATABASE = "warehouse.duckdb"
LOCK = "lock"
MEMORY = ":memory:"
DAMAGED = "the file is damaged or not a DuckDB file; restore the folder from a copy"
#: Files that may lie in a folder that holds no warehouse yet.
_OURS = {DATABASE, f"{DATABASE}.wal", LOCK, "headwater.sock", "headwater.sock.path", "tmp"}


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

    def __init__(self, path: str | Path) -> None:
        self.folder = None if str(path) == MEMORY else Path(path)
        self._lock: int | None = None
        self._readers: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._guard = threading.Lock()
        try:
            if self.folder is not None:
                _prepare_folder(self.folder)
                self._lock = _take_lock(self.folder)
            self.connection = self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> duckdb.DuckDBPyConnection:
        file = MEMORY if self.folder is None else str(self.folder / DATABASE)
        try:
            connection = duckdb.connect(file)
            self._prepare(connection)
        except duckdb.Error as error:
            reason = _first_line(error)
            if "Permission denied" in reason:
                raise UserError("HW405", f"{file} cannot be written: {reason}", hint="check its permissions") from error
            raise UserError("HW404", f"the warehouse file {file} cannot be opened: {reason}", hint=DAMAGED) from error
        return connection

    def _prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Check what is there, or make it; one transaction, so that a kill leaves all or nothing."""
        connection.execute("SET preserve_insertion_order = false")
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

    def reader(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own, which sees the last committed epoch. Whoever asks for it closes it."""
        with self._guard:
            reader = self.connection.cursor()
            self._readers.add(reader)
        return reader

    def reopen(self) -> None:
        """Start again from the file: after an error that DuckDB does not survive, such as a full disk.

        Readers lose their connections: DuckDB lets go of a file only when nobody holds it.
        """
        if self.folder is None:
            return
        if self._lock is None:
            raise UserError("HW408", "the warehouse is closed", hint="connect again")
        with self._guard:
            for one in (*self._readers, self.connection):
                with contextlib.suppress(duckdb.Error):
                    one.interrupt()
                    one.close()
            self._readers.clear()
            self.connection = self._open()

    def close(self) -> None:
        """Close the file and give up the lock."""
        connection = getattr(self, "connection", None)
        if connection is not None:
            with contextlib.suppress(duckdb.Error):
                connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _prepare_folder(folder: Path) -> None:
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
