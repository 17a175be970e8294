SELECT ps.partkey, sum(ps.supplycost * ps.availqty) AS value
FROM Partsupp ps, Supplier s
WHERE ps.suppkey = s.suppkey GROUP BY ps.partkey;
