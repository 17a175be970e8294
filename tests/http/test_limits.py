"""What a client may not have: too much, too long, too many at once."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

import headwater as hw

from .conftest import Client, Events, serving, until

#: Takes minutes: the conditions are such that no shortcut is found.
ENDLESS = """SELECT COUNT(*) AS n FROM numbers AS a JOIN numbers AS b ON a.x + b.x > 0 JOIN numbers AS c
             ON a.x * b.x + c.x > 1 WHERE a.x % 7 + b.x % 5 + c.x % 3 = 100"""


@pytest.fixture
def slow(db: hw.Database) -> hw.Database:
    db.execute("CREATE TABLE numbers (x INT)")
    db.insert("numbers", pa.table({"x": pa.array(range(20_000), pa.int32())}))
    return db


def test_a_body_that_is_too_long(db: hw.Database) -> None:
    with serving(db, body_bytes=1000) as client:
        row = b'{"x": 1}\n'
        assert client.ask("POST", "/v1/relations/bag/rows", row * 100, "application/x-ndjson").status == 200
        answer = client.ask("POST", "/v1/relations/bag/rows", row * 200, "application/x-ndjson")
        assert (answer.status, answer.code) == (413, "HW484")
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(row), row) for _ in range(200))
        head = b"POST /v1/relations/bag/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        told = client.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 413") and b"HW484" in told
        # A length that is a lie costs nothing: nobody waits for a body that will be refused.
        told = client.raw(head + b"Content-Length: 99999999999999\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 413")
        assert client.query("SELECT COUNT(*) AS n FROM bag") == [{"n": 100}]


def test_a_body_that_unpacks_to_too_much(db: hw.Database) -> None:
    table = pa.table({"x": pa.array([7] * 1_000_000, pa.int32())})
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    assert len(body) < 100_000
    with serving(db, body_bytes=100_000) as client:
        answer = client.ask("POST", "/v1/relations/bag/rows", body, "application/vnd.apache.arrow.stream")
        assert (answer.status, answer.code) == (413, "HW484")


def test_a_body_that_does_not_come(db: hw.Database) -> None:
    with serving(db, body_seconds=0.5) as client:
        head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nSELECT"
        told = client.raw(head)
        assert told.startswith(b"HTTP/1.1 408") and b"HW494" in told


def test_a_head_that_does_not_come(db: hw.Database) -> None:
    with serving(db, body_seconds=0.5) as client:
        began = time.monotonic()
        for sent in (b"", b"GET /healthz HTTP/1.1\r\nHost: local"):
            told = client.raw(sent)
            assert told.startswith(b"HTTP/1.1 408") and b"HW494" in told
        # A drop now and then does not help.
        with socket.create_connection(("127.0.0.1", client.port), timeout=10) as channel:
            channel.sendall(b"GET /healthz HTTP/1.1\r\n")
            with pytest.raises(OSError):  # noqa: PT012
                for number in range(100):
                    channel.sendall(b"X-%d: 1\r\n" % number)
                    time.sleep(0.1)
        assert time.monotonic() - began < 8


def test_an_answer_that_is_too_large(slow: hw.Database) -> None:
    with serving(slow, result_rows=1000, result_bytes=20_000) as client:
        assert len(client.query("SELECT x FROM numbers LIMIT 1000")) == 1000
        answer = client.ask("POST", "/v1/query", "SELECT x FROM numbers LIMIT 1001")
        assert (answer.status, answer.code) == (413, "HW486")
        # The order and what is left out are as they would be without the limit.
        ordered = "SELECT x FROM numbers ORDER BY x DESC LIMIT 3 OFFSET 19990"
        assert client.query(ordered) == [{"x": 9}, {"x": 8}, {"x": 7}]
        wide = "SELECT x, repeat('a', 100) AS a FROM numbers LIMIT 300"
        for form in ("json", "csv", "arrow", "jsonl"):
            answer = client.ask("POST", f"/v1/query?format={form}", wide)
            assert (answer.status, answer.code) == (413, "HW486"), form
        assert client.ask("POST", "/v1/sql", "SELECT x FROM numbers").status == 413
        assert client.ask("POST", "/v1/sql", "INSERT INTO bag VALUES (1); SELECT x FROM numbers").status == 413


def test_a_client_that_takes_nothing_of_its_answer(slow: hw.Database) -> None:
    body = b"SELECT x, repeat('a', 1000) AS a FROM numbers"
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)

    def received(client: Client, pause: float) -> int:
        with socket.socket() as channel:
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            channel.connect(("127.0.0.1", client.port))
            channel.sendall(head + body)
            time.sleep(pause)
            total = 0
            with contextlib.suppress(ConnectionResetError):
                while piece := channel.recv(1 << 20):
                    total += len(piece)
                    time.sleep(0.01)  # a slow client is not one that takes nothing
            return total

    with serving(slow, send_seconds=1.0) as client:
        assert received(client, 0) > 20_000_000
        assert received(client, 5) < 15_000_000


def test_a_query_that_takes_too_long(slow: hw.Database) -> None:
    with serving(slow, seconds=0.5) as client:
        began = time.monotonic()
        for path in ("/v1/query", "/v1/sql"):
            answer = client.ask("POST", path, ENDLESS)
            assert (answer.status, answer.code) == (504, "HW487")
        assert time.monotonic() - began < 10
        assert idle(slow)


def idle(db: hw.Database) -> bool:
    """Whether nobody reads: DuckDB has no connection with a query under way."""
    return not [one for one in threading.enumerate() if "http-read" in one.name and _busy(one)]


def _busy(thread: threading.Thread) -> bool:
    import sys

    frame = sys._current_frames().get(thread.ident or 0)
    names = set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return "run_query" in names


def test_a_client_that_leaves_ends_its_query(slow: hw.Database) -> None:
    with serving(slow) as client:
        channel = socket.create_connection(("127.0.0.1", client.port))
        body = ENDLESS.encode()
        channel.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: not idle(slow))
        assert client.query("SELECT 1 AS x") == [{"x": 1}]  # others are answered meanwhile
        channel.close()
        until(lambda: idle(slow), 5)
        until(lambda: client.ask("GET", "/v1/status").json["server"]["requests"] == 0, 5)


def test_a_client_that_leaves_does_not_end_what_it_changes(db: hw.Database) -> None:
    with serving(db) as client:
        with db.engine.lock:  # the writer is busy
            body = b'{"x": 5}'
            with socket.create_connection(("127.0.0.1", client.port)) as channel:
                channel.sendall(
                    b"POST /v1/relations/bag/rows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body
                )
                until(lambda: db.writer.waiting[0] > 0)
        until(lambda: client.query("SELECT * FROM bag") == [{"x": 5}])


def test_a_change_that_takes_too_long_says_that_it_goes_on(db: hw.Database) -> None:
    with serving(db, seconds=1.5) as client:
        with db.engine.lock:
            answer = client.ask("POST", "/v1/relations/bag/rows", {"x": 5})
            assert (answer.status, answer.code) == (504, "HW487")
            assert "goes on" in answer.json["message"]
            # Whoever reads does not wait behind it.
            assert client.query("SELECT * FROM bag") == []
        until(lambda: client.query("SELECT * FROM bag") == [{"x": 5}])


def test_too_many_requests(slow: hw.Database) -> None:
    with serving(slow, running=1, requests=2, seconds=3.0) as client, ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(client.ask, "POST", "/v1/query", ENDLESS) for _ in range(2)]
        time.sleep(0.4)
        answer = client.ask("POST", "/v1/query", "SELECT 1")
        assert (answer.status, answer.code) == (503, "HW488")
        assert answer.headers["retry-after"] == "1"
        assert client.ask("GET", "/healthz").status == 200
        assert [one.result().code for one in asked] == ["HW487", "HW487"]
        assert client.query("SELECT 1 AS x") == [{"x": 1}]


def test_too_many_connections(db: hw.Database) -> None:
    with serving(db, connections=3) as client:
        held = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(3)]
        until(lambda: client.raw(b"").startswith(b"HTTP/1.1 503"))
        assert b"HW488" in client.raw(b"")
        for one in held:
            one.close()
        until(lambda: client.ask("GET", "/healthz").status == 200)


def test_too_many_subscriptions(db: hw.Database) -> None:
    with serving(db, subscriptions=2) as client:
        held = [Events(client, "/v1/relations/total/changes") for _ in range(2)]
        answer = client.ask("GET", "/v1/relations/total/changes")
        assert (answer.status, answer.code) == (503, "HW488")
        for one in held:
            one.close()
        until(lambda: client.ask("GET", "/v1/status").json["server"]["subscriptions"] == 0)
        again = Events(client, "/v1/relations/total/changes")
        assert again.status == 200
        again.close()


def test_many_clients_at_once(db: hw.Database) -> None:
    """Every answer is the right one, whatever happens beside it."""
    with serving(db) as client, ThreadPoolExecutor(8) as threads:

        def one(number: int) -> None:
            assert client.ask("POST", "/v1/relations/bag/rows", {"x": number}).status == 200
            assert client.query(f"SELECT x FROM bag WHERE x = {number}") == [{"x": number}]

        list(threads.map(one, range(100)))
        assert client.query("SELECT COUNT(*) AS n, SUM(x) AS s FROM bag") == [{"n": 100, "s": 4950}]


def test_a_budget_reaches_the_other_process(slow: hw.Database, tmp_path: Path) -> None:
    """The same limits where the warehouse is open elsewhere: here in another connection through its socket."""
    with hw.connect(tmp_path / "w") as holder:
        assert isinstance(holder, hw.Database)
        holder.execute("CREATE TABLE numbers (x INT)")
        holder.insert("numbers", pa.table({"x": pa.array(range(20_000), pa.int32())}))
        with serving(lambda: hw.RemoteDatabase(tmp_path / "w"), seconds=4, result_rows=100) as client:
            assert client.ask("POST", "/v1/query", "SELECT x FROM numbers").code == "HW486"
            answer = client.ask("POST", "/v1/query", ENDLESS)
            assert (answer.status, answer.code) == (504, "HW487")
            until(lambda: not _reading_for_others(), 5)
            body = ENDLESS.encode()
            with socket.create_connection(("127.0.0.1", client.port)) as channel:
                head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
                channel.sendall(head + body)
                until(_reading_for_others)
            until(lambda: not _reading_for_others(), 1.5)  # long before its time is up
            assert json.loads(client.ask("POST", "/v1/query", "SELECT COUNT(*) AS n FROM numbers").body) == [
                {"n": 20_000}
            ]


def _reading_for_others() -> bool:
    return any(_busy(one) for one in threading.enumerate() if one.name == "headwater-client")
