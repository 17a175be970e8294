"""Ghanem, Elmagarmid, Larson, Aref: Supporting Views in Data Stream Management Systems (2010).

The queries P1 to P7 and T1 to T5, the examples 1 to 9 and the figures 1 to 5, with the paper's tuples. What the paper
writes with ℜ and a subscript is written `R(S, Sync)`; `5 < x ≤ 7` is two conditions; strings have quotes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

import headwater as hw
from tests.engine.support import opened, rows

ZERO = dt.datetime(1970, 1, 1)
Tuple = tuple[object, ...]


def moment(seconds: int) -> dt.datetime:
    return ZERO + dt.timedelta(seconds=seconds)


class Tagged:
    """A view's output as the paper writes it: ("+", (a, 99), 1) for +<a, 99>1."""

    def __init__(self, db: hw.Database, view: str) -> None:
        self._subscription = db.subscribe(view, timeout=0)
        self._view = view
        self._db = db
        list(self._subscription)

    def read(self) -> list[tuple[str, Tuple, int]]:
        """What has come since the last call, each with the time of its epoch."""
        clocks = {one["number"]: one["clock"] for one in self._db.execute("SHOW EPOCHS")[0].table.to_pylist()}
        out = []
        for change in self._subscription:
            values = tuple(value for name, value in change.items() if not name.startswith("_"))
            out.append((change["_op"], values, int((clocks[change["_epoch"]] - ZERO).total_seconds())))
        return out


# -- the room temperature application --


@pytest.fixture
def rooms() -> Iterator[hw.Database]:
    db = opened()
    db.execute("""
        ADVANCE CLOCK TO 0;
        REGISTER SOURCE TemperatureSource (string RoomID, int Temperature)
        FROM port5501;
        CREATE TAGGED STREAM RoomTempStr
        OVER TemperatureSource KEY RoomID
    """)
    yield db
    db.close()


def report(db: hw.Database, at: int, *readings: tuple[str, int]) -> None:
    """One moment: raw tuples arrive at the source."""
    with db.epoch() as e:
        e.advance_clock(moment(at))
        if readings:
            e.insert("TemperatureSource", list(readings))


#: Figure 1 (a): the raw input; a's second reading is an update.
INPUT = {1: ("a", 99), 2: ("b", 75), 3: ("c", 80), 4: ("a", 95)}


def test_example_1_and_figure_1_the_time_varying_relation(rooms: hw.Database) -> None:
    rooms.execute("CREATE STREAMED VIEW Whole AS SELECT * FROM R(RoomTempStr) R")
    tagged = Tagged(rooms, "Whole")
    expected = {
        1: [("a", 99, 1)],
        2: [("a", 99, 1), ("b", 75, 2)],
        3: [("a", 99, 1), ("b", 75, 2), ("c", 80, 3)],
        4: [("a", 95, 4), ("b", 75, 2), ("c", 80, 3)],
    }
    for at, reading in INPUT.items():
        report(rooms, at, reading)
        assert rows(rooms, "SELECT * FROM R(RoomTempStr)") == expected[at]
    assert tagged.read() == [
        ("+", ("a", 99, 1), 1),
        ("+", ("b", 75, 2), 2),
        ("+", ("c", 80, 3), 3),
        ("u", ("a", 95, 4), 4),
    ]


def test_two_applications_interpret_one_source_differently(rooms: hw.Database) -> None:
    """Section 4.1: in the first a room's reading replaces its last one, in the second readings only come."""
    rooms.execute("CREATE TAGGED STREAM TempStr OVER TemperatureSource")
    rooms.execute("CREATE VIEW n AS SELECT count(*) AS n FROM R(TempStr)")
    rooms.execute("CREATE VIEW m AS SELECT count(*) AS n FROM R(RoomTempStr)")
    for at, reading in INPUT.items():
        report(rooms, at, reading)
    assert rows(rooms, "n") == [(4,)]
    assert rows(rooms, "m") == [(3,)]


