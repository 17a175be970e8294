"""Epochs: all or nothing, in order, over several relations; what each operation does and refuses."""

from __future__ import annotations

import pytest

import headwater as hw
from tests.engine.support import Changes, bag, check_views, refused, rows


@pytest.fixture
def shop(db: hw.Database) -> hw.Database:
    db.execute(
        """
        CREATE TABLE item (id INT PRIMARY KEY, name STRING NOT NULL, price INT);
        CREATE TABLE sale (item INT, qty INT);
        CREATE STREAM visit (page STRING) RETAIN ALL;
        CREATE VIEW worth AS SELECT i.name, sum(s.qty * i.price) AS worth
          FROM sale s JOIN item i ON s.item = i.id GROUP BY i.name;
        CREATE VIEW visits AS SELECT page, count(*) AS n FROM visit GROUP BY page;
        """
    )
    with db.epoch() as e:
        e.insert("item", [(1, "pen", 2), (2, "ink", 5), (3, "cap", None)])
        e.insert("sale", [(1, 10), (2, 4), (2, 4)])
    return db


# -- together or not at all ---


def test_an_epoch_changes_several_relations_at_once(shop: hw.Database) -> None:
    changes = Changes(shop)
    with shop.epoch() as e:
        e.insert("sale", [(3, 1), (1, 1)])
        e.upsert("item", [(1, "pen", 3)])
        e.delete("sale", [(2, 4)])
        e.insert("visit", [("home",)])
    assert e.committed is not None
    assert e.committed.number == shop.engine.epoch == 2
    assert e.committed.changes == {"sale": 3, "item": 2, "visit": 1}
    assert rows(shop, "worth") == [("cap", None), ("ink", 20), ("pen", 33)]
    assert changes.epochs == [
        (
            2,
            {
                "worth": {("pen", 20): -1, ("pen", 33): 1, ("ink", 40): -1, ("ink", 20): 1, ("cap", None): 1},
                "visits": {("home", 1): 1},
            },
        )
    ]
    check_views(shop)


def test_one_bad_operation_refuses_the_whole_epoch(shop: hw.Database) -> None:
    with refused(shop, "HW306"), shop.epoch() as e:
        e.insert("item", [(9, "new", 1)])
        e.insert("visit", [("home",)])
        e.delete("sale", [(2, 999)])


def test_an_exception_in_the_block_drops_the_operations(shop: hw.Database) -> None:
    before = bag(shop, "sale")

    def fail() -> None:
        with shop.epoch() as e:
            e.insert("sale", [(1, 1)])
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fail()
    assert bag(shop, "sale") == before
    assert shop.engine.epoch == 1


def test_epochs_are_numbered_without_gaps(shop: hw.Database) -> None:
    assert shop.insert("sale", [(1, 1)]).number == 2
    with refused(shop, "HW305"):
        shop.insert("item", [(1, "again", 1)])
    assert shop.insert("sale", [(1, 1)]).number == 3
    assert [row[0] for row in rows(shop, "SELECT 1 AS x")] == [1]
    numbers = shop.execute("SHOW EPOCHS")[0].table
    assert numbers is not None
    assert numbers["number"].to_pylist() == [1, 2, 3]


def test_an_epoch_without_operations_commits_with_nothing(shop: hw.Database) -> None:
    with shop.epoch() as e:
        pass
    assert e.committed is not None
    assert e.committed.changes == {}


# -- in order ---


def test_a_row_can_come_and_go_in_one_epoch(shop: hw.Database) -> None:
    changes = Changes(shop)
    with shop.epoch() as e:
        e.insert("sale", [(1, 7)])
        e.delete("sale", [(1, 7)])
    assert changes.last == {}
    assert (1, 7) not in bag(shop, "sale")
    with refused(shop, "HW306"), shop.epoch() as e:
        e.delete("sale", [(1, 7)])
        e.insert("sale", [(1, 7)])


