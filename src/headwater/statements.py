"""Carrying statements out: one case per statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headwater import reports
from headwater import types as t
from headwater.algebra.nodes import Node, Project, Values
from headwater.algebra.scalars import TRUE, Literal, Scalar, cast
from headwater.algebra.simplify import simplify
from headwater.engine import definitions
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
from headwater.plan.compile import compile_view, weigh
from headwater.plan.explain import Explanation
from headwater.planning import replanned, surroundings
from headwater.results import Result, count_of
from headwater.serve.query import count_rows
from headwater.sql import statements as s
from headwater.sql.assign import refusal
from headwater.sql.bind import bind_row_scalar
from headwater.sql.lower import lower_rows, lower_view
from headwater.sql.names import fold
from headwater.sql.options import refuse_unsupported_options
from headwater.sql.place import Place
from headwater.sql.scope import RelationInfo
from headwater.store.catalog import Kind, Relation, Source

if TYPE_CHECKING:
    from headwater.database import Database


def carry_out(db: Database, statement: s.Statement) -> Result:
    """Do what a statement says."""
    match statement:
        case s.CreateTable() | s.CreateStream():
            return _create_base(db, statement)
        case s.CreateView():
            return _create_view(db, statement)
        case s.Insert():
            with db.engine.lock:  # what it is bound to must still be there when it runs
                return _insert(db, statement)
        case s.Delete() | s.Update():
            with db.engine.lock:
                return _change_where(db, statement)
        case s.Copy():
            return _copy(db, statement)
        case s.Drop():
            return _drop(db, statement)
        case s.Show():
            return _show(db, statement)
        case s.Describe():
            return reports.describe(_described(db, statement))
        case s.Explain():
            return Result("EXPLAIN", "", text=str(explain_statement(db, statement)))
        case s.Refresh():
            return _refresh(db, statement)
        case s.Replan():
            return _replan(db, statement)
        case s.Query():
            table = db.answer(statement)
            return Result("SELECT", count_of(table.num_rows), table=table)
    raise NotSupported("HW200", f"{type(statement).__name__} is not supported yet", span=statement.span)


# -- creating and dropping ----------------------------------------------------------------------------------------


def _new_name(db: Database, name: s.Name, if_not_exists: bool) -> bool:
    """Whether to go on creating: False when it exists and that is fine."""
    if "#" in name.text or "$" in name.text:
        raise UserError(
            "HW108",
            f"the name {name.text!r} contains # or $, which are reserved",
            span=name.span,
            hint="choose another",
        )
    found = db.engine.catalog.find(name.text)
    if found is None:
        return True
    if if_not_exists:
        return False
    raise UserError(
        "HW103",
        f"there is a {found.kind.value} named {found.name} already",
        span=name.span,
        hint="choose another name, drop it first, or use IF NOT EXISTS",
    )


def _create_base(db: Database, statement: s.CreateTable | s.CreateStream) -> Result:
    kind = Kind.TABLE if isinstance(statement, s.CreateTable) else Kind.STREAM
    word = f"CREATE {kind.value.upper()}"
    retain: int | str | None = None
    source: Source | None = None
    key: tuple[str, ...] = ()
    static = False
    if isinstance(statement, s.CreateStream):
        refuse_unsupported_options(statement)
        for option in statement.options:
            match option.value:
                case int() | str() as length if option.name == "RETAIN":
                    retain = length
                case s.Feed(format=form, location=location, options=settings):
                    source = Source(form, location, settings)
    else:
        key, static = statement.primary_key, statement.static
    with db.engine.lock:
        if not _new_name(db, statement.name, statement.if_not_exists):
            return Result(word, f"{statement.name.text} exists already")
        epoch = db.engine.epoch
        relation = Relation(
            statement.name.text,
            kind,
            statement.columns,
            key=key,
            static=static,
            retain=retain,
            source=source,
            begins=epoch,
            sql=statement.text,
            created=epoch,
        )
        definitions.create_base(db.engine, relation)
    return Result(word, f"created {kind.value} {relation.name}")


def _options(options: tuple[s.Option, ...]) -> tuple[str | None, bool]:
    """Strategy and STRICT of a view's options."""
    strategy: str | None = None
    strict = False
    for option in options:
        if option.name == "STRATEGY":
            strategy = str(option.value)
        elif option.name == "STRICT":
            strict = True
    if strict and strategy == "recompute":
        raise UserError(
            "HW110",
            "STRICT refuses the strategy 'recompute'",
            span=next(option.span for option in options if option.name == "STRICT"),
            hint="leave out STRICT, or choose another strategy",
        )
    return strategy, strict


