"""Programs are data: as golden text, through the catalogue's form and back, and as EXPLAIN shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.algebra.nodes import Scan, Version
from headwater.plan.compile import STRATEGIES, compile_view
from headwater.plan.program import Add, Program, program_from_dict
from tests.algebra.random_trees import SCHEMAS, random_tree
from tests.fixtures.golden import check_golden

TABLES = """
CREATE TABLE customer (custkey INT PRIMARY KEY, segment STRING);
CREATE TABLE orders (orderkey INT PRIMARY KEY, custkey INT, orderdate DATE);
CREATE TABLE lineitem (orderkey INT, price DECIMAL(12,2), discount DECIMAL(3,2));
CREATE STREAM click (custkey INT, page STRING)
"""
VIEWS = {
    "rows": "SELECT custkey, segment FROM customer WHERE segment <> 'NONE'",
    "revenue": """
        SELECT o.orderkey, o.orderdate, sum(l.price * (1 - l.discount)) AS revenue, count(*) AS lines
        FROM customer c JOIN orders o ON c.custkey = o.custkey JOIN lineitem l ON l.orderkey = o.orderkey
        WHERE c.segment = 'BUILDING' AND o.orderdate < DATE '1995-03-15'
        GROUP BY o.orderkey, o.orderdate""",
    "pairs": "SELECT a.orderkey AS one, b.orderkey AS other FROM orders a JOIN orders b ON a.custkey = b.custkey",
    "nested": """
        SELECT n, count(*) AS customers
        FROM (SELECT custkey, count(*) AS n FROM click GROUP BY custkey) AS c
        GROUP BY n HAVING count(*) > 1""",
    "both": "SELECT custkey FROM orders UNION ALL SELECT custkey FROM click",
    "constant": "SELECT 1 AS one, 'x' AS x",
}


@pytest.fixture(scope="module")
def db() -> Iterator[hw.Database]:
    database = hw.connect()
    assert isinstance(database, hw.Database)
    with database:
        database.execute(TABLES)
        for name, query in VIEWS.items():
            database.execute(f"CREATE VIEW {name} AS {query}")
        yield database


def program(db: hw.Database, view: str) -> Program:
    found = db.find(view).program
    assert found is not None
    return found


def text(one: Program) -> str:
    """A program as a page: what is stored, and what happens when a relation changes."""
    out = [f"view {one.view}, strategy {one.strategy}, reads {', '.join(one.inputs) or 'nothing'}"]
    for part in one.maps:
        out += ["", f"map {part.name} :=", str(part.definition)]
    for statement in one.statements:
        if isinstance(statement, Add):
            out += ["", f"on {statement.on}: {statement.target} +=", str(statement.term)]
        else:
            out += ["", f"recompute {statement.target}"]
    return "\n".join(out)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_program_text(db: hw.Database, view: str, strategy: str, update: bool) -> None:
    compiled = compile_view(view, db.algebra(view), strategy)
    check_golden(f"plan/{strategy.replace(' ', '_')}_{view}.txt", text(compiled), update)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_program_survives_the_catalogue(db: hw.Database, view: str, strategy: str) -> None:
    compiled = compile_view(view, db.algebra(view), strategy)
    schemas = {name: db.find(name).fields for name in compiled.inputs}
    assert program_from_dict(json.loads(json.dumps(compiled.to_dict())), schemas) == compiled


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_survive_the_catalogue(seed: int) -> None:
    compiled = compile_view("v", random_tree(seed, depth=5), list(STRATEGIES)[seed % len(STRATEGIES)])
    again = program_from_dict(json.loads(json.dumps(compiled.to_dict())), SCHEMAS)
    assert repr(again) == repr(compiled)


def test_views_get_the_cheapest_strategy(db: hw.Database) -> None:
    for view in VIEWS:
        compiled = program(db, view)
        assert not compiled.hinted
        assert compiled.strategy in {one.strategy for one in compiled.rivals}
        assert list(compiled.rivals) == sorted(compiled.rivals, key=lambda one: one.milliseconds)


def test_only_what_is_read_whole_must_be_kept(db: hw.Database) -> None:
    assert program(db, "nested").stored_reads == {"nested$1"} or program(db, "nested").stored_reads == frozenset()
    assert program(db, "both").stored_reads == frozenset()
    by_delta = compile_view("revenue", db.algebra("revenue"), "first order")
    assert by_delta.stored_reads == {"customer", "orders", "lineitem"}
    by_maps = compile_view("revenue", db.algebra("revenue"), "viewlet")
    assert by_maps.stored_reads & {"customer", "orders", "lineitem"} <= {"customer", "orders", "lineitem"}
    assert compile_view("both", db.algebra("both"), "recompute").stored_reads == {"orders", "click"}


@pytest.mark.parametrize("view", VIEWS)
def test_every_statement_starts_from_the_change_it_waits_for(db: hw.Database, view: str) -> None:
    one = program(db, view)
    for statement in one.statements:
        assert isinstance(statement, Add)
        deltas = [n for n in statement.term.walk() if isinstance(n, Scan) and n.version is Version.DELTA]
        assert [scan.relation for scan in deltas] == [statement.on]
        assert one.map(statement.target)


# -- EXPLAIN ---


def test_explain_of_a_three_way_join(db: hw.Database, update: bool) -> None:
    check_golden("plan/explain_revenue.txt", str(db.explain("revenue")), update)


def test_explain_of_recompute_says_so(db: hw.Database) -> None:
    db.execute("CREATE VIEW slow STRATEGY 'recompute' AS SELECT custkey, count(*) AS n FROM orders GROUP BY custkey")
    try:
        said = str(db.explain("slow"))
    finally:
        db.execute("DROP VIEW slow")
    assert "slow re-reads orders whole at every change" in said
    assert "recompute and compare slow" in said


@pytest.mark.parametrize("view", VIEWS)
def test_explain_is_json(db: hw.Database, view: str) -> None:
    explanation = db.explain(view)
    data = explanation.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["view"] == view
    statements = data["statements"]
    assert isinstance(statements, list)
    assert len(statements) == len(program(db, view).statements)
    for one in statements:
        assert one["term"] in "\n".join(str(s.term) for s in program(db, view).statements if isinstance(s, Add))
        assert one["sql"].startswith(("INSERT", "CREATE"))


def test_explain_of_a_query_is_that_of_the_view_it_would_be(db: hw.Database) -> None:
    of_query = db.explain(VIEWS["pairs"].replace("SELECT", "SELECT /*+ NO_VIEWS */", 1)).to_dict()
    of_view = db.explain("pairs").to_dict()
    assert of_query["query"] == of_view["query"]
    assert json.dumps(of_query["statements"]).replace("query", "pairs") == json.dumps(of_view["statements"])


def test_explain_says_when_only_changes_of_a_stream_are_read(db: hw.Database) -> None:
    assert "click: stream, only its changes are read" in str(db.explain("both"))
    assert "orders: table\n" in str(db.explain("both"))


def test_explain_leaves_nothing_behind(db: hw.Database) -> None:
    before = db.status()
    db.explain("SELECT page, count(*) AS n FROM click c JOIN customer u ON c.custkey = u.custkey GROUP BY page")
    assert db.status() == before


@pytest.mark.parametrize(
    ("text", "code"),
    [("nobody", "HW102"), ("customer", "HW104"), ("SELECT 1; SELECT 2", "HW106"), ("DROP VIEW rows", "HW2")],
)
def test_what_cannot_be_explained(db: hw.Database, text: str, code: str) -> None:
    with pytest.raises(hw.HeadwaterError) as caught:
        db.explain(text)
    assert caught.value.code.startswith(code)
