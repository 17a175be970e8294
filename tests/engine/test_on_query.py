"""Views that are evaluated when they are read: REFRESH ON QUERY and REFRESH AUTO."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pytest

import headwater as hw
from headwater.engine.rewriting import consolidate
from headwater.engine.shapes import shape_of

MONDAY = dt.datetime(2026, 1, 5)


def rows(db: hw.Database, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(query).to_pylist())


def strategy(db: hw.Database, view: str) -> str:
    program = db.find(view).program
    assert program is not None
    return program.strategy


@pytest.fixture
def sales(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE STREAM sold (item INT, shop INT, price DECIMAL(8, 2));
        CREATE TABLE shop (id INT PRIMARY KEY, city STRING);
        INSERT INTO shop VALUES (1, 'Ulm'), (2, 'Bonn');
        CREATE VIEW by_city REFRESH ON QUERY AS
          SELECT city, sum(price) AS total, count(*) AS n FROM sold JOIN shop ON shop = id GROUP BY city;
    """)
    db.insert("sold", [(1, 1, Decimal("2.50")), (2, 2, Decimal("1.00")), (3, 1, Decimal("0.50"))])
    return db


def test_streams_are_added_up_when_rows_come_and_joined_when_read(sales: hw.Database) -> None:
    program = sales.find("by_city").program
    assert program is not None and program.upper is not None
    [one] = program.maps
    assert one.definition.relations == {"sold"}
    assert one.sums is not None and [str(key) for _, key in one.sums.keys] == ["sold.shop"]
    assert not sales.engine.catalog.keeps(sales.find("sold"))
    assert [tuple(map(str, row)) for row in rows(sales, "SELECT * FROM by_city")] == [
        ("Bonn", "1.00", "1"),
        ("Ulm", "3.00", "2"),
    ]


def test_tables_that_are_joined_may_change(sales: hw.Database) -> None:
    rows(sales, "SELECT * FROM by_city")
    sales.execute("UPDATE shop SET city = 'Bonn' WHERE id = 1")
    assert [tuple(map(str, row)) for row in rows(sales, "SELECT * FROM by_city")] == [("Bonn", "4.00", "3")]
    sales.execute("DELETE FROM shop WHERE id = 2")
    assert [tuple(map(str, row)) for row in rows(sales, "SELECT * FROM by_city")] == [("Bonn", "3.00", "2")]


def test_what_was_found_serves_until_something_changes(sales: hw.Database) -> None:
    def evaluated() -> int:
        return sales.uppers.reads["by_city"].evaluated

    for _ in range(3):
        rows(sales, "SELECT * FROM by_city")
        rows(sales, "SELECT max(total) AS m FROM by_city")
    assert evaluated() == 1
    sales.execute("CREATE TABLE other (x INT)")  # anything may have changed then
    rows(sales, "SELECT * FROM by_city")
    again = evaluated()
    sales.insert("other", [(1,)])
    rows(sales, "SELECT * FROM by_city")
    assert evaluated() == again
    sales.insert("sold", [(4, 2, Decimal("9.00"))])
    assert [str(row[1]) for row in rows(sales, "SELECT * FROM by_city")] == ["10.00", "3.00"]
    assert evaluated() == again + 1


def test_a_query_that_reads_it_twice_sees_it_once(sales: hw.Database) -> None:
    query = "SELECT a.city FROM by_city a JOIN by_city b ON a.city = b.city WHERE a.n = b.n"
    assert rows(sales, query) == [("Bonn",), ("Ulm",)]
    assert sales.uppers.reads["by_city"].evaluated == 1


def test_what_follows_from_tables_alone_is_held(sales: hw.Database) -> None:
    sales.execute("""
        CREATE TABLE land (city STRING, name STRING);
        INSERT INTO land VALUES ('Ulm', 'BW'), ('Bonn', 'NW'), ('Bonn', 'NW');
        CREATE VIEW v REFRESH ON QUERY AS
          SELECT l.city, l.lands, s.n FROM
            (SELECT city, count(*) AS lands FROM land GROUP BY city) l,
            (SELECT shop, count(*) AS n FROM sold GROUP BY shop) s, shop
          WHERE shop.id = s.shop AND shop.city = l.city
    """)
    program = sales.find("v").program
    assert program is not None
    assert [sorted(one.definition.relations) for one in program.held] == [["land", "shop"]]
    sales.insert("sold", [(1, 1, Decimal("1.00")), (1, 2, Decimal("1.00")), (1, 2, Decimal("1.00"))])
    assert rows(sales, "SELECT * FROM v") == [("Bonn", 2, 2), ("Ulm", 1, 1)]
    sales.execute("DELETE FROM land WHERE city = 'Ulm'; INSERT INTO land VALUES ('Bonn', 'NW')")
    assert rows(sales, "SELECT * FROM v") == [("Bonn", 3, 2)]


