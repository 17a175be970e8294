"""What the warehouse says of programs that run in tasks: a section of EXPLAIN, and what lies away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.algebra.scalars import substitute
from headwater.emit.layout import key_column
from headwater.emit.maintain import Columns, row_columns, stored_columns
from headwater.emit.scalars import duckdb_type
from headwater.engine.away import FOLDER, Away
from headwater.engine.placing import Plan, Room, pending_columns
from headwater.engine.rounds import Job
from headwater.plan.cost import Costing
from headwater.plan.explain_tasks import AtHome, Exchange, RoomNote, TaskNotes
from headwater.plan.program import Map, Program
from headwater.plan.spread import Spread
from headwater.plan.statistics import Observed
from headwater.planning import surroundings
from headwater.serve.sizes import store_sizes, width_of
from headwater.store.catalog import Catalog, Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: Bytes that a text or a collection is taken for where none is there to be looked at.
_TEXT_BYTES = 20


def place_facts(db: Database) -> dict[str, object]:
    """What status says of where things lie away: in how many parts, and where if not beside the warehouse."""
    away, folder = db.engine.away, db.warehouse.folder
    if away is None:
        return {}
    beside = folder is not None and Path(away.folder) == folder.resolve() / FOLDER
    elsewhere = {} if beside or folder is None else {"segments": away.folder}
    return {"partitions": away.partitions, **elsewhere}


def away_facts(db: Database, relation: Relation) -> dict[str, object]:
    """What status says of what lies away of a view: its rows, bytes and segments, with those of maps that it needs."""
    away = db.engine.away
    if away is None or (relation.program is None and relation.parts is None):
        return {}
    names = [one.name for one in relation.program.maps] if relation.program is not None else [relation.name]
    with db.engine.lock:
        copies = [copy for name in names if away.holds(name) for copy in away.segments.copies_of(name)]
        segments = [one for copy in copies for one in away.segments.of(copy)]
    if not copies:
        return {}
    rows, size = sum(one.rows for one in segments), sum(one.size for one in segments)
    return {"away": {"rows": rows, "bytes": size, "segments": len(segments)}}


def task_notes(db: Database, relation: Relation) -> TaskNotes | None:
    """How the program of a view is spread over tasks; None if it is not."""
    engine = db.engine
    with engine.lock:
        away = engine.away
        if away is None or relation.suspended or (relation.program is None and relation.parts is None):
            return None
        return _Notes(db, relation, away, away.jobs(engine.schedule, engine.catalog)).notes()


class _Notes:
    def __init__(self, db: Database, relation: Relation, away: Away, jobs: list[Job]) -> None:
        self._away, self._jobs = away, [one for one in jobs if one.plan is not None]
        self._undivided = jobs[0].undivided
        self._catalog: Catalog = db.engine.catalog
        self._maps = {one.name: one for each in self._catalog.programs for one in each.maps}
        program = relation.program
        if program is not None:
            self._views, made, inputs = {relation.name}, [one.name for one in program.maps], list(program.inputs)
        else:
            of_parts = [one for one in self._catalog if relation.name in (one.name, one.helper)]
            self._views = {one.name for one in of_parts}
            made = [one.name for one in of_parts]
            inputs = sorted({name for one in of_parts if one.parts for name in one.parts.inputs} - self._views)
        read = [self._catalog.find(name) for name in inputs]
        #: The synchronised relations that it reads, by name.
        self._held = {one.name: one for one in read if one is not None and one.policy is not None}
        self._mine, self._inputs = [*made, *self._held], inputs
        self._expected = _expected(program, surroundings(db).observed) if program is not None else {}
        self._sizes = store_sizes(db.warehouse, inputs)

    def notes(self) -> TaskNotes:
        rooms: list[RoomNote] = []
        exchanges: list[Exchange] = []
        stages: list[tuple[int, ...]] = []
        before = 0
        for job in self._jobs:
            assert job.placed is not None
            assert job.plan is not None
            found = [self._room(one, job.placed, before) for one in job.placed.rooms.values()]
            rooms += [one for one in found if one is not None]
            there = {(one.stage - before, one.room) for one in found if one is not None}
            exchanges += self._exchanges(job, before, there)
            levels = len(job.plan.levels)
            stages.append(tuple(range(before + 1, before + levels + 1)))
            before += levels
        return TaskNotes(self._away.partitions, tuple(stages), tuple(rooms), tuple(exchanges), tuple(self._at_home()))

    # -- rooms ---------------------------------------------------------------------------------------------------------

    def _room(self, room: Room, placed: Plan, before: int) -> RoomNote | None:
        mine = [one for one in room.actions if one.target in self._mine]
        if not mine:
            return None
        stores = sorted({name for one in mine for name in one.stores})
        follows: dict[str, dict[str, None]] = {}
        for one in mine:
            if one.trigger is not None:
                follows.setdefault(one.target, {})[one.trigger.statement.on] = None
        done = [one.target for one in mine if one.trigger is None]
        built = [name for name in done if name not in self._maps and name not in self._held]
        settled = [name for name in done if name not in built]
        targets = {one.target for one in room.actions}
        others = [
            view.name
            for view in self._catalog
            if view.name not in self._views and not view.suspended and targets & _touches(view)
        ]
        return RoomNote(
            before + room.level,
            room.number,
            tuple((name, self._spread(name, room.spreads[name])) for name in stores),
            tuple((name, self._spread(name, placed.spreads[name])) for name in settled),
            tuple((name, tuple(on)) for name, on in follows.items()),
            tuple(others),
            tuple((name, one.policy.clause) for name, one in self._held.items() if one.policy and name in settled),
            tuple((name, self._spread(name, placed.spreads[name])) for name in built),
        )

    def _spread(self, relation: str, spread: Spread) -> str:
        """How a relation is spread, by the names that people know."""
        one = self._maps.get(relation)
        if one is None or not spread.keys:
            return str(spread)
        keys = one.present.sums.keys if one.present is not None else one.keys or ()
        names = {key_column(i): key for i, (_, key) in enumerate(keys)}
        return str(Spread(tuple(substitute(key, names) for key in spread.keys)))

    # -- exchanges -----------------------------------------------------------------------------------------------------

    def _exchanges(self, job: Job, before: int, there: set[tuple[int, int]]) -> list[Exchange]:
        assert job.plan is not None
        assert job.placed is not None
        found: list[Exchange] = []
        for relation, ships in job.plan.feeds.items():
            for ship in ships:
                if (ship.level, ship.room) in there and relation in self._read(job.placed, (ship.level, ship.room)):
                    spread = job.placed.rooms[ship.level, ship.room].spreads[relation]
                    found.append(self._exchange(relation, "change", 0, before + ship.level, ship.room, spread))
        for level, rooms in enumerate(job.plan.levels, 1):
            for room in rooms:
                if (level, room.number) not in there:
                    continue
                for ship, name in zip(room.ships, _pending(job.placed, (level, room.number)), strict=True):
                    if name in self._mine:
                        spread = job.placed.spreads[name]
                        target = before + ship.level
                        found.append(self._exchange(name, "pending", before + level, target, ship.room, spread))
                for step in room.steps:
                    for ship in step.ships:
                        address = ship.level, ship.room
                        if address in there and step.relation in self._read(job.placed, address):
                            spread = job.placed.rooms[address].spreads[step.relation]
                            source, target = before + level, before + ship.level
                            found.append(self._exchange(step.relation, "change", source, target, ship.room, spread))
        return found

    def _read(self, placed: Plan, address: tuple[int, int]) -> set[str]:
        """The relations that something is done with in a room for the view."""
        mine = [one for one in placed.rooms[address].actions if one.target in self._mine]
        return {name for one in mine for name in one.spreads}

    def _exchange(self, relation: str, what: str, source: int, target: int, room: int, spread: Spread) -> Exchange:
        known = self._expected.get(relation)
        rows = known.rate if known is not None else None
        copies = self._away.partitions if spread.keys is None else 1
        size = round(rows * self._width(relation, what) * copies) if rows is not None else None
        return Exchange(relation, what, source, target, room, self._spread(relation, spread), rows, size)

    def _width(self, relation: str, what: str) -> float:
        """About how many bytes a row of a change has."""
        measured = self._sizes.get(relation) if relation not in self._maps else None
        if measured is not None and measured.rows:
            return measured.bytes / measured.rows
        return sum(width_of(duckdb_type(of).sql("duckdb")) or _TEXT_BYTES for _, of in self._columns(relation, what))

    def _columns(self, relation: str, what: str) -> Columns:
        one: Map | None = self._maps.get(relation)
        if one is not None:
            return pending_columns(one) if what == "pending" else stored_columns(one)
        found = self._catalog.find(relation)
        return row_columns(found.fields) if found is not None else ()

    # -- at home -------------------------------------------------------------------------------------------------------

    def _at_home(self) -> list[AtHome]:
        away = {name for job in self._jobs for name in job.names}
        found = []
        sources = [one.of for one in self._held.values() if one.of is not None]
        for name in dict.fromkeys((*self._inputs, *sources, *self._mine)):
            if name not in away:
                found.append(AtHome(name, self._why(name)))
        return found

    def _why(self, name: str) -> str:
        relation = self._catalog.find(name)
        if relation is not None and relation.parts is not None:
            return self._undivided.get(name, "a view of parts, which are built here one after the other")
        if relation is not None and relation.program is None:
            return f"a {relation.kind.value}: its changes come here first"
        return "which is read amid the steps of an epoch"


def _touches(view: Relation) -> set[str]:
    """What is done for a view: in rooms where nothing of this is settled or followed, nothing is."""
    return {*(one.name for one in view.program.maps), *view.program.inputs} if view.program is not None else {view.name}


def _expected(program: Program, observed: Mapping[str, Observed]) -> dict[str, Observed]:
    """How fast inputs change, as far as that is known, and maps, as far as that follows from it."""
    costing = Costing(program, observed)
    costing.total()
    names = [*program.inputs, *(one.name for one in program.maps)]
    return {name: costing.observed(name) for name in names}


def _pending(placed: Plan, address: tuple[int, int]) -> list[str]:
    """The maps for which something is pending in a room, and settled in another one, as `RoomPlan.ships` has them."""
    targets = dict.fromkeys(one.target for one in placed.rooms[address].actions)
    return [name for name in targets if placed.homes[name] != address]  # a view of parts is where it is built
