"""A view that is created late is filled in tasks, and cannot be told from one that was filled at home."""

from __future__ import annotations

import datetime as dt
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

import headwater as hw
from headwater.database import Database
from headwater.engine import definitions, filling
from headwater.engine.local_tasks import LocalRunner
from tests.engine.support import rows

RELATIONS = """
CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT) RETAIN CHANGES ALL;
CREATE TABLE shop (name STRING PRIMARY KEY, town STRING);
CREATE TABLE bag (shop STRING, n INT);
CREATE STREAM click (shop STRING, n INT) RETAIN ALL;
CREATE STREAM gone (shop STRING, n INT);
"""
VIEWS = {
    "by_shop": "SELECT shop, sum(euros) AS euros, count(*) AS n FROM sale GROUP BY shop",
    "rich": "SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop HAVING sum(euros) > 40",
    "nothing": "SELECT sum(euros) AS euros, count(*) AS n FROM sale WHERE id > 1000",
    "extremes": "SELECT shop, min(euros) AS least, max(euros) AS most FROM sale GROUP BY shop",
    "towns": "SELECT town, sum(euros) AS euros FROM sale JOIN shop ON shop = name GROUP BY town",
    "shops": "SELECT name, town, euros FROM shop LEFT JOIN sale ON shop = name",
    "either": "SELECT name, town, euros FROM shop FULL JOIN sale ON shop = name",
    "prices": "SELECT DISTINCT shop, euros FROM sale",
    "pairs": "SELECT a.shop, count(*) AS n FROM sale a JOIN sale b ON a.shop = b.shop AND a.euros < b.euros "
    "GROUP BY a.shop",
    "best": "SELECT shop, euros FROM by_shop ORDER BY euros DESC, shop LIMIT 3",
    "over": "SELECT s.town, sum(b.euros) AS euros FROM by_shop b JOIN shop s ON s.name = b.shop GROUP BY s.town",
    "bags": "SELECT shop, n FROM bag",
    "met": "SELECT b.shop, b.n, c.n AS clicks FROM bag b JOIN click c ON b.shop = c.shop",
    "clicks": "SELECT shop, max(n) AS most, sum(n) AS n FROM click GROUP BY shop",
    "begins": "SELECT g.shop, sum(g.n) AS n, count(*) AS c FROM gone g JOIN shop s ON g.shop = s.name GROUP BY g.shop",
    "more": "SELECT id, euros FROM sale WHERE euros > (SELECT avg(euros) FROM sale)",
    "constant": "SELECT 'x' AS shop, 1 AS n UNION ALL SELECT shop, euros FROM sale",
    "beside": "SELECT c.k, s.id FROM (SELECT 1 AS k UNION ALL SELECT 200) c LEFT JOIN sale s ON s.euros = c.k",
    "ranked": "SELECT id, shop, rank() OVER (PARTITION BY shop ORDER BY euros) AS r FROM sale",
}


@pytest.fixture(autouse=True)
def _many_slices() -> Iterator[None]:
    with mock.patch.object(filling, "FEWEST_ROWS", 0), mock.patch.object(filling, "SLICE_ROWS", 3):
        yield


@pytest.fixture
def filled() -> Iterator[list[str]]:
    """The views that were filled in tasks."""
    found: list[str] = []

    def fill(engine: object, program: object, *rest: object) -> None:
        filling.fill(engine, program, *rest)  # type: ignore[arg-type]
        found.append(program.view)  # type: ignore[attr-defined]

    with mock.patch.object(definitions, "fill", fill):
        yield found


def away(folder: Path | str = ":memory:", partitions: int | None = 3) -> Database:
    return Database(folder, placement="tasks", runner=LocalRunner(2, 1, mishaps=0.2), partitions=partitions)


def epoch(db: Database, seed: int) -> None:
    rng = random.Random(seed)
    with db.epoch() as e:
        e.upsert("shop", [(rng.choice("abcdef"), rng.choice(("Bern", "Basel")))])
        ids = rng.sample(range(40), 8)
        e.upsert("sale", [(n, rng.choice("abcdefg") if rng.random() > 0.1 else None, rng.randrange(30)) for n in ids])
        e.insert("bag", [(rng.choice("ab"), rng.randrange(2)) for _ in range(4)])
        e.insert("click", [(rng.choice("abc"), rng.randrange(9)) for _ in range(3)])
        e.insert("gone", [(rng.choice("abc"), rng.randrange(9)) for _ in range(3)])
    db.execute(f"DELETE FROM sale WHERE id = {seed}; DELETE FROM bag WHERE n = {seed % 2} AND shop = 'a'")


