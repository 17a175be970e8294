"""Sources without files: lines from a socket, and rows that Spark makes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine.engine import Engine
from headwater.spark.intake import REJECTS
from headwater.spark.pipeline import Pipeline
from tests.spark.support import Following, bag, opened, put, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


class Speaker:
    """A server on this machine that says lines to whoever connects."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._connected = threading.Event()
        self._peers: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._server.accept()
            except OSError:
                return
            self._peers.append(peer)
            self._connected.set()

    def say(self, *lines: str) -> None:
        assert self._connected.wait(60), "nobody listens"
        self._peers[-1].sendall("".join(f"{line}\n" for line in lines).encode())

    @property
    def connections(self) -> int:
        return len(self._peers)

    def forget(self) -> None:
        """Wait for the next one who connects before saying more."""
        self._connected.clear()

    def close(self) -> None:
        for one in (*self._peers, self._server):
            one.close()


@contextmanager
def speaking() -> Iterator[Speaker]:
    speaker = Speaker()
    try:
        yield speaker
    finally:
        speaker.close()


def test_lines_from_a_socket(tmp_path: Path) -> None:
    with speaking() as speaker, opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM m (src STRING NOT NULL, loss TINYINT) FROM socket 'localhost:{speaker.port}'")
        db.execute("CREATE VIEW v AS SELECT src, count(*) AS n, sum(loss) AS loss FROM m GROUP BY src")
        bad = ["not json", '{"src": "a", "loss": "many"}', '{"loss": 1}', '{"src": "a", "loss": 200}']
        with Following(db):
            speaker.say('{"src": "a", "loss": 1}', bad[0], '{"src": "b", "loss": null}')
            wait_until(lambda: rows_of(db) == 2)
            speaker.say(*bad[1:], '{"src": "a", "loss": 2}')
            wait_until(lambda: rows_of(db) == 3)
        assert bag(db, "SELECT src, n, loss FROM v") == {("a", 2, 3): 1, ("b", 1, None): 1}
        files = (tmp_path / "w" / REJECTS / "m").iterdir()
        told = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        assert len(told) == 4
        assert {line["record"] for line in told} >= {*bad[:2]}
        assert {line["reason"].split(":")[0] for line in told} == {
            "it is no JSON",
            "loss TINYINT",
            "m.src cannot be NULL",
            "m.loss TINYINT",
        }


def test_a_view_that_needs_more_of_a_socket(tmp_path: Path) -> None:
    """Lines are read whole, so Spark stays connected when a view is made."""
    with speaking() as speaker, opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM m (src STRING, loss INT) FROM socket 'localhost:{speaker.port}'")
        db.execute("CREATE VIEW v AS SELECT src, count(*) AS n FROM m GROUP BY src")
        with Following(db) as following:
            speaker.say('{"src": "a", "loss": 1}')
            wait_until(lambda: following.is_running() and rows_of(db) == 1)
            db.execute("CREATE VIEW w AS SELECT loss FROM m")
            time.sleep(1.0)
            speaker.say('{"src": "b", "loss": 2}')
            wait_until(lambda: following.is_running() and rows_of(db) == 2)
            assert speaker.connections == 1
        assert bag(db, "SELECT loss FROM w") == {(2,): 1}


def test_a_socket_after_a_restart(tmp_path: Path) -> None:
    """Spark connects anew, and what is said from then on arrives: after a stop, and when another stream was made."""
    (tmp_path / "more").mkdir()
    with speaking() as speaker, opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM m (src STRING) FROM socket 'localhost:{speaker.port}'")
        db.execute("CREATE VIEW v AS SELECT src, count(*) AS n FROM m GROUP BY src")
        with Following(db):
            speaker.say(*['{"src": "a"}'] * 5)
            wait_until(lambda: rows_of(db) == 5)
        speaker.forget()
        with Following(db) as following:
            speaker.say('{"src": "b"}', '{"src": "c"}')
            wait_until(lambda: following.is_running() and rows_of(db) == 7)
            speaker.forget()
            db.execute(f"CREATE STREAM q (x INT) FROM json '{tmp_path / 'more'}'")
            speaker.say('{"src": "d"}')
            wait_until(lambda: following.is_running() and rows_of(db) == 8)
        assert bag(db, "SELECT src, n FROM v") == {("a", 5): 1, ("b", 1): 1, ("c", 1): 1, ("d", 1): 1}


def test_a_socket_whose_batch_was_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of that batch are lost, as is told; the pipeline goes on, and the files of the batch come again."""
    inbox = tmp_path / "in"
    put(inbox, "a.json", [{"x": 1}])
    with speaking() as speaker, opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM m (src STRING) FROM socket 'localhost:{speaker.port}'")
        db.execute(f"CREATE STREAM q (x INT) RETAIN ALL FROM json '{inbox}'")
        db.execute("CREATE VIEW v AS SELECT src, count(*) AS n FROM m GROUP BY src")
        with Following(db):
            speaker.say('{"src": "a"}')
            wait_until(lambda: rows_of(db) == 1 and bag(db, "SELECT x FROM q").total() == 1)
        speaker.forget()
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "run", lambda *args, **others: 1 / 0)
            following = Following(db)
            speaker.say('{"src": "lost"}')
            put(inbox, "b.json", [{"x": 2}])
            with pytest.raises(ZeroDivisionError):
                wait_until(lambda: not following.is_running())
        speaker.forget()
        with Following(db) as following:
            speaker.say('{"src": "b"}')
            wait_until(lambda: following.is_running() and rows_of(db) == 2)
            wait_until(lambda: following.is_running() and bag(db, "SELECT x FROM q") == {(1,): 1, (2,): 1})
        assert bag(db, "SELECT src, n FROM v") == {("a", 1): 1, ("b", 1): 1}


def rows_of(db: hw.Database) -> int:
    return sum(row["n"] for row in db.query("SELECT n FROM v").to_pylist())


def test_made_rows(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute("CREATE STREAM r (at TIMESTAMP, n BIGINT) FROM rate 50")
        db.execute("CREATE VIEW v AS SELECT count(*) AS n, sum(n) AS sum FROM r")
        with Following(db):
            wait_until(lambda: db.query("SELECT n FROM v").to_pylist()[0]["n"] >= 100)
        # Started again it goes on counting where it was.
        before = db.query("SELECT n FROM v").to_pylist()[0]["n"]
        with Following(db):
            wait_until(lambda: db.query("SELECT n FROM v").to_pylist()[0]["n"] > before)
        [held] = db.query("SELECT n, sum FROM v").to_pylist()
        assert held["sum"] == held["n"] * (held["n"] - 1) // 2


def test_once_ends_though_rows_are_made_for_ever(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        db.execute("CREATE STREAM r (at TIMESTAMP, n BIGINT) FROM rate 50")
        Pipeline(db).run(once=True)
