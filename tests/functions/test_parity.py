"""Every function gives Spark's answer: in the Python evaluator, in DuckDB, and in Spark itself.

The Spark half runs with `-m spark`; the Python evaluator and DuckDB are compared without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from headwater.algebra.functions import REGISTRY
from headwater.emit.functions import EMITTERS
from tests.functions import harness
from tests.functions.cases import CASES
from tests.functions.harness import Case, Failure, agree


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with harness.connect() as connection:
        yield connection


@pytest.mark.parametrize("one", CASES, ids=str)
def test_duckdb_computes_what_the_evaluator_defines(con: duckdb.DuckDBPyConnection, one: Case) -> None:
    expected = [harness.by_python(one, row) for row in one.rows]
    found = harness.by_duckdb(con, one, one.rows)
    folded = harness.by_duckdb_constants(con, one, one.rows)
    wrong = [
        f"{row}: evaluator {want!r}, DuckDB {got!r}, as constants {constant!r}"
        for row, want, got, constant in zip(one.rows, expected, found, folded, strict=True)
        if not agree(want, got, one.ulps) or not agree(want, constant, one.ulps)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.spark
@pytest.mark.parametrize("one", CASES, ids=str)
def test_spark_says_the_same(spark: Any, one: Case) -> None:
    if REGISTRY.get(one.function) and REGISTRY[one.function].internal:
        pytest.skip("the compiler's own function")
    expected = [harness.by_python(one, row) for row in one.rows]
    failing = {i for i, value in enumerate(expected) if isinstance(value, Failure)}
    found = harness.by_spark(spark, one, one.rows, failing)
    wrong = [
        f"{row}: evaluator {want!r}, Spark {got!r}"
        for row, want, got in zip(one.rows, expected, found, strict=True)
        if not (isinstance(want, Failure) and isinstance(got, Failure)) and not agree(want, got, one.ulps)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_function_is_emitted_and_has_a_case() -> None:
    assert set(EMITTERS) == set(REGISTRY)
    # The clock and the bounds of a part have no value by themselves: tests/engine/test_windows.py and test_parts.py.
    assert {one.function for one in CASES} - {"cast"} == set(REGISTRY) - {"now", "before", "bound"}
