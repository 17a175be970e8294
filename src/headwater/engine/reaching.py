"""How far an epoch reaches that is carried out at home: which relations may change in it, and what is read for that.

An epoch that evaluates views anew runs at home. What may change in it must be tables there; whatever else is read lies
where it is, and is read from there. So this must never name too little: a relation may change if anything changes from
which it follows, whether it does or not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Set

from headwater.algebra.clock import CLOCK
from headwater.emit.synchronise import WAITING, waiting_of
from headwater.engine.dating import Coming
from headwater.engine.history import History
from headwater.engine.rebuild import Rebuild
from headwater.engine.schedule import Schedule, Stage
from headwater.engine.synchronising import Round
from headwater.engine.workspace import Workspace, delta_of
from headwater.store.catalog import Catalog


def may_change(
    schedule: Schedule,
    workspace: Workspace,
    rebuilds: Mapping[str, Rebuild],
    anew: Set[str],
    round_: Round,
    coming: Coming,
    clock: dt.datetime,
    before: dt.datetime | None,
) -> set[str]:
    """The stores that may change in an epoch, of relations and of what waits for them.

    Args:
        schedule: of the epoch.
        workspace: with the changes of base relations.
        rebuilds: views whose maps are evaluated anew.
        anew: views that are, also such as are built part by part.
        round_: knows which policies tick.
        coming: what has come to streams with event time, or was told to them.
        clock: what it reads in the epoch.
        before: what it read in the epoch before.
    """
    found = {one.name for one in schedule.stages if workspace.rows(delta_of(one.name))}
    found |= {name for one in rebuilds.values() for name in one.maps} | anew
    found |= coming.arrived.keys() | coming.told.keys()
    if schedule.follows_clock and (before is None or clock > before):
        found.add(CLOCK)
    while True:
        more = {name for one in schedule.stages for name in _following(one, found, round_)} - found
        if not more:
            return found
        found |= more


def _following(stage: Stage, changing: Set[str], round_: Round) -> Iterable[str]:
    """What may change in the step of a relation, if others may."""
    if stage.name in changing:
        yield from (one.target.name for one in stage.triggers)
    if stage.inputs & changing:
        yield stage.name
    parts = stage.parts.relation.parts if stage.parts is not None else None
    if parts is not None and changing & set(parts.inputs):
        yield stage.name
    if stage.synchronised is not None:
        comes = stage.synchronised.source in changing
        if comes or (round_.rows.get(stage.name, 0) and round_.may_tick(stage.synchronised, changing)):
            yield from (stage.name, waiting_of(stage.name))


def read_by(name: str, catalog: Catalog) -> set[str]:
    """What the contents of a store follow from: a map, a view of parts, a synchronised relation, what waits for it."""
    found: set[str] = set()
    for program in catalog.programs:
        for one in program.maps:
            if one.name == name:
                found |= one.definition.relations
                for without in ({name}, {each.name for each in program.maps}):  # as these are filled, or it alone
                    found |= History(catalog, frozenset(without)).told(one.definition)[0].relations
    relation = catalog.find(name.removesuffix(WAITING))
    if relation is not None and relation.parts is not None:
        found |= set(relation.parts.inputs)
    if relation is not None and relation.policy is not None and relation.of is not None:
        found |= {relation.of, relation.name, waiting_of(relation.name)}
    return found - {name}
