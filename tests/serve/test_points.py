"""Point reads: by key, by an index, of one and of many."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from tests.engine.support import opened, rows, table_rows

import headwater as hw
from headwater.engine.engine import index_path

SETUP = """
    CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT);
    CREATE TABLE bag (x INT, y STRING);
    CREATE STREAM feed (k INT, at TIMESTAMP, x INT) KEY (k) RETAIN ALL;
    CREATE VIEW total AS SELECT shop, sum(euros) AS euros, count(*) AS n FROM sale GROUP BY shop HAVING sum(euros) > 5;
    CREATE VIEW all_of_it AS SELECT sum(euros) AS euros FROM sale
"""


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with opened() as database:
        database.execute(SETUP)
        database.insert("sale", [(i, f"s{i % 7}", i) for i in range(50)])
        yield database


def test_a_row_by_its_key(db: hw.Database) -> None:
    assert db.get("sale", 3) == {"id": 3, "shop": "s3", "euros": 3}
    assert db.get("sale", (3,)) == db.get("SALE", {"ID": 3}) == db.get("sale", [3])
    assert db.get("sale", 3, ["euros", "ID"]) == {"euros": 3, "id": 3}
    assert db.get("sale", 99) is None
    assert db.get("total", "s3") == {"shop": "s3", "euros": sum(range(3, 50, 7)), "n": 7}
    assert db.get("all_of_it", ()) == {"euros": sum(range(50))}
    db.insert("feed", [(1, dt.datetime(2026, 1, 1), 5), (1, dt.datetime(2026, 1, 2), 6)])
    assert db.get("feed", 1) == {"k": 1, "at": dt.datetime(2026, 1, 2), "x": 6}


def test_a_group_that_is_not_shown_is_not_found(db: hw.Database) -> None:
    db.execute("CREATE INDEX i ON total (shop); DELETE FROM sale WHERE shop = 's1' AND id > 1")
    assert db.get("total", "s1") is None
    db.execute("DELETE FROM sale WHERE shop = 's2'")
    assert db.get("total", "s2") is None


@pytest.mark.parametrize("indexed", [False, True])
def test_rows_of_many_keys(db: hw.Database, indexed: bool) -> None:
    if indexed:
        db.execute("CREATE INDEX by_id ON sale (id)")
    db.execute("UPDATE sale SET euros = -1 WHERE id = 4")
    expected = [(3, "s3", 3), (4, "s4", -1)]
    for keys in ([3, 4, 99, 4], [(3,), (4,)], [{"id": 3}, {"id": 4}], pa.table({"id": pa.array([4, 3], pa.int32())})):
        assert sorted(table_rows(db.get_many("sale", keys))) == expected, keys
    assert sorted(table_rows(db.get_many("sale", [3, 4], ["euros"]))) == [(-1,), (3,)]
    assert db.get_many("sale", []).num_rows == 0
    assert db.get_many("sale", []).column_names == ["id", "shop", "euros"]
    assert db.getting.points.found == (12 if indexed else 0)


def test_an_index_finds_rows_by_other_columns(db: hw.Database) -> None:
    db.execute("CREATE INDEX by_shop ON sale (shop); INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (2, 'b')")
    assert len(db.get_many("sale", [{"shop": "s3"}])) == 7
    with pytest.raises(hw.UserError, match="HW346"):
        db.get("sale", {"shop": "s3"})
    db.execute("CREATE INDEX both ON bag (y, x)")
    assert table_rows(db.get_many("bag", [{"x": 1, "y": "a"}])) == [(1, "a"), (1, "a")]
    assert db.get("bag", ("b", 2)) == {"x": 2, "y": "b"}
    assert db.get("bag", {"x": 2, "y": "b"}) == {"x": 2, "y": "b"}
    assert db.getting.points.scanned == 0
    [shown] = db.execute("SHOW INDEXES LIKE 'b%h'")
    assert shown.table is not None
    assert shown.table.to_pylist() == [
        {"name": "both", "relation": "bag", "columns": "y, x", "state": "ready", "rows": 3}
    ]
    db.execute("DROP INDEX both ON bag; DROP INDEX IF EXISTS both; CREATE INDEX IF NOT EXISTS by_shop ON sale (shop)")
    with pytest.raises(hw.UserError, match="HW343"):
        db.get("bag", ("b", 2))


@pytest.mark.parametrize(
    ("relation", "key", "code"),
    [
        ("nothing", 1, "HW102"),
        ("bag", 1, "HW343"),
        ("sale", {"shop": "s1"}, "HW343"),
        ("sale", {"nope": 1}, "HW101"),
        ("sale", (1, 2), "HW344"),
        ("sale", None, "HW344"),
        ("sale", "one", "HW344"),
        ("sale", 2**40, "HW344"),
        ("total", 5, "HW344"),
    ],
)
def test_keys_that_do_not_fit(db: hw.Database, relation: str, key: object, code: str) -> None:
    with pytest.raises(hw.UserError) as caught:
        db.get(relation, key)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE INDEX i ON nothing (x)", "HW102"),
        ("CREATE INDEX i ON bag (z)", "HW101"),
        ("CREATE INDEX i ON bag (x, X)", "HW111"),
        ("CREATE INDEX i ON bag (x); CREATE INDEX I ON bag (y)", "HW345"),
        ("DROP INDEX i", "HW345"),
        ("CREATE STREAM s (x INT) RETAIN ALL; CREATE INDEX i ON s (x)", "HW283"),
        ("CREATE TABLE d (x DOUBLE); CREATE INDEX i ON d (x)", "HW283"),
        ("CREATE INDEX i ON bag USING btree (x)", "HW261"),
    ],
)
def test_indexes_that_cannot_be(db: hw.Database, statement: str, code: str) -> None:
    with pytest.raises(hw.HeadwaterError) as caught:
        db.execute(statement)
    assert caught.value.code == code


def test_keys_that_are_given_in_another_order_than_they_are_stored(db: hw.Database) -> None:
    """What is remembered of the values of one index is no other's."""
    for name, columns in (("p", "x, y"), ("q", "y, x")):
        db.execute(f"CREATE TABLE {name} (x INT, y INT); INSERT INTO {name} VALUES (1, 2), (2, 1), (3, 4)")
        db.execute(f"CREATE INDEX of_{name} ON {name} ({columns})")
    assert db.get("p", (1, 2)) == {"x": 1, "y": 2}
    assert db.get("q", (1, 2)) == {"x": 2, "y": 1}
    assert db.get("q", (4, 3)) == {"x": 3, "y": 4}
    assert db.get("p", (4, 3)) is None
    assert db.getting.points.scanned == 0