def pair(folder: Path | str = ":memory:") -> tuple[Database, Database]:
    """A warehouse at home and one in tasks that have seen the same."""
    both = hw.Database(":memory:"), away(folder)
    for one in both:
        one.execute(RELATIONS)
        for seed in range(5):
            epoch(one, seed)
    return both


def test_a_view_that_was_filled_in_tasks_cannot_be_told_from_others(filled: list[str]) -> None:
    both = pair()
    told: list[list[object]] = [[], []]
    for i, one in enumerate(both):
        one.observe(lambda number, changes, i=i: told[i].append((number, {k: _sorted(v) for k, v in changes.items()})))
    for view, query in VIEWS.items():
        for one in both:
            one.execute(f"CREATE VIEW {view} AS {query}")
        assert rows(both[1], view) == rows(both[0], view), view
        assert _stored(both[1], view) == _stored(both[0], view), view
    assert filled == list(VIEWS)
    begun = [{view: one.subscribe(view, timeout=0) for view in VIEWS} for one in both]
    for seed in range(5, 9):
        for one in both:
            epoch(one, seed)
        for view in VIEWS:
            assert rows(both[1], view) == rows(both[0], view), view
        if seed == 6:
            both[1].execute("ALTER WAREHOUSE SET PARTITIONS 2")
    assert told[0] == told[1] and len(told[0]) == 12
    for view in VIEWS:
        home, tasks = ([_change(each) for each in one[view]] for one in begun)
        assert sorted(home) == sorted(tasks), view
    for one in both:
        one.close()


def _sorted(table: object) -> list[str]:
    return sorted(map(repr, table.to_pylist()))  # type: ignore[attr-defined]


def _change(one: object) -> str:
    return repr(one)


def _stored(db: Database, view: str) -> list[str]:
    """What is stored of a view, with multiplicities and epochs."""
    found = db.engine.connection.execute(f'SELECT * FROM data."{view}"').fetchall()
    return sorted(map(repr, found))


def test_what_lies_there_already_stays_as_it_is(filled: list[str]) -> None:
    """Views share maps, and copies of tables; none of these gets its rows twice."""
    home, db = pair()
    for one in (home, db):
        one.execute("CREATE VIEW towns AS " + VIEWS["towns"])
    before = dict(db.engine.away.segments.listed) if db.engine.away else {}
    for one in (home, db):
        one.execute("CREATE VIEW towns_again AS " + VIEWS["towns"])
        one.execute(
            "CREATE VIEW joined AS SELECT s.town, x.euros, x.id FROM sale x JOIN shop s ON x.shop = s.name "
            "WHERE x.euros > 3"
        )
        one.execute(
            "CREATE VIEW of_views AS SELECT t.town, t.euros, j.id FROM towns t JOIN joined j ON t.town = j.town"
        )
    assert db.engine.away is not None
    listed = db.engine.away.segments.listed
    assert before and {copy: listed[copy] for copy in before} == before, "copies that were there are the same"
    assert filled == ["towns", "towns_again", "joined", "of_views"]
    for seed in range(5, 8):
        for one in (home, db):
            epoch(one, seed)
        for view in ("towns", "towns_again", "joined", "of_views"):
            assert rows(db, view) == rows(home, view)


