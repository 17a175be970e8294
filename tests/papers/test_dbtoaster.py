"""Ahmad, Kennedy, Koch, Nikolic, "DBToaster: Higher-order Delta Processing for Dynamic, Frequently Fresh Views".

The examples of sections 1, 3 and 4 and figure 4, with the maps and triggers that the paper prints, up to names. The
paper's triggers take one tuple; ours take a batch, `delta R`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

import headwater as hw
from headwater import types as t
from headwater.algebra.nodes import Scan, Version
from headwater.algebra.read import read_node
from headwater.delta.derive import derive
from headwater.plan.program import Add, Map, Program


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        yield opened


def program_of(db: hw.Database, view: str) -> Program:
    program = db.find(view).program
    assert program is not None
    return program


def reads(program: Program, on: str, target: str) -> set[str]:
    """What a trigger statement reads beside the change."""
    [statement] = [one for one in program.steps if (one.on, one.target) == (on, target)]
    scans = [node for node in statement.term.walk() if isinstance(node, Scan)]
    assert [one.relation for one in scans if one.version is Version.DELTA] == [on]
    return {one.relation for one in scans if one.version is not Version.DELTA}


def map_of(program: Program, relations: set[str], keys: list[str]) -> Map:
    """The map of some relations joined, by some keys."""
    found = [
        one
        for one in program.maps
        if one.sums is not None and one.definition.relations == relations and [k for k, _ in one.sums.keys] == keys
    ]
    assert len(found) == 1
    return found[0]


def triggers(program: Program) -> set[tuple[str, str]]:
    return {(one.on, one.target) for one in program.steps}


# -- example 1: count(R x S) -------------------------------------------------------------------------------------------

COUNT = "SELECT count(*) AS n FROM R, S"


def test_example_1_keeps_a_count_of_each_relation(db: hw.Database) -> None:
    db.execute("CREATE STREAM R (a INT); CREATE STREAM S (b INT)")
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {COUNT}")
    program = program_of(db, "Q")
    of_r, of_s = map_of(program, {"R"}, []), map_of(program, {"S"}, [])
    assert {one.name for one in program.maps} == {"Q", of_r.name, of_s.name}
    assert triggers(program) == {("R", "Q"), ("R", of_r.name), ("S", "Q"), ("S", of_s.name)}
    assert reads(program, "R", "Q") == {of_s.name}
    assert reads(program, "S", "Q") == {of_r.name}
    assert reads(program, "R", of_r.name) == set() == reads(program, "S", of_s.name)


def test_example_1_has_the_numbers_of_its_table(db: hw.Database) -> None:
    db.execute("CREATE STREAM R (a INT); CREATE STREAM S (b INT)")
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {COUNT}")
    program = program_of(db, "Q")
    of_r, of_s = map_of(program, {"R"}, []).name, map_of(program, {"S"}, []).name

    def state() -> tuple[int, int, int]:
        """Q, its delta by R (the count of S) and its delta by S (the count of R)."""
        [row] = db.query("SELECT n FROM Q").to_pylist()
        counts = [
            db.engine.connection.execute(f'SELECT coalesce(sum("#count"), 0) FROM data."{name}"').fetchone()
            for name in (of_s, of_r)
        ]
        return (row["n"], *(int(found[0]) for found in counts if found))  # type: ignore[return-value]

    with db.epoch() as epoch:
        epoch.insert("R", [{"a": 1}, {"a": 2}])
        epoch.insert("S", [{"b": 1}, {"b": 2}, {"b": 3}])
    seen = [state()]
    for relation, column in (("S", "b"), ("R", "a"), ("S", "b"), ("S", "b")):
        db.insert(relation, [{column: 7}])
        seen.append(state())
    assert seen == [(6, 3, 2), (8, 4, 2), (12, 4, 3), (15, 5, 3), (18, 6, 3)]


# -- examples 2, 3, 6 and 7: sum(A * D) over R join S ------------------------------------------------------------------

SALES = """
    CREATE STREAM Orders (ordk BIGINT NOT NULL, custk BIGINT NOT NULL, xch DECIMAL(10,4) NOT NULL);
    CREATE STREAM LineItem (ordk BIGINT NOT NULL, partk BIGINT NOT NULL, price DECIMAL(15,2) NOT NULL);