def test_example_2_query_t1_hot_rooms(rooms: hw.Database) -> None:
    query = "RoomID, Temperature FROM R(RoomTempStr) R WHERE R.Temperature > 80"
    rooms.execute(f"CREATE STREAMED VIEW HotRooms AS SELECT {query}")
    tagged = Tagged(rooms, "HotRooms")
    for at, reading in INPUT.items():
        report(rooms, at, reading)
    report(rooms, 5, ("a", 79), ("b", 81))
    assert tagged.read() == [
        ("+", ("a", 99), 1),
        ("u", ("a", 95), 4),
        ("-", ("a", 95), 5),
        ("+", ("b", 81), 5),
    ]
    [asked] = rooms.execute("SELECT STREAMED RoomID, Temperature FROM R(HotRooms) R WHERE R.Temperature > 80")
    assert asked.table is not None
    assert asked.table.to_pylist() == [{"_epoch": 6, "_op": "+", "RoomID": "b", "Temperature": 81, "_old": None}]


def test_an_update_carries_the_old_values(rooms: hw.Database) -> None:
    """Section 8: the Tagger is the first to attach them."""
    rooms.execute("CREATE STREAMED VIEW Whole AS SELECT RoomID, Temperature FROM R(RoomTempStr)")
    report(rooms, 1, ("a", 99))
    report(rooms, 2, ("a", 95))
    with rooms.subscribe("Whole", from_epoch=0, timeout=0) as changes:
        assert [change["_old"] for change in changes] == [None, {"RoomID": "a", "Temperature": 99}]


def test_query_t2_hotter_rooms(rooms: hw.Database) -> None:
    rooms.execute("""
        CREATE STREAMED VIEW HotRooms AS SELECT RoomID, Temperature FROM R(RoomTempStr) R WHERE R.Temperature > 80;
        CREATE STREAMED VIEW T2 AS SELECT RoomID, Temperature FROM R(HotRooms) R WHERE R.Temperature > 100
    """)
    tagged = Tagged(rooms, "T2")
    report(rooms, 1, ("a", 99))
    report(rooms, 2, ("a", 101))
    report(rooms, 3, ("a", 85))
    assert tagged.read() == [("+", ("a", 101), 2), ("-", ("a", 101), 3)]


SYNC = "CREATE STREAMED VIEW Sync{i} AS SELECT C.TimePoint FROM R(clockStr) C WHERE C.TimePoint mod {i} = 0"


def test_example_6_synchronisation_streams_from_the_clock() -> None:
    db = opened()
    db.execute("ADVANCE CLOCK TO TIMESTAMP '1969-12-31 23:59:59'")
    db.execute(SYNC.format(i=2))
    tagged = Tagged(db, "Sync2")
    for at in range(6):
        db.execute(f"ADVANCE CLOCK TO {at}")
    assert tagged.read() == [("+", (0,), 0), ("+", (2,), 2), ("+", (4,), 4)]
    db.close()


def test_example_5_query_t3_and_figure_2_a_synchronised_relation(rooms: hw.Database) -> None:
    rooms.execute(SYNC.format(i=2))
    rooms.execute("""
        CREATE STREAMED VIEW HotRooms2 AS
        SELECT RoomID, Temperature
        FROM R(RoomTempStr, Sync2) R
        WHERE R.Temperature > 80;
        CREATE VIEW Whole AS SELECT * FROM R(RoomTempStr, Sync2)
    """)
    expected = {
        1: [],
        2: [("a", 99, 1), ("b", 75, 2)],
        3: [("a", 99, 1), ("b", 75, 2)],
        4: [("a", 95, 4), ("b", 75, 2), ("c", 80, 3)],
    }
    tagged = Tagged(rooms, "HotRooms2")
    for at, reading in INPUT.items():
        report(rooms, at, reading)
        assert rows(rooms, "SELECT * FROM R(RoomTempStr, Sync2)") == rows(rooms, "Whole") == expected[at]
    assert tagged.read() == [("+", ("a", 99), 2), ("u", ("a", 95), 4)]


