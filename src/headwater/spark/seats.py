"""Which executor does which partition, epoch after epoch.

A worker keeps what it has read of a partition, and Spark gives a task to whichever executor is free: with two of them
every second task finds a worker that has to catch up, and with a hundred nearly every one finds a worker that has
nothing. So each partition has a seat, an executor, which Spark is told to prefer. It is no more than that: where it is
busy for long or gone, another one does the task, and reads what it lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

#: Spark's name of the process that is no executor but has the role of one on a local master.
_DRIVER = "driver"


class Seats:
    """Gives each partition an executor, and lets it stay there."""

    def __init__(self) -> None:
        self._of: list[str] = []

    def of(self, executors: Sequence[str], partitions: int) -> tuple[str, ...]:
        """The seat of each partition: where it was, if that is still there and has not more than its share.

        Args:
            executors: those that there are.
            partitions: how many.
        """
        if not executors:
            return ()
        most = -(-partitions // len(executors))
        taken = Counter[str]()
        stays: dict[int, str] = {}
        for partition, seat in enumerate(self._of[:partitions]):
            if seat in executors and taken[seat] < most:
                stays[partition] = seat
                taken[seat] += 1
        found: list[str] = []
        for partition in range(partitions):
            if partition not in stays:
                stays[partition] = min(executors, key=lambda one: (taken[one], one))
                taken[stays[partition]] += 1
            found.append(stays[partition])
        self._of = found
        return tuple(found)


def executors_of(context: SparkContext) -> tuple[str, ...]:
    """The executors that there are, as Spark calls places that tasks prefer; none if it does not say."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        inner: Any = context._jsc.sc()
        found: Any = inner.statusStore().executorList(True)
        listed = [found.apply(number) for number in range(found.size())]
        named = [(str(one.id()), str(one.hostPort()).rpartition(":")[0]) for one in listed]
    except (Py4JError, TypeError, AttributeError):  # another Spark than we know: then it decides by itself
        return ()
    return tuple(sorted(f"executor_{host}_{number}" for number, host in named if number != _DRIVER))
