"""A subscriber loses nothing and is told nothing twice, however often the process that it listens to is killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from headwater.engine import faults
from tests.engine.support import bag
from tests.faults.harness import Kill, Nursery, Subject, Tally
from tests.faults.listener import Listener
from tests.faults.process import open_warehouse

#: A view over views, and one that is suspended and refreshed.
VIEWS = {"rest": (0,), "spend": (0,), "level": (0,)}


@pytest.mark.parametrize("seed", [11])
def test_subscribers_across_kills(nursery: Nursery, folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    tally = Tally()
    subject = Subject(nursery, folder, seed, tally)
    kills = [Kill(point, rng.randint(3, 8)) for point in faults.POINTS if point not in ("view filled",)]
    kills += [Kill(event="done", nth=rng.randint(5, 30), delay=rng.uniform(0.0, 0.05)) for _ in range(4)]
    rng.shuffle(kills)
    subject.rest(16)  # all views are there
    listeners = {view: Listener(folder, view, key) for view, key in VIEWS.items()}
    try:
        for kill in kills:
            subject.live(kill)
        subject.rest(20)
    finally:
        for one in listeners.values():
            one.stop()
    assert tally.passed, tally.differences
    with open_warehouse(str(folder)) as db:
        for view, listener in listeners.items():
            listener.catch_up(db)
            assert listener.held == bag(db, view), view
            assert listener.epochs == sorted(set(listener.epochs))
            assert listener.epoch == db.engine.epoch
            with db.subscribe(view, 0, timeout=0) as again:
                assert [table["_epoch"][0].as_py() for table in again.tables()] == listener.epochs
    assert sum(one.breaks for one in listeners.values()) >= 5, "hardly anybody was killed under a listener"
