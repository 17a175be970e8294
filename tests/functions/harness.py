"""One case, three engines: the Python evaluator, DuckDB through emit, and Spark.

A case is a function, the types of its arguments (a `Literal` where the argument has to be one) and rows of values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.scalars import Cast, Column, Literal, Scalar, call, cast, substitute
from headwater.emit.scalars import duckdb_literal, duckdb_scalar, duckdb_type, explain_runtime_error
from headwater.errors import Source
from headwater.sql.bind import bind_row_scalar
from headwater.sql.dialect import new_parser
from headwater.sql.reading import split_statements
from headwater.sql.scope import RelationInfo

INFIX = {"+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "&", "|", "^", "||"}
D = Decimal
EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Failure:
    """The code of an error where a value was asked for."""

    code: str


@dataclass(frozen=True)
class Case:
    """A function over columns and literals, and the rows to try it on.

    Attributes:
        spark: its text for Spark, `{0}` standing for the first argument.
        ulps: how many units in the last place a DOUBLE may differ; the JVM has its own exp, log and sin.
        written: the expression is what the binder makes of the text for Spark; for lambdas, which have no literal.
    """

    function: str
    args: tuple[t.Type | Literal, ...]
    rows: tuple[tuple[object, ...], ...]
    spark: str
    ulps: int = 0
    target: t.Type | None = None
    safe: bool = False
    written: bool = False
    columns: tuple[t.Type, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(a for a in self.args if isinstance(a, t.Type)))

    def __str__(self) -> str:
        return self.spark.format(*(str(a) if isinstance(a, t.Type) else spark_literal(a) for a in self.args))

    def scalar(self, row: Sequence[object] | None = None) -> Scalar:
        """The expression over columns c0, c1, ..., or over literals of one row."""
        if self.written:
            bound = _bound(self)
            given = {f"c{i}": _constant(v, k) for i, (v, k) in enumerate(zip(row or (), self.columns, strict=False))}
            return substitute(bound, given)
        parts: list[Scalar] = []
        for arg in self.args:
            if isinstance(arg, Literal):
                parts.append(arg)
                continue
            position = len(parts) - sum(1 for a in self.args[: len(parts)] if isinstance(a, Literal))
            parts.append(Column(f"c{position}", arg) if row is None else _constant(row[position], arg))
        if self.target is not None:
            return Cast(parts[0], self.target, self.safe) if row is None or self.safe else cast(parts[0], self.target)
        return call(self.function, *parts)


def _constant(value: object, kind: t.Type) -> Scalar:
    """A constant that types as a column would: an integer literal by itself is narrow beside a DECIMAL."""
    if isinstance(kind, t.Integer) and isinstance(value, int):
        return Cast(Literal(Decimal(value), t.Decimal(20, 0)), kind)
    return Literal(value, kind)


def case(
    function: str, *args: t.Type | Literal, rows: Iterable[object], spark: str | None = None, ulps: int = 0
) -> Case:
    """A case; a row of one column may stand without its tuple."""
    slots = [f"{{{i}}}" for i in range(len(args))]
    if spark is None:
        spark = f" {function} ".join(slots) if function in INFIX else f"{function}({', '.join(slots)})"
    tuples = tuple(row if isinstance(row, tuple) else (row,) for row in rows)
    return Case(function, args, tuples, spark, ulps)


def lambda_case(spark: str, *args: t.Type, rows: Iterable[object]) -> Case:
    """A case of a function with lambdas, as it is written."""
    tuples = tuple(row if isinstance(row, tuple) else (row,) for row in rows)
    return Case(spark.partition("(")[0], args, tuples, spark, written=True)


@cache
def _bound(one: Case) -> Scalar:
    source = Source(spark_text(one))
    parser = new_parser()
    parser.begin(source, split_statements(source)[0])
    tree = parser.scalar("an expression")
    parser.end()
    info = RelationInfo("input", tuple(t.Field(f"c{i}", kind) for i, kind in enumerate(one.columns)))
    names = {f"i.{f.name}": Column(f.name, f.type) for f in info.fields}
    return substitute(bind_row_scalar(tree, "i", info, source), names)


def cast_case(source: t.Type, target: t.Type, *values: object, safe: bool = False) -> Case:
    word = "try_cast" if safe else "cast"
    return Case("cast", (source,), tuple((v,) for v in values), word + "({0} AS " + f"{target})", 0, target, safe)


def lit(value: object) -> Literal:
    """A literal with the type Spark's parser gives it."""
    match value:
        case None:
            return Literal(None, t.NULL)
        case bool():
            return Literal(value, t.BOOLEAN)
        case int():
            return Literal(value, t.INT if t.INT.low <= value <= t.INT.high else t.BIGINT)
        case str():
            return Literal(value, t.STRING)
        case float():
            return Literal(value, t.DOUBLE)
        case Decimal():
            _, digits, exponent = value.as_tuple()
            assert isinstance(exponent, int)
            return Literal(value, t.Decimal(max(len(digits), -exponent), -exponent))
    raise TypeError(value)


