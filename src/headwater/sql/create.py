"""CREATE TABLE, CREATE STREAM and CREATE VIEW; REGISTER SOURCE and CREATE TAGGED STREAM, which are SyncSQL's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headwater import types as t
from headwater.errors import NotSupported, Span, UserError
from headwater.sql.create_parts import read_part_queries
from headwater.sql.dialect import Headwater
from headwater.sql.indexes import read_create_index
from headwater.sql.names import fold
from headwater.sql.options import (
    TAGGED_CLAUSES,
    read_port,
    read_stream_options,
    read_table_options,
    read_tagged_options,
    read_view_options,
    refuse_again,
)
from headwater.sql.statements import (
    CreatePartView,
    CreateStream,
    CreateTable,
    CreateTagged,
    CreateView,
    Name,
    OpBy,
    Option,
    Statement,
)
from headwater.sql.types import is_type, read_type

# What may follow CREATE elsewhere, and what to do here.
_OTHER_CREATES = {
    "OR": "DROP it first, then CREATE it again",
    "TEMPORARY": "write CREATE VIEW, and DROP VIEW when done",
    "TEMP": "write CREATE VIEW, and DROP VIEW when done",
    "GLOBAL": "write CREATE VIEW: every view is seen by all",
    "MATERIALIZED": "write CREATE VIEW: every view is kept, and kept fresh",
    "STREAMING": "write CREATE STREAM",
    "EXTERNAL": "write CREATE TABLE, and fill it with COPY",
    "DATABASE": "a warehouse is a folder: open another one",
    "SCHEMA": "a warehouse is a folder: open another one",
    "NAMESPACE": "a warehouse is a folder: open another one",
    "FUNCTION": None,
    "VARIABLE": None,
}
_COLUMN_CLAUSES = "DEFAULT GENERATED COMMENT COLLATE CHECK UNIQUE REFERENCES CONSTRAINT MASK"
_TABLE_CLAUSES = (
    "AS SELECT LIKE USING OPTIONS PARTITIONED CLUSTERED SORTED ROW STORED LOCATION COMMENT TBLPROPERTIES CLUSTER"
    " DEFAULT COLLATE WITH"
)


def read_create(parser: Headwater.Parser) -> Statement:
    """Read a statement that begins with CREATE."""
    start = parser.here
    parser.expect("CREATE")
    word = parser.word()
    if word in _OTHER_CREATES:
        parser.take(word)
        what = f"CREATE {word}" + (" REPLACE" if word == "OR" and parser.take("REPLACE") else "")
        hint = _OTHER_CREATES[word]
        raise NotSupported("HW261", f"{what} is not supported", span=parser.since(start), hint=hint)
    if parser.take("TABLE"):
        return _read_table(parser, static=False)
    if parser.take("STATIC TABLE"):
        return _read_table(parser, static=True)
    if parser.take("STREAM"):
        return _read_stream(parser)
    if parser.take("FOREIGN TABLE"):
        return _read_stream(parser, foreign=True)
    if parser.take("TAGGED STREAM"):
        return _read_tagged(parser)
    if parser.take("INDEX"):
        return read_create_index(parser)
    mode = parser.here
    options: tuple[Option, ...] = ()
    for kind in ("STREAMED", "COMPLETE"):
        if parser.at(f"{kind} VIEW"):
            parser.take(kind)
            options = (Option(kind, True, mode),)
    if parser.take("VIEW"):
        return _read_view(parser, options)
    raise parser.expected("TABLE, STREAM, VIEW or INDEX")


@dataclass
class _Columns:
    """Columns as they are read: their fields, and the primary key if one was declared."""

    names: list[Name] = field(default_factory=list)
    fields: list[t.Field] = field(default_factory=list)
    key: tuple[Name, ...] = ()
    key_span: Span | None = None

    def set_key(self, key: tuple[Name, ...], span: Span) -> None:
        if self.key_span:
            hint = "a key of several columns is written PRIMARY KEY (a, b) after the columns"
            raise UserError("HW003", "PRIMARY KEY is given twice", span=span, hint=hint)
        self.key, self.key_span = key, span


def _read_table(parser: Headwater.Parser, static: bool) -> CreateTable:
    if_not_exists = _read_if_not_exists(parser)
    name = fresh(parser.name("the table's name"))
    _refuse(parser, "CREATE TABLE", _TABLE_CLAUSES)
    columns = _read_columns(parser)
    key = resolve(columns.key, columns.fields, "PRIMARY KEY")
    fields = tuple(t.Field(f.name, f.type, f.nullable and f.name not in key) for f in columns.fields)
    _refuse(parser, "CREATE TABLE", _TABLE_CLAUSES)
    options = read_table_options(parser)
    _refuse(parser, "CREATE TABLE", _TABLE_CLAUSES)
    parser.end()
    return CreateTable(parser.source, parser.span, name, fields, key, static, if_not_exists, options)


def _read_stream(parser: Headwater.Parser, foreign: bool = False) -> CreateStream:
    """Read a stream; as a foreign table it stands on the server `stream`.

    (Winter et al., "Meet Me Halfway: Split Maintenance of Continuous Views", section 3.6.)
    """
    if_not_exists = _read_if_not_exists(parser)
    name = fresh(parser.name("the stream's name"))
    columns = _read_columns(parser)
    if columns.key_span:
        hint = "write KEY (a, b) after the columns, if a row replaces the last one of its key"
        raise UserError("HW001", "a stream has no PRIMARY KEY", span=columns.key_span, hint=hint)
    if foreign:
        parser.expect("SERVER")
        if not parser.take("STREAM"):
            server = parser.name("the server: stream")
            raise NotSupported(
                "HW261",
                f"there is no server {server.text}",
                span=server.span,
                hint="SERVER stream makes a stream; other rows come by INSERT, COPY or FROM",
            )
    options = read_stream_options(parser)
    if not parser.done:
        raise parser.expected(
            "KEY, SEQUENCE BY, OP BY, STRICT, TIMESTAMP BY, PARTITION LENGTH, LATENESS, RETAIN, RETAIN CHANGES,"
            " ROLL UP, FROM or the end"
        )
    for option in options:
        if option.name in ("KEY", "SEQUENCE BY", "TIMESTAMP BY"):
            named = (option.value,) if isinstance(option.value, Name) else option.value
            assert isinstance(named, tuple)
            resolve(named, columns.fields, option.name)
        elif isinstance(option.value, OpBy):
            resolve((option.value.column,), columns.fields, option.name)
    return CreateStream(parser.source, parser.span, name, tuple(columns.fields), options, if_not_exists)


def read_register(parser: Headwater.Parser) -> CreateStream:
    """Read REGISTER SOURCE name (type column, ...) [FROM port5501].

    (Ghanem et al., "Supporting Views in Data Stream Management Systems", section 4.1, where types stand before names.)
    """
    parser.expect("REGISTER")
    parser.expect("SOURCE")
    if_not_exists = _read_if_not_exists(parser)
    name = fresh(parser.name("the stream's name"))
    columns = _Columns()
    parser.listed(lambda: _read_source_column(parser, columns))
    refuse_repeated(columns.names)
    place = parser.here
    options = (Option("FROM", read_port(parser), parser.since(place)),) if parser.take("FROM") else ()
    parser.end()
    return CreateStream(parser.source, parser.span, name, tuple(columns.fields), options, if_not_exists)


def _read_source_column(parser: Headwater.Parser, columns: _Columns) -> None:
    """`int RoomID`, or `RoomID INT`, as everywhere else."""
    if not is_type(parser.word()):
        _read_column_or_key(parser, columns)
        if columns.key_span:
            raise UserError(
                "HW001",
                "a raw stream has no PRIMARY KEY",
                span=columns.key_span,
                hint="CREATE TAGGED STREAM ... OVER ... KEY column",
            )
        return
    kind = read_type(parser)
    name = fresh(parser.name("a column's name"))
    columns.names.append(name)
    columns.fields.append(t.Field(name.text, kind, not parser.take("NOT NULL")))


def _read_tagged(parser: Headwater.Parser) -> CreateTagged:
    if_not_exists = _read_if_not_exists(parser)
    name = fresh(parser.name("the stream's name"))
    parser.expect("OVER")
    over = parser.name("the name of a raw stream")
    options = read_tagged_options(parser)
    if not parser.done:
        raise parser.expected(f"{', '.join(TAGGED_CLAUSES)} or the end")
    return CreateTagged(parser.source, parser.span, name, over, options, if_not_exists)


def _read_view(parser: Headwater.Parser, mode: tuple[Option, ...]) -> CreateView | CreatePartView:
    if_not_exists = _read_if_not_exists(parser)
    name = fresh(parser.name("the view's name"))
    columns: tuple[Name, ...] = ()
    if parser.at("("):
        columns = parser.listed(lambda: _read_view_column(parser))
        refuse_repeated(columns)
    options = mode + read_view_options(parser)
    _refuse(parser, "CREATE VIEW", "COMMENT TBLPROPERTIES SCHEMA DEFAULT WITH PARTITIONED")
    if not parser.take("AS") and not parser.at("INITIALIZE"):
        raise parser.expected("RETAIN CHANGES, REFRESH, STRICT, STRATEGY, RETAIN, ROLL UP or AS")
    start = parser.here
    if parser.at("INITIALIZE"):
        first, update, more = read_part_queries(parser, name)
        refuse_again(options, more)
        options += more
        return CreatePartView(parser.source, parser.span, name, columns, first, update, options, if_not_exists)
    query = parser.query()
    parser.end()
    span = parser.since(start)
    return CreateView(parser.source, parser.span, name, columns, query, span, options, if_not_exists)


def _read_view_column(parser: Headwater.Parser) -> Name:
    name = fresh(parser.name("a column's name"))
    _refuse(parser, "a view's column with", "COMMENT")
    return name


def _read_if_not_exists(parser: Headwater.Parser) -> bool:
    return parser.take("IF NOT EXISTS")


def _read_columns(parser: Headwater.Parser) -> _Columns:
    columns = _Columns()
    parser.listed(lambda: _read_column_or_key(parser, columns))
    if not columns.fields:
        raise UserError("HW001", "there are no columns", span=columns.key_span)
    refuse_repeated(columns.names)
    return columns


def _read_column_or_key(parser: Headwater.Parser, columns: _Columns) -> None:
    start = parser.here
    if parser.at("PRIMARY KEY ("):
        parser.take("PRIMARY KEY")
        columns.set_key(parser.names("a column"), parser.since(start))
        return
    for words in ("UNIQUE (", "CHECK (", "FOREIGN KEY", "CONSTRAINT"):
        if parser.at(words):
            what = words.removesuffix(" (")
            hint = "PRIMARY KEY and NOT NULL are; as a column's name it is written in backticks"
            raise NotSupported("HW261", f"{what} is not supported in CREATE TABLE", span=start, hint=hint)
    name = fresh(parser.name("a column's name"))
    place = parser.here
    kind = read_type(parser)
    if has_void(kind):
        hint = "give the column the type its values will have"
        raise NotSupported("HW263", "type VOID is not supported for a column", span=parser.since(place), hint=hint)
    not_null = False
    while not (parser.at(",") or parser.at(")")):
        clause = parser.here
        if parser.take("NOT NULL"):
            if not_null:
                raise UserError("HW003", "NOT NULL is given twice", span=parser.since(clause), hint="keep one of them")
            not_null = True
        elif parser.take("PRIMARY KEY"):
            columns.set_key((name,), parser.since(clause))
        else:
            _refuse(parser, "a column with", _COLUMN_CLAUSES)
            nullable = parser.word() in ("NULL", "NULLABLE")
            raise parser.expected(
                "NOT NULL, PRIMARY KEY, ',' or ')'", "columns may be NULL unless declared" if nullable else None
            )
    columns.names.append(name)
    columns.fields.append(t.Field(name.text, kind, not not_null))


def _refuse(parser: Headwater.Parser, context: str, words: str) -> None:
    """Refuse a clause that Spark has here."""
    word = parser.word()
    first = word.split()[0] if word else ""
    if first in words.split():
        raise NotSupported(
            "HW261", f"{context} {word} is not supported", span=parser.here, hint=_CLAUSE_HINTS.get(first)
        )


_CLAUSE_HINTS = {
    "AS": "create the table with its columns, then INSERT INTO it; or CREATE VIEW",
    "SELECT": "create the table with its columns, then INSERT INTO it; or CREATE VIEW",
    "LIKE": "write out the columns",
    "USING": "leave it out: Headwater stores its tables itself",
    "LOCATION": "leave it out, and fill the table with COPY",
    "COMMENT": "write it as an SQL comment: -- ...",
    "DEFAULT": "give the value in the INSERT",
    "GENERATED": "compute it in a view",
    "CHECK": "PRIMARY KEY and NOT NULL are checked",
    "UNIQUE": "PRIMARY KEY and NOT NULL are checked",
}


def fresh(name: Name) -> Name:
    """A name that is being declared; names with # in front are Headwater's own."""
    if name.text.startswith("#"):
        hint = "choose another first character; # marks columns that Headwater adds"
        raise UserError("HW161", f"the name {name.text} is reserved", span=name.span, hint=hint)
    return name