def test_example_8_and_figure_3_from_the_relation_to_a_stream(rooms: hw.Database) -> None:
    rooms.execute(SYNC.format(i=2))
    rooms.execute("CREATE STREAMED VIEW Sout AS SELECT * FROM R(RoomTempStr, Sync2)")
    tagged = Tagged(rooms, "Sout")
    for at, reading in INPUT.items():
        report(rooms, at, reading)
    assert tagged.read() == [
        ("+", ("a", 99, 1), 2),
        ("+", ("b", 75, 2), 2),
        ("u", ("a", 95, 4), 4),
        ("+", ("c", 80, 3), 4),
    ]


def test_the_stream_is_minimal(rooms: hw.Database) -> None:
    """Section 6.2.2: one update a key, however often it was modified; and section 8: what came and went is not seen."""
    rooms.execute("CREATE TABLE Sync (ts BIGINT)")
    rooms.execute("CREATE STREAMED VIEW Sout AS SELECT RoomID, Temperature FROM R(RoomTempStr, Sync)")
    tagged = Tagged(rooms, "Sout")
    report(rooms, 1, ("a", 70), ("b", 70))
    rooms.insert("Sync", [(1,)])
    tagged.read()
    for at, degrees in enumerate((71, 72, 73), 2):
        report(rooms, at, ("a", degrees), ("b", degrees), ("c", degrees))
    report(rooms, 5, ("b", 70))
    with rooms.epoch() as e:
        e.delete_keys("RoomTempStr", ["c"])
    rooms.insert("Sync", [(5,)])
    # b came back to what it was, but at another time: TS is not in the view
    assert [(op, values) for op, values, _ in tagged.read()] == [("u", ("a", 73))]


def test_query_t4_from_the_view_of_t3(rooms: hw.Database) -> None:
    rooms.execute(SYNC.format(i=2))
    rooms.execute(SYNC.format(i=4))
    rooms.execute("""
        CREATE STREAMED VIEW HotRooms2 AS
          SELECT RoomID, Temperature FROM R(RoomTempStr, Sync2) R WHERE R.Temperature > 80;
        CREATE STREAMED VIEW T4 AS SELECT RoomID, Temperature FROM R(HotRooms2, Sync4) R WHERE R.Temperature > 100;
        CREATE STREAMED VIEW T4_alone AS
          SELECT RoomID, Temperature FROM R(RoomTempStr, Sync4) R WHERE R.Temperature > 100
    """)
    both = Tagged(rooms, "T4"), Tagged(rooms, "T4_alone")
    for at, degrees in enumerate((99, 105, 110, 101, 90, 102, 99, 120), 1):
        report(rooms, at, ("a", degrees))
        assert rows(rooms, "T4") == rows(rooms, "T4_alone")
    first, second = (one.read() for one in both)
    assert first == second == [("+", ("a", 101), 4), ("u", ("a", 120), 8)]


def test_query_t5_an_event_of_the_rooms(rooms: hw.Database) -> None:
    rooms.execute("""
        CREATE STREAMED VIEW Alarm AS SELECT R.TS FROM R(RoomTempStr) R WHERE R.Temperature > 120;
        CREATE STREAMED VIEW T5 AS SELECT RoomID, Temperature FROM R(RoomTempStr, Alarm) R WHERE R.Temperature > 100
    """)
    tagged = Tagged(rooms, "T5")
    report(rooms, 1, ("a", 110))
    report(rooms, 2, ("b", 105))
    report(rooms, 3, ("c", 121))
    report(rooms, 4, ("a", 115))
    report(rooms, 5, ("c", 122))
    assert sorted(tagged.read()) == sorted(
        [
            ("+", ("a", 110), 3),
            ("+", ("b", 105), 3),
            ("+", ("c", 121), 3),
            ("u", ("a", 115), 5),
            ("u", ("c", 122), 5),
        ]
    )


