"""`headwater status`: what is in a warehouse, and how it is doing."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.cli.render import say, table_lines
from headwater.cli.target import find_target

_EXAMPLES = """\
examples:
  headwater status
  headwater status shop --format json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "status",
        help="show a warehouse's relations and their state",
        description="Show a warehouse's last epoch, its relations, their rows and their state.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument(
        "warehouse",
        nargs="?",
        metavar="WAREHOUSE",
        help="the warehouse's folder or a project's; default: the project in the current folder, else ./warehouse",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="for people or for programs")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    with contextlib.closing(find_target(args.warehouse).open_existing()) as database:
        status = database.status()
    if args.format == "json":
        say(json.dumps(status, ensure_ascii=False, indent=2))
    else:
        say("\n".join(status_lines(status)))
    return 0


def status_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """The status for people: single values first, then each list as a table."""
    tables = {key: value for key, value in status.items() if _is_table(value)}
    single = {key: value for key, value in status.items() if key not in tables}
    room = max(map(len, single), default=0)
    for key, value in single.items():
        yield f"{key:{room}}  {_words(value)}"
    for key, rows in tables.items():
        yield ""
        if rows:
            yield from table_lines(_table(rows), null="")
        else:
            yield f"no {key}"


def _is_table(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
    plain = {
        name: cells if all(isinstance(cell, int | None) for cell in cells) else [_words(cell) for cell in cells]
        for name, cells in columns.items()
        if any(cell not in (None, [], {}) for cell in cells)  # a column nobody has anything in is noise
    }
    return pa.table(plain)


def _words(value: object) -> str:
    match value:
        case None:
            return ""
        case Mapping():
            return ", ".join(f"{key} {_words(inner)}" for key, inner in value.items())
        case list() | tuple() if _is_table(value):
            return "; ".join(_words(inner) for inner in value)
        case list() | tuple():
            return ", ".join(_words(inner) for inner in value)
    return str(value)
