"""Split maintenance by hand: five queries of TPC-H over a stream of lines, everything else being there before.

All have the same shape. What does not depend on lines is computed once. Each chunk of lines is added up by itself and
appended; when what was appended has become twice as long as it need be, it is added up too. The rest is done when
somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    """A program for one query.

    Attributes:
        partial: what is kept of a chunk, which is called `chunk`.
        folded: the same of what is kept so far, `partial`.
        answer: the query's rows.
        fixed: tables that are made once, by name, from `given_...`: the tables that are there before.
    """

    partial: str
    folded: str
    answer: str
    fixed: dict[str, str] = field(default_factory=dict)


PROGRAMS = {
    "q01": Program(
        partial="""
            SELECT l_returnflag AS flag, l_linestatus AS status, sum(l_quantity) AS qty, sum(l_extendedprice) AS price,
                sum(net) AS disc_price, sum(net * (1 + l_tax)) AS charge, sum(l_discount) AS discount, count(*) AS n
            FROM (SELECT *, l_extendedprice * (1 - l_discount) AS net FROM chunk
                WHERE l_shipdate <= DATE '1998-09-02')
            GROUP BY 1, 2""",
        folded="""
            SELECT flag, status, sum(qty) AS qty, sum(price) AS price, sum(disc_price) AS disc_price,
                sum(charge) AS charge, sum(discount) AS discount, sum(n)::BIGINT AS n
            FROM partial GROUP BY 1, 2""",
        answer="""
            SELECT flag, status, sum(qty), sum(price), sum(disc_price), sum(charge), sum(qty) / sum(n),
                sum(price) / sum(n), sum(discount) / sum(n), sum(n)::BIGINT
            FROM partial GROUP BY 1, 2""",
    ),
    "q03": Program(
        fixed={
            "wanted": """
                SELECT orderkey AS k, orderdate AS d, shippriority AS p FROM given_orders
                SEMI JOIN (SELECT custkey FROM given_customer WHERE mktsegment = 'BUILDING') USING (custkey)
                WHERE orderdate < DATE '1995-03-15'"""
        },
        partial="""
            SELECT orderkey AS k, sum(extendedprice * (1 - discount)) AS r
            FROM chunk SEMI JOIN wanted ON orderkey = k WHERE shipdate > DATE '1995-03-15' GROUP BY 1""",
        folded="SELECT k, sum(r) AS r FROM partial GROUP BY 1",
        answer="SELECT k, d, p, r FROM (SELECT k, sum(r) AS r FROM partial GROUP BY 1) JOIN wanted USING (k)",
    ),
    "q06": Program(
        partial="""
            SELECT sum(l_extendedprice * l_discount) AS r FROM chunk
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
                AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        folded="SELECT sum(r) AS r FROM partial",
        answer="SELECT sum(r) FROM partial",
    ),
    "q15": Program(
        fixed={"suppliers": "SELECT s_suppkey, s_name, s_address, s_phone FROM given_supplier"},
        partial="""
            SELECT l_suppkey AS k, sum(l_extendedprice * (1 - l_discount)) AS r FROM chunk
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY 1""",
        folded="SELECT k, sum(r) AS r FROM partial GROUP BY 1",
        answer="""
            WITH revenue AS MATERIALIZED (SELECT k, sum(r) AS r FROM partial GROUP BY 1)
            SELECT s_suppkey, s_name, s_address, s_phone, r FROM revenue JOIN suppliers ON k = s_suppkey
            WHERE r = (SELECT max(r) FROM revenue)""",
    ),
    "q20": Program(
        fixed={
            "wanted": """
                SELECT ps_partkey AS p, ps_suppkey AS s, ps_availqty AS q, s_name, s_address
                FROM given_partsupp JOIN given_supplier ON ps_suppkey = s_suppkey
                SEMI JOIN (SELECT p_partkey FROM given_part WHERE p_name LIKE 'forest%') ON ps_partkey = p_partkey
                SEMI JOIN (SELECT n_nationkey FROM given_nation WHERE n_name = 'CANADA') ON s_nationkey = n_nationkey"""
        },
        partial="""
            SELECT l_partkey AS p, l_suppkey AS s, sum(l_quantity) AS q
            FROM chunk SEMI JOIN wanted ON l_partkey = p AND l_suppkey = s
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' GROUP BY 1, 2""",
        folded="SELECT p, s, sum(q) AS q FROM partial GROUP BY 1, 2",
        answer="""
            SELECT DISTINCT ON (s) s_name, s_address FROM wanted
            JOIN (SELECT p, s, sum(q) AS shipped FROM partial GROUP BY 1, 2) USING (p, s) WHERE q > 0.5 * shipped""",
    ),
}
