"""The strategies on TPC-H: the paper's queries and four standard ones, while orders come and go.

| system | what it does |
|---|---|
| tree, viewlet, viewlet naive, first order, re-evaluate, recompute | Headwater with that strategy, in this process |
| chosen | Headwater without a STRATEGY clause, replanned after the warm-up |
| hard-coded | a DuckDB transaction written by hand for this query (Q1, Q3, Q18) |
| DuckDB recompute | DuckDB evaluates the query over plain tables in memory |
| Spark recompute | Spark evaluates it over Parquet files (Q3 and Q18, epochs of 100,000 changes) |

Each query has warehouses with what it reads, and epochs with changes of that. Orders are a table, since they are
deleted. The others only grow and are streams without RETAIN, of which Headwater keeps what the view needs, as the
hard-coded programs do. Nothing has a primary key, as in the paper: a key would add a check to each epoch that no other
system does. All columns are NOT NULL.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlglot import exp
from tests.equivalence.references import transpiled
from tests.queries import dbtoaster_rows, tpch_rows

from benchmarks.changes import Plan
from benchmarks.contest import Maker, Row, contest
from benchmarks.disk import scratch
from benchmarks.hard_coded import makers
from benchmarks.options import option
from benchmarks.systems import CHOSEN, DUCKDB, HARD_CODED, SPARK, STRATEGIES, Query, SparkRecompute
from benchmarks.workloads.tpch import ACTIVE_ORDERS, BARE, PREFIXED, Columns, Data, Stream
from headwater.spark.session import start_session

#: Epochs by their size: how many warm up, how many are measured.
EPOCHS = {1_000: (8, 12), 10_000: (8, 8), 100_000: (2, 4)}
SYSTEMS = (*STRATEGIES, CHOSEN, HARD_CODED, DUCKDB)
#: The tables from which rows are deleted, and what is unique in them.
KEYS = {"orders": "orderkey"}
STREAM, TABLE = "stream", "table"


@dataclass(frozen=True)
class Text:
    """A query, and the columns that tables have for it."""

    text: str
    columns: Columns

    @property
    def tables(self) -> list[str]:
        """The tables that it reads, in the order of the schema."""
        named = {table.name.lower() for table in transpiled(self.text).find_all(exp.Table)}
        return [name for name in self.columns if name in named]


def _texts() -> dict[str, Text]:
    paper, standard = dbtoaster_rows.suite().queries, tpch_rows.suite().queries
    out = {name: Text(paper[name], BARE) for name in ("q03", "q11", "q17", "q18")}
    # In SQL a sum over no rows is NULL and not 0, so that the paper's own text of Q22 never has a row.
    out |= {"q22": Text(paper["q22_counted"], BARE), "ssb4": Text(paper["ssb4"], BARE)}
    return out | {name: Text(standard[name], PREFIXED) for name in ("q01", "q06", "q15", "q20")}


QUERIES = _texts()
#: What Spark recomputes if it is asked to. It cannot reach over two levels of queries, so Q18 has another text there.
SPARK_QUERIES = {
    "q03": QUERIES["q03"].text,
    "q18": """
        SELECT c.custkey, sum(l.quantity) AS quantity FROM customer c, orders o, lineitem l
        WHERE c.custkey = o.custkey AND o.orderkey = l.orderkey
          AND l.orderkey IN (SELECT orderkey FROM lineitem GROUP BY orderkey HAVING sum(quantity) > 100)
        GROUP BY c.custkey""",
}


def schema_of(tables: list[str], columns: Columns, others: str = STREAM) -> str:
    """CREATE TABLE for orders, which are deleted, and CREATE STREAM or TABLE for the others, which only grow."""
    fields = {name: ", ".join(f"{column} {of}" for column, of in columns[name].items()) for name in tables}
    kinds = {name: TABLE if name in KEYS else others for name in tables}
    return "\n".join(f"CREATE {kinds[name].upper()} {name} ({fields[name]});" for name in tables)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    scale: tuple[float, ...] = option((0.1, 1.0), "scale factors")
    queries: tuple[str, ...] = option(tuple(QUERIES), "queries")
    changes: tuple[int, ...] = option(tuple(EPOCHS), "changes in an epoch")
    systems: tuple[str, ...] = option(SYSTEMS, f"systems; there is also '{SPARK}', for {' and '.join(SPARK_QUERIES)}")
    limit: float = option(60.0, "seconds that a system may take for the epochs of one size")
    orders: int = option(ACTIVE_ORDERS, "orders that are there at a time")
    others: str = option(STREAM, "whether what is never deleted is a stream or a table")


def plans(changes: tuple[int, ...]) -> list[Plan]:
    """Epochs of these sizes, small ones first: they take the least of what there is."""
    return [Plan(size, *EPOCHS.get(size, (1, 5))) for size in sorted(changes)]


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures per query, scale, size and system."""
    with scratch() as folder:
        session = _session(folder) if SPARK in options.systems else None
        for scale in options.scale:
            report(f"making TPC-H data at scale {scale}")
            data = Data(folder / f"data-{scale}", scale)
            for name in options.queries:
                text = QUERIES[name]
                query = Query(name, text.text, schema_of(text.tables, text.columns, options.others), KEYS)
                stream = Stream(data, text.tables, text.columns, active=options.orders)
                load, rounds = stream.rounds(plans(options.changes))
                place = folder / f"{name}-{scale}"
                place.mkdir()
                entrants = makers(query, place, options.systems)
                if session is not None and name in SPARK_QUERIES:
                    entrants[SPARK] = _spark(place, query, session)
                report(f"{name} at scale {scale}")
                for row in contest(entrants, load, rounds, options.limit, report):
                    yield {"query": name, "scale": scale, **row}
                shutil.rmtree(place, ignore_errors=True)
        if session is not None:
            session.stop()


def _session(folder: Path) -> Any:
    return start_session(folder / "spark", {"spark.driver.memory": "4g", "spark.driver.maxResultSize": "2g"})


def _spark(folder: Path, query: Query, session: Any) -> Maker:
    return lambda: SparkRecompute(folder, replace(query, text=SPARK_QUERIES[query.name]), session)