def test_a_new_copy_is_one_segment_a_partition(filled: list[str]) -> None:
    _, db = pair()
    db.execute("CREATE VIEW extremes AS " + VIEWS["extremes"])
    assert filled == ["extremes"] and db.engine.away is not None
    segments = db.engine.away.segments
    assert set(segments.relations.values()) == {"sale", "extremes"}
    for copy in segments.relations:
        assert all(len(one) == 1 for one in segments.listed[copy].values())
        assert {(one.first, one.last) for one in segments.of(copy)} == {(0, db.engine.epoch)}
    files = {str(path) for path in Path(db.engine.away.folder).glob("segments/*/*/*.parquet")}
    assert files == {path for copy in segments.relations for path in segments.paths(copy)}, "nothing is left"
    assert not list(Path(db.engine.away.folder).glob("epochs/*"))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("CREATE VIEW v STRATEGY 'viewlet' AS SELECT a.shop, sum(b.euros) AS e FROM sale a JOIN sale b ON "
         "a.shop = b.shop JOIN shop s ON s.name = a.shop GROUP BY a.shop", "amid the steps"),
        ("CREATE VIEW v REFRESH EVERY 3 SECONDS AS SELECT shop FROM sale", "made with it"),
        ("CREATE VIEW v AS SELECT g.n FROM gone g", "few rows"),
    ],
)  # fmt: skip
def test_what_is_filled_at_home(statement: str, reason: str, filled: list[str]) -> None:
    _, db = pair()
    said: list[object] = []
    decide = definitions._in_tasks

    def decided(*arguments: object) -> object:
        said.append(decide(*arguments))  # type: ignore[arg-type]
        return said[-1]

    with mock.patch.object(definitions, "_in_tasks", decided):
        db.execute(statement)
    assert filled == [] and reason in str(said[-1])


def test_a_view_that_keeps_its_changes_begins_with_all_that_it_holds(filled: list[str]) -> None:
    both = pair()
    views = ("by_shop", "rich", "bags", "best", "more")
    for one in both:
        for view in views:
            one.execute(f"CREATE VIEW {view} RETAIN CHANGES ALL AS {VIEWS[view]}")
        epoch(one, 5)
    assert filled == list(views)
    for view in views:
        home, tasks = (_stored(one, f"{view}#changes") for one in both)
        assert home == tasks and len(home) > 1
        home, tasks = (rows(one, f"SELECT * FROM {view} VERSION AS OF 15") for one in both)
        assert home == tasks
    for one in both:
        with pytest.raises(hw.UserError, match="HW"):
            one.query("SELECT * FROM by_shop VERSION AS OF 14")


def test_rows_that_a_stream_retains_for_a_while_and_a_view_that_follows_the_clock(filled: list[str]) -> None:
    """A view sees of the stream what was retained when it was made, and of rows with times those of the present."""
    now = [dt.datetime(2026, 1, 1)]
    home = hw.Database(":memory:", clock=lambda: now[0])
    runner = LocalRunner(2, 1)
    db = hw.Database(":memory:", clock=lambda: now[0], placement="tasks", runner=runner, partitions=2)
    for hour in range(4):
        now[0] += dt.timedelta(hours=1)
        for one in (home, db):
            if not hour:
                one.execute("CREATE STREAM seen (n INT) RETAIN 90 MINUTES; CREATE TABLE ping (host INT, at TIMESTAMP)")
            one.insert("seen", [(hour * 10 + n,) for n in range(10)])
            one.insert("ping", [(n, now[0] + dt.timedelta(minutes=20 * n)) for n in range(-9, 9)])
    views = {
        "late": "SELECT n % 3 AS m, count(*) AS c, sum(n) AS s FROM seen GROUP BY n % 3",
        "twice": "SELECT a.n FROM seen a JOIN seen b ON a.n = b.n + 10",
        "awake": "SELECT host, count(*) AS n FROM ping WHERE at > now() - INTERVAL 1 HOUR AND at < now() GROUP BY host",
    }
    for one in (home, db):
        for view, query in views.items():
            one.execute(f"CREATE VIEW {view} AS {query}")
    assert filled == list(views)
    for _ in range(4):
        for view in views:
            assert rows(db, view) == rows(home, view) != [], view
        now[0] += dt.timedelta(minutes=30)
        for one in (home, db):
            one.insert("seen", [(40,), (41,), (42,)])
            one.insert("ping", [(3, now[0])])


def test_few_rows_are_not_worth_a_job(filled: list[str]) -> None:
    _, db = pair()
    with mock.patch.object(filling, "FEWEST_ROWS", 10_000):
        db.execute("CREATE VIEW by_shop AS " + VIEWS["by_shop"])
    assert filled == []