def test_least_and_greatest_values_are_kept_in_parts(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (k INT, x INT);
        CREATE VIEW v REFRESH ON QUERY AS SELECT k, min(x) AS low, max(x) AS high, count(x) AS n FROM s GROUP BY k
    """)
    for batch in ([(1, 5), (None, 7)], [(1, 2), (1, None)], [(1, 9), (2, None)]):
        db.insert("s", batch)
    program = db.find("v").program
    assert program is not None and program.maps[0].stepwise
    found = [tuple(row.values()) for row in db.query("SELECT * FROM v ORDER BY k NULLS FIRST").to_pylist()]
    assert found == [(None, 7, 7, 1), (1, 2, 9, 3), (2, None, None, 0)]
    [stored] = [one.name for one in program.maps]
    shape = shape_of(db.engine.catalog, stored)
    assert shape is not None
    assert consolidate(db.engine, db.warehouse.reader(), stored, shape) == 3
    assert [tuple(row.values()) for row in db.query("SELECT * FROM v ORDER BY k NULLS FIRST").to_pylist()] == found


def test_streams_that_are_joined_are_joined_when_read(db: hw.Database) -> None:
    db.execute("CREATE STREAM a (k INT, x INT); CREATE STREAM b (k INT, y INT)")
    db.execute("CREATE VIEW v REFRESH ON QUERY AS SELECT max(x) AS m, min(y) AS l FROM a JOIN b ON a.k = b.k")
    db.execute("CREATE VIEW w REFRESH ON QUERY AS SELECT sum(x) AS s FROM a JOIN b ON a.k = b.k")
    programs = [db.find(name).program for name in ("v", "w")]
    assert [sorted(one.definition.relations) for each in programs if each for one in each.maps] == [["a"], ["b"]]
    db.insert("a", [(1, 5), (2, 9)])
    db.insert("b", [(1, 7), (1, 3)])
    assert (rows(db, "SELECT * FROM v"), rows(db, "SELECT * FROM w")) == ([(5, 3)], [(10,)])


def test_a_stream_that_nothing_adds_up_is_stored(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x INT); CREATE VIEW v REFRESH ON QUERY AS SELECT x FROM s WHERE k > 1")
    db.insert("s", [(1, 1), (2, 2), (3, 2)])
    assert rows(db, "SELECT * FROM v") == [(2,), (2,)]
    assert db.engine.catalog.keeps(db.find("s"))


def test_the_clock_is_asked_when_it_is_read(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (week INT, x INT);
        CREATE VIEW v REFRESH ON QUERY AS SELECT sum(x) AS total FROM s WHERE week = current_week()
    """)
    week = (MONDAY.date() - dt.date(1970, 1, 5)).days // 7
    db.advance_clock(MONDAY)
    db.insert("s", [(week, 1), (week, 2), (week + 1, 10)])
    assert rows(db, "SELECT * FROM v") == [(3,)]
    db.advance_clock(MONDAY + dt.timedelta(days=6, hours=23))
    assert rows(db, "SELECT * FROM v") == [(3,)]
    assert db.uppers.reads["v"].evaluated == 1  # the same week
    db.advance_clock(MONDAY + dt.timedelta(days=7))
    assert rows(db, "SELECT * FROM v") == [(10,)]


