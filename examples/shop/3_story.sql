-- Each statement below is an epoch; every view follows it.

INSERT INTO customer VALUES (1, 'Ada', 'London'), (2, 'Blaise', 'Paris'), (3, 'Carl', 'London'), (4, 'Dido', NULL);

INSERT INTO orders VALUES
  (10, 1, DATE '2026-03-01'), (11, 2, DATE '2026-03-01'), (12, 3, DATE '2026-03-02'), (13, 4, NULL);

INSERT INTO sale VALUES
  (10, 'lamp', 40.00, 2), (10, 'rope', 2.50, 4), (11, 'lamp', 40.00, 1), (12, 'sail', 120.00, 1), (13, 'rope', 2.50, 1);

-- Carl moves: London loses a neighbour and a sale, Paris wins both.
UPDATE customer SET city = 'Paris' WHERE id = 3;

-- Late sales, also one without a price.
INSERT INTO sale VALUES (11, 'rope', 2.50, 10), (12, 'gift', NULL, 1);

-- Ada's order is cancelled: London has no sale left and leaves the views.
DELETE FROM orders WHERE id = 10;

-- And comes back.
INSERT INTO orders VALUES (10, 1, DATE '2026-03-03');
