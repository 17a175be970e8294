"""Partial sums, and programs that evaluate a view anew from them, in tasks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine.local_tasks import LocalRunner
from tests.engine.support import opened, rows

RELATIONS = """
    CREATE TABLE shop (name STRING PRIMARY KEY, city STRING);
    CREATE TABLE sale (id INT PRIMARY KEY, shop STRING, euros INT);
    CREATE STREAM click (shop STRING, n INT, at INT);
    CREATE VIEW clicks REFRESH ON QUERY AS SELECT shop, sum(n) AS n, count(*) AS c FROM click GROUP BY shop;
    CREATE VIEW extremes REFRESH ON QUERY AS SELECT shop, min(n) AS least, max(n) AS most FROM click GROUP BY shop;
    CREATE VIEW by_city REFRESH ON QUERY AS
      SELECT s.city, sum(c.n) AS n FROM click c JOIN shop s ON c.shop = s.name GROUP BY s.city;
    CREATE VIEW over REFRESH ON QUERY AS SELECT max(n) AS most FROM clicks;
    CREATE VIEW large STRATEGY 're-evaluate' AS
      SELECT shop, sum(euros) AS euros FROM sale GROUP BY shop HAVING sum(euros) > (SELECT avg(euros) FROM sale);
    CREATE VIEW larger AS SELECT shop, euros + 1 AS more FROM large;
    CREATE VIEW both STRATEGY 're-evaluate' AS
      SELECT s.city, sum(x.euros) AS euros FROM sale x JOIN shop s ON x.shop = s.name GROUP BY s.city
      HAVING count(*) > (SELECT min(euros) FROM sale)
"""
VIEWS = ("clicks", "extremes", "by_city", "over", "large", "larger", "both")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


def away(folder: Path, partitions: int | None = 3) -> hw.Database:
    return hw.Database(folder, placement="tasks", runner=LocalRunner(2, 1, mishaps=0.2), partitions=partitions)


@pytest.fixture
def db(folder: Path) -> Iterator[hw.Database]:
    with away(folder) as database:
        database.execute(RELATIONS)
        yield database


def epoch(db: hw.Database, seed: int) -> None:
    rng = random.Random(seed)
    with db.epoch() as e:
        e.upsert("shop", [(rng.choice("abc"), rng.choice(("Bern", "Basel")))])
        e.upsert("sale", [(n, rng.choice("abcd"), rng.randrange(20)) for n in rng.sample(range(12), 3)])
        e.insert("click", [(rng.choice("abcd"), rng.randrange(9), seed) for _ in range(3)])


def test_partial_sums_lie_away(db: hw.Database) -> None:
    assert db.engine.away is not None
    programs = [db.find(name).program for name in VIEWS]
    maps = {one.name for program in programs if program is not None for one in program.maps}
    assert maps and all(db.engine.away.holds(name) for name in maps)
    stepwise = {one.name for program in programs if program is not None for one in program.maps if one.stepwise}
    assert len(stepwise) == 3, "views share them"
    text = str(db.explain("clicks"))
    assert "    settles clicks$" in text
    assert "    on change of click: adds to clicks$" in text
    assert "in tasks: nothing" not in text


def test_all_that_they_say_is_what_they_say_at_home(folder: Path) -> None:
    home = opened()
    home.execute(RELATIONS)
    db = away(folder)
    db.execute(RELATIONS)
    told: list[list[object]] = [[], []]
    for i, one in enumerate((home, db)):
        one.observe(lambda number, changes, i=i: told[i].append((number, {k: _sorted(v) for k, v in changes.items()})))
    for number in range(14):
        if number == 5:
            db.execute("ALTER WAREHOUSE SET PARTITIONS 2")
        if number == 8:
            db.close()
            db = away(folder, None)
            db.observe(lambda number, changes: told[1].append((number, {k: _sorted(v) for k, v in changes.items()})))
        for one in (home, db):
            epoch(one, number)
            if number in (3, 10):
                one.execute("REFRESH VIEW large")
        for view in VIEWS:
            assert rows(db, view) == rows(home, view), (number, view)
    assert told[0] == told[1]
    db.close()
    with hw.Database(folder, placement="inline") as back:
        for view in VIEWS:
            assert rows(back, view) == rows(home, view)
    home.close()


def _sorted(table: object) -> list[str]:
    return sorted(map(repr, table.to_pylist()))  # type: ignore[attr-defined]


def test_a_view_becomes_one_that_is_kept(db: hw.Database) -> None:
    """It begins with the partial sums that lie away: the stream keeps no rows."""
    for number in range(3):
        epoch(db, number)
    before = rows(db, "clicks")
    subscriber = db.subscribe("clicks", timeout=0)
    assert len(list(subscriber)) == len(before)
    epoch(db, 3)
    assert sum(int(str(row[2])) for row in rows(db, "clicks")) == 12


def test_what_is_damaged_cannot_be_made_up(folder: Path) -> None:
    """Rows that a stream did not keep are in the partial sums alone; those of tables are not."""
    with away(folder) as db:
        db.execute(RELATIONS)
        epoch(db, 1)
        assert db.engine.away is not None
        segments = db.engine.away.segments
        large = db.find("large").program
        assert large is not None
        [path, *_] = [path for copy in segments.copies_of(large.maps[0].name) for path in segments.paths(copy)]
        expected = rows(db, "large")
    Path(path).unlink()
    with away(folder, None) as db:
        db.execute("REFRESH VIEW large")
        assert rows(db, "large") == expected
        epoch(db, 2)