def _create_view(db: Database, statement: s.CreateView) -> Result:
    refuse_unsupported_options(statement)
    strategy, strict = _options(statement.options)
    with db.engine.lock:
        if not _new_name(db, statement.name, statement.if_not_exists):
            return Result("CREATE VIEW", f"{statement.name.text} exists already")
        node = _lower(db, statement.query, statement, statement.columns)
        try:
            program = compile_view(statement.name.text, node, strategy, surroundings(db))
        except HeadwaterError as error:
            raise error.at(statement.name.span, statement.source) from None
        relation = Relation(
            statement.name.text,
            Kind.VIEW,
            node.schema,
            sql=statement.text,
            created=db.engine.epoch,
            program=program,
            strict=strict,
        )
        definitions.create_view(db.engine, relation)
    count = count_rows(db.warehouse, relation, db.engine.catalog.grouped)
    return Result("CREATE VIEW", f"created view {relation.name} ({count_of(count)})")


def _lower(db: Database, query: exp.Expr, statement: s.Statement, columns: tuple[s.Name, ...] = ()) -> Node:
    return lower_view(query, db.relations_for_views(), statement.source, columns=columns)


def _drop(db: Database, statement: s.Drop) -> Result:
    with db.engine.lock:
        relation = db.engine.catalog.find(statement.name.text)
        if relation is None:
            if statement.if_exists:
                return Result(f"DROP {statement.kind}", f"{statement.name.text} does not exist")
            raise _unknown(statement.name)
        if relation.kind.value != statement.kind.lower():
            raise UserError(
                "HW104",
                f"{relation.name} is a {relation.kind.value}, not a {statement.kind.lower()}",
                span=statement.name.span,
                hint=f"DROP {relation.kind.value.upper()} {relation.name}",
            )
        try:
            gone = definitions.drop(db.engine, relation, statement.cascade)
        except HeadwaterError as error:
            raise error.at(statement.name.span) from error.__cause__
    return Result(f"DROP {statement.kind}", "dropped " + ", ".join(gone))


def _refresh(db: Database, statement: s.Refresh) -> Result:
    with db.engine.lock:
        relation = _find(db, statement.name)
        if relation.program is None:
            raise UserError(
                "HW104", f"{relation.name} is a {relation.kind.value}, not a view", span=statement.name.span
            )
        epoch = definitions.refresh(db.engine, relation)
    return Result("REFRESH", f"refreshed view {relation.name}", epoch=epoch.number)


def _replan(db: Database, statement: s.Replan) -> Result:
    with db.engine.lock:
        relation = _find(db, statement.name)
        before = relation.program
        if before is None:
            raise UserError(
                "HW104", f"{relation.name} is a {relation.kind.value}, not a view", span=statement.name.span
            )
        if relation.suspended:
            raise UserError(
                "HW507",
                f"view {relation.name} is suspended",
                span=statement.name.span,
                hint=f"REFRESH {relation.name} first; if that cannot be, drop and create it",
            )
        if relation.strict and statement.strategy == "recompute":
            raise UserError(
                "HW110",
                f"view {relation.name} is STRICT, which refuses the strategy 'recompute'",
                span=statement.name.span,
                hint="choose another strategy",
            )
        program = replanned(relation.name, before, statement.strategy, surroundings(db))
        try:
            definitions.replan(db.engine, relation, program)
        except HeadwaterError as error:
            raise error.at(statement.name.span) from error.__cause__
    db.advice.pop(relation.name, None)
    if program.maps == before.maps:
        return Result("ALTER VIEW", f"view {relation.name} keeps its plan, by strategy {program.strategy}")
    new = len({one.name for one in program.maps} - {one.name for one in before.maps})
    kept = f"{len(program.maps)} {'map' if len(program.maps) == 1 else 'maps'}, {new} new"
    return Result("ALTER VIEW", f"view {relation.name} is maintained by strategy {program.strategy} ({kept})")


