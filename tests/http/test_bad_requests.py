"""Every kind of bad request: the right status, an error of ours as JSON, and never a traceback."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import headwater as hw

from .conftest import Client, serving


@dataclass(frozen=True)
class Case:
    status: int
    code: str
    method: str
    path: str
    body: object = None
    kind: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


JSON = "application/json"
CASES = [
    # where nothing is
    Case(404, "HW480", "GET", "/"),
    Case(404, "HW480", "GET", "/v1"),
    Case(404, "HW480", "GET", "/v2/query"),
    Case(404, "HW480", "GET", "/v1/relations/"),
    Case(404, "HW480", "GET", "/v1/status/"),
    Case(404, "HW480", "POST", "/v1/relations/sale/rows2", "x"),
    Case(404, "HW480", "GET", "/../../etc/passwd"),
    Case(404, "HW480", "OPTIONS", "*"),
    # methods
    Case(405, "HW481", "GET", "/v1/query"),
    Case(405, "HW481", "POST", "/v1/status", "x"),
    Case(405, "HW481", "POST", "/v1/relations/sale/rows/1", "x"),
    Case(405, "HW481", "PATCH", "/v1/relations/sale/rows/1", "x"),
    Case(405, "HW481", "TRACE", "/v1/status"),
    Case(405, "HW481", "OPTIONS", "/v1/query"),
    # statements
    Case(400, "HW485", "POST", "/v1/query", b"\xff\xfe", "text/plain"),
    Case(400, "HW485", "POST", "/v1/query", b"{", JSON),
    Case(400, "HW485", "POST", "/v1/query", b"[" * 100_000, JSON),
    Case(400, "HW485", "POST", "/v1/query", b"[1]", JSON),
    Case(400, "HW485", "POST", "/v1/query", b'{"sql": 1}', JSON),
    Case(400, "HW485", "POST", "/v1/query", b'{"query": "SELECT 1"}', JSON),
    Case(400, "HW485", "POST", "/v1/query", b'{"sql": "SELECT 1", "limit": 1}', JSON),
    Case(415, "HW492", "POST", "/v1/query", "<sql/>", "application/xml"),
    Case(415, "HW492", "POST", "/v1/query", "x", "text/plain", (("Content-Encoding", "gzip"),)),
    Case(406, "HW493", "POST", "/v1/query", "SELECT 1", None, (("Accept", "text/html"),)),
    Case(406, "HW493", "POST", "/v1/query", "SELECT 1", None, (("Accept", "application/json;q=0"),)),
    Case(406, "HW493", "POST", "/v1/query?format=xml", "SELECT 1"),
    Case(400, "HW490", "POST", "/v1/query?limit=5", "SELECT 1"),
    Case(400, "HW490", "POST", "/v1/query", ""),
    Case(400, "HW490", "POST", "/v1/query", "SELECT 1; SELECT 2"),
    Case(403, "HW489", "POST", "/v1/query", "DROP TABLE bag"),
    Case(403, "HW489", "POST", "/v1/query", "INSERT INTO bag VALUES (1)"),
    Case(400, "HW001", "POST", "/v1/query", "SELECT FROM WHERE"),
    Case(400, "HW102", "POST", "/v1/query", "SELECT * FROM nowhere"),
    Case(400, "HW101", "POST", "/v1/query", "SELECT nothing FROM bag"),
    Case(403, "HW489", "POST", "/v1/sql", "COPY bag FROM '/etc/passwd' CSV"),
    Case(403, "HW489", "POST", "/v1/sql", "CREATE STREAM f (x INT) FROM json '/etc'"),
    Case(400, "HW002", "POST", "/v1/query", "SELECT " + "(" * 5000 + "1" + ")" * 5000),
    Case(400, "HW002", "POST", "/v1/query", "SELECT 1" + " + 1" * 20_000),
    Case(413, "HW484", "POST", "/v1/query", "SELECT '" + "x" * (1 << 20) + "'"),
    # relations
    Case(404, "HW102", "GET", "/v1/relations/nowhere"),
    Case(404, "HW102", "GET", "/v1/relations/nowhere/rows/1"),
    Case(404, "HW102", "PUT", "/v1/relations/nowhere/rows/1", b"{}", JSON),
    Case(404, "HW102", "DELETE", "/v1/relations/nowhere/rows/1"),
    Case(404, "HW102", "POST", "/v1/relations/nowhere/rows", b"[]", JSON),
    Case(404, "HW102", "GET", "/v1/relations/nowhere/changes"),
    Case(400, "HW490", "GET", "/v1/relations?all=1"),
    # rows
    Case(404, "HW491", "GET", "/v1/relations/sale/rows/99"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows/x"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows/99999999999999999999"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows?shop=north"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows?id=1&id=2"),
    Case(400, "HW490", "GET", "/v1/relations/sale/rows/1?id=1"),
    Case(400, "HW490", "GET", "/v1/relations/stock/rows/north"),
    Case(400, "HW490", "GET", "/v1/relations/stock/rows?shop=north"),
    Case(400, "HW490", "GET", "/v1/relations/bag/rows/1"),
    Case(415, "HW492", "PUT", "/v1/relations/sale/rows/1", "id,shop", "text/csv"),
    Case(400, "HW485", "PUT", "/v1/relations/sale/rows/1", b"[]", JSON),
    Case(400, "HW485", "PUT", "/v1/relations/sale/rows/1", b"", JSON),
    Case(400, "HW485", "PUT", "/v1/relations/sale/rows/1", b'{"id": 2}', JSON),
    Case(422, "HW322", "PUT", "/v1/relations/sale/rows/1", b'{"price": 2}', JSON),
    Case(409, "HW301", "PUT", "/v1/relations/total/rows/north", b"{}", JSON),
    Case(409, "HW303", "PUT", "/v1/relations/bag/rows/1", b"{}", JSON),
    Case(409, "HW302", "DELETE", "/v1/relations/click/rows/1"),
    Case(404, "HW306", "DELETE", "/v1/relations/sale/rows/99"),
    # batches
    Case(415, "HW492", "POST", "/v1/relations/bag/rows", "x", "application/xml"),
    Case(415, "HW492", "POST", "/v1/relations/bag/rows", "x", "text/plain"),
    Case(415, "HW492", "POST", "/v1/relations/bag/rows?format=yaml", "x", JSON),
    Case(400, "HW485", "POST", "/v1/relations/bag/rows", b"", JSON),
    Case(400, "HW485", "POST", "/v1/relations/bag/rows", b"not arrow", "application/vnd.apache.arrow.stream"),
    Case(400, "HW415", "POST", "/v1/relations/bag/rows", b"[{]", JSON),
    Case(422, "HW320", "POST", "/v1/relations/bag/rows", b"[5]", JSON),
    Case(422, "HW324", "POST", "/v1/relations/bag/rows", b'[{"x": "one"}]', JSON),
    Case(422, "HW325", "POST", "/v1/relations/bag/rows", b'[{"x": 99999999999}]', JSON),
    Case(422, "HW322", "POST", "/v1/relations/bag/rows", b'[{"y": 1}]', JSON),
    Case(422, "HW329", "POST", "/v1/relations/bag/rows", b'[{"x": 1, "x": 2}]', JSON),
    Case(422, "HW321", "POST", "/v1/relations/bag/rows", "y\n1\n", "text/csv"),
    Case(409, "HW305", "POST", "/v1/relations/sale/rows", b'[{"id": 1}]', JSON),
    Case(409, "HW301", "POST", "/v1/relations/total/rows", b"[]", JSON),
    # subscriptions
    Case(400, "HW490", "GET", "/v1/relations/total/changes?from_epoch=x"),
    Case(400, "HW490", "GET", "/v1/relations/total/changes?from_epoch=-1"),
    Case(400, "HW490", "GET", "/v1/relations/total/changes?from=1"),
    Case(400, "HW490", "GET", "/v1/relations/total/changes", None, None, (("Last-Event-ID", "x"),)),
    Case(400, "HW104", "GET", "/v1/relations/sale/changes"),
    Case(410, "HW522", "GET", "/v1/relations/cheap/changes?from_epoch=1"),
    Case(410, "HW522", "GET", "/v1/relations/cheap/changes", None, None, (("Last-Event-ID", "0"),)),
]


@pytest.fixture(scope="module")
def shared() -> object:
    from .conftest import STORY

    database = hw.connect()
    assert isinstance(database, hw.Database)
    with database:
        database.execute(STORY)
        with serving(database) as client:
            yield client, database


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.status}-{c.code}-{c.method}{c.path}"[:70])
def test_bad_requests(shared: tuple[Client, hw.Database], case: Case) -> None:
    client, database = shared
    before = database.status()["epoch"]
    headers = {name.replace("-", "_"): value for name, value in case.headers}
    answer = client.ask(case.method, case.path, case.body, case.kind, **headers)
    assert answer.headers["content-type"] == "application/json", answer.body
    told = answer.json
    assert (answer.status, told["code"]) == (case.status, case.code), told
    assert told["kind"] in ("your mistake", "not supported")
    assert told["message"]
    assert "Traceback" not in answer.body.decode() and "/tmp" not in told["message"]
    if case.status == 405:
        assert answer.headers["allow"]
    assert database.status()["epoch"] == before, "something was changed"


def test_something_that_is_not_supported(shared: tuple[Client, hw.Database]) -> None:
    answer = shared[0].ask("POST", "/v1/query", "SELECT * FROM bag TABLESAMPLE (10 PERCENT)")
    assert answer.status == 422 and answer.json["kind"] == "not supported"


def test_the_place_of_an_error(shared: tuple[Client, hw.Database]) -> None:
    told = shared[0].ask("POST", "/v1/query", "SELECT x,\n  nothing\nFROM bag").json
    assert (told["line"], told["column"], told["excerpt"]) == (2, 3, "  nothing")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\nHost: localhost\r\n\r\n",
    ],
    ids=range(8),
)
def test_what_is_no_http(shared: tuple[Client, hw.Database], data: bytes) -> None:
    answer = shared[0].raw(data)
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), answer
    assert b'"code": "HW4' in answer
    assert shared[0].query("SELECT 1 AS x") == [{"x": 1}]


def test_our_bugs_are_told_without_a_traceback(
    db: hw.Database, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise ValueError("nobody thought of this")

    monkeypatch.setattr(db, "relations", fails)
    answer = client.ask("GET", "/v1/relations")
    assert answer.status == 500
    assert answer.json["kind"] == "our bug" and answer.code == "HW990"
    assert b"Traceback" not in answer.body and b"test_bad_requests" not in answer.body
    assert "Traceback" in caplog.text  # the server's log has it
