"""What is refused: the kind of error, its code, and what the caret points at."""

from __future__ import annotations

import textwrap
import time

import pytest

from headwater.errors import HeadwaterError, InternalError, NotSupported, UserError
from headwater.sql import parse as parse_module
from headwater.sql.parse import parse


def refusal(text: str) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        parse(text)
    return caught.value


def pointed(error: HeadwaterError) -> str:
    assert error.span is not None
    assert error.source is not None
    return error.source.text[error.span.start : error.span.end]


SYNTAX = [
    # statement, what the caret points at ("" is the end), what the message says
    ("SELCT 1", "SELCT", "expected a statement, found 'SELCT'"),
    ("42", "42", "expected a statement, found '42'"),
    ("CREATE", "", "expected TABLE, STREAM, VIEW or INDEX, but the statement ends here"),
    ("CREATE FOO v", "FOO", "expected TABLE, STREAM, VIEW or INDEX, found 'FOO'"),
    ("CREATE STATIC STREAM s (a INT)", "STATIC", "expected TABLE, STREAM, VIEW or INDEX, found 'STATIC'"),
    ("CREATE TABLE t", "", "expected '(', but the statement ends here"),
    ("CREATE TABLE t ()", ")", "expected a column's name, found ')'"),
    ("CREATE TABLE t (a)", ")", "expected a type, found ')'"),
    ("CREATE TABLE t (a INT", "", "expected NOT NULL, PRIMARY KEY, ',' or ')', but the statement ends here"),
    ("CREATE TABLE t (a INT,)", ")", "expected a column's name, found ')'"),
    ("CREATE TABLE t (a INT NULLABLE)", "NULLABLE", "expected NOT NULL, PRIMARY KEY, ',' or ')', found 'NULLABLE'"),
    ("CREATE TABLE t (a INT) x", "x", "unexpected 'x'"),
    ("CREATE TABLE select (a INT)", "select", "expected the table's name, found 'select'"),
    ("CREATE TABLE `` (a INT)", "``", "a name cannot be empty"),
    ("CREATE TABLE t (PRIMARY KEY (a))", "PRIMARY KEY (a)", "there are no columns"),
    ("CREATE STREAM s (a INT PRIMARY KEY)", "PRIMARY KEY", "a stream has no PRIMARY KEY"),
    (
        "CREATE VIEW v SELECT 1",
        "SELECT",
        "expected RETAIN CHANGES, REFRESH, STRICT, STRATEGY, RETAIN, ROLL UP or AS, found 'SELECT'",
    ),
    ("CREATE VIEW v AS", "", "expected a query, but the statement ends here"),
    ("CREATE VIEW v AS DROP VIEW v", "DROP", "expected a query, found 'DROP'"),
    ("CREATE VIEW v AS (1 + 2)", "(1 + 2)", "expected a query"),
    ("CREATE VIEW v AS SELECT 1 SELECT 2", "SELECT", "unexpected 'SELECT'"),
    ("ALTER WAREHOUSE SET PARTITIONS", "", "expected the number of partitions, but the statement ends here"),
    ("ALTER WAREHOUSE SET PARTITIONS 'many'", "'many'", "expected the number of partitions, found 'many'"),
    ("ALTER WAREHOUSE SET PARTITIONS 8 NOW", "NOW", "unexpected 'NOW'"),
    ("INSERT t VALUES (1)", "t", "expected INTO, found 't'"),
    ("INSERT INTO t", "", "expected VALUES, SELECT or WITH, but the statement ends here"),
    ("INSERT INTO t VALUES (1,)", ")", "expected an expression, found ')'"),
    ("INSERT INTO t VALUES (1) (2)", "(2)", "expected an alias"),
    ("INSERT /*+ hint */ INTO t VALUES (1)", "/*+ hint */", "expected INTO, found '/*+ hint */'"),
    ("DELETE t", "t", "expected FROM, found 't'"),
    ("DELETE FROM t WHERE", "", "expected a condition, but the statement ends here"),
    ("DELETE FROM t WHERE a = 1 b", "b", "unexpected 'b'"),
    ("UPDATE t SET a", "", "expected '=', but the statement ends here"),
    ("UPDATE t SET a = ", "", "expected a value, but the statement ends here"),
    ("UPDATE t SET a = 1,", "", "expected a column, but the statement ends here"),
    ("COPY t", "", "expected FROM, but the statement ends here"),
    ("COPY t FROM stdin", "stdin", "expected a path in quotes, found 'stdin'"),
    ("COPY t FROM 'x' XML", "XML", "expected CSV, JSON, PARQUET or options in parentheses, found 'XML'"),
    ("COPY t FROM 'x' CSV (header true", "", "expected ',' or ')', but the statement ends here"),
    ("DROP v", "v", "expected STREAM, TABLE, VIEW or INDEX, found 'v'"),
    (
        "SHOW ME",
        "ME",
        "expected one of TABLES, STREAMS, VIEWS, RELATIONS, EPOCHS, MAPS, PARTS, LATE, INDEXES, found 'ME'",
    ),
    ("SHOW TABLES LIKE x", "x", "expected a pattern in quotes, found 'x'"),
    ("DESCRIBE", "", "expected the name of a relation, but the statement ends here"),
    ("SELECT 1.5.5BD", ".5BD", "unexpected '.5BD'"),
    ("SELECT .1.50", ".1.50", "unexpected '.1.50'"),
    ("SELECT a.5 FROM t", ".5", "unexpected '.5'"),
    ("SELECT 1 AS ``", "``", "a name cannot be empty"),
    ("EXPLAIN", "", "expected a view's name, or a query, but the statement ends here"),
    (
        "EXPLAIN v FORMAT",
        "",
        "expected one of text, tree, mermaid, json, once, at the end, but the statement ends here",
    ),
    ("EXPLAIN v FORMAT 3", "3", "expected one of text, tree, mermaid, json, once, at the end, found '3'"),
    ("EXPLAIN format tree", "tree", "unexpected 'tree'"),
    ("EXPLAIN v FORMAT tree tree", "tree", "expected one of text, tree, mermaid, json, once, at the end, found 'tree'"),
    ("SHOW MAPS OF", "", "expected a view's name, but the statement ends here"),
    ("SHOW VIEWS OF v", "OF", "unexpected 'OF'"),
    ("REFRESH v now", "now", "unexpected 'now'"),
    ("SELECT a FROM t x y", "y", "unexpected 'y'"),
    ("SELECT a FROM", "", "expected table name, but the statement ends here"),
    ("SELECT a FROM 't'", "'t'", "expected a relation, found 't'"),
    ("SELECT a, FROM t", "FROM", "expected an expression, found 'FROM'"),
    ("SELECT a,, b FROM t", ",", "expected an expression, found ','"),
    ("SELECT FROM t", "FROM", "expected an expression, found 'FROM'"),
    ("SELECT f(a,) FROM t", ")", "expected an expression, found ')'"),
    ("SELECT a FROM t WHERE", "", "something is missing at the end of the statement"),
    ("SELECT a FROM t WHERE a = ) ", ")", "something is missing before ')'"),
    ("SELECT (((1)) FROM t", "FROM", "expected ), found 'FROM'"),
    ("SELECT CAST(a AS INT FROM t", "FROM", "expected ')', found 'FROM'"),
    ("SELECT a FROM t JOIN u ON", "", "expected a condition, but the statement ends here"),
    ("SELECT a FROM t JOIN u ON WHERE a", "WHERE", "expected a condition, found 'WHERE'"),
    ("SELECT a FROM t,", "", "expected a relation, but the statement ends here"),
    ("SELECT a JOIN u ON a = b", "SELECT a JOIN u ON a = b", "JOIN has nothing to join to: FROM is missing"),
    ("SELECT a FROM t GROUP BY", "", "expected an expression, but the statement ends here"),
    ("SELECT a FROM t GROUP BY ALL b", "b", "GROUP BY ALL takes no expressions"),
    ("SELECT a FROM t WHERE a BETWEEN 1 2", "2", "expected AND, found '2'"),
    ("SELECT a FROM t WHERE a IN 1", "1", "expected '(', found '1'"),
    ("SELECT a INTO b FROM t", "INTO", "unexpected 'INTO'"),
    ("SELECT {a}", "{", "unexpected '{'"),
    ("SELECT time '10:00'", "'10:00'", "unexpected '10:00'"),
    ("WITH x AS (DELETE FROM t) SELECT 1", "DELETE", "expected a query, found 'DELETE'"),
    ("WITH x AS (SELECT 1) DELETE FROM t", "DELETE", "expected a query, found 'DELETE'"),
    ("SELECT 'abc", "'", "this string is never closed"),
    ("SELECT `abc", "`", "this quoted name is never closed"),
    ("SELECT 1 /* x /* y */", "/*", "this comment is never closed"),
    ("SELECT X'1F", "X'", "this string is never closed"),
    ("SELECT X'1G'", "X'", "X'...' holds pairs of hexadecimal digits"),
    ("SELECT a€b", "€", "unexpected character '€' (U+20AC)"),
    ("SELECT a\x00", "\x00", "unexpected character U+0000"),
    ("SELECT 0x1F", "0x1F", "unexpected '0x1F'"),
]