# -- changing -----------------------------------------------------------------------------------------------------


def _insert(db: Database, statement: s.Insert) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns)
    node = lower_rows(statement.query, fields, db.relations_for_queries(), statement.source)
    node = simplify(_fill(node, fields, target))
    rows = constant_rows(node) if isinstance(node, Values) else None
    epoch = _run(db, [InsertQuery(target.name, node) if rows is None else InsertRows(target.name, rows)])
    return _changed("INSERT", "inserted", target, epoch.changes.get(target.name, 0), epoch.number)


def _run(db: Database, operations: list[Operation]) -> Epoch:
    """Apply operations as an epoch at once, holding the engine's lock.

    Such a caller cannot queue up: whoever makes room in a full queue waits for that lock.
    """
    epoch = db.engine.run(operations)
    db.consolidator.nudge()
    return epoch


def _named_fields(target: Relation, columns: tuple[s.Name, ...]) -> t.Schema:
    """The fields an INSERT lists, in its order; all of them when it lists none."""
    if not columns:
        return target.fields
    by_name = {fold(f.name): f for f in target.fields}
    out: list[t.Field] = []
    for column in columns:
        found = by_name.get(fold(column.text))
        if found is None:
            raise UserError(
                "HW101", f"{target.name} has no column {column.text!r}", span=column.span, hint=_columns_hint(target)
            )
        if found in out:
            raise UserError("HW111", f"column {found.name} is listed twice", span=column.span)
        out.append(found)
    return tuple(out)


def _fill(node: Node, fields: t.Schema, target: Relation) -> Node:
    """The rows of an INSERT in the target's column order; columns it does not list are NULL."""
    given = dict(zip((f.name for f in fields), node.schema, strict=True))
    columns: list[tuple[str, Scalar]] = []
    for field in target.fields:
        source = given.get(field.name)
        columns.append((field.name, node.column(source.name) if source else Literal(None, field.type)))
    return Project(node, tuple(columns))


def _change_where(db: Database, statement: s.Delete | s.Update) -> Result:
    word = "DELETE" if isinstance(statement, s.Delete) else "UPDATE"
    target = _target(db, statement.target, word.lower())
    alias = statement.alias or target.name
    info = RelationInfo(target.name, target.fields)

    def bind(expression: exp.Expr) -> Scalar:
        return bind_row_scalar(expression, alias, info, statement.source)

    predicate = _condition(bind(statement.where), statement) if statement.where is not None else TRUE
    if isinstance(statement, s.Delete):
        epoch = _run(db, [DeleteWhere(target.name, alias, predicate)])
        return _changed(word, "deleted", target, epoch.changes.get(target.name, 0), epoch.number)
    values = _assignments(statement, target, alias, info)
    epoch = _run(db, [UpdateWhere(target.name, alias, predicate, values)])
    return _changed(word, "updated", target, epoch.changes.get(target.name, 0) // 2, epoch.number)


def _condition(predicate: Scalar, statement: s.Statement) -> Scalar:
    if predicate.type != t.BOOLEAN:
        raise UserError("HW112", f"a condition must be BOOLEAN, not {predicate.type}", span=statement.span)
    return predicate


def _assignments(statement: s.Update, target: Relation, alias: str, info: RelationInfo) -> dict[str, Scalar]:
    values: dict[str, Scalar] = {}
    for name, expression in statement.assignments:
        field = _named_fields(target, (name,))[0]
        if field.name in values:
            raise UserError("HW111", f"column {field.name} is assigned twice", span=name.span)
        value = bind_row_scalar(expression, alias, info, statement.source)
        refused = refusal(value.type, field)
        if refused is not None:
            raise refused.at(Place(statement.source).span(expression))
        values[field.name] = cast(value, field.type)
    return values


def _copy(db: Database, statement: s.Copy) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns)
    columns = tuple(f.name for f in fields) if statement.columns else None

    def chunks() -> Iterator[pa.Table]:
        for rows in read_file(
            statement.path, statement.format, statement.options, target.fields, relation=target.name, columns=columns
        ):
            yield to_storage(rows, target.fields)

    try:
        epoch = db.submit([InsertChunks(target.name, chunks)])
    except HeadwaterError as error:
        raise error.at(statement.path_span, statement.source) from error.__cause__
    return _changed("COPY", "copied", target, epoch.changes.get(target.name, 0), epoch.number)


