"""A streaming DataFrame of the user's own as a stream's source."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater as hw
from headwater.spark.attach import Attachment
from headwater.spark.intake import REJECTS, Progress
from tests.spark.support import VIEWS, check, measured, opened, put

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

COLUMNS = "at TIMESTAMP, src STRING, loss INT"


@pytest.fixture
def users() -> SparkSession:
    """A session of the user's, as a notebook has it."""
    return SparkSession.builder.getOrCreate()


def frame(users: SparkSession, inbox: Path, columns: str = COLUMNS) -> DataFrame:
    inbox.mkdir(exist_ok=True)
    return users.readStream.schema(columns).json(str(inbox))


def make(folder: Path) -> hw.Database:
    db = opened(folder)
    db.execute(f"CREATE STREAM m ({COLUMNS.replace('STRING', 'STRING NOT NULL')}) RETAIN ALL; {VIEWS}")
    return db


def test_its_rows_become_the_streams(users: SparkSession, tmp_path: Path) -> None:
    records, inbox = measured(0, 90), tmp_path / "in"
    rows = frame(users, inbox)
    put(inbox, "a.json", records[:30])
    with make(tmp_path / "w") as db:
        seen: list[Progress] = []
        attached = db.attach("m", rows, seen.append)
        attached.process_all()
        check(db, records[:30])
        put(inbox, "b.json", [*records[30:60], {"src": None, "loss": 7}])
        attached.process_all()
        check(db, records[:60])
        assert [(one.rows, one.rejects) for one in seen] == [({"m": 30}, {}), ({"m": 30}, {"m": 1})]
        [kept] = (tmp_path / "w" / REJECTS / "m").iterdir()
        assert "m.src cannot be NULL" in kept.read_text()
        attached.stop()
        attached.stop()
    put(inbox, "c.json", records[60:])
    with opened(tmp_path / "w") as db:  # it goes on where it was
        db.attach("m", frame(users, inbox)).process_all()
        check(db, records)


def test_it_may_be_computed(users: SparkSession, tmp_path: Path) -> None:
    records, inbox = measured(0, 50), tmp_path / "in"
    rows = frame(users, inbox, "at TIMESTAMP, who STRING, loss STRING").selectExpr(
        "at", "upper(who) AS src", "CAST(loss AS INT) AS loss"
    )
    put(inbox, "a.json", [{"at": one["at"], "who": one["src"], "loss": one["loss"]} for one in records])
    with make(tmp_path / "w") as db:
        db.attach("m", rows).process_all()
        check(db, [{**one, "src": str(one["src"]).upper()} for one in records])


def test_a_stream_that_is_dropped_meanwhile(users: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    rows = frame(users, inbox)
    with make(tmp_path / "w") as db:
        attached = db.attach("m", rows)
        db.execute("DROP STREAM m CASCADE")
        put(inbox, "a.json", measured(0, 3))
        with pytest.raises(hw.UserError) as caught:
            attached.wait(60)
        assert caught.value.code == "HW102" and "dropped" in caught.value.message


def test_what_does_not_fit(users: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    with make(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (a INT) FROM json '{inbox}'; CREATE TABLE t (a INT)")
        for stream, rows, told in (
            ("m", users.createDataFrame([(1,)], "a INT"), "not a streaming one"),
            ("m", frame(users, inbox, "at TIMESTAMP, src STRING"), "no column loss"),
            ("m", frame(users, inbox, f"{COLUMNS}, more INT"), "the stream has no column more"),
            ("m", frame(users, inbox, COLUMNS.replace("INT", "STRING")), "column loss is STRING, not INT"),
            ("m", frame(users, inbox).groupBy("at", "src", "loss").count().drop("count"), "watermark"),
            ("m", frame(users, inbox).selectExpr("at", "src", "loss", "src AS loss"), "loss"),
            ("m", None, "NoneType"),
            ("s", frame(users, inbox, "a INT"), "has a source already"),
            ("t", frame(users, inbox, "a INT"), "only a stream"),
        ):
            with pytest.raises(hw.UserError) as caught:
                db.attach(stream, rows)
            assert caught.value.code == "HW473"
            assert told in caught.value.message
            assert caught.value.hint
        with pytest.raises(hw.UserError) as caught:
            db.attach("nobody", frame(users, inbox))
        assert caught.value.code == "HW102"
    with hw.connect() as memory:
        assert isinstance(memory, hw.Database)
        memory.execute("CREATE STREAM m (a INT)")
        with pytest.raises(hw.UserError) as caught:
            memory.attach("m", frame(users, inbox, "a INT"))
        assert caught.value.code == "HW474"


def test_stopping_from_its_own_report(users: SparkSession, tmp_path: Path) -> None:
    records, inbox = measured(0, 10), tmp_path / "in"
    rows = frame(users, inbox)
    with make(tmp_path / "w") as db:
        box: list[Attachment] = []
        box.append(db.attach("m", rows, lambda progress: box[0].stop()))
        put(inbox, "a.json", records)
        assert box[0].wait(60)
        check(db, records)
        assert not box[0].is_active


def test_looking_whether_it_has_ended(users: SparkSession, tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    rows = frame(users, inbox)
    with make(tmp_path / "w") as db:
        attached = db.attach("m", rows)
        assert not attached.wait(0) and attached.is_active
        with pytest.raises(hw.UserError, match="already"):
            db.attach("m", frame(users, inbox))
        db.execute("DROP STREAM m CASCADE")
        put(inbox, "a.json", measured(0, 3))
        with pytest.raises(hw.UserError, match="dropped"):
            attached.wait(60)
        attached.stop()  # it has said why it ended


def test_streams_of_the_same_name_in_two_warehouses(users: SparkSession, tmp_path: Path) -> None:
    records, inbox = measured(0, 10), tmp_path / "in"
    rows = frame(users, inbox)
    put(inbox, "a.json", records)
    with make(tmp_path / "w") as one, make(tmp_path / "v") as other:
        first, second = one.attach("m", rows), other.attach("m", rows)
        first.process_all()
        second.process_all()
        check(one, records)
        check(other, records)
