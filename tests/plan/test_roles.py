"""Roles, reads and the graph of a program: the rules case by case, what holds for every program, how it is drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.plan.compile import STRATEGIES, compile_view
from headwater.plan.dag import InputNote, Size, bytes_text, dag_of
from headwater.plan.maps import maps_of, users_of
from headwater.plan.program import Program
from headwater.plan.reads import Flow, Read, reads_of
from headwater.plan.render_mermaid import render_mermaid
from headwater.plan.render_tree import render_tree
from headwater.plan.roles import Role, is_over_several, roles_of
from headwater.sql.options import EXPLAIN_FORMATS
from tests.algebra.random_trees import random_tree
from tests.fixtures.golden import check_golden

TABLES = """
CREATE TABLE customer (custkey INT PRIMARY KEY, segment STRING);
CREATE TABLE orders (orderkey INT PRIMARY KEY, custkey INT, orderdate DATE);
CREATE TABLE lineitem (orderkey INT, price DECIMAL(12,2), discount DECIMAL(3,2));
CREATE STREAM click (custkey INT, page STRING);
CREATE VIEW busy AS SELECT custkey, count(*) AS n FROM click GROUP BY custkey
"""
REVENUE = """
    SELECT o.orderkey, sum(l.price * (1 - l.discount)) AS revenue
    FROM customer c JOIN orders o ON c.custkey = o.custkey JOIN lineitem l ON l.orderkey = o.orderkey
    WHERE c.segment = 'BUILDING' GROUP BY o.orderkey"""
CHEAPEST = """
    SELECT o.custkey, min(l.price) AS price FROM orders o JOIN lineitem l ON o.orderkey = l.orderkey
    GROUP BY o.custkey"""
WORDS = """
    SELECT custkey, max(word) AS word
    FROM (SELECT custkey, explode(split(segment, ' ')) AS word FROM customer) w GROUP BY custkey"""
OUTER = "SELECT o.orderkey, c.segment FROM orders o LEFT JOIN customer c ON o.custkey = c.custkey"
NESTED = "SELECT n, count(*) AS customers FROM (SELECT custkey, count(*) AS n FROM click GROUP BY custkey) c GROUP BY n"
TOP = "SELECT orderkey, price FROM lineitem ORDER BY price DESC LIMIT 3"
SHARE = "SELECT orderkey, price / (SELECT sum(price) FROM lineitem) AS share FROM lineitem"
EITHER = """
    SELECT count(*) AS n FROM (SELECT custkey FROM orders INTERSECT SELECT custkey FROM customer) b"""

PRE, JOIN, INDEX, FINAL = Role.PRE_AGGREGATION, Role.REVERSE_JOIN, Role.INDEX, Role.FINAL


@pytest.fixture(scope="module")
def db() -> Iterator[hw.Database]:
    database = hw.connect()
    assert isinstance(database, hw.Database)
    with database:
        database.execute(TABLES)
        yield database


def compiled(db: hw.Database, query: str, strategy: str = "first order") -> Program:
    return db.explain(f"EXPLAIN CREATE VIEW v STRATEGY '{strategy}' AS {query}").program


# -- roles ---


@pytest.mark.parametrize(
    ("query", "strategy", "roles"),
    [
        ("SELECT custkey FROM orders", "first order", [(FINAL,)]),
        (NESTED, "first order", [(PRE,), (FINAL,)]),
        (NESTED, "recompute", [(FINAL,)]),
        (OUTER, "first order", [(PRE, JOIN), (FINAL,)]),
        (REVENUE, "first order", [(FINAL,)]),
        (REVENUE, "tree", [(PRE, JOIN), (PRE, JOIN), (JOIN,), (FINAL,)]),
        (CHEAPEST, "first order", [(JOIN,), (FINAL,)]),
        (WORDS, "first order", [(INDEX,), (FINAL,)]),
        (TOP, "first order", [(PRE,), (FINAL,)]),
        (SHARE, "first order", [(PRE,), (FINAL,)]),
        (EITHER, "first order", [(JOIN,), (FINAL,)]),
    ],
)
def test_roles(db: hw.Database, query: str, strategy: str, roles: list[tuple[Role, ...]]) -> None:
    assert list(roles_of(compiled(db, query, strategy)).values()) == roles


def test_two_copies_of_one_relation_are_several_if_joined_and_one_if_united(db: hw.Database) -> None:
    pairs = compiled(db, "SELECT a.orderkey AS x, b.orderkey AS y FROM orders a JOIN orders b ON a.custkey = b.custkey")
    twice = compiled(db, "SELECT custkey FROM orders UNION ALL SELECT orderkey FROM orders")
    with_constants = compiled(db, "SELECT custkey FROM orders JOIN (VALUES (1), (2)) v(x) ON x = custkey")
    assert [is_over_several(one.query) for one in (pairs, twice, with_constants)] == [True, False, False]


# -- reads ---


def reads(program: Program) -> set[tuple[str, str, Flow, tuple[str, ...]]]:
    return {(one.source, one.target, one.flow, one.key) for one in reads_of(program)}


def test_a_chain_of_joins_is_read_by_key_from_any_end(db: hw.Database) -> None:
    assert reads(compiled(db, REVENUE)) == {
        ("customer", "v", Flow.CHANGES, ()),
        ("lineitem", "v", Flow.CHANGES, ()),
        ("orders", "v", Flow.CHANGES, ()),
        ("customer", "v", Flow.BY_KEY, ("custkey",)),
        ("lineitem", "v", Flow.BY_KEY, ("orderkey",)),
        ("orders", "v", Flow.BY_KEY, ("custkey",)),  # when a customer changes
        ("orders", "v", Flow.BY_KEY, ("orderkey",)),  # when a line item changes
    }


def test_all_columns_of_a_key_count(db: hw.Database) -> None:
    program = compiled(
        db, "SELECT a.custkey FROM orders a JOIN orders b ON a.custkey = b.custkey AND a.orderdate <=> b.orderdate"
    )
    assert ("orders", "v", Flow.BY_KEY, ("custkey", "orderdate")) in reads(program)


@pytest.mark.parametrize("condition", ["a.price < b.price", "true", "a.price = 5 AND b.price = 5"])
def test_what_no_equality_reaches_is_read_whole(db: hw.Database, condition: str) -> None:
    program = compiled(db, f"SELECT a.orderkey FROM lineitem a JOIN orders o JOIN lineitem b ON {condition}")
    assert {flow for _, _, flow, _ in reads(program)} == {Flow.CHANGES, Flow.WHOLE}


def test_an_equality_with_two_relations_at_once_finds_neither(db: hw.Database) -> None:
    program = compiled(
        db, "SELECT 1 AS x FROM customer c JOIN orders o JOIN lineitem l ON c.custkey + o.custkey = l.orderkey"
    )
    of_lines = [one for one in reads_of(program) if one.source == "lineitem" and one.flow is Flow.BY_KEY]
    assert of_lines == []  # o is read whole first, and so is l
    assert Read("customer", "v", Flow.WHOLE) in reads_of(program)


def test_a_union_below_a_join_is_read_by_the_key_of_each_part(db: hw.Database) -> None:
    both = "(SELECT orderkey, custkey FROM orders UNION ALL SELECT custkey, custkey FROM customer)"
    program = compiled(db, f"SELECT b.orderkey FROM lineitem l JOIN {both} b ON l.orderkey = b.orderkey")
    assert ("orders", "v", Flow.BY_KEY, ("orderkey",)) in reads(program)
    assert ("customer", "v", Flow.BY_KEY, ("custkey",)) in reads(program)


def test_touched_keys_are_looked_up_and_that_is_no_join(db: hw.Database) -> None:
    program = compiled(db, "SELECT custkey, min(orderdate) AS first FROM orders GROUP BY custkey")
    assert reads_of(program) == (
        Read("orders", "v", Flow.CHANGES),
        Read("orders", "v", Flow.BY_KEY, ("custkey",), joins=False),
    )


def test_recomputed_is_read_whole(db: hw.Database) -> None:
    assert reads(compiled(db, OUTER, "recompute")) == {
        ("customer", "v", Flow.WHOLE, ()),
        ("orders", "v", Flow.WHOLE, ()),
    }


def test_columns_of_ours_are_called_by_what_they_stand_for(db: hw.Database) -> None:
    """The inner sums are joined by a column without a name, and so is what is made of them."""
    inner = "SELECT avg(price) FROM lineitem b WHERE b.orderkey = a.orderkey"
    tree = str(db.explain(f"SELECT orderkey FROM lineitem a WHERE price > ({inner})", "tree"))
    assert "key (b.orderkey)" in tree
    assert "read by key (b.orderkey)" in tree
    assert "#" not in tree
    assert "key (`&`(orderkey, 127))" in str(db.explain(TOP, "tree"))


# -- every program ---


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(30))
def test_every_program_has_a_graph(seed: int, strategy: str) -> None:
    program = compile_view("v", random_tree(seed, depth=5), strategy)
    dag = dag_of(program, [InputNote(name, "table", True) for name in program.inputs], {})
    order = [one.name for one in dag.vertices]
    assert len(set(order)) == len(order)
    for edge in dag.edges:  # acyclic: it goes forward
        assert order.index(edge.source) < order.index(edge.target)
        assert (edge.flow is Flow.BY_KEY) == bool(edge.key)
    sources = {edge.source for edge in dag.edges}
    for one in dag.vertices:
        assert one.roles
        assert (one.name in sources) == (one.name != "v"), f"{one.name} is of no use"
        if len(one.roles) > 1:
            assert one.roles == (PRE, JOIN)
    assert dag.vertices[-1].roles == (FINAL,)
    tree = render_tree(dag)
    for one in dag.vertices:
        assert len([line for line in tree.splitlines() if re.search(rf"(^|─ ){re.escape(one.name)}: ", line)]) == 1
    check_mermaid(render_mermaid(dag), len(dag.vertices), len(dag.edges))


#: The signs around a label, by what they look like.
SHAPES = [("[(", ")]"), ("[/", "/]"), ("[[", "]]"), (">", "]"), ("(", ")"), ("{{", "}}"), ("[", "]"), ("([", "])")]
LABEL = r'"(?:[\w\s$.,():Δ-]|#\d+;|<br/>)+"'
MERMAID_VERTEX = re.compile(rf"  n\d+(?:{'|'.join(re.escape(a) + LABEL + re.escape(b) for a, b in SHAPES)})")
MERMAID_EDGE = re.compile(rf"  n\d+ (?:-->|-\.->|==>)\|{LABEL}\| n\d+")


def check_mermaid(text: str, vertices: int, edges: int) -> None:
    first, *rest = text.splitlines()
    assert first == "flowchart TD"
    assert len(rest) == vertices + edges
    assert all(MERMAID_VERTEX.fullmatch(line) for line in rest[:vertices])
    assert all(MERMAID_EDGE.fullmatch(line) for line in rest[vertices:])


# -- drawings ---


DRAWN = {
    "tree": (REVENUE, "tree"),
    "outer": (OUTER, "first order"),
    "index": (WORDS, "first order"),
    "over_a_view": ("SELECT n, count(*) AS times FROM busy GROUP BY n", "first order"),
    "recompute": (OUTER, "recompute"),
    "constant": ("SELECT 1 AS one", "first order"),
}


@pytest.mark.parametrize("form", ["tree", "mermaid"])
@pytest.mark.parametrize("name", DRAWN)
def test_drawings(db: hw.Database, name: str, form: str, update: bool) -> None:
    query, strategy = DRAWN[name]
    said = str(db.explain(f"EXPLAIN CREATE VIEW v STRATEGY '{strategy}' AS {query}", form))
    check_golden(f"plan/dag_{form}_{name}.txt", said, update)


def test_the_flowchart_of_the_documentation_is_the_one_that_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql" / "statements.md").read_text("utf-8")
    (drawn,) = re.findall(r"^```mermaid\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert page.count(drawn) == 2  # once in an example that a test runs


def test_names_that_mean_something_to_mermaid(db: hw.Database) -> None:
    with hw.connect() as other:
        other.execute('CREATE TABLE `a"]<b>;` (`x|y` INT PRIMARY KEY)')
        said = str(other.explain('SELECT `x|y` AS `"` FROM `a"]<b>;`', "mermaid"))
    check_mermaid(said, 3, 2)
    assert 'n1[("a#34;#93;#60;b#62;#59;<br/>base table<br/>key (x#124;y)' in said


def test_a_table_named_as_the_change_of_another(db: hw.Database) -> None:
    with hw.connect() as other:
        other.execute("CREATE TABLE t (x INT); CREATE TABLE `Δt` (x INT)")
        said = str(other.explain("SELECT t.x FROM t JOIN `Δt` d ON t.x = d.x", "tree"))
    assert "Δt: base table" in said
    assert "ΔΔt: DELTA" in said
    assert "ΔΔΔt: DELTA" in said


def test_sizes_in_words() -> None:
    assert [bytes_text(n) for n in (0, 999, 1000, 2_500_000)] == [
        "about 0 bytes",
        "about 999 bytes",
        "about 1.0 kB",
        "about 2.5 MB",
    ]
    assert [str(Size(n, 8 * n)) for n in (0, 1, 1234)] == ["0 rows", "1 row, about 8 bytes", "1,234 rows, about 9.9 kB"]


# -- formats ---


def test_every_format_is_the_same_in_sql_and_python(db: hw.Database) -> None:
    for form in EXPLAIN_FORMATS:
        (result,) = db.execute(f"EXPLAIN busy FORMAT {form.upper()}")
        assert result.text == str(db.explain("busy", form)) == str(db.explain(f"EXPLAIN busy FORMAT {form}"))
    assert str(db.explain("busy")) == str(db.explain("busy", "text"))
    assert len({str(db.explain("busy", form)) for form in EXPLAIN_FORMATS}) == len(EXPLAIN_FORMATS)
    assert json.loads(str(db.explain("busy", "json"))) == db.explain("busy").to_dict()


def test_the_graph_as_data(db: hw.Database) -> None:
    dag = db.explain("busy").to_dict()["dag"]
    assert dag == {
        "nodes": [
            {"name": "click", "roles": ["base stream"], "keys": [], "kept": "not stored", "rows": None, "bytes": None},
            {"name": "Δclick", "roles": ["DELTA"], "keys": [], "kept": "rows only come", "rows": None, "bytes": None},
            {
                "name": "busy",
                "roles": ["final view"],
                "keys": ["click.custkey"],
                "kept": "by changes",
                "rows": 0,
                "bytes": 0,
            },
        ],
        "edges": [
            {"from": "click", "to": "Δclick", "flow": "changes of", "key": []},
            {"from": "Δclick", "to": "busy", "flow": "changes of", "key": []},
        ],
    }


def test_a_format_that_does_not_exist(db: hw.Database) -> None:
    with pytest.raises(hw.UserError) as caught:
        db.explain("busy", "xml")
    assert (caught.value.code, caught.value.hint) == ("HW004", "formats are text, tree, mermaid, json")
    with pytest.raises(hw.UserError) as caught:
        db.execute("EXPLAIN busy\nFORMAT xml")
    assert str(caught.value).splitlines()[1:4] == [" --> <sql>:2:8", "2 | FORMAT xml", "  |        ^^^"]


# -- maps of a warehouse ---


def test_a_map_that_several_views_use_is_listed_once(db: hw.Database) -> None:
    one, other = compiled(db, OUTER), compiled(db, NESTED)
    facts = maps_of([one, one, other], {"v$1": ("a", "b"), "v": ("v",)}, {"v$1": Size(3, 24)})
    assert [(one.name, one.views) for one in facts] == [("v$1", ("a", "b")), ("v", ("v",))]
    assert facts[0].roles == (PRE, JOIN)  # what it is for one of them or the other
    assert facts[0].size == Size(3, 24)
    assert users_of([one, other]) == {"v$1": ("v", "v"), "v": ("v", "v")}
