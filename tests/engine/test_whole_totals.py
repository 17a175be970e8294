"""Totals of integers that are only shown: the same as ever, without decimals in between."""

from __future__ import annotations

import headwater as hw
from headwater.algebra.nodes import Present
from headwater.emit.whole_totals import whole_totals
from tests.engine.part_support import minute

LARGE = 9_223_372_036_854_775_807


def with_view(select: str, group: str = "GROUP BY k") -> hw.Database:
    db = hw.connect()
    assert isinstance(db, hw.Database)
    db.execute(
        f"""
        CREATE STREAM m (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts PARTITION LENGTH 60;
        CREATE VIEW v AS INITIALIZE v[i] AS SELECT {select} FROM m[i] {group}
        UPDATE v[j] AS SELECT {select} FROM m[j] {group} PARTITION LENGTH 60 BACKFILL
        """
    )
    return db


def sent(db: hw.Database, *rows: tuple[str, int | None]) -> list[dict[str, object]]:
    with db.epoch() as epoch:
        epoch.insert("m", [{"ts": minute(0.5), "k": k, "x": x} for k, x in rows])
        epoch.advance_stream("m", minute(1))
    return sorted(db.query("SELECT * FROM v").to_pylist(), key=str)


def update_statement(db: hw.Database) -> str:
    [stage] = [one for one in db.engine.schedule.stages if one.parts is not None]
    assert stage.parts is not None
    return stage.parts.evaluating(False, frozenset({"m"})).fresh


def test_sums_are_exact_and_null_over_nothing() -> None:
    with with_view("k, sum(x) AS s, sum(x) - 1 AS less, count(x) AS n") as db:
        assert "DECIMAL" not in update_statement(db)
        found = sent(db, ("a", LARGE), ("a", -1), ("a", 1), ("b", None), ("c", None), ("c", 0), ("d", 2))
        assert found == [
            {"k": "a", "s": LARGE, "less": LARGE - 1, "n": 3},
            {"k": "b", "s": None, "less": None, "n": 0},
            {"k": "c", "s": 0, "less": -1, "n": 1},
            {"k": "d", "s": 2, "less": 1, "n": 1},
        ]


def test_a_sum_without_groups_is_null_over_nothing() -> None:
    with with_view("sum(x) AS s, count(*) AS n", group="") as db:
        assert sent(db, ("a", None)) == [{"s": None, "n": 1}]


def test_a_sum_that_overflows_suspends_the_view() -> None:
    with with_view("k, sum(x) AS s") as db:
        assert sent(db, ("a", LARGE), ("a", 1)) == []
        [state] = [one for one in db.status()["relations"] if one["name"] == "v"]  # type: ignore[attr-defined]
        assert (
            state["reason"] == f"{LARGE + 1} is out of range for BIGINT, in part 28401120 (2024-01-01 00:00:00) (HW502)"
        )


def test_what_is_shown_as_something_else_stays_a_decimal() -> None:
    with with_view("k, avg(x) AS a, sum(x) AS s, sum(length(k)) AS t") as db:
        program = db.find("v").parts
        assert program is not None
        [present] = [node for node in program.update.query.walk() if isinstance(node, Present)]
        averaged = [name for name, term in present.sums.terms if "x" in str(term) and "null" not in str(term)]
        assert whole_totals(present).isdisjoint(averaged) and len(whole_totals(present)) == 1
        assert sent(db, ("ab", 1), ("ab", 2)) == [{"k": "ab", "a": 1.5, "s": 3, "t": 4}]
