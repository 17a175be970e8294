"""Which queries a view answers: pairs of a view and a query, each with why it does not, or what is left to do."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest

import headwater as hw
from headwater import types as t
from headwater.algebra.nodes import Present, Scan
from headwater.algebra.scalars import Column, Literal, call
from headwater.plan.answer_from import Outcome
from headwater.plan.facts import Facts
from headwater.plan.intervals import KNOWN, NULL, Values, among, compared
from headwater.sql.lower import lower_answer
from headwater.sql.parse import parse
from headwater.sql.statements import Query

SALES = [
    (1, "north", 1, 20, Decimal("1.50"), 0.5, dt.date(2024, 1, 1)),
    (2, "north", 2, 30, Decimal("2.50"), 1.5, dt.date(2024, 1, 2)),
    (3, "south", 1, None, None, None, dt.date(2024, 1, 3)),
    (4, "south", 3, 16, Decimal("3.50"), -2.25, None),
    (5, "south", 1, 6, Decimal("7.50"), 4.0, dt.date(2024, 1, 3)),
    (6, "east", 2, 6, None, 0.25, dt.date(2024, 2, 1)),
    (7, "east", 2, 6, Decimal("0.10"), 0.25, dt.date(2024, 2, 1)),
    (8, "west", None, -4, Decimal("0.10"), None, dt.date(2024, 2, 1)),
]


@pytest.fixture(scope="module")
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        opened.execute("""
            CREATE TABLE sale (id INT PRIMARY KEY, shop STRING NOT NULL, item INT, euros INT, price DECIMAL(8,2),
                weight DOUBLE, day DATE);
            CREATE TABLE shop (name STRING PRIMARY KEY, town STRING);
            CREATE TABLE log (shop STRING, n INT);
            CREATE STREAM seen (shop STRING, n INT) RETAIN ALL;
            INSERT INTO shop VALUES ('north', 'X'), ('south', 'X'), ('east', 'Y');
            INSERT INTO log VALUES ('north', 1), ('north', 1), ('south', 2), (NULL, 3);
            INSERT INTO seen VALUES ('north', 1), ('south', 2)
        """)
        opened.insert("sale", SALES)
        opened.answering.decide = lambda before, after: True
        yield opened


def outcome(db: hw.Database, query: str) -> Outcome:
    [statement] = parse(query)
    assert isinstance(statement, Query)
    relations, moment = db.relations_for_queries(), db.engine.present()
    answer = lower_answer(statement.query, relations, statement.source, moment=moment)
    return db.answering.outcome(answer.node, db.engine.catalog)


def bag(db: hw.Database, query: str, views: bool) -> Counter[str]:
    return Counter(str(row) for row in db.query(query, views=views).to_pylist())


#: The view, the query, and what is left to do of it: a part of the tree that is evaluated.
ANSWERED = [
    # rows from rows
    ("SELECT * FROM sale WHERE euros > 5", "SELECT id FROM sale WHERE euros > 10", "euros > 10"),
    ("SELECT id, euros FROM sale WHERE euros > 5", "SELECT id FROM sale WHERE euros >= 6", "project[id := v#1.id]("),
    ("SELECT id, euros FROM sale WHERE euros > 5", "SELECT id FROM sale WHERE euros IN (7, 20)", "in(v#1.euros, 7"),
    ("SELECT id, item FROM sale WHERE item IN (1, 2, 3)", "SELECT id FROM sale WHERE item = 2", "v#1.item = 2"),
    ("SELECT id FROM sale WHERE euros IS NOT NULL", "SELECT id FROM sale WHERE euros IS NOT NULL", "v as v#1"),
    ("SELECT id, euros FROM sale WHERE euros IS NOT NULL", "SELECT id FROM sale WHERE euros + 1 > 7", "v#1.euros + 1"),
    ("SELECT id, euros e FROM sale WHERE euros < 7 OR euros > 18", "SELECT id FROM sale WHERE euros < 3", "v#1.e < 3"),
    ("SELECT id, item FROM sale WHERE item = 1 OR shop = 'east'", "SELECT id FROM sale WHERE item = 1", "v#1.item = 1"),
    (
        "SELECT id, item, euros FROM sale WHERE item IN (1, 2)",
        "SELECT id FROM sale WHERE (item = 1 AND euros > 5) OR (item = 2 AND euros < 9)",
        "or",
    ),
    (
        "SELECT id, day FROM sale WHERE day > '2024-01-01'",
        "SELECT id FROM sale WHERE day >= DATE'2024-01-02'",
        "v#1.id",
    ),
    ("SELECT id, shop FROM sale WHERE shop LIKE 'n%'", "SELECT id FROM sale WHERE shop LIKE 'n%' AND id > 1", "id > 1"),
    ("SELECT id, euros * 2 AS d FROM sale", "SELECT id, euros * 2 + 1 AS x FROM sale", "v#1.d + 1"),
    ("SELECT id FROM sale WHERE shop = 'east'", "SELECT id, shop FROM sale WHERE shop = 'east'", "shop := 'east'"),
    (
        "SELECT id, euros FROM sale WHERE NOT (euros <= 5)",
        "SELECT id FROM sale WHERE 5 < euros",
        "project[id := v#1.id](",
    ),
    ("SELECT id, euros e, item FROM sale WHERE euros > item", "SELECT id FROM sale WHERE item < euros", "v as v#1"),
    # joins
    (
        "SELECT s.id, t.town FROM sale s JOIN shop t ON s.shop = t.name",
        "SELECT x.id FROM shop y JOIN sale x ON y.name = x.shop WHERE y.town = 'X'",
        "v#1.town = 'X'",
    ),
    (
        "SELECT s.id, t.name FROM sale s JOIN shop t ON s.shop = t.name",
        "SELECT s.id, s.shop FROM sale s JOIN shop t ON s.shop = t.name",
        "shop := v#1.name",
    ),
    (
        "SELECT id, shop, euros FROM sale WHERE euros > 5",
        "SELECT s.id, t.town FROM sale s JOIN shop t ON s.shop = t.name WHERE s.euros > 7",
        "shop as t",
    ),
    (
        "SELECT a.id AS a, b.id AS b, a.euros FROM sale a JOIN sale b ON a.item = b.item AND a.id < b.id",
        "SELECT y.id AS i, x.id AS j FROM sale x JOIN sale y ON x.item = y.item AND y.id < x.id WHERE y.euros > 5",
        "v#1.euros > 5",
    ),
    (
        "SELECT s.id, t.town FROM sale s LEFT JOIN shop t ON s.shop = t.name",
        "SELECT id FROM (SELECT s.id, t.town FROM sale s LEFT JOIN shop t ON s.shop = t.name)",
        "v as v#1",
    ),
    # groups from rows
    ("SELECT id, shop, euros FROM sale", "SELECT shop, SUM(euros) AS e, COUNT(*) AS n FROM sale GROUP BY shop", "sum["),
    ("SELECT shop, item FROM sale", "SELECT DISTINCT shop FROM sale", "sum["),
    ("SELECT euros FROM sale WHERE euros > 100", "SELECT COUNT(*), SUM(euros) FROM sale WHERE euros > 100", "v as v#1"),
    # groups from groups, as they are
    (
        "SELECT shop, item, AVG(euros) AS a FROM sale GROUP BY shop, item",
        "SELECT shop, AVG(euros) AS a FROM sale WHERE item = 1 GROUP BY shop, item",
        "filter[v#1.item = 1](",
    ),
    (
        "SELECT shop, SUM(weight) AS w, STDDEV(euros) AS d FROM sale GROUP BY shop",
        "SELECT shop, STDDEV(euros), SUM(weight) + 1 FROM sale GROUP BY shop",
        "v#1.w + ",
    ),
    (
        "SELECT shop, SUM(euros) AS e, COUNT(*) AS n FROM sale GROUP BY shop HAVING COUNT(*) > 1",
        "SELECT shop, SUM(euros) FROM sale GROUP BY shop HAVING COUNT(*) > 2",
        "v#1.n > 2",
    ),
    ("SELECT SUM(euros) AS e FROM sale WHERE id > 100", "SELECT SUM(euros) FROM sale WHERE id > 100", "v as v#1"),
    # groups from groups, added up
    (
        "SELECT shop, item, SUM(euros) AS e, COUNT(*) AS n FROM sale GROUP BY shop, item",
        "SELECT shop, SUM(euros), COUNT(*) FROM sale WHERE item < 3 GROUP BY shop",
        "v#1.item < 3",
    ),
    ("SELECT shop, COUNT(*) AS n FROM sale GROUP BY shop", "SELECT COUNT(*) FROM sale WHERE shop = 'none'", "v#1.n"),
    (
        "SELECT item, SUM(euros) AS e FROM sale GROUP BY item",
        "SELECT SUM(euros) FROM sale WHERE item = 99",
        "is not null",
    ),
    (
        "SELECT shop, item, SUM(price) AS p, COUNT(price) AS n FROM sale GROUP BY shop, item",
        "SELECT shop, AVG(price) FROM sale GROUP BY shop",
        "avg_decimal",
    ),
    (
        "SELECT shop, item, MIN(euros) AS lo, MAX(day) AS hi FROM sale GROUP BY shop, item",
        "SELECT item, MIN(euros), MAX(day) FROM sale GROUP BY item",
        "min(v#1.lo)",
    ),
    (
        "SELECT DISTINCT shop, item FROM sale",
        "SELECT shop, COUNT(DISTINCT item), MAX(item) FROM sale GROUP BY shop",
        "max(",
    ),
    (
        "SELECT DISTINCT shop, item FROM sale",
        "SELECT DISTINCT item FROM sale WHERE shop <> 'west'",
        "v#1.shop <> 'west'",
    ),
    (
        "SELECT item, COUNT(*) AS n FROM sale GROUP BY item",
        "SELECT SUM(item), COUNT(item), COUNT(*) FROM sale",
        "weigh(coalesce(v#1.item, 0), v#1.n)",
    ),
    (
        "SELECT shop, SUM(euros) AS e, COUNT(*) AS n FROM sale GROUP BY shop",
        "SELECT t.town, SUM(s.euros), COUNT(*) FROM sale s JOIN shop t ON s.shop = t.name GROUP BY t.town",
        "shop as t",
    ),
    (
        "SELECT shop, COUNT(*) AS n FROM log GROUP BY shop",
        "SELECT COUNT(*), SUM(s.id) FROM log l JOIN sale s ON s.shop = l.shop",
        "v#1.n",
    ),
    # a group that has one row is that row
    ("SELECT DISTINCT id, shop FROM sale", "SELECT shop FROM sale WHERE id > 3", ".id > 3"),
    # rows of streams that both have seen
    (
        "SELECT shop, COUNT(*) AS n FROM seen GROUP BY shop",
        "SELECT shop, COUNT(*) AS m FROM seen GROUP BY shop",
        "m := v#1.n",
    ),
    # a part of a query
    (
        "SELECT shop, SUM(euros) AS e FROM sale GROUP BY shop",
        "SELECT name FROM shop JOIN (SELECT shop, SUM(euros) AS e FROM sale GROUP BY shop) ON name = shop WHERE e > 20",
        "v as v#",
    ),
    (
        "SELECT id, euros FROM sale WHERE euros > 5",
        "SELECT id FROM sale WHERE euros > 10 UNION ALL SELECT id FROM sale WHERE euros > 20",
        "union(",
    ),
]


@pytest.mark.parametrize(("view", "query", "left"), ANSWERED, ids=range(len(ANSWERED)))
def test_a_view_answers(db: hw.Database, view: str, query: str, left: str) -> None:
    db.execute(f"CREATE VIEW v AS {view}")
    try:
        found = outcome(db, query)
        assert {use.view for use in found.uses} == {"v"}, found.refused
        assert left in str(found.node)
        assert bag(db, query, views=True) == bag(db, query, views=False)
    finally:
        db.execute("DROP VIEW v")


#: The view, a query that it nearly answers, and why it does not.
REFUSED = [
    (
        "SELECT shop, sum(item) AS n, count(*) AS c FROM sale GROUP BY shop",
        "SELECT shop, sum(item) AS n FROM sale GROUP BY shop, item",
        "does not show",
    ),
    (
        "SELECT shop, count(*) AS c FROM sale GROUP BY shop",
        "SELECT shop FROM sale GROUP BY shop, item",
        "does not show",
    ),
    (
        "SELECT shop, count(*) AS c FROM sale GROUP BY shop",
        "SELECT count(*) AS c FROM sale GROUP BY shop, item",
        "item",
    ),
    # rows that are missing
    ("SELECT * FROM sale WHERE euros > 5", "SELECT id FROM sale WHERE euros > 4", "has only rows where sale.euros > 5"),
    ("SELECT * FROM sale WHERE euros > 5", "SELECT id FROM sale", "has only rows where"),
    ("SELECT * FROM sale WHERE euros <> 6", "SELECT id FROM sale WHERE euros >= 6", "has only rows where"),
    ("SELECT * FROM sale WHERE item IN (1, 2)", "SELECT id FROM sale WHERE item IN (2, 3)", "has only rows where"),
    ("SELECT * FROM sale WHERE euros IS NOT NULL", "SELECT id FROM sale WHERE item > 0", "has only rows where"),
    ("SELECT * FROM sale WHERE shop LIKE 'n%'", "SELECT id FROM sale WHERE shop LIKE 'no%'", "has only rows where"),
    ("SELECT * FROM sale WHERE item = 1", "SELECT id FROM sale WHERE item = 1 OR euros > 3", "has only rows where"),
    ("SELECT * FROM sale WHERE euros > 5 AND item = 1", "SELECT id FROM sale WHERE euros > 5", "item = 1"),
    ("SELECT * FROM sale WHERE euros < item", "SELECT id FROM sale WHERE euros <= item", "has only rows where"),
    (
        "SELECT a.id FROM sale a JOIN sale b ON a.item = b.item AND a.id < b.id",
        "SELECT a.id FROM sale a JOIN sale b ON a.item = b.item",
        "has only rows where",
    ),
    # columns that are missing
    ("SELECT id FROM sale WHERE euros > 5", "SELECT id FROM sale WHERE euros > 10", "does not show sale.euros"),
    ("SELECT id FROM sale", "SELECT id, item FROM sale", "does not show sale.item"),
    ("SELECT id FROM sale WHERE euros >= item", "SELECT id FROM sale WHERE item < euros", "does not show sale.item"),
    ("SELECT id, euros + 1 AS e FROM sale", "SELECT euros FROM sale", "does not show sale.euros"),
    (
        "SELECT s.id, s.shop FROM sale s JOIN shop t ON true",
        "SELECT s.id FROM sale s JOIN shop t ON s.shop = t.name",
        "does not show t.name",
    ),
    # rows too often, or not often enough
    ("SELECT DISTINCT shop FROM log", "SELECT shop FROM log", "how often each row is there"),
    ("SELECT shop, COUNT(*) AS c FROM log GROUP BY shop", "SELECT shop FROM log", "how often each row is there"),
    ("SELECT DISTINCT shop, n FROM log", "SELECT shop, COUNT(*) FROM log GROUP BY shop", "does not show COUNT(*)"),
    ("SELECT DISTINCT shop, n FROM log", "SELECT shop, SUM(n) FROM log GROUP BY shop", "does not show COUNT(*)"),
    # more is joined than is asked for, or something else
    ("SELECT s.id FROM sale s JOIN shop t ON s.shop = t.name", "SELECT id FROM sale", None),
    ("SELECT shop, n FROM log", "SELECT shop, n FROM seen", None),
    # groups
    (
        "SELECT shop, SUM(euros) AS e FROM sale GROUP BY shop",
        "SELECT item, SUM(euros) FROM sale GROUP BY item",
        "sale.item",
    ),
    ("SELECT shop, AVG(euros) AS a FROM sale GROUP BY shop", "SELECT AVG(euros) FROM sale", "does not show the total"),
    (
        "SELECT shop, item, SUM(euros) AS e FROM sale GROUP BY shop, item",
        "SELECT shop, AVG(euros) FROM sale GROUP BY shop",
        "does not show the total of sale.euros is not null",
    ),
    (
        "SELECT shop, item, SUM(weight) AS w FROM sale GROUP BY shop, item",
        "SELECT SUM(weight) FROM sale",
        "does not show",
    ),
    ("SELECT shop, SUM(euros) AS e FROM sale GROUP BY shop", "SELECT SUM(euros) FROM sale WHERE id > 3", "sale.id"),
    ("SELECT SUM(euros) AS e FROM sale", "SELECT shop, SUM(euros) FROM sale GROUP BY shop", "one row for everything"),
    (
        "SELECT SUM(euros) AS e FROM sale WHERE item = 1",
        "SELECT SUM(euros) AS e FROM sale WHERE item = 1 AND item = 2",
        "one row for everything",
    ),
    (
        "SELECT COUNT(*) AS n FROM sale WHERE shop = 'none'",
        "SELECT COUNT(*) FROM sale WHERE shop = 'none' GROUP BY shop",
        "one row for everything",
    ),
    (
        "SELECT shop, COUNT(*) AS n FROM sale GROUP BY shop HAVING COUNT(*) > 1",
        "SELECT shop, COUNT(*) FROM sale GROUP BY shop",
        "has only groups where #count > 1",
    ),
    (
        "SELECT shop, COUNT(*) AS n FROM sale GROUP BY shop HAVING COUNT(*) > 1",
        "SELECT COUNT(*) FROM sale",
        "has only groups where #count > 1",
    ),
    ("SELECT shop, item, MIN(day) AS d FROM sale GROUP BY shop, item", "SELECT MAX(day) FROM sale", "does not show"),
    ("SELECT shop, COUNT(DISTINCT item) AS n FROM sale GROUP BY shop", "SELECT COUNT(DISTINCT item) FROM sale", "item"),
    (
        "SELECT shop, item, COLLECT_LIST(euros) AS l FROM sale GROUP BY shop, item",
        "SELECT shop, COLLECT_LIST(item) FROM sale GROUP BY shop",
        "does not show collect_list",
    ),
    # what equal columns are
    ("SELECT id, weight FROM sale", "SELECT id, price FROM sale WHERE CAST(price AS DOUBLE) = weight", "does not show"),
]


@pytest.mark.parametrize(("view", "query", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_view_does_not_answer(db: hw.Database, view: str, query: str, reason: str | None) -> None:
    db.execute(f"CREATE VIEW v AS {view}")
    try:
        found = outcome(db, query)
        assert not found.uses
        assert found.refused.get("v") is None if reason is None else reason in found.refused["v"]
    finally:
        db.execute("DROP VIEW v")


def test_rows_of_a_stream_that_only_one_has_seen() -> None:
    """A view over a stream has seen what was there when it was made, and all since; a query sees what is retained."""
    with hw.connect() as db:
        assert isinstance(db, hw.Database)
        db.answering.decide = lambda before, after: True
        db.execute("""
            CREATE STREAM lately (shop STRING, n INT) RETAIN 1 DAYS;
            CREATE VIEW v AS SELECT shop, n FROM lately;
            ADVANCE CLOCK TO TIMESTAMP '2090-01-01 00:00:00';
            INSERT INTO lately VALUES ('a', 1)
        """)
        later = outcome(db, "SELECT n FROM lately")
        db.execute("ADVANCE CLOCK TO TIMESTAMP '2090-02-01 00:00:00'")
        assert later.uses
        assert not outcome(db, "SELECT n FROM lately").uses
        assert db.query("SELECT n FROM lately").num_rows == 0
        assert db.query("SELECT n FROM v").num_rows == 1


def test_a_view_over_a_view_answers_what_both_are_made_of(db: hw.Database) -> None:
    db.execute("""
        CREATE VIEW below AS SELECT id, shop, euros FROM sale WHERE euros > 5;
        CREATE VIEW above AS SELECT shop, SUM(euros) AS e, COUNT(*) AS n FROM below GROUP BY shop
    """)
    try:
        query = "SELECT shop, COUNT(*) FROM sale WHERE euros > 5 GROUP BY shop"
        found = outcome(db, query)
        assert found.node.relations in ({"above"}, {"below"})
        assert {"above", "below"} >= {use.view for use in found.uses}
        assert bag(db, query, views=True) == bag(db, query, views=False)
        assert outcome(db, "SELECT COUNT(*) FROM below").node.relations == {"above"}
    finally:
        db.execute("DROP VIEW below CASCADE")


def test_two_views_answer_one_query(db: hw.Database) -> None:
    db.execute("""
        CREATE VIEW north AS SELECT id, shop, euros FROM sale WHERE euros > 5;
        CREATE VIEW towns AS SELECT name, town FROM shop WHERE town = 'X'
    """)
    try:
        query = "SELECT s.id, t.town FROM sale s JOIN shop t ON s.shop = t.name WHERE s.euros > 7 AND t.town = 'X'"
        assert outcome(db, query).node.relations == {"north", "towns"}
        assert bag(db, query, views=True) == bag(db, query, views=False)
    finally:
        db.execute("DROP VIEW north; DROP VIEW towns")


def test_a_suspended_view_answers_nothing(db: hw.Database) -> None:
    db.execute("CREATE VIEW v AS SELECT shop, 10 / n AS x, n FROM log")
    try:
        assert outcome(db, "SELECT n FROM log").uses
        db.execute("INSERT INTO log VALUES ('zero', 0)")
        assert not outcome(db, "SELECT n FROM log").uses
        assert {"n": 0} in db.query("SELECT n FROM log").to_pylist()
        db.execute("DELETE FROM log WHERE n = 0; REFRESH v")
        assert outcome(db, "SELECT n FROM log").uses
    finally:
        db.execute("DROP VIEW v")


def test_a_late_view_answers_only_what_is_as_late(db: hw.Database) -> None:
    db.execute("CREATE VIEW v REFRESH MANUAL AS SELECT shop, n FROM log")
    try:
        db.execute("INSERT INTO log VALUES ('late', 9)")
        assert not outcome(db, "SELECT n FROM log").uses
        assert {"n": 9} in db.query("SELECT n FROM log").to_pylist()
    finally:
        db.execute("DROP VIEW v; DELETE FROM log WHERE n = 9")


def test_a_hint_turns_it_off(db: hw.Database) -> None:
    db.execute("CREATE VIEW v AS SELECT shop, n FROM log")
    calls: list[float] = []
    db.answering.decide = lambda before, after: bool(calls.append(after)) or True
    try:
        db.query("SELECT /*+ NO_VIEWS */ n FROM log")
        db.query("SELECT n FROM log", views=False)
        assert not calls
        db.query("SELECT n FROM log")
        assert calls
    finally:
        db.answering.decide = lambda before, after: True
        db.execute("DROP VIEW v")


def test_a_view_that_is_no_smaller_is_not_taken(db: hw.Database) -> None:
    from headwater.plan.answer_from import fewer

    db.answering.decide = fewer
    try:
        db.execute("CREATE VIEW v AS SELECT id, shop FROM sale; CREATE VIEW w AS SELECT id FROM sale WHERE euros > 15")
        found = outcome(db, "SELECT shop FROM sale")
        assert not found.uses
        assert found.refused["v"] == "would be read for 8 rows in all, and the query reads 8 without it"
        assert outcome(db, "SELECT id FROM sale WHERE euros > 15").node.relations == {"w"}
    finally:
        db.answering.decide = lambda before, after: True
        db.execute("DROP VIEW v; DROP VIEW w")


def test_only_views_that_read_the_same_are_tried(db: hw.Database) -> None:
    db.execute("".join(f"CREATE VIEW other{i} AS SELECT n + {i} AS n FROM log;" for i in range(20)))
    db.execute("CREATE VIEW mine AS SELECT id FROM sale WHERE euros > 5")
    try:
        found = outcome(db, "SELECT id FROM sale WHERE item = 3")
        assert set(found.refused) == {"mine"}
    finally:
        db.execute("".join(f"DROP VIEW other{i};" for i in range(20)) + "DROP VIEW mine")


# -- what follows from what --------------------------------------------------------------------------------------------

X, Y, Z = (Column(name, t.INT) for name in "xyz")
D, E = (Column(name, t.DOUBLE) for name in "de")


def n(value: int) -> Literal:
    return Literal(value, t.INT)


def test_equal_columns_are_one() -> None:
    facts = Facts([call("=", X, Y), call("=", Y, Z), call(">", Z, n(3))])
    assert facts.implies(call("=", X, Z))
    assert facts.implies(call(">", X, n(2)))
    assert facts.implies(call("is not null", Y))
    assert not facts.implies(call(">", X, n(4)))


def test_equal_doubles_may_differ() -> None:
    """0.0 equals -0.0, and 1 / 0.0 does not equal 1 / -0.0."""
    facts = Facts([call("=", D, E)])
    assert facts.implies(call("=", E, D))
    assert facts.canonical(D) != facts.canonical(E)


def test_cases() -> None:
    either = call("or", call("and", call("=", X, n(1)), call(">", Y, n(5))), call("=", X, n(2)))
    assert Facts([either]).implies(call("in", X, n(1), n(2), n(3)))
    assert not Facts([either]).implies(call(">", Y, n(5)))


def test_remainders() -> None:
    facts = Facts([call("=", call("%", X, n(4)), n(2))])
    assert facts.implies(call("=", call("%", X, n(2)), n(0)))
    assert not facts.implies(call("=", call("%", X, n(8)), n(2)))


def test_null_is_not_known_to_be_anything() -> None:
    assert not Facts([]).implies(call("=", X, X))
    assert Facts([], ["x"]).implies(call("=", X, X))
    assert not Facts([call("is null", X)]).implies(call("is not null", X))
    assert not Facts([call("not", call("is not null", X))]).implies(call("is not null", X))


@pytest.mark.parametrize("value", range(-2, 4))
def test_sets_of_values(value: int) -> None:
    """Against the numbers themselves."""
    sets = {function: compared(function, 1, t.INT) for function in ("=", "<>", "<", "<=", ">", ">=")} | {
        "in": among([0, 2, None], t.INT),
        "known": KNOWN,
        "null": NULL,
    }
    tests = {
        "=": lambda v: v == 1, "<>": lambda v: v != 1, "<": lambda v: v < 1, "<=": lambda v: v <= 1,
        ">": lambda v: v > 1, ">=": lambda v: v >= 1, "in": lambda v: v in (0, 2), "known": lambda v: True,
        "null": lambda v: False,
    }  # fmt: skip
    numbers = range(-5, 6)

    def held(values: Values) -> set[int]:
        return {v for v in numbers if compared("=", v, t.INT) <= values}

    for a, left in sets.items():
        assert held(left) == {v for v in numbers if tests[a](v)}
        for right in sets.values():
            assert held(left & right) == held(left) & held(right)
            assert held(left | right) == held(left) | held(right)
            assert (left <= right) == ((left & right) == left)
    assert compared("=", value, t.INT).point == value
    assert (compared(">=", value, t.INT) & compared("<=", value, t.INT)).point == value


def test_the_tree_has_the_columns_of_the_query(db: hw.Database) -> None:
    db.execute("CREATE VIEW v AS SELECT shop, item, COUNT(*) AS n FROM sale GROUP BY shop, item")
    try:
        found = outcome(db, "SELECT COUNT(*) AS `a b`, shop FROM sale GROUP BY shop").node
        assert isinstance(found, Present)
        assert found.column_names == ("a b", "shop")
        assert [one.relation for one in found.walk() if isinstance(one, Scan)] == ["v"]
    finally:
        db.execute("DROP VIEW v")
