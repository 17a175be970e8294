"""Keyed streams: a row that arrives replaces the last one of its key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        yield database


def rows(db: Any, relation: str) -> list[tuple[object, ...]]:
    found = db.query(f"SELECT * FROM {relation}").to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def changelogs(db: hw.Database) -> list[dict[str, list[tuple[object, ...]]]]:
    """What each epoch from now on changes: rows of views, the multiplicity last."""
    seen: list[dict[str, list[tuple[object, ...]]]] = []

    def note(_: int, changes: Any) -> None:
        seen.append({n: sorted((tuple(r.values()) for r in c.to_pylist()), key=repr) for n, c in changes.items()})

    db.observe(note)
    return seen


def facts(db: Any, name: str) -> dict[str, Any]:
    return next(one for one in db.status()["relations"] if one["name"] == name)


def refused(code: str) -> Any:
    return pytest.raises(hw.UserError, match=code)


# -- arriving ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def rooms(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE STREAM room_temp (room STRING, temp INT) KEY (room);
        CREATE VIEW mean AS SELECT COUNT(*) AS rooms, SUM(temp) AS temps FROM room_temp
    """)
    return db


def test_a_row_inserts_or_replaces_and_the_last_of_a_batch_counts(rooms: hw.Database):
    seen = changelogs(rooms)
    rooms.insert("room_temp", [("a", 99), ("b", 75), ("a", 98)])
    rooms.insert("room_temp", [("c", 80)])
    rooms.insert("room_temp", [("a", 95)])
    assert rows(rooms, "room_temp") == [("a", 95), ("b", 75), ("c", 80)]
    assert [one["mean"] for one in seen] == [
        [(0, None, -1), (2, 173, 1)],
        [(2, 173, -1), (3, 253, 1)],
        [(3, 250, 1), (3, 253, -1)],
    ]


def test_every_way_in_replaces(rooms: hw.Database, tmp_path: Path):
    (tmp_path / "a.csv").write_text("room,temp\na,1\nb,1\na,2\n")
    rooms.execute("CREATE TABLE t (room STRING, temp INT)")
    rooms.execute(f"COPY room_temp FROM '{tmp_path / 'a.csv'}'")
    assert rows(rooms, "room_temp") == [("a", 2), ("b", 1)]
    [result] = rooms.execute("INSERT INTO room_temp VALUES ('a', 3), ('c', 1), ('a', 4)")
    assert result.message == "changed 3 rows in room_temp"
    assert rows(rooms, "room_temp") == [("a", 4), ("b", 1), ("c", 1)]
    rooms.upsert("room_temp", [("b", 5)])
    with rooms.epoch() as e:
        e.upsert("room_temp", [("b", 6)])
        e.insert("room_temp", pa.table({"temp": [7], "room": ["b"]}))
        e.insert("t", [("c", 8), ("d", 8)])
    rooms.execute("INSERT INTO room_temp (temp, room) SELECT temp, room FROM t")
    assert rows(rooms, "room_temp") == [("a", 4), ("b", 7), ("c", 8), ("d", 8)]
    assert rows(rooms, "mean") == [(4, 27)]


def test_a_query_has_no_order_so_it_must_yield_a_key_once(rooms: hw.Database):
    rooms.execute("CREATE TABLE t (room STRING, temp INT); INSERT INTO t VALUES ('a', 1), ('a', 2)")
    with refused("HW305"):
        rooms.execute("INSERT INTO room_temp SELECT room, temp FROM t")
    assert rows(rooms, "room_temp") == []


def test_several_operations_of_an_epoch_apply_in_order(rooms: hw.Database):
    seen = changelogs(rooms)
    rooms.insert("room_temp", [("a", 1)])
    with rooms.epoch() as e:
        e.insert("room_temp", [("a", 2), ("b", 1)])
        e.delete_keys("room_temp", ["a"])
        e.insert("room_temp", [("a", 1)])
        e.delete_keys("room_temp", ["b"])
    assert seen[1:] == [{}]
    assert rows(rooms, "room_temp") == [("a", 1)]


