"""`headwater explain`: how a view is kept fresh, or how a query would be."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from headwater.cli.render import say
from headwater.cli.target import find_target
from headwater.sql.options import EXPLAIN_FORMATS

_EXAMPLES = """\
examples:
  headwater explain revenue
  headwater explain "SELECT customer, sum(amount) FROM orders GROUP BY customer" --warehouse shop
  headwater explain revenue --format tree
  headwater explain revenue --format mermaid
  headwater explain revenue --format json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain",
        help="show how a view is kept fresh, or how a query would be",
        description="Show the maintenance program of a view, or the one a query would get as a view.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    parser.add_argument("what", metavar="VIEW|SQL", help="a view's name, or a query")
    parser.add_argument(
        "--warehouse",
        metavar="WAREHOUSE",
        help="the warehouse's folder or a project's; default: the project in the current folder, else ./warehouse",
    )
    parser.add_argument(
        "--format",
        choices=EXPLAIN_FORMATS,
        default="text",
        help="all of it for people (text), what is made of what (tree, or mermaid to draw it), or for programs (json)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry the command out."""
    with contextlib.closing(find_target(args.warehouse).open_existing()) as database:
        say(database.explain(args.what, args.format))
    return 0
