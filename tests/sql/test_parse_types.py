"""Types in columns, by name, and in casts."""

from __future__ import annotations

import pytest
from sqlglot import exp

from headwater import types as t
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.sql import statements as st
from headwater.sql.parse import parse
from headwater.sql.types import from_sqlglot, parse_type

SPELLINGS = [
    ("boolean", t.BOOLEAN),
    ("TINYINT", t.TINYINT),
    ("byte", t.TINYINT),
    ("SHORT", t.SMALLINT),
    ("Integer", t.INT),
    ("LONG", t.BIGINT),
    ("REAL", t.FLOAT),
    ("DOUBLE", t.DOUBLE),
    ("STRING", t.STRING),
    ("VARCHAR", t.STRING),
    ("BINARY", t.BINARY),
    ("DATE", t.DATE),
    ("TIMESTAMP", t.TIMESTAMP),
    ("TIMESTAMP_LTZ", t.TIMESTAMP),
    ("DECIMAL", t.Decimal(10, 0)),
    ("DEC(5)", t.Decimal(5, 0)),
    ("NUMERIC(38, 38)", t.Decimal(38, 38)),
    ("INTERVAL DAY TO SECOND", t.DAY_TIME_INTERVAL),
    ("INTERVAL YEAR TO MONTH", t.YEAR_MONTH_INTERVAL),
    ("ARRAY<ARRAY<INT>>", t.Array(t.Array(t.INT))),
    ("MAP<STRING, ARRAY<DOUBLE>>", t.Map(t.STRING, t.Array(t.DOUBLE))),
    ("STRUCT<a: INT, `b c` STRING, date: DATE>", t.Struct((("a", t.INT), ("b c", t.STRING), ("date", t.DATE)))),
]


@pytest.mark.parametrize(("text", "expected"), SPELLINGS)
def test_type_by_name(text: str, expected: t.Type):
    assert parse_type(text) == expected


@pytest.mark.parametrize(("text", "expected"), SPELLINGS)
def test_a_cast_in_a_query_names_the_same_type(text: str, expected: t.Type):
    (query,) = parse(f"SELECT CAST(x AS {text}) FROM t")
    assert isinstance(query, st.Query)
    cast = query.query.find(exp.Cast)
    assert cast is not None
    assert from_sqlglot(cast.to) == expected


@pytest.mark.parametrize(
    "kind",
    [
        *(expected for _, expected in SPELLINGS if "b c" not in str(expected)),
        t.NULL,
        t.Map(t.Struct((("x", t.Decimal(3, 1)),)), t.Array(t.DAY_TIME_INTERVAL)),
    ],
    ids=str,
)
def test_the_printed_type_is_read_back(kind: t.Type):
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind", "code", "pointed"),
    [
        ("TEXT", UserError, "HW163", "TEXT"),
        ("INT8", UserError, "HW163", "INT8"),
        ("DECIMAL(39)", UserError, "HW163", "DECIMAL(39)"),
        ("DECIMAL(5, 6)", UserError, "HW163", "DECIMAL(5, 6)"),
        ("DECIMAL(5, 1, 1)", UserError, "HW163", "DECIMAL(5, 1, 1)"),
        ("DECIMAL(99999999999999999999)", UserError, "HW163", "DECIMAL(99999999999999999999)"),
        ("DECIMAL(5.5)", UserError, "HW163", "DECIMAL(5.5)"),
        ("INT(5)", UserError, "HW163", "INT(5)"),
        ("MAP<MAP<INT, INT>, INT>", UserError, "HW163", "MAP<MAP<INT, INT>, INT"),
        ("STRUCT<a: INT, A: INT>", UserError, "HW160", "STRUCT<a: INT, A: INT"),
        ("VARCHAR(10)", NotSupported, "HW263", "VARCHAR(10)"),
        ("CHAR(3)", NotSupported, "HW263", "CHAR(3)"),
        ("CHAR", NotSupported, "HW263", "CHAR"),
        ("VARIANT", NotSupported, "HW263", "VARIANT"),
        ("TIMESTAMP_NTZ", NotSupported, "HW263", "TIMESTAMP_NTZ"),
        ("TIME(6)", NotSupported, "HW263", "TIME(6)"),
        ("INTERVAL", NotSupported, "HW263", "INTERVAL"),
        ("INTERVAL HOUR TO SECOND", NotSupported, "HW263", "INTERVAL HOUR TO SECOND"),
        ("STRUCT<a: INT NOT NULL>", NotSupported, "HW261", "NOT"),
        ("ARRAY", UserError, "HW001", ""),
        ("ARRAY<INT", UserError, "HW001", ""),
        ("STRUCT<>", UserError, "HW001", "<>"),
        ("MAP<INT>", UserError, "HW001", ">"),
        ("INT INT", UserError, "HW001", "INT"),
        ("'INT'", UserError, "HW001", "'INT'"),
        ("", UserError, "HW163", ""),
        ("INT; INT", UserError, "HW163", "INT; INT"),
        ("ARRAY<" * 5000 + "INT", UserError, "HW002", "ARRAY"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused_types(text: str, kind: type[HeadwaterError], code: str, pointed: str):
    with pytest.raises(kind) as caught:
        parse_type(text)
    error = caught.value
    assert error.code == code
    assert error.span is not None
    assert text[error.span.start : error.span.end] == pointed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("TIMESTAMP_NTZ", "HW263"),
        ("VARIANT", "HW263"),
        ("INTERVAL DAY", "HW263"),
        ("DECIMAL(40, 2)", "HW163"),
        ("DECIMAL(10 2)", "HW163"),
    ],
)
def test_refused_types_of_casts(text: str, code: str):
    (query,) = parse(f"SELECT CAST(x AS {text}) FROM t")
    assert isinstance(query, st.Query)
    cast = query.query.find(exp.Cast)
    assert cast is not None
    with pytest.raises(HeadwaterError) as caught:
        from_sqlglot(cast.to)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["INT8", "TEXT", "HUGEINT", "BOOL", "nonsense"])
def test_types_of_other_systems_are_no_types_in_casts(name: str):
    with pytest.raises(UserError) as caught:
        parse(f"SELECT CAST(x AS {name}) FROM t")
    assert caught.value.code == "HW001"


def test_a_column_cannot_be_void():
    with pytest.raises(NotSupported) as caught:
        parse("CREATE TABLE t (a INT, b ARRAY<VOID>)")
    assert caught.value.code == "HW263"