def test_a_result_holds_until_the_clock_says_something_else(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (week INT, x INT)")
    db.execute("CREATE VIEW v REFRESH ON QUERY AS SELECT sum(x) AS total FROM s WHERE week = current_week()")
    week = (MONDAY.date() - dt.date(1970, 1, 5)).days // 7
    now = [MONDAY]
    db.engine.clock = lambda: now[0]
    db.insert("s", [(week, 1), (week + 1, 10)])
    for hour in range(5):
        now[0] = MONDAY + dt.timedelta(hours=hour)
        assert rows(db, "SELECT * FROM v") == [(1,)]
    assert db.reading.results.hits == 4
    now[0] = MONDAY + dt.timedelta(days=7)
    assert rows(db, "SELECT * FROM v") == [(10,)]
    assert db.reading.results.hits == 4


def test_rows_whose_time_is_still_to_come_are_stored(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (at TIMESTAMP, x INT)")
    db.execute("CREATE VIEW v REFRESH ON QUERY AS SELECT x FROM s WHERE at <= now()")
    db.advance_clock(MONDAY)
    db.insert("s", [(MONDAY, 1), (MONDAY + dt.timedelta(hours=1), 2)])
    assert rows(db, "SELECT * FROM v") == [(1,)]
    db.advance_clock(MONDAY + dt.timedelta(hours=2))
    assert rows(db, "SELECT * FROM v") == [(1,), (2,)]


def test_views_over_it_are_planned_through_it(sales: hw.Database) -> None:
    sales.execute("CREATE VIEW best REFRESH ON QUERY AS SELECT max(total) AS best FROM by_city")
    sales.execute("CREATE VIEW large AS SELECT city FROM by_city WHERE n > 1")
    assert "sold" in sales.find("large").program_inputs
    sales.insert("sold", [(5, 2, Decimal("7.00"))])
    assert [str(row[0]) for row in rows(sales, "SELECT best FROM best")] == ["8.00"]
    assert rows(sales, "SELECT * FROM large") == [("Bonn",), ("Ulm",)]
    sales.execute("DROP VIEW by_city")
    sales.insert("sold", [(5, 2, Decimal("7.00"))])
    assert [str(row[0]) for row in rows(sales, "SELECT best FROM best")] == ["15.00"]


def test_rows_that_are_nowhere_cannot_be_shown(sales: hw.Database) -> None:
    with pytest.raises(hw.NotSupported, match="HW219"):
        sales.execute("CREATE VIEW v STRATEGY 'first order' AS SELECT city FROM by_city")
    assert sales.engine.catalog.find("v") is None


def test_a_subscriber_makes_it_keep_up(sales: hw.Database) -> None:
    subscription = sales.subscribe("by_city")
    assert not sales.find("by_city").lazy
    assert subscription.so_far().num_rows == 2
    sales.insert("sold", [(9, 2, Decimal("1.00"))])
    assert subscription.so_far().column("_op").to_pylist() == ["u"]
    sales.execute("ALTER VIEW by_city REPLAN")
    assert not sales.find("by_city").lazy
    subscription.close()
    [result] = sales.execute("ALTER VIEW by_city REPLAN")
    assert sales.find("by_city").lazy and result.message == "view by_city is evaluated when it is read"
    assert [str(row[1]) for row in rows(sales, "SELECT * FROM by_city")] == ["2.00", "3.00"]


def test_insert_from_it(sales: hw.Database) -> None:
    sales.execute("CREATE TABLE copied (city STRING, n BIGINT); INSERT INTO copied SELECT city, n FROM by_city")
    assert rows(sales, "SELECT * FROM copied") == [("Bonn", 1), ("Ulm", 2)]


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        db.execute("""
            CREATE STREAM s (k INT, x INT); CREATE TABLE t (k INT, name STRING);
            INSERT INTO t VALUES (1, 'a'), (1, 'b');
            CREATE VIEW v REFRESH ON QUERY AS
              SELECT name, total FROM (SELECT k, sum(x) AS total FROM s GROUP BY k) a,
                (SELECT k, max(name) AS name FROM t GROUP BY k) b WHERE a.k = b.k;
            CREATE VIEW w REFRESH AUTO AS SELECT count(*) AS n FROM s
        """)
        db.insert("s", [(1, 2), (1, 3)])
        before = str(db.explain("v"))
    with hw.connect(tmp_path / "w") as db:
        assert rows(db, "SELECT * FROM v") == [("b", 5)]
        assert str(db.explain("v")) == before
        db.insert("s", [(1, 5)])
        assert rows(db, "SELECT * FROM v") == [("b", 10)]
        assert rows(db, "SELECT * FROM w") == [(3,)]


def test_what_cannot_be_computed_is_said_to_who_reads(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x INT); CREATE VIEW v REFRESH ON QUERY AS SELECT 1 / sum(x) AS y FROM s")
    db.insert("s", [(1, 0)])
    with pytest.raises(hw.UserError, match="HW501"):
        db.query("SELECT * FROM v")
    db.insert("s", [(1, 4)])
    assert rows(db, "SELECT y FROM v") == [(0.25,)]


def test_a_suspended_view_is_not_read(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x STRING) RETAIN ALL")
    db.execute("CREATE VIEW v REFRESH ON QUERY AS SELECT k, max(CAST(x AS INT)) AS y FROM s GROUP BY k")
    db.insert("s", [(1, "2")])
    epoch = db.insert("s", [(1, "no")])
    assert list(epoch.suspended) == ["v"]
    with pytest.raises(hw.UserError, match="HW526"):
        db.query("SELECT * FROM v")


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE VIEW w REFRESH EVERY 2 SECONDS AS SELECT * FROM by_city", "HW220"),
        ("CREATE VIEW w AS SELECT * FROM R(by_city, clockStr)", "HW220"),
        ("CREATE VIEW w REFRESH ON QUERY STRATEGY 'tree' AS SELECT count(*) AS n FROM sold", "HW151"),
        ("CREATE VIEW w REFRESH AUTO RETAIN CHANGES ALL AS SELECT count(*) AS n FROM sold", "HW151"),
        ("CREATE STREAMED VIEW w REFRESH ON QUERY AS SELECT count(*) AS n FROM sold", "HW151"),
        ("ALTER VIEW by_city REPLAN STRATEGY 'tree'", "HW151"),
        ("CREATE VIEW w REFRESH ON by_city AS SELECT count(*) AS n FROM sold", "HW220"),
    ],
)
def test_what_does_not_go_together(sales: hw.Database, statement: str, code: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=code):
        sales.execute(statement)
    assert sales.engine.catalog.find("w") is None
    assert len(rows(sales, "SELECT * FROM by_city")) == 2


