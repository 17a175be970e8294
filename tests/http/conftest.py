"""A server as its users have it: a real one on a free port, asked through sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.http.backend import Backend
from headwater.http.limits import Limits
from headwater.http.server import Server, Settings, listen

STORY = """
    CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros DECIMAL(10, 2));
    CREATE VIEW total RETAIN CHANGES 1 DAY AS SELECT shop, SUM(euros) AS euros, COUNT(*) AS n FROM sale GROUP BY shop;
    CREATE VIEW cheap AS SELECT id, shop FROM sale WHERE euros < 2;
    CREATE TABLE stock (shop STRING, item INT, n BIGINT, PRIMARY KEY (shop, item));
    CREATE STREAM room (id STRING, degrees INT) KEY (id) RETAIN ALL;
    CREATE STREAM click (page STRING, ms DOUBLE) RETAIN ALL;
    CREATE TABLE bag (x INT);
    INSERT INTO sale VALUES (1, 'north', 1.50), (2, 'south', 2.25), (3, 'north', 10)
"""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["code"])


@dataclass
class Client:
    """Asks a server; each request has a connection of its own."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str | None = None,
        timeout: float = 30.0,
        **headers: str,
    ) -> Answer:
        told = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if kind is not None:
            told["Content-Type"] = kind
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
            told.setdefault("Content-Type", "application/json")
        data = body.encode() if isinstance(body, str) else body
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, data, told)  # type: ignore[arg-type]
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def query(self, sql: str, **headers: str) -> Any:
        answer = self.ask("POST", "/v1/query", sql, "text/plain", **headers)
        assert answer.status == 200, answer.body
        return answer.json

    def raw(self, data: bytes, timeout: float = 10.0) -> bytes:
        """What comes back for bytes as they are, until the server ends the connection."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as channel:
            channel.sendall(data)
            out = b""
            while piece := channel.recv(65536):
                out += piece
            return out


class Events:
    """A subscription, event by event."""

    def __init__(self, client: Client, path: str, **headers: str) -> None:
        self._connection = http.client.HTTPConnection(client.host, client.port, timeout=20)
        told = client.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, headers=told)
        self.answer = self._connection.getresponse()
        self.status = self.answer.status

    def next(self) -> dict[str, str] | None:
        """The fields of the next event, comments among them; None at the end."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if not text:
                return fields
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
        return None

    def changes(self) -> dict[str, Any]:
        """The next event with changes; what it says is checked to be what its id says."""
        while (found := self.next()) is not None:
            assert found.get("event") != "error", found
            if found.get("event") == "changes":
                data: dict[str, Any] = json.loads(found["data"])
                assert str(data["epoch"]) == found["id"]
                return data
        raise AssertionError("the subscription has ended")

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@contextlib.contextmanager
def serving(
    database: hw.Database | Callable[[], hw.RemoteDatabase],
    *,
    token: str | None = None,
    read_only: bool = False,
    **limits: Any,
) -> Iterator[Client]:
    """A server for a database, in a thread of this process."""
    settings = Settings(port=0, token=token, read_only=read_only, limits=Limits(**limits))
    with listen(settings) as listener:
        backend = Backend((lambda: database) if isinstance(database, hw.Database) else database)
        server = Server(backend, settings, listener)
        ready = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(ready.set,), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield Client(server.address[1])
        finally:
            server.stop()
            thread.join(20)
            assert not thread.is_alive(), "the server does not stop"
            if not isinstance(database, hw.Database):
                backend.close()


@pytest.fixture
def db() -> Iterator[hw.Database]:
    database = hw.connect()
    assert isinstance(database, hw.Database)
    with database:
        database.execute(STORY)
        yield database


@pytest.fixture
def client(db: hw.Database) -> Iterator[Client]:
    with serving(db) as one:
        yield one


def environment(**more: str) -> dict[str, str]:
    source = str(Path(hw.__file__).parents[1])
    return os.environ | {"PYTHONPATH": source} | more


@contextlib.contextmanager
def process(*arguments: str, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`headwater` with some arguments as a process, and the first line it says."""
    one = subprocess.Popen(
        [sys.executable, "-m", "headwater.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )
    try:
        assert one.stdout is not None
        yield one, one.stdout.readline()
    finally:
        if one.poll() is None:
            one.kill()
        one.communicate(timeout=20)


def port_of(line: str) -> int:
    return int(line.split("; ")[0].rpartition(":")[2])


def until(condition: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
