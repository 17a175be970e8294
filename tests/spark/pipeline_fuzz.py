"""Runs random cases through the pipeline until the time is up: `python -m tests.spark.pipeline_fuzz --seconds 600`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from headwater.spark.session import start_session
from tests.spark.piped import piped_case, run_case, told


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.pipeline_fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--seed", type=int, help="the first seed; those after it follow (default: a random one)")
    parser.add_argument("--go-on", action="store_true", help="do not end at the first case that fails")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"first seed {seed}", flush=True)
    compared: Counter[str] = Counter()
    failed = cases = 0
    with tempfile.TemporaryDirectory(prefix="hw") as folder:
        session = start_session(Path(folder, "spark"), {"spark.driver.bindAddress": "127.0.0.1"})
        began = time.monotonic()
        while cases == 0 or time.monotonic() - began < options.seconds:
            case, follows = piped_case(seed + cases)
            outcome, did = run_case(session, case, follows, Path(folder, str(seed + cases)))
            cases += 1
            compared += outcome.compared
            if outcome.failure:
                failed += 1
                print(told(case, outcome, did), flush=True)
                if not options.go_on:
                    break
    counts = ", ".join(f"{n} with {name}" for name, n in compared.items())
    print(f"{cases} cases in {time.monotonic() - began:.0f} s, {failed} failed; comparisons: {counts}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
