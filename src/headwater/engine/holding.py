"""Synchronised relations in tasks: what waits for a point lies away, and is released where it lies.

Beside a synchronised relation `S@p` lies what waits for it, `S@p#waiting`, spread in the same way. A task lets what
comes to its partition wait there, in a segment like any other; in an epoch in which p ticks (the order says so) the net
of what waits and of what comes is the change of S@p, and nothing waits any more. Netting takes whole rows, so any way
to spread them is right: the one that the readers of S@p need is best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater import types as t
from headwater.algebra.scalars import Column
from headwater.emit.layout import delta_table, sql
from headwater.emit.synchronise import waiting_of
from headwater.engine.schedule import Schedule, Synchronised
from headwater.plan.spread import Spread
from headwater.store.catalog import Catalog, Relation
from headwater.store.segments import ALL, Listed

if TYPE_CHECKING:
    from headwater.engine.away import Away
    from headwater.engine.parcels import Order
    from headwater.engine.synchronising import Round
    from headwater.engine.tasks import RoomPlan, TaskPlan


@dataclass(frozen=True)
class Holding:
    """What a room does for a synchronised relation.

    Attributes:
        waiting: the store of what waits.
        copy: its copy.
        coming: the table with what has changed in the relation that it stands for.
        rows: that change, as it waits.
        release_waiting: fills the change of the relation from what waits.
        release_coming: from what has changed in this epoch.
        release_both: from both.
    """

    waiting: str
    copy: str
    coming: str
    rows: str
    release_waiting: str
    release_coming: str
    release_both: str

    def release(self, comes: bool, waits: bool) -> str | None:
        """What fills the change of the relation when its policy ticks."""
        if comes and waits:
            return self.release_both
        return self.release_coming if comes else self.release_waiting if waits else None


def holding_of(name: str, follows: Synchronised, copy: str) -> Holding:
    """What a room does for a synchronised relation whose waiting rows lie in a copy."""
    statements = follows.sql
    return Holding(
        waiting_of(name),
        copy,
        sql(delta_table(follows.source)),
        statements.coming,
        statements.release_waiting.more,
        statements.release_coming.more,
        statements.release_both.more,
    )


def held_fields(catalog: Catalog) -> dict[str, t.Schema]:
    """The columns of synchronised relations, and of what waits for them."""
    found = [one for one in catalog if one.policy is not None]
    return {name: one.fields for one in found for name in (one.name, waiting_of(one.name))}


def spread_of(relation: Relation, source: Relation | None, demanded: Sequence[Spread]) -> Spread:
    """How a synchronised relation lies: as most of those need it who read it, else by the key of its source."""
    options = [one for one in demanded if one.keys]
    if options:
        return max(options, key=options.count)
    key = set(source.key) if source is not None else set()
    fields = [f for f in relation.fields if f.name in key] or relation.fields
    return Spread(tuple(Column(f.name, f.type) for f in fields))


def ticking(round_: Round, schedule: Schedule, names: Iterable[str]) -> frozenset[str]:
    """Of some synchronised relations those whose policy ticks; asked when what came to its stream is known at home."""
    wanted = set(names)
    found = [one for one in schedule.stages if one.synchronised is not None and one.name in wanted]
    return frozenset(one.name for one in found if one.synchronised is not None and round_.ticks(one.synchronised))


def is_due(plan: TaskPlan, order: Order) -> bool:
    """Whether something waits for a policy that ticks."""
    return any(order.segments.get(plan.waiting[name]) for name in order.ticking)


def releases(room: RoomPlan, order: Order, partition: int) -> bool:
    """Whether something waits in a room, in a partition, for a policy that ticks."""
    held = [one.holds for one in room.steps if one.holds is not None and one.relation in order.ticking]
    return any(_there(order.segments, one.copy, partition) for one in held)


def _there(segments: Listed, copy: str, partition: int) -> bool:
    found: Mapping[int, object] = segments.get(copy, {})
    return bool(found.get(partition) or found.get(ALL))


def note_waiting(away: Away, plan: TaskPlan, order: Order, round_: Round) -> None:
    """Tasks are done: what was released waits no longer, and readers at home see what does."""
    for name, copy in plan.waiting.items():
        if name in order.ticking:
            away.segments.clear(away.connection, copy)
        if away.segments.listed[copy] != order.segments.get(copy, {}):
            away.show(waiting_of(name), plan.copies[copy])
        round_.rows[name] = away.segments.rows(copy)
