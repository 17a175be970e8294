SELECT b.broker_id, sum(a.price*a.volume - b.price*b.volume) AS spread
FROM Bids b, Asks a
WHERE 0.25*(select sum(a1.volume) from Asks a1) >
   (select sum(a2.volume) from Asks a2 where a2.price>a.price)
AND 0.25*(select sum(b1.volume) from Bids b1) >
   (select sum(b2.volume) from Bids b2 where b2.price>b.price)
GROUP BY b.broker_id;
