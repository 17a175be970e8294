"""Every route, as it is meant to be used."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

import headwater as hw

from .conftest import Client, serving


def test_health_and_status(client: Client) -> None:
    assert client.ask("GET", "/healthz").json["ok"] is True
    status = client.ask("GET", "/v1/status").json
    assert status["epoch"] == 1
    assert {one["name"]: one["rows"] for one in status["relations"]}["sale"] == 3
    assert status["server"]["read_only"] is False


def test_relations(client: Client) -> None:
    found = {one["name"]: one for one in client.ask("GET", "/v1/relations").json}
    assert found["total"]["key"] == ["shop"]
    assert found["bag"]["key"] == []
    one = client.ask("GET", "/v1/relations/TOTAL").json
    assert one["name"] == "total" and one["kind"] == "view" and one["state"] == "current"
    assert one["columns"][0] == {"name": "shop", "type": "STRING"} and one["key"] == ["shop"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("SELECT shop, n FROM total ORDER BY shop", "text/plain"),
        ("SELECT shop, n FROM total ORDER BY shop", "application/x-www-form-urlencoded"),
        (json.dumps({"sql": "SELECT shop, n FROM total ORDER BY shop"}), "application/json; charset=utf-8"),
    ],
)
def test_a_query_in_every_form_of_body(client: Client, body: str, kind: str) -> None:
    answer = client.ask("POST", "/v1/query", body, kind)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json" and answer.headers["headwater-rows"] == "2"
    assert answer.json == [{"shop": "north", "n": 2}, {"shop": "south", "n": 1}]


@pytest.mark.parametrize("asked", ["parameter", "header"])
def test_an_answer_in_every_form(client: Client, db: hw.Database, asked: str) -> None:
    sql = "SELECT shop, euros FROM total ORDER BY shop"

    def ask(form: str, accept: str) -> bytes:
        if asked == "parameter":
            return client.ask("POST", f"/v1/query?format={form}", sql).body
        return client.ask("POST", "/v1/query", sql, Accept=accept).body

    assert ask("csv", "text/csv").decode() == "shop,euros\nnorth,11.50\nsouth,2.25\n"
    lines = ask("jsonl", "application/x-ndjson;q=0.9, text/html;q=0.1").decode().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"shop": "north", "euros": "11.50"},
        {"shop": "south", "euros": "2.25"},
    ]
    with ipc.open_stream(ask("arrow", "application/vnd.apache.arrow.stream")) as reader:
        assert reader.read_all().equals(db.query(sql))


@pytest.mark.parametrize(
    "sql", ["SHOW RELATIONS", "DESCRIBE total", "EXPLAIN total", "WITH a AS (SELECT 1 AS x) SELECT * FROM a"]
)
def test_queries_of_other_kinds(client: Client, sql: str) -> None:
    assert client.query(sql)


def test_statements(client: Client) -> None:
    answer = client.ask(
        "POST", "/v1/sql", "INSERT INTO bag VALUES (1), (2); SELECT * FROM bag ORDER BY x; EXPLAIN cheap"
    )
    inserted, selected, explained = answer.json
    assert inserted == {"statement": "INSERT", "message": "inserted 2 rows in bag", "epoch": 2}
    assert selected["rows"] == [{"x": 1}, {"x": 2}]
    assert "cheap" in explained["text"]


def test_a_failing_statement_leaves_those_before_it_done(client: Client) -> None:
    answer = client.ask("POST", "/v1/sql", "INSERT INTO bag VALUES (1);\nINSERT INTO bag VALUES ('x')")
    assert answer.status == 400
    assert answer.json["line"] == 2 and answer.json["excerpt"] == "INSERT INTO bag VALUES ('x')"
    assert client.query("SELECT * FROM bag") == [{"x": 1}]


def test_rows_by_key(client: Client) -> None:
    assert client.ask("GET", "/v1/relations/sale/rows/2").json == {"id": 2, "shop": "south", "euros": "2.25"}
    assert client.ask("GET", "/v1/relations/total/rows/north").json == {"shop": "north", "euros": "11.50", "n": 2}
    assert client.ask("GET", "/v1/relations/total/rows?shop=north").json["n"] == 2
    assert client.ask("GET", "/v1/relations/total/rows/east").code == "HW491"


@pytest.mark.parametrize("shop", ["a/b c?d&e=f%", "", "Zürich", "'; DROP TABLE sale; --", "\\", '"`'])
def test_keys_may_be_any_text(client: Client, shop: str) -> None:
    from urllib.parse import quote

    assert client.ask("POST", "/v1/relations/sale/rows", {"id": 9, "shop": shop, "euros": 1}).status == 200
    assert client.ask("GET", f"/v1/relations/total/rows/{quote(shop, safe='')}").json["shop"] == shop
    assert client.ask("GET", f"/v1/relations/total/rows?shop={quote(shop, safe='')}").json["shop"] == shop


def test_put_replaces_a_row_and_delete_takes_it_away(client: Client) -> None:
    path = "/v1/relations/sale/rows/2"
    assert client.ask("PUT", path, {"shop": "south", "euros": "3.50"}).json == {"epoch": 2, "changes": 2}
    assert client.ask("GET", path).json["euros"] == "3.50"
    assert client.ask("PUT", path, {"ID": 2, "shop": "east"}).json["epoch"] == 3  # what is left out is NULL
    assert client.ask("GET", path).json == {"id": 2, "shop": "east", "euros": None}
    assert client.ask("DELETE", path).json == {"epoch": 4, "changes": 1}
    assert client.ask("GET", path).status == 404
    again = client.ask("DELETE", path)
    assert (again.status, again.code) == (404, "HW306")
    assert client.query("SELECT shop, n FROM total") == [{"shop": "north", "n": 2}]


def test_a_key_of_several_columns(client: Client) -> None:
    path = "/v1/relations/stock/rows?shop=north&item=7"
    assert client.ask("PUT", path, {"n": 9007199254740993}).status == 200
    assert client.ask("GET", "/v1/relations/stock/rows?ITEM=7&shop=north").body == (
        b'{"shop": "north", "item": 7, "n": 9007199254740993}\n'
    )
    assert client.ask("DELETE", path).status == 200
    assert client.ask("GET", path).status == 404


def test_a_table_that_is_all_key(client: Client) -> None:
    client.ask("POST", "/v1/sql", "CREATE TABLE seen (id INT PRIMARY KEY)")
    assert client.ask("PUT", "/v1/relations/seen/rows/5", {}).status == 200
    assert client.ask("PUT", "/v1/relations/seen/rows/5", {"id": 5}).status == 200
    assert client.ask("PUT", "/v1/relations/seen/rows/5", {"x": 5}).code == "HW322"
    assert client.query("SELECT * FROM seen") == [{"id": 5}]


def test_a_keyed_stream(client: Client) -> None:
    assert client.ask("PUT", "/v1/relations/room/rows/a", {"degrees": 20}).json["epoch"] == 2
    client.ask("POST", "/v1/relations/room/rows", [{"id": "a", "degrees": 21}, {"id": "b", "degrees": 5}])
    assert client.ask("GET", "/v1/relations/room/rows/a").json == {"id": "a", "degrees": 21}
    client.ask("DELETE", "/v1/relations/room/rows/a")
    assert client.query("SELECT * FROM room") == [{"id": "b", "degrees": 5}]


def arrow(**columns: list[object]) -> bytes:
    table = pa.table(columns)
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("body", "kind", "format"),
    [
        (b'[{"page": "a", "ms": 1.5}, {"page": "b"}]', "application/json", None),
        (b'\n{"page": "a", "ms": 1.5}\n{"ms": null, "page": "b"}\n', "application/x-ndjson", None),
        (b"page,ms\na,1.5\nb,\n", "text/csv; charset=utf-8", None),
        (b"page,ms\na,1.5\nb,\n", "application/x-www-form-urlencoded", "csv"),
        (arrow(ms=[1.5, None], page=["a", "b"]), "application/vnd.apache.arrow.stream", None),
    ],
)
def test_rows_in_every_form(client: Client, body: bytes, kind: str, format: str | None) -> None:
    path = "/v1/relations/click/rows" + (f"?format={format}" if format else "")
    answer = client.ask("POST", path, body, kind)
    assert answer.json == {"epoch": 2, "changes": 2}
    assert client.query("SELECT * FROM click ORDER BY page") == [{"page": "a", "ms": 1.5}, {"page": "b", "ms": None}]


def test_one_row_is_as_good_as_a_list_of_it(client: Client) -> None:
    assert client.ask("POST", "/v1/relations/bag/rows", {"x": 5}).json == {"epoch": 2, "changes": 1}


def test_values_come_back_as_they_were_sent(db: hw.Database) -> None:
    db.execute(
        """CREATE TABLE kinds (id INT PRIMARY KEY, b BOOLEAN, l BIGINT, d DECIMAL(38, 2), f FLOAT, x DOUBLE, s STRING,
           raw BINARY, day DATE, at TIMESTAMP, took INTERVAL DAY TO SECOND, list ARRAY<INT>, m MAP<STRING, INT>,
           pair STRUCT<a: INT, b: STRING>)"""
    )
    row = {
        "id": 1,
        "b": True,
        "l": 9223372036854775807,
        "d": "123456789012345678901234567890123456.78",
        "f": 0.1,
        "x": "NaN",
        "s": "Zürich\n'\"\u2028",
        "raw": "AP8=",
        "day": "2026-01-31",
        "at": "2026-01-31T10:00:00.000500Z",
        "took": "INTERVAL '1 02:00:00' DAY TO SECOND",
        "list": [1, None],
        "m": {"k": 1},
        "pair": {"a": 1, "b": None},
    }
    with serving(db) as client:
        assert client.ask("PUT", "/v1/relations/kinds/rows/1", row).status == 200
        read = client.ask("GET", "/v1/relations/kinds/rows/1").body
        assert json.loads(read) == row
        assert client.ask("PUT", "/v1/relations/kinds/rows/1", read, "application/json").status == 200
        assert client.ask("GET", "/v1/relations/kinds/rows/1").body == read
    assert db.query("SELECT raw FROM kinds").to_pylist() == [{"raw": b"\x00\xff"}]


def test_infinite_values(client: Client) -> None:
    client.ask("POST", "/v1/relations/click/rows", [{"page": "a", "ms": "-Infinity"}, {"page": "b", "ms": "Infinity"}])
    assert [row["ms"] for row in client.query("SELECT ms FROM click ORDER BY page")] == ["-Infinity", "Infinity"]


def test_head_has_no_body(client: Client) -> None:
    answer = client.ask("HEAD", "/v1/relations")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["content-length"]) > 10
    assert client.ask("HEAD", "/v1/relations/total/changes").status == 200


def test_several_requests_on_one_connection(client: Client) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    for number in range(5):
        connection.request("POST", "/v1/query", f"SELECT {number} AS n")
        assert json.loads(connection.getresponse().read()) == [{"n": number}]
        connection.request("GET", "/nothing")
        assert connection.getresponse().read()
    connection.close()


def test_small_answers_come_at_once(client: Client) -> None:
    """Head and body of an answer are two pieces; the second must not wait until the first is acknowledged (40 ms)."""
    import http.client
    import time

    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    took = []
    for _ in range(30):
        began = time.monotonic()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        took.append(time.monotonic() - began)
    connection.close()
    assert min(took[5:]) < 0.03
