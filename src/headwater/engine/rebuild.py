"""Evaluating a view anew from what is stored, as a change of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.algebra.nodes import Node, Scan, Values, transform
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.maintain import rebuild_statements
from headwater.plan.program import Map, Program
from headwater.store.catalog import Catalog, Kind, Relation


@dataclass(frozen=True)
class Rebuild:
    """A view to be evaluated anew in an epoch.

    Attributes:
        view: its name.
        program: how it is maintained.
        catalog: the catalogue of that epoch.
    """

    view: str
    program: Program
    catalog: Catalog

    def statements(self, net: bool) -> Mapping[str, tuple[Fill, ...]]:
        """What fills the pending table of each map; `net` as of `Emitter`."""
        emitter = Emitter(self.catalog.grouped, net)
        missing = _not_kept(self.program, self.catalog)
        return {
            one.name: rebuild_statements(Map(one.name, _without(one.definition, missing)), emitter)
            for one in self.program.maps
            if not self.program.recomputes(one.name)
        }


def plan_rebuild(view: Relation, catalog: Catalog) -> Rebuild:
    assert view.program is not None
    return Rebuild(view.name, view.program, catalog)


def lost_stream(program: Program, catalog: Catalog) -> str | None:
    """A stream of whose rows a view has seen some that are not stored, if there is one."""
    for one in program.maps:
        for scan in one.definition.walk():
            stream = catalog.find(scan.relation) if isinstance(scan, Scan) else None
            if stream is None or stream.kind is not Kind.STREAM or not isinstance(scan, Scan):
                continue
            if not catalog.keeps(stream) or scan.since < stream.begins:
                return stream.name
    return None


def _not_kept(program: Program, catalog: Catalog) -> frozenset[str]:
    """Inputs whose past is gone: streams that store nothing."""
    inputs = [catalog.find(name) for name in program.inputs]
    return frozenset(one.name for one in inputs if one is not None and not catalog.keeps(one))


def _without(node: Node, missing: frozenset[str]) -> Node:
    """The tree with the relations that are not stored read as empty."""

    def empty(one: Node) -> Node:
        if isinstance(one, Scan) and one.relation in missing:
            return Values(one.schema, ())
        return one

    return transform(node, empty) if missing else node
