-- A small shop: who buys, what is ordered, what each order contains.

CREATE TABLE customer (
  id   INT PRIMARY KEY,
  name STRING NOT NULL,
  city STRING                              -- may be unknown
);

CREATE TABLE orders (
  id       INT PRIMARY KEY,
  customer INT NOT NULL,
  day      DATE
);

CREATE STREAM sale (                       -- rows only ever arrive
  order_id INT NOT NULL,
  product  STRING,
  price    DECIMAL(10, 2),
  quantity INT
) RETAIN ALL;
