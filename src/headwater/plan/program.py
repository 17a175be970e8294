"""Maintenance programs: inert data that says what is stored and how it follows from changes.

Three consumers read a program and none decides anything for the others: `headwater.emit` turns it into SQL, the engine
runs that, EXPLAIN prints it. In the catalogue it is JSON whose trees are algebra text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from headwater import types as t
from headwater.algebra.during import follows_clock
from headwater.algebra.nodes import (
    Keep,
    Named,
    Node,
    Over,
    Present,
    Repeat,
    Scan,
    Sum,
    Union,
    Version,
    only_grows,
    scalars,
)
from headwater.algebra.read import read_node
from headwater.delta.clock import coming_from


@dataclass(frozen=True)
class Map:
    """A stored relation that the program maintains: the view itself, or a part of it.

    A definition that is a `Present` is stored by group: keys and payload beside the rows they come out as. One that is
    a `Sum` is stored as partial sums, several to a key: whoever reads it adds them up anyway. Any other definition is
    stored as rows with their multiplicity.

    Attributes:
        name: which no other map of the warehouse has.
        definition: what it holds, over inputs of the view and earlier maps.
        stepwise: it takes the change of each relation in that relation's step. Others take what has come together when
            all relations below them have changed.
        coming: what reads the change of the map with the rows of a window that are still to come, if there can be any;
            see `headwater.delta.clock`.
    """

    name: str
    definition: Node
    stepwise: bool = False
    coming: Scan | None = None

    @property
    def present(self) -> Present | None:
        return self.definition if isinstance(self.definition, Present) else None

    @property
    def sums(self) -> Sum | None:
        """The definition of a map of partial sums."""
        return self.definition if isinstance(self.definition, Sum) else None

    @property
    def merges(self) -> bool:
        """Whether its picks follow from what is stored and what comes: minima and maxima of rows that never go."""
        sums = self.present.sums if self.present is not None else None
        if sums is None or not sums.picks:
            return False
        return all(pick.function in ("min", "max") for _, pick in sums.picks) and only_grows(sums.input)

    @property
    def keys(self) -> tuple[Named, ...] | None:
        """The keys of a map whose touched keys are evaluated anew; None for one that follows from deltas."""
        if isinstance(self.definition, Over):
            return self.definition.keys
        if self.present is not None and self.present.sums.picks and not self.merges:
            return self.present.sums.keys
        return None

    @property
    def source(self) -> Node:
        """What a map that is evaluated by key reads."""
        return self.present.sums.input if self.present is not None else self.definition.children[0]

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
class Touch:
    """When relation `on` changes: the keys in `term` of map `target` are to be evaluated anew."""

    on: str
    target: str
    term: Node


@dataclass(frozen=True)
class Recompute:
    """When any input of map `target` has changed: evaluate its definition and take the difference to what is stored."""

    target: str


Statement = Add | Touch | Recompute


@dataclass(frozen=True)
class BlockPlan:
    """How one block of a view is maintained: the maps that it needs, itself last, and what follows from changes."""

    maps: list[Map]
    statements: list[Statement]
    #: The strategy could do nothing for it: it is maintained by its own delta.
    given_up: bool = False


@dataclass(frozen=True)
class Rival:
    """A way to maintain a view that was weighed, and what an epoch was expected to cost.

    Attributes:
        strategy: its name.
        milliseconds: of an epoch.
        statements: that an epoch runs.
        rows: in its maps.
    """

    strategy: str
    milliseconds: float
    statements: float
    rows: float


@dataclass(frozen=True)
class Borrowed:
    """That a view reads others which its text does not name.

    Attributes:
        written: the view's query over what the text names; None if that is not kept for it to turn back to.
        views: what is read in place of it.
        milliseconds: what an epoch is expected to cost so.
        instead: what it would cost from what the query names.
    """

    written: Node | None
    views: tuple[str, ...]
    milliseconds: float
    instead: float

    def to_dict(self) -> dict[str, object]:
        written = str(self.written) if self.written is not None else None
        costs = {"milliseconds": self.milliseconds, "instead": self.instead}
        return {"written": written, "views": list(self.views), **costs}


@dataclass(frozen=True)
class Shared:
    """That a view's groups follow from finer ones, which other views read, too.

    Attributes:
        views: those others.
        milliseconds: what an epoch was expected to cost so, of all views that were planned otherwise for it.
        instead: what these would cost without.
    """

    views: tuple[str, ...]
    milliseconds: float
    instead: float


@dataclass(frozen=True)
class Program:
    """How one view is maintained.

    Attributes:
        view: the view's name, which is also the name of the last map.
        strategy: how the program was made; several names if its blocks differ.
        query: the view's definition over its inputs.
        maps: in the order in which changes flow; a map reads inputs of the view and earlier maps.
        statements: in the order in which they run within a step.
        hinted: the strategy was asked for, not chosen.
        rivals: what was weighed, cheapest first, the chosen one among them.
        upper: of a view that is evaluated when it is read: its rows, over inputs, maps and what is held. No map has
            them.
        held: what `upper` reads that changes with tables and views alone: evaluated when it is first needed, and held
            until one of these changes. Nothing maintains it.
        why: why it is kept, or evaluated when it is read, if the planner has decided on that.
        borrowed: where `query` reads views that the view's text does not name: what it says, and why.
        shared: where a map of finer groups is kept for several views: which, and why.
    """

    view: str
    strategy: str
    query: Node
    maps: tuple[Map, ...]
    statements: tuple[Statement, ...]
    hinted: bool = True
    rivals: tuple[Rival, ...] = ()
    upper: Node | None = None
    held: tuple[Map, ...] = ()
    why: str = ""
    borrowed: Borrowed | None = None
    shared: Shared | None = None

    @property
    def written(self) -> Node:
        """The view's query over what its text names, as far as that is kept."""
        return self.query if self.borrowed is None or self.borrowed.written is None else self.borrowed.written

    @property
    def lazy(self) -> bool:
        """Whether the view is evaluated when it is read."""
        return self.upper is not None

    @property
    def definitions(self) -> tuple[Node, ...]:
        """All trees that say what something is."""
        above = () if self.upper is None else (self.upper,)
        return (*(one.definition for one in (*self.maps, *self.held)), *above)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Relations outside the program that it reads."""
        own = {one.name for one in (*self.maps, *self.held)}
        return tuple(sorted({name for one in self.definitions for name in one.relations} - own))

    @property
    def steps(self) -> tuple[Add | Touch, ...]:
        """The statements that follow from a relation's change."""
        return tuple(one for one in self.statements if isinstance(one, Add | Touch))

    @property
    def follows_clock(self) -> bool:
        """Whether it changes as the clock advances."""
        return any(follows_clock(one.definition) for one in self.maps)

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
        for one in self.definitions:
            used.update(one.column_names)  # a view may end with the columns of a scan as they are
            for node in one.walk():
                used.update(name for scalar in scalars(node) for name in scalar.columns)
                if isinstance(node, Union | Keep | Over | Repeat):  # windows break ties by all columns
                    used.update(name for part in node.children for name in part.column_names)
        scans = [node for one in self.definitions for node in one.walk() if isinstance(node, Scan)]
        return frozenset(
            f.name
            for scan in scans
            if scan.relation == relation
            for f in scan.fields
            if f"{scan.alias}.{f.name}" in used
        )

    def _scans(self) -> Iterator[Scan]:
        for statement in self.statements:
            trees = [] if isinstance(statement, Recompute) else [statement.term]
            if not isinstance(statement, Add):  # it reads what its map is made of
                trees.append(self.map(statement.target).definition)
            yield from (node for tree in trees for node in tree.walk() if isinstance(node, Scan))
        for tree in self.definitions[len(self.maps) :]:
            yield from (node for node in tree.walk() if isinstance(node, Scan))

    def map(self, name: str) -> Map:
        return next(one for one in self.maps if one.name == name)

    def to_dict(self) -> dict[str, object]:
        return {
            "view": self.view,
            "strategy": self.strategy,
            "hinted": self.hinted,
            **({"why": self.why} if self.why else {}),
            "rivals": [asdict(one) for one in self.rivals],
            "query": str(self.query),
            **({"upper": str(self.upper)} if self.upper is not None else {}),
            **({"held": [{"name": m.name, "definition": str(m.definition)} for m in self.held]} if self.held else {}),
            **({"borrowed": self.borrowed.to_dict()} if self.borrowed else {}),
            **({"shared": asdict(self.shared)} if self.shared else {}),
            "maps": [
                {
                    "name": one.name,
                    "definition": str(one.definition),
                    "stepwise": one.stepwise,
                    **({"coming": one.coming.relation} if one.coming else {}),
                }
                for one in self.maps
            ],
            "statements": [
                {"recompute": s.target}
                if isinstance(s, Recompute)
                else {"on": s.on, "target": s.target, "term": str(s.term), "touch": isinstance(s, Touch)}
                for s in self.statements
            ],
        }


