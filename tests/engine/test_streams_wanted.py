"""Columns and rows of a stream that no view can use are not stored; those that one can are."""

from __future__ import annotations

import headwater as hw

ROWS = [(3, 1, 5), (1, 1, 5), (2, 1, 5), (9, 2, 1)]


def test_a_window_breaks_ties_by_columns_that_it_does_not_show() -> None:
    query = "SELECT k, row_number() OVER (ORDER BY v) AS n FROM s"
    found = []
    for options in ("", "RETAIN ALL"):
        with hw.connect() as db:
            db.execute(f"CREATE STREAM s (x INT, k INT, v INT) {options}; CREATE VIEW w AS {query}")
            db.insert("s", ROWS[:2])
            db.insert("s", ROWS[2:])
            found.append(sorted(tuple(row.values()) for row in db.query("SELECT * FROM w").to_pylist()))
    assert found[0] == found[1]


def test_rows_that_no_view_can_use_are_not_stored() -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE STREAM s (x INT, k INT, v INT)")
        db.execute("CREATE VIEW w AS SELECT a.k, b.v FROM s a JOIN s b ON a.k = b.k WHERE a.v > 2 AND b.v > 2")
        db.insert("s", ROWS)
        assert db.query("SELECT k FROM w").num_rows == 9
        stored = db.warehouse.connection.execute("SELECT x, k, v FROM data.s").fetchall()
        assert stored == [(None, 1, 5)] * 3
