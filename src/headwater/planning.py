"""What the planner is told of a warehouse, and what it has to say about the plans in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.engine.observe import Spent, observe
from headwater.plan.choose import MARGIN
from headwater.plan.compile import CANDIDATES, DIVISIBLE, Surroundings, compile_view
from headwater.plan.cost import cost_of
from headwater.plan.program import Program
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

#: A view's plan is compared with others after so many epochs, and again after as many.
_ENOUGH_EPOCHS = 20
_EPOCHS_BETWEEN = 100
#: Milliseconds an epoch; for less, no plan is changed.
_WORTH = 1.0


def surroundings(db: Database, made: Iterable[Relation] = ()) -> Surroundings:
    """What a view is compiled among; `made` are relations that will be made for it."""
    with db.engine.lock:  # no epoch changes how DuckDB plans meanwhile: it knows statistics only when it plans in full
        db.warehouse.plan_quickly(False)
        catalog = db.engine.catalog
        reader = db.warehouse.reader()
        try:
            observed = observe(reader, catalog, db.engine.extents)
        finally:
            reader.close()
    for one in made:  # what stands for a relation is as large as that
        if one.of is not None and one.of in observed:
            observed[one.name] = observed[one.of]
    static = {one.name for one in catalog if one.static}
    candidates = CANDIDATES if db.engine.away is None else DIVISIBLE
    return Surroundings(catalog.programs, static, observed, candidates)


def replanned(view: str, before: Program, strategy: str | None, among: Surroundings) -> Program:
    """The program that a view gets under a strategy, or by cost; the one it has, unless another is clearly cheaper.

    What a plan needs that another has not kept may be gone for good, so a change must be worth it.
    """
    best = compile_view(view, before.query, strategy, among)
    if strategy is not None:
        return best
    beside = among.maps_beside(view)
    now, then = (cost_of(one, among.observed, beside).milliseconds for one in (before, best))
    if then < now * MARGIN:
        return best
    return replace(before, hinted=False, rivals=best.rivals)


def advice(db: Database, view: Relation, known: dict[str, tuple[int, str | None]]) -> str | None:
    """What to do about a view whose plan is clearly beaten by another; None if nothing."""
    spent = db.engine.spent.get(view.name)
    program = view.program
    if program is None or view.suspended or spent is None or spent.epochs < _ENOUGH_EPOCHS:
        return None
    epoch, found = known.get(view.name, (-_EPOCHS_BETWEEN, None))
    if db.engine.epoch - epoch >= _EPOCHS_BETWEEN:
        found = _better_plan(db, view, spent)
        known[view.name] = db.engine.epoch, found
    return found


def _better_plan(db: Database, view: Relation, spent: Spent) -> str | None:
    assert view.program is not None
    among = surroundings(db)
    best = compile_view(view.name, view.program.query, None, among)
    expected = cost_of(view.program, among.observed, among.maps_beside(view.name)).milliseconds
    rival = cost_of(best, among.observed, among.maps_beside(view.name)).milliseconds
    if best.strategy == view.program.strategy or not _clearly_beaten(expected, spent.milliseconds, rival):
        return None
    hoped = spent.milliseconds * rival / expected
    return (
        f"takes {spent.milliseconds:.1f} ms an epoch by {view.program.strategy}, and perhaps {hoped:.1f} ms by "
        f"{best.strategy}: ALTER VIEW {view.name} REPLAN"
    )


def _clearly_beaten(expected: float, measured: float, rival: float) -> bool:
    """Whether another plan would be clearly faster than the one in use, as far as estimates can tell.

    Estimates are corrected by what the plan in use takes: `measured` instead of `expected`, and the same for the other.

    Args:
        expected: milliseconds that the plan in use was expected to take.
        measured: milliseconds that it takes.
        rival: milliseconds that the other is expected to take.
    """
    return rival * 1.5 < expected and measured * (1 - rival / expected) > _WORTH
