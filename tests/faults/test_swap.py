"""What happens to a relation between the two halves of its consolidation, the copy and the swap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import headwater as hw
from headwater.algebra.evaluate import Bag
from headwater.engine import faults, rewriting
from headwater.engine.shapes import shape_of

SETUP = """
    CREATE TABLE t (g INT, x INT);
    CREATE VIEW v AS SELECT g, sum(x) AS s FROM t GROUP BY g;
    INSERT INTO t VALUES (1, 1), (1, 2), (2, 5), (3, 7);
    DELETE FROM t WHERE g = 3;
    INSERT INTO t VALUES (2, 6);
"""


@pytest.fixture
def db() -> Iterator[hw.Database]:
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.execute(SETUP)
        yield db
        faults.hook = None


def consolidate_with(db: hw.Database, store: str, meanwhile: Callable[[], object]) -> None:
    """Consolidate a store, and do something after the copy and before the swap."""
    happened: list[str] = []

    def hook(point: str) -> None:
        if point == "consolidation copied" and not happened:
            happened.append(point)
            meanwhile()

    shape = shape_of(db.engine.catalog, store)
    assert shape is not None
    faults.hook = hook
    reader = db.warehouse.reader()
    try:
        rewriting.consolidate(db.engine, reader, store, shape)
    finally:
        reader.close()
    assert happened


def rows(db: hw.Database, query: str) -> Bag:
    return Counter(tuple(row.values()) for row in db.query(query).to_pylist())


def has_leftovers(db: hw.Database) -> bool:
    names = db.warehouse.reader().execute("SELECT table_name FROM duckdb_tables()").fetchall()
    return any(name.endswith(rewriting.SUFFIX) for (name,) in names)


@pytest.mark.parametrize("store", ["t", "v"])
def test_epochs_after_the_copy_are_in_the_new_store(db: hw.Database, store: str) -> None:
    def two_epochs() -> None:
        db.execute("INSERT INTO t VALUES (1, 10), (4, 4); DELETE FROM t WHERE x = 5")

    consolidate_with(db, store, two_epochs)
    assert rows(db, "SELECT * FROM t") == Counter([(1, 1), (1, 2), (2, 6), (1, 10), (4, 4)])
    assert rows(db, "SELECT * FROM v") == Counter([(1, 13), (2, 6), (4, 4)])
    db.execute("DELETE FROM t WHERE g = 1")
    assert rows(db, "SELECT * FROM v") == Counter([(2, 6), (4, 4)])
    assert not has_leftovers(db)


def test_a_view_dropped_after_the_copy_stays_dropped(db: hw.Database) -> None:
    consolidate_with(db, "v", lambda: db.execute("DROP VIEW v"))
    assert [one["name"] for one in db.relations()] == ["t"]
    assert not has_leftovers(db)


def test_a_view_made_anew_after_the_copy_keeps_its_own_rows(db: hw.Database) -> None:
    again = "DROP VIEW v; CREATE VIEW v AS SELECT g, sum(x * 100) AS s FROM t GROUP BY g"
    consolidate_with(db, "v", lambda: db.execute(again))
    assert rows(db, "SELECT * FROM v") == Counter([(1, 300), (2, 1100)])
    assert not has_leftovers(db)


def test_a_table_made_anew_after_the_copy_is_empty(db: hw.Database) -> None:
    consolidate_with(db, "t", lambda: db.execute("DROP TABLE t CASCADE; CREATE TABLE t (g INT, x INT)"))
    assert rows(db, "SELECT * FROM t") == Counter()
    assert not has_leftovers(db)


def test_a_view_evaluated_anew_after_the_copy(db: hw.Database) -> None:
    consolidate_with(db, "v", lambda: db.execute("REFRESH v"))
    assert rows(db, "SELECT * FROM v") == Counter([(1, 3), (2, 11)])
    db.execute("INSERT INTO t VALUES (1, 1)")
    assert rows(db, "SELECT * FROM v") == Counter([(1, 4), (2, 11)])
