"""Every read sees one epoch, never an older one than before, and nobody waits for anybody.

`HEADWATER_SOAK_SECONDS` makes the runs longer; `make soak` has ten minutes.
"""

from __future__ import annotations

import os
import random
import threading
import time

import pyarrow as pa
import pytest
from tests.engine.support import opened

import headwater as hw

SECONDS = float(os.environ.get("HEADWATER_SOAK_SECONDS", "4"))
ACCOUNTS = 20
TOTAL = 2 * ACCOUNTS * 100


def bank(path: object = ":memory:") -> hw.Database:
    """Accounts in two tables; a transfer takes from one table and gives to the other."""
    db = opened(path)
    db.execute("""
        CREATE TABLE here (id INT PRIMARY KEY, euros INT);
        CREATE TABLE there (id INT PRIMARY KEY, euros INT);
        CREATE TABLE journal (number INT);
        CREATE VIEW held AS SELECT sum(euros) AS euros FROM here;
        CREATE VIEW rich AS SELECT id, euros FROM there WHERE euros > 100;
        CREATE VIEW poor AS SELECT id, euros FROM there WHERE euros <= 100;
        CREATE INDEX by_euros ON rich (euros)
    """)
    with db.epoch() as e:
        e.insert("here", [(i, 100) for i in range(ACCOUNTS)])
        e.insert("there", [(i, 100) for i in range(ACCOUNTS)])
        e.insert("journal", [(0,)])
    return db


class Clerk:
    """Transfers money, each time in one epoch, and writes a number into the journal."""

    def __init__(self, db: hw.Database, seed: int) -> None:
        self.db, self.rng, self.number = db, random.Random(seed), 0
        self.accounts = {name: [100] * ACCOUNTS for name in ("here", "there")}

    def transfer(self) -> None:
        self.number += 1
        source, target = self.rng.sample(["here", "there"], 2)
        amount = self.rng.randrange(1, 50)
        one, other = self.rng.randrange(ACCOUNTS), self.rng.randrange(ACCOUNTS)
        self.accounts[source][one] -= amount
        self.accounts[target][other] += amount
        with self.db.epoch() as e:
            e.upsert(source, [(one, self.accounts[source][one])])
            e.upsert(target, [(other, self.accounts[target][other])])
            e.delete("journal", [(self.number - 1,)])
            e.insert("journal", [(self.number,)])


#: Each gives all the money there is, and the number in the journal.
AUDITS = (
    """SELECT (SELECT sum(euros) FROM here) + (SELECT sum(euros) FROM there) AS euros,
       (SELECT max(number) FROM journal) AS n""",
    "SELECT (SELECT euros FROM held) + (SELECT sum(euros) FROM there) AS euros, (SELECT max(number) FROM journal) AS n",
    """SELECT (SELECT euros FROM held) + coalesce((SELECT sum(euros) FROM rich), 0)
       + coalesce((SELECT sum(euros) FROM poor), 0) AS euros, (SELECT max(number) FROM journal) AS n""",
)  # fmt: skip


@pytest.mark.parametrize("durable", [False, True])
def test_the_books_always_balance(durable: bool, tmp_path: object) -> None:
    with bank(tmp_path if durable else ":memory:") as db:
        clerk, wrong = Clerk(db, 1), list[object]()
        end = time.monotonic() + SECONDS / 2
        reads = [0, 0, 0]

        def write() -> None:
            while time.monotonic() < end and not wrong:
                clerk.transfer()
                if clerk.number % 40 == 0:  # stores are rewritten meanwhile
                    db.engine.urgent |= {"here", "there", "journal", "rich", "poor"}
                    db.consolidator.nudge()

        def read(which: int) -> None:
            rng, last = random.Random(which), 0
            try:
                while time.monotonic() < end and not wrong:
                    [row] = db.query(rng.choice(AUDITS)).to_pylist()
                    if row["euros"] != TOTAL or row["n"] < last:
                        wrong.append((row, last))
                    last = row["n"]
                    [alone] = db.query("SELECT number FROM journal").to_pylist()  # often from memory
                    if alone["number"] < last:
                        wrong.append((alone, last))
                    last = alone["number"]
                    reads[which] += 1
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(i,)) for i in range(3))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert not wrong, wrong[:3]
        assert clerk.number > 5
        assert all(reads)


def test_a_long_query_does_not_hold_the_writer_up() -> None:
    with opened() as db:
        db.execute("CREATE TABLE t (x INT); CREATE VIEW v AS SELECT count(*) AS n FROM t")
        db.insert("t", pa.table({"x": pa.array(range(3_000), pa.int32())}))
        began, done = threading.Event(), list[object]()

        def slow() -> None:
            began.set()
            query = (
                "SELECT count(*) AS n, max(a.x * b.x % 7 + c.x) AS m FROM t a, t b, t c WHERE c.x < 2 AND a.x + b.x > 3"
            )
            done.append(db.query(query).to_pylist()[0]["n"])

        thread = threading.Thread(target=slow)
        thread.start()
        began.wait()
        epochs = beside = 0
        while thread.is_alive() and epochs < 5:
            db.insert("t", [(5,)])
            epochs += 1
            assert db.query("SELECT n FROM v").to_pylist() == [{"n": 3_000 + epochs}]
            beside += thread.is_alive()
        thread.join()
        assert beside, "the writer waited for the query"
        assert done


def test_a_long_epoch_does_not_hold_readers_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers go on while an epoch is under way, and see what was there before it."""
    with opened() as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT); CREATE INDEX i ON t (x)")
        db.insert("t", [(1, 1)])
        inside, leave = threading.Event(), threading.Event()
        from headwater.engine import faults

        def wait(point: str) -> None:
            if point == "before commit":
                inside.set()
                assert leave.wait(30)

        monkeypatch.setattr(faults, "reach", wait)
        writer = threading.Thread(target=lambda: db.insert("t", [(2, 2)]))
        writer.start()
        assert inside.wait(30)
        try:
            assert db.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 1}]
            assert db.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 1}]
            assert db.get("t", 2) is None
            assert db.get("t", {"x": 1}) == {"id": 1, "x": 1}
            assert db.get_many("t", [1, 2]).num_rows == 1
        finally:
            leave.set()
            writer.join()
        assert db.query("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]
        assert db.get("t", {"x": 2}) == {"id": 2, "x": 2}
