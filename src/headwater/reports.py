"""What the warehouse says of itself: SHOW, DESCRIBE, EXPLAIN and status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.algebra.functions import may_raise
from headwater.algebra.nodes import scalars
from headwater.algebra.scalars import TRUE
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import key_column
from headwater.emit.maintain import grouped_maps, map_statements, step_statement, stepwise_statement
from headwater.emit.synchronise import waiting_of
from headwater.engine.engine import UNREADABLE
from headwater.engine.tagger import LATE, UNKNOWN_KEY
from headwater.errors import NotSupported, UserError
from headwater.indexing import index_facts
from headwater.part_reports import part_facts, pretty
from headwater.plan.dag import InputNote
from headwater.plan.explain import EmittedSQL, Explanation
from headwater.plan.finer import finer_map
from headwater.plan.maps import maps_of, users_of
from headwater.plan.program import Add, Borrowed, Map, Program, Shared, Touch
from headwater.plan.roles import roles_text
from headwater.plan.wanted import everything, portable, wanted_by
from headwater.planning import advice
from headwater.results import Result, count_of
from headwater.serve.query import count_rejects, count_rows, epochs, oldest_waiting
from headwater.serve.sizes import store_sizes
from headwater.serve.uppers import upper_query
from headwater.store.catalog import Catalog, Kind, Relation
from headwater.store.policies import When
from headwater.task_reports import away_facts, task_notes

if TYPE_CHECKING:
    from headwater.database import Database


def relation_facts(db: Database, relation: Relation) -> dict[str, object]:
    """What status says of a relation."""
    facts: dict[str, object] = {"name": relation.name, "kind": relation.kind.value, "rows": None}
    if db.engine.catalog.keeps(relation):
        try:
            facts["rows"] = count_rows(db.warehouse, relation, db.engine.catalog.grouped)
        except UserError as error:
            if error.code != "HW409":
                raise
            facts["damaged"] = error.message  # of the others all can be told
    if relation.source is not None:
        facts["source"] = str(relation.source) if relation.has_feed else "the clock"
    if relation.has_feed or relation.is_keyed_stream:
        rejects = count_rejects(db.warehouse, relation)
        facts |= {fact: rejects.get(reason, 0) for fact, reason in _rejects_shown(relation)}
    if relation.time is not None or relation.length is not None:
        facts |= part_facts(db, relation)
    if relation.parts is not None:
        facts |= away_facts(db, relation)
    if relation.program is not None:
        facts["strategy"] = relation.program.strategy
        spent = db.engine.spent.get(relation.name)
        if spent is not None:
            facts["epoch_ms"] = round(spent.milliseconds, 2)
        facts["state"] = "suspended" if relation.suspended else "when read" if relation.lazy else "current"
        facts["epoch"] = relation.stopped if relation.suspended else db.engine.epoch
        if relation.refresh is not None:
            facts["refresh"] = relation.refresh.clause
        if relation.timing is not None:
            facts["refresh"] = relation.timing
            facts |= read_facts(db, relation)
        waits = [behind(db, one) for one in _followers(db, relation)]
        if waits:
            facts["waiting"] = waits
            if any(one["rows"] for one in waits) and not relation.suspended:
                facts["state"] = "behind"
        if relation.suspended:
            facts["reason"] = relation.suspended
        if relation.changes is not None:
            facts["changes_from"] = relation.begins + 1
        facts |= away_facts(db, relation)
        hint = advice(db, relation, db.advice)
        if hint is not None:
            facts["hint"] = hint
    return facts


def read_facts(db: Database, view: Relation) -> dict[str, object]:
    """How a view has been read since the warehouse was opened, and what that took."""
    found = db.uppers.reads.get(view.name)
    if found is None:
        return {"reads": 0}
    facts: dict[str, object] = {"reads": found.reads}
    if view.lazy:
        facts |= {"evaluated": found.evaluated, "read_ms": round(found.milliseconds, 2)}
    return facts


def _followers(db: Database, view: Relation) -> list[Relation]:
    """The synchronised relations that a view reads."""
    inputs = [db.engine.catalog.find(name) for name in view.program_inputs]
    return [one for one in inputs if one is not None and one.policy is not None]


def behind(db: Database, relation: Relation) -> dict[str, object]:
    """How far a synchronised relation is behind the one that it stands for."""
    assert relation.policy is not None
    rows, epoch, clock = oldest_waiting(db.warehouse, waiting_of(relation.name))
    facts: dict[str, object] = {"relation": relation.of, "policy": relation.policy.clause, "rows": rows}
    if rows:
        seconds = (db.engine.present() - clock).total_seconds() if clock is not None else None
        facts |= {"since_epoch": epoch, "seconds": seconds}
    return facts


def _rejects_shown(stream: Relation) -> Iterator[tuple[str, str]]:
    """What is said of a stream's rows that changed nothing, and the reason under which they are counted."""
    if stream.has_feed:
        yield "rejects", UNREADABLE
    if stream.is_keyed_stream:
        yield "unknown_keys", UNKNOWN_KEY
    if stream.sequence is not None:
        yield "late", LATE


