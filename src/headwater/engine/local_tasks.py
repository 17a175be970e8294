"""Tasks in this process, one after the other: what Spark does with them, without Spark.

Workers are chosen at random, so that what one of them keeps is now up to date and now behind, as it is on a cluster.
What happens to tasks there can happen here, too: they are run twice, end halfway, or lose what their worker kept.
"""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Generator, Sequence

from headwater.engine import moves
from headwater.engine.merges import Merge, Merged, carry_out
from headwater.engine.moves import Move, Moved
from headwater.engine.parcels import Order, Parcel
from headwater.engine.room import run_task
from headwater.engine.workers import Worker, load_plan
from headwater.errors import UserError
from headwater.store.storage import storage_of


class LocalRunner:
    """Runs tasks with some workers of its own."""

    def __init__(self, workers: int = 2, seed: int = 0, mishaps: float = 0.0, memory: int | None = None) -> None:
        """Make the workers.

        Args:
            workers: how many.
            seed: of what is left to chance.
            mishaps: how likely it is for a task that something happens to it.
            memory: how many bytes the engine of each may take.
        """
        self._workers = [Worker(memory) for _ in range(workers)]
        self._random = random.Random(seed)
        self._mishaps = mishaps
        self._memory = memory
        #: Puts segments together, in whichever thread.
        self._merging: Worker | None = None
        self._merging_lock = threading.Lock()
        self._lost = False
        self._merging_random = random.Random(f"merges {seed}")

    @property
    def places(self) -> int:
        return len(self._workers)

    @property
    def ready(self) -> bool:
        return True

    def close(self) -> None:
        for one in self._workers:
            one.close()
        if self._merging is not None:
            self._merging.close()
            self._merging = None

    def run_merges(self, shares: Sequence[Sequence[Merge]]) -> list[Merged]:
        with self._merging_lock:
            if self._merging is None:
                self._merging = Worker(self._memory)
            for one in (one for share in shares for one in share):
                if self._merging_random.random() < self._mishaps:
                    carry_out(self._merging, one)  # and once more, or never
                    if not self._lost and self._merging_random.random() < 0.3:
                        self._lost = True  # not twice in a row: who tries again gets there
                        raise UserError("HW479", "tasks were lost")
            self._lost = False
            return [carry_out(self._merging, one) for share in shares for one in share]

    def stop_merges(self) -> None:
        """They do not take long here."""

    def run_moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        done: list[Moved] = []
        for one in (one for share in shares for one in share):
            if self._random.random() < self._mishaps:
                moves.carry_out(self._random.choice(self._workers).instance, one)  # and once more
            done.append(moves.carry_out(self._random.choice(self._workers).instance, one))
        return done

    def run(self, plan: str, order: str, levels: int, partitions: int) -> list[bytes]:
        told: Order = pickle.loads(storage_of(order).read(order))
        parcels: list[Parcel] = []
        for level in range(1, levels + 1):
            sent: list[Parcel] = []
            for partition in range(partitions):
                coming = [one for one in parcels if one.partition == partition]
                if self._random.random() < self._mishaps:
                    self._mishap(self._begin(plan, told, level, partition, coming))
                sent += self._begin(plan, told, level, partition, coming)
            parcels = sent
        return [one.data for one in parcels if one.level == 0]

    def _begin(
        self, plan: str, told: Order, level: int, partition: int, coming: list[Parcel]
    ) -> Generator[Parcel, None, None]:
        mine = self._random.choice(self._workers)
        return run_task(mine, load_plan(plan, mine), told, level, partition, iter(coming))

    def _mishap(self, task: Generator[Parcel, None, None]) -> None:
        """Let a run of a task come to nothing, in one of several ways."""
        for _ in range(self._random.choice((0, 1, 2, 1_000_000))):
            if next(task, None) is None:
                break
        task.close()
        if self._random.random() < 0.3:
            lost = self._random.randrange(len(self._workers))
            self._workers[lost].close()
            self._workers[lost] = Worker()
