"""Maintenance programs: inert data that says what is stored and how it follows from changes.

Three consumers read a program and none decides anything for the others: `headwater.emit` turns it into SQL, the engine
runs that, EXPLAIN prints it. In the catalogue it is JSON whose trees are algebra text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.nodes import Node, Present, Scan, Union, Version, scalars
from headwater.algebra.read import read_node


@dataclass(frozen=True)
class Map:
    """A stored relation that the program maintains: the view itself, or a part of it.

    A definition that is a `Present` is stored by group: keys and payload beside the rows they come out as. Any other
    definition is stored as rows with their multiplicity.
    """

    name: str
    definition: Node

    @property
    def present(self) -> Present | None:
        return self.definition if isinstance(self.definition, Present) else None

    @property
    def fields(self) -> t.Schema:
        return self.definition.schema


@dataclass(frozen=True)
class Add:
    """When relation `on` changes: the pending change of map `target` grows by `term`."""

    on: str
    target: str
    term: Node


@dataclass(frozen=True)
class Recompute:
    """When any input of map `target` has changed: evaluate its definition and take the difference to what is stored."""

    target: str


Statement = Add | Recompute


@dataclass(frozen=True)
class Program:
    """How one view is maintained.

    Attributes:
        view: the view's name, which is also the name of the last map.
        strategy: how the program was made.
        query: the view's definition over its inputs.
        maps: in the order in which changes flow; a map reads inputs of the view and earlier maps.
        statements: in the order in which they run within a step.
    """

    view: str
    strategy: str
    query: Node
    maps: tuple[Map, ...]
    statements: tuple[Statement, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Relations outside the program that it reads."""
        own = {one.name for one in self.maps}
        return tuple(sorted({name for one in self.maps for name in one.definition.relations} - own))

    def triggers(self, relation: str) -> tuple[Add, ...]:
        return tuple(s for s in self.statements if isinstance(s, Add) and s.on == relation)

    def recomputes(self, target: str) -> bool:
        return any(isinstance(s, Recompute) and s.target == target for s in self.statements)

    @property
    def stored_reads(self) -> frozenset[str]:
        """Relations whose contents, not only changes, a statement reads: these must be kept."""
        return frozenset(scan.relation for scan in self._scans() if scan.version is not Version.DELTA)

    def looks_back_to(self, relation: str) -> int | None:
        """The epoch after which it may read a relation's rows again, or None if it never looks back."""
        seen = [scan.since for scan in self._scans() if scan.relation == relation and scan.version is not Version.DELTA]
        return min(seen, default=None)

    def columns_of(self, relation: str) -> frozenset[str]:
        """The columns of a relation that anything is made of."""
        used: set[str] = set()
        for one in self.maps:
            used.update(one.definition.column_names)  # a view may end with the columns of a scan as they are
            for node in one.definition.walk():
                used.update(name for scalar in scalars(node) for name in scalar.columns)
                if isinstance(node, Union):
                    used.update(name for part in node.inputs for name in part.column_names)
        scans = [node for one in self.maps for node in one.definition.walk() if isinstance(node, Scan)]
        return frozenset(
            f.name
            for scan in scans
            if scan.relation == relation
            for f in scan.fields
            if f"{scan.alias}.{f.name}" in used
        )

    def _scans(self) -> Iterator[Scan]:
        for statement in self.statements:
            tree = statement.term if isinstance(statement, Add) else self.map(statement.target).definition
            yield from (node for node in tree.walk() if isinstance(node, Scan))

    def map(self, name: str) -> Map:
        return next(one for one in self.maps if one.name == name)

    def to_dict(self) -> dict[str, object]:
        return {
            "view": self.view,
            "strategy": self.strategy,
            "query": str(self.query),
            "maps": [{"name": one.name, "definition": str(one.definition)} for one in self.maps],
            "statements": [
                {"on": s.on, "target": s.target, "term": str(s.term)} if isinstance(s, Add) else {"recompute": s.target}
                for s in self.statements
            ],
        }


def program_from_dict(data: Mapping[str, object], schemas: Mapping[str, t.Schema]) -> Program:
    """A program from its catalogue form; `schemas` are those of the view's inputs."""
    known = dict(schemas)
    maps: list[Map] = []
    for entry in _entries(data["maps"]):
        one = Map(str(entry["name"]), read_node(str(entry["definition"]), known))
        known[one.name] = one.fields
        maps.append(one)
    statements: list[Statement] = []
    for entry in _entries(data["statements"]):
        if "recompute" in entry:
            statements.append(Recompute(str(entry["recompute"])))
        else:
            term = read_node(str(entry["term"]), known)
            statements.append(Add(str(entry["on"]), str(entry["target"]), term))
    query = read_node(str(data["query"]), schemas)
    return Program(str(data["view"]), str(data["strategy"]), query, tuple(maps), tuple(statements))


def _entries(value: object) -> list[Mapping[str, object]]:
    assert isinstance(value, list)
    return value