def _target(db: Database, name: s.Name, operation: str) -> Relation:
    try:
        return check_target(db.engine.catalog, name.text, operation)
    except HeadwaterError as error:
        raise error.at(name.span) from None


def _changed(word: str, verb: str, target: Relation, n: int, epoch: int | None) -> Result:
    return Result(word, f"{verb} {count_of(n)} in {target.name}", epoch=epoch)


# -- looking and explaining --------------------------------------------------------------------------------------


def _find(db: Database, name: s.Name) -> Relation:
    relation = db.engine.catalog.find(name.text)
    if relation is None:
        raise _unknown(name)
    return relation


def _described(db: Database, statement: s.Describe) -> Relation:
    relation = _find(db, statement.name)
    if statement.kind is not None and statement.kind.lower() != relation.kind.value:
        raise UserError(
            "HW104",
            f"{relation.name} is a {relation.kind.value}, not a {statement.kind.lower()}",
            span=statement.name.span,
            hint=f"DESCRIBE {relation.name}",
        )
    return relation


def _show(db: Database, statement: s.Show) -> Result:
    if statement.what != "MAPS":
        return reports.show(db, statement.what, statement.pattern)
    of = _find(db, statement.of) if statement.of else None
    try:
        return reports.show_maps(db, of, statement.pattern)
    except HeadwaterError as error:
        raise error.at(statement.of.span if statement.of else None) from error.__cause__


def _unknown(name: s.Name) -> UserError:
    return UserError(
        "HW102", f"there is no relation named {name.text!r}", span=name.span, hint="SHOW RELATIONS lists what exists"
    )


def _columns_hint(relation: Relation) -> str:
    return "its columns are " + ", ".join(f.name for f in relation.fields)


def explain_statement(db: Database, statement: s.Explain) -> Explanation:
    """EXPLAIN as a statement, in the format that it names."""
    explained = replace(_explained(db, statement), format=statement.format)
    if not statement.all_strategies:
        return explained
    program = explained.program
    weighed = weigh(program.view, program.query, surroundings(db))
    return replace(explained, rivals=tuple(rival for _, rival in weighed))


def _explained(db: Database, statement: s.Explain) -> Explanation:
    if isinstance(statement.target, s.Name):
        return reports.explain_relation(db, _find(db, statement.target))
    refuse_unsupported_options(statement)
    strategy, strict = _options(statement.options)
    if statement.name:
        _new_name(db, statement.name, if_not_exists=False)
    node = _lower(db, statement.target, statement, statement.columns)
    name = "#query" if db.engine.catalog.find("query") else "query"
    name = statement.name.text if statement.name else name
    return reports.explain_program(db, compile_view(name, node, strategy, surroundings(db)), strict=strict)
