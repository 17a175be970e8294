"""What the engine sees of its relations while it works, for the planner.

Sizes and distinct values are DuckDB's own statistics, which it keeps as rows are appended; asking costs a millisecond a
relation. Rates are counted from the epochs' records. How long each view's statements take is measured as they run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import duckdb
from sqlglot import exp

from headwater.emit.layout import STORE, as_column, column, sql, store_table
from headwater.plan.sizes import as_number
from headwater.plan.statistics import Extent, Observed
from headwater.store.catalog import Catalog, Relation

#: Rates are means over so many epochs.
RECENT = 50
#: What a new measurement weighs in a running mean.
_WEIGHT = 0.2
#: Dead rows and opposite signs apart, a store holds as many rows as were appended.
_SIZES = f"SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = '{STORE}'"


@dataclass
class Spent:
    """How long a view's statements take in an epoch: a running mean, and of how many epochs."""

    milliseconds: float = 0.0
    epochs: int = 0

    def add(self, milliseconds: float) -> None:
        self.epochs += 1
        weight = max(_WEIGHT, 1.0 / self.epochs)
        self.milliseconds += weight * (milliseconds - self.milliseconds)


def observe(connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> dict[str, Observed]:
    """What is known of every stream, table and view; nothing of one that never had rows."""
    sizes = dict(connection.execute(_SIZES).fetchall())
    rates, epochs = _rates(connection)
    out: dict[str, Observed] = {}
    for relation in catalog:
        changes = rates.get(relation.name, [])
        rows = float(sizes.get(relation.name, 0)) or sum(changes) / max(len(changes), 1) * epochs
        if not rows:
            continue
        seen: list[float] = [*changes] or [rows / 100]
        share = len(changes) / min(epochs, RECENT) if changes and epochs else 1.0
        columns = _extents(connection, relation) if relation.name in sizes else {}
        out[relation.name] = Observed(rows, sum(seen) / len(seen), share, columns)
    return out


def _rates(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, list[int]], int]:
    """How many rows of each relation changed in recent epochs that changed it, bulk loads left out; and all epochs."""
    query = f"SELECT by_relation FROM hw.epochs ORDER BY number DESC LIMIT {RECENT}"
    found: dict[str, list[int]] = {}
    for (text,) in connection.execute(query).fetchall():
        for name, changes in json.loads(text).items():
            found.setdefault(name, []).append(changes)
    [(epochs,)] = connection.execute("SELECT count(*) FROM hw.epochs").fetchall()
    return {name: _without_loads(changes) for name, changes in found.items()}, int(epochs)


def _without_loads(changes: list[int]) -> list[int]:
    """A first load says nothing of what comes later: epochs far above the median are left out."""
    middle = sorted(changes)[len(changes) // 2]
    return [one for one in changes if one <= 20 * middle]


def _extents(connection: duckdb.DuckDBPyConnection, relation: Relation) -> dict[str, Extent]:
    items = [as_column(exp.Anonymous(this="stats", expressions=[column(f.name)]), f.name) for f in relation.fields]
    query = exp.Select(expressions=items).from_(store_table(relation.name), copy=False).limit(1, copy=False)
    found = connection.execute(sql(query)).fetchone()
    out = {}
    for f, about in zip(relation.fields, found or (), strict=False):
        if isinstance(about, dict) and about.get("approx_unique"):
            low, high = as_number(about.get("min")), as_number(about.get("max"))
            out[f.name] = Extent(float(about["approx_unique"]), low, high)
    return out
