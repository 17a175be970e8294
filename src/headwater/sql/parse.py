"""Text to statements.

`parse` is the one door: several statements separated by semicolons, with comments, each with its exact place. Whatever
the text, it raises nothing but a `HeadwaterError`. Queries and expressions come out as sqlglot trees whose identifiers
and literals carry their offsets in the whole text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from difflib import get_close_matches

from sqlglot import exp

from headwater.errors import NotSupported, Source, Span, UserError
from headwater.sql.create import read_create, read_register, refuse_repeated
from headwater.sql.dialect import Headwater, new_parser
from headwater.sql.indexes import read_drop_index
from headwater.sql.names import fold
from headwater.sql.options import EXPLAIN_FORMATS, no_format, read_settings, read_strategy
from headwater.sql.reading import guard, split_statements
from headwater.sql.statements import (
    AdvanceClock,
    AdvanceStream,
    Copy,
    CreatePartView,
    CreateView,
    Delete,
    Describe,
    Drop,
    DropIndex,
    Explain,
    Insert,
    Name,
    Query,
    Refresh,
    Replan,
    SetPartitions,
    Show,
    Statement,
    Subscribe,
    Update,
)

_SHOWN = ("TABLES", "STREAMS", "VIEWS", "RELATIONS", "EPOCHS", "MAPS", "PARTS", "LATE", "INDEXES")
_NOT_SHOWN = (
    "CATALOGS",
    "COLUMNS",
    "CREATE",
    "DATABASES",
    "FUNCTIONS",
    "PARTITIONS",
    "SCHEMAS",
    "TABLE",
    "TBLPROPERTIES",
)
_FORMATS = ("csv", "json", "parquet")
_ENDINGS = {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json", "parquet": "parquet"}
_CSV_OPTIONS = ("header", "delimiter", "quote", "escape", "null")

# Statements of Spark and of its neighbours, and what to do instead.
_OTHER_STATEMENTS: dict[str, str | None] = {
    "ADD": None,
    "ADVANCE": None,
    "ANALYZE": None,
    "BEGIN": "several changes are one epoch in Python: with db.epoch() as e: ...",
    "CACHE": "make it a view: views are kept",
    "CALL": None,
    "CLEAR": None,
    "COMMENT": None,
    "COMMIT": "several changes are one epoch in Python: with db.epoch() as e: ...",
    "DECLARE": None,
    "EXECUTE": None,
    "FROM": "write SELECT ... FROM ...",
    "GRANT": None,
    "LIST": None,
    "LOAD": "write COPY table FROM 'file' CSV",
    "MERGE": "write UPDATE, DELETE and INSERT",
    "MSCK": None,
    "OPTIMIZE": None,
    "PREPARE": None,
    "REPAIR": None,
    "REPLACE": "DROP it and CREATE it again",
    "RESET": None,
    "REVOKE": None,
    "ROLLBACK": None,
    "SET": "settings are in headwater.toml, or arguments of connect",
    "TABLE": "write SELECT * FROM ...",
    "TRUNCATE": "write DELETE FROM table",
    "UNCACHE": None,
    "UNLOCK": None,
    "USE": "a warehouse is a folder: open another one",
    "VACUUM": None,
}


def parse(text: str, name: str = "<sql>") -> list[Statement]:
    """The statements of a text, in order.

    Args:
        text: statements separated by semicolons; empty ones are skipped.
        name: what a person knows the text by, such as a file's name; for errors.

    Raises:
        HeadwaterError: and nothing else.
    """
    if not isinstance(text, str):
        raise UserError("HW001", f"SQL is a str, not {type(text).__name__}", hint="give the statement's text")
    source = Source(text, name)
    out: list[Statement] = []
    for tokens in split_statements(source):
        parser = new_parser()
        with guard(source, Span(tokens[0].start, tokens[-1].end + 1), tokens):
            parser.begin(source, tokens)
            out.append(_read_statement(parser))
            if parser.hinted is not None and not isinstance(out[-1], Query):
                raise NotSupported(
                    "HW201", "ENGINE is for queries that are answered once", span=parser.hinted, hint="leave it out"
                )
    return out


def _read_statement(parser: Headwater.Parser) -> Statement:
    if parser.next_is_query():
        return _read_query(parser)
    word = parser.word().split(" ")[0]
    if word in _STATEMENTS:
        return _STATEMENTS[word](parser)
    if word in _OTHER_STATEMENTS:
        hint = _OTHER_STATEMENTS[word]
        raise NotSupported("HW260", f"{word} is not supported", span=parser.here, hint=hint)
    known = [*_STATEMENTS, "SELECT", "WITH", "VALUES"]
    close = get_close_matches(word, known, 1)
    raise parser.expected(
        "a statement", f"did you mean {close[0]}?" if close else f"statements begin with {', '.join(known)}"
    )


def _read_query(parser: Headwater.Parser) -> Query:
    streamed = parser.skip_second("SELECT", "STREAMED")
    query = parser.query()
    as_of = parser.as_of()
    parser.end()
    return Query(parser.source, parser.span, query, streamed, as_of, parser.engine)


def _refuse(parser: Headwater.Parser, context: str, clauses: dict[str, str | None]) -> None:
    """Refuse clauses that other systems have at this place, by name."""
    for words, hint in clauses.items():
        if parser.at(words):
            start = parser.here
            parser.take(words)
            raise NotSupported("HW261", f"{context} {words} is not supported", span=parser.since(start), hint=hint)


def _read_insert(parser: Headwater.Parser) -> Insert:
    parser.expect("INSERT")
    _refuse(parser, "INSERT", {"OVERWRITE": "DELETE FROM the table first, then INSERT INTO it"})
    parser.expect("INTO")
    if parser.at("TABLE") and parser.next_is_name(ahead=1):
        parser.take("TABLE")
    target = parser.name("the name of a table or stream")
    _refuse(
        parser,
        "INSERT INTO ...",
        {
            "PARTITION": "leave it out: the value is an ordinary column",
            "REPLACE WHERE": "write DELETE, then INSERT",
            "REPLACE USING": "write DELETE, then INSERT",
            "REPLACE ON": "write DELETE, then INSERT",
            "IF NOT EXISTS": None,
        },
    )
    columns: tuple[Name, ...] = ()
    if parser.at("(") and parser.next_is_name(ahead=1):
        columns = parser.names("a column")
        refuse_repeated(columns)
    _refuse(
        parser,
        "INSERT INTO ...",
        {
            "BY NAME": "list the columns: INSERT INTO t (a, b) SELECT ...",
            "DEFAULT VALUES": "write the values",
            "TABLE": "write SELECT * FROM ...",
            "FROM": "write SELECT ... FROM ...",
        },
    )
    if not parser.next_is_query():
        raise parser.expected("VALUES, SELECT or WITH")
    query = parser.query()
    _refuse(
        parser, "INSERT ...", {"ON CONFLICT": "write UPDATE for the rows that exist", "RETURNING": "write a SELECT"}
    )
    parser.end()
    return Insert(parser.source, parser.span, target, columns, query)


def _read_delete(parser: Headwater.Parser) -> Delete:
    parser.expect("DELETE")
    parser.expect("FROM")
    target, alias = _read_target(parser)
    where = _read_where(parser, "DELETE ...")
    return Delete(parser.source, parser.span, target, alias, where)


def _read_update(parser: Headwater.Parser) -> Update:
    parser.expect("UPDATE")
    target, alias = _read_target(parser)
    parser.expect("SET")
    assignments = [_read_assignment(parser, target, alias)]
    while parser.take(","):
        assignments.append(_read_assignment(parser, target, alias))
    refuse_repeated(name for name, _ in assignments)
    where = _read_where(parser, "UPDATE ...")
    return Update(parser.source, parser.span, target, alias, tuple(assignments), where)


def _read_target(parser: Headwater.Parser) -> tuple[Name, str | None]:
    target = parser.name("the name of a table")
    if parser.take("AS"):
        return target, parser.name("an alias").text
    if parser.next_is_name() and parser.word() not in ("SET", "WHERE", "USING", "FROM", "LIMIT"):
        return target, parser.name("an alias").text
    return target, None


def _read_assignment(parser: Headwater.Parser, target: Name, alias: str | None) -> tuple[Name, exp.Expression]:
    # t.a = 1 is as good as a = 1, for the table's name or its alias if it has one
    parser.skip_qualifier(fold(alias or target.text))
    column = parser.name("a column")
    if not (parser.take("=") or parser.take("==")):
        raise parser.expected("'='")
    _refuse(parser, "SET ... =", {"DEFAULT": "write the value"})
    return column, parser.scalar("a value")


def _read_where(parser: Headwater.Parser, context: str) -> exp.Expression | None:
    elsewhere = "put the join into a view, query it, and give the rows or keys in Python"
    _refuse(parser, context, {"USING": elsewhere, "FROM": elsewhere, "RETURNING": "write a SELECT first"})
    where = parser.scalar("a condition") if parser.take("WHERE") else None
    _refuse(parser, context, {"RETURNING": "write a SELECT first", "ORDER BY": None, "LIMIT": None})
    parser.end()
    return where


def _read_copy(parser: Headwater.Parser) -> Copy:
    parser.expect("COPY")
    if parser.at("INTO") and parser.next_is_name(ahead=1):
        parser.take("INTO")
    target = parser.name("the name of a table or stream")
    columns: tuple[Name, ...] = ()
    if parser.at("("):
        columns = parser.names("a column")
        refuse_repeated(columns)
    _refuse(parser, "COPY ...", {"TO": "write a SELECT, and save its result"})
    parser.expect("FROM")
    path_span = parser.here
    path = parser.string("a path in quotes")
    file_format = parser.word().lower()
    given = parser.here
    if file_format in _FORMATS:
        parser.take(file_format.upper())
    else:
        file_format = ""
    settings: dict[str, object] = {}
    place = parser.here
    if parser.at("(") or parser.take("WITH"):
        place = parser.here
        settings = read_settings(parser)
        place = parser.since(place)
    if not parser.done:
        raise parser.expected("CSV, JSON, PARQUET or options in parentheses")
    if "format" in settings:
        if file_format:
            raise UserError("HW003", "the format is given twice", span=parser.since(given), hint="keep one of them")
        file_format = str(settings.pop("format")).lower()
        if file_format not in _FORMATS:
            known = ", ".join(_FORMATS)
            raise UserError("HW004", f"there is no format {file_format[:40]}", span=place, hint=f"formats are {known}")
    file_format = file_format or _guess_format(path, path_span)
    _check_copy_options(file_format, settings, place)
    return Copy(parser.source, parser.span, target, columns, path, path_span, file_format, settings)


def _guess_format(path: str, span: Span) -> str:
    parts = path.lower().split(".")
    if parts[-1] in ("gz", "zst"):
        parts.pop()
    if len(parts) < 2 or parts[-1] not in _ENDINGS:
        hint = "write CSV, JSON or PARQUET after the path"
        raise UserError("HW004", "the file's ending does not tell its format", span=span, hint=hint)
    return _ENDINGS[parts[-1]]


def _check_copy_options(file_format: str, settings: dict[str, object], span: Span) -> None:
    known = _CSV_OPTIONS if file_format == "csv" else ()
    for name, value in settings.items():
        if name not in known:
            hint = f"options are {', '.join(known)}" if known else f"{file_format.upper()} has no options"
            raise UserError("HW004", f"there is no option {name} for {file_format.upper()}", span=span, hint=hint)
        if name == "header":
            if not isinstance(value, bool):
                raise UserError("HW004", "header is TRUE or FALSE", span=span)
        elif not isinstance(value, str):
            raise UserError("HW004", f"{name} takes a string", span=span, hint=f"write {name} ';', say")
        elif name == "delimiter" and value != "\\t" and len(value) != 1:
            raise UserError("HW004", "delimiter is one character, or \\t", span=span, hint="write delimiter ';', say")
        elif name in ("quote", "escape") and len(value) > 1:
            raise UserError("HW004", f"{name} is one character, or empty for none", span=span)


def _read_drop(parser: Headwater.Parser) -> Drop | DropIndex:
    start = parser.here
    parser.expect("DROP")
    kind = parser.word()
    if kind == "INDEX":
        return read_drop_index(parser)
    if kind not in ("STREAM", "TABLE", "VIEW"):
        if kind in ("DATABASE", "SCHEMA", "FUNCTION", "MATERIALIZED", "TEMPORARY", "NAMESPACE", "VARIABLE"):
            parser.take(kind)
            hint = "write DROP VIEW" if kind in ("MATERIALIZED", "TEMPORARY") else None
            raise NotSupported("HW261", f"DROP {kind} is not supported", span=parser.since(start), hint=hint)
        raise parser.expected("STREAM, TABLE, VIEW or INDEX")
    parser.take(kind)
    if_exists = parser.take("IF EXISTS")
    name = parser.name(f"the name of a {kind.lower()}")
    cascade = parser.take("CASCADE")
    _refuse(parser, "DROP ...", {"PURGE": "leave it out", "RESTRICT": "leave it out: it is the rule"})
    if parser.at(","):
        hint = "write one DROP for each"
        raise NotSupported("HW261", "DROP of several relations is not supported", span=parser.here, hint=hint)
    parser.end()
    return Drop(parser.source, parser.span, kind, name, if_exists, cascade)


def _read_show(parser: Headwater.Parser) -> Show:
    parser.expect("SHOW")
    what = parser.word()
    if what in _NOT_SHOWN:
        raise NotSupported(
            "HW261", f"SHOW {what} is not supported", span=parser.here, hint=f"SHOW has {', '.join(_SHOWN)}"
        )
    if what not in _SHOWN:
        raise parser.expected(f"one of {', '.join(_SHOWN)}")
    parser.take(what)
    _refuse(parser, f"SHOW {what}", {"FROM": "a warehouse has one name space", "IN": "a warehouse has one name space"})
    of = parser.name("a view's name") if what == "MAPS" and parser.take("OF") else None
    if what in ("PARTS", "LATE"):
        parser.take("OF")
        of = parser.name("the name of a stream" if what == "LATE" else "the name of a stream or a view")
    pattern = parser.string("a pattern in quotes") if parser.take("LIKE") else None
    parser.end()
    return Show(parser.source, parser.span, what, pattern, of)


def _read_describe(parser: Headwater.Parser) -> Describe:
    if not parser.take("DESC"):
        parser.expect("DESCRIBE")
    kind = None
    for word in ("TABLE", "VIEW", "STREAM"):
        if kind is None and parser.at(word) and parser.next_is_name(ahead=1):
            parser.take(word)
            kind = word
    for word in ("EXTENDED", "DATABASE", "SCHEMA", "FUNCTION", "QUERY", "CATALOG", "HISTORY", "DETAIL", "FORMATTED"):
        if parser.at(word) and parser.followed:
            raise NotSupported("HW261", f"DESCRIBE {word} is not supported", span=parser.here)
    if parser.next_is_query():
        hint = "EXPLAIN shows how a query is maintained"
        raise NotSupported("HW261", "DESCRIBE of a query is not supported", span=parser.here, hint=hint)
    name = parser.name("the name of a relation")
    parser.end()
    return Describe(parser.source, parser.span, name, kind)


def _read_explain(parser: Headwater.Parser) -> Explain:
    asked = parser.take_last("FORMAT")
    all_strategies = parser.take_last("ALL") is not None
    explain = replace(_read_explained(parser), all_strategies=all_strategies)
    if asked is None:
        return explain
    name, span = asked
    if name.lower() not in EXPLAIN_FORMATS:
        raise no_format(name, span)
    return replace(explain, format=name.lower())


def _read_explained(parser: Headwater.Parser) -> Explain:
    parser.expect("EXPLAIN")
    start = parser.here
    for word in ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL", "ANALYZE", "VERBOSE"):
        if parser.at(word) and parser.followed:
            raise NotSupported("HW261", f"EXPLAIN {word} is not supported", span=start, hint="write EXPLAIN alone")
    if parser.next_is_query():
        query = parser.query()
        parser.end()
        return Explain(parser.source, parser.span, query, parser.since(start))
    if parser.at("CREATE"):
        view = read_create(parser)
        if isinstance(view, CreatePartView):
            span = parser.since(start)
            return Explain(parser.source, parser.span, view, span, view.options, view.name, view.columns)
        if not isinstance(view, CreateView):
            raise NotSupported("HW261", "EXPLAIN CREATE explains views only", span=parser.since(start))
        return Explain(parser.source, parser.span, view.query, view.query_span, view.options, view.name, view.columns)
    word = parser.word()
    if word in _STATEMENTS and parser.followed:
        raise NotSupported(
            "HW261", f"EXPLAIN {word} is not supported", span=start, hint="queries and views are explained"
        )
    name = parser.name("a view's name, or a query")
    if parser.take("FORMAT"):
        raise parser.expected(f"one of {', '.join(EXPLAIN_FORMATS)}, once, at the end")
    parser.end()
    return Explain(parser.source, parser.span, name, name.span)


def _read_refresh(parser: Headwater.Parser) -> Refresh:
    parser.expect("REFRESH")
    for word in ("TABLE", "FUNCTION"):
        if parser.at(word) and parser.next_is_name(ahead=1):
            hint = "views are refreshed: REFRESH VIEW name"
            raise NotSupported("HW261", f"REFRESH {word} is not supported", span=parser.here, hint=hint)
    if parser.at("VIEW") and parser.next_is_name(ahead=1):
        parser.take("VIEW")
    name = parser.name("a view's name")
    parser.end()
    return Refresh(parser.source, parser.span, name)


def _read_alter(parser: Headwater.Parser) -> Replan | SetPartitions:
    parser.expect("ALTER")
    if parser.take("WAREHOUSE"):
        return _read_partitions(parser)
    if not parser.take("VIEW"):
        raise NotSupported(
            "HW261",
            "only views and the warehouse can be altered",
            span=parser.here,
            hint="ALTER VIEW name REPLAN, ALTER WAREHOUSE SET PARTITIONS n; anything else is dropped and created again",
        )
    name = parser.name("a view's name")
    if not parser.take("REPLAN"):
        raise NotSupported(
            "HW261",
            "of a view only the plan can be altered",
            span=parser.here,
            hint="ALTER VIEW name REPLAN; for another query, DROP it and CREATE it again",
        )
    strategy = read_strategy(parser) if parser.take("STRATEGY") else None
    parser.end()
    return Replan(parser.source, parser.span, name, strategy)


def _read_partitions(parser: Headwater.Parser) -> SetPartitions:
    if not parser.take("SET PARTITIONS"):
        raise NotSupported(
            "HW261",
            "of a warehouse only the number of partitions can be altered",
            span=parser.here,
            hint="ALTER WAREHOUSE SET PARTITIONS n",
        )
    place = parser.here
    digits = parser.number("the number of partitions")
    if not re.fullmatch(r"\d{1,9}", digits, re.ASCII):
        raise UserError("HW004", f"{digits[:40]} is not a number of partitions", span=place, hint="write 8, say")
    parser.end()
    return SetPartitions(parser.source, parser.span, int(digits), place)


def _read_advance(parser: Headwater.Parser) -> AdvanceClock | AdvanceStream:
    """`ADVANCE CLOCK` or `ADVANCE STREAM s`, `TO TIMESTAMP '2020-01-01 00:00:00'`, seconds since 1970, or NOW."""
    parser.expect("ADVANCE")
    stream = parser.name("the name of a stream") if parser.take("STREAM") else None
    if stream is None and not parser.take("CLOCK"):
        raise parser.expected("CLOCK or STREAM")
    parser.expect("TO")
    if stream is None and parser.take("NOW"):
        parser.end()
        return AdvanceClock(parser.source, parser.span, None)
    place = parser.here
    moment = _read_moment(parser)
    parser.end()
    if moment is None:
        hint = "write TIMESTAMP '2020-01-01 00:00:00' or a number of seconds since 1970" + (", or NOW" * (not stream))
        raise UserError("HW004", "this is not a moment", span=parser.since(place), hint=hint)
    if stream is not None:
        return AdvanceStream(parser.source, parser.span, stream, moment)
    return AdvanceClock(parser.source, parser.span, moment)


def _read_moment(parser: Headwater.Parser) -> dt.datetime | None:
    try:
        if parser.next_is_number():
            return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(Decimal(parser.number("")) * 1_000_000))
        parser.take("TIMESTAMP")
        found = dt.datetime.fromisoformat(parser.string("a moment in quotes, a number of seconds, or NOW").strip())
    except (ValueError, ArithmeticError):
        return None
    return found.astimezone(dt.UTC).replace(tzinfo=None) if found.tzinfo else found


def _read_subscribe(parser: Headwater.Parser) -> Subscribe:
    parser.expect("SUBSCRIBE")
    if parser.at("TO") and parser.next_is_name(ahead=1):
        parser.take("TO")
    name = parser.name("a view's name")
    epoch = None
    if parser.take("FROM"):
        parser.expect("EPOCH")
        place = parser.here
        digits = parser.number("the number of an epoch")
        if not re.fullmatch(r"\d{1,18}", digits, re.ASCII):
            raise UserError("HW004", f"{digits[:40]} is not the number of an epoch", span=place)
        epoch = int(digits)
    parser.end()
    return Subscribe(parser.source, parser.span, name, epoch)


_STATEMENTS: dict[str, Callable[[Headwater.Parser], Statement]] = {
    "CREATE": read_create,
    "REGISTER": read_register,
    "INSERT": _read_insert,
    "DELETE": _read_delete,
    "UPDATE": _read_update,
    "COPY": _read_copy,
    "DROP": _read_drop,
    "SHOW": _read_show,
    "DESCRIBE": _read_describe,
    "DESC": _read_describe,
    "EXPLAIN": _read_explain,
    "REFRESH": _read_refresh,
    "ALTER": _read_alter,
    "ADVANCE": _read_advance,
    "SUBSCRIBE": _read_subscribe,
}
