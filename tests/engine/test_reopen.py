"""A warehouse on disk: the same after it is closed and opened again, and through a second process."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import textwrap
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import headwater as hw
from tests.engine.support import Changes, SetClock, bag, check_views, opened, recomputed, refused, rows, state

SQL = """
CREATE TABLE t (id INT PRIMARY KEY, g STRING NOT NULL, x DECIMAL(10,2));
CREATE STATIC TABLE c (g STRING, name STRING);
CREATE STREAM kept (g STRING, at TIMESTAMP) RETAIN ALL;
CREATE STREAM short (g STRING) RETAIN 1 HOUR;
CREATE STREAM passing (x INT);
INSERT INTO c VALUES ('a', 'Anna'), ('b', 'Bert');
CREATE VIEW sums AS SELECT g, sum(x) AS s, avg(x) AS a FROM t GROUP BY g HAVING count(*) > 0;
CREATE VIEW named AS SELECT c.name, s.s FROM sums s JOIN c ON s.g = c.g;
CREATE VIEW nested AS SELECT n, count(*) AS times FROM (SELECT g, count(*) AS n FROM kept GROUP BY g) AS k GROUP BY n;
CREATE VIEW total AS SELECT sum(x) AS s FROM passing;
CREATE VIEW slow STRATEGY 'recompute' AS SELECT g, count(*) AS n FROM kept GROUP BY g;
CREATE VIEW ratio AS SELECT id, 1 / x AS r FROM t;
CREATE VIEW constant AS SELECT 1 AS one, DATE '2024-02-29' AS d, CAST(NULL AS INT) AS nothing;
CREATE VIEW `odd name` AS SELECT g AS `select`, x AS `a.b` FROM t
"""


def fill(db: hw.Database) -> None:
    with db.epoch() as e:
        e.insert("t", [(1, "a", Decimal("1.50")), (2, "b", None), (3, "a", Decimal("2.25"))])
        e.insert("kept", [("a", dt.datetime(2024, 1, 1)), ("a", dt.datetime(2024, 1, 1)), ("b", None)])
        e.insert("passing", [(1,), (2,)])
        e.insert("short", [("s",)])
    db.execute("UPDATE t SET x = x + 1 WHERE id = 1; DELETE FROM t WHERE id = 2")
    assert list(db.insert("t", [(4, "b", 0)]).suspended) == ["ratio"]


def test_a_reopened_warehouse_is_the_same(tmp_path: Path) -> None:
    clock = SetClock()
    with opened(tmp_path, clock) as db:
        db.execute(SQL)
        fill(db)
        before = state(db)
        relations = [replace(one, program=None) for one in db.engine.catalog]
        explained = {one.name: str(db.explain(one.name)) for one in db.engine.catalog if one.program}
    with opened(tmp_path, clock) as db:
        assert state(db) == before
        assert {name: str(db.explain(name)) for name in explained} == explained
        assert [replace(one, program=None) for one in db.engine.catalog] == relations
        with refused(db, "HW304"):
            db.insert("c", [("z", "Zoe")])
        with refused(db, "HW305"):
            db.insert("t", [(1, "x", None)])
        with refused(db, "HW105"):
            db.execute("DROP VIEW sums")
        with refused(db, "HW505"):
            db.execute("REFRESH total")
        with refused(db, "HW501"):
            db.execute("REFRESH ratio")


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as db:
        db.execute(SQL)
        fill(db)
    with opened(tmp_path / "a") as db, opened() as never_closed:
        never_closed.execute(SQL)
        fill(never_closed)
        changes = [Changes(one) for one in (db, never_closed)]
        for one in (db, never_closed):
            with one.epoch() as e:
                e.upsert("t", [(1, "b", Decimal("9.00"))])
                e.delete_keys("t", [3])
                e.insert("kept", [("c", None)])
                e.insert("passing", [(5,)])
            check_views_but_streams(one)
        assert changes[0].epochs == changes[1].epochs
        assert state(db) == state(never_closed)


def check_views_but_streams(db: hw.Database) -> None:
    """`total` reads a stream that keeps nothing, so only its value can be checked."""
    assert rows(db, "total") == [(8,)]
    for name in ("sums", "named", "nested", "slow", "odd name"):
        assert bag(db, name) == recomputed(db, name)


def test_a_refused_epoch_leaves_nothing_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)")
        with refused(db, "HW305"):
            db.insert("t", [(2,), (1,)])
        before = state(db)
    with opened(tmp_path) as db:
        assert state(db) == before


@pytest.mark.parametrize("field", ["my field", "é", "select", "a`b"])
def test_structs_with_odd_field_names_come_back(tmp_path: Path, field: str) -> None:
    name = field.replace("`", "``")
    with opened(tmp_path) as db:
        db.execute(f"CREATE TABLE t (s STRUCT<`{name}`: INT>); CREATE VIEW v AS SELECT s FROM t")
        db.insert("t", [({field: 1},)])
    with opened(tmp_path) as db:
        assert rows(db, "v") == [((1,),)]


def test_an_empty_warehouse_comes_back_empty(tmp_path: Path) -> None:
    opened(tmp_path / "w").close()
    with opened(tmp_path / "w") as db:
        assert db.relations() == []
        assert db.engine.epoch == 0


def test_a_second_process_uses_the_first_ones_warehouse(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("w")
    program = textwrap.dedent(
        """
        import sys
        import headwater as hw
        with hw.connect(sys.argv[1]) as db:
            print(type(db).__name__)
            db.insert("t", [(2, "b")])
            with db.epoch() as e:
                e.insert("t", [(3, "c")])
                e.delete("t", [(1, "a")])
            db.execute("CREATE VIEW w AS SELECT s FROM v")
            print(sorted(row["s"] for row in db.query("SELECT * FROM w").to_pylist()))
            try:
                db.insert("t", [(2, "again")])
            except hw.UserError as error:
                print(error.code)
        """
    )
    with opened(folder) as db:
        db.execute("CREATE TABLE t (id INT PRIMARY KEY, s STRING); CREATE VIEW v AS SELECT s FROM t")
        db.insert("t", [(1, "a")])
        done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        assert done.stdout.splitlines() == ["RemoteDatabase", "['b', 'c']", "HW305"]
        assert rows(db, "w") == [("b",), ("c",)]
        assert db.engine.epoch == 3
    with opened(folder) as db:
        assert rows(db, "w") == [("b",), ("c",)]
        check_views(db)
