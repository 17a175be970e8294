"""EXPLAIN: of a view that is there, of one that would be made, and of a query as a view."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater import reports
from headwater.creating import find, kept_changes, new_name, refresh_policy, view_options
from headwater.creating_parts import explain_made
from headwater.engine import definitions
from headwater.errors import HeadwaterError
from headwater.part_reports import explain_parts
from headwater.plan.answer_from import Outcome
from headwater.plan.compile import weigh
from headwater.plan.explain import Explanation
from headwater.plan.explain_parts import PartExplanation
from headwater.planning import surroundings
from headwater.planning_reads import plan_view
from headwater.sql import statements as s
from headwater.sql.lower import lower_answer
from headwater.sql.translate import translates
from headwater.store.catalog import Relation

if TYPE_CHECKING:
    from headwater.database import Database

Explained = Explanation | PartExplanation


def explain_relation(db: Database, relation: Relation) -> Explained:
    """EXPLAIN a view that is there."""
    return explain_parts(db, relation) if relation.parts is not None else reports.explain_relation(db, relation)


def explain_statement(db: Database, statement: s.Explain) -> Explained:
    """EXPLAIN as a statement, in the format that it names."""
    if isinstance(statement.target, s.Name):
        relation = find(db, statement.target)
        if relation.parts is not None:
            return replace(explain_parts(db, relation), format=statement.format)
    elif isinstance(statement.target, s.CreatePartView) or translates(statement.target):
        return replace(explain_made(db, statement), format=statement.format)
    explained = replace(_explained(db, statement), format=statement.format)
    if not statement.all_strategies:
        return explained
    program = explained.program
    weighed = weigh(program.view, program.query, surroundings(db))
    return replace(explained, rivals=tuple(rival for _, rival in weighed))


def _explained(db: Database, statement: s.Explain) -> Explanation:
    if isinstance(statement.target, s.Name):
        return reports.explain_relation(db, find(db, statement.target))
    assert not isinstance(statement.target, s.CreatePartView)
    _, strict = view_options(statement.options)
    kept_changes(statement.options)
    if statement.name:
        new_name(db, statement.name, if_not_exists=False)
    relations = db.relations_for_views(refresh_policy(db, statement.name, statement.options))
    name = statement.name or ("#query" if db.engine.catalog.find("query") else "query")
    planned = plan_view(db, name, statement.target, statement.columns, statement.options, statement.source, relations)
    program, notes = planned.program, list(planned.notes)
    lazy = (db.engine.catalog.find(one) for one in sorted(relations.read))
    notes += [
        f"{one.name} is evaluated when it is read: whoever asks once does that, and this program reads what it reads"
        for one in lazy
        if one is not None and one.lazy
    ]
    made = definitions.needed(program, list(relations.made.values()))
    explained = reports.explain_program(db, program, tuple(notes), strict=strict, made=made)
    asked = statement.name is None and not statement.target.find(exp.Hint)
    return replace(explained, answer=_answer(db, statement)) if asked else explained


def _answer(db: Database, statement: s.Explain) -> Outcome | None:
    """From which views a query would be answered now; None if it cannot be asked now."""
    assert isinstance(statement.target, exp.Expr)
    catalog, moment = db.engine.catalog, db.engine.present()
    try:
        found = lower_answer(statement.target, db.relations_for_queries(catalog), statement.source, moment=moment)
    except HeadwaterError:
        return None
    return db.answering.outcome(found.node, catalog)
