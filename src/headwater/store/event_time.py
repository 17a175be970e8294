"""Streams by event time: what TIMESTAMP BY, PARTITION LENGTH, LATENESS and ROLL UP come to.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", sections 2 and 4.)
"""

from __future__ import annotations

from dataclasses import replace

from headwater import types as t
from headwater.algebra.parts import PART, PART_TIMESTAMP
from headwater.errors import UserError
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.store.catalog import Relation


def with_time(stream: Relation, options: dict[str, s.Option]) -> Relation:
    """A stream with what its clauses on time say.

    Raises:
        UserError: HW174, clauses that do not go together, or a column that cannot be what they say.
    """
    by, length, late = (options.get(name) for name in ("TIMESTAMP BY", "PARTITION LENGTH", "LATENESS"))
    for option in (length, late, options.get("ROLL UP")):
        if option is not None and by is None:
            raise UserError(
                "HW174",
                f"{option.name} needs TIMESTAMP BY: which column says when something happened",
                span=option.span,
                hint="add TIMESTAMP BY column",
            )
    if by is None:
        return stream
    assert isinstance(by.value, s.Name)
    column = next(f for f in stream.fields if fold(f.name) == fold(by.value.text))
    if column.type != t.TIMESTAMP:
        hint = "declare it as TIMESTAMP; timestamp_seconds(n) makes one of a number of seconds"
        raise UserError("HW174", f"TIMESTAMP BY {column.name}: it is {column.type}", span=by.span, hint=hint)
    fields = tuple(replace(f, nullable=f.nullable and f.name != column.name) for f in stream.fields)
    stream = replace(stream, fields=fields, time=column.name)
    if late is not None:
        if stream.key:
            hint = "leave it out: SEQUENCE BY says which row of a key is the last"
            raise UserError("HW174", "a stream with a KEY takes no LATENESS", span=late.span, hint=hint)
        assert isinstance(late.value, int)
        stream = replace(stream, lateness=late.value)
    return _with_parts(stream, length, options) if length is not None else _without_parts(stream, options)


def _with_parts(stream: Relation, length: s.Option, options: dict[str, s.Option]) -> Relation:
    assert isinstance(length.value, int)
    if stream.key:
        raise UserError(
            "HW174",
            "a stream with a KEY has no parts: a row that replaces another could move it from part to part",
            span=length.span,
            hint="leave out KEY or PARTITION LENGTH; a view can aggregate a keyed stream by time",
        )
    for f in stream.fields:
        if fold(f.name) in (fold(PART), fold(PART_TIMESTAMP)):
            raise UserError(
                "HW174",
                f"a column {f.name} is there already: every stream with parts has it",
                span=length.span,
                hint="give the column another name",
            )
    stream = replace(stream, length=length.value, fields=(*stream.fields, t.Field(PART, t.BIGINT, nullable=False)))
    return replace(stream, roll_up=rolled_up(options.get("ROLL UP"), length.value))


def rolled_up(option: s.Option | None, length: int) -> tuple[int, int] | None:
    """What ROLL UP says of parts of a length.

    Raises:
        UserError: HW174, the larger parts are no multiple of the smaller ones.
    """
    if option is None:
        return None
    assert isinstance(option.value, tuple)
    after, into = option.value
    if into <= length or into % length:
        raise UserError(
            "HW174",
            f"parts of {length} seconds cannot be rolled up into parts of {into}",
            span=option.span,
            hint=f"choose a multiple of {length}",
        )
    return after, into


def _without_parts(stream: Relation, options: dict[str, s.Option]) -> Relation:
    rolled = options.get("ROLL UP")
    if rolled is not None:
        raise UserError(
            "HW174", "ROLL UP needs PARTITION LENGTH", span=rolled.span, hint="add PARTITION LENGTH seconds"
        )
    if stream.key and stream.sequence is None and stream.time not in stream.key:
        return replace(stream, sequence=stream.time)
    return stream
