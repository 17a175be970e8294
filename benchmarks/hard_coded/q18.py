"""Q18 by hand: the quantity of each of the few orders, and of the customers whose orders changed.

Lines are many and stay: they are kept as sums by order, partial ones that are only appended to, and are looked up once
an epoch, for new orders. Orders that are there take the epoch's new lines directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from benchmarks.systems import HardCoded


class Q18(HardCoded):
    """The paper's Q18."""

    READS: ClassVar[Mapping[str, list[str]]] = {
        "customer": ["custkey"],
        "orders": ["orderkey", "custkey"],
        "lineitem": ["orderkey", "quantity"],
    }
    DELETES = ("orders",)
    TABLES = """
        CREATE TABLE c (k BIGINT);
        CREATE TABLE o (k BIGINT, c BIGINT, q DECIMAL(38,2));
        CREATE TABLE l (k BIGINT, q DECIMAL(38,2));
        CREATE TABLE answer (c BIGINT, q DECIMAL(38,2));
    """
    ANSWER = "SELECT c, q FROM answer"

    def maintain(self) -> None:
        run = self.con.execute
        run("CREATE OR REPLACE TEMP TABLE dl AS SELECT orderkey k, sum(quantity) q FROM new_lineitem GROUP BY 1")
        run(
            "CREATE OR REPLACE TEMP TABLE touched AS "
            "SELECT c FROM o WHERE k IN (SELECT k FROM dl UNION ALL SELECT orderkey FROM old_orders) "
            "UNION SELECT custkey FROM new_orders UNION SELECT custkey FROM new_customer"
        )
        run("INSERT INTO l FROM dl")
        run("DELETE FROM o WHERE k IN (SELECT orderkey FROM old_orders)")
        run("UPDATE o SET q = o.q + dl.q FROM dl WHERE o.k = dl.k")
        run(
            "INSERT INTO o SELECT m.orderkey, any_value(m.custkey), coalesce(sum(l.q), 0) "
            "FROM (SELECT * FROM new_orders WHERE orderkey NOT IN (SELECT orderkey FROM old_orders)) m "
            "LEFT JOIN l ON l.k = m.orderkey GROUP BY m.orderkey"
        )
        run("INSERT INTO c SELECT custkey FROM new_customer")
        run("DELETE FROM answer WHERE c IN (FROM touched)")
        run(
            "INSERT INTO answer SELECT o.c, sum(o.q) FROM o JOIN touched ON o.c = touched.c SEMI JOIN c ON c.k = o.c "
            "WHERE o.q > 100 GROUP BY o.c"
        )
