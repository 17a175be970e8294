"""A warehouse that one process has open, used by others through its socket."""

import contextlib
import dataclasses
import gc
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import textwrap
import threading
import time
from decimal import Decimal

import pyarrow as pa
import pytest

import headwater as hw
from headwater.errors import Source, Span, UserError
from headwater.serve import wire
from headwater.serve.remote import RemoteDatabase
from headwater.serve.socket import POINTER_FILE, SOCKET_FILE, Server, find_socket
from headwater.serve.wire import Message


@pytest.fixture
def folder(tmp_path_factory):
    # Short, because the path of a socket may have a hundred bytes only.
    return tmp_path_factory.mktemp("w")


@pytest.fixture
def database(folder):
    with hw.connect(folder) as database:
        database.execute(
            """
            CREATE TABLE orders (id INT PRIMARY KEY, customer STRING NOT NULL, amount DECIMAL(10,2));
            CREATE VIEW revenue AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer
            """
        )
        yield database


@pytest.fixture
def remote(database, folder):
    with hw.connect(folder) as remote:
        assert isinstance(remote, RemoteDatabase)
        yield remote


def rows(table: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


ORDERS = [
    {"id": 1, "customer": "anna", "amount": Decimal("10.50")},
    {"id": 2, "customer": "bert", "amount": None},
    {"id": 3, "customer": "anna", "amount": Decimal("0.25")},
]


# -- the same as a local database ---


def test_what_one_side_inserts_the_other_sees(database, remote):
    remote.insert("orders", ORDERS)
    assert rows(database.query("SELECT * FROM revenue")) == [("anna", Decimal("10.75")), ("bert", None)]
    database.execute("DELETE FROM orders WHERE id = 1")
    assert rows(remote.query("SELECT * FROM revenue")) == [("anna", Decimal("0.25")), ("bert", None)]


def test_results_arrive_as_they_are(database, remote):
    remote.insert("orders", ORDERS)
    text = "SELECT * FROM orders WHERE id = 1; INSERT INTO orders VALUES (9, 'z', 1); EXPLAIN revenue"
    select, insert, explain = remote.execute(text)
    assert select.table.equals(database.query("SELECT * FROM orders WHERE id = 1"))
    assert explain.text == str(database.explain("revenue"))
    assert (insert.statement, insert.table, insert.text) == ("INSERT", None, None)
    assert insert.epoch == database.status()["epoch"]
    assert insert.seconds > 0
    assert all(isinstance(result, hw.Result) for result in (select, explain, insert))


def test_every_method_answers_as_the_local_one(database, remote):
    database.insert("orders", ORDERS)
    assert remote.status() == database.status()
    assert remote.relations() == database.relations()
    assert str(remote.explain("revenue")) == str(database.explain("revenue"))
    assert str(remote.explain("revenue", "tree")) == str(database.explain("revenue", "tree"))
    assert remote.explain("revenue").to_dict() == json.loads(json.dumps(database.explain("revenue").to_dict()))


def test_an_epoch_over_several_operations(database, remote):
    remote.insert("orders", ORDERS)
    before = database.status()["epoch"]
    with remote.epoch() as epoch:
        epoch.delete_keys("orders", [1])
        epoch.upsert("orders", [(2, "bert", Decimal("5.00"))])
        epoch.insert("orders", [(4, "cleo", Decimal("7.00"))])
        epoch.delete("orders", [ORDERS[2]])
    assert epoch.committed.number == before + 1 == database.status()["epoch"]
    assert rows(database.query("SELECT * FROM revenue")) == [("bert", Decimal("5.00")), ("cleo", Decimal("7.00"))]


def test_an_exception_inside_an_epoch_drops_it(database, remote):
    with contextlib.suppress(ZeroDivisionError), remote.epoch() as epoch:
        epoch.insert("orders", ORDERS)
        _ = 1 / 0
    assert epoch.committed is None
    assert database.query("SELECT * FROM orders").num_rows == 0


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: pa.Table.from_pylist(ORDERS), id="arrow"),
        pytest.param(lambda: pytest.importorskip("polars").DataFrame(ORDERS), id="polars"),
        pytest.param(lambda: pytest.importorskip("pandas").DataFrame(ORDERS), id="pandas"),
        pytest.param(lambda: [tuple(row.values()) for row in ORDERS], id="tuples"),
    ],
)
def test_rows_of_every_form(database, remote, make):
    epoch = remote.insert("orders", make())
    assert epoch.changes == {"orders": 3}
    assert rows(database.query("SELECT id, amount FROM orders"))[0] == (1, Decimal("10.50"))


