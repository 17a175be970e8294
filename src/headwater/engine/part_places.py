"""Which views of parts are built in tasks, and why others are not.

A view of parts is built in tasks if a key divides it (`headwater.plan.dividing`), so that each partition builds its
share of a part by the statements that build all of it at home.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from headwater.engine.schedule import Schedule
from headwater.plan.dividing import Division, divisions
from headwater.plan.spread import Rows, Spread

NO_KEY = "a view of parts that no key divides: its parts are built here, one after the other"
STEP_BY_STEP = "a view of parts that is read step by step: its parts are built here"


@dataclass(frozen=True)
class PartPlaces:
    """Where views of parts are built.

    Attributes:
        away: those that are built in tasks, and how they are divided.
        home: the others, and why.
    """

    away: Mapping[str, Division]
    home: Mapping[str, str]


def part_places(schedule: Schedule, rows: Rows, away: Set[str]) -> PartPlaces:
    """Decide, in the order of the schedule, so that a view lies as the one does that it reads.

    Args:
        schedule: of the warehouse.
        rows: how many rows a relation has.
        away: maps that are settled in tasks.
    """
    found: dict[str, Division] = {}
    home: dict[str, str] = {}
    used: dict[str, list[Spread]] = {}
    for stage in schedule.stages:
        if stage.parts is None:
            continue
        program = stage.parts.relation.parts
        assert program is not None
        if any(one.target.name not in away for one in stage.triggers):
            home[stage.name] = STEP_BY_STEP
            continue
        best = next(iter(divisions(program, used, rows)), None)
        if best is None:
            home[stage.name] = NO_KEY
            continue
        found[stage.name] = best
        for name, spread in ((stage.name, best.spread), *best.sources.items()):
            used.setdefault(name, []).append(spread)
    return PartPlaces(found, home)
