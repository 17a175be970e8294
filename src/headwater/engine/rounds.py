"""The rounds of an epoch whose maps lie away: what is done at home, then in tasks, then at home again, and so on.

Mostly there is one: base relations take their changes at home, and tasks do the rest. Another one follows where a view
of parts that no key divides reads a view that lies away: it takes its change at home when tasks are done, and views
over it are for the tasks of the next round. So are relations that are synchronised by a view that lies away: whether
they follow in this epoch is known when that has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from headwater.algebra.clock import CLOCK
from headwater.algebra.nodes import Scan, Version
from headwater.engine.part_places import part_places
from headwater.engine.placing import Placing, Plan
from headwater.engine.schedule import Schedule, Stage
from headwater.engine.stepwise import bound_to_home
from headwater.engine.tasks import TaskPlan, task_plan
from headwater.plan.spread import Rows
from headwater.store.catalog import Catalog


@dataclass(frozen=True)
class Job:
    """One round of tasks.

    Attributes:
        home: the stages at home before it.
        plan: what the tasks do.
        names: the relations that are settled in it.
        wanted: of these, those whose change is read at home or in a later round.
        placed: what the plan is written out from.
        awaited: of `names`, those that statements at home read in the next round: they see each as it was until it is
            its turn.
        undivided: views of parts that are built at home, and why.
    """

    home: Schedule
    plan: TaskPlan | None
    names: tuple[str, ...]
    wanted: frozenset[str]
    placed: Plan | None = None
    awaited: frozenset[str] = frozenset()
    undivided: Mapping[str, str] = field(default_factory=dict)


def divide(schedule: Schedule, catalog: Catalog, rows: Rows) -> list[Job]:
    """The rounds of an epoch; there is a last one without tasks.

    Args:
        schedule: of the warehouse.
        catalog: of the warehouse.
        rows: how many rows a relation has.
    """
    away = away_maps(schedule, catalog)
    places = part_places(schedule, rows, away)
    away |= places.away.keys()
    rounds = _rounds(schedule, catalog, away)
    jobs: list[Job] = []
    listed: set[str] = set()
    for number in range(max(rounds.values(), default=0) + 2):
        names = [one.name for one in schedule.stages if one.name in away and rounds[one.name] == number]
        stages = [_at_home(one, number, rounds, away) for one in schedule.stages]
        home = replace(schedule, stages=tuple(one for one in stages if one is not None))
        plan, placed = None, None
        if names:
            placed = Placing(schedule, catalog, rows, set(names), places.away).plan()
            plan = task_plan(placed, schedule, catalog, frozenset(listed))
            listed |= plan.copies.keys()
        later = {text for one in schedule.stages for text in _reads(one, catalog) if rounds[one.name] > number}
        awaited = {one.name for one in schedule.stages if any(each.target.name not in away for each in one.triggers)}
        wanted, seen = frozenset(later & set(names)), frozenset(awaited & set(names))
        jobs.append(Job(home, plan, tuple(names), wanted, placed, seen, places.home))
    return jobs


def pieces(home: Schedule, awaited: Set[str]) -> Iterator[tuple[Schedule, str | None]]:
    """What is done at home, cut behind some relations; gives each piece, and the relation at its end."""
    stages: list[Stage] = []
    for one in home.stages:
        stages.append(one)
        if one.name in awaited:
            yield replace(home, stages=tuple(stages)), one.name
            stages = []
    yield replace(home, stages=tuple(stages)), None


def away_maps(schedule: Schedule, catalog: Catalog) -> set[str]:
    """The maps whose programs can be run in tasks, and synchronised relations."""
    programs = [one.program for one in catalog if one.program is not None]
    maps = {each.name for one in programs for each in one.maps}
    maps -= bound_to_home(programs)
    return {one.name for one in schedule.stages if one.synchronised or (one.name in maps and one.parts is None)}


def _reads(stage: Stage, catalog: Catalog) -> set[str]:
    """The relations from whose changes a stage's own follows."""
    if stage.synchronised is not None:
        return {stage.synchronised.source, stage.synchronised.policy.name}
    if stage.parts is not None:
        parts = stage.parts.relation.parts
        return set(parts.inputs) if parts is not None else set()
    return set(stage.inputs) - {CLOCK}


def _tells(name: str, stage: Stage) -> bool:
    """Whether a relation tells a synchronised one when to follow: that is known at home."""
    return stage.synchronised is not None and stage.synchronised.policy.name == name


def _looks_at(stage: Stage, away: Set[str]) -> set[str]:
    """What lies away of which statements at home read the store when a relation changes."""
    terms = [one.statement.term for one in stage.triggers if one.target.name not in away]
    scans = [node for term in terms for node in term.walk() if isinstance(node, Scan)]
    return {one.relation for one in scans if one.version is not Version.DELTA and one.relation in away}


def _rounds(schedule: Schedule, catalog: Catalog, away: Set[str]) -> dict[str, int]:
    """In which round each relation takes its change: at home before the round's tasks, or in them."""
    rounds: dict[str, int] = {}
    for stage in schedule.stages:
        found = [0]
        for name in _reads(stage, catalog):
            if name in rounds:
                found.append(rounds[name] + (name in away and (stage.name not in away or _tells(name, stage))))
        for name in _looks_at(stage, away) if stage.name not in away else ():
            found.append(rounds[name] + 1 if name in rounds else 0)
        rounds[stage.name] = max(found)
    return rounds


def _at_home(stage: Stage, number: int, rounds: Mapping[str, int], away: Set[str]) -> Stage | None:
    """What is done at home for a relation in a round."""
    triggers = tuple(one for one in stage.triggers if one.target.name not in away)
    if stage.name not in away:
        read = stage.read or stage.parts is not None  # perhaps by a view of parts in tasks, which needs the change
        return replace(stage, triggers=triggers, read=read) if rounds[stage.name] == number else None
    if rounds[stage.name] != number - 1 or not (triggers or stage.keep):
        return None
    return Stage(stage.name, stage.view, None, False, frozenset(), triggers, None, keep=stage.keep)
