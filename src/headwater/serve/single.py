"""Which stores hold each of their rows once: of these nothing has to be added up when they are read.

A store is a signed multiset. One into which rows have only come, or that was just rewritten, has the multiplicity one
throughout, which DuckDB tells from its statistics. A query over such stores alone is as simple as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Collection

import duckdb
from sqlglot import exp

from headwater.emit.layout import MULTIPLICITY, column, number, sql, store_table
from headwater.engine.stamps import Stamps
from headwater.store.warehouse import Warehouse


class SingleRows:
    """What is known of the stores of a warehouse. Safe to use from many threads."""

    def __init__(self, warehouse: Warehouse, stamps: Stamps) -> None:
        self._warehouse = warehouse
        self._stamps = stamps
        #: The stamps with which a store was looked at, and whether its rows were single.
        self._seen: dict[str, tuple[tuple[int, ...], bool]] = {}

    def among(self, stores: Collection[str]) -> frozenset[str]:
        """Those of some stores whose rows are single, as long as their stamps are what they were before the call."""
        return frozenset(one for one in stores if self._is_single(one))

    def _is_single(self, store: str) -> bool:
        stamps = self._stamps.take((store,))
        seen = self._seen.get(store)
        # A row that is there twice, or was taken away, stays until stores are rewritten, which moves all stamps.
        if seen is None or (seen[0] != stamps and (seen[1] or seen[0][0] != stamps[0])):
            seen = self._seen[store] = (stamps, self._look(store))
        return seen[1]

    def _look(self, store: str) -> bool:
        other = exp.NEQ(this=column(MULTIPLICITY), expression=number(1))
        query = exp.Select(expressions=[number(1)]).from_(store_table(store), copy=False).where(other, copy=False)
        reader = self._warehouse.reader()
        try:
            return reader.execute(sql(query.limit(1, copy=False))).fetchone() is None
        except duckdb.Error:  # whoever reads it will be told
            return False
        finally:
            reader.close()
