"""Functions of many rows: `Pick` of all rows of a group, `WindowCall` of the rows around a row.

What adds up (sums and counts) is a term of a `Sum` instead, and follows from deltas. These do not add up: their value
is computed from all rows of a group or partition whenever one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from headwater import types as t
from headwater.algebra.scalars import Scalar


@dataclass(frozen=True)
class Sorting:
    """One key of an order."""

    scalar: Scalar
    descending: bool = False
    nulls_first: bool = True

    def reversed(self) -> Sorting:
        return Sorting(self.scalar, not self.descending, not self.nulls_first)

    def __str__(self) -> str:
        way = "desc" if self.descending else "asc"
        return f"{self.scalar} {way} {'nulls_first' if self.nulls_first else 'nulls_last'}"


@dataclass(frozen=True)
class Pick:
    """An aggregate of a group's rows; `headwater.algebra.functions.picks` says which there are and what they mean."""

    function: str
    args: tuple[Scalar, ...]
    order: tuple[Sorting, ...] = ()
    type: t.Type = field(init=False)

    def __post_init__(self) -> None:
        from headwater.algebra.functions.picks import PICKS

        object.__setattr__(self, "type", PICKS[self.function].result(self))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.args, *(one.scalar for one in self.order))

    def map(self, rewrite: Callable[[Scalar], Scalar]) -> Pick:
        """The same over rewritten scalars; they are asked for in the order of `scalars`."""
        args = tuple(rewrite(arg) for arg in self.args)
        return Pick(self.function, args, tuple(replace(one, scalar=rewrite(one.scalar)) for one in self.order))

    def __str__(self) -> str:
        return _called(self.function, self.args, self.order)


@dataclass(frozen=True)
class Frame:
    """Which rows around a row a window function sees.

    Attributes:
        unit: `rows` counts rows; `range` takes rows by the value of the one key of the order, peers included.
        low: how far before (negative) or after the row it begins; None is the beginning of the partition.
        high: how far before or after the row it ends; None is the end of the partition.
    """

    unit: str
    low: int | None
    high: int | None

    def __str__(self) -> str:
        ends = ["unbounded" if end is None else str(end) for end in (self.low, self.high)]
        return f"{self.unit}({', '.join(ends)})"


#: All rows of the partition.
WHOLE = Frame("rows", None, None)
#: The rows up to this one, and those that are equal to it in the order.
RUNNING = Frame("range", None, 0)


@dataclass(frozen=True)
class WindowCall:
    """A window function; `headwater.algebra.windows` says which there are and what they mean."""

    function: str
    args: tuple[Scalar, ...] = ()
    order: tuple[Sorting, ...] = ()
    frame: Frame = WHOLE
    type: t.Type = field(init=False)

    def __post_init__(self) -> None:
        from headwater.algebra.windows import result_type

        object.__setattr__(self, "type", result_type(self.function, self.args))

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        return (*self.args, *(one.scalar for one in self.order))

    def __str__(self) -> str:
        return f"{_called(self.function, self.args, self.order)} {self.frame}"

    def map(self, rewrite: Callable[[Scalar], Scalar]) -> WindowCall:
        """The same over rewritten scalars."""
        order = tuple(replace(one, scalar=rewrite(one.scalar)) for one in self.order)
        return WindowCall(self.function, tuple(rewrite(arg) for arg in self.args), order, self.frame)


def _called(function: str, args: tuple[Scalar, ...], order: tuple[Sorting, ...]) -> str:
    sorted_by = f" order({', '.join(str(one) for one in order)})" if order else ""
    return f"{function}({', '.join(str(arg) for arg in args)}){sorted_by}"
