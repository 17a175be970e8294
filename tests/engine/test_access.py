"""Rows of large stores are looked up in sorted copies, and what is found is what a scan finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path as Folder
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.emit.probes import Path
from headwater.engine import access, sorted_copies
from headwater.engine.access import looks_up
from headwater.engine.copying import bring_up_to_date
from headwater.engine.rewriting import consolidate
from headwater.engine.shapes import shape_of
from headwater.engine.sorted_copies import Run, Shelf, SortedCopy, build

PATH = Path("s", ("k",))
T = TypeVar("T")


# -- copies ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    """Ten thousand rows of a thousand keys, which came in ten epochs; half of the keys go again."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA data")
        connection.execute("""
            CREATE TABLE data.s AS
            SELECT CASE WHEN i % 1000 = 0 THEN NULL ELSE 'key ' || i % 1000 END AS k, i AS v,
              CASE WHEN i % 2 = 0 THEN -1 ELSE 1 END::BIGINT AS "#n", i // 1000 AS "#e"
            FROM range(10000) AS t(i)
        """)
        yield connection


def copied(store: duckdb.DuckDBPyConnection, *ends: int) -> SortedCopy:
    """A copy of the store in runs that end with these epochs."""
    runs: list[Run] = []
    columns: tuple[str, ...] = ()
    for end in ends:
        after = runs[-1].upto if runs else -1
        run, columns = build(store, 'data."s"', PATH, after, end, Shelf(None))
        runs.append(run)
    return SortedCopy(PATH, columns, runs)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def hashes(store: duckdb.DuckDBPyConnection, keys: list[str | None]) -> np.ndarray:
    store.register("wanted", pa.table({"k": pa.array(keys, pa.string())}))
    return store.execute("SELECT hash(k) AS h FROM wanted").fetchnumpy()["h"]


@pytest.mark.parametrize("ends", [(9,), (3, 9), (0, 1, 2, 9)])
@pytest.mark.parametrize("chunk", [300, 4_000_000])
@pytest.mark.parametrize("file", [100, 4_000_000])
def test_what_is_found_is_what_a_scan_finds(
    store: duckdb.DuckDBPyConnection, ends: tuple[int, ...], chunk: int, file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_copies, "CHUNK_ROWS", chunk)
    monkeypatch.setattr(sorted_copies, "BATCH_ROWS", min(chunk, 100_000))
    monkeypatch.setattr(sorted_copies, "FILE_ROWS", file)
    copy = copied(store, *ends)
    assert copy.rows == 10_000
    assert copy.upto == 9
    for keys in (["key 7"], ["key 7", "key 7", None, "nobody"], ["nobody"], [], [f"key {i}" for i in range(1, 1000)]):
        found = rows_of(copy.find(hashes(store, keys)))  # type: ignore[arg-type]
        scan = store.sql("SELECT s.* FROM data.s SEMI JOIN wanted ON s.k IS NOT DISTINCT FROM wanted.k")
        assert found == rows_of(scan.to_arrow_table())


def test_a_copy_of_nothing(store: duckdb.DuckDBPyConnection) -> None:
    store.execute("DELETE FROM data.s")
    copy = copied(store, 4, 9)
    found = copy.find(hashes(store, ["key 1"]))
    assert found is not None
    assert found.num_rows == 0
    assert found.column_names == ["k", "v", "#n", "#e"]


