"""What REFRESH AUTO decides by: epochs that are tried out, what was measured, and how often a view is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import headwater as hw
from headwater.plan.timing import Figures, Origin, Remembered, Spending, is_better_kept, without_trial


def rows(db: hw.Database, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(query).to_pylist())


def reads(db: hw.Database, view: str) -> tuple[int, int]:
    found = db.engine.seen.reads[view]
    return found.reads, found.rounds


def stores(db: hw.Database) -> dict[str, list[tuple[object, ...]]]:
    """All tables of a warehouse with their rows, but for what is noted of views."""
    found = db.engine.connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL"
    ).fetchall()
    tables = [f'"{schema}"."{name}"' for schema, name in found if name not in ("meta", "relations")]
    return {one: sorted(db.engine.connection.execute(f"FROM {one}").fetchall(), key=repr) for one in tables}


@pytest.fixture
def sums(db: hw.Database) -> hw.Database:
    db.execute("""
        CREATE STREAM s (k INT, x INT);
        CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS total FROM s GROUP BY k
    """)
    return db


def bring(db: hw.Database, epochs: int, read: bool = True) -> None:
    for i in range(epochs):
        db.insert("s", [(j % 7, i) for j in range(50)])
        if read:
            db.query("SELECT * FROM v")


def test_both_ways_are_tried_out(sums: hw.Database) -> None:
    bring(sums, 10)
    before, contents = sums.engine.epoch, rows(sums, "SELECT * FROM v")
    [result] = sums.execute("ALTER VIEW v REPLAN")
    assert result.notices[0].count("tried out") == 2
    assert "tried out" in str(sums.explain("v"))
    assert (sums.engine.epoch, rows(sums, "SELECT * FROM v")) == (before, contents)
    bring(sums, 3)
    assert rows(sums, "SELECT * FROM v") == rows(sums, "SELECT k, sum(total) AS total FROM v GROUP BY k")
    assert next(n for _, n in rows(sums, "SELECT * FROM v")) == 8 * (45 + 3)


def test_what_is_tried_out_leaves_nothing_behind(sums: hw.Database) -> None:
    sums.execute("CREATE VIEW other AS SELECT k, max(x) AS m FROM s GROUP BY k")
    bring(sums, 6)
    sums.consolidator.wait(10)
    view = sums.find("v")
    with sums.engine.lock:
        before, appended = stores(sums), dict(sums.engine.appended)
        from headwater.planning import surroundings
        from headwater.planning_reads import _asked, _keeping
        from headwater.trying import try_out

        among = surroundings(sums)
        for program in (*_keeping(sums, view, among), _asked(view, among)):
            tried = try_out(sums, view, [program])
            assert program.strategy == "recompute" or (tried is not None and tried.spending.epoch > 0)
        assert stores(sums) == before
        assert sums.engine.appended == appended
    bring(sums, 2)
    assert rows(sums, "SELECT * FROM other") == [(k, 5) for k in range(7)]
    assert rows(sums, "SELECT total FROM v WHERE k = 0") == [(8 * (15 + 1),)]


def test_rows_that_a_view_cannot_take_are_not_tried_out(db: hw.Database) -> None:
    db.execute("""
        CREATE STREAM s (k INT, x INT);
        CREATE VIEW v REFRESH AUTO AS SELECT k, 1 / sum(x) AS y FROM s GROUP BY k
    """)
    bring(db, 2, read=False)
    db.insert("s", [(1, 5), (1, -5), (8, 0)])
    [result] = db.execute("ALTER VIEW v REPLAN")
    assert "tried out" not in result.notices[0]
    db.insert("s", [(8, 4), (1, 1), (0, 1)])
    assert ((8, 0.25) in rows(db, "SELECT * FROM v")) or db.find("v").suspended


def test_without_epochs_there_are_estimates(sums: hw.Database) -> None:
    [result] = sums.execute("ALTER VIEW v REPLAN")
    assert result.notices[0].count("; estimated)") == 2
    assert "a guess: nobody has read it yet" in result.notices[0]


def test_a_table_that_changes_is_not_tried_out(db: hw.Database) -> None:
    db.execute("CREATE TABLE s (k INT, x INT); CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS t FROM s GROUP BY k")
    bring(db, 10)
    [result] = db.execute("ALTER VIEW v REPLAN")
    assert "tried out" not in result.notices[0] and "measured" in result.notices[0]


@pytest.mark.parametrize("kept", [True, False])
def test_every_read_counts_whatever_answers_it(sums: hw.Database, kept: bool) -> None:
    bring(sums, 1, read=False)
    if kept:
        with sums.subscribe("v"):  # a view that somebody follows is kept
            pass
    elif not sums.find("v").lazy:
        pytest.fail("a view that nobody reads is not to be kept")
    assert sums.find("v").lazy is not kept
    sums.engine.seen.reads.clear()
    sums.query("SELECT * FROM v")
    sums.query("SELECT * FROM v")  # which is answered from what was kept
    assert reads(sums, "v") == (2, 1)
    assert sums.get("v", 1) is not None
    assert sums.get_many("v", [1, 2]).num_rows == 2
    assert reads(sums, "v") == (4, 1)
    sums.insert("s", [(100, 1)])
    assert sums.get("v", 100) == {"k": 100, "total": 1}
    assert reads(sums, "v") == (5, 2)


def test_it_is_known_after_a_restart(tmp_path: Path) -> None:
    with hw.Database(tmp_path / "w") as db:
        db.execute("""
            CREATE STREAM s (k INT, x INT);
            CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS total FROM s GROUP BY k;
            CREATE VIEW gone REFRESH AUTO AS SELECT count(*) AS n FROM s
        """)
        bring(db, 8)
        db.query("SELECT * FROM gone")
        db.execute("DROP VIEW gone")
        before = db.engine.seen.reads["v"], db.engine.seen.spent["v"]
        assert before[0].rounds == 8 and before[1].epochs == 8
    with hw.Database(tmp_path / "w") as db:
        assert (db.engine.seen.reads["v"], db.engine.seen.spent["v"]) == before
        assert "gone" not in db.engine.seen.reads
        [result] = db.execute("ALTER VIEW v REPLAN")  # there is nothing to try out, but something was measured
        assert "measured" in result.notices[0] and "read after 100% of the epochs" in result.notices[0]
        ways = dict(db.engine.seen.ways["v"])
        assert len(ways) == 1
    with hw.Database(tmp_path / "w") as db:
        assert db.engine.seen.ways["v"] == ways
        assert "v" not in db.engine.seen.reads  # counted anew since


def test_counts_are_noted_now_and_then(tmp_path: Path) -> None:
    with hw.Database(tmp_path / "w") as db:
        db.execute("CREATE STREAM s (k INT, x INT)")
        db.execute("CREATE VIEW v REFRESH AUTO AS SELECT k, sum(x) AS total FROM s GROUP BY k")
        bring(db, 60)
        noted = db.warehouse.reader().execute("SELECT value FROM hw.meta WHERE key = 'seen'").fetchall()
        assert len(noted) == 1 and '"rounds": 4' in noted[0][0]  # as of the fiftieth epoch


# -- the decision ------------------------------------------------------------------------------------------------------


def figures(kept: Spending, asked: Spending, origin: Origin) -> Mapping[bool, Figures]:
    return {True: Figures(kept, origin), False: Figures(asked, origin)}


def test_what_was_measured_one_way_scales_the_other() -> None:
    expected = {True: Spending(10.0, 2.0), False: Spending(1.0, 8.0)}
    known = {False: Remembered(Spending(3.0, 20.0), Spending(1.0, 10.0))}
    found = without_trial(expected, known)
    assert found[False] == Figures(Spending(3.0, 16.0), Origin.MEASURED)
    assert found[True] == Figures(Spending(30.0, 6.0), Origin.SCALED)
    assert {one.origin for one in without_trial(expected, {}).values()} == {Origin.ESTIMATED}


def test_what_is_remembered_holds_while_things_are_as_they_were() -> None:
    known = Remembered(Spending(3.0, 20.0), Spending(1.0, 10.0))
    assert known.holds(Spending(1.4, 7.0))
    assert not known.holds(Spending(1.6, 10.0)) and not known.holds(Spending(1.0, 5.0))


@pytest.mark.parametrize(("origin", "changes"), [(Origin.TRIED, True), (Origin.ESTIMATED, False)])
def test_a_change_must_be_worth_it(origin: Origin, changes: bool) -> None:
    near = figures(Spending(9.2, 0.0), Spending(0.0, 10.0), origin)
    assert is_better_kept(near, reads=1.0) is changes
    assert not is_better_kept(near, reads=0.5)
    assert is_better_kept(near, reads=5.0, is_kept=True)


# -- from partial sums to any plan -------------------------------------------------------------------------------------

JOINED = "SELECT city, sum(price) AS total, count(*) AS n FROM sold JOIN shop ON shop = id GROUP BY city"


def shops(db: hw.Database, kind: str) -> None:
    db.execute(f"""
        CREATE STREAM sold (shop INT, price INT);
        CREATE {kind} TABLE shop (id INT, city STRING);
        INSERT INTO shop VALUES (1, 'Ulm'), (2, 'Bonn'), (3, 'Ulm'), (1, 'Bern');
        CREATE VIEW by_city REFRESH ON QUERY AS {JOINED} HAVING count(*) > 1
    """)
    db.insert("sold", [(1, 5), (2, 7), (3, None), (9, 1), (None, 2)])
    db.insert("sold", [(1, 6)])


@pytest.mark.parametrize("strategy", ["first order", "viewlet", "tree"])
def test_a_sum_over_a_join_is_had_from_sums_of_its_stream(db: hw.Database, strategy: str) -> None:
    shops(db, "STATIC")
    db.execute(f"CREATE VIEW v STRATEGY '{strategy}' AS SELECT * FROM by_city")
    assert rows(db, "SELECT * FROM v") == [("Bern", 11, 2), ("Ulm", 11, 3)]
    db.insert("sold", [(2, 1), (3, 4)])  # and one that was not shown is
    assert rows(db, "SELECT * FROM v") == [("Bern", 11, 2), ("Bonn", 8, 2), ("Ulm", 15, 4)]
    assert rows(db, "SELECT * FROM v") == rows(db, "SELECT * FROM by_city")


@pytest.mark.parametrize("strategy", ["first order", "recompute"])
def test_who_looks_back_into_a_stream_needs_its_rows(db: hw.Database, strategy: str) -> None:
    shops(db, "")
    with pytest.raises(hw.NotSupported, match="HW219"):
        db.execute(f"CREATE VIEW v STRATEGY '{strategy}' AS SELECT * FROM by_city")


def test_who_recomputes_sums_of_a_stream_needs_its_rows(sums: hw.Database) -> None:
    bring(sums, 1)
    sums.execute("CREATE VIEW asked REFRESH ON QUERY AS SELECT k, sum(x) AS total FROM s GROUP BY k")
    bring(sums, 1)
    with pytest.raises(hw.NotSupported, match="HW219"):
        sums.execute("CREATE VIEW w STRATEGY 'recompute' AS SELECT * FROM asked")


def test_a_view_that_is_followed_gets_the_plan_that_a_new_one_has(db: hw.Database) -> None:
    shops(db, "STATIC")
    with db.subscribe("by_city") as changes:
        program = db.find("by_city").program
        assert program is not None and program.strategy in ("first order", "viewlet")
        changes.so_far()
        db.insert("sold", [(2, 1)])
        assert changes.so_far().column("city").to_pylist() == ["Bonn"]
    assert rows(db, "SELECT * FROM by_city") == [("Bern", 11, 2), ("Bonn", 8, 2), ("Ulm", 11, 3)]
