"""Views of parts: their two queries as trees over parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater import types as t
from headwater.algebra.during import follows_clock
from headwater.algebra.nodes import Node, Project
from headwater.algebra.parts import PART, PartQuery, Reference
from headwater.algebra.scalars import Scalar, cast
from headwater.errors import NotSupported, UserError
from headwater.sql.lower import lower_part
from headwater.sql.names import fold
from headwater.sql.part_references import Parting, keeps_pace
from headwater.sql.scope import RelationInfo, Relations, WithMore
from headwater.sql.statements import CreatePartView
from headwater.sql.statements import PartQuery as Written


@dataclass(frozen=True)
class LoweredParts:
    """A view of parts.

    Attributes:
        fields: its columns, PART among them, last.
        initialize: what its first part holds.
        update: what every later part holds.
    """

    fields: t.Schema
    initialize: PartQuery
    update: PartQuery


def lower_part_view(statement: CreatePartView, length: int, relations: Relations) -> LoweredParts:
    """The trees of a view of parts.

    Args:
        statement: as parsed.
        length: how many seconds a part of it spans.
        relations: what it can read.
    """
    _refuse_itself(statement)
    name = statement.name.text
    first, initial = _lower(statement, statement.initialize, length, relations)
    _check_names(first, statement)
    fields = (*(replace(f, nullable=True) for f in first.schema), t.Field(PART, t.BIGINT, nullable=False))
    with_view = WithMore(relations, RelationInfo(name, fields, length=length))
    then, updating = _lower(statement, statement.update, length, with_view)
    if not any(_says_when(one, name, length, relations) for one in updating.references):
        raise UserError(
            "HW186",
            f"UPDATE of {name} reads no parts that come as its own do: nothing says when one is due",
            span=statement.name.span,
            source=statement.source,
            hint=f"read a stream with parts as m[{statement.update.variable}]",
        )
    for node, written in ((first, statement.initialize), (then, statement.update)):
        if follows_clock(node):
            raise NotSupported(
                "HW217",
                "a view of parts cannot read the clock: a part is the same whenever it is evaluated",
                span=written.span,
                source=statement.source,
                hint="use PART_TIMESTAMP, or a view over this one",
            )
    update = _fitted(then, first, statement)
    return LoweredParts(
        fields, PartQuery(first, tuple(initial.references)), PartQuery(update, tuple(updating.references))
    )


def _lower(statement: CreatePartView, written: Written, length: int, relations: Relations) -> tuple[Node, Parting]:
    parting = Parting(statement.name.text, length, written.variable)
    columns = statement.columns if written is statement.initialize else ()
    return lower_part(written.query, relations, statement.source, parting, columns), parting


def _says_when(reference: Reference, view: str, length: int, relations: Relations) -> bool:
    """Whether a part that is read comes in step with the view's own, so that there is always a last one to build."""
    info = relations.find(fold(reference.relation)) if fold(reference.relation) != fold(view) else None
    return info is not None and info.length is not None and keeps_pace(reference, info.length, length)


def _refuse_itself(statement: CreatePartView) -> None:
    for table in statement.initialize.query.find_all(exp.Table):
        if fold(table.name) == fold(statement.name.text):
            raise UserError(
                "HW188",
                f"INITIALIZE reads {statement.name.text} itself, which has no parts yet",
                span=statement.initialize.span,
                source=statement.source,
                hint="say what the first part holds in terms of other relations; UPDATE may read earlier parts",
            )


def _check_names(node: Node, statement: CreatePartView) -> None:
    for name in node.column_names:
        if fold(name) in ("part", "part_timestamp"):
            raise UserError(
                "HW174",
                f"a column {name} is there already: every view of parts has it",
                span=statement.initialize.span,
                source=statement.source,
                hint="leave it out, or name it otherwise with AS",
            )


def _fitted(update: Node, first: Node, statement: CreatePartView) -> Node:
    """The rows of UPDATE with the names and types of INITIALIZE, by position."""
    ours, theirs = first.schema, update.schema

    def differ(why: str) -> UserError:
        return UserError(
            "HW187",
            f"UPDATE and INITIALIZE of {statement.name.text} differ: {why}",
            span=statement.update.span,
            source=statement.source,
            hint="give both the same number of columns, of the same types; CAST where they differ",
        )

    if len(ours) != len(theirs):
        raise differ(f"{len(theirs)} columns and {len(ours)}")
    columns: list[tuple[str, Scalar]] = []
    for position, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        if not _widens(other.type, own.type):
            raise differ(f"column {position + 1}, {own.name}, is {other.type} and {own.type}")
        columns.append((own.name, cast(update.column(other.name), own.type)))
    return Project(update, tuple(columns))


def _widens(given: t.Type, to: t.Type) -> bool:
    """Whether every value of one type is one of another."""
    match given, to:
        case t.Integer(bits=small), t.Integer(bits=large):
            return small <= large
        case t.Decimal(p, s), t.Decimal(q, r):
            return s <= r and p - s <= q - r
        case t.Integer(bits=bits), t.Decimal(q, r):
            return q - r >= {8: 3, 16: 5, 32: 10, 64: 19}[bits]
    return given == to