def refuse_repeated(names: Iterable[Name]) -> None:
    """Refuse a list of columns with two that differ in case at most."""
    seen: dict[str, Name] = {}
    for name in names:
        first = seen.setdefault(fold(name.text), name)
        if first is not name:
            as_is = "" if first.text == name.text else f" (as {first.text}; case makes no difference)"
            hint = "each column has one name"
            raise UserError("HW160", f"column {name.text} is given twice{as_is}", span=name.span, hint=hint)


def resolve(names: tuple[Name, ...], fields: list[t.Field], clause: str) -> tuple[str, ...]:
    """The columns a clause names, as they were declared."""
    refuse_repeated(names)
    declared = {fold(f.name): f for f in fields}
    for name in names:
        found = declared.get(fold(name.text))
        if found is None:
            raise UserError(
                "HW162",
                f"{clause} names a column {name.text} that is not declared",
                span=name.span,
                hint=f"columns are {', '.join(f.name for f in fields)[:200]}",
            )
        if "KEY" in clause and not t.is_groupable(found.type):
            hint = "a key needs columns that can be compared for equality"
            raise UserError("HW164", f"{found.type} cannot be part of a key", span=name.span, hint=hint)
    return tuple(declared[fold(name.text)].name for name in names)


def has_void(kind: t.Type) -> bool:
    """Whether VOID occurs in a type."""
    match kind:
        case t.Null():
            return True
        case t.Array(element):
            return has_void(element)
        case t.Map(key, value):
            return has_void(key) or has_void(value)
        case t.Struct(fields):
            return any(has_void(inner) for _, inner in fields)
    return False