# -- AUTO ------------------------------------------------------------------------------------------------------------


def test_auto_follows_how_often_it_is_read(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (k INT, x INT);
        CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS total FROM s GROUP BY k
    """)
    for i in range(30):
        db.insert("s", [(j % 7, i) for j in range(50)])
        db.query("SELECT * FROM v")
    db.uppers.reads["v"].milliseconds = 50.0  # as if it were much to evaluate
    db.engine.spent["v"].milliseconds = 1.0  # and nothing else kept the machine busy
    db.engine.lately.clear()  # so that nothing can be tried out
    [result] = db.execute("ALTER VIEW v REPLAN")
    often = db.find("v")
    assert not often.lazy and result.message == "view v is kept after every epoch"
    assert "read after 100% of the epochs" in result.notices[0]
    before = rows(db, "SELECT * FROM v")
    db.uppers.reads.clear()
    for i in range(30):
        db.insert("s", [(j % 7, i) for j in range(50)])
    rows(db, "SELECT * FROM v")
    for i in range(30):
        db.insert("s", [(j % 7, i) for j in range(50)])
    db.engine.spent["v"].milliseconds = 10_000.0  # as if it were much to keep
    db.engine.lately.clear()
    db.execute("ALTER VIEW v REPLAN")
    assert db.find("v").lazy
    assert [total for _, total in rows(db, "SELECT * FROM v")] == [3 * total for _, total in before]
    assert "AUTO: evaluated when it is read" in str(db.explain("v"))


def test_auto_stays_kept_while_views_follow_it(db: hw.Database) -> None:
    db.execute("CREATE STREAM s (k INT, x INT); CREATE TABLE t (k INT)")
    db.execute("CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS total FROM s GROUP BY k")
    while db.find("v").lazy:  # by what is known of empty relations it may be either
        db.uppers.reads.clear()
        for i in range(30):
            db.insert("s", [(1, i)])
            db.query("SELECT * FROM v")
        db.uppers.reads["v"].milliseconds = 50.0
        db.engine.lately.clear()
        db.execute("ALTER VIEW v REPLAN")
    db.execute("CREATE VIEW w AS SELECT max(total) AS m FROM v")
    db.uppers.reads.clear()
    for i in range(50):
        db.insert("s", [(2, i)])
    db.query("SELECT * FROM v")
    for i in range(50):
        db.insert("s", [(2, i)])
    db.execute("ALTER VIEW v REPLAN")
    assert not db.find("v").lazy
    assert rows(db, "SELECT m FROM w") == [(2450,)]


# -- notices, foreign tables --------------------------------------------------------------------------------


def test_an_order_for_nothing_is_said(db: hw.Database) -> None:
    [_, result] = db.execute("CREATE TABLE t (x INT); CREATE VIEW v AS SELECT x FROM t ORDER BY x")
    assert result.notices and result.notices[0].startswith("ORDER BY without LIMIT is left out")
    [result] = db.execute("CREATE VIEW w AS SELECT x FROM t ORDER BY x LIMIT 3")
    assert result.notices == ()


def test_foreign_tables_are_streams(db: hw.Database, tmp_path: Path) -> None:
    db.execute("CREATE FOREIGN TABLE s (x INT, y STRING) SERVER stream; CREATE VIEW v AS SELECT sum(x) AS n FROM s")
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n2,b\n")
    db.execute(f"COPY s FROM '{path}' CSV; INSERT INTO s VALUES (4, 'c')")
    assert rows(db, "SELECT * FROM v") == [(7,)]
    assert db.find("s").kind.value == "stream"
    with pytest.raises(hw.NotSupported, match="there is no server other"):
        db.execute("CREATE FOREIGN TABLE r (x INT) SERVER other")


# -- partial sums that views share -----------------------------------------------------------------------------------


def maps(db: hw.Database, *views: str) -> list[set[str]]:
    programs = [db.find(view).program for view in views]
    return [{one.name for one in program.maps} for program in programs if program is not None]


@pytest.fixture
def calls(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE STREAM call (who INT, seconds INT, price INT);
        CREATE VIEW longest REFRESH ON QUERY AS SELECT who, max(seconds) AS s FROM call GROUP BY who;
        CREATE VIEW paid REFRESH ON QUERY AS SELECT who, sum(price) AS p FROM call GROUP BY who;
        CREATE VIEW talked REFRESH ON QUERY AS
          SELECT who AS w, sum(seconds) AS s, sum(price) AS p FROM call GROUP BY who;
        CREATE VIEW dear REFRESH ON QUERY AS SELECT who, count(*) AS n FROM call WHERE price > 5 GROUP BY who;
    """)
    return db