def test_every_type_of_a_key(db: hw.Database) -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5)
    db.execute("CREATE TABLE t (b BOOLEAN, i BIGINT, d DECIMAL(10, 2), s STRING, day DATE, at TIMESTAMP, a ARRAY<INT>)")
    db.execute("CREATE INDEX i ON t (at, s, b, i, d, day)")
    row = (True, 2**40, Decimal("1.50"), "ä", moment.date(), moment, [1, 2])
    db.insert("t", [row, (False, *row[1:])])
    names = ("b", "i", "d", "s", "day", "at")
    for bring in (False, True):
        if bring:
            db.engine.access.copies.clear()
            assert db.consolidator.wait(20)
        found = db.get("t", dict(zip(names, row, strict=False)))
        assert found is not None
        assert tuple(found.values()) == row
        assert db.get_many("t", [dict(zip(names, row, strict=False))]).to_pylist() == [found]
    assert db.getting.points.scanned == 0


def test_an_index_is_there_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute(f"{SETUP}; CREATE INDEX by_shop ON sale (shop)")
        db.insert("sale", [(1, "a", 5)])
    with opened(tmp_path) as db:
        assert db.consolidator.wait(20)
        [shown] = db.execute("SHOW INDEXES")
        assert shown.table is not None
        assert shown.table.to_pylist()[0]["state"] == "ready"
        assert db.get("sale", {"shop": "a"}) == {"id": 1, "shop": "a", "euros": 5}
        assert db.getting.points.found == 1
        db.execute("DROP TABLE sale CASCADE")
        assert not db.engine.access.pinned


