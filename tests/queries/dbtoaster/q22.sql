SELECT c1.nationkey, sum(c1.acctbal) AS acctbal FROM Customer c1
WHERE c1.acctbal <
(select sum(c2.acctbal) from Customer c2 where c2.acctbal>0)
AND 0=(select sum(1) from Orders o where o.custkey=c1.custkey)
GROUP BY c1.nationkey;
