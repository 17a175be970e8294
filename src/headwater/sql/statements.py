"""Statements as data: what `parse` makes of text and the engine carries out.

Queries and conditions inside a statement stay sqlglot trees here; binding them needs the catalogue and comes later.
Names are as written; `headwater.sql.names.fold` gives the form under which they are looked up.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.errors import Source, Span


@dataclass(frozen=True)
class Statement:
    """Base of all statements.

    Attributes:
        source: the whole text it was parsed from.
        span: its own part of that text.
    """

    source: Source
    span: Span

    @property
    def text(self) -> str:
        return self.source.text[self.span.start : self.span.end]


@dataclass(frozen=True)
class Name:
    """An identifier as written, and where."""

    text: str
    span: Span


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE [STATIC] TABLE. Without a primary key it is a bag of rows."""

    name: Name
    columns: t.Schema
    primary_key: tuple[str, ...]
    static: bool = False
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Option:
    """A clause of CREATE STREAM or CREATE VIEW, by its keyword, with its value and place.

    `name` is the keyword in capitals ("KEY", "OP BY", "PARTITION LENGTH", ...). `value` is the parsed value;
    `headwater.sql.options` lists the form it has for each clause.
    """

    name: str
    value: object
    span: Span


@dataclass(frozen=True)
class Feed:
    """Where a stream's rows come from: FROM format location (options).

    `location` is a path for json, csv and parquet, host:port for socket, the topic for kafka, rows a second for rate.
    """

    format: str
    location: str
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class OpBy:
    """OP BY: the column that says what an arriving row does, and the values that mean UPSERT, DELETE and IGNORE."""

    column: Name
    values: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class CreateStream(Statement):
    """CREATE STREAM with its clauses, or REGISTER SOURCE, which has none but FROM."""

    name: Name
    columns: t.Schema
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateTagged(Statement):
    """CREATE TAGGED STREAM name OVER raw stream, with the clauses that a stream may have besides FROM and OP BY."""

    name: Name
    over: Name
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW name [(columns)] [options] AS query."""

    name: Name
    columns: tuple[Name, ...]
    query: exp.Expression
    query_span: Span
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class PartQuery:
    """`name[variable] AS query`: what a part of a view holds, in terms of its subscript.

    Attributes:
        variable: the name of the subscript.
        query: as parsed; part references are in it as `headwater.sql.parts_parser` says.
        span: where it stands.
    """

    variable: str
    query: exp.Expression
    span: Span


@dataclass(frozen=True)
class CreatePartView(Statement):
    """CREATE VIEW name [(columns)] [options] AS INITIALIZE name[i] AS query UPDATE name[j] AS query PARTITION LENGTH n.

    `options` are those before AS and, from PARTITION LENGTH on, those at the end: see `headwater.sql.options`.
    """

    name: Name
    columns: tuple[Name, ...]
    initialize: PartQuery
    update: PartQuery
    options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO target [(columns)] VALUES ... | SELECT ...; `query` is either."""

    target: Name
    columns: tuple[Name, ...]
    query: exp.Expression


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM target [WHERE condition]."""

    target: Name
    alias: str | None
    where: exp.Expression | None


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE target SET column = expression, ... [WHERE condition]."""

    target: Name
    alias: str | None
    assignments: tuple[tuple[Name, exp.Expression], ...]
    where: exp.Expression | None


@dataclass(frozen=True)
class Copy(Statement):
    """COPY [INTO] target [(columns)] FROM 'path' CSV | JSON | PARQUET [(option = value, ...)].

    Options: for CSV `header` (bool), `delimiter`, `quote`, `escape`, `null`; none for the others.
    """

    target: Name
    columns: tuple[Name, ...]
    path: str
    path_span: Span
    format: str  # "csv", "json" or "parquet"
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop(Statement):
    """DROP STREAM | TABLE | VIEW [IF EXISTS] name [CASCADE]."""

    kind: str  # "STREAM", "TABLE" or "VIEW"
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES | STREAMS | VIEWS | RELATIONS | EPOCHS | MAPS [OF view] | PARTS name | LATE name [LIKE pattern]."""

    what: str
    pattern: str | None = None
    of: Name | None = None


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE [TABLE | VIEW | STREAM] name."""

    name: Name
    kind: str | None = None  # "TABLE", "VIEW" or "STREAM" where it was written


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN view, or EXPLAIN [CREATE VIEW v AS] query: the program a query would get.

    `target` is a relation's name, a query tree, or the statement that makes a view of parts; `options`, `name` and
    `columns` as for CREATE VIEW. At the end there may be ALL STRATEGIES and FORMAT f.
    """

    target: Name | exp.Expression | CreatePartView
    query_span: Span
    options: tuple[Option, ...] = ()
    name: Name | None = None
    columns: tuple[Name, ...] = ()
    format: str = "text"
    all_strategies: bool = False


@dataclass(frozen=True)
class Refresh(Statement):
    """REFRESH [VIEW] name: rebuild a suspended view from its inputs."""

    name: Name


@dataclass(frozen=True)
class AdvanceClock(Statement):
    """ADVANCE CLOCK TO moment: the clock stands there from now on; without a moment (TO NOW) it goes again."""

    moment: dt.datetime | None


@dataclass(frozen=True)
class AdvanceStream(Statement):
    """ADVANCE STREAM name TO moment: whatever happened before that moment has come."""

    name: Name
    moment: dt.datetime


@dataclass(frozen=True)
class Subscribe(Statement):
    """SUBSCRIBE [TO] name [FROM EPOCH n]: the changes of a view up to now."""

    name: Name
    from_epoch: int | None = None


@dataclass(frozen=True)
class Replan(Statement):
    """ALTER VIEW name REPLAN [STRATEGY 's']: maintain a view by another program from now on."""

    name: Name
    strategy: str | None = None


@dataclass(frozen=True)
class SetPartitions(Statement):
    """ALTER WAREHOUSE SET PARTITIONS n: divide what tasks maintain into so many parts from now on."""

    partitions: int
    place: Span


@dataclass(frozen=True)
class CreateIndex(Statement):
    """CREATE INDEX name ON relation (columns): rows are found by these columns without a scan."""

    name: Name
    relation: Name
    columns: tuple[Name, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropIndex(Statement):
    """DROP INDEX [IF EXISTS] name [ON relation]."""

    name: Name
    if_exists: bool = False
    relation: Name | None = None


@dataclass(frozen=True)
class Query(Statement):
    """SELECT (or WITH, VALUES): answered once, now; SELECT STREAMED as the changes that lead there from nothing."""

    query: exp.Expression
    streamed: bool = False
    as_of: exp.Version | None = None
    engine: str | None = None

    @property
    def from_views(self) -> bool:
        """Whether views may be read in place of what it names."""
        return not self.query.find(exp.Hint)
