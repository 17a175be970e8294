"""`window` and `session_window`: where they may stand, what their names mean, and what is refused."""

from __future__ import annotations

import pytest

import headwater as hw

SEEN = """
CREATE TABLE seen (id INT, k STRING, ts TIMESTAMP, v INT);
INSERT INTO seen VALUES (1, 'a', TIMESTAMP '2024-01-01 10:00:00', 1), (2, 'a', TIMESTAMP '2024-01-01 10:05:00', 2)
"""

#: The text, the code, and what is underlined.
REFUSED = [
    # durations
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, 'soon')", "HW147", "'soon'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '')", "HW147", "''"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '1 month')", "HW147", "'1 month'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, INTERVAL 5 MINUTES)", "HW147", "INTERVAL 5 MINUTES"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, k)", "HW147", "k"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, concat('5', ' minutes'))", "HW147", "concat('5', ' minutes')"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, NULL)", "HW147", None),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '0 seconds')", "HW147", "'0 seconds'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '-5 minutes')", "HW147", "'-5 minutes'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '5 minutes', '10 minutes')", "HW147", "'10 minutes'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '5 minutes', 0)", "HW147", "0"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '10 minutes', '5 minutes', '5 minutes')", "HW147", "'5 minutes'"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '5 minutes', '5 minutes', '-5 minutes')", "HW147", "'-5 minutes'"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, 'soon')", "HW147", "'soon'"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, 300000000)", "HW147", "300000000"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, '0 seconds')", "HW147", "'0 seconds'"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, '1 year')", "HW226", "'1 year'"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, concat(v, ' seconds'))", "HW226", "concat(v, ' seconds')"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '1 day', 1)", "HW226", "window(ts, '1 day', 1)"),
    # times and arguments
    ("SELECT 1 AS one FROM seen GROUP BY window(v, '1 day')", "HW122", "v"),
    ("SELECT 1 AS one FROM seen GROUP BY window(ts)", "HW122", "window(ts)"),
    ("SELECT 1 AS one FROM seen GROUP BY session_window(ts, '1 day', '1 day')", "HW122", None),
    ("SELECT window_time(ts) AS t FROM seen", "HW122", "window_time(ts)"),
    ("SELECT window(max(ts), '1 day') AS w FROM seen", "HW123", "max(ts)"),
    # more than one
    ("SELECT 1 AS one FROM seen GROUP BY window(ts, '1 day'), window(ts, '2 days')", "HW146", "window(ts, '2 days')"),
    (
        "SELECT 1 AS one FROM seen GROUP BY window(ts, '1 day'), session_window(ts, '1 day')",
        "HW146",
        "session_window(ts, '1 day')",
    ),
    # places
    ("SELECT id FROM seen WHERE window(ts, '1 day').start > ts", "HW225", "window(ts, '1 day')"),
    ("SELECT a.id FROM seen a JOIN seen b ON window(a.ts, '1 day') = b.ts", "HW225", "window(a.ts, '1 day')"),
    ("SELECT window(window(ts, '1 day'), '2 days') AS w FROM seen", "HW225", "window(ts, '1 day')"),
    ("SELECT session_window(ts, '1 day') AS w FROM seen", "HW225", None),
    ("SELECT max(session_window(ts, '1 day').end) AS w FROM seen", "HW225", None),
    ("SELECT count(*) AS n FROM seen GROUP BY session_window(ts, '1 day').start", "HW225", None),
    ("SELECT count(*) AS n FROM seen GROUP BY ROLLUP (k, session_window(ts, '1 day'))", "HW225", None),
    # names
    ("SELECT window.start FROM seen", "HW102", "window"),
    ("SELECT window.begin FROM seen GROUP BY window(ts, '1 day')", "HW122", "window.begin"),
    ("SELECT session_window.start FROM seen GROUP BY window(ts, '1 day')", "HW102", "session_window"),
    ("SELECT ts FROM seen GROUP BY window(ts, '1 day')", "HW124", "ts"),
]


@pytest.fixture(scope="module")
def db() -> hw.Database:
    made = hw.connect()
    made.execute(SEEN)
    assert isinstance(made, hw.Database)
    return made


