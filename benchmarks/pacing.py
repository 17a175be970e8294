"""One thread inserts, at a pace or as fast as it can, while another one reads."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Read:
    """What was read of a view, and what it may be: the inserts committed when it began, and begun when it ended."""

    view: str
    rows: pa.Table
    committed: int
    begun: int


@dataclass
class Seen:
    """What happened."""

    seconds: float = 0.0
    #: Seconds of all processors together.
    processor: float = 0.0
    #: Inserts that were committed.
    inserted: int = 0
    #: Milliseconds of each read.
    times: list[float] = field(default_factory=list)
    #: Some of the reads, at random.
    kept: list[Read] = field(default_factory=list)


def insert_and_read(
    insert: Callable[[int], None],
    read: Callable[[str], pa.Table],
    views: Sequence[str],
    *,
    pause: float,
    seconds: float,
    keep: int,
    seed: int = 1,
) -> Seen:
    """Insert in one thread, and read views in this one, each as likely as the others.

    Args:
        insert: makes the insert of a number, which counts from 0.
        read: reads a view.
        views: what is read.
        pause: seconds from one insert to the next; they go without a pause if it is 0, or not long enough.
        seconds: how long.
        keep: how many reads of each view are kept.
        seed: decides on what is read and kept.
    """
    inserter = _Inserter(insert, pause)
    rng = random.Random(seed)
    seen, kept = Seen(), {view: list[Read]() for view in views}
    number = dict.fromkeys(views, 0)
    began, used = time.perf_counter(), time.process_time()
    inserter.start()
    try:
        while time.perf_counter() - began < seconds or not seen.times:
            view = rng.choice(views)
            committed, start = inserter.committed, time.perf_counter()
            rows = read(view)
            seen.times.append(1000 * (time.perf_counter() - start))
            one = Read(view, rows, committed, inserter.begun)
            number[view] += 1
            if len(kept[view]) < keep:
                kept[view].append(one)
            elif (place := rng.randrange(number[view])) < keep:  # each read is as likely to be kept
                kept[view][place] = one
    finally:
        inserter.end()
    seen.seconds, seen.processor = time.perf_counter() - began, time.process_time() - used
    seen.inserted, seen.kept = inserter.committed, [one for some in kept.values() for one in some]
    return seen


class _Inserter(threading.Thread):
    def __init__(self, insert: Callable[[int], None], pause: float) -> None:
        super().__init__(name="inserter", daemon=True)
        self._insert, self._pause = insert, pause
        self._stop_now = threading.Event()
        self._failure: BaseException | None = None
        #: How many inserts were begun, and how many committed.
        self.begun = self.committed = 0

    def run(self) -> None:
        start = time.perf_counter() + self._pause / 2  # so that as many fit into a time as it is long
        try:
            while not self._stop_now.wait(max(0.0, start + self._pause * self.begun - time.perf_counter())):
                self.begun += 1
                self._insert(self.begun - 1)
                self.committed += 1
        except BaseException as error:  # the other thread says it
            self._failure = error

    def end(self) -> None:
        """Make no further insert.

        Raises:
            BaseException: whatever an insert has raised.
        """
        self._stop_now.set()
        self.join()
        if self._failure is not None:
            raise self._failure
