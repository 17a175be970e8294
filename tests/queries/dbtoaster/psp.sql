SELECT sum(a.price - b.price) AS spread FROM Bids b, Asks a WHERE b.volume>0.0001*(select sum(b1.volume) from Bids b1)
AND a.volume>0.0001*(select sum(a1.volume) from Asks a1);