def test_a_value_that_a_view_cannot_take(filled: list[str]) -> None:
    home, db = pair()
    assert db.engine.away is not None
    for one in (home, db):
        one.execute("INSERT INTO sale VALUES (777, 'z', 13)")
        with pytest.raises(hw.UserError, match="view v cannot be computed from the present rows") as told:
            one.execute("CREATE VIEW v AS SELECT id, 100 / (euros - 13) AS x FROM sale WHERE shop = 'z'")
        assert told.value.hint == "the view was not created"
        one.execute("DELETE FROM sale WHERE id = 777")
    assert filled == [] and not db.engine.away.segments.relations
    assert not list(Path(db.engine.away.folder).glob("segments/*/*/*.parquet"))
    for one in (home, db):  # only over a row that is gone
        one.execute("CREATE VIEW v AS SELECT id, 100 / (euros - 13) AS x FROM sale WHERE shop = 'z'")
        one.execute("INSERT INTO sale VALUES (778, 'z', 14)")
    assert filled == ["v"], "rows that are gone are not sent"
    assert rows(db, "v") == rows(home, "v") == [(778, 100.0)]


def test_a_view_that_fails_between_slices_only(filled: list[str]) -> None:
    """A sum that is zero before all rows have come: then it is filled at home."""
    home, db = hw.Database(":memory:"), away(partitions=1)
    for one in (home, db):
        one.execute("CREATE TABLE t (id INT PRIMARY KEY, x INT)")
        one.insert("t", [(n, 0 if n < 20 else 5) for n in range(40)])
        one.execute("CREATE VIEW v AS SELECT 100 / sum(x) AS share FROM t")
    assert filled == [] and rows(db, "v") == rows(home, "v") == [(1.0,)]


def test_another_plan_is_filled_in_tasks(filled: list[str]) -> None:
    home, db = pair()
    query = "SELECT c.town, sum(s.euros) AS n FROM sale s JOIN shop c ON s.shop = c.name GROUP BY c.town"
    for one in (home, db):
        one.execute(f"CREATE VIEW v STRATEGY 'first order' AS {query}")
        one.execute("ALTER VIEW v REPLAN STRATEGY 'tree'")
    assert filled == ["v", "v"]
    for seed in range(5, 9):
        for one in (home, db):
            epoch(one, seed)
        assert rows(db, "v") == rows(home, "v")


def test_status_says_how_much_has_come() -> None:
    _, db = pair()
    seen: list[float] = []

    def look(point: str) -> None:
        if point == "slice done":
            building = db.engine.building
            assert building is not None and building.view == "by_shop"
            seen.append(building.percent)

    with mock.patch("headwater.engine.faults.hook", look):
        db.execute("CREATE VIEW by_shop AS " + VIEWS["by_shop"])
    assert len(seen) > 2 and seen == sorted(seen) and seen[0] < 50 and seen[-1] == 100
    assert db.engine.building is None


CHILD = """
import os, signal, sys
from headwater.engine import faults, filling
from tests.engine import test_filling as t
filling.FEWEST_ROWS, filling.SLICE_ROWS = 0, 3
db = t.away(sys.argv[1], None)
left = [int(sys.argv[3])]
def hook(point):
    if point == sys.argv[2]:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
faults.hook = hook
db.execute("CREATE VIEW towns AS " + t.VIEWS["towns"])
"""


@pytest.mark.parametrize(
    ("point", "nth", "there"),
    [("slice done", 1, False), ("slice done", 3, False), ("slices listed", 1, False), ("sent away", 1, False),
     ("after commit", 1, True)],
)  # fmt: skip
def test_a_kill_leaves_a_view_whole_or_nothing(tmp_path: Path, point: str, nth: int, there: bool) -> None:
    home, db = pair(tmp_path / "w")
    home.execute("CREATE VIEW towns AS " + VIEWS["towns"])
    db.close()
    child = [sys.executable, "-c", CHILD, str(tmp_path / "w"), point, str(nth)]
    assert subprocess.run(child, check=False).returncode == -signal.SIGKILL
    with away(tmp_path / "w", None) as db:
        assert db.engine.away is not None
        segments = db.engine.away.segments
        assert ("towns" in db.engine.catalog.map_names) is there
        files = {str(path) for path in Path(db.engine.away.folder).glob("segments/*/*/*.parquet")}
        assert files == {path for copy in segments.relations for path in segments.paths(copy)}
        if not there:
            db.execute("CREATE VIEW towns AS " + VIEWS["towns"])
        for one in (home, db):
            epoch(one, 9)
        assert rows(db, "towns") == rows(home, "towns")
