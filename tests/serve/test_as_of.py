"""AS OF: relations as they were, while their changes are kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from tests.engine.support import opened, rows

import headwater as hw

START = dt.datetime(2026, 1, 1)


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def db(clock: Hand) -> Iterator[hw.Database]:
    with opened(clock=clock) as database:
        database.execute("""
            CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT) RETAIN CHANGES ALL;
            CREATE STREAM feed (k INT, x INT) KEY (k) RETAIN ALL RETAIN CHANGES ALL;
            CREATE STREAM log (x INT) RETAIN ALL;
            CREATE VIEW total RETAIN CHANGES ALL AS
                SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop HAVING sum(euros) > 1;
            CREATE VIEW plain AS SELECT id FROM sale
        """)
        yield database


def remembered(db: hw.Database, clock: Hand) -> dict[int, dict[str, list[object]]]:
    """Some epochs, and what the relations held after each."""
    names = ("sale", "feed", "log", "total")
    seen = {0: {name: rows(db, name) for name in names}}
    steps = [
        lambda: db.insert("sale", [(1, "a", 5), (2, "b", 1), (3, "a", 2)]),
        lambda: db.insert("feed", [(1, 1), (2, 2)]),
        lambda: db.insert("log", [(1,), (1,), (2,)]),
        lambda: db.execute("UPDATE sale SET euros = 9 WHERE id = 2"),
        lambda: db.delete_keys("sale", [1]),
        lambda: db.insert("feed", [(1, 7)]),
        lambda: db.insert("log", [(3,)]),
        lambda: db.execute("DELETE FROM sale"),
    ]
    for step in steps:
        clock.now += dt.timedelta(seconds=10)
        step()
        seen[db.engine.epoch] = {name: rows(db, name) for name in names}
    return seen


def test_every_relation_is_as_it_was(db: hw.Database, clock: Hand) -> None:
    seen = remembered(db, clock)
    for epoch, held in seen.items():
        for name, expected in held.items():
            assert rows(db, f"SELECT * FROM {name} AS OF EPOCH {epoch}") == expected, (name, epoch)
            assert rows(db, f"SELECT * FROM {name} VERSION AS OF {epoch}") == expected
            assert rows(db, f"SELECT x.* FROM {name} FOR VERSION AS OF {epoch} AS x") == expected
            assert sorted(tuple(r.values()) for r in db.query(f"SELECT * FROM {name}", as_of=epoch).to_pylist()) == (
                sorted(expected)
            )


def test_a_moment_means_the_last_epoch_then(db: hw.Database, clock: Hand) -> None:
    seen = remembered(db, clock)
    for epoch in range(1, 9):
        at = START + dt.timedelta(seconds=10 * epoch + 5)
        if at > clock.now:
            continue
        for query in (
            f"SELECT * FROM total TIMESTAMP AS OF '{at}'",
            f"SELECT * FROM total AS OF TIMESTAMP '{at}'",
            f"SELECT * FROM total FOR TIMESTAMP AS OF TIMESTAMP '{at}'",
            f"SELECT * FROM total WHERE true AS OF TIMESTAMP '{at}'",
            f"SELECT * FROM total TIMESTAMP AS OF now() - INTERVAL {int((clock.now - at).total_seconds())} SECONDS",
        ):
            assert rows(db, query) == seen[epoch]["total"], query
        assert db.query("SELECT * FROM total", as_of=at.replace(tzinfo=dt.UTC)).num_rows == len(seen[epoch]["total"])


def test_a_query_reads_all_its_relations_at_one_point(db: hw.Database, clock: Hand) -> None:
    remembered(db, clock)
    query = "SELECT count(*) FROM sale s JOIN total t ON s.shop = t.shop WHERE s.id > 0"
    assert rows(db, f"{query} AS OF EPOCH 1") == [(2,)]
    assert rows(db, f"{query} AS OF EPOCH 4") == [(3,)]
    assert rows(db, query) == [(0,)]
    assert db.execute(f"{query} VERSION AS OF 4")[0].table.to_pylist() == [{"count(*)": 3}]
    # What a relation says for itself counts more.
    assert rows(db, "SELECT count(*) FROM sale AS OF EPOCH 1 s JOIN total t ON s.shop = t.shop AS OF EPOCH 4") == [(3,)]
    inner = "SELECT (SELECT count(*) FROM sale) AS now, count(*) AS n FROM sale AS OF EPOCH 1"
    assert rows(db, inner) == [(0, 3)]
    assert rows(db, f"SELECT * FROM ({inner}) q AS OF EPOCH 4") == [(3, 3)]


def test_rows_that_came_later_are_not_computed(db: hw.Database) -> None:
    """A row that would fail, and was not there then, is nobody's business."""
    db.insert("sale", [(1, "a", 5)])
    db.insert("sale", [(2, "a", 0)])
    with pytest.raises(hw.UserError):
        db.query("SELECT 10 div euros FROM sale")
    assert rows(db, "SELECT 10 div euros FROM sale AS OF EPOCH 1 WHERE 10 div euros > 0") == [(2,)]