def test_example_9_and_figure_4_joining_relations_with_different_synchronisation() -> None:
    db = opened()
    db.execute("ADVANCE CLOCK TO TIMESTAMP '1969-12-31 23:59:59'")
    for i in (2, 3):
        db.execute(SYNC.format(i=i))
        db.execute(f"CREATE TABLE S{i} (ID INT PRIMARY KEY, T INT)")
    db.execute("""
        CREATE STREAMED VIEW O AS
        select R2.ID, R2.T as T2, R3.T as T3
        from R(S2, Sync2) R2, R(S3, Sync3) R3
        where R2.ID = R3.ID
    """)
    tagged = Tagged(db, "O")
    for at in range(7):
        with db.epoch() as e:
            e.advance_clock(moment(at))
            e.upsert("S2", [(1, at)])
            e.upsert("S3", [(1, at)])
    # refreshed at 2, 3, 4 and 6; each side as of its own last point
    assert tagged.read() == [
        ("+", (1, 0, 0), 0),
        ("u", (1, 2, 0), 2),
        ("u", (1, 2, 3), 3),
        ("u", (1, 4, 3), 4),
        ("u", (1, 6, 6), 6),
    ]
    db.close()


# -- the parking lot application --


@pytest.fixture
def lot() -> Iterator[hw.Database]:
    db = opened()
    db.execute("ADVANCE CLOCK TO 0")
    for i, port in ((1, 5501), (2, 5502)):
        db.execute(f"""
            REGISTER SOURCE Gate{i} (int VID, string VType, string VOwner) FROM port{port};
            CREATE TAGGED STREAM S{i} OVER Gate{i}
        """)
    yield db
    db.close()


CAR, BUS, POLICE, JOE = (1, "car", "ANN"), (2, "bus", "CITY"), (3, "POLICE", "CITY"), (4, "car", "JOE DOE")


def pass_gates(db: hw.Database, at: int, enter: tuple[Tuple, ...] = (), leave: tuple[Tuple, ...] = ()) -> None:
    with db.epoch() as e:
        e.advance_clock(moment(at))
        if enter:
            e.insert("Gate1", list(enter))
        if leave:
            e.insert("Gate2", list(leave))


def test_example_2_query_p1_vehicles_inside(lot: hw.Database) -> None:
    lot.execute("""
        CREATE STREAMED VIEW P1 AS
        SELECT R1.VID, R1.VType
        FROM R(S1) R1 - R(S2) R2
    """)
    tagged = Tagged(lot, "P1")
    pass_gates(lot, 1, enter=(CAR,))
    pass_gates(lot, 2, enter=(BUS,))
    pass_gates(lot, 3, leave=(CAR,))
    pass_gates(lot, 4, enter=(CAR,))  # it comes back
    assert tagged.read() == [
        ("+", (1, "car"), 1),
        ("+", (2, "bus"), 2),
        ("-", (1, "car"), 3),
        ("+", (1, "car"), 4),
    ]


PARK_LOT = """
    CREATE STREAMED VIEW ParkLot AS
    SELECT R1.VID, R1.VType
    FROM R(S1) R1 - R(S2) R2
"""


def test_example_3_query_p2_over_the_view_of_p1(lot: hw.Database) -> None:
    lot.execute(PARK_LOT)
    lot.execute("""
        CREATE STREAMED VIEW P2 AS
        SELECT P.VType, Count(P.VID)
        FROM R(ParkLot) P
        GROUP BY P.VType
    """)
    tagged = Tagged(lot, "P2")
    pass_gates(lot, 1, enter=(CAR,))
    pass_gates(lot, 2, enter=(JOE,))
    pass_gates(lot, 3, leave=(CAR, JOE))
    assert tagged.read() == [("+", ("car", 1), 1), ("u", ("car", 2), 2), ("-", ("car", 2), 3)]


def test_query_p3_is_joes_car_in_the_lot(lot: hw.Database) -> None:
    """Section 4.5: an ad hoc query over a COMPLETE view."""
    lot.execute("""
        CREATE COMPLETE VIEW CompParkLot AS
        SELECT R1.VID, R1.VType, R1.VOwner
        FROM R(S1) R1 - R(S2) R2
    """)
    asked = "SELECT * FROM CompParkLot C WHERE C.VOwner = 'JOE DOE'"
    pass_gates(lot, 1, enter=(CAR,))
    assert rows(lot, asked) == []
    pass_gates(lot, 2, enter=(JOE,))
    assert rows(lot, asked) == [JOE]
    pass_gates(lot, 3, leave=(JOE,))
    assert rows(lot, asked) == []


