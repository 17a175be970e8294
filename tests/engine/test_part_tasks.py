"""Views of parts in tasks: what they hold, and how it changes, is what it is in one process."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.engine import merges, segment_files
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.showing import floor_shown
from tests.engine.part_support import check_book, eager, minute, settle

STREAM = "CREATE STREAM s (ts TIMESTAMP NOT NULL, k STRING, v INT) TIMESTAMP BY ts PARTITION LENGTH 60"
SUMS = """CREATE VIEW sums AS INITIALIZE sums[i] AS SELECT k, sum(v) AS t FROM s[i] GROUP BY k
    UPDATE sums[j] AS SELECT k, sum(v) AS t FROM s[j] GROUP BY k PARTITION LENGTH 60"""
RUNNING = """CREATE VIEW running AS INITIALIZE running[i] AS SELECT k, sum(v) AS t FROM s[i] GROUP BY k
    UPDATE running[j] AS SELECT k, sum(t) AS t FROM
    (SELECT k, v AS t FROM s[j] UNION ALL SELECT k, t FROM running[j - 1]) GROUP BY k PARTITION LENGTH 60 BACKFILL"""
QUARTERS = """CREATE VIEW quarters AS
    INITIALIZE quarters[i] AS SELECT k, max(t) AS t FROM sums[i * 5 .. i * 5 + 4] GROUP BY k
    UPDATE quarters[j] AS SELECT k, max(t) AS t FROM sums[j * 5 .. j * 5 + 4] GROUP BY k PARTITION LENGTH 300"""
WHOLE = """CREATE VIEW named AS INITIALIZE named[i] AS SELECT name, count(*) AS n FROM s[i] JOIN names ON s.k = names.k
    GROUP BY name UPDATE named[j] AS SELECT name, count(*) AS n FROM s[j] JOIN names ON s.k = names.k GROUP BY name
    PARTITION LENGTH 60"""
TOTAL = """CREATE VIEW total AS INITIALIZE total[i] AS SELECT sum(t) AS t FROM sums[i]
    UPDATE total[j] AS SELECT sum(t) AS t FROM sums[j] PARTITION LENGTH 60"""
PATTERN = "CREATE VIEW p AS SELECT k, count(*) AS n FROM s PATTERN [a, b+] WHERE a.v > 0 AND b.v > a.v GROUP BY k"
SLIDING = "CREATE VIEW w AS SELECT k, sum(v) AS t, count(*) AS n FROM s [WINDOW 3 PARTS] GROUP BY k"
LARGEST = "CREATE VIEW m AS SELECT k, max(v) AS t FROM s [WINDOW 3 PARTS] GROUP BY k"
OVER = "CREATE VIEW o AS SELECT k, count(*) AS parts, sum(t) AS t FROM sums GROUP BY k"
PAIRS = "CREATE VIEW pairs AS SELECT a.k, count(*) AS n FROM sums a JOIN sums b ON a.k = b.k AND a.t < b.t GROUP BY a.k"
TABLE = "CREATE TABLE names (k STRING, name STRING)"
ALL = [STREAM, TABLE, SUMS, RUNNING, QUARTERS, WHOLE, TOTAL, PATTERN, SLIDING, LARGEST, OVER, PAIRS]

Bag = Counter[tuple[object, ...]]
Row = tuple[dt.datetime, str | None, int | None]


def bag(table: pa.Table) -> Bag:
    last = table.column_names[-1]
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    if last != "#n":
        return Counter(tuple(row) for row in rows)
    found: Bag = Counter()
    for *row, n in rows:
        found[tuple(row)] += n
    return found


class One:
    """A warehouse, and how its views change."""

    def __init__(self, db: hw.Database) -> None:
        self.db = db
        self.changes: dict[str, Bag] = {}
        db.observe(self._observe)

    def _observe(self, _: int, changes: Mapping[str, pa.Table]) -> None:
        self.changes = {name: bag(table) for name, table in changes.items()}

    def contents(self) -> dict[str, Bag]:
        relations = [one for one in self.db.engine.catalog if one.kind.value == "view"]
        return {
            one.name: bag(self.db.query(f"SELECT *{', PART' if one.length else ''} FROM {one.name}"))
            for one in relations
        }

    def parts(self) -> tuple[object, ...]:
        """What is known of parts, but for whether their rows are stored once each."""
        book = self.db.engine.book
        rows = {name: held for name, held in book.rows.items() if held}
        lines = self.db.engine.connection.execute(
            "SELECT relation, part, sum(rows) FROM hw.parts GROUP BY ALL HAVING sum(rows) <> 0 ORDER BY ALL"
        ).fetchall()
        return book.frontiers, rows, lines


class Twins:
    """The same warehouse twice: in one process, and in tasks."""

    def __init__(self, here: hw.Database, there: hw.Database) -> None:
        self.here, self.there = One(here), One(there)

    @property
    def both(self) -> tuple[One, One]:
        return self.here, self.there

    def execute(self, *statements: str) -> None:
        for text in statements:
            for one in self.both:
                one.changes = {}
                one.db.execute(text)
        self.compare()

    def insert(self, *rows: Row) -> None:
        for one in self.both:
            one.changes = {}
            one.db.insert("s", [tuple(row) for row in rows])
        self.compare()

    def compare(self) -> None:
        assert self.there.contents() == self.here.contents()
        assert self.there.changes == self.here.changes
        assert self.there.parts() == self.here.parts()

    def away(self) -> set[str]:
        """What lies away, and not at home."""
        away = self.there.db.engine.away
        assert away is not None
        return {one.name for one in self.there.db.engine.catalog if away.holds(one.name)}


@contextlib.contextmanager
def twins(folder: Path, mishaps: float = 0.0, seed: int = 1) -> Iterator[Twins]:
    runner = LocalRunner(2, seed, mishaps=mishaps)
    with (
        contextlib.closing(runner),
        hw.Database(folder / "here") as here,
        hw.Database(folder / "there", placement="tasks", runner=runner, partitions=3) as there,
    ):
        yield Twins(here, there)


def some(number: int, *keys: str) -> list[Row]:
    """Rows in a minute, one for each key."""
    return [(minute(number + 0.1 * i), key, (7 * number + 5 * i) % 11 - 3) for i, key in enumerate(keys)]


def test_parts_are_built_in_tasks(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(*ALL, "INSERT INTO names VALUES ('a', 'first'), ('b', 'first'), ('c', 'second')")
        for number in range(8):
            pair.insert(*some(number, "a", "b", "c", "a", "d"))
        built = {"sums", "running", "quarters", "p", "p_helper", "w", "w_helper", "w_sums", "m", "m_helper"}
        assert built <= pair.away()
        assert not {"total", "s", "names"} & pair.away()
        pair.insert(*some(2, "a", "d"), *some(8, "b"))  # late
        pair.execute("INSERT INTO names VALUES ('d', 'third')", "DELETE FROM names WHERE k = 'a'")
        pair.insert(*some(40, "a"))  # a gap
        pair.insert(*some(20, "e"), *some(1, "e"))
        pair.execute("ADVANCE STREAM s TO '2024-01-01 02:00:00'")
        pair.insert(*some(30, "a", "b", "c"), *some(130, "a"))


@pytest.mark.parametrize("seed", [1, 2])
def test_mishaps_do_not_show(tmp_path: Path, seed: int) -> None:
    with twins(tmp_path, mishaps=0.3, seed=seed) as pair:
        pair.execute(*ALL)
        for number in range(6):
            pair.insert(*some(3 * number, "a", "b", "c"), *some(max(0, 3 * number - 4), "a", "x"))


def test_views_are_made_over_what_lies_away(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM + " RETAIN ALL", TABLE, SUMS)
        pair.insert(*some(0, "a", "b"), *some(1, "a"), *some(2, "c"), *some(3, "a"))
        pair.execute(RUNNING, QUARTERS, TOTAL, PATTERN, SLIDING, OVER)
        pair.insert(*some(4, "a", "b"), *some(1, "b"), *some(12, "a"))
        pair.execute("DROP VIEW o", "DROP VIEW total", "DROP VIEW quarters", "DROP VIEW sums", SUMS)
        pair.insert(*some(13, "a", "b"), *some(1, "b"), *some(14, "a"))


def test_refreshing(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, TABLE, SUMS, RUNNING, PATTERN, OVER)
        for number in range(4):
            pair.insert(*some(number, "a", "b", "c"))
            pair.execute("REFRESH sums", "REFRESH p", "REFRESH o")
        assert {"sums", "running", "p", "p_helper"} <= pair.away()


def test_partitions_and_moving(tmp_path: Path) -> None:
    runner = LocalRunner(2, 3)
    with contextlib.closing(runner), hw.Database(tmp_path / "here") as here:
        where = tmp_path / "there"
        pair = Twins(here, hw.Database(where, placement="tasks", runner=runner, partitions=2))
        pair.execute(*ALL)
        for number, placement in enumerate(["tasks", "driver", "tasks", None, "inline", None, "tasks"]):
            pair.insert(*some(2 * number, "a", "b", "c"), *some(max(0, 2 * number - 3), "b"))
            pair.there.db.close()
            pair = Twins(here, hw.Database(where, placement=placement, runner=runner))
            pair.compare()
        pair.there.db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
        pair.compare()
        pair.insert(*some(14, "a", "b", "c"), *some(3, "b"))
        pair.there.db.close()


def test_a_value_that_cannot_be_taken(tmp_path: Path) -> None:
    failing = """CREATE VIEW f AS INITIALIZE f[i] AS SELECT k, max(10 / v) AS t FROM s[i] GROUP BY k
        UPDATE f[j] AS SELECT k, max(10 / v) AS t FROM s[j] GROUP BY k PARTITION LENGTH 60"""
    with twins(tmp_path) as pair:
        pair.execute(STREAM, SUMS, failing)
        pair.insert((minute(0), "a", 1), (minute(1), "b", 2))
        assert "f" in pair.away()
        pair.insert((minute(1.5), "b", 0), (minute(2), "c", 5))
        reasons = [one.db.find("f").suspended for one in pair.both]
        assert reasons[0] is not None and reasons[0] == reasons[1]
        pair.insert((minute(4), "c", 5))


def test_explain_says_where_parts_are_built(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, TABLE, SUMS, TOTAL, PATTERN)
        text = str(pair.there.db.explain("p"))
        assert "builds parts of p_helper by k" in text and "builds parts of p by k" in text
        assert "home -> stage 1, room 0: Δs by k" in text
        assert "at home: total, a view of parts that no key divides" in str(pair.there.db.explain("total"))
        assert "in tasks" not in str(pair.here.db.explain("p"))


def test_damaged_segments_of_parts_are_made_anew(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, TABLE, SUMS, RUNNING, OVER)
        for number in range(4):
            pair.insert(*some(number, "a", "b", "c"), *some(max(0, number - 2), "a"))
        away = pair.there.db.engine.away
        assert away is not None
        for view in ("running", "sums"):
            for copy in away.segments.copies_of(view):
                for path in away.segments.paths(copy):
                    Path(path).unlink()
        for one in (pair.there, pair.here):
            one.db.execute("REFRESH running; REFRESH sums")
        pair.there.changes, pair.here.changes = {}, {}
        pair.compare()
        pair.insert(*some(6, "a", "b", "c"), *some(1, "a"))


def test_the_first_part_of_all(tmp_path: Path) -> None:
    """Its number is 0."""
    with twins(tmp_path) as pair:
        pair.execute(STREAM, SUMS, RUNNING, PATTERN)
        began = dt.datetime(1970, 1, 1)
        pair.insert((began + dt.timedelta(minutes=1), "a", 1), (began + dt.timedelta(minutes=2), "b", 2))
        pair.insert((began, "a", 3), (began + dt.timedelta(minutes=4), "a", 2))
        pair.insert((began, "c", 3), (began + dt.timedelta(minutes=5), "a", 2))


def test_too_many_rows_at_once_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, RUNNING)
        pair.insert(*some(0, "a", "b", "c"), *some(1, "a"), *some(2, "a"))
        monkeypatch.setattr("headwater.engine.parts.MOST_COPIED", 100)
        for one in pair.both:
            with pytest.raises(hw.UserError, match="HW338"):
                one.db.execute("ADVANCE STREAM s TO '2024-01-02 00:00:00'")
        pair.compare()
        pair.insert(*some(3, "a", "b"))


def test_stores_that_are_left_in_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, TABLE, SUMS, RUNNING, PATTERN, OVER)
        for number in range(6):
            monkeypatch.setattr(segment_files, "_UNPACKED", 100_000_000 if number // 2 % 2 else 5)
            pair.insert(*some(number, "a", "b", "c"), *some(max(0, number - 2), "a"))


def test_changes_of_parts_are_kept(tmp_path: Path) -> None:
    with twins(tmp_path) as pair:
        pair.execute(STREAM, SUMS.replace("VIEW sums AS", "VIEW sums RETAIN CHANGES ALL AS"))
        for number in range(4):
            pair.insert(*some(number, "a", "b"), *some(max(0, number - 2), "a"))
        found = [
            sorted(one.db.engine.connection.execute('SELECT * FROM data."sums#changes"').fetchall(), key=str)
            for one in pair.both
        ]
        assert found[0] and found[0] == found[1]


def test_parts_that_are_deleted_are_seen_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(merges, "STAGGERED", 1)
    runner = LocalRunner(2, 1)
    late = STREAM + " LATENESS INTERVAL 1 MINUTE"
    with contextlib.closing(runner), eager(tmp_path / "w", runner) as db:
        db.execute(f"{late}; {SUMS} RETAIN 3 MINUTES ROLL UP AFTER 1 MINUTE INTO 120; {SLIDING}")
        for number in range(12):
            db.insert("s", some(number, "a", "b", "c"))
            settle(db)
        away = db.engine.away
        assert away is not None and away.holds("sums") and away.holds("w_helper")
        for name in ("sums", "w_helper", "w_sums"):
            kept = db.engine.book.frontier(name).kept
            assert kept is not None and floor_shown(db.engine.connection, name) == kept
        assert db.engine.book.frontier("sums").rolled is not None
        [(least,)] = db.engine.connection.execute('SELECT min("PART") FROM data."sums"').fetchall()
        assert least == db.engine.book.frontier("sums").kept
        [copy] = away.segments.copies_of("sums")
        assert away.segments.rows(copy) < 12 * 3  # some went when segments were put together
        check_book(db)
        facts = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[index]
        assert facts["sums"]["away"]["segments"] > 0


def test_a_view_whose_store_other_rooms_hold_is_written_where_it_is_built(tmp_path: Path) -> None:
    """Nothing can be sent to another room of the same level."""
    loud = """CREATE VIEW loud AS INITIALIZE loud[i] AS SELECT k, v FROM s[i] WHERE v > 0
        UPDATE loud[j] AS SELECT k, v FROM s[j] WHERE v > 0 PARTITION LENGTH 60"""
    join = "CREATE VIEW called AS SELECT n.name, x.t FROM names n JOIN sums x ON n.k = x.k"
    with twins(tmp_path) as pair:
        pair.execute(STREAM, TABLE, loud, SUMS, join)
        for number in range(3):
            pair.insert(*some(number, "a", "b", "c", "a"))
        pair.execute("INSERT INTO names VALUES ('a', 'first'), ('b', 'second')")
        assert pair.here.contents()["called"]


def test_rooms_in_which_a_task_is_at_work_are_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are built in tables, however little memory there is."""
    other = SUMS.replace("sums", "by_value").replace("SELECT k,", "SELECT v,").replace("GROUP BY k", "GROUP BY v")
    with twins(tmp_path) as pair:
        pair.execute(STREAM, SUMS, other)
        monkeypatch.setattr(segment_files, "_UNPACKED", 1 << 40)
        for number in range(4):
            pair.insert(*some(number, "a", "b", "c", "d", "e"))
