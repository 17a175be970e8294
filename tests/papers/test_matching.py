"""Ghanem, Elmagarmid, Larson, Aref: Supporting Views in Data Stream Management Systems (2010), sections 7 and 10.6.

Examples 10 and 11, and the two aggregate queries of figure 12, which share a finer one where that pays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.borrowing import contained, over_views
from headwater.plan.peel import peel
from headwater.sql.lower import lower_view
from headwater.sql.parse import parse
from headwater.sql.statements import CreateView
from headwater.store.policies import Policy, When
from tests.engine.support import opened, rows

ZERO = dt.datetime(1970, 1, 1)


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with opened() as one:
        one.execute("ADVANCE CLOCK TO 0")
        yield one


def test_example_10_the_peeled_form_of_a_join(db: hw.Database) -> None:
    """σ(ℜ_Sync1(S1) ⋈ ℜ_Sync2(S2)) is σ(ℜ(S1) ⋈ ℜ(S2)) at the points that Sync1 and Sync2 have in common."""
    db.execute("""
        CREATE TABLE S1 (a INT, x INT);
        CREATE TABLE S2 (a INT, y INT);
        CREATE STREAM Sync1 (t INT);
        CREATE STREAM Sync2 (t INT);
        CREATE VIEW Q AS SELECT x, y FROM R(S1, Sync1) s1, R(S2, Sync2) s2 WHERE s1.a = s2.a AND x > 5;
        CREATE VIEW finest AS SELECT x, y FROM S1 s1, S2 s2 WHERE s1.a = s2.a AND x > 5
    """)
    synchronised = {one.name: (one.of, one.policy) for one in db.engine.catalog if one.policy is not None}
    peeled = peel(db.algebra("Q"), synchronised)
    assert str(peeled.data) == str(db.algebra("finest"))
    assert peeled.points == {Policy(When.ON, name="Sync1"), Policy(When.ON, name="Sync2")}
    assert peeled.mixed


@pytest.fixture
def rooms(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE TABLE RoomTemp (RoomID STRING PRIMARY KEY, Temp INT);
        CREATE VIEW HotRooms2 REFRESH EVERY 2 SECONDS AS SELECT RoomID, Temp FROM RoomTemp WHERE Temp > 80
    """)
    return db


def test_example_11_a_view_that_is_refreshed_less_often(rooms: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """T4 = ℜ_Sync4(ξ(σ_Temp>100(ξ(ℜ(HotRooms2))))), because 100 is above 80 and multiples of 4 are multiples of 2."""
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)  # whatever it costs
    rooms.execute("CREATE VIEW T4 REFRESH EVERY 4 SECONDS AS SELECT RoomID, Temp FROM RoomTemp WHERE Temp > 100")
    view = rooms.find("T4")
    assert view.program is not None and view.program.borrowed is not None
    assert view.program.inputs == ("HotRooms2@4s",)
    assert "HotRooms2@4s" in str(view.program.query) and "> 100" in str(view.program.query)
    assert rooms.engine.catalog.find("RoomTemp@4s") is None  # nothing else was made
    rooms.execute(
        "CREATE VIEW alone REFRESH EVERY 4 SECONDS STRATEGY 'first order' AS SELECT * FROM RoomTemp WHERE Temp > 100"
    )
    for second, (room, degrees) in enumerate([("a", 120), ("b", 90), ("a", 130), ("b", 140), ("a", 70), ("c", 101)], 1):
        with rooms.epoch() as epoch:
            epoch.advance_clock(ZERO + dt.timedelta(seconds=second))
            epoch.upsert("RoomTemp", [(room, degrees)])
        assert rows(rooms, "SELECT * FROM T4") == rows(rooms, "SELECT * FROM alone")
    rooms.execute("ADVANCE CLOCK TO 8")
    assert rows(rooms, "SELECT * FROM T4") == rows(rooms, "SELECT * FROM alone") == [("b", 140), ("c", 101)]
    with pytest.raises(hw.UserError, match="HW105"):
        rooms.execute("DROP VIEW HotRooms2")


