-- The relations of the workload: the order book (section 6), and TPC-H with bare column names.
CREATE TABLE Bids (t DOUBLE, id BIGINT, broker_id INT, volume DOUBLE, price DOUBLE);
CREATE TABLE Asks (t DOUBLE, id BIGINT, broker_id INT, volume DOUBLE, price DOUBLE);
CREATE TABLE Customer (custkey BIGINT, nationkey BIGINT, acctbal DECIMAL(15,2), mktsegment STRING);
CREATE TABLE Orders (orderkey BIGINT, custkey BIGINT, orderdate DATE, shippriority INT);
CREATE TABLE Lineitem (
  orderkey BIGINT, partkey BIGINT, suppkey BIGINT, quantity DECIMAL(15,2), extendedprice DECIMAL(15,2),
  discount DECIMAL(15,2), shipdate DATE);
CREATE TABLE Part (partkey BIGINT, type STRING);
CREATE TABLE Partsupp (partkey BIGINT, suppkey BIGINT, supplycost DECIMAL(15,2), availqty INT);
CREATE TABLE Supplier (suppkey BIGINT, nationkey BIGINT);
CREATE TABLE Nation (nationkey BIGINT, regionkey BIGINT);