@pytest.mark.parametrize(("text", "place", "message"), SYNTAX, ids=[text for text, _, _ in SYNTAX])
def test_text_that_does_not_parse(text: str, place: str, message: str):
    error = refusal(text)
    assert isinstance(error, UserError)
    assert error.message == message
    assert error.code == "HW001"
    assert pointed(error) == place
    if not place:
        assert error.span is not None
        assert error.span.start == len(text.rstrip())


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("CREATE TABLE t (a INT, b INT, A STRING)", "HW160", "A"),
        ("CREATE VIEW v (a, b, `a`) AS SELECT 1, 2, 3", "HW160", "`a`"),
        ("INSERT INTO t (a, A) VALUES (1, 2)", "HW160", "A"),
        ("UPDATE t SET a = 1, t.A = 2", "HW160", "A"),
        ("COPY t (a, a) FROM 'x.csv'", "HW160", "a"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a, A))", "HW160", "A"),
        ("CREATE TABLE t (`#a` INT)", "HW161", "`#a`"),
        ("CREATE VIEW `#v` AS SELECT 1", "HW161", "`#v`"),
        ("CREATE VIEW v (`#count`) AS SELECT 1", "HW161", "`#count`"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "HW162", "b"),
        ("CREATE TABLE t (a FOO, b INT)", "HW163", "FOO"),
        ("CREATE TABLE t (a MAP<INT, INT> PRIMARY KEY)", "HW164", "a"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "HW003", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", "HW003", "PRIMARY KEY (a)"),
        ("CREATE TABLE t (a INT NOT NULL NOT NULL)", "HW003", "NOT NULL"),
        ("COPY t FROM 'x.csv' (header true, HEADER false)", "HW003", "HEADER"),
        ("COPY t FROM 'x' CSV (format csv)", "HW003", "CSV (format csv)"),
        ("COPY t FROM 'x'", "HW004", "'x'"),
        ("COPY t FROM 'x' (format xml)", "HW004", "(format xml)"),
        ("EXPLAIN v FORMAT xml", "HW004", "xml"),
        ("EXPLAIN SELECT a FROM t FORMAT 'dot'", "HW004", "'dot'"),
        ("COPY t FROM 'x.csv' (color red)", "HW004", "(color red)"),
        ("COPY t FROM 'x.csv' (header 1)", "HW004", "(header 1)"),
        ("COPY t FROM 'x.csv' (delimiter 'ab')", "HW004", "(delimiter 'ab')"),
        ("COPY t FROM 'x.csv' (delimiter 5)", "HW004", "(delimiter 5)"),
        ("COPY t FROM 'x.parquet' (header)", "HW004", "(header)"),
    ],
)
def test_wrong_names_and_values(text: str, code: str, place: str):
    error = refusal(text)
    assert isinstance(error, UserError)
    assert error.code == code
    assert pointed(error) == place


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE", "HW260", "MERGE"),
        ("TRUNCATE TABLE t", "HW260", "TRUNCATE"),
        ("ALTER TABLE t ADD COLUMN a INT", "HW261", "TABLE"),
        ("ALTER VIEW v AS SELECT 1", "HW261", "AS"),
        ("ALTER WAREHOUSE RENAME TO w", "HW261", "RENAME"),
        ("ALTER WAREHOUSE SET PLACEMENT 'tasks'", "HW261", "SET"),
        ("CACHE TABLE t", "HW260", "CACHE"),
        ("UNCACHE TABLE t", "HW260", "UNCACHE"),
        ("SET a = b", "HW260", "SET"),
        ("RESET", "HW260", "RESET"),
        ("USE db", "HW260", "USE"),
        ("ANALYZE TABLE t COMPUTE STATISTICS", "HW260", "ANALYZE"),
        ("GRANT SELECT ON t TO u", "HW260", "GRANT"),
        ("LOAD DATA INPATH 'x' INTO TABLE t", "HW260", "LOAD"),
        ("ADD JAR x", "HW260", "ADD"),
        ("MSCK REPAIR TABLE t", "HW260", "MSCK"),
        ("CALL f()", "HW260", "CALL"),
        ("BEGIN", "HW260", "BEGIN"),
        ("COMMENT ON TABLE t IS 'x'", "HW260", "COMMENT"),
        ("DECLARE x INT", "HW260", "DECLARE"),
        ("TABLE t", "HW260", "TABLE"),
        ("FROM t SELECT a", "HW260", "FROM"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "HW261", "CREATE OR REPLACE"),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", "HW261", "CREATE TEMPORARY"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "HW261", "CREATE MATERIALIZED"),
        ("CREATE DATABASE d", "HW261", "CREATE DATABASE"),
        ("CREATE TABLE t (a INT) USING parquet", "HW261", "USING"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "HW261", "PARTITIONED BY"),
        ("CREATE TABLE t (a INT) AS SELECT 1", "HW261", "AS"),
        ("CREATE TABLE t AS SELECT 1", "HW261", "AS"),
        ("CREATE TABLE t LIKE u", "HW261", "LIKE"),
        ("CREATE TABLE t (a INT DEFAULT 5)", "HW261", "DEFAULT"),
        ("CREATE TABLE t (a INT COMMENT 'x')", "HW261", "COMMENT"),
        ("CREATE TABLE t (a INT, UNIQUE (a))", "HW261", "UNIQUE"),
        ("CREATE TABLE t (a INT, CONSTRAINT k PRIMARY KEY (a))", "HW261", "CONSTRAINT"),
        ("CREATE VIEW v COMMENT 'x' AS SELECT 1", "HW261", "COMMENT"),
        ("CREATE VIEW v (a COMMENT 'x') AS SELECT 1", "HW261", "COMMENT"),
        ("INSERT OVERWRITE t SELECT 1", "HW261", "OVERWRITE"),
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "HW261", "PARTITION"),
        ("INSERT INTO t BY NAME SELECT 1", "HW261", "BY NAME"),
        ("INSERT INTO t (a) TABLE u", "HW261", "TABLE"),
        ("INSERT INTO t VALUES (1) RETURNING a", "HW261", "RETURNING"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "HW261", "ON CONFLICT"),
        ("DELETE FROM t USING u WHERE t.a = u.a", "HW261", "USING"),
        ("DELETE FROM t WHERE a = 1 RETURNING a", "HW261", "RETURNING"),
        ("DELETE FROM t ORDER  BY a", "HW261", "ORDER  BY"),
        ("UPDATE t SET a = 1 FROM u", "HW261", "FROM"),
        ("UPDATE t SET a = DEFAULT", "HW261", "DEFAULT"),
        ("COPY t TO 'x'", "HW261", "TO"),
        ("DROP DATABASE d", "HW261", "DROP DATABASE"),
        ("DROP TABLE a, b", "HW261", ","),
        ("DROP TABLE a PURGE", "HW261", "PURGE"),
        ("SHOW DATABASES", "HW261", "DATABASES"),
        ("SHOW TABLES IN db", "HW261", "IN"),
        ("DESCRIBE FUNCTION f", "HW261", "FUNCTION"),
        ("DESCRIBE EXTENDED t", "HW261", "EXTENDED"),
        ("SELECT /*+ BROADCAST(t) */ id FROM t", "HW201", "/*+ BROADCAST(t) */"),
        ("SELECT /*+ */ 1", "HW201", "/*+ */"),
        ("DESCRIBE SELECT 1", "HW261", "SELECT"),
        ("EXPLAIN FORMATTED SELECT 1", "HW261", "FORMATTED"),
        ("EXPLAIN INSERT INTO t VALUES (1)", "HW261", "INSERT"),
        ("EXPLAIN CREATE TABLE t (a INT)", "HW261", "CREATE TABLE t (a INT)"),
        ("REFRESH TABLE t", "HW261", "TABLE"),
        ("SELECT 1 FROM t |> WHERE a", "HW261", "|>"),
        ("CREATE TABLE db.t (a INT)", "HW262", "db.t"),
        ("DROP VIEW a.b.`c d`", "HW262", "a.b.`c d`"),
        ("INSERT INTO db.t VALUES (1)", "HW262", "db.t"),
        ("UPDATE t SET u.a = 1", "HW262", "u.a"),
        ("CREATE TABLE t (a VARCHAR(10), b INT)", "HW263", "VARCHAR(10)"),
        ("CREATE TABLE t (a TIMESTAMP_NTZ)", "HW263", "TIMESTAMP_NTZ"),
    ],
)
def test_good_sql_that_is_not_supported(text: str, code: str, place: str):
    error = refusal(text)
    assert isinstance(error, NotSupported)
    assert error.code == code
    assert pointed(error) == place


