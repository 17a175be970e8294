"""A warehouse as a command uses it: statements run, whoever has it open."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from headwater.cli.background import is_idle, run_in_background
from headwater.cli.render import Writer
from headwater.cli.split import Piece, split
from headwater.cli.target import Target
from headwater.database import Database
from headwater.errors import HeadwaterError, Source
from headwater.results import Result
from headwater.serve.remote import RemoteDatabase
from headwater.serve.wire import CLOSED, UNREACHABLE

_PATIENCE_SECONDS = 5.0


class Session:
    """A warehouse, opened here or reached through another process, and opened anew when that process closes it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.database: Database | RemoteDatabase = target.open()

    def run(self, source: Source, writer: Writer) -> None:
        """Run statements one by one, each result written before the next begins.

        Raises:
            HeadwaterError: the first that fails, placed in the whole text.
        """
        for piece in split(source):
            try:
                results = self._execute(piece)
            except HeadwaterError as error:
                raise piece.place(error) from None
            for result in results:
                writer.write(result)

    def _execute(self, piece: Piece) -> list[Result]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            database = self.database
            if isinstance(database, Database):
                with _progress(database) as tick:
                    return run_in_background(lambda: self.database.execute(piece.text, name=piece.source.name), tick)
            try:  # waits for a socket, which Ctrl-C interrupts
                return database.execute(piece.text, name=piece.source.name)
            except HeadwaterError as error:
                # The other process closed the warehouse before it took the statement, so it can be sent again.
                if error.code not in (CLOSED, UNREACHABLE) or time.monotonic() > deadline:
                    raise
            self.reopen()

    def reopen(self) -> None:
        """Open the warehouse, or reach it through another process, in place of a connection that is of no more use."""
        database = self.target.open()
        self.database.close()
        self.database = database

    @property
    def holder(self) -> int | None:
        """The process through which the warehouse is reached; None if it is open here."""
        return self.database.pid if isinstance(self.database, RemoteDatabase) else None

    def close(self) -> None:
        """Close the warehouse, unless that would wait for a statement that was given up."""
        if is_idle():
            self.database.close()


@contextlib.contextmanager
def _progress(database: Database) -> Iterator[Callable[[], None]]:
    """Says on a terminal how far the view is that is being built."""
    shown = False

    def tick() -> None:
        nonlocal shown
        building = database.engine.building
        if building is not None and sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[2K{building}")
            sys.stderr.flush()
            shown = True

    try:
        yield tick
    finally:
        if shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