def test_an_epoch_arrives_as_an_epoch(database, remote):
    seen = []
    database.observe(lambda number, _: seen.append(number))
    epoch = remote.insert("orders", ORDERS)
    assert isinstance(epoch, hw.Epoch)
    assert [epoch.number] == seen


# -- errors ---


@pytest.mark.parametrize(
    "attempt",
    [
        lambda db: db.execute("SELECT 1;\nSELECT nope FROM orders", name="shop.sql"),
        lambda db: db.execute("SELEKT 1"),
        lambda db: db.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS one"),
        lambda db: db.query("SELECT * FROM nowhere"),
        lambda db: db.explain("nowhere"),
        lambda db: db.insert("nowhere", []),
        lambda db: db.insert("revenue", [("anna", Decimal("1.00"))]),
        lambda db: db.insert("ORDERS", [(1, "anna", 1.5)]),
        lambda db: db.insert("orders", [(1, None, None)]),
        lambda db: db.insert("orders", [(1, "a", None), (1, "b", None)]),
    ],
)
def test_an_error_is_the_same_as_without_the_socket(database, remote, attempt):
    caught = []
    for one in (database, remote):
        with pytest.raises(hw.HeadwaterError) as error:
            attempt(one)
        caught.append(error.value)
    local, distant = caught
    assert type(distant) is type(local)
    assert str(distant) == str(local)
    assert distant.to_dict() == local.to_dict()


def test_an_error_goes_into_data_and_back():
    error = hw.NotSupported("HW203", "no MEDIAN", span=Span(7, 13), source=Source("SELECT MEDIAN(x) ü", "f"), hint="h")
    again = wire.load_error(json.loads(json.dumps(wire.dump_error(error))))
    assert isinstance(again, hw.NotSupported)
    assert (str(again), again.span, again.source) == (str(error), error.span, error.source)


class Special(hw.NotSupported):
    pass


def test_an_error_class_this_side_does_not_know_becomes_its_nearest_base():
    data = wire.dump_error(Special("HW299", "special"))
    assert type(wire.load_error(data)) is Special
    data["class"][0] = "FromTheFuture"
    assert type(wire.load_error(data)) is hw.NotSupported


def test_a_bug_on_the_other_side_is_told_as_a_bug(database, remote, monkeypatch):
    monkeypatch.setattr(database, "status", lambda: 1 / 0)
    with pytest.raises(hw.InternalError, match="ZeroDivisionError") as caught:
        remote.status()
    assert caught.value.code == "HW990"
    assert any("Traceback" in note for note in caught.value.__notes__)
    assert remote.query("SELECT 1 AS one").num_rows == 1  # and the connection lives


def test_every_field_of_a_result_travels():
    every = hw.Result("SELECT", "message", pa.table({"a": [1]}), "text", 7, 0.5)
    [again] = wire.load_results(wire.dump_results([every]))
    assert all(getattr(again, field.name) is not None for field in dataclasses.fields(hw.Result))
    assert again == every


# -- the socket file ---


def test_only_the_owner_may_connect(database, folder):
    assert stat.S_IMODE((folder / SOCKET_FILE).stat().st_mode) == 0o600


def test_closing_removes_the_socket(folder):
    hw.connect(folder).close()
    assert not (folder / SOCKET_FILE).exists()


def test_a_database_that_everybody_has_forgotten_is_closed(folder):
    database = hw.connect(folder)
    with hw.connect(folder) as remote:
        remote.status()
        del database
        gc.collect()
        assert not (folder / SOCKET_FILE).exists()
        with hw.connect(folder) as again:
            assert isinstance(again, hw.Database)


def test_a_path_too_long_for_a_socket_has_it_elsewhere(folder):
    deep = folder / ("x" * 120)
    with hw.connect(deep):
        elsewhere = find_socket(deep)
        assert not elsewhere.is_relative_to(folder)
        assert (deep / POINTER_FILE).read_text().strip() == str(elsewhere)
        assert stat.S_IMODE(elsewhere.parent.stat().st_mode) == 0o700
        with hw.connect(deep) as remote:
            assert isinstance(remote, RemoteDatabase)
            assert remote.query("SELECT 1 AS one").num_rows == 1
    assert not elsewhere.parent.exists()
    assert not (deep / POINTER_FILE).exists()


