"""Epochs that nobody asks for: the wall clock makes a policy tick for which something waits, or a row leave a window.

With a clock that is set by hand, or given by the caller, nothing happens by itself: whoever moves it runs the epochs.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import weakref

from headwater.engine.engine import Engine, wall_clock
from headwater.engine.ticks import next_multiple, passes
from headwater.engine.windows import is_due
from headwater.store.catalog import CLOCK_STREAM
from headwater.store.policies import When

log = logging.getLogger("headwater")

#: The clock stream has a row for each second.
_SECOND = 1_000_000
#: How long the thread sleeps if nothing that it knows of is due; it looks whether views have come meanwhile.
_IDLE = 1.0
#: How long it waits after an epoch that failed.
_PAUSE = 10.0


class Ticker:
    """A thread that runs an empty epoch when the clock asks for one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)
        self._stop = threading.Event()
        self._seen: int | None = None
        self._timed = False
        self._thread: threading.Thread | None = None
        if engine.clock is wall_clock:  # it may stand at the moment, and go again later
            self._thread = threading.Thread(target=self._run, name="headwater-ticker", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop after the epoch that is under way."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause):
            engine = self._engine()
            if engine is None:
                return
            try:
                pause = self._look(engine)
            except Exception as error:
                if self._stop.is_set():
                    return
                log.warning("an epoch that the clock asked for failed, and is tried again: %s", error)
                pause = _PAUSE
            del engine

    def _look(self, engine: Engine) -> float:
        """Run an epoch if one is due; returns how many seconds there are until the next may be."""
        if not engine.keeps_time or not self._concerned(engine) or not self._take(engine):
            return _IDLE
        try:
            now = engine.present()
            periods = wanted_periods(engine)
            if engine.keeps_time and (_due(periods, engine, now) or is_due(engine, now)):
                engine.run([])
        finally:
            engine.lock.release()
        shortest = {one.policy.period for one in engine.catalog if one.policy is not None and one.policy.period}
        after = next_multiple({_SECOND, *shortest}, engine.clock())
        assert after is not None
        return min(max((after - engine.clock()).total_seconds(), 0.001), _IDLE)

    def _concerned(self, engine: Engine) -> bool:
        """Whether anything in the warehouse has to do with the clock."""
        if self._seen != engine.redefined:
            seen, catalog = engine.redefined, engine.catalog
            self._timed = any(
                (one.policy is not None and one.policy.when is When.EVERY)
                or one.name == CLOCK_STREAM
                or (one.program is not None and one.program.follows_clock)
                for one in catalog
            )
            self._seen = seen
        return self._timed

    def _take(self, engine: Engine) -> bool:
        """Wait for the writer, but not for longer than until this is to end: who closes may hold it."""
        while not self._stop.is_set():
            if engine.lock.acquire(timeout=0.1):
                return True
        return False


def wanted_periods(engine: Engine) -> set[int]:
    """The lengths of time, in microseconds, at whose multiples something has to be done as things are."""
    periods: set[int] = set()
    for one in engine.catalog:
        if one.policy is not None and one.policy.when is When.EVERY and engine.waiting[one.name]:
            periods.add(one.policy.period)
        if one.name == CLOCK_STREAM and one.source is not None and engine.catalog.dependents(one.name):
            periods.add(_SECOND)
    return periods


def _due(periods: set[int], engine: Engine, now: dt.datetime) -> bool:
    if engine.last_clock is None:  # there was no epoch yet, so there is no telling what has passed since
        return bool(periods)
    return any(passes(period, engine.last_clock, now) for period in periods)
