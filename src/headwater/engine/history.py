"""What a stream has brought is still in maps when its rows are gone: sums that one map has, another can be filled from.

A map of groups and a map of partial sums hold the same, if what they sum is the same: a view that was kept can be left
to who reads it, and the other way round, though its stream keeps no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.nodes import COUNT, Node, Scan, Sum, transform
from headwater.emit.maintain import key_fields, payload_columns
from headwater.plan.program import Map
from headwater.plan.strategies.sums import again
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
            for found in self._maps.get(rows_of(one), ()):
                names = names_in(_sums(found), one)
                if names is None:
                    continue
                if found.sums is None:
                    by_group.add(found.name)
                return _again(one, found, names)
            return one

        return transform(node, from_map), frozenset(by_group)

    def _is_gone(self, sums: Sum) -> bool:
        inputs = [self.catalog.find(name) for name in sums.relations]
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


def _again(sums: Sum, found: Map, names: Mapping[str, str]) -> Sum:
    """The same sum, over the entries of a map that has it; `names` are those that the map has for its columns.

    The entries count as rows that come and never go, as those do that they stand for.
    """
    held = _sums(found)
    fields = found.fields if found.sums is not None else _stored_fields(found)
    scan = Scan(found.name, "#again", fields, grows=True)
    stored = {name: f.name for name, f in zip(held.column_names, fields, strict=True)}
    read = {name: scan.column(f"{scan.alias}.{stored[theirs]}") for name, theirs in names.items()}
    return again(sums, scan, read)


def _stored_fields(found: Map) -> t.Schema:
    """The columns of a map that is stored by group, but for what it shows."""
    assert found.present is not None
    sums = found.present.sums
    payload = tuple(t.Field(text, of, text != COUNT) for text, of in payload_columns(sums))
    return (*key_fields(sums), *payload)
