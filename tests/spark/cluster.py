"""`python -m tests.spark.cluster`: programs in tasks on a cluster of two executors, each a process of its own.

Every chapter ends with a line; the process ends with 0 if all is as it must be. It has a JVM of its own, so it cannot
share a process with other tests.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

import headwater as hw
from headwater.engine import faults
from headwater.engine.away import Away
from tests.equivalence.case import Case
from tests.equivalence.check import Setting, check
from tests.equivalence.generate import make_case
from tests.equivalence.references import Interpreted, OnDuckDB
from tests.equivalence.subject import Headwater
from tests.faults.child import leftovers
from tests.spark.processes import EXECUTOR, WORKER, Killer, of_kind
from tests.spark.skewed import Skewed
from tests.spark.support import wait_until
from tests.spark.twins import Twins, clock_of

SETTINGS = {
    "spark.master": "local-cluster[2,1,2048]",
    "spark.executor.pyspark.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
PARTITIONS = 2


def opened(folder: Path) -> hw.Database:
    """A warehouse whose programs run on the cluster, with the clock of the twins."""
    found: list[hw.Database] = []
    db = hw.Database(folder, clock=partial(clock_of, found), placement="tasks", spark=SETTINGS, partitions=PARTITIONS)
    found.append(db)
    return db


def away_of(db: hw.Database) -> Away:
    assert db.engine.away is not None
    return db.engine.away


class Chapters:
    """One warehouse on the cluster, beside its twin."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self.db = opened(folder / "w")
        self.twins = Twins(self.db, seed)
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        now = time.monotonic()
        print(f"{now - self._began:6.1f} s  {text}", flush=True)
        self._began = now

    def begin(self) -> None:
        self.twins.define()
        self.say(f"defined {len(self.twins.views)} views")

    def equal(self, epochs: int) -> None:
        for _ in range(epochs):
            self.twins.step()
        wait_until(lambda: len(of_kind(EXECUTOR)) == 2)
        assert all(map(away_of(self.db).holds, ("lossy", "lossy_helper", "lately"))), "parts are built in tasks"
        self.say(f"{epochs} epochs: contents and changelogs of all views as at home")

    def kills(self, kills: int) -> None:
        """Something of Spark's dies in the middle of epochs."""
        killer = Killer(self._seed)
        faults.hook = killer.reach
        try:
            while len(killer.struck) < kills:
                killer.armed = True
                self.twins.step()
        finally:
            faults.hook = None
        self.twins.step()
        counts = ", ".join(f"{killer.struck.count(kind)} x {kind}" for kind in (EXECUTOR, WORKER))
        self.say(f"{kills} kills in the middle of epochs ({counts}): nothing lost, nothing twice")

    def twice(self) -> None:
        """All tasks of an epoch are run twice, and what one of the runs reports counts."""
        runner = away_of(self.db).runner
        run = runner.run

        def run_twice(*args: object) -> list[bytes]:
            first, second = run(*args), run(*args)  # type: ignore[arg-type]
            return first if self.twins.steps % 2 else second

        runner.run = run_twice  # type: ignore[method-assign]
        try:
            for _ in range(2):
                self.twins.step()
        finally:
            runner.run = run  # type: ignore[method-assign]
        self.twins.step()
        assert any(one.endswith(".parquet") for one in leftovers(self.db)), "the other runs have left something"
        self.say("tasks that are run twice count once")

    def damage(self) -> None:
        """Segments are deleted behind the warehouse's back, of a view and of a copy of a table."""
        segments = away_of(self.db).segments
        for relation, view in (("q1", "q1"), ("lineitem", "extremes")):
            gone = Path(next(path for copy in segments.copies_of(relation) for path in segments.paths(copy)))
            gone.unlink()
            for process in of_kind(WORKER):  # nobody remembers what was in it
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            epoch = self.db.engine.epoch
            with pytest.raises(hw.UserError, match="HW409") as raised:
                self.twins.there.carry_out(self.twins.story.everywhere())
            assert gone.name in raised.value.message
            assert "REFRESH" in str(raised.value.hint)
            assert self.db.engine.epoch == epoch
            for one in (self.twins.there, self.twins.here):
                one.carry_out(f"REFRESH {view}")
            self.twins.compare(changes=False)
            self.twins.step()
        self.say("segments that are deleted are named, and what they held is made anew")

    def reopen(self) -> None:
        """After a restart nothing is there that does not count."""
        self.db.close()
        self.db = opened(self._folder / "w")
        self.twins.replace(self.db)
        self.twins.compare(changes=False)
        assert not (left := leftovers(self.db)), left
        self.twins.step()
        self.say("opened again: no leftovers, and all is there")

    def skew(self, rows: int) -> None:
        """One key has half of the rows."""
        folder = self._folder / "skewed"
        with hw.Database(folder, placement="tasks", partitions=4) as there, hw.Database() as here:
            Skewed(there, here, rows).tell()
        shutil.rmtree(folder)
        self.say(f"half of {rows:,} rows have one key")

    def seeds(self, seeds: list[int]) -> None:
        """Cases of the generator."""
        for seed in seeds:
            folder = self._folder / f"seed{seed}"
            outcome = check(make_case(seed), partial(self._setting, folder))
            assert outcome.failure is None, f"seed {seed}: {outcome.failure}"
            assert outcome.unsupported is None, f"seed {seed}: {outcome.unsupported}"
            shutil.rmtree(folder)
        self.say(f"seeds {', '.join(map(str, seeds))} of the generator")

    @staticmethod
    def _setting(folder: Path, case: Case) -> Setting:
        database = hw.Database(folder, placement="tasks", partitions=2)
        subject = Headwater(database, seed=case.seed, observes=case.seed % 2 == 0, borrows=case.seed % 4 != 0)
        interpreted = Interpreted(subject.algebra, case.relations)
        return subject, (interpreted, OnDuckDB(case, lambda: interpreted.ticked))

    def close(self) -> None:
        self.twins.close()
        self.db.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=2, help="how many cases of the generator")
    parser.add_argument("--skewed", type=int, default=100_000, help="rows, half of them with one key")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0, help="of the generator")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    faulthandler.dump_traceback_later(1500, exit=True)
    with tempfile.TemporaryDirectory(prefix="hw") as folder:
        chapters = Chapters(Path(folder), options.seed)
        chapters.begin()
        chapters.equal(options.epochs)
        chapters.twice()
        chapters.kills(options.kills)
        with mock.patch("headwater.engine.merging.Merger.nudge"):  # else what is deleted may have been replaced
            assert chapters.db.consolidator.wait(120)
            chapters.damage()
        chapters.reopen()
        chapters.skew(options.skewed)
        chapters.seeds(list(range(options.first_seed, options.first_seed + options.seeds)))
        chapters.close()
    print("as it must be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
