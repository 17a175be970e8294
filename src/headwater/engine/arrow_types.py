"""Spark SQL's types as Arrow types: how rows look outside, and how they are stored.

Two forms of a relation's rows exist:

* the *row form*, which people give and get: `arrow_type`. A TIMESTAMP is `timestamp('us')` without a zone and means
  UTC; INTERVAL DAY TO SECOND is `duration('us')`; INTERVAL YEAR TO MONTH is `int32`, the number of months, because
  Arrow's own month interval is hardly implemented anywhere.
* the *storage form*, which DuckDB keeps: `storage_arrow_type`. It differs only for INTERVAL DAY TO SECOND, kept as
  BIGINT microseconds: DuckDB's INTERVAL has months, days and microseconds apart and compares them by a convention.

Arrow's own NOT NULL flag is not used: two tables that differ only in it count as different, and DuckDB never sets it.
That a column holds no NULL is checked once, when rows come in.
"""

from __future__ import annotations

import pyarrow as pa

from headwater import types as t
from headwater.algebra.nodes import Values


def arrow_type(type_: t.Type) -> pa.DataType:
    """The Arrow type of a column in row form.

    >>> arrow_type(t.Decimal(12, 2))
    Decimal128Type(decimal128(12, 2))
    >>> arrow_type(t.Array(t.DAY_TIME_INTERVAL))
    ListType(list<item: duration[us]>)
    """
    return _arrow_type(type_, pa.duration("us"))


def storage_arrow_type(type_: t.Type) -> pa.DataType:
    """The Arrow type of a column in storage form.

    >>> storage_arrow_type(t.Array(t.DAY_TIME_INTERVAL))
    ListType(list<item: int64>)
    """
    return _arrow_type(type_, pa.int64())


def arrow_schema(fields: t.Schema) -> pa.Schema:
    """The Arrow schema of rows in row form."""
    return pa.schema([(field.name, arrow_type(field.type)) for field in fields])


def storage_arrow_schema(fields: t.Schema) -> pa.Schema:
    """The Arrow schema of rows in storage form."""
    return pa.schema([(field.name, storage_arrow_type(field.type)) for field in fields])


def constant_rows(node: Values) -> pa.Table | None:
    """Constant rows in storage form; None if a column is nested, which the algebra writes in a form of its own."""
    if any(t.is_nested(f.type) for f in node.fields) or not node.fields:
        return None
    columns = zip(*node.rows, strict=True) if node.rows else ((),) * len(node.fields)
    schema = storage_arrow_schema(node.fields)
    arrays = [pa.array(list(cells), of) for cells, of in zip(columns, schema.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def to_storage(table: pa.Table, fields: t.Schema) -> pa.Table:
    """Rows in storage form; columns that look the same in both forms are not copied."""
    return _conform(table, storage_arrow_schema(fields))


def from_storage(table: pa.Table, fields: t.Schema) -> pa.Table:
    """Rows in row form, from storage form; columns that look the same in both forms are not copied."""
    return _conform(table, arrow_schema(fields))


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema, check_metadata=True):
        return table
    if table.num_columns != len(schema):
        raise ValueError(f"{table.num_columns} columns where {len(schema)} were expected")
    columns = [
        column
        if column.type == wanted
        else pa.nulls(table.num_rows)  # a column of NULLs alone, which DuckDB gives some type
        if pa.types.is_null(wanted)
        else column.cast(wanted)
        for column, wanted in zip(table.columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _arrow_type(type_: t.Type, day_time: pa.DataType) -> pa.DataType:
    match type_:
        case t.Array(element):
            return pa.list_(_arrow_type(element, day_time))
        case t.Map(key, value):
            return pa.map_(_arrow_type(key, day_time), _arrow_type(value, day_time))
        case t.Struct(fields):
            return pa.struct([(name, _arrow_type(inner, day_time)) for name, inner in fields])
        case t.Integer(bits):
            return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
        case t.Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case t.DayTimeInterval():
            return day_time
    return _LEAVES[type(type_)]


_LEAVES: dict[type[t.Type], pa.DataType] = {
    t.Null: pa.null(),
    t.Boolean: pa.bool_(),
    t.Float: pa.float32(),
    t.Double: pa.float64(),
    t.String: pa.string(),
    t.Binary: pa.binary(),
    t.Date: pa.date32(),
    t.Timestamp: pa.timestamp("us"),
    t.YearMonthInterval: pa.int32(),
}
