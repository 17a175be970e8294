"""The clauses of CREATE STREAM and CREATE VIEW: what they become, and which are carried out today."""

from __future__ import annotations

import pytest

from headwater.errors import UserError
from headwater.sql import statements as st
from headwater.sql.parse import parse

HOUR = 3_600_000_000
DAY = 24 * HOUR


def stream(clauses: str) -> st.CreateStream:
    (statement,) = parse(f"CREATE STREAM m (ts TIMESTAMP, Src STRING, loss INT) {clauses}")
    assert isinstance(statement, st.CreateStream)
    return statement


def view(clauses: str, mode: str = "") -> st.CreateView:
    (statement,) = parse(f"CREATE {mode} VIEW v {clauses} AS SELECT 1")
    assert isinstance(statement, st.CreateView)
    return statement


def values(statement: st.CreateStream | st.CreateView) -> dict[str, object]:
    """Options by name; names in their values as text."""

    def plain(value: object) -> object:
        if isinstance(value, st.Name):
            return value.text
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    return {option.name: plain(option.value) for option in statement.options}


def test_all_clauses_of_a_stream_with_their_places():
    clauses = [
        "TIMESTAMP BY ts",
        "PARTITION LENGTH 60",
        "LATENESS INTERVAL 5 MINUTES",
        "RETAIN 7 DAYS",
        "FROM json '/data/m'",
        "KEY (src, loss)",
        "SEQUENCE BY ts",
    ]
    for order in (clauses, clauses[::-1]):
        statement = stream("\n".join(order))
        text = statement.source.text
        assert [text[o.span.start : o.span.end] for o in statement.options] == order
        assert values(statement) == {
            "TIMESTAMP BY": "ts",
            "PARTITION LENGTH": 60,
            "LATENESS": 300_000_000,
            "RETAIN": 7 * DAY,
            "FROM": st.Feed("json", "/data/m"),
            "KEY": ("src", "loss"),
            "SEQUENCE BY": "ts",
        }


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("7 DAYS", 7 * DAY),
        ("1 WEEK", 7 * DAY),
        ("1 day 12 hours", DAY + 12 * HOUR),
        ("0.5 HOURS", HOUR // 2),
        ("INTERVAL 90 MINUTES", HOUR * 3 // 2),
        ("INTERVAL '90' MINUTE", HOUR * 3 // 2),
        ("INTERVAL '1 hour 30 minutes'", HOUR * 3 // 2),
        ("INTERVAL 1 MILLISECOND 1 MICROSECOND", 1001),
        ("0 SECONDS", 0),
        ("ALL", "ALL"),
    ],
)
def test_lengths_of_time(text: str, microseconds: object):
    assert values(stream(f"RETAIN {text}")) == {"RETAIN": microseconds}


@pytest.mark.parametrize(
    ("text", "code", "pointed"),
    [
        ("RETAIN 3 MONTHS", "HW004", "3 MONTHS"),
        ("RETAIN 3 BOTTLES", "HW004", "3 BOTTLES"),
        ("RETAIN INTERVAL '1 2' DAY", "HW004", "INTERVAL '1 2' DAY"),
        ("RETAIN INTERVAL 'a day'", "HW001", ""),
        ("RETAIN INTERVAL '1 day or 2 days'", "HW004", "INTERVAL '1 day or 2 days'"),
        ("RETAIN 0.0000001 SECONDS", "HW004", "0.0000001 SECONDS"),
        ("RETAIN 0.5 MICROSECONDS", "HW004", "0.5 MICROSECONDS"),
        ("RETAIN 999999999999 DAYS", "HW004", "999999999999 DAYS"),
        ("RETAIN 1e3 DAYS", "HW004", "1e3 DAYS"),
        ("RETAIN -1 DAYS", "HW001", "-"),
        ("RETAIN 7", "HW001", ""),
        ("RETAIN", "HW001", ""),
        ("RETAIN 7 DAYS LATENESS 1 DAY RETAIN ALL", "HW003", "RETAIN ALL"),
        ("PARTITION LENGTH 0", "HW004", "0"),
        ("PARTITION LENGTH 1.5", "HW004", "1.5"),
        ("KEY (src, SRC)", "HW160", "SRC"),
        ("KEY (nothing)", "HW162", "nothing"),
        ("SEQUENCE BY nothing", "HW162", "nothing"),
        ("TIMESTAMP BY nothing", "HW162", "nothing"),
        ("FROM xml '/data'", "HW004", "xml"),
        ("FROM json", "HW001", ""),
        ("FROM rate 1.5", "HW004", "rate 1.5"),
        ("FROM kafka 't' (a 1, A 2)", "HW003", "A"),
        ("OP BY nothing", "HW162", "nothing"),
        ("OP BY src (UPSERT 'i', DELETE 'i')", "HW003", "'i'"),
        ("OP BY src ('i')", "HW001", "'i'"),
        ("STRICT STRICT", "HW003", "STRICT"),
    ],
)
def test_refused_clauses_of_a_stream(text: str, code: str, pointed: str):
    with pytest.raises(UserError) as caught:
        stream(text)
    error = caught.value
    assert error.code == code
    assert error.span is not None
    assert error.source is not None
    assert error.source.text[error.span.start : error.span.end] == pointed


@pytest.mark.parametrize(
    ("text", "feed"),
    [
        ("FROM csv '/d' (header true, delimiter ';')", st.Feed("csv", "/d", {"header": True, "delimiter": ";"})),
        ("FROM parquet '/d'", st.Feed("parquet", "/d")),
        ("FROM socket 'localhost:9999'", st.Feed("socket", "localhost:9999")),
        ("FROM rate 100", st.Feed("rate", "100")),
        ("FROM Kafka 'topic' (servers = 'h:9092', n 5)", st.Feed("kafka", "topic", {"servers": "h:9092", "n": 5})),
    ],
)
def test_sources(text: str, feed: st.Feed):
    assert values(stream(text)) == {"FROM": feed}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REFRESH EVERY EPOCH", {"REFRESH": "EVERY EPOCH"}),
        ("REFRESH EVERY 2 SECONDS", {"REFRESH": 2_000_000}),
        ("REFRESH EVERY INTERVAL 2 SECONDS", {"REFRESH": 2_000_000}),
        ("REFRESH ON police_sync", {"REFRESH": "police_sync"}),
        ("REFRESH ON QUERY", {"REFRESH": "ON QUERY"}),
        ("REFRESH MANUAL", {"REFRESH": "MANUAL"}),
        ("STRICT STRATEGY 'First  Order'", {"STRICT": True, "STRATEGY": "first order"}),
        (
            "STRATEGY 'recompute' STRICT REFRESH EVERY EPOCH",
            {"STRATEGY": "recompute", "STRICT": True, "REFRESH": "EVERY EPOCH"},
        ),
        ("", {}),
    ],
)
def test_clauses_of_a_view(text: str, expected: dict[str, object]):
    assert values(view(text)) == expected


