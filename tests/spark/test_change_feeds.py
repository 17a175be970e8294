"""Feeds of changes as files: rows that replace and delete by key, through Spark, which keeps no order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import headwater as hw
from headwater.spark.intake import REJECTS
from tests.spark.support import bag, drain, opened, put

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

CUSTOMER = "CREATE STREAM customer (id INT, name STRING NOT NULL, credit INT, op STRING, lsn BIGINT) {clauses} {source}"
CLAUSES = "KEY (id) SEQUENCE BY lsn OP BY op"


def change(
    op: object, lsn: object, key: object, name: str | None = None, credit: int | None = None
) -> dict[str, object]:
    row = {"op": op, "lsn": lsn, "id": key, "name": name, "credit": credit}
    return {column: value for column, value in row.items() if value is not None}


def facts(db: hw.Database, name: str) -> Any:
    relations: Any = db.status()["relations"]
    return next(one for one in relations if one["name"] == name)


def rejected(folder: Path, stream: str) -> list[str]:
    files = (folder / REJECTS / stream).iterdir()
    return sorted(json.loads(line)["reason"] for file in files for line in file.read_text().splitlines())


def test_a_change_feed_of_json_files(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    put(
        inbox,
        "a.json",
        [
            change("c", 5, 1, "anna", 30),  # by their order here this would be the first version of 1, not the last
            change("r", 3, 1, "ann", 10),
            change("c", 1, 2, "bert", 50),
            change("u", 4, 2, "bert", 9),
            change("c", 2, 3, "carl", 70),
        ],
    )
    with opened(tmp_path / "w") as db:
        db.execute(CUSTOMER.format(clauses=CLAUSES, source=f"FROM json '{inbox}'"))
        db.execute("CREATE VIEW rich AS SELECT id, name FROM customer WHERE credit > 20")
        told = str(db.explain("rich"))
        assert "hands over id, name, credit, op, lsn;" in told
        assert "the Tagger of customer keeps only rows where credit > 20" in told
        [first] = drain(db)
        assert (first.rows, first.rejects) == ({"customer": 5}, {})
        assert bag(db, "SELECT * FROM rich") == {(1, "anna"): 1, (3, "carl"): 1}

        # A row that is of no use to the view still replaces one that was; a delete brings nothing but its key.
        put(inbox, "b.json", [change("u", 6, 1, "anna", 20), change("d", 7, 3), change("u", 3, 2, "bert", 99)])
        drain(db)
        assert bag(db, "SELECT * FROM rich") == {}
        assert facts(db, "customer")["late"] == 1

        put(
            inbox,
            "c.json",
            [
                change("u", 6, 3, "carl", 80),  # it is deleted since 7
                change("d", 9, 4),
                change("?", 9, 1, "anna", 30),
                change(None, 9, 1, "anna", 30),
                change("u", 9, None, "anna", 30),
                change("u", None, 1, "anna", 30),
                change("u", 9, 1, None, 30),
                '{"op": "u", "lsn": 9, "id": "x"}',
                change("update_preimage", 1, 1, "anna", 30),
                change("u", 8, 1, "anna", 30),
            ],
        )
        [third] = drain(db)
        assert third.rejects == {"customer": 6}
        assert bag(db, "SELECT * FROM rich") == {(1, "anna"): 1}
        assert rejected(tmp_path / "w", "customer") == [
            "'?' in column op does not say what to do with the row",
            "NULL in column op does not say what to do with the row",
            "customer.id cannot be NULL",
            "customer.lsn cannot be NULL",
            "customer.name cannot be NULL",
            "id INT: 'x' is a str; INT takes int",
        ]
        found = facts(db, "customer")
        assert (found["rejects"], found["late"], found["unknown_keys"]) == (6, 2, 1)
    with opened(tmp_path / "w") as db:  # what is gone is known
        put(inbox, "d.json", [change("u", 8, 4, "dora", 90), change("u", 10, 3, "carl", 80)])
        drain(db)
        assert bag(db, "SELECT * FROM rich") == {(1, "anna"): 1, (3, "carl"): 1}


def test_parquet_files_have_all_columns_handed_over(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    inbox.mkdir()
    rows = {"k": [1, 2, 1], "q": [1, 1, 2], "v": [9, 9, 1], "w": ["a", "b", "c"]}
    types = [("k", pa.int32()), ("q", pa.int32()), ("v", pa.int32()), ("w", pa.string())]
    pq.write_table(pa.table(rows, schema=pa.schema(types)), inbox / "a.parquet")
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM s (k INT, q INT, v INT, w STRING) KEY (k) SEQUENCE BY q FROM parquet '{inbox}'")
        db.execute("CREATE VIEW high AS SELECT k FROM s WHERE v > 5")
        drain(db)
        assert bag(db, "SELECT * FROM high") == {(2,): 1}
        db.execute("CREATE VIEW words AS SELECT w FROM s")  # rows are left out, columns are not
        assert bag(db, "SELECT * FROM words") == {("b",): 1}


def test_strict_stops_at_a_delete_of_nothing(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    put(inbox, "a.json", [change("c", 1, 1, "anna", 1), change("d", 2, 2)])
    with opened(tmp_path / "w") as db:
        db.execute(CUSTOMER.format(clauses=f"{CLAUSES} STRICT", source=f"FROM json '{inbox}'"))
        with pytest.raises(hw.UserError, match="HW306"):
            drain(db)
        assert bag(db, "SELECT * FROM customer") == {}


def test_a_frame_for_a_keyed_stream_needs_an_order(tmp_path: Path) -> None:
    users = SparkSession.builder.getOrCreate()
    inbox = tmp_path / "in"
    put(inbox, "a.json", [change("c", 2, 1, "anna", 1), change("c", 1, 1, "ann", 1), change("x", 1, 1, "ann", 1)])
    frame = users.readStream.schema("id INT, name STRING, credit INT, op STRING, lsn BIGINT").json(str(inbox))
    with opened(tmp_path / "w") as db:
        db.execute(CUSTOMER.format(clauses="KEY (id) OP BY op", source=""))
        with pytest.raises(hw.UserError, match="HW172"):
            db.attach("customer", frame)
        db.execute("DROP STREAM customer; " + CUSTOMER.format(clauses=CLAUSES, source=""))
        attached = db.attach("customer", frame)
        attached.process_all()
        assert bag(db, "SELECT id, name FROM customer") == {(1, "anna"): 1}
        attached.stop()


def test_tagged_streams_over_a_raw_one(tmp_path: Path) -> None:
    inbox = tmp_path / "in"
    put(inbox, "a.json", [{"room": 1, "temp": 99, "n": 1}, {"room": 1, "temp": 75, "n": 2}, {"temp": 1, "n": 3}])
    with opened(tmp_path / "w") as db:
        db.execute(f"CREATE STREAM raw (room INT, temp INT, n INT) FROM json '{inbox}'")
        db.execute("CREATE TAGGED STREAM by_room OVER raw KEY room; CREATE TAGGED STREAM readings OVER raw RETAIN ALL")
        with pytest.raises(hw.UserError, match=r"HW172.*by_room"):
            drain(db)
        db.execute("DROP STREAM by_room; CREATE TAGGED STREAM by_room OVER raw KEY room SEQUENCE BY n")
        [progress] = drain(db)
        assert (progress.rows, progress.rejects) == ({"raw": 2}, {"raw": 1})
        assert rejected(tmp_path / "w", "raw") == ["by_room.room cannot be NULL"]
        assert bag(db, "SELECT room, temp FROM by_room") == {(1, 75): 1}
        assert bag(db, "SELECT room, temp FROM readings") == {(1, 75): 1, (1, 99): 1}
