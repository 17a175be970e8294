"""Queries on Spark and in DuckDB: one answer."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine import merges, spent_files
from headwater.engine.local_tasks import LocalRunner

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

QUERIES = [
    "SELECT * FROM sale",
    "SELECT * FROM total",
    "SELECT shop, sum(euros) AS e, avg(euros) AS a, count(DISTINCT day) AS d FROM sale GROUP BY shop",
    "SELECT s.shop, t.euros, s.id FROM sale s JOIN total t ON s.shop = t.shop WHERE s.euros > 3",
    "SELECT s.id, r.x FROM sale s LEFT JOIN readings r ON r.x = s.id",
    "SELECT id, rank() OVER (PARTITION BY shop ORDER BY euros DESC) AS r FROM sale",
    "SELECT shop, id FROM sale ORDER BY euros DESC NULLS LAST, id LIMIT 5",
    "SELECT max(at) AS at, min(day) AS day, sum(price) AS p, avg(price) AS q FROM sale",
    "SELECT upper(shop) AS u, date_trunc('MONTH', at) AS m, year(day) AS y FROM sale WHERE id % 2 = 0",
    "SELECT x, count(*) AS n FROM readings GROUP BY x HAVING count(*) > 1",
    "SELECT shop FROM sale EXCEPT SELECT shop FROM total",
    "WITH q AS (SELECT shop, euros FROM total) SELECT q.shop, size(s.tags) AS n FROM q JOIN sale s ON s.shop = q.shop",
    "SELECT id, tag FROM sale LATERAL VIEW explode(tags) e AS tag",
    "SELECT id FROM sale WHERE euros > (SELECT avg(euros) FROM sale)",
    "SELECT id, CASE WHEN euros IS NULL THEN 'none' ELSE concat(shop, '-', euros) END AS c FROM sale",
    "SELECT k, x FROM feed",
    "SELECT * FROM pairs",
    "SELECT p.shop, t.euros, count(*) AS n, max(p.at) AS at FROM pairs p JOIN total t ON p.shop = t.shop GROUP BY ALL",
    "SELECT * FROM every CROSS JOIN none",
]


@pytest.fixture(scope="module", params=["home", "away"])
def db(request: pytest.FixtureRequest) -> Iterator[hw.Database]:
    """A warehouse; away, its views lie in segments, and Spark reads these."""
    runner = LocalRunner() if request.param == "away" else None
    placed = {"placement": "tasks", "runner": runner, "partitions": 3} if runner else {}
    with hw.Database(":memory:", **placed) as database:  # type: ignore[arg-type]
        database.execute("""
            CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT, price DECIMAL(10, 2), at TIMESTAMP, day DATE,
                               tags ARRAY<STRING>);
            CREATE STREAM readings (x INT) RETAIN ALL;
            CREATE STREAM feed (k INT, x DOUBLE) KEY (k) RETAIN ALL;
            CREATE VIEW total AS SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop HAVING sum(euros) > 40;
            CREATE VIEW pairs AS SELECT shop, day, price, at, tags, x FROM sale JOIN readings ON x = id % 6;
            CREATE VIEW every AS SELECT max(price) AS n, sum(price) AS p FROM sale;
            CREATE VIEW none AS SELECT count(*) AS m FROM sale WHERE id < 0
        """)
        at = dt.datetime(2026, 1, 1, 12, 30, 15, 250_000)
        database.insert(
            "sale",
            [
                (i, None if i == 7 else f"s{i % 4}", None if i == 5 else i, Decimal(i) / 4, at + dt.timedelta(days=i),
                 (at + dt.timedelta(days=i % 5)).date(), [f"t{j}" for j in range(i % 3)])
                for i in range(40)
            ],
        )  # fmt: skip
        database.execute("DELETE FROM sale WHERE id IN (3, 11); UPDATE sale SET euros = 1 WHERE id = 9")
        database.insert("readings", [(i % 6,) for i in range(20)])
        database.insert("feed", [(1, 1.5), (2, float("nan")), (1, -0.25)])
        yield database
    if runner is not None:
        runner.close()


def bag(table: object) -> Counter[str]:
    return Counter(str(row) for row in table.to_pylist())  # type: ignore[attr-defined]


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_give_one_answer(db: hw.Database, query: str) -> None:
    here, there = db.query(query, engine="duckdb"), db.query(query, engine="spark")
    assert here.schema == there.schema
    assert bag(here) == bag(there)
    if "ORDER BY euros" in query and "OVER" not in query:
        assert here.to_pylist() == there.to_pylist()


def test_a_hint_and_a_threshold_send_queries_to_spark(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = db._answers()
    run = answers.run
    monkeypatch.setattr(answers, "run", lambda text, *args: (asked.append(text), run(text, *args))[1])
    db.query("SELECT /*+ ENGINE(spark) */ count(*) AS n FROM sale")
    assert len(asked) == 1
    db.query("SELECT /*+ ENGINE(duckdb) */ count(*) AS n FROM sale", engine=None)
    db.query("SELECT count(*) AS m FROM sale")
    assert len(asked) == 1
    monkeypatch.setattr(db.reading, "_spark_rows", 10)
    assert db.query("SELECT count(*) AS o FROM sale").to_pylist() == [{"o": 38}]
    assert len(asked) == 2
    assert db.query("SELECT count(*) AS o FROM sale").to_pylist() == [{"o": 38}]
    assert len(asked) == 2, "the answer is kept, whoever gave it"
    assert db.query("SELECT count(*) AS p FROM sale WHERE at < now()").num_rows == 1
    assert len(asked) == 2, "the clock is Headwater's"


def test_what_changes_is_seen(db: hw.Database) -> None:
    db.execute("CREATE TABLE one (x INT); CREATE TABLE other (x INT); INSERT INTO one VALUES (1)")
    query = "SELECT (SELECT count(*) FROM one) AS a, (SELECT count(*) FROM other) AS b"
    assert db.query(query, engine="spark").to_pylist() == [{"a": 1, "b": 0}]
    with db.epoch() as e:
        e.delete("one", [(1,)])
        e.insert("other", [(1,)])
    assert db.query(query, engine="spark").to_pylist() == [{"a": 0, "b": 1}]


@pytest.mark.parametrize(
    ("query", "engine", "code"),
    [
        ("SELECT count(*) FROM sale WHERE at < now()", "spark", "HW284"),
        ("SELECT 1 FROM sale", "flink", "HW348"),
        ("SELECT 10 div (id - id) FROM sale", "spark", "HW347"),
        ("CREATE VIEW w AS SELECT /*+ ENGINE(spark) */ id FROM sale", None, "HW201"),
        ("SELECT /*+ BROADCAST(sale) */ id FROM sale", None, "HW201"),
    ],
)
def test_what_spark_cannot_answer(db: hw.Database, query: str, engine: str | None, code: str) -> None:
    with pytest.raises(hw.HeadwaterError) as caught:
        db.query(query, engine=engine) if query.startswith("SELECT") else db.execute(query)
    assert caught.value.code == code


def test_what_lies_away_is_read_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not written again, and the files that a query reads stay, whatever becomes of the view meanwhile."""
    monkeypatch.setattr(spent_files, "GRACE_SECONDS", -1.0)
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(merges, "BEHIND", 1)  # epochs put them together themselves
    runner = LocalRunner()
    with hw.Database(tmp_path / "w", placement="tasks", runner=runner, partitions=2) as db:
        db.execute("CREATE TABLE t (a INT, b INT); CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a")
        for number in range(4):
            db.insert("t", [(key, number) for key in range(20)])
        query = "SELECT v.a, s, b FROM v JOIN t ON v.a = t.a"
        assert bag(db.query(query, engine="spark")) == bag(db.query(query, engine="duckdb"))
        answers = db._answers()
        [lying] = answers._lying.values()
        assert len(lying.partitions) == 2
        written = {path.name for path in (tmp_path / "w" / "spark" / "answers").iterdir()}
        assert written == {f"{b't'.hex()}.parquet"}
        for number in range(8):
            db.insert("t", [(key, number) for key in range(20)])
        assert all(Path(path).exists() for path in lying.paths)
        rows = [one for number in range(2) for table in lying.rows(number, 1 << 30) for one in table.to_pylist()]
        assert sum(one["s"] for one in rows) == 20 * 6
        assert bag(db.query(query, engine="spark")) == bag(db.query(query, engine="duckdb"))
        db.insert("t", [(0, 0)])
        assert not any(Path(path).exists() for path in lying.paths)
    runner.close()
