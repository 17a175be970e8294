"""`python -m benchmarks.run SUITE`: measure a suite, print a table, keep the figures as JSON.

`python -m benchmarks.run compare A.json B.json`: two files of figures side by side.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import (
    aim,
    constructs,
    epochs,
    filling,
    finance,
    groups,
    growth,
    large_state,
    machine,
    pipeline,
    plot,
    proportion,
    queries,
    rolling,
    sharing,
    spine,
    split,
    state,
    subscriptions,
    sync,
    tasks,
    tpch,
    viewdf,
    windows,
)
from benchmarks import options as suite_options
from benchmarks.compare import CannotCompare, compare
from benchmarks.table import render

Report = Callable[[str], None]


@dataclass(frozen=True)
class Suite:
    """A suite, and a dataclass of its options if it has some."""

    run: Callable[..., Iterator[dict[str, object]]]
    options: type[Any] | None = None

    def with_options(self, given: argparse.Namespace) -> Callable[[Report], Iterator[dict[str, object]]]:
        if self.options is None:
            return self.run
        return functools.partial(self.run, options=suite_options.given(self.options, given))


SUITES = {
    "aim": Suite(aim.run, aim.Options),
    "constructs": Suite(constructs.run),
    "epochs": Suite(epochs.run),
    "filling": Suite(filling.run, filling.Options),
    "finance": Suite(finance.run, finance.Options),
    "groups": Suite(groups.run, groups.Options),
    "growth": Suite(growth.run, growth.Options),
    "large_state": Suite(large_state.run, large_state.Options),
    "pipeline": Suite(pipeline.run),
    "proportion": Suite(proportion.run, proportion.Options),
    "queries": Suite(queries.run),
    "rolling": Suite(rolling.run, rolling.Options),
    "sharing": Suite(sharing.run, sharing.Options),
    "spine": Suite(spine.run),
    "split": Suite(split.run, split.Options),
    "state": Suite(state.run),
    "subscriptions": Suite(subscriptions.run),
    "sync": Suite(sync.run, sync.Options),
    "tasks": Suite(tasks.run, tasks.Options),
    "tpch": Suite(tpch.run, tpch.Options),
    "viewdf": Suite(viewdf.run, viewdf.Options),
    "windows": Suite(windows.run, windows.Options),
}


def main(arguments: list[str] | None = None) -> int:
    """Run one suite, or compare two files."""
    options = _parser().parse_args(arguments)
    if options.command != "compare":
        return measure(options.command, SUITES[options.command].with_options(options), options.output)
    try:
        print(compare(options.first, options.second))
    except CannotCompare as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, suite in sorted(SUITES.items()):
        command = commands.add_parser(name, help=f"measure the suite {name}")
        command.add_argument("--output", type=Path, default=Path("bench-results"), help="folder for the JSON and plots")
        if suite.options is not None:
            suite_options.add(command, suite.options)
    both = commands.add_parser("compare", help="two files of figures side by side")
    both.add_argument("first", metavar="A.json", type=Path)
    both.add_argument("second", metavar="B.json", type=Path)
    return parser


def measure(suite: str, run: Callable[[Report], Iterator[dict[str, object]]], output: Path) -> int:
    """Run a suite, print its figures and keep them, with plots beside them."""
    began = time.time()

    def report(text: str) -> None:
        print(f"[{time.time() - began:6.1f} s] {text}", file=sys.stderr, flush=True)

    about = machine.facts()
    rows = list(run(report))
    print(f"suite {suite}, " + ", ".join(f"{key} {value}" for key, value in about.items()))
    print(render(rows))
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"{suite}-{about['commit']}-{int(began)}.json"
    file.write_text(json.dumps({"suite": suite, "machine": about, "rows": rows}, indent=2) + "\n")
    print(f"figures in {file}")
    for drawn in plot.draw(suite, rows, file):
        print(f"plot in {drawn}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
