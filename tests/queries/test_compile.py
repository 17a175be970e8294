"""What compiling costs: TPC-H and DBToaster one by one, and queries that grow."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import pytest

import headwater as hw
from headwater.emit.duckdb import Emitter
from headwater.emit.maintain import grouped_maps, map_statements, step_statement
from headwater.errors import HeadwaterError
from headwater.plan.compile import compile_view
from headwater.sql.lower import lower_view
from headwater.sql.parse import parse
from headwater.sql.statements import CreateView

from . import dbtoaster_rows, tpch_rows
from .harness import Suite

#: Of processor time, which does not depend on what else a machine does, and with room for a slower one.
SECONDS = 1.0
SUITES = {"tpch": tpch_rows.suite(), "dbtoaster": dbtoaster_rows.suite()}


def emitted(db: hw.Database, query: str) -> int:
    """How long a view's program is, and all its SQL."""
    [statement] = parse(f"CREATE VIEW v AS {query}")
    assert isinstance(statement, CreateView)
    node = lower_view(statement.query, db.relations_for_views(), statement.source)
    program = compile_view("v", node)
    emitter = Emitter({**db.engine.catalog.grouped, **grouped_maps(program.maps)})
    texts = [step_statement(one, program.map(one.target), emitter).first for one in program.steps]
    settled = [map_statements(program, one, emitter).settle for one in program.maps]
    texts += [one.first for one in settled if one is not None]
    return sum(map(len, texts)) + len(json.dumps(program.to_dict()))


@pytest.fixture
def db() -> Iterator[hw.Database]:
    opened = hw.connect()
    assert isinstance(opened, hw.Database)
    with opened:
        yield opened


@pytest.mark.parametrize(
    ("suite", "name"), [(which, name) for which, suite in SUITES.items() for name in suite.queries]
)
def test_a_query_compiles_in_a_second(db: hw.Database, suite: str, name: str) -> None:
    of: Suite = SUITES[suite]
    db.execute(of.schema)
    seconds = []
    for _ in range(2):
        began = time.process_time()
        size = emitted(db, of.queries[name])
        seconds.append(time.process_time() - began)
    assert min(seconds) < SECONDS
    assert size < 500_000


def _joins(n: int) -> str:
    return "SELECT t1.k FROM t1 " + " ".join(f"JOIN t{i} ON t{i}.k = t{i - 1}.w" for i in range(2, n + 1))


def _outer_joins(n: int) -> str:
    return "SELECT t1.k FROM t1 " + " ".join(f"LEFT JOIN t{i} ON t{i}.k = t{i - 1}.w" for i in range(2, n + 1))


def _full_joins(n: int) -> str:
    return "SELECT t1.k FROM t1 " + " ".join(f"FULL JOIN t{i} ON t{i}.k = t{i - 1}.w" for i in range(2, n + 1))


def _unions(n: int) -> str:
    return " UNION ALL ".join(f"SELECT k, sum(w) AS s FROM t{i} GROUP BY k" for i in range(1, n + 1))


def _nested(n: int) -> str:
    if n == 0:
        return "SELECT max(w) FROM t1"
    return f"SELECT max(w) FROM t{n} WHERE k > ({_nested(n - 1)})"


def _existing(n: int) -> str:
    return "SELECT k FROM t1 WHERE " + " OR ".join(
        f"EXISTS (SELECT 1 FROM t{i} WHERE t{i}.k = t1.k)" for i in range(2, n + 1)
    )


@pytest.mark.parametrize("grow", [_joins, _outer_joins, _full_joins, _unions, _nested, _existing])
def test_the_work_grows_with_the_query(db: hw.Database, grow: Callable[[int], str]) -> None:
    """A relation more means a statement more, and each statement is longer: the square of the query, and no more."""
    for i in range(1, 17):
        db.execute(f"CREATE TABLE t{i} (k INT, w INT)")
    four, eight, sixteen = (emitted(db, grow(n)) for n in (4, 8, 16))
    assert eight < 4.5 * four
    assert sixteen < 4.5 * eight


def test_a_join_of_thirty_relations(db: hw.Database) -> None:
    for i in range(1, 31):
        db.execute(f"CREATE TABLE t{i} (k INT, w INT)")
        db.insert(f"t{i}", [{"k": 1, "w": 1}, {"k": 2, "w": 1}])
    db.execute(f"CREATE VIEW v AS {_joins(30)}")
    db.insert("t30", [{"k": 1, "w": 7}])
    db.execute("DELETE FROM t1 WHERE k = 2")
    assert db.query("SELECT k, count(*) AS n FROM v GROUP BY k").to_pylist() == [{"k": 1, "n": 2}]


def test_reads_that_double_are_refused_at_once(db: hw.Database) -> None:
    db.execute("CREATE TABLE t (k INT)")
    ctes = ["a0 AS (SELECT k FROM t)"]
    ctes += [f"a{i} AS (SELECT x.k FROM a{i - 1} x, a{i - 1} y)" for i in range(1, 30)]
    began = time.process_time()
    with pytest.raises(HeadwaterError, match="HW142"):
        db.execute(f"CREATE VIEW v AS WITH {', '.join(ctes)} SELECT k FROM a29")
    assert time.process_time() - began < 5
