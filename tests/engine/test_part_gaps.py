"""Long stretches of parts without rows, references far back, and what is said of parts that fail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine import part_book, part_runs, parts
from headwater.engine.engine import Mark
from headwater.engine.operations import InsertRows
from headwater.engine.part_upkeep import delete_parts
from tests.engine.part_support import FIRST, check_book, eager, kept, minute, settle
from tests.engine.support import refused
from tests.equivalence.subject import bag_of

M = "CREATE STREAM m (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60"
RUNNING = """
CREATE VIEW running AS
INITIALIZE running[i] AS SELECT g, sum(x) AS s FROM m[i] GROUP BY g
UPDATE running[j] AS
  SELECT g, sum(s) FROM (SELECT g, x AS s FROM m[j] UNION ALL SELECT g, s FROM running[{}]) GROUP BY g
PARTITION LENGTH 60
"""
#: Views that carry something over parts without rows.
CARRYING = {
    "pattern": "CREATE VIEW v AS SELECT g, count(*) AS n, sum(x) AS s FROM m PATTERN [a, b+] "
    "WHERE a.x > 0 AND b.x > 0 GROUP BY g",
    "sums of a window": "CREATE VIEW v AS SELECT sum(x) AS n, count(*) AS c FROM m [WINDOW 5 MINUTES]",
    "extremes of a window": "CREATE VIEW v AS SELECT max(x) AS n FROM m [WINDOW 5 MINUTES]",
    "rows of a window": "CREATE VIEW v AS SELECT count(DISTINCT x) AS n FROM m [WINDOW 5 MINUTES]",
    "itself": RUNNING.format("j - 1").replace("running", "v"),
    "itself two before": RUNNING.format("j - 2").replace("running", "v"),
    "itself in a range": RUNNING.format("j - 3 .. j - 1").replace("running", "v").replace("sum(s)", "max(s)"),
    "what carries": RUNNING.format("j - 1") + "; CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n, sum(s) AS s "
    "FROM running[i] UPDATE v[j] AS SELECT count(*), sum(s) FROM running[j - 2 .. j] PARTITION LENGTH 60",
    "larger parts": RUNNING.format("j - 1") + "; CREATE VIEW v AS INITIALIZE v[i] AS SELECT sum(s) AS s "
    "FROM running[2 * i .. 2 * i + 1] UPDATE v[j] AS SELECT sum(s) FROM running[2 * j .. 2 * j + 1] "
    "PARTITION LENGTH 120",
    "since a round number": "CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n FROM m[i] "
    "UPDATE v[j] AS SELECT count(*) FROM m[j - j % 3 .. j] PARTITION LENGTH 60",
    "since a round number of what carries": RUNNING.format("j - 1") + "; CREATE VIEW v AS INITIALIZE v[i] AS "
    "SELECT count(*) AS n FROM running[i] UPDATE v[j] AS SELECT count(*) FROM running[j - j % 3 .. j] "
    "PARTITION LENGTH 60",
    "the same row again": "CREATE VIEW v AS INITIALIZE v[i] AS SELECT g FROM m[i] "
    "UPDATE v[j] AS SELECT g FROM m[j] UNION ALL SELECT g FROM v[j - 1] PARTITION LENGTH 60",
    "far back": "CREATE TABLE t (g STRING, y INT); CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) + 100 AS n "
    "FROM m[i] UPDATE v[j] AS SELECT count(*) + (SELECT count(*) FROM t) FROM m[j - 5] PARTITION LENGTH 60",
    "a table beside it": "CREATE TABLE t (g STRING, y INT); CREATE VIEW v AS INITIALIZE v[i] AS SELECT t.g, x FROM t "
    "LEFT JOIN m[i] ON m.g = t.g UPDATE v[j] AS SELECT t.g, x FROM t LEFT JOIN m[j] ON m.g = t.g PARTITION LENGTH 60",
    "nothing at rest": "CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n FROM m[i] "
    "UPDATE v[j] AS SELECT max(n) + 1 FROM (SELECT n FROM v[j - 1] UNION ALL SELECT CAST(x AS BIGINT) FROM m[j]) "
    "PARTITION LENGTH 60",
    "the number of the part": "CREATE VIEW v AS INITIALIZE v[i] AS SELECT g, sum(PART) AS s FROM m[i] GROUP BY g "
    "UPDATE v[j] AS SELECT g, sum(s) FROM (SELECT g, PART AS s FROM m[j] UNION ALL SELECT g, PART FROM v[j - 1]) "
    "GROUP BY g PARTITION LENGTH 60",
}
#: Those of which no part is ever as the one before, or which look at PART.
AT_NO_REST = (
    "nothing at rest",
    "itself two before",
    "the number of the part",
    "since a round number of what carries",
)
COPIED = [one for one in CARRYING if one not in AT_NO_REST]


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        yield database


def story(db: hw.Database, gap: int) -> list[object]:
    """Rows, a gap, rows, a late row, a table that changes; and what the view holds each time."""
    if db.engine.catalog.find("t") is not None:
        db.insert("t", [("a", 1), ("b", 2)])
    db.insert("m", [(minute(k), g, 1 + k) for k in range(3) for g in "ab"])
    seen: list[object] = []
    db.observe(lambda _, changes: seen.append(bag_of(changes["v"]) if "v" in changes else None))
    db.insert("m", [(minute(gap), "a", 7), (minute(gap + 3), "a", 0)])
    seen.append(contents(db))
    db.insert("m", [(minute(1), "b", 100)])
    seen.append(contents(db))
    if db.engine.catalog.find("t") is not None:
        db.insert("t", [("a", 3)])
        seen.append(contents(db))
    check_book(db)
    return seen


def contents(db: hw.Database) -> object:
    return bag_of(db.query("SELECT *, PART FROM v"))


@pytest.mark.parametrize("kind", CARRYING)
def test_parts_that_are_copied_are_those_that_are_evaluated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for copies in (True, False):
        with monkeypatch.context() as patched, hw.connect() as db:
            assert isinstance(db, hw.Database)
            if not copies:
                patched.setattr(part_runs.Stretches, "until", lambda _, part, end, least: part)
            db.execute(f"{M}; {CARRYING[kind]}")
            found.append(story(db, 30))
    assert found[0] == found[1]
    with hw.connect() as db:  # all at once, so that nothing is late, and nothing evaluated again
        assert isinstance(db, hw.Database)
        db.execute(f"{M}; {CARRYING[kind]}")
        if db.engine.catalog.find("t") is not None:
            db.insert("t", [("a", 1), ("b", 2), ("a", 3)])
        rows = [(minute(k), g, 1 + k) for k in range(3) for g in "ab"]
        db.insert("m", [*rows, (minute(1), "b", 100), (minute(30), "a", 7), (minute(33), "a", 0)])
        assert contents(db) == found[0][-1]


@pytest.mark.parametrize("kind", COPIED)
def test_a_long_gap_takes_few_statements(db: hw.Database, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute(f"{M}; {CARRYING[kind]}")
    asked: list[str] = []
    append = db.engine.append_part

    def counting(store: str, statement: str, values: Mapping[str, object], view: str) -> int:
        asked.append(store)
        return append(store, statement, values, view)

    monkeypatch.setattr(db.engine, "append_part", counting)
    story(db, 3000)
    assert len(asked) < 250
    [(last,)] = [(row["n"],) for row in db.query("SELECT max(PART) AS n FROM v").to_pylist()]
    assert last in (FIRST + 3002, (FIRST + 3003) // 2 - 1)


def test_the_first_part_is_no_model_for_others(db: hw.Database) -> None:
    db.execute(f"{M}; {CARRYING['far back']}")
    db.insert("m", [(minute(0), "a", 1), (minute(12), "a", 1)])
    found = db.query("SELECT n FROM v ORDER BY PART").column("n").to_pylist()
    assert found == [101, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_what_was_deleted_is_not_taken_for_empty(db: hw.Database) -> None:
    db.execute(f"{M} LATENESS 0 SECONDS")
    db.execute("CREATE VIEW v AS SELECT count(DISTINCT x) AS n FROM m [WINDOW 5 MINUTES]")
    db.insert("m", [(minute(0), "a", 1)])
    db.execute("ADVANCE STREAM m TO '2024-01-01 00:05:00'")
    assert delete_parts(db.engine, "m")
    assert db.engine.book.frontier("m").kept == FIRST + 1
    db.execute("ADVANCE STREAM m TO '2024-01-01 00:20:00'")
    found = db.query("SELECT PART, n FROM v ORDER BY PART").to_pylist()
    assert [row["n"] for row in found] == [1] * 5 + [0] * 15


def test_more_rows_than_anyone_wants_are_refused(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_COPIED", 100)
    db.execute(f"{M}; {RUNNING.format('j - 1')}")
    db.insert("m", [(minute(0), g, 1) for g in "abcde"])
    with refused(db, "HW338", "5 rows of the part before them"):
        db.insert("m", [(minute(40), "a", 1)])
    assert db.query("SELECT * FROM running").num_rows == 0
    db.execute("ADVANCE STREAM m TO '2024-01-01 00:20:00'")
    db.insert("m", [(minute(40), "a", 1)])
    assert db.query("SELECT * FROM running").num_rows == 200


def test_a_pipeline_goes_on_without_the_view(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_COPIED", 100)
    db.execute(f"{M}; {RUNNING.format('j - 1')}")
    db.insert("m", [(minute(0), g, 1) for g in "abcde"])
    rows = pa.table({"ts": [minute(40)], "g": ["a"], "x": pa.array([1], pa.int32())})
    with db.engine.lock:
        db.engine.run([InsertRows("m", rows.cast(pa.schema([("ts", pa.timestamp("us")), *list(rows.schema)[1:]])))],
                      mark=Mark("p", 1))  # fmt: skip
    status = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[attr-defined]
    assert status["running"]["state"] == "suspended" and "(HW338)" in status["running"]["reason"]
    assert db.engine.book.watermarks["m"] == int(minute(40).replace(tzinfo=dt.UTC).timestamp()) * 1_000_000


def test_many_lines_of_parts_are_written_as_few_are(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_book, "_FEW_LINES", 1)
    db.execute(f"{M}; {RUNNING.format('j - 1')}")
    db.insert("m", [(minute(0), "a", 1), (minute(9), "b", 1)])
    check_book(db)
    found = db.execute("SHOW PARTS running")[0].table
    assert found is not None and found.column("rows").to_pylist() == [1] * 9


@pytest.mark.parametrize(("back", "parts_built"), [(0, 3), (2, 3), (525_600, 3), (28_000_000, 3)])
def test_a_part_is_built_when_it_is_over(db: hw.Database, back: int, parts_built: int) -> None:
    """What reads far back is complete long before the part itself is over."""
    db.execute(f"{M}; CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n FROM m[i - {back}] "
               f"UPDATE v[j] AS SELECT count(*) FROM m[j - {back}] PARTITION LENGTH 60")  # fmt: skip
    half = "SELECT n FROM v[{0} / 2 - 3]"
    db.execute(f"CREATE VIEW w AS INITIALIZE w[i] AS {half.format('i')} UPDATE w[j] AS {half.format('j')} "
               "PARTITION LENGTH 30")  # fmt: skip
    db.insert("m", [(minute(k), "a", 1) for k in range(4)])
    db.insert("m", [(minute(3.9), "a", 1)])
    found = db.engine.book
    assert (found.frontier("v").first, found.frontier("v").next) == (FIRST, FIRST + parts_built)
    assert found.frontier("w").next == 2 * FIRST + 7, "30 seconds of minute 3 are over, and no part of m"


def test_status_says_until_when_a_view_waits(db: hw.Database) -> None:
    db.execute(f"{M}; CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n FROM m[i - 9] "
               "UPDATE v[j] AS SELECT count(*) FROM m[j - 9] PARTITION LENGTH 60")  # fmt: skip
    db.insert("m", [(minute(0), "a", 1), (minute(2), "a", 1)])
    status = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[attr-defined]
    assert status["v"]["waits_for"] == ["m until 2024-01-01 00:03:00"]


def test_what_fails_names_the_part(db: hw.Database) -> None:
    db.execute(f"{M} RETAIN ALL")
    queries = "INITIALIZE {0}[i] AS SELECT 10 DIV x AS q FROM m[i] UPDATE {0}[j] AS SELECT 10 DIV x FROM m[j]"
    view = f"CREATE VIEW {{0}} AS {queries} PARTITION LENGTH 60"
    db.execute(view.format("v"))
    db.insert("m", [(minute(k), "a", k - 5) for k in range(9)])  # built by one statement
    [reason] = [one["reason"] for one in db.status()["relations"] if one["name"] == "v"]  # type: ignore[attr-defined]
    assert reason == f"division by zero, in part {FIRST + 5} (2024-01-01 00:05:00) (HW501)"
    with refused(db, "HW501", rf"in part {FIRST + 5} \(2024-01-01 00:05:00\)"):
        db.execute("REFRESH v")
    with refused(db, "HW501", rf"division by zero, in part {FIRST + 5} \(2024-01-01 00:05:00\)"):
        db.execute(view.format("w") + " BACKFILL")


@pytest.mark.parametrize(
    ("tail", "more", "stored"),
    [
        ("", "SELECT 1 AS x", "no"),
        ("RETAIN ALL", "SELECT 1 AS x", "yes"),
        ("", "CREATE VIEW v AS SELECT count(*) AS n FROM m [WINDOW 2 PARTS]", "yes"),
        ("", "CREATE TABLE t (g STRING); CREATE VIEW v STRATEGY 'first order' AS SELECT m.g FROM m JOIN t ON m.g = t.g",
         "in part"),
    ],
)  # fmt: skip
def test_show_parts_says_whether_rows_are_stored(db: hw.Database, tail: str, more: str, stored: str) -> None:
    db.execute(f"{M} {tail}; {more}")
    db.insert("m", [(minute(0), "a", 1), (minute(1), "a", 1)])
    found = db.execute("SHOW PARTS m")[0].table
    assert found is not None and found.column("rows").to_pylist() == [1, 1]
    assert found.column("stored").to_pylist() == [stored, stored]


@pytest.mark.parametrize(
    "condition",
    ["PART_TIMESTAMP = '{}'", "'{}' < PART_TIMESTAMP", "m.PART_TIMESTAMP BETWEEN '{}' AND '2024-01-02'",
     "PART_TIMESTAMP IN ('2024-01-02', '{}')"],
)  # fmt: skip
def test_a_text_that_is_no_time(db: hw.Database, condition: str) -> None:
    db.execute(f"{M} RETAIN ALL")
    db.insert("m", [(minute(0), "a", 1)])
    for query in ("SELECT x FROM m WHERE {}", "CREATE VIEW v AS SELECT x FROM m WHERE {}"):
        text = query.format(condition.format("soon"))
        with pytest.raises(hw.UserError, match="'soon' is not a TIMESTAMP") as found:
            db.execute(text)
        span = found.value.span
        assert found.value.code == "HW129" and span is not None and text[span.start : span.end] == "'soon'"
    assert db.query(f"SELECT x FROM m WHERE {condition.format('2024/1/1 0:00')}").num_rows == (
        0 if "<" in condition else 1
    )


def test_what_is_dropped_is_forgotten_in_the_background() -> None:
    with eager() as db:
        db.execute(f"{M}; {RUNNING.format('j - 1')}")
        db.insert("m", [(minute(0), "a", 1), (minute(200), "a", 1)])
        settle(db)
        db.consolidator.nudge()
        assert db.consolidator.wait(30)
        assert {"m", "running"} <= set(db.consolidator._sizes)
        db.execute("DROP STREAM m CASCADE")
        db.consolidator.nudge()
        assert not {"m", "running"} & (set(db.consolidator._sizes) | set(db.consolidator._parts))


@pytest.mark.parametrize("query", ["PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0", "[WINDOW 2 MINUTES]"])
def test_patterns_and_windows_keep_their_parts_as_long_as_they_are_told(query: str) -> None:
    with eager() as db:
        db.execute(f"{M} LATENESS 1 MINUTE")
        options = "RETAIN 10 MINUTES ROLL UP AFTER 4 MINUTES INTO 120"
        db.execute(f"CREATE VIEW v {options} AS SELECT g, max(x) AS x FROM m {query} GROUP BY g")
        for k in range(40):
            db.insert("m", [(minute(k), "a", 1)])
        settle(db)
        assert kept(db, "v") == list(range(29, 39))
        found = db.execute("SHOW PARTS v")[0].table
        assert found is not None and found.column("length").to_pylist()[:2] == [120, 120]
        assert len(kept(db, "v_helper")) < 10, "what is kept of the view is not kept of its helper"


@pytest.mark.parametrize(
    ("statement", "code", "match"),
    [
        ("CREATE VIEW v RETAIN 1 DAY AS SELECT x FROM m", "HW264", "without parts takes no RETAIN"),
        ("CREATE VIEW v ROLL UP AFTER 1 DAY INTO 120 AS SELECT x FROM m", "HW264", "takes no ROLL UP"),
        ("CREATE VIEW v RETAIN 1 DAY AS INITIALIZE v[i] AS SELECT x FROM m[i] UPDATE v[j] AS SELECT x FROM m[j] "
         "PARTITION LENGTH 60 RETAIN 2 DAYS", "HW003", "RETAIN is given twice"),
    ],
)  # fmt: skip
def test_retaining_elsewhere_is_refused(db: hw.Database, statement: str, code: str, match: str) -> None:
    db.execute(M)
    with refused(db, code, match):
        db.execute(statement)
