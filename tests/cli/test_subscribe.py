"""`headwater subscribe`."""

import json
import os
import signal
import subprocess
import time

import pytest

import headwater as hw

from .conftest import command, environment

SQL = """
CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT);
CREATE STREAMED VIEW v AS SELECT g, SUM(x) AS s FROM t GROUP BY g;
CREATE VIEW w AS SELECT x FROM t;
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
UPDATE t SET x = 5 WHERE k = 1;
DELETE FROM t WHERE k = 2
"""


@pytest.fixture
def warehouse(folder):
    with hw.connect(folder / "warehouse") as db:
        db.execute(SQL)
    return folder / "warehouse"


def test_what_the_view_holds(cli, warehouse):
    done = cli("subscribe", "v", "--once")
    assert done.code == 0
    assert done.out.splitlines() == [
        "_epoch | _op | g | s | _old",
        "-------+-----+---+---+-----",
        "     3 | +   | a | 5 | NULL",
        "",
    ]


def test_for_programs(cli, warehouse):
    done = cli("subscribe", "v", "--from-epoch", "1", "--once", "--format", "json")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"_epoch": 1, "_op": "+", "g": "a", "s": 1, "_old": None},
        {"_epoch": 1, "_op": "+", "g": "b", "s": 2, "_old": None},
        {"_epoch": 2, "_op": "u", "g": "a", "s": 5, "_old": {"g": "a", "s": 1}},
        {"_epoch": 3, "_op": "-", "g": "b", "s": 2, "_old": None},
    ]
    done = cli("subscribe", "v", "--from-epoch", "1", "--once", "--format", "csv")
    assert done.out.splitlines()[0] == "_epoch,_op,g,s,_old"
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["_epoch", "1", "1", "2", "3"]


def test_until_an_epoch(cli, warehouse):
    done = cli("subscribe", "v", "--from-epoch", "1", "--until-epoch", "2", "--format", "csv")
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["_epoch", "1", "1", "2"]
    done = cli("subscribe", "w", "--until-epoch", "3", "--format", "json")
    assert done.out == '{"_epoch": 3, "_op": "+", "x": 5, "_old": null}\n'


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("w", "--from-epoch", "1"), 1, "HW522"),
        (("nobody",), 1, "HW102"),
        (("v", "--warehouse", "elsewhere"), 1, "HW460"),
        (("v", "--from-epoch", "-1"), 2, "number of an epoch"),
        (("v", "--once", "--until-epoch", "1"), 2, "not allowed"),
    ],
)
def test_mistakes(cli, warehouse, args, code, word):
    done = cli("subscribe", *args)
    assert done.code == code
    assert word in done.err
    assert done.out == ""


@pytest.fixture
def follow(folder):
    """Start `headwater subscribe` in a process of its own; it prints JSON."""
    started = []

    def start(*args):
        process = subprocess.Popen(
            command("subscribe", *args, "--format", "json"),
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read(process, changes):
    return [json.loads(process.stdout.readline()) for _ in range(changes)]


@pytest.mark.parametrize("view", ["v", "w"])
def test_beside_a_running_writer(folder, warehouse, follow, view):
    with hw.connect(warehouse) as db:
        process = follow(view)
        assert [one["_op"] for one in read(process, 1)] == ["+"]
        db.insert("t", [(7, "z", 7)])
        [change] = read(process, 1)
        assert (change["_epoch"], change["_op"]) == (4, "+")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""


def test_a_writer_that_ends(folder, warehouse, follow):
    db = hw.connect(warehouse)
    process = follow("v")
    read(process, 1)
    db.close()
    assert process.wait(20) == 1
    told = json.loads(process.stderr.read())
    assert told["code"] in ("HW408", "HW453")
    assert "from_epoch=4" in told["hint"]
    time.sleep(0)
    resumed = follow("v", "--from-epoch", "4", "--once")
    assert resumed.wait(20) == 0
    assert resumed.stdout.read() == ""


def test_others_write_through_it(folder, warehouse, follow):
    """It has the warehouse open itself, if nobody else has; whoever writes then does so through it."""
    process = follow("v")
    read(process, 1)
    with hw.connect(warehouse) as remote:
        assert isinstance(remote, hw.RemoteDatabase)
        remote.insert("t", [(8, "y", 1)])
    [change] = read(process, 1)
    assert change["g"] == "y"
