"""SELECT STREAMED: an answer as the changes that lead to it from nothing."""

from __future__ import annotations

import pyarrow as pa


def as_insertions(table: pa.Table, epoch: int) -> pa.Table:
    """Rows as a tagged stream that only inserts: `_epoch`, `_op`, the columns, `_old`, as a subscription has them."""
    old = pa.nulls(table.num_rows, pa.struct(list(table.schema)))
    columns = [pa.array([epoch] * table.num_rows, pa.int64()), pa.array(["+"] * table.num_rows), *table.columns, old]
    return pa.table(columns, names=["_epoch", "_op", *table.column_names, "_old"])
