"""What lies away is divided anew in tasks, and an epoch at home leaves where it is what it does not change."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

import duckdb
import pytest

import headwater as hw
from headwater.engine import faults, moves, moving
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.moves import Division, Gathering, Move, Moved, carry_out, grouped, shared_out
from headwater.engine.moving import Moving
from headwater.engine.segment_files import copy_to
from headwater.engine.sending import SENDING, divide
from headwater.engine.tasks import CopyPlan
from headwater.store.segments import Segment
from tests.engine.support import rows
from tests.engine.test_placement import cut, garble, held, thin_out

RELATIONS = """
ADVANCE CLOCK TO 0;
CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT);
CREATE TABLE shop (name STRING PRIMARY KEY, city STRING);
CREATE STREAM tick (k INT, x INT, at TIMESTAMP) TIMESTAMP BY at PARTITION LENGTH 10;
CREATE VIEW by_shop RETAIN CHANGES ALL AS SELECT shop, sum(euros) AS euros, count(*) AS n FROM sale GROUP BY shop;
CREATE VIEW by_city AS SELECT city, sum(euros) AS euros FROM sale JOIN shop ON shop = name GROUP BY city;
CREATE VIEW best AS SELECT shop, euros FROM by_shop ORDER BY euros DESC LIMIT 2;
CREATE VIEW shops AS SELECT name, city, euros FROM shop LEFT JOIN by_shop ON name = shop;
CREATE VIEW pairs AS SELECT a.name, b.name AS other FROM shop a JOIN shop b ON a.city < b.city;
CREATE VIEW halves AS SELECT id, 100 / (euros - 13) AS half FROM sale;
CREATE VIEW seldom REFRESH EVERY 1 HOUR AS SELECT euros, count(*) AS n FROM sale GROUP BY euros;
CREATE VIEW parts AS
  INITIALIZE parts[i] AS SELECT k, sum(x) AS x FROM tick[i] GROUP BY k
  UPDATE parts[j] AS SELECT k, sum(x) AS x FROM tick[j] GROUP BY k
  PARTITION LENGTH 10 RETAIN 1 MINUTE;
"""


def more(n: int) -> str:
    shops = ", ".join(f"('shop {i}', 'city {i % 3 + n}')" for i in range(10 * n, 10 * n + 6))
    sales = ", ".join(f"({1000 * n + i}, 'shop {10 * n + i % 9}', {i})" for i in range(40) if i != 13)
    ticks = ", ".join(f"({i % 7}, {i}, TIMESTAMP '1970-01-01 00:{n:02d}:00' + INTERVAL {i} SECONDS)" for i in range(40))
    return f"""
    INSERT INTO shop VALUES {shops};
    INSERT INTO sale VALUES {sales};
    INSERT INTO tick VALUES {ticks};
    UPDATE sale SET euros = euros + 1 WHERE id % 5 = 0 AND euros <> 12;
    DELETE FROM sale WHERE id % 7 = {n % 7}
    """


class Noting(LocalRunner):
    """Runs tasks, and notes what goes to other partitions. Every piece of that work is done twice."""

    def __init__(self) -> None:
        super().__init__(2, 1)
        self.moves: list[Move] = []
        self.fail = False

    def run_moves(self, shares: Sequence[Sequence[Move]]) -> list[Moved]:
        self.moves += [one for share in shares for one in share]
        if self.fail and isinstance(shares[0][0], Gathering):
            raise hw.UserError("HW479", "tasks were lost")
        super().run_moves(shares)
        return super().run_moves(shares)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[Noting]:
    monkeypatch.setattr(moving, "FEW_BYTES", 0)
    runner = Noting()
    yield runner
    runner.close()


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made tables of."""
    found: list[str] = []
    bring_home = Moving.bring_home

    def noting(self: Moving, relations: Set[str], *rest: object) -> None:
        found.extend(one for one in relations if self.segments.copies_of(one))
        bring_home(self, relations, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Moving, "bring_home", noting)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "it's [1]"


