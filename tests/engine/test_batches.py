"""Batches that are read as they came, and what happens when more comes, or an epoch fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.errors import HeadwaterError


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        opened.execute(
            "CREATE TABLE t (a INT NOT NULL, b INT); CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a"
        )
        yield opened


def rows(db: hw.Database, what: str = "v") -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(f"SELECT * FROM {what}").to_pylist())


def come_and_go(db: hw.Database) -> None:
    with db.epoch() as epoch:
        epoch.insert("t", [{"a": 5, "b": 5}])
        epoch.delete("t", [{"a": 7, "b": 7}])  # which is not there


def test_one_batch_after_the_other(db: hw.Database) -> None:
    for n in range(1, 4):
        db.insert("t", [{"a": 1, "b": n}, {"a": n, "b": None}])
    assert rows(db) == [(1, 4), (2, 1), (3, 1)]


def test_two_batches_in_an_epoch(db: hw.Database) -> None:
    for _ in range(2):
        with db.epoch() as epoch:
            epoch.insert("t", [{"a": 1, "b": 1}])
            epoch.insert("t", [{"a": 1, "b": 2}])
    assert rows(db) == [(1, 4)]


def test_a_row_that_comes_and_goes_in_an_epoch(db: hw.Database) -> None:
    for _ in range(2):  # a batch alone, a batch and a delete, and again: a view, a table, a view
        db.insert("t", [{"a": 2, "b": 2}])
        with db.epoch() as epoch:
            epoch.insert("t", [{"a": 1, "b": 1}, {"a": 1, "b": 1}])
            epoch.delete("t", [{"a": 1, "b": 1}])
    assert rows(db) == [(1, 2), (2, 2)]


def test_a_statement_between_batches(db: hw.Database) -> None:
    db.insert("t", [{"a": 1, "b": 1}])
    db.execute("UPDATE t SET a = 2 WHERE b = 1; DELETE FROM t WHERE a = 3; INSERT INTO t SELECT a + 1, b FROM t")
    db.insert("t", [{"a": 2, "b": 9}])
    assert rows(db) == [(2, 2), (3, 1)]


def test_an_epoch_that_is_refused_leaves_nothing_behind(db: hw.Database) -> None:
    db.insert("t", [{"a": 1, "b": 1}])
    for _ in range(2):
        with pytest.raises(HeadwaterError):
            come_and_go(db)
        with pytest.raises(HeadwaterError):
            db.insert("t", [{"a": None, "b": 5}])
        db.insert("t", [{"a": 1, "b": 1}])
    assert rows(db) == [(1, 3)]


def test_another_relation_of_the_same_name(db: hw.Database) -> None:
    db.insert("t", [{"a": 1, "b": 1}])
    db.execute(
        "DROP TABLE t CASCADE; CREATE TABLE t (x STRING); CREATE VIEW v AS SELECT x, COUNT(*) AS n FROM t GROUP BY x"
    )
    db.insert("t", [{"x": "one"}])
    with db.epoch() as epoch:
        epoch.insert("t", [{"x": "two"}])
        epoch.delete("t", [{"x": "one"}])
    assert rows(db) == [("two", 1)]


def test_many_readers_of_a_batch(db: hw.Database) -> None:
    for n in range(5):
        db.execute(f"CREATE VIEW v{n} AS SELECT b, SUM(a) AS s FROM t WHERE a > {n} GROUP BY b")
    db.insert("t", [{"a": 1, "b": 1}, {"a": 3, "b": 1}])
    assert [rows(db, f"v{n}") for n in range(4)] == [[(1, 4)], [(1, 3)], [(1, 3)], []]
