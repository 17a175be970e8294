"""Input that is wrong gets a clear error with a code, and changes nothing at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import headwater as hw
from tests.engine.support import bag, check_views, opened, raw, refused, rows, ticked

SHOP = """
CREATE TABLE item (id INT PRIMARY KEY, name STRING NOT NULL, price DECIMAL(6,2));
CREATE TABLE sale (item INT, qty SMALLINT);
CREATE STREAM visit (page STRING);
CREATE VIEW sold AS SELECT item, sum(qty) AS n FROM sale GROUP BY item;
INSERT INTO item VALUES (1, 'pen', 2.50), (2, 'ink', NULL);
INSERT INTO sale VALUES (1, 3), (1, 3), (2, 1)
"""


@pytest.fixture
def shop(db: hw.Database) -> hw.Database:
    db.execute(SHOP)
    return db


@pytest.fixture(scope="module")
def untouched() -> Iterator[hw.Database]:
    """A shop for all cases together: each must leave it as it was."""
    with opened() as db:
        db.execute(SHOP)
        yield db


Use = Callable[[hw.Database], object]


def epoch(*uses: Callable[[hw.EpochBuilder], object]) -> Use:
    """The operations as an epoch, behind one good one that must not stay either."""

    def run(db: hw.Database) -> None:
        with db.epoch() as e:
            e.insert("sale", [(9, 9)])
            for use in uses:
                use(e)

    return run


ROWS: dict[str, tuple[Use, str]] = {
    "a column too few, tuple": (lambda db: db.insert("item", [(5, "x")]), "HW3"),
    "a column too many, tuple": (lambda db: db.insert("item", [(5, "x", 1, 2)]), "HW3"),
    "a required column missing, dict": (lambda db: db.insert("item", [{"id": 5}]), "HW3"),
    "an unknown column, dict": (lambda db: db.insert("item", [{"id": 5, "name": "x", "colour": 1}]), "HW3"),
    "an unknown column, Arrow": (lambda db: db.insert("sale", pa.table({"item": [1], "quantity": [1]})), "HW3"),
    "a column twice, by case": (lambda db: db.insert("sale", [{"item": 1, "ITEM": 2, "qty": 1}]), "HW3"),
    "text for a number": (lambda db: db.insert("sale", [("one", 1)]), "HW3"),
    "a number for text": (lambda db: db.insert("item", [(5, 7, None)]), "HW3"),
    "a list for a number": (lambda db: db.insert("sale", [([1], 1)]), "HW3"),
    "a fraction for an integer": (lambda db: db.insert("sale", [(1.5, 1)]), "HW3"),
    "the second row is bad": (lambda db: db.insert("sale", [(1, 1), (1, "x")]), "HW3"),
    "an integer beyond its column": (lambda db: db.insert("sale", [(1, 40_000)]), "HW3"),
    "an integer beyond its column, Arrow": (
        lambda db: db.insert("sale", pa.table({"item": [2**40], "qty": [1]})),
        "HW3",
    ),
    "a decimal beyond its column": (lambda db: db.insert("item", [(5, "x", Decimal("12345.00"))]), "HW3"),
    "NULL in a key": (lambda db: db.insert("item", [(None, "x", 1)]), "HW327"),
    "NULL in a key, SQL": (lambda db: db.execute("INSERT INTO item VALUES (NULL, 'x', 1)"), "HW327"),
    "NULL where it is forbidden": (lambda db: db.insert("item", [(5, None, 1)]), "HW327"),
    "NULL where it is forbidden, SQL": (lambda db: db.execute("UPDATE item SET name = NULL"), "HW327"),
    "NULL in a key to put": (epoch(lambda e: e.upsert("item", [(None, "x", 1)])), "HW327"),
    "NULL in a key to delete": (epoch(lambda e: e.delete_keys("item", [None])), "HW327"),
    "no rows at all": (lambda db: db.insert("sale", None), "HW3"),
    "a bare value for a row": (lambda db: db.insert("sale", [5]), "HW3"),
    "a string for rows": (lambda db: db.insert("sale", "rows"), "HW3"),
    "a key twice in a batch": (lambda db: db.insert("item", [(5, "a", 1), (5, "b", 1)]), "HW305"),
    "the same row twice in a keyed batch": (lambda db: db.insert("item", [(5, "a", 1), (5, "a", 1)]), "HW305"),
    "a key that is there": (lambda db: db.insert("item", [(6, "a", 1), (1, "b", 1)]), "HW305"),
    "a key that is there, SQL": (lambda db: db.execute("INSERT INTO item VALUES (1, 'x', 1)"), "HW305"),
    "a key twice over two operations": (
        epoch(lambda e: e.insert("item", [(5, "a", 1)]), lambda e: e.insert("item", [(5, "b", 1)])),
        "HW305",
    ),
    "a key taken by an earlier upsert": (
        epoch(lambda e: e.upsert("item", [(5, "a", 1)]), lambda e: e.insert("item", [(5, "b", 1)])),
        "HW305",
    ),
    "a key taken by an update": (lambda db: db.execute("UPDATE item SET id = 1"), "HW305"),
    "a row deleted that is not there": (epoch(lambda e: e.delete("sale", [(7, 7)])), "HW306"),
    "a row deleted too often": (epoch(lambda e: e.delete("sale", [(1, 3), (1, 3), (1, 3)])), "HW306"),
    "a row with another NULL": (epoch(lambda e: e.delete("sale", [(None, 3)])), "HW306"),
    "a row deleted before it comes": (
        epoch(lambda e: e.delete("sale", [(7, 7)]), lambda e: e.insert("sale", [(7, 7)])),
        "HW306",
    ),
    "a key deleted that is not there": (epoch(lambda e: e.delete_keys("item", [77])), "HW306"),
    "a key of other columns": (epoch(lambda e: e.delete_keys("item", [{"name": "pen"}])), "HW3"),
    "a row deleted from a stream": (epoch(lambda e: e.delete("visit", [("x",)])), "HW302"),
    "an upsert without a key": (epoch(lambda e: e.upsert("sale", [(1, 1)])), "HW303"),
    "a row for a view": (lambda db: db.insert("sold", [(1, 1)]), "HW301"),
    "a row for a view, SQL": (lambda db: db.execute("INSERT INTO sold VALUES (1, 1)"), "HW301"),
    "a row deleted from a view": (epoch(lambda e: e.delete("sold", [(1, 6)])), "HW301"),
    "a view updated": (lambda db: db.execute("UPDATE sold SET n = 1"), "HW301"),
    "a relation nobody knows": (lambda db: db.insert("nobody", [(1,)]), "HW102"),
    "a relation nobody knows, SQL": (lambda db: db.execute("DELETE FROM nobody"), "HW102"),
    "an overflow while inserting": (lambda db: db.execute("INSERT INTO sale VALUES (1, 40000)"), "HW"),
    "an overflow while updating": (lambda db: db.execute("UPDATE item SET id = id * 2000000000"), "HW502"),
    "a division while deleting": (lambda db: db.execute("DELETE FROM item WHERE 1 / (id - 1) > 0"), "HW501"),
    "a condition that is no truth value": (lambda db: db.execute("DELETE FROM item WHERE id"), "HW1"),
    "an assignment of another type": (lambda db: db.execute("UPDATE item SET price = DATE '2024-01-01'"), "HW1"),
    "a column assigned twice": (lambda db: db.execute("UPDATE item SET price = 1, PRICE = 2"), "HW1"),
    "a column nobody knows": (lambda db: db.execute("UPDATE item SET colour = 1"), "HW1"),
    "too few values": (lambda db: db.execute("INSERT INTO sale VALUES (1)"), "HW"),
    "too many values": (lambda db: db.execute("INSERT INTO sale VALUES (1, 2, 3)"), "HW"),
    "rows of two widths": (lambda db: db.execute("INSERT INTO sale VALUES (1, 2), (1)"), "HW"),
    "a column listed twice": (lambda db: db.execute("INSERT INTO sale (item, item) VALUES (1, 2)"), "HW1"),
}


@pytest.mark.parametrize("case", ROWS)
def test_bad_rows(untouched: hw.Database, case: str) -> None:
    use, code = ROWS[case]
    before = raw(untouched)
    with pytest.raises(hw.UserError) as caught:
        use(untouched)
    assert caught.value.code.startswith(code), str(caught.value)
    assert raw(untouched) == before


DEFINITIONS: dict[str, tuple[str, str]] = {
    "an unknown relation": ("CREATE VIEW v AS SELECT * FROM nobody", "HW1"),
    "an unknown column": ("CREATE VIEW v AS SELECT colour FROM item", "HW1"),
    "an unknown function": ("CREATE VIEW v AS SELECT frobnicate(id) AS x FROM item", "HW1"),
    "itself": ("CREATE VIEW v AS SELECT * FROM v", "HW1"),
    "an ambiguous column": ("CREATE VIEW v AS SELECT id FROM item a JOIN item b ON a.id = b.id", "HW1"),
    "two columns of one name": ("CREATE VIEW v AS SELECT id, id FROM item", "HW1"),
    "two columns of one name, by case": ("CREATE VIEW v AS SELECT id, price AS ID FROM item", "HW1"),
    "more names than columns": ("CREATE VIEW v (a, b) AS SELECT id FROM item", "HW1"),
    "a column without a type": ("CREATE VIEW v AS SELECT NULL AS x FROM item", "HW1"),
    "a column that is not grouped": ("CREATE VIEW v AS SELECT name, count(*) AS n FROM item GROUP BY id", "HW1"),
    "an aggregate in WHERE": ("CREATE VIEW v AS SELECT id FROM item WHERE count(*) > 1", "HW"),
    "a comparison of a date with an integer": (
        "CREATE VIEW v AS SELECT id FROM item WHERE id = DATE '2024-01-01'",
        "HW1",
    ),
    "a reserved character": ("CREATE TABLE `a#b` (x INT)", "HW1"),
    "a reserved column": ("CREATE TABLE t (`#n` INT)", "HW1"),
    "a name that is taken, by case": ("CREATE TABLE ITEM (x INT)", "HW103"),
    "a column twice": ("CREATE TABLE t (a INT, A STRING)", "HW1"),
    "no columns": ("CREATE TABLE t ()", "HW0"),
    "a key of no column": ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "HW1"),
    "an unknown type": ("CREATE TABLE t (a FROB)", "HW"),
    "an impossible decimal": ("CREATE TABLE t (a DECIMAL(50,2))", "HW"),
    "an unknown strategy": ("CREATE VIEW v STRATEGY 'magic' AS SELECT id FROM item", "HW"),
    "STRICT and recompute": ("CREATE VIEW v STRICT STRATEGY 'recompute' AS SELECT id FROM item", "HW110"),
    "half a statement": ("CREATE VIEW v AS SELECT id FROM", "HW0"),
    "half a string": ("INSERT INTO visit VALUES ('x", "HW0"),
    "two statements run into one": ("SELECT 1 AS x SELECT 2 AS y", "HW0"),
    "not SQL": ("hello world", "HW0"),
    "a dropped nobody": ("DROP TABLE nobody", "HW102"),
    "a table dropped as a view": ("DROP VIEW item", "HW104"),
    "a refreshed nobody": ("REFRESH nobody", "HW102"),
    "a described nobody": ("DESCRIBE nobody", "HW102"),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_bad_statements(untouched: hw.Database, case: str) -> None:
    text, code = DEFINITIONS[case]
    before = raw(untouched)
    with pytest.raises(hw.HeadwaterError) as caught:
        untouched.execute(text)
    assert not isinstance(caught.value, hw.InternalError)
    assert caught.value.code.startswith(code), str(caught.value)
    assert caught.value.source is not None
    assert raw(untouched) == before


def test_statements_before_a_bad_one_stay_done(shop: hw.Database) -> None:
    with pytest.raises(hw.UserError) as caught:
        shop.execute("INSERT INTO sale VALUES (5, 5); INSERT INTO nobody VALUES (1); INSERT INTO sale VALUES (6, 6)")
    assert caught.value.code == "HW102"
    assert "nobody" in str(caught.value).split("\n")[2]
    assert bag(shop, "sale")[(5, 5)] == 1
    assert bag(shop, "sale")[(6, 6)] == 0


@pytest.mark.parametrize("text", ["", "   \n", ";", " ; ; ", "-- only a comment", "/* nothing */ ;"])
def test_empty_text_does_nothing(untouched: hw.Database, text: str) -> None:
    before = raw(untouched)
    assert untouched.execute(text) == []
    assert raw(untouched) == before
    with refused(untouched, "HW106"):
        untouched.query(text)


def test_query_takes_one_select(untouched: hw.Database) -> None:
    for text in ("SELECT 1 AS x; SELECT 2 AS x", "DROP TABLE item", "INSERT INTO sale VALUES (1, 1)"):
        with refused(untouched, "HW106"):
            untouched.query(text)


# -- sizes ---


def test_batches_of_no_and_one_row(shop: hw.Database) -> None:
    before = bag(shop, "sold")
    no_rows: list[object] = [[], pa.table({"item": pa.array([], pa.int32()), "qty": pa.array([], pa.int16())})]
    for nothing in no_rows:
        assert shop.insert("sale", nothing).changes.get("sale", 0) == 0
    with shop.epoch() as e:
        e.delete("sale", [])
        e.upsert("item", [])
        e.delete_keys("item", [])
    shop.execute("INSERT INTO sale SELECT * FROM sale WHERE qty > 100; UPDATE sale SET qty = 1 WHERE qty > 100")
    assert bag(shop, "sold") == before
    shop.insert("sale", [(1, 1)])
    assert rows(shop, "sold") == [(1, 7), (2, 1)]
    check_views(shop)


def test_a_string_of_fifty_megabytes(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (k INT, s STRING); CREATE VIEW v AS SELECT k, s FROM t WHERE s <> ''")
    huge = "é" * 25_000_000
    db.insert("t", [(1, huge), (2, "small")])
    assert db.query("SELECT s FROM v WHERE k = 1").column("s")[0].as_py() == huge
    db.execute("DELETE FROM t WHERE k = 1")
    assert rows(db, "v") == [(2, "small")]


def test_two_hundred_columns(db: hw.Database) -> None:
    names = [f"c{i}" for i in range(200)]
    db.execute(f"CREATE TABLE t ({', '.join(f'{name} INT' for name in names)})")
    db.execute("CREATE VIEW v AS SELECT * FROM t WHERE c199 > 0")
    db.execute(f"CREATE VIEW w AS SELECT c0, {', '.join(f'sum({n}) AS {n}' for n in names[1:40])} FROM t GROUP BY c0")
    db.insert("t", [tuple(range(200)), tuple(range(200))])
    assert rows(db, "v") == [tuple(range(200))] * 2
    assert rows(db, "w") == [(0, *(2 * i for i in range(1, 40)))]


def test_a_join_of_thirty(db: hw.Database) -> None:
    db.execute(";".join(f"CREATE TABLE t{i} (k INT, x INT)" for i in range(30)))
    joins = " ".join(f"JOIN t{i} ON t{i}.k = t{i - 1}.k" for i in range(1, 30))
    db.execute(f"CREATE VIEW v AS SELECT t0.k, {' + '.join(f't{i}.x' for i in range(30))} AS s FROM t0 {joins}")
    with db.epoch() as e:
        for i in range(30):
            e.insert(f"t{i}", [(1, i), (2, 0)])
    assert rows(db, "v") == [(1, sum(range(30))), (2, 0)]


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"SELECT {'(' * n}a{')' * n} AS x FROM t",
    "a long sum": lambda n: f"SELECT {'+'.join(['a'] * n)} AS x FROM t",
    "a long conjunction": lambda n: f"SELECT a FROM t WHERE {' AND '.join(['a < 9'] * n)}",
    "nested queries": lambda n: "SELECT a FROM (" * n + "SELECT a FROM t" + ") AS q" * n,
    "nested calls": lambda n: f"SELECT {'abs(' * n}a{')' * n} AS x FROM t",
    "a long union": lambda n: " UNION ALL ".join(["SELECT a FROM t"] * n),
}


@pytest.mark.parametrize("size", [20, 300, 3000])
@pytest.mark.parametrize("what", DEEP)
def test_deep_nesting_works_or_is_refused(db: hw.Database, what: str, size: int) -> None:
    if what == "a long union":
        size = min(size, 100)  # works, and only takes its time
    db.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)")
    before = raw(db)
    refusal: hw.HeadwaterError | None = None
    try:
        db.execute(f"CREATE VIEW v AS {DEEP[what](size)}")
    except hw.HeadwaterError as error:
        refusal = error
    if refusal is None:
        assert db.insert("t", [(2,)]).suspended == {}
        assert rows(db, "v")
    else:
        assert refusal.code == "HW002"
        assert raw(db) == before
        assert size > 20


# -- names ---

NAMES = [
    "select", "group", "values", "null", "delta", "since", "now", "batch", "temp", "old", "b1", "a b", "a.b", 'a"b',
    "a'b", "a`b", "a\nb", "a;b--", " ", "é", "MiXed", "日本🙂", "1abc", "x" * 200,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:8])
def test_any_name_in_backticks(name: str) -> None:
    q, other = ticked(name), ticked(f"{name} too")
    with opened() as db:
        db.execute(f"CREATE TABLE {q} ({q} INT, k INT)")
        db.execute(f"CREATE VIEW {other} AS SELECT {q}, sum(k) AS {other} FROM {q} GROUP BY {q}")
        db.execute(f"CREATE VIEW w AS SELECT {other}.{q}, {q}.k FROM {q} JOIN {q} AS {other} ON {other}.k = {q}.k")
        db.insert(name, [{name: 1, "k": 2}, {name: 1, "k": 3}, {name: 5, "k": 6}])
        db.execute(f"UPDATE {q} SET {q} = 7 WHERE {q}.{q} = 5")
        db.execute(f"DELETE FROM {q} WHERE {q}.k = 3")
        assert rows(db, f"{name} too") == [(1, 2), (7, 6)]
        assert rows(db, "w") == [(1, 2), (7, 6)]


def test_explain_and_drop_of_an_awful_name(db: hw.Database) -> None:
    q = ticked("a`.\"'\n;b")
    db.execute(f"CREATE TABLE {q} ({q} INT); CREATE VIEW v AS SELECT {q}, count(*) AS n FROM {q} AS {q} GROUP BY {q}")
    db.execute(f"INSERT INTO {q} ({q}) VALUES (1)")
    assert db.query("SELECT * FROM v").column_names == ["a`.\"'\n;b", "n"]
    assert str(db.explain("v")) and db.explain("v").to_dict()
    db.execute(f"DESCRIBE {q}; DROP TABLE {q} CASCADE")
    assert db.relations() == []


def test_names_are_found_without_case_and_shown_as_written(db: hw.Database) -> None:
    db.execute("CREATE TABLE Sale (Item INT, QTY INT)")
    db.execute("CREATE VIEW Sold AS SELECT ITEM, sum(qty) AS Total FROM SALE GROUP BY item")
    db.insert("sALE", [{"item": 1, "Qty": 2}])
    assert rows(db, "SELECT TOTAL FROM sold WHERE iTEM = 1") == [(2,)]
    assert db.query("SELECT * FROM sold").column_names == ["ITEM", "Total"]
    assert [one["name"] for one in db.relations()] == ["Sale", "Sold"]


def test_a_view_over_a_dropped_table(shop: hw.Database) -> None:
    shop.execute("DROP TABLE sale CASCADE")
    with refused(shop, "HW102"):
        shop.query("SELECT * FROM sold")
    with refused(shop, "HW102"):
        shop.execute("CREATE VIEW v AS SELECT * FROM sale")
    with refused(shop, "HW102"):
        shop.insert("sale", [(1, 1)])
