"""`python -m tests.faults.run --kills 200`: kill children many times over, and say what was lost."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.faults.harness import Broken, Kill, Nursery, Subject, Tally, any_kill

#: Kills that one warehouse goes through; then a new one is begun, so that the beginning is met often too.
KILLS_PER_WAREHOUSE = 40


def main() -> int:
    """Returns the exit status: 0 if every restart found what had to be there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None, help="of the story and of the kills; random by default")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    tally, began, places = Tally(), time.monotonic(), Counter[str]()
    epochs = 0
    with tempfile.TemporaryDirectory(prefix="hw") as folder, Nursery() as nursery:
        for number, first in enumerate(range(0, options.kills, KILLS_PER_WAREHOUSE)):
            rng = random.Random(f"{seed}:{number}")
            subject = Subject(nursery, Path(folder, str(number)), seed + number, tally)
            try:
                for kill in [any_kill(rng) for _ in range(min(KILLS_PER_WAREHOUSE, options.kills - first))]:
                    subject.live(kill)
                    places[_place(kill)] += 1
                    if sys.stderr.isatty():
                        print(f"\r{tally}", end="", file=sys.stderr)
                subject.rest()
                subject.rest(0)
            except Broken as broken:
                tally.differences.append(str(broken))
                break
            epochs += subject.epoch
    for place, n in sorted(places.items()):
        print(f"  {n:4} {place}")
    print(f"seed {seed}, {epochs} epochs, {time.monotonic() - began:.0f} s")
    print(f"{tally.unacknowledged} kills fell between a commit and its acknowledgement")
    for difference in tally.differences:
        print(difference)
    print(tally)
    return 0 if tally.passed else 1


def _place(kill: Kill) -> str:
    return f"from outside, after {kill.event}" if kill.event else kill.point


if __name__ == "__main__":
    sys.exit(main())
