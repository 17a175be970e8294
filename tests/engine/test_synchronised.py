"""Synchronised relations and refresh policies: when they move, what they take, and what is refused."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine import synchronising
from headwater.engine.engine import wall_clock
from tests.engine.support import Changes, bag, opened, refused, rows, store_rows, stores

ZERO = dt.datetime(1970, 1, 1)


def at(seconds: float) -> dt.datetime:
    return ZERO + dt.timedelta(seconds=seconds)


@pytest.fixture
def room() -> Iterator[hw.Database]:
    """A table of temperatures, and a clock that stands at 0."""
    db = opened()
    db.execute("ADVANCE CLOCK TO 0; CREATE TABLE room (id STRING PRIMARY KEY, temp INT)")
    yield db
    db.close()


def put(db: hw.Database, seconds: float, **temps: int | None) -> None:
    """One epoch at a moment: rows by key, None to delete one."""
    with db.epoch() as e:
        e.advance_clock(at(seconds))
        for name, temp in temps.items():
            if temp is None:
                e.delete_keys("room", [name])
            else:
                e.upsert("room", [(name, temp)])


# -- policies --


def test_every_ticks_at_multiples_of_its_period(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT id, temp FROM room")
    put(room, 1, a=1)
    assert rows(room, "v") == []
    put(room, 2, b=2)
    assert rows(room, "v") == [("a", 1), ("b", 2)]
    put(room, 3.5, a=3)
    assert rows(room, "v") == [("a", 1), ("b", 2)]
    put(room, 7, b=None)  # 4 and 6 have passed
    assert rows(room, "v") == [("a", 3)]
    put(room, 7.9, c=1)
    room.execute("ADVANCE CLOCK TO 8")
    assert rows(room, "v") == [("a", 3), ("c", 1)]


def test_a_tick_takes_the_net_change(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 10 SECONDS AS SELECT id, temp FROM room")
    put(room, 1, a=1, b=1)
    put(room, 10)
    seen = Changes(room)
    put(room, 11, a=2, c=5)
    put(room, 12, a=3, b=4)
    put(room, 13, b=1, c=None)
    put(room, 20)
    assert [one["v"] for _, one in seen.epochs if "v" in one] == [Counter({("a", 1): -1, ("a", 3): 1})]


def test_what_waits_is_added_up_before_the_tick(room: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synchronising, "MANY_WAITING", 10)
    room.execute("CREATE VIEW v REFRESH EVERY 100 SECONDS AS SELECT id, temp FROM room")
    for i in range(1, 40):
        put(room, i, a=i, b=i % 3)
    assert store_rows(room, "room@100s#waiting") <= 14
    put(room, 100)
    assert rows(room, "v") == [("a", 39), ("b", 0)]
    assert store_rows(room, "room@100s#waiting") == 0


def test_on_an_event(room: hw.Database) -> None:
    room.execute("""
        CREATE STREAM entered (id INT, kind STRING, ts TIMESTAMP);
        CREATE VIEW police AS SELECT ts FROM entered WHERE kind = 'POLICE';
        CREATE VIEW n REFRESH ON police AS SELECT kind, count(*) AS n FROM entered GROUP BY kind
    """)
    room.insert("entered", [(1, "car", at(1)), (2, "bus", at(1))])
    assert rows(room, "n") == []
    room.insert("entered", [(3, "POLICE", at(2))])
    assert rows(room, "n") == [("POLICE", 1), ("bus", 1), ("car", 1)]
    room.insert("entered", [(4, "car", at(3))])
    assert rows(room, "n") == [("POLICE", 1), ("bus", 1), ("car", 1)]


def test_a_row_that_leaves_a_synchronisation_stream_is_no_point(room: hw.Database) -> None:
    room.execute("""
        CREATE TABLE point (ts BIGINT);
        CREATE VIEW v REFRESH ON point AS SELECT id FROM room
    """)
    room.insert("point", [(1,)])
    put(room, 1, a=1)
    room.execute("DELETE FROM point WHERE ts = 1")
    assert rows(room, "v") == []
    room.insert("point", [(1,)])
    assert rows(room, "v") == [("a",)]


def test_manual_moves_at_refresh_and_others_do_not(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH MANUAL AS SELECT id FROM room; CREATE VIEW w REFRESH MANUAL AS SELECT * FROM v")
    put(room, 1, a=1)
    assert rows(room, "v") == []
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a",)]
    assert rows(room, "w") == []
    room.execute("REFRESH w")
    assert rows(room, "w") == [("a",)]


def test_refresh_of_a_view_with_another_policy_lets_it_tick(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 1 HOUR AS SELECT id FROM room")
    put(room, 1, a=1)
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a",)]
    ticked = room.execute("SHOW EPOCHS")[0].table.to_pylist()[-1]["ticked"]
    assert ticked == "1h"


def test_inputs_may_have_policies_of_their_own(room: hw.Database) -> None:
    room.execute("""
        CREATE VIEW sync2 AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 2 = 0;
        CREATE VIEW sync3 AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 3 = 0;
        CREATE TABLE other (id STRING PRIMARY KEY, x INT);
        CREATE VIEW j AS SELECT a.id, a.temp, b.x FROM R(room, sync2) a JOIN R(other, sync3) b ON a.id = b.id
    """)
    expected = {1: [], 2: [], 3: [("a", 2, 3)], 4: [("a", 4, 3)], 5: [("a", 4, 3)], 6: [("a", 6, 6)]}
    for second, held in expected.items():
        with room.epoch() as e:
            e.advance_clock(at(second))
            e.upsert("room", [("a", second)])
            e.upsert("other", [("a", second)])
        assert rows(room, "j") == held, second


def test_a_policy_of_the_view_holds_where_an_input_has_none_of_its_own(room: hw.Database) -> None:
    room.execute("""
        CREATE TABLE point (ts BIGINT);
        CREATE VIEW v REFRESH MANUAL AS
          SELECT a.id, a.temp AS now, b.temp AS then FROM R(room, point) a JOIN room b ON a.id = b.id
    """)
    put(room, 1, a=1)
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a", 1, 1)]  # REFRESH moves all of its inputs
    put(room, 2, a=2)
    room.insert("point", [(2,)])
    assert rows(room, "v") == [("a", 2, 1)]


def test_static_tables_need_no_policy(room: hw.Database) -> None:
    room.execute("""
        CREATE STATIC TABLE place (id STRING, floor INT);
        INSERT INTO place VALUES ('a', 3);
        CREATE VIEW v REFRESH MANUAL AS SELECT r.id, floor FROM room r JOIN place p ON r.id = p.id
    """)
    assert [one.name for one in room.engine.catalog if one.policy] == ["room@manual v"]
    put(room, 1, a=1)
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a", 3)]


def test_views_that_read_the_same_synchronised_relation_share_it_and_their_maps(room: hw.Database) -> None:
    room.execute("""
        CREATE VIEW v REFRESH EVERY 2 SECONDS STRATEGY 'tree' AS SELECT temp, count(*) AS n FROM room GROUP BY temp;
        CREATE VIEW w REFRESH EVERY 2 SECONDS AS SELECT max(temp) AS m FROM room
    """)
    assert len([one for one in room.engine.catalog if one.policy]) == 1
    put(room, 1, a=1)
    room.execute("CREATE VIEW x REFRESH EVERY 2 SECONDS AS SELECT id FROM room")
    assert rows(room, "x") == []  # as of the last tick, like the others
    put(room, 2, b=1)
    assert (rows(room, "v"), rows(room, "w"), rows(room, "x")) == ([(1, 2)], [(1,)], [("a",), ("b",)])


def test_views_over_views_never_see_half_an_epoch(room: hw.Database) -> None:
    room.execute("""
        CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT temp, count(*) AS n FROM room GROUP BY temp;
        CREATE VIEW w REFRESH EVERY 4 SECONDS AS SELECT n, count(*) AS times FROM v GROUP BY n;
        CREATE VIEW x AS SELECT w.times, v.temp FROM w JOIN v ON w.n = v.n
    """)
    rng = random.Random(3)
    held: dict[str, Counter[tuple[object, ...]]] = {"v": Counter(), "w": Counter()}
    for second in range(1, 30):
        put(room, second, **{rng.choice("abcd"): rng.randint(1, 3)})
        current = Counter(temp for _, temp in rows(room, "room"))
        if second % 2 == 0:
            held["v"] = Counter((temp, n) for temp, n in current.items())
        if second % 4 == 0:
            held["w"] = Counter((n, times) for n, times in Counter(n for _, n in held["v"]).items())
        assert bag(room, "v") == held["v"]
        assert bag(room, "w") == held["w"]
        joined = [(times, temp) for n, times in held["w"] for temp, m in held["v"] if m == n]
        assert bag(room, "x") == Counter(joined)


# -- streams, and what is kept --


def test_a_stream_that_keeps_nothing_is_not_kept_for_a_policy_either(room: hw.Database) -> None:
    room.execute("""
        CREATE STREAM s (a INT);
        CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT sum(a) AS a FROM s
    """)
    for second in range(1, 6):
        with room.epoch() as e:
            e.advance_clock(at(second))
            e.insert("s", [(second,)])
    assert rows(room, "v") == [(1 + 2 + 3 + 4,)]
    assert "s" not in stores(room) and "s@2s" not in stores(room)


def test_a_stream_that_is_kept_is_there_for_views_that_come_later(room: hw.Database) -> None:
    room.execute("CREATE STREAM s (a INT) RETAIN ALL")
    room.insert("s", [(1,), (2,)])
    room.execute("CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT a FROM s")
    assert rows(room, "v") == [(1,), (2,)]
    room.insert("s", [(3,)])
    room.execute("CREATE VIEW w REFRESH EVERY 2 SECONDS AS SELECT count(*) AS n FROM s")
    assert rows(room, "w") == [(2,)]
    room.execute("ADVANCE CLOCK TO 2")
    assert rows(room, "w") == [(3,)]


def test_only_what_views_use_of_a_stream_is_stored_for_them(room: hw.Database) -> None:
    room.execute("""
        CREATE STREAM s (a INT, b INT, c STRING);
        CREATE VIEW v REFRESH EVERY 2 SECONDS STRATEGY 'first order' AS
          SELECT x.a, y.b FROM s x JOIN s y ON x.a = y.b WHERE x.a > 1 AND y.b > 1
    """)
    room.insert("s", [(2, 2, "x"), (1, 1, "y"), (3, 2, "z")])
    room.execute("ADVANCE CLOCK TO 2")
    assert rows(room, "v") == [(2, 2), (2, 2)]
    assert stores(room) >= {"s@2s"} and "s" not in stores(room)
    room.insert("s", [(2, 3, "x")])
    room.execute("ADVANCE CLOCK TO 4")
    assert bag(room, "v") == Counter({(2, 2): 4, (3, 3): 1})


@pytest.mark.parametrize("form", ["text", "tree", "mermaid", "json"])
def test_explain_shows_synchronised_relations(room: hw.Database, form: str) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT temp, count(*) AS n FROM room GROUP BY temp")
    assert "room@2s" in str(room.explain("v", form)).replace("#64;", "@")


def test_status_says_since_when_something_waits_whatever_was_added_up(
    room: hw.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synchronising, "MANY_WAITING", 5)
    room.execute("CREATE VIEW v REFRESH MANUAL AS SELECT id FROM room")
    for i in range(1, 20):
        put(room, i, a=i, b=i)
    [v] = [one for one in room.status()["relations"] if one["name"] == "v"]  # type: ignore[attr-defined]
    [waits] = v["waiting"]
    assert waits["rows"] <= 10
    assert (waits["since_epoch"], waits["seconds"]) == (2, 18.0)


@pytest.mark.parametrize("strategy", ["tree", "viewlet", "first order", "recompute"])
def test_every_strategy_reads_synchronised_relations(room: hw.Database, strategy: str) -> None:
    room.execute(f"""
        CREATE TABLE place (id STRING, floor INT);
        CREATE VIEW v REFRESH EVERY 3 SECONDS STRATEGY '{strategy}' AS
          SELECT floor, sum(temp) AS temp FROM room r JOIN place p ON r.id = p.id GROUP BY floor
    """)
    rng = random.Random(5)
    held: list[tuple[object, ...]] = []
    for second in range(1, 20):
        with room.epoch() as e:
            e.advance_clock(at(second))
            e.upsert("room", [(rng.choice("abc"), rng.randint(0, 9))])
            e.insert("place", [(rng.choice("abc"), rng.randint(1, 2))])
        if second % 3 == 0:
            held = rows(room, "SELECT floor, sum(temp) FROM room r JOIN place p ON r.id = p.id GROUP BY floor")
        assert rows(room, "v") == held


def test_a_stream_that_was_made_late_and_keeps_all_can_be_refreshed_from(room: hw.Database) -> None:
    room.execute("""
        CREATE STREAM s (a INT) RETAIN ALL;
        CREATE VIEW v AS SELECT a FROM s;
        CREATE VIEW w REFRESH MANUAL AS SELECT a FROM s;
        INSERT INTO s VALUES (1);
        REFRESH v;
        REFRESH w;
        ALTER VIEW w REPLAN STRATEGY 'recompute'
    """)
    assert rows(room, "v") == rows(room, "w") == [(1,)]


def test_dropping_the_last_view_drops_what_it_was_synchronised_by(room: hw.Database) -> None:
    room.execute("""
        CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT id FROM room;
        CREATE VIEW w REFRESH EVERY 2 SECONDS AS SELECT temp FROM room
    """)
    room.execute("DROP VIEW v")
    assert {"room@2s", "room@2s#waiting"} <= stores(room)
    room.execute("DROP VIEW w")
    assert not {name for name in stores(room) if "@" in name}
    put(room, 2, a=1)


def test_a_synchronisation_stream_cannot_be_dropped_alone(room: hw.Database) -> None:
    room.execute("CREATE TABLE point (ts BIGINT); CREATE VIEW v AS SELECT id FROM R(room, point)")
    with refused(room, "HW105"):
        room.execute("DROP TABLE point")
    room.execute("DROP TABLE point CASCADE")
    assert [one.name for one in room.engine.catalog] == ["room"]


# -- restarts --


def test_what_waits_is_there_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute("""
            ADVANCE CLOCK TO 0;
            CREATE TABLE room (id STRING PRIMARY KEY, temp INT);
            CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT id, temp FROM room
        """)
        put(db, 1, a=1, b=2)
        put(db, 1, b=3)
    with opened(tmp_path) as db:
        assert db.engine.present() == at(1)  # the clock that was set by hand still stands
        assert rows(db, "v") == []
        status = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[attr-defined]
        assert status["v"]["state"] == "behind"
        put(db, 2)
        assert rows(db, "v") == [("a", 1), ("b", 3)]
        status = {one["name"]: one for one in db.status()["relations"]}  # type: ignore[attr-defined]
        assert status["v"]["state"] == "current"


def test_a_failing_epoch_leaves_what_waits_as_it_was(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT id FROM room")
    put(room, 1, a=1)
    with refused(room, "HW306"):
        put(room, 2, nobody=None)
    assert room.engine.present() == at(1)
    assert rows(room, "v") == []
    put(room, 2)
    assert rows(room, "v") == [("a",)]


def test_a_view_that_fails_at_a_tick_is_suspended_and_can_be_refreshed(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT id, 10 / temp AS x FROM room")
    put(room, 1, a=0, b=5)
    assert not room.engine.catalog.find("v").suspended  # type: ignore[union-attr]
    put(room, 2)
    assert room.engine.catalog.find("v").suspended  # type: ignore[union-attr]
    put(room, 3, a=2)
    put(room, 4)
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a", 5.0), ("b", 2.0)]


def test_a_suspended_view_that_is_refreshed_by_hand_takes_what_waits(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH MANUAL AS SELECT id, 10 / temp AS x FROM room")
    put(room, 1, a=0, b=5)
    assert "is suspended: " in room.execute("REFRESH v")[0].message
    with refused(room, "HW501"):
        room.execute("REFRESH v")
    put(room, 2, a=2)
    room.execute("REFRESH v")
    assert rows(room, "v") == [("a", 5.0), ("b", 2.0)]


# -- the clock --


def test_the_clock_does_not_go_back(room: hw.Database) -> None:
    room.execute("ADVANCE CLOCK TO TIMESTAMP '1970-01-01 00:01:00'")
    with refused(room, "HW333"):
        room.execute("ADVANCE CLOCK TO 59")
    with refused(room, "HW333"):
        put(room, 1)
    assert room.engine.present() == at(60)
    room.execute("ADVANCE CLOCK TO 60")


def test_a_wall_clock_that_goes_back_stands_still_for_epochs() -> None:
    moments = [at(10), at(5), at(12)]
    db = opened(clock=lambda: moments[0])
    db.execute("CREATE TABLE t (a INT)")
    clocks = []
    while moments:
        clocks.append(db.insert("t", [(1,)]).clock)
        del moments[0]
    assert clocks == [at(10), at(10), at(12)]
    db.close()


def test_the_clock_goes_again(room: hw.Database) -> None:
    before = wall_clock()
    room.execute("ADVANCE CLOCK TO NOW")
    assert before <= room.engine.present() <= wall_clock() + dt.timedelta(seconds=1)


def test_the_clock_stream_has_every_second_that_passes(room: hw.Database) -> None:
    room.execute("CREATE VIEW c AS SELECT TimePoint FROM clockStr")
    room.execute("ADVANCE CLOCK TO 3.5; ADVANCE CLOCK TO 3.9; ADVANCE CLOCK TO 5")
    assert rows(room, "c") == [(1,), (2,), (3,), (4,), (5,)]


def test_by_the_wall_clock_views_move_by_themselves(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute("""
            CREATE TABLE t (a INT);
            CREATE VIEW every REFRESH EVERY 200 MILLISECONDS AS SELECT a FROM t;
            CREATE VIEW sync AS SELECT TimePoint FROM R(clockStr);
            CREATE VIEW on_clock AS SELECT a FROM R(t, sync)
        """)
        db.insert("t", [(1,)])
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (rows(db, "every") and rows(db, "on_clock")):
            time.sleep(0.05)
        assert rows(db, "every") == rows(db, "on_clock") == [(1,)]


def test_a_clock_that_goes_again_after_a_restart_makes_views_move(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.execute("""
            ADVANCE CLOCK TO 0;
            CREATE TABLE t (a INT);
            CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT a FROM t
        """)
    with opened(tmp_path) as db:
        db.execute("ADVANCE CLOCK TO NOW")
        while not db.engine.waiting["t@2s"]:  # an insert may come just when it is time
            db.insert("t", [(1,)])
        asked = db.engine.epoch
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and db.engine.epoch == asked:
            time.sleep(0.02)
        assert db.engine.epoch > asked  # an epoch that nobody asked for
        assert set(rows(db, "v")) == {(1,)}


def test_the_clock_stream_ticks_before_anything_else_happens() -> None:
    with opened() as db:
        db.execute("CREATE VIEW c AS SELECT TimePoint FROM clockStr")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not rows(db, "c"):
            time.sleep(0.05)
        found = rows(db, "c")
        assert found
        assert all(abs(second - time.time()) < 20 for (second,) in found)  # type: ignore[operator]


def test_by_the_wall_clock_rows_leave_a_window_by_themselves() -> None:
    with opened() as db:
        db.execute("""
            CREATE STREAM s (a INT, at TIMESTAMP);
            CREATE VIEW fresh AS SELECT a FROM s WHERE at > now() - INTERVAL 4 SECONDS
        """)
        db.insert("s", [(1, wall_clock())])
        assert rows(db, "fresh") == [(1,)]
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and rows(db, "fresh"):
            time.sleep(0.05)
        assert rows(db, "fresh") == []
        epochs = db.engine.epoch
        time.sleep(2.2)
        assert db.engine.epoch == epochs  # nothing is left that could leave


def test_the_same_story_gives_the_same_epochs() -> None:
    stories = []
    for _ in range(2):
        db = opened()
        db.execute("""
            ADVANCE CLOCK TO 100;
            CREATE TABLE room (id STRING PRIMARY KEY, temp INT);
            CREATE VIEW sync AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 3 = 0;
            CREATE VIEW v REFRESH EVERY 2 SECONDS AS SELECT temp, count(*) AS n FROM room GROUP BY temp;
            CREATE VIEW w AS SELECT v.n FROM R(v, sync)
        """)
        seen = Changes(db)
        rng = random.Random(7)
        for second in range(101, 120):
            put(db, second, **{rng.choice("abc"): rng.randint(1, 3)})
        stories.append((seen.epochs, db.execute("SHOW EPOCHS")[0].table.to_pylist()))
        db.close()
    assert stories[0] == stories[1]


# -- refused --


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE VIEW v REFRESH ON v AS SELECT id FROM room", "HW181"),
        ("CREATE VIEW v REFRESH ON nobody AS SELECT id FROM room", "HW102"),
        ("CREATE VIEW v REFRESH ON room AS SELECT id FROM room", "HW180"),
        ("CREATE VIEW v AS SELECT id FROM R(room, room)", "HW180"),
        ("CREATE VIEW v AS SELECT id FROM R(room, nobody)", "HW102"),
        ("CREATE VIEW v AS SELECT id FROM R(nobody)", "HW102"),
        ("CREATE VIEW v AS SELECT id FROM R(room, a, b)", "HW183"),
        ("CREATE VIEW v AS SELECT id FROM R(1)", "HW183"),
        ("CREATE VIEW v AS WITH w AS (SELECT id FROM room) SELECT id FROM R(w, clockStr)", "HW183"),
        ("CREATE VIEW v REFRESH MANUAL AS SELECT id FROM room WHERE now() > TIMESTAMP '2020-01-01'", "HW218"),
        ("CREATE VIEW v AS SELECT id FROM S(room)", "HW207"),
        ("CREATE VIEW v REFRESH EVERY 0 SECONDS AS SELECT id FROM room", "HW004"),
        ("SELECT * FROM R(room, clockStr)", "HW102"),
        ("CREATE TABLE clockstr (a INT)", "HW108"),
        ("CREATE TABLE `a@b` (a INT)", "HW108"),
        ("CREATE TABLE `2s` (a BIGINT)", "HW108"),
        ("CREATE TABLE `Manual v` (a BIGINT)", "HW108"),
        ("ADVANCE CLOCK TO 'yesterday'", "HW004"),
        ("ADVANCE CLOCK TO", "HW001"),
        ("ADVANCE STREAM room TO 5", "HW337"),
    ],
)
def test_refused(room: hw.Database, statement: str, code: str) -> None:
    with refused(room, code):
        room.execute(statement)
    assert [one.name for one in room.engine.catalog] == ["room"]


def test_names_of_ours_cannot_be_changed(room: hw.Database) -> None:
    room.execute("CREATE VIEW v REFRESH ON clockStr AS SELECT id FROM room")
    with refused(room, "HW301"):
        room.execute("INSERT INTO clockStr VALUES (1)")
    with refused(room, "HW301"):
        room.execute("INSERT INTO `room@clockStr` VALUES ('a', 1)")
    put(room, 1, a=1)
    assert rows(room, "SELECT id FROM R(room, clockStr)") == [("a",)]
    for statement in ("SELECT * FROM `room@clockStr`", "DROP TABLE `room@clockStr`", "DESCRIBE `room@clockStr`"):
        with refused(room, "HW102"):
            room.execute(statement)
    with refused(room, "HW334"):
        room.advance_clock("1970-01-02")  # type: ignore[arg-type]
