"""Copies of relations that do not change: what is read from them is what the relations hold, come what may."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.serve.settled import ENOUGH

VIEWS = ("EVERY EPOCH", "ON QUERY")


@pytest.fixture
def db() -> Iterator[hw.Database]:
    made = hw.connect(":memory:")
    assert isinstance(made, hw.Database)
    made.execute("CREATE TABLE t (k INT, n INT)")
    made.insert("t", [{"k": i % 5, "n": i} for i in range(20)])
    yield made
    made.close()


def ask(db: hw.Database, view: str, least: int) -> list[tuple[object, ...]]:
    found = db.query(f"SELECT k, n FROM {view} WHERE n >= {least}").to_pydict()
    return sorted(zip(found["k"], found["n"], strict=True))


def expected(rows: dict[int, int], least: int) -> list[tuple[object, ...]]:
    return sorted((k, n) for k, n in rows.items() if n >= least)


@pytest.mark.parametrize("refresh", VIEWS)
def test_copies_follow_every_epoch(db: hw.Database, refresh: str) -> None:
    db.execute(f"CREATE VIEW v REFRESH {refresh} AS SELECT k, sum(n) AS n FROM t GROUP BY k")
    rows = {k: sum(range(k, 20, 5)) for k in range(5)}
    number = 0
    for epoch in range(6):
        for _ in range(2 * ENOUGH):
            number += 1
            assert ask(db, "v", number) == expected(rows, number)
        if epoch % 2:
            db.execute(f"DELETE FROM t WHERE k = {epoch}")
            rows.pop(epoch, None)
        else:
            db.insert("t", [{"k": epoch, "n": 100}])
            rows[epoch] = rows.get(epoch, 0) + 100
    assert db.reading.settled.hits > 6


def test_equal_rows_are_all_there(db: hw.Database) -> None:
    db.execute("CREATE VIEW v AS SELECT k FROM t")
    for number in range(4 * ENOUGH):
        assert db.query(f"SELECT k FROM v WHERE k > -{number + 1}").num_rows == 20
        assert (
            db.query(f"SELECT k, count(*) AS c FROM v WHERE k > -{number + 1} GROUP BY k")["c"].to_pylist() == [4] * 5
        )
    assert db.reading.settled.hits


def test_a_copy_is_gone_when_the_clock_says_otherwise() -> None:
    with hw.connect(":memory:") as made:
        assert isinstance(made, hw.Database)
        made.advance_clock(dt.datetime(2024, 1, 1))
        made.execute("CREATE TABLE t (at TIMESTAMP, n INT)")
        made.insert("t", [{"at": dt.datetime(2024, 1, 1 + i), "n": i} for i in range(9)])
        made.execute("CREATE VIEW v REFRESH ON QUERY AS SELECT n FROM t WHERE at <= now()")
        for day in range(1, 9):
            for number in range(2 * ENOUGH):
                assert made.query(f"SELECT n FROM v WHERE n > -{number + 1}").num_rows == day
            made.advance_clock(dt.datetime(2024, 1, 1 + day))


def test_a_copy_is_gone_with_its_relation(db: hw.Database) -> None:
    for number in range(2 * ENOUGH):
        db.query(f"SELECT k FROM t WHERE k > {number}")
    assert db.reading.settled.hits
    db.execute("DROP TABLE t; CREATE TABLE t (k STRING); INSERT INTO t VALUES ('x')")
    for number in range(2 * ENOUGH):
        assert db.query(f"SELECT k FROM t WHERE k > '{number}'").num_rows == 1


def test_errors_are_those_of_the_relation(db: hw.Database) -> None:
    for number in range(3 * ENOUGH):
        with pytest.raises(hw.HeadwaterError) as caught:
            db.query(f"SELECT 10 / n AS q FROM t WHERE n > -{number + 1}")
        assert caught.value.code == "HW501"
        db.query(f"SELECT k FROM t WHERE n > {number}")


def test_readers_beside_a_writer_see_whole_epochs_that_never_go_back(db: hw.Database) -> None:
    """Two rows move together: their sum tells whether a reader saw half an epoch, their size whether an old one."""
    db.execute("CREATE TABLE pair (who INT, n INT); INSERT INTO pair VALUES (1, 0), (2, 0)")
    db.execute("CREATE VIEW w AS SELECT who, sum(n) AS n FROM pair GROUP BY who")
    stop, wrong = threading.Event(), []

    def read(salt: int) -> None:
        last, number = 0, salt
        while not stop.is_set():
            number += 7
            found = db.query(f"SELECT sum(n) AS s, max(n) AS m FROM w WHERE who < {number}").to_pylist()[0]
            if found["s"] != 2 * found["m"] or found["m"] < last:
                wrong.append((found, last))
            last = found["m"]

    threads = [threading.Thread(target=read, args=(salt,)) for salt in (10, 11)]
    for one in threads:
        one.start()
    for _ in range(60):
        db.insert("pair", [{"who": 1, "n": 1}, {"who": 2, "n": 1}])
        stop.wait(0.02)
    stop.set()
    for one in threads:
        one.join()
    assert not wrong
    assert db.reading.settled.hits
