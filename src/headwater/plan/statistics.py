"""What is known of how large relations are and how fast they change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Extent:
    """What is known of a column: how many different values it has, and between which numbers they lie."""

    distinct: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Observed:
    """What is known of a relation.

    Attributes:
        rows: how many it has.
        rate: how many come or go in an epoch that changes it.
        share: of all epochs, how many change it.
        columns: what is known of its columns; of some, nothing.
        kept: its rows are stored whether a program reads them or not.
    """

    rows: float
    rate: float
    share: float = 1.0
    columns: Mapping[str, Extent] = field(default_factory=dict)
    kept: bool = False


#: What a relation is taken for before it has rows. Views are often made before their data comes.
ROWS, RATE = 1_000_000.0, 1_000.0
#: Of rows without statistics, one in so many has a value of its own in a column.
SAME = 10.0

Statistics = Mapping[str, Observed]


def unknown() -> Observed:
    """A relation of which nothing is known."""
    return Observed(ROWS, RATE)
