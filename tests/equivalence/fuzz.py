"""Runs random cases until one fails, the time is up, or enough have passed.

python -m tests.equivalence.fuzz --seconds 600 [--cases 5000] [--seed 1] [--only queries]

Two generators take turns: queries over tables and streams, and stories about views of parts.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .case import Case
from .check import Failure, Outcome, check
from .generate import generate
from .grammar import CONSTRUCTS
from .parted.case import Case as Story
from .parted.check import check as check_story
from .parted.generate import generate as generate_story
from .parted.shrink import shrink as shrink_story
from .shrink import shrink

PROGRESS_SECONDS = 30.0


@dataclass
class Tally:
    """What a run has seen so far."""

    began: float = field(default_factory=time.monotonic)
    cases: int = 0
    epochs: int = 0
    used: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome, used: Counter[str]) -> None:
        self.cases += 1
        self.epochs += outcome.epochs
        self.used += used
        self.compared += outcome.compared
        self.skipped += outcome.skipped
        if outcome.unsupported:
            self.unsupported[outcome.unsupported] += 1

    def line(self) -> str:
        seconds = time.monotonic() - self.began
        covered = sum(1 for name in CONSTRUCTS if self.used[name])
        return (
            f"{seconds:6.0f} s  {self.cases} cases  {self.epochs} epochs  {self.cases / max(seconds, 1e-9):.1f} cases/s"
            f"  {covered} of {len(CONSTRUCTS)} constructs"
        )

    def table(self) -> str:
        """How often each construct occurred, the rarest last."""
        counts = self.used | Counter(dict.fromkeys(CONSTRUCTS, 0))
        lines = [f"{n:8d}  {name}" for name, n in counts.most_common()]
        lines += [f"{self.used[name]:8d}  {name}" for name in CONSTRUCTS if not self.used[name]]
        lines += [f"{n:8d}  comparisons with {name}" for name, n in self.compared.items()]
        lines += [f"{n:8d}  comparisons skipped by {name}" for name, n in self.skipped.items()]
        lines += [f"{n:8d}  cases not supported: {name}" for name, n in self.unsupported.items()]
        return "\n".join(lines)


def report(case: Case | Story, failure: Failure, path: Path, seconds: float) -> str:
    """Shrink a failing case, write it down, and say what to read and run."""
    smaller: Case | Story
    if isinstance(case, Story):
        smaller, outcome = shrink_story(case, failure.kind, seconds)
    else:
        smaller, outcome = shrink(case, failure.kind, seconds)
    shown = outcome.failure if outcome and outcome.failure else failure
    path.parent.mkdir(parents=True, exist_ok=True)
    comment = "".join(f"# {line}\n" for line in str(shown).splitlines())
    path.write_text(f"{smaller}{comment}", encoding="utf-8")
    return f"seed {case.seed} fails\n{shown}\n\n{smaller}\nrun it again: python -m tests.equivalence.replay {path}"


def run(seed: int, only: str | None) -> tuple[Case | Story, Outcome, Counter[str]]:
    """Make the case of a seed and run it; every other one is a story about parts, unless one kind is asked for."""
    if only == "parts" or (only is None and seed % 2):
        story, used = generate_story(seed)
        return story, check_story(story), used
    case, used = generate(seed)
    return case, check(case), used


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="how many cases at most")
    parser.add_argument("--seed", type=int, help="the first seed; those after it follow (default: a random one)")
    parser.add_argument("--only", choices=["queries", "parts"], help="one generator alone")
    parser.add_argument("--shrink-seconds", type=float, default=90.0, help="how long to shrink a failing case")
    parser.add_argument("--out", type=Path, default=Path("equivalence-failure.txt"), help="where to write it")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"first seed {seed}", flush=True)
    tally = Tally()
    told = time.monotonic()
    while time.monotonic() - tally.began < options.seconds and tally.cases < options.cases:
        case, outcome, used = run(seed + tally.cases, options.only)
        tally.add(outcome, used)
        if outcome.failure:
            print(tally.line())
            print(report(case, outcome.failure, options.out, options.shrink_seconds))
            return 1
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"{tally.line()}  next seed {seed + tally.cases}", flush=True)
    print(tally.line())
    print(tally.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
