"""`python -m benchmarks.run SUITE`: measure a suite, print a table, keep the figures as JSON.

`python -m benchmarks.run compare A.json B.json`: two files of figures side by side.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import constructs, epochs, machine, queries, spine, state, tpch
from benchmarks.compare import CannotCompare, compare
from benchmarks.table import render

SUITES: dict[str, Callable[[Callable[[str], None]], Iterator[dict[str, object]]]] = {
    "constructs": constructs.run,
    "epochs": epochs.run,
    "queries": queries.run,
    "spine": spine.run,
    "state": state.run,
    "tpch": tpch.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run one suite, or compare two files."""
    options = _parser().parse_args(arguments)
    if options.command != "compare":
        return measure(options.command, options.output)
    try:
        print(compare(options.first, options.second))
    except CannotCompare as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in sorted(SUITES):
        suite = commands.add_parser(name, help=f"measure the suite {name}")
        suite.add_argument("--output", type=Path, default=Path("bench-results"), help="folder for the JSON")
    both = commands.add_parser("compare", help="two files of figures side by side")
    both.add_argument("first", metavar="A.json", type=Path)
    both.add_argument("second", metavar="B.json", type=Path)
    return parser


def measure(suite: str, output: Path) -> int:
    """Run a suite, print its figures and keep them."""
    began = time.time()

    def report(text: str) -> None:
        print(f"[{time.time() - began:6.1f} s] {text}", file=sys.stderr, flush=True)

    about = machine.facts()
    rows = list(SUITES[suite](report))
    print(f"suite {suite}, " + ", ".join(f"{key} {value}" for key, value in about.items()))
    print(render(rows))
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"{suite}-{about['commit']}-{int(began)}.json"
    file.write_text(json.dumps({"suite": suite, "machine": about, "rows": rows}, indent=2) + "\n")
    print(f"figures in {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
