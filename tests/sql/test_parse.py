"""Each statement, as people write it, and what it becomes."""

from __future__ import annotations

import logging

import pytest
from sqlglot import exp

from headwater import types as t
from headwater.errors import HeadwaterError, Source
from headwater.sql import statements as st
from headwater.sql.dialect import Headwater, new_parser
from headwater.sql.parse import parse
from headwater.sql.reading import split_statements
from headwater.sql.strict import ReadError


def one(text: str) -> st.Statement:
    (statement,) = parse(text)
    return statement


def spelt(statement: st.Statement, name: st.Name) -> str:
    """The text a name's span covers."""
    return statement.source.text[name.span.start : name.span.end]


def test_create_table():
    table = one("CREATE TABLE station (id INT PRIMARY KEY, `Location` STRING NOT NULL, n DECIMAL(10,2))")
    assert isinstance(table, st.CreateTable)
    assert table.name.text == "station"
    assert table.columns == (
        t.Field("id", t.INT, nullable=False),
        t.Field("Location", t.STRING, nullable=False),
        t.Field("n", t.Decimal(10, 2)),
    )
    assert table.primary_key == ("id",)
    assert not table.static
    assert not table.if_not_exists


def test_create_static_table_with_a_key_of_two_columns_in_the_order_of_the_key():
    table = one("CREATE STATIC TABLE IF NOT EXISTS t (A INT, b INT, c INT, PRIMARY KEY (b, a))")
    assert isinstance(table, st.CreateTable)
    assert table.primary_key == ("b", "A")
    assert [f.nullable for f in table.columns] == [False, False, True]
    assert table.static
    assert table.if_not_exists


def test_create_table_without_a_key():
    table = one("create table t (primary int, key string, date date)")
    assert isinstance(table, st.CreateTable)
    assert [f.name for f in table.columns] == ["primary", "key", "date"]
    assert table.primary_key == ()


def test_create_stream():
    stream = one("CREATE STREAM IF NOT EXISTS m (ts TIMESTAMP, src STRING NOT NULL)")
    assert isinstance(stream, st.CreateStream)
    assert stream.columns == (t.Field("ts", t.TIMESTAMP), t.Field("src", t.STRING, nullable=False))
    assert stream.options == ()
    assert stream.if_not_exists


def test_create_view():
    text = "CREATE VIEW v (a, `b c`) AS\n  WITH x AS (SELECT 1) SELECT x.*, 2 FROM x  -- done\n;"
    view = one(text)
    assert isinstance(view, st.CreateView)
    assert [name.text for name in view.columns] == ["a", "b c"]
    assert [spelt(view, name) for name in view.columns] == ["a", "`b c`"]
    assert isinstance(view.query, exp.Select)
    assert text[view.query_span.start : view.query_span.end] == "WITH x AS (SELECT 1) SELECT x.*, 2 FROM x"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INSERT INTO t VALUES (1, 'a'), (2, NULL)", exp.Values),
        ("INSERT INTO TABLE t SELECT * FROM u", exp.Select),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", exp.Select),
        ("INSERT INTO t (SELECT 1 UNION ALL SELECT 2)", exp.Subquery),
        ("INSERT INTO t SELECT 1 UNION ALL SELECT 2", exp.Union),
    ],
)
def test_insert(text: str, kind: type[exp.Expression]):
    insert = one(text)
    assert isinstance(insert, st.Insert)
    assert insert.target.text == "t"
    assert insert.columns == ()
    assert isinstance(insert.query, kind)


def test_insert_with_columns():
    insert = one("INSERT INTO t (b, a) VALUES (1, 2)")
    assert isinstance(insert, st.Insert)
    assert [name.text for name in insert.columns] == ["b", "a"]


def test_delete():
    for text, alias in [("DELETE FROM t AS x WHERE x.a = 1", "x"), ("DELETE FROM t x WHERE x.a = 1", "x")]:
        delete = one(text)
        assert isinstance(delete, st.Delete)
        assert (delete.target.text, delete.alias) == ("t", alias)
        assert isinstance(delete.where, exp.EQ)
    everything = one("DELETE FROM t")
    assert isinstance(everything, st.Delete)
    assert (everything.alias, everything.where) == (None, None)


def test_update():
    update = one("UPDATE t AS x SET a = a + 1, X.`b c` = 'new' WHERE x.a > 5")
    assert isinstance(update, st.Update)
    assert (update.target.text, update.alias) == ("t", "x")
    assert [name.text for name, _ in update.assignments] == ["a", "b c"]
    assert isinstance(update.assignments[0][1], exp.Add)
    assert isinstance(update.where, exp.GT)
    assert isinstance(one("UPDATE t SET t.a = 1"), st.Update)


