"""Carrying statements out: one case per statement."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headwater import types as t
from headwater.algebra.nodes import Node
from headwater.algebra.scalars import TRUE, Scalar
from headwater.algebra.simplify import simplify
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql, store_table
from headwater.emit.maintain import map_statements, step_statement
from headwater.engine import definitions
from headwater.engine.arrow_types import to_storage
from headwater.engine.files import read_file
from headwater.engine.operations import (
    DeleteWhere,
    InsertQuery,
    InsertRows,
    UpdateWhere,
    check_target,
)
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.plan.compile import DEFAULT, STRATEGIES, compile_view
from headwater.plan.explain import EmittedSQL, Explanation, InputNote
from headwater.plan.program import Add, Program
from headwater.sql import statements as s
from headwater.sql.lower import bind_row_scalar, lower_rows, lower_view
from headwater.sql.names import fold
from headwater.sql.options import refuse_unsupported_options
from headwater.sql.parse import parse
from headwater.sql.scope import RelationInfo
from headwater.store.catalog import Kind, Relation

if TYPE_CHECKING:
    from headwater.database import Database, Result


def carry_out(db: Database, statement: s.Statement) -> Result:
    """Do what a statement says."""
    match statement:
        case s.CreateTable() | s.CreateStream():
            return _create_base(db, statement)
        case s.CreateView():
            return _create_view(db, statement)
        case s.Insert():
            return _insert(db, statement)
        case s.Delete() | s.Update():
            return _change_where(db, statement)
        case s.Copy():
            return _copy(db, statement)
        case s.Drop():
            return _drop(db, statement)
        case s.Show():
            return _show(db, statement)
        case s.Describe():
            return _describe(db, statement)
        case s.Explain():
            return _result("EXPLAIN", "", text=str(explain_statement(db, statement)))
        case s.Refresh():
            return _refresh(db, statement)
        case s.Query():
            table = db.answer(statement)
            return _result("SELECT", _rows(table.num_rows), table=table)
    raise NotSupported("HW200", f"{type(statement).__name__} is not supported yet", span=statement.span)


def _result(statement: str, message: str, **rest: object) -> Result:
    from headwater.database import Result

    return Result(statement, message, **rest)  # type: ignore[arg-type]


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"


# -- creating and dropping ------------------------------------------------------------------------------------------------


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
    key: tuple[str, ...] = ()
    static = False
    if isinstance(statement, s.CreateStream):
        refuse_unsupported_options(statement)
        for option in statement.options:
            if option.name == "RETAIN":
                assert isinstance(option.value, int | str)
                retain = option.value
    else:
        key, static = statement.primary_key, statement.static
    with db.engine.lock:
        if not _new_name(db, statement.name, statement.if_not_exists):
            return _result(word, f"{statement.name.text} exists already")
        relation = Relation(
            statement.name.text, kind, statement.columns, key, static, retain, statement.text, db.engine.epoch
        )
        definitions.create_base(db.engine, relation)
    return _result(word, f"created {kind.value} {relation.name}")


def _options(options: tuple[s.Option, ...]) -> tuple[str, bool]:
    """Strategy and STRICT of a view's options."""
    strategy, strict = DEFAULT, False
    for option in options:
        if option.name == "STRATEGY":
            strategy = str(option.value).lower()
            if strategy not in STRATEGIES:
                raise UserError(
                    "HW109",
                    f"there is no strategy {option.value!r}",
                    span=option.span,
                    hint="choose one of " + ", ".join(repr(one) for one in STRATEGIES),
                )
        elif option.name == "STRICT":
            strict = True
    if strict and strategy == "recompute":
        raise UserError(
            "HW110", "STRICT refuses the strategy 'recompute'", hint="leave out STRICT, or choose another strategy"
        )
    return strategy, strict


def _create_view(db: Database, statement: s.CreateView) -> Result:
    refuse_unsupported_options(statement)
    strategy, strict = _options(statement.options)
    with db.engine.lock:
        if not _new_name(db, statement.name, statement.if_not_exists):
            return _result("CREATE VIEW", f"{statement.name.text} exists already")
        node = _lower(db, statement.query, statement, statement.columns)
        program = compile_view(statement.name.text, node, strategy)
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
    count = _count_rows(db, relation)
    return _result("CREATE VIEW", f"created view {relation.name} ({_rows(count)})")


def _lower(db: Database, query: exp.Expression, statement: s.Statement, columns: tuple[s.Name, ...] = ()) -> Node:
    return simplify(lower_view(query, db.relations_for_views(), statement.source, columns=columns))


def _drop(db: Database, statement: s.Drop) -> Result:
    with db.engine.lock:
        relation = db.engine.catalog.find(statement.name.text)
        if relation is None:
            if statement.if_exists:
                return _result(f"DROP {statement.kind}", f"{statement.name.text} does not exist")
            raise _unknown(statement.name)
        if relation.kind.value != statement.kind.lower():
            raise UserError(
                "HW104",
                f"{relation.name} is a {relation.kind.value}, not a {statement.kind.lower()}",
                span=statement.name.span,
                hint=f"DROP {relation.kind.value.upper()} {relation.name}",
            )
        gone = definitions.drop(db.engine, relation, statement.cascade)
    return _result(f"DROP {statement.kind}", "dropped " + ", ".join(gone))


