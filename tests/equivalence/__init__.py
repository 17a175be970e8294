"""The equivalence generator: random views over random changes, held against what they mean.

`make_case(seed)` invents schemas, views and epochs; `check` runs them on Headwater and compares every view after every
epoch with the plain interpreter and with DuckDB computing the same text from scratch; `shrink` makes a failing case
small enough to read. A new feature of the language joins by one function decorated with `construct`.
"""