def test_a_socket_left_by_a_killed_process_is_no_obstacle(folder):
    with holding(folder) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert (folder / SOCKET_FILE).exists()
        with hw.connect(folder) as database:
            assert isinstance(database, hw.Database)
            with hw.connect(folder) as remote:
                assert remote.relations() == database.relations()


def test_a_second_server_does_not_take_the_socket_from_a_living_one(database, folder):
    with pytest.raises(UserError) as caught:
        Server(database, folder)
    assert caught.value.code == "HW455"
    with hw.connect(folder) as remote:
        assert remote.status() == database.status()


# -- when it goes wrong ---


def unreachable(folder) -> UserError:
    with pytest.raises(UserError) as caught:
        RemoteDatabase(folder)
    assert caught.value.code == "HW450"
    return caught.value


def test_the_process_that_cannot_be_reached_is_named(folder):
    (folder / "lock").write_text(str(os.getpid()))
    error = unreachable(folder)
    assert f"process {os.getpid()} has the warehouse" in error.message
    assert "has no socket" in error.message
    assert f"process {os.getpid()}" in error.hint


def test_a_leftover_socket_is_recognised(folder):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / SOCKET_FILE))
    assert "left behind" in unreachable(folder).message


def test_something_else_behind_the_socket(folder):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / SOCKET_FILE))
        other.listen()

        def answer():
            client, _ = other.accept()
            with client:
                client.recv(1000)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert "does not speak Headwater's protocol" in unreachable(folder).message
        thread.join()


def test_another_protocol_is_refused_with_both_versions(database, folder, monkeypatch):
    monkeypatch.setattr(RemoteDatabase, "_speaks", lambda self: {"protocol": 99, "version": "9.9"})
    with pytest.raises(UserError) as caught:
        RemoteDatabase(folder)
    assert caught.value.code == "HW451"
    assert "Headwater 9.9 (protocol 99)" in caught.value.message
    assert f"protocol {wire.PROTOCOL}" in caught.value.message


def test_a_request_over_the_limit_is_refused_and_the_connection_lives(database, folder):
    server = database._server
    server._max_request_bytes = 10_000
    with hw.connect(folder) as remote:
        with pytest.raises(UserError, match="10,000 bytes") as caught:
            remote.insert("orders", [(i, "x" * 100, None) for i in range(1000)])
        assert caught.value.code == "HW452"
        assert "smaller batches" in caught.value.hint
        assert remote.insert("orders", [(1, "anna", None)]).changes == {"orders": 1}


def test_the_server_refuses_what_a_client_did_not(database, folder):
    database._server._max_request_bytes = 10_000
    with hw.connect(folder) as remote:
        remote._limit = 1 << 30
        with pytest.raises(UserError) as caught:
            remote.insert("orders", [(i, "x" * 100, None) for i in range(1000)])
        assert caught.value.code == "HW452"
        assert remote.status() == database.status()
    assert database.query("SELECT * FROM orders").num_rows == 0


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">4sIQ", b"HWSK", 5, 0) + b"{{{{{",
        struct.pack(">4sIQ", b"HWSK", 2, 0) + b"[]",
        struct.pack(">4sIQ", b"HWSK", 100, 1 << 60),
        struct.pack(">4sIQ", b"HWSK", 50, 0) + b'{"op"',
    ],
)
def test_junk_harms_nobody(database, folder, junk):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / SOCKET_FILE))
        client.sendall(junk)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1000):
                pass
    with hw.connect(folder) as remote:
        assert remote.status() == database.status()


@pytest.mark.parametrize("header", [{"op": "fly"}, {}, {"op": "execute"}, {"op": "epoch", "operations": [{}]}])
def test_a_request_nobody_understands_is_an_error_not_the_end(remote, header):
    with pytest.raises(hw.HeadwaterError):
        remote._call(header)
    assert remote.query("SELECT 1 AS one").num_rows == 1


def test_the_holder_closes_while_a_client_is_connected(database, remote):
    database.close()
    with pytest.raises(UserError) as caught:
        remote.status()
    assert caught.value.code == "HW408"
    assert "not carried out" in caught.value.hint
    with pytest.raises(UserError, match="no longer answers") as caught:
        remote.status()
    assert caught.value.code == "HW450"


