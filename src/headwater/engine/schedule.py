"""The order of work of an epoch: one step per relation, inputs before what is computed from them.

The clock comes first, if a view follows it (`headwater.delta.clock`), then base relations, then the maps of each view
in the order of creation. In a relation's step its change is known whole; every program that reads the relation adds its
contribution to the pending change of its maps, against what the stores hold at that moment (earlier relations already
new, later ones still old); then the change is appended to the relation's own store. `headwater.delta.derive` says why
that adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from headwater import types as t
from headwater.algebra.clock import CLOCK
from headwater.algebra.during import follows_clock
from headwater.algebra.nodes import Scan, Sum, Version
from headwater.algebra.parts import PART
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.maintain import (
    MapSQL,
    append_statement,
    map_statements,
    row_columns,
    step_statement,
    stepwise_statement,
)
from headwater.emit.probes import Found, Probe, probes_of_step
from headwater.emit.synchronise import SyncSQL, synchronise
from headwater.engine.changelogs import keep_statement
from headwater.engine.parts import PartStatements
from headwater.plan.program import Add, Map, Program, Touch
from headwater.store.catalog import Catalog, Relation
from headwater.store.policies import Policy


@dataclass(frozen=True)
class Trigger:
    """A statement to run when a relation has changed."""

    view: str
    statement: Add | Touch
    target: Map
    emitter: Emitter

    @cached_property
    def fill(self) -> Fill:
        """Its SQL. It is written when it is first needed: many relations never change while a program runs."""
        return step_statement(self.statement, self.target, self.emitter)

    @cached_property
    def insert(self) -> str:
        """Its SQL, if its target takes it at once."""
        assert isinstance(self.statement, Add)
        return stepwise_statement(self.statement, self.target, self.emitter)

    @cached_property
    def coming(self) -> Trigger:
        """The same for a change that is rows that come, each once."""
        return replace(self, emitter=self.emitter.for_coming(self.statement.on))

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """What it could look up."""
        return probes_of_step(self.statement.term, self.emitter)

    def finding(self, found: Found) -> Trigger:
        """The same with views for some of the stores that it reads."""
        if not found:
            return self
        key = frozenset(found.items())
        if key not in self._variants:
            self._variants[key] = replace(self, emitter=self.emitter.finding(found))
        return self._variants[key]

    @cached_property
    def _variants(self) -> dict[frozenset[tuple[str, str]], Trigger]:
        return {}

    @property
    def adds_up(self) -> bool:
        """Whether it gives the groups of a map, each once, with what comes to their payload."""
        return isinstance(self.statement.term, Sum) and self.target.present is not None and self.target.keys is None

    @property
    def rank(self) -> tuple[bool, int]:
        """Its place in a step: first what is put off, then what is taken at once, by maps of many relations first.

        These read maps of fewer relations, as these were before the step.
        """
        joined = sum(isinstance(node, Scan) for node in self.target.definition.walk())
        return (True, -joined) if self.target.stepwise else (False, 0)


@dataclass(frozen=True)
class Settle:
    """The statements that settle a map, as they are and with views for some of the stores that they read."""

    plain: MapSQL
    emit: Callable[[Found, bool], MapSQL]
    _variants: dict[tuple[frozenset[tuple[str, str]], bool], MapSQL] = field(default_factory=dict, compare=False)

    def variant(self, found: Found, alone: bool) -> MapSQL:
        """The form with views for some stores, and for what comes from one statement alone."""
        if not found and not alone:
            return self.plain
        key = frozenset(found.items()), alone
        if key not in self._variants:
            self._variants[key] = self.emit(found, alone)
        return self._variants[key]


@dataclass(frozen=True)
class Synchronised:
    """How a synchronised relation follows the relation that it stands for.

    Attributes:
        source: that relation.
        policy: when it follows.
        emit: what it runs, written when it is first needed.
    """

    source: str
    policy: Policy
    emit: Callable[[], SyncSQL]

    @cached_property
    def sql(self) -> SyncSQL:
        return self.emit()


@dataclass(frozen=True)
class Stage:
    """One relation's part in an epoch.

    Attributes:
        view: whose program maintains it; None for a base relation.
        settle: what fills its delta from what is pending; None for a base relation.
        recompute: it is evaluated anew whenever one of `inputs` has changed.
        triggers: what follows from its change.
        append: adds the change to its store; None where nothing is stored.
        read: whether anything reads its change; else it is settled and appended in one.
        synchronised: how it follows another relation, if that is what it does.
        parts: how it is built part by part, if it is a view of parts.
        arrives: the stream with event time that it is, if it is one.
        keep: adds the change to those that are kept of a view, for one that keeps them.
    """

    name: str
    view: str | None
    settle: Settle | None
    recompute: bool
    inputs: frozenset[str]
    triggers: tuple[Trigger, ...]
    append: str | None
    read: bool = True
    synchronised: Synchronised | None = None
    keep: str | None = None
    parts: PartStatements | None = None
    arrives: Relation | None = None


@dataclass(frozen=True)
class Schedule:
    """All stages of a warehouse, in order."""

    stages: tuple[Stage, ...]
    #: Whether a view follows the clock. The clock's own stage is then the first.
    follows_clock: bool = False

    @cached_property
    def readers(self) -> Mapping[str, int]:
        """How many statements of an epoch read the change of each relation."""
        return {one.name: len(one.triggers) + (one.append is not None) for one in self.stages}

    def without_triggers(self) -> Schedule:
        """The same, but nothing follows from a change: for maps that are filled and not changed."""
        return replace(self, stages=tuple(replace(one, triggers=(), keep=None) for one in self.stages))


@dataclass(frozen=True)
class EmittedView:
    """The SQL of a view's program."""

    program: Program
    triggers: tuple[tuple[str, Trigger], ...]
    maps: Mapping[str, Settle]
    keep: str | None


