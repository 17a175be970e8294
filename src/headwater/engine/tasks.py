"""What tasks are told to do: the plan of rooms as plain data, with every statement written out.

It is made once for a schedule, sent to workers as it is, and run by `headwater.engine.room`. Nothing in it depends on
the epoch; what does (its number, its clock, which segments count) comes beside it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.algebra.clock import CLOCK
from headwater.emit.layout import EPOCH, MULTIPLICITY, column, delta_table, name, pending_table, sql
from headwater.emit.maintain import Columns, create_store, row_columns, stored_columns
from headwater.emit.narrowing import Meeting, meetings_of, shared_meetings
from headwater.emit.scalars import duckdb_scalar, duckdb_type
from headwater.emit.synchronise import WAITING, waiting_of
from headwater.engine.holding import Holding, holding_of
from headwater.engine.part_orders import PartStep, part_step
from headwater.engine.placing import Copy, Plan, Room, pending_columns
from headwater.engine.schedule import Schedule, Stage, Trigger
from headwater.engine.shapes import living, shape_of
from headwater.plan.spread import Spread
from headwater.store.catalog import Catalog

#: The name under which a query finds how many partitions there are.
PARTITIONS = "partitions"


@dataclass(frozen=True)
class Shipment:
    """Rows of a temporary table that go to a room of a later level.

    Attributes:
        table: where they are, and where they go.
        level: of the room.
        room: its number.
        partition: the expression that says which partition a row goes to; None for all of them.
        columns: what is sent, in the order in which it is taken.
    """

    table: str
    level: int
    room: int
    partition: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Met:
    """A temporary table for what a change meets of a store; see `headwater.emit.narrowing`.

    Attributes:
        table: its name.
        store: the relation whose store it is.
        fill: makes it.
        readers: how many statements read it.
    """

    table: str
    store: str
    fill: str
    readers: int


@dataclass(frozen=True)
class Narrow:
    """A statement as it is when it reads what the change meets of some stores, and not these.

    Attributes:
        met: the tables that it reads.
        insert: the statement.
        coming: the same for a change that is rows that come, each once.
    """

    met: tuple[str, ...]
    insert: str
    coming: str


@dataclass(frozen=True)
class Run:
    """One statement that adds rows to a temporary table.

    Attributes:
        view: who is to blame if it fails.
        table: what it fills.
        insert: the statement.
        coming: the same for a change that is rows that come, each once.
        narrow: what it is for a change that is small beside what is stored, if others read the same.
    """

    view: str | None
    table: str
    insert: str
    coming: str | None = None
    narrow: Narrow | None = None


@dataclass(frozen=True)
class Step:
    """What happens in a room when it is a relation's turn.

    Attributes:
        relation: its name.
        delta: the table of its change.
        settle: fills that from what is pending, in a room where the relation is settled.
        due: whether to settle depends on rows in this table, or, where it is recomputed, on changes of `inputs`.
        inputs: of a map that is recomputed.
        runs: what follows from the change; of the clock, always.
        met: what these may read in place of stores.
        rows: the change, as it is stored, but for the epoch.
        append: whether the change is added to the store that lies here.
        segment: the copy to which the change is written, if this room writes it.
        ships: where the change goes.
        settled: this is the room where the relation is settled.
        holds: how it is, if it is a synchronised relation.
        parts: builds it part by part, if it is a view of parts.
    """

    relation: str
    delta: str
    settle: Run | None = None
    due: str | None = None
    inputs: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    rows: str = ""
    append: bool = False
    segment: str | None = None
    ships: tuple[Shipment, ...] = ()
    settled: bool = False
    met: tuple[Met, ...] = ()
    holds: Holding | None = None
    parts: PartStep | None = None


@dataclass(frozen=True)
class Store:
    """A relation that lies in a room.

    Attributes:
        relation: its name.
        copy: the copy of which it is a part.
        create: makes its table.
        everywhere: it is the same in all partitions.
    """

    relation: str
    copy: str
    create: str
    everywhere: bool


@dataclass(frozen=True)
class RoomPlan:
    """What lies in a room and what is done there."""

    number: int
    stores: tuple[Store, ...]
    steps: tuple[Step, ...]
    #: The temporary tables, and how they are made.
    tables: dict[str, str] = field(default_factory=dict)
    #: What is pending here for maps that are settled elsewhere.
    ships: tuple[Shipment, ...] = ()

    @property
    def parts(self) -> dict[str, PartStep]:
        """What builds views of parts here."""
        return {one.relation: one.parts for one in self.steps if one.parts is not None}


@dataclass(frozen=True)
class CopyPlan:
    """How a copy is written.

    Attributes:
        name: in the catalogue of segments.
        relation: whose.
        partition: the expression that says where a row lies; None for everywhere.
        order: by which columns segments are sorted.
        net: the query that adds up its rows in a table of the relation's name; none if nothing is to be added up.
        kinds: the columns of a segment, and their types.
    """

    name: str
    relation: str
    partition: str | None
    order: tuple[str, ...]
    net: str
    kinds: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TaskPlan:
    """All that tasks do in an epoch.

    Attributes:
        identity: of the plan; another one has another.
        levels: the rooms of each.
        copies: what is written, by name.
        reads: the names of all copies that tasks need to know the segments of.
        primary: the copy that holds a relation which is settled away.
        feeds: for each relation that is settled at home, where its change goes.
        waiting: for each synchronised relation, the copy of what waits for it.
    """

    identity: str
    levels: tuple[tuple[RoomPlan, ...], ...]
    copies: dict[str, CopyPlan]
    reads: frozenset[str]
    primary: dict[str, str]
    feeds: dict[str, tuple[Shipment, ...]]
    waiting: dict[str, str] = field(default_factory=dict)


def copy_name(copy: Copy) -> str:
    """The name of a copy, which is also that of its folder: readable, and unlike any other."""
    text = str(copy)
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:48]
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def kinds_of(columns: Columns) -> tuple[tuple[str, str], ...]:
    """The columns of segments with what is stored of a relation, and their types."""
    every = (*columns, (MULTIPLICITY, t.BIGINT), (EPOCH, t.BIGINT))
    return tuple((text, duckdb_type(of).sql("duckdb")) for text, of in every)


def task_plan(plan: Plan, schedule: Schedule, catalog: Catalog, elsewhere: Set[str] = frozenset()) -> TaskPlan:
    """Write a plan out; copies with some names are written by others."""
    return _Writer(plan, schedule, catalog, elsewhere).write()


class _Writer:
    def __init__(self, plan: Plan, schedule: Schedule, catalog: Catalog, elsewhere: Set[str]) -> None:
        self._plan, self._schedule, self._catalog = plan, schedule, catalog
        self._maps = {one.name: one for relation in catalog if relation.program for one in relation.program.maps}
        self._position = {one.name: i for i, one in enumerate(schedule.stages)}
        self._writes = {
            (one.relation, address): one for one, address in plan.copies.items() if copy_name(one) not in elsewhere
        }

    def write(self) -> TaskPlan:
        levels = [
            tuple(self._room(room) for (level, _), room in self._plan.rooms.items() if level == here)
            for here in range(1, self._plan.levels + 1)
        ]
        copies = {copy_name(one): self._copy(one) for one in self._writes.values()}
        reads = frozenset(store.copy for level in levels for room in level for store in room.stores)
        lying = [Copy(name, self._plan.spreads[name]) for name in self._plan.away]
        primary = {one.relation: copy_name(one) for one in lying if one in self._plan.copies}
        held = [one.name for one in self._schedule.stages if one.synchronised is not None]
        waiting = {name: self._waiting(name) for name in held if name in self._plan.away}
        primary |= {waiting_of(name): copy for name, copy in waiting.items()}
        feeds = {one.name: self._ships(one.name) for one in self._schedule.stages if one.name not in self._plan.homes}
        feeds = {text: ships for text, ships in feeds.items() if ships}
        identity = hashlib.sha256(repr((levels, copies, feeds)).encode()).hexdigest()[:16]
        for level, rooms in enumerate(levels, 1):
            for room in rooms:
                for ship in (*room.ships, *(ship for step in room.steps for ship in step.ships)):
                    assert ship.level > level, f"{ship.table} would never arrive in room {ship.room} of {ship.level}"
        return TaskPlan(identity, tuple(levels), copies, reads | copies.keys(), primary, feeds, waiting)

    def _waiting(self, relation: str) -> str:
        return copy_name(Copy(waiting_of(relation), self._plan.spreads[relation]))

    def columns(self, relation: str) -> Columns:
        """What is stored of a relation, without multiplicity and epoch."""
        if relation in self._maps:
            return stored_columns(self._maps[relation])
        found = self._catalog.find(relation.removesuffix(WAITING))
        assert found is not None
        return row_columns(found.fields)

    def _copy(self, copy: Copy) -> CopyPlan:
        keys = copy.spread.keys or ()
        order = tuple(sorted({text for key in keys for text in key.columns}))
        shape = shape_of(self._catalog, copy.relation)
        net = sql(living(copy.relation, shape)) if shape is not None else ""
        kinds = kinds_of(self.columns(copy.relation))
        return CopyPlan(copy_name(copy), copy.relation, self._partition(copy.spread), order, net, kinds)

    def _partition(self, spread: Spread) -> str | None:
        """The expression for the partition of a row."""
        if spread.keys is None:
            return None
        if not spread.keys:
            return "0"
        hashed = exp.Anonymous(this="hash", expressions=[duckdb_scalar(key, column) for key in spread.keys])
        count = exp.Parameter(this=exp.Var(this=PARTITIONS))
        return sql(exp.Mod(this=hashed, expression=count))

    def _ships(self, relation: str) -> tuple[Shipment, ...]:
        """Where a relation's change goes from where it is settled."""
        out: list[Shipment] = []
        for address, room in self._plan.rooms.items():
            if address == self._plan.homes.get(relation) or relation not in room.spreads:
                continue
            if relation in room.fresh or (relation, address) in self._writes:
                table = sql(delta_table(relation))
                columns = (*(text for text, _ in self.columns(relation)), MULTIPLICITY)
                out.append(Shipment(table, *address, self._partition(room.spreads[relation]), columns))
        return tuple(out)

    def _room(self, room: Room) -> RoomPlan:
        steps = [self._step(stage, room) for stage in self._schedule.stages]
        stores = tuple(
            Store(
                text,
                copy_name(Copy(text, room.spreads[text])),
                create_store(text, self.columns(text)),
                room.spreads[text].keys is None,
            )
            for text in sorted(room.stores)
        )
        settled = {one.target for one in room.actions if one.trigger is None}
        written = {relation for relation, address in self._writes if address == room.address}
        tables: dict[str, str] = {}
        for text in sorted(room.fresh | settled | written):
            columns = (*self.columns(text), (MULTIPLICITY, t.BIGINT))
            tables[sql(delta_table(text))] = _create(delta_table(text), columns)
        ships: dict[str, Shipment] = {}
        for action in room.actions:
            if action.target not in self._maps:  # it has nothing pending
                continue
            one = self._maps[action.target]
            table = delta_table(one.name) if one.sums is not None else pending_table(one.name)
            tables.setdefault(sql(table), _create(table, pending_columns(one)))
            home = self._plan.homes[one.name]
            if home != room.address:
                columns_sent = tuple(text for text, _ in pending_columns(one))
                where = self._partition(self._plan.spreads[one.name])
                ships[one.name] = Shipment(sql(table), *home, where, columns_sent)
        used = tuple(one for one in steps if one is not None)
        return RoomPlan(room.number, stores, used, tables, tuple(ships.values()))

    def _step(self, stage: Stage, room: Room) -> Step | None:
        here = self._position[stage.name]
        triggers = [one.trigger for one in room.actions if one.position == here and one.trigger is not None]
        met = shared_meetings([meetings_of(one.statement.term, one.emitter) for one in triggers])
        narrowed = {id(one): found for one, found in zip(triggers, met, strict=True)}
        runs: list[Run] = []
        settle: Run | None = None
        settled = False
        for action in room.actions:
            if action.position != here:
                continue
            if action.trigger is None:
                settled = True
                if stage.settle is not None:
                    assert stage.settle.plain.settle is not None
                    fill = stage.settle.plain.settle
                    settle = Run(stage.view, fill.table, fill.more)
                continue
            fill, coming = action.trigger.fill, action.trigger.coming.fill
            narrow = _narrow(action.trigger, narrowed[id(action.trigger)])
            runs.append(Run(action.trigger.view, fill.table, fill.more, coming.more, narrow))
        copy = self._writes.get((stage.name, room.address))
        present = stage.name in room.fresh or settled or copy is not None
        if not runs and not present:
            return None
        delta = sql(delta_table(stage.name))
        rows = ""
        if stage.name != CLOCK and present:
            every = [*(column(text) for text, _ in self.columns(stage.name)), column(MULTIPLICITY)]
            rows = sql(exp.Select(expressions=every).from_(delta_table(stage.name), copy=False))
        return Step(
            stage.name,
            delta,
            settle,
            sql(pending_table(stage.name)) if settle is not None and not stage.recompute else None,
            tuple(sorted(stage.inputs)) if stage.recompute else (),
            tuple(runs),
            rows,
            present and stage.name in room.stores,
            copy_name(copy) if copy is not None else None,
            self._ships(stage.name) if settled else (),
            settled,
            _tables(met),
            holding_of(stage.name, stage.synchronised, self._waiting(stage.name))
            if settled and stage.synchronised is not None
            else None,
            part_step(stage, self._catalog) if settled else None,
        )


def _narrow(trigger: Trigger, meetings: Mapping[str, Meeting]) -> Narrow | None:
    """A statement with what the change meets in place of some of the stores that it reads."""
    if not meetings:
        return None
    form = trigger.finding({alias: one.view for alias, one in meetings.items()})
    tables = tuple(sorted({one.table for one in meetings.values()}))
    return Narrow(tables, form.fill.more, form.coming.fill.more)


def _tables(found: Sequence[Mapping[str, Meeting]]) -> tuple[Met, ...]:
    readers = Counter(one for each in found for one in set(each.values()))
    return tuple(Met(one.table, one.store, one.fill, count) for one, count in readers.items())


def _create(table: exp.Table, columns: Columns) -> str:
    definitions: list[exp.Expr] = [exp.ColumnDef(this=name(text), kind=duckdb_type(of)) for text, of in columns]
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    made = exp.Schema(this=table.copy(), expressions=definitions)
    create = exp.Create(this=made, kind="TABLE", replace=True, properties=temporary)
    return sql(create)
