"""The order of work of an epoch: one step per relation, inputs before what is computed from them.

Base relations come first, then the maps of each view in the order of creation. In a relation's step its change is
known whole; every program that reads the relation adds its contribution to the pending change of its maps, against
what the stores hold at that moment (earlier relations already new, later ones still old); then the change is appended
to the relation's own store. `headwater.delta.derive` says why that adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from headwater.algebra.nodes import Scan, Sum
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
from headwater.plan.program import Add, Map, Program, Touch
from headwater.store.catalog import Catalog, Kind, Relation


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
class Stage:
    """One relation's part in an epoch.

    Attributes:
        view: whose program maintains it; None for a base relation.
        settle: what fills its delta from what is pending; None for a base relation.
        recompute: it is evaluated anew whenever one of `inputs` has changed.
        triggers: what follows from its change.
        append: adds the change to its store; None where nothing is stored.
        read: whether anything reads its change; else it is settled and appended in one.
    """

    name: str
    view: str | None
    settle: Settle | None
    recompute: bool
    inputs: frozenset[str]
    triggers: tuple[Trigger, ...]
    append: str | None
    read: bool = True


@dataclass(frozen=True)
class Schedule:
    """All stages of a warehouse, in order."""

    stages: tuple[Stage, ...]

    @cached_property
    def readers(self) -> Mapping[str, int]:
        """How many statements of an epoch read the change of each relation."""
        return {one.name: len(one.triggers) + (one.append is not None) for one in self.stages}

    def without_triggers(self) -> Schedule:
        """The same, but nothing follows from a change: for maps that are filled and not changed."""
        return Schedule(tuple(replace(one, triggers=()) for one in self.stages))


@dataclass(frozen=True)
class EmittedView:
    """The SQL of a view's program."""

    program: Program
    triggers: tuple[tuple[str, Trigger], ...]
    maps: Mapping[str, Settle]


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
    read = {name for view in views for one in view.program.maps for name in one.definition.relations}
    stages = [_base_stage(one, catalog, triggers) for one in catalog if one.program is None]
    for view in views:
        for one in view.program.maps:
            if listed[one.name] != view.program.view:
                continue
            settle = view.maps[one.name]
            stages.append(
                Stage(
                    one.name,
                    view.program.view,
                    settle if settle.plain.settle is not None else None,
                    view.program.recomputes(one.name),
                    one.definition.relations,
                    tuple(triggers.get(one.name, ())),
                    settle.plain.append,
                    one.name in read,
                )
            )
    return Schedule(tuple(stages))


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
    emitted[view.name] = EmittedView(program, triggers, maps)
    return emitted[view.name]


def _base_stage(relation: Relation, catalog: Catalog, triggers: dict[str, list[Trigger]]) -> Stage:
    append = _append(relation, catalog) if catalog.keeps(relation) else None
    return Stage(relation.name, None, None, False, frozenset(), tuple(triggers.get(relation.name, ())), append)


def _append(relation: Relation, catalog: Catalog) -> str:
    if relation.kind is not Kind.STREAM:
        return append_statement(relation.name, row_columns(relation.fields))
    wanted = catalog.wanted(relation)
    return append_statement(relation.name, row_columns(relation.fields), wanted.columns, wanted.rows)
