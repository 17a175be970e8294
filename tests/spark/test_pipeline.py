"""Files in, views fresh: what arrives, what is rejected, what comes twice, and streams that come and go."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.engine.engine import Engine
from headwater.spark.intake import REJECTS
from headwater.spark.pipeline import CHECKPOINT, Pipeline
from tests.spark.support import MEASURED, VIEWS, bag, check, drain, measured, opened, put, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def make(folder: Path, inbox: Path, options: str = "RETAIN ALL") -> hw.Database:
    db = opened(folder)
    db.execute(MEASURED.format(options=options, folder=inbox) + ";" + VIEWS)
    return db


@pytest.mark.parametrize("options", ["RETAIN ALL", ""], ids=["retained", "not retained"])
def test_what_is_there_and_what_comes_later(tmp_path: Path, inbox: Path, options: str) -> None:
    records = measured(0, 300)
    put(inbox, "a.json", records[:100])
    put(inbox, "b.json", records[100:200])
    with make(tmp_path / "w", inbox, options) as db:
        assert sum(one.rows["m"] for one in drain(db)) == 200
        check(db, records[:200])
        assert drain(db) == []
        put(inbox, "c.json", records[200:])
        [one] = drain(db)
        assert (one.rows, one.rejects) == ({"m": 100}, {})
        check(db, records)
    with opened(tmp_path / "w") as db:
        assert drain(db) == []
        check(db, records)


def test_malformed_records_are_kept_and_counted(tmp_path: Path, inbox: Path) -> None:
    good = measured(0, 5)
    bad = [
        '{"at": "2026-01-01 00:00:00", "src": "x", "loss": "many"}',
        "not json at all",
        '{"src": "x", "loss": 99999999999}',
        '{"src": null, "loss": 1}',
        "[1, 2]",
    ]
    put(inbox, "a.json", [*good, *bad])
    with make(tmp_path / "w", inbox) as db:
        [one] = drain(db)
        assert (one.rows, one.rejects) == ({"m": 5}, {"m": 5})
        check(db, good)
        [kept] = (tmp_path / "w" / REJECTS / "m").iterdir()
        told = [json.loads(line) for line in kept.read_text().splitlines()]
        assert [line["record"] for line in told[:4]] == [bad[0], bad[1], bad[2], bad[4]]
        reasons = " | ".join(line["reason"] for line in told)
        for reason in ("loss INT: 'many'", "no JSON", "out of range", "no JSON object", "m.src cannot be NULL"):
            assert reason in reasons
        assert told[0]["place"].endswith("a.json")
        status: dict[str, Any] = db.status()
        [stream] = [one for one in status["relations"] if one["name"] == "m"]
        assert stream["rejects"] == 5


def test_records_that_spark_reads_and_headwater_does_not_hold(tmp_path: Path, inbox: Path) -> None:
    """Years after 9999, a TINYINT of 200, a key that is there twice, bytes that are no UTF-8: rejects like others."""
    bad = {
        b'{"k": 1, "at": "20000-01-01 00:00:00"}': "s.at TIMESTAMP: ",
        b'{"k": 1, "day": "10000-01-01"}': "s.day DATE: 10000-01-01 is out of range",
        b'{"k": 1, "days": ["10000-01-01"]}': "s.days ARRAY<DATE>: a date in it is out of range",
        b'{"k": 200}': "s.k TINYINT: 200 is out of range",
        b'{"k": 1, "m": {"a": 1, "a": 2}}': "has the key 'a' twice",
        b'{"k": 1, "x": "\xff"}': "it is not valid UTF-8",
        b'{"at": "20000-01-01 00:00:00"}': "s.k cannot be NULL",
    }
    good = [b'{"k": 127, "x": "a", "days": ["2024-01-01", null]}', b'{"k": -128, "m": {"a": 1}}']
    (inbox / "a.json").write_bytes(b"\n".join([good[0], *bad, good[1]]))
    with opened(tmp_path / "w") as db:
        columns = "k TINYINT NOT NULL, at TIMESTAMP, day DATE, days ARRAY<DATE>, m MAP<STRING, INT>, x STRING"
        db.execute(f"CREATE STREAM s ({columns}) RETAIN ALL FROM json '{inbox}'")
        [one] = drain(db)
        assert (one.rows, one.rejects) == ({"s": len(good)}, {"s": len(bad)})
        assert bag(db, "SELECT k, x FROM s") == {(127, "a"): 1, (-128, None): 1}
        [kept] = (tmp_path / "w" / REJECTS / "s").iterdir()
        told = [json.loads(line) for line in kept.read_text().splitlines()]
        for reason in bad.values():
            assert any(reason in line["reason"] for line in told), reason
        assert '{"k": 1, "x": "\\xff"}' in [line["record"] for line in told]


def test_empty_fields_of_csv(tmp_path: Path, inbox: Path) -> None:
    """An empty field is NULL, an empty text is not; a record that is too long to explain is a reject all the same."""
    put(inbox, "a.csv", ["n,x", "1,", '2,""', ",a", '"",b', f"c,{'d' * 200_000}"])
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (n INT, x STRING) RETAIN ALL FROM csv '{inbox}'")
        [one] = drain(db)
        assert (one.rows, one.rejects) == ({"s": 3}, {"s": 2})
        assert bag(db, "SELECT n, x FROM s") == {(1, None): 1, (2, ""): 1, (None, "a"): 1}


def test_blank_records_of_csv(tmp_path: Path, inbox: Path) -> None:
    put(inbox, "a.csv", ["1\ta", "\t", "x\ty", " \t ", "2\t"])
    words = tmp_path / "words"
    put(words, "a.csv", ["one", " ", "", "two"])
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (n INT, x STRING) RETAIN ALL FROM csv '{inbox}' (delimiter '\\t', header false)")
        db.execute(f"CREATE STREAM w (x STRING) RETAIN ALL FROM csv '{words}' (header false)")
        [progress] = drain(db)
        assert bag(db, "SELECT * FROM s") == Counter([(1, "a"), (None, None), (2, None)])
        assert bag(db, "SELECT * FROM w") == Counter([("one",), (" ",), ("two",)])
        assert dict(progress.rejects) == {"s": 2}


def test_where_spark_is_more_lenient_than_copy(tmp_path: Path, inbox: Path) -> None:
    lines = {
        '{"n": 1, "other": 2}': (1, None, None, None, None),
        '{"N": 2}': (None, None, None, None, None),
        '{"n": 3} {"n": 4}': (3, None, None, None, None),
        '{"x": {"a": 1}}': (None, '{"a": 1}', None, None, None),
        '{"d": 1.005}': (None, None, Decimal("1.01"), None, None),
        '{"f": 1e400}': (None, None, None, float("inf"), None),
        '{"day": "2024-1-1"}': (None, None, None, None, dt.date(2024, 1, 1)),
        '{"day": "2024"}': (None, None, None, None, dt.date(2024, 1, 1)),
        '{"day": "2024-01-01T10:00:00"}': (None, None, None, None, dt.date(2024, 1, 1)),
    }
    put(inbox, "a.json", [*lines, '[{"n": 5}, {"n": 6}]'])
    fields = tmp_path / "csv"
    put(fields, "a.csv", ["n,x", "1,", '2,"NULL"', "3,NULL", '4,""', '5,"two', 'lines"'])
    with opened(tmp_path / "w") as db:
        columns = "n INT, x STRING, d DECIMAL(5,2), f DOUBLE, day DATE"
        db.execute(f"CREATE STREAM s ({columns}) RETAIN ALL FROM json '{inbox}'")
        db.execute(f"CREATE STREAM c (n INT, x STRING) RETAIN ALL FROM csv '{fields}' (null 'NULL')")
        [one] = drain(db)
        assert one.rejects == {"c": 1}
        array = [(n, None, None, None, None) for n in (5, 6)]
        assert bag(db, "SELECT * FROM s") == Counter([*lines.values(), *array])
        assert bag(db, "SELECT * FROM c") == {(1, None): 1, (2, None): 1, (3, None): 1, (4, ""): 1, (5, "two"): 1}


def test_a_batch_that_comes_again_is_skipped(tmp_path: Path, inbox: Path) -> None:
    records = measured(0, 50)
    put(inbox, "a.json", records)
    with make(tmp_path / "w", inbox) as db:
        drain(db)
        # As after a crash between our commit and Spark's: its note that the batch is done is missing.
        for note in (tmp_path / "w" / CHECKPOINT / "commits").iterdir():
            note.unlink()
        [again] = drain(db)
        assert again.epoch is None
        check(db, records)
        put(inbox, "b.json", records)
        drain(db)
        check(db, records * 2)


def test_a_batch_that_was_not_committed_comes_again(
    tmp_path: Path, inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = measured(0, 50)
    put(inbox, "a.json", records)
    with make(tmp_path / "w", inbox) as db:
        with monkeypatch.context() as patch:
            patch.setattr(Engine, "run", lambda *args, **others: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                drain(db)
        put(inbox, "b.json", records)
        drain(db)
        check(db, records * 2)


def test_streams_come_and_go_and_the_others_keep_their_place(tmp_path: Path, inbox: Path) -> None:
    records, prices = measured(0, 30), tmp_path / "prices"
    put(inbox, "a.json", records[:10])
    put(prices, "a.csv", ["item,price", "lamp,1.50", "rope,2.25"])
    with make(tmp_path / "w", inbox) as db:
        drain(db)
        db.execute(f"CREATE STREAM p (item STRING, price DECIMAL(9,2)) RETAIN ALL FROM csv '{prices}'")
        put(inbox, "b.json", records[10:20])
        drain(db)
        check(db, records[:20])
        assert sum(bag(db, "SELECT * FROM p").values()) == 2
        db.execute("DROP STREAM p")
        put(inbox, "c.json", records[20:])
        drain(db)
        check(db, records)
        # Made again it is another stream, which begins with what is in the folder.
        db.execute(f"CREATE STREAM p (item STRING, price DECIMAL(9,2)) RETAIN ALL FROM csv '{prices}'")
        assert [one.rows for one in drain(db)] == [{"p": 2}]
        check(db, records)


def test_it_follows_until_it_is_stopped(tmp_path: Path, inbox: Path) -> None:
    records = measured(0, 60)
    with make(tmp_path / "w", inbox) as db:
        pipeline = Pipeline(db)
        thread = threading.Thread(target=pipeline.run)
        thread.start()
        for n in range(3):
            put(inbox, f"{n}.json", records[20 * n : 20 * n + 20])
            wait_for(db, 20 * n + 20)
        pipeline.stop()
        thread.join(60)
        assert not thread.is_alive()
        check(db, records)


def test_columns_that_nobody_needs_are_not_read(tmp_path: Path) -> None:
    """Until somebody does: a view that is made meanwhile has every row that comes after it, whole."""
    inbox = tmp_path / "in"
    inbox.mkdir()

    def arrive(name: str, first: int) -> None:
        numbers = list(range(first, first + 10))
        table = pa.table({"a": numbers, "b": [str(n) for n in numbers], "c": [n * 1.5 for n in numbers]})
        pq.write_table(table, inbox / f".{name}")
        (inbox / f".{name}").rename(inbox / name)

    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (a BIGINT NOT NULL, b STRING, c DOUBLE) FROM parquet '{inbox}'")
        db.execute("CREATE VIEW sums AS SELECT sum(c) AS c FROM s WHERE a > 3")
        assert "hands over a, c" in str(db.explain("sums"))
        arrive("1.parquet", 0)
        pipeline = Pipeline(db)
        thread = threading.Thread(target=pipeline.run)
        thread.start()
        try:
            wait_until(lambda: db.status()["epoch"] == 1)
            db.execute("CREATE VIEW texts AS SELECT x.b, y.c FROM s x JOIN s y ON x.a = y.a")
            arrive("2.parquet", 10)
            wait_until(lambda: db.query("SELECT * FROM texts").num_rows == 10)
        finally:
            pipeline.stop()
            thread.join(60)
        assert db.query("SELECT c FROM sums").to_pylist() == [{"c": sum(n * 1.5 for n in range(4, 20))}]
        assert bag(db, "SELECT b, c FROM texts") == {(str(n), n * 1.5): 1 for n in range(10, 20)}


def wait_for(db: hw.Database, rows: int) -> None:
    end = time.monotonic() + 60
    while (db.query("SELECT sum(n) AS n FROM by_source").to_pylist()[0]["n"] or 0) < rows:
        assert time.monotonic() < end
        time.sleep(0.05)


def refused(db: hw.Database) -> hw.HeadwaterError:
    with pytest.raises(hw.HeadwaterError) as caught:
        drain(db)
    assert caught.value.hint
    return caught.value


def test_files_that_contradict_the_columns(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (a INT, b STRING) RETAIN ALL FROM csv '{inbox}'")
        put(inbox, "x.csv", ["a,c", "1,x"])
        error = refused(db)
        assert error.code == "HW473"
        assert str(inbox / "x.csv") in error.message and "b" in error.message
        db.execute(f"DROP STREAM s; CREATE STREAM s (a INT, b STRING) RETAIN ALL FROM parquet '{inbox}'")
        (inbox / "x.csv").unlink()
        for name, table in {
            "type": pa.table({"a": ["q"], "b": ["x"]}),
            "missing": pa.table({"a": pa.array([1], pa.int32())}),
        }.items():
            shutil.rmtree(inbox)
            inbox.mkdir()
            pq.write_table(table, inbox / f"{name}.parquet")
            error = refused(db)
            assert error.code == "HW473"
            assert f"{name}.parquet" in error.message
            assert ("[a]" if name == "type" else "no column b") in error.message


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    with opened(tmp_path / "w") as db:
        error = refused(db)
        assert error.code == "HW475"
        db.execute(f"CREATE STREAM s (a INT) FROM json '{tmp_path / 'nowhere'}'")
        assert "no such folder" in refused(db).message
        db.execute("DROP STREAM s; CREATE STREAM s (a INT) FROM rate 5")
        assert "TIMESTAMP and a BIGINT" in refused(db).message
        db.execute("DROP STREAM s; CREATE STREAM s (a INT) FROM socket 'nowhere'")
        assert "host:port" in refused(db).message
        db.execute("DROP STREAM s; CREATE STREAM s (a INT) FROM kafka 'topic' (servers 'localhost:9092')")
        assert "spark-sql-kafka" in str(refused(db).hint)


def test_a_pipeline_needs_a_folder() -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        with pytest.raises(hw.UserError) as caught:
            Pipeline(db)
        assert caught.value.code == "HW474"
