"""Whether a view is better kept, or better evaluated when it is read.

(Ahmad et al., "DBToaster", section 5.1: a program's cost is what keeps its maps, at the rates of changes, and what
evaluates the query from them, at the rate of refreshes.) A view that is kept costs the whole of it in every epoch. One
that is evaluated when it is read costs its maps in every epoch, and the rest of it once for all reads that come between
two epochs.

What either costs is tried out where that is possible, else taken from what was measured when the view was kept, or was
not, else estimated. Two ways are compared by figures of one kind, as far as there are such: a clock says something else
than a cost model, even of the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum

from headwater.plan.cost import PRICES, Costing
from headwater.plan.program import Program
from headwater.plan.statistics import Observed

#: Reads that find something new, for each epoch, of a view that nobody has read yet.
FIRST_READS = 0.1
#: The other way must be better by this much: estimates are rough, and changing costs something.
MARGIN = 0.9
#: The same for ways that were tried out.
TRIED_MARGIN = 0.95
#: What a read costs that only looks: a query of its own.
LOOK = 2 * PRICES.statement


@dataclass(frozen=True)
class Spending:
    """What a program costs, in milliseconds: in an epoch, and for a read that finds something new."""

    epoch: float
    read: float

    def for_each_epoch(self, reads: float) -> float:
        """With so many reads for each epoch; what is found once serves until the next epoch."""
        return self.epoch + min(reads, 1.0) * self.read

    def times(self, factor: Spending) -> Spending:
        return Spending(self.epoch * factor.epoch, self.read * factor.read)


@dataclass(frozen=True)
class Remembered:
    """What a view took when it was kept, or when it was not, and what it was expected to take then."""

    measured: Spending
    expected: Spending

    @property
    def factor(self) -> Spending:
        """What estimates are to be multiplied by; what was not measured says nothing."""
        return Spending(
            _ratio(self.measured.epoch, self.expected.epoch), _ratio(self.measured.read, self.expected.read)
        )

    def holds(self, expected: Spending) -> bool:
        """Whether things are about as they were: the same is expected now, but for a half."""
        return self.measured.epoch > 0 and all(
            now <= 1.5 * then and then <= 1.5 * now
            for now, then in ((expected.epoch, self.expected.epoch), (expected.read, self.expected.read))
        )


def _ratio(measured: float, expected: float) -> float:
    return measured / expected if measured > 0 and expected > 0 else 1.0


class Origin(Enum):
    """Where figures are from, as it is told."""

    TRIED = "tried out"
    MEASURED = "measured"
    SCALED = "estimated, and scaled by what was measured the other way"
    ESTIMATED = "estimated"


@dataclass(frozen=True)
class Figures:
    """What a view costs if it is kept, or if it is not, and how that is known."""

    spending: Spending
    origin: Origin


def without_trial(expected: Mapping[bool, Spending], remembered: Mapping[bool, Remembered]) -> dict[bool, Figures]:
    """The figures of both ways by what is remembered of them: True is to keep the view.

    A way of which nothing is remembered is expected to differ from estimates as the other one does.
    """
    out = {}
    for kept, estimate in expected.items():
        if kept in remembered:
            out[kept] = Figures(estimate.times(remembered[kept].factor), Origin.MEASURED)
        elif remembered:
            epoch = remembered[not kept].factor.epoch
            out[kept] = Figures(estimate.times(Spending(epoch, epoch)), Origin.SCALED)
        else:
            out[kept] = Figures(estimate, Origin.ESTIMATED)
    return out


def spending(program: Program, observed: Mapping[str, Observed], existing: Set[str]) -> Spending:
    """What a program is expected to cost; the arguments are those of `cost_of`."""
    costing = Costing(program, observed, existing)
    epoch = costing.total().milliseconds
    if program.upper is None:
        return Spending(epoch, LOOK)
    return Spending(epoch, LOOK + costing.reading(program.upper, tuple(one.definition for one in program.held)))


def is_better_kept(figures: Mapping[bool, Figures], reads: float, is_kept: bool = False) -> bool:
    """Whether a view is better kept.

    Args:
        figures: what it costs then, under True, and what it costs if it is evaluated when it is read.
        reads: for each epoch.
        is_kept: whether it is now. A new one is not: if nobody reads it, that costs least.
    """
    a, b = (figures[keep].spending.for_each_epoch(reads) for keep in (True, False))
    margin = TRIED_MARGIN if figures[True].origin is Origin.TRIED else MARGIN
    return a < b / margin if is_kept else a < b * margin


def reason(figures: Mapping[bool, Figures], reads: float, choice: bool, seen: bool) -> str:
    """The decision in words."""
    what = "kept after every epoch" if choice else "evaluated when it is read"
    how_often = f"read after {min(reads, 1.0):.0%} of the epochs{'' if seen else ', a guess: nobody has read it yet'}"
    return (
        f"AUTO: {what}; {how_often}, keeping it costs {_told(figures[True], reads)}, evaluating it "
        f"{_told(figures[False], reads)}"
    )


def _told(figures: Figures, reads: float) -> str:
    one = figures.spending
    return (
        f"{one.for_each_epoch(reads):.2f} ms an epoch ({one.epoch:.2f} when rows come, {one.read:.2f} for a read; "
        f"{figures.origin.value})"
    )
