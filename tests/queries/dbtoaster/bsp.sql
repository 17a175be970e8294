SELECT x.broker_id, sum(x.volume*x.price - y.volume*y.price) AS spread
FROM Bids x, Bids y
WHERE x.broker_id=y.broker_id AND x.t>y.t
GROUP BY x.broker_id;