def test_a_policy_called_query_is_quoted():
    (option,) = view("REFRESH ON `query`").options
    assert isinstance(option.value, st.Name)


@pytest.mark.parametrize("mode", ["STREAMED", "COMPLETE"])
def test_modes_of_a_view(mode: str):
    statement = view("STRICT", mode)
    assert values(statement) == {mode: True, "STRICT": True}
    assert statement.source.text[statement.options[0].span.start : statement.options[0].span.end] == mode


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("STRICT STRICT", "HW003"),
        ("REFRESH MANUAL REFRESH ON QUERY", "HW003"),
        ("REFRESH EVERY 0 SECONDS", "HW004"),
        ("REFRESH", "HW001"),
        ("STRATEGY 'guess'", "HW004"),
        ("STRATEGY recompute", "HW001"),
    ],
)
def test_refused_clauses_of_a_view(text: str, code: str):
    with pytest.raises(UserError) as caught:
        view(text)
    assert caught.value.code == code


# -- as SyncSQL writes it --


@pytest.mark.parametrize(
    ("text", "columns", "feed"),
    [
        (
            "REGISTER SOURCE TemperatureSource (int RoomID, int Temperature) FROM port5501",
            [("RoomID", "INT", True), ("Temperature", "INT", True)],
            st.Feed("socket", "localhost:5501"),
        ),
        (
            "register source s (a INT, string b not null) from 80",
            [("a", "INT", True), ("b", "STRING", False)],
            st.Feed("socket", "localhost:80"),
        ),
        (
            "REGISTER SOURCE s (decimal(9,2) a) FROM PORT 9",
            [("a", "DECIMAL(9,2)", True)],
            st.Feed("socket", "localhost:9"),
        ),
        ("REGISTER SOURCE IF NOT EXISTS s (a BIGINT NOT NULL)", [("a", "BIGINT", False)], None),
    ],
)
def test_register_source_is_a_stream(text: str, columns: list[tuple[str, str, bool]], feed: st.Feed | None):
    (statement,) = parse(text)
    assert isinstance(statement, st.CreateStream)
    assert [(f.name, str(f.type), f.nullable) for f in statement.columns] == columns
    assert values(statement) == ({"FROM": feed} if feed else {})
    assert statement.if_not_exists is ("EXISTS" in text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("REGISTER s (a INT)", "HW001"),
        ("REGISTER SOURCE s", "HW001"),
        ("REGISTER SOURCE s ()", "HW001"),
        ("REGISTER SOURCE s (int a, int A)", "HW160"),
        ("REGISTER SOURCE s (int #a)", "HW001"),
        ("REGISTER SOURCE s (int `#a`)", "HW161"),
        ("REGISTER SOURCE s (a INT PRIMARY KEY)", "HW001"),
        ("REGISTER SOURCE s (int a) FROM port", "HW001"),
        ("REGISTER SOURCE s (int a) FROM port70000", "HW004"),
        ("REGISTER SOURCE s (int a) FROM 0", "HW004"),
        ("REGISTER SOURCE s (int a) FROM porthole", "HW004"),
        ("REGISTER SOURCE s (int a) FROM json 'in'", "HW004"),
        ("REGISTER SOURCE s (int a) FROM port5501 KEY a", "HW001"),
        ("CREATE TAGGED STREAM s", "HW001"),
        ("CREATE TAGGED STREAM s (a INT) OVER r", "HW001"),
        ("CREATE TAGGED STREAM s OVER r KEY", "HW001"),
        ("CREATE TAGGED STREAM s OVER r OP BY a", "HW001"),
        ("CREATE TAGGED STREAM s OVER r FROM port5501", "HW001"),
        ("CREATE TAGGED s OVER r", "HW001"),
    ],
)
def test_refused_sources_and_tagged_streams(text: str, code: str):
    with pytest.raises(UserError) as caught:
        parse(text)
    assert caught.value.code == code


def test_a_tagged_stream_is_over_a_raw_one():
    (statement,) = parse("CREATE TAGGED STREAM RoomTempStr OVER TemperatureSource KEY RoomID")
    assert isinstance(statement, st.CreateTagged)
    assert (statement.name.text, statement.over.text) == ("RoomTempStr", "TemperatureSource")
    assert [(o.name, [name.text for name in o.value]) for o in statement.options] == [("KEY", ["RoomID"])]
