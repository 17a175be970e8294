"""Creating, dropping and rebuilding relations. Each is one transaction: done whole, or not at all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import duckdb

from headwater.algebra.parts import PART
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, MULTIPLICITY, changes_of
from headwater.emit.maintain import create_map, create_store, row_columns, stored_columns
from headwater.emit.synchronise import create_waiting, first_rows, waiting_of
from headwater.engine import faults, part_book
from headwater.engine.changelogs import create_kept, keep_contents
from headwater.engine.dating import Coming
from headwater.engine.engine import Engine, Epoch, undoing
from headwater.engine.failures import NotPlanned, ViewFailed
from headwater.engine.filling import Filling, fill, plan_filling
from headwater.engine.parts import PartRound, PartStatements
from headwater.engine.rebuild import Rebuild, current_maps, lost_stream, missed_stream, plan_rebuild
from headwater.errors import UserError
from headwater.plan.program import Program
from headwater.plan.widening import Widened, widened
from headwater.sql.names import fold
from headwater.store import catalog as catalogs
from headwater.store.catalog import RETAIN_ALL, Catalog, Index, Relation


def create_base(engine: Engine, relation: Relation) -> None:
    """Make a stream or a table."""
    after = engine.catalog.with_added(relation)
    with engine.transaction(landed=lambda: engine.catalog.find(relation.name) is not None):
        if after.keeps(relation):
            engine.connection.execute(_store_of(relation))
        if relation.sequence is not None:
            engine.connection.execute(create_store(relation.buried, row_columns(relation.buried_fields)))
        if relation.keeps_late:
            engine.connection.execute(create_store(relation.late, row_columns(relation.late_fields)))
        if relation.changes is not None:
            engine.connection.execute(create_kept(relation))
        engine.change_catalog(after)
    engine.adopt(after)


def create_part_views(engine: Engine, relations: Sequence[Relation]) -> None:
    """Make views of parts, each of which may read those before it, and build the parts that are due: all or none."""
    with engine.tracking(relations[-1].name):
        try:
            _create_part_views(engine, relations, net=False)
        except (ViewFailed, NotPlanned):
            try:
                with engine.warehouse.cautious_planning():
                    _create_part_views(engine, relations, net=True)
            except ViewFailed as failed:
                raise UserError(
                    failed.code,
                    f"view {failed.view} cannot be computed from the present rows: {failed.reason}",
                    hint="the view was not created",
                ) from failed


def _create_part_views(engine: Engine, relations: Sequence[Relation], net: bool) -> None:
    engine.warehouse.plan_quickly(False)
    after = engine.catalog
    for relation in relations:
        after = after.with_added(relation)
    with undoing() as begun, engine.transaction(landed=lambda: engine.catalog.find(relations[-1].name) is not None):
        kept = list(_newly_kept(engine.catalog, after))
        for stream in kept:
            engine.connection.execute(_store_of(stream))
            part_book.erase_parts(engine.connection, stream.name)
            after = after.with_changed(replace(stream, begins=engine.epoch))
        partly = list(_stored_in_part(engine, relations))
        for stream in partly:
            part_book.erase_parts(engine.connection, stream.name)
            after = after.with_changed(replace(stream, whole=engine.epoch))
        round_ = PartRound(
            engine.connection,
            after,
            engine.workspace(),
            engine.book,
            engine.epoch,
            engine.append_part,
            Coming(),
            is_away=engine.is_view_away,
        )
        begun.append(round_)
        for stream in (*kept, *partly):
            round_.begin_anew(stream)
        for relation in relations:
            engine.connection.execute(_store_of(relation))
            if relation.changes is not None:
                engine.connection.execute(create_kept(relation))
            round_.begin(relation, PartStatements(relation, Emitter(after.grouped, net)))
            faults.reach("view filled")
        round_.save()
        engine.change_catalog(after)
    engine.adopt(after)


def _stored_in_part(engine: Engine, views: Sequence[Relation]) -> Iterable[Relation]:
    """Streams that some views of parts read, of which only what ordinary views could use was stored so far."""
    read = {name for one in views for name in one.reads}
    for stream in engine.catalog:
        parted = stream.name in read and stream.flows and stream.length is not None
        if parted and engine.catalog.stored_whole_since(stream, engine.epoch) != stream.whole:
            yield stream


def create_view(engine: Engine, relation: Relation, made: Sequence[Relation] = ()) -> None:
    """Make a view and fill it from what its inputs hold; `made` are relations that it reads and that are made first."""
    assert relation.program is not None
    wide = Widened(relation.program)
    if relation.lazy:
        wide = widened(relation.program, engine.catalog.programs, engine.epoch)
        relation = replace(relation, program=wide.program)
    with engine.tracking(relation.name):
        _create_view_carefully(engine, relation, needed(relation.program, made), wide)


def needed(program: Program | None, made: Sequence[Relation]) -> list[Relation]:
    """Of some relations those that a program reads, and those that these follow, in order."""
    read = set(program.inputs) if program is not None else set()
    for one in made:
        read |= set(one.reads) if one.name in read else set()
    return [one for one in made if one.name in read and one.policy is None] + [
        one for one in made if one.name in read and one.policy is not None
    ]


def _create_view_carefully(engine: Engine, relation: Relation, made: Sequence[Relation], wide: Widened) -> None:
    try:
        _create_view(engine, relation, made, wide, net=False)
    except (ViewFailed, NotPlanned):  # perhaps only over a row that is gone already
        try:
            with engine.warehouse.cautious_planning():
                _create_view(engine, relation, made, wide, net=True)
        except ViewFailed as failed:
            raise UserError(
                failed.code,
                f"view {relation.name} cannot be computed from the present rows: {failed.reason}",
                hint="the view was not created",
            ) from failed


def _create_view(engine: Engine, relation: Relation, made: Sequence[Relation], wide: Widened, net: bool) -> None:
    assert relation.program is not None
    engine.warehouse.plan_quickly(False)
    after = engine.catalog
    for other in engine.catalog:
        if other.program is not None and any(one.name in wide.maps for one in other.program.maps):
            after = after.with_changed(replace(other, program=wide.of(other.program)))
    for new in (*made, relation):
        after = after.with_added(new)
    after = after.noting_partial(engine.epoch)
    with engine.transaction(landed=lambda: engine.catalog.find(relation.name) is not None):
        for new in made:
            _make_input(engine, new, after)
        for stream in _newly_kept(engine.catalog, after):
            engine.connection.execute(_store_of(stream))
            after = after.with_changed(replace(stream, begins=engine.epoch))
        for name in wide.maps:  # nothing has come to them yet
            engine.drop_store(name)
        if relation.changes is not None:
            engine.connection.execute(create_kept(relation))
        rebuild = replace(plan_rebuild(relation, after), empty=relation.changes is None)
        in_tasks = _in_tasks(engine, made, wide, rebuild, net)
        if isinstance(in_tasks, Filling):
            fill(engine, relation.program, in_tasks, after)
            if relation.changes is not None:
                engine.connection.execute(keep_contents(relation, Emitter(after.grouped), engine.epoch))
        else:
            there = engine.catalog.map_names - wide.maps.keys()
            for one in relation.program.maps:
                if one.name not in there:
                    engine.connection.execute(create_map(one))
            anew = {relation.name: rebuild}
            engine.flow(engine.schedule_for(after, net), engine.workspace(), engine.epoch, anew, net)
        faults.reach("view filled")
        engine.change_catalog(after)
    for name in wide.maps:
        engine.forget_store(name)
    engine.waiting.begin([new.name for new in made if new.policy is not None])
    engine.adopt(after)


def _in_tasks(engine: Engine, made: Sequence[Relation], wide: Widened, rebuild: Rebuild, net: bool) -> Filling | str:
    """How the maps of a new view are filled in tasks; or why that is done at home."""
    if engine.away is None:
        return "programs do not run in tasks"
    if net:
        return "it has failed in tasks, perhaps on rows that are never there together"
    if made or wide.maps:
        return "what it reads is made with it, or is stored otherwise from now on"
    return plan_filling(engine, rebuild.program, rebuild.maps, rebuild.catalog)


def _make_input(engine: Engine, relation: Relation, after: Catalog) -> None:
    """Make the stores of a relation that a view needs first, and fill them."""
    if after.keeps(relation):
        engine.connection.execute(_store_of(relation))
    if relation.policy is None or relation.of is None:
        return
    engine.connection.execute(create_waiting(relation.name, relation.fields))
    if not after.keeps(relation) or (relation.flows and relation.retain is None):
        return
    emitter = Emitter(after.grouped, net=True)
    since, epoch = first_epoch_seen(engine, relation), None if relation.flows else engine.epoch
    engine.connection.execute(first_rows(relation.name, relation.of, relation.fields, since, epoch, emitter))


def drop(engine: Engine, relation: Relation, cascade: bool) -> list[str]:
    """Drop a relation, and with `cascade` what is over it; returns the names of all that went."""
    helpers = [one for one in engine.catalog if one.helper is not None and fold(one.helper) == relation.folded]
    found = {one.folded: one for each in (relation, *helpers) for one in engine.catalog.all_dependents(each.name)}
    own = {one.folded for one in (relation, *helpers)}
    dependents = [one for one in engine.catalog if one.folded in found and one.folded not in own]
    views = [one for one in dependents if one.policy is None]
    if views and not cascade:
        names = ", ".join(one.name for one in views)
        raise UserError(
            "HW105",
            f"{relation.name} is read by {names}",
            hint=f"drop what reads it first, or DROP {relation.kind.value.upper()} {relation.name} CASCADE",
        )
    gone = own | {one.folded for one in dependents}
    gone |= {one.folded for one in engine.catalog if one.helper is not None and fold(one.helper) in gone}
    gone |= engine.catalog.unread(gone)
    going = [one for one in engine.catalog if one.folded in gone]
    after = engine.catalog.without(gone).noting_partial(engine.epoch)
    stores = [name for one in going for name in _stores_of(one) if name not in after.map_names]
    with engine.transaction(landed=lambda: engine.catalog.find(relation.name) is None):
        for name in stores:
            engine.drop_store(name)
        for one in going:
            if one.time is not None or one.length is not None:
                part_book.erase(engine.connection, one.name)
        for stream in _newly_kept(after, engine.catalog):
            stores.append(stream.name)
            if after.find(stream.name):
                engine.drop_store(stream.name)
        engine.change_catalog(after)
    for name in stores:
        engine.forget_store(name)
    for one in going:
        engine.waiting.end(one.name)
        engine.book.forget(one.name)
    engine.adopt(after)
    for one in going:
        engine.seen.forget(one.name)
    engine.hub.drop({one.name for one in going})
    return [one.name for one in (relation, *views)]


def create_index(engine: Engine, relation: Relation, index: Index) -> None:
    """Note an index in the catalogue; its copy is made afterwards, and again after a restart."""
    after = engine.catalog.with_changed(replace(relation, indexes=(*relation.indexes, index)))
    with engine.transaction(landed=lambda: engine.catalog.find_index(index.name) is not None):
        engine.change_catalog(after)
    engine.adopt(after)


def drop_index(engine: Engine, relation: Relation, index: Index) -> None:
    """Forget an index; its copy goes if no epoch uses it."""
    left = tuple(one for one in relation.indexes if one != index)
    after = engine.catalog.with_changed(replace(relation, indexes=left))
    with engine.transaction(landed=lambda: engine.catalog.find_index(index.name) is None):
        engine.change_catalog(after)
    engine.adopt(after)


def _stores_of(relation: Relation) -> list[str]:
    """The tables of a relation; those of a view may be in use by others."""
    stores = [one.name for one in relation.program.maps] if relation.program is not None else [relation.name]
    if relation.policy is not None:
        stores.append(waiting_of(relation.name))
    if relation.sequence is not None:
        stores.append(relation.buried)
    if relation.keeps_late:
        stores.append(relation.late)
    if relation.changes is not None:
        stores.append(changes_of(relation.name))
    return stores


def policies_of(engine: Engine, relation: Relation) -> frozenset[str]:
    """The policies by which a view's inputs are synchronised, by their text."""
    inputs = [engine.catalog.find(name) for name in relation.program_inputs]
    return frozenset(str(one.policy) for one in inputs if one is not None and one.policy is not None)


