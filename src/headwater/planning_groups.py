"""Views that add up the same rows by different keys share finer groups, where that costs less.

(Ghanem et al., "Supporting Views in Data Stream Management Systems": section 10.6.2 has a case in which sharing wins,
section 10.6.3 one in which it loses.) What matters is how many finer groups the rows of an epoch come to.

A view with a STRATEGY keeps it, and one that is evaluated when it is read has maps of its own kind: neither shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.engine import definitions
from headwater.errors import HeadwaterError
from headwater.plan.program import Program
from headwater.plan.weigh_finer import Way, alone, lonely, ways_to_share
from headwater.planning import surroundings
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: Groups are shared only if that costs this much less: estimates are rough, and one more map takes room.
WORTH = 0.9
#: Views that share stay together until it costs this much more: changing costs something, too.
_STAY = 0.2


@dataclass(frozen=True)
class Grouping:
    """How views over the same rows are kept.

    Attributes:
        program: of the view that is planned.
        others: programs that other views get with it.
        notes: what was weighed, and is not worth it.
    """

    program: Program
    others: tuple[Program, ...] = ()
    notes: tuple[str, ...] = ()


def grouping(
    db: Database, plain: Program, made: Iterable[Relation], fillable: Callable[[Program], bool], together: bool = False
) -> Grouping:
    """A view with finer groups that it shares with others, or as it is planned without.

    Args:
        db: where.
        plain: its plan without finer groups.
        made: relations that will be made for it.
        fillable: whether a program's maps can be filled from what is stored.
        together: whether it shares finer groups now.
    """
    beside = [] if plain.hinted else _beside(db, plain)
    if not beside:
        return Grouping(plain)
    best: Way | None = None
    notes = []
    for way in ways_to_share(plain, beside, surroundings(db, made)):
        if not fillable(way.programs[0]):
            continue
        if way.milliseconds < way.instead * (WORTH + _STAY * together):
            best = way if best is None or _saved(way) > _saved(best) else best
            continue
        costs = f"{way.milliseconds:,.1f} ms an epoch, instead of {way.instead:,.1f} ms"
        notes.append(f"it could share finer groups with {', '.join(way.others)}: {costs}, which is not worth it")
    if best is None:
        return Grouping(plain, (), tuple(notes))
    return Grouping(best.programs[0], best.programs[1:])


def _saved(way: Way) -> float:
    return way.instead - way.milliseconds


def _beside(db: Database, plain: Program) -> list[Program]:
    """Views that may share with one, and read something of what it reads."""
    read = plain.query.relations
    return [
        one.program
        for one in db.engine.catalog
        if one.program is not None and one.name != plain.view and one.program.query.relations & read and _may_move(one)
    ]


def _may_move(view: Relation) -> bool:
    """Whether a view's plan is the planner's own, and follows from changes."""
    assert view.program is not None
    asked = view.program.hinted or view.timing is not None or view.helper is not None
    return not asked and view.parts is None and not view.suspended


def move(db: Database, others: Iterable[Program]) -> None:
    """Give views programs with finer groups that are there now; one that cannot have it stays as it is.

    Each is a transaction of its own: every view is right by either program.
    """
    for program in others:
        _replan(db, program)
    loosen(db)


def loosen(db: Database) -> None:
    """Plan views without finer groups that nobody shares with them any more; one that cannot be stays as it is."""
    for program in lonely(db.engine.catalog.programs):
        _replan(db, alone(program, surroundings(db)))


def _replan(db: Database, program: Program) -> None:
    view = db.engine.catalog.find(program.view)
    if view is None or view.suspended:
        return
    try:
        definitions.replan(db.engine, view, program)
    except HeadwaterError:  # rows that it needs are gone
        return
    db.advice.pop(view.name, None)
