"""The processes of a Spark that this process has started, found in /proc, and a hand that kills some of them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

#: Parts of command lines.
EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "pyspark.daemon"


def of_kind(kind: str, ancestor: int | None = None) -> list[int]:
    """The living descendants of a process, by default this one, whose command line has something in it."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                status = (folder / "stat").read_text().rpartition(") ")[2].split()
                if status[0] not in "ZX":
                    parents[int(folder.name)] = int(status[1])
                    commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
    root = ancestor or os.getpid()

    def descends(one: int) -> bool:
        while one in parents:
            one = parents[one]
            if one == root:
                return True
        return False

    return sorted(one for one, text in commands.items() if kind in text and descends(one))


class Killer:
    """Kills a process of Spark's in the middle of an epoch: give `reach` to `headwater.engine.faults`.

    Attributes:
        struck: what was killed while tasks ran, in order.
        armed: whether the next epoch is to be met.
    """

    def __init__(self, seed: int, kinds: tuple[str, ...] = (EXECUTOR, EXECUTOR, WORKER)) -> None:
        self._random = random.Random(seed)
        self._kinds = kinds
        self._running = self.armed = False
        self._began, self._took = 0.0, 1.0
        self._lock = threading.Lock()
        self.struck: list[str] = []

    def reach(self, point: str) -> None:
        if point == "tasks begin":
            self._running, self._began = True, time.monotonic()
            if self.armed:
                self.armed = False
                threading.Thread(target=self._strike, daemon=True).start()
        elif point == "tasks done":
            with self._lock:
                self._running = False
            self._took = time.monotonic() - self._began

    def _strike(self) -> None:
        time.sleep(self._random.uniform(0.0, 0.9) * min(self._took, 5.0))
        kind = self._random.choice(self._kinds)
        found = of_kind(kind)
        with self._lock:
            if found and self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._random.choice(found), signal.SIGKILL)
                    self.struck.append(kind)
