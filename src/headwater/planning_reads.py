"""When a view is evaluated: after every epoch, or when it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.algebra.during import NoWindow, with_windows, without_windows
from headwater.algebra.nodes import Node
from headwater.borrowing import over_views
from headwater.engine import definitions
from headwater.engine.rebuild import unseen_stream
from headwater.errors import HeadwaterError, NotSupported, Source, UserError
from headwater.plan.compile import Surroundings, compile_from_split, compile_split, compile_view, weigh
from headwater.plan.program import Program
from headwater.plan.timing import FIRST_READS, Spending, is_better_kept, reason, spending
from headwater.plan.widening import widened
from headwater.planning import surroundings
from headwater.relations import CatalogRelations
from headwater.sql import statements as s
from headwater.sql.lower import lower_view
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

ON_QUERY, AUTO = "ON QUERY", "AUTO"


def plan_view(
    db: Database,
    name: s.Name | str,
    query: exp.Expr,
    columns: tuple[s.Name, ...],
    options: tuple[s.Option, ...],
    source: Source,
    relations: CatalogRelations,
    notes: list[str] | None = None,
) -> Program:
    """The program of a new view.

    Args:
        db: where.
        name: the view's.
        query: as parsed.
        columns: names that the statement gives to its columns.
        options: the statement's.
        source: the statement's text.
        relations: what the query can read.
        notes: takes what is to be said of views that it could be computed from.
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
            return _fillable(db, _timed(db, text, lazy, lowered, str(timing), among))
        node = lowered(windows=True)
        from_views = not query.find(exp.Hint)
        planned = over_views(db, text, node, None if strategy is None else str(strategy), relations, from_views)
        program = planned.program
        if notes is not None:
            notes += planned.notes
        if strategy is None and unseen_stream(program, db.engine.catalog, db.engine.epoch) is not None:
            among = surroundings(db, relations.made.values())
            program = compile_from_split(text, lowered(windows=False), among)
        return _fillable(db, program)
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
    a, b = (spending(one, among.observed, among.maps_beside(view)) for one in (kept, asked))
    choice = is_better_kept(a, b, FIRST_READS)
    return replace(kept if choice else asked, hinted=False, why=reason(a, b, FIRST_READS, choice, seen=False))


def replan_timed(db: Database, view: Relation) -> Program:
    """The program that a view with REFRESH ON QUERY or AUTO gets now."""
    assert view.program is not None
    among = surroundings(db)
    needed = _has_to_be_kept(db, view)
    if view.timing == ON_QUERY and not needed:
        return _asked(view, among)
    kept = _kept(db, view, among)
    if needed:
        return replace(kept, why=f"{view.timing}: kept after every epoch: {needed}")
    asked = _asked(view, among)
    a, b = (spending(one, among.observed, among.maps_beside(view.name)) for one in (kept, asked))
    seen = db.uppers.reads.get(view.name)
    epochs = db.engine.epoch - seen.since if seen is not None else 0
    reads = seen.reads / epochs if seen is not None and epochs else FIRST_READS
    spent = db.engine.spent.get(view.name)
    measured = Spending(
        spent.milliseconds if spent is not None else 0.0, seen.milliseconds if seen is not None else 0.0
    )
    if view.lazy:
        b = b.corrected(b, measured)
    else:
        a = a.corrected(a, replace(measured, read=0.0))
    choice = is_better_kept(a, b, reads, not view.lazy)
    db.uppers.reads.pop(view.name, None)  # the next decision goes by what is seen from now on
    return replace(kept if choice else asked, hinted=False, why=reason(a, b, reads, choice, seen=bool(epochs)))


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


def _kept(db: Database, view: Relation, among: Surroundings) -> Program:
    """A program that keeps a view after every epoch, and that can be filled from what is stored."""
    assert view.program is not None
    query = without_windows(view.program.query)
    try:
        windowed = with_windows(query)
    except NoWindow:
        return compile_from_split(view.name, query, among)
    program = compile_view(view.name, windowed, None, among)
    others = (other for other, _ in weigh(view.name, windowed, among))
    for one in chain([program], others):  # by another strategy it may need nothing that is gone
        if unseen_stream(one, db.engine.catalog, db.engine.epoch) is None:
            return one
    return compile_from_split(view.name, query, among)


def keep_up(db: Database, name: str) -> None:
    """Let a view that is evaluated when it is read have changes: somebody wants to follow them."""
    with db.engine.lock:
        view = db.engine.catalog.find(name)
        if view is None or not view.lazy or view.suspended:
            return
        program = replace(_kept(db, view, surroundings(db)), why=f"{view.timing}: kept: somebody follows its changes")
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
