"""Views that group the same rows by different keys: finer groups that they share, and when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater import planning_groups
from headwater.plan.finer import finer_map

BY_SHOP = "SELECT shop, COUNT(*) AS n, SUM(euros) AS euros, AVG(price) AS price FROM sale GROUP BY shop"
BY_ITEM = "SELECT item, SUM(euros) AS euros FROM sale GROUP BY item HAVING COUNT(*) > 1"
ALL = "SELECT COUNT(euros) AS n, SUM(euros) AS euros FROM sale"
VIEWS = {"by_shop": BY_SHOP, "by_item": BY_ITEM, "everything": ALL}
ROWS: list[tuple[object, ...]] = [
    ("north", 1, 10, Decimal("1.5")),
    ("north", 2, None, 2),
    (None, 1, 3, None),
    (None, 1, 3, None),
    ("south", None, 4, 7),
]


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        opened.execute("CREATE TABLE sale (shop STRING, item INT, euros INT, price DECIMAL(6,2))")
        yield opened


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finer groups are shared wherever they can be."""
    monkeypatch.setattr(planning_groups, "WORTH", 1e9)


def create(db: hw.Database, views: dict[str, str]) -> None:
    for name, query in views.items():
        db.execute(f"CREATE VIEW {name} AS {query}")


def fine(db: hw.Database, view: str) -> str | None:
    """The map of finer groups that a view follows from."""
    program = db.find(view).program
    assert program is not None
    assert (finer_map(program) is None) == (program.shared is None)
    return finer_map(program)


def stores(db: hw.Database) -> set[str]:
    found = db.engine.connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'data'").fetchall()
    return {name for (name,) in found}


def check(db: hw.Database, views: dict[str, str]) -> None:
    """Each view is what its query says now."""
    for name, query in views.items():
        held, asked = db.query(f"SELECT * FROM {name}"), db.query(query, views=False)
        assert sorted(map(str, held.to_pylist())) == sorted(map(str, asked.to_pylist())), name


@pytest.mark.usefixtures("forced")
def test_views_share_finer_groups_and_stay_right(db: hw.Database) -> None:
    db.insert("sale", ROWS)
    create(db, VIEWS)
    assert all(fine(db, view) is not None for view in ("by_shop", "everything"))
    check(db, VIEWS)
    db.insert("sale", [("north", None, 5, 5), (None, 2, None, None)])
    check(db, VIEWS)
    db.execute("UPDATE sale SET euros = 7 WHERE shop IS NULL; DELETE FROM sale WHERE shop = 'south'")
    check(db, VIEWS)
    db.execute("DELETE FROM sale WHERE item = 1")
    check(db, VIEWS)
    db.execute("DELETE FROM sale WHERE TRUE")
    check(db, VIEWS)


@pytest.mark.usefixtures("forced")
def test_explain_says_with_whom_and_why(db: hw.Database) -> None:
    create(db, {"by_shop": BY_SHOP, "by_item": BY_ITEM})
    shared = fine(db, "by_item")
    assert shared is not None and shared == fine(db, "by_shop")
    for view, other in (("by_shop", "by_item"), ("by_item", "by_shop")):
        [note] = [one for one in db.explain(view).notes if "finer" in one]
        assert f"{shared}, which it shares with {other}: " in note
        assert "ms an epoch were expected, instead of" in note
    program = db.explain("by_item").to_dict()
    assert [one["on"] for one in program["statements"]] == ["sale", shared]  # type: ignore[attr-defined]


def test_explain_says_what_is_not_worth_it(db: hw.Database) -> None:
    create(db, {"by_shop": BY_SHOP, "by_item": BY_ITEM})
    assert fine(db, "by_item") is None
    notes = db.explain(f"CREATE VIEW more AS {ALL}").notes
    assert any("it could share finer groups with by_shop, by_item: " in one for one in notes)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("gone", ["by_shop", "by_item"])
def test_dropping_one_leaves_the_other_right_and_without_finer_groups(db: hw.Database, gone: str) -> None:
    before = stores(db)
    views = {"by_shop": BY_SHOP, "by_item": BY_ITEM}
    create(db, views)
    db.insert("sale", ROWS)
    shared = fine(db, gone)
    assert shared in stores(db)
    db.execute(f"DROP VIEW {gone}")
    [left] = views.keys() - {gone}
    assert fine(db, left) is None
    assert stores(db) == before | {left}
    db.insert("sale", ROWS)
    check(db, {left: views[left]})


