"""SHOW MAPS, and how large stores are said to be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.serve.sizes import store_sizes, width_of
from tests.engine.support import refused

SQL = """
CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT NOT NULL);
CREATE TABLE shop (name STRING, city STRING);
CREATE VIEW spread AS SELECT total, COUNT(*) AS shops
  FROM (SELECT shop, SUM(euros) AS total FROM sale GROUP BY shop) t GROUP BY total;
CREATE VIEW cities STRATEGY 'tree' AS SELECT city, SUM(euros) AS euros FROM sale JOIN shop ON shop = name GROUP BY city;
INSERT INTO sale VALUES (1, 'anna', 10), (2, 'bo', 5), (3, 'bo', 7);
INSERT INTO shop VALUES ('anna', 'Rome'), ('bo', 'Oslo')
"""


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        database.execute(SQL)
        yield database


def shown(db: hw.Database, statement: str) -> list[dict[str, object]]:
    table = db.execute(statement)[0].table
    assert table is not None
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def test_show_maps(db: hw.Database) -> None:
    columns = ("map", "role", "views", "keys", "kept", "rows", "bytes")
    assert [tuple(row[name] for name in columns) for row in shown(db, "SHOW MAPS")] == [
        # key, count, sum, what of the row they do not say, whether it is shown, and in every store multiplicity, epoch
        (
            "spread$1",
            "PRE-AGGREGATION",
            "spread",
            "sale.shop",
            "by changes",
            2,
            2 * (7 + 8 + 16 + 8 + 1 + 16),
        ),
        ("spread", "final view", "spread", "t.total", "by changes", 2, 2 * (8 + 8 + 1 + 16)),
        ("cities$1", "PRE-AGGREGATION and REVERSE-JOIN", "cities", "shop", "partial sums", 2, 2 * (40 + 7)),
        ("cities", "final view", "cities", "shop.city", "by changes", 2, 2 * (8 + 8 + 16 + 8 + 1 + 16)),
    ]


def test_show_maps_of_a_view(db: hw.Database) -> None:
    assert [row["map"] for row in shown(db, "SHOW MAPS OF Cities")] == ["cities$1", "cities"]
    assert [row["map"] for row in shown(db, "show maps of cities like '%1'")] == ["cities$1"]
    with refused(db, "HW102"):
        db.execute("SHOW MAPS OF nobody")
    with refused(db, "HW104"):
        db.execute("SHOW MAPS OF sale")


def test_no_maps() -> None:
    with hw.connect() as empty:
        assert shown(empty, "SHOW MAPS") == []


def test_sizes_follow_what_is_stored(db: hw.Database) -> None:
    before = store_sizes(db.warehouse, ["sale", "spread", "nothing"])
    assert before["sale"].rows == 3
    assert "nothing" not in before
    db.insert("sale", [(i, "x" * 100, i) for i in range(10, 1010)])
    after = store_sizes(db.warehouse, ["sale"])["sale"]
    assert after.rows == 1003
    assert 1000 * 100 < after.bytes < 1000 * 140


def test_explain_has_the_sizes_of_what_is_there(db: hw.Database) -> None:
    assert "-- spread$1: PRE-AGGREGATION; 2 rows, about 112 bytes" in str(db.explain("spread"))
    tree = str(db.explain("SELECT shop FROM sale", "tree"))
    assert "query: final view, by changes\n" in tree
    assert "sale: base table, key (id), stored, 3 rows, about 92 bytes" in tree


def test_sizes_are_the_same_after_reopening(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as one:
        one.execute(SQL)
        before = shown(one, "SHOW MAPS")
    with hw.connect(tmp_path / "w") as again:
        assert shown(again, "SHOW MAPS") == before


def test_every_type_has_a_width_or_a_length() -> None:
    with hw.connect() as other:
        assert isinstance(other, hw.Database)
        other.execute("""
            CREATE TABLE everything (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f DECIMAL(4,1), g DECIMAL(38,2),
              h FLOAT, i DOUBLE, j STRING, k BINARY, l DATE, m TIMESTAMP, n INTERVAL DAY TO SECOND,
              o INTERVAL YEAR TO MONTH, p ARRAY<INT>, q MAP<STRING, INT>, r STRUCT<x: INT>);
            INSERT INTO everything SELECT true, 1Y, 1S, 1, 1L, 1.5, 2.5, CAST(1 AS FLOAT), 1D, 'text', X'00FF',
              DATE '2024-01-01', TIMESTAMP '2024-01-01', INTERVAL '1' DAY, INTERVAL '1' MONTH, array(1, 2), map('a', 1),
              named_struct('x', 1);
            INSERT INTO everything (a) VALUES (NULL)
        """)
        (size,) = store_sizes(other.warehouse, ["everything"]).values()
        kinds = other.warehouse.connection.execute(
            "SELECT data_type FROM duckdb_columns() WHERE table_name = 'everything'"
        ).fetchall()
    assert size.rows == 2
    assert size.bytes > 2 * sum(width_of(kind) or 0 for (kind,) in kinds)
    unknown = {kind for (kind,) in kinds if width_of(kind) is None}
    assert unknown == {"VARCHAR", "BLOB", "INTEGER[]", "MAP(VARCHAR, INTEGER)", "STRUCT(x INTEGER)"}
