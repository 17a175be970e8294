"""A disk without room: a statement that cannot be written leaves everything as it was, and the warehouse goes on.

A limit on the size of files stands in for the disk: the write fails in the same place.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from tests.faults.harness import Event, Nursery
from tests.faults.process import Job

STATE = ("epoch", "towns", "counted", "relations")


def tell_story(nursery: Nursery, folder: Path, action: str, where: str) -> dict[str, Event]:
    events = {
        one["event"]: one for one in nursery.start(Job(str(folder), scenario="full disk", during=action, point=where))
    }
    assert "failed" not in events, events["failed"]["error"]
    assert events["ended"]["code"] == -signal.SIGKILL
    return events


def state(event: Event) -> dict[str, Any]:
    return {key: event[key] for key in STATE}


@pytest.mark.parametrize("action", ["insert", "insert together", "delete", "create"])
def test_a_log_that_cannot_grow(nursery: Nursery, folder: Path, action: str) -> None:
    events = tell_story(nursery, folder, action, "log")
    assert state(events["full"]) == state(events["before"]), "nothing changed, and it can be read"
    assert events["room"]["code"] == "", events["room"]["message"]
    assert state(events["room"]) != state(events["before"])
    assert events["room"]["towns"] == events["room"]["counted"]
    with hw.connect(folder) as db:
        assert db.status()["epoch"] == events["full again"]["epoch"] == events["room"]["epoch"]
    assert events["full"]["code"] == "HW406", events["full"]["message"]


@pytest.mark.parametrize("action", ["insert", "insert together", "delete", "create"])
def test_a_file_that_cannot_grow(nursery: Nursery, folder: Path, action: str) -> None:
    """The log takes the change, and then fails to be written into the file: is it there or not?"""
    events = tell_story(nursery, folder, action, "file")
    happened = state(events["full"]) != state(events["before"])
    assert events["full"]["towns"].get("town 1", 0) in (0, 100, 200), "rows came twice"
    assert events["full"]["epoch"] <= events["before"]["epoch"] + 1
    assert events["room"]["code"] == "", events["room"]["message"]
    assert events["room"]["towns"] == events["room"]["counted"]
    with hw.connect(folder) as db:
        assert db.status()["epoch"] == events["full again"]["epoch"] == events["room"]["epoch"]
    # Whoever is told of a failure tries again: what is there must not be called failed.
    assert events["full"]["code"] == ("" if happened else "HW406"), events["full"]["message"]


def test_a_consolidation_that_finds_no_room(nursery: Nursery, folder: Path) -> None:
    events = tell_story(nursery, folder, "consolidate", "file")
    assert state(events["full"]) == state(events["before"])
    assert events["room"]["code"] == "", events["room"]["message"]
