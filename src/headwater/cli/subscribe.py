"""`headwater subscribe`: follow the changes of a view."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from headwater.cli.render import Screen, table_lines, writing
from headwater.cli.target import find_target
from headwater.serve.changes import Changes
from headwater.serve.lines import csv_lines, jsonl_lines

_EXAMPLES = """\
examples:
  headwater subscribe revenue                         what the view holds, and then every change, until Ctrl-C
  headwater subscribe revenue --once --format csv     what the view holds
  headwater subscribe revenue --from-epoch 12 --format json
  headwater subscribe revenue --from-epoch 1 --until-epoch 20

A change has the epoch, + - or u (a row that has come, gone, or become another one), the view's columns, and of a row
that has become another one what it was. A view that was created with RETAIN CHANGES, or as a STREAMED VIEW, can be
followed from an epoch in the past.
"""
FORMATS = ("table", "csv", "json")


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "subscribe",
        help="follow the changes of a view",
        description="Print what a view holds, and then its changes as they are committed, until Ctrl-C.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("view", metavar="VIEW", help="the view's name")
    parser.add_argument(
        "--warehouse",
        metavar="WAREHOUSE",
        help="the warehouse's folder or a project's; default: the project in the current folder, else ./warehouse",
    )
    parser.add_argument(
        "--from-epoch", type=_epoch, metavar="N", help="begin with the changes of epoch N, not with what the view holds"
    )
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--until-epoch", type=_epoch, metavar="N", help="end when the changes of epoch N are printed")
    end.add_argument("--once", action="store_true", help="print what there is, and end")
    parser.add_argument(
        "--format", choices=FORMATS, default="table", help="a table for each epoch (default), or for programs"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    with (
        contextlib.closing(find_target(args.warehouse).open_existing()) as database,
        database.subscribe(args.view, args.from_epoch) as changes,
    ):
        printed = False
        for table in _tables(changes, args.once, args.until_epoch):
            _print(table, args.format, header=not printed)
            printed = True
    return 0


def _epoch(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


_epoch.__name__ = "number of an epoch"  # how argparse names it in its complaint


def _tables(changes: Changes, once: bool, until: int | None) -> Iterator[pa.Table]:
    """The changes that are asked for, epoch by epoch."""
    while until is None or changes.epoch < until:
        table = changes.poll(0.0 if once else _WAIT_SECONDS)
        if table is None:
            if once:
                return
            continue
        if until is not None and changes.epoch > until:
            return
        yield table


#: So long it waits at a time: an epoch without changes of the view may be the last that is asked for.
_WAIT_SECONDS = 0.5


def _print(table: pa.Table, form: str, header: bool) -> None:
    lines: Iterator[str]
    if form == "table":
        lines = table_lines(table, _screen())
    elif form == "json":
        lines = jsonl_lines(table)
    else:
        lines = csv_lines(table)
        if not header:
            next(lines)
    with writing("<stdout>"):
        for line in lines:
            sys.stdout.write(line + "\n")
        if form == "table":
            sys.stdout.write("\n")
        sys.stdout.flush()


def _screen() -> Screen:
    return Screen(shutil.get_terminal_size().columns) if sys.stdout.isatty() else Screen()