# --- Python -------------------------------------------------------------------------------------------------------


def by_python(one: Case, row: tuple[object, ...]) -> object:
    scalar = one.scalar()
    try:
        return evaluate_scalar(scalar, {f"c{i}": value for i, value in enumerate(row)})
    except EvaluationError as error:
        return Failure(error.code)


# --- DuckDB -------------------------------------------------------------------------------------------------------


def connect() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _identifier(name: str) -> exp.Expr:
    return exp.column(name, quoted=True)


def by_duckdb(con: duckdb.DuckDBPyConnection, one: Case, rows: Sequence[tuple[object, ...]]) -> list[object]:
    """Results over a table of the rows, so that nothing is folded at plan time."""
    columns = [exp.ColumnDef(this=exp.to_identifier("id"), kind=duckdb_type(t.INT))]
    columns += [exp.ColumnDef(this=exp.to_identifier(f"c{i}"), kind=duckdb_type(k)) for i, k in enumerate(one.columns)]
    table = exp.Schema(this=exp.to_table("input"), expressions=columns)
    con.execute(exp.Create(this=table, kind="TABLE", replace=True).sql("duckdb"))
    tuples = [
        exp.Tuple(expressions=[duckdb_literal(i, t.INT), *(map(duckdb_literal, row, one.columns))])
        for i, row in enumerate(rows)
    ]
    con.execute(exp.insert(exp.Values(expressions=tuples), "input").sql("duckdb"))
    query = exp.select(exp.alias_(duckdb_scalar(one.scalar(), _identifier), "v")).from_("input").order_by("id")
    text = query.sql("duckdb")
    found = con.execute("DESCRIBE " + text).fetchall()[0][1]
    expected = _duckdb_name(con, one.scalar().type)
    assert found == expected, f"{text} is {found}, not {expected}"
    try:
        return [duckdb_value(v, one.scalar().type) for (v,) in con.execute(text).fetchall()]
    except duckdb.Error:
        return [_attempt(con, query.where(f"id = {i}"), one.scalar().type) for i in range(len(rows))]


@cache
def _type_names() -> dict[t.Type, str]:
    return {}


def _duckdb_name(con: duckdb.DuckDBPyConnection, kind: t.Type) -> str:
    """DuckDB's own spelling of a type."""
    if kind not in _type_names():
        query = exp.select(exp.func("typeof", exp.Cast(this=exp.null(), to=duckdb_type(kind))))
        found = con.execute(query.sql("duckdb")).fetchone()
        assert found is not None
        _type_names()[kind] = found[0]
    return _type_names()[kind]


