"""Q1 by hand: a handful of sums, to which each epoch's sums are added. No line is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from benchmarks.systems import HardCoded


class Q01(HardCoded):
    """Standard Q1."""

    READS: ClassVar[Mapping[str, list[str]]] = {
        "lineitem": [
            "l_quantity",
            "l_extendedprice",
            "l_discount",
            "l_tax",
            "l_returnflag",
            "l_linestatus",
            "l_shipdate",
        ]
    }
    TABLES = """
        CREATE TABLE sums (
            flag VARCHAR, status VARCHAR, qty DECIMAL(38,2), price DECIMAL(38,2), disc_price DECIMAL(38,4),
            charge DECIMAL(38,6), discount DECIMAL(38,2), n BIGINT, PRIMARY KEY (flag, status))
    """
    ANSWER = """
        SELECT flag, status, qty, price, disc_price, charge, qty / n, price / n, discount / n, n FROM sums
    """

    def maintain(self) -> None:
        self.con.execute(
            """
            INSERT INTO sums
            SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(net), sum(net * (1 + l_tax)),
                sum(l_discount), count(*)
            FROM (SELECT *, l_extendedprice * (1 - l_discount) AS net FROM new_lineitem
                WHERE l_shipdate <= DATE '1998-09-02')
            GROUP BY 1, 2
            ON CONFLICT DO UPDATE SET qty = qty + excluded.qty, price = price + excluded.price,
                disc_price = disc_price + excluded.disc_price, charge = charge + excluded.charge,
                discount = discount + excluded.discount, n = n + excluded.n
            """
        )
