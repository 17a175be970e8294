"""The order of work of an epoch: one step per relation, inputs before what is computed from them.

Base relations come first, then the maps of each view in the order of creation. In a relation's step its change is
known whole; every program that reads the relation adds its contribution to the pending change of its maps, against
what the stores hold at that moment (earlier relations already new, later ones still old); then the change is appended
to the relation's own store. `headwater.delta.derive` says why that adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.maintain import append_statement, map_statements, row_columns, step_statement
from headwater.store.catalog import Catalog, Relation


@dataclass(frozen=True)
class Trigger:
    """A statement to run when a relation has changed."""

    view: str
    target: str
    fill: Fill


@dataclass(frozen=True)
class Stage:
    """One relation's part in an epoch.

    Attributes:
        view: whose program maintains it; None for a base relation.
        settle: fills its delta from what is pending; None for a base relation.
        recompute: `settle` evaluates the definition anew whenever one of `inputs` has changed.
        triggers: what follows from its change.
        append: adds the change to its store; None where nothing is stored.
        settle_and_append: both in one, for a map whose change nothing reads; None otherwise.
    """

    name: str
    view: str | None
    settle: Fill | None
    recompute: bool
    inputs: frozenset[str]
    triggers: tuple[Trigger, ...]
    append: str | None
    settle_and_append: str | None = None


@dataclass(frozen=True)
class Schedule:
    """All stages of a warehouse, in order."""

    stages: tuple[Stage, ...]


def make_schedule(catalog: Catalog) -> Schedule:
    """The stages for the relations of a catalogue. Suspended views take no part."""
    emitter = Emitter(catalog.grouped)
    running = [one for one in catalog if one.program is not None and one.suspended is None]
    triggers: dict[str, list[Trigger]] = {}
    for view in running:
        assert view.program is not None
        for one in view.program.maps:
            for on in sorted(one.definition.relations):
                for statement in view.program.triggers(on):
                    if statement.target == one.name:
                        step = step_statement(statement, one, emitter)
                        triggers.setdefault(on, []).append(Trigger(view.name, one.name, step.fill))
    read = frozenset(name for view in running if view.program for one in view.program.maps for name in one.definition.relations)
    stages = [_base_stage(one, catalog, triggers) for one in catalog if one.program is None]
    for view in running:
        assert view.program is not None
        for one in view.program.maps:
            statements = map_statements(view.program, one, emitter)
            stages.append(
                Stage(
                    one.name,
                    view.name,
                    statements.settle,
                    view.program.recomputes(one.name),
                    one.definition.relations,
                    tuple(triggers.get(one.name, ())),
                    statements.append,
                    None if one.name in read else statements.settle_and_append,
                )
            )
    return Schedule(tuple(stages))


def _base_stage(relation: Relation, catalog: Catalog, triggers: dict[str, list[Trigger]]) -> Stage:
    append = append_statement(relation.name, row_columns(relation.fields)) if catalog.keeps(relation) else None
    return Stage(relation.name, None, None, False, frozenset(), tuple(triggers.get(relation.name, ())), append)
