"""Creating, dropping and rebuilding relations. Each is one transaction: done whole, or not at all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import replace

from headwater.algebra.nodes import Node, Scan, Values, transform
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill, sql, store_table
from headwater.emit.maintain import create_store, map_statements, rebuild_statements, row_columns
from headwater.engine import faults
from headwater.engine.engine import Engine, Epoch, Rebuild
from headwater.engine.failures import ViewFailed
from headwater.engine.workspace import Workspace
from headwater.errors import UserError
from headwater.plan.program import Map, Program
from headwater.store import catalog as catalogs
from headwater.store.catalog import RETAIN_ALL, Catalog, Kind, Relation


def create_base(engine: Engine, relation: Relation) -> None:
    """Make a stream or a table."""
    after = engine.catalog.with_added(relation)
    with engine.transaction():
        if after.keeps(relation):
            engine.connection.execute(_store_of(relation))
        engine.change_catalog(after)
    engine.adopt(after)


def create_view(engine: Engine, relation: Relation) -> None:
    """Make a view and fill it from what its inputs hold."""
    try:
        _create_view(engine, relation, net=False)
    except ViewFailed:  # perhaps only over a row that is gone already
        try:
            _create_view(engine, relation, net=True)
        except ViewFailed as failed:
            raise UserError(
                failed.code,
                f"view {relation.name} cannot be computed from the present rows: {failed.reason}",
                hint="the view was not created",
            ) from failed


def _create_view(engine: Engine, relation: Relation, net: bool) -> None:
    assert relation.program is not None
    after = engine.catalog.with_added(relation)
    with engine.transaction():
        for stream in _newly_kept(engine.catalog, after):
            engine.connection.execute(_store_of(stream))
            after = after.with_changed(replace(stream, begins=engine.epoch))
        emitter = Emitter(after.grouped)
        for one in relation.program.maps:
            engine.connection.execute(map_statements(relation.program, one, emitter).create)
        workspace = Workspace(engine.connection)
        engine.flow(engine.schedule_for(after, net), workspace, engine.epoch, plan_rebuild(relation, after), net)
        faults.reach("view filled")
        engine.change_catalog(after)
    engine.adopt(after)


def drop(engine: Engine, relation: Relation, cascade: bool) -> list[str]:
    """Drop a relation, and with `cascade` the views over it; returns the names of all that went."""
    dependents = engine.catalog.all_dependents(relation.name)
    if dependents and not cascade:
        names = ", ".join(one.name for one in dependents)
        raise UserError(
            "HW105",
            f"{relation.name} is read by {names}",
            hint=f"drop what reads it first, or DROP {relation.kind.value.upper()} {relation.name} CASCADE",
        )
    going = [relation, *dependents]
    after = engine.catalog.without({one.folded for one in going})
    with engine.transaction():
        for one in going:
            names_stored = [m.name for m in one.program.maps] if one.program else [one.name]
            for name in names_stored:
                engine.connection.execute(f"DROP TABLE IF EXISTS {sql(store_table(name))}")
        for stream in _newly_kept(after, engine.catalog):
            if after.find(stream.name):
                engine.connection.execute(f"DROP TABLE IF EXISTS {sql(store_table(stream.name))}")
        engine.change_catalog(after)
    for one in going:
        engine.appended.pop(one.name, None)
    engine.adopt(after)
    return [one.name for one in going]


def refresh(engine: Engine, relation: Relation) -> Epoch:
    """Evaluate a view anew from its inputs, as an epoch of its own; a suspended view follows them again."""
    assert relation.program is not None
    lost = _lost(relation.program, engine.catalog)
    if lost is not None:
        raise UserError(
            "HW505",
            f"view {relation.name} cannot be evaluated anew: rows that it has seen of stream {lost} are not kept",
            hint="drop and create the view; a stream with RETAIN ALL keeps all rows",
        )
    after = engine.catalog.with_changed(catalogs.resume(relation))
    return engine.run([], after, plan_rebuild(relation, after))


def plan_rebuild(relation: Relation, catalog: Catalog) -> Rebuild:
    """How to evaluate each map of a view from what is stored now."""
    program = relation.program
    assert program is not None
    missing = _not_kept(program, catalog)

    def plan(net: bool) -> dict[str, tuple[Fill, ...]]:
        emitter = Emitter(catalog.grouped, net)
        return {
            one.name: rebuild_statements(Map(one.name, _without(one.definition, missing)), emitter)
            for one in program.maps
            if not program.recomputes(one.name)
        }

    return Rebuild(relation.name, plan)


def first_epoch_seen(engine: Engine, relation: Relation) -> int:
    """After which epoch a view created now sees a relation's rows; see `Scan.since`."""
    if relation.kind is not Kind.STREAM or relation.retain == RETAIN_ALL:
        return 0
    if relation.retain is None:
        return engine.epoch
    horizon = engine.clock() - dt.timedelta(microseconds=int(relation.retain))
    found = engine.connection.execute(
        "SELECT coalesce(max(number), 0) FROM hw.epochs WHERE clock < ?", [horizon]
    ).fetchone()
    return max(int(found[0]) if found else 0, relation.begins)


def _lost(program: Program, catalog: Catalog) -> str | None:
    """A stream of whose rows a view has seen some that are not stored, if there is one."""
    for one in program.maps:
        for scan in one.definition.walk():
            stream = catalog.find(scan.relation) if isinstance(scan, Scan) else None
            if stream is None or stream.kind is not Kind.STREAM or not isinstance(scan, Scan):
                continue
            if not catalog.keeps(stream) or scan.since < stream.begins:
                return stream.name
    return None


def _store_of(relation: Relation) -> str:
    return create_store(relation.name, row_columns(relation.fields))


def _not_kept(program: Program, catalog: Catalog) -> frozenset[str]:
    """Inputs whose past is gone: streams that store nothing."""
    inputs = [catalog.find(name) for name in program.inputs]
    return frozenset(one.name for one in inputs if one is not None and not catalog.keeps(one))


def _newly_kept(before: Catalog, after: Catalog) -> Iterable[Relation]:
    """Streams that `after` stores and `before` does not."""
    for relation in after:
        if relation.kind is Kind.STREAM and after.keeps(relation):
            old = before.find(relation.name)
            if old is not None and not before.keeps(old):
                yield relation


def _without(node: Node, missing: frozenset[str]) -> Node:
    """The tree with the relations that are not stored read as empty."""

    def empty(one: Node) -> Node:
        if isinstance(one, Scan) and one.relation in missing:
            return Values(tuple(replace(f) for f in one.schema), ())
        return one

    return transform(node, empty) if missing else node