#: What has been emitted so far, by view. A program never changes, so neither does its SQL.
Emitted = dict[str, EmittedView]


def make_schedule(catalog: Catalog, emitted: Emitted | None = None, net: bool = False) -> Schedule:
    """The stages for the relations of a catalogue. Suspended views take no part.

    Args:
        catalog: the relations.
        emitted: kept by the caller from one schedule to the next, so that each view is emitted once.
        net: see `Emitter`.
    """
    running = [one for one in catalog if one.program is not None and one.suspended is None]
    views = [_emit(one, catalog, emitted if emitted is not None else {}, net) for one in running]
    triggers: dict[str, list[Trigger]] = {}
    listed: dict[str, str] = {}  # a map that several views list is maintained on behalf of the first
    for view in views:
        for one in view.program.maps:
            listed.setdefault(one.name, view.program.view)
        for on, trigger in view.triggers:
            if listed[trigger.target.name] == view.program.view:
                triggers.setdefault(on, []).append(trigger)
    for found in triggers.values():
        found.sort(key=lambda trigger: trigger.rank)
    read = {name for view in views for one in view.program.maps for name in one.definition.relations} | triggers.keys()
    read |= {name for one in catalog if one.policy is not None for name in one.reads}
    read |= {one.name for one in catalog if one.changes is not None}
    # Views of parts read the stores of others of these, and know of their change which parts have changed.
    parted = {one.name for one in catalog if one.parts is not None}
    read |= {name for one in catalog if one.parts is not None for name in one.parts.inputs} - parted
    by_name = {view.program.view: view for view in views}
    clocked = [view.program for view in views if view.program.follows_clock]
    stages = [Stage(CLOCK, None, None, False, frozenset(), tuple(triggers.get(CLOCK, ())), None)] if clocked else []
    stages += [
        _base_stage(one, catalog, triggers)
        for one in catalog
        if one.program is None and one.policy is None and one.parts is None
    ]
    stages += [_stored_only(one.buried, one.buried_fields) for one in catalog if one.sequence is not None]
    stages += [_stored_only(one.late, one.late_fields) for one in catalog if one.keeps_late]
    for relation in catalog:
        if relation.policy is not None:
            stages.append(_synchronised_stage(relation, catalog, triggers))
        if relation.parts is not None and relation.suspended is None:
            stages.append(_part_stage(relation, catalog, triggers, relation.name in read, net))
        if relation.name not in by_name:
            continue
        view = by_name[relation.name]
        for one in view.program.maps:
            if listed[one.name] != view.program.view:
                continue
            settle = view.maps[one.name]
            keep = view.keep if one.name == view.program.view else None
            stages.append(
                Stage(
                    one.name,
                    view.program.view,
                    settle if settle.plain.settle is not None else None,
                    view.program.recomputes(one.name),
                    one.definition.relations | ({CLOCK} if follows_clock(one.definition) else set()),
                    tuple(triggers.get(one.name, ())),
                    settle.plain.append,
                    one.name in read or keep is not None,
                    keep=keep,
                )
            )
    return Schedule(tuple(stages), bool(clocked))