CALLS = [(1, 10, 2), (2, 30, 9), (1, 20, 7), (None, 5, None)]


def test_views_that_add_up_the_same_rows_share_a_map(calls: hw.Database) -> None:
    longest, paid, talked, dear = maps(calls, "longest", "paid", "talked", "dear")
    assert longest == paid == talked and len(longest) == 1
    assert dear.isdisjoint(longest)
    [shared] = (one for one in calls.find("longest").program.maps)  # type: ignore[union-attr]
    assert shared.sums is not None
    assert (len(shared.sums.terms), len(shared.sums.picks)) == (4, 1)  # sums with counts of what is not NULL
    for row in CALLS:
        calls.insert("call", [row])
    key = "ORDER BY 1 NULLS FIRST"
    assert [tuple(r.values()) for r in calls.query(f"SELECT * FROM longest {key}").to_pylist()] == [
        (None, 5),
        (1, 20),
        (2, 30),
    ]
    assert [tuple(r.values()) for r in calls.query(f"SELECT * FROM talked {key}").to_pylist()] == [
        (None, 5, None),
        (1, 30, 9),
        (2, 30, 9),
    ]
    assert rows(calls, "SELECT p FROM paid WHERE who = 1") == [(9,)]
    assert rows(calls, "SELECT * FROM dear") == [(1, 1), (2, 1)]


def test_a_map_to_which_rows_have_come_takes_no_terms(calls: hw.Database) -> None:
    calls.insert("call", CALLS)
    calls.execute("CREATE VIEW later REFRESH ON QUERY AS SELECT who, sum(seconds * 2) AS s FROM call GROUP BY who")
    assert maps(calls, "later")[0].isdisjoint(maps(calls, "paid")[0])
    calls.insert("call", CALLS)
    assert rows(calls, "SELECT s FROM later WHERE who = 1") == [(60,)]
    assert rows(calls, "SELECT p FROM paid WHERE who = 1") == [(18,)]


