"""A stream of measurements in parts of one minute: packets lost between pairs of addresses.

After Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 2 and 7. A
full mesh of nodes measures itself: every pair reports equally often in every part, in the same order, evenly over the
minute. A share of the measurements has a high loss, each for itself. Everything is seeded, and a part depends on its
number alone.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

SECONDS = 60
START = dt.datetime(2024, 1, 1)
#: The subscript of the first part.
FIRST = int(START.replace(tzinfo=dt.UTC).timestamp()) // SECONDS
#: A loss above this is high.
LIMIT = 10
HIGHEST = 60


@dataclass(frozen=True)
class Measurements:
    """What is measured.

    Attributes:
        pairs: how many pairs of source and destination there are.
        records: how many measurements each of them has in a part.
        share: how many of all have a high loss.
        seed: other seeds, other losses.
    """

    pairs: int
    records: int = 1
    share: float = 0.1
    seed: int = 1

    @property
    def rows(self) -> int:
        """The rows of a part."""
        return self.pairs * self.records

    def part(self, number: int) -> pa.Table:
        """The rows of a part; the first one has number 0."""
        rng = np.random.default_rng([self.seed, number])
        loss = rng.integers(0, LIMIT + 1, self.rows, dtype=np.int32)
        high = rng.random(self.rows, dtype=np.float32) < self.share
        loss[high] = rng.integers(LIMIT + 1, HIGHEST + 1, int(high.sum()), dtype=np.int32)
        begin = np.datetime64(START, "us") + np.timedelta64(number * SECONDS, "s")
        source, destination = self._addresses
        return pa.table({"ts": begin + self._offsets, "src": source, "dest": destination, "loss": loss})

    @cached_property
    def _addresses(self) -> tuple[pa.Array, pa.Array]:
        nodes = math.isqrt(self.pairs - 1) + 1 if self.pairs else 0
        names = pa.array([f"10.{node // 250 // 250}.{node // 250 % 250}.{node % 250 + 1}" for node in range(nodes)])
        pair = np.tile(np.arange(self.pairs), self.records)
        return names.take(pa.array(pair // nodes)), names.take(pa.array(pair % nodes))

    @cached_property
    def _offsets(self) -> np.ndarray:
        """When rows come, in microseconds after their part has begun."""
        return (np.arange(self.rows) * (SECONDS * 1_000_000 - 1) // max(1, self.rows)).astype("timedelta64[us]")


def end_of(number: int) -> dt.datetime:
    """When a part is over."""
    return START + dt.timedelta(seconds=(number + 1) * SECONDS)
