"""One key has half of the rows: two warehouses are told the same, one of them with a key's rows in one partition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

import headwater as hw

RELATIONS = """
    CREATE TABLE shop (name INT PRIMARY KEY, town STRING);
    CREATE TABLE sale (id INT PRIMARY KEY, shop INT, euros INT, note STRING);
"""
#: A join of rows, groups of a join, what is evaluated by key, distinct values, and pairs of one key's rows.
VIEWS: Mapping[str, str] = {
    "listed": "SELECT id, town, euros FROM sale JOIN shop ON shop = name",
    "by_town": "SELECT town, sum(euros) AS euros, count(*) AS n FROM sale JOIN shop ON shop = name GROUP BY town",
    "best": "SELECT shop, id, euros FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY euros DESC, id) AS r "
    "FROM sale) WHERE r <= 3",
    "spread": "SELECT shop, count(DISTINCT euros) AS n, min(note) AS first, max(euros) AS most FROM sale GROUP BY shop",
    "pairs": "SELECT a.id, b.id AS other, a.euros - b.euros AS more FROM sale a JOIN sale b ON a.shop = b.shop "
    "WHERE a.id % 200 = 0 AND b.id % 200 = 10",
}
SHOPS = 1000


class Skewed:
    """Sales, half of them in shop 0."""

    def __init__(self, there: hw.Database, here: hw.Database, rows: int, seed: int = 1) -> None:
        self._databases = (there, here)
        self._rows = rows
        self._random = np.random.default_rng(seed)

    def tell(self) -> None:
        """Define, load all rows at once, move the largest key's rows about, and take most of them away."""
        shops = pa.table({"name": range(SHOPS), "town": [f"town {n % 17}" for n in range(SHOPS)]})
        for db in self._databases:
            db.execute(RELATIONS)
            db.insert("shop", shops)
            for name, query in VIEWS.items():
                db.execute(f"CREATE VIEW {name} AS {query}")
        self._step("insert", self._sales(np.arange(self._rows)))
        self._step("upsert", self._sales(self._random.choice(self._rows, self._rows // 10, replace=False)))
        for db in self._databases:
            db.upsert("shop", [(0, "elsewhere")])
        self.compare()
        for db in self._databases:
            db.execute("DELETE FROM sale WHERE shop = 0 AND id % 10 <> 0")
        self.compare()

    def _sales(self, ids: np.ndarray) -> pa.Table:
        shops = np.where(self._random.random(len(ids)) < 0.5, 0, self._random.integers(1, SHOPS, len(ids)))
        euros = self._random.integers(0, 100_000, len(ids))
        notes = [f"{one:040d}" for one in euros * 7919 % 999_983]
        columns = {"id": ids, "shop": shops, "euros": euros, "note": notes}
        types = {"note": pa.string()}
        return pa.table({name: pa.array(values, types.get(name, pa.int32())) for name, values in columns.items()})

    def _step(self, how: str, rows: pa.Table) -> None:
        for db in self._databases:
            with db.epoch() as epoch:
                getattr(epoch, how)("sale", rows)
        self.compare()

    def compare(self) -> None:
        """All views hold the same rows."""
        for name in VIEWS:
            there, here = (_sorted(db.query(f"SELECT * FROM {name}")) for db in self._databases)
            assert there.num_rows, name
            assert there.equals(here), f"{name}: {there.num_rows} and {here.num_rows} rows"


def _sorted(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names]).combine_chunks()
