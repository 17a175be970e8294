"""Views of parts: what random stories have found, each in its smallest form."""

from __future__ import annotations

import datetime as dt

import pytest

import headwater as hw
from headwater.errors import UserError

BEGIN = dt.datetime(2024, 1, 1)
STREAM = "CREATE STREAM m (ts TIMESTAMP, k STRING, v INT) TIMESTAMP BY ts PARTITION LENGTH 10 RETAIN ALL"


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def same(name: str, query: str, length: int = 10, tail: str = "") -> str:
    """A view of which all parts hold the same query."""
    first = query.replace("j", "i")
    both = f"INITIALIZE {name}[i] AS {first} UPDATE {name}[j] AS {query}"
    return f"CREATE VIEW {name} AS {both} PARTITION LENGTH {length}{tail}"


def rows(db: hw.Database, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(query).to_pylist())


@pytest.mark.parametrize("update", ["SELECT k FROM v[j - 1]", "SELECT k FROM m[j / 2]", "SELECT k FROM m[5]"])
def test_something_says_when_a_part_is_due(update: str) -> None:
    """These would have no last part: what they read is complete for all parts to come."""
    with hw.connect() as db:
        db.execute(STREAM)
        db.insert("m", [(at(0), "a", 1), (at(25), "a", 1)])
        with pytest.raises(UserError, match="HW186"):
            db.execute(
                f"CREATE VIEW v AS INITIALIZE v[i] AS SELECT k FROM m[i] UPDATE v[j] AS {update} PARTITION LENGTH 10"
            )


def test_parts_of_itself_since_a_round_number() -> None:
    """A range that is empty for some parts, and never reaches the part itself."""
    with hw.connect() as db:
        db.execute(STREAM)
        query = (
            "SELECT count(*) AS n FROM (SELECT v FROM m[j] UNION ALL SELECT CAST(n AS INT) FROM c[j - j % 3 .. j - 1])"
        )
        db.execute(
            "CREATE VIEW c AS INITIALIZE c[i] AS SELECT count(*) AS n FROM m[i]"
            f" UPDATE c[j] AS {query} PARTITION LENGTH 10"
        )
        db.insert("m", [(at(10 * n), "a", 1) for n in range(7)])
        first = (BEGIN - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=10)
        held = dict(rows(db, "SELECT PART, n FROM c"))
        for part in range(first + 1, first + 6):
            assert held[part] == 1 + sum(1 for one in range(part - part % 3, part) if one >= first)


def test_an_empty_batch() -> None:
    with hw.connect() as db:
        db.execute(STREAM)
        db.insert("m", [])
        assert rows(db, "SELECT * FROM m") == []


def test_an_ordinary_view_joins_a_view_of_parts_with_itself() -> None:
    """What follows from a change reads the store as it was before the change, which is there already."""
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute(same("p", "SELECT k, v FROM m[j]"))
        db.execute("CREATE VIEW pairs AS SELECT a.k, a.v AS x, b.v AS y FROM p a JOIN p b ON a.k = b.k")
        db.insert("m", [(at(1), "a", 1), (at(2), "a", 2), (at(15), "b", 3)])
        assert rows(db, "SELECT * FROM pairs") == [("a", 1, 1), ("a", 1, 2), ("a", 2, 1), ("a", 2, 2)]
        db.insert("m", [(at(3), "a", 4), (at(30), "b", 3)])
        assert rows(db, "SELECT * FROM pairs WHERE x = 4") == [("a", 4, 1), ("a", 4, 2), ("a", 4, 4)]
        assert db.query("SELECT * FROM pairs").num_rows == 10


@pytest.mark.parametrize(("inside", "read"), [("3 * j + 1", {1}), ("3 * j .. 3 * j + 1", {0, 1}), ("3 * j + 2", {2})])
def test_many_parts_at_once_that_leave_out_some(inside: str, read: set[int]) -> None:
    """Several parts are built by one statement: rows that belong to none of them do not count."""
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute(same("p", f"SELECT v, count(*) AS n FROM m[{inside}] GROUP BY v", 30, " BACKFILL"))
        db.insert("m", [(at(10 * n), "a", n) for n in range(31)])
        assert {v for v, _ in rows(db, "SELECT v, n FROM p")} == {n for n in range(30) if n % 3 in read}


def test_a_view_begins_where_initialize_says() -> None:
    """What only UPDATE reads has no say in it, even if nothing has come to it yet."""
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute("CREATE STREAM other (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITION LENGTH 10 RETAIN ALL")
        db.insert("m", [(at(10 * n), "a", n) for n in range(4)])
        db.execute(
            "CREATE VIEW v AS INITIALIZE v[i] AS SELECT k, v FROM m[i]"
            " UPDATE v[j] AS SELECT m.k, m.v FROM m[j] m JOIN other[j] o ON m.k = o.k PARTITION LENGTH 10"
        )
        assert rows(db, "SELECT k, v FROM v") == [("a", 2)]
        db.insert("other", [(at(35), "a"), (at(50), "a")])
        assert rows(db, "SELECT k, v FROM v") == [("a", 2)]
        db.insert("m", [(at(45), "a", 4)])
        assert rows(db, "SELECT k, v FROM v") == [("a", 2), ("a", 3)]


def test_a_view_of_parts_is_refreshed() -> None:
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute(same("p", "SELECT k, v FROM m[j]"))
        db.insert("m", [(at(1), "a", 1), (at(15), "b", 3)])
        before = rows(db, "SELECT * FROM p")
        db.execute("REFRESH p")
        assert rows(db, "SELECT * FROM p") == before == [("a", 1)]


def test_an_ordinary_view_is_read_whole() -> None:
    """Nobody else wants its changes; the parts that read it are built again all the same."""
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute("CREATE TABLE t (k STRING, w INT); CREATE VIEW o AS SELECT k, sum(w) AS w FROM t GROUP BY k")
        db.execute(same("p", "SELECT a.k, b.w FROM m[j] a LEFT JOIN o b ON a.k = b.k"))
        db.insert("m", [(at(1), "a", 1), (at(15), "b", 3)])
        db.insert("t", [("a", 7)])
        assert rows(db, "SELECT * FROM p") == [("a", 7)]


@pytest.mark.parametrize(
    ("item", "value"), [("max_by(k, ' x ')", "b"), ("max_by('c', v)", "c"), ("collect_list('d')", ["d", "d"])]
)
def test_constants_that_aggregates_would_be_ordered_by(item: str, value: object) -> None:
    with hw.connect() as db:
        db.execute(STREAM)
        db.execute(same("p", f"SELECT {item} AS c FROM m[j] GROUP BY ts"))
        db.insert("m", [(at(1), "b", 1), (at(1), "b", 2), (at(15), "b", 3)])
        assert db.query("SELECT c FROM p").to_pylist() == [{"c": value}]
