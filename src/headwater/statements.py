"""Carrying statements out: one case per statement."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headwater import reports
from headwater import types as t
from headwater.algebra.during import at
from headwater.algebra.nodes import Node, Project, Values
from headwater.algebra.parts import PART
from headwater.algebra.renaming import with_definitions
from headwater.algebra.scalars import TRUE, Literal, Scalar, cast
from headwater.algebra.simplify import simplify
from headwater.creating import (
    advance_clock,
    create_base,
    create_view,
    drop,
    find,
    refresh,
    replan,
)
from headwater.creating_parts import advance_stream, create_part_view, create_translated
from headwater.engine.arrow_types import constant_rows, to_storage
from headwater.engine.engine import Epoch
from headwater.engine.files import read_file
from headwater.engine.operations import (
    DeleteWhere,
    InsertChunks,
    InsertQuery,
    InsertRows,
    Operation,
    UpdateWhere,
    check_target,
)
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.explaining import explain_statement
from headwater.indexing import create_index, drop_index
from headwater.part_reports import show_late, show_parts
from headwater.placement import set_partitions
from headwater.results import Result, count_of
from headwater.serve.streamed import as_insertions
from headwater.sql import statements as s
from headwater.sql.assign import refusal
from headwater.sql.bind import bind_row_scalar
from headwater.sql.lower import lower_rows
from headwater.sql.names import fold
from headwater.sql.place import Place
from headwater.sql.scope import RelationInfo
from headwater.sql.translate import translates
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database


def carry_out(db: Database, statement: s.Statement) -> Result:
    """Do what a statement says."""
    match statement:
        case s.CreateTable() | s.CreateStream() | s.CreateTagged():
            return create_base(db, statement)
        case s.CreateView() if translates(statement.query):
            return create_translated(db, statement)
        case s.CreateView():
            return create_view(db, statement)
        case s.CreatePartView():
            return create_part_view(db, statement)
        case s.AdvanceStream():
            return advance_stream(db, statement)
        case s.Insert():
            with db.engine.lock:  # what it is bound to must still be there when it runs
                return _insert(db, statement)
        case s.Delete() | s.Update():
            with db.engine.lock:
                return _change_where(db, statement)
        case s.Copy():
            return _copy(db, statement)
        case s.Drop():
            return drop(db, statement)
        case s.CreateIndex():
            return create_index(db, statement)
        case s.DropIndex():
            return drop_index(db, statement)
        case s.Show():
            return _show(db, statement)
        case s.Describe():
            return reports.describe(_described(db, statement))
        case s.Explain():
            return Result("EXPLAIN", "", text=str(explain_statement(db, statement)))
        case s.Refresh():
            return refresh(db, statement)
        case s.Replan():
            return replan(db, statement)
        case s.SetPartitions():
            return _set_partitions(db, statement)
        case s.AdvanceClock():
            return advance_clock(db, statement)
        case s.Subscribe():
            return _subscribe(db, statement)
        case s.Query(streamed=True):
            with db.engine.lock:  # the answer is that of the epoch it names
                table = as_insertions(db.answer(statement), db.engine.epoch)
            return Result("SELECT", count_of(table.num_rows), table=table)
        case s.Query():
            table = db.answer(statement)
            return Result("SELECT", count_of(table.num_rows), table=table)
    raise NotSupported("HW200", f"{type(statement).__name__} is not supported yet", span=statement.span)


# -- changing -----------------------------------------------------------------------------------------------------


def _insert(db: Database, statement: s.Insert) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns, arriving=True)
    moment = db.engine.present()
    node = lower_rows(statement.query, fields, db.relations_for_queries(), statement.source, moment=moment)
    node = at(with_definitions(node, db.engine.catalog.read_through), moment)
    node = simplify(_fill(node, fields, target))
    rows = constant_rows(node) if isinstance(node, Values) else None
    epoch = _run(db, [InsertQuery(target.name, node) if rows is None else InsertRows(target.name, rows)], moment)
    verb = "changed" if target.is_keyed_stream else "inserted"
    return _changed("INSERT", verb, target, epoch.changes.get(target.name, 0), epoch.number)


def _run(db: Database, operations: list[Operation], moment: dt.datetime) -> Epoch:
    """Apply operations as an epoch of a moment at once, holding the engine's lock.

    Such a caller cannot queue up: whoever makes room in a full queue waits for that lock.
    """
    return db.engine.run(operations, clock=moment)


def _named_fields(target: Relation, columns: tuple[s.Name, ...], arriving: bool = False) -> t.Schema:
    """The fields a statement lists, in its order; all of them when it lists none.

    Args:
        target: what it changes.
        columns: what it lists.
        arriving: whether they are of rows on their way in, or of rows that are there.
    """
    fields = target.arriving if arriving else target.fields
    if not columns:
        return fields
    by_name = {fold(f.name): f for f in fields}
    out: list[t.Field] = []
    for column in columns:
        if target.stamp is not None and fold(column.text) == fold(target.stamp):
            raise UserError(
                "HW332",
                f"{target.name}.{target.stamp} is filled with the time at which a row comes",
                span=column.span,
                hint="leave it out",
            )
        if target.length is not None and fold(column.text) == fold(PART):
            reason = f"{target.name}.{PART} follows from {target.time}"
            raise UserError("HW332", reason, span=column.span, hint="leave it out")
        found = by_name.get(fold(column.text))
        if found is None:
            hint = "its columns are " + ", ".join(f.name for f in fields)
            raise UserError("HW101", f"{target.name} has no column {column.text!r}", span=column.span, hint=hint)
        if found in out:
            raise UserError("HW111", f"column {found.name} is listed twice", span=column.span)
        out.append(found)
    return tuple(out)


def _fill(node: Node, fields: t.Schema, target: Relation) -> Node:
    """The rows of an INSERT in the target's column order; columns it does not list are NULL."""
    given = dict(zip((f.name for f in fields), node.schema, strict=True))
    columns: list[tuple[str, Scalar]] = []
    for field in target.arriving:
        source = given.get(field.name)
        columns.append((field.name, node.column(source.name) if source else Literal(None, field.type)))
    return Project(node, tuple(columns))