def test_a_closed_connection_says_so(remote):
    remote.close()
    with pytest.raises(UserError) as caught:
        remote.status()
    assert caught.value.code == "HW408"


def test_closing_lets_a_running_request_answer(database, remote, monkeypatch):
    began = threading.Event()

    def slow():
        began.set()
        time.sleep(0.3)
        return {"epoch": 1}

    monkeypatch.setattr(database, "status", slow)
    answers = []
    client = threading.Thread(target=lambda: answers.append(remote.status()))
    client.start()
    began.wait()
    database.close()
    client.join()
    assert answers == [{"epoch": 1}]


def test_giving_up_an_answer_does_not_mix_it_up_with_the_next(database, remote, monkeypatch):
    monkeypatch.setattr(database, "relations", lambda: time.sleep(0.2) or [{"name": "late"}])
    real = wire.unpack
    monkeypatch.setattr(wire, "unpack", interrupted_once(real))
    with pytest.raises(KeyboardInterrupt):
        remote.relations()
    assert remote.status() == database.status()


def interrupted_once(real):
    """Ctrl-C at the first answer the client waits for."""
    done = []

    def unpack(read, limit=None):
        if limit is None and not done:
            done.append(True)
            raise KeyboardInterrupt
        return real(read, limit)

    return unpack


def test_many_clients_at_once(database, folder):
    def work(start: int) -> None:
        with hw.connect(folder) as remote:
            for i in range(start, start + 10):
                remote.insert("orders", [(i, f"c{i % 3}", Decimal("1.00"))])

    threads = [threading.Thread(target=work, args=(n * 10,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [(total,)] = rows(database.query("SELECT sum(total) AS total FROM revenue"))
    assert total == Decimal("80.00")


def test_large_tables_both_ways(database, remote):
    database.execute("CREATE TABLE numbers (n BIGINT)")
    many = pa.table({"n": range(300_000)})
    assert remote.insert("numbers", many).changes == {"numbers": 300_000}
    assert remote.query("SELECT n FROM numbers ORDER BY n").column("n").to_pylist() == list(range(300_000))


def test_frames_survive_any_cut_into_pieces():
    message = Message({"op": "é", "n": 1}, (pa.table({"a": [1, None]}), pa.table({"b": ["x"]})))
    data = b"".join(bytes(piece) for piece in wire.pack(message))
    position = 0

    def one_byte_at_a_time(_: int) -> bytes:
        nonlocal position
        position += 1
        return data[position - 1 : position]

    again = wire.unpack(one_byte_at_a_time)
    assert again.header == {"op": "é", "n": 1}
    assert all(a.equals(b) for a, b in zip(again.tables, message.tables, strict=True))
    with pytest.raises(wire.ClosedError):
        wire.unpack(one_byte_at_a_time)


# -- two processes ---


@contextlib.contextmanager
def holding(folder):
    """A process that has the warehouse open."""
    script = """
        import sys, headwater as hw
        with hw.connect(sys.argv[1]) as db:
            db.execute("CREATE TABLE IF NOT EXISTS t (n INT)")
            print("open", flush=True)
            sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def test_a_warehouse_of_another_process(folder):
    with holding(folder) as process, hw.connect(folder) as remote:
        assert isinstance(remote, RemoteDatabase)
        assert remote.pid == process.pid
        remote.insert("t", [{"n": 1}])
        assert remote.query("SELECT * FROM t").to_pylist() == [{"n": 1}]
    with hw.connect(folder) as database:
        assert isinstance(database, hw.Database)
        assert database.query("SELECT * FROM t").to_pylist() == [{"n": 1}]


def test_a_process_killed_in_the_middle(folder):
    with holding(folder) as process, hw.connect(folder) as remote:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with pytest.raises(UserError) as caught:
            remote.execute("INSERT INTO t VALUES (1)")
        assert caught.value.code == "HW453"
        assert str(process.pid) in caught.value.message


def test_a_script_that_forgets_to_close_leaves_nothing_behind(folder):
    script = (
        "import sys, headwater as hw; db = hw.connect(sys.argv[1]); r = hw.connect(sys.argv[1]); r.status(); sys.x = db"
    )
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / SOCKET_FILE).exists()