def test_queries_p4_and_p5_and_figure_5_a_pipeline_of_two_views(lot: hw.Database) -> None:
    lot.execute(SYNC.format(i=2))
    lot.execute(SYNC.format(i=4))
    lot.execute("""
        CREATE STREAMED VIEW ParkLot2 AS
        SELECT R1.VID, R1.VType
        FROM R(S1, Sync2) R1 - R(S2, Sync2) R2;
        CREATE STREAMED VIEW P5 AS
        SELECT P.VType, Count(P.VID)
        FROM R(ParkLot2, Sync4) P
        GROUP BY P.VType
    """)
    p4, p5 = Tagged(lot, "ParkLot2"), Tagged(lot, "P5")
    pass_gates(lot, 1, enter=(CAR, BUS))
    pass_gates(lot, 2, enter=(JOE,))
    pass_gates(lot, 3, leave=(BUS,))
    pass_gates(lot, 4)
    pass_gates(lot, 5, enter=(BUS,))
    pass_gates(lot, 6, leave=(CAR,))
    pass_gates(lot, 7, leave=(JOE,))
    pass_gates(lot, 8)
    assert p4.read() == [
        ("+", (1, "car"), 2),
        ("+", (2, "bus"), 2),
        ("+", (4, "car"), 2),
        ("-", (2, "bus"), 4),
        ("-", (1, "car"), 6),
        ("+", (2, "bus"), 6),
        ("-", (4, "car"), 8),
    ]
    # a "+" for each new group, "u" where the number changes, "-" when all of a group have left (section 8)
    assert p5.read() == [("+", ("car", 2), 4), ("-", ("car", 2), 8), ("+", ("bus", 1), 8)]
    plan = str(lot.explain("P5", "tree"))
    assert "ParkLot2@Sync4: synchronised relation" in plan
    assert "takes the net change of ParkLot2 when a row comes to Sync4" in str(lot.explain("P5"))


def test_example_7_query_p6_when_a_police_car_enters(lot: hw.Database) -> None:
    lot.execute("""
        CREATE STREAMED VIEW PoliceSync AS
        SELECT R.TS
        FROM R(S1) R
        WHERE R.VType = 'POLICE';
        CREATE STREAMED VIEW P6 AS
        SELECT P.VType, Count(P.VID)
        FROM (SELECT R1.VID, R1.VType FROM R(S1, PoliceSync) R1 - R(S2, PoliceSync) R2) P
        GROUP BY P.VType
    """)
    sync, tagged = Tagged(lot, "PoliceSync"), Tagged(lot, "P6")
    pass_gates(lot, 1, enter=(CAR, BUS))
    pass_gates(lot, 2, leave=(BUS,))
    pass_gates(lot, 3, enter=(POLICE,))
    pass_gates(lot, 4, enter=(JOE,))
    assert sync.read() == [("+", (3,), 3)]
    assert sorted(tagged.read()) == [("+", ("POLICE", 1), 3), ("+", ("car", 1), 3)]


def test_example_4_query_p7_a_sliding_window(lot: hw.Database) -> None:
    lot.execute("""
        CREATE STREAMED VIEW FiveUnitsWindow AS
        SELECT *
        FROM R(S1) R
        WHERE Now - 5 < R.TS AND R.TS <= Now
    """)
    tagged = Tagged(lot, "FiveUnitsWindow")
    pass_gates(lot, 1, enter=(CAR,))
    pass_gates(lot, 3, enter=(BUS,))
    for at in (5, 6, 7, 8):
        pass_gates(lot, at)
    # the input only grows, the output does not: expired tuples are deleted
    assert tagged.read() == [
        ("+", (*CAR, 1), 1),
        ("+", (*BUS, 3), 3),
        ("-", (*CAR, 1), 6),
        ("-", (*BUS, 3), 8),
    ]


