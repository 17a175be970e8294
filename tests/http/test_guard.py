"""Who may ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.http.server import Settings, listen

from .conftest import Client, port_of, process, serving

TOKEN = "0123456789abcdef-secret"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Client]:
    database = hw.connect()
    assert isinstance(database, hw.Database)
    with database, serving(database, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(
    "given",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"],
)
def test_a_wrong_token_is_refused(guarded: Client, given: str | None) -> None:
    for method, path in (("GET", "/v1/status"), ("POST", "/v1/query"), ("GET", "/nowhere")):
        answer = guarded.ask(method, path, **({"Authorization": given} if given is not None else {}))
        assert (answer.status, answer.code) == (401, "HW482")
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_the_right_token_is_let_in(guarded: Client) -> None:
    assert guarded.ask("GET", "/v1/status", Authorization=f"Bearer {TOKEN}").status == 200
    assert guarded.ask("GET", "/v1/status", Authorization=f"bearer  {TOKEN} ").status == 200
    assert guarded.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1", "169.254.0.1"]
)
def test_a_name_that_leads_here_is_not_enough(client: Client, host: str) -> None:
    answer = client.ask("GET", "/v1/status", Host=host)
    assert (answer.status, answer.code) == (403, "HW483")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80"])
def test_names_of_this_machine(client: Client, host: str) -> None:
    assert client.ask("GET", "/v1/status", Host=host).status == 200


def test_a_page_of_another_origin_is_refused(client: Client) -> None:
    own = f"http://127.0.0.1:{client.port}"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "", "http://["):
        answer = client.ask("POST", "/v1/sql", "DROP TABLE bag", "text/plain", Origin=origin)
        assert (answer.status, answer.code) == (403, "HW483"), origin
    assert client.ask("GET", "/v1/relations/bag", Origin=own).status == 200


def test_there_are_no_headers_for_other_origins(client: Client) -> None:
    answer = client.ask("OPTIONS", "/v1/query", Access_Control_Request_Method="POST")
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_machines_need_a_token(host: str) -> None:
    with pytest.raises(hw.UserError) as raised:
        listen(Settings(host=host, port=0))
    assert raised.value.code == "HW495"


def test_a_port_that_is_taken() -> None:
    with listen(Settings(port=0)) as first:
        first.listen()
        with pytest.raises(hw.UserError) as raised:
            listen(Settings(port=first.getsockname()[1]))
    assert raised.value.code == "HW496"
    with pytest.raises(hw.UserError) as raised:
        listen(Settings(host="no.such.host.invalid", port=0, token=TOKEN))
    assert raised.value.code == "HW496"


def test_read_only(db: hw.Database) -> None:
    with serving(db, read_only=True) as client:
        assert client.query("SELECT COUNT(*) AS n FROM sale") == [{"n": 3}]
        assert client.ask("POST", "/v1/sql", "SHOW TABLES; SELECT 1").status == 200
        for method, path, body in (
            ("POST", "/v1/sql", "INSERT INTO bag VALUES (1)"),
            ("POST", "/v1/sql", "SELECT 1; DROP TABLE bag"),
            ("POST", "/v1/sql", "REFRESH total"),
            ("POST", "/v1/relations/bag/rows", {"x": 1}),
            ("PUT", "/v1/relations/sale/rows/1", {"shop": "x"}),
            ("DELETE", "/v1/relations/sale/rows/1", None),
        ):
            answer = client.ask(method, path, body)
            assert (answer.status, answer.code) == (403, "HW489"), path
    assert db.status()["epoch"] == 1


def test_the_token_of_the_command(tmp_path: Path) -> None:
    hw.connect(tmp_path / "w").close()
    file = tmp_path / "token"
    serve = ("serve", str(tmp_path / "w"), "--port", "0")
    for arguments, more in (((*serve, "--token-file", str(file)), {}), (serve, {"HEADWATER_TOKEN": TOKEN})):
        file.write_text(f"{TOKEN}\n")
        with process(*arguments, **more) as (_, line):
            client = Client(port_of(line))
            assert client.ask("GET", "/v1/status").status == 401
            assert client.ask("GET", "/v1/status", Authorization=f"Bearer {TOKEN}").status == 200
    for text, code in (("short", "HW498"), ("has blanks in it and is long", "HW498")):
        file.write_text(text)
        with process(*serve, "--token-file", str(file)) as (one, line):
            assert one.wait(20) == 1 and not line
            assert one.stderr is not None and code in one.stderr.read()
    with process(*serve, "--token-file", str(tmp_path / "none")) as (one, _):
        assert one.wait(20) == 1
    with process(*serve, "--host", "0.0.0.0", HEADWATER_TOKEN="") as (one, _):
        assert one.wait(20) == 1
        assert one.stderr is not None and "HW495" in one.stderr.read()
    with process(*serve, "--host", "0.0.0.0", HEADWATER_TOKEN=TOKEN) as (one, line):
        # A name of any kind may lead to it: who asks knows the token.
        told = Client(port_of(line)).ask("GET", "/v1/status", Authorization=f"Bearer {TOKEN}", Host="shop.example")
        assert told.status == 200
