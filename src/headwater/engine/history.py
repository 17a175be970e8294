"""What a stream has brought is still in maps when its rows are gone: sums that one map has, another can be filled from.

A map of groups and a map of partial sums hold the same, if what they sum is the same: a view that was kept can be left
to who reads it, and the other way round, though its stream keeps no rows. A sum over a join is had from a map with the
sums of each stream by what the join needs of it, as it is when the view is read (`headwater.plan.strategies.split`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.nodes import COUNT, Node, Scan, Sum, transform
from headwater.algebra.scalars import Column
from headwater.emit.maintain import key_fields, payload_columns
from headwater.plan.program import Map
from headwater.plan.strategies.sums import Block, Part, again
from headwater.plan.widening import names_in, rows_of
from headwater.store.catalog import Catalog


@dataclass(frozen=True)
class History:
    """Maps with sums of streams, by what they sum.

    Attributes:
        catalog: whose.
        without: maps that are to be filled, and cannot be read.
    """

    catalog: Catalog
    without: frozenset[str] = frozenset()

    def told(self, node: Node) -> tuple[Node, frozenset[str]]:
        """A tree with sums of streams that keep nothing read from maps, where there are such.

        Returns:
            The tree, and the maps that it reads as they are stored by group, rows that are not shown included.
        """
        by_group: set[str] = set()

        def from_map(one: Node) -> Node:
            if not isinstance(one, Sum) or not self._is_gone(one):
                return one
            entries = self._entries(one, "#again", by_group)
            if entries is not None:
                return again(one, *entries)
            return self._joined(one, by_group) or one

        return transform(node, from_map), frozenset(by_group)

    def _entries(self, sums: Sum, alias: str, by_group: set[str]) -> tuple[Scan, dict[str, Column]] | None:
        """The entries of a map that has a sum, and their columns by its names; None if there is no such map."""
        for found in self._maps.get(rows_of(sums), ()):
            names = names_in(_sums(found), sums)
            if names is not None:
                if found.sums is None:
                    by_group.add(found.name)
                return _read(found, names, alias)
        return None

    def _joined(self, sums: Sum, by_group: set[str]) -> Sum | None:
        """A sum over a join, with the sums of each stream that is gone read from a map; None if one is in none."""
        block = Block.of_any(sums)
        parts: list[Part] = []
        read: set[str] = set()
        for leaf in range(len(block.leaves) if block is not None else 0):
            assert block is not None
            if not self._is_gone(block.leaves[leaf]):
                parts.append(block.raw(leaf))
                continue
            me = frozenset({leaf})
            keys = block.needed(me, block.all, block.wanted)
            own = block.definition(me, keys)
            entries = self._entries(own, f"#again{leaf}", read)
            if entries is None:
                return None
            scan, columns = entries
            items = {key: columns[name] for key, (name, _) in zip(keys, own.keys, strict=True)}
            totals = {factors: columns[name] for factors, (name, _) in zip(block.factors(me), own.terms, strict=True)}
            parts.append(Part(me, scan, items, {(): columns[COUNT], **totals}))
        by_group |= read
        return block.whole(parts) if block is not None else None

    def _is_gone(self, node: Node) -> bool:
        inputs = [self.catalog.find(name) for name in node.relations]
        return any(one is not None and one.flows and one.retain is None for one in inputs)

    @property
    def _maps(self) -> Mapping[str, list[Map]]:
        """Maps of sums, by the rows that they add up and their keys."""
        found: dict[str, list[Map]] = {}
        for view in self.catalog:
            if view.program is None or view.suspended:
                continue
            for one in view.program.maps:
                there = one.sums is not None or (one.present is not None and one.keys is None)
                if there and one.name not in self.without and not view.program.recomputes(one.name):
                    found.setdefault(rows_of(_sums(one)), []).append(one)
        return found


def _sums(one: Map) -> Sum:
    sums = one.sums or (one.present.sums if one.present is not None else None)
    assert sums is not None
    return sums


def _read(found: Map, names: Mapping[str, str], alias: str) -> tuple[Scan, dict[str, Column]]:
    """The entries of a map that has a sum, and their columns; `names` are those that the map has for the sum's.

    The entries count as rows that come and never go, as those do that they stand for.
    """
    held = _sums(found)
    fields = found.fields if found.sums is not None else _stored_fields(found)
    scan = Scan(found.name, alias, fields, grows=True)
    stored = {name: f.name for name, f in zip(held.column_names, fields, strict=True)}
    return scan, {name: scan.column(f"{alias}.{stored[theirs]}") for name, theirs in names.items()}


def _stored_fields(found: Map) -> t.Schema:
    """The columns of a map that is stored by group, but for what it shows."""
    assert found.present is not None
    sums = found.present.sums
    payload = tuple(t.Field(text, of, text != COUNT) for text, of in payload_columns(sums))
    return (*key_fields(sums), *payload)