def test_section_4_4_a_window_slides_by_a_synchronisation_stream(lot: hw.Database) -> None:
    lot.execute(SYNC.format(i=2))
    lot.execute("""
        CREATE STREAMED VIEW FiveUnitsWindow AS SELECT VID FROM R(S1) R WHERE Now - 5 < R.TS AND R.TS <= Now;
        CREATE STREAMED VIEW Sliding AS SELECT VID FROM R(FiveUnitsWindow, Sync2)
    """)
    tagged = Tagged(lot, "Sliding")
    pass_gates(lot, 1, enter=(CAR,))
    pass_gates(lot, 2)
    pass_gates(lot, 3, enter=(BUS,))
    for at in range(4, 9):
        pass_gates(lot, at)
    assert tagged.read() == [("+", (1,), 2), ("+", (2,), 4), ("-", (1,), 6), ("-", (2,), 8)]


def test_section_4_4_a_window_join(lot: hw.Database) -> None:
    """Two tuples are joined only if they are less than 5 time units apart."""
    lot.execute("""
        CREATE STREAMED VIEW Stay AS
        SELECT i.VID, i.TS AS came, o.TS AS went FROM R(S1) i JOIN R(S2) o ON i.VID = o.VID
        WHERE i.TS - 5 < o.TS AND o.TS < i.TS + 5
    """)
    pass_gates(lot, 1, enter=(CAR, BUS))
    pass_gates(lot, 5, leave=(CAR,))
    pass_gates(lot, 6, leave=(BUS,))
    assert rows(lot, "Stay") == [(1, 1, 5)]


# -- section 10: what the optimisations are here --


def test_section_10_3_1_the_merged_select_tagger(rooms: hw.Database) -> None:
    rooms.execute(
        "CREATE STREAMED VIEW T1 AS SELECT RoomID, Temperature FROM R(RoomTempStr) R WHERE R.Temperature > 80"
    )
    report(rooms, 1, ("a", 99), ("b", 75), ("c", 85))
    assert "the Tagger of RoomTempStr keeps only rows where" in str(rooms.explain("T1"))
    assert _state(rooms) == 2
    report(rooms, 2, ("c", 70))  # it disqualifies itself, and leaves the state
    assert _state(rooms) == 1
    assert rows(rooms, "T1") == [("a", 99)]


def _state(db: hw.Database) -> int:
    found = db.engine.connection.execute('SELECT sum("#n") FROM data."RoomTempStr"').fetchall()
    return int(found[0][0])


def test_section_10_5_presynchronisation_is_what_a_policy_does(rooms: hw.Database) -> None:
    """A view with a policy tells the same as one synchronised above its aggregate, and its aggregate sees far less."""
    rooms.execute("""
        CREATE STREAMED VIEW seen AS SELECT RoomID, Temperature FROM R(RoomTempStr);
        CREATE STREAMED VIEW seen_late REFRESH EVERY 10 SECONDS AS SELECT RoomID, Temperature FROM R(RoomTempStr);
        CREATE VIEW above AS SELECT Temperature div 10 AS Building, count(*) AS n FROM R(RoomTempStr) GROUP BY 1;
        CREATE STREAMED VIEW Report REFRESH EVERY 10 SECONDS AS SELECT * FROM above;
        CREATE STREAMED VIEW Presync REFRESH EVERY 10 SECONDS AS
          SELECT Temperature div 10 AS Building, count(*) AS n FROM R(RoomTempStr) GROUP BY 1
    """)
    both = Tagged(rooms, "Report"), Tagged(rooms, "Presync")
    fed = Tagged(rooms, "seen"), Tagged(rooms, "seen_late")
    for at in range(1, 31):
        report(rooms, at, ("a", 70 + at), ("b", 90 - at), ("c", 70 + at % 7))
        assert rows(rooms, "Report") == rows(rooms, "Presync")
    one, other = (sorted(each.read()) for each in both)
    assert one == other
    every_change, net_changes = (len(each.read()) for each in fed)
    assert every_change > 60  # three rooms, thirty moments
    assert net_changes <= 3 * 3  # three rooms, three periods
