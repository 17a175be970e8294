"""Windows of time and sessions, beside Spark's own answers to the same text over the same rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException

import headwater as hw
from headwater import types as t
from headwater.spark.types import spark_schema

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("queries on spark")]

FIELDS = (t.Field("id", t.INT), t.Field("k", t.STRING), t.Field("ts", t.TIMESTAMP), t.Field("v", t.INT))
SCHEMA = "id INT, k STRING, ts TIMESTAMP, v INT"


def made(number: int, rng: random.Random) -> tuple[object, ...]:
    """A row; most times are on the edges of windows or right before, some before 1970, and some are NULL."""
    base = rng.choice([datetime(1969, 12, 31, 23), datetime(2024, 2, 29, 23, 30)])
    moment = base + timedelta(minutes=rng.randint(0, 90), microseconds=rng.choice([0, 0, -1, 1, 500_000]))
    return number, rng.choice(["a", "b", None]), None if rng.random() < 0.1 else moment, rng.randint(1, 9)


QUERIES = [
    "SELECT window, count(*) AS n, sum(v) AS s FROM seen GROUP BY window(ts, '5 minutes')",
    "SELECT window.start, window.end, k, max(v) AS m FROM seen GROUP BY window(ts, '10 minutes', '5 minutes'), k",
    "SELECT window.start, count(*) AS n FROM seen GROUP BY window(ts, '10 minutes', '3 minutes')",
    "SELECT k, window.start, avg(v) AS a FROM seen GROUP BY k, window(ts, '1 hour', '7 minutes', '-3 minutes')",
    "SELECT window.start, count(*) AS n FROM seen GROUP BY window(ts, '1 week', '1 day', '1 hour')",
    "SELECT window.start, count(DISTINCT k) AS n FROM seen GROUP BY window(ts, 90000000, 60000000)",
    "SELECT window.end, sum(v) AS s FROM seen WHERE v > 3 GROUP BY window(ts, '20 minutes') HAVING count(*) > 2",
    "SELECT count(*) AS n FROM seen GROUP BY window(ts, '20 minutes') HAVING window.start > TIMESTAMP '2000-01-01'",
    "SELECT k, window.start, count(*) AS n FROM seen GROUP BY ROLLUP (k, window(ts, '1 hour'))",
    "SELECT k, window, count(*) AS n FROM seen GROUP BY CUBE (k, window(ts, '1 hour', '30 minutes'))",
    "SELECT window, count(*) AS n FROM seen GROUP BY window(CAST(ts AS DATE), '1 day')",
    "SELECT id, v, window(ts, '10 minutes', '4 minutes') AS w FROM seen",
    "SELECT id, window(ts, '10 minutes').start AS a, window.end AS b FROM seen",
    "SELECT id, window_time(window(ts, '10 minutes')) AS t FROM seen",
    "SELECT max(window(ts, '10 minutes', '5 minutes').end) AS m FROM seen",
    "SELECT id, row_number() OVER (PARTITION BY window(ts, '10 minutes', '5 minutes') ORDER BY id) AS r FROM seen",
    "SELECT window.start, sum(n) AS n FROM "
    "(SELECT window AS w, count(*) AS n FROM seen GROUP BY window(ts, '5 minutes')) GROUP BY window(w, '1 hour')",
    "SELECT window_time(w) AS t, n FROM (SELECT window AS w, count(*) AS n FROM seen GROUP BY window(ts, '5 minutes'))",
    "SELECT session_window, count(*) AS n, sum(v) AS s FROM seen GROUP BY session_window(ts, '2 minutes')",
    "SELECT k, session_window.start, session_window.end, count(*) AS n FROM seen "
    "GROUP BY k, session_window(ts, '5 minutes')",
    "SELECT k, session_window, max(v) AS m, count(DISTINCT v) AS d FROM seen "
    "GROUP BY k, session_window(ts, '4 minutes 59.999999 seconds')",
    "SELECT upper(k) AS u, session_window.start, count(*) AS n FROM seen WHERE v > 2 "
    "GROUP BY upper(k), session_window(ts, '5 minutes') HAVING count(*) > 1",
    "SELECT k, session_window.end, sum(v) AS s FROM seen GROUP BY k, session_window(CAST(ts AS DATE), '1 day')",
    "SELECT session_window, sum(n) AS n FROM "
    "(SELECT window AS w, count(*) AS n FROM seen GROUP BY window(ts, '5 minutes')) "
    "GROUP BY session_window(w, '10 minutes')",
]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    return tuple(map(plain, value)) if isinstance(value, tuple | list) else value


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[hw.Database]:
    """The same rows in Headwater, where they came, went and moved in several epochs below the views, and in Spark."""
    rng = random.Random(7)
    db = hw.connect()
    assert isinstance(db, hw.Database)
    db.execute(f"CREATE TABLE seen ({SCHEMA.replace('id INT', 'id INT PRIMARY KEY')})")
    for number, query in enumerate(QUERIES):
        db.execute(f"CREATE VIEW v{number} AS {query}")
    rows: dict[object, tuple[object, ...]] = {}
    for _ in range(4):
        gone = rng.sample(sorted(map(int, rows)), len(rows) // 4)
        put = {number: made(number, rng) for number in rng.sample(range(120), 40)}
        with db.epoch() as epoch:
            epoch.delete_keys("seen", [(number,) for number in gone if number not in put])
            epoch.upsert("seen", list(put.values()))
        rows = {number: row for number, row in rows.items() if number not in gone} | put
    spark.createDataFrame(list(rows.values()), spark_schema(FIELDS)).createOrReplaceTempView("seen")
    yield db
    db.close()


@pytest.mark.parametrize("number", range(len(QUERIES)), ids=QUERIES)
def test_spark_says_the_same(spark: Any, both: hw.Database, number: int) -> None:
    expected = Counter(plain(tuple(row)) for row in spark.sql(QUERIES[number]).collect())
    assert expected
    for text in (QUERIES[number], f"SELECT * FROM v{number}"):
        found = both.query(text)
        columns = [map(plain, column.to_pylist()) for column in found.columns]
        assert Counter(zip(*columns, strict=True)) == expected, text


@pytest.mark.parametrize(
    "keys",
    [
        "window(ts, '1 month')",
        "window(ts, 'soon')",
        "window(ts, '0 seconds')",
        "window(ts, '5 minutes', '10 minutes')",
        "window(ts, '5 minutes', '5 minutes', '-5 minutes')",
        "window(ts, INTERVAL 5 MINUTES)",
        "window(ts, k)",
        "window(ts)",
        "window(v, '1 day')",
        "window(ts, '1 day'), window(ts, '2 days')",
        "window(ts, '1 day'), session_window(ts, '1 day')",
        "session_window(ts, INTERVAL 5 MINUTES)",
        "session_window(v, '1 day')",
    ],
)
def test_what_spark_refuses_is_refused(spark: Any, both: hw.Database, keys: str) -> None:
    text = f"SELECT count(*) AS n FROM seen GROUP BY {keys}"
    with pytest.raises((AnalysisException, IllegalArgumentException, ParseException)):
        spark.sql(text).collect()
    with pytest.raises(hw.UserError):
        both.query(text)
