-- Revenue of each city, over a join of all three. A city with no sale left has no row; NULL is a city of its own.
CREATE VIEW city_revenue AS
SELECT c.city, SUM(s.price * s.quantity) AS revenue, COUNT(*) AS sales, AVG(s.price) AS mean_price
FROM customer c
JOIN orders o ON o.customer = c.id
JOIN sale s ON s.order_id = o.id
GROUP BY c.city;

-- A view over a view, with a condition on sums.
CREATE VIEW good_cities AS
SELECT city, revenue FROM city_revenue WHERE revenue >= 100;

-- Pairs of customers in the same city: a self-join.
CREATE VIEW neighbours AS
SELECT a.name AS name, b.name AS neighbour
FROM customer a JOIN customer b ON a.city = b.city AND a.id < b.id;

-- Days that sold more than three pieces in all.
CREATE VIEW busy_days AS
SELECT o.day, SUM(s.quantity) AS pieces
FROM orders o JOIN sale s ON s.order_id = o.id
GROUP BY o.day
HAVING SUM(s.quantity) > 3;

-- One row, whatever happens.
CREATE VIEW overview AS
SELECT COUNT(*) AS cities, SUM(revenue) AS revenue FROM city_revenue;
