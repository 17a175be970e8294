"""The command as a process: beginning, end, and other processes beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import headwater as hw

from .conftest import Client, Events, environment, port_of, process, until


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    path = tmp_path / "w"
    with hw.connect(path) as database:
        database.execute(
            """CREATE TABLE bag (x INT PRIMARY KEY);
               CREATE VIEW big RETAIN CHANGES 1 DAY AS SELECT x FROM bag WHERE x > 10"""
        )
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_when_all_is_done(warehouse: Path, number: signal.Signals) -> None:
    with process("serve", str(warehouse), "--port", "0") as (server, line):
        client = Client(port_of(line))
        events = Events(client, "/v1/relations/big/changes")
        answers: list[int] = []
        ready = threading.Event()

        def write() -> None:
            try:
                for batch in range(1000):
                    rows = [{"x": 1000 * batch + n} for n in range(1000)]
                    answers.append(client.ask("POST", "/v1/relations/bag/rows", rows).status)
                    ready.set()
            except OSError:
                pass  # nobody listens any longer

        writer = threading.Thread(target=write)
        writer.start()
        ready.wait(20)
        server.send_signal(number)
        assert server.wait(20) == 0
        writer.join()
        assert server.stderr is not None and server.stderr.read() == ""
        while events.next() is not None:
            pass
        events.close()
    done = sum(status == 200 for status in answers)
    with hw.connect(warehouse) as database:  # whatever was answered is there; one more may be, answered by nobody
        [row] = database.query("SELECT COUNT(*) AS n FROM bag").to_pylist()
        assert row["n"] in (1000 * done, 1000 * (done + 1))


def test_other_commands_reach_the_warehouse_through_it(warehouse: Path) -> None:
    with process("serve", str(warehouse), "--port", "0") as (_, line):
        with hw.connect(warehouse) as other:
            assert isinstance(other, hw.RemoteDatabase)
            other.insert("bag", [(11,), (12,)])
        assert Client(port_of(line)).query("SELECT * FROM big ORDER BY x") == [{"x": 11}, {"x": 12}]


def test_beside_a_process_that_has_the_warehouse_open(warehouse: Path) -> None:
    holder = hw.connect(warehouse)
    with process("serve", str(warehouse), "--port", "0", "--heartbeat-seconds", "0.2") as (_, line):
        assert "through process" in line
        client = Client(port_of(line))
        holder.insert("bag", [(11,)])
        assert client.query("SELECT * FROM big") == [{"x": 11}]
        assert client.ask("POST", "/v1/relations/bag/rows", [{"x": 12}, {"x": 1}]).json == {"epoch": 2, "changes": 2}
        assert client.ask("PUT", "/v1/relations/bag/rows/12", {}).json["epoch"] == 3
        assert client.ask("DELETE", "/v1/relations/bag/rows/1").status == 200
        assert client.ask("GET", "/v1/relations/bag/rows/12").json == {"x": 12}
        assert client.ask("GET", "/v1/relations/nothing/rows/1").status == 404
        assert client.ask("POST", "/v1/relations/bag/rows", [{"x": 12}]).code == "HW305"
        assert client.ask("GET", "/v1/relations").json == holder.relations()
        assert holder.query("SELECT * FROM bag ORDER BY x").to_pylist() == [{"x": 11}, {"x": 12}]

        events = Events(client, "/v1/relations/big/changes")
        told = events.changes()
        assert sorted(change["x"] for change in told["changes"]) == [11, 12]
        holder.insert("bag", [(13,)])
        last = events.changes()["epoch"]

        # The other process closes the warehouse: the subscription says so, and everything else goes on here.
        holder.close()
        while (found := events.next()) is not None and found.get("event") != "error":
            last = int(found.get("id", last))
        events.close()
        assert found is not None and '"HW4' in found["data"]
        until(lambda: client.ask("POST", "/v1/query", "SELECT 1 AS x").status == 200)
        assert client.ask("POST", "/v1/relations/bag/rows", {"x": 14}).status == 200
        again = Events(client, "/v1/relations/big/changes", Last_Event_ID=str(last))
        assert [change["x"] for change in again.changes()["changes"]] == [14]
        again.close()
        with hw.connect(warehouse) as other:
            assert isinstance(other, hw.RemoteDatabase)  # now the server has it open


def test_a_warehouse_that_is_not_there(tmp_path: Path) -> None:
    with process("serve", str(tmp_path / "none"), "--port", "0") as (server, line):
        assert server.wait(20) == 1 and not line
        assert server.stderr is not None and "HW460" in server.stderr.read()
    assert not (tmp_path / "none").exists()


def test_without_its_libraries_it_says_what_to_install(warehouse: Path) -> None:
    hidden = "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None; "
    run = f"from headwater.cli.main import entry; sys.argv = ['headwater', 'serve', {str(warehouse)!r}]; entry()"
    done = subprocess.run(
        [sys.executable, "-c", hidden + run], capture_output=True, text=True, env=environment(), timeout=30
    )
    assert done.returncode == 1
    assert "HW497" in done.stderr and "headwater[serve]" in done.stderr
