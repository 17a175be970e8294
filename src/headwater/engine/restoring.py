"""Bringing home what lies away for a view that is evaluated anew, also where segments are damaged or gone.

A map of which no copy can be read is filled from its inputs as they were before the epoch: it follows them after every
epoch, so that is what it held. Nothing follows from that, and nobody is told of it. A synchronised relation, what waits
for it, and the relation that it stands for: of these three one follows from the other two. A view of parts is built
anew from its first part on, if nothing that its parts read was deleted.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.emit.duckdb import Emitter
from headwater.emit.maintain import create_map, create_store, row_columns
from headwater.emit.synchronise import first_rows, less, waiting_of
from headwater.engine.dating import Coming
from headwater.engine.holding import held_fields
from headwater.engine.parts import PartRound, PartStatements
from headwater.engine.reaching import read_by
from headwater.engine.rebuild import Rebuild, lost_stream
from headwater.engine.schedule import Schedule
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Relation

if TYPE_CHECKING:
    from headwater.engine.away import Away
    from headwater.engine.engine import Engine


def bring_home_for(engine: Engine, away: Away, after: Catalog, refreshed: str | None, changing: Set[str]) -> None:
    """Bring home what an epoch that evaluates views anew may change, inside its transaction.

    What it only reads stays where it is. If somebody asks for the epoch, what it reads or changes is looked at, and
    what is damaged of it is made anew, from what that follows from.

    Args:
        engine: whose.
        away: what lies away of it.
        after: the catalogue of the epoch.
        refreshed: the view that is refreshed because somebody asks for it.
        changing: what may change in the epoch.
    """
    resting = {each.name for one in after if one.program and one.suspended for each in one.program.maps}
    following = {each.name for one in after if one.program and not one.suspended for each in one.program.maps}
    there = away.relations - (resting - following)
    relations, lost = there & changing, set[str]()
    if refreshed is not None:
        damaged = _damaged(away, after, changing | _own(refreshed, after), there)
        lost = away.unreadable(damaged)
        relations |= damaged
    maps = {each.name: create_map(each) for program in after.programs for each in program.maps}
    maps |= {name: create_store(name, row_columns(fields)) for name, fields in held_fields(after).items()}
    parts = {one.name: one for one in after if one.parts is not None}
    made = {name: maps[name] for name in lost & maps.keys()}
    made |= {name: create_store(name, row_columns(parts[name].fields)) for name in lost & parts.keys()}
    away.settle_only(relations)
    away.bring_home(relations, made)
    for view in after:
        if view.name in lost and view.parts is not None:
            _build_anew(engine, away, view, after, lost & maps.keys())
    if lost & maps.keys():
        _fill(engine, after, lost & maps.keys())


def _own(view: str, after: Catalog) -> set[str]:
    """A view, and its maps: also those that others keep up to date."""
    relation = after.find(view)
    maps = relation.program.maps if relation is not None and relation.program is not None else ()
    return {view} | {one.name for one in maps}


def _damaged(away: Away, after: Catalog, changing: Set[str], there: Set[str]) -> set[str]:
    """What cannot be read, in a copy or in all of them, of what may change, of what is read for that, and so on."""
    seen, more, found = set[str](), set(changing), set[str]()
    more |= {name for one in changing for name in read_by(one, after)}
    while more:
        seen |= more
        new = away.damaged(more & there)
        found |= new
        more = {name for one in new for name in read_by(one, after)} - seen
    return found


def _build_anew(engine: Engine, away: Away, view: Relation, after: Catalog, maps: set[str]) -> None:
    """Build all parts of a view that are there by the book of parts."""
    assert view.parts is not None
    if view.suspended:
        raise _beyond(view, "nobody knows any more what it held when it was suspended")
    if maps & set(view.parts.inputs):
        raise _beyond(view, "neither can what it reads")
    book, name = engine.book, view.name
    held = book.rows.pop(name, {}), book.multiple.pop(name, set())
    try:
        means = engine.connection, after, engine.workspace(), book, engine.epoch, engine.append_part, Coming()
        round_ = PartRound(*means, is_away=engine.is_view_away)
        if not round_.build_anew(view, PartStatements(view, Emitter(after.grouped, net=True))):
            raise _beyond(view, "parts that it has read were deleted")
        if book.rows.get(name, {}) != held[0]:
            raise _beyond(view, "its parts would come out otherwise")
    finally:
        book.rows[name], book.multiple[name] = held
    away.note_multiple(name)


def _fill(engine: Engine, after: Catalog, lost: set[str]) -> None:
    """Fill what is lost, oldest first: what is younger may follow from it."""
    left = set(lost)
    schedule = engine.schedule_for(after, net=True).without_triggers()
    # Of others, which may lie away, nothing is written.
    filled = replace(schedule, stages=tuple(one for one in schedule.stages if one.name in lost))
    for view in after:
        if view.policy is not None:
            _fill_held(engine, view, after, schedule, lost)
            continue
        mine = {one.name for one in view.program.maps} & left if view.program is not None else set()
        if not mine or view.suspended:
            continue
        _check(engine, view, after, mine)
        assert view.program is not None
        rebuild = Rebuild(view.name, view.program, after, frozenset(mine))
        engine.flow(filled, engine.workspace(), engine.epoch, {view.name: rebuild}, net=True)
        left -= mine


def _fill_held(engine: Engine, relation: Relation, after: Catalog, schedule: Schedule, lost: set[str]) -> None:
    """Fill a synchronised relation, or what waits for it, with what its source holds, less what the other has."""
    mine = [name for name in (relation.name, waiting_of(relation.name)) if name in lost]
    if not mine:
        return
    assert relation.of is not None
    if relation.flows or len(mine) > 1:
        reason = "rows of a stream are not kept" if relation.flows else "what waits for it cannot be read, either"
        raise _beyond(relation, reason, "synchronised relation")
    [name] = mine
    other = waiting_of(relation.name) if name == relation.name else relation.name
    emitter, connection = Emitter(after.grouped, net=True), engine.connection
    connection.execute(first_rows(name, relation.of, relation.fields, 0, engine.epoch, emitter))
    connection.execute(less(name, other, relation.fields, engine.epoch))
    [follows] = [one.synchronised for one in schedule.stages if one.name == relation.name]
    if name != relation.name and follows is not None:
        for statement in follows.sql.add_up or ():
            connection.execute(statement)


def _check(engine: Engine, view: Relation, after: Catalog, lost: set[str]) -> None:
    """Refuse to make up what cannot be known."""
    assert view.program is not None
    stream = lost_stream(view.program, after)
    if stream is not None:
        raise _beyond(view, f"rows that it has seen of stream {stream} are not kept")
    before = engine.catalog.find(view.name)
    if before is None or not before.suspended or view.name not in lost:
        return
    followed = view.changes is not None or view.name in engine.hub.wanted
    if followed or any(view.name in one.reads for one in after):
        raise _beyond(view, "nobody knows any more what it held when it was suspended")


def _beyond(view: Relation, reason: str, kind: str = "view") -> UserError:
    return UserError(
        "HW409",
        f"segments of {kind} {view.name} cannot be read, and it cannot be evaluated anew: {reason}",
        hint="nothing changed; put the files back, or drop and create the view",
    )
