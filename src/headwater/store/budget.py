"""What one request may use: so many rows of an answer, so many bytes, and time until somebody stops it.

A budget is that of the thread that works on the request (`spending`). Whoever gives it out keeps it and may stop it
from another thread; then whatever reads the warehouse for the request is interrupted. Writing is not: an epoch is
committed whole or not at all, and nobody who waits for one can tell which, so it is left to finish.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import duckdb
import pyarrow as pa

from headwater.errors import HeadwaterError, UserError

TOO_LARGE = "HW486"
TOO_LONG = "HW487"

_current: ContextVar[Budget | None] = ContextVar("headwater-budget", default=None)


class Budget:
    """The budget of one request.

    Attributes:
        rows: the most rows that an answer may have; None for any number.
        bytes: the most bytes that an answer may have in memory; None for any number.
        seconds: after how many of them a process that works on the request for another one stops by itself.
    """

    def __init__(self, rows: int | None = None, bytes: int | None = None, seconds: float | None = None) -> None:
        self.rows = rows
        self.bytes = bytes
        self.seconds = seconds
        self._guard = threading.Lock()
        self._readers: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()
        self._calls: list[Callable[[], None]] = []
        self._reason: HeadwaterError | None = None

    @property
    def reason(self) -> HeadwaterError | None:
        """Why it was stopped, if it was."""
        return self._reason

    def stop(self, reason: HeadwaterError) -> None:
        """Interrupt whatever reads on this budget.

        DuckDB forgets an interruption that comes between two statements of a connection, so this is to be called until
        the work has ended.
        """
        with self._guard:
            self._reason = self._reason or reason
            readers, calls = list(self._readers), list(self._calls)
        for give_up in calls:
            give_up()
        for reader in readers:
            with contextlib.suppress(duckdb.Error):
                reader.interrupt()

    def lend(self, reader: duckdb.DuckDBPyConnection) -> None:
        """Note a connection that reads for the request.

        Raises:
            HeadwaterError: the reason, if the request was stopped.
        """
        with self._guard:
            if self._reason is not None:
                raise self._reason
            self._readers.add(reader)

    @contextlib.contextmanager
    def calling(self, give_up: Callable[[], None]) -> Iterator[None]:
        """Wait for another process inside this block; `give_up` is what ends the waiting.

        Raises:
            HeadwaterError: the reason, if the request was stopped.
        """
        with self._guard:
            if self._reason is not None:
                raise self._reason
            self._calls.append(give_up)
        try:
            yield
        except HeadwaterError:
            if self._reason is not None:
                raise self._reason from None
            raise
        finally:
            with self._guard:
                self._calls.remove(give_up)

    def cap(self, limit: int | None) -> int | None:
        """The limit of a query on this budget: one row more than an answer may have is enough to refuse it."""
        if self.rows is None:
            return limit
        return self.rows + 1 if limit is None else min(limit, self.rows + 1)

    def check(self, table: pa.Table) -> pa.Table:
        """The table, if it is not too large.

        Raises:
            UserError: HW486.
        """
        if self.rows is not None and table.num_rows > self.rows:
            raise too_large(f"more than {self.rows:,} rows")
        if self.bytes is not None and table.nbytes > self.bytes:
            raise too_large(f"more than {self.bytes:,} bytes")
        return table


def took_too_long(seconds: float) -> UserError:
    """The error about a request that was stopped because its time was up."""
    return UserError(
        TOO_LONG,
        f"the answer took longer than {seconds:g} second{'' if seconds == 1 else 's'} and was given up",
        hint="ask for less, make a view of it, or give the server more time",
    )


def too_large(what: str) -> UserError:
    """The error about an answer that is larger than the request may have it."""
    return UserError(
        TOO_LARGE,
        f"the answer has {what}, the most that is sent at once",
        hint="ask for less (LIMIT, a condition, fewer columns), or let the server send more",
    )


def current() -> Budget | None:
    """The budget of what this thread works on; None if nothing limits it."""
    return _current.get()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Let this thread do something that is not for the request that it works on."""
    before = _current.set(None)
    try:
        yield
    finally:
        _current.reset(before)


@contextlib.contextmanager
def spending(budget: Budget) -> Iterator[Budget]:
    """Let this thread work on a budget until the block ends."""
    before = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(before)