@pytest.mark.usefixtures("forced")
def test_a_view_keeps_the_strategy_that_was_asked_for(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW by_shop STRATEGY 'first order' AS {BY_SHOP}; CREATE VIEW by_item AS {BY_ITEM}")
    assert fine(db, "by_item") is None
    db.execute("CREATE VIEW again AS SELECT item, COUNT(*) AS n FROM sale GROUP BY item")
    assert fine(db, "again") == fine(db, "by_item") is not None
    db.execute("ALTER VIEW again REPLAN STRATEGY 'first order'")
    assert fine(db, "again") is None and fine(db, "by_item") is None
    db.insert("sale", ROWS)
    check(db, {"by_shop": BY_SHOP, "by_item": BY_ITEM})


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize(
    "other",
    [
        "SELECT item, COUNT(DISTINCT euros) AS n FROM sale GROUP BY item",
        "SELECT item, MIN(euros) AS n FROM sale GROUP BY item",
        "SELECT item, SUM(CAST(euros AS DOUBLE)) AS n FROM sale GROUP BY item",
        "SELECT item, SUM(euros / price) AS n FROM sale GROUP BY item",
        "SELECT item, COUNT(*) AS n FROM sale WHERE euros > 1 GROUP BY item",
    ],
    ids=["count distinct", "extremes of rows that go", "doubles", "a term that may fail", "other rows"],
)
def test_what_does_not_add_up_exactly_or_may_fail_is_not_shared(db: hw.Database, other: str) -> None:
    create(db, {"by_shop": BY_SHOP, "other": other})
    assert fine(db, "by_shop") is None and fine(db, "other") is None
    db.insert("sale", ROWS)
    check(db, {"by_shop": BY_SHOP, "other": other})


@pytest.mark.usefixtures("forced")
def test_a_view_that_fails_does_not_stop_the_other(db: hw.Database) -> None:
    large = "SELECT shop, SUM(big) AS n FROM amount GROUP BY shop"
    db.execute("CREATE TABLE amount (shop INT, item INT, big BIGINT)")
    create(db, {"large": large, "counted": "SELECT item, COUNT(big) AS n FROM amount GROUP BY item"})
    assert fine(db, "large") == fine(db, "counted") is not None
    db.insert("amount", [(1, 1, 2**62), (1, 2, 2**62)])
    assert db.find("large").suspended and not db.find("counted").suspended
    check(db, {"counted": "SELECT item, COUNT(big) AS n FROM amount GROUP BY item"})
    db.execute("DELETE FROM amount WHERE item = 2; REFRESH large")
    assert not db.find("large").suspended
    db.insert("amount", [(1, 1, 5)])
    check(db, {"large": large, "counted": "SELECT item, COUNT(big) AS n FROM amount GROUP BY item"})


STREAM_VIEWS = {
    "low": "SELECT a, MIN(x) AS low, COUNT(*) AS n FROM s GROUP BY a",
    "high": "SELECT b, MAX(x) AS high, SUM(x) AS x FROM s GROUP BY b",
}


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("retain", ["", "RETAIN ALL"])
def test_extremes_of_rows_that_never_go_are_shared(db: hw.Database, retain: str) -> None:
    db.execute(f"CREATE STREAM s (a INT, b INT, x INT) {retain}; CREATE STREAM kept (a INT, b INT, x INT) RETAIN ALL")
    create(db, STREAM_VIEWS)
    assert fine(db, "low") == fine(db, "high") is not None
    for rows in ([(1, 1, 5), (1, 2, 3), (None, 1, None)], [(1, 2, 1), (2, 1, 9), (None, None, 4)]):
        with db.epoch() as epoch:
            epoch.insert("s", rows)
            epoch.insert("kept", rows)
        for view, query in STREAM_VIEWS.items():
            held, asked = db.query(f"SELECT * FROM {view}"), db.query(query.replace("FROM s", "FROM kept"), views=False)
            assert sorted(map(str, held.to_pylist())) == sorted(map(str, asked.to_pylist()))


def test_rows_that_are_gone_are_not_shared(db: hw.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("CREATE STREAM s (a INT, b INT, x INT)")
    create(db, STREAM_VIEWS)
    assert fine(db, "low") is None
    db.insert("s", [(1, 1, 5)])
    monkeypatch.setattr(planning_groups, "WORTH", 1e9)
    db.execute("ALTER VIEW low REPLAN")
    assert fine(db, "low") is None and fine(db, "high") is None
    db.insert("s", [(1, 1, 3)])
    assert db.query("SELECT * FROM low").to_pylist() == [{"a": 1, "low": 3, "n": 2}]
    # A view that sees other rows of the stream shares nothing with those that were there before.
    db.execute("CREATE VIEW later AS SELECT b, COUNT(*) AS n FROM s GROUP BY b")
    assert fine(db, "later") is None


@pytest.mark.usefixtures("forced")
def test_only_equal_synchronisation_shares(db: hw.Database) -> None:
    by_item = "SELECT item, SUM(euros) AS euros FROM sale GROUP BY item"
    db.execute(f"CREATE VIEW a REFRESH EVERY 4 SECONDS AS {BY_SHOP}; CREATE VIEW b AS {by_item}")
    assert fine(db, "a") is None and fine(db, "b") is None
    db.execute(f"CREATE VIEW c REFRESH EVERY 8 SECONDS AS {by_item}")
    assert fine(db, "a") is None and fine(db, "c") is None
    db.execute("CREATE VIEW d REFRESH EVERY 4 SECONDS AS SELECT item, COUNT(*) AS n FROM sale GROUP BY item")
    assert fine(db, "a") == fine(db, "d") is not None


@pytest.mark.usefixtures("forced")
def test_views_that_share_are_found_again_in_a_warehouse(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        db.execute("CREATE TABLE sale (shop STRING, item INT, euros INT, price DECIMAL(6,2))")
        create(db, {"by_shop": BY_SHOP, "by_item": BY_ITEM})
        program = db.find("by_shop").program
    with hw.connect(tmp_path / "w") as db:
        assert isinstance(db, hw.Database)
        assert db.find("by_shop").program == program
        assert fine(db, "by_shop") == fine(db, "by_item") is not None
        db.insert("sale", ROWS)
        check(db, {"by_shop": BY_SHOP, "by_item": BY_ITEM})


# -- by cost --

JOINED = {
    key: f"SELECT {key}, COUNT(*) AS n, SUM(euros) AS euros FROM paid p JOIN shop s ON s.id = p.shop GROUP BY {key}"
    for key in ("region", "item")
}


def payments(items: int, rows: int = 200_000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {"shop": 1_000, "item": items, "euros": 100}
    return pa.table({name: rng.integers(0, most, rows, dtype=np.int32) for name, most in columns.items()})


@pytest.fixture
def paid(db: hw.Database) -> hw.Database:
    db.execute("CREATE STREAM paid (shop INT, item INT, euros INT) RETAIN ALL")
    db.execute("CREATE TABLE shop (id INT PRIMARY KEY, region INT)")
    db.insert("shop", [(shop, shop % 20) for shop in range(1_000)])
    return db


@pytest.mark.parametrize(
    ("items", "rows", "shared"), [(10, 200_000, True), (200_000, 200_000, False), (10, 500, False)]
)
def test_sharing_is_chosen_where_an_epoch_has_many_rows_and_few_finer_groups(
    paid: hw.Database, items: int, rows: int, shared: bool
) -> None:
    for seed in range(3):
        paid.insert("paid", payments(items, rows, seed))
    create(paid, JOINED)
    assert [fine(paid, view) is not None for view in JOINED] == [shared, shared]
    if shared:
        program = paid.find("region").program
        assert program is not None and program.shared is not None
        assert program.shared.milliseconds < program.shared.instead * planning_groups.WORTH
    paid.insert("paid", payments(items, rows, 9))
    check(paid, JOINED)


def test_replan_lets_views_share_and_parts_them_again(paid: hw.Database) -> None:
    create(paid, JOINED)
    assert fine(paid, "region") is None  # nothing is known yet
    for seed in range(3):
        paid.insert("paid", payments(10, seed=seed))
    paid.execute("ALTER VIEW region REPLAN")
    assert fine(paid, "region") == fine(paid, "item") is not None
    check(paid, JOINED)
    for seed in range(3):
        paid.insert("paid", payments(200_000, seed=seed))
    check(paid, JOINED)
    paid.execute("ALTER VIEW item REPLAN")
    assert fine(paid, "item") is None and fine(paid, "region") is None
    paid.insert("paid", payments(10))
    check(paid, JOINED)


def test_a_third_view_reads_the_finer_groups_that_there_are(paid: hw.Database) -> None:
    for seed in range(3):
        paid.insert("paid", payments(10, seed=seed))
    create(paid, JOINED)
    shared = fine(paid, "item")
    both = {"pairs": JOINED["item"].replace("item", "region, item")}
    create(paid, both)
    assert {fine(paid, view) for view in (*JOINED, "pairs")} == {shared} != {None}
    paid.insert("paid", payments(10, seed=9))
    check(paid, JOINED | both)
    paid.execute("DROP VIEW region")
    assert fine(paid, "item") == fine(paid, "pairs") == shared  # two are enough
    [note] = [one for one in paid.explain("item").notes if "finer" in one]
    assert f"{shared}, which it shares with pairs: " in note
    paid.insert("paid", payments(10, seed=10))
    check(paid, {"item": JOINED["item"]} | both)
