"""Headwater's types as Spark's."""

from __future__ import annotations

from pyspark.sql import types as spark

from headwater import types as t

_LEAVES: dict[type[t.Type], spark.DataType] = {
    t.Boolean: spark.BooleanType(),
    t.Float: spark.FloatType(),
    t.Double: spark.DoubleType(),
    t.String: spark.StringType(),
    t.Binary: spark.BinaryType(),
    t.Date: spark.DateType(),
    t.Timestamp: spark.TimestampType(),
    t.DayTimeInterval: spark.DayTimeIntervalType(),
    t.YearMonthInterval: spark.YearMonthIntervalType(),
}
_INTEGERS = {8: spark.ByteType(), 16: spark.ShortType(), 32: spark.IntegerType(), 64: spark.LongType()}


def spark_type(of: t.Type) -> spark.DataType:
    """The type of Spark with the same values."""
    match of:
        case t.Integer(bits):
            return _INTEGERS[bits]
        case t.Decimal(precision, scale):
            return spark.DecimalType(precision, scale)
        case t.Array(element):
            return spark.ArrayType(spark_type(element))
        case t.Map(key, value):
            return spark.MapType(spark_type(key), spark_type(value))
        case t.Struct(fields):
            return spark.StructType([spark.StructField(name, spark_type(one)) for name, one in fields])
    return _LEAVES[type(of)]


def spark_schema(fields: t.Schema) -> spark.StructType:
    """A relation's columns. All may be NULL: what may not be is checked by Headwater, which can say where it was."""
    return spark.StructType([spark.StructField(f.name, spark_type(f.type)) for f in fields])


def json_schema(fields: t.Schema) -> spark.StructType:
    """The columns as Spark must read them from JSON, where it takes 200 for a TINYINT of -56 instead of refusing it.

    So TINYINT is read as SMALLINT, and Headwater refuses what does not fit.
    """
    return spark.StructType([spark.StructField(f.name, _without_bytes(spark_type(f.type))) for f in fields])


def _without_bytes(of: spark.DataType) -> spark.DataType:
    match of:
        case spark.ByteType():
            return spark.ShortType()
        case spark.ArrayType():
            return spark.ArrayType(_without_bytes(of.elementType))
        case spark.MapType():
            return spark.MapType(_without_bytes(of.keyType), _without_bytes(of.valueType))
        case spark.StructType():
            return spark.StructType([spark.StructField(f.name, _without_bytes(f.dataType)) for f in of.fields])
    return of


def quoted(name: str) -> str:
    """A column's name as Spark's functions take it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
