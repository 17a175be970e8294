"""What programs are expected to cost, and which is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import headwater as hw
from headwater.algebra.read import read_node
from headwater.engine.observe import Spent, observe
from headwater.plan.compile import STRATEGIES, Surroundings, compile_view, weigh
from headwater.plan.cost import cost_of
from headwater.plan.sizes import Sizes
from headwater.plan.statistics import Extent, Observed, unknown
from headwater.planning import surroundings
from headwater.types import DATE, INT, Field

QUERY = "SELECT o.c, SUM(l.q) AS q FROM orders o JOIN line l ON o.k = l.k GROUP BY o.c"
SCHEMAS = {"r": (Field("a", INT), Field("b", INT)), "s": (Field("a", INT), Field("d", DATE))}


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        opened.execute("CREATE TABLE orders (k INT NOT NULL, c INT NOT NULL)")
        opened.execute("CREATE TABLE line (k INT NOT NULL, q DECIMAL(10,2) NOT NULL)")
        yield opened


def rows(text: str, **observed: Observed) -> float:
    return Sizes(observed).of(read_node(text, SCHEMAS)).rows


def test_sizes() -> None:
    r = Observed(1000, 10, 1.0, {"a": Extent(100, 0, 1000), "b": Extent(5)})
    s = Observed(200, 10, 1.0, {"a": Extent(200)})
    assert rows("r as r", r=r) == 1000
    assert rows("delta r as r", r=r) == 10
    assert rows("filter[r.a = 7](r as r)", r=r) == 10
    assert rows("filter[r.a < 250](r as r)", r=r) == pytest.approx(250)
    assert rows("filter[r.a > 250 and r.b = 1](r as r)", r=r) == pytest.approx(150)
    assert rows("join[r.a = s.a](r as r, s as s)", r=r, s=s) == pytest.approx(1000)
    assert rows("sum[k := r.b; ](r as r)", r=r) == 5
    assert rows("sum[k := r.a, l := r.b; ](r as r)", r=r) == 500
    assert rows("sum[; ](r as r)", r=r) == 1


def test_an_epoch_costs_more_the_more_changes_it_has(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW v AS {QUERY}")
    query = db.algebra("v")
    for strategy in STRATEGIES:
        program = compile_view("v", query, strategy)
        costs = [
            cost_of(program, {name: Observed(1e6, rate) for name in ("orders", "line")}).milliseconds
            for rate in (10, 10_000, 1_000_000)
        ]
        assert costs == sorted(costs)


def test_a_map_that_another_view_has_costs_nothing(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW v STRATEGY 'tree' AS {QUERY}")
    program = db.find("v").program
    assert program is not None
    alone, shared = cost_of(program, {}), cost_of(program, {}, {one.name for one in program.maps[:-1]})
    assert shared.milliseconds < alone.milliseconds
    assert shared.rows == 0 < alone.rows


def test_recomputing_is_dear_over_many_rows_and_never_chosen(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW v AS {QUERY}")
    for size in (10.0, 1e7):
        among = Surroundings(observed={name: Observed(size, 10) for name in ("orders", "line")})
        weighed = [rival.strategy for _, rival in weigh("v", db.algebra("v"), among)]
        assert compile_view("v", db.algebra("v"), None, among).strategy != "recompute"
    assert weighed[-1] == "recompute"


def test_relations_that_never_change_need_no_statements_and_no_maps(db: hw.Database) -> None:
    db.execute("CREATE STATIC TABLE nation (c INT NOT NULL, name STRING NOT NULL)")
    db.execute("INSERT INTO nation VALUES (1, 'Norway')")
    query = "SELECT n.name, SUM(o.k) AS k FROM orders o JOIN nation n ON o.c = n.c GROUP BY n.name"
    db.execute(f"CREATE VIEW v STRATEGY 'viewlet' AS {query}")
    program = db.find("v").program
    assert program is not None
    assert {one.on for one in program.steps} == {"orders"}
    assert not any(one.definition.relations == {"orders"} for one in program.maps)
    db.insert("orders", [{"k": 3, "c": 1}, {"k": 4, "c": 2}])
    assert db.query("SELECT * FROM v").to_pylist() == [{"name": "Norway", "k": 3}]


def test_what_is_seen_of_relations(db: hw.Database) -> None:
    nothing = observe(db.engine.connection, db.engine.catalog, {})
    assert nothing.keys() >= {"orders", "line"}
    assert all(one == replace(unknown(), kept=True) for one in nothing.values())
    db.insert("orders", [{"k": k, "c": k % 7} for k in range(2000)])
    for n in range(5):
        db.insert("orders", [{"k": k, "c": n} for k in range(20)])
    seen = surroundings(db).observed["orders"]
    assert seen.rows == 2100
    assert seen.rate == 20  # the first load is no rate
    assert 1500 < seen.columns["k"].distinct < 2500
    assert (seen.columns["k"].low, seen.columns["k"].high) == (0, 1999)
    assert 5 <= seen.columns["c"].distinct <= 9


def test_a_running_mean() -> None:
    spent = Spent()
    for milliseconds in (10, 20, 30):
        spent.add(milliseconds)
    assert spent.milliseconds == pytest.approx(20)
    for _ in range(50):
        spent.add(100)
    assert spent.milliseconds == pytest.approx(100, abs=1)


def test_explain_shows_what_was_weighed(db: hw.Database) -> None:
    db.execute(f"CREATE VIEW v AS {QUERY}")
    text = str(db.explain("v"))
    assert "chosen by cost" in text and "weighed: what an epoch is expected to cost" in text
    everything = db.explain("EXPLAIN v ALL STRATEGIES")
    assert {one.strategy for one in everything.weighed} == set(STRATEGIES)
    assert [one["strategy"] for one in everything.to_dict()["rivals"]]  # type: ignore[attr-defined]
    asked = str(db.explain(f"EXPLAIN CREATE VIEW w STRATEGY 'tree' AS {QUERY} ALL STRATEGIES"))
    assert "strategy: tree, as asked for" in asked and "recompute" in asked


def test_a_strategy_that_gives_up_does_not_keep_its_name(db: hw.Database) -> None:
    db.execute("; ".join(f"CREATE TABLE t{i} (a INT, b INT, x DECIMAL(4,1))" for i in range(10)))
    joins = " ".join(f"JOIN t{i} ON t0.a = t{i}.a" for i in range(1, 10))
    db.execute(f"CREATE VIEW v STRATEGY 'viewlet' AS SELECT t0.b, SUM(t0.x * t9.x) AS v FROM t0 {joins} GROUP BY t0.b")
    program = db.find("v").program
    assert program is not None
    assert (program.strategy, len(program.maps)) == ("first order", 1)


def test_what_was_seen_of_a_stream_is_known_when_it_is_not_stored_any_more() -> None:
    with hw.connect() as other:
        assert isinstance(other, hw.Database)
        other.execute("""
            CREATE STREAM s (k INT NOT NULL, g INT NOT NULL); CREATE TABLE t (k INT NOT NULL, x INT NOT NULL);
            CREATE VIEW v STRATEGY 'first order' AS SELECT g, SUM(x) AS x FROM s JOIN t ON s.k = t.k GROUP BY g
        """)
        for n in range(4):
            other.insert("s", [(k, k % 3) for k in range(500 if n == 0 else 5)])
        before = surroundings(other).observed["s"]
        assert before.rows == 515 and 400 < before.columns["k"].distinct < 600
        other.execute("ALTER VIEW v REPLAN STRATEGY 'viewlet'")
        assert not other.engine.catalog.keeps(other.engine.catalog.find("s"))  # type: ignore[arg-type]
        assert surroundings(other).observed["s"] == before
