"""The draft on views in key-value stores: base tables with put and delete, and the views of its tables 1 and 2.

put(k, ...) is `upsert`, delete(k) is `delete_keys`: neither brings old values. What the paper keeps a DELTA view for,
the store of a keyed stream (or table) has: the row before the operation. Figure 3, the initial state of example 1, is
not in the text; these rows fit all that the text says of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.plan.roles import Role

Row = tuple[object, ...]

BASE = [("k1", "x1", 20), ("k2", "x1", 30), ("k3", "x2", 35), ("k4", "x2", 50)]
VIEWS = """
    CREATE VIEW selection AS SELECT k, c1, c2 FROM a WHERE c2 < 33;
    CREATE VIEW projection AS SELECT k, c2 FROM a;
    CREATE VIEW counted AS SELECT c1, COUNT(c2) AS n FROM a GROUP BY c1;
    CREATE VIEW summed AS SELECT c1, SUM(c2) AS s FROM a GROUP BY c1;
    CREATE VIEW least AS SELECT c1, MIN(c2) AS low FROM a GROUP BY c1;
    CREATE VIEW indexed AS SELECT c1, ARRAY_SORT(COLLECT_LIST(k)) AS ks FROM a GROUP BY c1;
    CREATE VIEW joined AS SELECT a.k, b.l, a.c2, b.d FROM a JOIN b ON a.c1 = b.c1
