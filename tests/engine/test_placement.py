"""Warehouses move between placements, are divided anew and repaired, and nothing is lost."""

from __future__ import annotations

import contextlib
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headwater as hw
from headwater.database import Database
from headwater.engine import faults
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.segment_files import in_quotes
from headwater.placement import stored_partitions
from headwater.serve.remote import RemoteDatabase
from tests.engine.support import rows

RELATIONS = """
CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT);
CREATE TABLE shop (name STRING PRIMARY KEY, city STRING);
CREATE STREAM click (shop STRING, n INT) RETAIN ALL;
CREATE STREAM tick (x INT, at TIMESTAMP) TIMESTAMP BY at PARTITION LENGTH 10;
CREATE VIEW by_shop RETAIN CHANGES ALL AS SELECT shop, sum(euros) AS euros, count(*) AS n FROM sale GROUP BY shop;
CREATE VIEW by_city AS SELECT city, sum(euros) AS euros FROM sale JOIN shop ON shop = name GROUP BY city;
CREATE VIEW best AS SELECT shop, euros FROM by_shop ORDER BY euros DESC LIMIT 2;
CREATE VIEW shops AS SELECT name, city, euros FROM shop LEFT JOIN by_shop ON name = shop;
CREATE VIEW asked REFRESH ON QUERY AS SELECT shop, max(euros) AS most FROM sale GROUP BY shop;
CREATE VIEW clicked AS SELECT s.city, sum(c.n) AS n FROM click c JOIN shop s ON c.shop = s.name GROUP BY s.city;
CREATE VIEW halves AS SELECT id, 100 / (euros - 13) AS half FROM sale;
CREATE VIEW waiting REFRESH MANUAL AS SELECT count(*) AS n FROM sale;
CREATE VIEW counted AS
  INITIALIZE counted[i] AS SELECT count(*) AS n FROM tick[i]
  UPDATE counted[j] AS SELECT count(*) AS n FROM tick[j]
  PARTITION LENGTH 10;
CREATE INDEX by_euros ON by_shop (euros);
"""
FIRST = """
INSERT INTO shop VALUES ('a', 'Bern'), ('b', 'Basel'), ('c', 'Bern');
INSERT INTO sale VALUES (1, 'a', 5), (2, 'b', 7), (3, 'c', 9), (4, 'a', 20);
INSERT INTO click VALUES ('a', 3), ('b', 4);
INSERT INTO tick VALUES (1, TIMESTAMP '2026-01-01 00:00:01'), (2, TIMESTAMP '2026-01-01 00:00:21');
INSERT INTO sale VALUES (5, 'b', 13);
UPDATE sale SET euros = euros + 1 WHERE shop = 'c'
"""


def more(n: int) -> str:
    return f"""
    INSERT INTO sale VALUES ({100 + n}, 'a', {n}), ({200 + n}, 'b', {3 * n});
    DELETE FROM sale WHERE id = {1 + n % 4};
    INSERT INTO click VALUES ('c', {n});
    UPDATE shop SET city = 'Chur{n}' WHERE name = 'b';
    INSERT INTO tick VALUES ({n}, TIMESTAMP '2026-01-01 00:{n:02d}:01')
    """


def at(folder: Path, placement: str = "tasks", partitions: int | None = None, seed: int = 0) -> Database:
    runner = LocalRunner(2, seed) if placement == "tasks" else None
    return Database(folder, placement=placement, runner=runner, partitions=partitions)


def held(db: Database) -> dict[str, object]:
    """What everything holds that can be read, what is suspended, and the epoch."""
    found: dict[str, object] = {"": db.engine.epoch}
    for one in db.engine.catalog:
        if one.policy is None and (not one.flows or one.retain is not None):
            found[one.name] = (one.suspended, rows(db, one.name))
    return found