def show(db: Database, what: str, like: str | None) -> Result:
    """SHOW what exists, but for MAPS."""
    what = what.upper()
    if like is not None and what == "EPOCHS":
        raise NotSupported("HW261", "SHOW EPOCHS LIKE is not supported", hint="write SHOW EPOCHS")
    pattern = re.compile(_like_pattern(like or "%"), re.IGNORECASE | re.DOTALL)
    if what == "EPOCHS":
        table = epochs(db.warehouse)
        return Result("SHOW EPOCHS", count_of(table.num_rows), table=table)
    if what == "INDEXES":
        found = [one for one in index_facts(db) if pattern.fullmatch(str(one["name"]))]
        return _table("SHOW INDEXES", found, ("name", "relation", "columns", "state", "rows"))
    kinds = {"TABLES": "table", "STREAMS": "stream", "VIEWS": "view"}
    listed: list[dict[str, object]] = [
        {"name": one.name, "kind": one.kind.value, "state": _state(one)}
        for one in db.engine.catalog
        if one.policy is None
        if kinds.get(what, one.kind.value) == one.kind.value and pattern.fullmatch(one.name)
    ]
    return _table(f"SHOW {what}", listed, ("name", "kind", "state"))


def show_maps(db: Database, of: Relation | None, like: str | None) -> Result:
    """SHOW MAPS: all there are, or those that a view uses."""
    if of is not None and of.program is None:
        what = "view of parts" if of.parts is not None else of.kind.value
        hint = "EXPLAIN shows what it reads" if of.parts is not None else "name a view"
        raise UserError("HW104", f"{of.name} is a {what}: only views that follow deltas have maps", hint=hint)
    pattern = re.compile(_like_pattern(like or "%"), re.IGNORECASE | re.DOTALL)
    programs = [one.program for one in db.engine.catalog if one.program]
    users = users_of(programs)
    wanted = [name for name, views in users.items() if (of is None or of.name in views) and pattern.fullmatch(name)]
    rows: list[dict[str, object]] = [
        {
            "map": one.name,
            "role": roles_text(one.roles),
            "views": ", ".join(one.views),
            "keys": ", ".join(one.keys),
            "kept": one.kept,
            "rows": one.size.rows if one.size else None,
            "bytes": one.size.bytes if one.size else None,
        }
        for one in maps_of(programs, users, store_sizes(db.warehouse, wanted))
        if one.name in wanted
    ]
    return _table("SHOW MAPS", rows, ("map", "role", "views", "keys", "kept", "rows", "bytes"))


def _like_pattern(like: str) -> str:
    """A LIKE pattern as a regular expression: `%` is any text, `_` any character, after a backslash neither."""
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)


