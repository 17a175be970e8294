"""Streams with parts and views of parts: what is refused, what fails, what is kept, and what comes back."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine import faults, lone, parts
from tests.engine.support import refused

START = dt.datetime(2020, 1, 1)
M = "CREATE STREAM m (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60"
SUMS = """
CREATE VIEW sums AS
INITIALIZE sums[i] AS SELECT g, sum(x) AS s FROM m[i] GROUP BY g
UPDATE sums[j] AS SELECT g, sum(x) FROM m[j] GROUP BY g
PARTITION LENGTH 60
"""
RUNNING = """
CREATE VIEW running AS
INITIALIZE running[i] AS SELECT g, s FROM sums[i]
UPDATE running[j] AS SELECT g, sum(s) FROM (SELECT * FROM sums[j] UNION ALL SELECT * FROM running[j - 1]) GROUP BY g
PARTITION LENGTH 60
"""


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        yield database


def at(minute: float) -> dt.datetime:
    return START + dt.timedelta(minutes=minute)


def contents(db: hw.Database, view: str) -> list[tuple[object, ...]]:
    """The rows of a view with the minute of their part, in order."""
    found = db.query(f"SELECT *, PART_TIMESTAMP AS at FROM {view}").to_pylist()
    return sorted(((row.pop("at") - START) // dt.timedelta(minutes=1), *row.values()) for row in found)


def fail_to_commit(point: str) -> None:
    """In place of a fault point: all is done, and nothing comes of it."""
    if point == "before commit":
        raise hw.UserError("HW305", "on purpose")


def told(db: hw.Database) -> object:
    """All that the book of parts says."""
    book = copy.deepcopy(db.engine.book)
    rows = {name: held for name, held in book.rows.items() if held}
    multiple = {name: held for name, held in book.multiple.items() if held}
    return book.frontiers, rows, multiple, book.lines


def view(update: str, initialize: str = "SELECT x FROM m[i]", name: str = "v", length: int = 60) -> str:
    queries = f"INITIALIZE {name}[i] AS {initialize} UPDATE {name}[j] AS {update}"
    return f"CREATE VIEW {name} AS {queries} PARTITION LENGTH {length}"


@pytest.mark.parametrize(
    ("statement", "code", "match"),
    [
        (view("SELECT x FROM m[j + 1]"), "HW185", "future"),
        (view("SELECT x FROM m[j .. j + 1]"), "HW185", "future"),
        (view("SELECT x FROM m[2 * j]"), "HW185", "future"),
        (view("SELECT x FROM v[j]"), "HW185", "the part itself"),
        (view("SELECT x FROM v[j + 1]"), "HW185", "future"),
        (view("SELECT m.x FROM m[j] JOIN v[23668450] ON true"), "HW185", "not always an earlier"),
        (view("SELECT m.x FROM m[j] JOIN v[j / 2] ON true"), "HW185", "not always an earlier"),
        (view("SELECT x FROM m[j - j % 100000007 .. j]"), "HW184", "repeats"),
        (view("SELECT v.x FROM v JOIN m[j] ON true"), "HW185", "whole"),
        (view("SELECT x FROM m[j]", "SELECT x FROM v[i - 1]"), "HW188", "INITIALIZE"),
        ("CREATE VIEW v AS SELECT x FROM v[j - 1]", "HW188", "no INITIALIZE"),
        (view("SELECT x FROM m[j]", length=90), "HW186", "60 seconds"),
        (view("SELECT id FROM t", "SELECT id FROM t"), "HW186", "no parts"),
        (view("SELECT g FROM m[j]"), "HW187", "STRING and INT"),
        (view("SELECT x, x AS y FROM m[j]"), "HW187", "2 columns and 1"),
        (view("SELECT CAST(x AS BIGINT) FROM m[j]"), "HW187", "BIGINT and INT"),
        (view("SELECT x FROM m[i]"), "HW184", "i is no subscript"),
        (view("SELECT x FROM m[j * j]"), "HW184", "evenly"),
        (view("SELECT x FROM m[j / 0]"), "HW184", "zero"),
        (view("SELECT x FROM m['a']"), "HW184", "whole numbers"),
        (view("SELECT id AS x FROM t[j]"), "HW184", "no parts"),
        ("SELECT * FROM m[j]", "HW184", "no subscript"),
        ("SELECT * FROM t[1]", "HW184", "no parts"),
        (view("SELECT x FROM m[j] WHERE ts < now()"), "HW217", "clock"),
        (view("SELECT x AS part FROM m[j]", "SELECT x AS part FROM m[i]"), "HW174", "there already"),
        ("CREATE STREAM s (a INT) TIMESTAMP BY a", "HW174", "INT"),
        ("CREATE STREAM s (a TIMESTAMP) PARTITION LENGTH 60", "HW174", "TIMESTAMP BY"),
        ("CREATE STREAM s (a TIMESTAMP) LATENESS 1 DAY", "HW174", "TIMESTAMP BY"),
        ("CREATE STREAM s (a TIMESTAMP, part INT) TIMESTAMP BY a PARTITION LENGTH 60", "HW174", "there already"),
        ("CREATE STREAM s (a TIMESTAMP, k INT) KEY (k) TIMESTAMP BY a PARTITION LENGTH 60", "HW174", "KEY"),
        ("CREATE STREAM s (a TIMESTAMP) TIMESTAMP BY a ROLL UP AFTER 1 DAY INTO 60", "HW174", "PARTITION LENGTH"),
        ("CREATE STREAM s (a TIMESTAMP) TIMESTAMP BY a PARTITION LENGTH 60 ROLL UP AFTER 1 DAY INTO 90", "HW174", "90"),
        ("CREATE STREAM s (a TIMESTAMP) TIMESTAMP BY b PARTITION LENGTH 60", "HW162", "not declared"),
        ("CREATE VIEW v REFRESH MANUAL AS " + view("SELECT x FROM m[j]").partition(" AS ")[2], "HW264", "no REFRESH"),
        ("ADVANCE STREAM t TO 5", "HW337", "no event time"),
        ("ADVANCE STREAM m TO -5", "HW001", "expected a moment"),
        ("ADVANCE STREAM m TO '9999-01-01 00:00:00'", "HW336", "out of all bounds"),
        (
            "INSERT INTO m VALUES (TIMESTAMP '1970-01-01 00:00:00', 'a', 1), (TIMESTAMP '2020-01-01 00:00:00', 'a', 1)",
            "HW336",
            "before the newest",
        ),
        ("SHOW PARTS t", "HW337", "no parts"),
        ("SHOW LATE t", "HW337", "late rows"),
        ("INSERT INTO m VALUES (NULL, 'a', 1)", "HW327", "cannot be NULL"),
        ("INSERT INTO m VALUES (TIMESTAMP '9999-12-31 00:00:00', 'a', 1)", "HW336", "day after the clock"),
        ("INSERT INTO m VALUES (TIMESTAMP '1969-12-31 00:00:00', 'a', 1)", "HW336", "before 1970"),
        ("INSERT INTO m (ts, g, x, PART) VALUES (TIMESTAMP '2020-01-01 00:00:00', 'a', 1, 2)", "HW332", "PART"),
    ],
)
def test_refused(db: hw.Database, statement: str, code: str, match: str) -> None:
    db.execute(f"{M} RETAIN ALL; CREATE TABLE t (id INT)")
    with refused(db, code, match):
        db.execute(statement)


def test_a_row_out_of_bounds_refuses_its_epoch_and_names_the_row(db: hw.Database) -> None:
    db.execute(f"{M}; {SUMS}")
    db.insert("m", [(at(0), "a", 1)])
    with refused(db, "HW336", r"row 1 \(counting from 0\)"):
        db.insert("m", [(at(1), "a", 1), (dt.datetime(9999, 1, 1), "a", 1)])
    with refused(db, "HW336", "500,000 parts"):
        db.insert("m", [(at(600_000), "a", 1)])
    db.insert("m", [(at(1), "a", 2)])
    assert contents(db, "sums") == [(0, "a", 1)]


def test_late_rows_and_rows_that_are_too_late(db: hw.Database) -> None:
    db.execute(f"{M} LATENESS 2 MINUTES; {SUMS}; {RUNNING}; CREATE VIEW counted AS SELECT count(*) AS n FROM m")
    db.insert("m", [(at(minute), "a", 1) for minute in range(6)])
    db.insert("m", [(at(3), "a", 10), (at(2), "a", 100), (at(1.9), "b", 1000)])  # minute 3 ends at 4: not late yet
    assert contents(db, "running") == [(0, "a", 1), (1, "a", 2), (2, "a", 3), (3, "a", 14), (4, "a", 15)]
    assert db.query("SELECT n FROM counted").to_pylist() == [{"n": 7}]
    late = db.execute("SHOW LATE m")[0].table
    assert late is not None
    assert [(row["_reason"], row["g"], row["x"]) for row in late.to_pylist()] == [
        ("too late", "a", 100),
        ("too late", "b", 1000),
    ]
    status = db.status()["relations"]
    assert isinstance(status, list)
    assert (status[0]["too_late"], status[0]["watermark"]) == (2, "2020-01-01 00:05:00")


def test_status_says_what_a_stream_that_stops_holds_up() -> None:
    with hw.connect(clock=lambda: at(10)) as db:
        assert isinstance(db, hw.Database)
        db.execute(f"{M}; {SUMS}")
        db.insert("m", [(at(0), "a", 1), (at(1), "a", 1)])
        stream, sums = db.status()["relations"]  # type: ignore[misc]
        assert (stream["watermark"], stream["watermark_behind_s"]) == ("2020-01-01 00:01:00", 540.0)
        assert sums["waits_for"] == [f"m[{int(at(1).replace(tzinfo=dt.UTC).timestamp()) // 60}]"]


def test_a_table_that_is_read_whole_changes_all_parts(db: hw.Database) -> None:
    db.execute(f"{M}; CREATE TABLE names (g STRING PRIMARY KEY, name STRING)")
    db.execute(
        view("SELECT name, x FROM m[j] JOIN names USING (g)", "SELECT name, x FROM m[i] JOIN names USING (g)", "named")
    )
    db.insert("names", [("a", "Ann"), ("b", "Bob")])
    db.insert("m", [(at(0), "a", 1), (at(1), "b", 2), (at(2), "a", 3), (at(3), "a", 4)])
    assert contents(db, "named") == [(0, "Ann", 1), (1, "Bob", 2), (2, "Ann", 3)]
    seen: list[dict[str, pa.Table]] = []
    db.observe(lambda _, changes: seen.append(dict(changes)))
    db.upsert("names", [("b", "Bea")])
    assert contents(db, "named") == [(0, "Ann", 1), (1, "Bea", 2), (2, "Ann", 3)]
    changed = sorted((row["name"], row["#n"]) for row in seen[0]["named"].to_pylist())
    assert changed == [("Bea", 1), ("Bob", -1)]


def test_a_view_that_cannot_take_a_part_is_suspended_and_refreshed(db: hw.Database) -> None:
    db.execute(f"{M}; {SUMS}; CREATE TABLE t (k INT)")
    db.execute(view("SELECT 10 / s AS q FROM sums[j]", "SELECT 10 / s AS q FROM sums[i]", "shares"))
    db.insert("m", [(at(0), "a", 5), (at(1), "a", 0), (at(2), "a", 2)])
    status = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[attr-defined]
    assert status["shares"]["state"] == "suspended" and "zero" in status["shares"]["reason"]
    assert contents(db, "sums") == [(0, "a", 5), (1, "a", 0)]
    db.insert("m", [(at(1), "a", 4), (at(3), "a", 1)])
    db.execute("REFRESH shares")
    assert contents(db, "shares") == [(0, 2.0), (1, 2.5), (2, 5.0)]
    db.insert("m", [(at(4), "a", 1)])
    assert contents(db, "shares") == [(0, 2.0), (1, 2.5), (2, 5.0), (3, 10.0)]


def test_what_fails_leaves_the_book_as_it_was(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An epoch that fails when all parts are built, and a view that fails to be made when its first parts are."""
    db.execute(f"{M}; {SUMS}; {RUNNING}")
    db.insert("m", [(at(0), "a", 1), (at(1), "a", 1)])
    before = told(db)

    with monkeypatch.context() as patched:
        patched.setattr(faults, "reach", fail_to_commit)
        with refused(db, "HW305"):
            db.insert("m", [(at(0), "a", 7), (at(5), "b", 1)])
        with refused(db, "HW305"):
            db.execute(view("SELECT x FROM m[j]"))
    assert told(db) == before
    db.insert("m", [(at(2), "a", 1)])
    assert contents(db, "running") == [(0, "a", 1), (1, "a", 2)]


