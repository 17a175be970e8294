"""Views of parts as relations: what CREATE VIEW ... INITIALIZE ... UPDATE comes to."""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.keys import row_key
from headwater.algebra.nodes import Node, Scan, transform
from headwater.algebra.parts import PART, PartQuery
from headwater.errors import NotSupported
from headwater.plan.parts import PartProgram
from headwater.sql import statements as s
from headwater.sql.lower_parts import lower_part_view
from headwater.sql.scope import Relations
from headwater.store.catalog import Catalog, Kind, Relation, no_changes
from headwater.store.event_time import rolled_up


def part_view_of(statement: s.CreatePartView, relations: Relations, catalog: Catalog, epoch: int) -> Relation:
    """The view that a statement makes, after an epoch.

    Raises:
        UserError: its queries do not say what parts hold.
    """
    options = {option.name: option for option in statement.options}
    for name in ("REFRESH", "STRATEGY"):
        if name in options:
            raise NotSupported(
                "HW264",
                f"a view of parts takes no {name}: a part is built as soon as what it reads is complete",
                span=options[name].span,
                hint="leave it out; a view over this one may have it",
            )
    length = options["PARTITION LENGTH"].value
    assert isinstance(length, int)
    lowered = lower_part_view(statement, length, relations)
    for one in catalog:
        if one.lazy and one.name in lowered.initialize.query.relations | lowered.update.query.relations:
            raise no_changes(one)
    program = PartProgram(
        statement.name.text,
        length,
        _all_rows(lowered.initialize, catalog, epoch),
        _all_rows(lowered.update, catalog, epoch),
        "BACKFILL" in options,
    )
    retain = options["RETAIN"].value if "RETAIN" in options else None
    assert retain is None or isinstance(retain, int | str)
    keys = {row_key(one.query, {}) for one in (program.initialize, program.update)}
    key = keys.pop() if len(keys) == 1 else None
    return Relation(
        statement.name.text,
        Kind.VIEW,
        lowered.fields,
        identity=(*key, PART) if key is not None else None,
        length=length,
        parts=program,
        roll_up=rolled_up(options.get("ROLL UP"), length),
        retain=retain,
        sql=statement.text,
        created=epoch,
    )


def _all_rows(query: PartQuery, catalog: Catalog, epoch: int) -> PartQuery:
    """The query over all rows that are stored whole, whenever they came: a part is a part."""

    def whole(node: Node) -> Node:
        stream = catalog.find(node.relation) if isinstance(node, Scan) else None
        if not isinstance(node, Scan) or stream is None or not stream.flows:
            return node
        return replace(node, since=catalog.stored_whole_since(stream, epoch))

    return replace(query, query=transform(query.query, whole))
