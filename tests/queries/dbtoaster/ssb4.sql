SELECT sn.regionkey AS supplier_region, cn.regionkey AS customer_region, p.type, sum(li.quantity) AS quantity
FROM Customer c, Orders o, Lineitem li,
     Part p, Supplier s, Nation cn, Nation sn
WHERE c.custkey = o.custkey
  AND o.orderkey = li.orderkey
  AND p.partkey = li.partkey
  AND s.suppkey = li.suppkey
  AND o.orderdate >= DATE('1997-01-01')
  AND o.orderdate < DATE('1998-01-01')
  AND cn.nationkey = c.nationkey
  AND sn.nationkey = s.nationkey
GROUP BY sn.regionkey, cn.regionkey, p.type;
