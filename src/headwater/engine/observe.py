"""What the engine sees of its relations while it works, for the planner.

Sizes and distinct values are DuckDB's own statistics, which it keeps as rows are appended; asking costs a millisecond a
relation. Rates are counted from the epochs' records. How long each view's statements take is measured as they run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import duckdb
from sqlglot import exp

from headwater.emit.layout import STORE, Grouped, column, sql, store_table
from headwater.plan.sizes import as_number
from headwater.plan.statistics import Extent, Observed, unknown
from headwater.store.catalog import Catalog, Relation

#: Rates are means over so many epochs.
RECENT = 50
#: What a new measurement weighs in a running mean.
_WEIGHT = 0.2
#: Dead rows and opposite signs apart, a store holds as many rows as were appended.
_SIZES = f"SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = '{STORE}'"
#: The same of what lies away, by any of its copies.
_AWAY = """
    SELECT relation, max(rows) FROM (SELECT relation, sum(rows) AS rows FROM hw.segments GROUP BY relation, copy)
    GROUP BY relation HAVING max(rows) IS NOT NULL
"""

_RECENT = f"SELECT number, by_relation FROM hw.epochs ORDER BY number DESC LIMIT {RECENT}"
#: Of each relation its first epoch, and all rows that have come and gone: of a stream that is not stored, its size.
_TOTALS = "SELECT key, min(number), sum(value::BIGINT) FROM hw.epochs, json_each(by_relation) GROUP BY key"


@dataclass
class Spent:
    """How long a view's statements take in an epoch that they run in: a running mean.

    Attributes:
        milliseconds: the mean.
        epochs: of how many.
        since: after which epoch it was measured.
    """

    milliseconds: float = 0.0
    epochs: int = 0
    since: int = 0

    def add(self, milliseconds: float) -> None:
        self.epochs += 1
        weight = max(_WEIGHT, 1.0 / self.epochs)
        self.milliseconds += weight * (milliseconds - self.milliseconds)


class Watch:
    """Says how long something has taken, whatever else happens meanwhile.

    While other processes have the machine the clock goes on and this one's processor time does not; while other threads
    of this one work it is the other way round. So the lesser of the two is nearer.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    @property
    def milliseconds(self) -> float:
        return 1000 * min(time.perf_counter() - self._began[0], time.process_time() - self._began[1])


#: What is known of the columns of relations, by their names.
Extents = dict[str, dict[str, Extent]]


def observe(connection: duckdb.DuckDBPyConnection, catalog: Catalog, before: Extents) -> dict[str, Observed]:
    """What is known of every stream, table and view.

    Args:
        connection: which plans in full.
        catalog: the relations.
        before: what was seen of their columns the last time: all that is known of a stream that is not stored any more.
    """
    tables = dict(connection.execute(_SIZES).fetchall())
    sizes = dict(connection.execute(_AWAY).fetchall()) | tables
    totals = {name: (first, int(total)) for name, first, total in connection.execute(_TOTALS).fetchall()}
    recent = [(number, json.loads(text)) for number, text in connection.execute(_RECENT).fetchall()]
    out: dict[str, Observed] = {}
    for relation in catalog:
        if relation.of is not None:  # it is as large as what it stands for, and changes no more often
            out[relation.name] = out[relation.of]
            continue
        first, total = totals.get(relation.name, (0, 0))
        rows = float(sizes.get(relation.name, 0)) or float(total)
        kept = not relation.flows or relation.retain is not None
        if not rows:
            out[relation.name] = replace(unknown(), kept=kept)
            continue
        since = [changes for number, changes in recent if number > max(first, relation.created)]
        rate, share = _rate([changes[relation.name] for changes in since if relation.name in changes], len(since), rows)
        if relation.name in tables:
            before[relation.name] = _extents(connection, relation, catalog.grouped)
        columns = before.get(relation.name, {})
        out[relation.name] = Observed(rows, rate, 1.0 if relation.program else share, columns, kept)
    return out


def _rate(changes: list[int], epochs: int, rows: float) -> tuple[float, float]:
    """How many rows come or go in an epoch that changes a relation, and the share of such epochs.

    The epoch that brought its first rows says nothing of what comes later, nor do others far above the median. What has
    not changed since may change yet, but the longer it has not, the less likely.

    Args:
        changes: in recent epochs that changed it, without its first.
        epochs: how many recent epochs there were since its first.
        rows: that it has.
    """
    share = min(1.0, (len(changes) + 0.5) / (epochs + 0.5))
    if not changes:
        return max(rows / 100, 1.0), share
    middle = sorted(changes)[len(changes) // 2]
    usual = [one for one in changes if one <= 20 * middle]
    return sum(usual) / len(usual), share


def _extents(
    connection: duckdb.DuckDBPyConnection, relation: Relation, grouped: Mapping[str, Grouped]
) -> dict[str, Extent]:
    repeats = grouped[relation.name].repeats if relation.name in grouped else {}
    stored = [column(repeats.get(f.name, f.name)) for f in relation.fields]
    items = [exp.Anonymous(this="stats", expressions=[one]) for one in stored]
    query = exp.Select(expressions=items).from_(store_table(relation.name), copy=False).limit(1, copy=False)
    found = connection.execute(sql(query)).fetchone()
    out = {}
    for f, about in zip(relation.fields, found or (), strict=False):
        if isinstance(about, dict) and about.get("approx_unique"):
            low, high = as_number(about.get("min")), as_number(about.get("max"))
            out[f.name] = Extent(float(about["approx_unique"]), low, high)
    return out