def test_it_is_exact_after_stores_were_rewritten(db: hw.Database, clock: Hand) -> None:
    seen = remembered(db, clock)
    db.engine.urgent |= {"sale", "total", "feed"}
    assert db.consolidator.wait(30)
    for epoch, held in seen.items():
        for name, expected in held.items():
            assert rows(db, f"SELECT * FROM {name} AS OF EPOCH {epoch}") == expected, (name, epoch)


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("SELECT * FROM plain AS OF EPOCH 1", "HW342", "RETAIN CHANGES"),
        ("SELECT * FROM total AS OF EPOCH 99", "HW342", "has not come yet"),
        ("SELECT * FROM total AS OF TIMESTAMP '2030-01-01'", "HW342", "has not come yet"),
        ("SELECT * FROM total AS OF TIMESTAMP '1999-01-01'", "HW342", "nothing is known"),
        ("SELECT * FROM total VERSION AS OF 1.5", "HW341", "not the number of an epoch"),
        ("SELECT * FROM total TIMESTAMP AS OF 'soon'", "HW341", "not a moment"),
        ("SELECT * FROM total TIMESTAMP AS OF shop", "HW341", "is a name"),
        ("WITH q AS (SELECT 1) SELECT * FROM q VERSION AS OF 1", "HW340", "WITH"),
        ("CREATE VIEW w AS SELECT * FROM total AS OF EPOCH 1", "HW340", "answered once"),
    ],
)
def test_what_cannot_be_asked(db: hw.Database, query: str, code: str, says: str) -> None:
    db.insert("sale", [(1, "a", 5)])
    with pytest.raises(hw.HeadwaterError) as caught:
        db.execute(query)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_what_is_gone_is_said_to_be_gone(clock: Hand) -> None:
    with opened(clock=clock) as db:
        db.execute(
            "CREATE TABLE t (x INT) RETAIN CHANGES 1 MINUTE; CREATE VIEW v RETAIN CHANGES 1 MINUTE AS SELECT x FROM t"
        )
        for x in range(10):
            clock.now += dt.timedelta(seconds=30)
            db.insert("t", [(x,)])
        from headwater.engine.consolidate import trim_changes

        for name in ("t", "v"):
            trim_changes(db.engine, name, share=0)
            first = db.find(name).begins
            assert 0 < first < 10
            assert len(rows(db, f"SELECT * FROM {name} AS OF EPOCH {first}")) == first
            with pytest.raises(hw.UserError, match=f"from epoch {first} on"):
                db.query(f"SELECT * FROM {name} AS OF EPOCH {first - 1}")


def test_a_relation_that_did_not_exist_yet(db: hw.Database) -> None:
    db.insert("sale", [(1, "a", 5)])
    db.insert("sale", [(2, "a", 5)])
    db.execute("CREATE VIEW late RETAIN CHANGES ALL AS SELECT id FROM sale")
    assert len(rows(db, "SELECT * FROM late AS OF EPOCH 2")) == 2
    with pytest.raises(hw.UserError, match="made after epoch 2"):
        db.query("SELECT * FROM late AS OF EPOCH 1")


def test_a_stream_that_forgets(clock: Hand) -> None:
    with opened(clock=clock) as db:
        db.execute("CREATE STREAM s (x INT) RETAIN 1 MINUTE")
        seen: dict[int, list[object]] = {}
        for x in range(8):
            clock.now += dt.timedelta(seconds=20)
            db.insert("s", [(x,)])
            seen[db.engine.epoch] = rows(db, "s")
        for epoch, expected in seen.items():
            assert rows(db, f"SELECT * FROM s AS OF EPOCH {epoch}") == expected
        from headwater.engine.consolidate import trim

        trim(db.engine, "s")
        assert rows(db, "SELECT * FROM s AS OF EPOCH 8") == seen[8]
        with pytest.raises(hw.UserError, match="are gone"):
            db.query("SELECT * FROM s AS OF EPOCH 3")


def test_a_stream_without_a_key_keeps_no_changes() -> None:
    with opened() as db, pytest.raises(hw.UserError, match="needs a KEY"):
        db.execute("CREATE STREAM s (x INT) RETAIN CHANGES ALL")


def test_it_is_the_same_after_a_restart(tmp_path: object, clock: Hand) -> None:
    with opened(tmp_path, clock) as db:
        db.execute("CREATE TABLE t (x INT) RETAIN CHANGES ALL")
        db.insert("t", [(1,)])
        db.execute("UPDATE t SET x = 2")
    with opened(tmp_path, clock) as db:
        assert rows(db, "SELECT * FROM t AS OF EPOCH 1") == [(1,)]
        assert rows(db, "SELECT * FROM t") == [(2,)]
