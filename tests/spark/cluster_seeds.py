"""`python -m tests.spark.cluster_seeds`: the generator's fixed sets with programs in tasks on two executors.

Every case of both generators, whatever it is run with elsewhere, runs with programs in tasks on the cluster, each in a
warehouse of its own. It goes on after a failure, says which seeds failed, and ends with 0 if none did. With
`--share 0/2` and `--share 1/2` two processes do half of them each.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import headwater as hw
from headwater.spark.session import start_session
from tests.equivalence import test_equivalence
from tests.equivalence.case import Case
from tests.equivalence.check import Outcome, Setting, check
from tests.equivalence.generate import make_case
from tests.equivalence.parted import case as parted_case
from tests.equivalence.parted import check as parted_check
from tests.equivalence.parted import generate as parted_generate
from tests.equivalence.parted import subject as parted_subject
from tests.equivalence.parted import test_parted
from tests.equivalence.references import Interpreted, OnDuckDB
from tests.equivalence.subject import Headwater
from tests.equivalence.test_equivalence import chosen_seeds
from tests.spark.cluster import PARTITIONS, SETTINGS


def on_cluster(folder: Path, case: Case) -> Setting:
    """A warehouse in a folder whose programs run on the cluster, and what it is compared with."""
    database = hw.Database(folder, placement="tasks", partitions=PARTITIONS)
    subject = Headwater(database, seed=case.seed, observes=case.seed % 2 == 0, borrows=case.seed % 4 != 0)
    interpreted = Interpreted(subject.algebra, case.relations)
    return subject, (interpreted, OnDuckDB(case, lambda: interpreted.ticked))


class PartsOnCluster(parted_subject.Headwater):
    """A warehouse with views of parts, whose programs run on the cluster whenever it is opened."""

    def _open(self) -> hw.Database:
        where = Path(self._folder.name, "warehouse") if self._folder else ":memory:"
        database = hw.Database(where, placement="tasks", partitions=PARTITIONS)
        if self._observes:
            database.observe(self._observe)
        return database


def check_views(folder: Path, seed: int) -> Outcome:
    """A case of views of all kinds."""
    place = folder / f"seed{seed}"
    try:
        return check(make_case(seed), partial(on_cluster, place))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_parts(seed: int) -> Outcome:
    """A case of views of parts."""
    case: parted_case.Case = parted_generate.make_case(seed)
    return parted_check.check(case, PartsOnCluster)


def _chosen(text: str) -> list[int]:
    return chosen_seeds(text) if text else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=test_equivalence.SEEDS, help="cases of views; '' for none")
    parser.add_argument("--parts", default=test_parted.SEEDS, help="cases of views of parts; '' for none")
    parser.add_argument("--share", default="0/1", help="which of how many shares of them to run")
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    mine, shares = map(int, options.share.split("/"))
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hw") as name:
        folder = Path(name)
        session = start_session(folder / "spark", SETTINGS)
        work: list[tuple[str, int, Callable[[int], Outcome]]] = []
        work += [("views", seed, partial(check_views, folder)) for seed in _chosen(options.seeds)]
        work += [("parts", seed, check_parts) for seed in _chosen(options.parts)]
        work = work[mine::shares]
        for kind, seed, run in work:
            began = time.monotonic()
            outcome = run(seed)
            problem = outcome.failure or outcome.unsupported
            said = f"failed: {problem}" if problem else f"right after each of {outcome.epochs} epochs"
            print(f"{kind} {seed}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
            failed += [f"{kind} {seed}"] if problem else []
        session.stop()
    print(f"{len(work) - len(failed)} passed, {len(failed)} failed" + "".join(f"\n  {one}" for one in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
