import pytest

from headwater.cli.split import is_complete, split
from headwater.errors import Source, Span, UserError
from headwater.sql.reading import split_statements


def texts(text: str) -> list[str]:
    return [piece.text for piece in split(Source(text))]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1", ["SELECT 1"]),
        (" ;; \n;", []),
        ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ('SELECT ";", `;`; SELECT 2', ['SELECT ";", `;`', "SELECT 2"]),
        (r"SELECT 'it\'s;'; SELECT 2", [r"SELECT 'it\'s;'", "SELECT 2"]),
        ("SELECT 'it''s;'; SELECT 2", ["SELECT 'it''s;'", "SELECT 2"]),
        (r"SELECT 'a\\'; SELECT 2", [r"SELECT 'a\\'", "SELECT 2"]),
        (r"SELECT r'C:\'; SELECT 2", [r"SELECT r'C:\'", "SELECT 2"]),
        (r"SELECT `a\`; SELECT 2", [r"SELECT `a\`", "SELECT 2"]),
        ("-- first; comment\nSELECT 1 -- a; b\n; -- end;", ["SELECT 1"]),
        ("SELECT 1 /* ; /* ; */ ; */ + 1; SELECT 2", ["SELECT 1 /* ; /* ; */ ; */ + 1", "SELECT 2"]),
        ("SELECT 1; -- only a comment", ["SELECT 1"]),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("SELECT 1; /* never closed ; ", ["SELECT 1", "/* never closed ; "]),
    ],
)
def test_statements_end_at_semicolons_outside_quotes_and_comments(text, statements):
    assert texts(text) == statements


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; SELECT 2;",
        "SELECT ';' ; SELECT `a;b`, \"x;y\"",
        r"SELECT 'it\'s;', 'a\\'; SELECT 'it''s;'",
        r"SELECT r'C:\'; SELECT R'\;'",
        "/* a; /* b; */ c; */ SELECT 1 -- ;\n; -- ;\nSELECT /*+ hint; */ 2; /* end; */",
        "CREATE TABLE r (r INT); SELECT r FROM r WHERE r='x;'",
    ],
)
def test_the_parser_sees_the_same_statements(text):
    parsed = [(tokens[0].start, tokens[-1].end + 1) for tokens in split_statements(Source(text))]
    assert [(piece.span.start, piece.span.end) for piece in split(Source(text))] == parsed


@pytest.mark.parametrize("text", ["", "  \n", "SELECT 1;", "SELECT 1; -- done", "SELECT 1;\n/* done */", "-- only"])
def test_complete(text):
    assert is_complete(text)


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT 1; SELECT 2", "SELECT ';", "SELECT 1 -- ;", "SELECT 1 /* ;"])
def test_incomplete(text):
    assert not is_complete(text)


def test_an_error_is_placed_in_the_whole_text():
    source = Source("SELECT 1;\nSELECT nope FROM t;", "shop.sql")
    piece = split(source)[1]
    error = UserError("HW101", "no column nope", span=Span(7, 11), source=Source(piece.text, "shop.sql"))
    assert "shop.sql:2:8\n2 | SELECT nope FROM t;\n  |        ^^^^" in str(piece.place(error))


def test_an_error_about_another_text_stays_where_it_is():
    piece = split(Source("SELECT 1; SELECT 2"))[1]
    error = UserError("HW101", "a view is broken", span=Span(0, 4), source=Source("view's text", "view v"))
    assert piece.place(error).span == Span(0, 4)
    assert piece.place(error).source == Source("view's text", "view v")
