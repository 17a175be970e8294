"""Synchronised relations whose rows, and what waits for them, lie away: where they lie, and what happens to them."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine import consolidate, faults
from headwater.engine.local_tasks import LocalRunner
from tests.engine.support import rows, store_rows

RELATIONS = """
    ADVANCE CLOCK TO 0;
    CREATE TABLE room (id INT PRIMARY KEY, temp INT);
    CREATE STREAM call (room INT, n INT);
    CREATE VIEW hot REFRESH EVERY 2 SECONDS AS SELECT temp, count(*) AS n FROM room GROUP BY temp;
    CREATE VIEW pairs REFRESH MANUAL AS SELECT a.id, b.id AS other FROM room a JOIN room b ON a.temp = b.temp;
    CREATE VIEW calls REFRESH EVERY 2 SECONDS AS SELECT room, sum(n) AS n FROM call GROUP BY room
"""
#: The synchronised relations of these, and whether their rows are stored.
HELD = {"room@2s": True, "room@manual pairs": True, "call@2s": False}


def opened(folder: Path, placement: str = "tasks", partitions: int | None = 3) -> hw.Database:
    runner = LocalRunner(2, 3) if placement == "tasks" else None
    return hw.Database(
        folder, placement=placement, runner=runner, partitions=partitions if placement == "tasks" else None
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def db(folder: Path) -> Iterator[hw.Database]:
    with opened(folder) as database:
        database.execute(RELATIONS)
        yield database


def put(db: hw.Database, seconds: float, *rooms: tuple[int, int], call: int | None = None) -> None:
    with db.epoch() as e:
        e.advance_clock(dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds))
        e.upsert("room", list(rooms))
        if call is not None:
            e.insert("call", [(call, 1)])


def paths(db: hw.Database, relation: str) -> list[str]:
    assert db.engine.away is not None
    segments = db.engine.away.segments
    return [path for copy in segments.copies_of(relation) for path in segments.paths(copy)]


def test_what_waits_lies_away_until_it_is_released(db: hw.Database) -> None:
    away = db.engine.away
    assert away is not None
    for name, stored in HELD.items():
        assert away.holds(name) == stored
        assert away.holds(f"{name}#waiting")
    put(db, 1, (1, 5), (2, 5), (3, 7), call=1)
    assert all(paths(db, f"{name}#waiting") for name in HELD)
    assert not paths(db, "room@2s")
    assert db.engine.waiting.rows == {"room@2s": 3, "room@manual pairs": 3, "call@2s": 1}
    put(db, 1.5, (3, 5), call=2)
    assert rows(db, "hot") == rows(db, "calls") == []
    db.execute("ADVANCE CLOCK TO 2")  # an epoch to which nothing comes
    assert rows(db, "hot") == [(5, 3)]
    assert rows(db, "calls") == [(1, 1), (2, 1)]
    assert paths(db, "room@2s") and not paths(db, "room@2s#waiting") and not paths(db, "call@2s#waiting")
    assert store_rows(db, "room@2s#waiting") == 0 < store_rows(db, "room@manual pairs#waiting")
    db.execute("REFRESH VIEW pairs")
    assert len(rows(db, "pairs")) == 9
    assert not any(db.engine.waiting.rows.values())


def test_it_is_as_if_it_had_never_happened(db: hw.Database) -> None:
    """An epoch that is undone lets nothing wait, and releases nothing."""
    put(db, 1, (1, 5), (2, 6))
    faults.hook = _fail
    try:
        with pytest.raises(KeyError):
            put(db, 2, (3, 5))
    finally:
        faults.hook = None
    assert db.engine.waiting["room@2s"] == 2
    put(db, 1.2, (1, 6))
    assert rows(db, "hot") == []
    put(db, 4)
    assert rows(db, "hot") == [(6, 2)]


def _fail(step: str) -> None:
    if step == "before commit":
        raise KeyError(step)


def test_a_row_that_came_and_went_is_no_change(db: hw.Database) -> None:
    told: list[object] = []
    put(db, 2, (1, 5))
    db.observe(lambda number, changes: told.extend(changes))
    put(db, 2.5, (1, 6))
    put(db, 3, (1, 5))
    put(db, 4)
    assert told == []


@pytest.mark.parametrize("again", ["reopen", "home", "divide", "move the folder", "rebuild"])
def test_what_waits_goes_along(folder: Path, again: str) -> None:
    with opened(folder) as db:
        db.execute(RELATIONS)
        put(db, 2, (1, 1), (2, 1))
        put(db, 3, (2, 5), (3, 5), call=7)
        if again == "divide":
            db.execute("ALTER WAREHOUSE SET PARTITIONS 5")
        if again == "rebuild":
            db.execute("CREATE VIEW ids AS SELECT id FROM room; REFRESH VIEW ids")
    if again == "home":
        with opened(folder, "inline") as db:
            assert db.engine.away is None
            assert db.engine.waiting.rows == {"room@2s": 3, "room@manual pairs": 3 + 2, "call@2s": 1}
            put(db, 3.1, (4, 5))
    if again == "move the folder":
        shutil.move(folder, folder.with_name("elsewhere"))
        folder = folder.with_name("elsewhere")
    with opened(folder, partitions=None) as db:
        assert rows(db, "hot") == [(1, 2)]
        assert db.engine.waiting["room@2s"] > 0
        put(db, 4)
        assert rows(db, "hot") == [(1, 1), (5, 3 if again == "home" else 2)]
        assert rows(db, "calls") == [(7, 1)]
        db.execute("REFRESH VIEW pairs")
        assert len(rows(db, "pairs")) == (10 if again == "home" else 5)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"PAR1nothingPAR1")])
@pytest.mark.parametrize("store", ["room@manual pairs", "room@manual pairs#waiting"])
def test_what_is_damaged_is_made_anew(folder: Path, store: str, damage: Callable[[Path], object]) -> None:
    with opened(folder) as db:
        db.execute(RELATIONS)
        put(db, 2, (1, 1), (2, 1), (3, 4), (4, 4))
        db.execute("REFRESH VIEW pairs")
        put(db, 3, (3, 1), (5, 9))
        [path, *_] = paths(db, store)
    damage(Path(path))
    with opened(folder, partitions=None) as db:
        assert len(rows(db, "pairs")) == 8
        db.execute("REFRESH VIEW pairs")
        assert len(rows(db, "pairs")) == 9 + 1 + 1
        put(db, 4, (5, 1))
        assert rows(db, "hot") == [(1, 4), (4, 1)]
        db.execute("REFRESH VIEW pairs")
        assert len(rows(db, "pairs")) == 16 + 1


def test_what_nobody_knows_any_more(folder: Path) -> None:
    with opened(folder) as db:
        db.execute(RELATIONS)
        put(db, 2, (1, 1), (2, 1))
        db.execute("REFRESH VIEW pairs")
        put(db, 3, (3, 1), call=1)
        for store in ("room@manual pairs", "room@manual pairs#waiting"):
            for path in paths(db, store):
                Path(path).unlink()
    with opened(folder, partitions=None) as db:
        with pytest.raises(hw.UserError, match="what waits for it cannot be read, either") as caught:
            db.execute("REFRESH VIEW pairs")
        assert caught.value.code == "HW409"


def test_segments_of_what_waits_are_put_together(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.engine.merges.MOST_SEGMENTS", 3)
    monkeypatch.setattr("headwater.engine.merges.STAGGERED", 1)
    for n in range(30):
        put(db, 0.5, (1, n))
    assert db.consolidator.wait(20)
    merger = db.consolidator.merger
    assert merger is not None
    merger.work()
    assert len(paths(db, "room@2s#waiting")) < 10
    assert store_rows(db, "room@2s#waiting") < 20, "versions that came and went are gone"
    put(db, 2)
    assert rows(db, "hot") == [(29, 1)]


def test_a_stream_is_trimmed_where_it_lies(folder: Path) -> None:
    with opened(folder) as db:
        db.execute("""
            ADVANCE CLOCK TO 0;
            CREATE STREAM s (x INT) RETAIN 10 SECONDS;
            CREATE VIEW v REFRESH EVERY 1 SECOND AS SELECT count(*) AS n FROM s
        """)
        for n in range(1, 41):
            with db.epoch() as e:
                e.advance_clock(dt.datetime(1970, 1, 1) + dt.timedelta(seconds=n))
                e.insert("s", [(n,)])
        assert db.engine.away is not None
        assert store_rows(db, "s@1s") == 40
        consolidate.trim(db.engine, "s@1s")
        assert store_rows(db, "s@1s") < 15
        assert db.engine.away.holds("s@1s")
        db.execute("INSERT INTO s VALUES (0); ADVANCE CLOCK TO 60")
        assert rows(db, "v") == [(41,)]


def test_explain_says_where_it_follows(db: hw.Database) -> None:
    text = str(db.explain("hot"))
    assert "    lets room@2s follow EVERY 2s\n" in text
    assert "    settles room@2s by temp\n" in text
    assert "    holds room@2s#waiting by temp\n" in text
    assert "  home -> stage 1, room 0: Δroom by temp" in text
    assert "  at home: room, a table: its changes come here first\n" in text
    assert "at home: room@" not in text
    found = db.explain("pairs").to_dict()["tasks"]  # type: ignore[union-attr]
    assert [one for room in found["rooms"] for one in room["synchronised"]] == [  # type: ignore[index]
        {"relation": "room@manual pairs", "policy": "MANUAL"}
    ]


def test_a_program_at_home_sees_relations_that_lie_away_one_after_the_other(folder: Path) -> None:
    """What changes in both of them in one epoch meets once."""
    with opened(folder) as db:
        query = "SELECT b.g, sum(a.n) AS s FROM a JOIN b ON a.k = b.k GROUP BY b.g"
        db.execute(f"""
            CREATE TABLE t (k INT, g INT);
            CREATE VIEW a AS SELECT k, count(*) AS n FROM t GROUP BY k;
            CREATE VIEW b AS SELECT k, g, count(*) AS n FROM t GROUP BY k, g;
            CREATE VIEW c STRATEGY 'viewlet' AS {query}
        """)
        assert db.engine.away is not None
        assert db.engine.away.holds("a")
        assert not db.engine.away.holds("c"), "maps are read amid the steps of an epoch"
        for n in range(5):
            db.insert("t", [(n % 2, n), (0, 1)])
            assert rows(db, "c") == sorted(map(tuple, map(dict.values, db.query(query, views=False).to_pylist())))
