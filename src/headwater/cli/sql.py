"""`headwater sql`: run statements from the command line, files, the standard input or a prompt."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from headwater.cli.render import FORMATS, Screen, Writer, writing
from headwater.cli.report import debugging
from headwater.cli.session import Session
from headwater.cli.target import find_target, read_source
from headwater.errors import Source

_DEFAULT_ROWS = 40

_EXAMPLES = """\
examples:
  headwater sql                                    a prompt on the project's warehouse or ./warehouse
  headwater sql :memory:                           a prompt on a warehouse that vanishes at the end
  headwater sql shop -f tables.sql -c "SELECT * FROM revenue"
  headwater sql shop --format csv --output revenue.csv -c "SELECT * FROM revenue"
  headwater sql shop < statements.sql

Without -c and -f statements come from the standard input: typed at a prompt on a terminal, else read to its end.
The first error ends the run; statements before it stay done.
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "sql",
        help="run SQL statements, or type them at a prompt",
        description="Run SQL statements on a warehouse, or type them at a prompt.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument(
        "warehouse",
        nargs="?",
        metavar="WAREHOUSE",
        help="the warehouse's folder (made if it is not there), a project's folder, or :memory:; default: the project "
        "in the current folder, else ./warehouse",
    )
    parser.add_argument(
        "-c",
        "--command",
        dest="inputs",
        action="append",
        metavar="SQL",
        type=lambda text: Source(text, "<command line>"),
        help="run these statements; with several -c and -f, in the order given",
    )
    parser.add_argument(
        "-f", "--file", dest="inputs", action="append", metavar="FILE", help="run a file's statements; - is stdin"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how results are written (default: table)")
    parser.add_argument("--output", metavar="FILE", help="write results to a file instead of the standard output")
    parser.add_argument(
        "--rows",
        type=_row_count,
        default=_DEFAULT_ROWS,
        metavar="N",
        help=f"show at most N rows of a table on a terminal, 0 for all (default: {_DEFAULT_ROWS})",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    target = find_target(args.warehouse)
    interactive = not args.inputs and sys.stdin.isatty() and sys.stdout.isatty()
    # Read every file first: a name mistyped at the end should not be found out after the start has run.
    given = [] if interactive else args.inputs or ["-"]
    sources = [one if isinstance(one, Source) else read_source(one) for one in given]
    with _output(args.output) as out:
        writer = Writer(out, args.format, _screen(out, args.rows, interactive))
        if interactive:
            from headwater.cli.prompt import Shell

            return Shell(Session(target), writer, debugging(args)).run()
        with contextlib.closing(Session(target)) as session:
            for source in sources:
                session.run(source, writer)
    return 0


def _row_count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


_row_count.__name__ = "number of rows"  # how argparse names it in its complaint


def _screen(out: TextIO, rows: int, interactive: bool) -> Screen:
    if not out.isatty():
        return Screen(timing=interactive)
    return Screen(shutil.get_terminal_size().columns, rows or None, timing=interactive)


@contextlib.contextmanager
def _output(path: str | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    with writing(path):
        file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 (closed below)
    try:
        yield file
    finally:
        with writing(path):
            file.close()