def test_a_view_that_is_refreshed_at_other_times_does_not_answer(
    rooms: hw.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    for number, refresh in enumerate(("EVERY 3 SECONDS", "EVERY 1 SECONDS", "MANUAL", "EVERY EPOCH")):
        rooms.execute(f"CREATE VIEW v{number} REFRESH {refresh} AS SELECT RoomID FROM RoomTemp WHERE Temp > 100")
        program = rooms.find(f"v{number}").program
        assert program is not None and program.borrowed is None
    rooms.execute("CREATE VIEW same REFRESH EVERY 2 SECONDS AS SELECT RoomID FROM RoomTemp WHERE Temp > 100")
    program = rooms.find("same").program
    assert program is not None and program.inputs == ("HotRooms2@2s",)


def test_proposition_1_streams_of_points(db: hw.Database) -> None:
    db.execute("""
        CREATE VIEW Sync2 AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 2 = 0;
        CREATE VIEW Sync4 AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 4 = 0;
        CREATE VIEW Sync3 AS SELECT TimePoint FROM R(clockStr) WHERE TimePoint mod 3 = 0
    """)
    two, four, three = (Policy(When.ON, name=f"Sync{n}") for n in (2, 4, 3))
    catalog = db.engine.catalog
    assert contained(four, two, catalog)
    assert not contained(two, four, catalog)
    assert not contained(three, two, catalog)
    assert contained(two, two, catalog)


# -- figure 12 ---------------------------------------------------------------------------------------------------------

SHARED = "SELECT Building, Temp, COUNT(*) AS n FROM Rooms WHERE Temp > 80 GROUP BY Building, Temp"
BUILDINGS = "SELECT Building, COUNT(*) AS n FROM Rooms WHERE Temp > 80 GROUP BY Building"


def figure_12(db: hw.Database, count: int, buildings: int, temperatures: int, epochs: int = 4) -> hw.Database:
    """Rooms that all report in every epoch, and the view that groups them by building and temperature."""
    db.execute(f"""
        CREATE TABLE Rooms (RoomID INT PRIMARY KEY, Building INT NOT NULL, Temp INT NOT NULL);
        CREATE VIEW shared AS {SHARED}
    """)
    for epoch in range(epochs):
        temps = [81 + (room * 7 + epoch * 3) % temperatures for room in range(count)]
        db.upsert("Rooms", [(room, room % buildings, temp) for room, temp in enumerate(temps)])
    return db


def planned(db: hw.Database, query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a new view would read, and what is said about it."""
    [statement] = parse(f"CREATE VIEW groups AS {query}")
    assert isinstance(statement, CreateView)
    relations = db.relations_for_views()
    node = lower_view(statement.query, relations, statement.source)
    found = over_views(db, "groups", node, None, relations, True)
    return found.program.inputs, found.notes


def test_10_6_2_few_groups_of_many_rooms_are_shared(db: hw.Database) -> None:
    figure_12(db, 60_000, 20, 10)
    assert planned(db, BUILDINGS) == (("shared",), ())
    db.execute(f"CREATE VIEW buildings AS {BUILDINGS}")
    db.execute(f"CREATE VIEW alone STRATEGY 'first order' AS {BUILDINGS}")
    db.upsert("Rooms", [(room, 3, 99) for room in range(50)])
    assert rows(db, "SELECT * FROM buildings") == rows(db, "SELECT * FROM alone")
    assert "which its text does not name" in str(db.explain("buildings"))


def test_10_6_3_as_many_groups_as_rooms_are_not(db: hw.Database) -> None:
    figure_12(db, 2_000, 100, 20)
    inputs, [note] = planned(db, BUILDINGS)
    assert inputs == ("Rooms",)
    assert note.startswith("it could be computed from shared") and note.endswith("which is not worth it")


def test_a_view_that_lends_can_be_dropped(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it without having asked for it goes back to what it names."""
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    figure_12(db, 50, 5, 10)
    db.execute(f"CREATE VIEW buildings AS {BUILDINGS}; CREATE VIEW asked AS SELECT n FROM shared")
    assert db.find("buildings").reads == ("shared",)
    with pytest.raises(hw.UserError, match="HW105"):
        db.execute("DROP VIEW shared")
    db.execute("DROP VIEW asked; DROP VIEW shared")
    assert db.find("buildings").reads == ("Rooms",)
    db.execute(f"CREATE VIEW alone STRATEGY 'first order' AS {BUILDINGS}")
    for degrees in (70, 90, 95):
        db.upsert("Rooms", [(room, room % 3, degrees) for room in range(0, 50, 7)])
        assert rows(db, "SELECT * FROM buildings") == rows(db, "SELECT * FROM alone")


def test_cascade_takes_only_what_names_it(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    figure_12(db, 50, 5, 10)
    db.execute(f"""
        CREATE VIEW buildings AS {BUILDINGS};
        CREATE VIEW asked AS SELECT Building, n FROM shared WHERE Temp > 85;
        CREATE VIEW over AS SELECT n FROM shared WHERE Temp > 85
    """)
    assert [db.find(name).reads for name in ("buildings", "over")] == [("shared",), ("asked",)]
    before = rows(db, "SELECT * FROM buildings")
    db.execute("DROP VIEW shared CASCADE")
    assert [one.name for one in db.engine.catalog] == ["Rooms", "buildings"]
    assert rows(db, "SELECT * FROM buildings") == before
    db.execute("DELETE FROM Rooms WHERE Building = 1")
    assert len(rows(db, "SELECT * FROM buildings")) == len(before) - 1


def test_a_view_that_lends_rows_of_a_stream_that_are_gone_stays(
    db: hw.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    db.execute("""
        CREATE STREAM s (a INT, b INT);
        CREATE VIEW fine AS SELECT a, b, COUNT(*) AS n FROM s GROUP BY a, b;
        CREATE VIEW coarse AS SELECT a, COUNT(*) AS n FROM s GROUP BY a
    """)
    assert db.find("coarse").reads == ("fine",)
    db.execute("INSERT INTO s VALUES (1, 2), (1, 3)")
    assert rows(db, "SELECT * FROM coarse") == [(1, 2)]
    with pytest.raises(hw.UserError, match=r"HW105.*coarse, which cannot be planned without it.*stream s are not kept"):
        db.execute("DROP VIEW fine")
    db.execute("INSERT INTO s VALUES (1, 2)")
    assert rows(db, "SELECT * FROM coarse") == [(1, 3)]
    db.execute("DROP VIEW fine CASCADE")
    assert db.engine.catalog.find("coarse") is None


def test_what_may_fail_does_not_lend(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    db.execute("""
        CREATE TABLE t (a INT, b BIGINT);
        CREATE VIEW v AS SELECT a, b, 1 / a AS x FROM t;
        CREATE VIEW w AS SELECT a, SUM(b) AS b FROM t GROUP BY a;
        CREATE VIEW x AS SELECT a FROM t;
        CREATE VIEW y AS SELECT SUM(b) AS b FROM t
    """)
    assert db.find("x").reads == ("t",)
    assert db.find("y").reads == ("t",)


def test_a_hint_keeps_views_apart(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    db.execute("""
        CREATE TABLE t (a INT, b INT);
        CREATE VIEW v AS SELECT a, b FROM t;
        CREATE VIEW apart AS SELECT /*+ NO_VIEWS */ a FROM t;
        CREATE VIEW over AS SELECT a FROM t
    """)
    assert db.find("apart").reads == ("t",)
    assert db.find("over").reads == ("v",)


def test_it_is_known_after_a_restart(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.borrowing.WORTH", 100.0)
    with hw.connect(f"{tmp_path}/w") as db:
        db.execute("""
            CREATE TABLE t (a INT, b INT);
            CREATE VIEW v AS SELECT a, b FROM t;
            CREATE VIEW over AS SELECT a FROM t WHERE b > 1;
            INSERT INTO t VALUES (1, 2), (2, 1)
        """)
    with hw.connect(f"{tmp_path}/w") as db:
        assert isinstance(db, hw.Database)
        assert db.find("over").reads == ("v",)
        assert db.algebra("over").relations == {"t"}
        db.execute("DROP VIEW v; INSERT INTO t VALUES (5, 5)")
        assert rows(db, "SELECT * FROM over") == [(1,), (5,)]
