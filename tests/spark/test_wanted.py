"""Rows that no view can use stay in Spark; everything else is as if they had come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.support import bag, drain, opened, put

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

COLUMNS = "k INT NOT NULL, a DOUBLE, b DECIMAL(5,2), c STRING, d DATE, at TIMESTAMP, e BOOLEAN"
VIEWS = {
    "one": "SELECT k, a > 100.0 AS huge FROM s WHERE a > 1.5 AND d < DATE '2026-02-01' AND length(c) < 9",
    "two": """
        SELECT c, count(*) AS n FROM s WHERE (e OR at >= TIMESTAMP '2026-01-01 12:00:00') AND b IN (1, 2.5) GROUP BY c
    """,
    "three": "SELECT x.k, y.c FROM s x JOIN s y ON x.k = y.k WHERE x.c = 'v' AND y.b <= 2 AND NOT y.e",
}
ROWS = [
    {"k": k, "a": a, "b": b, "c": c, "d": d, "at": at, "e": e}
    for k, (a, b, c, d, at, e) in enumerate(
        (a, b, c, d, at, e)
        for a in ("NaN", 1.5, 2.0, None)
        for b in (1, 2.5, None)
        for c in ("v", "V")
        for d, at in (("2026-01-31", "2026-01-01 11:59:59"), ("2026-02-01", "2026-01-01 12:00:00"), (None, None))
        for e in (True, False, None)
    )
]


def test_views_are_as_if_all_rows_had_come(tmp_path: Path) -> None:
    inbox, parquet = tmp_path / "json", tmp_path / "parquet"
    put(inbox, "rows.json", ROWS)
    with opened(tmp_path / "all") as everything, opened(tmp_path / "w") as db, opened(tmp_path / "p") as columnar:
        everything.execute(f"CREATE STREAM s ({COLUMNS}) RETAIN ALL FROM json '{inbox}'")
        for view, query in VIEWS.items():
            everything.execute(f"CREATE VIEW {view} AS {query}")
        [all_rows] = drain(everything)
        assert all_rows.rows == {"s": len(ROWS)}

        parquet.mkdir()
        rows = everything.query("SELECT * FROM s")
        pq.write_table(
            rows.set_column(5, "at", rows.column("at").cast(pa.timestamp("us", "UTC"))), parquet / "x.parquet"
        )
        for other, source in ((db, f"json '{inbox}'"), (columnar, f"parquet '{parquet}'")):
            other.execute(f"CREATE STREAM s ({COLUMNS}) FROM {source}")
            for view, query in VIEWS.items():
                other.execute(f"CREATE VIEW {view} AS {query}")
            told = str(other.explain("one"))
            assert " of rows where " in told and " or a > {DOUBLE '1.5'} and d < {DATE '2026-02-01'};" in told
            [some] = drain(other)
            assert 0 < some.rows["s"] < len(ROWS)
            for view in VIEWS:
                found = bag(other, f"SELECT * FROM {view}")
                assert found and found == bag(everything, f"SELECT * FROM {view}")


def test_what_is_malformed_is_rejected_wanted_or_not(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    good = [{"k": 1, "a": 1}, {"k": 2, "a": 9}]
    bad = ['{"k": 1, "a": 1, "c": 5', '{"a": 1}', '{"a": 1, "k": "x"}', '{"a": 1, "k": 1, "d": "no day"}']
    bad += ['{"k": 1, "a": 1, "at": "+10001-01-01 00:00:00"}', '{"k": 1, "a": 1, "f": 200}']
    put(inbox, "rows.json", [*good, *bad])
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s ({COLUMNS}, f TINYINT) FROM json '{inbox}'")
        db.execute("CREATE VIEW big AS SELECT k FROM s WHERE a > 5")
        [one] = drain(db)
        assert (one.rows, one.rejects) == ({"s": 1}, {"s": 6})
        assert db.query("SELECT k FROM big").to_pylist() == [{"k": 2}]


def test_a_view_that_comes_later_gets_all_that_comes_later(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    put(inbox, "a.json", [{"k": 1, "a": 1.0}, {"k": 2, "a": 9.0}])
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s ({COLUMNS}) FROM json '{inbox}'")
        assert [one.rows for one in drain(db)] == [{}], "nobody reads it"
        db.execute("CREATE VIEW big AS SELECT x.k FROM s x JOIN s y ON x.k = y.k WHERE x.a > 5 AND y.a > 5")
        put(inbox, "b.json", [{"k": 3, "a": 1.0}, {"k": 4, "a": 9.0}])
        drain(db)
        db.execute("CREATE VIEW small AS SELECT k FROM s WHERE a < 5")
        put(inbox, "c.json", [{"k": 5, "a": 1.0}, {"k": 6, "a": 9.0}])
        drain(db)
        db.execute("DROP VIEW big")
        put(inbox, "d.json", [{"k": 7, "a": 1.0}, {"k": 8, "a": 9.0}])
        [last] = drain(db)
        assert last.rows == {"s": 1}
        assert bag(db, "SELECT k FROM small") == {(5,): 1, (7,): 1}