def changes(db: Database) -> list[tuple[object, ...]]:
    [told] = db.execute("SUBSCRIBE TO by_shop FROM EPOCH 1")
    assert told.table is not None
    return sorted((tuple(row.values()) for row in told.table.to_pylist()), key=repr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def test_a_warehouse_moves_and_goes_on(folder: Path, tmp_path: Path) -> None:
    with Database(tmp_path / "other") as other, at(folder, "inline") as db:
        for one in (other, db):
            one.execute(RELATIONS + FIRST)
        assert held(db) == held(other)
    for n, placement in enumerate(("tasks", "driver", "tasks"), 1):
        with Database(tmp_path / "other") as other, at(folder, placement, 3 if n == 1 else None, n) as db:
            assert db.find("halves").suspended
            assert held(db) == held(other)
            assert changes(db) == changes(other)
            seven = "SELECT * FROM by_shop WHERE euros = 7"
            assert db.get_many("by_shop", [{"euros": 7}]).num_rows == len(rows(other, seven))
            for one in (other, db):
                one.execute(more(n))
            assert held(db) == held(other)
            assert changes(db) == changes(other)
            for one in (other, db):
                one.execute("REFRESH waiting")
            assert (folder / "away").exists() == (placement == "tasks")
    with at(folder) as db, Database(tmp_path / "other") as other:
        assert db.engine.away is not None
        assert db.engine.away.partitions == 3
        for one in (other, db):
            one.execute("UPDATE sale SET euros = 1 WHERE euros = 13; REFRESH halves")
        assert held(db) == held(other)
        assert not db.find("halves").suspended


def test_what_lies_away_of_a_table_takes_the_change_of_an_epoch_that_evaluates_a_view_anew(folder: Path) -> None:
    with at(folder, partitions=2) as db:
        db.execute(
            """
            CREATE TABLE a (id INT PRIMARY KEY, x INT);
            CREATE TABLE b (id INT PRIMARY KEY, x INT);
            CREATE VIEW over AS SELECT a.id, 100 / (a.x - b.x) AS y FROM a JOIN b ON a.id = b.id;
            CREATE VIEW pairs AS SELECT a.id, a.x AS ax, b.x AS bx FROM a JOIN b ON a.id = b.id;
            INSERT INTO a VALUES (1, 1);
            INSERT INTO b VALUES (1, 2)
            """
        )
        with db.epoch() as epoch:  # a meets b as it was on the way
            epoch.upsert("a", [{"id": 1, "x": 2}, {"id": 2, "x": 5}])
            epoch.upsert("b", [{"id": 1, "x": 1}])
        assert not db.find("over").suspended
        db.execute("INSERT INTO b VALUES (2, 7)")
        assert rows(db, "pairs") == [(1, 2, 1), (2, 5, 7)]
        assert rows(db, "over") == [(1, 100.0), (2, -50.0)]


def test_a_view_gets_other_plans_and_all_of_them_lie_away(folder: Path) -> None:
    query = (
        "SELECT DISTINCT a.x, b.y FROM t a JOIN t b ON a.x = b.x WHERE NOT EXISTS (SELECT 1 FROM t c WHERE c.y > 100)"
    )
    with at(folder, partitions=2) as db:
        db.execute(f"CREATE TABLE t (x INT, y INT); CREATE VIEW v STRATEGY 'viewlet' AS {query}")
        for n, strategy in enumerate(("re-evaluate", "viewlet", "re-evaluate", "first order"), 1):
            db.execute(f"INSERT INTO t VALUES ({n}, {n}), ({n}, 0)")
            db.execute(f"ALTER VIEW v REPLAN STRATEGY '{strategy}'")
            assert db.engine.away is not None
            maps = db.find("v").program.maps  # type: ignore[union-attr]
            assert all(db.engine.away.holds(one.name) for one in maps)
            db.execute(f"INSERT INTO t VALUES (1, {n + 10})")
            assert len(rows(db, "v")) == db.query(query, views=False).num_rows == 3 * n


@pytest.fixture(scope="module")
def sent_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose maps lie away, to be copied."""
    folder = tmp_path_factory.mktemp("placement") / "warehouse"
    with at(folder, partitions=2) as db:
        db.execute(RELATIONS + FIRST + ";" + more(1))
    return folder


@pytest.fixture(scope="module")
def expected(sent_away: Path) -> dict[str, object]:
    with at(sent_away) as db:
        return held(db)


@pytest.fixture
def copy(sent_away: Path, folder: Path) -> Path:
    shutil.copytree(sent_away, folder)
    return folder


def segments(folder: Path, of: str = "") -> list[Path]:
    return sorted((folder / "away" / "segments").glob(f"{of}*/*/*.parquet"))


def test_a_warehouse_stays_where_it_is_unless_it_is_told(copy: Path, expected: dict[str, object]) -> None:
    with Database(copy, runner=LocalRunner(2, 1)) as db:
        assert db.placement == "tasks"
        assert db.status()["placement"] == "tasks"
        assert held(db) == expected
    with at(copy, "inline"):
        pass
    with Database(copy) as db:
        assert db.placement == "inline"
        assert held(db) == expected


def test_a_copy_of_a_warehouse_has_segments_of_its_own(
    sent_away: Path, copy: Path, expected: dict[str, object]
) -> None:
    theirs = segments(sent_away)
    with at(copy) as db:
        assert held(db) == expected
        db.execute(more(2))
        named = db.engine.connection.execute(
            "SELECT sql FROM duckdb_views() WHERE schema_name = 'data' UNION ALL SELECT path FROM hw.segments"
        ).fetchall()
        assert not [text for (text,) in named if text is not None and str(sent_away) in text]
        after = held(db)
    assert segments(sent_away) == theirs
    moved = copy.with_name("it's moved")
    copy.rename(moved)
    with at(moved) as db:
        assert held(db) == after
    with at(moved.rename(copy), "inline") as db:
        assert held(db) == after
    with at(sent_away) as db:
        assert held(db) == expected


def test_partitions_are_altered(copy: Path, expected: dict[str, object]) -> None:
    with at(copy) as db:
        for n in (5, 5, 1):
            [done] = db.execute(f"ALTER WAREHOUSE SET PARTITIONS {n}")
            assert done.message == f"what tasks maintain is divided into {n} part{'s' * (n != 1)}"
            assert held(db) == expected
        db.execute("ALTER WAREHOUSE SET PARTITIONS 3;" + more(2))
        after = held(db)
        with RemoteDatabase(copy) as remote:
            remote.execute("ALTER WAREHOUSE SET PARTITIONS 4")
        assert db.engine.away is not None
        assert db.engine.away.partitions == 4
    with at(copy, partitions=2, seed=1) as db:
        assert held(db) == after
        db.execute("INSERT INTO shop VALUES ('d', 'Chur')")
    with at(copy, "inline") as db:
        assert len(rows(db, "shops")) == 4
        with pytest.raises(hw.UserError, match="HW430") as raised:
            db.execute("ALTER WAREHOUSE SET PARTITIONS 3")
        assert raised.value.span is not None


KILLED = """
import os, signal, sys
from headwater.engine import faults, moving
from tests.engine.test_placement import at, more
moving.FEW_BYTES = 0
folder, placement, partitions, point = sys.argv[1:]
db = at(folder) if point == "tasks done" else None
faults.hook = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == point else None
if db is not None:
    db.execute(more(9))
at(folder, placement, int(partitions) or None)
"""


@pytest.mark.parametrize(
    ("placement", "partitions", "point"),
    [
        ("inline", 0, "brought home"),
        ("inline", 0, "after commit"),
        ("tasks", 5, "brought home"),
        ("tasks", 5, "rows divided"),
        ("tasks", 5, "sent away"),
        ("tasks", 5, "moved"),
        ("tasks", 0, "tasks done"),
    ],
)
def test_a_kill_in_the_middle_of_moving(
    copy: Path, expected: dict[str, object], placement: str, partitions: int, point: str
) -> None:
    command = [sys.executable, "-c", KILLED, str(copy), placement, str(partitions), point]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    moved = point == "after commit"
    with Database(copy, runner=LocalRunner(2, 1)) as db:
        assert db.placement == ("inline" if moved else "tasks")
        assert moved or stored_partitions(db.engine) == 2
        assert held(db) == expected
        listed = db.engine.connection.execute("SELECT path FROM hw.segments").fetchall()
        assert {(str(one),) for one in segments(copy)} <= set(listed)
        db.execute(more(2))
        after = held(db)
    with at(copy, "inline") as db:
        assert held(db) == after
    assert not (copy / "away").exists()


def test_a_kill_on_the_way_to_tasks(copy: Path, expected: dict[str, object]) -> None:
    with at(copy, "inline"):
        pass
    command = [sys.executable, "-c", KILLED, str(copy), "tasks", "3", "moved"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert segments(copy)
    with Database(copy) as db:
        assert db.placement == "inline"
        assert held(db) == expected
    assert not (copy / "away").exists()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garble(path: Path) -> None:
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[:4] + b"\xff" * (half - 4) + data[half:])


def thin_out(path: Path) -> None:
    """What is there can be read, but it is not what was written."""
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT * FROM read_parquet('{in_quotes(str(path))}')").to_arrow_table()
        less = f"COPY (FROM rows LIMIT {rows.num_rows - 1})"
        connection.execute(f"{less} TO '{in_quotes(str(path))}' (FORMAT parquet)")


@pytest.mark.parametrize("damage", [Path.unlink, cut, garble, thin_out], ids=lambda one: one.__name__)
def test_a_damaged_segment_is_named_and_made_anew(
    copy: Path, expected: dict[str, object], damage: Callable[[Path], None]
) -> None:
    for one in segments(copy, "by-shop-by"):
        damage(one)
    with at(copy) as db:
        told = changes(db)
        with pytest.raises(hw.UserError, match="HW409") as raised:
            rows(db, "by_shop")
        assert "by-shop-by" in raised.value.message or damage is garble  # DuckDB does not say where it was
        facts = {one["name"]: one for one in db.status()["relations"]}
        assert facts["by_shop"]["rows"] is None and "cannot be read" in facts["by_shop"]["damaged"]
        assert facts["by_city"]["rows"] and "damaged" not in facts["by_city"]
        with pytest.raises(hw.UserError, match="HW409"):
            db.execute("INSERT INTO sale VALUES (900, 'a', 1), (901, 'b', 1), (902, 'c', 1)")
        assert db.engine.epoch == expected[""]
        db.execute("REFRESH by_shop")
        assert {**held(db), "": 0} == {**expected, "": 0}
        assert changes(db) == told
        db.execute(more(2))
        after, told = held(db), changes(db)
    with at(copy, "inline") as db:
        assert held(db) == after
        assert changes(db) == told
        for name in ("by_shop", "by_city", "best", "shops", "clicked"):
            db.execute(f"REFRESH {name}")
        assert {**held(db), "": 0} == {**after, "": 0}
        assert changes(db) == told


def test_the_whole_folder_is_gone(copy: Path, expected: dict[str, object]) -> None:
    shutil.rmtree(copy / "away")
    with pytest.raises(hw.UserError, match="HW409"):
        at(copy, "inline")
    with at(copy) as db:
        with pytest.raises(hw.UserError, match="HW409"):
            rows(db, "by_city")
        db.execute("DROP VIEW halves; REFRESH by_city")
        with pytest.raises(hw.UserError, match="HW409"):
            rows(db, "best")  # it has nothing to do with that
        for name in ("by_shop", "clicked", "asked", "waiting"):
            db.execute(f"REFRESH {name}")
        found = held(db)
        assert found.pop("waiting") == (None, [(len(rows(db, "sale")),)])  # REFRESH takes what has waited
        assert {**found, "": 0} == {**{name: expected[name] for name in found}, "": 0}


def test_what_a_stream_does_not_keep_cannot_be_made_anew(folder: Path) -> None:
    with at(folder, partitions=2) as db:
        db.execute("CREATE STREAM s (g STRING, x INT); CREATE VIEW v AS SELECT g, sum(x) AS x FROM s GROUP BY g")
        db.execute("CREATE TABLE t (a INT); CREATE VIEW w AS SELECT a, count(*) AS n FROM t GROUP BY a")
        db.execute("CREATE VIEW over AS SELECT v.g, t.a FROM v JOIN t ON v.x = t.a")
        db.execute("INSERT INTO s VALUES ('a', 1), ('b', 2); INSERT INTO t VALUES (1), (2)")
        for one in segments(folder, "v-by"):
            one.unlink()
        with pytest.raises(hw.UserError, match="HW505"):
            db.execute("REFRESH v")
        with pytest.raises(hw.UserError, match="HW409") as raised:
            db.execute("REFRESH over")
        assert "stream s" in raised.value.message
        db.execute("REFRESH w; DROP VIEW over; DROP VIEW v; INSERT INTO t VALUES (1)")
        assert rows(db, "w") == [(1, 2), (2, 1)]


@contextlib.contextmanager
def full_disk(most: int, since: str = "") -> Iterator[None]:
    """Files do not grow beyond some bytes: a write that goes too far fails, as it does on a full disk.

    Args:
        most: so many bytes.
        since: the point from which on this is so; from the beginning, if none is given.
    """
    before, limit = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)

    def reach(point: str) -> None:
        if point == since:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, limit[1]))

    faults.hook = reach
    reach("")
    try:
        yield
    finally:
        faults.hook = None
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("since", ["", "tasks begin"])
def test_a_full_disk(copy: Path, expected: dict[str, object], since: str) -> None:
    """Feeds cannot be written, or segments, when some are."""
    query = "SELECT n, 'shop ' || n FROM range(10000, 40000) r(n) WHERE hash('shop ' || n) % 2 = 1 OR n = 10000"
    many = [(n, shop, n) for n, shop in duckdb.sql(query).fetchall()]
    many += [(n, "a", n) for n in range(50_000, 50_010)]
    before = segments(copy)
    with at(copy) as db:
        with full_disk(70_000, since), pytest.raises(hw.UserError, match="HW406") as raised:
            db.insert("sale", many)
        assert ("segments" in raised.value.message) == (since == "tasks begin")
        assert segments(copy) == before, "nothing was left"
        assert held(db) == expected
        db.insert("sale", many)
        after = held(db)
        with full_disk(20_000), pytest.raises(hw.UserError, match="HW406"):
            db.execute("ALTER WAREHOUSE SET PARTITIONS 1")
        assert db.engine.away is not None
        assert db.engine.away.partitions == 2
        assert held(db) == after
        db.execute(more(2))
        after = held(db)
    with at(copy, "inline") as db:
        assert held(db) == after


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"placement": "everywhere"}, "HW290"),
        ({"placement": "tasks", "partitions": 0}, "HW431"),
        ({"placement": "tasks", "partitions": -1}, "HW431"),
        ({"placement": "tasks", "partitions": 1_000_000}, "HW431"),
        ({"placement": "tasks", "partitions": 2.5}, "HW431"),
        ({"placement": "tasks", "partitions": True}, "HW431"),
        ({"placement": "tasks", "partitions": "8"}, "HW431"),
        ({"placement": "inline", "partitions": 8}, "HW430"),
        ({"placement": "driver", "partitions": 8}, "HW430"),
        ({"partitions": 8}, "HW430"),
    ],
)
def test_arguments_that_do_not_fit(folder: Path, arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(hw.HeadwaterError) as raised:
        hw.connect(folder, **arguments)
    assert raised.value.code == code
    with Database(folder) as db:  # it can be opened as it should be
        assert db.placement == "inline"


def test_a_warehouse_in_memory_leaves_nothing_behind() -> None:
    with Database(placement="tasks", runner=LocalRunner(2, 1), partitions=2) as db:
        db.execute("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        db.execute("INSERT INTO t VALUES (1), (2), (1)")
        assert rows(db, "v") == [(1, 2), (2, 1)]
        assert db.engine.away is not None
        folder = Path(db.engine.away.folder)
        assert segments(folder.parent)
    assert not folder.parent.exists()