def test_a_key_can_be_freed_and_taken_in_one_epoch(shop: hw.Database) -> None:
    with shop.epoch() as e:
        e.delete_keys("item", [1])
        e.insert("item", [(1, "pencil", 1)])
    assert (1, "pencil", 1) in bag(shop, "item")
    with refused(shop, "HW305"), shop.epoch() as e:
        e.insert("item", [(2, "blot", 1)])
        e.delete_keys("item", [2])
    check_views(shop)


def test_upserts_see_each_other(shop: hw.Database) -> None:
    with shop.epoch() as e:
        e.upsert("item", [(5, "a", 1)])
        e.upsert("item", [(5, "b", 2)])
        e.delete_keys("item", [5])
        e.upsert("item", [(5, "c", 3)])
    assert rows(shop, "SELECT * FROM item WHERE id = 5") == [(5, "c", 3)]


# -- insert ---


def test_inserted_rows_count_as_often_as_they_come(shop: hw.Database) -> None:
    shop.insert("sale", [(1, 1), (1, 1)])
    shop.execute("INSERT INTO sale VALUES (1, 1), (1, 1)")
    assert bag(shop, "sale")[(1, 1)] == 4


def test_insert_from_a_query_reads_what_was_there_before(shop: hw.Database) -> None:
    shop.execute("INSERT INTO sale SELECT * FROM sale")
    assert bag(shop, "sale") == {(1, 10): 2, (2, 4): 4}
    shop.execute("INSERT INTO sale (qty, item) SELECT price, id FROM item WHERE price > 2")
    assert bag(shop, "sale")[(2, 5)] == 1
    check_views(shop)


def test_columns_that_an_insert_does_not_list_are_null(shop: hw.Database) -> None:
    shop.execute("INSERT INTO item (name, id) VALUES ('x', 7)")
    assert rows(shop, "SELECT * FROM item WHERE id = 7") == [(7, "x", None)]
    with refused(shop, "HW327"):
        shop.execute("INSERT INTO item (id) VALUES (8)")


# -- delete ---


def test_delete_takes_one_of_equal_rows_for_each_time_it_is_named(shop: hw.Database) -> None:
    with shop.epoch() as e:
        e.delete("sale", [(2, 4)])
    assert bag(shop, "sale")[(2, 4)] == 1
    with refused(shop, "HW306", "not that often"), shop.epoch() as e:
        e.delete("sale", [(2, 4), (2, 4)])


def test_delete_from_a_keyed_table_needs_the_whole_row(shop: hw.Database) -> None:
    with refused(shop, "HW306"), shop.epoch() as e:
        e.delete("item", [(1, "pen", 999)])
    with shop.epoch() as e:
        e.delete("item", [(3, "cap", None)])
    assert rows(shop, "SELECT id FROM item") == [(1,), (2,)]


def test_delete_where_takes_all_copies(shop: hw.Database) -> None:
    shop.execute("DELETE FROM sale WHERE qty = 4")
    assert bag(shop, "sale") == {(1, 10): 1}
    check_views(shop)


def test_delete_where_of_nothing_and_of_null(shop: hw.Database) -> None:
    assert shop.execute("DELETE FROM item WHERE price > 100")[0].message == "deleted 0 rows in item"
    shop.execute("DELETE FROM item WHERE price = NULL")
    assert len(bag(shop, "item")) == 3
    shop.execute("DELETE FROM item")
    assert bag(shop, "item") == {}
    check_views(shop)


# -- update ---


def test_update_sees_the_old_values_everywhere(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 2), (1, 2), (3, 4)")
    db.execute("UPDATE t SET a = b, b = a WHERE a = 1")
    assert bag(db, "t") == {(2, 1): 2, (3, 4): 1}


def test_update_may_move_keys_along(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)")
    db.execute("UPDATE t SET id = id + 1")
    assert rows(db, "t") == [(2,), (3,), (4,)]
    with refused(db, "HW305"):
        db.execute("UPDATE t SET id = 4 WHERE id < 4")
    with refused(db, "HW327"):
        db.execute("UPDATE t SET id = NULL")


def test_update_to_the_same_values_changes_no_view(shop: hw.Database) -> None:
    changes = Changes(shop)
    shop.execute("UPDATE item SET price = price")
    assert changes.last == {}


