SELECT x.broker_id, sum(x.volume*x.price*y.volume*y.price*0.5) AS variance
FROM Bids x, Bids y
WHERE x.broker_id = y.broker_id GROUP BY x.broker_id;