def test_rows_go_as_they_do_from_a_table_with_a_key(rooms: hw.Database):
    rooms.insert("room_temp", [("a", 1), ("b", 2), ("c", 3), ("d", 4)])
    with rooms.epoch() as e:
        e.delete("room_temp", [("a", 1)])
    rooms.delete_keys("room_temp", ["b"])
    rooms.execute("DELETE FROM room_temp WHERE temp = 3")
    rooms.execute("UPDATE room_temp SET temp = temp + 1, room = 'e'")
    assert rows(rooms, "room_temp") == [("e", 5)]
    assert rows(rooms, "mean") == [(1, 5)]
    with refused("HW306"), rooms.epoch() as e:
        e.delete("room_temp", [("e", 4)])


def test_an_update_that_makes_two_rows_of_a_key_is_refused(rooms: hw.Database):
    rooms.insert("room_temp", [("a", 1), ("b", 2)])
    with refused("HW305"):
        rooms.execute("UPDATE room_temp SET room = 'a'")


def test_a_key_is_never_null(rooms: hw.Database):
    for attempt in (
        lambda: rooms.insert("room_temp", [(None, 1)]),
        lambda: rooms.upsert("room_temp", [(None, 1)]),
        lambda: rooms.delete_keys("room_temp", [None]),
        lambda: rooms.execute("INSERT INTO room_temp VALUES (NULL, 1)"),
        lambda: rooms.execute("INSERT INTO room_temp (temp) VALUES (1)"),
    ):
        with refused("HW327|HW138"):
            attempt()
    [described] = rooms.execute("DESCRIBE room_temp")
    assert described.table is not None
    assert described.table.select(["column", "nullable", "key"]).to_pylist()[0] == {
        "column": "room",
        "nullable": False,
        "key": True,
    }


def test_a_delete_of_an_unknown_key_is_counted_or_refused(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, v INT) KEY (k); CREATE STREAM strict_one (k INT, v INT) KEY (k) STRICT")
    db.delete_keys("s", [1, 2])
    assert facts(db, "s")["unknown_keys"] == 2
    with refused("HW306"):
        db.delete_keys("strict_one", [1])
    db.insert("strict_one", [(1, 1)])
    db.delete_keys("strict_one", [1])
    assert rows(db, "strict_one") == []
    assert "late" not in facts(db, "s")


def test_keys_of_several_columns_and_unusual_types(db: hw.Database):
    db.execute(
        "CREATE STREAM s (a DOUBLE, v INT, b DATE, c ARRAY<INT>) KEY (b, a, c); CREATE VIEW v AS SELECT v FROM s"
    )
    day = dt.date(2024, 2, 29)
    db.insert("s", [(0.0, 1, day, [1]), (float("nan"), 2, day, [1]), (0.0, 3, day, [2])])
    db.insert("s", [(-0.0, 4, day, [1]), (float("nan"), 5, day, [1])])
    assert rows(db, "v") == [(3,), (4,), (5,)]
    db.delete_keys("s", [{"b": day, "a": 0.0, "c": [1]}, (day, float("nan"), [1])])
    assert rows(db, "v") == [(3,)]


# -- SEQUENCE BY -------------------------------------------------------------------------------------------------------


