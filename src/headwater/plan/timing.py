"""Whether a view is better kept, or better evaluated when it is read.

(Ahmad et al., "DBToaster", section 5.1: a program's cost is what keeps its maps, at the rates of changes, and what
evaluates the query from them, at the rate of refreshes.) A view that is kept costs the whole of it in every epoch. One
that is evaluated when it is read costs its maps in every epoch, and the rest of it once for all reads that come between
two epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from headwater.plan.cost import PRICES, Costing
from headwater.plan.program import Program
from headwater.plan.statistics import Observed

#: Reads that find something new, for each epoch, of a view that nobody has read yet.
FIRST_READS = 0.1
#: The other way must be better by this much; estimates are rough, and changing costs something.
MARGIN = 0.9
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

    def corrected(self, expected: Spending, measured: Spending) -> Spending:
        """The same, if a program that was expected to cost something was measured; zero is not measured."""
        return Spending(
            self.epoch * _ratio(measured.epoch, expected.epoch), self.read * _ratio(measured.read, expected.read)
        )


def _ratio(measured: float, expected: float) -> float:
    return measured / expected if measured > 0 and expected > 0 else 1.0


def spending(program: Program, observed: Mapping[str, Observed], existing: Set[str]) -> Spending:
    """What a program is expected to cost; the arguments are those of `cost_of`."""
    costing = Costing(program, observed, existing)
    epoch = costing.total().milliseconds
    if program.upper is None:
        return Spending(epoch, LOOK)
    return Spending(epoch, LOOK + costing.reading(program.upper, tuple(one.definition for one in program.held)))


def is_better_kept(kept: Spending, asked: Spending, reads: float, is_kept: bool = False) -> bool:
    """Whether a view is better kept.

    Args:
        kept: what it costs then.
        asked: what it costs if it is evaluated when it is read.
        reads: for each epoch.
        is_kept: whether it is now. A new one is not: if nobody reads it, that costs least.
    """
    a, b = kept.for_each_epoch(reads), asked.for_each_epoch(reads)
    return a < b / MARGIN if is_kept else a < b * MARGIN


def reason(kept: Spending, asked: Spending, reads: float, choice: bool, seen: bool) -> str:
    """The decision in words."""
    what = "kept after every epoch" if choice else "evaluated when it is read"
    how_often = f"{reads:.2g} reads an epoch{'' if seen else ', a guess: nobody has read it yet'}"
    return (
        f"AUTO: {what}; with {how_often}, keeping it costs {kept.for_each_epoch(reads):.2f} ms an epoch, evaluating it "
        f"{asked.for_each_epoch(reads):.2f} ms ({asked.epoch:.2f} when rows come, {asked.read:.2f} for a read)"
    )
