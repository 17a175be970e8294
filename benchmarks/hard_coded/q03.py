"""Q3 by hand: revenue by order, kept for the few orders that qualify.

Only orders are deleted, and there are few of them; lines are many, and stay. So the lines that pass the filter are kept
as sums by order, partial ones that are only appended to, and are looked up once an epoch, for the orders that newly
qualify. Orders that qualify already take the epoch's new lines directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from benchmarks.systems import HardCoded


class Q03(HardCoded):
    """The paper's Q3."""

    READS: ClassVar[Mapping[str, list[str]]] = {
        "customer": ["custkey", "mktsegment"],
        "orders": ["orderkey", "custkey", "orderdate", "shippriority"],
        "lineitem": ["orderkey", "extendedprice", "discount", "shipdate"],
    }
    DELETES = ("orders",)
    TABLES = """
        CREATE TABLE c (k BIGINT);
        CREATE TABLE o (k BIGINT, c BIGINT, d DATE, p INT);
        CREATE TABLE l (k BIGINT, r DECIMAL(38,4), n BIGINT);
        CREATE TABLE q (k BIGINT, d DATE, p INT, r DECIMAL(38,4), n BIGINT);
    """
    ANSWER = "SELECT k, d, p, r FROM q WHERE n > 0"

    def maintain(self) -> None:
        run = self.con.execute
        run(
            "CREATE OR REPLACE TEMP TABLE dl AS SELECT orderkey k, sum(extendedprice * (1 - discount)) r, count(*) n "
            "FROM new_lineitem WHERE shipdate > DATE '1995-03-15' GROUP BY 1"
        )
        run("INSERT INTO l FROM dl")
        run("UPDATE q SET r = q.r + dl.r, n = q.n + dl.n FROM dl WHERE q.k = dl.k")
        run("DELETE FROM q WHERE k IN (SELECT orderkey FROM old_orders)")
        run("DELETE FROM o WHERE k IN (SELECT orderkey FROM old_orders)")
        run(
            "CREATE OR REPLACE TEMP TABLE newly AS "
            "SELECT o.k, o.d, o.p, false AS comes, o.c FROM o "
            "SEMI JOIN (SELECT custkey FROM new_customer WHERE mktsegment = 'BUILDING') c ON o.c = c.custkey "
            "UNION ALL "
            "SELECT orderkey, orderdate, shippriority, true, custkey FROM new_orders "
            "WHERE orderdate < DATE '1995-03-15' AND orderkey NOT IN (SELECT orderkey FROM old_orders)"
        )
        run("INSERT INTO c SELECT custkey FROM new_customer WHERE mktsegment = 'BUILDING'")
        run("INSERT INTO o SELECT k, c, d, p FROM newly WHERE comes")
        run(
            "INSERT INTO q SELECT m.k, any_value(m.d), any_value(m.p), coalesce(sum(l.r), 0), coalesce(sum(l.n), 0) "
            "FROM (SELECT newly.* FROM newly SEMI JOIN c ON newly.c = c.k) m LEFT JOIN l ON l.k = m.k GROUP BY m.k"
        )
