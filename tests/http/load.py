"""A server under mixed load, with every answer checked: `python -m tests.http.load --seconds 600`, or `make load`.

Writers own some keys each and move money between them, always two rows in one epoch, so that the sum over all rows is
zero after every epoch. Readers ask for that sum, for rows and for the state of the server. Followers keep a copy of a
view, go away at any moment and come again. In the end everything must agree, and the server must not have grown.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import headwater as hw

from .conftest import Client, Events, port_of, process

SCHEMA = """
    CREATE TABLE account (id INT PRIMARY KEY, owner STRING, balance DECIMAL(12, 2));
    CREATE VIEW wealth RETAIN CHANGES 1 DAY AS
        SELECT owner, SUM(balance) AS balance, COUNT(*) AS n FROM account GROUP BY owner;
"""
KEYS = 40
OWNERS = 7


class Asker:
    """A client that keeps its connection, as a program would."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Content-Type": "application/json"}
        data = json.dumps(body) if body is not None else None
        try:
            self._connection.request(method, path, data, headers)
        except (OSError, http.client.HTTPException):  # an idle connection was ended
            self._connection.close()
            self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status == 200, (answer.status, text)
        return json.loads(text)

    def query(self, sql: str) -> Any:
        return self.ask("POST", "/v1/query", {"sql": sql})


