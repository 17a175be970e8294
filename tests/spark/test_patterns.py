"""The texts that patterns and sliding windows are translated to are Spark SQL: Spark gives the same rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlglot import exp

from headwater import types as t
from headwater.spark.types import spark_schema
from headwater.sql.part_text import shown
from headwater.sql.types import parse_type
from tests.equivalence.check import nearly
from tests.spark.references import _plain
from tests.sql import random_patterns, random_windows
from tests.sql.parts import Relation, Row, Tables, run, texts
from tests.sql.shop import parse

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("queries on spark")]


def on_spark(spark: Any) -> Any:
    """Evaluates queries on Spark."""

    def evaluate(tree: exp.Expr, tables: Tables) -> tuple[t.Schema, list[Row]]:
        for name, (fields, rows) in tables.items():
            spark.createDataFrame(rows, spark_schema(fields)).createOrReplaceTempView(name)
        frame = spark.sql(shown(tree))
        rows = [tuple(_plain(value) for value in row) for row in frame.collect()]
        return tuple(t.Field(one.name, parse_type(one.dataType.simpleString())) for one in frame.schema.fields), rows

    return evaluate


@pytest.mark.parametrize("seed", range(5))
def test_spark_runs_patterns(spark: Any, seed: int) -> None:
    case = random_patterns.make_case(seed, parts=3)
    relations = {"M": Relation(random_patterns.FIELDS, case.parts)}
    made = run(texts(case.statement, random_patterns.M), relations, range(100, 103), on_spark(spark))
    for part, wanted in random_patterns.expected(case).items():
        assert not nearly(Counter(made.parts[part]), wanted), (case.statement, part)


@pytest.mark.parametrize("seed", [3, 54, 57, 108, 112])
def test_spark_runs_windows(spark: Any, seed: int) -> None:
    """Every part has the types and the rows that Spark gives for the query over the window's rows."""
    parts = range(10, 14)
    query, whole, width = random_windows.make_query(seed)
    rows = random_windows.make_rows(seed, parts)
    relations = {"S": Relation(random_windows.FIELDS, rows)}
    using = on_spark(spark)
    made = run(texts(f"CREATE VIEW v AS {query}", random_windows.S), relations, parts, using)
    for part in parts[1:]:
        window = [row for one in range(part - width + 1, part + 1) for row in rows.get(one, [])]
        fields, wanted = using(parse(whole), {"S": (random_windows.FIELDS, window)})
        assert [one.type for one in made.fields] == [one.type for one in fields], query
        assert not nearly(Counter(made.parts[part]), Counter(wanted)), (query, part)