def _refresh(db: Database, statement: s.Refresh) -> Result:
    with db.engine.lock:
        relation = _find(db, statement.name)
        if relation.program is None:
            raise UserError(
                "HW104", f"{relation.name} is a {relation.kind.value}, not a view", span=statement.name.span
            )
        epoch = definitions.refresh(db.engine, relation)
    return _result("REFRESH", f"refreshed view {relation.name}", epoch=epoch.number)


# -- changing -------------------------------------------------------------------------------------------------------------


def _insert(db: Database, statement: s.Insert) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns)
    node = lower_rows(statement.query, fields, db.relations_for_queries(), statement.source)
    epoch = db.submit([InsertQuery(target.name, _fill(node, fields, target))])
    return _changed("INSERT", "inserted", target, epoch.changes.get(target.name, 0), epoch.number)


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
    from headwater.algebra.nodes import Project
    from headwater.algebra.scalars import Literal

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

    def bind(expression: exp.Expression) -> Scalar:
        return bind_row_scalar(expression, alias, info, statement.source)

    predicate = _condition(bind(statement.where), statement) if statement.where is not None else TRUE
    if isinstance(statement, s.Delete):
        epoch = db.submit([DeleteWhere(target.name, alias, predicate)])
        return _changed(word, "deleted", target, epoch.changes.get(target.name, 0), epoch.number)
    values = _assignments(statement, target, alias, info)
    epoch = db.submit([UpdateWhere(target.name, alias, predicate, values)])
    return _changed(word, "updated", target, epoch.changes.get(target.name, 0) // 2, epoch.number)


def _condition(predicate: Scalar, statement: s.Statement) -> Scalar:
    if predicate.type != t.BOOLEAN:
        raise UserError("HW112", f"a condition must be BOOLEAN, not {predicate.type}", span=statement.span)
    return predicate


def _assignments(statement: s.Update, target: Relation, alias: str, info: RelationInfo) -> dict[str, Scalar]:
    from headwater.sql.lower import assign

    values: dict[str, Scalar] = {}
    for name, expression in statement.assignments:
        field = _named_fields(target, (name,))[0]
        if field.name in values:
            raise UserError("HW111", f"column {field.name} is assigned twice", span=name.span)
        value = bind_row_scalar(expression, alias, info, statement.source)
        values[field.name] = assign(value, field, expression, statement.source)
    return values


def _copy(db: Database, statement: s.Copy) -> Result:
    target = _target(db, statement.target, "insert")
    fields = _named_fields(target, statement.columns)
    total, last = 0, None
    columns = tuple(f.name for f in fields) if statement.columns else None
    try:
        for rows in read_file(
            statement.path, statement.format, statement.options, target.fields, relation=target.name, columns=columns
        ):
            last = db.submit([InsertRows(target.name, to_storage(rows, target.fields))])
            total += rows.num_rows
    except HeadwaterError as error:
        if total and error.hint is None:
            error.hint = f"{_rows(total)} before this were copied in earlier epochs"
        raise error.at(statement.path_span, statement.source) from error.__cause__
    return _changed("COPY", "copied", target, total, last.number if last else None)


def _target(db: Database, name: s.Name, operation: str) -> Relation:
    try:
        return check_target(db.engine.catalog, name.text, operation)
    except HeadwaterError as error:
        raise error.at(name.span) from None


def _changed(word: str, verb: str, target: Relation, n: int, epoch: int | None) -> Result:
    return _result(word, f"{verb} {_rows(n)} in {target.name}", epoch=epoch)


# -- looking --------------------------------------------------------------------------------------------------------------


def _find(db: Database, name: s.Name) -> Relation:
    relation = db.engine.catalog.find(name.text)
    if relation is None:
        raise _unknown(name)
    return relation


def _unknown(name: s.Name) -> UserError:
    return UserError(
        "HW102", f"there is no relation named {name.text!r}", span=name.span, hint="SHOW RELATIONS lists what exists"
    )


def _columns_hint(relation: Relation) -> str:
    return "its columns are " + ", ".join(f.name for f in relation.fields)


def relation_facts(db: Database, relation: Relation) -> dict[str, object]:
    """What status says of a relation."""
    facts: dict[str, object] = {"name": relation.name, "kind": relation.kind.value}
    facts["rows"] = _count_rows(db, relation) if db.engine.catalog.keeps(relation) else None
    if relation.program is not None:
        facts["strategy"] = relation.program.strategy
        facts["state"] = "suspended" if relation.suspended else "current"
        facts["epoch"] = relation.stopped if relation.suspended else db.engine.epoch
        if relation.suspended:
            facts["reason"] = relation.suspended
    return facts


def _count_rows(db: Database, relation: Relation) -> int:
    """Net rows: the sum of multiplicities, of the shown groups where a view is stored by group."""
    grouped = relation.name in db.engine.catalog.grouped
    where = ' WHERE "#v"' if grouped else ""
    reader = db.warehouse.reader()
    try:
        found = reader.execute(
            f'SELECT coalesce(sum("#n"), 0)::BIGINT FROM {sql(store_table(relation.name))}{where}'
        ).fetchone()
    finally:
        reader.close()
    return int(found[0]) if found else 0


def _show(db: Database, statement: s.Show) -> Result:
    pattern = statement.pattern.replace("%", "*") if statement.pattern else "*"
    what = statement.what.upper()
    if what == "EPOCHS":
        reader = db.warehouse.reader()
        table = reader.sql("SELECT number, clock, changes FROM hw.epochs ORDER BY number").to_arrow_table()
        reader.close()
        return _result("SHOW EPOCHS", _rows(table.num_rows), table=table)
    if what == "MAPS":
        rows = [
            {
                "view": view.name,
                "map": one.name,
                "stored": "groups" if one.present else "rows",
                "definition": str(one.definition),
            }
            for view in db.engine.catalog
            if view.program
            for one in view.program.maps
        ]
        return _table("SHOW MAPS", rows, ("view", "map", "stored", "definition"))
    kinds = {"TABLES": "table", "STREAMS": "stream", "VIEWS": "view"}
    rows = [
        {"name": one.name, "kind": one.kind.value, "state": _state(one)}
        for one in db.engine.catalog
        if kinds.get(what, one.kind.value) == one.kind.value and fnmatch.fnmatch(one.folded, pattern.lower())
    ]
    return _table(f"SHOW {what}", rows, ("name", "kind", "state"))


def _state(relation: Relation) -> str | None:
    if relation.kind is not Kind.VIEW:
        return None
    return "suspended" if relation.suspended else "current"


def _describe(db: Database, statement: s.Describe) -> Result:
    relation = _find(db, statement.name)
    rows = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": f.nullable,
            "key": f.name in relation.key,
        }
        for f in relation.fields
    ]
    out = _table("DESCRIBE", rows, ("column", "type", "nullable", "key"))
    from dataclasses import replace

    about = f"{relation.kind.value} {relation.name}"
    if relation.suspended:
        about += f", suspended after epoch {relation.stopped}: {relation.suspended}"
    return replace(out, message=about)