def test_the_caret_in_a_text_of_several_statements():
    text = "CREATE TABLE t (a INT);\n\n-- the view\nCREATE VIEW v AS\n\tSELECT größe,, b FROM t;\nSELECT 1"
    with pytest.raises(UserError) as caught:
        parse(text, "shop.sql")
    assert str(caught.value) == textwrap.dedent(
        """\
        error[HW001]: expected an expression, found ','
         --> shop.sql:5:15
        5 | \tSELECT größe,, b FROM t;
          | \t             ^"""
    )


def test_the_caret_at_the_end_stands_behind_the_last_word_and_not_behind_the_comment():
    error = refusal("DELETE FROM t WHERE -- everything\n;")
    assert str(error) == textwrap.dedent(
        """\
        error[HW001]: expected a condition, but the statement ends here
         --> <sql>:1:20
        1 | DELETE FROM t WHERE -- everything
          |                    ^"""
    )


def test_the_caret_is_as_wide_as_what_is_wrong():
    error = refusal("CREATE TABLE t (\n  id INT,\n  name VARCHAR(20)\n)")
    assert str(error) == textwrap.dedent(
        """\
        error[HW263]: type VARCHAR(20) is not supported
         --> <sql>:3:8
        3 |   name VARCHAR(20)
          |        ^^^^^^^^^^^
        help: use STRING, which has no bound"""
    )
    assert error.to_dict()["line"] == 3
    assert error.to_dict()["column"] == 8


