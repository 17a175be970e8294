"""Subscriptions over HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pyarrow as pa

import headwater as hw

from .conftest import Client, Events, serving, until


def apply(state: dict[str, tuple[object, ...]], change: dict[str, Any]) -> None:
    """One change of `total`; it takes back exactly what was there."""
    row = (change["euros"], change["n"])
    shop = change["shop"]
    if change["_op"] == "+":
        assert shop not in state
        state[shop] = row
    elif change["_op"] == "u":
        assert state[shop] == (change["_old"]["euros"], change["_old"]["n"])
        state[shop] = row
    else:
        assert state.pop(shop) == row


def test_what_there_is_and_then_every_change(client: Client) -> None:
    events = Events(client, "/v1/relations/total/changes")
    assert events.answer.headers["Content-Type"].startswith("text/event-stream")
    state: dict[str, tuple[object, ...]] = {}
    first = events.changes()
    assert first["epoch"] == 1
    for change in first["changes"]:
        apply(state, change)
    assert state == {"north": ("11.50", 2), "south": ("2.25", 1)}
    client.ask("PUT", "/v1/relations/sale/rows/1", {"shop": "north", "euros": 2})
    client.ask("DELETE", "/v1/relations/sale/rows/2")
    for epoch in (2, 3):
        told = events.changes()
        assert told["epoch"] == epoch
        for change in told["changes"]:
            apply(state, change)
    assert state == {"north": ("12.00", 2)}
    events.close()


def test_whoever_comes_again_goes_on_where_it_was(client: Client) -> None:
    """Cut off again and again at any place, a follower has the view as it is in the end, each epoch once."""
    state: dict[str, tuple[object, ...]] = {}
    last: str | None = None
    seen: list[int] = []
    for number in range(20):
        client.ask("POST", "/v1/relations/sale/rows", [{"id": 100 + number, "shop": f"s{number % 4}", "euros": 1}])
        if number % 3:
            continue
        events = Events(client, "/v1/relations/total/changes", **({"Last-Event-ID": last} if last else {}))
        for _ in range(1 if number % 2 else 2):
            if seen and seen[-1] == 2 + number:
                break
            told = events.changes()
            seen.append(told["epoch"])
            last = str(told["epoch"])
            for change in told["changes"]:
                apply(state, change)
        events.close()
    events = Events(client, "/v1/relations/total/changes", Last_Event_ID=str(last))
    while seen[-1] < 21:
        told = events.changes()
        seen.append(told["epoch"])
        for change in told["changes"]:
            apply(state, change)
    events.close()
    assert seen == sorted(set(seen))
    rows = client.query("SELECT * FROM total")
    assert state == {row["shop"]: (row["euros"], row["n"]) for row in rows}


def test_from_an_epoch(client: Client) -> None:
    client.ask("POST", "/v1/relations/sale/rows", {"id": 7, "shop": "east", "euros": 1})
    events = Events(client, "/v1/relations/total/changes?from_epoch=2")
    assert [change["shop"] for change in events.changes()["changes"]] == ["east"]
    events.close()


def test_heartbeats_carry_the_epoch(db: hw.Database) -> None:
    with serving(db, heartbeat_seconds=0.1) as client:
        events = Events(client, "/v1/relations/total/changes?from_epoch=2")
        assert events.next() == {"retry": "1000"}
        while (beat := events.next()) is not None and beat["id"] != "1":
            pass
        assert beat is not None and "" in beat  # a comment
        client.ask("POST", "/v1/relations/bag/rows", {"x": 1})  # an epoch in which the view does not change
        until(lambda: (found := events.next()) is not None and found.get("id") == "2")
        events.close()


def test_an_empty_view(db: hw.Database) -> None:
    db.execute("CREATE VIEW none AS SELECT x FROM bag WHERE x > 0")
    with serving(db, heartbeat_seconds=0.1) as client:
        events = Events(client, "/v1/relations/none/changes")
        events.next()
        beat = events.next()
        assert beat is not None and beat["id"] == "1"
        client.ask("POST", "/v1/relations/bag/rows", {"x": 5})
        assert events.changes() == {
            "epoch": 2,
            "changes": [{"_epoch": 2, "_op": "+", "x": 5, "_old": None}],
        }
        events.close()


def test_a_large_epoch_is_one_event(db: hw.Database) -> None:
    with serving(db) as client:
        events = Events(client, "/v1/relations/cheap/changes")
        events.changes()
        rows = [(number, f"line\nbreak {number}", 1) for number in range(10, 20_010)]
        db.insert("sale", rows)
        told = events.changes()
        assert len(told["changes"]) == 20_000
        assert {change["shop"] for change in told["changes"]} == {row[1] for row in rows}
        events.close()


def test_a_follower_who_leaves_is_forgotten(db: hw.Database) -> None:
    with serving(db) as client:
        followers = [Events(client, f"/v1/relations/{view}/changes") for view in ("total", "cheap") * 3]
        until(lambda: client.ask("GET", "/v1/status").json["server"]["subscriptions"] == 6)
        for one in followers:
            one.close()
        until(lambda: client.ask("GET", "/v1/status").json["server"]["subscriptions"] == 0)
        until(lambda: not _waiting_threads())


def _waiting_threads() -> bool:
    import sys

    for one in threading.enumerate():
        if "headwater-follower" in one.name:
            frame = sys._current_frames().get(one.ident or 0)
            while frame is not None:
                if frame.f_code.co_name == "poll":
                    return True
                frame = frame.f_back
    return False


def test_a_follower_who_takes_nothing_is_let_go(db: hw.Database) -> None:
    with serving(db, send_seconds=0.5) as client, socket.socket() as channel:
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        channel.connect(("127.0.0.1", client.port))
        channel.sendall(b"GET /v1/relations/cheap/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: client.ask("GET", "/v1/status").json["server"]["subscriptions"] == 1)
        for number in range(10):
            db.insert("sale", [(1000 * number + n + 10, "x" * 500, 1) for n in range(1000)])
        until(lambda: client.ask("GET", "/v1/status").json["server"]["subscriptions"] == 0, 20)


def test_a_follower_who_falls_behind_is_told(db: hw.Database) -> None:
    """The view does not keep its changes, and what waits for a follower is bounded."""
    with serving(db, buffer_rows=3000) as client:
        events = Events(client, "/v1/relations/cheap/changes")
        events.changes()
        for number in range(30):  # more than fits between here and there, and nobody reads
            db.insert("sale", [(1000 * number + n + 10, "x" * 1000, 1) for n in range(1000)])
        while (found := events.next()) is not None and found.get("event") != "error":
            pass
        assert found is not None and json.loads(found["data"])["code"] == "HW521"
        assert events.next() is None  # and that is the end
        events.close()


def test_a_view_that_is_dropped(client: Client) -> None:
    events = Events(client, "/v1/relations/cheap/changes")
    events.changes()
    assert client.ask("POST", "/v1/sql", "DROP VIEW cheap").status == 200
    while (found := events.next()) is not None and found.get("event") != "error":
        pass
    assert found is not None and json.loads(found["data"])["code"] == "HW523"
    events.close()


def test_a_server_that_stops_ends_its_subscriptions(db: hw.Database) -> None:
    with serving(db) as client:
        events = Events(client, "/v1/relations/total/changes")
        events.changes()
        began = time.monotonic()
    assert events.next() is None
    assert time.monotonic() - began < 5
    events.close()


def test_values_in_changes_are_as_in_answers(db: hw.Database) -> None:
    db.execute("CREATE TABLE raw (b BINARY, d DECIMAL(5, 2)); CREATE VIEW seen AS SELECT b, d FROM raw")
    with serving(db) as client:
        events = Events(client, "/v1/relations/seen/changes")
        db.insert("raw", pa.table({"b": [b"\x00\xff"], "d": pa.array([1], pa.decimal128(5, 2))}))
        [change] = events.changes()["changes"]
        assert (change["b"], change["d"]) == ("AP8=", "1.00")
        events.close()
