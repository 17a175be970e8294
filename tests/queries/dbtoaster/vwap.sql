SELECT sum(b1.price * b1.volume) AS vwap FROM Bids b1
WHERE 0.25 * (select sum(b3.volume) from Bids b3) >
          (select sum(b2.volume) from Bids b2
           where b2.price>b1.price);
