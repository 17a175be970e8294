"""Systems that take the same epochs in turn, each within its time, and must agree.

A system that takes too long for the epochs of one size is stopped, in the middle of an epoch if need be, and takes no
further part: its figures are of the epochs that it finished, and say so.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import duckdb
from tests.queries.harness import unmatched

from benchmarks.changes import Changes, Round
from benchmarks.systems import CHOSEN, DUCKDB, HARD_CODED, System
from headwater.errors import HeadwaterError

#: How much longer than all epochs of a size the first load may take.
LOAD_FACTOR = 5
#: How many epochs are measured of a system that evaluates the query anew: they differ little.
RECOMPUTED = 5

Row = dict[str, object]


@dataclass
class Lane:
    """A system in the contest."""

    name: str
    system: System | None = None
    maps: int | None = None
    statements: int | None = None
    #: The strategy that it chose.
    plan: str | None = None
    #: Why it takes no part any more.
    out: str | None = None
    #: Seconds of each measured epoch of the present size.
    seconds: list[float] = field(default_factory=list)
    #: Seconds of all its epochs of the present size.
    spent: float = 0.0

    def drop(self, reason: str) -> None:
        self.out = reason
        if self.system is not None:
            with contextlib.suppress(HeadwaterError, duckdb.Error):
                self.system.close()


Maker = Callable[[], System]


def contest(
    makers: dict[str, Maker], load: Changes, rounds: list[Round], limit: float, report: Callable[[str], None]
) -> Iterator[Row]:
    """Let systems take the same epochs; yields the figures of each size and system.

    Args:
        makers: makes each system, by name; one that refuses the view is absent.
        load: the first epoch, which does not count.
        rounds: the others.
        limit: seconds that each may take for the epochs of one size.
        report: is told what happens.
    """
    running = Contest(makers, limit, report)
    try:
        report(f"loading {load.size:,} rows")
        running.load(load)
        for round_ in rounds:
            report(f"{len(round_.epochs)} epochs of {round_.changes:,} changes")
            for lane, row in running.run(round_):
                yield {"changes": round_.changes, "system": lane.name, **row}
    finally:
        running.close()


class Contest:
    """The systems and how far they got."""

    def __init__(self, makers: dict[str, Maker], limit: float, report: Callable[[str], None]) -> None:
        self._limit, self._report = limit, report
        self.lanes = [self._lane(name, make) for name, make in makers.items()]

    def _lane(self, name: str, make: Maker) -> Lane:
        try:
            system = make()
        except HeadwaterError as error:
            self._report(f"{name} is absent: {error.code}")
            return Lane(name, out=f"absent: {error.code}")
        if (program := system.program) is None:
            return Lane(name, system)
        return Lane(name, system, len(program.maps), len(program.statements), program.strategy)

    def load(self, changes: Changes) -> None:
        """The first epoch, which does not count."""
        for lane in self._running():
            lane.spent = 0.0
            self._take(lane, changes, self._limit * LOAD_FACTOR, "the load", counted=not _recomputes(lane))
        self._compare()

    def run(self, round_: Round) -> Iterator[tuple[Lane, Row]]:
        """Epochs of one size; yields each system with its figures."""
        lanes = self._running()
        others = [lane for lane in self.lanes if lane.out is not None]
        for lane in lanes:
            lane.seconds, lane.spent = [], 0.0
        measured = len(round_.epochs) - round_.warm_up
        for number, epoch in enumerate(round_.epochs):
            turns = [lane for lane in lanes if lane.out is None]
            if number in (round_.warm_up // 2, round_.warm_up):
                self._adapt(turns)
            shift = number % max(1, len(turns))  # nobody is always first
            for lane in turns[shift:] + turns[:shift]:
                what = f"epoch {number + 1} of {len(round_.epochs)} with {round_.changes:,} changes"
                seconds = self._take(lane, epoch, self._limit, what, _is_counted(lane, round_))
                if seconds is not None and number >= round_.warm_up:
                    lane.seconds.append(seconds)
        self._compare()
        yield from self._figures(lanes, round_, measured)
        yield from ((lane, {"maps": lane.maps, "statements": lane.statements, "note": lane.out}) for lane in others)
        for lane in lanes:
            if lane.out is None and lane.spent > self._limit:
                lane.drop(f"out after {lane.spent:.0f} s for epochs of {round_.changes:,} changes")

    @staticmethod
    def _adapt(lanes: list[Lane]) -> None:
        """In and after the warm-up each may make itself comfortable with what it has seen."""
        for lane in lanes:
            assert lane.system is not None
            lane.system.adapt()
            if (program := lane.system.program) is not None:
                lane.maps, lane.statements, lane.plan = len(program.maps), len(program.statements), program.strategy

    def _take(self, lane: Lane, epoch: Changes, limit: float, what: str, counted: bool = True) -> float | None:
        """The seconds of an epoch; None if the system did not get through, or had not to."""
        assert lane.system is not None
        lane.system.follow(epoch)
        if not counted:
            return None
        lane.system.lay_out()
        watch = _Watch(lane.system, max(1.0, limit - lane.spent))
        began = time.perf_counter()
        try:
            with watch:
                lane.system.apply(epoch)
        except Exception as error:  # whatever a system says when it is interrupted
            if watch.rang:
                reason = f"stopped after {limit:.0f} s, in {what}"
            elif "out of memory" in str(error).lower():
                reason = f"out of memory in {what}"
            else:
                raise
            self._report(f"{lane.name} {reason}")
            lane.drop(reason)
            return None
        spent = time.perf_counter() - began
        lane.spent += spent
        return spent

    def _compare(self) -> None:
        """All that are still running hold the same rows."""
        running = self._running()
        if not running:
            return
        reference = next((lane for lane in running if lane.name == DUCKDB), running[0])
        assert reference.system is not None
        expected = reference.system.contents()
        for lane in running:
            if lane is not reference and lane.system is not None:
                wrong = list(unmatched(lane.system.contents(), expected))
                assert not wrong, "\n".join([f"{lane.name} disagrees with {reference.name}:", *wrong[:10]])

    def _figures(self, lanes: Sequence[Lane], round_: Round, measured: int) -> Iterator[tuple[Lane, Row]]:
        medians = {lane.name: statistics.median(lane.seconds) * 1000 for lane in lanes if lane.seconds}
        for lane in lanes:
            if not _takes_part(lane, round_):
                continue
            middle = medians.get(lane.name)
            state = lane.system.state_bytes() if lane.system is not None and lane.out is None else None
            row: Row = {
                "p50 ms": middle,
                "worst ms": max(lane.seconds) * 1000 if lane.seconds else None,
                "changes/s": round(round_.changes / middle * 1000) if middle else None,
                "epochs": f"{len(lane.seconds)} of {min(measured, RECOMPUTED) if _recomputes(lane) else measured}",
                "maps": lane.maps,
                "statements": lane.statements,
                "state MiB": state / 2**20 if state is not None else None,
                "to hard-coded": _ratio(middle, medians.get(HARD_CODED)),
                "to DuckDB": _ratio(middle, medians.get(DUCKDB)),
                "plan": lane.plan if lane.name == CHOSEN else None,
                "note": lane.out or "",
            }
            yield lane, row

    def _running(self) -> list[Lane]:
        return [lane for lane in self.lanes if lane.out is None]

    def close(self) -> None:
        for lane in self._running():
            lane.drop("over")


class _Watch:
    """Interrupts a system when its time is up."""

    def __init__(self, system: System, seconds: float) -> None:
        self.rang = False
        self._system = system
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._wait, args=(seconds,), daemon=True)

    def _wait(self, seconds: float) -> None:
        while not self._over.wait(seconds):  # again and again: between two statements nobody hears it
            self.rang = True
            self._system.interrupt()
            seconds = 0.2

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _recomputes(lane: Lane) -> bool:
    return lane.system is not None and lane.system.recomputes


def _takes_part(lane: Lane, round_: Round) -> bool:
    assert lane.system is not None
    return lane.system.sizes is None or round_.changes in lane.system.sizes


def _is_counted(lane: Lane, round_: Round) -> bool:
    """Whether a system is to do what is measured in this epoch."""
    return _takes_part(lane, round_) and not (_recomputes(lane) and len(lane.seconds) >= RECOMPUTED)


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None