@pytest.mark.parametrize(
    ("text", "file_format", "options"),
    [
        ("COPY t FROM '/d/x.csv'", "csv", {}),
        ("COPY t FROM '/d/x.CSV.gz'", "csv", {}),
        ("COPY t FROM '/d/x.ndjson'", "json", {}),
        ("COPY INTO t FROM '/d/*.parquet'", "parquet", {}),
        ("COPY t FROM 'x' JSON", "json", {}),
        (
            "COPY t FROM 'x' CSV (header true, delimiter ';', null '')",
            "csv",
            {"header": True, "delimiter": ";", "null": ""},
        ),
        ("COPY t FROM 'x' WITH (FORMAT csv, HEADER, QUOTE = '|')", "csv", {"header": True, "quote": "|"}),
        ("COPY t FROM 'x.txt' (format 'CSV', header false)", "csv", {"header": False}),
    ],
)
def test_copy(text: str, file_format: str, options: dict[str, object]):
    copy = one(text)
    assert isinstance(copy, st.Copy)
    assert copy.target.text == "t"
    assert (copy.format, copy.options) == (file_format, options)
    assert text[copy.path_span.start : copy.path_span.end] == f"'{copy.path}'"


def test_copy_with_columns():
    copy = one("COPY t (b, a) FROM 'x.csv'")
    assert isinstance(copy, st.Copy)
    assert [name.text for name in copy.columns] == ["b", "a"]


def test_drop():
    drop = one("DROP VIEW IF EXISTS `my view` CASCADE")
    assert isinstance(drop, st.Drop)
    assert (drop.kind, drop.name.text, drop.if_exists, drop.cascade) == ("VIEW", "my view", True, True)
    drop = one("drop stream s")
    assert isinstance(drop, st.Drop)
    assert (drop.kind, drop.name.text, drop.if_exists, drop.cascade) == ("STREAM", "s", False, False)


@pytest.mark.parametrize("what", ["TABLES", "STREAMS", "VIEWS", "RELATIONS", "EPOCHS", "MAPS"])
def test_show(what: str):
    plain, like = parse(f"SHOW {what}; show {what.lower()} like 'x%'")
    assert isinstance(plain, st.Show)
    assert (plain.what, plain.pattern) == (what, None)
    assert isinstance(like, st.Show)
    assert (like.what, like.pattern) == (what, "x%")


def test_describe():
    described = [
        (s.name.text, s.kind)
        for s in parse("DESC v; DESCRIBE TABLE t; DESC VIEW v; DESCRIBE table")
        if isinstance(s, st.Describe)
    ]
    assert described == [("v", None), ("t", "TABLE"), ("v", "VIEW"), ("table", None)]


def test_explain():
    by_name, query, view = parse("EXPLAIN v; EXPLAIN SELECT 1; EXPLAIN CREATE VIEW v (a) STRICT AS SELECT 1")
    assert isinstance(by_name, st.Explain)
    assert isinstance(by_name.target, st.Name)
    assert isinstance(query, st.Explain)
    assert isinstance(query.target, exp.Select)
    assert isinstance(view, st.Explain)
    assert isinstance(view.target, exp.Select)
    assert view.name is not None
    assert view.name.text == "v"
    assert [name.text for name in view.columns] == ["a"]
    assert [option.name for option in view.options] == ["STRICT"]
    for explain in (query, view):
        assert explain.source.text[explain.query_span.start : explain.query_span.end] == "SELECT 1"


@pytest.mark.parametrize(
    "what",
    [
        "v",
        "`format`",
        "SELECT 1",
        "SELECT 'a' AS x",
        "SELECT a FROM t",
        "SELECT a FROM t x",
        "SELECT a FROM t AS `x`",
        "SELECT format FROM t WHERE format",
        "SELECT a FROM t ORDER BY a DESC NULLS LAST",
        "SELECT a FROM t GROUP BY a LIMIT 10",
        "SELECT a FROM t WHERE a IS NOT NULL",
        "SELECT count(*) FROM (SELECT 1)",
        "(SELECT a[1])",
        "VALUES (1)",
        "CREATE VIEW v STRICT AS SELECT CASE WHEN a THEN 1 END",
    ],
)
def test_explain_in_a_format(what: str):
    plain = one(f"EXPLAIN {what}")
    in_format = one(f"EXPLAIN {what} FORMAT Tree")
    assert isinstance(plain, st.Explain)
    assert isinstance(in_format, st.Explain)
    assert (plain.format, in_format.format) == ("text", "tree")
    assert in_format.query_span == plain.query_span
    assert in_format.text == f"EXPLAIN {what} FORMAT Tree"
    if isinstance(plain.target, exp.Expression):
        assert in_format.target == plain.target


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM format tree",
        "SELECT a FROM t JOIN format tree",
        "SELECT a FROM t, format tree",
        "SELECT a FROM t ORDER BY format DESC",
        "SELECT a FROM t ORDER BY a, format ASC",
        "SELECT format tree",
        "SELECT 1 AS format",
    ],
)
def test_format_as_a_name(query: str):
    explain = one(f"EXPLAIN {query}")
    assert isinstance(explain, st.Explain)
    assert explain.format == "text"
    (query_alone,) = parse(query)
    assert isinstance(query_alone, st.Query)
    assert explain.target == query_alone.query


