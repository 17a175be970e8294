"""What an epoch changes, as observers are told."""

from __future__ import annotations

from headwater.algebra.nodes import Project, Scan, Version
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql
from headwater.store.catalog import Relation


def changelog_query(relation: Relation, emitter: Emitter) -> str:
    """The net change of a relation in the epoch under way: its columns and `#n`."""
    scan = Scan(relation.name, "r", relation.fields, Version.DELTA)
    plain = Project(scan, tuple((f.name, scan.column(f"r.{f.name}")) for f in relation.fields))
    return sql(emitter.net_rows(plain))
