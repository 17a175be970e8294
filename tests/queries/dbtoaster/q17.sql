SELECT sum(l.extendedprice) AS price FROM Lineitem l, Part p
WHERE p.partkey = l.partkey
AND l.quantity < 0.005 * (select sum(l2.quantity)
from Lineitem l2 where l2.partkey = p.partkey);
