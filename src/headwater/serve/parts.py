"""The catalogue of parts, as tables for people, and the rows that were kept aside."""

from __future__ import annotations

import pyarrow as pa

from headwater.emit.layout import EPOCH, sql, store_table
from headwater.engine.part_book import Frontier
from headwater.serve.sizes import store_sizes
from headwater.store.catalog import Relation
from headwater.store.warehouse import Warehouse

_PARTS = """
SELECT
  CASE WHEN rolled THEN part // $many ELSE part END AS part,
  make_timestamp(CASE WHEN rolled THEN part // $many * $many ELSE part END * $length * 1000000) AS part_timestamp,
  CASE WHEN rolled THEN $many ELSE 1 END * $length AS length,
  sum(rows)::BIGINT AS rows,
  CASE WHEN rolled THEN 'rolled up' WHEN bool_and(part < $next) THEN 'complete' ELSE 'open' END AS state,
  max(p.epoch) AS epoch,
  max(e.clock) AS last_updated
FROM (SELECT *, part < $rolled AS rolled FROM hw.parts WHERE relation = $relation) AS p
LEFT JOIN hw.epochs AS e ON e.number = p.epoch
GROUP BY 1, 2, 3, rolled
ORDER BY 2
"""


def parts_of(warehouse: Warehouse, relation: Relation, frontier: Frontier, stored: str) -> pa.Table:
    """Every part of a relation that has, or had, rows: how many, about how many bytes, and when it changed last.

    `stored` says whether these rows are stored.

    Parts that are rolled up are shown as the larger ones that they were put together to, with the subscripts that parts
    of that length have.
    """
    assert relation.length is not None
    values = {
        "length": relation.length,
        "many": relation.roll_up[1] // relation.length if relation.roll_up is not None else 1,
        "next": frontier.next or 0,
        "rolled": frontier.rolled or 0,
        "relation": relation.name,
    }
    reader = warehouse.reader()
    try:
        table: pa.Table = reader.sql(_PARTS, params=values).to_arrow_table()
    finally:
        reader.close()
    size = store_sizes(warehouse, [relation.name]).get(relation.name)
    each = size.bytes / size.rows if size is not None and size.rows else 0
    taken = pa.array([round(rows * each) for rows in table.column("rows").to_pylist()], pa.int64())
    table = table.add_column(4, "bytes", taken)
    return table.add_column(5, "stored", pa.array([stored] * table.num_rows, pa.string()))


def late_rows(warehouse: Warehouse, stream: Relation) -> pa.Table:
    """The rows that were kept aside, with the epoch they came in and the reason."""
    reader = warehouse.reader()
    try:
        names = [*(f.name for f in stream.arriving)]
        items = ", ".join([f'"{EPOCH}" AS _epoch', '"#reason" AS _reason', *(_quoted(one) for one in names)])
        query = f'SELECT {items} FROM {sql(store_table(stream.late))} ORDER BY "{EPOCH}"'
        return reader.sql(query).to_arrow_table()
    finally:
        reader.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