def _state(relation: Relation) -> str | None:
    if relation.kind is not Kind.VIEW:
        return None
    return "suspended" if relation.suspended else "when read" if relation.lazy else "current"


def describe(relation: Relation) -> Result:
    """DESCRIBE a relation."""
    rows = [
        {
            "column": f.name,
            "type": str(f.type),
            "nullable": f.nullable,
            "key": f.name in (relation.identity or relation.key),
        }
        for f in relation.fields
    ]
    out = _table("DESCRIBE", rows, ("column", "type", "nullable", "key"))
    about = f"{relation.kind.value} {relation.name}"
    if relation.suspended:
        about += f", suspended after epoch {relation.stopped}: {relation.suspended}"
    return replace(out, message=about)


def _table(statement: str, rows: list[dict[str, object]], columns: tuple[str, ...]) -> Result:
    table = pa.table({name: [row[name] for row in rows] for name in columns})
    return Result(statement, count_of(len(rows)), table=table)


def explain_relation(db: Database, relation: Relation) -> Explanation:
    """EXPLAIN a view."""
    if relation.program is None:
        raise UserError(
            "HW104", f"{relation.name} is a {relation.kind.value}: only views have programs", hint="name a view"
        )
    notes = (f"suspended after epoch {relation.stopped}: {relation.suspended}",) if relation.suspended else ()
    if relation.changes is not None:
        notes = (*notes, f"its changes are kept for subscribers, from epoch {relation.begins + 1} on")
    return replace(explain_program(db, relation.program, notes, relation.strict), tasks=task_notes(db, relation))


def explain_program(
    db: Database,
    program: Program,
    notes: tuple[str, ...] = (),
    strict: bool = False,
    made: Iterable[Relation] = (),
) -> Explanation:
    """A program with what the catalogue and the emitter know of it; `made` are relations that would be made for it."""
    catalog = db.engine.catalog
    for relation in made:
        catalog = catalog.with_added(relation)
    if program.borrowed is not None:
        notes = (*notes, _borrows(program.borrowed))
    if program.shared is not None:
        notes = (*notes, _shares(program, program.shared, catalog))
    emitter = Emitter({**catalog.grouped, **grouped_maps(program.maps)})
    steps = tuple(pretty(_step_sql(one, program.map(one.target), emitter)) for one in program.steps)
    maps = {one.name: map_statements(program, one, emitter) for one in program.maps}
    emitted = EmittedSQL(
        steps,
        {name: pretty(one.settle.more) for name, one in maps.items() if one.settle is not None},
        {name: pretty(one.append) for name, one in maps.items()},
        _upper_sql(program, emitter),
    )
    inputs: list[InputNote] = []
    for name in program.inputs:
        found = catalog.find(name)
        assert found is not None
        relation = found
        kept = catalog.keeps(relation) or name in program.stored_reads
        inputs.append(InputNote(relation.name, relation.kind.value, kept, relation.key))
        if relation.policy is not None:
            notes = (*notes, _follows(relation))
        if relation.has_feed:
            notes = (*notes, _handed_over(relation, catalog, program))
        stream = catalog.find(relation.of) if relation.of is not None else relation
        if stream is not None and stream.is_keyed_stream:
            kept_rows = catalog.kept_rows(stream, beside=program)
            if kept_rows != TRUE:
                notes = (*notes, f"the Tagger of {stream.name} keeps only rows where {kept_rows}")
            elif stream.partial is not None:
                notes = (*notes, f"the Tagger of {stream.name} has left rows out before, which no view could use then")
    if not strict and any(may_raise(scalar) for one in program.query.walk() for scalar in scalars(one)):
        notes = (
            *notes,
            f"where a value cannot be computed step by step, {program.view} is evaluated anew from its inputs, "
            "and suspended if that fails too",
        )
    for one in program.maps:
        if program.recomputes(one.name):
            again = "re-reads" if len(program.maps) == 1 else "is evaluated anew from its maps"
            read = ", ".join(sorted(one.definition.relations))
            notes = (*notes, f"{program.view} {again} {read} whole at every change: strategy {program.strategy}")
    notes = (*notes, *_looked_up(db, program))
    sizes = store_sizes(db.warehouse, [*program.inputs, *(one.name for one in program.maps)])
    return Explanation(program, tuple(inputs), emitted, notes, sizes)


