"""Parts that nobody can need any more go, and nothing else that can be seen changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.algebra.subscripts import VARIABLE, Subscript, number
from headwater.engine import faults, merges
from headwater.engine.local_tasks import LocalRunner
from headwater.engine.part_upkeep import delete_parts, put_lines_together
from tests.engine.part_support import FIRST, check_book, deletable, eager, kept, minute, settle
from tests.engine.support import bag, change_bag, opened, rows

STREAM = "CREATE STREAM m (ts TIMESTAMP, g STRING, x INT) TIMESTAMP BY ts PARTITION LENGTH 60"
LATE = f"{STREAM} LATENESS INTERVAL 2 MINUTES"
WINDOW = "CREATE VIEW w AS SELECT g, sum(x) AS s FROM m [WINDOW 5 MINUTES] GROUP BY g"
PATTERN = "CREATE VIEW p AS SELECT g, count(*) AS n FROM m PATTERN [a, b+] WHERE a.x > 3 AND b.x > 3 GROUP BY g"


def copy_of(source: str, view: str, reads: str = "j", rest: str = "PARTITION LENGTH 60 BACKFILL") -> str:
    """A view of parts with the rows of some parts of another relation."""
    return (
        f"CREATE VIEW {view} AS INITIALIZE {view}[i] AS SELECT g, x FROM {source}[{reads.replace('j', 'i')}] "
        f"UPDATE {view}[j] AS SELECT g, x FROM {source}[{reads}] {rest}"
    )


def fill(db: hw.Database, minutes: range, stream: str = "m") -> None:
    for one in minutes:
        db.insert(stream, [(minute(one), "a", one % 7), (minute(one + 0.5), "b", 1)])


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with opened() as db:
        yield db


# -- what must be kept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "least", "reached"),
    [
        (VARIABLE, 10, 12),
        (Subscript("-", (VARIABLE, number(3))), 7, 15),
        (Subscript("/", (VARIABLE, number(5))), 2, 20),
        (Subscript("%", (VARIABLE, number(7))), 0, 20),
        (Subscript("-", (number(30), VARIABLE)), None, 10),
        (number(12), 12, 10),
    ],
)
def test_how_far_a_subscript_goes(text: Subscript, least: int | None, reached: int) -> None:
    assert text.least_from(10) == least
    assert text.first_to_reach(12, 10, 20) == reached


def test_a_window_keeps_its_width_and_what_may_come_late(db: hw.Database) -> None:
    db.execute(f"{LATE}; {WINDOW}")
    fill(db, range(12))
    # The watermark is 11:30, so parts that end by 9:00 are closed: of the complete ones 9 and 10 may change.
    assert deletable(db, "m") == 2
    assert deletable(db, "w_helper") == 2 + 5
    assert deletable(db, "w_sums") == 2 + 1
    assert deletable(db, "w") == 11 + FIRST, "it is no helper, and keeps everything"


def test_a_pattern_keeps_the_last_part(db: hw.Database) -> None:
    db.execute(f"{LATE}; {PATTERN}")
    fill(db, range(12))
    assert deletable(db, "m") == 2
    assert deletable(db, "p_helper") == 2 + 1


def test_nothing_is_closed_without_lateness(db: hw.Database) -> None:
    db.execute(f"{STREAM}; {WINDOW}")
    fill(db, range(12))
    assert deletable(db, "m") >= 11
    assert deletable(db, "w_helper") >= 11


def test_retain_alone_closes_parts(db: hw.Database) -> None:
    db.execute(f"{STREAM} RETAIN 3 MINUTES; {WINDOW}")
    fill(db, range(12))
    assert deletable(db, "m") == 3
    assert deletable(db, "w_helper") == 3 + 5
    db.insert("m", [(minute(7), "late", 1), (minute(8), "in time", 1)])
    [late] = db.execute("SHOW LATE m")
    assert late.table is not None and late.table.column("g").to_pylist() == ["late"]
    assert ("in time", 1) in rows(db, "SELECT g, x FROM m")


def test_retain_beside_lateness(db: hw.Database) -> None:
    """The longer of both counts: what can change is there."""
    db.execute(f"{LATE} RETAIN 6 MINUTES; {copy_of('m', 'v')}")
    db.execute(f"{LATE.replace(' m ', ' n ')} RETAIN 1 MINUTE; {copy_of('n', 'u')}")
    fill(db, range(12))
    fill(db, range(12), "n")
    assert (deletable(db, "m"), deletable(db, "n")) == (6, 2)
    db.execute(f"{LATE.replace(' m ', ' o ')} RETAIN ALL; {copy_of('o', 't')}")
    fill(db, range(12), "o")
    assert deletable(db, "o") == 11 + FIRST


def test_a_chain_of_views_and_longer_parts(db: hw.Database) -> None:
    db.execute(f"{LATE}; {copy_of('m', 'a')}")
    db.execute(copy_of("a", "b", "5 * j .. 5 * j + 4", "PARTITION LENGTH 300 BACKFILL RETAIN 5 MINUTES"))
    fill(db, range(23))
    # Closed are parts to 19, of which the last one of b, from 15 to 19, is made, and the next one reads from 20 on.
    assert db.engine.book.frontier("b").next == FIRST // 5 + 4
    assert deletable(db, "m") == 2
    assert deletable(db, "b") == 1
    db.execute(copy_of("m", "c", "5 * j .. 5 * j + 4", "PARTITION LENGTH 300 BACKFILL"))
    assert deletable(db, "m") == 2
    fill(db, range(23, 26))
    assert deletable(db, "m") == 5, "the part of c from 20 to 24 can change: 23 and 24 can"


def test_a_shorter_view_over_longer_parts(db: hw.Database) -> None:
    db.execute(f"{LATE.replace('LENGTH 60', 'LENGTH 300')}; {copy_of('m', 'v', 'j / 5 - 1')}")
    fill(db, range(30))
    assert db.engine.book.frontier("m").next == FIRST // 5 + 5
    # Parts of m to the one that ends at 25 are closed. A part of v reads the one before its own five minutes.
    # That of minute 29 is not over yet, and reads the last complete one.
    assert db.engine.book.frontier("v").next == FIRST + 29
    assert deletable(db, "m") == 1
    db.execute("ADVANCE STREAM m TO '2024-01-01 00:30:00'")
    assert db.engine.book.frontier("v").next == FIRST + 30
    assert deletable(db, "m") == 1, "the part from 25 to 30 takes rows yet, and the next five minutes read it"


def test_references_to_itself(db: hw.Database) -> None:
    db.execute(LATE)
    db.execute(
        "CREATE VIEW v AS INITIALIZE v[i] AS SELECT g, x FROM m[i] "
        "UPDATE v[j] AS SELECT g, x FROM m[j] UNION ALL SELECT g, x FROM v[j - 4] PARTITION LENGTH 60 BACKFILL "
        "RETAIN 1 MINUTE"
    )
    fill(db, range(12))
    assert deletable(db, "v") == 2 + 4


def test_what_is_not_built_yet_is_waited_for(db: hw.Database) -> None:
    db.execute(f"{LATE}; {LATE.replace(' m ', ' n ')}")
    db.execute(
        "CREATE VIEW v AS INITIALIZE v[i] AS SELECT m.g, n.x FROM m[i] JOIN n[i] ON m.g = n.g "
        "UPDATE v[j] AS SELECT m.g, n.x FROM m[j] JOIN n[j] ON m.g = n.g PARTITION LENGTH 60 BACKFILL"
    )
    fill(db, range(12))
    assert deletable(db, "m") >= 11, "it has not begun"
    fill(db, range(6), "n")
    assert (deletable(db, "m"), deletable(db, "n")) == (11 - 3, 2)


def test_ordinary_views_that_look_back_keep_everything(db: hw.Database) -> None:
    db.execute(f"{LATE}; {copy_of('m', 'v', rest='PARTITION LENGTH 60 BACKFILL RETAIN 3 MINUTES')}")
    fill(db, range(12))
    assert (deletable(db, "m"), deletable(db, "v")) == (2, 3)
    db.execute("CREATE VIEW sums AS SELECT g, sum(x) AS x FROM m GROUP BY g")
    assert deletable(db, "m") == 2, "it takes note of changes alone"
    db.execute("CREATE TABLE t (g STRING); CREATE VIEW pairs AS SELECT m.x FROM m JOIN t ON m.g = t.g")
    assert deletable(db, "m") >= 11
    db.execute("CREATE VIEW over AS SELECT count(*) AS n FROM v")
    assert deletable(db, "v") >= 11


def test_what_is_read_whole_is_kept_whole(db: hw.Database) -> None:
    db.execute(f"{LATE}; {copy_of('m', 'a', rest='PARTITION LENGTH 60 BACKFILL RETAIN 3 MINUTES')}")
    db.execute(
        "CREATE VIEW v AS INITIALIZE v[i] AS SELECT a.x, o.x AS y FROM a[i] JOIN a AS o ON a.g = o.g "
        "UPDATE v[j] AS SELECT a.x, o.x AS y FROM a[j] JOIN a AS o ON a.g = o.g PARTITION LENGTH 60 BACKFILL"
    )
    fill(db, range(12))
    program = db.find("v").parts
    assert program is not None and program.update.whole == {"a"}
    assert deletable(db, "a") >= 11


def test_a_suspended_view_keeps_what_it_will_need(db: hw.Database) -> None:
    db.execute(LATE)
    query = "SELECT g, CAST(x AS TINYINT) AS x FROM m"
    db.execute(f"CREATE VIEW v AS INITIALIZE v[i] AS {query}[i] UPDATE v[j] AS {query}[j] PARTITION LENGTH 60 BACKFILL")
    fill(db, range(6))
    assert deletable(db, "m") == 2
    db.insert("m", [(minute(6), "a", 1000)])
    fill(db, range(7, 12))
    assert db.find("v").suspended
    assert deletable(db, "m") >= 11


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_parts_go_and_answers_stay() -> None:
    with eager() as db, opened() as twin:
        for one in (db, twin):
            one.execute(f"{LATE}; {WINDOW}; {PATTERN}; CREATE VIEW sums AS SELECT g, sum(x) AS x FROM m GROUP BY g")
            fill(one, range(20))
        settle(db)
        assert kept(db, "m") == [17, 18, 19]
        assert kept(db, "w_helper") == list(range(12, 19))
        assert kept(db, "w_sums") == [16, 17, 18]
        assert min(kept(db, "p_helper")) >= 16
        assert kept(db, "w") == list(range(19))
        assert len(kept(twin, "w_helper")) == 19
        for view in ("w", "p", "sums"):
            assert bag(db, view) == bag(twin, view)
        check_book(db)
        [shown] = db.execute("SHOW PARTS w_helper")
        assert shown.table is not None
        assert shown.table.column("part").to_pylist() == [FIRST + one for one in range(12, 19)]
        assert set(shown.table.column("length").to_pylist()) == {60}
        facts = {one["name"]: one for one in db.status()["relations"]}
        assert facts["w_helper"]["parts"] == 7


def test_no_changes_are_issued_for_what_is_deleted() -> None:
    with eager() as db:
        seen: list[str] = []
        db.observe(
            lambda _, changes: seen.extend(n for n, t in changes.items() if any(v < 0 for v in change_bag(t).values()))
        )
        db.execute(f"{LATE}; {copy_of('m', 'v', rest='PARTITION LENGTH 60 BACKFILL RETAIN 3 MINUTES')}; {PATTERN}")
        fill(db, range(12))
        settle(db)
        assert kept(db, "v") == [8, 9, 10]
        assert seen == []


def test_a_view_that_took_note_of_deleted_rows_is_not_evaluated_anew() -> None:
    with eager() as db:
        db.execute(f"{LATE} RETAIN 3 MINUTES; CREATE VIEW sums AS SELECT g, count(*) AS n FROM m GROUP BY g")
        fill(db, range(12))
        settle(db)
        assert kept(db, "m") == [8, 9, 10, 11]
        assert rows(db, "sums") == [("a", 12), ("b", 12)]
        with pytest.raises(hw.UserError) as caught:
            db.execute("REFRESH sums")
        assert caught.value.code == "HW505"
        assert rows(db, "sums") == [("a", 12), ("b", 12)]


def test_a_table_that_changes_leaves_final_parts_alone() -> None:
    with eager() as db:
        db.execute(f"{LATE} RETAIN 4 MINUTES; CREATE TABLE t (g STRING PRIMARY KEY, name STRING)")
        db.execute("INSERT INTO t VALUES ('a', 'old'), ('b', 'other')")
        query = "SELECT t.name, m.x FROM m[j] JOIN t ON m.g = t.g"
        db.execute(f"CREATE VIEW v AS INITIALIZE v[j] AS {query} UPDATE v[j] AS {query} PARTITION LENGTH 60 BACKFILL")
        fill(db, range(12))
        settle(db)
        assert kept(db, "m") == [7, 8, 9, 10, 11]
        db.execute("UPDATE t SET name = 'new' WHERE g = 'a'")
        found = rows(db, f"SELECT PART - {FIRST}, name FROM v WHERE name <> 'other'")
        assert found == sorted([(part, "old" if part < 7 else "new") for part in range(11)], key=repr)
        db.execute("REFRESH v")
        assert rows(db, f"SELECT PART - {FIRST}, name FROM v WHERE name <> 'other'") == found
        check_book(db)


def test_own_parts_that_are_gone_make_later_ones_final() -> None:
    with eager() as db:
        db.execute(f"{LATE}; CREATE TABLE t (y INT); INSERT INTO t VALUES (1)")
        db.execute(
            "CREATE VIEW v AS INITIALIZE v[i] AS SELECT count(*) AS n, max(t.y) AS y FROM m[i] CROSS JOIN t "
            "UPDATE v[j] AS SELECT sum(n) AS n, max(y) AS y FROM (SELECT count(*) AS n, max(t.y) AS y FROM m[j] "
            "CROSS JOIN t UNION ALL SELECT n, y FROM v[j - 1]) AS both PARTITION LENGTH 60 BACKFILL RETAIN 3 MINUTES"
        )
        fill(db, range(12))
        settle(db)
        assert kept(db, "m") == [9, 10, 11]
        assert kept(db, "v") == [8, 9, 10]
        db.execute("UPDATE t SET y = 2")
        assert rows(db, f"SELECT PART - {FIRST}, n, y FROM v") == [(10, 22, 2), (8, 18, 1), (9, 20, 2)]
        db.insert("m", [(minute(9), "late", 0)])
        assert rows(db, f"SELECT PART - {FIRST}, n, y FROM v") == [(10, 23, 2), (8, 18, 1), (9, 21, 2)]


def test_a_view_that_is_made_later_begins_where_all_is_there() -> None:
    with eager() as db:
        db.execute(f"{LATE} RETAIN 4 MINUTES")
        fill(db, range(12))
        settle(db)
        assert kept(db, "m") == [7, 8, 9, 10, 11]
        db.execute(copy_of("m", "a"))
        assert kept(db, "a") == [7, 8, 9, 10]
        db.execute(copy_of("m", "b", "j - 2 .. j"))
        assert kept(db, "b") == [9, 10]
        db.execute(copy_of("m", "c", "5 * j .. 5 * j + 4", "PARTITION LENGTH 300 BACKFILL"))
        assert kept(db, "c") == []
        db.execute(copy_of("m", "d", "j - 5 .. j", "PARTITION LENGTH 60"))
        assert kept(db, "d") == []
        fill(db, range(12, 22))
        settle(db)
        assert kept(db, "c") == [2, 3], "from 10 on there are whole parts of five minutes"
        assert kept(db, "d") == list(range(12, 21))
        assert rows(db, f"SELECT PART - {FIRST}, count(*) AS n FROM d GROUP BY PART")[0] == (12, 12)


def test_deleted_is_deleted_after_a_restart(tmp_path: Path) -> None:
    with eager(tmp_path / "w") as db:
        db.execute(f"{LATE}; {WINDOW}")
        fill(db, range(20))
        settle(db)
        before, frontiers = bag(db, "w"), dict(db.engine.book.frontiers)
    with eager(tmp_path / "w") as db, opened() as twin:
        assert db.engine.book.frontiers == frontiers
        check_book(db)
        assert bag(db, "w") == before
        twin.execute(f"{LATE}; {WINDOW}")
        fill(twin, range(20))
        for one in (db, twin):
            one.insert("m", [(minute(17.5), "late", 5), (minute(3), "too late", 5)])
            fill(one, range(20, 25))
        settle(db)
        assert bag(db, "w") == bag(twin, "w")
        assert kept(db, "m") == [22, 23, 24]


def test_a_failure_leaves_parts_where_they_are() -> None:
    with opened() as db:
        db.execute(f"{LATE}; {WINDOW}")
        fill(db, range(12))

        def fail(point: str) -> None:
            if point == "parts deleted":
                raise RuntimeError("here")

        faults.hook = fail
        try:
            with pytest.raises(RuntimeError):
                delete_parts(db.engine, "m")
        finally:
            faults.hook = None
        assert kept(db, "m") == list(range(12))
        check_book(db)
        assert delete_parts(db.engine, "m")
        assert not delete_parts(db.engine, "m")
        assert kept(db, "m") == [9, 10, 11]
        check_book(db)


def test_a_relation_that_is_gone_has_nothing_to_delete(db: hw.Database) -> None:
    assert not delete_parts(db.engine, "m")


def test_lines_about_parts_are_put_together(db: hw.Database) -> None:
    db.execute(f"{LATE}; {WINDOW}")
    for one in range(40):
        db.insert("m", [(minute(one / 10), "a", one)])
    before = db.execute("SHOW PARTS m")[0].table
    reader = db.warehouse.reader()
    assert reader.execute("SELECT count(*) FROM hw.parts WHERE relation = 'm'").fetchone() == (40,)
    put_lines_together(db.engine)
    assert reader.execute("SELECT count(*) FROM hw.parts WHERE relation = 'm'").fetchone() == (4,)
    reader.close()
    assert isinstance(before, pa.Table)
    assert before.equals(db.execute("SHOW PARTS m")[0].table)
    check_book(db)


# -- at random ---------------------------------------------------------------------------------------------------------

VIEWS = (
    WINDOW,
    PATTERN,
    "CREATE VIEW top AS SELECT g, max(x) AS x, count(DISTINCT x) AS n FROM m [WINDOW 3 MINUTES] GROUP BY g",
    copy_of(
        "m", "plain", rest="PARTITION LENGTH 60 BACKFILL RETAIN 4 MINUTES ROLL UP AFTER INTERVAL 2 MINUTES INTO 180"
    ),
    copy_of("plain", "five", "5 * j .. 5 * j + 4", "PARTITION LENGTH 300 BACKFILL ROLL UP AFTER 5 MINUTES INTO 600"),
    "CREATE VIEW run AS INITIALIZE run[i] AS SELECT g, count(*) AS n FROM m[i] GROUP BY g UPDATE run[j] AS "
    "SELECT g, sum(n) AS n FROM (SELECT g, 1 AS n FROM m[j] UNION ALL SELECT g, n FROM run[j - 1]) AS u GROUP BY g "
    "PARTITION LENGTH 60 BACKFILL RETAIN 2 MINUTES",
    "CREATE VIEW sums AS SELECT g, sum(x) AS s, count(*) AS n FROM m GROUP BY g",
)


@pytest.mark.parametrize(("seed", "placement"), [*((seed, "inline") for seed in range(5)), (0, "tasks"), (5, "tasks")])
def test_a_warehouse_that_deletes_equals_one_that_does_not(
    seed: int, placement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = LocalRunner(2, seed) if placement == "tasks" else None
    monkeypatch.setattr(merges, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(merges, "STAGGERED", 1)
    rng = random.Random(seed)
    clauses = rng.choice(["LATENESS INTERVAL 2 MINUTES", "RETAIN 3 MINUTES", "LATENESS 1 MINUTE RETAIN 6 MINUTES"])
    roll = rng.choice(["", " ROLL UP AFTER INTERVAL 2 MINUTES INTO 240"])
    views = rng.sample(VIEWS, 4) if seed else list(VIEWS)
    if VIEWS[4] in views and VIEWS[3] not in views:
        views.append(VIEWS[3])
    views.sort(key=VIEWS.index)
    script = "; ".join([f"{STREAM} {clauses}{roll}", *views])
    with opened() as twin:
        told: list[dict[str, Counter[object]]] = [{}, {}]
        twin.execute(script)
        twin.observe(lambda _, changes: told[0].update({n: change_bag(t) for n, t in changes.items()}))
        now = 0.0
        for turn in range(2):
            with eager(tmp_path / "w", runner) as db:
                if not turn:
                    db.execute(script)
                db.observe(lambda _, changes: told[1].update({n: change_bag(t) for n, t in changes.items()}))
                for _ in range(14):
                    now += rng.choice([0, 0.3, 0.5, 1, 1, 2])
                    batch = [
                        (minute(max(0, now - rng.choice([0, 0, 0.5, 1, 2, 3, 7]))), rng.choice("ab"), rng.randint(0, 9))
                        for _ in range(rng.randint(1, 6))
                    ]
                    for one in (db, twin):
                        one.insert("m", batch)
                    if rng.random() < 0.5:
                        settle(db)
                    assert told[0] == told[1]
                    for each in told:
                        each.clear()
                settle(db)
                check_book(db)
                check_book(twin)
                for one in twin.engine.catalog:
                    if one.parts is not None or one.program is not None:
                        oldest = db.engine.book.frontier(one.name).oldest or 0
                        where = f" WHERE PART >= {oldest}" if one.length else ""
                        assert rows(db, one.name) == rows(twin, f"SELECT * FROM {one.name}{where}"), one.name
                    assert db.engine.book.frontier(one.name).next == twin.engine.book.frontier(one.name).next
    if runner is not None:
        runner.close()
