"""Evaluating a view anew from what is stored, as a change of what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.algebra.nodes import Node, Scan, Values, transform
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Fill
from headwater.emit.maintain import first_fill, rebuild_statements
from headwater.engine.history import History
from headwater.plan.program import Map, Program
from headwater.store.catalog import Catalog, Relation


@dataclass(frozen=True)
class Rebuild:
    """A view to be evaluated anew in an epoch.

    Attributes:
        view: its name.
        program: how it is maintained.
        catalog: the catalogue of that epoch.
        maps: which of its maps; others are up to date, because other views need them too.
        before: the catalogue by which streams have been kept until now; that of the epoch by default.
        empty: whether its maps hold nothing yet, and nobody is told what comes to them.
    """

    view: str
    program: Program
    catalog: Catalog
    maps: frozenset[str]
    before: Catalog | None = None
    empty: bool = False

    def statements(self, net: bool) -> Mapping[str, tuple[Fill, ...]]:
        """What fills the pending table of each map; nothing for one that is recomputed anyway. `net`: see `Emitter`."""
        wanted = [one for one in self.program.maps if one.name in self.maps]
        return {one.name: () if self._is_whole(one) else self._filling(one, net) for one in wanted}

    def first_fills(self, net: bool) -> Mapping[str, str]:
        """What fills maps that are empty at once, without anything pending; `net`: see `Emitter`."""
        emitter = Emitter(self.catalog.grouped, net)
        wanted = [one for one in self.program.maps if one.name in self.maps and self._at_once(one)]
        return {one.name: first_fill(one, emitter, self.program.recomputes(one.name)) for one in wanted}

    def _is_whole(self, one: Map) -> bool:
        """Whether nothing is pending for a map when it is evaluated anew."""
        return self.program.recomputes(one.name) or self._at_once(one)

    def _at_once(self, one: Map) -> bool:
        if not self.empty or _not_kept(self.program, self.before or self.catalog):
            return False
        definition, by_group = History(self.before or self.catalog, self.maps).told(one.definition)
        return definition == one.definition and not by_group

    def _filling(self, one: Map, net: bool) -> tuple[Fill, ...]:
        before = self.before or self.catalog
        definition, by_group = History(before, self.maps).told(one.definition)
        grouped = {name: how for name, how in self.catalog.grouped.items() if name not in by_group}
        missing = _not_kept(self.program, before)
        return rebuild_statements(Map(one.name, without(definition, missing)), Emitter(grouped, net))


def plan_rebuild(view: Relation, catalog: Catalog, all_maps: bool = False) -> Rebuild:
    """The maps that a view needs and no other view that runs keeps up to date; all of them if told so."""
    assert view.program is not None
    kept = frozenset() if all_maps else current_maps(catalog, without=view.folded)
    maps = frozenset(one.name for one in view.program.maps if one.name not in kept)
    return Rebuild(view.name, view.program, catalog, maps)


def current_maps(catalog: Catalog, without: str | None = None) -> frozenset[str]:
    """Maps that follow their inputs, because a view that runs needs them; those of one view may be left out."""
    running = [one for one in catalog if one.program and one.suspended is None and one.folded != without]
    return frozenset(one.name for view in running if view.program for one in view.program.maps)


def lost_stream(program: Program, catalog: Catalog) -> str | None:
    """A stream of whose rows a view has seen some that are not stored, if there is one."""
    told = History(catalog, frozenset(one.name for one in program.maps))
    for one in program.definitions:
        for scan in told.told(one)[0].walk():
            stream = catalog.find(scan.relation) if isinstance(scan, Scan) else None
            if stream is None or not stream.flows or not isinstance(scan, Scan):
                continue
            if not catalog.keeps(stream) or scan.since < stream.begins:
                return stream.name
    return None


def missed_stream(program: Program, catalog: Catalog) -> str | None:
    """A stream into whose rows a program looks back, of which it would miss some: they are not stored.

    What its maps begin with may be had from other maps all the same; what follows when a table changes may not.
    """
    for name in program.inputs:
        stream, since = catalog.find(name), program.looks_back_to(name)
        if stream is None or not stream.flows or since is None:
            continue
        if not catalog.keeps(stream) or since < stream.begins:
            return stream.name
    return None


def unseen_stream(program: Program, catalog: Catalog, epoch: int) -> str | None:
    """A stream of which a new view is to show rows that came before and are nowhere, if there is one.

    A view over one that is evaluated when it is read sees the rows that that one has seen. They are in its maps, of
    which those that both need are shared; of others they are only if the stream retains them.
    """
    there = {one.name: one.definition for other in catalog.programs for one in other.maps}
    new = [one for one in program.maps if there.get(one.name) != one.definition]
    missed = missed_stream(program, catalog) if new else None
    if missed is not None and (program.looks_back_to(missed) or 0) < epoch:
        return missed
    told = History(catalog, frozenset(one.name for one in new))
    for one in (*(told.told(one.definition)[0] for one in new), *program.definitions[len(program.maps) :]):
        for scan in one.walk():
            stream = catalog.find(scan.relation) if isinstance(scan, Scan) else None
            if stream is None or not stream.flows or not isinstance(scan, Scan) or scan.since >= epoch:
                continue
            if stream.retain is None or scan.since < stream.begins:
                return stream.name
    return None


def _not_kept(program: Program, catalog: Catalog) -> frozenset[str]:
    """Inputs whose past is gone: streams that store nothing."""
    inputs = [catalog.find(name) for name in program.inputs]
    return frozenset(one.name for one in inputs if one is not None and not catalog.keeps(one))


def without(node: Node, missing: frozenset[str]) -> Node:
    """The tree with the relations that are not stored read as empty."""

    def empty(one: Node) -> Node:
        if isinstance(one, Scan) and one.relation in missing:
            return Values(one.schema, ())
        return one

    return transform(node, empty) if missing else node
