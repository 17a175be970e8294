"""Starts children, kills them, and compares what their successors find with what the story says must be there."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Any

from headwater.engine import faults
from tests.faults.process import ANY_STATEMENT, Job, show
from tests.faults.story import Story, locate

Event = dict[str, Any]
#: Longer than any step takes, even on a machine that is busy with other things.
PATIENCE_SECONDS = 60.0
#: A child that has not met its fault point after so many steps never will.
MOST_STEPS = 80


class Broken(Exception):
    """A child did what no child may do: it failed, hung, or ended without being killed."""


class Nursery:
    """One process that forks the children."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        # A process with threads cannot fork safely, and numpy starts some unless told otherwise.
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(root))))
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.child"],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # warnings of a consolidation that a drop overtook
        )
        self._unread = b""

    def start(self, job: Job) -> Iterator[Event]:
        """Start a child; yields what it tells, at last that it `ended`."""
        assert self._process.stdin is not None
        self._process.stdin.write(job.to_json().encode() + b"\n")
        self._process.stdin.flush()
        while True:
            line = self._read_line()
            try:
                event: Event = json.loads(line)
            except ValueError:
                continue  # the half line of a child that was killed while it spoke, or the line feed after it
            yield event
            if event["event"] == "ended":
                return

    def _read_line(self) -> bytes:
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([source], [], [], PATIENCE_SECONDS)
            if not ready:
                raise Broken(f"a child has said nothing for {PATIENCE_SECONDS:.0f} s")
            more = os.read(source, 1 << 16)
            if not more:
                raise Broken("the process that forks the children is gone")
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return line

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS if error is None else 1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@dataclass(frozen=True)
class Kill:
    """When a child dies.

    Attributes:
        point: the fault point, or `ANY_STATEMENT`, at which it kills itself; empty: it is killed from outside.
        nth: at which time of reaching the point; or after how many of its events of this kind.
        during: what it is doing then; see `Job.during`.
        event: the event after which it is killed from outside.
        delay: how many seconds after it.
    """

    point: str = ""
    nth: int = 1
    during: str = ""
    event: str = ""
    delay: float = 0.0

    def __str__(self) -> str:
        if self.event:
            return f"{self.delay * 1000:.0f} ms after {self.event} {self.nth}"
        return f"{self.point} {self.nth}" + (f" during {self.during}" if self.during else "")


@dataclass
class Tally:
    """What the kills have shown.

    Attributes:
        kills: how many there were.
        lost: epochs that were acknowledged and are not there.
        twice: epochs that are there more than once.
        differences: everything that is not as in a run without kills, in words.
        unacknowledged: kills after which a step was there that had not been acknowledged yet.
    """

    kills: int = 0
    lost: int = 0
    twice: int = 0
    differences: list[str] = field(default_factory=list)
    unacknowledged: int = 0

    @property
    def passed(self) -> bool:
        return not (self.lost or self.twice or self.differences)

    def __str__(self) -> str:
        return f"{self.kills} kills, {self.lost} lost epochs, {self.twice} epochs applied twice"


