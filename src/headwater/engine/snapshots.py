"""Queries over a relation as a whole: its contents, and its change in the epoch under way."""

from __future__ import annotations

from headwater.algebra.nodes import Node, Project, Scan, Version
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql
from headwater.store.catalog import Relation


def plain_scan(relation: Relation, version: Version, since: int = 0) -> Node:
    """A relation under its own column names."""
    scan = Scan(relation.name, "r", relation.fields, version, since)
    return Project(scan, tuple((f.name, scan.column(f"r.{f.name}")) for f in relation.fields))


def changelog_query(relation: Relation, emitter: Emitter) -> str:
    """The net change of a relation in the epoch under way: its columns and `#n`."""
    return sql(emitter.net_rows(plain_scan(relation, Version.DELTA)))


def contents_query(relation: Relation, emitter: Emitter, since: int = 0) -> str:
    """A relation's rows, each once, with `#n`."""
    return sql(emitter.net_rows(plain_scan(relation, Version.STORED, since)))
