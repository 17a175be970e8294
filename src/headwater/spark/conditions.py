"""Conditions of Headwater's algebra as Spark's; see `headwater.plan.wanted.portable`."""

from __future__ import annotations

import operator
from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql.functions import col, lit

from headwater import types as t
from headwater.algebra.scalars import Call, Cast, Column, Literal, Scalar
from headwater.spark.types import quoted, spark_type

_FUNCTIONS: dict[str, Callable[..., SparkColumn]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": SparkColumn.eqNullSafe,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
    "is null": SparkColumn.isNull,
    "is not null": SparkColumn.isNotNull,
    "in": SparkColumn.isin,
}


def spark_condition(scalar: Scalar) -> SparkColumn:
    """A portable scalar for Spark."""
    match scalar:
        case Column(name=name):
            return col(quoted(name))
        case Literal(value=value, type=of):
            plain = str(value) if isinstance(of, t.Timestamp | t.Date) and value is not None else value
            return lit(plain).cast(spark_type(of))
        case Cast(arg=arg, type=of):
            return spark_condition(arg).cast(spark_type(of))
        case Call(function=function, args=args):
            return _FUNCTIONS[function](*(spark_condition(arg) for arg in args))
    raise TypeError(f"no condition of Spark for {type(scalar).__name__}")
