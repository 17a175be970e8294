"""Views of parts, and views that are translated into them; streams that are told how far they are."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.algebra.parts import PART
from headwater.creating import find, kept_changes, new_name
from headwater.engine import definitions
from headwater.errors import HeadwaterError, UserError
from headwater.part_reports import explain_parts
from headwater.plan.explain_parts import PartExplanation
from headwater.results import Result, count_of
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.sql.parse import parse
from headwater.sql.place import Place
from headwater.sql.scope import RelationInfo, WithMore
from headwater.sql.translate import Parted, source_of, translate
from headwater.store.catalog import Relation
from headwater.store.part_views import part_view_of

if TYPE_CHECKING:
    from headwater.database import Database


def create_part_view(db: Database, statement: s.CreatePartView) -> Result:
    """Make a view of parts."""
    with db.engine.lock:
        if not new_name(db, statement.name, statement.if_not_exists):
            return Result("CREATE VIEW", f"{statement.name.text} exists already")
        relation = part_view_of(statement, db.relations_for_views(None), db.engine.catalog, db.engine.epoch)
        changes = kept_changes(statement.options)
        relation = replace(relation, changes=changes, begins=db.engine.epoch - 1 if changes is not None else 0)
        definitions.create_part_views(db.engine, [relation])
    return _created_parts(db, relation)


def create_translated(db: Database, statement: s.CreateView) -> Result:
    """Make a view of a PATTERN or a sliding window: the views of parts that it stands for, all or none."""
    with db.engine.lock:
        if not new_name(db, statement.name, statement.if_not_exists):
            return Result("CREATE VIEW", f"{statement.name.text} exists already")
        made = translated(db, statement)
        definitions.create_part_views(db.engine, made)
    return _created_parts(db, made[-1])


def translated(db: Database, statement: s.CreateView) -> list[Relation]:
    """The views of parts that a view stands for, the last of which is the view itself."""
    made: list[Relation] = []
    relations = WithMore(db.relations_for_views(None))
    taken = {fold(statement.name.text)}

    def name(suffix: str) -> str:
        wanted = f"{statement.name.text}_{suffix}"
        numbers = itertools.count(2)
        while db.engine.catalog.find(wanted) is not None or fold(wanted) in taken:
            wanted = f"{statement.name.text}_{suffix}{next(numbers)}"
        taken.add(fold(wanted))
        return wanted

    for text in translate(statement, _parted(db, statement), name):
        [one] = parse(text, "<translation>")
        assert isinstance(one, s.CreatePartView)
        relation = part_view_of(one, relations, db.engine.catalog, db.engine.epoch)
        relations.add(RelationInfo(relation.name, relation.fields, length=relation.length))
        made.append(relation)
    view = statement.name.text
    last = replace(made[-1], sql=statement.text, changes=kept_changes(statement.options), written=made[-1].sql)
    if last.changes is not None:
        last = replace(last, begins=db.engine.epoch - 1)
    return [*(replace(one, helper=view) for one in made[:-1]), last]


def _parted(db: Database, statement: s.CreateView) -> Parted:
    """The relation with parts that a PATTERN or a sliding window is about."""
    place = Place(statement.source)
    named = source_of(statement.query, place)
    relation = db.engine.catalog.find(named.name)
    if relation is None:
        raise UserError(
            "HW102",
            f"there is no relation named {named.name!r}",
            span=place.span(named),
            source=statement.source,
            hint="SHOW RELATIONS lists what exists",
        )
    if relation.length is None:
        raise UserError(
            "HW184",
            f"{relation.name} has no parts",
            span=place.span(named),
            source=statement.source,
            hint="create the stream with TIMESTAMP BY column PARTITION LENGTH seconds",
        )
    fields = tuple(f for f in relation.fields if f.name != PART)
    return Parted(relation.name, fields, relation.length, relation.time)


def _created_parts(db: Database, relation: Relation) -> Result:
    frontier = db.engine.book.frontier(relation.name)
    parts = 0 if frontier.first is None or frontier.next is None else frontier.next - frontier.first
    return Result("CREATE VIEW", f"created view {relation.name} ({count_of(parts, 'part')})")


def advance_stream(db: Database, statement: s.AdvanceStream) -> Result:
    try:
        epoch = db.advance_stream(statement.name.text, statement.moment)
    except HeadwaterError as error:
        raise error.at(statement.name.span) from None
    watermark = db.engine.book.watermarks[find(db, statement.name).name]
    reached = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=watermark)
    return Result("ADVANCE STREAM", f"{statement.name.text} is complete up to {reached}", epoch=epoch.number)


def explain_made(db: Database, statement: s.Explain) -> PartExplanation:
    """EXPLAIN of a view that would be made of parts, or translated into views of parts."""
    if isinstance(statement.target, s.CreatePartView):
        relation = part_view_of(statement.target, db.relations_for_views(None), db.engine.catalog, db.engine.epoch)
        return explain_parts(db, relation, ())
    assert not isinstance(statement.target, s.Name)
    name = statement.name or s.Name("query", statement.query_span)
    view = s.CreateView(
        statement.source, statement.span, name, statement.columns, statement.target, statement.query_span
    )
    *helpers, last = translated(db, view)
    return explain_parts(db, last, tuple(helpers))
