SELECT o.orderkey, o.orderdate, o.shippriority, sum(li.extendedprice * (1 - li.discount)) AS revenue
FROM Customer c, Orders o, Lineitem li
WHERE c.mktsegment = 'BUILDING'
  AND o.custkey = c.custkey
  AND li.orderkey = o.orderkey
  AND o.orderdate < DATE('1995-03-15')
  AND li.shipdate > DATE('1995-03-15')
GROUP BY o.orderkey, o.orderdate, o.shippriority;
