"""Maps that take changes step by step, and which of them can lie away.

Partial sums take the change of each relation in that relation's step. Where no statement of a step reads them, it is
all the same when they take it: away they take what has come when all relations below them have changed, as other maps
do. Where one does, it must see them as they are amid the epoch, and the whole program stays at home.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.algebra.nodes import Scan, Version
from headwater.plan.program import Program


def bound_to_home(programs: Iterable[Program]) -> set[str]:
    """The maps of programs that read maps amid the steps of an epoch."""
    found = list(programs)
    stepwise = {each.name for one in found for each in one.maps if each.stepwise}
    home = {
        scan.relation
        for one in found
        for step in one.steps
        for scan in step.term.walk()
        if isinstance(scan, Scan) and scan.version is not Version.DELTA and scan.relation in stepwise
    }
    more = bool(home)
    while more:  # programs share maps: all or none of those that do
        sharing = {each.name for one in found if any(each.name in home for each in one.maps) for each in one.maps}
        more = not sharing <= home
        home |= sharing
    return home
