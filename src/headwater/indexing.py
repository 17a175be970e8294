"""CREATE INDEX, DROP INDEX and SHOW INDEXES."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.creating import find
from headwater.emit.probes import hashed
from headwater.engine import definitions
from headwater.engine.copying import bring_up_to_date
from headwater.engine.engine import index_path
from headwater.errors import NotSupported, UserError
from headwater.results import Result
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.store.catalog import Index, Relation

if TYPE_CHECKING:
    from headwater.database import Database


def create_index(db: Database, statement: s.CreateIndex) -> Result:
    """Note the index, and make its copy."""
    engine = db.engine
    with engine.lock:
        found = engine.catalog.find_index(statement.name.text)
        if found is not None and statement.if_not_exists:
            return Result("CREATE INDEX", f"{found[1].name} exists already")
        if found is not None:
            raise UserError(
                "HW345",
                f"there is an index named {found[1].name} already, on {found[0].name}",
                span=statement.name.span,
                hint="choose another name, or DROP INDEX it first",
            )
        relation = find(db, statement.relation)
        index = Index(statement.name.text, _columns(relation, statement))
        definitions.create_index(engine, relation, index)
        path = index_path(engine.catalog, relation, index)
    bring_up_to_date(engine, path)
    return Result("CREATE INDEX", f"created index {index.name} on {relation.name}")


def _columns(relation: Relation, statement: s.CreateIndex) -> tuple[str, ...]:
    """The columns of an index, if the relation can have it."""
    if relation.flows or relation.length is not None or relation.lazy:
        what = "has parts" if relation.length is not None else "is a stream that only grows"
        what = "is evaluated when it is read" if relation.lazy else what
        raise NotSupported(
            "HW283",
            f"{relation.name} {what}, and cannot have an index",
            span=statement.relation.span,
            hint="create it with REFRESH EVERY EPOCH" if relation.lazy else "a table, a keyed stream or a view can",
        )
    fields = {fold(f.name): f for f in relation.fields}
    out: list[str] = []
    for one in statement.columns:
        field = fields.get(fold(one.text))
        if field is None:
            hint = "its columns are " + ", ".join(f.name for f in relation.fields)
            raise UserError("HW101", f"{relation.name} has no column {one.text!r}", span=one.span, hint=hint)
        if not hashed(field.type):
            raise NotSupported(
                "HW283",
                f"{field.name} is {field.type}, by which an index cannot find rows",
                span=one.span,
                hint="leave the column out, or make a view with it as a DECIMAL or STRING",
            )
        out.append(field.name)
    return tuple(out)


def drop_index(db: Database, statement: s.DropIndex) -> Result:
    engine = db.engine
    with engine.lock:
        found = engine.catalog.find_index(statement.name.text)
        if found is not None and statement.relation is not None and found[0] != find(db, statement.relation):
            found = None
        if found is None and statement.if_exists:
            return Result("DROP INDEX", f"{statement.name.text} does not exist")
        if found is None:
            raise UserError(
                "HW345",
                f"there is no index named {statement.name.text!r}",
                span=statement.name.span,
                hint="SHOW INDEXES lists what exists",
            )
        definitions.drop_index(engine, *found)
    return Result("DROP INDEX", f"dropped {found[1].name}")


def index_facts(db: Database) -> list[dict[str, object]]:
    """The indexes of a warehouse, and whether they can be used now."""
    engine = db.engine
    out: list[dict[str, object]] = []
    for relation in engine.catalog:
        for one in relation.indexes:
            copy = engine.access.copies.get(index_path(engine.catalog, relation, one))
            facts = {"name": one.name, "relation": relation.name, "columns": ", ".join(one.columns)}
            state = "ready" if copy else "not used" if relation.lazy else "being made"
            out.append({**facts, "state": state, "rows": copy.rows if copy else None})
    return out
