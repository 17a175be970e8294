"""Subscriptions of other processes, through the socket of the one that has the warehouse open."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import headwater as hw
from headwater.serve.remote import RemoteDatabase

SQL = """
CREATE TABLE orders (id INT PRIMARY KEY, customer STRING, amount INT);
CREATE STREAMED VIEW revenue AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
CREATE VIEW amounts AS SELECT amount FROM orders
"""


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("w")


@pytest.fixture
def database(folder):
    with hw.connect(folder) as database:
        database.execute(SQL)
        yield database


@pytest.fixture
def remote(database, folder):
    with hw.connect(folder) as remote:
        assert isinstance(remote, RemoteDatabase)
        yield remote


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.mark.parametrize("view", ["revenue", "amounts"])
def test_the_same_as_without_the_socket(database, remote, view):
    database.insert("orders", [(1, "anna", 10), (2, None, 5)])
    pairs = [(database.subscribe(view), remote.subscribe(view))]
    pairs.append((database.subscribe(view, from_epoch=2), remote.subscribe(view, from_epoch=2)))
    database.execute("UPDATE orders SET amount = 11 WHERE id = 1")
    remote.execute("DELETE FROM orders WHERE id = 2")
    for local, through in pairs:
        assert (local.view, local.epoch, local.schema) == (through.view, through.epoch, through.schema)
        while (table := local.poll()) is not None:
            there = through.poll()
            assert there.equals(table)
            assert local.epoch == through.epoch
        assert through.poll() is None
        assert local.epoch == through.epoch == 3
        through.close()


def test_change_by_change(database, remote):
    database.insert("orders", [(1, "anna", 10), (2, "bert", 5)])
    subscription = remote.subscribe("revenue", timeout=0)
    assert next(subscription) == {"_epoch": 1, "_op": "+", "customer": "anna", "total": 10, "_old": None}
    assert subscription.epoch == 0
    assert [one["customer"] for one in subscription] == ["bert"]
    assert subscription.epoch == 1
    database.execute("UPDATE orders SET amount = 9 WHERE id = 1")
    assert next(subscription)["_old"] == {"customer": "anna", "total": 10}


def test_waiting_does_not_keep_others_from_asking(database, remote):
    subscription = remote.subscribe("revenue")
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(subscription))
    thread.start()
    for n in range(5):
        remote.insert("orders", [(n, "anna", n)])
        assert remote.status()["epoch"] == n + 1
    until(lambda: len(seen) == 5)
    subscription.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [one["total"] for one in seen] == [0, 1, 3, 6, 10]
    until(lambda: not database.engine.hub._feeds)


def test_errors_come_through(database, remote):
    for view, epoch, code in (("orders", None, "HW104"), ("amounts", 0, "HW522"), ("revenue", -1, "HW525")):
        with pytest.raises(hw.UserError) as caught:
            remote.subscribe(view, epoch)
        assert caught.value.code == code
    slow = remote.subscribe("amounts", buffer_rows=1)
    dropped = remote.subscribe("revenue")
    for n in range(3):
        database.insert("orders", [(n, "anna", n)])
    database.execute("DROP VIEW revenue")
    for subscription, code in ((slow, "HW521"), (dropped, "HW523")):
        with pytest.raises(hw.UserError) as caught:
            subscription.poll()
        assert caught.value.code == code


@pytest.mark.parametrize("waiting", [False, True])
def test_a_server_that_closes_ends_it_with_an_error(folder, waiting):
    database = hw.connect(folder)
    database.execute(SQL)
    remote = hw.connect(folder)
    database.insert("orders", [(1, "anna", 1)])
    subscription = remote.subscribe("revenue")
    subscription.poll()
    found = []

    def wait():
        try:
            subscription.poll(None if waiting else 0)
        except hw.UserError as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    if waiting:
        thread.start()
        time.sleep(0.1)
    began = time.monotonic()
    database.close()
    assert time.monotonic() - began < 4
    if not waiting:
        thread.start()
    thread.join(10)
    [error] = found
    assert error.code in ("HW408", "HW453")
    assert "from_epoch=2" in error.hint
    with pytest.raises(hw.UserError):
        subscription.poll()
    remote.close()


CHILD = """
import sys, time
import headwater as hw
remote = hw.connect(sys.argv[1])
subscription = remote.subscribe("amounts")
print("ready", flush=True)
subscription.poll(None)
"""


def test_a_client_that_goes_away_frees_it(database, folder):
    source = str(Path(hw.__file__).parents[1])
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert child.stdout.readline() == b"ready\n"
    assert database.engine.hub.wanted == {"amounts"}
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    until(lambda: not database.engine.hub.wanted)


def test_a_forgotten_database_is_not_kept_alive_by_its_subscribers(folder):
    database = hw.connect(folder)
    database.execute(SQL)
    remote = hw.connect(folder)
    subscription = remote.subscribe("revenue")
    del database
    with pytest.raises(hw.UserError):
        subscription.poll(5)
    remote.close()
    hw.connect(folder).close()


def test_a_local_subscription_keeps_its_database(folder):
    database = hw.connect(folder)
    database.execute(SQL)
    database.insert("orders", [(1, "anna", 1)])
    subscription = database.subscribe("revenue", from_epoch=1)
    del database
    assert subscription.poll().num_rows == 1
    subscription.close()