"""
WEIGHTED = "SELECT sum(LI.PRICE * O.XCH) AS total FROM Orders O, LineItem LI WHERE O.ORDK = LI.ORDK"


def test_example_2_keeps_rates_and_prices_by_order(db: hw.Database) -> None:
    db.execute(SALES)
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {WEIGHTED}")
    program = program_of(db, "Q")
    q_li, q_o = map_of(program, {"Orders"}, ["ordk"]), map_of(program, {"LineItem"}, ["ordk"])
    assert {one.name for one in program.maps} == {"Q", q_li.name, q_o.name}
    assert q_li.sums is not None and [str(term) for _, term in q_li.sums.terms] == ["O.xch"]
    assert q_o.sums is not None and [str(term) for _, term in q_o.sums.terms] == ["LI.price"]
    assert triggers(program) == {
        ("Orders", "Q"), ("Orders", q_li.name), ("LineItem", "Q"), ("LineItem", q_o.name)
    }  # fmt: skip
    assert reads(program, "Orders", "Q") == {q_o.name}
    assert reads(program, "LineItem", "Q") == {q_li.name}


def test_example_2_adds_up(db: hw.Database) -> None:
    db.execute(SALES)
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {WEIGHTED}")
    db.insert("LineItem", [{"ordk": 1, "partk": 1, "price": Decimal("10.00")}])
    db.insert("Orders", [{"ordk": 1, "custk": 1, "xch": Decimal("1.5")}, {"ordk": 2, "custk": 1, "xch": Decimal(2)}])
    assert db.query("SELECT total FROM Q").to_pylist() == [{"total": Decimal("15.000000")}]
    with db.epoch() as epoch:
        epoch.insert("Orders", [{"ordk": 1, "custk": 2, "xch": Decimal(3)}])
        epoch.insert("LineItem", [{"ordk": 1, "partk": 2, "price": Decimal(1)}, {"ordk": 2, "partk": 2, "price": 5}])
    assert db.query("SELECT total FROM Q").to_pylist() == [{"total": Decimal("59.500000")}]


def test_example_3_the_delta_of_a_sum_over_a_join() -> None:
    number = t.Decimal(10, 0)
    schemas = {
        "R": (t.Field("A", number), t.Field("B", t.INT)),
        "S": (t.Field("C", t.INT), t.Field("D", number)),
    }
    query = read_node("sum[; t := R.A * S.D](filter[R.B = S.C](join(R as R, S as S)))", schemas)
    expected = read_node("sum[; t := R.A * S.D](filter[R.B = S.C](join(delta R as R, S as S)))", schemas)
    assert derive(query, "R") == (expected,)


def test_example_6_the_view_first_then_what_it_reads(db: hw.Database) -> None:
    """T_R: Q, then the delta of Q by S. The delta by R of the delta by R is nothing without a self-join."""
    db.execute("CREATE STREAM R (a INT); CREATE STREAM S (a INT)")
    db.execute("CREATE VIEW Q STRATEGY 'viewlet' AS SELECT count(*) AS n FROM R, S WHERE R.a = S.a")
    program = program_of(db, "Q")
    by_s, by_r = map_of(program, {"R"}, ["a"]).name, map_of(program, {"S"}, ["a"]).name
    for relation, target in (("R", by_s), ("S", by_r)):
        body = [one.target for one in program.steps if one.on == relation]
        assert body == ["Q", target]


def test_example_6_of_a_self_join(db: hw.Database) -> None:
    """Then all three are there: Q by dR joined with the old R on either side, and dR with itself."""
    db.execute("CREATE STREAM R (a INT, b INT)")
    db.execute("CREATE VIEW Q STRATEGY 'viewlet' AS SELECT count(*) AS n FROM R x, R y WHERE x.a = y.b")
    program = program_of(db, "Q")
    deltas = [
        sum(isinstance(node, Scan) and node.version is Version.DELTA for node in one.term.walk())
        for one in program.steps
        if one.target == "Q"
    ]
    assert sorted(deltas) == [1, 1, 2]


def test_example_7_the_bare_transform_keys_maps_by_what_the_sum_reads(db: hw.Database) -> None:
    db.execute("CREATE STREAM R (A DECIMAL(10,0) NOT NULL, B INT NOT NULL)")
    db.execute("CREATE STREAM S (C INT NOT NULL, D DECIMAL(10,0) NOT NULL)")
    db.execute("CREATE VIEW Q STRATEGY 'viewlet naive' AS SELECT sum(R.A * S.D) AS s FROM R, S WHERE R.B = S.C")
    program = program_of(db, "Q")
    by_s, by_r = map_of(program, {"R"}, ["A", "B"]).name, map_of(program, {"S"}, ["C", "D"]).name
    assert triggers(program) == {("R", "Q"), ("R", by_s), ("S", "Q"), ("S", by_r)}
    db.execute("CREATE VIEW P STRATEGY 'viewlet' AS SELECT sum(R.A * S.D) AS s FROM R, S WHERE R.B = S.C")
    assert map_of(program_of(db, "P"), {"R"}, ["B"]) and map_of(program_of(db, "P"), {"S"}, ["C"])
    for row in ((1, 2), (3, 2), (4, 5)):
        db.insert("R", [{"A": row[0], "B": row[1]}])
        db.insert("S", [{"C": row[1], "D": row[0] + 1}])
    both = [db.query(f"SELECT s FROM {view}").to_pylist() for view in ("Q", "P")]
    assert both == [[{"s": Decimal(4 * 2 + 4 * 4 + 4 * 5)}]] * 2


# -- example 8: a nested aggregate -------------------------------------------------------------------------------------


def test_example_8_the_nested_aggregate_and_the_outer_query_are_kept_apart(db: hw.Database) -> None:
    db.execute("CREATE STREAM R (A BIGINT); CREATE STREAM S (B INT)")
    db.execute("CREATE VIEW Q STRATEGY 'viewlet' AS SELECT count(*) AS n FROM R WHERE (SELECT count(*) FROM S) = A")
    program = program_of(db, "Q")
    [nested] = [one for one in program.maps if one.present is not None and one.definition.relations == {"S"}]
    outer = map_of(program, {"R"}, ["A"])
    assert {one.name for one in program.maps} == {"Q", nested.name, outer.name}
    assert reads(program, nested.name, "Q") == {outer.name}
    assert reads(program, "R", "Q") == {nested.name}
    db.insert("R", [{"A": 0}, {"A": 1}, {"A": 1}])
    seen = []
    for _ in range(3):
        seen += [row["n"] for row in db.query("SELECT n FROM Q").to_pylist()]
        db.insert("S", [{"B": 5}])
    assert seen == [1, 2, 0]


# -- figure 4: Q18 -----------------------------------------------------------------------------------------------------

Q18 = """
    SELECT C.CK, sum(L1.QTY) AS qty FROM C, O, LI L1
    WHERE 1 <= (SELECT sum(1) WHERE 100 < (SELECT sum(L2.QTY) FROM LI L2 WHERE L1.OK = L2.OK))
      AND C.CK = O.CK AND O.OK = L1.OK
    GROUP BY C.CK
