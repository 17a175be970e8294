"""Stamps: what was read of a store holds as long as its stamp is the same."""

from __future__ import annotations

import headwater as hw
from headwater.engine.stamps import Stamps


def test_only_what_changed_moves() -> None:
    stamps = Stamps()
    before = stamps.take(["a", "b"])
    stamps.move(["c"])
    assert stamps.take(["a", "b"]) == before
    stamps.move(["b"])
    assert stamps.take(["a", "b"]) != before
    assert stamps.take(["a"]) == before[:2]


def test_an_epoch_moves_what_it_stores(db: hw.Database) -> None:
    db.execute(
        "CREATE TABLE a (x INT); CREATE TABLE b (x INT); CREATE VIEW v AS SELECT x, count(*) n FROM a GROUP BY x"
    )
    stamps = db.engine.stamps
    a, b, v = (stamps.take([one]) for one in ("a", "b", "v"))
    db.insert("b", [{"x": 1}])
    assert (stamps.take(["a"]), stamps.take(["v"])) == (a, v)
    assert stamps.take(["b"]) != b
    db.insert("a", [{"x": 1}])
    assert stamps.take(["a"]) != a
    assert stamps.take(["v"]) != v


def test_making_a_relation_moves_all(db: hw.Database) -> None:
    db.execute("CREATE TABLE a (x INT)")
    before = db.engine.stamps.take(["a"])
    db.execute("CREATE TABLE b (x INT)")
    assert db.engine.stamps.take(["a"]) != before
