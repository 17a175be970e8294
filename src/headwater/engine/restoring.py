"""Bringing home what lies away for a view that is evaluated anew, also where segments are damaged or gone.

A map of which no copy can be read is filled from its inputs as they were before the epoch: it follows them after every
epoch, so that is what it held. Nothing follows from that, and nobody is told of it. A view of parts is built anew from
its first part on, if nothing that its parts read was deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.emit.duckdb import Emitter
from headwater.emit.maintain import create_map, create_store, row_columns
from headwater.engine.dating import Coming
from headwater.engine.parts import PartRound, PartStatements
from headwater.engine.rebuild import Rebuild, lost_stream
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Relation

if TYPE_CHECKING:
    from headwater.engine.away import Away
    from headwater.engine.engine import Engine


def bring_home_for(engine: Engine, away: Away, after: Catalog, refreshed: str | None) -> None:
    """Bring home what an epoch that evaluates views anew may need, inside its transaction.

    Args:
        engine: whose.
        away: what lies away of it.
        after: the catalogue of the epoch.
        refreshed: the view that is refreshed because somebody asks for it: what is damaged is made anew.
    """
    resting = {each.name for one in after if one.program and one.suspended for each in one.program.maps}
    following = {each.name for one in after if one.program and not one.suspended for each in one.program.maps}
    relations = away.relations - (resting - following)
    lost = away.unreadable(relations) if refreshed is not None else set()
    maps = {each.name: each for program in after.programs for each in program.maps}
    parts = {one.name: one for one in after if one.parts is not None}
    made = {name: create_map(maps[name]) for name in lost & maps.keys()}
    made |= {name: create_store(name, row_columns(parts[name].fields)) for name in lost & parts.keys()}
    away.bring_home(relations, made)
    for view in after:
        if view.name in lost and view.parts is not None:
            _build_anew(engine, away, view, after, lost & maps.keys())
    if lost & maps.keys():
        _fill(engine, after, lost & maps.keys())


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
        if not PartRound(*means).build_anew(view, PartStatements(view, Emitter(after.grouped, net=True))):
            raise _beyond(view, "parts that it has read were deleted")
        if book.rows.get(name, {}) != held[0]:
            raise _beyond(view, "its parts would come out otherwise")
    finally:
        book.rows[name], book.multiple[name] = held
    away.note_multiple(name)


def _fill(engine: Engine, after: Catalog, lost: set[str]) -> None:
    rebuilds: dict[str, Rebuild] = {}
    left = set(lost)
    for view in after:
        mine = {one.name for one in view.program.maps} & left if view.program is not None else set()
        if not mine or view.suspended:
            continue
        _check(engine, view, after, mine)
        assert view.program is not None
        rebuilds[view.name] = Rebuild(view.name, view.program, after, frozenset(mine))
        left -= mine
    schedule = engine.schedule_for(after, net=True).without_triggers()
    engine.flow(schedule, engine.workspace(), engine.epoch, rebuilds, net=True)


def _check(engine: Engine, view: Relation, after: Catalog, lost: set[str]) -> None:
    """Refuse to make up what cannot be known."""
    assert view.program is not None
    stream = lost_stream(view.program, after)
    if stream is not None:
        raise _beyond(view, f"rows that it has seen of stream {stream} are not kept")
    before = engine.catalog.find(view.name)
    if before is None or not before.suspended or view.name not in lost:
        return
    if view.changes is not None or any(view.name in one.reads for one in after):
        raise _beyond(view, "nobody knows any more what it held when it was suspended")


def _beyond(view: Relation, reason: str) -> UserError:
    return UserError(
        "HW409",
        f"segments of view {view.name} cannot be read, and it cannot be evaluated anew: {reason}",
        hint="nothing changed; put the files back, or drop and create the view",
    )