"""


def test_figure_4_the_trigger_program_of_q18(db: hw.Database) -> None:
    db.execute("CREATE STREAM C (CK BIGINT NOT NULL); CREATE STREAM O (CK BIGINT NOT NULL, OK BIGINT NOT NULL)")
    db.execute("CREATE STREAM LI (OK BIGINT NOT NULL, QTY DECIMAL(15,2) NOT NULL)")
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {Q18}")
    program = program_of(db, "Q")
    [q_o2] = [one.name for one in program.maps if one.present is not None and one.definition.relations == {"LI"}]
    q_o1 = map_of(program, {"C"}, ["CK"]).name
    q_li_c = map_of(program, {"O"}, ["CK", "OK"]).name
    q_li = map_of(program, {"C", "O"}, ["CK", "OK"]).name
    q_c = map_of(program, {"O", q_o2}, ["CK"]).name
    assert {one.name for one in program.maps} == {"Q", q_c, q_li, q_li_c, q_o1, q_o2}
    # The lines of the figure. What a change of LI does to the view goes through Q_O2, whose change is minus the old sum
    # and plus the new one where they exceed 100: lines 08 and 09 are triggers of Q_O2, and 10 is its own.
    assert reads(program, "C", "Q") == {q_c}  # 01
    assert reads(program, "C", q_li) == {q_li_c}  # 02
    assert reads(program, "C", q_o1) == set()  # 03
    assert reads(program, "O", "Q") == {q_o1, q_o2}  # 04
    assert reads(program, "O", q_li) == {q_o1}  # 05
    assert reads(program, "O", q_li_c) == set()  # 06
    assert reads(program, "O", q_c) == {q_o2}  # 07
    assert reads(program, q_o2, "Q") == {q_li}  # 08
    assert reads(program, q_o2, q_c) == {q_li_c}  # 09
    assert reads(program, "LI", q_o2) == set()  # 10
    assert len(program.steps) == 10 and all(isinstance(one, Add) for one in program.steps)


def test_figure_4_counts_orders_above_a_hundred(db: hw.Database) -> None:
    db.execute("CREATE STREAM C (CK BIGINT NOT NULL); CREATE STREAM O (CK BIGINT NOT NULL, OK BIGINT NOT NULL)")
    db.execute("CREATE STREAM LI (OK BIGINT NOT NULL, QTY DECIMAL(15,2) NOT NULL)")
    db.execute(f"CREATE VIEW Q STRATEGY 'viewlet' AS {Q18}")
    db.insert("C", [{"CK": 1}, {"CK": 2}])
    db.insert("O", [{"CK": 1, "OK": 10}, {"CK": 1, "OK": 11}, {"CK": 2, "OK": 20}])
    db.insert("LI", [{"OK": 10, "QTY": 60}, {"OK": 11, "QTY": 101}, {"OK": 20, "QTY": 100}])
    assert db.query("SELECT * FROM Q").to_pylist() == [{"CK": 1, "qty": Decimal("101.00")}]
    db.insert("LI", [{"OK": 10, "QTY": 50}, {"OK": 20, "QTY": 1}])
    rows = db.query("SELECT * FROM Q ORDER BY CK").to_pylist()
    assert rows == [{"CK": 1, "qty": Decimal("211.00")}, {"CK": 2, "qty": Decimal("101.00")}]
