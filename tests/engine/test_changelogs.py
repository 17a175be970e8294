"""Observers get exactly what changed: what is retracted was issued, and nothing cancels inside one changelog."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

import headwater as hw
from headwater.algebra.evaluate import Bag
from headwater.delta.interpret import Interpreter, minus, plus
from tests.engine.support import Changes, bag, rows

SQL = """
CREATE TABLE t (g INT, x INT);
CREATE TABLE u (g INT PRIMARY KEY, w STRING);
CREATE VIEW plain AS SELECT g, x FROM t WHERE x > 0;
CREATE VIEW sums AS SELECT g, sum(x) AS s, count(*) AS n, avg(x) AS a FROM t GROUP BY g;
CREATE VIEW shown AS SELECT g FROM t GROUP BY g HAVING sum(x) > 2;
CREATE VIEW total AS SELECT count(*) AS n, sum(x) AS s FROM t;
CREATE VIEW joined AS SELECT t.x, u.w FROM t JOIN u ON t.g = u.g;
CREATE VIEW itself AS SELECT a.x, b.x AS y FROM t a JOIN t b ON a.g = b.g;
CREATE VIEW over AS SELECT s.s, u.w FROM sums s JOIN u ON s.g = u.g;
CREATE VIEW twice AS SELECT g FROM t UNION ALL SELECT g FROM t;
CREATE VIEW slow STRATEGY 'recompute' AS SELECT u.w, count(*) AS n FROM t JOIN u ON t.g = u.g GROUP BY u.w
"""
VIEWS = ("plain", "sums", "shown", "total", "joined", "itself", "over", "twice", "slow")


def test_changelogs_equal_those_of_the_interpreter(db: hw.Database) -> None:
    rng = random.Random(1)
    db.execute(SQL)
    changes = Changes(db)
    oracle = Interpreter()
    for view in VIEWS:
        oracle.add_view(view, db.algebra(view))
    for number in range(1, 9):
        before = {name: bag(db, name) for name in ("t", "u", *VIEWS)}
        with db.epoch() as e:
            there = list(before["t"].elements())
            e.delete("t", rng.sample(there, min(len(there), rng.randint(0, 3))))
            e.insert("t", [(rng.choice([None, 1, 2]), rng.choice([None, -1, 1, 3])) for _ in range(rng.randint(0, 3))])
            if rng.random() < 0.6:
                e.upsert("u", [(rng.randint(1, 2), rng.choice("ab"))])
        moved = {name: minus(bag(db, name), before[name]) for name in ("t", "u")}
        expected = {view: change for view, change in oracle.apply(moved, number).items() if change}
        assert changes.last == expected
        for view in VIEWS:
            assert bag(db, view) == plus(before[view], changes.last.get(view, {})), view


def test_no_change_no_changelog(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (g INT, x INT); CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
    db.insert("t", [(1, 1), (1, 2)])
    changes = Changes(db)
    with db.epoch() as e:  # another division of the same sum and count
        e.delete("t", [(1, 1), (1, 2)])
        e.insert("t", [(1, 3), (1, 0)])
    assert changes.last == {}
    db.insert("t", [])
    assert changes.last == {}
    assert [number for number, _ in changes.epochs] == [2, 3]


def test_a_group_that_moves_in_payload_only_is_not_reported(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (g INT, x INT); CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g")
    db.insert("t", [(1, 5)])
    changes = Changes(db)
    db.insert("t", [(1, 0)])  # the count changes, which the view does not show
    assert changes.last == {}
    assert rows(db, "v") == [(1, 5)]


def test_observers_get_columns_and_a_count(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT, b STRING); CREATE VIEW v AS SELECT b, a FROM t")
    seen: list[Mapping[str, pa.Table]] = []
    db.observe(lambda epoch, changes: seen.append(dict(changes)))
    db.insert("t", [(1, "x"), (1, "x")])
    table = seen[0]["v"]
    assert table.column_names == ["b", "a", "#n"]
    assert table.to_pylist() == [{"b": "x", "a": 1, "#n": 2}]


def test_an_observer_changes_nothing(db: hw.Database) -> None:
    """With an observer a view's change is computed apart from its store; both ways lead to the same contents."""
    with hw.connect() as other:
        assert isinstance(other, hw.Database)
        Changes(other)
        for one in (db, other):
            one.execute(SQL)
            rng = random.Random(9)
            for _ in range(3):
                one.insert("t", [(rng.choice([None, 1, 2]), rng.choice([None, 1, 3])) for _ in range(3)])
                one.execute("UPDATE t SET x = x + 1 WHERE g = 1")
        for view in VIEWS:
            assert bag(db, view) == bag(other, view)


def test_an_observer_that_fails_does_not_undo_the_epoch(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")

    def fail(epoch: int, changes: Mapping[str, pa.Table]) -> None:
        raise RuntimeError("not mine")

    db.observe(fail)
    later = Changes(db)
    assert db.insert("t", [(1,)]).number == 1
    assert rows(db, "v") == [(1,)]
    assert later.last == {"v": {(1,): 1}}


def test_changelogs_of_rows_that_are_hard_to_tell_apart(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (x DOUBLE, b BINARY); CREATE VIEW v AS SELECT x, b FROM t")
    changes = Changes(db)
    nan = float("nan")
    db.insert("t", [(nan, b""), (nan, None), (0.0, b"\x00"), (-0.0, b"\x00"), (None, None)])
    first: Bag = Counter(changes.last["v"])
    assert sum(first.values()) == 5
    assert first[(0.0, b"\x00")] == 2
    with db.epoch() as e:
        e.delete("t", [(nan, None), (-0.0, b"\x00"), (None, None)])
    assert plus(first, changes.last["v"]) == bag(db, "v")
    assert len(bag(db, "v")) == 2
