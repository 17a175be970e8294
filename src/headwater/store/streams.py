"""Streams as relations: what the clauses of CREATE STREAM, REGISTER SOURCE and CREATE TAGGED STREAM come to."""

from __future__ import annotations

from dataclasses import replace

from headwater import types as t
from headwater.errors import UserError
from headwater.sql import statements as s
from headwater.sql.create import resolve
from headwater.sql.names import fold
from headwater.store.catalog import Catalog, Codes, Kind, Relation, Source
from headwater.store.event_time import with_time

#: The column of a tagged stream that says when a row came.
STAMP = "TS"
NEEDS_SEQUENCE = "HW172"


def stream_of(statement: s.CreateStream, epoch: int) -> Relation:
    """The stream that a statement makes.

    Raises:
        UserError: HW170, a clause that only a stream with a KEY has; HW171, a column that cannot be what a clause says;
            HW172, a source of a keyed stream without SEQUENCE BY.
    """
    plain = Relation(
        statement.name.text, Kind.STREAM, statement.columns, begins=epoch, sql=statement.text, created=epoch
    )
    options = {option.name: option for option in statement.options}
    relation = with_time(_with_clauses(plain, options), options)
    feed = options.get("FROM")
    if feed is not None:
        assert isinstance(feed.value, s.Feed)
        relation = replace(relation, source=Source(feed.value.format, feed.value.location, feed.value.options))
        try:
            refuse_without_order(relation)
        except UserError as error:
            raise error.at(feed.span) from None
    return relation


def tagged_of(statement: s.CreateTagged, catalog: Catalog, epoch: int) -> Relation:
    """The tagged stream that a statement makes: the columns of the raw stream, and when a row came.

    (Ghanem et al., "Supporting Views in Data Stream Management Systems", section 4.1: the relation of a tagged stream
    has the attributes of the stream and a timestamp attribute, TS.)
    """
    raw = catalog.find(statement.over.text)
    if raw is None:
        raise UserError(
            "HW102",
            f"there is no stream named {statement.over.text!r}",
            span=statement.over.span,
            hint="REGISTER SOURCE, or CREATE STREAM, makes one",
        )
    if raw.kind is not Kind.STREAM or raw.key or raw.over is not None:
        keyed = "a keyed stream" if raw.is_keyed_stream else f"a {raw.kind.value}"
        what = "a tagged stream" if raw.over is not None else keyed
        raise UserError(
            "HW173",
            f"{raw.name} is {what}: a tagged stream is over a raw one",
            span=statement.over.span,
            hint="REGISTER SOURCE, or CREATE STREAM without KEY, makes a raw stream",
        )
    if any(fold(f.name) == fold(STAMP) for f in raw.fields):
        raise UserError(
            "HW173",
            f"{raw.name} has a column {STAMP}, which a tagged stream fills with the time",
            span=statement.over.span,
            hint="give the column of the raw stream another name",
        )
    fields = (*raw.fields, t.Field(STAMP, t.BIGINT, nullable=False))
    plain = Relation(
        statement.name.text,
        Kind.STREAM,
        fields,
        stamp=STAMP,
        over=raw.name,
        begins=epoch,
        sql=statement.text,
        created=epoch,
    )
    options = {option.name: option for option in statement.options}
    for option in statement.options:
        if option.name in ("KEY", "SEQUENCE BY"):
            named = (option.value,) if isinstance(option.value, s.Name) else option.value
            assert isinstance(named, tuple)
            resolve(named, list(raw.fields), option.name)
    return _with_clauses(plain, options)


def refuse_without_order(stream: Relation) -> None:
    """A keyed stream whose rows come through Spark must say which one of a key is the last: Spark keeps no order."""
    if stream.key and stream.sequence is None:
        raise UserError(
            NEEDS_SEQUENCE,
            f"stream {stream.name} has a KEY and takes rows from Spark, which does not keep their order",
            hint="add SEQUENCE BY column: a number or a moment that grows with every version of a key",
        )


def _with_clauses(relation: Relation, options: dict[str, s.Option]) -> Relation:
    """A stream with what its KEY, SEQUENCE BY, OP BY, STRICT and RETAIN say."""
    for name in ("SEQUENCE BY", "OP BY", "STRICT", "RETAIN CHANGES"):
        if name in options and "KEY" not in options:
            raise UserError(
                "HW170",
                f"{name} needs a KEY: a stream without one only grows",
                span=options[name].span,
                hint="add KEY (columns), or leave it out",
            )
    declared = {fold(f.name): f for f in relation.fields}

    def field(name: object) -> t.Field:
        assert isinstance(name, s.Name)
        return declared[fold(name.text)]

    if (retain := options.get("RETAIN")) is not None:
        assert isinstance(retain.value, int | str)
        relation = replace(relation, retain=retain.value)
    if (changes := options.get("RETAIN CHANGES")) is not None:
        assert isinstance(changes.value, int | str)
        relation = replace(relation, changes=changes.value)
    if (keyed := options.get("KEY")) is None:
        return relation
    assert isinstance(keyed.value, tuple)
    key = tuple(field(name).name for name in keyed.value)
    needed = {*key}
    sequence: str | None = None
    if (ordered := options.get("SEQUENCE BY")) is not None:
        by = field(ordered.value)
        sequence = by.name
        if sequence in key:
            raise _unfit(ordered, sequence, "is part of the KEY", "every version of a key would be a row of its own")
        if not t.is_orderable(by.type) or isinstance(by.type, t.Boolean):
            raise _unfit(ordered, sequence, f"is {by.type}, which has no order to go by", "use a number or a TIMESTAMP")
        needed.add(sequence)
    codes: Codes | None = None
    if (coded := options.get("OP BY")) is not None:
        codes = _codes(coded, relation, {*needed})
    fields = tuple(
        replace(f, nullable=f.nullable and f.name not in needed)
        for f in relation.fields
        if codes is None or f.name != codes.column
    )
    return replace(relation, fields=fields, key=key, sequence=sequence, codes=codes, strict="STRICT" in options)


def _codes(option: s.Option, relation: Relation, taken: set[str]) -> Codes:
    assert isinstance(option.value, s.OpBy)
    named = fold(option.value.column.text)
    position, column = next((i, f) for i, f in enumerate(relation.fields) if fold(f.name) == named)
    if column.name in taken:
        raise _unfit(option, column.name, "is part of the KEY, or the sequence", "declare a column of its own for it")
    if column.type != t.STRING:
        raise _unfit(option, column.name, f"is {column.type}", "declare it as STRING")
    values = option.value.values
    return Codes(column.name, str(column.type), position, values["UPSERT"], values["DELETE"], values["IGNORE"])


def _unfit(option: s.Option, column: str, why: str, hint: str) -> UserError:
    return UserError("HW171", f"{option.name} {column}: the column {why}", span=option.span, hint=hint)