def test_the_map_outlives_the_view_that_made_it(calls: hw.Database) -> None:
    calls.insert("call", CALLS)
    calls.execute("DROP VIEW longest")
    calls.insert("call", CALLS)
    assert rows(calls, "SELECT s, p FROM talked WHERE w = 2") == [(60, 18)]


def test_a_shared_map_is_there_after_a_restart(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        db.execute("CREATE STREAM call (who INT, seconds INT, price INT)")
        db.execute("CREATE VIEW a REFRESH ON QUERY AS SELECT who, min(price) AS p FROM call GROUP BY who")
        db.execute("CREATE VIEW b REFRESH ON QUERY AS SELECT who, sum(seconds) AS s FROM call GROUP BY who")
        db.insert("call", CALLS)
    with hw.connect(tmp_path / "w") as db:
        db.insert("call", CALLS)
        assert rows(db, "SELECT a.p, b.s FROM a JOIN b ON a.who = b.who") == [(2, 60), (9, 60)]


def test_what_may_fail_is_not_shared(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (a INT, x INT);
        CREATE VIEW good REFRESH ON QUERY AS SELECT a, sum(x) AS r FROM s GROUP BY a;
        CREATE VIEW bad REFRESH ON QUERY AS SELECT a, sum(x * 1000000) AS r FROM s GROUP BY a
    """)
    db.insert("s", [(1, 5)])
    epoch = db.insert("s", [(1, 5000)])
    assert list(epoch.suspended) == ["bad"]
    assert rows(db, "SELECT * FROM good") == [(1, 5005)]


def test_views_that_share_a_map_can_be_kept(calls: hw.Database) -> None:
    calls.insert("call", CALLS)
    with calls.subscribe("longest") as one, calls.subscribe("talked") as other:
        assert one.so_far().num_rows == other.so_far().num_rows == 3
        calls.insert("call", [(1, 99, 1)])
        assert one.so_far().column("s").to_pylist() == [99]
    calls.execute("ALTER VIEW longest REPLAN; ALTER VIEW paid REPLAN; ALTER VIEW talked REPLAN")
    assert calls.find("longest").lazy and calls.find("talked").lazy
    calls.insert("call", [(2, 1, 1)])
    query = "SELECT l.s AS longest, t.s AS talked, t.p FROM longest l JOIN talked t ON l.who = t.w"
    assert rows(calls, query) == [(30, 31, 10), (99, 129, 10)]


@pytest.mark.parametrize("query", ["SELECT a, max(x) AS r FROM s GROUP BY a", "SELECT min(x) AS r FROM s"])
def test_least_and_greatest_values_can_be_kept(db: hw.Database, query: str) -> None:
    db.execute(f"CREATE STREAM s (a INT, x INT); CREATE VIEW v REFRESH ON QUERY AS {query}")
    db.insert("s", [(1, 5), (1, None)])
    before = rows(db, "SELECT * FROM v")
    with db.subscribe("v"):
        assert not db.find("v").lazy
        assert rows(db, "SELECT * FROM v") == before
        db.insert("s", [(1, 9), (1, 2)])
        assert rows(db, "SELECT r FROM v") == [(9 if "max" in query else 2,)]


def test_a_part_that_is_read_twice(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (a INT, x INT);
        CREATE VIEW w REFRESH ON QUERY AS WITH q AS (SELECT a, count(*) AS c FROM s GROUP BY a)
          SELECT l.a, m.c FROM q l JOIN q m ON l.a = m.a;
        CREATE VIEW twice AS SELECT l.a, r.c FROM w l JOIN w r ON l.a = r.a
    """)
    db.insert("s", [(1, 1), (1, 2), (2, 1)])
    assert rows(db, "SELECT * FROM w") == rows(db, "SELECT * FROM twice") == [(1, 2), (2, 1)]


def test_who_fails_is_named(db: hw.Database) -> None:
    db.execute("CREATE TABLE d (g STRING, w INT); CREATE VIEW j REFRESH ON QUERY AS SELECT g, 10 / w AS q FROM d")
    db.insert("d", [("a", 0)])
    with pytest.raises(hw.UserError, match="view j: division by zero"):
        db.query("SELECT count(*) AS n FROM j")