def test_update_follows_into_joined_views(shop: hw.Database) -> None:
    shop.execute("UPDATE item SET price = price + 1, name = 'all' WHERE price IS NOT NULL")
    assert rows(shop, "worth") == [("all", 10 * 3 + 8 * 6)]
    check_views(shop)


# -- upsert and delete by key ---


def test_upsert_replaces_or_adds_and_the_last_of_a_batch_counts(shop: hw.Database) -> None:
    with shop.epoch() as e:
        e.upsert("item", [(2, "x", 1), (4, "y", 1), (2, "z", 2)])
    assert rows(shop, "SELECT * FROM item WHERE id IN (2, 4)") == [(2, "z", 2), (4, "y", 1)]
    check_views(shop)


def test_delete_keys_in_every_form(shop: hw.Database) -> None:
    with shop.epoch() as e:
        e.delete_keys("item", [1])
        e.delete_keys("item", [(2,)])
        e.delete_keys("item", [{"id": 3}])
    assert rows(shop, "item") == []


def test_delete_keys_of_several_columns(db: hw.Database) -> None:
    db.execute(
        "CREATE TABLE t (a INT, b STRING, x INT, PRIMARY KEY (b, a)); INSERT INTO t VALUES (1, 'p', 1), (2, 'p', 2)"
    )
    with db.epoch() as e:
        e.delete_keys("t", [{"a": 1, "b": "p"}])
        e.delete_keys("t", [("p", 2)])
    assert rows(db, "t") == []


def test_delete_keys_that_are_not_there(shop: hw.Database) -> None:
    with refused(shop, "HW306", "id = 77"), shop.epoch() as e:
        e.delete_keys("item", [1, 77])
    with refused(shop, "HW306"), shop.epoch() as e:
        e.delete_keys("item", [1])
        e.delete_keys("item", [1])


def test_operations_by_key_need_a_key(shop: hw.Database) -> None:
    with refused(shop, "HW303"), shop.epoch() as e:
        e.upsert("sale", [(1, 1)])
    with refused(shop, "HW303"), shop.epoch() as e:
        e.delete_keys("sale", [1])


# -- streams and static tables ---


def test_a_stream_only_grows(shop: hw.Database) -> None:
    shop.insert("visit", [("home",), ("home",)])
    with refused(shop, "HW302"), shop.epoch() as e:
        e.delete("visit", [("home",)])
    with refused(shop, "HW302"), shop.epoch() as e:
        e.upsert("visit", [("home",)])
    with refused(shop, "HW302"):
        shop.execute("DELETE FROM visit")
    with refused(shop, "HW302"):
        shop.execute("UPDATE visit SET page = 'x'")


def test_a_static_table_changes_until_a_view_uses_it(db: hw.Database) -> None:
    db.execute("CREATE STATIC TABLE c (k INT PRIMARY KEY, v STRING); CREATE TABLE t (k INT)")
    db.insert("c", [(1, "a"), (2, "b")])
    db.execute("UPDATE c SET v = 'z' WHERE k = 2")
    db.execute("CREATE VIEW v AS SELECT c.v, count(*) AS n FROM t JOIN c ON t.k = c.k GROUP BY c.v")
    for text in ("INSERT INTO c VALUES (3, 'c')", "UPDATE c SET v = 'q'", "DELETE FROM c"):
        with refused(db, "HW304"):
            db.execute(text)
    with refused(db, "HW304"), db.epoch() as e:
        e.insert("t", [(1,)])
        e.upsert("c", [(1, "x")])
    db.insert("t", [(1,), (2,), (2,), (5,)])
    assert rows(db, "v") == [("a", 1), ("z", 2)]
    db.execute("DROP VIEW v")
    db.insert("c", [(3, "c")])
    assert len(rows(db, "c")) == 3


def test_a_view_of_a_view_also_keeps_a_static_table_still(db: hw.Database) -> None:
    db.execute("CREATE STATIC TABLE c (k INT); CREATE VIEW v AS SELECT k FROM c; CREATE VIEW w AS SELECT k FROM v")
    with refused(db, "HW304"):
        db.insert("c", [(1,)])
    with refused(db, "HW105"):
        db.execute("DROP VIEW v")