def refresh(engine: Engine, relation: Relation) -> Epoch:
    """Bring a view up to date, as an epoch of its own.

    If its inputs are synchronised, they take what waits for them now. If they are not, or the view is suspended, it is
    evaluated anew from its inputs; a suspended view follows them again.
    """
    if relation.parts is not None:
        after = engine.catalog.with_changed(catalogs.resume(relation)) if relation.suspended else engine.catalog
        with engine.tracking(relation.name):
            return engine.run([], after, rebuild=relation.name)
    assert relation.program is not None
    policies = policies_of(engine, relation)
    damage: UserError | None = None
    if policies and not relation.suspended:
        try:
            return engine.run([], ticks=policies)
        except UserError as error:
            if error.code != "HW409":
                raise
            damage = error  # what cannot be read is made anew
    lost = lost_stream(relation.program, engine.catalog)
    if lost is not None and damage is not None:
        raise damage
    if lost is not None:
        raise UserError(
            "HW505",
            f"view {relation.name} cannot be evaluated anew: rows that it has seen of stream {lost} are not kept",
            hint="drop and create the view; a stream with RETAIN ALL keeps all rows",
        )
    after = engine.catalog.with_changed(catalogs.resume(relation))
    with engine.tracking(relation.name):
        return engine.run([], after, rebuild=relation.name, ticks=policies)