def test_runs_stay_few_and_rows_are_seldom_sorted_again(store: duckdb.DuckDBPyConnection) -> None:
    copy = copied(store, 0)
    [chunk] = copy.runs[0].chunks
    sorted_rows = 0
    for epoch in range(1, 1001):
        copy.behind = chunk.rows.num_rows
        kept = copy.settled()
        merged = sum(one.rows for one in copy.runs) - sum(one.rows for one in kept) + copy.behind
        sorted_rows += merged
        run = Run(epoch, (chunk,) * (merged // chunk.rows.num_rows))
        copy.runs = [*kept, run]
        assert len(copy.runs) <= 6
    assert copy.rows == 1001 * chunk.rows.num_rows
    assert sorted_rows < 12 * copy.rows


def test_files_have_no_names(tmp_path: Folder) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / f"{sorted_copies.PREFIX}left").write_text("of a process that was killed")
    mine = tmp_path / f"{sorted_copies.PREFIX}mine.csv"
    mine.write_text("not ours")
    shelf = Shelf(tmp_path)
    rows = pa.table({"a": range(1000), "b": ["x"] * 1000})
    assert shelf.put(rows).equals(rows)
    assert sorted(tmp_path.rglob("*")) == [mine, tmp_path / "tmp"]


# -- decisions ---------------------------------------------------------------------------------------------------------


def test_looked_up_is_what_is_few_among_many() -> None:
    assert looks_up(20_000_000, 10)
    assert looks_up(20_000_000, 10_000)
    assert not looks_up(20_000_000, 1_000_000)
    assert not looks_up(200_000, 10)
    assert not looks_up(200_000, 1_000)


# -- epochs ------------------------------------------------------------------------------------------------------------

SQL = """
CREATE TABLE a (k INT NOT NULL, g STRING, v INT);
CREATE TABLE b (k INT PRIMARY KEY, h STRING);
CREATE VIEW sums AS SELECT g, SUM(v) AS v, COUNT(*) AS n FROM a GROUP BY g;
CREATE VIEW joined STRATEGY 'first order' AS
  SELECT b.h, SUM(a.v) AS v, MIN(a.g) AS g FROM a JOIN b ON a.k = b.k GROUP BY b.h;
CREATE VIEW chain STRATEGY 'first order' AS
  SELECT x.g, COUNT(*) AS n FROM a x JOIN b ON x.k = b.k JOIN a y ON y.g = b.h GROUP BY x.g;
CREATE VIEW best AS SELECT k, v, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v, k) AS r FROM a;
"""
VIEWS = {
    "sums": "SELECT g, SUM(v) AS v, COUNT(*) AS n FROM a GROUP BY g",
    "joined": "SELECT b.h, SUM(a.v) AS v, MIN(a.g) AS g FROM a JOIN b ON a.k = b.k GROUP BY b.h",
    "chain": "SELECT x.g, COUNT(*) AS n FROM a x JOIN b ON x.k = b.k JOIN a y ON y.g = b.h GROUP BY x.g",
    "best": "SELECT k, v, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v, k) AS r FROM a",
}


@pytest.fixture
def db() -> Iterator[hw.Database]:
    """Tables of some rows, of which everything is looked up that can be."""
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        database.execute(SQL)
        with database.epoch() as e:
            e.insert("a", [(i % 40, None if i % 7 == 0 else f"g{i % 11}", i) for i in range(300)])
            e.insert("b", [(i, f"g{i % 5}") for i in range(40)])
        database.engine.access.decide = lambda stored, keys: stored > 0
        yield database


def copy_all(db: hw.Database) -> None:
    for path in list(db.engine.access.wishes):
        bring_up_to_date(db.engine, path)


def check(db: hw.Database, *views: str) -> None:
    for view in views or VIEWS:
        assert rows_of(db.query(f"SELECT * FROM {view}")) == rows_of(db.query(VIEWS[view])), view


def step(db: hw.Database, i: int) -> None:
    """An epoch that changes both tables in several ways."""
    with db.epoch() as e:
        e.insert("a", [(i % 40, f"g{i % 11}", 1000 + i), (i % 40, None, i)])
        e.delete("a", [(i % 40, None if i % 7 == 0 else f"g{i % 11}", i)])
        e.upsert("b", [(i % 40, f"g{i % 3}"), (100 + i, "g1")])
        e.delete_keys("b", [{"k": 100 + i}])


def delete(db: hw.Database, *rows: tuple[object, ...]) -> None:
    with db.epoch() as e:
        for row in rows:
            e.delete("a", [row])


def stores_of(db: hw.Database) -> set[str]:
    return {str(path) for path in db.engine.access.copies}


def test_epochs_that_look_things_up(db: hw.Database) -> None:
    for i in range(12):
        step(db, i)
        if i % 4 == 1:
            copy_all(db)
        check(db)
    assert {"a by g,k,v", "b by k", "sums by #k1", "joined by #k1", "a by k", "a by g"} <= {
        text.replace(", ", ",") for text in stores_of(db)
    }
    assert not db.engine.access.refused
    told = str(db.explain("joined"))
    assert "few rows of joined are looked up by b.h, in a sorted copy of" in told
    assert "few rows of a are looked up by k, in a sorted copy of" in told


def test_copies_follow_a_consolidation(db: hw.Database) -> None:
    for i in range(4):
        step(db, i)
        copy_all(db)
    before = {path: copy.rows + copy.behind for path, copy in db.engine.access.copies.items()}
    for store in {path.store for path in before}:
        shape = shape_of(db.engine.catalog, store)
        assert shape is not None
        reader = db.warehouse.reader()
        consolidate(db.engine, reader, store, shape)
        reader.close()
    after = {path: copy.rows for path, copy in db.engine.access.copies.items()}
    assert after.keys() == before.keys()
    assert sum(after.values()) < sum(before.values())
    for i in range(4, 8):
        step(db, i)
        check(db)


def test_a_refused_epoch_leaves_nothing_behind(db: hw.Database) -> None:
    step(db, 0)
    copy_all(db)
    step(db, 1)
    with pytest.raises(hw.HeadwaterError, match="does not have the row"):
        delete(db, (1, "g1", 1001), (1, "nobody", 1))
    for i in range(2, 5):
        step(db, i)
        check(db)


def test_a_store_of_the_same_name_is_another_one(db: hw.Database) -> None:
    step(db, 0)
    copy_all(db)
    db.execute("DROP VIEW sums; CREATE VIEW sums AS SELECT g, SUM(v) AS v, COUNT(*) AS n FROM a GROUP BY g")
    assert "sums by #k1" not in stores_of(db)
    step(db, 1)
    copy_all(db)
    step(db, 2)
    check(db)
    db.execute("ALTER VIEW joined REPLAN STRATEGY 'tree'")
    for i in range(3, 6):
        step(db, i)
        copy_all(db)
        check(db)


def test_a_store_of_the_same_name_may_have_other_columns(db: hw.Database) -> None:
    step(db, 0)
    copy_all(db)
    step(db, 1)
    db.execute("DROP VIEW sums; CREATE VIEW sums AS SELECT g, MAX(k) AS k, SUM(v) AS v, AVG(v) AS m FROM a GROUP BY g")
    db.engine.access.wishes[Path("sums", ("#k1",))] = 1
    copy_all(db)  # of the same epoch as the copy before
    step(db, 2)
    query = "SELECT g, MAX(k) AS k, SUM(v) AS v, AVG(v) AS m FROM a GROUP BY g"
    assert rows_of(db.query("SELECT * FROM sums")) == rows_of(db.query(query))


def test_rows_that_come_outside_of_epochs_are_not_missed(db: hw.Database) -> None:
    """A suspended view's map is filled again under the number of an epoch that copies may have already."""
    db.execute("CREATE VIEW shares AS SELECT g, SUM(v) AS v, 100 / SUM(v) AS share FROM a GROUP BY g")
    step(db, 0)
    copy_all(db)
    db.execute("INSERT INTO a VALUES (1, 'zero', 0)")
    assert db.engine.catalog.find("shares").suspended  # type: ignore[union-attr]
    step(db, 1)
    db.execute("DELETE FROM a WHERE g = 'zero'; REFRESH shares")
    for i in range(2, 5):
        step(db, i)
        copy_all(db)
        query = "SELECT g, SUM(v) AS v, 100 / SUM(v) AS share FROM a GROUP BY g"
        assert rows_of(db.query("SELECT * FROM shares")) == rows_of(db.query(query))


def test_paths_of_the_same_text_are_told_apart() -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        query = """SELECT p.v, r.v AS w, COUNT(*) AS n FROM s JOIN t p ON s.x = p.a AND s.y = p.b
                   JOIN t r ON s.z = r.`a, b` GROUP BY p.v, r.v"""
        db.execute("CREATE TABLE t (a INT, b INT, `a, b` INT, v INT); CREATE TABLE s (x INT, y INT, z INT)")
        db.execute(f"CREATE VIEW j STRATEGY 'first order' AS {query}")
        db.engine.access.decide = lambda stored, keys: stored > 0
        db.insert("t", [(i % 3, i % 2, i, i) for i in range(20)])
        for i in range(4):
            db.insert("s", [(i % 3, i % 2, i)])
            copy_all(db)
            assert rows_of(db.query("SELECT * FROM j")) == rows_of(db.query(query))
        assert {Path("t", ("a", "b")), Path("t", ("a, b",))} <= db.engine.access.copies.keys()


def test_texts_of_any_length(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk ends before its texts are too many to lie side by side."""
    monkeypatch.setattr(sorted_copies, "CHUNK_BYTES", 2_000)
    monkeypatch.setattr(sorted_copies, "BATCH_ROWS", 10)
    db.insert("b", [(1000 + i, "x" * 100) for i in range(200)])
    copy_all(db)
    [copy] = [one for path, one in db.engine.access.copies.items() if str(path) == "b by k"]
    assert sum(len(run.chunks) for run in copy.runs) > 5
    for i in range(3):
        step(db, i)
        check(db)


def test_few_keys_with_many_rows_are_scanned(db: hw.Database) -> None:
    step(db, 0)
    copy_all(db)
    before = {path: copy.used for path, copy in db.engine.access.copies.items()}
    db.engine.access.decide = lambda stored, keys: keys <= 5
    db.insert("b", [(7777, "g1")])
    with db.epoch() as e:
        e.insert("a", [(7777, "g2", 1)])  # groups with some thirty rows, and as many that went
    used = {str(path) for path, copy in db.engine.access.copies.items() if copy.used > before[path]}
    assert "b by k" in used and "a by g" not in used
    check(db)


def test_nothing_is_held_after_an_epoch(db: hw.Database) -> None:
    for i in range(2):
        step(db, i)
        copy_all(db)
    held = db.engine.access._hits._handed.values()
    assert held and all(one.rows.num_rows == 0 for one in held)


def test_it_is_tried_again_later(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "REFUSED_EPOCHS", 3)
    room = False
    monkeypatch.setattr(Shelf, "has_room", lambda self, rows: room)
    for i in range(6):
        step(db, i)
        copy_all(db)
        assert bool(db.engine.access.copies) == (i >= 3)
        room = i >= 1
        check(db)


def test_without_room_everything_is_scanned(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shelf, "has_room", lambda self, rows: False)
    for i in range(3):
        step(db, i)
        copy_all(db)
        check(db)
    assert not db.engine.access.copies
    assert db.engine.access.refused


def test_a_copy_that_cannot_be_written_is_done_without(
    db: hw.Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Shelf, rows: pa.Table) -> pa.Table:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sorted_copies, "FILE_ROWS", 1)
    monkeypatch.setattr(Shelf, "put", full)
    step(db, 0)
    copy_all(db)
    step(db, 1)
    check(db)
    assert "no sorted copy of" in caplog.text and "No space left" in caplog.text
    assert not db.engine.access.copies


def test_keys_without_a_hash_are_scanned() -> None:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute("""
            CREATE TABLE d (x DOUBLE, y INT);
            CREATE VIEW sums AS SELECT x, SUM(y) AS y FROM d GROUP BY x;
            INSERT INTO d VALUES (0.0, 1), (CAST('NaN' AS DOUBLE), 2)
        """)
        db.engine.access.decide = lambda stored, keys: stored > 0
        db.execute("INSERT INTO d VALUES (-0.0, 3), (CAST('NaN' AS DOUBLE), 4)")
        assert not db.engine.access.wishes
        assert sorted(db.query("SELECT y FROM sums").column("y").to_pylist()) == [4, 6]


def test_the_background_makes_copies_and_drops_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Folder) -> None:
    monkeypatch.setattr(access, "TAIL_ROWS", 5)
    monkeypatch.setattr(access, "IDLE_EPOCHS", 30)
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE STREAM s (k INT, v INT); CREATE VIEW sums AS SELECT k, SUM(v) AS v FROM s GROUP BY k")
        db.insert("s", [(i, i) for i in range(100)])
        db.engine.access.decide = lambda stored, keys: keys < 50
        for i in range(access.WISHES):
            assert not db.engine.access.copies
            db.insert("s", [(i, 1)])
        path = Path("sums", ("#k1",))
        copy = _wait_for(db, lambda: db.engine.access.copies.get(path))
        assert copy is not None
        for i in range(20):
            db.insert("s", [(i, 1)])
        _wait_for(db, lambda: db.engine.access.copies[path].upto > copy.upto)
        assert db.engine.access.copies[path].behind < 20
        for _ in range(35):  # too large to look anything up
            db.insert("s", [(k, 1) for k in range(60)])
        _wait_for(db, lambda: path not in db.engine.access.copies)
        assert db.query("SELECT SUM(v) AS v FROM sums").column("v").to_pylist() == [4950 + 3 + 20 + 35 * 60]


def _wait_for(db: hw.Database, found: Callable[[], T]) -> T:
    for _ in range(400):
        value = found()
        if value:
            return value
        db.consolidator.nudge()
        time.sleep(0.02)
    raise AssertionError("it did not happen")