def by_duckdb_constants(con: duckdb.DuckDBPyConnection, one: Case, rows: Sequence[tuple[object, ...]]) -> list[object]:
    """Results with every argument a constant."""
    emitted = [duckdb_scalar(one.scalar(row), _identifier) for row in rows]
    together = exp.select(*(exp.alias_(value.copy(), f"v{i}") for i, value in enumerate(emitted)))
    try:
        found = con.execute(together.sql("duckdb")).fetchone()
    except duckdb.Error:
        return [_attempt(con, exp.select(value), one.scalar().type) for value in emitted]
    assert found is not None
    return [duckdb_value(v, one.scalar().type) for v in found]


def _attempt(con: duckdb.DuckDBPyConnection, query: exp.Select, kind: t.Type) -> object:
    try:
        found = con.execute(query.sql("duckdb")).fetchone()
    except duckdb.Error as error:
        return Failure(explain_runtime_error(str(error))[0])
    assert found is not None
    return duckdb_value(found[0], kind)


def python_value(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(map(python_value, value))
    return value


def duckdb_value(value: object, kind: t.Type) -> object:
    """A value as DuckDB hands it over, in the form of its type."""
    if value is None:
        return None
    match kind:
        case t.Array(element):
            assert isinstance(value, list)
            return tuple(duckdb_value(item, element) for item in value)
        case t.Map(key, item):
            assert isinstance(value, dict)
            return tuple((duckdb_value(k, key), duckdb_value(v, item)) for k, v in value.items())
        case t.Struct(fields):
            assert isinstance(value, dict)
            return tuple(duckdb_value(v, f) for v, (_, f) in zip(value.values(), fields, strict=True))
    return value


# --- Spark --------------------------------------------------------------------------------------------------------


def spark_literal(literal: Literal) -> str:
    """A constant in Spark's SQL, of exactly the literal's type."""
    value, kind = literal.value, literal.type
    if isinstance(kind, t.Null):
        return "NULL"
    if value is None:
        return f"CAST(NULL AS {kind})"
    match kind:
        case t.Boolean():
            return str(value).upper()
        case t.Integer(32):
            return str(value)
        case t.Integer() | t.Decimal():
            if isinstance(value, Decimal) and lit(value).type == kind:
                return format(value, "f")
            return f"CAST('{value:f}' AS {kind})" if isinstance(value, Decimal) else f"CAST({value} AS {kind})"
        case t.Float() | t.Double():
            return f"CAST('{value!r}' AS {kind})"
        case t.String():
            text = str(value).replace("\\", "\\\\").replace("'", "\\'")
            return "'" + re.sub("[\x00-\x1f]", lambda m: f"\\u{ord(m[0]):04x}", text) + "'"
        case t.Binary():
            assert isinstance(value, bytes)
            return f"X'{value.hex()}'"
        case t.Date():
            return f"DATE'{value}'"
        case t.Timestamp():
            return f"TIMESTAMP'{value}'"
        case t.DayTimeInterval():
            assert isinstance(value, int)
            return f"(timestamp_micros({value}L) - timestamp_micros(0L))"
        case t.YearMonthInterval():
            return f"make_ym_interval(0, {value})"
        case t.Array(element):
            assert isinstance(value, tuple)
            items = ", ".join(spark_literal(Literal(item, element)) for item in value)
            return f"array({items})" if value else f"CAST(array() AS {kind})"
        case t.Map(key, item):
            assert isinstance(value, tuple)
            entries = ", ".join(
                f"{spark_literal(Literal(k, key))}, {spark_literal(Literal(v, item))}" for k, v in value
            )
            return f"map({entries})" if value else f"CAST(map() AS {kind})"
        case t.Struct(fields):
            assert isinstance(value, tuple)
            parts = (f"'{n}', {spark_literal(Literal(v, f))}" for v, (n, f) in zip(value, fields, strict=True))
            return f"named_struct({', '.join(parts)})"
    raise TypeError(kind)


def _spark_readable(kind: t.Type, text: str) -> str:
    """Types that pyspark cannot collect, or collects in a local time zone, as numbers."""
    match kind:
        case t.Timestamp():
            return f"unix_micros({text})"
        case t.YearMonthInterval():
            return f"CAST(CAST({text} AS INTERVAL MONTH) AS INT)"
    return text


def spark_text(one: Case) -> str:
    parts, position = [], 0
    for arg in one.args:
        if isinstance(arg, Literal):
            parts.append(spark_literal(arg))
        else:
            parts.append(f"c{position}")
            position += 1
    return one.spark.format(*parts)


def _spark_query(one: Case, rows: Sequence[tuple[object, ...]], select: str) -> str:
    names = ", ".join(["id", *(f"c{i}" for i in range(len(one.columns)))])
    values = ", ".join(
        "(" + ", ".join([str(i), *(spark_literal(Literal(v, k)) for v, k in zip(row, one.columns, strict=True))]) + ")"
        for i, row in enumerate(rows)
    )
    # Without ORDER BY Spark evaluates it over a local relation, and needs no job.
    return f"SELECT {select} FROM VALUES {values} AS input({names})"


def by_spark(spark: Any, one: Case, rows: Sequence[tuple[object, ...]], failing: set[int]) -> list[object]:
    """Spark's results; rows expected to fail run one by one, the others in one query."""
    kind = one.scalar().type
    good = [row for i, row in enumerate(rows) if i not in failing]
    text = spark_text(one)
    schema = spark.sql(_spark_query(one, rows[:1], f"{text} AS v, id")).schema
    assert _type_name(schema[0].dataType) == _plain(str(kind)), f"Spark's type is {schema[0].dataType.simpleString()}"
    select = f"{_spark_readable(kind, text)} AS v, id"
    values: list[object] = []
    if good:
        rows_back = sorted(spark.sql(_spark_query(one, good, select)).collect(), key=lambda r: r[1])
        values = [_from_spark(r[0], kind) for r in rows_back]
    out, remaining = [], iter(values)
    for i, row in enumerate(rows):
        out.append(_failing(spark, one, row, select) if i in failing else next(remaining))
    return out


def _failing(spark: Any, one: Case, row: tuple[object, ...], select: str) -> object:
    query = _spark_query(one, [row], select)
    try:
        # The optimiser evaluates a query over constants; far cheaper than a failing job.
        spark._jsparkSession.sql(query).queryExecution().optimizedPlan()
        return _from_spark(spark.sql(query).collect()[0][0], one.scalar().type)
    except Exception as error:
        return Failure(str(error)[:60])


def _type_name(kind: Any) -> str:
    name = kind.simpleString().upper()
    if name.startswith("INTERVAL"):
        return "INTERVAL YEAR TO MONTH" if "MONTH" in name or "YEAR" in name else "INTERVAL DAY TO SECOND"
    return _plain(name)


def _plain(name: str) -> str:
    return name.upper().replace(", ", ",").replace(": ", ":").replace("`", "")


def _from_spark(value: object, kind: t.Type) -> object:
    match value, kind:
        case list(), t.Array(element):
            return tuple(_from_spark(item, element) for item in value)
        case dict(), t.Map(key, item):
            return tuple((_from_spark(k, key), _from_spark(v, item)) for k, v in value.items())
        case tuple(), t.Struct(fields):
            return tuple(_from_spark(v, f) for v, (_, f) in zip(value, fields, strict=True))
    match value:
        case dt.timedelta():
            return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        case bytearray():
            return bytes(value)
        case int() if isinstance(kind, t.Timestamp):
            return EPOCH + dt.timedelta(microseconds=value)
        case float() if isinstance(kind, t.Float):
            return value
    return value


# --- comparison -----------------------------------------------------------------------------------------------------


def agree(a: object, b: object, ulps: int = 0) -> bool:
    """Equal in value and kind; NaN equals NaN, and a failure equals a failure of the same code."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or (ulps > 0 and abs(a - b) <= ulps * max(math.ulp(a), math.ulp(b)))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(agree(x, y, ulps) for x, y in zip(a, b, strict=True))
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a == b and a.as_tuple().exponent == b.as_tuple().exponent
    return type(a) is type(b) and a == b
