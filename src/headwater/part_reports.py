"""What the warehouse says of parts: SHOW PARTS, SHOW LATE, EXPLAIN of views of parts, and their status."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import sqlglot

from headwater.emit.duckdb import Emitter
from headwater.emit.parts import part_statements
from headwater.engine.dating import OUT_OF_BOUNDS, TOO_LATE
from headwater.engine.due_parts import Due
from headwater.engine.ticks import SECOND
from headwater.errors import UserError
from headwater.plan.explain_parts import PartExplanation, PartState
from headwater.results import Result, count_of
from headwater.serve.parts import late_rows, parts_of
from headwater.serve.query import count_rejects
from headwater.store.catalog import Relation
from headwater.task_reports import task_notes

if TYPE_CHECKING:
    from headwater.database import Database

_UNIX = dt.datetime(1970, 1, 1)


def show_parts(db: Database, relation: Relation) -> Result:
    """SHOW PARTS: every part of a relation that has, or has had, rows."""
    if relation.length is None:
        raise UserError(
            "HW337",
            f"{relation.name} has no parts",
            hint="a stream has them with PARTITION LENGTH, a view with INITIALIZE",
        )
    frontier = db.engine.book.frontier(relation.name)
    table = parts_of(db.warehouse, relation, frontier, _stored(db, relation))
    return Result("SHOW PARTS", count_of(table.num_rows, "part"), table=table)


def _stored(db: Database, relation: Relation) -> str:
    """Whether the rows of parts are stored: those of a stream may have passed by, or be there as far as views need."""
    catalog = db.engine.catalog
    if not catalog.keeps(relation):
        return "no"
    partly = relation.flows and catalog.stored_whole_since(relation, db.engine.epoch) != relation.whole
    return "in part" if partly else "yes"


def show_late(db: Database, relation: Relation) -> Result:
    """SHOW LATE: the rows that came too late for a stream, or were out of all bounds, and why."""
    if not relation.keeps_late:
        raise UserError(
            "HW337",
            f"{relation.name} keeps no late rows aside",
            hint="a stream does with TIMESTAMP BY, and without KEY",
        )
    table = late_rows(db.warehouse, relation)
    return Result("SHOW LATE", count_of(table.num_rows), table=table)


def part_facts(db: Database, relation: Relation) -> dict[str, object]:
    """What status says of a relation with event time."""
    frontier = db.engine.book.frontier(relation.name)
    facts: dict[str, object] = {}
    if relation.keeps_late:
        rejects = count_rejects(db.warehouse, relation)
        facts |= {"too_late": rejects.get(TOO_LATE, 0)}
        if rejects.get(OUT_OF_BOUNDS):
            facts["out_of_bounds"] = rejects[OUT_OF_BOUNDS]
        if frontier.watermark is not None:
            moment = _UNIX + dt.timedelta(microseconds=frontier.watermark)
            facts["watermark"] = moment.isoformat(sep=" ")
            facts["watermark_behind_s"] = round((db.engine.present() - moment).total_seconds(), 3)
    if relation.length is not None:
        facts["partition_length"] = relation.length
        if frontier.oldest is not None and frontier.next is not None:
            facts["parts"] = max(0, frontier.next - frontier.oldest)
            facts["next_part"] = (_UNIX + dt.timedelta(seconds=frontier.next * relation.length)).isoformat(sep=" ")
    if relation.parts is not None:
        facts["state"] = "suspended" if relation.suspended else "current"
        facts["epoch"] = relation.stopped if relation.suspended else db.engine.epoch
        if relation.suspended:
            facts["reason"] = relation.suspended
        waits = _waits_for(db, relation)
        if waits:
            facts["waits_for"] = waits
        if relation.helper is not None:
            facts["helper_of"] = relation.helper
    return facts


def _waits_for(db: Database, view: Relation) -> list[str]:
    """The parts that a view's next part needs, and that are not complete; else the streams in which it is not over."""
    assert view.parts is not None
    frontier = db.engine.book.frontier(view.name)
    if frontier.next is None:
        return sorted(view.parts.sources)
    found = []
    for one in view.parts.update.references:
        following = db.engine.book.frontier(one.relation).next
        last = one.last.at(frontier.next)
        if one.relation != view.name and (following is None or last >= following):
            found.append(f"{one.relation}[{last}]")
    if found:
        return sorted(set(found))
    end = (frontier.next + 1) * view.parts.length * SECOND
    below = Due(db.engine.catalog, db.engine.book).watermarks(view.parts, view.parts.update)
    until = _UNIX + dt.timedelta(microseconds=end)
    return [f"{stream} until {until}" for stream, watermark in below if watermark is None or watermark < end]


def explain_parts(db: Database, relation: Relation, helpers: tuple[Relation, ...] | None = None) -> PartExplanation:
    """EXPLAIN a view of parts, with the views that were made for it.

    Args:
        db: whose.
        relation: the view, which may not be there yet.
        helpers: those that would be made for it; the ones that were by default.
    """
    program = relation.parts
    assert program is not None
    catalog = db.engine.catalog
    if helpers is None:
        helpers = tuple(one for one in catalog if one.helper == relation.name)
    for one in helpers:
        catalog = catalog if catalog.find(one.name) else catalog.with_added(one)
    kinds = {}
    for name in program.inputs:
        found = catalog.find(name)
        assert found is not None
        length = f" with parts of {found.length} seconds" if found.length is not None else ""
        kinds[name] = f"{'helper' if found.helper else found.kind.value}{length}"
    emitter = Emitter(catalog.grouped).for_single(program.sources | {program.view})
    first, later = (
        part_statements(program.view, relation.fields, query, emitter) for query in (program.initialize, program.update)
    )
    sql = {"the first part": first.fresh, "a new part": later.fresh, "a part again": later.again}
    notes: tuple[str, ...] = ()
    for name in sorted(program.initialize.whole | program.update.whole):
        notes += (f"a change of {name}, which is read whole, evaluates all parts again",)
    if relation.suspended:
        notes += (f"suspended after epoch {relation.stopped}: {relation.suspended}",)
    return PartExplanation(
        program,
        [one.written or one.sql for one in (*helpers, relation)],
        kinds,
        {heading: pretty(text) for heading, text in sql.items()},
        _state(db, relation),
        notes,
        helpers=tuple(one.parts for one in helpers if one.parts is not None),
        tasks=task_notes(db, relation) if db.engine.catalog.find(relation.name) else None,
    )


def _state(db: Database, relation: Relation) -> PartState | None:
    frontier = db.engine.book.frontier(relation.name)
    if frontier.oldest is None or frontier.next is None or relation.length is None:
        return None
    begins, ends = (_UNIX + dt.timedelta(seconds=part * relation.length) for part in (frontier.oldest, frontier.next))
    rows = sum(db.engine.book.rows.get(relation.name, {}).values())
    return PartState(frontier.oldest, frontier.next, str(begins), str(ends), rows)


def pretty(text: str) -> str:
    """A statement of DuckDB's, laid out for people."""
    return sqlglot.parse_one(text, dialect="duckdb").sql(dialect="duckdb", pretty=True)