def test_a_close_word_is_suggested():
    assert refusal("INSRT INTO t VALUES (1)").hint == "did you mean INSERT?"


def test_no_control_codes_and_one_line_of_reason():
    for text, _, _ in SYNTAX:
        message = refusal(text).message
        assert "\x1b" not in message
        assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "("),
        ("SELECT 1 FROM " + "(SELECT 1 FROM " * 5000, "("),
        ("SELECT " + "f(" * 5000, "("),
        ("SELECT " + "CASE WHEN a THEN " * 5000, "CASE"),
        ("SELECT " + "NOT " * 5000 + "a", "SELECT"),
        ("SELECT " + "- " * 5000 + "1", "SELECT"),
        ("SELECT " + "a[" * 5000, "["),
        ("CREATE TABLE t (a " + "ARRAY<" * 5000 + "INT", "("),
    ],
    ids=lambda text: text[:30],
)
def test_too_deep(text: str, place: str):
    started = time.monotonic()
    error = refusal(text)
    assert isinstance(error, UserError)
    assert (error.code, pointed(error)) == ("HW002", place)
    assert time.monotonic() - started < 5
    assert len(str(error)) < 1000


def test_long_is_not_deep():
    (query,) = parse("SELECT a FROM t WHERE " + " OR ".join(f"a = {n}" for n in range(5000)))
    assert query.text.endswith("a = 4999")
    assert len(parse("SELECT 1;" * 2000)) == 2000


@pytest.mark.parametrize(
    "garbage", ["x " * 50_000, "'" * 99_999, "(" * 100_000, "\u00e9" * 100_000, "/*" * 50_000, "1" * 100_000]
)
def test_a_hundred_thousand_characters_of_garbage(garbage: str):
    error = refusal(garbage)
    assert error.code in ("HW001", "HW002")
    assert len(str(error)) < 1500


def test_a_defect_of_ours_is_told_apart(monkeypatch: pytest.MonkeyPatch):
    def broken(parser: object) -> object:
        raise KeyError("oops")

    monkeypatch.setitem(parse_module._STATEMENTS, "DROP", broken)
    error = refusal("SELECT 1; DROP VIEW v;")
    assert isinstance(error, InternalError)
    assert error.code == "HW901"
    assert pointed(error) == "DROP VIEW v"
    assert isinstance(error.__cause__, KeyError)