def _emit(view: Relation, catalog: Catalog, emitted: Emitted, net: bool) -> EmittedView:
    program = view.program
    assert program is not None
    found = emitted.get(view.name)
    if found is not None and found.program is program:
        return found
    emitter = Emitter(catalog.grouped, net)
    triggers = tuple((one.on, Trigger(view.name, one, program.map(one.target), emitter)) for one in program.steps)
    maps = {
        one.name: Settle(map_statements(program, one, emitter), partial(map_statements, program, one, emitter))
        for one in program.maps
    }
    keep = keep_statement(view, emitter) if view.changes is not None else None
    emitted[view.name] = EmittedView(program, triggers, maps, keep)
    return emitted[view.name]


def _base_stage(relation: Relation, catalog: Catalog, triggers: dict[str, list[Trigger]]) -> Stage:
    append = _append(relation, catalog) if catalog.keeps(relation) else None
    arrives = relation if relation.time is not None and not relation.key else None
    after = tuple(triggers.get(relation.name, ()))
    keep = keep_statement(relation, Emitter(catalog.grouped)) if relation.changes is not None else None
    return Stage(relation.name, None, None, False, frozenset(), after, append, keep=keep, arrives=arrives)


def _part_stage(
    relation: Relation, catalog: Catalog, triggers: dict[str, list[Trigger]], read: bool, net: bool
) -> Stage:
    """A view of parts stores its parts as it builds them; its change is read from there, if anything needs it.

    Where a view joins it with itself, what follows from the change reads the store as it was. Then the change is taken
    out of the store, and appended as that of any other relation is.
    """
    emitter = Emitter(catalog.grouped, net)
    keep = keep_statement(relation, emitter) if relation.changes is not None else None
    after = tuple(triggers.get(relation.name, ()))
    return Stage(
        relation.name,
        relation.name,
        None,
        False,
        frozenset(),
        after,
        append_statement(relation.name, row_columns(relation.fields)) if _read_store(relation.name, after) else None,
        read or bool(after),
        keep=keep,
        parts=PartStatements(relation, emitter),
    )


def _read_store(relation: str, triggers: tuple[Trigger, ...]) -> bool:
    """Whether what follows from a relation's change reads the relation's store, too."""
    scans = (node for one in triggers for node in one.statement.term.walk() if isinstance(node, Scan))
    return any(one.relation == relation and one.version is not Version.DELTA for one in scans)


def _synchronised_stage(relation: Relation, catalog: Catalog, triggers: dict[str, list[Trigger]]) -> Stage:
    assert relation.of is not None and relation.policy is not None
    emitter = Emitter(catalog.grouped)
    emit = partial(synchronise, relation.name, relation.of, relation.fields, relation.flows, emitter)
    follows = Synchronised(relation.of, relation.policy, emit)
    return replace(_base_stage(relation, catalog, triggers), synchronised=follows)


def _stored_only(store: str, fields: t.Schema) -> Stage:
    """What is only stored: the sequences that keys of a stream went with, and rows that came too late."""
    return Stage(store, None, None, False, frozenset(), (), append_statement(store, row_columns(fields)))


def _append(relation: Relation, catalog: Catalog) -> str:
    if not relation.flows:
        return append_statement(relation.name, row_columns(relation.fields))
    if relation.retain is not None:
        return append_statement(relation.name, row_columns(relation.fields))
    wanted = catalog.wanted(relation)
    filled = {relation.stamp} if relation.stamp is not None else {PART} if relation.length is not None else set()
    stored = wanted.columns | filled
    return append_statement(relation.name, row_columns(relation.fields), stored, wanted.rows)