"""


@pytest.fixture(params=["CREATE STREAM {} KEY ({})", "CREATE TABLE {}, PRIMARY KEY ({}))"])
def db(request: Any) -> Iterator[hw.Database]:
    """The base tables, as keyed streams and as tables with a key: the same operations, the same views."""
    with hw.connect() as database:
        assert isinstance(database, hw.Database)
        for columns, key in (("a (k STRING, c1 STRING, c2 INT)", "k"), ("b (l STRING, c1 STRING, d INT)", "l")):
            table = "TABLE" in request.param
            database.execute(request.param.format(columns[:-1] if table else columns, key))
        database.execute(VIEWS)
        database.upsert("a", BASE)
        database.upsert("b", [("l1", "x1", 1), ("l2", "x2", 2)])
        yield database


def rows(db: hw.Database, relation: str) -> list[Row]:
    return sorted(tuple(row.values()) for row in db.query(f"SELECT * FROM {relation}").to_pylist())


def changes(db: hw.Database, operation: Any) -> dict[str, list[Row]]:
    """What an operation changes in each view: rows that come and go, the multiplicity first."""
    seen: list[dict[str, list[Row]]] = []

    def note(_: int, changed: Any) -> None:
        seen.append(
            {
                name: sorted((row.pop("#n"), *(tuple(v) if isinstance(v, list) else v for v in row.values()))
                             for row in table.to_pylist())
                for name, table in changed.items()
            }
        )  # fmt: skip

    db.observe(note)
    operation(db)
    db.engine.observers.clear()
    [found] = seen
    return found


def test_example_1(db: hw.Database) -> None:
    assert rows(db, "summed") == [("x1", 50), ("x2", 85)]
    found = changes(db, lambda one: one.upsert("a", [("k2", "x2", 15)]))
    # t2 = put(k2, c1: x1 -> x2, c2: 30 -> 15): the old values were known, so the put is told apart from an insert.
    assert found["projection"] == [(-1, "k2", 30), (1, "k2", 15)]
    # 50 - 30 = 20, and 85 + 15 = 100; the paper prints 85 + 50 = 135, a slip.
    assert found["summed"] == [(-1, "x1", 50), (-1, "x2", 85), (1, "x1", 20), (1, "x2", 100)]
    assert rows(db, "summed") == [("x1", 20), ("x2", 100)]


def test_put_of_a_new_key_is_an_insert(db: hw.Database) -> None:
    found = changes(db, lambda one: one.upsert("a", [("k5", "x3", 10)]))
    assert found == {
        "selection": [(1, "k5", "x3", 10)],
        "projection": [(1, "k5", 10)],
        "counted": [(1, "x3", 1)],
        "summed": [(1, "x3", 10)],
        "least": [(1, "x3", 10)],
        "indexed": [(1, "x3", ("k5",))],
    }


def test_every_view_type_follows_a_put_and_a_delete(db: hw.Database) -> None:
    found = changes(db, lambda one: one.upsert("a", [("k1", "x2", 40)]))
    assert found == {
        "selection": [(-1, "k1", "x1", 20)],
        "projection": [(-1, "k1", 20), (1, "k1", 40)],
        "counted": [(-1, "x1", 2), (-1, "x2", 2), (1, "x1", 1), (1, "x2", 3)],
        "summed": [(-1, "x1", 50), (-1, "x2", 85), (1, "x1", 30), (1, "x2", 125)],
        "least": [(-1, "x1", 20), (1, "x1", 30)],
        "indexed": [
            (-1, "x1", ("k1", "k2")),
            (-1, "x2", ("k3", "k4")),
            (1, "x1", ("k2",)),
            (1, "x2", ("k1", "k3", "k4")),
        ],
        "joined": [(-1, "k1", "l1", 20, 1), (1, "k1", "l2", 40, 2)],
    }
    # The least goes: the next one is found in what is kept of the group.
    found = changes(db, lambda one: one.delete_keys("a", ["k3"]))
    assert found["least"] == [(-1, "x2", 35), (1, "x2", 40)]
    assert found["counted"] == [(-1, "x2", 3), (1, "x2", 2)]
    assert found["joined"] == [(-1, "k3", "l2", 35, 2)]
    # The last of a group goes, and the group with it.
    found = changes(db, lambda one: one.delete_keys("a", ["k2"]))
    assert found["summed"] == [(-1, "x1", 30)]
    assert rows(db, "joined") == [("k1", "l2", 40, 2), ("k4", "l2", 50, 2)]
    # From the other side of the join.
    found = changes(db, lambda one: one.upsert("b", [("l2", "x2", 7), ("l3", "x2", 8)]))
    assert found["joined"] == [
        (-1, "k1", "l2", 40, 2),
        (-1, "k4", "l2", 50, 2),
        (1, "k1", "l2", 40, 7),
        (1, "k1", "l3", 40, 8),
        (1, "k4", "l2", 50, 7),
        (1, "k4", "l3", 50, 8),
    ]


def test_the_auxiliary_views_of_table_1(db: hw.Database) -> None:
    """Base and DELTA; PRE-AGGREGATION and REVERSE-JOIN where partial sums are kept for a join."""
    query = "SELECT a.c1, SUM(a.c2) AS s, SUM(b.d) AS d FROM a JOIN b ON a.c1 = b.c1 GROUP BY a.c1"
    db.execute(f"CREATE VIEW both STRATEGY 'tree' AS {query}")
    drawn = db.explain("both").dag
    by_role: dict[Role, list[str]] = {}
    for vertex in drawn.vertices:
        for role in vertex.roles:
            by_role.setdefault(role, []).append(vertex.name)
    kind = Role.STREAM if db.find("a").kind.value == "stream" else Role.TABLE
    assert by_role[kind] == ["a", "b"]
    assert by_role[Role.DELTA] == ["Δa", "Δb"]
    assert [drawn.vertex(name).facts for name in by_role[Role.DELTA]] == [
        ["DELTA", "key (k)", "old rows found by key"],
        ["DELTA", "key (l)", "old rows found by key"],
    ]
    assert by_role[Role.PRE_AGGREGATION] == by_role[Role.REVERSE_JOIN]
    assert len(by_role[Role.REVERSE_JOIN]) == 2
    assert all(drawn.vertex(name).keys == ("c1",) for name in by_role[Role.REVERSE_JOIN])
    assert rows(db, "both") == [("x1", 50, 2), ("x2", 85, 4)]
    db.upsert("a", [("k2", "x2", 15)])
    assert rows(db, "both") == [("x1", 20, 1), ("x2", 100, 6)]
    db.delete_keys("b", ["l1"])
    assert rows(db, "both") == [("x2", 100, 6)]