def test_show_maps_of_a_view():
    show = one("SHOW MAPS OF `my view` LIKE '%2'")
    assert isinstance(show, st.Show)
    assert show.of is not None
    assert (show.what, show.of.text, show.pattern) == ("MAPS", "my view", "%2")


def test_refresh():
    assert [s.name.text for s in parse("REFRESH v; REFRESH VIEW v; REFRESH view") if isinstance(s, st.Refresh)] == [
        "v",
        "v",
        "view",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE b BETWEEN 1 AND 2 GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 5",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x JOIN y USING (a)",
        "VALUES (1, 2), (3, 4)",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "SELECT 1 FROM t, u, (VALUES (1)) AS v(a) CROSS JOIN w",
        "SELECT CAST(a AS DECIMAL(10,2)), a::INT, DATE '2020-01-01', INTERVAL 3 DAYS FROM t",
    ],
)
def test_query(text: str):
    query = one(text)
    assert isinstance(query, st.Query)
    assert query.text == text


def test_statements_are_split_at_semicolons_that_are_neither_in_strings_nor_in_comments():
    text = """
    -- first; a comment
    ;; SELECT ';' /* ; */ FROM t ;
    /* before /* nested; */ */ SELECT `a;b` FROM u -- after
    ;
    """
    statements = parse(text, "shop.sql")
    assert [s.text for s in statements] == ["SELECT ';' /* ; */ FROM t", "SELECT `a;b` FROM u"]
    assert {s.source.name for s in statements} == {"shop.sql"}


@pytest.mark.parametrize("text", ["", "  \n\t", ";;;", "-- nothing", "/* nothing */ ; -- more"])
def test_nothing_is_no_statement(text: str):
    assert parse(text) == []


def test_a_byte_order_mark_moves_no_offset():
    (statement,) = parse("\ufeffSELECT 1")
    assert statement.text == "SELECT 1"


def test_names_are_as_written_with_their_places():
    text = "DROP TABLE größe; DROP TABLE `a``b ☃`; DROP TABLE `select`; DROP TABLE Date; DROP TABLE 2nd"
    drops = [s for s in parse(text) if isinstance(s, st.Drop)]
    assert [s.name.text for s in drops] == ["größe", "a`b ☃", "select", "Date", "2nd"]
    assert [spelt(s, s.name) for s in drops] == ["größe", "`a``b ☃`", "`select`", "Date", "2nd"]


def test_identifiers_in_a_query_know_their_place_in_the_whole_text():
    text = "SELECT 1; SELECT x.Price FROM orders AS x"
    query = parse(text)[1]
    assert isinstance(query, st.Query)
    column = query.query.find(exp.Column)
    assert column is not None
    meta = column.this.meta
    assert text[meta["start"] : meta["end"] + 1] == "Price"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ('"say ""hi"" "', 'say "hi" '),
        ("""'x""y'""", 'x""y'),
        (r"'a\'b\n'", "a'b\n"),
        (r"r'a\n'", r"a\n"),
        ("''", ""),
    ],
)
def test_strings_as_spark_reads_them(text: str, value: str):
    query = one(f"SELECT {text}")
    assert isinstance(query, st.Query)
    assert query.query.expressions[0].name == value


def test_the_number_of_partitions():
    found = one("alter warehouse set partitions 8")
    assert isinstance(found, st.SetPartitions)
    assert (found.partitions, found.text[found.place.start : found.place.end]) == (8, "8")
    for wrong in ("2.5", "99999999999", "1e3"):
        with pytest.raises(HeadwaterError, match="HW004"):
            parse(f"ALTER WAREHOUSE SET PARTITIONS {wrong}")


def test_nothing_is_logged_and_nothing_becomes_a_command(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        for text in ["SHOW GRANTS", "CALL f()", "EXPLAIN EXTENDED x y", "SELECT get_json_object(a, '$..[') FROM t"]:
            try:
                parse(text)
            except HeadwaterError:
                continue
    assert caplog.records == []


def test_sqlglots_fallback_for_what_it_does_not_know_is_an_error():
    source = Source("SELECT 1")
    parser = new_parser()
    parser.begin(source, split_statements(source)[0])
    with pytest.raises(ReadError):
        parser._parse_command()


def test_the_dialect_is_not_needed_by_name():
    assert Headwater.Parser is Headwater.parser_class
    assert exp.maybe_parse("SELECT 1", dialect=Headwater).sql(Headwater) == "SELECT 1"
