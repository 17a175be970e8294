"""After a kill at any moment the warehouse is what a run without kills has at the same epoch."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headwater.engine import faults
from tests.faults.harness import (
    AT_DEFINITIONS,
    Kill,
    Nursery,
    Subject,
    Tally,
    kill_at_statement,
    kill_from_outside,
)
from tests.faults.process import ANY_STATEMENT, Job
from tests.faults.writers import THREADS
from tests.s3 import BUCKET, serving


class Trial:
    """A growing warehouse, and what its kills have shown."""

    def __init__(self, nursery: Nursery, folder: Path, seed: int, away: bool = False, **place: Any) -> None:
        self.tally = Tally()
        self.subject = Subject(nursery, folder, seed, self.tally, away, **place)

    def endure(self, kills: list[Kill]) -> None:
        for kill in kills:
            self.subject.live(kill)
            assert not self.tally.differences
        self.subject.rest()
        self.subject.rest(0)
        assert self.tally.passed, self.tally.differences
        assert str(self.tally) == f"{len(kills)} kills, 0 lost epochs, 0 epochs applied twice"


def test_kills_at_every_fault_point(nursery: Nursery, folder: Path) -> None:
    rng = random.Random(1)
    kills = [Kill(point, nth) for point in faults.POINTS for nth in (1, rng.randint(2, 3))]
    kills += 5 * [Kill("after commit")]  # some fall on transactions of the background, which nobody acknowledges
    rng.shuffle(kills)
    trial = Trial(nursery, folder, seed=1)
    trial.endure(kills)
    assert trial.tally.unacknowledged >= 2, "a kill after a commit comes before its acknowledgement"


def test_kills_while_relations_are_made_and_dropped(nursery: Nursery, folder: Path) -> None:
    Trial(nursery, folder, seed=2).endure(list(AT_DEFINITIONS))


def test_kills_from_outside(nursery: Nursery, folder: Path) -> None:
    rng = random.Random(3)
    Trial(nursery, folder, seed=3).endure([kill_from_outside(rng) for _ in range(20)])


def test_kills_while_programs_run_in_tasks(nursery: Nursery, folder: Path) -> None:
    """To tasks all sorts of things happen meanwhile; what they leave is gone after a restart."""
    rng = random.Random(10)
    kills = [Kill(point) for point in faults.AWAY_POINTS]
    kills += [Kill("tasks done", 2), Kill("merge done", 3), Kill("merge listed", 3), kill_from_outside(rng)]
    rng.shuffle(kills)
    # The first finds nothing that lies away and could be divided anew.
    Trial(nursery, folder, seed=10, away=True).endure([Kill("tasks done", 3), *kills])


def test_kills_while_segments_lie_on_a_storage(nursery: Nursery, folder: Path) -> None:
    kills = [Kill("tasks begin"), Kill("moved"), Kill("tasks done", 2), Kill("merge done"), Kill("sent away")]
    with serving() as server:
        place = {"segments": f"s3://{BUCKET}/x", "storage": server.options}
        Trial(nursery, folder, seed=10, away=True, **place).endure(kills)


def test_kills_before_a_statement_of_the_engine(nursery: Nursery, folder: Path) -> None:
    rng = random.Random(4)
    Trial(nursery, folder, seed=4).endure([kill_at_statement(rng) for _ in range(5)])


def test_kills_before_every_statement_that_makes_a_warehouse(nursery: Nursery, folder: Path) -> None:
    """The n-th child finds what the one before it left, or nothing, and dies a statement later."""
    nth = 0
    for nth in range(1, 30):
        events = list(nursery.start(Job(str(folder) + str(nth), steps=0, point=ANY_STATEMENT, nth=nth, during="OPEN")))
        if events[-1]["code"] == 0:
            break
        assert [event["event"] for event in events] == ["opening", "ended"], events
        trial = Trial(nursery, Path(str(folder) + str(nth)), seed=5)
        trial.subject.rest(1)
        assert trial.tally.passed, trial.tally.differences
    assert nth > 8, "a warehouse is not made with fewer statements"


@pytest.mark.parametrize("seed", [6, 7])
def test_kills_while_the_first_files_are_made(nursery: Nursery, folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    Trial(nursery, folder, seed).endure([Kill(event="opening", delay=rng.uniform(0.0, 0.05)) for _ in range(3)])


def test_threads_that_share_epochs(nursery: Nursery, folder: Path) -> None:
    """What each of several threads was told is there once, and at most one more row of each."""
    rng = random.Random(8)
    told = dict.fromkeys(range(THREADS), 0)
    shared = False
    for _ in range(6):
        pid, left, epochs = 0, rng.randint(5, 25), set[int]()
        for event in nursery.start(Job(str(folder), scenario="writers")):
            match event["event"]:
                case "opening":
                    pid = event["pid"]
                case "recovered":
                    for writer in range(THREADS):
                        found = event["written"][str(writer)]
                        assert found == list(range(1, len(found) + 1))
                        assert told[writer] <= len(found) <= told[writer] + 1
                        told[writer] = len(found)
                    counts = [[writer, n, n * (n + 1) // 2] for writer, n in told.items() if n]
                    assert event["counts"] == counts
                    assert event["epochs"] == list(range(1, len(event["epochs"]) + 1))
                case "done":
                    told[event["writer"]] = event["n"]
                    shared |= event["epoch"] in epochs
                    epochs.add(event["epoch"])
                    left -= 1
                    if not left:
                        os.kill(pid, signal.SIGKILL)
                case "failed":
                    pytest.fail(event["error"])
    assert shared, "with several threads at work some inserts share an epoch"


# -- that the comparison sees what it looks for -----------------------------------------------------------------------


@pytest.fixture
def tampered(nursery: Nursery, folder: Path) -> Iterator[tuple[Trial, duckdb.DuckDBPyConnection]]:
    trial = Trial(nursery, folder, seed=9)
    trial.subject.rest(30)
    with duckdb.connect(str(folder / "warehouse.duckdb")) as file:
        yield trial, file


def test_a_lost_epoch_is_seen(tampered: tuple[Trial, duckdb.DuckDBPyConnection]) -> None:
    trial, file = tampered
    file.execute("DELETE FROM hw.epochs WHERE number = (SELECT max(number) FROM hw.epochs)")
    file.close()
    trial.subject.rest(0)
    assert trial.tally.lost == 1
    assert not trial.tally.passed


def test_an_epoch_applied_twice_is_seen(tampered: tuple[Trial, duckdb.DuckDBPyConnection]) -> None:
    trial, file = tampered
    file.execute("INSERT INTO data.marks SELECT * FROM data.marks ORDER BY epoch DESC LIMIT 1")
    file.close()
    trial.subject.rest(0)
    assert trial.tally.twice == 1


def test_a_wrong_view_is_seen(tampered: tuple[Trial, duckdb.DuckDBPyConnection]) -> None:
    trial, file = tampered
    file.execute("DELETE FROM data.plain WHERE rowid = (SELECT max(rowid) FROM data.plain)")
    file.close()
    trial.subject.rest(0)
    assert any("plain holds" in one for one in trial.tally.differences)


def test_what_a_consolidation_left_is_removed(tampered: tuple[Trial, duckdb.DuckDBPyConnection]) -> None:
    trial, file = tampered
    file.execute('CREATE TABLE data."orders#new" AS FROM data.orders')
    file.execute("CREATE TABLE data.nobodys (x INT)")
    file.close()
    trial.subject.rest(0)
    assert [one.partition(": ")[2] for one in trial.tally.differences] == [
        "tables that belong to nothing, or are not there: ['nobodys']"
    ]