def replan(engine: Engine, relation: Relation, program: Program) -> None:
    """Maintain a view by another program from now on. What it shows stays as it is.

    Maps that the new program has in common with the old one, or with other views, stay; others are filled from what is
    stored.
    """
    after, new, stale = _needs(engine, relation, program)
    try:
        with engine.tracking(relation.name), engine.warehouse.cautious_planning():
            try:
                _replan(engine, relation, after, new, stale, in_tasks=engine.away is not None)
            except ViewFailed:
                if engine.away is None:
                    raise
                _replan(engine, relation, after, new, stale, in_tasks=False)
    except ViewFailed as failed:
        raise UserError(
            failed.code,
            f"view {relation.name} cannot be computed by strategy {program.strategy}: {failed.reason}",
            hint="it goes on as it was",
        ) from failed


@contextmanager
def trial(engine: Engine, relation: Relation, program: Program) -> Iterator[Catalog]:
    """Maintain a view by another program, in a transaction that is undone: to see what that takes.

    Yields:
        The catalogue as it would be.
    """
    after, new, stale = _needs(engine, relation, program)
    try:
        with engine.rehearsal():
            with engine.warehouse.cautious_planning():
                _make_maps(engine, relation, after, new, stale)
            yield after
    finally:
        for name in new:
            engine.access.forget(name)


