"""When a view is evaluated: after every epoch, or when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.algebra.during import NoWindow, with_windows, without_windows
from headwater.algebra.nodes import Node
from headwater.borrowing import Planned, over_views
from headwater.engine import definitions
from headwater.engine.rebuild import unseen_stream
from headwater.errors import HeadwaterError, NotSupported, Source, UserError
from headwater.plan.compile import Surroundings, compile_from_split, compile_split, compile_view, weigh
from headwater.plan.cost import cost_of
from headwater.plan.program import Program
from headwater.plan.timing import (
    FIRST_READS,
    Figures,
    Origin,
    Remembered,
    Spending,
    is_better_kept,
    reason,
    spending,
    without_trial,
)
from headwater.plan.widening import widened
from headwater.planning import surroundings
from headwater.planning_groups import grouping
from headwater.relations import CatalogRelations
from headwater.sql import statements as s
from headwater.sql.lower import lower_view
from headwater.store.catalog import Relation
from headwater.trying import try_out

if TYPE_CHECKING:
    from headwater.database import Database

ON_QUERY, AUTO = "ON QUERY", "AUTO"
#: What was measured of fewer epochs says little.
ENOUGH_EPOCHS = 5
#: So many programs that would keep a view are tried out, if their maps hold no more rows than this.
MOST_TRIED = 3
MOST_ROWS = 5_000_000


def plan_view(
    db: Database,
    name: s.Name | str,
    query: exp.Expr,
    columns: tuple[s.Name, ...],
    options: tuple[s.Option, ...],
    source: Source,
    relations: CatalogRelations,
) -> Planned:
    """The program of a new view, and what else follows from it.

    Args:
        db: where.
        name: the view's.
        query: as parsed.
        columns: names that the statement gives to its columns.
        options: the statement's.
        source: the statement's text.
        relations: what the query can read.
    """
    _check_options(options)
    given = {one.name: one.value for one in options}
    timing, strategy = given.get("REFRESH"), given.get("STRATEGY")
    through = db.engine.catalog.planned_through

    def lowered(windows: bool) -> Node:
        return lower_view(query, relations, source, columns=columns, through=through, windows=windows)

    text = name.text if isinstance(name, s.Name) else name
    try:
        if timing in (ON_QUERY, AUTO):
            lazy = lowered(windows=False)
            among = surroundings(db, relations.made.values())
            return Planned(_fillable(db, _timed(db, text, lazy, lowered, str(timing), among)))
        node = lowered(windows=True)
        from_views = not query.find(exp.Hint)
        planned = over_views(db, text, node, None if strategy is None else str(strategy), relations, from_views)
        program = planned.program
        if strategy is None and not _is_fillable(db, program):
            among = surroundings(db, relations.made.values())
            program = compile_from_split(text, lowered(windows=False), among)
        found = grouping(db, _fillable(db, program), relations.made.values(), lambda one: _is_fillable(db, one))
        return Planned(found.program, (*planned.notes, *found.notes), found.others)
    except HeadwaterError as error:
        raise error.at(name.span if isinstance(name, s.Name) else None, source) from None


def _timed(
    db: Database, view: str, query: Node, lowered: Callable[[bool], Node], timing: str, among: Surroundings
) -> Program:
    """The program of a new view that is evaluated when it is read, or perhaps is."""
    asked = compile_split(view, query, among)
    if timing == ON_QUERY:
        return asked
    try:
        kept = compile_view(view, lowered(True), None, among)
    except HeadwaterError as error:  # the clock decides something that no window says
        return replace(asked, why=f"AUTO: evaluated when it is read: it cannot be kept ({error.code})")
    if unseen_stream(kept, db.engine.catalog, db.engine.epoch) is not None:
        kept = compile_from_split(view, query, among)
    beside = among.maps_beside(view)
    expected = {keep: spending(one, among.observed, beside) for keep, one in ((True, kept), (False, asked))}
    figures = without_trial(expected, {})
    choice = is_better_kept(figures, FIRST_READS)
    why = reason(figures, FIRST_READS, choice, seen=False)
    return replace(kept if choice else asked, hinted=False, why=why)


def replan_timed(db: Database, view: Relation) -> Program:
    """The program that a view with REFRESH ON QUERY or AUTO gets now."""
    assert view.program is not None
    among = surroundings(db)
    needed = _has_to_be_kept(db, view)
    if view.timing == ON_QUERY and not needed:
        return _asked(view, among)
    ways = _keeping(db, view, among)
    if needed:
        return replace(ways[0], why=f"{view.timing}: kept after every epoch: {needed}")
    asked = _asked(view, among)
    beside = among.maps_beside(view.name)
    expected = {keep: spending(one, among.observed, beside) for keep, one in ((True, ways[0]), (False, asked))}
    ways_known = _remembered(db, view, expected[not view.lazy])
    kept, figures = ways[0], without_trial(expected, ways_known)
    if not all(keep in ways_known and ways_known[keep].holds(expected[keep]) for keep in (True, False)):
        few = [one for one in ways[:MOST_TRIED] if cost_of(one, among.observed, beside).rows < MOST_ROWS]
        found = {keep: try_out(db, view, some) for keep, some in ((True, few), (False, [asked]))}
        best = {keep: tried for keep, tried in found.items() if tried is not None}
        if len(best) == 2:
            kept = best[True].program
            figures = {keep: Figures(tried.spending, Origin.TRIED) for keep, tried in best.items()}
    seen = db.engine.seen.reads.get(view.name)
    epochs = db.engine.epoch - seen.since if seen is not None else 0
    reads = seen.rounds / epochs if seen is not None and epochs else FIRST_READS
    choice = is_better_kept(figures, reads, not view.lazy)
    why = reason(figures, reads, choice, seen=bool(epochs))
    return replace(kept if choice else asked, hinted=False, why=why)


def _remembered(db: Database, view: Relation, expected: Spending) -> Mapping[bool, Remembered]:
    """What the ways took in which a view has been maintained, the present one included if there is enough to go by."""
    known = db.engine.seen.ways.setdefault(view.name, {})
    measured, epochs = db.engine.seen.measured(view.name, db.engine.epoch)
    if epochs >= ENOUGH_EPOCHS:
        known[not view.lazy] = Remembered(measured, expected)
    return known


def _asked(view: Relation, among: Surroundings) -> Program:
    """A program that evaluates a view when it is read, with maps that there are where these have what it needs."""
    assert view.program is not None
    program = compile_split(view.name, without_windows(view.program.query), among)
    return widened(program, among.programs, None).program


def _has_to_be_kept(db: Database, view: Relation) -> str:
    """Why a view cannot wait until it is read, if it cannot."""
    if view.name in db.engine.hub.wanted:
        return "somebody follows its changes"
    if db.engine.catalog.dependents(view.name):
        return "other views follow from its changes"
    return ""


def _keeping(db: Database, view: Relation, among: Surroundings) -> list[Program]:
    """Programs that keep a view after every epoch, and that can be filled from what is stored; the best guess first."""
    assert view.program is not None
    query = without_windows(view.program.query)
    found: list[Program] = []
    with suppress(NoWindow):
        windowed = with_windows(query)
        first = compile_view(view.name, windowed, None, among)
        for one in (first, *(other for other, _ in weigh(view.name, windowed, among))):
            # By another strategy it may need nothing that is gone.
            if unseen_stream(one, db.engine.catalog, db.engine.epoch) is None:
                found += [one] if all(one.steps != other.steps for other in found) else []
    return found or [compile_from_split(view.name, query, among)]


def keep_up(db: Database, name: str) -> None:
    """Let a view that is evaluated when it is read have changes: somebody wants to follow them."""
    with db.engine.lock:
        view = db.engine.catalog.find(name)
        if view is None or not view.lazy or view.suspended:
            return
        [program, *_] = _keeping(db, view, surroundings(db))
        program = replace(program, why=f"{view.timing}: kept: somebody follows its changes")
        definitions.replan(db.engine, view, program)


def _check_options(options: tuple[s.Option, ...]) -> None:
    """A view that is evaluated when it is read has no changes, and no strategy for them."""
    given = {one.name: one for one in options}
    timing = given["REFRESH"].value if "REFRESH" in given else None
    if timing not in (ON_QUERY, AUTO):
        return
    for name in ("STREAMED", "RETAIN CHANGES", "STRATEGY"):
        if name in given:
            raise UserError(
                "HW151",
                f"{name} does not go together with REFRESH {timing}",
                span=given[name].span,
                hint="leave one of them out: a view that is evaluated when it is read has no changes",
            )


def _is_fillable(db: Database, program: Program) -> bool:
    return unseen_stream(program, db.engine.catalog, db.engine.epoch) is None


def _fillable(db: Database, program: Program) -> Program:
    lost = unseen_stream(program, db.engine.catalog, db.engine.epoch)
    if lost is not None:
        raise NotSupported(
            "HW219",
            f"rows of stream {lost} that {program.view} would have to show came before, and are not kept",
            hint="it reads a view that is evaluated when it is read: make that one REFRESH EVERY EPOCH, or give the "
            "stream RETAIN ALL",
        )
    return program