def _table(statement: str, rows: list[dict[str, object]], columns: tuple[str, ...]) -> Result:
    table = pa.table({name: [row[name] for row in rows] for name in columns})
    return _result(statement, _rows(len(rows)), table=table)


# -- explaining -----------------------------------------------------------------------------------------------------------


def explain_text(db: Database, text: str) -> Explanation:
    """EXPLAIN of a view's name or of a query."""
    relation = db.engine.catalog.find(text.strip())
    if relation is not None:
        return _explain_relation(db, relation)
    statements = parse(text if text.strip().upper().startswith("EXPLAIN") else f"EXPLAIN {text}")
    if len(statements) != 1 or not isinstance(statements[0], s.Explain):
        raise UserError("HW106", "explain takes the name of a view, or one query")
    try:
        return explain_statement(db, statements[0])
    except HeadwaterError as error:
        raise error.at(None, statements[0].source) from error.__cause__


def explain_statement(db: Database, statement: s.Explain) -> Explanation:
    if isinstance(statement.target, s.Name):
        return _explain_relation(db, _find(db, statement.target))
    strategy, _ = _options(statement.options)
    return explain_program(db, compile_view("query", _lower(db, statement.target, statement), strategy))


def _explain_relation(db: Database, relation: Relation) -> Explanation:
    if relation.program is None:
        raise UserError(
            "HW104", f"{relation.name} is a {relation.kind.value}: only views have programs", hint="name a view"
        )
    notes = (f"suspended after epoch {relation.stopped}: {relation.suspended}",) if relation.suspended else ()
    return explain_program(db, relation.program, notes)


def explain_program(db: Database, program: Program, notes: tuple[str, ...] = ()) -> Explanation:
    """A program with what the catalogue and the emitter know of it."""
    catalog = db.engine.catalog
    own = frozenset(one.name for one in program.maps if one.present is not None)
    emitter = Emitter(catalog.grouped | own)
    steps = tuple(
        _pretty(step_statement(one, program.map(one.target), emitter).fill.more)
        for one in program.statements
        if isinstance(one, Add)
    )
    maps = {one.name: map_statements(program, one, emitter) for one in program.maps}
    emitted = EmittedSQL(
        steps,
        {name: _pretty(one.settle.more) for name, one in maps.items()},
        {name: _pretty(one.append) for name, one in maps.items()},
    )
    inputs: list[InputNote] = []
    for name in program.inputs:
        relation = catalog.find(name)
        assert relation is not None
        kept = catalog.keeps(relation) or name in program.stored_reads
        inputs.append(InputNote(relation.name, relation.kind.value, kept))
    if any(program.recomputes(one.name) for one in program.maps):
        notes = (
            *notes,
            f"{program.view} re-reads {', '.join(program.inputs)} whole at every change: strategy recompute",
        )
    return Explanation(program, tuple(inputs), emitted, notes)


def _pretty(text: str) -> str:
    import sqlglot

    return sqlglot.parse_one(text, dialect="duckdb").sql(dialect="duckdb", pretty=True)