def _needs(engine: Engine, relation: Relation, program: Program) -> tuple[Catalog, frozenset[str], frozenset[str]]:
    """The catalogue with another program for a view, maps that are to be made for it, and those that are to be filled.

    Raises:
        UserError: HW506, what they would be filled from is gone.
    """
    after = engine.catalog.with_changed(replace(relation, program=program)).noting_partial(engine.epoch)
    new, stale = _to_fill(engine, relation, program)
    lost = lost_to(engine, relation, program)
    if lost is not None:
        raise UserError(
            "HW506",
            f"view {relation.name} cannot get another plan: rows that it has seen of stream {lost} are not kept",
            hint="drop and create the view; a stream with RETAIN ALL keeps all rows",
        )
    return after, new, stale


def lost_to(engine: Engine, relation: Relation, program: Program) -> str | None:
    """A stream of which a view has seen rows that are gone and that another program needs, if there is one."""
    after = engine.catalog.with_changed(replace(relation, program=program))
    _, stale = _to_fill(engine, relation, program)
    filled = replace(program, maps=tuple(one for one in program.maps if one.name in stale), upper=None, held=())
    lost = lost_stream(filled, engine.catalog)
    lost = lost or (missed_stream(program, engine.catalog) if stale else None)
    return lost or next((one.name for one in _newly_kept(engine.catalog, after)), None)


