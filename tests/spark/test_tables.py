"""Views as Spark DataFrames."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from tests.spark.support import opened

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_a_view_as_a_dataframe(tmp_path: Path, where: str) -> None:
    db = opened(tmp_path / "w") if where == "disk" else hw.connect()
    assert isinstance(db, hw.Database)
    with db:
        db.execute(
            """
            CREATE TABLE t (k STRING, n INT, d DECIMAL(10,2), at TIMESTAMP, day DATE, xs ARRAY<INT>, s STRUCT<a: INT>);
            CREATE VIEW v AS SELECT k, count(*) AS c, sum(d) AS d FROM t GROUP BY k;
            """
        )
        at, day = dt.datetime(2026, 3, 1, 10, 30), dt.date(2026, 3, 1)
        db.insert(
            "t", [("a", 1, Decimal("1.50"), at, day, [1, None], {"a": 1}), ("a", None, None, None, None, None, None)]
        )
        frame = db.spark_table("v")
        assert dict(frame.dtypes) == {"k": "string", "c": "bigint", "d": "decimal(20,2)"}
        assert [tuple(row) for row in frame.collect()] == [("a", 2, Decimal("1.50"))]
        db.insert("t", [("b", 1, Decimal("2.00"), at, day, [], {"a": None})])
        assert frame.count() == 1, "it stays as of its epoch"
        assert db.spark_table("v").count() == 2
        whole = db.spark_table("t").orderBy("k", "n").collect()
        assert len(whole) == 3
        assert (whole[1]["at"], whole[1]["day"], whole[1]["xs"], whole[1]["s"]["a"]) == (at, day, [1, None], 1)


def test_what_has_no_dataframe() -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE TABLE t (x INTERVAL DAY TO SECOND)")
        with pytest.raises(hw.NotSupported):
            db.spark_table("t")
        with pytest.raises(hw.UserError) as caught:
            db.spark_table("nobody")
        assert caught.value.code == "HW102"


def test_a_dataframe_as_rows(spark: Any) -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE TABLE t (k INT, s STRING, at TIMESTAMP)")
        db.execute("CREATE VIEW v AS SELECT s, count(*) AS n FROM t GROUP BY s")
        at = "TIMESTAMP '2026-03-01 10:00:00'"
        frame = spark.sql(f"SELECT CAST(id AS INT) AS k, 'x' AS s, {at} AS at FROM range(1000)")
        db.insert("t", frame)
        assert db.query("SELECT * FROM v").to_pylist() == [{"s": "x", "n": 1000}]
        assert db.query("SELECT at FROM t WHERE k = 7").to_pylist() == [{"at": dt.datetime(2026, 3, 1, 10)}]
        with pytest.raises(hw.UserError):
            db.insert("t", spark.sql("SELECT 1 AS k"))
