"""`headwater run`: the sources of a project, followed on Spark, and its views kept fresh."""

from __future__ import annotations

import abc
import argparse
import contextlib
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from headwater.cli.render import counted, say
from headwater.cli.split import Piece, split
from headwater.cli.target import read_source
from headwater.database import Database
from headwater.errors import HeadwaterError, UserError
from headwater.project import Project, load_project
from headwater.sql import statements as s
from headwater.sql.parse import parse

if TYPE_CHECKING:
    from headwater.spark.pipeline import Progress

_EXAMPLES = """\
examples:
  headwater run                  run the project in the current folder until Ctrl-C
  headwater run shop --once      take in what is there, and end
  headwater run --format json    one JSON object for every epoch

The project's .sql files are carried out first: what they create is made unless it is there. INSERT, UPDATE, DELETE and
COPY are carried out only when the warehouse is new. Then every stream with FROM is followed. `headwater sql`, `status`
and `explain` work beside it.
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "run",
        help="follow a project's sources and keep its views fresh",
        description="Follow the sources of a project's streams on Spark, and keep its views fresh.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument(
        "project", nargs="?", default=".", metavar="PROJECT", help="the project's folder (default: the current one)"
    )
    parser.add_argument("--once", action="store_true", help="end when all that is there has been taken in")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    from headwater import connect
    from headwater.spark.pipeline import Pipeline

    project = load_project(args.project)
    placement = "tasks" if project.placement == "tasks" else "driver"
    database = connect(
        project.warehouse,
        placement=placement,
        spark=project.spark,
        memory=project.memory,
        segments=project.segments,
        storage=project.storage,
    )
    if not isinstance(database, Database):
        holder = database.pid
        database.close()
        raise UserError(
            "HW476",
            f"the warehouse {project.warehouse} is in use by process {holder}",
            hint="stop that process first: only one can run the pipeline",
        )
    with database:
        define(database, project)
        printer = _Json() if args.format == "json" else _Live() if sys.stdout.isatty() else _Lines()
        pipeline = Pipeline(database, project.spark, printer.tell, project.folder)
        printer.begin(project)
        with _signals(pipeline.stop):
            pipeline.run(once=args.once)
        printer.end(database)
    return 0


def define(database: Database, project: Project) -> None:
    """Make what the project's files define and the warehouse does not have yet.

    Raises:
        HeadwaterError: the first error, placed in its file; HW477, a relation is there with another definition.
    """
    new = not database.relations()
    for file in project.files:
        for piece in split(read_source(file)):
            try:
                _carry_out(database, piece, new)
            except HeadwaterError as error:
                raise piece.place(error) from error.__cause__


def _carry_out(database: Database, piece: Piece, new: bool) -> None:
    [statement] = parse(piece.text, piece.source.name)
    if isinstance(statement, s.CreateStream | s.CreateTagged | s.CreateTable | s.CreateView | s.CreatePartView):
        there = database.engine.catalog.find(statement.name.text)
        if there is not None:
            if _gist(there.sql) != _gist(statement.text):
                raise UserError(
                    "HW477",
                    f"{there.kind.value} {there.name} is there already, with another definition",
                    span=statement.name.span,
                    source=statement.source,
                    hint=f"drop it first: headwater sql -c 'DROP {there.kind.value.upper()} {there.name}'",
                )
            return
    elif isinstance(statement, s.Insert | s.Update | s.Delete | s.Copy) and not new:
        return
    database.execute(piece.text, name=piece.source.name)


def _gist(text: str) -> str:
    """A statement without its layout."""
    return " ".join(text.split()).rstrip("; ")


@contextlib.contextmanager
def _signals(stop: Any) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the pipeline after the epoch that is under way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Printer(abc.ABC):
    """Counts epochs; what it says is up to its kinds."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.epochs = 0
        self.rows: Counter[str] = Counter()
        self.rejects: Counter[str] = Counter()
        self.suspended: dict[str, str] = {}

    def begin(self, project: Project) -> None:
        say(f"running {project.folder.resolve()}; Ctrl-C ends it after the epoch that is under way")

    def tell(self, progress: Progress) -> None:
        if progress.epoch is None:
            return
        self.epochs += 1
        self.rows.update(progress.rows)
        self.rejects.update(progress.rejects)
        self.suspended.update(progress.suspended)
        self.show(progress)

    @abc.abstractmethod
    def show(self, progress: Progress) -> None:
        """Say what an epoch did."""

    def end(self, database: Database) -> None:
        seconds = time.monotonic() - self.began
        total = self.rows.total()
        say(
            f"{counted(self.epochs, 'epoch')}, {total:,} rows in {seconds:.1f} s"
            + (f", {counted(self.rejects.total(), 'reject')}" if self.rejects.total() else "")
        )
        for view, reason in self.suspended.items():
            say(f"view {view} is suspended: {reason}")

    def line(self, progress: Progress) -> str:
        rows = sum(progress.rows.values())
        parts = [f"epoch {progress.epoch}", f"{rows:,} rows in {progress.seconds * 1000:.0f} ms"]
        if progress.seconds > 0:
            parts.append(f"{rows / progress.seconds:,.0f} rows/s")
        parts.append(f"{self.rows.total():,} rows so far")
        if self.rejects.total():
            parts.append(counted(self.rejects.total(), "reject"))
        behind = {name: epochs for name, epochs in progress.behind.items() if epochs}
        parts.append(
            ", ".join(f"{name} is {counted(epochs, 'epoch')} behind" for name, epochs in behind.items())
            or "all views current"
        )
        return "  ".join(parts)


class _Lines(_Printer):
    """A line for every epoch."""

    def show(self, progress: Progress) -> None:
        say(self.line(progress))


class _Live(_Printer):
    """One line that is written over, on a terminal."""

    def show(self, progress: Progress) -> None:
        sys.stdout.write(f"\r\x1b[2K{self.line(progress)}")
        sys.stdout.flush()

    def end(self, database: Database) -> None:
        sys.stdout.write("\r\x1b[2K")
        super().end(database)


class _Json(_Printer):
    """An object a line."""

    def begin(self, project: Project) -> None:
        pass

    def show(self, progress: Progress) -> None:
        say(
            json.dumps(
                {
                    "epoch": progress.epoch,
                    "batch": progress.batch,
                    "rows": dict(progress.rows),
                    "rejects": dict(progress.rejects),
                    "seconds": round(progress.seconds, 4),
                    "suspended": dict(progress.suspended),
                    "behind": dict(progress.behind),
                },
                ensure_ascii=False,
            )
        )

    def end(self, database: Database) -> None:
        pass
