"""`python -m tests.spark.kills --kills 30 [--tasks]`: kill a running pipeline again and again while files arrive.

Every kill takes the whole process group, Spark's JVM included. At the end what is there is taken in, and every view
must equal its query over all files. A subscriber who follows one of them all the time has what it holds, too. With
`--tasks` programs run in tasks, on two executors, and in the end there is no file that does not count.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from tests.faults.child import leftovers
from tests.faults.listener import Listener
from tests.spark.cluster import SETTINGS as CLUSTER
from tests.spark.support import MEASURED, VIEWS, bag, check, drain, measured, opened, put

_STARTED_SECONDS = 120.0


class Arrivals:
    """Puts small files into a folder until it is told to stop."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.records: list[Mapping[str, object]] = []
        self._folder = folder
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        number = 0
        while not self._stop.wait(self._random.uniform(0.05, 0.4)):
            some = measured(len(self.records), self._random.randint(1, 200))
            put(self._folder, f"{number:06d}.json", some)
            self.records += some
            number += 1


def endure(folder: Path, kills: int, seed: int, report: bool = False, tasks: bool = False) -> tuple[int, int]:
    """Kill the pipeline so often, and check the views at the end; how many epochs and files there were."""
    rng = random.Random(seed)
    inbox = folder / "in"
    inbox.mkdir(parents=True)
    placement = "tasks" if tasks else "driver"
    settings = "".join(f'"{key}" = "{value}"\n' for key, value in (CLUSTER if tasks else {}).items())
    (folder / "headwater.toml").write_text(f'warehouse = "warehouse"\nplacement = "{placement}"\n[spark]\n{settings}')
    views = VIEWS.replace("CREATE VIEW by_source", "CREATE STREAMED VIEW by_source")
    (folder / "views.sql").write_text(MEASURED.format(options="", folder="in") + ";\n" + views)
    arrivals = Arrivals(inbox, seed)
    listener = Listener(folder / "warehouse", "by_source", (0,))
    try:
        for number in range(kills):
            epochs = _run_and_kill(folder, rng)
            if report:
                print(f"kill {number + 1}: {epochs} epochs, {len(arrivals.records)} records so far", flush=True)
    finally:
        arrivals.stop()
        listener.stop()
    with opened(folder / "warehouse", placement, spark=CLUSTER if tasks else {}) as db:
        assert not leftovers(db)
        drain(db, base=folder)
        check(db, arrivals.records)
        listener.catch_up(db)
        assert listener.held == bag(db, "SELECT * FROM by_source")
        assert listener.epochs == sorted(set(listener.epochs))
        if report:
            print(f"a subscriber was told of {len(listener.epochs)} epochs, and {listener.breaks} times cut off")
        return db.engine.epoch, len(list(inbox.iterdir()))


def _run_and_kill(folder: Path, rng: random.Random) -> int:
    """Start the pipeline, and kill it some epochs or some moments later; how many epochs it told of."""
    command = [sys.executable, "-m", "headwater.cli.main", "run", str(folder), "--format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True, env=os.environ)
    assert process.stdout is not None
    wanted = rng.choice([0, 0, 1, 2, 4])
    limit = time.monotonic() + (rng.uniform(0.5, 15.0) if wanted == 0 else _STARTED_SECONDS)
    seen = 0
    os.set_blocking(process.stdout.fileno(), False)
    while time.monotonic() < limit and (wanted == 0 or seen < wanted) and process.poll() is None:
        seen += (process.stdout.read() or b"").count(b"\n")
        time.sleep(0.02)
    assert process.poll() is None, "it ended by itself"
    time.sleep(rng.uniform(0.0, 0.6))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--tasks", action="store_true", help="run programs in tasks, on two executors")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="hw") as folder:
        epochs, files = endure(Path(folder, "p"), options.kills, seed, report=True, tasks=options.tasks)
    print(f"{options.kills} kills, {files} files, {epochs} epochs: every view equals its query over all files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