class Load:
    """The clients of one run."""

    def __init__(self, port: int, seconds: float, seed: int) -> None:
        self._port = port
        self._end = time.monotonic() + seconds
        self._seed = seed
        self.done: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.balances: dict[int, tuple[str, Decimal]] = {}
        self.copies: list[dict[str, tuple[str, int]]] = []
        self.over = threading.Event()

    def run(self, writers: int = 3, readers: int = 3, followers: int = 2) -> None:
        changing = [self._thread(self._write, number) for number in range(writers)]
        others = [self._thread(self._read, number) for number in range(readers)]
        others += [self._thread(self._follow, number) for number in range(followers)]
        for thread in changing:
            thread.join()
        self.over.set()
        for thread in others:
            thread.join(60)
            assert not thread.is_alive(), "a client does not end"
        if self.failures:
            raise self.failures[0]

    def _thread(self, work: Callable[[int, random.Random], None], number: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(number, random.Random(f"{self._seed} {work.__name__} {number}"))
            except BaseException as error:
                self.failures.append(error)
                self._end = 0

        thread = threading.Thread(target=guarded, name=f"{work.__name__}-{number}", daemon=True)
        thread.start()
        return thread

    def _write(self, number: int, chance: random.Random) -> None:
        asker = Asker(self._port)
        own = {number * KEYS + key: (f"o{chance.randrange(OWNERS)}", Decimal("0.00")) for key in range(KEYS)}
        rows = [{"id": id_, "owner": owner, "balance": str(balance)} for id_, (owner, balance) in own.items()]
        asker.ask("POST", "/v1/relations/account/rows", rows)
        while time.monotonic() < self._end:
            match chance.randrange(3):
                case 0:  # to another owner
                    id_ = chance.choice(list(own))
                    own[id_] = (f"o{chance.randrange(OWNERS)}", own[id_][1])
                    row = {"owner": own[id_][0], "balance": str(own[id_][1])}
                    asker.ask("PUT", f"/v1/relations/account/rows/{id_}", row)
                case 1:  # a row goes and comes, if it is worth nothing
                    empty = [id_ for id_, (_, balance) in own.items() if not balance]
                    if empty:
                        id_ = chance.choice(empty)
                        asker.ask("DELETE", f"/v1/relations/account/rows/{id_}")
                        row = {"id": id_, "owner": own[id_][0], "balance": "0.00"}
                        asker.ask("POST", "/v1/relations/account/rows", row)
                case _:  # money from one to another: one statement, one epoch
                    one, other = chance.sample(list(own), 2)
                    cents = Decimal(chance.randrange(1, 10_000)) / 100
                    asker.ask(
                        "POST",
                        "/v1/sql",
                        {
                            "sql": f"UPDATE account SET balance = balance + CASE WHEN id = {one} THEN -{cents} "
                            f"ELSE {cents} END WHERE id IN ({one}, {other})"
                        },
                    )
                    own[one] = (own[one][0], own[one][1] - cents)
                    own[other] = (own[other][0], own[other][1] + cents)
                    found = asker.ask("GET", f"/v1/relations/account/rows/{other}")
                    assert found == {"id": other, "owner": own[other][0], "balance": f"{own[other][1]:.2f}"}
            self.done["writes"] += 1
        self.balances |= own

    def _read(self, number: int, chance: random.Random) -> None:
        asker = Asker(self._port)
        while not self.over.is_set():
            match chance.randrange(4):
                case 0:
                    [row] = asker.query("SELECT SUM(balance) AS s FROM wealth")
                    assert row["s"] in (None, "0.00"), row
                case 1:
                    [row] = asker.query("SELECT SUM(balance) AS s, COUNT(*) AS n FROM account")
                    assert row["s"] in (None, "0.00"), row
                case 2:
                    assert asker.ask("GET", "/v1/relations/wealth")["state"] == "current"
                case _:
                    with contextlib.suppress(AssertionError):  # perhaps nobody has an account
                        assert asker.ask("GET", "/v1/relations/wealth/rows/o1")["owner"] == "o1"
            self.done["reads"] += 1

    def _follow(self, number: int, chance: random.Random) -> None:
        client = Client(self._port)
        copy: dict[str, tuple[str, int]] = {}
        last: int | None = None
        while not self.over.is_set() or last is None or last < self._epoch(client):
            events = Events(client, "/v1/relations/wealth/changes", **({"Last-Event-ID": str(last)} if last else {}))
            leaves = time.monotonic() + chance.uniform(0.2, 2.0)
            while time.monotonic() < leaves:
                found = events.next()
                assert found is not None and found.get("event") != "error", found
                if "id" in found:
                    last = int(found["id"])
                if found.get("event") == "changes":
                    self._take(copy, json.loads(found["data"])["changes"])
            events.close()
            self.done["visits of followers"] += 1
        self.copies.append(copy)

    def _take(self, copy: dict[str, tuple[str, int]], changes: list[dict[str, Any]]) -> None:
        for change in changes:
            self.done["changes told"] += 1
            owner = change["owner"]
            if change["_op"] == "+":
                assert owner not in copy, change
            else:
                old = change if change["_op"] == "-" else change["_old"]
                assert copy.pop(owner) == (old["balance"], old["n"]), change
            if change["_op"] != "-":
                copy[owner] = (change["balance"], change["n"])

    def _epoch(self, client: Client) -> int:
        return int(client.ask("GET", "/v1/status").json["epoch"])


def resident(pid: int) -> int:
    """The memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def run(seconds: float, seed: int = 0, say: Callable[[str], None] = lambda text: None) -> tuple[Load, int, int]:
    """Load a server of its own for some seconds; returns its memory after a third of them and at the end, too."""
    with tempfile.TemporaryDirectory(prefix="hw-load-") as folder:
        with hw.connect(f"{folder}/w") as database:
            database.execute(SCHEMA)
        arguments = ("serve", f"{folder}/w", "--port", "0", "--heartbeat-seconds", "0.3")
        with process(*arguments) as (server, line):
            load = Load(port_of(line), seconds, seed)
            early: list[int] = []
            timer = threading.Timer(seconds / 3, lambda: early.append(resident(server.pid)))
            timer.start()
            load.run()
            timer.join()
            late = resident(server.pid)
            check(load, Client(port_of(line)))
            say(", ".join(f"{number:,} {what}" for what, number in load.done.items()))
            say(f"memory: {early[0] >> 20} MiB after a third of the time, {late >> 20} MiB at the end")
            server.terminate()
            assert server.wait(30) == 0
            return load, early[0], late


def check(load: Load, client: Client) -> None:
    """All that was written is there, and every copy is the view."""
    rows = client.query("SELECT id, owner, balance FROM account")
    assert {row["id"]: (row["owner"], Decimal(row["balance"])) for row in rows} == load.balances
    view = {row["owner"]: (row["balance"], row["n"]) for row in client.query("SELECT * FROM wealth")}
    expected: dict[str, list[Decimal]] = {}
    for owner, balance in load.balances.values():
        expected.setdefault(owner, []).append(balance)
    assert view == {owner: (f"{sum(them):.2f}", len(them)) for owner, them in expected.items()}
    for copy in load.copies:
        assert copy == view


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    _, before, after = run(options.seconds, options.seed, print)
    sys.exit(0 if after < before * 1.3 + (32 << 20) else "the server has grown")