@pytest.fixture
def versions(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE STREAM s (k INT, q INT, v STRING) KEY (k) SEQUENCE BY q;
        CREATE VIEW v AS SELECT k, v FROM s
    """)
    return db


def test_an_older_version_never_overwrites_a_newer_one(versions: hw.Database):
    versions.insert("s", [(1, 5, "new"), (1, 3, "old"), (2, 1, "one")])
    versions.insert("s", [(1, 4, "late"), (1, 2, "later"), (2, 2, "two")])
    assert rows(versions, "v") == [(1, "new"), (2, "two")]
    assert facts(versions, "s")["late"] == 2


def test_of_equal_versions_the_later_arrival_wins(versions: hw.Database):
    versions.insert("s", [(1, 5, "a"), (1, 5, "b")])
    assert rows(versions, "v") == [(1, "b")]
    versions.insert("s", [(1, 5, "c")])
    assert rows(versions, "v") == [(1, "c")]
    assert facts(versions, "s")["late"] == 0


@pytest.mark.parametrize(
    "delete",
    [
        lambda db: db.delete_keys("s", [1]),
        lambda db: db.execute("DELETE FROM s WHERE v = 'new'"),
        lambda db: db.execute("DELETE FROM s"),
        lambda db: _delete_row(db, (1, 5, "new")),
    ],
)
def test_nor_does_it_bring_back_what_was_deleted(versions: hw.Database, delete: Any):
    versions.insert("s", [(1, 5, "new")])
    delete(versions)
    versions.insert("s", [(1, 4, "late")])
    assert (rows(versions, "v"), facts(versions, "s")["late"]) == ([], 1)
    versions.insert("s", [(1, 5, "same")])
    assert rows(versions, "v") == [(1, "same")]
    versions.insert("s", [(1, 6, "again")])
    versions.insert("s", [(1, 5, "late")])
    assert (rows(versions, "v"), facts(versions, "s")["late"]) == ([(1, "again")], 2)


def _delete_row(db: hw.Database, row: tuple[object, ...]) -> None:
    with db.epoch() as e:
        e.delete("s", [row])


def test_what_is_gone_is_known_within_an_epoch_and_after_a_restart(tmp_path: Path):
    with hw.connect(tmp_path / "w") as db:
        db.execute("CREATE STREAM s (k INT, q INT) KEY (k) SEQUENCE BY q")
        with db.epoch() as e:
            e.insert("s", [(1, 5), (2, 5)])
            e.delete_keys("s", [1])
            e.insert("s", [(1, 4)])
        assert rows(db, "s") == [(2, 5)]
    with hw.connect(tmp_path / "w") as db:
        db.insert("s", [(1, 4), (2, 4)])
        assert rows(db, "s") == [(2, 5)]
        assert facts(db, "s")["late"] == 3
        db.execute("DROP STREAM s; CREATE STREAM s (k INT, q INT) KEY (k) SEQUENCE BY q")
        db.insert("s", [(1, 1)])
        assert rows(db, "s") == [(1, 1)]
        assert facts(db, "s")["late"] == 0


def test_an_update_moves_the_key_and_its_version(versions: hw.Database):
    versions.insert("s", [(1, 5, "a")])
    versions.delete_keys("s", [1])
    versions.insert("s", [(2, 7, "b")])
    versions.execute("UPDATE s SET k = 1 WHERE k = 2")
    versions.insert("s", [(2, 6, "late"), (1, 6, "late")])
    assert rows(versions, "v") == [(1, "b")]
    versions.execute("UPDATE s SET q = 1")
    versions.insert("s", [(1, 2, "c"), (2, 7, "d")])
    assert rows(versions, "v") == [(1, "c"), (2, "d")]


def test_versions_have_a_place(versions: hw.Database):
    with refused("HW327"):
        versions.insert("s", [(1, None, "a")])


def test_gone_keys_are_consolidated_like_other_stores(tmp_path: Path):
    with hw.connect(tmp_path / "w") as db:
        db.execute("CREATE STREAM s (k INT, q INT) KEY (k) SEQUENCE BY q")
        keys = pa.array(range(3_000), pa.int32())
        for n in range(6):
            db.insert("s", pa.table({"k": keys, "q": pa.array([2 * n] * 3_000, pa.int32())}))
            db.delete_keys("s", pa.table({"k": keys}))
        assert db.consolidator.wait(30)
        [(stored,)] = db.warehouse.reader().execute('SELECT count(*) FROM data."s#gone"').fetchall()
        assert stored < 30_000
        db.insert("s", [(7, 9), (8, 10)])
        assert rows(db, "s") == [(8, 10)]


# -- OP BY -------------------------------------------------------------------------------------------------------------


def test_a_column_says_what_a_row_does(db: hw.Database):
    db.execute("CREATE STREAM s (op STRING, k INT, v INT NOT NULL) KEY (k) OP BY op; CREATE VIEW v AS SELECT * FROM s")
    db.insert("s", [("c", 1, 10), ("r", 2, 20), ("insert", 3, 30), ("u", 1, 11), ("update_preimage", 2, 20)])
    assert rows(db, "v") == [(1, 11), (2, 20), (3, 30)]
    db.insert("s", [{"op": "d", "k": 1, "v": None}, {"op": "update_postimage", "k": 2, "v": 21}])
    db.execute("INSERT INTO s (op, k) VALUES ('delete', 3)")
    assert rows(db, "v") == [(2, 21)]
    assert [f.name for f in db.find("s").fields] == ["k", "v"]
    with db.epoch() as e:
        e.delete("s", [(2, 21)])
    assert rows(db, "v") == []


def test_a_row_that_comes_and_goes_in_a_batch_was_known(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, op STRING) KEY (k) OP BY op STRICT")
    db.insert("s", [(1, "c"), (1, "d")])
    with refused("HW306"):
        db.insert("s", [(1, "d")])
    assert rows(db, "s") == []


def test_meanings_can_be_given_and_are_exact(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, op STRING) KEY (k) OP BY op (UPSERT 'I', 'U', DELETE 'D', IGNORE 'B')")
    db.insert("s", [(1, "I"), (2, "U"), (3, "B")])
    db.insert("s", [(1, "D")])
    assert rows(db, "s") == [(2,)]
    for value, message in (("i", "'i' in column op"), ("I ", "'I ' in column op"), (None, "NULL in column op")):
        with refused(f"HW331.*row 1 .*{message}"):
            db.insert("s", [(5, "I"), (6, value)])
    assert rows(db, "s") == [(2,)]


def test_a_row_that_is_not_deleted_needs_all_its_values(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, v INT NOT NULL, op STRING) KEY (k) OP BY op")
    with refused("HW327"):
        db.insert("s", [(1, None, "c")])
    with refused("HW327"):
        db.insert("s", [(None, 1, "d")])


def test_a_delete_may_come_before_what_it_deletes(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, q INT, op STRING) KEY (k) SEQUENCE BY q OP BY op")
    db.insert("s", [(1, 5, "d")])
    db.insert("s", [(1, 4, "c")])
    db.insert("s", [(1, 3, "d"), (1, 5, "d")])
    assert rows(db, "s") == []
    assert (facts(db, "s")["unknown_keys"], facts(db, "s")["late"]) == (1, 1)


# -- the merged Select-Tagger ------------------------------------------------------------------------------------------


def stored(db: hw.Database, stream: str) -> list[tuple[object, ...]]:
    """What the store of a stream adds up to."""
    reader = db.warehouse.reader()
    names = [f.name for f in db.find(stream).fields]
    columns = ", ".join(f'"{name}"' for name in names)
    query = f'SELECT {columns} FROM data."{stream}" GROUP BY {columns} HAVING sum("#n") <> 0 ORDER BY ALL'
    return list(reader.execute(query).fetchall())


def test_only_rows_that_a_view_can_use_are_kept(db: hw.Database):
    db.execute("""
        CREATE STREAM room_temp (room INT, temp INT) KEY (room);
        CREATE VIEW hot AS SELECT room FROM room_temp WHERE temp > 80
    """)
    seen = changelogs(db)
    for temp in (89, 79, 87, 86, 78):
        db.insert("room_temp", [(1, temp)])
    assert [one.get("hot") for one in seen] == [[(1, 1)], [(1, -1)], [(1, 1)], None, [(1, -1)]]
    db.insert("room_temp", [(1, 81), (2, 80), (3, 99)])
    assert stored(db, "room_temp") == [(1, 81), (3, 99)]
    assert "the Tagger of room_temp keeps only rows where temp > 80" in str(db.explain("hot"))
    with refused("HW107"):
        db.query("SELECT * FROM room_temp")
    with refused("HW107"):
        db.execute("UPDATE room_temp SET temp = 99")
    db.delete_keys("room_temp", [2, 3])  # nobody knows whether 2 was there
    assert facts(db, "room_temp")["unknown_keys"] == 0

    db.execute("CREATE VIEW cold AS SELECT room FROM room_temp WHERE temp < 75")
    db.insert("room_temp", [(4, 74), (5, 76)])
    assert (stored(db, "room_temp"), rows(db, "cold")) == ([(1, 81), (4, 74)], [(4,)])
    db.execute("CREATE VIEW n AS SELECT COUNT(*) AS n FROM room_temp")
    assert rows(db, "n") == [(2,)]  # it begins with what is kept
    db.insert("room_temp", [(5, 77)])
    assert rows(db, "n") == [(3,)]
    assert "keeps only" not in str(db.explain("hot"))
    assert "the Tagger of room_temp has left rows out before" in str(db.explain("hot"))
    with refused("HW107"):  # rows that were left out have not come back
        db.query("SELECT * FROM room_temp")
    db.execute("DROP VIEW n; DROP VIEW cold")
    db.insert("room_temp", [(4, 76), (5, 82)])  # rows that nobody needs any more leave when they change
    assert stored(db, "room_temp") == [(1, 81), (5, 82)]
    db.execute("REFRESH hot; ALTER VIEW hot REPLAN STRATEGY 'recompute'")
    assert rows(db, "hot") == [(1,), (5,)]


@pytest.mark.parametrize("clauses", ["RETAIN ALL", "RETAIN 7 DAYS", "STRICT"])
def test_all_rows_are_kept_if_somebody_asks_for_it(db: hw.Database, clauses: str):
    db.execute(f"CREATE STREAM s (k INT, v INT) KEY (k) {clauses}; CREATE VIEW v AS SELECT k FROM s WHERE v > 5")
    db.insert("s", [(1, 5), (2, 6)])
    assert rows(db, "s") == [(1, 5), (2, 6)]
    assert "Tagger" not in str(db.explain("v"))


def test_a_row_that_comes_and_goes_within_an_epoch_leaves_nothing(db: hw.Database):
    db.execute("CREATE STREAM s (k INT, v INT) KEY (k); CREATE VIEW v AS SELECT k FROM s WHERE v > 5")
    for first, second in ((1, 9), (9, 1), (9, 8), (1, 2)):
        with db.epoch() as e:
            e.insert("s", [(1, first)])
            e.insert("s", [(1, second)])
        kept = [(1, second)] if second > 5 else []
        assert stored(db, "s") == kept
        assert rows(db, "v") == [row[:1] for row in kept]


def test_rows_that_are_left_out_still_make_older_ones_late(db: hw.Database):
    db.execute("""
        CREATE STREAM s (k INT, q INT, v INT) KEY (k) SEQUENCE BY q;
        CREATE VIEW v AS SELECT k, v FROM s WHERE v > 5
    """)
    db.insert("s", [(1, 1, 9)])
    db.insert("s", [(1, 3, 2)])
    db.insert("s", [(1, 2, 8)])
    assert rows(db, "v") == []
    assert facts(db, "s")["late"] == 1
    db.insert("s", [(1, 4, 7)])
    assert (rows(db, "v"), stored(db, "s")) == ([(1, 7)], [(1, 4, 7)])
    db.insert("s", [(2, 1, 1)])
    db.delete_keys("s", [2, 3])
    assert facts(db, "s")["unknown_keys"] == 1


def test_a_condition_that_may_fail_keeps_more(db: hw.Database):
    db.execute("""
        CREATE STREAM s (k INT, v INT) KEY (k);
        CREATE VIEW v AS SELECT k FROM s WHERE v > 0 AND 10 / v > 2
    """)
    db.insert("s", [(1, 0), (2, 2), (3, 9)])
    assert stored(db, "s") == [(2, 2), (3, 9)]
    assert rows(db, "v") == [(2,)]


# -- declaring ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clauses", "code", "pointed"),
    [
        ("SEQUENCE BY q", "HW170", "SEQUENCE BY q"),
        ("OP BY op", "HW170", "OP BY op"),
        ("STRICT", "HW170", "STRICT"),
        ("KEY (k) SEQUENCE BY k", "HW171", "SEQUENCE BY k"),
        ("KEY (k) SEQUENCE BY l", "HW171", "SEQUENCE BY l"),
        ("KEY (k) SEQUENCE BY b", "HW171", "SEQUENCE BY b"),
        ("KEY (k, op) OP BY op", "HW171", "OP BY op"),
        ("KEY (k) SEQUENCE BY op OP BY op", "HW171", "OP BY op"),
        ("KEY (k) OP BY q", "HW171", "OP BY q"),
        ("KEY (m)", "HW164", "m"),
        ("KEY (k) FROM json 'in'", "HW172", "FROM json 'in'"),
    ],
)
def test_clauses_that_do_not_go_together(db: hw.Database, clauses: str, code: str, pointed: str):
    columns = "k INT, q INT, op STRING, l ARRAY<INT>, m MAP<INT, INT>, b BOOLEAN"
    with pytest.raises(hw.UserError) as caught:
        db.execute(f"CREATE STREAM s ({columns}) {clauses}")
    error = caught.value
    assert error.code == code
    assert error.hint
    assert error.source is not None and error.span is not None
    assert error.source.text[error.span.start : error.span.end] == pointed
    assert db.relations() == []


def test_a_stream_without_a_key_still_only_grows(db: hw.Database):
    db.execute("CREATE STREAM s (k INT)")
    with refused("HW302"):
        db.upsert("s", [(1,)])
    with refused("HW302"):
        db.delete_keys("s", [(1,)])


def test_through_the_socket(tmp_path: Path):
    with hw.connect(tmp_path / "w") as db, hw.connect(tmp_path / "w") as remote:
        assert type(db) is not type(remote)
        remote.execute("CREATE STREAM s (k INT, op STRING, v INT NOT NULL) KEY (k) OP BY op")
        remote.insert("s", [(1, "c", 1), (2, "c", 2)])
        remote.upsert("s", [(1, "u", 3)])
        remote.insert("s", [{"k": 2, "op": "d", "v": None}])
        assert rows(remote, "s") == [(1, 3)]
        remote.delete_keys("s", [1, 9])
        assert rows(db, "s") == []
        assert facts(remote, "s")["unknown_keys"] == 1
        with refused("HW331"):
            remote.insert("s", [(1, "?", 1)])
        remote.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        remote.upsert("t", [(1, 1)])
        remote.upsert("t", [(1, 2)])
        assert rows(remote, "t") == [(1, 2)]


def test_it_is_a_relation_like_any_other(db: hw.Database):
    db.execute("""
        CREATE STREAM s (k INT, v INT) KEY (k);
        CREATE TABLE t (v INT, name STRING);
        CREATE VIEW j AS SELECT s.k, t.name FROM s JOIN t ON s.v = t.v;
        CREATE VIEW top AS SELECT MAX(v) AS v FROM s
    """)
    db.insert("t", [(1, "one"), (2, "two")])
    db.insert("s", [(1, 1), (2, 2), (3, 2)])
    db.insert("s", [(1, 2), (2, 1)])
    assert rows(db, "j") == [(1, "two"), (2, "one"), (3, "two")]
    db.insert("s", [(1, 1), (3, 1)])
    assert rows(db, "top") == [(1,)]
    db.execute("CREATE VIEW late AS SELECT COUNT(*) AS n FROM s; REFRESH top; ALTER VIEW j REPLAN STRATEGY 'recompute'")
    assert rows(db, "late") == [(3,)]
    assert rows(db, "j") == [(1, "one"), (2, "one"), (3, "one")]


# -- raw and tagged streams --------------------------------------------------------------------------------------------


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = dt.datetime(1970, 1, 1, 0, 0, 1, 900_000)

    def __call__(self) -> dt.datetime:
        return self.now


TAGGED = """
    REGISTER SOURCE TemperatureSource (int RoomID, int Temperature) FROM port5501;
    CREATE TAGGED STREAM RoomTempStr OVER TemperatureSource KEY RoomID;
    CREATE TAGGED STREAM TempStr OVER TemperatureSource;
    CREATE VIEW readings AS SELECT COUNT(*) AS n, MAX(TS) AS last FROM TempStr
"""


def test_tagged_streams_take_the_rows_of_a_raw_one():
    clock = Clock()
    with hw.connect(clock=clock) as db:
        db.execute(TAGGED)
        db.insert("TemperatureSource", [(1, 99), (2, 75)])
        clock.now = dt.datetime(1970, 1, 1, 0, 0, 4)
        epoch = db.insert("TemperatureSource", [(3, 80), (1, 99)])
        assert rows(db, "RoomTempStr") == [(1, 99, 4), (2, 75, 1), (3, 80, 4)]
        assert rows(db, "readings") == [(4, 4)]
        assert epoch.number == 2
        db.execute("INSERT INTO TemperatureSource SELECT RoomID + 1, 1 FROM RoomTempStr WHERE RoomID = 3")
        db.insert("RoomTempStr", [(5, 50)])
        assert rows(db, "RoomTempStr") == [(1, 99, 4), (2, 75, 1), (3, 80, 4), (4, 1, 4), (5, 50, 4)]
        assert rows(db, "readings") == [(5, 4)]


def test_rows_from_a_file_reach_all_tagged_streams(tmp_path: Path):
    (tmp_path / "a.csv").write_text("RoomID,Temperature\n1,5\n2,6\n1,7\n")
    with hw.connect() as db:
        db.execute(TAGGED + f"; COPY TemperatureSource FROM '{tmp_path / 'a.csv'}'")
        assert [row[:2] for row in rows(db, "RoomTempStr")] == [(1, 7), (2, 6)]
        assert rows(db, "readings")[0][0] == 3


def test_the_time_is_not_to_be_given():
    with hw.connect() as db:
        db.execute(TAGGED)
        for attempt, code in (
            (lambda: db.insert("RoomTempStr", [{"RoomID": 1, "Temperature": 1, "TS": 1}]), "HW322"),
            (lambda: db.insert("RoomTempStr", [(1, 1, 1)]), "HW323"),
            (lambda: db.execute("INSERT INTO RoomTempStr (RoomID, TS) VALUES (1, 1)"), "HW332"),
            (lambda: db.execute("UPDATE RoomTempStr SET TS = 1"), "HW332"),
            (lambda: db.insert("TemperatureSource", [(None, 1)]), "HW327"),
        ):
            with refused(code):
                attempt()
        assert rows(db, "readings") == [(0, None)]


def test_dropping_a_raw_stream_drops_what_is_over_it_only_if_told():
    with hw.connect() as db:
        db.execute(TAGGED)
        with refused("HW105.*RoomTempStr, TempStr, readings"):
            db.execute("DROP STREAM TemperatureSource")
        db.execute("DROP STREAM RoomTempStr")
        db.execute("DROP STREAM TemperatureSource CASCADE")
        assert db.relations() == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE TAGGED STREAM s OVER nothing", "HW102"),
        ("CREATE TAGGED STREAM s OVER t", "HW173"),
        ("CREATE TAGGED STREAM s OVER RoomTempStr", "HW173"),
        ("CREATE TAGGED STREAM s OVER TempStr", "HW173"),
        ("CREATE TAGGED STREAM s OVER stamped", "HW173"),
        ("CREATE TAGGED STREAM s OVER TemperatureSource KEY TS", "HW162"),
        ("CREATE TAGGED STREAM s OVER TemperatureSource SEQUENCE BY Temperature", "HW170"),
        ("CREATE TAGGED STREAM TempStr OVER TemperatureSource", "HW103"),
    ],
)
def test_refused_tagged_streams(statement: str, code: str):
    with hw.connect() as db:
        db.execute(TAGGED + "; CREATE TABLE t (a INT); CREATE STREAM stamped (ts INT)")
        with refused(code):
            db.execute(statement)


def test_a_tagged_stream_that_is_retained_keeps_the_time_at_which_rows_came(db: hw.Database):
    db.execute("""
        ADVANCE CLOCK TO 7;
        REGISTER SOURCE src (int a);
        CREATE TAGGED STREAM tagged OVER src RETAIN ALL;
        CREATE VIEW pairs STRATEGY 'first order' AS SELECT x.TS AS x, y.TS AS y FROM tagged x JOIN tagged y ON x.a = y.a
    """)
    db.insert("src", [(1,)])
    db.execute("ADVANCE CLOCK TO 9")
    db.insert("src", [(1,)])
    assert rows(db, "tagged") == [(1, 7), (1, 9)]
    assert rows(db, "pairs") == [(7, 7), (7, 9), (9, 7), (9, 9)]
    db.execute("CREATE VIEW late AS SELECT TS FROM tagged")
    assert rows(db, "late") == [(7,), (9,)]