def program_from_dict(data: Mapping[str, object], schemas: Mapping[str, t.Schema]) -> Program:
    """A program from its catalogue form; `schemas` are those of the view's inputs."""
    known = dict(schemas)
    maps: list[Map] = []
    for entry in _entries(data["maps"]):
        definition = read_node(str(entry["definition"]), known)
        later = coming_from(str(entry["coming"]), known[str(entry["coming"])]) if "coming" in entry else None
        one = Map(str(entry["name"]), definition, bool(entry["stepwise"]), later)
        known[one.name] = one.fields
        maps.append(one)
    held: list[Map] = []
    for entry in _entries(data.get("held", [])):
        held.append(Map(str(entry["name"]), read_node(str(entry["definition"]), known)))
        known[held[-1].name] = held[-1].fields
    upper = read_node(str(data["upper"]), known) if "upper" in data else None
    statements: list[Statement] = []
    for entry in _entries(data["statements"]):
        if "recompute" in entry:
            statements.append(Recompute(str(entry["recompute"])))
        else:
            term = read_node(str(entry["term"]), known)
            kind = Touch if entry["touch"] else Add
            statements.append(kind(str(entry["on"]), str(entry["target"]), term))
    query = read_node(str(data["query"]), schemas)
    rivals = tuple(Rival(**one) for one in _entries(data["rivals"]))  # type: ignore[arg-type]
    names = str(data["view"]), str(data["strategy"])
    flag = bool(data["hinted"])
    why = str(data.get("why", ""))
    borrowed = _borrowed_from_dict(data.get("borrowed"), schemas)
    shared = _shared_from_dict(data.get("shared"))
    parts = tuple(maps), tuple(statements)
    return Program(*names, query, *parts, flag, rivals, upper, tuple(held), why, borrowed, shared)


def _shared_from_dict(data: object) -> Shared | None:
    if not isinstance(data, Mapping):
        return None
    return Shared(tuple(map(str, data["views"])), float(data["milliseconds"]), float(data["instead"]))


def _borrowed_from_dict(data: object, schemas: Mapping[str, t.Schema]) -> Borrowed | None:
    if not isinstance(data, Mapping):
        return None
    costs = float(data["milliseconds"]), float(data["instead"])
    written = read_node(str(data["written"]), schemas) if data["written"] is not None else None
    return Borrowed(written, tuple(map(str, data["views"])), *costs)


def _entries(value: object) -> list[Mapping[str, object]]:
    assert isinstance(value, list)
    return value
