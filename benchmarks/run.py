"""`python -m benchmarks.run SUITE`: measure a suite, print a table, keep the figures as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import machine, spine, tpch
from benchmarks.table import render

SUITES: dict[str, Callable[[Callable[[str], None]], Iterator[dict[str, object]]]] = {
    "spine": spine.run,
    "tpch": tpch.run,
}


def main() -> int:
    """Run one suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("--output", type=Path, default=Path("bench-results"), help="folder for the JSON")
    options = parser.parse_args()
    began = time.time()

    def report(text: str) -> None:
        print(f"[{time.time() - began:6.1f} s] {text}", file=sys.stderr, flush=True)

    about = machine.facts()
    rows = list(SUITES[options.suite](report))
    print(f"suite {options.suite}, " + ", ".join(f"{key} {value}" for key, value in about.items()))
    print(render(rows))
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / f"{options.suite}-{about['commit']}-{int(began)}.json"
    file.write_text(json.dumps({"suite": options.suite, "machine": about, "rows": rows}, indent=2) + "\n")
    print(f"figures in {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
