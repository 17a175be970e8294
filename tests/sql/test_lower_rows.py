"""INSERT: by position, in the target's types, as Spark's ANSI store assignment has it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from headwater import types as t
from headwater.sql.assign import can_assign
from tests.sql.shop import inserted, lines, refused, rows

A = t.Field("a", t.BIGINT)
B = t.Field("b", t.Decimal(5, 1))


def test_values_are_converted_now() -> None:
    assert str(inserted("VALUES (1, 2.25), (2, NULL)", A, B)) == lines(
        "values[a BIGINT, b DECIMAL(5,1)]((1L, {DECIMAL(5,1) '2.3'}), (2L, {DECIMAL(5,1) null}))"
    )


def test_a_query_is_converted_row_by_row() -> None:
    assert str(inserted("SELECT id, qty FROM orders", A, B)) == lines("""
        project[a := cast(orders.id as BIGINT), b := cast(orders.qty as DECIMAL(5,1))](
          orders as orders)
    """)


def test_expressions_in_values_are_computed() -> None:
    assert rows(inserted("VALUES (1 + 1, 10 / 4)", A, B)) == {(2, Decimal("2.5")): 1}


def test_equal_rows_are_kept() -> None:
    assert rows(inserted("VALUES (1), (1)", A)) == {(1,): 2}


@pytest.mark.parametrize(
    ("text", "code", "underlined", "message"),
    [
        ("VALUES (1)", "HW128", "VALUES (1)", "INSERT gives 1 column, the target has 2 columns: a, b"),
        ("VALUES ('1', 2)", "HW113", "'1'", "column a is BIGINT and cannot take STRING"),
        ("VALUES (1, true)", "HW113", "true", "column b is DECIMAL(5,1) and cannot take BOOLEAN"),
        ("SELECT id, note FROM orders", "HW113", "note", "column b is DECIMAL(5,1) and cannot take STRING"),
        ("VALUES (1, 2), (3, 99999)", "HW502", "99999", "column b: "),
        ("VALUES (1, DEFAULT)", "HW101", "DEFAULT", "VALUES cannot read columns"),
        ("VALUES (1, 2 DIV 0)", "HW501", "2 DIV 0", "division by zero"),
    ],
)
def test_what_does_not_fit_names_the_column(text: str, code: str, underlined: str, message: str) -> None:
    found = refused(text, lambda query: inserted(query, A, B))
    assert found[:2] == (code, underlined)
    assert found[2].startswith(message)


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        (t.NULL, t.DATE, True),
        (t.BIGINT, t.TINYINT, True),
        (t.DOUBLE, t.Decimal(5, 2), True),
        (t.INT, t.STRING, True),
        (t.DATE, t.TIMESTAMP, True),
        (t.TIMESTAMP, t.DATE, True),
        (t.Array(t.INT), t.Array(t.BIGINT), True),
        (t.STRING, t.INT, False),
        (t.STRING, t.DATE, False),
        (t.INT, t.BOOLEAN, False),
        (t.BOOLEAN, t.INT, False),
        (t.INT, t.TIMESTAMP, False),
        (t.Array(t.STRING), t.Array(t.INT), False),
        (t.Array(t.INT), t.STRING, False),
    ],
)
def test_which_types_insert_converts(source: t.Type, target: t.Type, allowed: bool) -> None:
    assert can_assign(source, target) is allowed


def test_dates_become_timestamps() -> None:
    found = inserted("VALUES (DATE '2020-01-01')", t.Field("at", t.TIMESTAMP))
    assert rows(found) == {(dt.datetime(2020, 1, 1),): 1}