def _to_fill(engine: Engine, relation: Relation, program: Program) -> tuple[frozenset[str], frozenset[str]]:
    """Maps that another program of a view needs made, and those that it needs filled."""
    assert relation.program is not None
    maps = {one.name for one in program.maps}
    new = maps - engine.catalog.map_names
    if not program.lazy and not relation.lazy and _is_stored_otherwise(relation.program, program):
        new.add(relation.name)
    return frozenset(new), frozenset(new | (maps - current_maps(engine.catalog)))


def _is_stored_otherwise(before: Program, after: Program) -> bool:
    return stored_columns(before.map(before.view)) != stored_columns(after.map(after.view))


def _replan(
    engine: Engine, relation: Relation, after: Catalog, new: frozenset[str], stale: frozenset[str], in_tasks: bool
) -> None:
    """Make the new maps, fill the stale ones, and drop what nobody needs any more."""
    with engine.transaction(landed=lambda: engine.catalog.version >= after.version):
        _make_maps(engine, relation, after, new, stale, in_tasks)
        gone = engine.catalog.map_names - after.map_names
        for name in gone:
            engine.drop_store(name)
        emptied = {stream.name for stream in _newly_kept(after, engine.catalog)}
        for name in emptied:
            engine.drop_store(name)
        engine.change_catalog(after)
        if relation.timing is not None:
            engine.seen.note(engine.connection, after.timed, relation.name)
    for name in gone | new | emptied:
        engine.forget_store(name)
    engine.spent.pop(relation.name, None)
    engine.seen.reads.pop(relation.name, None)  # the next decision goes by what is seen from now on
    engine.forget_statements()
    engine.adopt(after)


def _make_maps(
    engine: Engine,
    relation: Relation,
    after: Catalog,
    new: frozenset[str],
    stale: frozenset[str],
    in_tasks: bool = False,
) -> None:
    """Make the maps that a view needs, and fill those that are not up to date, inside the caller's transaction."""
    program = next(one.program for one in after if one.folded == relation.folded)
    assert program is not None
    engine.warehouse.plan_quickly(False)
    filling = plan_filling(engine, program, stale, after) if in_tasks else ""
    if isinstance(filling, Filling):
        fill(engine, program, filling, after)
        return
    if relation.name in new:
        engine.drop_store(relation.name)
    for one in program.maps:
        if one.name in new:
            engine.connection.execute(create_map(one))
    schedule = engine.schedule_for(after, net=True).without_triggers()
    rebuild = Rebuild(relation.name, program, after, stale, before=engine.catalog)
    engine.flow(schedule, engine.workspace(), engine.epoch, {relation.name: rebuild}, net=True)


def first_epoch_seen(engine: Engine, relation: Relation) -> int:
    """After which epoch a view created now sees a relation's rows; see `Scan.since`."""
    if not relation.flows:
        return 0
    if relation.retain == RETAIN_ALL:
        return relation.begins
    if relation.retain is None:
        return engine.epoch
    horizon = engine.present() - dt.timedelta(microseconds=int(relation.retain))
    reader = engine.warehouse.reader()  # threads that only read do not share the writer's connection
    try:
        return max(last_epoch_before(reader, horizon), relation.begins)
    finally:
        reader.close()


def last_epoch_before(reader: duckdb.DuckDBPyConnection, moment: dt.datetime) -> int:
    """The last epoch whose clock is before a moment; 0 if there is none."""
    query = "SELECT coalesce(max(number), 0) FROM hw.epochs WHERE clock < ?"
    found = reader.execute(query, [moment]).fetchone()
    return int(found[0]) if found else 0


def _store_of(relation: Relation) -> str:
    runs = frozenset({PART, MULTIPLICITY, EPOCH}) if relation.length is not None else frozenset[str]()
    return create_store(relation.name, row_columns(relation.fields), runs)


def _newly_kept(before: Catalog, after: Catalog) -> Iterable[Relation]:
    """Streams that `after` stores and `before` does not."""
    for relation in after:
        if relation.flows and after.keeps(relation):
            old = before.find(relation.name)
            if old is not None and not before.keeps(old):
                yield relation
