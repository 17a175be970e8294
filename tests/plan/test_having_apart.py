"""HAVING of groups below others: a condition on what is read, so that groups that differ in it alone are one map."""

from __future__ import annotations

import pytest

import headwater as hw
from tests.engine.support import opened, rows

GROUPS = "SELECT a.k, a.s FROM (SELECT k, {shown} AS s FROM t GROUP BY k HAVING {having}) a JOIN u ON a.k = u.k"


def maps_of(db: hw.Database, view: str) -> set[str]:
    program = db.find(view).program
    assert program is not None
    return {one.name for one in program.maps if one.name != view}


@pytest.mark.parametrize(
    ("shown", "first", "second", "shared"),
    [
        ("sum(x)", "sum(x) > 3", "sum(x) > 20", True),
        ("count(x)", "count(*) > 1", "count(*) < 9", True),
        ("max(x)", "max(x) < 5 AND count(*) > 1", "max(x) < 7 AND count(*) > 2", True),
        # One part of HAVING guards another.
        ("100 div count(x)", "count(x) > 0 AND 100 div count(x) > 3", "count(x) > 0 AND 100 div count(x) > 9", False),
        # What is shown of a group may fail where HAVING does not hold: it is computed nowhere else.
        ("10 div sum(x)", "sum(x) > 0", "sum(x) > 2", False),
        ("sum(x)", "count(*) > 1", "count(*) < 9", False),
        # And HAVING itself may fail, for every group.
        ("count(*)", "10 div count(*) > 1", "10 div count(*) > 2", False),
    ],
)
def test_groups_that_differ_in_having(shown: str, first: str, second: str, shared: bool) -> None:
    views = {name: GROUPS.format(shown=shown, having=having) for name, having in (("v", first), ("w", second))}
    with opened() as db:
        db.execute("CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT)")
        for name, text in views.items():
            db.execute(f"CREATE VIEW {name} STRATEGY 'tree' AS {text}")
        both = maps_of(db, "v") & maps_of(db, "w")
        assert bool(both) == shared
        for number in range(6):
            db.insert("t", [(key, key % 4 + number + 1) for key in range(1, 8)])
            db.insert("t", [(9, None)])
            db.insert("u", [(number,), (number + 1,), (9,)])
            if number % 2:
                db.execute(f"DELETE FROM t WHERE k = {number}; DELETE FROM t WHERE x = {number}")
            for name, text in views.items():
                assert rows(db, f"SELECT * FROM {name}") == sorted(
                    tuple(row.values()) for row in db.query(text, views=False).to_pylist()
                )
