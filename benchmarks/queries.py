"""The 22 queries of TPC-H and the workload of the DBToaster paper as views: what they compile to, and what epochs cost.

Each view is alone in a warehouse of about 10,000 rows in the largest table (200 in each order book). An epoch updates
ten rows of the tables that the view reads, in turn. `recompute` is DuckDB's time for the query over plain tables of the
same rows.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from tests.queries import dbtoaster_rows, tpch_rows
from tests.queries.harness import Recomputed, Suite, World, apply

import headwater as hw
from headwater.algebra.nodes import Join
from headwater.algebra.scalars import Call, Scalar, conjuncts
from headwater.plan.program import Program

CHANGES = 10
EPOCHS = 5
WARM_UP = 1
#: Lineitem has 200 and 160 rows at scale 1. Books are small, because MST is kept as all pairs of a bid and an ask.
SUITES = {"tpch": tpch_rows.suite(50), "dbtoaster": dbtoaster_rows.suite(60, book=200)}


def run(report: Callable[[str], None]) -> Iterator[dict[str, object]]:
    """Measure; yields one row of figures per query."""
    for name, suite in SUITES.items():
        for query in suite.queries:
            report(f"{name} {query}")
            yield {"suite": name, "query": query, **_measure(suite, query)}


def _measure(suite: Suite, query: str) -> dict[str, object]:
    text = suite.queries[query]
    with hw.connect(":memory:") as db:
        assert isinstance(db, hw.Database)
        db.execute(suite.schema)
        keys = {one.name: tuple(one.key) for one in db.engine.catalog}
        recomputed = Recomputed(db, {query: text}, threads=2)
        compiled = min(_compile(db, text) for _ in range(3))
        world = World(suite, keys, seed=1)
        apply(db, world.first(), keys)
        began = time.perf_counter()
        db.execute(f"CREATE VIEW answer AS {text}")
        created = time.perf_counter() - began
        program = db.find("answer").program
        assert program is not None
        seconds = []
        for _ in range(WARM_UP + EPOCHS):
            changes = world.updates(program.inputs, CHANGES)
            began = time.perf_counter()
            apply(db, changes, keys)
            seconds.append(time.perf_counter() - began)
        recomputed.store(world.rows)
        whole = [_seconds(lambda: recomputed.contents(query)) for _ in range(3)]
        recomputed.close()
        return {
            "compile ms": compiled * 1000,
            "maps": len(program.maps),
            "statements": len(program.statements),
            "reads whole": ", ".join(reads_whole(program)) or "no",
            "create ms": created * 1000,
            "epoch p50 ms": statistics.median(seconds[WARM_UP:]) * 1000,
            "recompute ms": statistics.median(whole) * 1000,
        }


def _compile(db: hw.Database, text: str) -> float:
    """Seconds of CREATE VIEW over empty tables."""
    seconds = _seconds(lambda: db.execute(f"CREATE VIEW answer AS {text}"))
    db.execute("DROP VIEW answer")
    return seconds


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def reads_whole(program: Program) -> list[str]:
    """What is read whole, whatever changed: maps evaluated without keys, and joins that no equality drives."""
    out = [f"recompute {one.name}" for one in program.maps if program.recomputes(one.name)]
    out += [f"all of {next(iter(one.source.relations))}" for one in program.maps if one.keys == ()]
    joins = [node for one in program.maps for node in one.definition.walk() if isinstance(node, Join)]
    if any(not any(map(_is_equality, conjuncts(join.condition))) for join in joins):
        out.append("pairs")
    return out


def _is_equality(part: Scalar) -> bool:
    return isinstance(part, Call) and part.function in ("=", "<=>")
