SELECT c.custkey, sum(l1.quantity) AS quantity
FROM Customer c, Orders o, Lineitem l1
WHERE 1 <= (select sum(1) where
                100 < (select sum(l2.quantity) from Lineitem l2
                         where l1.orderkey = l2.orderkey))
AND c.custkey = o.custkey AND o.orderkey = l1.orderkey
GROUP BY c.custkey;
