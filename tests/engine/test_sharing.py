"""Maps that several views need: kept once, and as long as one of them is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.errors import HeadwaterError

SCHEMA = """
    CREATE TABLE orders (k INT NOT NULL, c INT NOT NULL);
    CREATE TABLE line (k INT NOT NULL, q DECIMAL(10,2) NOT NULL);
"""
BY_CUSTOMER = "SELECT o.c, SUM(l.q) AS q FROM orders o JOIN line l ON o.k = l.k GROUP BY o.c"
#: The same below, under other names and in another order, with something else above.
OFTEN = "SELECT x.c, SUM(y.q) AS total FROM line y JOIN orders x ON y.k = x.k GROUP BY x.c HAVING SUM(y.q) > 5"


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        opened.execute(SCHEMA)
        yield opened


def maps(db: hw.Database, view: str) -> set[str]:
    program = db.find(view).program
    assert program is not None
    return {one.name for one in program.maps} - {view}


def stores(db: hw.Database) -> set[str]:
    found = db.engine.connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data'").fetchall()
    return {name for (name,) in found}


def rows(db: hw.Database, view: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in db.query(f"SELECT * FROM {view}").to_pylist())


def fill(db: hw.Database) -> None:
    with db.epoch() as epoch:
        epoch.insert("orders", [{"k": 1, "c": 1}, {"k": 2, "c": 1}, {"k": 3, "c": 2}])
        epoch.insert("line", [{"k": 1, "q": 2}, {"k": 2, "q": 4}, {"k": 3, "q": 1}, {"k": 3, "q": 1}])


@pytest.mark.parametrize("strategy", ["tree", "viewlet"])
def test_equal_maps_of_two_views_are_one(db: hw.Database, strategy: str) -> None:
    db.execute(f"CREATE VIEW a STRATEGY '{strategy}' AS {BY_CUSTOMER}")
    fill(db)
    db.execute(f"CREATE VIEW b STRATEGY '{strategy}' AS {OFTEN}")
    assert maps(db, "a") == maps(db, "b") != set()
    db.insert("line", [{"k": 3, "q": 7}])
    db.execute("DELETE FROM line WHERE k = 2")
    assert rows(db, "a") == [(1, 2), (2, 9)]
    assert rows(db, "b") == [(2, 9)]


@pytest.mark.parametrize("strategy", ["tree", "viewlet"])
def test_a_map_lives_until_the_last_view_that_needs_it_is_dropped(db: hw.Database, strategy: str) -> None:
    before = stores(db)
    db.execute(f"CREATE VIEW a STRATEGY '{strategy}' AS {BY_CUSTOMER}")
    db.execute(f"CREATE VIEW b STRATEGY '{strategy}' AS {OFTEN}")
    shared = maps(db, "a")
    db.execute("DROP VIEW a")
    assert shared <= stores(db)
    fill(db)
    assert rows(db, "b") == [(1, 6)]
    db.execute(f"CREATE VIEW a STRATEGY '{strategy}' AS {BY_CUSTOMER}")
    assert maps(db, "a") == shared
    assert rows(db, "a") == [(1, 6), (2, 2)]
    db.execute("DROP VIEW a; DROP VIEW b")
    assert stores(db) == before


def test_a_name_that_is_in_use_is_not_given_to_another_map(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW a STRATEGY 'tree' AS {BY_CUSTOMER}")
    db.execute(f"CREATE VIEW b STRATEGY 'tree' AS {OFTEN}")
    db.execute("DROP VIEW a")
    db.execute(
        "CREATE VIEW a STRATEGY 'tree' AS SELECT o.k, COUNT(*) AS n FROM orders o, line l WHERE o.c = l.k GROUP BY o.k"
    )
    assert not maps(db, "a") & maps(db, "b")
    fill(db)
    assert rows(db, "a") == [(1, 1), (2, 1), (3, 1)]
    assert rows(db, "b") == [(1, 6)]


def test_views_of_different_strategies_do_not_share_what_moves_at_different_times(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW a STRATEGY 'tree' AS {BY_CUSTOMER}; CREATE VIEW b STRATEGY 'viewlet' AS {BY_CUSTOMER}")
    assert not maps(db, "a") & maps(db, "b")
    fill(db)
    assert rows(db, "a") == rows(db, "b")


def test_a_later_view_of_a_stream_does_not_share_what_has_seen_more(db: hw.Database) -> None:
    db.execute("CREATE STREAM click (k INT NOT NULL)")
    query = "SELECT o.c, COUNT(*) AS n FROM orders o JOIN click ON o.k = click.k GROUP BY o.c"
    db.execute(f"CREATE VIEW early STRATEGY 'viewlet' AS {query}")
    db.insert("orders", [{"k": 1, "c": 1}])
    db.insert("click", [{"k": 1}])
    db.execute(f"CREATE VIEW late STRATEGY 'viewlet' AS {query}")
    db.insert("click", [{"k": 1}])
    assert (rows(db, "early"), rows(db, "late")) == ([(1, 2)], [(1, 1)])


def test_a_view_that_fails_takes_none_of_those_it_shares_maps_with_along(db: hw.Database) -> None:
    divided = "SELECT o.c, SUM(l.q) / (SUM(l.q) - 6) AS x FROM orders o JOIN line l ON o.k = l.k GROUP BY o.c"
    db.execute(f"CREATE VIEW bad STRATEGY 'tree' AS {divided}; CREATE VIEW good STRATEGY 'tree' AS {BY_CUSTOMER}")
    assert maps(db, "bad") == maps(db, "good")
    fill(db)  # customer 1 has 6: division by zero
    assert db.find("bad").suspended
    assert rows(db, "good") == [(1, 6), (2, 2)]
    db.insert("line", [{"k": 1, "q": 1}])
    assert rows(db, "good") == [(1, 7), (2, 2)]
    db.execute("REFRESH bad")
    assert not db.find("bad").suspended
    assert [row[0] for row in rows(db, "bad")] == [1, 2]
    db.insert("line", [{"k": 3, "q": 1}])
    assert rows(db, "good") == [(1, 7), (2, 3)]


@pytest.mark.parametrize("strategy", ["tree", "viewlet"])
def test_shared_maps_survive_a_restart(tmp_path: Path, strategy: str) -> None:
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        db.execute(SCHEMA)
        db.execute(
            f"CREATE VIEW a STRATEGY '{strategy}' AS {BY_CUSTOMER}; CREATE VIEW b STRATEGY '{strategy}' AS {OFTEN}"
        )
        fill(db)
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        db.execute("DROP VIEW a")
        db.insert("line", [{"k": 3, "q": 9}])
        assert rows(db, "b") == [(1, 6), (2, 11)]


# -- another plan ------------------------------------------------------------------------------------------------------

STRATEGIES = ["tree", "viewlet", "viewlet naive", "first order", "re-evaluate", "recompute"]


@pytest.mark.parametrize("before", STRATEGIES)
def test_replan_shows_the_same_and_goes_on(db: hw.Database, before: str) -> None:
    db.execute(f"CREATE VIEW a STRATEGY '{before}' AS {BY_CUSTOMER}")
    db.execute("CREATE VIEW above AS SELECT COUNT(*) AS n FROM a WHERE q > 2")
    fill(db)
    seen: list[object] = []
    db.observe(lambda epoch, changes: seen.append(changes))
    for number, after in enumerate([*STRATEGIES, None]):
        clause = f" STRATEGY '{after}'" if after else ""
        [result] = db.execute(f"ALTER VIEW a REPLAN{clause}")
        assert "by strategy" in result.message
        assert len(seen) == number  # nobody is told of changes that are none
        db.insert("line", [{"k": 3, "q": 1}])
        assert rows(db, "a") == [(1, 6), (2, 3 + number)]
        assert rows(db, "above") == [(2,)]


def test_replan_keeps_a_plan_that_is_as_good(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW a STRATEGY 'first order' AS {BY_CUSTOMER}")
    fill(db)
    before = db.engine.catalog.find("a")
    assert before is not None and before.program is not None and before.program.hinted
    [result] = db.execute("ALTER VIEW a REPLAN")
    assert result.message == "view a keeps its plan, by strategy first order"
    after = db.engine.catalog.find("a")
    assert after is not None and after.program is not None
    assert after.program.maps == before.program.maps
    assert not after.program.hinted and after.program.rivals  # it was weighed, and says so


def test_replan_removes_maps_that_nobody_needs_any_more(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW a STRATEGY 'first order' AS {BY_CUSTOMER}")
    before = stores(db)
    db.execute("ALTER VIEW a REPLAN STRATEGY 'viewlet'")
    assert stores(db) > before
    db.execute("ALTER VIEW a REPLAN STRATEGY 'first order'")
    assert stores(db) == before


def test_replan_is_refused_where_rows_are_gone(db: hw.Database) -> None:
    db.execute("CREATE STREAM click (k INT NOT NULL)")
    query = "SELECT o.c, COUNT(*) AS n FROM orders o JOIN click ON o.k = click.k GROUP BY o.c"
    db.execute(f"CREATE VIEW early STRATEGY 'viewlet' AS {query}")
    db.insert("orders", [{"k": 1, "c": 1}])
    db.insert("click", [{"k": 1}])
    with pytest.raises(HeadwaterError) as caught:
        db.execute("ALTER VIEW early REPLAN STRATEGY 'first order'")
    assert caught.value.code == "HW506"
    db.insert("click", [{"k": 1}])
    assert rows(db, "early") == [(1, 2)]


@pytest.mark.parametrize(
    ("before", "after"),
    [("first order", "viewlet"), ("first order", "tree"), ("recompute", "tree"), ("first order", "re-evaluate")],
)
def test_replan_reads_streams_that_it_will_not_need_any_more(db: hw.Database, before: str, after: str) -> None:
    db.execute("CREATE STREAM a (k INT, x DECIMAL(8,2)); CREATE STREAM b (k INT, z DECIMAL(8,2))")
    db.execute(
        f"CREATE VIEW v STRATEGY '{before}' AS SELECT a.k, SUM(a.x * b.z) AS v FROM a JOIN b ON a.k = b.k GROUP BY a.k"
    )
    db.insert("a", [{"k": 1, "x": 2}])
    db.insert("b", [{"k": 1, "z": 3}])
    db.execute(f"ALTER VIEW v REPLAN STRATEGY '{after}'")
    assert rows(db, "v") == [(1, 6)]
    db.insert("b", [{"k": 1, "z": 1}])
    assert rows(db, "v") == [(1, 8)]


def test_replan_does_not_trust_the_maps_of_a_suspended_view(db: hw.Database) -> None:
    db.execute("CREATE TABLE r (k INT, x DECIMAL(8,2)); CREATE TABLE s (k INT, g INT, z DECIMAL(8,2), d INT)")
    shown = "s.g, SUM(r.x * s.z) AS v"
    of = "FROM r JOIN s ON r.k = s.k GROUP BY s.g"
    db.execute(f"CREATE VIEW bad STRATEGY 'viewlet' AS SELECT {shown}, SUM(1 / s.d) AS w {of}")
    db.execute(f"CREATE VIEW good STRATEGY 'first order' AS SELECT {shown} {of}")
    db.execute(
        "INSERT INTO r VALUES (1, 2); INSERT INTO s VALUES (1, 1, 3, 1), (2, 1, 3, 0); INSERT INTO r VALUES (2, 2)"
    )
    assert db.find("bad").suspended
    db.execute(
        "INSERT INTO r VALUES (1, 5); ALTER VIEW good REPLAN STRATEGY 'viewlet'; INSERT INTO s VALUES (1, 1, 1, 1)"
    )
    assert rows(db, "good") == [(1, 34)]


def test_what_reads_maps_of_a_view_that_is_evaluated_anew_is_evaluated_anew(db: hw.Database) -> None:
    """Also over a third view: a and b share a map, b and c another."""
    db.execute("""
        CREATE TABLE t (g INT, y DECIMAL(8,2)); CREATE TABLE r (k INT, x DECIMAL(8,2), e INT);
        CREATE TABLE s (k INT, g INT, z DECIMAL(8,2), f INT);
        CREATE VIEW a STRATEGY 'viewlet' AS
          SELECT s.g, SUM(r.x * s.z) AS p, SUM(1 / (r.e + s.f)) AS v FROM r JOIN s ON r.k = s.k GROUP BY s.g;
        CREATE VIEW b STRATEGY 'viewlet' AS
          SELECT r.e, SUM(r.x * t.y * s.z) AS v FROM r JOIN s ON r.k = s.k JOIN t ON t.g = s.g GROUP BY r.e;
        CREATE VIEW c STRATEGY 'viewlet' AS SELECT s.z, SUM(t.y * s.z) AS v FROM s JOIN t ON t.g = s.g GROUP BY s.z;
        INSERT INTO r VALUES (1, 2, 1); INSERT INTO s VALUES (1, 1, 3, 1), (1, 2, 5, 2);
        INSERT INTO t VALUES (1, 2), (2, 3)
    """)
    with db.epoch() as epoch:  # in r's step, its new row meets a row of s that is gone at the end: 1 / (-2 + 2)
        epoch.insert("t", [(1, 9), (2, 4)])
        epoch.insert("r", [(1, 7, -2)])
        epoch.delete("s", [(1, 2, 5, 2)])
        epoch.insert("s", [(1, 2, 6, 5), (1, 1, 6, 5)])
    assert rows(db, "c") == [(3, 33), (6, 108)]


def test_names_that_differ_only_in_capitals_or_look_like_ours(db: hw.Database) -> None:
    db.execute("CREATE TABLE r (S1 INT, s2 INT, key_2 INT, k_2 INT, x DECIMAL(8,2))")
    db.execute("CREATE TABLE s (k INT, K_3 INT, z DECIMAL(8,2))")
    keys = "r.S1, r.s2, r.key_2, a.k_2, s.k"
    query = f"SELECT {keys}, SUM(r.x * s.z) AS v FROM r JOIN r a ON a.S1 = r.s2 JOIN s ON r.S1 = s.k GROUP BY {keys}"
    db.execute(f"CREATE VIEW v STRATEGY 'viewlet' AS {query}")
    db.execute(f"CREATE VIEW u STRATEGY 'viewlet' AS {query} HAVING SUM(r.x) > 0")
    db.execute("DROP VIEW v")
    other = "SELECT r.s2, SUM(s.z) AS z FROM r JOIN s ON r.S1 = s.k GROUP BY r.s2"
    db.execute(f"CREATE VIEW V STRATEGY 'viewlet' AS {other}")
    db.execute("INSERT INTO r VALUES (1, 1, 5, 6, 2); INSERT INTO s VALUES (1, 9, 3)")
    assert rows(db, "u") == [(1, 1, 5, 6, 1, 6)]
    assert rows(db, "V") == [(1, 3)]


def test_parts_of_a_sum_that_would_overflow_before_they_cancel(db: hw.Database) -> None:
    db.execute("CREATE TABLE r (k INT, x DECIMAL(16,6)); CREATE TABLE s (k INT, z DECIMAL(16,6))")
    db.execute(
        "CREATE VIEW v AS SELECT r.k, SUM((r.x - s.z) * (r.x + s.z)) AS v FROM r JOIN s ON r.k = s.k GROUP BY r.k"
    )
    db.insert("r", [{"k": 1, "x": 9999999999}] * 2000)
    db.insert("s", [{"k": 1, "z": 9999999999}] * 2000)
    assert rows(db, "v") == [(1, 0)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("ALTER VIEW nothing REPLAN", "HW102"),
        ("ALTER VIEW orders REPLAN", "HW104"),
        ("ALTER VIEW a REPLAN STRATEGY 'fast'", "HW004"),
        ("ALTER VIEW strict REPLAN STRATEGY 'recompute'", "HW110"),
        ("ALTER VIEW a", "HW261"),
    ],
)
def test_wrong_replans(db: hw.Database, statement: str, code: str) -> None:
    db.execute(f"CREATE VIEW a AS {BY_CUSTOMER}; CREATE VIEW strict STRICT AS {BY_CUSTOMER}")
    with pytest.raises(HeadwaterError) as caught:
        db.execute(statement)
    assert caught.value.code == code


def test_a_suspended_view_is_not_replanned(db: hw.Database) -> None:
    db.execute("CREATE VIEW bad AS SELECT c, 1 / (SUM(k) - 1) AS x FROM orders GROUP BY c")
    db.insert("orders", [{"k": 1, "c": 1}])
    with pytest.raises(HeadwaterError) as caught:
        db.execute("ALTER VIEW bad REPLAN")
    assert caught.value.code == "HW507"


def test_status_says_when_another_plan_is_clearly_faster(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW slow STRATEGY 'recompute' AS {BY_CUSTOMER}")
    db.insert("orders", [{"k": k, "c": k % 50} for k in range(30_000)])
    db.insert("line", [{"k": k, "q": 1} for k in range(30_000)] * 3)
    for _ in range(25):
        db.insert("line", [{"k": 1, "q": 1}])
    [slow] = [one for one in db.status()["relations"] if one["name"] == "slow"]  # type: ignore[attr-defined]
    assert "ALTER VIEW slow REPLAN" in slow["hint"]
    assert slow["epoch_ms"] > 0
    db.execute("ALTER VIEW slow REPLAN")
    for _ in range(25):
        db.insert("line", [{"k": 1, "q": 1}])
    [fast] = [one for one in db.status()["relations"] if one["name"] == "slow"]  # type: ignore[attr-defined]
    assert "hint" not in fast
    assert rows(db, "slow")[1] == (1, 600 * 3 + 50)
