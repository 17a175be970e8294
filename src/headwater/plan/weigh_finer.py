"""What it costs views over the same rows to share finer groups, and what it costs without.

(Ghanem et al., "Supporting Views in Data Stream Management Systems", section 9: the cost of a pipeline is what its
operators are handed, times what each makes of a tuple.) Of all views, only those are counted that are kept otherwise
with the one than with the other, and a map that several of them have is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.algebra.nodes import Sum
from headwater.plan.compile import Surroundings, compile_finer, compile_view, keep_finer
from headwater.plan.cost import FEW_GROUPS, cost_of
from headwater.plan.finer import finer_map, rows_of, shareable, united
from headwater.plan.program import Program, Shared

#: So many other views are looked at, first those that share already: each takes some 10 ms to plan.
_MOST_NEAR = 12
#: With so many it is weighed to share with each alone; with all of them, always.
_MOST_PAIRS = 4


@dataclass(frozen=True)
class Way:
    """Finer groups that views could share.

    Attributes:
        programs: of the view that is planned, and of those that share with it.
        milliseconds: what an epoch is expected to cost so, of all views that are kept otherwise without.
        instead: what these cost without.
    """

    programs: tuple[Program, ...]
    milliseconds: float
    instead: float

    @property
    def others(self) -> tuple[str, ...]:
        """With whom the view shares."""
        return tuple(one.view for one in self.programs[1:])


def ways_to_share(plain: Program, beside: Sequence[Program], among: Surroundings) -> Iterator[Way]:
    """The ways to share finer groups with others: with all that add up the same rows, and with each alone.

    Args:
        plain: the view's program without finer groups.
        beside: those of views that may share with it.
        among: what they are planned among.
    """
    for mine in shareable(plain.view, plain.query):
        rows = rows_of(mine)
        same = {one.view: [each for each in shareable(one.view, one.query) if rows_of(each) == rows] for one in beside}
        found = [one for one in beside if same[one.view]]
        near = tuple(sorted(found, key=lambda one: one.shared is None)[:_MOST_NEAR])
        pairs = [(one,) for one in near] if 1 < len(near) <= _MOST_PAIRS else []
        for some in ([near] if near else []) + pairs:
            yield _way(plain, united([mine, *(each for one in some for each in same[one.view])]), some, near, among)


def _way(plain: Program, sums: Sum, some: Sequence[Program], near: Sequence[Program], among: Surroundings) -> Way:
    """Finer groups for a view and some of the views near it."""
    finer = keep_finer(sums, among)
    programs: list[Program] = []
    for one in (plain, *some):
        program = compile_finer(one.view, one.query, finer, replace(among, programs=(*among.programs, *programs)))
        views = tuple(other.view for other in (plain, *some) if other.view != one.view)
        programs.append(replace(program, borrowed=one.borrowed, shared=Shared(views, 0.0, 0.0)))
    there = {one.view: one for one in among.programs} | {one.view: one for one in near}
    shared = _settled({**there, **{one.view: one for one in programs}}, among)
    apart = _settled({**there, plain.view: plain}, among)
    differing = [view for view, one in shared.items() if one.maps != apart[view].maps]
    milliseconds, instead = _cost(shared, differing, among), _cost(apart, differing, among)
    noted = [_noted(one, there.get(one.view), milliseconds, instead) for one in programs]
    return Way(tuple(noted), milliseconds, instead)


def _noted(program: Program, now: Program | None, milliseconds: float, instead: float) -> Program:
    """A program with what is to be said of its finer groups; costs stay those for which it got them."""
    assert program.shared is not None
    if now is not None and now.shared is not None and now.maps == program.maps:
        return replace(program, shared=replace(now.shared, views=program.shared.views))
    return replace(program, shared=replace(program.shared, milliseconds=milliseconds, instead=instead))


def _settled(programs: Mapping[str, Program], among: Surroundings) -> dict[str, Program]:
    """Programs in which nobody has finer groups for himself."""
    lone = {one.view for one in lonely(programs.values())}
    return {view: alone(one, among) if view in lone else one for view, one in programs.items()}


def lonely(programs: Iterable[Program]) -> list[Program]:
    """Those whose finer groups nobody shares."""
    every = list(programs)
    users = {one.view: {each.name for each in one.maps} for one in every}
    return [
        one
        for one in every
        if one.shared is not None
        and not any(finer_map(one) in maps for view, maps in users.items() if view != one.view)
    ]


def alone(program: Program, among: Surroundings) -> Program:
    """A view's program without finer groups."""
    return replace(compile_view(program.view, program.query, None, among), borrowed=program.borrowed)


def _cost(programs: Mapping[str, Program], some: Sequence[str], among: Surroundings) -> float:
    """What some of all programs cost in an epoch; a map that several have is kept once."""
    there = {one.name for view, program in programs.items() if view not in some for one in program.maps}
    total = 0.0
    for view in some:
        total += cost_of(programs[view], among.observed, there, FEW_GROUPS).milliseconds
        there |= {one.name for one in programs[view].maps}
    return total