def test_through_another_process(tmp_path: Path) -> None:
    from headwater.serve.remote import RemoteDatabase

    with opened(tmp_path) as db, RemoteDatabase(tmp_path) as remote:
        db.execute(SETUP)
        db.insert("sale", [(1, "a", 5)])
        assert remote.get("sale", 1) == db.get("sale", 1)
        assert remote.get("sale", {"id": 2}) is None
        assert remote.get_many("sale", [1, 2], ["shop"]).to_pylist() == [{"shop": "a"}]
        with pytest.raises(hw.UserError) as caught:
            remote.get("sale", (1, 2))
        assert caught.value.code == "HW344"


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_and_rewritings(seed: int) -> None:
    """Whatever was appended, rewritten or replanned: a point read says what a query says."""
    rng = random.Random(seed)
    with opened() as db:
        db.execute("""
            CREATE TABLE t (id INT PRIMARY KEY, g INT, x INT);
            CREATE VIEW v AS SELECT g, sum(x) AS x, count(*) AS n FROM t GROUP BY g HAVING count(*) > 1;
            CREATE VIEW w AS SELECT id, g FROM t WHERE x > 2;
            CREATE INDEX on_v ON v (g); CREATE INDEX on_w ON w (g); CREATE INDEX on_t ON t (g)
        """)
        for step in range(40):
            ids = rng.sample(range(30), 6)
            db.upsert("t", [(i, rng.randrange(6), rng.randrange(6)) for i in ids[:4]])
            db.execute(f"DELETE FROM t WHERE id IN ({ids[4]}, {ids[5]})")
            if rng.random() < 0.3:
                db.engine.urgent |= {"t", "v", "w"}
                assert db.consolidator.wait(20)
            if rng.random() < 0.1:
                db.execute(f"ALTER VIEW v REPLAN STRATEGY '{rng.choice(['first order', 'recompute', 'tree'])}'")
            held = rows(db, "v")
            for g in range(7):
                expected = next((dict(zip(("g", "x", "n"), row, strict=True)) for row in held if row[0] == g), None)
                assert db.get("v", g) == expected, (step, g)
                for one in ("w", "t"):
                    found = sorted(table_rows(db.get_many(one, [{"g": g}])), key=repr)
                    assert found == rows(db, f"SELECT * FROM {one} WHERE g = {g}"), (step, one, g)
        assert db.getting.points.found > 0


def test_reads_beside_a_writer_and_the_background() -> None:
    """Two rows change together; whoever reads them both at once sees them agree, and never older than before."""
    with opened() as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, g INT, x INT); CREATE INDEX i ON t (g)")
        db.insert("t", [(1, 1, 0), (2, 1, 0)])
        stop, wrong = threading.Event(), list[object]()

        def read() -> None:
            last = 0
            while not stop.is_set():
                found = [row["x"] for row in db.get_many("t", [{"g": 1}]).to_pylist()]
                alone = db.get("t", 1)
                if len(found) != 2 or found[0] != found[1] or found[0] < last or alone is None or alone["x"] < found[0]:
                    wrong.append((found, alone, last))
                last = alone["x"] if alone else 0

        threads = [threading.Thread(target=read) for _ in range(2)]
        for one in threads:
            one.start()
        for n in range(1, 120):
            db.upsert("t", [(1, 1, n), (2, 1, n)])
            if n % 10 == 0:
                db.engine.urgent.add("t")
                db.consolidator.nudge()
        stop.set()
        for one in threads:
            one.join()
        assert not wrong, wrong[:3]
        assert db.getting.points.found > 0


def test_an_index_has_its_path() -> None:
    with opened() as db:
        db.execute(f"{SETUP}; CREATE INDEX i ON total (shop)")
        relation = db.find("total")
        path = index_path(db.engine.catalog, relation, relation.indexes[0])
        assert path in db.engine.access.copies
        assert path in db.engine.access.pinned


def test_a_view_that_is_evaluated_when_it_is_read(db: hw.Database) -> None:
    db.execute("CREATE VIEW lazy REFRESH ON QUERY AS SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop")
    db.execute("CREATE VIEW lazy_all REFRESH ON QUERY AS SELECT sum(euros) AS euros FROM sale")
    assert db.get("lazy", "s3") == {"shop": "s3", "euros": sum(range(3, 50, 7))}
    assert db.get("lazy", "nobody") is None
    assert db.get("lazy_all", ()) == {"euros": sum(range(50))}
    db.execute("DELETE FROM sale WHERE shop = 's3' AND id > 3")
    assert db.get("lazy", "s3", ["euros"]) == {"euros": 3}
    assert sorted(table_rows(db.get_many("lazy", ["s3", "s1", "x"]))) == [("s1", sum(range(1, 50, 7))), ("s3", 3)]
    with pytest.raises(hw.NotSupported, match="HW283"):
        db.execute("CREATE INDEX i ON lazy (shop)")


def test_columns_that_are_stored_as_one(db: hw.Database) -> None:
    columns = "shop, count(*) AS a, count(*) AS b, CAST(1 AS FLOAT) AS c"
    db.execute(f"CREATE VIEW twice AS SELECT {columns} FROM sale GROUP BY shop")
    db.execute("CREATE INDEX i ON twice (a, b)")
    for _ in range(2):
        assert len(db.get_many("twice", [{"a": 7, "b": 7}])) == 6
        assert db.get("twice", {"a": 8, "b": 8}) == {"shop": "s0", "a": 8, "b": 8, "c": 1.0}
        assert db.get("twice", {"a": 8, "b": 7}) is None
        db.execute("UPDATE sale SET euros = 0 WHERE id = 1; INSERT INTO sale VALUES (100, 's9', 1)")
        db.execute("DELETE FROM sale WHERE id = 100")
    assert db.getting.points.scanned == 0