def _change_where(db: Database, statement: s.Delete | s.Update) -> Result:
    word = "DELETE" if isinstance(statement, s.Delete) else "UPDATE"
    target = _target(db, statement.target, word.lower())
    alias = statement.alias or target.name
    info = RelationInfo(target.name, target.fields)
    moment = db.engine.present()

    def bind(expression: exp.Expr) -> Scalar:
        return bind_row_scalar(expression, alias, info, statement.source, moment=moment)

    predicate = _condition(bind(statement.where), statement) if statement.where is not None else TRUE
    if isinstance(statement, s.Delete):
        epoch = _run(db, [DeleteWhere(target.name, alias, predicate)], moment)
        return _changed(word, "deleted", target, epoch.changes.get(target.name, 0), epoch.number)
    values = _assignments(statement, target, bind)
    epoch = _run(db, [UpdateWhere(target.name, alias, predicate, values)], moment)
    return _changed(word, "updated", target, epoch.changes.get(target.name, 0) // 2, epoch.number)


def _condition(predicate: Scalar, statement: s.Statement) -> Scalar:
    if predicate.type != t.BOOLEAN:
        raise UserError("HW112", f"a condition must be BOOLEAN, not {predicate.type}", span=statement.span)
    return predicate


def _assignments(statement: s.Update, target: Relation, bind: Callable[[exp.Expr], Scalar]) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, expression in statement.assignments:
        field = _named_fields(target, (name,))[0]
        if field.name in values:
            raise UserError("HW111", f"column {field.name} is assigned twice", span=name.span)
        value = bind(expression)
        refused = refusal(value.type, field)
        if refused is not None:
            raise refused.at(Place(statement.source).span(expression))
        values[field.name] = cast(value, field.type)
    return values


def _copy(db: Database, statement: s.Copy) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns, arriving=True)
    columns = tuple(f.name for f in fields) if statement.columns else None

    def chunks() -> Iterator[pa.Table]:
        for rows in read_file(
            statement.path, statement.format, statement.options, target.arriving, relation=target.name, columns=columns
        ):
            yield to_storage(rows, target.arriving)

    try:
        epoch = db.submit([InsertChunks(target.name, chunks)])
    except HeadwaterError as error:
        raise error.at(statement.path_span, statement.source) from error.__cause__
    verb = "changed" if target.is_keyed_stream else "copied"
    return _changed("COPY", verb, target, epoch.changes.get(target.name, 0), epoch.number)


def _target(db: Database, name: s.Name, operation: str) -> Relation:
    try:
        return check_target(db.engine.catalog, name.text, operation)
    except HeadwaterError as error:
        raise error.at(name.span) from None


def _changed(word: str, verb: str, target: Relation, n: int, epoch: int | None) -> Result:
    return Result(word, f"{verb} {count_of(n)} in {target.name}", epoch=epoch)


def _set_partitions(db: Database, statement: s.SetPartitions) -> Result:
    try:
        set_partitions(db.engine, statement.partitions)
    except HeadwaterError as error:
        raise error.at(statement.place) from error.__cause__
    parts = "1 part" if statement.partitions == 1 else f"{statement.partitions:,} parts"
    return Result("ALTER WAREHOUSE", f"what tasks maintain is divided into {parts}")


# -- looking and explaining --------------------------------------------------------------------------------------


def _described(db: Database, statement: s.Describe) -> Relation:
    relation = find(db, statement.name)
    if statement.kind is not None and statement.kind.lower() != relation.kind.value:
        raise UserError(
            "HW104",
            f"{relation.name} is a {relation.kind.value}, not a {statement.kind.lower()}",
            span=statement.name.span,
            hint=f"DESCRIBE {relation.name}",
        )
    return relation


def _subscribe(db: Database, statement: s.Subscribe) -> Result:
    """What there is to be told of a view up to now, as one table."""
    try:
        with db.subscribe(statement.name.text, statement.from_epoch, timeout=0) as subscription:
            table = subscription.so_far()
    except HeadwaterError as error:
        raise error.at(statement.name.span) from error.__cause__
    return Result("SUBSCRIBE", f"{table.num_rows:,} change{'' if table.num_rows == 1 else 's'}", table=table)


def _show(db: Database, statement: s.Show) -> Result:
    if statement.what in ("PARTS", "LATE"):
        assert statement.of is not None
        shown = show_parts if statement.what == "PARTS" else show_late
        try:
            return shown(db, find(db, statement.of))
        except HeadwaterError as error:
            raise error.at(statement.of.span) from error.__cause__
    if statement.what != "MAPS":
        return reports.show(db, statement.what, statement.pattern)
    of = find(db, statement.of) if statement.of else None
    try:
        return reports.show_maps(db, of, statement.pattern)
    except HeadwaterError as error:
        raise error.at(statement.of.span if statement.of else None) from error.__cause__