def test_a_stream_that_is_stored_from_a_failed_view_on_keeps_its_book(
    db: hw.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute(M)
    db.insert("m", [(at(0), "a", 1), (at(1), "a", 1)])
    before = told(db)

    with monkeypatch.context() as patched:
        patched.setattr(faults, "reach", fail_to_commit)
        with refused(db, "HW305"):
            db.execute(SUMS)
    assert told(db) == before and db.engine.book.rows["m"]


def test_a_view_of_parts_sees_no_rows_of_which_only_some_columns_were_stored(db: hw.Database) -> None:
    db.execute(f"{M}; CREATE TABLE t (g STRING, y INT)")
    db.execute(
        "CREATE VIEW joined STRATEGY 'first order' AS SELECT m.g, t.y FROM m JOIN t ON m.g = t.g WHERE m.g <> 'z'"
    )
    db.insert("m", [(at(0), "a", 1), (at(0), "z", 1), (at(1), "a", 2)])
    db.execute(SUMS + " BACKFILL")
    db.insert("m", [(at(1), "a", 10), (at(1), "z", 20), (at(2), "a", 3), (at(3), "a", 4)])
    assert contents(db, "sums") == [(1, "a", 10), (1, "z", 20), (2, "a", 3)]
    db.insert("t", [("a", 5)])
    assert db.query("SELECT count(*) AS n FROM joined").to_pylist() == [{"n": 5}]


def test_a_helper_that_others_read_stays_with_its_view(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        db.execute(f"{M}; CREATE VIEW w AS SELECT g, max(x) AS x FROM m [WINDOW 2 PARTS] GROUP BY g")
        db.execute("CREATE VIEW over_helper AS SELECT count(*) AS n FROM w_helper")
        with pytest.raises(hw.UserError, match="read by over_helper"):
            db.execute("DROP VIEW w")
    with hw.connect(tmp_path / "w") as again:
        again.execute("DROP VIEW w CASCADE")
        assert [one["name"] for one in again.relations()] == ["m"]
    with hw.connect(tmp_path / "w") as again:
        assert again.query("SELECT 1 AS x").num_rows == 1


def test_parts_of_a_relation_beside_all_of_it(db: hw.Database) -> None:
    db.execute(f"{M}; {SUMS}")
    whole = "SELECT g, (SELECT count(*) FROM sums) AS n FROM sums[{}]"
    db.execute(view(whole.format("j"), whole.format("i")))
    db.insert("m", [(at(minute), "a", 1) for minute in range(6)])
    db.insert("m", [(at(2), "a", 10)])
    assert contents(db, "v") == [(minute, "a", 5) for minute in range(5)]


def test_a_view_fails_to_be_made_and_leaves_nothing(db: hw.Database) -> None:
    db.execute(f"{M} RETAIN ALL")
    db.insert("m", [(at(0), "a", 0), (at(1), "a", 1)])
    with refused(db, "HW501", "division by zero"):
        db.execute(view("SELECT 1 / x AS q FROM m[j]", "SELECT 1 / x AS q FROM m[i]"))
    assert set(db.engine.book.frontiers) == {"m"}


def test_the_warehouse_is_opened_again(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        db.execute(f"{M} LATENESS 10 MINUTES; {SUMS}; {RUNNING}")
        db.execute(
            "CREATE VIEW p AS SELECT g, count(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
        )
        db.insert("m", [(at(0), "a", 1), (at(1), "a", 2), (at(2), "a", 3)])
    with hw.connect(tmp_path / "w") as again:
        assert isinstance(again, hw.Database)
        again.insert("m", [(at(1), "b", 10), (at(3), "b", 1), (at(4), "c", 1)])
        assert contents(again, "running") == [
            (0, "a", 1), (1, "a", 3), (1, "b", 10), (2, "a", 6), (2, "b", 10), (3, "a", 6), (3, "b", 11),
        ]  # fmt: skip
        assert contents(again, "p") == [(1, "a", 2), (2, "a", 3), (3, "a", 3), (3, "b", 2)]
        again.execute("DROP STREAM m CASCADE")
        assert again.query("SELECT 1 AS x").num_rows == 1
        book = again.engine.book
        assert not (book.frontiers or book.rows or book.multiple)


def test_views_made_late_begin_with_the_newest_part_or_with_the_oldest(db: hw.Database) -> None:
    db.execute(f"{M} RETAIN ALL")
    db.insert("m", [(at(minute), "a", minute) for minute in range(5)])
    db.execute(SUMS)
    db.execute(view("SELECT x FROM m[j]", name="all_of_it") + " BACKFILL")
    db.insert("m", [(at(5), "a", 5)])
    assert contents(db, "sums") == [(3, "a", 3), (4, "a", 4)]
    assert contents(db, "all_of_it") == [(minute, minute) for minute in range(5)]


def test_parts_of_different_lengths(db: hw.Database) -> None:
    db.execute(M)
    total = "SELECT sum(x) AS s FROM m[5*{0} .. 5*{0} + 4]"
    db.execute(view(total.format("j"), total.format("i"), "five", 300))
    before = "SELECT m.x, five.s FROM m[{0}] LEFT JOIN five[{0} / 5 - 1] ON true"
    db.execute(view(before.format("j"), before.format("i"), "beside"))
    db.insert("m", [(at(minute), "a", 1) for minute in range(12)])
    assert contents(db, "five") == [(0, 5), (5, 5)]
    assert contents(db, "beside") == [(minute, 1, None if minute < 5 else 5) for minute in range(11)]
    db.insert("m", [(at(3), "a", 10)])
    assert contents(db, "five") == [(0, 15), (5, 5)]
    assert contents(db, "beside")[5:8] == [(4, 1, None), (5, 1, 15), (6, 1, 15)]


def test_a_part_without_rows_has_the_row_of_an_aggregate(db: hw.Database) -> None:
    db.execute(M)
    db.execute(view("SELECT count(*) AS n FROM m[j]", "SELECT count(*) AS n FROM m[i]"))
    db.insert("m", [(at(0), "a", 1), (at(4), "a", 1)])
    assert contents(db, "v") == [(0, 1), (1, 0), (2, 0), (3, 0)]


def test_only_parts_that_are_named_are_read(db: hw.Database) -> None:
    db.execute(f"{M}; {SUMS}")
    db.insert("m", [(at(minute), "a", minute) for minute in range(10)])
    for condition, minutes in (
        ("PART_TIMESTAMP = TIMESTAMP '2020-01-01 00:03:00'", [3]),
        ("PART_TIMESTAMP = '2020/01/01 0:03'", [3]),
        ("PART_TIMESTAMP = TIMESTAMP '2020-01-01 00:03:30'", []),
        ("PART_TIMESTAMP > TIMESTAMP '2020-01-01 00:06:30'", [7, 8]),
        ("PART_TIMESTAMP >= TIMESTAMP '2020-01-01 00:06:30'", [7, 8]),
        ("PART_TIMESTAMP <= TIMESTAMP '2020-01-01 00:01:30'", [0, 1]),
        ("TIMESTAMP '2020-01-01 00:01:00' > PART_TIMESTAMP", [0]),
        ("PART_TIMESTAMP BETWEEN '2020-01-01 00:01:00' AND '2020-01-01 00:02:00'", [1, 2]),
        ("PART_TIMESTAMP IN (TIMESTAMP '2020-01-01 00:01:00', TIMESTAMP '2020-01-01 00:05:00')", [1, 5]),
    ):
        query = f"SELECT s FROM sums WHERE {condition} ORDER BY s"
        assert db.query(query).column("s").to_pylist() == minutes, condition
        assert "part_timestamp(" not in str(db.explain(query).to_dict()["query"]), condition
    part = int(at(4).replace(tzinfo=dt.UTC).timestamp()) // 60
    assert db.query(f"SELECT s FROM sums[{part}]").column("s").to_pylist() == [4]
    assert db.query(f"SELECT x FROM m[{part} - 1 .. {part}] ORDER BY x").column("x").to_pylist() == [3, 4]


def test_subscribers_are_told_of_parts(db: hw.Database) -> None:
    db.execute(f"{M}; {SUMS.replace('VIEW sums', 'STREAMED VIEW sums')}")
    with db.subscribe("sums", timeout=10) as changes:
        db.insert("m", [(at(0), "a", 1), (at(1), "a", 2)])
        db.insert("m", [(at(0), "a", 10)])
        told = [next(changes) for _ in range(2)]
    part = int(START.replace(tzinfo=dt.UTC).timestamp()) // 60
    assert [(one["_op"], one["g"], one["s"], one["PART"], one["_old"]) for one in told] == [
        ("+", "a", 1, part, None),
        ("u", "a", 11, part, {"g": "a", "s": 1, "PART": part}),
    ]
    kept = db.execute("SUBSCRIBE sums FROM EPOCH 0")[0].table
    assert kept is not None and kept.column("_op").to_pylist() == ["+", "u"]


def test_the_change_of_a_view_is_copied_only_for_views_that_are_not_of_parts(db: hw.Database) -> None:
    def read() -> set[str]:
        return {one.name for one in db.engine.schedule.stages if one.parts is not None and one.read}

    db.execute(f"{M}; {SUMS}; {RUNNING}")
    db.execute(
        "CREATE VIEW share AS INITIALIZE share[i] AS SELECT count(*) AS n FROM sums "
        "UPDATE share[j] AS SELECT count(*) FROM sums, running[j - 1] PARTITION LENGTH 60"
    )
    assert read() == set()
    db.execute("CREATE VIEW total AS SELECT g, count(*) AS n FROM running GROUP BY g")
    assert read() == {"running"}
    db.insert("m", [(at(minute), "a", 1) for minute in range(4)])
    assert contents(db, "running") == [(0, "a", 1), (1, "a", 2), (2, "a", 3)]
    assert db.query("SELECT n FROM total").column("n").to_pylist() == [3]
    shares = [row[1] for row in contents(db, "share")]
    db.insert("m", [(at(1), "b", 1)])
    assert [row[1] for row in contents(db, "share")] != shares  # what reads all of `sums` has seen its change


@pytest.mark.parametrize("rows", [1, 30])
def test_groups_of_one_row_and_of_many_give_the_same(
    db: hw.Database, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Parts with and without several rows of a group."""
    monkeypatch.setattr(parts, "PATIENCE", 0)
    monkeypatch.setattr(lone, "KNOWN_ROWS", range(1, 100))
    db.execute(M)
    db.execute(
        "CREATE VIEW p AS SELECT g, count(*) AS n, sum(x) AS s FROM m PATTERN [a, b+] "
        "WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    )
    for minute in range(6):
        db.insert("m", [(at(minute), f"g{k}", minute + 1) for k in range(rows)])
        if minute == 3:
            db.insert("m", [(at(minute + 0.5), "g0", 100)])
    stage = next(one for one in db.engine.schedule.stages if one.name == "p_helper")
    assert stage.parts is not None
    assert {bool(alone) for _, _, alone in stage.parts._made} == {True, False}
    assert {len(one) for one in stage.parts.lone_rows.known.values()} == ({rows} if rows > 1 else set())
    found = [row for row in contents(db, "p") if row[1] == "g0"]
    assert found == [(1, "g0", 2, 3), (2, "g0", 3, 6), (3, "g0", 5, 110), (4, "g0", 6, 115)]


def test_a_row_for_an_older_part_than_the_first_is_in_windows_and_patterns_too(db: hw.Database) -> None:
    db.execute(M)
    db.execute("CREATE VIEW s AS SELECT sum(x) AS n FROM m [WINDOW 3 MINUTES]")
    db.execute("CREATE VIEW d AS SELECT sum(DISTINCT x) AS n FROM m [WINDOW 3 MINUTES]")
    db.execute("CREATE VIEW p AS SELECT g, count(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g")
    for minute, value in ((1, 10), (4, 1), (0, 100)):
        db.insert("m", [(at(minute), "a", value)])
    assert contents(db, "s") == contents(db, "d") == [(0, 100), (1, 110), (2, 110), (3, 10)]
    assert contents(db, "p") == [(1, "a", 2), (2, "a", 2), (3, "a", 2)]


def test_a_single_thread_does_not_read_what_it_writes(db: hw.Database) -> None:
    """DuckDB 2.0 with one thread may read rows of the store that a statement is writing to."""
    db.engine.connection.execute("SET threads = 1")
    db.execute(f"{M}; {SUMS}; {RUNNING}")
    db.insert("m", [(at(minute), f"g{k}", 1) for minute in range(6) for k in range(3000)])
    db.insert("m", [(at(1), "g1", 1)])
    counted = db.query("SELECT PART, count(*) AS n, sum(s) AS s FROM running GROUP BY PART ORDER BY PART").to_pylist()
    assert [(row["n"], row["s"]) for row in counted] == [
        (3000, 3000), (3000, 6001), (3000, 9001), (3000, 12001), (3000, 15001),
    ]  # fmt: skip