class Subject:
    """One growing warehouse, and how far the story is known to have come in it."""

    def __init__(
        self, nursery: Nursery, folder: Path, seed: int, tally: Tally, away: bool = False, **place: Any
    ) -> None:
        self._nursery = nursery
        self._job = Job(str(folder), seed, away=away, **place)
        self._tally = tally
        self._last = "nothing"
        #: Steps and epochs that were acknowledged.
        self.position = 0
        self.epoch = 0

    def live(self, kill: Kill) -> None:
        """Start a child on the warehouse, look at what it finds, and see it die as planned."""
        steps = None if kill.event else MOST_STEPS
        job = replace(self._job, point=kill.point, nth=kill.nth, during=kill.during, steps=steps)
        code, left = self._run(job, kill)
        if code != -signal.SIGKILL:
            raise Broken(f"the child was to be killed at {kill} and ended with {code}, {left} events short of it")
        self._tally.kills += 1
        self._last = str(kill)

    def rest(self, steps: int = 3) -> None:
        """A child that is not killed: takes a few steps and closes the warehouse in order."""
        code, _ = self._run(replace(self._job, steps=steps), Kill())
        if code:
            raise Broken(f"a child that nobody killed ended with {code}")

    def _run(self, job: Job, kill: Kill) -> tuple[int, int]:
        pid, left, failure = 0, kill.nth, ""
        for event in self._nursery.start(job):
            match event["event"]:
                case "opening":
                    pid = event["pid"]
                case "recovered":
                    self.examine(event)
                case "done":
                    self.position, self.epoch = event["position"], event["epoch"]
                case "failed":
                    failure = f"after {self._last}: {event['error']}"
                case "ended" if failure:
                    raise Broken(failure)
                case "ended":
                    return event["code"], left
            if event["event"] == kill.event and left:
                left -= 1
                if not left:
                    time.sleep(kill.delay)
                    os.kill(pid, signal.SIGKILL)
        raise AssertionError("a child always ends")

    def examine(self, found: Event) -> None:
        """Compare what was found at a start with the story."""
        numbers = [number for number, _, _ in found["epochs"]]
        self._tally.lost += len(set(range(1, self.epoch + 1)) - set(numbers))
        self._tally.twice += len(numbers) - len(set(numbers))
        story = locate(self._job.seed, found["epoch"], found["catalog"])
        if story is None:
            self._differ(f"after epoch {found['epoch']} there can not be {', '.join(found['catalog'])}")
            return
        if not self.position <= story.position <= self.position + 1:
            self._differ(f"step {self.position} was the last acknowledged, and the warehouse is at {story.position}")
        self._tally.unacknowledged += story.position > self.position
        self.position, self.epoch = story.position, story.epoch
        self._compare(story, found)

    def _compare(self, story: Story, found: Event) -> None:
        expected = {name: show(rows) for name, rows in story.contents().items()}
        for name in sorted(expected.keys() | found["contents"].keys()):
            if expected.get(name) != found["contents"].get(name):
                self._differ(f"{name} holds {found['contents'].get(name)}, not {expected.get(name)}")
        for name, rows in found["followed"].items():
            if rows != expected[name]:
                self._differ(f"a subscriber of {name} has {rows}, not {expected[name]}")
        if "marks" in expected:
            surplus = Counter(found["contents"]["marks"]) - Counter(expected["marks"])
            self._tally.twice += len(surplus)
        epochs = [(number, str(clock), changes) for number, clock, changes in story.epoch_rows()]
        for wanted, got in zip_longest(epochs, found["epochs"]):
            if not wanted or not got or any(b not in (a, None) for a, b in zip(got, wanted, strict=True)):
                self._differ(f"the table of epochs has {got}, not {wanted}")
        if found["stray"]:
            self._differ(f"tables that belong to nothing, or are not there: {found['stray']}")
        if found["suspended"] != story.suspended():
            self._differ(f"suspended are {found['suspended']}, not {story.suspended()}")

    def _differ(self, difference: str) -> None:
        self._tally.differences.append(f"after {self._last}, at epoch {self.epoch}: {difference}")


# -- when to kill -----------------------------------------------------------------------------------------------------

#: A transaction that defines something passes the same points as an epoch.
AT_DEFINITIONS = (
    Kill("before commit", during="DROP VIEW"),
    Kill("after commit", during="DROP VIEW"),
    Kill("before commit", during="DROP TABLE"),
    Kill("after commit", during="DROP TABLE"),
    Kill("before commit", during="CREATE TABLE"),
    Kill("after commit", during="CREATE VIEW"),
    Kill("after commit", during="REFRESH"),
)


def kill_from_outside(rng: random.Random) -> Kill:
    """At any moment: while the file is being opened, after that, or some way into the next step."""
    event = rng.choice(("opening", "recovered", "done", "done", "done"))
    return Kill(event=event, nth=rng.randint(1, 4) if event == "done" else 1, delay=rng.uniform(0.0, 0.08))


def kill_at_point(rng: random.Random, points: tuple[str, ...] = faults.POINTS) -> Kill:
    point = rng.choice(points)
    return Kill(point, rng.randint(1, 2 if point == "view filled" else 6))


def kill_at_statement(rng: random.Random) -> Kill:
    during, most = rng.choice(
        (("EPOCH", 60), ("UPDATE", 30), ("CREATE VIEW", 12), ("DROP", 5), ("REFRESH", 10), ("", 99))
    )
    return Kill(ANY_STATEMENT, rng.randint(1, most), during)


def any_kill(rng: random.Random) -> Kill:
    kinds = (kill_from_outside, kill_at_point, kill_at_statement)
    return rng.choices(kinds, (4, 4, 2))[0](rng)
