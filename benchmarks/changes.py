"""What one epoch does, in the form that all systems take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True)
class Changes:
    """Rows that come and rows that go, by table. Those that go may be among those that come."""

    insert: Mapping[str, pa.Table]
    delete: Mapping[str, pa.Table] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(table.num_rows for table in (*self.insert.values(), *self.delete.values()))

    def pieces(self, most: int) -> list[Changes]:
        """The rows that come, in epochs of so many at most; none may go."""
        assert not self.delete
        count = -(-self.size // most)
        return [
            Changes({name: table.slice(*_part(table.num_rows, number, count)) for name, table in self.insert.items()})
            for number in range(count)
        ]


def _part(rows: int, number: int, count: int) -> tuple[int, int]:
    """Where one of so many equal parts begins, and how many rows it has."""
    first, end = rows * number // count, rows * (number + 1) // count
    return first, end - first


@dataclass(frozen=True)
class Round:
    """Epochs of one size, of which the first few only warm up."""

    changes: int
    warm_up: int
    epochs: list[Changes]


@dataclass(frozen=True)
class Plan:
    """How many epochs of a size are wanted."""

    changes: int
    warm_up: int
    measured: int

    @property
    def total(self) -> int:
        return self.changes * (self.warm_up + self.measured)


def fitting(plans: list[Plan], events: int) -> list[Plan]:
    """The plans, with fewer epochs or left out where there are not enough events for them."""
    out: list[Plan] = []
    for plan in plans:
        epochs = min(plan.warm_up + plan.measured, events // plan.changes)
        if epochs >= 1:
            warm_up = min(plan.warm_up, epochs - 1)
            out.append(Plan(plan.changes, warm_up, epochs - warm_up))
            events -= out[-1].total
    return out