@pytest.mark.parametrize(("text", "code", "underlined"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_refused(db: hw.Database, text: str, code: str, underlined: str | None) -> None:
    for statement in (text, f"CREATE VIEW refused AS {text}"):
        with pytest.raises(hw.HeadwaterError) as caught:
            db.query(statement) if statement is text else db.execute(statement)
        assert caught.value.code == code, str(caught.value)
        span = caught.value.span
        assert span is not None
        assert underlined is None or statement[span.start : span.end] == underlined


HOUR, OTHER = "window(ts, '1 hour')", "(SELECT id, ts, 7 AS window FROM seen)"

#: Two queries that mean the same.
SAME = [
    (f"SELECT window.start AS a FROM seen GROUP BY {HOUR}", f"SELECT {HOUR}.start AS a FROM seen GROUP BY 1"),
    (f"SELECT {HOUR} AS w, count(*) AS n FROM seen GROUP BY w", f"SELECT window, count(*) FROM seen GROUP BY {HOUR}"),
    (f"SELECT {HOUR} AS w, count(*) AS n FROM seen GROUP BY ALL", f"SELECT window, count(*) FROM seen GROUP BY {HOUR}"),
    (f"SELECT WINDOW.END AS a FROM seen GROUP BY {HOUR}", "SELECT TIMESTAMP '2024-01-01 11:00:00'"),
    ("SELECT *, window(ts, '1 hour', '1 hour').start AS a FROM seen", f"SELECT *, {HOUR}.start FROM seen"),
    ("SELECT window(ts, 3600000000).start AS a FROM seen", f"SELECT {HOUR}.start FROM seen"),
    (
        "SELECT window(ts, '1 hour', '1 hour', '-20 minutes').start AS a FROM seen",
        "SELECT window(ts, '1 hour', '1 hour', '40 minutes').start FROM seen",
    ),
    (f"SELECT max({HOUR}.end) AS a FROM seen", "SELECT TIMESTAMP '2024-01-01 11:00:00'"),
    (f"SELECT window_time(window) AS t FROM seen GROUP BY {HOUR}", "SELECT TIMESTAMP '2024-01-01 10:59:59.999999'"),
    (
        f"SELECT window.start AS a FROM (SELECT {HOUR} AS w FROM seen) GROUP BY window(w, '1 day')",
        "SELECT TIMESTAMP '2024-01-01'",
    ),
    (f"SELECT window FROM (SELECT {HOUR} FROM seen) GROUP BY window", f"SELECT window FROM seen GROUP BY {HOUR}"),
    # a column and a relation of that name come first
    (f"SELECT window FROM {OTHER} GROUP BY {HOUR}, window", "SELECT 7"),
    (f"SELECT {HOUR}.start AS a, window AS b FROM {OTHER}", f"SELECT {HOUR}.start, 7 FROM seen"),
    (
        f"SELECT window.id AS id, window.start AS a FROM seen window GROUP BY {HOUR}, window.id",
        f"SELECT id, {HOUR}.start FROM seen",
    ),
    # beside the other meaning of the word
    ("SELECT count(*) OVER window AS n FROM seen WINDOW window AS (PARTITION BY k)", "SELECT 2 FROM seen"),
    (f"SELECT count(*) OVER w AS n FROM seen WINDOW w AS (PARTITION BY {HOUR})", "SELECT 2 FROM seen"),
    ("SELECT n FROM (SELECT count(*) AS n FROM seen window) AS window", "SELECT 2"),
    # in the order of their starts
    (
        "SELECT window.start AS a FROM seen GROUP BY window(ts, '1 minute') ORDER BY window DESC LIMIT 1",
        "SELECT TIMESTAMP '2024-01-01 10:05:00'",
    ),
    # correlated
    (
        f"SELECT id, (SELECT count(*) FROM seen s WHERE s.k = seen.k GROUP BY {HOUR}) AS n FROM seen",
        "SELECT id, 2 FROM seen",
    ),
    (
        "SELECT id, (SELECT session_window.end FROM seen s WHERE s.k = seen.k "
        "GROUP BY session_window(ts, '5 minutes')) AS n FROM seen",
        "SELECT id, TIMESTAMP '2024-01-01 10:10:00' FROM seen",
    ),
]


@pytest.mark.parametrize(("text", "same"), SAME, ids=[text for text, _ in SAME])
def test_names_and_places(db: hw.Database, text: str, same: str) -> None:
    found, expected = (
        sorted(map(repr, (tuple(row.values()) for row in db.query(one).to_pylist()))) for one in (text, same)
    )
    assert found == expected
    db.execute(f"CREATE VIEW named AS {text}")
    try:
        assert (
            sorted(map(repr, (tuple(row.values()) for row in db.query("SELECT * FROM named").to_pylist()))) == expected
        )
    finally:
        db.execute("DROP VIEW named")


def test_a_column_is_called_as_in_spark(db: hw.Database) -> None:
    names = db.query(f"SELECT {HOUR}, {HOUR}.start, window.end FROM seen").column_names
    assert names == ["window", "window.start", "end"]
