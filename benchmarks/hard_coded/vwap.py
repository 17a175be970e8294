"""VWAP by hand: volume and value by price, and one pass over the prices from the top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from benchmarks.systems import HardCoded


class Vwap(HardCoded):
    """The paper's VWAP; as in SQL, the highest price has no volume above it, which is NULL and not 0."""

    READS: ClassVar[Mapping[str, list[str]]] = {"Bids": ["price", "volume"]}
    DELETES = ("Bids",)
    TABLES = """
        CREATE TABLE levels (price DECIMAL(8,2), volume DECIMAL(38,0), value DECIMAL(38,2));
        CREATE TABLE answer (vwap DECIMAL(38,2));
    """
    ANSWER = "SELECT vwap FROM answer"

    def maintain(self) -> None:
        run = self.con.execute
        run(
            "CREATE OR REPLACE TEMP TABLE change AS "
            "SELECT price, sum(volume) AS volume, sum(price * volume) AS value FROM "
            "(FROM new_Bids UNION ALL SELECT price, -volume FROM old_Bids) GROUP BY price"
        )
        run(
            "MERGE INTO levels USING change ON levels.price = change.price "
            "WHEN MATCHED AND levels.volume + change.volume = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET volume = levels.volume + change.volume, value = levels.value + change.value "
            "WHEN NOT MATCHED AND change.volume <> 0 THEN INSERT VALUES (change.price, change.volume, change.value)"
        )
        run("DELETE FROM answer")
        run(
            "INSERT INTO answer SELECT sum(value) FROM (SELECT value, sum(volume) OVER () AS whole, sum(volume) OVER "
            "(ORDER BY price DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS above FROM levels) "
            "WHERE 0.25 * whole > above"
        )