def _borrows(borrowed: Borrowed) -> str:
    """That a view reads views which its text does not name, and why."""
    costs = f"{borrowed.milliseconds:,.1f} ms an epoch are expected, instead of {borrowed.instead:,.1f} ms without"
    return f"it is computed from {', '.join(borrowed.views)}, which its text does not name: {costs}"


def _shares(program: Program, shared: Shared, catalog: Catalog) -> str:
    """That a view's groups follow from finer ones, with whom it shares them, and why."""
    fine = finer_map(program)
    there = {one.view for one in catalog.programs if any(each.name == fine for each in one.maps)}
    views = [name for name in shared.views if name in there or program.view not in there]
    costs = f"{shared.milliseconds:,.1f} ms an epoch were expected, instead of {shared.instead:,.1f} ms apart"
    return f"its groups follow from finer ones, {fine}, which it shares with {', '.join(views) or 'nobody'}: {costs}"


def _upper_sql(program: Program, emitter: Emitter) -> dict[str, str]:
    """What evaluates a view when it is read, if that is how it is evaluated."""
    single = emitter.for_single(frozenset(one.name for one in program.maps if one.sums is not None))
    trees = {one.name: one.definition for one in program.held}
    trees |= {program.view: program.upper} if program.upper is not None else {}
    return {name: pretty(upper_query(tree, single)) for name, tree in trees.items()}


def _follows(relation: Relation) -> str:
    """How a synchronised relation follows the one that it stands for."""
    assert relation.policy is not None
    match relation.policy.when:
        case When.EVERY:
            point = f"every {relation.policy}"
        case When.ON:
            point = f"when a row comes to {relation.policy.name}"
        case _:
            point = f"at REFRESH {relation.policy.name}"
    return f"{relation.name} takes the net change of {relation.of} {point}, and does not move in between"


def _looked_up(db: Database, program: Program) -> Iterator[str]:
    """What there is beside stores, to find few rows in them."""
    keys = {one.name: one.present.sums.keys if one.present else one.keys or () for one in program.maps}
    for store in (*program.inputs, *keys):
        names = {key_column(i): str(key) for i, (_, key) in enumerate(keys.get(store, ()))}
        for copy in db.engine.access.copies_of(store):
            by = ", ".join(names.get(text, text) for text in copy.path.columns)
            yield f"few rows of {store} are looked up by {by}, in a sorted copy of {copy.rows:,} rows"


def _step_sql(statement: Add | Touch, target: Map, emitter: Emitter) -> str:
    if target.stepwise and isinstance(statement, Add):
        return stepwise_statement(statement, target, emitter)
    return step_statement(statement, target, emitter).more


def _handed_over(stream: Relation, catalog: Catalog, program: Program) -> str:
    """What Spark does for a stream, once the program is there."""
    programs = [one.program for one in catalog if one.program and one.program.view != program.view]
    whole = stream.retain is not None or stream.key or catalog.tagged_over(stream)
    names = catalog.known_as(stream)
    readings = [(name, one) for one in (*programs, program) for name in names]
    wanted = everything(stream.arriving) if whole else wanted_by(readings)
    columns = ", ".join(f.name for f in stream.arriving if f.name in wanted.columns or not f.nullable)
    condition = portable(wanted.rows)
    where = f" of rows where {condition}" if condition != TRUE else ""
    return f"Spark reads {stream.name} from {stream.source} and hands over {columns}{where}; the rest runs in DuckDB"