@pytest.fixture(scope="module")
def sent_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse whose maps lie away, to be copied."""
    folder = tmp_path_factory.mktemp("moving") / "warehouse"
    with hw.Database(folder, placement="tasks", runner=LocalRunner(2, 1), partitions=2) as db:
        db.execute(RELATIONS + more(1) + ";" + more(2))
    return folder


@pytest.fixture
def db(sent_away: Path, folder: Path, runner: Noting) -> Iterator[hw.Database]:
    shutil.copytree(sent_away, folder)
    with hw.Database(folder, placement="tasks", runner=runner) as db:
        runner.moves.clear()
        yield db


def paths(db: hw.Database, relation: str) -> set[str]:
    assert db.engine.away is not None
    segments = db.engine.away.segments
    return {path for copy in segments.copies_of(relation) for path in segments.paths(copy)}


def every(db: hw.Database) -> dict[str, set[str]]:
    assert db.engine.away is not None
    return {one: paths(db, one) for one in db.engine.away.relations}


def unlisted(db: hw.Database, folder: Path) -> set[str]:
    """Files that count nowhere; those of before may still be read for a while."""
    assert db.engine.away is not None
    there = {str(one) for one in (folder / "away").rglob("*.parquet")}
    return (
        there - {one for found in every(db).values() for one in found} - {one for _, one in db.engine.away.files.spent}
    )


def test_partitions_are_altered_without_the_driver(
    db: hw.Database, runner: Noting, folder: Path, brought: list[str]
) -> None:
    db.execute("INSERT INTO sale VALUES (1, 'shop 1', 13)")
    assert db.find("halves").suspended
    with hw.Database() as other:
        other.execute(RELATIONS + more(1) + ";" + more(2) + ";INSERT INTO sale VALUES (1, 'shop 1', 13)")
        expected = held(other)
        assert held(db) == expected
        for number, partitions in enumerate((5, 1, 3)):
            brought.clear()
            runner.moves.clear()
            db.execute(f"ALTER WAREHOUSE SET PARTITIONS {partitions}")
            assert not brought
            assert held(db) == expected
            moved = {one.copy.relation for one in runner.moves}
            assert {"by_shop", "sale@1h#waiting", "parts", "shop"} <= moved
            twice = [
                one for one in (folder / "away" / "segments").rglob("*.parquet") if str(one) in unlisted(db, folder)
            ]
            for one in twice:  # the work was done twice
                one.unlink()
            assert not (folder / "away" / SENDING).exists() or not list((folder / "away" / SENDING).iterdir())
            for one in (db, other):
                one.execute(more(3 + number))
            expected = held(other)
            assert held(db) == expected
        for one in (db, other):
            one.execute("ADVANCE CLOCK TO 7200; UPDATE sale SET euros = 1 WHERE euros = 13; REFRESH halves")
            one.execute(more(8))
        assert held(db) == held(other)
        assert not db.find("halves").suspended
    runner.moves.clear()
    with_other = held(db)
    db.close()
    with hw.Database(folder, runner=runner, partitions=2) as db:
        assert runner.moves
        assert held(db) == with_other


def test_what_is_the_same_in_all_partitions_stays(db: hw.Database, runner: Noting) -> None:
    assert db.engine.away is not None
    copies = db.engine.away.copies
    same = {name for name, one in copies.items() if "$partitions" not in (one.partition or "")}
    assert {copies[name].relation for name in same} >= {"best", "shop"}
    segments = db.engine.away.segments
    before = {name: segments.paths(name) for name in same}
    db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    assert {name: segments.paths(name) for name in same} == before
    assert not same & {one.copy.name for one in runner.moves}


def test_segments_are_one_for_each_partition_and_in_order(db: hw.Database) -> None:
    db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    assert db.engine.away is not None
    for name, partitions in db.engine.away.segments.listed.items():
        copy = db.engine.away.copies.get(name)
        if copy is None or "$partitions" not in (copy.partition or ""):
            continue
        assert copy.partition is not None
        for partition, there in partitions.items():
            [one] = there
            assert (one.first, one.last) == (0, db.engine.epoch)
            where = copy.partition.replace("$partitions", "5")
            path = one.path.replace("'", "''").replace("[", "[[]")
            order = ", ".join(f'"{text}"' for text in copy.order)
            query = (
                f"SELECT {where}, {order} FROM read_parquet('{path}', file_row_number = true) ORDER BY file_row_number"
            )
            found = duckdb.sql(query).fetchall()
            assert {row[0] for row in found} == {partition}
            assert len(found) == one.rows
            keys = [tuple((text is None, text) for text in row[1:]) for row in found]
            assert keys == sorted(keys)


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize("damage", [Path.unlink, cut, garble, thin_out], ids=lambda one: one.__name__)
def test_a_damaged_segment_is_named_and_nothing_changes(
    db: hw.Database, folder: Path, damage: Callable[[Path], None], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "FEW_BYTES", few)
    before, expected = every(db), held(db)
    [path, *_] = sorted(paths(db, "parts"))
    kept = Path(path).read_bytes()
    damage(Path(path))
    with pytest.raises(hw.UserError, match="HW409") as raised:
        db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    assert path in raised.value.message
    assert every(db) == before
    assert db.engine.away is not None
    assert db.engine.away.partitions == 2
    Path(path).write_bytes(kept)
    assert held(db) == expected
    assert not list((folder / "away" / SENDING).rglob("*.parquet"))
    db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    assert held(db) == expected


def test_of_a_damaged_copy_another_one_is_taken(db: hw.Database) -> None:
    assert db.engine.away is not None
    segments, expected = db.engine.away.segments, held(db)
    copies = db.engine.away.copies
    [copy] = [one for one in segments.copies_of("shop") if "$partitions" in (copies[one].partition or "")]
    for path in segments.paths(copy):  # it is at home, too
        Path(path).unlink()
    [copy, *rest] = segments.copies_of("by_shop")
    assert rest
    for path in segments.paths(copy):
        cut(Path(path))
    db.execute("ALTER WAREHOUSE SET PARTITIONS 3")
    assert held(db) == expected
    db.execute(more(4))


def test_tasks_that_are_lost_change_nothing(db: hw.Database, runner: Noting, folder: Path) -> None:
    before, expected = every(db), held(db)
    runner.fail = True
    with pytest.raises(hw.UserError, match="HW479"):
        db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    assert (every(db), held(db)) == (before, expected)
    assert not unlisted(db, folder)
    runner.fail = False
    db.execute("ALTER WAREHOUSE SET PARTITIONS 5;" + more(4))


@pytest.mark.parametrize("point", ["rows divided", "sent away", "moved", "before commit"])
def test_what_fails_on_the_way_changes_nothing(db: hw.Database, folder: Path, point: str) -> None:
    before, expected = every(db), held(db)

    def fail(reached: str) -> None:
        if reached == point:
            raise KeyboardInterrupt

    faults.hook = fail
    try:
        with pytest.raises(KeyboardInterrupt):
            db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
    finally:
        faults.hook = None
    assert (every(db), held(db)) == (before, expected)
    assert not unlisted(db, folder)
    db.execute(more(4))


def test_another_copy_is_written_in_tasks(db: hw.Database, runner: Noting, brought: list[str]) -> None:
    """A view over one that lies by another key needs it by its own."""
    runner.moves.clear()
    db.execute("CREATE VIEW same AS SELECT a.shop, b.shop AS other FROM by_shop a JOIN by_shop b ON a.n = b.n")
    assert {one.copy.relation for one in runner.moves} == {"by_shop"}
    assert "by_shop" not in brought
    db.execute(more(4))
    again = db.query("SELECT a.shop, b.shop AS other FROM by_shop a JOIN by_shop b ON a.n = b.n", views=False)
    assert sorted(tuple(one.values()) for one in again.to_pylist()) == rows(db, "same")


# -- an epoch at home --------------------------------------------------------------------------------------------------


def test_refresh_leaves_where_it_is_what_it_does_not_change(db: hw.Database, brought: list[str]) -> None:
    before, expected = every(db), held(db)
    db.execute("REFRESH by_city")
    changed = {name for name, found in every(db).items() if found != before[name]}
    assert {one.split("$")[0] for one in changed} == {one.split("$")[0] for one in brought} == {"by_city"}
    assert {**held(db), "": 0} == {**expected, "": 0}
    brought.clear()
    before = every(db)
    db.execute("REFRESH by_shop")  # two views are over it
    changed = {name for name, found in every(db).items() if found != before[name]}
    assert {one.split("$")[0] for one in changed} == {"by_shop", "best", "shops"}
    assert {**held(db), "": 0} == {**expected, "": 0}
    brought.clear()
    db.execute("REFRESH parts")
    assert brought == ["parts"]
    assert {**held(db), "": 0} == {**expected, "": 0}
    db.execute(more(4))


def test_a_view_that_fails_takes_along_what_the_epoch_changes(db: hw.Database, brought: list[str]) -> None:
    before = every(db)
    with hw.Database() as other:
        other.execute(RELATIONS + more(1) + ";" + more(2))
        for one in (db, other):
            one.execute("INSERT INTO sale VALUES (1, 'shop 1', 13), (2, 'shop 2', 4)")
        assert db.find("halves").suspended
        assert held(db) == held(other)
        assert {"by_shop", "best", "shops", "sale@1h#waiting"} <= set(brought)
        assert not {"shop", "parts", "tick"} & set(brought)
        assert not [one for one in brought if one.startswith("pairs")]
        assert every(db)["parts"] == before["parts"]
        for one in (db, other):
            one.execute(more(4) + ";ADVANCE CLOCK TO 7200;" + more(5))
        assert held(db) == held(other)


def test_what_is_damaged_elsewhere_is_no_matter(db: hw.Database) -> None:
    expected = held(db)
    for path in paths(db, "parts") | paths(db, "pairs"):
        Path(path).unlink()
    db.execute("REFRESH by_city; REFRESH by_shop")
    for name in ("by_city", "by_shop", "best", "shops"):
        assert held_of(db, name) == expected[name]
    for name in ("parts", "pairs"):
        with pytest.raises(hw.UserError, match="HW409"):
            rows(db, name)
        db.execute(f"REFRESH {name}")
    assert {**held(db), "": 0} == {**expected, "": 0}
    db.execute(more(4))


def held_of(db: hw.Database, name: str) -> object:
    return db.find(name).suspended, rows(db, name)


def test_what_it_reads_is_repaired_on_the_way(db: hw.Database) -> None:
    """The view below it, the copy of a table, and what follows from it; of others over that nothing is written."""
    db.execute("CREATE VIEW again STRATEGY 'recompute' AS SELECT count(*) AS n, sum(euros) AS euros FROM by_shop")
    expected, others = held(db), paths(db, "again")
    for path in paths(db, "by_shop") | paths(db, "shop") | paths(db, "shops"):
        cut(Path(path))
    db.execute("REFRESH shops")
    assert {**held(db), "": 0} == {**expected, "": 0}
    assert paths(db, "again") == others
    for path in paths(db, "best"):
        Path(path).unlink()
    db.execute("REFRESH by_shop")
    assert {**held(db), "": 0} == {**expected, "": 0}
    db.execute(more(4))


# -- what tasks do -----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1, "temp_directory": str(tmp_path / "spilled")}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        yield connection


def by_key(net: str = "") -> CopyPlan:
    return CopyPlan("r-by-k", "r", "hash(k) % $partitions", ("k",), net, ())


def test_many_partitions_are_one_file_each(engine: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    source = "SELECT i AS k, i % 10 AS x FROM range(1500000) AS r(i)"
    rows, found = divide(engine, by_key(), source, 300, tmp_path / "to")
    assert rows == 1_500_000
    assert len(found) == 300
    assert sum(map(len, found.values())) < 310


def test_wide_rows_are_divided_in_little_memory(engine: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """180 MB in an engine with 150, and nothing that could be left out."""
    text = " || ".join(f"md5(CAST(i * 32 + {number} AS VARCHAR))" for number in range(32))
    net = 'SELECT k, t, CAST(sum("#n") AS BIGINT) AS "#n", max("#e") AS "#e" FROM data.r GROUP BY k, t'
    segments = []
    for number in range(3):
        path = str(tmp_path / f"{number}.parquet")
        columns = f'i AS k, {text} AS t, CAST(1 AS BIGINT) AS "#n", CAST({number} AS BIGINT) AS "#e"'
        first = 60_000 * number
        rows = copy_to(engine, f"SELECT {columns} FROM range({first}, {first + 60_000}) AS r(i) ORDER BY k", path)
        segments.append(Segment(path, number, number, rows, Path(path).stat().st_size, 1))
    engine.execute("SET memory_limit = '150MB'")
    divided = carry_out(engine, Division(0, by_key(net), tuple(segments), 3, str(tmp_path / "sending")))
    assert (divided.problem, divided.rows) == (None, 180_000)
    total = 0
    for partition in range(3):
        files = tuple(path for to, path, _ in divided.files if to == partition)
        gathering = Gathering(0, by_key(net), partition, files, 0, str(tmp_path), 3, "attempt", 2)
        gathered = carry_out(engine, gathering)
        assert gathered.problem is None
        total += gathered.rows
    assert total == 180_000


def test_a_full_disk_is_told_apart(engine: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    path = str(tmp_path / "0.parquet")
    rows = copy_to(engine, 'SELECT i AS k, CAST(1 AS BIGINT) AS "#n" FROM range(10) AS r(i)', path)
    segment = Segment(path, 0, 0, rows, Path(path).stat().st_size, 1)
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)
    (tmp_path / "gone").write_text("a file where a folder should be")
    told = carry_out(engine, Division(7, by_key(), (segment,), 3, str(tmp_path / "gone")))
    assert told.number == 7
    assert told.problem
    assert told.broken is None


def test_work_is_shared_out() -> None:
    assert shared_out([5, 1, 1, 1, 1, 1], lambda one: one, 2) == [[5], [1, 1, 1, 1, 1]]
    assert shared_out([], lambda one: one, 2) == []
    segments = {n: (Segment(f"{n}", 0, 1, 1, 10, 1), Segment(f"{n}b", 1, 1, 1, 10, 1)) for n in range(7)}
    assert [len(one) for one in grouped(segments, 3)] == [6, 4, 4]
    assert grouped({**segments, 9: ()}, 100) == [segments[n] for n in range(7)]


def test_large_partitions_are_worked_on_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "MOST_BYTES", 25)
    segments = {n: (Segment(f"{n}", 0, 1, 1, 10, 1),) for n in range(10)}
    assert len(grouped(segments, 2)) == 4


def test_a_subscriber_is_not_left_with_what_a_damaged_view_held(folder: Path, runner: Noting) -> None:
    """What a view held when it was suspended is not known any more, so nobody can be told what has changed."""
    with hw.Database(folder, placement="tasks", runner=runner, partitions=2) as db:
        db.execute(
            """
            CREATE TABLE t (id INT PRIMARY KEY, v INT);
            CREATE VIEW parts AS SELECT id, 100 div (v - 13) AS part FROM t;
            INSERT INTO t VALUES (1, 1), (2, 2)
            """
        )
        with db.subscribe("parts", timeout=0) as follower:
            assert follower.so_far().num_rows == 2
            db.execute("INSERT INTO t VALUES (3, 13); DELETE FROM t WHERE id IN (1, 3)")
            for path in paths(db, "parts"):
                Path(path).unlink()
            with pytest.raises(hw.UserError, match="HW409"):
                db.execute("REFRESH parts")
            assert follower.so_far().num_rows == 0
        db.execute("REFRESH parts")
        assert rows(db, "parts") == [(2, -9)]
