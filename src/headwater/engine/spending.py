"""Where the time of an epoch in tasks goes: seconds by what was done, and the bytes that went between levels."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Spending:
    """Seconds by what they were spent on.

    Attributes:
        seconds: of each kind of work, by the clock.
        processor: the same, by this process's processors.
        sent: bytes that were sent to other rooms.
        level: of the task whose time it is; 0 at home.
        partition: of that task.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    sent: int = 0
    level: int = 0
    partition: int = 0

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """What happens within is a kind of work."""
        began, used = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - began
            self.processor[what] = self.processor.get(what, 0.0) + time.process_time() - used


@dataclass
class Epochs:
    """What the last epoch took: at home, and in each task of each job."""

    home: Spending = field(default_factory=Spending)
    tasks: list[Spending] = field(default_factory=list)

    def begin(self) -> None:
        self.home, self.tasks = Spending(), []

    @property
    def sent(self) -> int:
        """Bytes that went through exchanges."""
        return sum(one.sent for one in self.tasks)

    @property
    def processor(self) -> float:
        """Seconds of processors of all tasks together."""
        return sum(sum(one.processor.values()) for one in self.tasks)

    def longest(self, processor: bool = False) -> dict[int, float]:
        """For each level, the seconds of the task that took longest, by the clock or by processors."""
        found: dict[int, float] = {}
        for one in self.tasks:
            taken = sum((one.processor if processor else one.seconds).values())
            found[one.level] = max(found.get(one.level, 0.0), taken)
        return found
