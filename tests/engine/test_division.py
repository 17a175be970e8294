"""Rows find their partitions, whatever their number and however many threads there are."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from headwater.engine.parcels import BATCH_ROWS, divided
from headwater.engine.tasks import Shipment

PARTITIONS = 3


@pytest.mark.parametrize("rows", [0, 1, 400_000])
def test_every_row_goes_where_its_hash_says(rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 4")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE TEMPORARY TABLE change AS SELECT range AS k FROM range({rows})")
        ship = Shipment("change", 1, 0, 'hash("k") % $partitions', ("k",))
        found = list(divided(connection, ship, PARTITIONS))
        assert len({partition for partition, _ in found}) == min(rows, PARTITIONS)
        assert all(0 < part.num_rows <= BATCH_ROWS for _, part in found)
        assert sum(part.num_rows for _, part in found) == rows
        for partition, part in found:
            connection.register("part", part)
            wrong = connection.execute(
                f"SELECT count(*) FROM part WHERE hash(k) % {PARTITIONS} <> {partition}"
            ).fetchall()
            assert wrong == [(0,)]
            connection.unregister("part")
        together = [part.column("k").to_numpy() for _, part in found]
        assert np.array_equal(np.sort(np.concatenate(together)) if together else [], np.arange(rows))
